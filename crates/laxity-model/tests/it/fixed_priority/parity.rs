//! Another implementation of the same models.

use super::*;
use response_time_analysis::{arrival, demand, fixed_point, fixed_priority as rival, time, wcet};

type Requests = demand::RBF<arrival::Sporadic, wcet::Scalar>;

fn requests(task: &Task) -> Requests {
    let period = time::Duration::from(task.period().as_nanos());
    // From their releases on, a burst's jobs and late ones are the same.
    let late = task.jitter() + task.period() * (task.burst().get() - 1);
    let arrivals = arrival::Sporadic::new(period, late.as_nanos().into());
    demand::RBF::new(arrivals, wcet::Scalar::new(task.cost().as_nanos().into()))
}

/// What the other implementation says of one task, by the model for its own regions.
fn theirs(tasks: &[Task], index: usize, limit: time::Duration) -> fixed_point::SearchResult {
    let all: Vec<Requests> = tasks.iter().map(requests).collect();
    let (own, more_urgent) = (&all[index], &all[..index]);
    let blocking_bound = time::Service::from(blocking(tasks, index).as_nanos());
    let (wcet, arrivals) = (own.wcet, &own.arrival_bound);
    match tasks[index].preemption() {
        Preemption::Anywhere if blocking_bound.is_none() => {
            rival::fully_preemptive::dedicated_uniproc_rta(own, more_urgent, limit)
        }
        Preemption::Anywhere | Preemption::Floating { .. } => {
            let task = rival::floating_nonpreemptive::TaskUnderAnalysis {
                rbf: own,
                blocking_bound,
            };
            rival::floating_nonpreemptive::dedicated_uniproc_rta(&task, more_urgent, limit)
        }
        Preemption::Fixed { last, .. } => {
            let task = rival::limited_preemptive::TaskUnderAnalysis {
                wcet,
                arrivals,
                last_np_segment: last.as_nanos().into(),
                blocking_bound,
            };
            rival::limited_preemptive::dedicated_uniproc_rta(&task, more_urgent, limit)
        }
        Preemption::Never => {
            let task = rival::fully_nonpreemptive::TaskUnderAnalysis {
                wcet,
                arrivals,
                blocking_bound,
            };
            rival::fully_nonpreemptive::dedicated_uniproc_rta(&task, more_urgent, limit)
        }
    }
}

/// How far the other looks. Where the load is less than one, to any busy window's end: next to one, these can be long. Otherwise not so
/// far, but farther than what it checks by brute force.
fn limit(tasks: &[Task]) -> u64 {
    if load(tasks, Fraction::ONE).is_lt() {
        1_000_000_000
    } else {
        100_001
    }
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn small_sets_of_every_kind_agree_to_the_tick(tasks in any_tasks(5)) {
        let responses = fp::response_times(&tasks, &Dedicated).expect("small");
        for (i, response) in responses.iter().enumerate() {
            let ours = response.bound().map(|bound| bound.from_release.as_nanos());
            let theirs = theirs(&tasks, i, limit(&tasks[..=i]).into()).ok().map(u64::from);
            // A load of exactly one with an endless busy window has a bound all the same.
            if load(&tasks[..=i], Fraction::ONE).is_ne() || theirs.is_some() {
                prop_assert_eq!(ours, theirs);
            }
        }
    }

    #[test]
    fn first_in_first_out_agrees_to_the_tick(tasks in any_tasks(5)) {
        prop_assume!(load(&tasks, Fraction::ONE).is_ne());
        let all: Vec<Requests> = tasks.iter().map(requests).collect();
        let all = demand::Slice::of(&all);
        let theirs = response_time_analysis::fifo::dedicated_uniproc_rta(&all, limit(&tasks).into());
        let ours = fp::fifo(&tasks, &Dedicated).expect("small").bound();
        prop_assert_eq!(ours.map(|bound| bound.from_release.as_nanos()), theirs.ok().map(u64::from));
    }
}

/// 20 tasks, periods from 10 to 1000 ms in microseconds evenly over their logarithm, utilizations by UUniFast, rate monotonic.
fn twenty(
    utilization: f64,
    random: &mut Pcg64,
    preemption: fn(Service) -> Preemption,
) -> Vec<Task> {
    let mut left = utilization;
    let mut tasks: Vec<Task> = (0..20)
        .rev()
        .map(|rest| {
            let next = match rest {
                0 => 0.0,
                _ => left * random.random::<f64>().powf(1.0 / f64::from(rest)),
            };
            let period = 10_000.0 * 100_f64.powf(random.random());
            let cost = ((left - next) * period).round().max(1.0);
            left = next;
            let (cost, period) = (service(cost as u64), ticks(period.round() as u64));
            let task = Task::new(cost, period).expect("a task");
            task.with_preemption(preemption(cost)).expect("fits")
        })
        .collect();
    tasks.sort_by_key(Task::period);
    tasks
}

fn quarter(cost: Service) -> Service {
    service((cost.as_nanos() / 4).max(1))
}

#[test]
fn sets_of_twenty_agree_to_the_tick() {
    let kinds: [fn(Service) -> Preemption; 4] = [
        |_| Preemption::Anywhere,
        |cost| Preemption::Floating {
            longest: quarter(cost),
        },
        |cost| {
            let longest = quarter(cost);
            Preemption::Fixed {
                longest,
                last: longest,
            }
        },
        |_| Preemption::Never,
    ];
    let mut random = Pcg64::seed_from_u64(20);
    let sets = cases(10).cases;
    let mut compared = 0;
    for _ in 0..sets {
        for (utilization, kind) in [0.8, 0.9]
            .into_iter()
            .flat_map(|u| kinds.map(|kind| (u, kind)))
        {
            let tasks = twenty(utilization, &mut random, kind);
            let responses = fp::response_times(&tasks, &Dedicated).expect("fits");
            for (i, response) in responses.iter().enumerate() {
                let ours = response.bound().map(|bound| bound.from_release.as_nanos());
                let theirs = theirs(&tasks, i, 1_000_000_000.into());
                assert_eq!(ours, theirs.ok().map(u64::from), "task {i} of {tasks:?}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, sets * 2 * 4 * 20);
}
