//! Finds a slot table for a set of reservations.

use alloc::vec::Vec;
use core::cmp::Reverse;

use super::arrange::arrangements;
use super::cyclic;
use super::item::{WHOLE, share_floor};
use super::nearest::Effort;
use super::objective::{Judged, Objective};
use super::place::{Obstacle, place};
use super::refusal::Refusal;
use super::search::{Found, Search};
use super::{SlotTable, nearest};
use crate::request::Shortage;
use crate::{Reservation, Service, Span};

/// The most slots a table may have.
pub const MAX_ENTRIES: usize = 4_096;

/// The work that one search may take: some 10 ns each.
const WORK: u64 = 60_000;
/// What a plan may take altogether, which only sets of dozens come to; and what the question whether there is any table.
const WORK_A_PLAN: u64 = 8_000_000;
pub(super) const WORK_A_CHECK: u64 = 500_000;
/// What small tables that are filled grain by grain may take of it.
const WORK_OF_CYCLIC: u64 = 100_000;
/// Any over-allocation at all.
const ANY_OVER_PPM: u64 = u32::MAX as u64;
/// How often a limit that nothing is within is moved.
const TIGHTENINGS: u32 = 4;

/// What carrying a table out costs, and how much of the processor it may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlanCosts {
    /// The dispatcher's processor time a slot: kept free before each slot, and charged (at most 50 µs live).
    pub per_slot: Service,
    /// How much of the processor slots and all else above ordinary threads may take together, in parts per million (940,000 live).
    pub max_share_ppm: u32,
    /// How much of that is already taken by others, in parts per million.
    pub other_ppm: u32,
    /// The shortest slot that can be kept.
    pub granularity: Span,
}

impl PlanCosts {
    /// What is left for slots, in parts per million.
    pub fn available_ppm(&self) -> u64 {
        u64::from(
            self.max_share_ppm
                .min(1_000_000)
                .saturating_sub(self.other_ppm),
        )
    }

    /// Whether a table, the dispatcher's time included, takes no more than what is left. Exact.
    fn allow(&self, table: &SlotTable) -> bool {
        let cost = u128::from(self.per_slot.as_nanos());
        let slots = table.slots().iter();
        let taken: u128 = slots.map(|s| u128::from(s.length.as_nanos()) + cost).sum();
        let available = u128::from(self.available_ppm()) * u128::from(table.cycle().as_nanos());
        taken * 1_000_000 <= available
    }
}

/// A table for one processor that keeps *X in every window of length Y* for each request; a slot's owner is its request's index.
///
/// Any periods will do. A single request gets exactly its X every Y. Several whose periods do not fit together are served somewhat more
/// often or longer than they ask: of the tables found with no more than 5 % over-allocation, the one with the fewest slot edges a second
/// is taken, or else the one with the least over-allocation ([`Objective`]). Before each slot `costs.per_slot` stays free of other
/// slots. The same requests and costs give the same table, in whatever order the requests are named.
///
/// Cost: less than a millisecond, mostly, for five requests; a refusal plans up to some hundred sets near by, some 20 ms. All effort is
/// bounded by a count of steps, the same everywhere, some 0.2 s; [`Refusal::is_cut_short`] where that was too little for all advice.
///
/// ```
/// use laxity_model::policy::slots::{PlanCosts, least_service, plan};
/// use laxity_model::{Reservation, Service, Span};
///
/// let costs = PlanCosts {
///     per_slot: Service::from_micros(50),
///     max_share_ppm: 940_000,
///     other_ppm: 0,
///     granularity: Span::from_micros(50),
/// };
/// let modem = Reservation::new(Service::from_millis(2), Span::from_millis(13)).unwrap();
/// let audio = Reservation::new(Service::from_millis(1), Span::from_millis(10)).unwrap();
/// let table = plan(&[modem, audio], &costs).unwrap();
/// let least = least_service(&table, 0, modem.period());
/// assert!(least >= modem.service());
///
/// let greedy = Reservation::new(Service::from_millis(8), Span::from_millis(10)).unwrap();
/// let refusal = plan(&[modem, greedy], &costs).unwrap_err();
/// assert!(plan(&refusal.nearest[0].requests, &costs).is_ok());
/// ```
pub fn plan(requests: &[Reservation], costs: &PlanCosts) -> Result<SlotTable, Refusal> {
    plan_with(requests, costs, Objective::default())
}

