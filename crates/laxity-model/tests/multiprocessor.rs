//! Sets on several processors: heuristics against bin packing in whole numbers and against every possible distribution, guarantees and
//! bounds against simulated schedules, the kernel's arithmetic against its own formula.
//!
//! `LAXITY_CASES` is the number of random sets for each property (2,000 if it is not set).

mod random;

use core::num::NonZeroU16;

use laxity_model::analysis::multiprocessor::{
    Bandwidth, DeadlineRequest, Fit, KernelLimits, KernelRefusal, Nearest, Order, Partitioning,
    Tardiness, edf_guarantee, global_edf, kernel_admits, partition, rate_monotonic_guarantee,
    tardiness,
};
use laxity_model::analysis::utilization::{earliest_deadline_first, liu_layland};
use laxity_model::analysis::{Doubt, Fraction, Overflow, Preemption, Task, Verdict};
use laxity_model::{Service, Span};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use random::task;

const FITS: [Fit; 3] = [Fit::First, Fit::Best, Fit::Worst];
const ORDERS: [Order; 2] = [Order::Given, Order::Decreasing];

fn config() -> ProptestConfig {
    random::config(2_000)
}

fn processors(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).expect("some")
}

fn tasks(costs: &[u64], period: u64) -> Vec<Task> {
    costs.iter().map(|cost| task(*cost, period)).collect()
}

/// The heuristics on whole numbers: sizes into bins of this capacity. The bins, or the index of the first that fits in none.
fn pack(
    sizes: &[u64],
    capacity: u64,
    bins: u16,
    fit: Fit,
    order: Order,
) -> Result<Vec<u16>, usize> {
    let mut indices: Vec<usize> = (0..sizes.len()).collect();
    if order == Order::Decreasing {
        indices.sort_by_key(|i| core::cmp::Reverse(sizes[*i]));
    }
    let mut full = vec![0; usize::from(bins)];
    let mut place = vec![0; sizes.len()];
    for i in indices {
        let open = (0..full.len()).filter(|bin| full[*bin] + sizes[i] <= capacity);
        let bin = match fit {
            Fit::First => open.min(),
            Fit::Best => open.min_by_key(|bin| capacity - full[*bin]),
            Fit::Worst => open.min_by_key(|bin| full[*bin]),
        };
        let bin = bin.ok_or(i)?;
        full[bin] += sizes[i];
        place[i] = bin as u16;
    }
    Ok(place)
}

/// Whether any distribution at all passes the test on every processor: m^n of them.
fn some_partition(
    set: &[Task],
    count: u16,
    test: fn(&[Task]) -> Result<Verdict, Overflow>,
) -> bool {
    let all = u64::from(count).pow(set.len() as u32);
    (0..all).any(|code| {
        let place = |i: usize| (code / u64::from(count).pow(i as u32)) % u64::from(count);
        (0..u64::from(count)).all(|processor| {
            let there = (0..set.len()).filter(|i| place(*i) == processor);
            let there: Vec<Task> = there.map(|i| set[i]).collect();
            test(&there).expect("small numbers").is_schedulable()
        })
    })
}

/// n whole numbers of about this sum, each from 1 to `most`.
fn composition(rng: &mut Pcg64Mcg, n: usize, sum: u64, most: u64) -> Vec<u64> {
    let weights: Vec<u64> = (0..n)
        .map(|_| rng.random_range(1..=100_u64).pow(2))
        .collect();
    let all: u64 = weights.iter().sum();
    let share = |weight: u64| u128::from(sum) * u128::from(weight) / u128::from(all);
    let parts = weights.into_iter().map(share);
    parts.map(|part| (part as u64).clamp(1, most)).collect()
}

