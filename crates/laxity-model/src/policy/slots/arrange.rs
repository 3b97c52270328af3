//! Harmonic chains: periods each of which divides the next longer one, and which slot to serve each request with.
//!
//! Slots at such periods never need to meet if there is room for them at all. An *arrangement* picks a chain and serves each request
//! at one of its periods, no longer than its own, with a slot just long enough for X in every Y. (The idea of specialising distances
//! to a harmonic chain is that of Han, Lin, Hou, "Distance-constrained scheduling and its applications to real-time systems", IEEE
//! Trans. Computers 45(7), 1996.)

use alloc::vec;
use alloc::vec::Vec;

use super::item::{Item, share_floor};
use super::plan::{MAX_ENTRIES, PlanCosts};
use crate::Reservation;

/// How many divisors of each period are tried as the shortest period of a chain, and of all together where any table will do.
const BASES_A_PERIOD: u64 = 32;
const BASES_FOR_ANY: u64 = 256;
/// How many arrangements, of least load, are worth an attempt to place them.
const ATTEMPTS: usize = 64;
/// What a slot counts for at least when arrangements are compared: no switch is free, even where none is charged.
const LEAST_COST_NS: u64 = 5_000;

/// A way to serve all requests, its periods a harmonic chain.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Arrangement {
    /// For comparing: the load with at least `LEAST_COST_NS` a slot, in parts of [`WHOLE`](super::item::WHOLE), if nothing is split.
    pub(super) score: u128,
    /// By period; of equal periods the longest slot first, which packs better.
    pub(super) items: Vec<Item>,
}

impl Arrangement {
    /// What the arrangement takes of the processor if nothing is split, in parts of [`WHOLE`](super::item::WHOLE), rounded down for each slot: three that
    /// fill the processor are no more than it.
    pub(super) fn load(&self, costs: &PlanCosts) -> u64 {
        let cost = costs.per_slot.as_nanos();
        let loads = (self.items.iter())
            .map(|item| share_floor(item.whole_ns.saturating_add(cost), item.period_ns));
        loads.fold(0, u64::saturating_add)
    }
}

/// The arrangements worth placing, the one of least load first; at least one for at least one request. Of fewer chains where `any` table
/// will do, and of no more of them once nothing is left of `work`.
/// O(n² · chain) for n requests.
pub(super) fn arrangements(
    requests: &[Reservation],
    costs: &PlanCosts,
    any: bool,
    work: &mut u64,
) -> Vec<Arrangement> {
    let mut windows: Vec<u64> = requests.iter().map(|r| r.period().as_nanos()).collect();
    windows.sort_unstable();
    windows.dedup();
    let bases_a_period = match any {
        true => (BASES_FOR_ANY / windows.len().max(1) as u64).clamp(1, BASES_A_PERIOD),
        false => BASES_A_PERIOD,
    };
    let mut found: Vec<Arrangement> = Vec::new();
    for base in bases(&windows, bases_a_period, costs.granularity.as_nanos()) {
        // No more entries than a table holds, even if everything else is served at the base.
        let longest = base.saturating_mul((MAX_ENTRIES / requests.len().max(1)) as u64);
        for chain in [
            doubling(base, &windows, longest),
            greedy(base, &windows, longest),
        ] {
            if *work == 0 && !found.is_empty() {
                break;
            }
            *work = work.saturating_sub((requests.len() * chain.len()) as u64);
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
fn bases(windows: &[u64], bases_a_period: u64, shortest_slot_ns: u64) -> Vec<u64> {
    let Some(&least) = windows.first() else {
        return Vec::new();
    };
    let mut bases: Vec<u64> = vec![least];
    for &window in windows {
        let parts = window.div_ceil(least);
        let divisors = parts..parts.saturating_add(bases_a_period);
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
