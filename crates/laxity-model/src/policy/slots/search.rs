//! The fewest slot edges within a limit of over-allocation: branch and bound over periods that are multiples of a common base.
//!
//! Let every request i be served every kᵢ·b. Between two bases b at which some kᵢ·b is a whole part Y/m of a window, the slots grow
//! linearly with b, so their load is a constant and a multiple of 1/b: monotone. Its least values are at whole parts of the windows,
//! and only those are tried as bases, in the order of the fewest edges that can be hoped for. On each, multiples are chosen for one
//! request after the other, the shortest window first, and each slot is placed at once: what cannot be placed is pursued no further.
//! At least one request must be served at a whole part of its window: no table gives more only to stretch all periods to the limit.
//! The effort is bounded by a count of steps, not by time: the same requests give the same table everywhere.

use alloc::vec;
use alloc::vec::Vec;

use super::item::{Item, WHOLE, rate, share_floor};
use super::place::{Layout, Sums};
use super::plan::PlanCosts;
use super::{SlotTable, item};
use crate::Reservation;

/// No base is less than this part of the shortest window, and no period than this part of its window.
const SHORTEST_PART: u64 = 6;
/// How many parts of each window are tried as a base, at most.
const BASES_A_REQUEST: u64 = 400;
/// How many periods are tried for a request on a base, at most.
const PERIODS: usize = 12;
/// The work that may be spent on one base, and what looking at a period or a base costs beside the stretches of time looked at.
const WORK_A_BASE: u64 = 1_000;
const WORK_A_STEP: u64 = 8;
const WORK_A_PERIOD: u64 = 3;

/// One request, and what is known of it before any base is chosen.
struct Asked {
    owner: usize,
    request: Reservation,
    /// More of the processor, in parts of [`WHOLE`], would exceed the limits by itself.
    most: u64,
    /// At a longer period one slot would exceed the limits by itself.
    longest_ns: u64,
}

/// One way to serve one request on a base.
#[derive(Clone, Copy, Debug)]
struct Choice {
    item: Item,
    /// Whether the period is a whole part of the window.
    anchors: bool,
    /// If it need not be split.
    sums: Sums,
}

/// A search within limits.
pub(super) struct Search<'a> {
    costs: &'a PlanCosts,
    /// The most that slots may be given, and that may be taken with the dispatcher's time, in parts of [`WHOLE`].
    most_given: u64,
    most_taken: u64,
    /// By window.
    asked: Vec<Asked>,
    /// What may still be spent.
    pub(super) work: u64,
    /// No more slots than this are of interest.
    least_rate: u128,
}

/// What a search on one base is at.
struct Walk {
    /// By request.
    choices: Vec<Vec<Choice>>,
    /// What this and all later requests take at least.
    rest: Vec<Sums>,
    layout: Layout,
    /// How many of the periods chosen are whole parts of their windows.
    anchors: usize,
    /// What may be spent on this base.
    work: u64,
}

impl<'a> Search<'a> {
    /// A search for tables that give no more than `most_over_ppm` over and above what was asked for, and cost no more than `work`.
    pub(super) fn new(
        requests: &[Reservation],
        costs: &'a PlanCosts,
        most_over_ppm: u64,
        work: u64,
    ) -> Self {
        let share = |r: &Reservation| share_floor(r.service().as_nanos(), r.period().as_nanos());
        let total: u64 = requests.iter().map(share).sum();
        let rounding = requests.len() as u64;
        let most = u128::from(total + rounding) * (1_000_000 + u128::from(most_over_ppm));
        let most_given = u64::try_from(most.div_ceil(1_000_000)).unwrap_or(u64::MAX);
        let most_taken = costs.available_ppm() * (WHOLE / 1_000_000);
        let most_given = most_given.min(most_taken);
        let spare = most_given.saturating_sub(total);
        let asked = requests.iter().enumerate().map(|(owner, request)| Asked {
            owner,
            request: *request,
            most: share(request) + spare,
            longest_ns: longest_period(*request, share(request) + spare),
        });
        let mut asked: Vec<Asked> = asked.collect();
        asked.sort_by_key(|asked| asked.request.period());
        Self {
            costs,
            most_given,
            most_taken,
            asked,
            work,
            least_rate: u128::MAX,
        }
    }

    /// Only tables with fewer slots by time than this one are of interest.
    pub(super) fn below(&mut self, table: &SlotTable) {
        self.least_rate = item::rate_of(table);
    }

    /// Finds tables, each with fewer slots by time than the last one that `found` called good.
    pub(super) fn run(&mut self, mut found: impl FnMut(SlotTable) -> Found) {
        let mut bases = self.bases();
        bases.sort_unstable();
        for (bound, base) in bases {
            if bound >= self.least_rate || self.work == 0 {
                break;
            }
            if let Some(mut walk) = self.walk(base, bound)
                && self.descend(&mut walk, 0, Sums::default(), &mut found) == Found::Enough
            {
                break;
            }
        }
    }

    /// The bases of interest, each after a lower bound of the slots by time on it.
    fn bases(&self) -> Vec<(u128, u64)> {
        let Some(first) = self.asked.first() else {
            return Vec::new();
        };
        let least = (first.request.period().as_nanos() / SHORTEST_PART).max(1);
        let longest = self.asked.iter().map(|asked| asked.longest_ns);
        let most = longest.min().unwrap_or(1);
        let mut bases: Vec<u64> = Vec::new();
        for asked in &self.asked {
            let window = asked.request.period().as_nanos();
            let first = window.div_ceil(most);
            let last = (window / least).min(first.saturating_add(BASES_A_REQUEST));
            bases.extend((first..=last).map(|parts| window / parts));
        }
        bases.retain(|base| *base > 0);
        bases.sort_unstable();
        bases.dedup();
        let bound = |base: &u64| {
            let longest = self.asked.iter().map(|a| a.longest_ns / base * base);
            longest.map(|period| u128::from(rate(period))).sum()
        };
        bases.iter().map(|base| (bound(base), *base)).collect()
    }

