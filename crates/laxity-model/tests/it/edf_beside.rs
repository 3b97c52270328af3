//! Earliest deadline first beside somebody who is never due, and the least deadline of a newcomer: against every tick, and against the test itself.

use laxity_model::analysis::supply::{Dedicated, SupplyBound};
use laxity_model::analysis::{Preemption, Search, Task, Verdict, edf};
use laxity_model::{Service, Span};
use proptest::prelude::*;

use crate::edf::{config, exceeds_rate, far_enough, supply, tasks};
use crate::edf_support::{oracle, plain};

fn service(nanos: u64) -> Service {
    Service::from_nanos(nanos)
}

fn span(nanos: u64) -> Span {
    Span::from_nanos(nanos)
}

/// Every tick is tried: who blocks does so for all of a region.
fn is_overloaded<S: SupplyBound>(
    tasks: &[Task],
    never_due: Service,
    supply: &S,
    until: Span,
) -> bool {
    let overloaded = |time: Span| {
        let demand = oracle::demand(tasks, time);
        let blockers = tasks
            .iter()
            .filter(|task| task.deadline() > time + task.jitter());
        let blocking = blockers.map(Task::longest_region).max().unwrap_or_default();
        !demand.is_zero() && demand + blocking.max(never_due) > supply.least_service(time)
    };
    (0..=until.as_nanos()).map(span).any(overloaded)
}

fn is_met<S: SupplyBound>(tasks: &[Task], never_due: Service, supply: &S) -> bool {
    edf::test_beside(tasks, never_due, supply)
        .expect("small numbers")
        .is_schedulable()
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn beside_best_effort_it_is_as_if_every_tick_were_tried(
        tasks in tasks(8), supply in supply(), never_due in 0..9_u64,
    ) {
        prop_assume!(!exceeds_rate(&tasks, supply));
        prop_assume!(tasks.iter().all(|task| task.jitter() < task.deadline()));
        let never_due = service(never_due);
        // Somebody who is never due lengthens no hyperperiod.
        let until = far_enough(&tasks, supply) + span(16);
        let verdict = edf::test_beside(&tasks, never_due, &supply).expect("small numbers");
        let expected = !is_overloaded(&tasks, never_due, &supply, until);
        prop_assert_eq!(verdict.is_schedulable(), expected, "{:?}", verdict);
        prop_assert!(!matches!(verdict, Verdict::Unknown(_)), "{:?}", verdict);
    }

    #[test]
    fn the_least_deadline_is_met_and_one_tick_less_is_not(
        all in tasks(40), supply in supply(), never_due in 0..30_u64,
    ) {
        let never_due = service(never_due);
        let (newcomer, others) = all.split_last().expect("one at least");
        let others_met = is_met(others, never_due, &supply);
        let with = |deadline: u64| {
            let task = newcomer.with_deadline(span(deadline)).expect("not zero");
            let all: Vec<Task> = others.iter().copied().chain([task]).collect();
            is_met(&all, never_due, &supply)
        };
        match edf::least_deadline(others, newcomer, never_due, &supply).expect("small numbers") {
            Search::Found(least) => {
                let least = least.as_nanos();
                prop_assert!(with(least) && (least == 1 || !with(least - 1)), "{}", least);
            }
            Search::None => prop_assert!(!others_met || !with(1 << 40)),
            Search::Unknown(doubt) => prop_assert!(false, "{:?}", doubt),
        }
    }
}

#[test]
fn a_region_that_somebody_cannot_wait_for_is_refused_whatever_its_deadline() {
    let hurried = plain(10, 100).with_deadline(span(30)).expect("a deadline");
    let long = |longest| {
        let cut = Preemption::Floating {
            longest: service(longest),
        };
        let task = plain(40, 200).with_preemption(cut).expect("fits");
        edf::least_deadline(&[hurried], &task, service(15), &Dedicated).expect("small numbers")
    };
    assert_eq!(long(20), Search::Found(span(65)));
    assert_eq!(long(21), Search::None);
}

#[test]
fn nobody_who_is_due_is_in_the_way_of_nobody() {
    let only = plain(10, 100);
    for never_due in [0, 7, 90] {
        let least = edf::least_deadline(&[], &only, service(never_due), &Dedicated);
        assert_eq!(least, Ok(Search::Found(span(10 + never_due))));
        // At a load of one there is no time to make up for it.
        let full = plain(100, 100);
        let least = edf::least_deadline(&[], &full, service(never_due), &Dedicated);
        assert_eq!(least, Ok(Search::Found(span(100 + never_due))));
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    let task = plain(1 << 62, 1 << 63);
    assert!(edf::test_beside(&[task], Service::MAX, &Dedicated).is_err());
    assert!(edf::least_deadline(&[], &task, Service::MAX, &Dedicated).is_err());
}
