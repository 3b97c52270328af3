//! Sets on several processors: heuristics against bin packing in whole numbers and against every possible distribution, guarantees and
//! bounds against simulated schedules, the kernel's arithmetic against its own formula.
//!
//! `LAXITY_CASES` is the number of random sets for each property (2,000 if it is not set).

mod global;
mod kernel;

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

use crate::random;
use crate::random::task;

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
