//! One queue of deadlines for all processors: simulated tick by tick.

use super::*;

/// The processors' order of deadlines, tick by tick: the most that any job of each task is late, over a horizon. Jobs come at least a
/// period apart, up to `gap` later; need C, or less if `varied`. Ties go by a rule drawn from the seed.
fn simulate(set: &[Task], count: usize, gap: u64, varied: bool, rng: &mut Pcg64Mcg) -> Vec<u64> {
    const HORIZON: u64 = 240;
    struct Job {
        due: u64,
        left: u64,
    }
    let n = set.len();
    let mut queues: Vec<std::collections::VecDeque<Job>> = (0..n).map(|_| [].into()).collect();
    let mut next: Vec<u64> = (0..n).map(|_| rng.random_range(0..=gap)).collect();
    let mut late = vec![0; n];
    let rule = rng.random_range(0..3_u8);
    for now in 0.. {
        for (i, task) in set.iter().enumerate() {
            let (cost, period) = (task.cost().as_nanos(), task.period().as_nanos());
            if next[i] == now && now < HORIZON {
                let left = if varied && rng.random_bool(0.3) {
                    rng.random_range(1..=cost)
                } else {
                    cost
                };
                queues[i].push_back(Job {
                    due: now + task.deadline().as_nanos(),
                    left,
                });
                next[i] = now
                    + period
                    + if rng.random_bool(0.5) {
                        rng.random_range(0..=gap)
                    } else {
                        0
                    };
            }
        }
        if now >= HORIZON && queues.iter().all(std::collections::VecDeque::is_empty) {
            return late;
        }
        // Of each task only its first job.
        let ready = (0..n).filter_map(|i| queues[i].front().map(|job| (job.due, i)));
        let mut ready: Vec<(u64, u64, usize)> = ready
            .map(|(due, i)| {
                let tie = match rule {
                    0 => i as u64,
                    1 => (n - i) as u64,
                    _ => rng.random(),
                };
                (due, tie, i)
            })
            .collect();
        ready.sort_unstable();
        for (due, _, i) in ready.into_iter().take(count) {
            let job = queues[i].front_mut().expect("ready");
            job.left -= 1;
            if job.left == 0 {
                queues[i].pop_front();
                late[i] = late[i].max((now + 1).saturating_sub(due));
            }
        }
    }
    unreachable!("time goes on")
}

/// A small set of n tasks with ΣU from just under m down to a part of that.
fn full_set(rng: &mut Pcg64Mcg, count: u64, n: usize) -> Vec<Task> {
    // The least common multiple of all periods.
    const COMMON: u64 = 27_720;
    let mut numbers: Vec<(u64, u64)> = (0..n)
        .map(|_| {
            let period = rng.random_range(2..=12_u64);
            (rng.random_range(1..=period), period)
        })
        .collect();
    let percent = if rng.random_bool(0.7) {
        100
    } else {
        rng.random_range(60..=100)
    };
    let used = |numbers: &[(u64, u64)]| numbers.iter().map(|(c, t)| c * COMMON / t).sum::<u64>();
    while used(&numbers) * 100 > count * COMMON * percent {
        let i = rng.random_range(0..n);
        numbers[i].0 = (numbers[i].0 - 1).max(1);
        if numbers.iter().all(|(cost, _)| *cost == 1) {
            numbers[i].1 = 12;
        }
    }
    numbers
        .into_iter()
        .map(|(cost, period)| task(cost, period))
        .collect()
}

/// No job is later than the bound, whatever comes when; none at all where the density test says so.
#[test]
fn tardiness_is_bounded() {
    let mut rng = Pcg64Mcg::seed_from_u64(3);
    let (mut sets, mut tardy, mut closest) = (0, 0, 0);
    for _ in 0..config().cases {
        let count = rng.random_range(1..=4_u16);
        let n = usize::from(count) + rng.random_range(1..=4_usize);
        let set = full_set(&mut rng, count.into(), n);
        let bounds = match tardiness(&set, processors(count)).expect("small numbers") {
            Tardiness::Bounded(bounds) => bounds,
            other => panic!("{set:?} on {count}: {other:?}"),
        };
        let hard = global_edf(&set, processors(count)).expect("small numbers");
        let none = bounds.iter().all(|bound| bound.is_zero());
        assert_eq!(hard.is_schedulable(), none);
        sets += 1;
        for (gap, varied) in [(0, false), (6, false), (6, true)] {
            let late = simulate(&set, count.into(), gap, varied, &mut rng);
            tardy += u32::from(late.iter().any(|late| *late > 0));
            for (late, bound) in late.iter().zip(&bounds) {
                assert!(
                    *late <= bound.as_nanos(),
                    "{set:?} on {count}: {late} > {bound}"
                );
                closest = closest.max(100 * late / bound.as_nanos().max(1));
            }
        }
    }
    // The bound is put to the test: some sets are late, some of them by a good part of it.
    println!("{sets} sets, {tardy} runs late, at most {closest} % of the bound");
    assert!(
        tardy > sets / 20 && closest >= 30,
        "{tardy} of {sets}, {closest} %"
    );
}

