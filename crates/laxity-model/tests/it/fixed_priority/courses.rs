//! Schedules run tick by tick.

use super::*;
use oracle::Job;

/// Time −1 of the worst course is here.
const BEFORE: u64 = 1;

/// The jobs of the worst course for a task, one tick later, and which of them are its own. The blocking region is a task of its own, the
/// last of the set.
fn worst_course(tasks: &[Task], index: usize, end: Span) -> (Vec<Task>, Vec<Job>, Vec<usize>) {
    let mut set = tasks[..=index].to_vec();
    // Nobody knows where a floating region is: at worst, nowhere near the end.
    if let Preemption::Floating { .. } = set[index].preemption() {
        set[index] = set[index]
            .with_preemption(Preemption::Anywhere)
            .expect("fits");
    }
    let mut jobs = Vec::new();
    for (i, task) in set.iter().enumerate() {
        for k in 0.. {
            let release = oracle::arrival(task, k).saturating_sub(task.jitter()) + ticks(BEFORE);
            if release >= end {
                break;
            }
            jobs.push(Job {
                task: i,
                release,
                cost: task.cost(),
            });
        }
    }
    let own = (0..jobs.len())
        .filter(|job| jobs[*job].task == index)
        .collect();
    let region = blocking(tasks, index);
    if !region.is_zero() {
        let region = region + service(1);
        let blocker =
            Task::new(region, ticks(1)).and_then(|t| t.with_preemption(Preemption::Never));
        set.push(blocker.expect("a task"));
        jobs.push(Job {
            task: index + 1,
            release: Span::ZERO,
            cost: region,
        });
    }
    (set, jobs, own)
}

