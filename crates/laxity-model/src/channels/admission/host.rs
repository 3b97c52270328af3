//! The admission of one host: its processor, its links and its buffers.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::num::NonZeroU32;

use super::resource::{Demand, Member, Resource, Short};
use super::{Costs, Traffic, packets};
use crate::Span;
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Budget, Overflow, Result};
use crate::channels::signalling::{ChannelId, Delays, Hold, LinkId, Place};
use crate::policy::multiclass::By;

/// To decide upon one channel a host looks at so many rows at the most ([`Budget`]), all its resources together, and at as many more for what it would grant instead, unless it is told otherwise: some 2 ms of work in all.
pub const MOST_ROWS: u64 = 1 << 20;

/// One of the resources of a host.
#[derive(Clone, Debug)]
pub struct Stage<S> {
    costs: Costs,
    link: Option<LinkId>,
    resource: Resource<S>,
}

/// What one version of a channel has on a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// Which.
    pub version: u32,
    /// Where it comes from and goes on.
    pub place: Place,
    /// What it may send.
    pub traffic: Traffic,
    /// In which time: at the hop before, and in all stages of this one together.
    pub delays: Delays,
    /// d of each stage that it goes through, which is told by its place in [`Host::stages`].
    pub stages: Vec<(usize, Span)>,
    /// So many buffers of a packet each.
    pub buffers: u64,
}

/// Of what a host has too little.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Lack {
    /// The resource of this stage.
    #[error("stage {stage}: {short}")]
    Stage {
        /// Which of [`Host::stages`].
        stage: usize,
        /// Of what.
        short: Short,
    },
    /// Buffers, of a packet each.
    #[error(
        "{needed} packet buffers are needed, {free} are free: {} are missing",
        needed.saturating_sub(*free)
    )]
    Buffers {
        /// So many are needed.
        needed: u64,
        /// So many are free.
        free: u64,
    },
    /// There is no such link.
    #[error("there is no link of number {0}")]
    Link(LinkId),
    /// A number does not fit.
    #[error(transparent)]
    Overflow(#[from] Overflow),
}

/// The admission state of a host: a message goes through its stages one after the other, and is in its buffers meanwhile. What is granted is never more than there is.
///
/// Every channel goes through what was added by [`through`](Self::through), whether it begins, passes or ends here, and only those that go on over a link through what was added by [`over`](Self::over) for it.
#[derive(Clone, Debug)]
pub struct Host<S> {
    payload: NonZeroU32,
    horizon: Span,
    stages: Vec<Stage<S>>,
    buffers: u64,
    taken: u64,
    /// What it looks at to decide upon one channel.
    pub(super) rows: u64,
    /// All versions of each, in the order in which they were granted. Of most there is one.
    held: BTreeMap<ChannelId, Vec<Held>>,
}

/// All delays together.
pub(super) fn total(mut delays: impl Iterator<Item = Span>) -> Result<Span> {
    let sum = delays.try_fold(Span::ZERO, Span::checked_add);
    sum.ok_or(Overflow("a delay"))
}

/// How many buffers a channel takes of which there are these versions: its messages are as one of them says.
pub(super) fn most<'a>(versions: impl IntoIterator<Item = &'a Held>) -> u64 {
    let buffers = versions.into_iter().map(|held| held.buffers);
    buffers.max().unwrap_or(0)
}

impl Held {
    /// d of this stage; `None` where it does not go through that.
    pub(super) fn delay(&self, stage: usize) -> Option<Span> {
        let found = self.stages.iter().find(|(one, _)| *one == stage);
        found.map(|(_, delay)| *delay)
    }
}

impl<S> Stage<S> {
    /// What it takes.
    #[must_use]
    pub const fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Of which link it is; `None` where all channels go through it.
    #[must_use]
    pub const fn link(&self) -> Option<LinkId> {
        self.link
    }

    /// Who was admitted.
    #[must_use]
    pub const fn resource(&self) -> &Resource<S> {
        &self.resource
    }
}

