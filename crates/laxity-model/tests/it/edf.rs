//! Earliest deadline first: the fast answers against the slow ones, against schedules tick by tick, and against the
//! response-time-analysis crate.
//!
//! `LAXITY_CASES` multiplies the numbers of cases.

use std::cmp::Ordering;
use std::num::NonZeroU64;

use laxity_model::analysis::supply::{Dedicated, SupplyBound};
use laxity_model::analysis::{
    Doubt, Fraction, Overflow, Preemption, Response, Search, Task, Verdict, edf,
};
use laxity_model::{Service, Span};
use proptest::prelude::*;

use crate::edf_support::rival::Rival;
use crate::edf_support::sets::{Deadlines, r20, with_quarters};
use crate::edf_support::{Pause, cases, oracle, plain, schedule};

const fn ticks(ticks: u64) -> Span {
    Span::from_nanos(ticks)
}

/// So many cases, times `LAXITY_CASES`, beside those that a test does not want.
pub(crate) fn config(times: u32) -> ProptestConfig {
    ProptestConfig {
        max_global_rejects: u32::MAX,
        ..ProptestConfig::with_cases(cases(times))
    }
}

/// Where jobs may be preempted, any way that fits.
fn preemption(cost: u64) -> impl Strategy<Value = Preemption> {
    let service = Service::from_nanos;
    prop_oneof![
        2 => Just(Preemption::Anywhere),
        1 => Just(Preemption::Never),
        2 => (1..=cost).prop_map(move |longest| Preemption::Floating { longest: service(longest) }),
        1 => (1..=cost, 1..=cost).prop_map(move |(a, b)| Preemption::Fixed {
            longest: service(a.max(b)),
            last: service(a.min(b)),
        }),
    ]
}

fn task(longest_period: u64) -> impl Strategy<Value = Task> {
    (2..=longest_period)
        .prop_flat_map(|period| {
            (
                Just(period),
                1..=period.div_ceil(2),
                0..=period,
                0..=2 * period,
            )
        })
        .prop_flat_map(|(period, cost, jitter, later)| {
            let jitter = prop_oneof![3 => Just(0), 1 => Just(jitter)];
            let burst = prop_oneof![4 => Just(1), 1 => 2_u64..4];
            (
                Just((period, cost, cost + later)),
                jitter,
                burst,
                preemption(cost),
            )
        })
        .prop_map(|((period, cost, deadline), jitter, burst, preemption)| {
            plain(cost, period)
                .with_burst(burst.try_into().expect("one at least"))
                .with_deadline(ticks(deadline))
                .and_then(|task| task.with_jitter(ticks(jitter)).with_preemption(preemption))
                .expect("a task")
        })
}

pub(crate) fn tasks(longest_period: u64) -> impl Strategy<Value = Vec<Task>> {
    prop::collection::vec(task(longest_period), 1..5)
}

/// A processor of one's own, or one that serves the first Q of every P some of the time and the last Q at others.
pub(crate) fn supply() -> impl Strategy<Value = Pause> {
    prop_oneof![
        2 => Just(Pause { budget: 1, period: 1 }),
        2 => (2_u64..7).prop_flat_map(|period| (1..=period).prop_map(move |budget| Pause { budget, period })),
    ]
}

/// The least common multiple of all periods, and of the supply's.
fn hyperperiod(tasks: &[Task], supply: Pause) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let periods = tasks.iter().map(|task| task.period().as_nanos());
    periods.fold(supply.period, |multiple, period| {
        multiple / gcd(multiple, period) * period
    })
}

pub(crate) fn exceeds_rate(tasks: &[Task], supply: Pause) -> bool {
    against_rate(tasks, supply).is_gt()
}

/// How what the tasks need compares with what the supply gives in the long run.
fn against_rate(tasks: &[Task], supply: Pause) -> Ordering {
    let common = hyperperiod(tasks, supply);
    let needed: u64 = (tasks.iter())
        .map(|task| common / task.period().as_nanos() * task.cost().as_nanos())
        .sum();
    needed.cmp(&(common / supply.period * supply.budget))
}

