//! A set of tasks, prepared to be asked for its demand many times.

use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::analysis::divisor::Divisor;
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Budget, Fraction, Overflow, Preemption, Result, Task};
use crate::{Service, Span};

/// How much a search may look at, in tasks: some 5 ms of work.
const BUDGET: usize = 1 << 22;

/// How much all searches of one call may look at, in tasks: some 0.5 s of work.
const WHOLE_BUDGET: usize = 1 << 28;

/// A task as its demand needs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) cost: u64,
    pub(super) period: Divisor,
    /// J + (b − 1)·T: a burst asks for what late jobs would ask for.
    pub(super) ahead: u64,
    /// b: so many jobs are due at once, the first time.
    pub(super) burst: u64,
    /// When its first job is due, if that is released as late as possible at the beginning of the window: D − J, plus the set's
    /// shift.
    pub(super) due: u64,
    pub(super) blocking: u64,
}

/// The set. Times count from `shift` before the beginning of the busy window, so that none is negative.
#[derive(Debug)]
pub(super) struct Set<'a> {
    pub(super) items: Vec<Item>,
    /// The most by which a job can be released after it was due; zero in any set that can be scheduled.
    pub(super) shift: u64,
    /// What somebody blocks for who is never due, and not one of the items.
    pub(super) beside: u64,
    /// What all searches together may look at, where that is not only limited for each of them.
    limit: Option<&'a Budget>,
}

/// Σ C/T lies between these, in units of 2⁻⁶⁴.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) least: u128,
    pub(super) most: u128,
}

impl<'a> Set<'a> {
    pub(super) fn new(tasks: &[Task]) -> Result<Self> {
        let lateness = |task: &Task| task.jitter().saturating_sub(task.deadline()).as_nanos();
        let shift = tasks.iter().map(lateness).max().unwrap_or(0);
        let mut items = Vec::with_capacity(tasks.len());
        for task in tasks {
            let jitter = task.jitter().as_nanos();
            let due =
                (task.deadline().as_nanos().checked_add(shift)).ok_or(Overflow("a deadline"))?;
            items.push(Item {
                cost: task.cost().as_nanos(),
                period: Divisor::new(task.period().as_nanos()),
                ahead: u64::try_from(task.ahead()).map_err(|_| Overflow("a burst"))?,
                burst: task.burst().get(),
                due: due - jitter,
                blocking: task.blocking().as_nanos(),
            });
        }
        Ok(Self {
            items,
            shift,
            beside: 0,
            limit: None,
        })
    }

    /// The same, of tasks whose regions block for all of their length.
    pub(super) fn with_whole_regions(tasks: &[Task]) -> Result<Self> {
        let mut set = Self::new(tasks)?;
        for (item, task) in set.items.iter_mut().zip(tasks) {
            item.blocking += u64::from(task.preemption() != Preemption::Anywhere);
        }
        Ok(set)
    }

    /// The same, where somebody who is never due may block for so long too.
    pub(super) const fn beside(mut self, never_due: Service) -> Self {
        self.beside = never_due.as_nanos();
        self
    }

