//! Fixed priorities, by deadline, beside the crate.

use laxity_model::Service as Region;
use laxity_model::analysis::supply::Dedicated;
use laxity_model::analysis::{Task, fixed_priority};
use response_time_analysis::fixed_priority::{floating_nonpreemptive, fully_preemptive};
use response_time_analysis::time::{Duration, Service};

use crate::support::rival::{LIMIT, Rival, bound};
use crate::support::sets::{Deadlines, r20, sets_of, with_quarters};
use crate::yardstick::Plain;
use crate::{SETS, row, sum};

fn ours(tasks: &[Task]) -> u64 {
    sum(&fixed_priority::response_times(tasks, &Dedicated).expect("small numbers"))
}

fn preemptive(rival: &Rival) -> u64 {
    let bound = |index: usize| {
        let (more_urgent, own) = (&rival.demands[..index], &rival.demands[index]);
        let limit = Duration::from(LIMIT);
        bound(fully_preemptive::dedicated_uniproc_rta(
            own,
            more_urgent,
            limit,
        ))
    };
    (0..rival.demands.len()).map(bound).sum()
}

fn floating((rival, blocking): &(Rival, Vec<Service>)) -> u64 {
    let bound = |index: usize| {
        let own = floating_nonpreemptive::TaskUnderAnalysis {
            rbf: &rival.demands[index],
            blocking_bound: blocking[index],
        };
        let limit = Duration::from(LIMIT);
        bound(floating_nonpreemptive::dedicated_uniproc_rta(
            &own,
            &rival.demands[..index],
            limit,
        ))
    };
    (0..rival.demands.len()).map(bound).sum()
}

/// What each task waits for at most.
fn blocking(tasks: &[Task]) -> Vec<Service> {
    let by = |others: &[Task]| {
        others
            .iter()
            .map(Task::blocking)
            .max()
            .unwrap_or(Region::ZERO)
    };
    let of = |index: usize| Service::from(by(&tasks[index + 1..]).as_nanos());
    (0..tasks.len()).map(of).collect()
}

/// The rows for response times: a thousand sets.
pub(crate) fn response_times(load: f64) {
    let sets = r20(SETS * 10, load, Deadlines::Implicit, 1);
    let rivals: Vec<_> = sets.iter().map(|set| Rival::new(set)).collect();
    row(
        &format!("FP response times, U = {load} / crate"),
        (&sets, |set: &Vec<Task>| ours(set)),
        (&rivals, preemptive),
    );
    let quarters: Vec<_> = sets.iter().map(|set| with_quarters(set)).collect();
    let prepared = quarters.iter().map(|set| (Rival::new(set), blocking(set)));
    let rivals: Vec<_> = prepared.collect();
    row(
        &format!("FP response times, regions C/4, U = {load} / crate"),
        (&quarters, |set: &Vec<Task>| ours(set)),
        (&rivals, floating),
    );
}

/// The rows beside the textbook loop: a thousand sets of few, some and many tasks.
pub(crate) fn beside_the_textbook(load: f64) {
    for tasks in [7, 20, 60] {
        let sets = sets_of(tasks, SETS * 10, load, Deadlines::Implicit, 1);
        let plain: Vec<_> = sets.iter().map(|set| Plain::new(set)).collect();
        row(
            &format!("FP response times, {tasks} tasks, U = {load} / textbook"),
            (&sets, |set: &Vec<Task>| ours(set)),
            (&plain, Plain::response_times),
        );
        let quarters = sets_of(tasks, SETS * 10, load, Deadlines::Constrained, 9);
        let quarters: Vec<_> = quarters.iter().map(|set| with_quarters(set)).collect();
        let plain: Vec<_> = quarters.iter().map(|set| Plain::new(set)).collect();
        row(
            &format!("FP test, {tasks} tasks, regions C/4, constrained, U = {load} / textbook"),
            (&quarters, |set: &Vec<Task>| {
                let verdict = fixed_priority::test(set, &Dedicated);
                u64::from(verdict.expect("small numbers").is_schedulable())
            }),
            (&plain, |set| u64::from(set.meets_deadlines())),
        );
    }
}
