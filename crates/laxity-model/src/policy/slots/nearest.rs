//! The sets near a refused one that are granted, found by asking the planner itself: advice that is followed is never refused.

use alloc::vec::Vec;
use core::cell::Cell;

use super::item::{WHOLE, share_floor};
use super::plan::{PlanCosts, WORK_A_CHECK, check};
use super::refusal::{Change, Nearest, Refusal};
use crate::request::Shortage;
use crate::{Reservation, Service, Span};

/// The longest period that is proposed, as a multiple of the one asked for.
const LONGEST_FACTOR: u64 = 1_024;
/// All services shrink in so many steps.
const SHRINK_STEPS: u64 = 1_000;
/// The work that looking for single changes may take, and once more for [`Change::AllShrink`]: some 10 ns each.
const WORK: u64 = 3_000_000;

/// How much may still be looked at for what would be granted instead, in steps of some 10 ns, and how much was spent. It is counted and not timed, so
/// that the same is advised on every machine.
#[derive(Debug)]
pub(crate) struct Effort {
    left: u64,
    spent: u64,
}

impl Effort {
    /// So much.
    pub(crate) const fn new(left: u64) -> Self {
        Self { left, spent: 0 }
    }

    /// What one refusal may take.
    pub(super) const fn of_a_refusal() -> Self {
        Self::new(2 * WORK)
    }

    /// All that was spent, on plans too.
    pub(crate) const fn spent(&self) -> u64 {
        self.spent
    }

    pub(super) const fn spend(&mut self, work: u64) {
        self.spent = self.spent.saturating_add(work);
    }

    /// Takes as much of what is left as one search may take.
    fn take(&mut self) -> u64 {
        let taken = self.left.min(WORK);
        self.left -= taken;
        taken
    }

    /// Gives back what a search did not need of that.
    const fn give_back(&mut self, taken: u64, unspent: u64) {
        self.left += unspent;
        self.spend(taken - unspent);
    }
}

/// Why `requests`, which do not fit, do not, and what would.
pub(super) fn explain(requests: &[Reservation], costs: &PlanCosts, effort: &mut Effort) -> Refusal {
    let (request, shortage) = refused(requests, costs, effort);
    let taken = effort.take();
    let search = Search {
        requests,
        costs,
        left: Cell::new(taken),
        is_cut_short: Cell::new(false),
    };
    let mut nearest = Vec::new();
    if let Shortage::SlotLength { shortest, .. } = shortage {
        let smallest = Service::from_nanos(shortest.as_nanos());
        let as_often = Reservation::new(smallest, requests[request].period());
        nearest.extend(search.granted(Change::SmallestService, request, as_often.ok()));
        if nearest.is_empty() {
            nearest.extend(search.shortest_period(request, smallest));
        }
    } else {
        nearest.extend(search.largest_service(request, Change::LargestService));
        nearest.extend(search.shortest_period(request, requests[request].service()));
        let others = (0..requests.len()).filter(|other| *other != request);
        nearest.extend(others.filter_map(|o| search.largest_service(o, Change::OtherGivesUp)));
    }
    effort.give_back(taken, search.left.get());
    if nearest.is_empty() {
        let taken = effort.take();
        search.left.set(taken);
        nearest.extend(search.all_shrink(request));
        effort.give_back(taken, search.left.get());
    }
    Refusal {
        request,
        reservation: requests[request],
        shortage,
        nearest,
        is_cut_short: search.is_cut_short.get(),
    }
}

/// A request that does not fit with those before it, while they fit without it, and what is missing.
fn refused(requests: &[Reservation], costs: &PlanCosts, effort: &mut Effort) -> (usize, Shortage) {
    let mut shortage = None;
    let mut fits = |count: usize| {
        let (found, spent) = check(&requests[..count], costs);
        effort.spend(spent);
        let missing = found.err();
        shortage = missing.or(shortage);
        missing.is_none()
    };
    let (mut fit, mut refused) = (0, requests.len());
    fits(refused);
    while refused - fit > 1 {
        let middle = fit + (refused - fit) / 2;
        if fits(middle) {
            fit = middle;
        } else {
            refused = middle;
        }
    }
    (
        fit,
        shortage.expect("a set is explained because it does not fit"),
    )
}

struct Search<'a> {
    requests: &'a [Reservation],
    costs: &'a PlanCosts,
    /// The work that may still be spent.
    left: Cell<u64>,
    /// Whether that was too little.
    is_cut_short: Cell<bool>,
}