proptest! {
    #![proptest_config(config())]

    /// All periods alike, ΣU ≤ 1 is bin packing.
    #[test]
    fn heuristics_are_the_bin_packing_they_are_named_for(
        costs in prop::collection::vec(1_u64..=60, 0..12),
        count in 1_u16..5,
    ) {
        let set = tasks(&costs, 60);
        for (fit, order) in FITS.into_iter().flat_map(|fit| ORDERS.map(|order| (fit, order))) {
            let found = partition(&set, processors(count), fit, order, earliest_deadline_first);
            match (pack(&costs, 60, count, fit, order), found.expect("fits")) {
                (Ok(expected), Partitioning::Fits(place)) => prop_assert_eq!(place, expected),
                (Err(expected), Partitioning::DoesNotFit(misfit)) => {
                    prop_assert_eq!(misfit.task, expected);
                    let load = |bin: u16| -> u64 {
                        let there = misfit.placed.iter().zip(&costs);
                        there.filter(|(place, _)| **place == Some(bin)).map(|(_, cost)| *cost).sum()
                    };
                    let emptiest = (0..count).min_by_key(|bin| load(*bin)).expect("some");
                    let free = 60 - load(emptiest);
                    let expected = (free > 0).then(|| Nearest {
                        processor: emptiest,
                        cost: Service::from_nanos(free),
                        missing: Service::from_nanos(costs[expected] - free),
                    });
                    prop_assert_eq!(misfit.nearest, expected);
                }
                (expected, found) => prop_assert!(false, "{:?} {:?}", expected, found),
            }
        }
    }

    /// Under a test that looks at more than sums: what is placed passes it, what is not does not, and the advice is right to the tick.
    #[test]
    fn partitions_pass_their_test(
        numbers in prop::collection::vec((2_u64..60, 1_u64..=70), 0..7),
        count in 1_u16..4,
    ) {
        let mut set: Vec<Task> = numbers.into_iter().map(|(period, percent)| {
            task((period * percent / 100).max(1), period)
        }).collect();
        set.sort_by_key(Task::period);
        let passes = |set: &[Task]| liu_layland(set).expect("small numbers").is_schedulable();
        for (fit, order) in FITS.into_iter().flat_map(|fit| ORDERS.map(|order| (fit, order))) {
            let there = |place: &[Option<u16>], processor, added: Option<(usize, Task)>| -> Vec<Task> {
                (0..set.len()).filter_map(|i| match added {
                    Some((index, task)) if index == i => Some(task),
                    _ => (place[i] == Some(processor)).then_some(set[i]),
                }).collect()
            };
            match partition(&set, processors(count), fit, order, liu_layland).expect("small numbers") {
                Partitioning::Fits(place) => {
                    let place: Vec<_> = place.into_iter().map(Some).collect();
                    prop_assert_eq!(place.len(), set.len());
                    for processor in 0..count {
                        prop_assert!(passes(&there(&place, processor, None)));
                    }
                    prop_assert!(some_partition(&set, count, liu_layland));
                }
                Partitioning::DoesNotFit(misfit) => {
                    let period = set[misfit.task].period().as_nanos();
                    let own = set[misfit.task].cost().as_nanos();
                    let fits = |processor, cost| passes(&there(
                        &misfit.placed, processor, Some((misfit.task, task(cost, period))),
                    ));
                    let best = (0..count).filter_map(|processor| {
                        (1..=own).rev().find(|cost| fits(processor, *cost))
                    }).max();
                    prop_assert!(best.is_none_or(|best| best < own));
                    prop_assert_eq!(misfit.nearest.map(|nearest| nearest.cost.as_nanos()), best);
                    if let Some(nearest) = misfit.nearest {
                        prop_assert!(fits(nearest.processor, nearest.cost.as_nanos()));
                        prop_assert_eq!(nearest.missing.as_nanos() + nearest.cost.as_nanos(), own);
                    }
                }
            }
        }
    }

    /// The kernel's sum, written as the kernel writes it.
    #[test]
    fn the_kernel_admits_by_its_own_arithmetic(
        numbers in prop::collection::vec((1_024_u64..3_000_000, 100_000_u64..5_000_000), 0..12),
        count in 1_u16..5,
        server in any::<bool>(),
        runtime_us in prop::option::of(0_u64..=1_000_000),
    ) {
        let requests: Vec<DeadlineRequest> = numbers.iter().map(|(runtime, period)| DeadlineRequest {
            runtime: Service::from_nanos((*runtime).min(*period)),
            deadline: Span::from_nanos(*period),
            period: Span::ZERO,
        }).collect();
        let limits = if server { KernelLimits::WITH_FAIR_SERVER } else { KernelLimits::WITHOUT_FAIR_SERVER };
        let limits = KernelLimits { rt_runtime: runtime_us.map(Service::from_micros), ..limits };
        let to_ratio = |period: u64, runtime: u64| (runtime << 20) / period;
        let bandwidth = runtime_us.map(|us| to_ratio(1_000_000_000, us * 1_000));
        let capacity = u64::from(count) << 10;
        let mut total = if server { u64::from(count) * to_ratio(1_000_000_000, 50_000_000) } else { 0 };
        let mut expected = Ok(0);
        for (index, request) in requests.iter().enumerate() {
            let new = to_ratio(request.deadline.as_nanos(), request.runtime.as_nanos());
            if bandwidth.is_some_and(|bandwidth| bandwidth == 0 || (bandwidth * capacity) >> 10 < total + new) {
                expected = Err(index);
                break;
            }
            total += new;
            expected = expected.map(|sum| sum + new);
        }
        let found = kernel_admits(&requests, processors(count), &limits);
        prop_assert_eq!(found.map(Bandwidth::units).map_err(|(index, _)| index), expected);
    }

    /// The nearest runtime and period are taken, and a tick more or less is not.
    #[test]
    fn the_kernels_nearest_are_exact(
        period in 100_000_u64..4_000_000_000,
        runtime in 1_024_u64..4_000_000_000,
        granted in 0_u64..2_000_000,
        count in 1_u16..3,
    ) {
        let limits = KernelLimits::WITH_FAIR_SERVER;
        let granted = Bandwidth::from_units(granted);
        let takes = |runtime, period| {
            let (runtime, period) = (Service::from_nanos(runtime), Span::from_nanos(period));
            let request = DeadlineRequest { runtime, deadline: period, period };
            limits.check(processors(count), granted, request).is_ok()
        };
        match limits.longest_runtime(processors(count), granted, Span::from_nanos(period)) {
            Some(longest) => {
                prop_assert!(takes(longest.as_nanos(), period));
                prop_assert!(!takes(longest.as_nanos() + 1, period));
            }
            None => prop_assert!(!takes(1_024, period)),
        }
        match limits.shortest_period(processors(count), granted, Service::from_nanos(runtime)) {
            Some(shortest) => {
                prop_assert!(takes(runtime, shortest.as_nanos()));
                prop_assert!(!takes(runtime, shortest.as_nanos() - 1));
            }
            None => prop_assert!(!takes(runtime, 1 << 32 >> 1)),
        }
    }

    /// No size of numbers makes a panic.
    #[test]
    fn any_number_is_taken(
        numbers in prop::collection::vec((any::<u64>(), any::<u64>()), 0..6),
        count in 1_u16..=u16::MAX,
        largest in (any::<u64>(), 1..=u64::MAX),
    ) {
        let set: Vec<Task> = numbers.into_iter().map(|(a, b)| task(a.max(1), b.max(1))).collect();
        let _ = global_edf(&set, processors(count));
        let _ = tardiness(&set, processors(count));
        let largest = Fraction::new(largest.0, largest.1).expect("not zero");
        for (fit, order) in FITS.into_iter().flat_map(|fit| ORDERS.map(|order| (fit, order))) {
            let few = processors(count % 8 + 1);
            partition(&set, few, fit, order, earliest_deadline_first).expect("never overflows");
            let guarantee = edf_guarantee(fit, order, processors(count), largest);
            prop_assert!(guarantee.numerator() / guarantee.denominator() <= u64::from(count));
        }
        for task in &set {
            let request = DeadlineRequest {
                runtime: task.cost(),
                deadline: task.period(),
                period: task.period(),
            };
            let _ = kernel_admits(&[request], processors(count), &KernelLimits::WITH_FAIR_SERVER);
        }
    }
}

