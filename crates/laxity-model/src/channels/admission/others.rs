//! Those who are admitted to a resource, as they are asked about.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use super::grid::{Grid, Sure};
use super::members::Members;
use super::resource::{Member, Short};
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Budget, Doubt, Fraction, Result, Task};
use crate::channels::signalling::ChannelId;
use crate::policy::multiclass::By;
use crate::{Service, Span};

/// To look at a column of the grid, or to change it, takes as long as so many tasks in a search.
const COLUMN: u64 = 4;

/// To make a task ready for a search takes as long as to look at it so many times in one, among thousands.
const READY: u64 = 64;

/// Those who are there, but for a change of one of them.
pub(super) struct Others<'a> {
    members: &'a Members,
    /// Who, and what it is instead.
    changed: Option<(ChannelId, Option<Member>)>,
    grid: Cow<'a, Grid>,
    /// The longest region of all.
    region: Service,
}

impl<'a> Others<'a> {
    /// Nobody has changed.
    pub(super) fn all(members: &'a Members, grid: &'a Grid) -> Self {
        Self {
            members,
            changed: None,
            grid: Cow::Borrowed(grid),
            region: members.longest_region(),
        }
    }

    /// One is this instead of what it is, or is not there.
    pub(super) fn with(
        mut self,
        had: &Member,
        has: Option<Member>,
        budget: &Budget,
    ) -> Result<Self, Short> {
        self.counts_all(budget)?;
        allowed(budget, COLUMN * self.grid.columns())?;
        let grid = self.grid.to_mut();
        grid.remove(&had.task()?);
        if let Some(has) = has {
            grid.insert(&has.task()?);
        }
        self.changed = Some((had.channel, has));
        self.region = self.longest_region_behind(Span::ZERO);
        Ok(self)
    }

    pub(super) fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The longest region of all.
    pub(super) const fn longest_region(&self) -> Service {
        self.region
    }

    /// What the grid knows for certain ([`Grid::looks`]).
    pub(super) fn looks(
        &self,
        newcomer: &Task,
        blocking: u64,
        supply: &impl SupplyBound,
        budget: &Budget,
    ) -> Result<Sure, Short> {
        allowed(budget, COLUMN * self.grid.columns())?;
        Ok(self.grid.looks(newcomer, blocking, supply))
    }

    /// Counts a look at each.
    fn counts_all(&self, budget: &Budget) -> Result<(), Short> {
        allowed(budget, self.members.iter().len() as u64)
    }

    fn iter(&self) -> impl DoubleEndedIterator<Item = Member> {
        let one = |member: &Member| match self.changed {
            Some((channel, has)) if channel == member.channel => has,
            _ => Some(*member),
        };
        self.members.iter().filter_map(one)
    }

    /// Those whose delay is no more than this.
    pub(super) fn tasks(&self, until: Span, budget: &Budget) -> Result<Vec<Task>, Short> {
        self.counts_all(budget)?;
        // By delay, as far as nobody has changed.
        let is_sorted = self.members.by() == By::Deadline && self.changed.is_none();
        let is_behind = |member: &Member| member.delay > until;
        let all = self.iter().take_while(|one| !(is_sorted && is_behind(one)));
        let due = all.filter(|member| !is_behind(member));
        due.map(|member| {
            allowed(budget, READY)?;
            member.task()
        })
        .collect()
    }

    /// The longest region of those whose delay is more than this.
    pub(super) fn longest_region_behind(&self, delay: Span) -> Service {
        if self.changed.is_none() {
            return self.members.longest_region_behind(delay);
        }
        let behind = self.iter().filter(|member| member.delay > delay);
        behind.map(|one| one.region()).max().unwrap_or_default()
    }
}

/// Counts so many rows.
fn allowed(budget: &Budget, rows: u64) -> Result<(), Short> {
    let is_allowed = budget.allows(rows);
    is_allowed
        .then_some(())
        .ok_or(Short::Unknown(Doubt::TooLong))
}

/// C / T.
pub(super) fn share(task: &Task) -> Fraction {
    // A period is not zero.
    Fraction::new(task.cost().as_nanos(), task.period().as_nanos()).unwrap_or(Fraction::ONE)
}