/// As far as an overload must be looked for, if there is none in the long run: there demand and supply repeat.
pub(crate) fn far_enough(tasks: &[Task], supply: Pause) -> Span {
    let longest = tasks
        .iter()
        .map(|task| task.deadline() + task.period())
        .max();
    ticks(hyperperiod(tasks, supply)) + longest.unwrap_or_default() + ticks(2 * supply.period)
}

fn released_late(tasks: &[Task]) -> bool {
    tasks.iter().any(|task| task.jitter() >= task.deadline())
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn the_test_is_as_if_every_tick_were_tried(tasks in tasks(8), supply in supply()) {
        let verdict = edf::test(&tasks, &supply).expect("small numbers");
        let bad = released_late(&tasks)
            || exceeds_rate(&tasks, supply)
            || oracle::first_overload(&tasks, &supply, far_enough(&tasks, supply)).is_some();
        match verdict {
            Verdict::Schedulable => prop_assert!(!bad),
            Verdict::NotSchedulable(_) => prop_assert!(bad),
            Verdict::Unknown(doubt) => prop_assert!(false, "{doubt} of what is small"),
        }
    }

    #[test]
    fn a_witness_is_late_in_its_worst_case(tasks in tasks(10)) {
        prop_assume!(!released_late(&tasks));
        if let Verdict::NotSchedulable(witness) = edf::test(&tasks, &Dedicated).expect("small numbers") {
            let late = schedule::worst_case_completion(&tasks, witness);
            prop_assert!(late > witness.due.as_nanos(), "complete at {} and {}", late, witness);
        }
    }

    #[test]
    fn response_times_are_as_if_every_arrival_were_tried(tasks in tasks(9), supply in supply()) {
        let responses = edf::response_times(&tasks, &supply).expect("small numbers");
        let far = far_enough(&tasks, supply);
        for (index, response) in responses.iter().enumerate() {
            match response {
                Response::Bounded(bound) => {
                    // A busy window that never ends repeats itself.
                    let is_full = against_rate(&tasks, supply).is_eq();
                    let horizon = if is_full { far } else { ticks(100_000) };
                    if !is_full || far <= ticks(300) {
                        let slow = oracle::response_time(&tasks, index, &supply, horizon);
                        prop_assert_eq!(Some(*bound), slow);
                    }
                }
                Response::Unbounded => prop_assert!(exceeds_rate(&tasks, supply)),
                Response::Unknown(doubt) => prop_assert!(false, "{doubt} of what is small"),
            }
        }
    }

    /// Where all is preemptible, bounds and demand say the same of deadlines.
    #[test]
    fn response_times_and_demand_agree_where_both_are_exact(tasks in tasks(12), supply in supply()) {
        let tasks: Vec<Task> = tasks.iter().map(|task| task.with_preemption(Preemption::Anywhere).expect("fits")).collect();
        let verdict = edf::test(&tasks, &supply).expect("small numbers");
        let responses = edf::response_times(&tasks, &supply).expect("small numbers");
        let bounds: Option<Vec<_>> = responses.iter().map(Response::bound).collect();
        if let Some(bounds) = bounds {
            let met = bounds.iter().zip(&tasks).all(|(bound, task)| bound.from_arrival <= task.deadline());
            prop_assert_eq!(verdict.is_schedulable(), met);
        }
    }

    #[test]
    fn no_schedule_exceeds_a_bound(tasks in tasks(9), seed in any::<u64>()) {
        let responses = edf::response_times(&tasks, &Dedicated).expect("small numbers");
        let verdict = edf::test(&tasks, &Dedicated).expect("small numbers");
        for observed in schedule::random(&tasks, seed, 200) {
            if let Some(bound) = responses[observed.task].bound() {
                prop_assert!(observed.complete - observed.arrival <= bound.from_arrival.as_nanos());
                prop_assert!(observed.complete - observed.release <= bound.from_release.as_nanos());
            }
            let deadline = tasks[observed.task].deadline().as_nanos();
            prop_assert!(!verdict.is_schedulable() || observed.complete - observed.arrival <= deadline);
        }
    }

    #[test]
    fn the_longest_regions_are_tolerated_and_no_longer_ones(tasks in tasks(12), supply in supply()) {
        let with = |regions: &[Service]| -> Vec<Task> {
            let floating = |(task, longest): (&Task, &Service)| {
                task.with_preemption(Preemption::Floating { longest: *longest }).expect("fits")
            };
            tasks.iter().zip(regions).map(floating).collect()
        };
        let none = vec![Service::from_nanos(1); tasks.len()];
        let regions = match edf::longest_regions(&tasks, &supply).expect("small numbers") {
            Search::Found(regions) => regions,
            // As sure as the test of the same tasks without regions.
            nothing => {
                let expected = match edf::test(&with(&none), &supply).expect("small numbers") {
                    Verdict::Schedulable => None,
                    Verdict::NotSchedulable(_) => Some(Search::None),
                    Verdict::Unknown(doubt) => Some(Search::Unknown(doubt)),
                };
                prop_assert_eq!(Some(nothing), expected);
                return Ok(());
            }
        };
        prop_assert_eq!(edf::test(&with(&regions), &supply), Ok(Verdict::Schedulable));
        for (index, task) in tasks.iter().enumerate().filter(|(index, task)| regions[*index] < task.cost()) {
            let mut longer = regions.clone();
            longer[index] += Service::from_nanos(1);
            let verdict = edf::test(&with(&longer), &supply);
            prop_assert!(matches!(verdict, Ok(Verdict::NotSchedulable(_))), "{} {:?}", task, verdict);
        }
    }
}