/// Sets just within what is guaranteed always fit; and first fit in decreasing order finds a distribution nearly as often as there is one.
#[test]
fn guarantees_are_kept() {
    const PERIOD: u64 = 1 << 40;
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    for _ in 0..config().cases {
        let count = rng.random_range(1..=5_u16);
        let n = rng.random_range(1..=20_usize);
        let most = PERIOD / rng.random_range(1..=6) - rng.random_range(0..1 << 36);
        for (fit, order) in FITS
            .into_iter()
            .flat_map(|fit| ORDERS.map(|order| (fit, order)))
        {
            let within = |guarantee: Fraction| {
                let sum = u128::from(PERIOD) * u128::from(guarantee.numerator());
                (sum / u128::from(guarantee.denominator())) as u64
            };
            let fits = |costs: &[u64], test: fn(&[Task]) -> Result<Verdict, Overflow>| {
                let set = tasks(costs, PERIOD);
                let found = partition(&set, processors(count), fit, order, test);
                matches!(found, Ok(Partitioning::Fits(_)))
            };
            let sum = |costs: &[u64]| costs.iter().sum::<u64>();
            // The guarantee depends on the largest: compose below it, then hold against what the set itself has.
            let largest = Fraction::new(most, PERIOD).expect("not zero");
            let bound = within(edf_guarantee(fit, order, processors(count), largest));
            let costs = composition(&mut rng, n, bound, most);
            assert!(
                sum(&costs) > bound || fits(&costs, earliest_deadline_first),
                "{costs:?}"
            );

            if let Some(guarantee) = rate_monotonic_guarantee(fit, order, processors(count), n) {
                let bound = within(guarantee);
                let costs = composition(&mut rng, n, bound, PERIOD);
                assert!(
                    sum(&costs) > bound || fits(&costs, liu_layland),
                    "{costs:?}"
                );
            } else {
                assert!(order == Order::Given && fit != Fit::First);
            }
        }
    }
}