    /// The same, asked as one of several questions for which all together there is this budget.
    pub(super) const fn within(mut self, limit: &'a Budget) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Whether a search may take one more step of O(n): it is counted.
    #[inline]
    pub(super) fn allows_step(&self) -> bool {
        let allows = |limit: &Budget| limit.allows_pass(self.items.len());
        self.limit.is_none_or(allows)
    }

    /// How many steps of O(n) a search may take.
    pub(super) fn budget(&self) -> usize {
        BUDGET / self.items.len().max(1)
    }

    /// How many steps of O(n) all searches of one call may take.
    pub(super) fn whole_budget(&self) -> usize {
        WHOLE_BUDGET / self.items.len().max(1)
    }

    /// Σ C/T.
    pub(super) fn load(&self) -> Load {
        let (mut least, mut costs) = (0_u128, 0_u128);
        for item in &self.items {
            let cost = u128::from(item.cost);
            // With a cost of more than a period the set is beyond any supply; no more than 2⁶⁴ tasks fit in memory.
            least += (cost * u128::from(item.period.reciprocal())).min(2 << 64);
            costs += cost;
        }
        Load {
            least,
            most: least + costs,
        }
    }

    /// How Σ C/T compares with the rate of a supply. Exact; `None` where that may not be looked at.
    pub(super) fn compare(&self, load: Load, rate: Fraction) -> Option<Ordering> {
        if is_whole(rate) {
            if load.least > 1 << 64 {
                return Some(Ordering::Greater);
            }
            if load.most < 1 << 64 {
                return Some(Ordering::Less);
            }
        }
        let share = |item: &Item| Fraction::new(item.cost, item.period.get());
        let shares = self.items.iter().filter_map(share);
        rate.compare_sum_quickly(shares.clone()).or_else(|| {
            let allows = |limit: &Budget| limit.allows_exact_sum(self.items.len());
            let is_allowed = self.limit.is_none_or(allows);
            is_allowed.then(|| rate.compare_sum(shares))
        })
    }

    /// The same, by first deadline, each with the longest blocking of itself and of all after it: what
    /// [`Self::demand_and_blocking`] needs. In any other order the branch there would be mispredicted once a task.
    pub(super) fn by_deadline(mut self) -> Self {
        if !self.items.is_sorted_by_key(|item| item.due) {
            self.items.sort_unstable_by_key(|item| item.due);
        }
        let mut blocking = self.beside;
        for item in self.items.iter_mut().rev() {
            blocking = item.blocking.max(blocking);
            item.blocking = blocking;
        }
        self
    }

    /// dbf(t), and the longest blocking by a task whose first deadline is after t, of a set [by deadline](Self::by_deadline).
    /// The sum, where the demand is not zero, does not fall as t grows: where a task no longer blocks, its whole cost joins
    /// the demand.
    ///
    /// The caller has asked [`Self::demand_fits`] for a time no earlier.
    #[inline]
    pub(super) fn demand_and_blocking(&self, time: u64) -> (u64, u64) {
        let mut demand = 0_u64;
        for item in &self.items {
            if item.due > time {
                return (demand, item.blocking);
            }
            let jobs = item.period.divide(time.wrapping_sub(item.due)).0;
            demand = demand.wrapping_add(jobs.wrapping_add(item.burst).wrapping_mul(item.cost));
        }
        (demand, self.beside)
    }

    /// The last time up to this by which a job is due, zero if there is none, of a set [by deadline](Self::by_deadline).
    pub(super) fn last_due_by(&self, time: u64) -> u64 {
        let due = self.items.iter().take_while(|item| item.due <= time);
        let since = due.map(|item| item.period.divide(time - item.due).1).min();
        since.map_or(0, |since| time - since)
    }

    /// The most that [`Self::demand_and_blocking`] and a whole region more can come to up to this time.
    pub(super) fn demand_fits(&self, time: u64) -> Result<u64> {
        let (mut demand, mut region) = (0_u128, self.beside);
        for item in &self.items {
            region = item.cost.max(region);
            if time >= item.due {
                let jobs = item.period.divide(time - item.due).0;
                let jobs = u128::from(jobs) + u128::from(item.burst);
                demand = (jobs.checked_mul(u128::from(item.cost)))
                    .and_then(|cost| demand.checked_add(cost))
                    .ok_or(Overflow("the demand"))?;
            }
        }
        let most = demand.checked_add(u128::from(region));
        most.and_then(|most| u64::try_from(most).ok())
            .ok_or(Overflow("the demand"))
    }

    /// rbf(t): what all jobs that are released in a window of this length, not zero, need.
    fn request(&self, window: u64) -> Option<u64> {
        let mut request = 0_u64;
        for item in &self.items {
            let jobs = item.period.divide((window - 1).checked_add(item.ahead)?).0;
            request = request.checked_add(jobs.checked_add(1)?.checked_mul(item.cost)?)?;
        }
        Some(request)
    }

    /// The longest that the supply can be busy with this set: the least L > 0 with rbf(L) ≤ sbf(L), `None` if it is not found.
    ///
    /// Blocking does not lengthen it, but for that by who is never due: any other is one of the set, and has been released in the window too. `ordering` is
    /// how Σ C/T compares with the rate of the supply.
    pub(super) fn busy_window<S: SupplyBound>(
        &self,
        supply: &S,
        ordering: Ordering,
    ) -> Result<Option<u64>> {
        if ordering == Ordering::Equal
            && is_whole(supply.rate())
            && (self.beside > 0 || self.items.iter().any(|item| item.ahead > 0))
        {
            // rbf(t) ≥ t + Σ A·C/T, and the blocking comes on top: it never ends.
            return Ok(None);
        }
        let mut length = 1;
        for _ in 0..self.budget() {
            if !self.allows_step() {
                break;
            }
            let request = self.request(length);
            let request = request.and_then(|request| request.checked_add(self.beside));
            let request = request.ok_or(Overflow("the busy window"))?;
            let end = supply.window_for(Service::from_nanos(request))?.as_nanos();
            if end <= length {
                return Ok(Some(length));
            }
            length = end;
        }
        Ok(None)
    }
}

/// Whether it is one, however it is written.
pub(super) const fn is_whole(rate: Fraction) -> bool {
    rate.numerator() == rate.denominator()
}

/// sbf, in plain numbers.
pub(super) fn least_service<S: SupplyBound>(supply: &S, window: u64) -> u64 {
    supply.least_service(Span::from_nanos(window)).as_nanos()
}

/// The least inverse of sbf, in plain numbers.
#[inline]
pub(super) fn window_for<S: SupplyBound>(supply: &S, service: u64) -> Result<u64> {
    Ok(supply.window_for(Service::from_nanos(service))?.as_nanos())
}
