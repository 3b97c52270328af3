//! The admission state of one resource.

use alloc::vec::Vec;

use super::grid::Grid;
use super::{Need, order};
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Doubt, Fraction, Overflow, Result, Search, Task, edf};
use crate::channels::signalling::ChannelId;
use crate::policy::multiclass::By;
use crate::{Service, Span};

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
#[derive(Clone, Debug)]
pub struct Resource<S> {
    supply: S,
    by: By,
    never_due: Service,
    /// By delay, or by priority, the highest first.
    members: Vec<Member>,
    /// The same as tasks.
    tasks: Vec<Task>,
    grid: Grid,
    /// The longest region of all.
    region: Service,
}

impl<S: SupplyBound> Resource<S> {
    /// With nobody there but those who are never due, and may be in the way for so long, once a busy window ([`Costs::never_due`](super::Costs::never_due)).
    #[must_use]
    pub fn new(supply: S, by: By, never_due: Service) -> Self {
        Self {
            supply,
            by,
            never_due,
            members: Vec::new(),
            tasks: Vec::new(),
            grid: Grid::default(),
            region: Service::ZERO,
        }
    }

    /// Who was admitted: by delay, or by priority, the highest first.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// For how long those who are never due may be in the way.
    #[must_use]
    pub const fn never_due(&self) -> Service {
        self.never_due
    }

    /// The least delay that can be granted, exactly: with a nanosecond less somebody could be late. By priority: at the highest place that there is for it.
    ///
    /// O(n) a step, some ten steps; by priority O(n²).
    ///
    /// # Errors
    ///
    /// [`Short`]: none can be granted.
    pub fn least_delay(&self, demand: &Demand) -> Result<Span, Short> {
        self.least_among(&self.tasks, demand)
    }

    /// The same, were this channel not there.
    ///
    /// # Errors
    ///
    /// [`Short`]: none can be granted.
    pub fn least_delay_without(&self, channel: ChannelId, demand: &Demand) -> Result<Span, Short> {
        let Some(place) = self.find(channel) else {
            return self.least_delay(demand);
        };
        let mut others = self.tasks.clone();
        others.remove(place);
        self.least_among(&others, demand)
    }

    /// The same, had a channel that is there this delay, no shorter than its own, or this demand, no more than its own.
    ///
    /// # Errors
    ///
    /// [`Short`]: none can be granted.
    pub fn least_delay_beside(&self, changed: &Member, demand: &Demand) -> Result<Span, Short> {
        let place = self.find(changed.channel).ok_or(Short::NotHeld)?;
        let mut others = self.tasks.clone();
        others[place] = changed.task()?;
        if self.by == By::Deadline {
            others.sort_by_key(Task::deadline);
        }
        self.least_among(&others, demand)
    }

    /// Grants a channel this delay, or says why not. Most are granted by the grid, in O(n) with few steps.
    ///
    /// # Errors
    ///
    /// [`Short`]; nothing has changed then.
    pub fn admit(&mut self, member: Member) -> Result<(), Short> {
        if self.find(member.channel).is_some() {
            return Err(Short::Held);
        }
        let task = member.task()?;
        let place = match self.by {
            By::Deadline => self.place_of(&task),
            By::Priority => match order::place(&self.tasks, &task, self.never_due, &self.supply)? {
                Search::Found((place, least)) if least <= member.delay => place,
                _ => return Err(self.refused(&member)),
            },
        };
        if self.by == By::Deadline && !self.grid_accepts(&task) && !self.is_met_with(place, task)? {
            return Err(self.refused(&member));
        }
        self.put_back(TakenOut {
            place,
            member,
            task,
        });
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
        let verdict = match self.by {
            By::Deadline => edf::test_beside(&self.tasks, self.never_due, &self.supply)?,
            By::Priority => return order::is_met(&self.tasks, self.never_due, &self.supply),
        };
        Ok(verdict.is_schedulable())
    }

    fn find(&self, channel: ChannelId) -> Option<usize> {
        self.members
            .iter()
            .position(|member| member.channel == channel)
    }

    fn least_among(&self, others: &[Task], demand: &Demand) -> Result<Span, Short> {
        match self.search(others, demand)? {
            Search::Found((_, least)) => Ok(least),
            Search::None | Search::Unknown(Doubt::Sufficient) => Err(self.short_of(demand)?),
            Search::Unknown(doubt) => Err(Short::Unknown(doubt)),
        }
    }