    /// What there is to choose on a base; `None` if nothing within the limits.
    fn walk(&mut self, base: u64, bound: u128) -> Option<Walk> {
        let mut choices: Vec<Vec<Choice>> = Vec::with_capacity(self.asked.len());
        for index in 0..self.asked.len() {
            let found = self.choices(index, base, bound);
            if found.is_empty() {
                return None;
            }
            choices.push(found);
        }
        let mut rest = vec![Sums::default()];
        for choices in choices.iter().rev() {
            let sums = || choices.iter().map(|choice| choice.sums);
            let least = Sums {
                rate: sums().map(|sums| sums.rate).min()?,
                given: sums().map(|sums| sums.given).min()?,
                taken: sums().map(|sums| sums.taken).min()?,
            };
            rest.push(least.plus(rest[rest.len() - 1]));
        }
        rest.reverse();
        (self.hopeful(rest[0])).then(|| Walk {
            choices,
            rest,
            layout: Layout::new(base, self.costs),
            anchors: 0,
            work: WORK_A_BASE,
        })
    }

    /// The periods worth trying for one request on a base, longest first.
    fn choices(&mut self, index: usize, base: u64, bound: u128) -> Vec<Choice> {
        let cost = self.costs.per_slot.as_nanos();
        let shortest = self.costs.granularity.as_nanos();
        let asked = &self.asked[index];
        let top = asked.longest_ns / base;
        // At less than this slots come so often that the others cannot make up for it.
        let others = bound - u128::from(rate(top * base));
        let mut found = Vec::with_capacity(PERIODS);
        for multiple in (top.div_ceil(SHORTEST_PART).max(1)..=top).rev() {
            let period = multiple * base;
            let rate = u128::from(rate(period));
            if others.saturating_add(rate) >= self.least_rate || found.len() == PERIODS {
                break;
            }
            self.work = self.work.saturating_sub(WORK_A_PERIOD);
            let Some(item) = Item::new(asked.owner, asked.request, period, shortest) else {
                continue;
            };
            let given = share_floor(item.whole_ns, period);
            if given > asked.most {
                continue;
            }
            let taken = share_floor(item.whole_ns.saturating_add(cost), period);
            let parts = asked.request.period().as_nanos() / base;
            let beyond = asked.request.period().as_nanos() % base;
            found.push(Choice {
                item,
                // But for what was lost when the base was rounded to whole nanoseconds.
                anchors: parts.is_multiple_of(multiple) && beyond < parts,
                sums: Sums { rate, given, taken },
            });
        }
        found
    }

    /// Whether something that takes at least this may be within the limits and better than what there is.
    fn hopeful(&self, least: Sums) -> bool {
        least.rate < self.least_rate
            && least.given <= self.most_given
            && least.taken <= self.most_taken
    }

    /// Chooses for one request and all that follow.
    fn descend(
        &mut self,
        walk: &mut Walk,
        depth: usize,
        so_far: Sums,
        found: &mut impl FnMut(SlotTable) -> Found,
    ) -> Found {
        if depth == walk.choices.len() {
            if walk.anchors == 0 {
                return Found::Useless;
            }
            let Ok(table) = walk.layout.table() else {
                return Found::Useless;
            };
            self.work = self.work.saturating_sub(table.slots().len() as u64);
            let answer = found(table);
            if answer != Found::Useless {
                self.least_rate = so_far.rate;
            }
            return answer;
        }
        let rest = walk.rest[depth + 1];
        for index in 0..walk.choices[depth].len() {
            let choice = walk.choices[depth][index];
            if so_far.plus(choice.sums).plus(rest).rate >= self.least_rate {
                // The later ones come more often yet.
                break;
            }
            if !self.hopeful(so_far.plus(choice.sums).plus(rest)) {
                continue;
            }
            if walk.work == 0 || self.work == 0 {
                break;
            }
            let placed = walk.layout.placed();
            let done = walk.layout.work;
            let fits = walk.layout.add(&choice.item).is_ok();
            let work = walk.layout.work - done + WORK_A_STEP;
            self.work = self.work.saturating_sub(work);
            walk.work = walk.work.saturating_sub(work);
            let sums = so_far.plus(walk.layout.sums_after(placed));
            walk.anchors += usize::from(choice.anchors);
            if fits
                && self.hopeful(sums.plus(rest))
                && self.descend(walk, depth + 1, sums, found) == Found::Enough
            {
                return Found::Enough;
            }
            walk.anchors -= usize::from(choice.anchors);
            walk.layout.truncate(placed);
        }
        Found::Useless
    }
}

/// What a table that was found is good for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// Nothing: as if it had not been found.
    Useless,
    /// From now on only tables with fewer slots by time are of interest.
    Good,
    /// No more is wanted.
    Enough,
}

/// The longest period at which one slot takes no more than `share`: (X + p − Y) / p ≤ share; at most twice the window.
fn longest_period(request: Reservation, share: u64) -> u64 {
    let (service, window) = (request.service().as_nanos(), request.period().as_nanos());
    let beside = u128::from(WHOLE.saturating_sub(share).max(1));
    let longest = u128::from(window - service) * u128::from(WHOLE) / beside;
    let longest = longest.clamp(u128::from(window), u128::from(window) * 2);
    u64::try_from(longest).unwrap_or(u64::MAX)
}