#[test]
fn a_set_that_needs_every_tick_is_schedulable() {
    // A simulator in floats misses deadlines of this set.
    let us = |cost, period| {
        Task::new(Service::from_micros(cost), Span::from_micros(period)).expect("a task")
    };
    assert_eq!(
        edf::test(&[us(100, 300), us(200, 300)], &Dedicated),
        Ok(Verdict::Schedulable)
    );
    // Three thirds with three different periods: no estimate tells it from more than 1.
    let thirds = [plain(1 << 40, 3 << 40), plain(7, 21), plain(11, 33)];
    assert_eq!(edf::test(&thirds, &Dedicated), Ok(Verdict::Schedulable));
    let more = [plain((1 << 40) + 1, 3 << 40), plain(7, 21), plain(11, 33)];
    assert!(matches!(
        edf::test(&more, &Dedicated),
        Ok(Verdict::NotSchedulable(_))
    ));
    assert_eq!(
        edf::response_times(&more, &Dedicated),
        Ok(vec![Response::Unbounded; 3])
    );
}

/// `short` ends at 5, and is due at 4, if a region of 4 has begun one tick before it is released: whatever comes behind that region, and
/// whatever came before it, for that may be next to nothing in one job.
#[test]
fn a_region_between_known_points_may_have_just_begun() {
    let short = plain(2, 4);
    let cut = |longest, last| {
        let [longest, last] = [longest, last].map(Service::from_nanos);
        let long = plain(6, 12).with_preemption(Preemption::Fixed { longest, last });
        edf::test(&[short, long.expect("fits")], &Dedicated)
    };
    for (longest, last) in [(4, 2), (4, 1), (4, 4), (6, 2), (6, 6)] {
        let Ok(Verdict::NotSchedulable(witness)) = cut(longest, last) else {
            panic!("{longest} and {last}: {:?}", cut(longest, last));
        };
        assert_eq!((witness.task, witness.due), (0, ticks(4)));
    }
    assert_eq!(cut(3, 3), Ok(Verdict::Schedulable));
}

#[test]
fn what_does_not_fit_is_an_error() {
    let half = plain(u64::MAX / 2, u64::MAX)
        .with_deadline(ticks(u64::MAX / 2 + 9))
        .expect("a task");
    let late = half.with_jitter(ticks(u64::MAX));
    assert!(edf::test(&[half, half], &Dedicated).is_err());
    assert!(edf::response_times(&[late, half], &Dedicated).is_err());
    assert!(edf::longest_regions(&[half, half], &Dedicated).is_err());
    // More than there is until it is due: on any supply, and beside whatever else.
    let (alone, other) = (plain(u64::MAX, 1), plain(1, 2));
    for tasks in [[alone, other], [other, alone], [alone, alone]] {
        assert!(matches!(
            edf::test(&tasks, &Dedicated),
            Ok(Verdict::NotSchedulable(_))
        ));
        assert!(matches!(
            laxity_model::analysis::fixed_priority::test(&tasks, &Dedicated),
            Ok(Verdict::NotSchedulable(_))
        ));
    }
    // Bursts without end.
    let bursts = [plain(1, 10), plain(1, 10).with_burst(NonZeroU64::MAX)];
    assert!(edf::test(&bursts, &Dedicated).is_err());
    assert!(edf::response_times(&bursts, &Dedicated).is_err());
    assert!(laxity_model::analysis::fixed_priority::test(&bursts, &Dedicated).is_err());
    // A job may be released long after it was due: no numbers are needed to see that.
    assert!(matches!(
        edf::test(&[late], &Dedicated),
        Ok(Verdict::NotSchedulable(_))
    ));
}

