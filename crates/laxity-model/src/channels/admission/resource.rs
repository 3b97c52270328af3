//! The admission state of one resource.

use alloc::vec::Vec;

use super::grid::Grid;
use super::members::Members;
use super::others::Others;
use super::{Need, order};
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Budget, Doubt, Overflow, Result, Search, Task, edf};
use crate::channels::signalling::ChannelId;
use crate::policy::multiclass::By;
use crate::{Service, Span};

const NOTHING: Overflow = Overflow("a message of nothing");

/// What a channel asks of one resource.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Demand {
    /// What each message takes.
    pub need: Need,
    /// I: logical arrivals are no closer.
    pub interval: Span,
}

/// A channel that was admitted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Member {
    /// Which.
    pub channel: ChannelId,
    /// What it asks.
    pub demand: Demand,
    /// d: each of its messages is through this long after its logical arrival.
    pub delay: Span,
}

/// Why a resource does not grant what is asked, and what of it is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Short {
    /// With so short a delay somebody would be late.
    #[error(
        "a delay of {} is asked for, {} can be had: {} are missing",
        asked.beside(*least), least.beside(*asked), least.saturating_sub(*asked)
    )]
    Delay {
        /// What was asked for.
        asked: Span,
        /// What can be had.
        least: Span,
    },
    /// There is not so much of it in the long run.
    #[error(
        "a share of {needed_ppm} ppm is needed, {free_ppm} ppm are free: {} ppm are missing",
        needed_ppm.saturating_sub(*free_ppm)
    )]
    Share {
        /// The channel's share, in parts per million, rounded up.
        needed_ppm: u64,
        /// What is left, rounded down.
        free_ppm: u64,
    },
    /// Somebody there cannot wait for it, whatever its own delay is.
    #[error("it cannot be interrupted for {region}: a channel that is there can wait for {} at the most, {} less", longest, region.saturating_sub(*longest))]
    Region {
        /// It cannot be interrupted for so long.
        region: Service,
        /// The longest that would do; zero if none would.
        longest: Service,
    },
    /// It is not known whether it can be granted.
    #[error("it is not known whether it can be granted: {0}")]
    Unknown(Doubt),
    /// It is there already.
    #[error("a channel of this number is there already")]
    Held,
    /// It is not there.
    #[error("no channel of this number is there")]
    NotHeld,
    /// A number does not fit.
    #[error(transparent)]
    Overflow(#[from] Overflow),
}

/// One resource: a supply, how the messages of channels share it, and who was admitted. Whatever is asked of it, all who are admitted meet their deadlines.
///
/// The exact test decides. Before it lines on a grid of times say what is certain anyway: that there is too much, or from when on all are in time. Then only those are looked at who are due until then, often nobody.
#[derive(Clone, Debug)]
pub struct Resource<S> {
    supply: S,
    never_due: Service,
    members: Members,
    grid: Grid,
}

impl<S: SupplyBound> Resource<S> {
    /// With nobody there but those who are never due, and may be in the way for so long, once a busy window ([`Costs::never_due`](super::Costs::never_due)).
    #[must_use]
    pub fn new(supply: S, by: By, never_due: Service) -> Self {
        Self {
            supply,
            never_due,
            members: Members::new(by),
            grid: Grid::default(),
        }
    }

    /// Who was admitted: by delay, or by priority, the highest first.
    #[must_use]
    pub fn members(&self) -> impl ExactSizeIterator<Item = &Member> {
        self.members.iter()
    }

    /// For how long those who are never due may be in the way.
    #[must_use]
    pub const fn never_due(&self) -> Service {
        self.never_due
    }

    /// The least delay that can be granted, exactly: with a nanosecond less somebody could be late. By priority: at the highest place that there is for it.
    ///
    /// O(columns of the grid) where that answers, else O(n) a step, some ten steps; by priority O(n²).
    ///
    /// # Errors
    ///
    /// [`Short`]: none can be granted.
    pub fn least_delay(&self, demand: &Demand) -> Result<Span, Short> {
        self.least_among(&self.all(), demand, &Budget::default())
    }

    /// The same, were this channel not there, as one of several questions for which all together there is this budget: [`Doubt::TooLong`] where that is not enough.
    pub(super) fn least_delay_without(
        &self,
        channel: ChannelId,
        demand: &Demand,
        budget: &Budget,
    ) -> Result<Span, Short> {
        self.least_among(&self.without(channel, budget)?, demand, budget)
    }

    /// The same, if any can be granted: who asks does not want to know why not.
    pub(super) fn found_without(
        &self,
        channel: ChannelId,
        demand: &Demand,
        budget: &Budget,
    ) -> Option<Span> {
        self.found(&self.without(channel, budget).ok()?, demand, budget)
    }

    /// The same, had a channel that is there this delay, or this demand.
    pub(super) fn found_beside(
        &self,
        changed: &Member,
        demand: &Demand,
        budget: &Budget,
    ) -> Option<Span> {
        let had = self.members.get(changed.channel)?;
        let others = self.all().with(had, Some(*changed), budget).ok()?;
        self.found(&others, demand, budget)
    }

    /// Grants a channel this delay, or says why not.
    ///
    /// # Errors
    ///
    /// [`Short`]; nothing has changed then.
    pub fn admit(&mut self, member: Member) -> Result<(), Short> {
        self.admit_within(member, &Budget::default())
    }