/// With deadlines before periods too: what the density test accepts is never late.
#[test]
fn the_density_test_is_sound() {
    let mut rng = Pcg64Mcg::seed_from_u64(4);
    let mut accepted = 0;
    for _ in 0..config().cases {
        let count = rng.random_range(1..=4_u16);
        let n = usize::from(count) + rng.random_range(0..=3_usize);
        let full = full_set(&mut rng, count.into(), n);
        let shorter = full.iter().map(|task| {
            let (least, most) = (task.cost().as_nanos(), task.period().as_nanos());
            let deadline = Span::from_nanos(rng.random_range(least..=most));
            task.with_deadline(deadline).expect("not zero")
        });
        let set: Vec<Task> = shorter.collect();
        if global_edf(&set, processors(count))
            .expect("small numbers")
            .is_schedulable()
        {
            accepted += 1;
            for gap in [0, 6] {
                let late = simulate(&set, count.into(), gap, false, &mut rng);
                assert!(
                    late.iter().all(|late| *late == 0),
                    "{set:?} on {count}: {late:?}"
                );
            }
        }
    }
    assert!(accepted > config().cases / 50, "{accepted}");
}

/// The formula with doubles; and never more than the kernel's documentation says, ((M − 1)·C_max − C_min)/(M − (M − 2)·U_max) + C_max.
#[test]
fn the_bound_is_as_written_and_no_more_than_the_kernels_own() {
    let mut rng = Pcg64Mcg::seed_from_u64(5);
    let descending = |a: &f64, b: &f64| b.total_cmp(a);
    for _ in 0..config().cases {
        let count = rng.random_range(2..=6_u16);
        let set = full_set(&mut rng, count.into(), usize::from(count) + 3);
        let Ok(Tardiness::Bounded(bounds)) = tardiness(&set, processors(count)) else {
            panic!("{set:?}");
        };
        let m = f64::from(count);
        let cost = |task: &Task| task.cost().as_nanos() as f64;
        let mut costs: Vec<f64> = set.iter().map(cost).collect();
        costs.sort_by(descending);
        let share = |task: &Task| cost(task) / task.period().as_nanos() as f64;
        let mut shares: Vec<f64> = set.iter().map(share).collect();
        shares.sort_by(descending);
        let (most, least) = (costs[0], costs[costs.len() - 1]);

        let lambda = (shares.iter().sum::<f64>() - 1e-9).ceil() as usize - 1;
        let work = costs[..lambda].iter().sum::<f64>() - least;
        let rest = m - shares[..lambda.saturating_sub(1)].iter().sum::<f64>();
        let ours = (work.max(0.0) / rest - 1e-9).ceil();
        let theirs = ((m - 1.0) * most - least) / (m - (m - 2.0) * shares[0]) + most;
        let hard = bounds.iter().all(|bound| bound.is_zero());
        for (task, bound) in set.iter().zip(bounds) {
            let bound = bound.as_nanos() as f64;
            assert!(
                hard || bound == ours + cost(task),
                "{set:?} on {count}: {bound}"
            );
            assert!(
                bound <= (theirs - 1e-9).ceil(),
                "{set:?} on {count}: {bound}"
            );
        }
    }
}

#[test]
fn what_global_edf_is_not_analysed_for() {
    let two = processors(2);
    let out = Ok(Verdict::Unknown(Doubt::OutOfScope));
    let never = task(2, 9).with_preemption(Preemption::Never).expect("fits");
    let jitter = task(2, 9).with_jitter(Span::from_nanos(1));
    let later = task(2, 9)
        .with_deadline(Span::from_nanos(10))
        .expect("a deadline");
    for odd in [never, jitter, later] {
        assert_eq!(global_edf(&[odd, task(1, 9)], two), out);
        assert_eq!(
            tardiness(&[odd, task(1, 9)], two),
            Ok(Tardiness::Unknown(Doubt::OutOfScope))
        );
    }
    let sooner = task(2, 9)
        .with_deadline(Span::from_nanos(8))
        .expect("a deadline");
    assert_eq!(global_edf(&[sooner; 3], two), Ok(Verdict::Schedulable));
    assert_eq!(
        tardiness(&[sooner; 3], two),
        Ok(Tardiness::Unknown(Doubt::OutOfScope))
    );
    // Too much for all processors, or for one.
    assert_eq!(tardiness(&[task(7, 10); 3], two), Ok(Tardiness::Unbounded));
    assert_eq!(tardiness(&[task(11, 10)], two), Ok(Tardiness::Unbounded));
    assert_eq!(
        global_edf(&[task(11, 10)], two),
        Ok(Verdict::Unknown(Doubt::Sufficient))
    );
    assert_eq!(tardiness(&[], two), Ok(Tardiness::Bounded(vec![])));
    assert_eq!(
        tardiness(&[task(9, 9), task(9, 9)], two),
        Ok(Tardiness::Bounded(vec![Span::ZERO; 2]))
    );
}