/// The busy window never ends where the load is one and jobs are late, and all that happens in it has happened after the common multiple of the periods.
#[test]
fn a_busy_window_that_never_ends_is_looked_at_until_it_repeats_itself() {
    let whole = Pause {
        budget: 1,
        period: 1,
    };
    let of = |cost, period, deadline, jitter| {
        let task = plain(cost, period).with_jitter(ticks(jitter));
        task.with_deadline(ticks(deadline)).expect("a task")
    };
    let never = |task: Task| task.with_preemption(Preemption::Never).expect("it fits");
    let rigid = [never(of(1, 3, 2, 0)), never(of(2, 3, 3, 3))];
    let free = [of(1, 4, 3, 1), of(2, 8, 5, 6), of(6, 12, 11, 0)];
    for tasks in [&rigid[..], &free] {
        let responses = edf::response_times(tasks, &Dedicated).expect("small numbers");
        for (index, response) in responses.iter().enumerate() {
            let far = far_enough(tasks, whole);
            let slow = oracle::response_time(tasks, index, &Dedicated, far);
            assert!(
                slow.is_some() && response.bound() == slow,
                "{index} {response:?} {slow:?}"
            );
        }
    }
    // On a supply that pauses it never ends without jitter either.
    let half = Pause {
        budget: 1,
        period: 2,
    };
    let tasks = [plain(1, 4), plain(2, 8)];
    let responses = edf::response_times(&tasks, &half).expect("small numbers");
    assert!(responses.iter().all(|response| response.bound().is_some()));
}

#[test]
fn a_search_that_does_not_end_is_given_up() {
    // Full, with jitter: no busy window ends, and the periods have no common multiple that fits.
    let third = |prime: u64| plain(prime, 3 * prime).with_jitter(ticks(1));
    let tasks = [4_294_967_291, 4_294_967_279, 4_294_967_231].map(third);
    let doubt = Doubt::TooLong;
    assert_eq!(edf::test(&tasks, &Dedicated), Ok(Verdict::Unknown(doubt)));
    let regions = edf::longest_regions(&tasks, &Dedicated);
    assert_eq!(regions, Ok(Search::Unknown(doubt)));
    let responses = edf::response_times(&tasks, &Dedicated);
    assert_eq!(responses, Ok(vec![Response::Unknown(doubt); 3]));
}

#[test]
fn four_of_four_is_a_whole_processor() {
    let tasks = [
        plain(2, 4).with_jitter(ticks(2)),
        plain(1, 2).with_deadline(ticks(3)).expect("a task"),
    ];
    let whole = Pause {
        budget: 4,
        period: 4,
    };
    let verdict = edf::test(&tasks, &Dedicated);
    assert!(!matches!(verdict, Ok(Verdict::Unknown(_))));
    assert_eq!(edf::test(&tasks, &whole), verdict);
}

#[test]
fn a_supply_that_may_be_better_than_its_bound_proves_no_miss() {
    struct Better(Pause);
    impl SupplyBound for Better {
        fn least_service(&self, window: Span) -> Service {
            self.0.least_service(window)
        }
        fn window_for(&self, service: Service) -> Result<Span, Overflow> {
            self.0.window_for(service)
        }
        fn rate(&self) -> Fraction {
            self.0.rate()
        }
        fn delay(&self) -> Span {
            self.0.delay()
        }
        fn is_attained(&self) -> bool {
            false
        }
    }
    let half = Pause {
        budget: 2,
        period: 4,
    };
    for cost in [2, 6] {
        let tasks = [plain(cost, 10).with_deadline(ticks(4)).expect("a task")];
        assert!(matches!(
            edf::test(&tasks, &half),
            Ok(Verdict::NotSchedulable(_))
        ));
        let sufficient = Verdict::Unknown(Doubt::Sufficient);
        assert_eq!(edf::test(&tasks, &Better(half)), Ok(sufficient));
        // Two ticks of four, from the third on at the latest: nothing of six ticks fits in four, and of two only 0 ticks are sure.
        assert_eq!(edf::longest_regions(&tasks, &half), Ok(Search::None));
        let regions = edf::longest_regions(&tasks, &Better(half));
        assert_eq!(regions, Ok(Search::Unknown(Doubt::Sufficient)));
    }
}

