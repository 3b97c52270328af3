//! Equal priorities, first in, first out: against the definition, and against every course of small sets.

use super::*;

/// The longest from a release to completion, each instant of the busy window tried: `own` as it is counted among its equals. `None` if the window
/// does not close within the horizon.
fn longest(
    own: &Task,
    (equals, above): (&[Task], &[Task]),
    blocking: Service,
    supply: &impl SupplyBound,
) -> Option<Span> {
    let ticks = || (1..=HORIZON.as_nanos()).map(Span::from_nanos);
    let mut level = equals.to_vec();
    level.push(*own);
    let asked = |window: Span| blocking + oracle::requested(&level, window);
    let served =
        |t: Span, demand: Service| supply.least_service(t) >= demand + oracle::requested(above, t);
    let length = ticks().find(|t| served(*t, asked(*t)))?;
    let one = Span::from_nanos(1);
    let releases = ticks()
        .map(|t| t - one)
        .take_while(|release| *release < length);
    let responses = releases.map(|release| {
        let before_tail = asked(release + one) - own.tail();
        let begins = ticks().find(|t| served(*t, before_tail))?;
        let begun = supply.least_service(begins);
        let complete = ticks().find(|t| supply.least_service(*t) >= begun + own.tail())?;
        Some(complete.saturating_sub(release))
    });
    responses.collect::<Option<Vec<_>>>()?.into_iter().max()
}

/// The longest response of the last of these, preempted anywhere on a processor of its own, in all phasings of strictly periodic tasks; who is released first goes
/// first among equals, and it is the last of those that are released at once. By each task its level, the least of which is the most urgent.
fn seen(tasks: &[(Task, u8)]) -> u64 {
    let periods: Vec<u64> = tasks
        .iter()
        .map(|(task, _)| task.period().as_nanos())
        .collect();
    let common = |a: u64, b: u64| (a..).step_by(a as usize).find(|m| m % b == 0).expect("one");
    let length = 2 * periods.iter().copied().reduce(common).expect("one") + 10;
    let phasings: u64 = periods.iter().product();
    let course = |phasing: u64| {
        let mut rest = phasing;
        let offsets = periods.iter().map(|period| {
            let offset = rest % period;
            rest /= period;
            offset
        });
        run(tasks, &offsets.collect::<Vec<_>>(), length)
    };
    (0..phasings).map(course).max().unwrap_or(0)
}

/// The longest response of the last task in one course.
fn run(tasks: &[(Task, u8)], offsets: &[u64], length: u64) -> u64 {
    // Level, release, task, and what is left.
    let mut ready: Vec<(u8, u64, usize, u64)> = Vec::new();
    let mut longest = 0;
    for now in 0..length {
        for (place, (task, level)) in tasks.iter().enumerate() {
            if now >= offsets[place]
                && (now - offsets[place]).is_multiple_of(task.period().as_nanos())
            {
                ready.push((*level, now, place, task.cost().as_nanos()));
            }
        }
        let Some(first) =
            (0..ready.len()).min_by_key(|at| (ready[*at].0, ready[*at].1, ready[*at].2))
        else {
            continue;
        };
        ready[first].3 -= 1;
        if ready[first].3 == 0 {
            let (_, release, place, _) = ready.swap_remove(first);
            if place + 1 == tasks.len() {
                longest = longest.max(now + 1 - release);
            }
        }
    }
    longest
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn the_response_among_equals_is_that_of_the_definition(
        tasks in any_tasks(5),
        split in 0_usize..4,
        blocking in 0_u64..6,
        supply in any_supply(),
    ) {
        let supply = &*supply;
        let blocking = service(blocking);
        prop_assume!(!may_be_endless(&tasks, supply));
        let (own, others) = tasks.split_last().expect("one at least");
        let (above, equals) = others.split_at(split.min(others.len()));
        let found = fp::response_time_among_equals(own, equals, above, blocking, &supply);
        let response = found.expect("small");
        if load(&tasks, supply.rate()).is_gt() {
            prop_assert_eq!(response, Response::Unbounded);
            return Ok(());
        }
        let of = |own: &Task| longest(own, (equals, above), blocking, &supply);
        let late = of(&own.with_jitter(Span::ZERO));
        if let Some((late, in_time)) = late.zip(of(own)) {
            let bound = response.bound().expect("it closes");
            prop_assert_eq!(bound.from_release, in_time);
            prop_assert_eq!(bound.from_arrival, late + own.jitter());
        }
        let before = fp::response_time_among(own, others, blocking, &supply).expect("small");
        if let Some((found, before)) = response.bound().zip(before.bound()) {
            prop_assert!(found.from_arrival <= before.from_arrival);
            let is_alone = equals.is_empty();
            prop_assert!(!is_alone || found == before, "{found:?} {before:?}");
        }
    }

    /// No course takes longer, and one takes as long.
    #[test]
    fn the_response_among_equals_is_seen(
        numbers in prop::collection::vec((1_u64..4, 2_u64..7, 0_u8..2), 1..=3),
    ) {
        let tasks = numbers.iter().map(|(cost, period, level)| {
            let task = Task::new(service((*cost).min(*period)), ticks(*period));
            (task.expect("a task"), *level)
        });
        let tasks: Vec<(Task, u8)> = tasks.collect();
        let (own, level) = *tasks.last().expect("one");
        let others = &tasks[..tasks.len() - 1];
        let at = |wanted: Ordering| -> Vec<Task> {
            let there = others.iter().filter(|(_, other)| other.cmp(&level) == wanted);
            there.map(|(task, _)| *task).collect()
        };
        let (above, equals) = (at(Ordering::Less), at(Ordering::Equal));
        let all: Vec<Task> = above.iter().chain(&equals).chain([&own]).copied().collect();
        prop_assume!(load(&all, Fraction::ONE).is_le());
        let found = fp::response_time_among_equals(&own, &equals, &above, Service::ZERO, &Dedicated);
        let bound = found.expect("small").bound().expect("no more than there is");
        prop_assert_eq!(bound.from_arrival, ticks(seen(&tasks)));
    }
}