impl<S: SupplyBound> Host<S> {
    /// Messages go in packets of so many bytes of payload (S); there are so many buffers of a packet each; hosts before this one send a message on no more than a horizon (h) before its logical arrival there, zero where they do not work ahead.
    #[must_use]
    pub const fn new(payload: NonZeroU32, buffers: u64, horizon: Span) -> Self {
        Self {
            payload,
            horizon,
            stages: Vec::new(),
            buffers,
            taken: 0,
            rows: MOST_ROWS,
            held: BTreeMap::new(),
        }
    }

    /// The same, which looks at so many rows ([`Budget`]) to decide upon a channel, and at as many more for what it would grant instead. A channel for which that is too little to be sure is refused. [`MOST_ROWS`], unless it is told otherwise.
    #[must_use]
    pub const fn looking_at(mut self, rows: u64) -> Self {
        self.rows = rows;
        self
    }

    /// For the decision upon one channel.
    pub(super) const fn budget(&self) -> Budget {
        Budget::of(self.rows)
    }

    /// With one more resource, behind those that are there, before there are channels: all go through it. `supply` is what there is of it, `by` how messages share it.
    ///
    /// # Errors
    ///
    /// A number does not fit.
    pub fn through(self, costs: Costs, supply: S, by: By) -> Result<Self> {
        self.with(None, costs, (supply, by))
    }

    /// The same, for those channels that go on over this link.
    ///
    /// # Errors
    ///
    /// A number does not fit.
    pub fn over(self, link: LinkId, costs: Costs, supply: S, by: By) -> Result<Self> {
        self.with(Some(link), costs, (supply, by))
    }

    fn with(mut self, link: Option<LinkId>, costs: Costs, (supply, by): (S, By)) -> Result<Self> {
        let resource = Resource::new(supply, by, costs.never_due(self.payload)?);
        self.stages.push(Stage {
            costs,
            link,
            resource,
        });
        Ok(self)
    }

    /// Bytes of payload of a packet at the most: S.
    #[must_use]
    pub const fn payload(&self) -> NonZeroU32 {
        self.payload
    }

    /// How long before its logical arrival here a hop before this one sends a message: h.
    #[must_use]
    pub const fn horizon(&self) -> Span {
        self.horizon
    }

    /// All stages, in the order in which messages go through them.
    #[must_use]
    pub fn stages(&self) -> &[Stage<S>] {
        &self.stages
    }

    /// How many packet buffers are taken, and how many there are.
    #[must_use]
    pub const fn buffers(&self) -> (u64, u64) {
        (self.taken, self.buffers)
    }

    /// All versions of a channel that have something here.
    #[must_use]
    pub fn held(&self, channel: ChannelId) -> &[Held] {
        self.held.get(&channel).map_or(&[], Vec::as_slice)
    }

    /// All channels that have something here, by name.
    pub fn channels(&self) -> impl Iterator<Item = (ChannelId, &[Held])> {
        let all = self.held.iter();
        all.map(|(channel, versions)| (*channel, versions.as_slice()))
    }

    /// What such traffic asks of a stage.
    ///
    /// # Errors
    ///
    /// A number does not fit.
    pub fn demand(&self, stage: usize, traffic: &Traffic) -> Result<Demand> {
        Ok(Demand {
            need: self.stages[stage].costs.need(traffic, self.payload)?,
            interval: traffic.interval(),
        })
    }

    /// What this version would have with the least delay of each stage; beside other versions of its channel one that serves them all, as messages may be as any of them says.
    ///
    /// # Errors
    ///
    /// [`Lack`].
    pub fn quote(
        &self,
        hold: Hold,
        place: Place,
        traffic: &Traffic,
        before: Span,
    ) -> Result<Held, Lack> {
        self.quote_within(hold, place, traffic, before, &self.budget())
    }

    fn quote_within(
        &self,
        hold: Hold,
        place: Place,
        traffic: &Traffic,
        before: Span,
        budget: &Budget,
    ) -> Result<Held, Lack> {
        let stages = self.least_delays(hold, place, traffic, budget)?;
        self.beside_others(hold, place, traffic, before, stages)
    }

