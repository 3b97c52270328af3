//! Units do not matter: what is said of a set is said of the same set with all times multiplied.
//!
//! panco's linear programs failed in b/s and worked in kb/ms. Here all is exact: a factor of up to 10⁹ changes nothing. A region of q
//! ticks blocks for q − 1, so it is that which is multiplied.

use laxity_model::analysis::supply::{BoundedDelay, Dedicated, ExplicitDeadline, SupplyBound};
use laxity_model::analysis::{
    Fraction, Preemption, Response, Task, Verdict, edf, fixed_priority, utilization,
};
use laxity_model::{Reservation, Service, Span};
use proptest::prelude::*;

use crate::rivals::config;

/// A task in plain numbers: C, T, D, J, and what its longest and its last region block.
type Numbers = (u64, u64, u64, u64, Option<(u64, Option<u64>)>);

fn numbers() -> impl Strategy<Value = Numbers> {
    (2_u64..40, 2_u64..10, 1_u64..20, 0_u64..20, 0..4).prop_flat_map(|(cost, n, d, j, kind)| {
        let regions = match kind {
            0 | 1 => Just(None).boxed(),
            2 => (0..cost).prop_map(|longest| Some((longest, None))).boxed(),
            // A region that is the whole job would no longer be, multiplied.
            _ => (0..cost - 1)
                .prop_flat_map(|longest| (Just(longest), 0..=longest))
                .prop_map(|(longest, last)| Some((longest, Some(last))))
                .boxed(),
        };
        let jitter = if j < 15 { 0 } else { j };
        regions.prop_map(move |regions| (cost, cost * n, cost * d, jitter, regions))
    })
}

fn scaled((cost, period, deadline, jitter, regions): Numbers, by: u64) -> Task {
    let service = |ticks: u64| Service::from_nanos(ticks * by);
    let region = |less_one: u64| Service::from_nanos(less_one * by + 1);
    let preemption = match regions {
        None => Preemption::Anywhere,
        Some((longest, None)) => Preemption::Floating {
            longest: region(longest),
        },
        Some((longest, Some(last))) => Preemption::Fixed {
            longest: region(longest),
            last: region(last),
        },
    };
    Task::new(service(cost), Span::from_nanos(period * by))
        .and_then(|task| task.with_deadline(Span::from_nanos(deadline * by)))
        .map(|task| task.with_jitter(Span::from_nanos(jitter * by)))
        .and_then(|task| task.with_preemption(preemption))
        .expect("a task")
}

fn factor() -> impl Strategy<Value = u64> {
    prop_oneof![
        2_u64..20,
        Just(1_000),
        Just(1_000_000),
        1_u64..1_000_000_000,
        Just(1_000_000_000)
    ]
}

fn times(response: Response, by: u64) -> Response {
    let longer = |span: Span| Span::from_nanos(span.as_nanos() * by);
    match response {
        Response::Bounded(mut bound) => {
            bound.from_arrival = longer(bound.from_arrival);
            bound.from_release = longer(bound.from_release);
            Response::Bounded(bound)
        }
        other => other,
    }
}

fn verdict_times(verdict: Verdict, by: u64) -> Verdict {
    match verdict {
        Verdict::NotSchedulable(mut witness) => {
            witness.release = Span::from_nanos(witness.release.as_nanos() * by);
            witness.due = Span::from_nanos(witness.due.as_nanos() * by);
            Verdict::NotSchedulable(witness)
        }
        other => other,
    }
}

/// Holds what the tests say on two supplies, one of which is the other with its times multiplied, against each other.
fn same_on<S: SupplyBound>(
    set: &[Numbers],
    by: u64,
    supply: &S,
    longer: &S,
) -> Result<(), TestCaseError> {
    let tasks: Vec<Task> = set.iter().map(|task| scaled(*task, 1)).collect();
    let long: Vec<Task> = set.iter().map(|task| scaled(*task, by)).collect();
    let all = |responses: Vec<Response>, by: u64| -> Vec<Response> {
        responses
            .into_iter()
            .map(|response| times(response, by))
            .collect()
    };
    prop_assert_eq!(
        fixed_priority::response_times(&tasks, supply).map(|r| all(r, by)),
        fixed_priority::response_times(&long, longer)
    );
    prop_assert_eq!(
        fixed_priority::test(&tasks, supply).map(|v| verdict_times(v, by)),
        fixed_priority::test(&long, longer)
    );
    prop_assert_eq!(
        edf::response_times(&tasks, supply).map(|r| all(r, by)),
        edf::response_times(&long, longer)
    );
    prop_assert_eq!(
        edf::test(&tasks, supply).map(|v| verdict_times(v, by)),
        edf::test(&long, longer)
    );
    prop_assert_eq!(
        fixed_priority::best_order(&tasks, supply),
        fixed_priority::best_order(&long, longer)
    );
    Ok(())
}