impl Search<'_> {
    /// The set with one request replaced, if it is granted.
    fn granted(
        &self,
        change: Change,
        request: usize,
        replacement: Option<Reservation>,
    ) -> Option<Nearest> {
        let mut requests = self.requests.to_vec();
        requests[request] = replacement?;
        self.fits(&requests).then_some(Nearest {
            change,
            request,
            requests,
        })
    }

    /// Whether these are granted; no, too, where it may not be asked any more.
    fn fits(&self, requests: &[Reservation]) -> bool {
        let share = |r: &Reservation| share_floor(r.service().as_nanos(), r.period().as_nanos());
        let least: u64 = requests.iter().map(share).sum();
        if least > self.costs.available_ppm() * (WHOLE / 1_000_000) {
            return false;
        }
        if self.left.get() < WORK_A_CHECK {
            self.is_cut_short.set(true);
            return false;
        }
        let (found, spent) = check(requests, self.costs);
        self.left.set(self.left.get() - spent);
        found.is_ok()
    }

    /// The most service at the same period, to three digits or four.
    fn largest_service(&self, request: usize, change: Change) -> Option<Nearest> {
        let asked = self.requests[request];
        let grain = grain(asked.service().as_nanos());
        let with = |n: u64| {
            let service = Service::from_nanos(n * grain);
            self.granted(
                change,
                request,
                Reservation::new(service, asked.period()).ok(),
            )
        };
        let least = self.costs.granularity.as_nanos().div_ceil(grain).max(1);
        let end = asked.service().as_nanos().div_ceil(grain);
        last_granted(least, end, with)
    }

    /// The shortest period for this service that is longer than the one asked for, to three digits or four.
    fn shortest_period(&self, request: usize, service: Service) -> Option<Nearest> {
        let asked = self.requests[request];
        let grain = grain(asked.period().as_nanos());
        let with = |n: u64| {
            let period = Span::from_nanos(n.checked_mul(grain)?);
            let longer = Reservation::new(service, period).ok();
            self.granted(Change::ShortestPeriod, request, longer)
        };
        let first = asked.period().as_nanos() / grain + 1;
        let mut refused = first - 1;
        let mut best = None;
        let mut n = first;
        while n <= first.saturating_mul(LONGEST_FACTOR) {
            if let Some(granted) = with(n) {
                best = Some((n, granted));
                break;
            }
            refused = n;
            n = n.saturating_mul(2);
        }
        Some(between(best?, refused, with))
    }

    /// All services shrunk by the same ratio, none below the shortest slot.
    fn all_shrink(&self, request: usize) -> Option<Nearest> {
        let shortest = self.costs.granularity.as_nanos();
        let with = |n: u64| {
            let shrunk = self.requests.iter().map(|asked| {
                let service = u128::from(asked.service().as_nanos()) * u128::from(n);
                let service = u64::try_from(service / u128::from(SHRINK_STEPS)).ok()?;
                let service = Service::from_nanos(service.max(shortest));
                Reservation::new(service, asked.period()).ok()
            });
            let requests: Vec<Reservation> = shrunk.collect::<Option<_>>()?;
            self.fits(&requests).then_some(Nearest {
                change: Change::AllShrink,
                request,
                requests,
            })
        };
        last_granted(1, SHRINK_STEPS + 1, with)
    }
}

/// What is granted at the greatest number from `least` to before `end`, by bisection; `None` if `least` is not.
/// Where the planner is not monotone this finds one of the greatest; it is granted all the same.
fn last_granted(least: u64, end: u64, with: impl Fn(u64) -> Option<Nearest>) -> Option<Nearest> {
    if least >= end {
        return None;
    }
    Some(between((least, with(least)?), end, with))
}

/// The last that is granted on the way from one that is to one that is not, of which all before some place are granted. By bisection.
fn between(
    (mut granted_at, mut best): (u64, Nearest),
    mut refused: u64,
    with: impl Fn(u64) -> Option<Nearest>,
) -> Nearest {
    while granted_at.abs_diff(refused) > 1 {
        let middle = granted_at.min(refused) + granted_at.abs_diff(refused) / 2;
        match with(middle) {
            Some(granted) => (granted_at, best) = (middle, granted),
            None => refused = middle,
        }
    }
    best
}

/// The power of ten that leaves a number three digits or four: advice is for people.
pub(crate) const fn grain(value: u64) -> u64 {
    match value.checked_ilog10() {
        Some(digits) if digits > 3 => 10_u64.pow(digits - 3),
        _ => 1,
    }
}