proptest! {
    #![proptest_config(cases(300))]

    /// Run as it is worst, on a supply that gives what it must and no more, some job takes exactly as long as the bound, and none
    /// takes longer: so the analysis is exact.
    #[test]
    fn the_worst_course_takes_as_long_as_the_bound(tasks in any_tasks(4), supply in any_supply()) {
        let supply = &*supply;
        prop_assume!(!may_be_endless(&tasks, supply));
        let end = ticks(400);
        // One tick is given before the worst course, to the job that blocks.
        let supplied = |now: Span| match now.as_nanos().checked_sub(BEFORE) {
            None => true,
            Some(t) => supply.least_service(ticks(t + 1)) > supply.least_service(ticks(t)),
        };
        for index in 0..tasks.len() {
            let response = fp::response_time(&tasks, index, &supply).expect("small");
            let Some(bound) = response.bound() else { continue };
            let (set, jobs, own) = worst_course(&tasks, index, end);
            let complete = oracle::run(&set, &jobs, supplied, end);
            // Else the longest response may come after the end.
            let closes = (1..=200).map(ticks).any(|t| {
                let asked = blocking(&tasks, index) + oracle::requested(&tasks[..=index], t);
                supply.least_service(t) >= asked
            });
            let mut longest = (Span::ZERO, Span::ZERO);
            for (k, job) in own.into_iter().enumerate() {
                let Some(complete) = complete[job] else { break };
                let complete = complete - ticks(BEFORE);
                let arrived = oracle::arrival(&tasks[index], k as u64);
                longest.0 = longest.0.max(complete + tasks[index].jitter() - arrived);
                longest.1 = longest.1.max(complete - (jobs[job].release - ticks(BEFORE)));
            }
            prop_assert!(longest.0 <= bound.from_arrival && longest.1 <= bound.from_release);
            if closes {
                prop_assert_eq!(longest, (bound.from_arrival, bound.from_release));
            }
        }
    }

    /// Whatever the phases, the jitter, the real costs and the regions' places; on a supply that lies anywhere in each period.
    #[test]
    fn no_course_takes_longer_than_the_bound(
        tasks in any_tasks(4),
        seed in any::<u64>(),
        (a, b) in (1_u64..10, 1_u64..10),
    ) {
        let end = 300_u64;
        let (budget, period) = (a.min(b), a.max(b));
        let reservation = Reservation::new(service(budget), ticks(period)).expect("one");
        let resource = ExplicitDeadline::periodic(reservation);
        let mut random = Pcg64::seed_from_u64(seed);
        let mut roll = |sides: u64| random.random_range(0..sides);
        let mut given = Vec::new();
        while given.len() < usize::try_from(end).expect("small") {
            // As early or as late as it may be, or in pieces.
            let way = roll(3);
            let (mut left, from) = (budget, given.len());
            for i in 0..period {
                let rest = period - i;
                let here = rest == left || (left > 0 && (way == 0 || (way == 2 && roll(rest) < left)));
                left -= u64::from(here);
                given.push(here);
            }
            assert_eq!(given[from..].iter().filter(|given| **given).count() as u64, budget);
        }
        let dedicated = roll(2) == 0;
        let mut jobs = Vec::new();
        for (i, task) in tasks.iter().enumerate() {
            let mut arrival = roll(task.period().as_nanos());
            let mut released = 0;
            let period = task.period().as_nanos();
            let burst = (task.burst().get() - 1) * period;
            let mut without_burst = 0;
            while arrival < end {
                released = (arrival + roll(task.jitter().as_nanos() + 1)).max(released);
                jobs.push((arrival, Job {
                    task: i,
                    release: ticks(released),
                    cost: service(task.cost().as_nanos() - roll(3).min(task.cost().as_nanos() - 1)),
                }));
                without_burst = arrival.max(without_burst) + period;
                arrival = arrival.max(without_burst.saturating_sub(burst)) + roll(4).saturating_sub(2);
            }
        }
        let only: Vec<Job> = jobs.iter().map(|(_, job)| *job).collect();
        let supplied = |now: Span| dedicated || given[usize::try_from(now.as_nanos()).expect("small")];
        let complete = oracle::run(&tasks, &only, supplied, ticks(end));
        let responses = if dedicated {
            fp::response_times(&tasks, &Dedicated)
        } else {
            fp::response_times(&tasks, &resource)
        };
        let responses = responses.expect("small");
        for ((arrival, job), complete) in jobs.iter().zip(&complete) {
            let Some(bound) = responses[job.task].bound() else { continue };
            let complete = complete.map_or(end, Span::as_nanos);
            prop_assert!(complete.saturating_sub(*arrival) <= bound.from_arrival.as_nanos());
            let from_release = complete.saturating_sub(job.release.as_nanos());
            prop_assert!(from_release <= bound.from_release.as_nanos());
        }
    }

    /// The witness, run in the worst course, is not complete when it is due, and no earlier job of that task is late.
    #[test]
    fn the_witness_is_late(tasks in any_tasks(4), supply in any_supply()) {
        let supply = &*supply;
        prop_assume!(!may_be_endless(&tasks, supply));
        let Ok(Verdict::NotSchedulable(witness)) = fp::test(&tasks, &supply) else {
            return Ok(());
        };
        let task = tasks[witness.task];
        let end = witness.due.max(witness.release) + ticks(40);
        let (set, jobs, own) = worst_course(&tasks, witness.task, end);
        let supplied = |now: Span| match now.as_nanos().checked_sub(BEFORE) {
            None => true,
            Some(t) => supply.least_service(ticks(t + 1)) > supply.least_service(ticks(t)),
        };
        let complete = oracle::run(&set, &jobs, supplied, end);
        let late = own.iter().enumerate().find(|(k, job)| {
            let due = oracle::arrival(&task, *k as u64) + task.deadline();
            complete[**job].is_none_or(|at| at - ticks(BEFORE) + task.jitter() > due)
        });
        let (k, job) = late.expect("one is late");
        prop_assert_eq!(jobs[*job].release - ticks(BEFORE), witness.release);
        let due = oracle::arrival(&task, k as u64) + task.deadline();
        let due = due.saturating_sub(task.jitter());
        prop_assert_eq!(due, witness.due);
    }
}