/// A region that all tolerate is as long as the blocking that they do, and a tick.
fn same_region(short: Service, long: Service, cost: Service, by: u64) -> bool {
    let (short, long) = (short.as_nanos(), long.as_nanos());
    let blocking = long == short.saturating_sub(1) * by + u64::from(short > 0);
    blocking || (short >= cost.as_nanos() && long >= cost.as_nanos() * by)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_answers_for_a_dedicated_processor_scale(
        set in prop::collection::vec(numbers(), 1..6),
        by in factor(),
    ) {
        same_on(&set, by, &Dedicated, &Dedicated)?;
        let tasks: Vec<Task> = set.iter().map(|task| scaled(*task, 1)).collect();
        let long: Vec<Task> = set.iter().map(|task| scaled(*task, by)).collect();
        let regions = [
            (fixed_priority::longest_regions(&tasks, &Dedicated), fixed_priority::longest_regions(&long, &Dedicated)),
            (edf::longest_regions(&tasks, &Dedicated), edf::longest_regions(&long, &Dedicated)),
        ];
        for (short, long) in regions {
            let (short, long) = (short.expect("small"), long.expect("small"));
            let (short, long) = (short.found(), long.found());
            prop_assert_eq!(short.is_some(), long.is_some());
            for ((short, long), task) in short.iter().flatten().zip(long.iter().flatten()).zip(&tasks) {
                prop_assert!(same_region(*short, *long, task.cost(), by), "{short} {long}");
            }
        }
    }

    /// Without regions: the bounds know them in whole ticks only.
    #[test]
    fn the_utilization_bounds_scale(
        set in prop::collection::vec((1_u64..10, 10_u64..200), 1..8),
        by in factor(),
    ) {
        let tasks = |by: u64| {
            let mut tasks: Vec<Task> = set.iter().map(|(c, t)| crate::rivals::task(c * by, t * by)).collect();
            tasks.sort_by_key(Task::period);
            tasks
        };
        let (short, long) = (tasks(1), tasks(by));
        prop_assert_eq!(utilization::liu_layland(&short), utilization::liu_layland(&long));
        prop_assert_eq!(utilization::hyperbolic(&short), utilization::hyperbolic(&long));
        prop_assert_eq!(utilization::blocking_per_task(&short), utilization::blocking_per_task(&long));
        prop_assert_eq!(utilization::rmdp(&short), utilization::rmdp(&long));
        prop_assert_eq!(
            fixed_priority::fifo(&short, &Dedicated).map(|response| times(response, by)),
            fixed_priority::fifo(&long, &Dedicated)
        );
    }

    #[test]
    fn supplies_and_the_answers_on_them_scale(
        set in prop::collection::vec(numbers(), 1..4),
        (service, slack, gap) in (1_u64..40, 0_u64..20, 0_u64..20),
        by in factor(),
    ) {
        let reservation = |by: u64| {
            let period = service + slack + gap;
            Reservation::new(Service::from_nanos(service * by), Span::from_nanos(period * by)).expect("it fits")
        };
        let explicit = |by: u64| {
            let deadline = Span::from_nanos((service + slack) * by);
            ExplicitDeadline::new(reservation(by), deadline).expect("it fits")
        };
        let (short, long) = (explicit(1), explicit(by));
        for ticks in 0..300 {
            // Service comes tick by tick: between multiples there is more, at them the same.
            let (window, need) = (Span::from_nanos(ticks), Service::from_nanos(ticks));
            prop_assert_eq!(
                short.least_service(window).as_nanos() * by,
                long.least_service(Span::from_nanos(ticks * by)).as_nanos()
            );
            prop_assert_eq!(
                short.window_for(need).map(|window| window.as_nanos() * by),
                long.window_for(Service::from_nanos(ticks * by)).map(Span::as_nanos)
            );
        }
        same_on(&set, by, &short, &long)?;
        same_on(&set, by, &ExplicitDeadline::periodic(reservation(1)), &ExplicitDeadline::periodic(reservation(by)))?;
        same_on(&set, by, &ExplicitDeadline::continuous(reservation(1)), &ExplicitDeadline::continuous(reservation(by)))?;
    }

    /// A rate of 1/n gives a tick every n: at multiples, the same.
    #[test]
    fn a_bounded_delay_scales(
        (part, delay) in (1_u64..6, 0_u64..30),
        by in factor(),
    ) {
        let rate = Fraction::new(1, part).expect("not zero");
        let supply = |by: u64| BoundedDelay::new(rate, Span::from_nanos(delay * by)).expect("a rate");
        for ticks in 0..100 {
            prop_assert_eq!(
                supply(1).window_for(Service::from_nanos(ticks)).map(|window| window.as_nanos() * by),
                supply(by).window_for(Service::from_nanos(ticks * by)).map(Span::as_nanos)
            );
        }
    }
}