/// Like [`plan`], with another objective than the default: no limit of over-allocation makes it refuse what [`plan`] grants.
pub fn plan_with(
    requests: &[Reservation],
    costs: &PlanCosts,
    objective: Objective,
) -> Result<SlotTable, Refusal> {
    let found = find_table(requests, costs, objective);
    found.map_err(|_| nearest::explain(requests, costs, &mut Effort::of_a_refusal()))
}

/// As [`plan`], of what is left for refusals; what is granted does not depend on that.
pub(crate) fn plan_within(
    requests: &[Reservation],
    costs: &PlanCosts,
    effort: &mut Effort,
) -> Result<SlotTable, Refusal> {
    let mut planner = Planner::new(requests, costs, Objective::default());
    let found = planner.find();
    effort.spend(planner.spent + WORK_A_PLAN - planner.left);
    match found {
        Ok(()) => Ok(planner.into_table()),
        Err(_) => Err(nearest::explain(requests, costs, effort)),
    }
}

/// As [`plan_with`], without looking for what would be granted instead.
pub(crate) fn find_table(
    requests: &[Reservation],
    costs: &PlanCosts,
    objective: Objective,
) -> Result<SlotTable, Shortage> {
    let mut planner = Planner::new(requests, costs, objective);
    planner.find()?;
    Ok(planner.into_table())
}

/// Whether there is a table, or what is missing; and the work that took, at most [`WORK_A_CHECK`] and a little. Never `Ok` for what
/// [`plan_with`] refuses, whatever its objective.
pub(super) fn check(requests: &[Reservation], costs: &PlanCosts) -> (Result<(), Shortage>, u64) {
    let mut planner = Planner::for_any(requests, costs);
    let found = planner.find();
    (found, WORK_A_CHECK - planner.left)
}

/// Collects the tables that were found, and keeps the best.
///
/// What is found of a set is not to depend on the order in which it is named: so the requests are looked at by their periods, of equal
/// periods the longest first, and only requests that are equal keep the order in which they came.
struct Planner<'a> {
    /// In that order.
    requests: Vec<Reservation>,
    /// Of each, its place in the list that was handed in.
    owners: Vec<usize>,
    costs: &'a PlanCosts,
    objective: Objective,
    /// The first table will do.
    any: bool,
    best: Option<Judged>,
    /// The work that may still be spent.
    left: u64,
    /// What was spent besides.
    spent: u64,
}

impl<'a> Planner<'a> {
    fn new(requests: &[Reservation], costs: &'a PlanCosts, objective: Objective) -> Self {
        let mut owners: Vec<usize> = (0..requests.len()).collect();
        owners.sort_by_key(|owner| {
            let request = requests[*owner];
            (request.period(), Reverse(request.service()))
        });
        Self {
            requests: owners.iter().map(|owner| requests[*owner]).collect(),
            owners,
            costs,
            objective,
            any: false,
            best: None,
            left: WORK_A_PLAN,
            spent: 0,
        }
    }

    /// For any table.
    fn for_any(requests: &[Reservation], costs: &'a PlanCosts) -> Self {
        Self {
            any: true,
            left: WORK_A_CHECK,
            ..Self::new(requests, costs, Objective::default())
        }
    }

    /// The best table, its owners by the list that was handed in; that of no requests is empty.
    fn into_table(self) -> SlotTable {
        let table = self.best.map(|judged| judged.table);
        let mut table = table.unwrap_or_else(SlotTable::empty);
        for slot in &mut table.slots {
            slot.owner = self.owners[slot.owner];
        }
        table
    }

    /// Tries every family of tables, or until there is any table; then it gives up sooner.
    fn find(&mut self) -> Result<(), Shortage> {
        self.check_sizes()?;
        if self.requests.is_empty() {
            return Ok(());
        }
        let shortage = self.try_chains();
        if self.any {
            if self.best.is_none() {
                self.search(ANY_OVER_PPM, WORK / 8);
            }
            if self.best.is_none() {
                self.try_cyclic();
            }
        } else {
            self.search(u64::from(self.objective.most_over_ppm), WORK);
            if !self.is_within() {
                self.search(ANY_OVER_PPM, WORK);
                self.tighten();
            }
            if self.best.is_none() {
                // What is advised must be granted.
                let mut any = Self::for_any(&self.requests, self.costs);
                let _ = any.find();
                self.spent = WORK_A_CHECK - any.left;
                self.best = any.best;
            }
        }
        self.best.is_some().then_some(()).ok_or(shortage)
    }