    /// The same, as one of several questions for which all together there is this budget.
    fn admit_within(&mut self, member: Member, budget: &Budget) -> Result<(), Short> {
        if self.members.get(member.channel).is_some() {
            return Err(Short::Held);
        }
        let task = member.task()?;
        let place = match self.members.by() {
            By::Deadline => self.is_met_with(&task, budget)?.then_some(0),
            By::Priority => {
                let tasks = self.all().tasks(Span::MAX, budget)?;
                match order::place(&tasks, &task, self.never_due, &self.supply, budget)? {
                    Search::Found((place, least)) if least <= member.delay => Some(place),
                    _ => None,
                }
            }
        };
        let place = place.ok_or_else(|| self.refused(&member, budget))?;
        self.put_back(TakenOut { place, member });
        Ok(())
    }

    /// A channel is no longer there. Whether it was.
    pub fn remove(&mut self, channel: ChannelId) -> bool {
        self.take_out(channel).is_some()
    }

    /// Whether all who are there meet their deadlines, tested from scratch: it is always so.
    ///
    /// # Errors
    ///
    /// A number does not fit.
    pub fn is_met(&self) -> Result<bool> {
        let tasks = self.all().tasks(Span::MAX, &Budget::default());
        let tasks = tasks.map_err(|_| NOTHING)?;
        let verdict = match self.members.by() {
            By::Deadline => edf::test_beside(&tasks, self.never_due, &self.supply)?,
            By::Priority => return order::is_met(&tasks, self.never_due, &self.supply),
        };
        Ok(verdict.is_schedulable())
    }

    fn all(&self) -> Others<'_> {
        Others::all(&self.members, &self.grid)
    }

    fn without(&self, channel: ChannelId, budget: &Budget) -> Result<Others<'_>, Short> {
        let all = self.all();
        match self.members.get(channel) {
            Some(had) => all.with(had, None, budget),
            None => Ok(all),
        }
    }

    /// A channel is this from now on, or not there, or stays as it is. Answers what it was. Who asks for no more than before is always granted, without a look at anybody, since what is met with more is with less; by priority it keeps its place.
    pub(super) fn becomes(
        &mut self,
        channel: ChannelId,
        member: Option<Member>,
        budget: &Budget,
    ) -> Result<Option<TakenOut>, Short> {
        let before = self.take_out(channel);
        let Some(member) = member else {
            return Ok(before);
        };
        let admitted = match &before {
            Some(before) if member.asks_no_more(&before.member) => self.eases(member, before.place),
            _ => self.admit_within(member, budget),
        };
        match admitted {
            Ok(()) => Ok(before),
            Err(short) => {
                before.into_iter().for_each(|before| self.put_back(before));
                Err(short)
            }
        }
    }

    /// A channel is what it was before that.
    pub(super) fn restore(&mut self, channel: ChannelId, before: Option<TakenOut>) {
        self.take_out(channel);
        before.into_iter().for_each(|before| self.put_back(before));
    }

    /// Whether just these are there, in whatever order, nothing is kept of anybody else, and all meet their deadlines: reckoned from nothing.
    pub(super) fn agrees(&self, mut members: Vec<Member>) -> bool {
        let mut there: Vec<Member> = self.members().copied().collect();
        let mut again = (Members::new(self.members.by()), Grid::default());
        for (place, member) in there.iter().enumerate() {
            let Ok(task) = member.task() else {
                return false;
            };
            again.0.insert(place, *member);
            again.1.insert(&task);
        }
        for all in [&mut members, &mut there] {
            all.sort_unstable_by_key(|member| member.channel);
        }
        members == there
            && (&again.0, &again.1) == (&self.members, &self.grid)
            && self.is_met() == Ok(true)
    }

    fn eases(&mut self, member: Member, place: usize) -> Result<(), Short> {
        member.task()?;
        self.put_back(TakenOut { place, member });
        Ok(())
    }

    /// A channel goes that may come back.
    fn take_out(&mut self, channel: ChannelId) -> Option<TakenOut> {
        let (place, member) = self.members.remove(channel)?;
        let task = member.task();
        debug_assert!(task.is_ok(), "it was admitted");
        task.into_iter().for_each(|task| self.grid.remove(&task));
        Some(TakenOut { place, member })
    }

    /// It is at this place, where it has one, the others being as they were.
    fn put_back(&mut self, one: TakenOut) {
        let task = one.member.task();
        debug_assert!(task.is_ok(), "it was admitted");
        task.into_iter().for_each(|task| self.grid.insert(&task));
        self.members.insert(one.place, one.member);
    }

    /// Why this is refused, which is.
    fn refused(&self, member: &Member, budget: &Budget) -> Short {
        let asked = member.delay;
        match self.least_among(&self.all(), &member.demand, budget) {
            Ok(least) => Short::Delay { asked, least },
            Err(short) => short,
        }
    }
}

/// A channel and its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct TakenOut {
    place: usize,
    member: Member,
}

impl Demand {
    /// Of messages that are as either says, and never as both at once.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let (one, two) = (&self.need, &other.need);
        Self {
            need: Need {
                cost: one.cost.max(two.cost),
                region: one.region.max(two.region),
                last: one.last.min(two.last),
            },
            interval: self.interval.min(other.interval),
        }
    }

    fn task(&self, delay: Span) -> Result<Task, Short> {
        self.need
            .task(self.interval, delay)
            .map_err(|_| NOTHING.into())
    }
}

impl Member {
    /// Whether this asks for no more than another one, of anything.
    fn asks_no_more(&self, than: &Self) -> bool {
        self.delay >= than.delay && self.demand.or(&than.demand) == than.demand
    }

    pub(super) fn task(&self) -> Result<Task, Short> {
        self.demand.task(self.delay)
    }

    /// The longest for which it cannot be interrupted.
    pub(super) fn region(&self) -> Service {
        self.demand.need.region.min(self.demand.need.cost)
    }
}

mod search;
#[cfg(test)]
mod tests;