    /// The same, if there is anything: who asks does not want to know why not.
    pub(super) fn would_hold(
        &self,
        hold: Hold,
        place: Place,
        traffic: &Traffic,
        before: Span,
        budget: &Budget,
    ) -> Option<Held> {
        let least = |stage| {
            let demand = self.merged(hold, stage, traffic).ok()?;
            let resource = &self.stages[stage].resource;
            Some((
                stage,
                resource.found_without(hold.channel, &demand, budget)?,
            ))
        };
        let stages: Option<Vec<(usize, Span)>> = self.way(place).ok()?.map(least).collect();
        let held = self.beside_others(hold, place, traffic, before, stages?);
        held.ok()
    }

    /// With these delays, if no other version of its channel has to be faster.
    fn beside_others(
        &self,
        hold: Hold,
        place: Place,
        traffic: &Traffic,
        before: Span,
        stages: Vec<(usize, Span)>,
    ) -> Result<Held, Lack> {
        for (stage, least) in &stages {
            let others = self.others(hold).filter_map(|held| held.delay(*stage));
            if let Some(asked) = others.min().filter(|asked| asked < least) {
                let least = *least;
                let (stage, short) = (*stage, Short::Delay { asked, least });
                return Err(Lack::Stage { stage, short });
            }
        }
        self.buffered(hold, place, traffic, before, stages)
    }

    /// Reserves what it would have, and tells it. A version that is there already has this then, and not what it had.
    ///
    /// # Errors
    ///
    /// [`Lack`]; nothing has changed then.
    pub fn grant(
        &mut self,
        hold: Hold,
        place: Place,
        traffic: &Traffic,
        before: Span,
    ) -> Result<Held, Lack> {
        let budget = self.budget();
        let held = self.quote_within(hold, place, traffic, before, &budget)?;
        self.keep(hold, held, &budget)
    }

    /// The same with this delay of each stage on its way, which is told by its place in [`stages`](Self::stages).
    ///
    /// # Errors
    ///
    /// [`Lack`]; nothing has changed then.
    pub fn grant_these(
        &mut self,
        hold: Hold,
        place: Place,
        traffic: &Traffic,
        before: Span,
        delay: impl Fn(usize) -> Span,
    ) -> Result<Held, Lack> {
        let stages = self.way(place)?.map(|stage| (stage, delay(stage)));
        let stages = stages.collect();
        let held = self.buffered(hold, place, traffic, before, stages)?;
        self.keep(hold, held, &self.budget())
    }

    fn keep(&mut self, hold: Hold, held: Held, budget: &Budget) -> Result<Held, Lack> {
        let mut versions: Vec<Held> = self.others(hold).cloned().collect();
        versions.push(held.clone());
        self.becomes(hold.channel, versions, budget)?;
        Ok(held)
    }

    /// The stages that a channel goes through.
    pub(super) fn way(&self, place: Place) -> Result<impl Iterator<Item = usize>, Lack> {
        if let Some(to) = place.to {
            // A processor that does nothing else while a frame is sent is the link as well.
            let serves =
                |stage: &Stage<S>| stage.link == Some(to) || matches!(stage.costs, Costs::Both(..));
            if !self.stages.iter().any(serves) {
                return Err(Lack::Link(to));
            }
        }
        let all = self.stages.iter().enumerate();
        let on_it = all.filter(move |(_, stage)| stage.link.is_none() || stage.link == place.to);
        Ok(on_it.map(|(stage, _)| stage))
    }

    /// Other versions of the same channel.
    pub(super) fn others(&self, hold: Hold) -> impl Iterator<Item = &Held> + Clone {
        let versions = self.held(hold.channel).iter();
        versions.filter(move |held| held.version != hold.version)
    }

    /// The least delay that a stage can grant this version, so that other versions of its channel have no longer one.
    pub(super) fn least_delay(
        &self,
        hold: Hold,
        stage: usize,
        traffic: &Traffic,
        budget: &Budget,
    ) -> Result<Span, Short> {
        let demand = self.merged(hold, stage, traffic)?;
        let resource = &self.stages[stage].resource;
        resource.least_delay_without(hold.channel, &demand, budget)
    }

