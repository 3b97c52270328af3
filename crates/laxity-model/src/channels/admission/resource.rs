//! The admission state of one resource.

use alloc::vec::Vec;

use super::grid::{Grid, Sure};
use super::members::Members;
use super::others::{Others, share};
use super::{Need, order};
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Doubt, Overflow, Result, Search, Task, edf};
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
        self.least_among(&self.all(), demand)
    }

    /// The same, were this channel not there.
    ///
    /// # Errors
    ///
    /// [`Short`]: none can be granted.
    pub fn least_delay_without(&self, channel: ChannelId, demand: &Demand) -> Result<Span, Short> {
        self.least_among(&self.without(channel)?, demand)
    }

    /// The same, if any can be granted: who asks does not want to know why not.
    pub(super) fn found_without(&self, channel: ChannelId, demand: &Demand) -> Option<Span> {
        self.found(&self.without(channel).ok()?, demand)
    }

    /// The same, had a channel that is there this delay, or this demand.
    pub(super) fn found_beside(&self, changed: &Member, demand: &Demand) -> Option<Span> {
        let had = self.members.get(changed.channel)?;
        self.found(&self.all().with(had, Some(*changed)).ok()?, demand)
    }

    /// Grants a channel this delay, or says why not.
    ///
    /// # Errors
    ///
    /// [`Short`]; nothing has changed then.
    pub fn admit(&mut self, member: Member) -> Result<(), Short> {
        if self.members.get(member.channel).is_some() {
            return Err(Short::Held);
        }
        let task = member.task()?;
        let place = match self.members.by() {
            By::Deadline => self.is_met_with(&task)?.then_some(0),
            By::Priority => {
                let tasks = self.all().tasks(Span::MAX)?;
                match order::place(&tasks, &task, self.never_due, &self.supply)? {
                    Search::Found((place, least)) if least <= member.delay => Some(place),
                    _ => None,
                }
            }
        };
        let place = place.ok_or_else(|| self.refused(&member))?;
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
        let tasks = self.all().tasks(Span::MAX).map_err(|_| NOTHING)?;
        let verdict = match self.members.by() {
            By::Deadline => edf::test_beside(&tasks, self.never_due, &self.supply)?,
            By::Priority => return order::is_met(&tasks, self.never_due, &self.supply),
        };
        Ok(verdict.is_schedulable())
    }

    fn all(&self) -> Others<'_> {
        Others::all(&self.members, &self.grid)
    }

    fn without(&self, channel: ChannelId) -> Result<Others<'_>, Short> {
        let all = self.all();
        match self.members.get(channel) {
            Some(had) => all.with(had, None),
            None => Ok(all),
        }
    }

    fn found(&self, others: &Others<'_>, demand: &Demand) -> Option<Span> {
        let (_, least) = self.search(others, demand).ok()?.found()?;
        Some(least)
    }

    fn least_among(&self, others: &Others<'_>, demand: &Demand) -> Result<Span, Short> {
        match self.search(others, demand)? {
            Search::Found((_, least)) => Ok(least),
            Search::None | Search::Unknown(Doubt::Sufficient) => {
                Err(self.short_of(others, demand)?)
            }
            Search::Unknown(doubt) => Err(Short::Unknown(doubt)),
        }
    }

    /// The place of a newcomer, and its least delay.
    fn search(&self, others: &Others<'_>, demand: &Demand) -> Result<Search<(usize, Span)>, Short> {
        let newcomer = demand.task(demand.interval)?;
        if self.members.by() == By::Priority {
            let tasks = others.tasks(Span::MAX)?;
            let found = order::place(&tasks, &newcomer, self.never_due, &self.supply);
            return Ok(found?);
        }
        let quick = self.search_until(others, demand)?;
        let found = match quick {
            Some(found) => found,
            None => {
                let tasks = others.tasks(Span::MAX)?;
                edf::least_deadline(&tasks, &newcomer, self.never_due, &self.supply)?
            }
        };
        Ok(match found {
            Search::Found(least) => Search::Found((0, least)),
            Search::None => Search::None,
            Search::Unknown(doubt) => Search::Unknown(doubt),
        })
    }

    /// The least delay, where the grid knows from when on all are in time; `None` where all have to be looked at.
    ///
    /// A newcomer waits at least for the longest region of all others: at its deadline that one blocks, or is due itself, and no region is longer than a message.
    fn search_until(
        &self,
        others: &Others<'_>,
        demand: &Demand,
    ) -> Result<Option<Search<Span>>, Short> {
        let region = others.longest_region().max(self.never_due);
        let Some(first) = region.checked_add(demand.need.cost) else {
            return Ok(None);
        };
        let first = self.supply.window_for(first)?;
        let newcomer = demand.task(first)?;
        let blocking = region.max(newcomer.longest_region()).as_nanos();
        Ok(
            match others.grid().looks(&newcomer, blocking, &self.supply) {
                Sure::MetAfter(0) => Some(Search::Found(first)),
                Sure::MetAfter(until) => {
                    let until = Span::from_nanos(until);
                    let tasks = others.tasks(until)?;
                    let blocking = others.longest_region_behind(until).max(self.never_due);
                    let found =
                        edf::least_deadline_until(&tasks, &newcomer, blocking, &self.supply, until);
                    // What takes too long, or does not fit, is left to the search that knows nothing.
                    found
                        .ok()
                        .filter(|found| !matches!(found, Search::Unknown(Doubt::TooLong)))
                }
                Sure::TooMuch if self.supply.is_attained() => Some(Search::None),
                Sure::TooMuch => Some(Search::Unknown(Doubt::Sufficient)),
                Sure::Nothing => None,
            },
        )
    }

    /// Whether all meet their deadlines with one more.
    fn is_met_with(&self, task: &Task) -> Result<bool, Short> {
        if let Some(is_met) = self.is_met_until(task)? {
            return Ok(is_met);
        }
        let mut tasks = self.all().tasks(Span::MAX)?;
        tasks.push(*task);
        let verdict = edf::test_beside(&tasks, self.never_due, &self.supply)?;
        Ok(verdict.is_schedulable())
    }

    /// The same, where the grid knows from when on all are in time; `None` where all have to be looked at.
    fn is_met_until(&self, task: &Task) -> Result<Option<bool>, Short> {
        let others = self.all();
        let region = others.longest_region().max(self.never_due);
        let region = region.max(task.longest_region()).as_nanos();
        Ok(match self.grid.looks(task, region, &self.supply) {
            Sure::MetAfter(0) => Some(true),
            Sure::MetAfter(until) => {
                let until = Span::from_nanos(until);
                let mut tasks = others.tasks(until)?;
                let mut blocking = others.longest_region_behind(until).max(self.never_due);
                match task.deadline() <= until {
                    true => tasks.push(*task),
                    false => blocking = blocking.max(task.longest_region()),
                }
                let is_met = edf::is_met_until(&tasks, blocking, &self.supply, until);
                // What does not fit is left to the test that knows nothing.
                is_met.ok().flatten()
            }
            Sure::TooMuch => Some(false),
            Sure::Nothing => None,
        })
    }

    /// A channel is this from now on, or not there, or stays as it is. Answers what it was. Who asks for no more than before is always granted, since what is met with more is with less; by priority it keeps its place.
    pub(super) fn becomes(
        &mut self,
        channel: ChannelId,
        member: Option<Member>,
    ) -> Result<Option<TakenOut>, Short> {
        let before = self.take_out(channel);
        let Some(member) = member else {
            return Ok(before);
        };
        let admitted = match &before {
            Some(before) if member.asks_no_more(&before.member) => self.eases(member, before.place),
            _ => self.admit(member),
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
    fn refused(&self, member: &Member) -> Short {
        let asked = member.delay;
        match self.least_delay(&member.demand) {
            Ok(least) => Short::Delay { asked, least },
            Err(short) => short,
        }
    }

    /// What is short where no delay will do.
    fn short_of(&self, others: &Others<'_>, demand: &Demand) -> Result<Short, Short> {
        let newcomer = demand.task(demand.interval)?;
        let rate = self.supply.rate();
        let is_too_much = others.grid().is_too_much(&newcomer, &self.supply) || {
            let mut tasks = others.tasks(Span::MAX)?;
            tasks.push(newcomer);
            rate.compare_sum(tasks.iter().map(share)).is_gt()
        };
        if is_too_much {
            let rate_ppm =
                u128::from(rate.numerator()) * 1_000_000 / u128::from(rate.denominator());
            return Ok(Short::Share {
                needed_ppm: share(&newcomer).ppm(),
                // A rate is at most one.
                free_ppm: rate_ppm.saturating_sub(others.grid().ppm()) as u64,
            });
        }
        let region = demand.need.region.as_nanos();
        let longest = crate::base::number::last_of(0, region, |region| {
            let need = Need {
                region: Service::from_nanos(region),
                ..demand.need
            };
            Ok::<_, Short>(matches!(
                self.search(others, &Demand { need, ..*demand })?,
                Search::Found(_)
            ))
        })?;
        Ok(Short::Region {
            region: demand.need.region,
            longest: Service::from_nanos(longest),
        })
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

#[cfg(test)]
mod tests;
