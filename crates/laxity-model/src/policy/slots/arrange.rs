//! Harmonic chains: periods each of which divides the next longer one, and which slot to serve each request with.
//!
//! Slots at such periods never need to meet if there is room for them at all. An *arrangement* picks a chain and serves each request
//! at one of its periods, no longer than its own, with a slot just long enough for X in every Y. (The idea of specialising distances
//! to a harmonic chain is that of Han, Lin, Hou, "Distance-constrained scheduling and its applications to real-time systems", IEEE
//! Trans. Computers 45(7), 1996.)

use alloc::vec;
use alloc::vec::Vec;

use super::item::Item;
use super::plan::{MAX_ENTRIES, PlanCosts};
use crate::Reservation;

/// How many divisors of each period are tried as the shortest period of a chain.
const BASES_A_PERIOD: u64 = 32;
/// How many arrangements, of least load, are worth an attempt to place them.
const ATTEMPTS: usize = 64;
/// What a slot counts for at least when arrangements are compared: no switch is free, even where none is charged.
const LEAST_COST_NS: u64 = 5_000;

/// A way to serve all requests, its periods a harmonic chain.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Arrangement {
    /// For comparing: the load with at least `LEAST_COST_NS` a slot, in parts per 10⁹, if nothing is split.
    pub(super) score: u128,
    /// By period; of equal periods the longest slot first, which packs better.
    pub(super) items: Vec<Item>,
}

impl Arrangement {
    /// What the arrangement takes of the processor if nothing is split, in parts per million rounded up.
    pub(super) fn load_ppm(&self, costs: &PlanCosts) -> u64 {
        let load = self
            .items
            .iter()
            .map(|item| item.share(costs.per_slot.as_nanos()));
        let load: u128 = load.sum::<u128>().div_ceil(1_000);
        u64::try_from(load).unwrap_or(u64::MAX)
    }
}

/// The arrangements worth placing, the one of least load first; at least one for at least one request.
/// O(n² · chain) for n requests.
pub(super) fn arrangements(requests: &[Reservation], costs: &PlanCosts) -> Vec<Arrangement> {
    let mut windows: Vec<u64> = requests.iter().map(|r| r.period().as_nanos()).collect();
    windows.sort_unstable();
    windows.dedup();
    let mut found: Vec<Arrangement> = Vec::new();
    for base in bases(&windows, costs.granularity.as_nanos()) {
        // No more entries than a table holds, even if everything else is served at the base.
        let longest = base.saturating_mul((MAX_ENTRIES / requests.len().max(1)) as u64);
        for chain in [
            doubling(base, &windows, longest),
            greedy(base, &windows, longest),
        ] {
            found.push(arrange(requests, &chain, costs));
        }
    }
    found.sort_unstable();
    found.dedup();
    found.truncate(ATTEMPTS);
    found
}

/// Serves every request at the period of the chain that costs least.
fn arrange(requests: &[Reservation], chain: &[u64], costs: &PlanCosts) -> Arrangement {
    let cost = costs.per_slot.as_nanos().max(LEAST_COST_NS);
    let shortest = costs.granularity.as_nanos();
    let mut items: Vec<Item> = Vec::with_capacity(requests.len());
    for (owner, &request) in requests.iter().enumerate() {
        let window = request.period().as_nanos();
        let periods = chain.iter().filter(|period| **period <= window);
        let options = periods.filter_map(|&period| Item::new(owner, request, period, shortest));
        items.extend(options.min_by_key(|item| item.share(cost)));
    }
    items.sort_unstable_by_key(|item| (item.period_ns, u64::MAX - item.whole_ns, item.owner));
    Arrangement {
        score: items.iter().map(|item| item.share(cost)).sum(),
        items,
    }
}

/// Shortest periods to build chains on: whole parts of each window, none longer than the shortest window.
fn bases(windows: &[u64], shortest_slot_ns: u64) -> Vec<u64> {
    let Some(&least) = windows.first() else {
        return Vec::new();
    };
    let mut bases: Vec<u64> = vec![least];
    for &window in windows {
        let parts = window.div_ceil(least);
        let divisors = parts..parts.saturating_add(BASES_A_PERIOD);
        bases.extend(
            divisors
                .map(|n| window / n)
                .filter(|base| *base > shortest_slot_ns),
        );
    }
    bases.sort_unstable();
    bases.dedup();
    bases
}

/// The chain base, 2·base, 4·base, …
fn doubling(base: u64, windows: &[u64], longest: u64) -> Vec<u64> {
    let end = windows.last().map_or(0, |window| longest.min(*window));
    let doubled = core::iter::successors(Some(base), |period| period.checked_mul(2));
    doubled
        .take_while(|period| *period <= end.max(base))
        .collect()
}

/// The chain in which each period is the greatest multiple of the one before that a window allows.
fn greedy(base: u64, windows: &[u64], longest: u64) -> Vec<u64> {
    let mut chain = vec![base];
    let mut last = base;
    for window in windows {
        let next = last * (window / last);
        if next > last && next <= longest {
            chain.push(next);
            last = next;
        }
    }
    chain
}