/// Just above the guarantee there is a set that does not fit: βm + 1 tasks, of each of which β + 1 are a tick too many.
#[test]
fn guarantees_are_tight() {
    for (count, beta) in [(1, 1), (2, 1), (3, 1), (2, 2), (4, 3), (3, 5)] {
        let period = 1_000 * (beta + 1);
        let set = tasks(&vec![1_001; (beta * u64::from(count) + 1) as usize], period);
        let largest = Fraction::new(1_001, period).expect("not zero");
        for (fit, order) in FITS
            .into_iter()
            .flat_map(|fit| ORDERS.map(|order| (fit, order)))
        {
            let found = partition(&set, processors(count), fit, order, earliest_deadline_first);
            assert!(matches!(found, Ok(Partitioning::DoesNotFit(_))));
            let guarantee = edf_guarantee(fit, order, processors(count), largest);
            let used = Fraction::new(1_001 * set.len() as u64, period).expect("not zero");
            assert!(guarantee.compare_sum([used].into_iter()).is_gt());
            if (fit, order) != (Fit::Worst, Order::Given) {
                // All but a tick a task of what does not fit is guaranteed.
                let less = Fraction::new(1_000 * set.len() as u64, period).expect("not zero");
                assert!(guarantee.compare_sum([less].into_iter()).is_eq());
            }
        }
    }
    // Worst fit in the order given: 102 small ones leave less than 1/2 on both processors. First fit would leave one of them half empty.
    let mut costs = vec![1; 102];
    costs.push(50);
    let set = tasks(&costs, 100);
    let found = |fit| {
        partition(
            &set,
            processors(2),
            fit,
            Order::Given,
            earliest_deadline_first,
        )
    };
    assert!(matches!(found(Fit::Worst), Ok(Partitioning::DoesNotFit(_))));
    let half = Fraction::new(1, 2).expect("a half");
    assert_eq!(
        edf_guarantee(Fit::Worst, Order::Given, processors(2), half).ppm(),
        1_500_000
    );
    assert_eq!(
        edf_guarantee(Fit::First, Order::Given, processors(2), half).ppm(),
        1_666_667
    );
}

