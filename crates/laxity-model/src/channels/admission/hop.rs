//! One host or relay on a channel's way: its processor, its link and its buffers.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::num::NonZeroU32;

use super::resource::{Demand, Member, Resource, Short, TakenOut};
use super::{Costs, Traffic, packets};
use crate::Span;
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Overflow, Result};
use crate::policy::three_classes::By;

/// How messages come to a hop.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Arrival {
    /// From the application: up to a burst at once.
    AtSource,
    /// From the hop before, which sends each within this delay of its logical arrival there, and no more than a horizon before that.
    From {
        /// d of the hop before.
        delay: Span,
        /// h of the hop before; zero where it does not work ahead.
        horizon: Span,
    },
}

/// One of the resources of a hop.
#[derive(Clone, Debug)]
pub struct Stage<S> {
    costs: Costs,
    resource: Resource<S>,
}

/// What a channel has on a hop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// What it may send.
    pub traffic: Traffic,
    /// d of each stage.
    pub delays: Vec<Span>,
    /// So many buffers of a packet each.
    pub buffers: u64,
}

/// Where a hop is short, and of what.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Lack {
    /// The resource of this stage.
    #[error("stage {stage}: {short}")]
    Stage {
        /// Which, from 0.
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
    /// The channel is there already.
    #[error("a channel of this number is there already")]
    Held,
    /// The channel is not there.
    #[error("no channel of this number is there")]
    NotHeld,
    /// A number does not fit.
    #[error(transparent)]
    Overflow(#[from] Overflow),
}

/// The admission state of a host or relay: a message goes through its stages one after the other, and is in its buffers meanwhile. What is granted is never more than there is.
#[derive(Clone, Debug)]
pub struct Hop<S> {
    payload: NonZeroU32,
    stages: Vec<Stage<S>>,
    buffers: u64,
    taken: u64,
    held: BTreeMap<u64, Held>,
}

impl Costs {
    /// The admission state of a resource of these costs: `supply` is what there is of it; `by` is how messages share it.
    ///
    /// # Errors
    ///
    /// A number does not fit.
    pub fn stage<S: SupplyBound>(self, payload: NonZeroU32, supply: S, by: By) -> Result<Stage<S>> {
        Ok(Stage {
            costs: self,
            resource: Resource::new(supply, by, self.never_due(payload)?),
        })
    }
}

impl<S: SupplyBound> Stage<S> {
    /// What it takes.
    #[must_use]
    pub const fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Who was admitted.
    #[must_use]
    pub const fn resource(&self) -> &Resource<S> {
        &self.resource
    }
}

impl<S: SupplyBound> Hop<S> {
    /// Messages go in packets of so many bytes of payload (S) through these stages; there are so many buffers of a packet each.
    #[must_use]
    pub const fn new(payload: NonZeroU32, stages: Vec<Stage<S>>, buffers: u64) -> Self {
        Self {
            payload,
            stages,
            buffers,
            taken: 0,
            held: BTreeMap::new(),
        }
    }

    /// The stages, in the order in which messages go through them.
    #[must_use]
    pub fn stages(&self) -> &[Stage<S>] {
        &self.stages
    }

    /// How many packet buffers are taken, and how many there are.
    #[must_use]
    pub const fn buffers(&self) -> (u64, u64) {
        (self.taken, self.buffers)
    }

    /// What a channel has here.
    #[must_use]
    pub fn held(&self, channel: u64) -> Option<&Held> {
        self.held.get(&channel)
    }

    /// All channels that have something here, by number.
    pub fn channels(&self) -> impl Iterator<Item = (u64, &Held)> {
        self.held.iter().map(|(channel, held)| (*channel, held))
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

    /// The least delay that each stage can grant a newcomer of such traffic.
    ///
    /// # Errors
    ///
    /// The first stage that can grant none.
    pub fn least_delays(&self, traffic: &Traffic) -> Result<Vec<Span>, Lack> {
        let least = |(stage, of): (usize, &Stage<S>)| {
            let demand = self.demand(stage, traffic)?;
            of.resource
                .least_delay(&demand)
                .map_err(|short| Lack::Stage { stage, short })
        };
        self.stages.iter().enumerate().map(least).collect()
    }

    /// How many buffers such traffic needs where it has these delays: of a packet each, for ⌊W/I⌋ + 1 messages, where W = d′ + h′ + d from the hop before to the end of this one, and at
    /// the source (B_max − 1)·I + d.
    ///
    /// # Errors
    ///
    /// A number does not fit.
    pub fn buffers_for(&self, traffic: &Traffic, delays: &[Span], arrival: Arrival) -> Result<u64> {
        let sum = |one: Option<Span>, other: &Span| one?.checked_add(*other);
        let own = delays.iter().fold(Some(Span::ZERO), sum);
        let messages = match arrival {
            Arrival::AtSource => own.and_then(|own| {
                let ahead = u64::from(traffic.burst().get() - 1);
                traffic.messages_in(own)?.checked_add(ahead)
            }),
            Arrival::From { delay, horizon } => own.and_then(|own| {
                let window = own.checked_add(delay)?.checked_add(horizon)?;
                traffic.messages_in(window)
            }),
        };
        let packets = u64::from(packets(traffic, self.payload).get());
        messages
            .and_then(|messages| messages.checked_mul(packets))
            .ok_or(Overflow("the buffers"))
    }

    /// Reserves the least delay of each stage, and the buffers for it.
    ///
    /// # Errors
    ///
    /// [`Lack`]; nothing is reserved then.
    pub fn reserve(
        &mut self,
        channel: u64,
        traffic: &Traffic,
        arrival: Arrival,
    ) -> Result<&Held, Lack> {
        let delays = self.least_delays(traffic)?;
        self.reserve_these(channel, traffic, delays, arrival)
    }

    /// Reserves these delays, one for each stage, and the buffers for them.
    ///
    /// # Errors
    ///
    /// [`Lack`]; nothing is reserved then.
    pub fn reserve_these(
        &mut self,
        channel: u64,
        traffic: &Traffic,
        delays: Vec<Span>,
        arrival: Arrival,
    ) -> Result<&Held, Lack> {
        if self.held.contains_key(&channel) {
            return Err(Lack::Held);
        }
        let buffers = self.room(traffic, &delays, arrival)?;
        for (stage, delay) in delays.iter().enumerate().take(self.stages.len()) {
            let admitted = self
                .demand(stage, traffic)
                .map_err(Lack::from)
                .and_then(|demand| {
                    let member = Member {
                        channel,
                        demand,
                        delay: *delay,
                    };
                    let resource = &mut self.stages[stage].resource;
                    resource
                        .admit(member)
                        .map_err(|short| Lack::Stage { stage, short })
                });
            if let Err(lack) = admitted {
                for before in &mut self.stages[..stage] {
                    before.resource.remove(channel);
                }
                return Err(lack);
            }
        }
        self.taken += buffers;
        let held = Held {
            traffic: *traffic,
            delays,
            buffers,
        };
        Ok(self.held.entry(channel).or_insert(held))
    }

    /// Makes the delays of a channel longer by so much each (what is to be had of the slack, on the way back), and its buffers what it then needs.
    ///
    /// # Errors
    ///
    /// [`Lack`]; all is as it was then.
    pub fn settle(&mut self, channel: u64, more: &[Span], arrival: Arrival) -> Result<&Held, Lack> {
        let before = self.held.get(&channel).ok_or(Lack::NotHeld)?.clone();
        let longer = |(delay, more): (&Span, &Span)| delay.checked_add(*more);
        let delays: Option<Vec<Span>> = before.delays.iter().zip(more).map(longer).collect();
        let delays = delays.ok_or(Overflow("a delay"))?;
        let traffic = before.traffic;
        let buffers = self.room_for(
            self.buffers_for(&traffic, &delays, arrival)?,
            before.buffers,
        )?;
        for (stage, delay) in delays.iter().enumerate().take(self.stages.len()) {
            let relaxed = self.stages[stage].resource.relax(channel, *delay);
            relaxed.map_err(|short| Lack::Stage { stage, short })?;
        }
        self.taken = self.taken - before.buffers + buffers;
        let held = Held {
            traffic,
            delays,
            buffers,
        };
        self.held.insert(channel, held);
        self.held.get(&channel).ok_or(Lack::NotHeld)
    }

    /// Grants a channel that is there other traffic, with the least delays, or leaves it as it is.
    ///
    /// # Errors
    ///
    /// [`Lack`]; all is as it was then.
    pub fn replace(
        &mut self,
        channel: u64,
        traffic: &Traffic,
        arrival: Arrival,
    ) -> Result<&Held, Lack> {
        let before = self.take_out(channel).ok_or(Lack::NotHeld)?;
        if let Err(lack) = self.reserve(channel, traffic, arrival) {
            self.put_back(channel, before);
            return Err(lack);
        }
        self.held.get(&channel).ok_or(Lack::NotHeld)
    }

    /// Whatever a channel has here is free again. Whether it had anything.
    pub fn release(&mut self, channel: u64) -> bool {
        self.take_out(channel).is_some()
    }

    /// Everything a channel has here goes, and is to come back.
    pub(super) fn take_out(&mut self, channel: u64) -> Option<(Held, Vec<Option<TakenOut>>)> {
        let held = self.held.remove(&channel)?;
        self.taken -= held.buffers;
        let take_out = |stage: &mut Stage<S>| stage.resource.take_out(channel);
        Some((held, self.stages.iter_mut().map(take_out).collect()))
    }

    /// It is as it was, all else being as it was.
    pub(super) fn put_back(&mut self, channel: u64, (held, places): (Held, Vec<Option<TakenOut>>)) {
        self.taken += held.buffers;
        self.held.insert(channel, held);
        for (stage, place) in self.stages.iter_mut().zip(places) {
            place
                .into_iter()
                .for_each(|place| stage.resource.put_back(place));
        }
    }

    /// How many buffers a newcomer of such traffic needs with these delays, if there are so many.
    pub(super) fn room(
        &self,
        traffic: &Traffic,
        delays: &[Span],
        arrival: Arrival,
    ) -> Result<u64, Lack> {
        self.room_for(self.buffers_for(traffic, delays, arrival)?, 0)
    }

    /// So many buffers, where so many of them are the channel's already, if there are.
    const fn room_for(&self, needed: u64, own: u64) -> Result<u64, Lack> {
        let free = self.buffers - self.taken + own;
        if needed > free {
            return Err(Lack::Buffers { needed, free });
        }
        Ok(needed)
    }
}