#[test]
fn nothing_is_schedulable() {
    assert_eq!(edf::test(&[], &Dedicated), Ok(Verdict::Schedulable));
    assert_eq!(edf::response_times(&[], &Dedicated), Ok(vec![]));
    assert_eq!(
        edf::longest_regions(&[], &Dedicated),
        Ok(Search::Found(vec![]))
    );
}

/// The same bounds as the crate, on sets without jitter whose demand the processor can meet.
fn check_parity(tasks: &[Task], rival_bound: impl Fn(&Rival, usize) -> u64) {
    let rival = Rival::new(tasks);
    let responses = edf::response_times(tasks, &Dedicated).expect("small numbers");
    for (index, response) in responses.iter().enumerate() {
        let bound = response.bound().expect("bounded");
        assert_eq!(
            bound.from_arrival.as_nanos(),
            rival_bound(&rival, index),
            "task {index} of {tasks:?}"
        );
        assert_eq!(bound.from_release, bound.from_arrival);
    }
}

fn all_with(tasks: &[Task], preemption: impl Fn(&Task) -> Preemption) -> Vec<Task> {
    tasks
        .iter()
        .map(|task| task.with_preemption(preemption(task)).expect("fits"))
        .collect()
}

proptest! {
    #![proptest_config(config(200))]

    /// To the tick, in each of its four models. (The last region of each task is cut at random.)
    #[test]
    fn bounds_are_the_crates(tasks in tasks(60)) {
        let regular = |task: &Task| task.with_jitter(Span::ZERO).with_burst(NonZeroU64::MIN);
        let tasks: Vec<Task> = tasks.iter().map(regular).collect();
        let load: f64 = tasks.iter().map(|task| task.cost().as_nanos() as f64 / task.period().as_nanos() as f64).sum();
        prop_assume!(load < 0.999);
        let free = all_with(&tasks, |_| Preemption::Anywhere);
        check_parity(&free, |rival, index| rival.preemptive_bound(index, &rival.preemptive()[index]));
        let floating = all_with(&tasks, |task| Preemption::Floating {
            longest: Service::from_nanos(task.blocking().as_nanos() + 1),
        });
        check_parity(&floating, |rival, index| rival.floating_bound(index, &rival.floating()[index]));
        let fixed = all_with(&tasks, |task| Preemption::Fixed {
            longest: Service::from_nanos(task.blocking().as_nanos() + 1),
            last: Service::from_nanos(task.tail().as_nanos() + 1),
        });
        check_parity(&fixed, Rival::limited_bound);
        check_parity(&all_with(&tasks, |_| Preemption::Never), Rival::never_bound);
    }
}

#[test]
fn bounds_of_sets_of_twenty_are_the_crates() {
    let sets = usize::try_from(cases(1)).expect("small");
    for (load, seed) in [(0.8, 11), (0.9, 13)] {
        for deadlines in [Deadlines::Implicit, Deadlines::Constrained] {
            for tasks in r20(sets, load, deadlines, seed) {
                check_parity(&tasks, |rival, index| {
                    rival.preemptive_bound(index, &rival.preemptive()[index])
                });
                let quarters = with_quarters(&tasks);
                check_parity(&quarters, |rival, index| {
                    rival.floating_bound(index, &rival.floating()[index])
                });
                let fixed = all_with(&quarters, |task| Preemption::Fixed {
                    longest: Service::from_nanos(task.blocking().as_nanos() + 1),
                    last: Service::from_nanos((task.blocking().as_nanos() + 2) / 2),
                });
                check_parity(&fixed, Rival::limited_bound);
                check_parity(&all_with(&tasks, |_| Preemption::Never), Rival::never_bound);
            }
        }
    }
}