/// How often the heuristics find a distribution of those that exist: all six find most, and decreasing order does best.
#[test]
fn decreasing_order_finds_most_of_the_distributions_that_exist() {
    let mut rng = Pcg64Mcg::seed_from_u64(2);
    let (mut exist, mut found) = (0, [[0; 2]; 3]);
    for _ in 0..200 {
        let costs = composition(&mut rng, 7, 114, 60);
        let set = tasks(&costs, 60);
        if !some_partition(&set, 2, earliest_deadline_first) {
            continue;
        }
        exist += 1;
        for (i, fit) in FITS.into_iter().enumerate() {
            for (j, order) in ORDERS.into_iter().enumerate() {
                let answer = partition(&set, processors(2), fit, order, earliest_deadline_first);
                found[i][j] += u32::from(matches!(answer, Ok(Partitioning::Fits(_))));
            }
        }
    }
    assert!(exist > 100, "{exist}");
    for [given, decreasing] in found {
        assert!(
            given < decreasing && decreasing <= exist,
            "{found:?} of {exist}"
        );
    }
}

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

/// On processors of 0.95, less 0.05 for the fair class: 1.80 of two, as measured; the errors that the kernel gives.
#[test]
fn the_kernels_limits() {
    let two = processors(2);
    let limits = KernelLimits::WITH_FAIR_SERVER;
    let request = |runtime_us, deadline_us, period_us| DeadlineRequest {
        runtime: Service::from_micros(runtime_us),
        deadline: Span::from_micros(deadline_us),
        period: Span::from_micros(period_us),
    };
    let admits = |requests: &[DeadlineRequest]| kernel_admits(requests, two, &limits);
    assert!(admits(&[request(9_000, 10_000, 10_000); 2]).is_ok());
    let (index, refusal) = admits(&[request(9_001, 10_000, 10_000); 2]).unwrap_err();
    assert_eq!(index, 1);
    assert!(matches!(refusal, KernelRefusal::Bandwidth { .. }));
    // Before there was a fair server.
    let old = KernelLimits::WITHOUT_FAIR_SERVER;
    assert!(kernel_admits(&[request(9_499, 10_000, 10_000); 2], two, &old).is_ok());
    // No limit.
    let unlimited = KernelLimits {
        rt_runtime: None,
        ..limits
    };
    assert!(kernel_admits(&[request(10_000, 10_000, 10_000); 5], two, &unlimited).is_ok());
    let none = KernelLimits {
        rt_runtime: Some(Service::ZERO),
        ..limits
    };
    assert_eq!(
        kernel_admits(&[request(10, 1_000, 1_000)], two, &none),
        Err((0, KernelRefusal::Disabled))
    );

    let refusal = |request| admits(&[request]).unwrap_err().1;
    assert!(matches!(
        refusal(request(1, 1_000, 1_000)),
        KernelRefusal::Runtime { .. }
    ));
    assert!(matches!(
        refusal(request(20, 10, 1_000)),
        KernelRefusal::Order { .. }
    ));
    assert!(matches!(
        refusal(request(20, 2_000, 1_000)),
        KernelRefusal::Order { .. }
    ));
    assert!(matches!(
        refusal(request(20, 0, 0)),
        KernelRefusal::Order { .. }
    ));
    assert!(matches!(
        refusal(request(20, 50, 99)),
        KernelRefusal::Period { .. }
    ));
    assert!(matches!(
        refusal(request(20, 50, 5_000_000)),
        KernelRefusal::Period { .. }
    ));
    assert!(admits(&[request(20, 50, 1 << 22)]).is_ok());
    // Without a period the deadline is one; with it, only the period counts.
    assert_eq!(
        admits(&[request(100, 1_000, 0)]),
        admits(&[request(100, 1_000, 1_000)])
    );
    assert_eq!(
        admits(&[request(100, 500, 1_000)]),
        admits(&[request(100, 1_000, 1_000)])
    );
}