    /// What all versions of its channel ask of a stage, with this one.
    fn merged(&self, hold: Hold, stage: usize, traffic: &Traffic) -> Result<Demand> {
        let mut others = self.others(hold).filter(|held| held.delay(stage).is_some());
        others.try_fold(self.demand(stage, traffic)?, |all, held| {
            Ok(all.or(&self.demand(stage, &held.traffic)?))
        })
    }

    /// The same of all stages on the way.
    pub(super) fn least_delays(
        &self,
        hold: Hold,
        place: Place,
        traffic: &Traffic,
        budget: &Budget,
    ) -> Result<Vec<(usize, Span)>, Lack> {
        let least = |stage| {
            let least = self.least_delay(hold, stage, traffic, budget);
            least
                .map(|least| (stage, least))
                .map_err(|short| Lack::Stage { stage, short })
        };
        self.way(place)?.map(least).collect()
    }

    /// With these delays, and the buffers that it needs for them: of a packet each, for ⌊W/I⌋ + 1 messages, where W = d′ + h + d from the hop before to the end of this one, and at
    /// the source (B_max − 1)·I + d.
    pub(super) fn buffered(
        &self,
        hold: Hold,
        place: Place,
        traffic: &Traffic,
        before: Span,
        stages: Vec<(usize, Span)>,
    ) -> Result<Held, Lack> {
        let own = total(stages.iter().map(|(_, delay)| *delay))?;
        let (ahead, window) = match place.from {
            None => (u64::from(traffic.burst().get() - 1), own),
            Some(_) => (0, total([before, self.horizon, own].into_iter())?),
        };
        let messages = traffic.messages_in(window);
        let messages = messages.and_then(|messages| messages.checked_add(ahead));
        let packets = u64::from(packets(traffic, self.payload).get());
        let needed = messages.and_then(|messages| messages.checked_mul(packets));
        let needed = needed.ok_or(Overflow("the buffers"))?;
        let free = self.buffers - self.taken + most(self.held(hold.channel));
        if needed > free {
            return Err(Lack::Buffers { needed, free });
        }
        Ok(Held {
            version: hold.version,
            place,
            traffic: *traffic,
            delays: Delays { before, own },
            stages,
            buffers: needed,
        })
    }

    /// What a channel with these versions is to a stage: as much as the most of them in all, and in the shortest time. `None` where none goes through it.
    pub(super) fn member(
        &self,
        channel: ChannelId,
        versions: &[Held],
        stage: usize,
    ) -> Result<Option<Member>> {
        let mut all: Option<Member> = None;
        for held in versions {
            let Some(delay) = held.delay(stage) else {
                continue;
            };
            let demand = self.demand(stage, &held.traffic)?;
            let (demand, delay) = match all {
                None => (demand, delay),
                Some(all) => (all.demand.or(&demand), all.delay.min(delay)),
            };
            all = Some(Member {
                channel,
                demand,
                delay,
            });
        }
        Ok(all)
    }

    /// A channel has these versions from now on, for which there are buffers, or all that it had.
    pub(super) fn becomes(
        &mut self,
        channel: ChannelId,
        versions: Vec<Held>,
        budget: &Budget,
    ) -> Result<(), Lack> {
        let all = self.held(channel).iter().chain(&versions);
        let mut stages: Vec<usize> = all.flat_map(|held| &held.stages).map(|one| one.0).collect();
        stages.sort_unstable();
        stages.dedup();
        let members = stages
            .into_iter()
            .map(|stage| Ok((stage, self.member(channel, &versions, stage)?)));
        let members: Vec<(usize, Option<Member>)> = members.collect::<Result<_>>()?;
        let mut before = Vec::with_capacity(members.len());
        for (stage, member) in members {
            match self.stages[stage].resource.becomes(channel, member, budget) {
                Ok(had) => before.push((stage, had)),
                Err(short) => {
                    for (stage, had) in before {
                        self.stages[stage].resource.restore(channel, had);
                    }
                    return Err(Lack::Stage { stage, short });
                }
            }
        }
        self.taken = self.taken - most(self.held(channel)) + most(&versions);
        match versions.is_empty() {
            true => self.held.remove(&channel),
            false => self.held.insert(channel, versions),
        };
        Ok(())
    }
}