    /// The place of a newcomer, and its least delay.
    fn search(&self, others: &[Task], demand: &Demand) -> Result<Search<(usize, Span)>, Short> {
        let newcomer = demand.task(demand.interval)?;
        Ok(match self.by {
            By::Priority => order::place(others, &newcomer, self.never_due, &self.supply)?,
            By::Deadline => {
                match edf::least_deadline(others, &newcomer, self.never_due, &self.supply)? {
                    Search::Found(least) => Search::Found((0, least)),
                    Search::None => Search::None,
                    Search::Unknown(doubt) => Search::Unknown(doubt),
                }
            }
        })
    }

    fn grid_accepts(&self, task: &Task) -> bool {
        let blocking = self.region.max(task.longest_region()).max(self.never_due);
        self.grid.accepts(task, blocking.as_nanos(), &self.supply)
    }

    fn is_met_with(&mut self, place: usize, task: Task) -> Result<bool> {
        self.tasks.insert(place, task);
        let verdict = edf::test_beside(&self.tasks, self.never_due, &self.supply);
        self.tasks.remove(place);
        Ok(verdict?.is_schedulable())
    }

    /// Where it has its place by deadline.
    fn place_of(&self, task: &Task) -> usize {
        self.tasks
            .partition_point(|one| one.deadline() <= task.deadline())
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
        let mut there = self.members.clone();
        for all in [&mut members, &mut there] {
            all.sort_unstable_by_key(|member| member.channel);
        }
        let mut grid = Grid::default();
        self.tasks.iter().for_each(|task| grid.insert(task));
        let tasks = self.members.iter().map(Member::task);
        let is_in_order = match self.by {
            By::Deadline => self.tasks.is_sorted_by_key(Task::deadline),
            By::Priority => true,
        };
        members == there
            && tasks.eq(self.tasks.iter().copied().map(Ok))
            && grid == self.grid
            && self.longest_region() == self.region
            && is_in_order
            && self.is_met() == Ok(true)
    }

    fn eases(&mut self, member: Member, before: usize) -> Result<(), Short> {
        let task = member.task()?;
        let place = match self.by {
            By::Deadline => self.place_of(&task),
            By::Priority => before,
        };
        self.put_back(TakenOut {
            place,
            member,
            task,
        });
        Ok(())
    }

    fn longest_region(&self) -> Service {
        let regions = self.tasks.iter().map(Task::longest_region);
        regions.max().unwrap_or_default()
    }

    /// A channel goes that may come back.
    fn take_out(&mut self, channel: ChannelId) -> Option<TakenOut> {
        let place = self.find(channel)?;
        let task = self.tasks.remove(place);
        self.grid.remove(&task);
        if task.longest_region() == self.region {
            self.region = self.longest_region();
        }
        Some(TakenOut {
            place,
            member: self.members.remove(place),
            task,
        })
    }

    /// It is at this place, where it has one, the others being as they were.
    fn put_back(&mut self, one: TakenOut) {
        self.grid.insert(&one.task);
        self.region = self.region.max(one.task.longest_region());
        self.members.insert(one.place, one.member);
        self.tasks.insert(one.place, one.task);
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
    fn short_of(&self, demand: &Demand) -> Result<Short, Short> {
        let share = |task: &Task| Fraction::new(task.cost().as_nanos(), task.period().as_nanos());
        let newcomer = demand.task(demand.interval)?;
        let own = share(&newcomer).unwrap_or(Fraction::ONE);
        let rate = self.supply.rate();
        let all = self.tasks.iter().chain([&newcomer]).filter_map(share);
        if rate.compare_sum(all).is_gt() {
            let held: u64 = self.tasks.iter().filter_map(share).map(Fraction::ppm).sum();
            let rate_ppm =
                u128::from(rate.numerator()) * 1_000_000 / u128::from(rate.denominator());
            return Ok(Short::Share {
                needed_ppm: own.ppm(),
                free_ppm: u64::try_from(rate_ppm)
                    .unwrap_or(u64::MAX)
                    .saturating_sub(held),
            });
        }
        let region = demand.need.region.as_nanos();
        let longest = crate::base::number::last_of(0, region, |region| {
            let need = Need {
                region: Service::from_nanos(region),
                ..demand.need
            };
            Ok::<_, Short>(matches!(
                self.search(&self.tasks, &Demand { need, ..*demand })?,
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
    task: Task,
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
            .map_err(|_| Overflow("a message of nothing").into())
    }
}

impl Member {
    /// Whether this asks for no more than another one, of anything.
    fn asks_no_more(&self, than: &Self) -> bool {
        self.delay >= than.delay && self.demand.or(&than.demand) == than.demand
    }

    fn task(&self) -> Result<Task, Short> {
        self.demand.task(self.delay)
    }
}