    fn check_sizes(&self) -> Result<(), Shortage> {
        let shortest = self.costs.granularity;
        let mut requests = self.requests.iter();
        if let Some(short) = requests.find(|r| r.service().as_dedicated_span() < shortest) {
            return Err(Shortage::SlotLength {
                service: short.service(),
                shortest,
            });
        }
        if self.requests.len() > MAX_ENTRIES {
            return Err(Shortage::TableEntries {
                needed: self.requests.len() as u64,
                limit: MAX_ENTRIES as u64,
            });
        }
        Ok(())
    }

    fn is_within(&self) -> bool {
        let best = self.best.as_ref();
        best.is_some_and(|best| best.is_within(self.objective))
    }

    /// Tries harmonic chains; all of them, or until there is a table. Returns what is missing if there is none.
    fn try_chains(&mut self) -> Shortage {
        let candidates = arrangements(&self.requests, self.costs, self.any, &mut self.left);
        let available_ppm = self.costs.available_ppm();
        let too_much = |load: u64| load > available_ppm * (WHOLE / 1_000_000);
        let loads = candidates.iter().map(|one| one.load(self.costs));
        let load = loads.min().unwrap_or(0);
        let load_ppm = load.div_ceil(WHOLE / 1_000_000);
        if too_much(load) {
            let asked =
                |r: &Reservation| share_floor(r.service().as_nanos(), r.period().as_nanos());
            let asked = self.requests.iter().map(asked).fold(0, u64::saturating_add);
            let needed_ppm = load_ppm;
            return match too_much(asked) {
                true => Shortage::ProcessorTime {
                    needed_ppm,
                    available_ppm,
                },
                false => Shortage::Tables {
                    needed_ppm,
                    available_ppm,
                },
            };
        }
        let mut shortage = Shortage::Arrangement { load_ppm };
        for arrangement in &candidates {
            if (self.any && self.best.is_some()) || self.left == 0 {
                break;
            }
            if too_much(arrangement.load(self.costs)) {
                continue;
            }
            match place(&arrangement.items, self.costs, &mut self.left) {
                Ok(table) => {
                    self.consider(table);
                }
                Err(Obstacle::Entries(needed)) => {
                    shortage = Shortage::TableEntries {
                        needed,
                        limit: MAX_ENTRIES as u64,
                    };
                }
                Err(Obstacle::Room) => {}
            }
        }
        shortage
    }

    /// Searches the multiples of common bases for the fewest edges within a limit of over-allocation, or for any table at all.
    fn search(&mut self, most_over_ppm: u64, work: u64) {
        let work = work.min(self.left);
        let mut search = Search::new(&self.requests, self.costs, most_over_ppm, work);
        if let Some(best) = &self.best
            && best.over_ppm <= most_over_ppm
        {
            search.below(&best.table);
        }
        let any = self.any;
        search.run(|table| match self.consider(table) {
            false => Found::Useless,
            true if any => Found::Enough,
            true => Found::Good,
        });
        let spent = work - search.work;
        self.left = self.left.saturating_sub(spent);
    }

    /// Tries small tables whose slots are not strictly periodic.
    fn try_cyclic(&mut self) {
        let mut work = WORK_OF_CYCLIC.min(self.left);
        self.left -= work;
        let (requests, costs) = (self.requests.clone(), self.costs);
        cyclic::tables(&requests, costs, &mut work, |table| self.consider(table));
        self.left += work;
    }

    /// Nothing is within the limit: bisects the limit that something is within.
    fn tighten(&mut self) {
        let mut least = u64::from(self.objective.most_over_ppm);
        for _ in 0..TIGHTENINGS {
            let Some(over_ppm) = self.best.as_ref().map(|best| best.over_ppm) else {
                return;
            };
            let middle = least + over_ppm.saturating_sub(least) / 2;
            self.search(middle, WORK);
            if self
                .best
                .as_ref()
                .is_some_and(|best| best.over_ppm > middle)
            {
                least = middle;
            }
        }
    }

    /// Keeps a table if it fits, keeps every promise, and is the best so far; whether it does and is.
    fn consider(&mut self, table: SlotTable) -> bool {
        let looked_at = table.slots().len() * (self.requests.len() + 1);
        self.left = self.left.saturating_sub(looked_at as u64);
        if !self.costs.allow(&table) {
            return false;
        }
        let judged = Judged::new(table, &self.requests);
        let best = self.best.as_ref();
        let better = best.is_none_or(|best| judged.is_better(best, self.objective));
        let kept = better && judged.table.keeps(&self.requests);
        if kept {
            self.best = Some(judged);
        }
        kept
    }
}
