//! What a channel is at this host: made, changed and ended as signalling says.

use core::num::NonZeroU32;

use laxity_model::analysis::supply::SupplyBound;
use laxity_model::channels::admission::{Traffic, packets};
use laxity_model::channels::handler::{self, Late};
use laxity_model::channels::signalling::{ChannelId, Delays, Hold, Label, LinkId, Place};
use laxity_model::channels::source::{self, Excess};
use laxity_model::nif::urgency::Stated;
use laxity_model::{Instant, Span};

use super::super::path::{Ends, FarEnd, Full, Granted, Lane, Pace, Passes, PerLane, Queue, Relay};
use super::counts::EndCounts;
use super::event::{Event, Sent};
use super::setup::{Listens, Sends};
use super::{Here, Node, Wants};

/// What signalling holds for a channel, with all that admission knows of it.
#[derive(Clone, Copy, Debug)]
struct Share {
    hold: Hold,
    place: Place,
    /// Which host of the way this is.
    host: u8,
    delays: Delays,
    /// Of the version that is now.
    traffic: Traffic,
    /// Of all versions the shortest interval, the most packets of a message, and its most bytes.
    fastest: Traffic,
    packets: NonZeroU32,
    largest: u32,
    late: Late,
    /// Buffers of a packet each.
    buffers: u32,
    /// Within which time the handler has done with a message.
    processed: Span,
    /// While it changes, messages of now may be so much closer behind those of before, as hops before may have become faster.
    closer: Span,
}

impl<B: AsRef<[u8]>, S: SupplyBound> Node<B, S> {
    fn share(&self, channel: ChannelId, delays: Delays) -> Option<Share> {
        let host = self.signalling.admission();
        let payload = host.payload();
        let mut versions = self.signalling.agreed(channel);
        let (first, within) = versions.next()?;
        let mut share = Share {
            hold: first.hold,
            place: first.place,
            host: self.signalling.position(channel)?,
            delays,
            traffic: first.asked.traffic,
            fastest: first.asked.traffic,
            packets: packets(&first.asked.traffic, payload),
            largest: first.asked.traffic.largest().get(),
            late: late(first.asked.discard),
            buffers: 0,
            processed: delays.own,
            closer: Span::ZERO,
        };
        for (version, _) in versions {
            share.closer = within;
            let traffic = version.asked.traffic;
            share.hold = version.hold;
            share.late = late(version.asked.discard);
            share.traffic = traffic;
            if traffic.interval() < share.fastest.interval() {
                share.fastest = traffic;
            }
            share.packets = share.packets.max(packets(&traffic, payload));
            share.largest = share.largest.max(traffic.largest().get());
        }
        let held = host.held(channel);
        let buffers = held.iter().map(|held| held.buffers).max()?;
        share.buffers = u32::try_from(buffers).unwrap_or(u32::MAX);
        let now = held
            .iter()
            .find(|held| held.version == share.hold.version)?;
        let is_link = |stage: usize| host.stages()[stage].link().is_some();
        let processors = now.stages.iter().filter(|(stage, _)| !is_link(*stage));
        let processed: Span = processors.map(|(_, delay)| *delay).sum();
        if !processed.is_zero() && now.stages.iter().any(|(stage, _)| is_link(*stage)) {
            share.processed = processed.min(delays.own);
        }
        Some(share)
    }

    /// Signalling holds that for a channel from now on.
    pub(super) fn holds(
        &mut self,
        now: Instant,
        (channel, delays): (ChannelId, Delays),
        (label, next): (Label, Option<Label>),
    ) {
        // It may have ended meanwhile, which comes behind this.
        let Some(share) = self.share(channel, delays) else {
            return;
        };
        let made = match (share.place.from, share.place.to, next) {
            (None, Some(to), Some(next)) => self.begins(&share, label, (to, next)),
            (Some(from), Some(to), Some(next)) => self.passes(&share, label, from, (to, next)),
            (Some(from), None, _) => {
                self.ends(&share, label, from);
                Ok(())
            }
            _ => return,
        };
        self.labels.insert(channel, label);
        if made.is_err() {
            // More is there for a while than admission counts.
            let mut effects = std::mem::take(&mut self.effects);
            self.signalling.fails(now, channel, &mut effects);
            self.effects = effects;
        }
    }

    fn begins(
        &mut self,
        share: &Share,
        label: Label,
        (to, next): (LinkId, Label),
    ) -> Result<(), Full> {
        let Some(Wants::Sends(sends)) = self.wants.get(&share.hold.channel).copied() else {
            return Ok(());
        };
        let lanes = self.lanes(share, sends);
        let granted = granted(share, next);
        let way = &mut self.links[to.index()];
        if let Ok(Here::Begins { number, .. }) = self.table.get(label) {
            return way.out.settle_begin(*number, granted, lanes);
        }
        let number = way.out.begin(granted, lanes)?;
        way.ends[number as usize] = Some(label);
        self.put(label, Here::Begins { link: to, number });
        Ok(())
    }

    /// What polices a channel that begins here, and cuts its messages.
    fn lanes(&self, share: &Share, sends: Sends) -> PerLane<Option<Queue>> {
        let host = self.signalling.admission();
        let stated = share.traffic.stated(share.processed).ok();
        let lane = |stated, room, excess| {
            Some(Queue {
                source: source::Limits {
                    stated,
                    packets: packets(&share.traffic, host.payload()),
                    room: sends.room,
                    excess,
                },
                handler: handler::Limits {
                    packet_bytes: host.payload(),
                    packets: packets(&share.traffic, host.payload()),
                    room: NonZeroU32::new(room)?,
                    looks: self.looks,
                    early: self.links[share.place.to?.index()].early,
                    late: share.late,
                    costs: self.costs,
                },
                largest: sends.largest.max(share.largest),
            })
        };
        let due = stated.filter(|_| sends.is_due);
        [
            due.and_then(|stated| lane(stated, share.buffers, sends.excess)),
            lane(Stated::ANYTHING, self.best_effort, if_full(sends.excess)),
        ]
    }

    fn passes(
        &mut self,
        share: &Share,
        label: Label,
        from: LinkId,
        (to, next): (LinkId, Label),
    ) -> Result<(), Full> {
        let host = self.signalling.admission();
        let (payload, horizon) = (host.payload(), host.horizon());
        let passes = Passes {
            traffic: share.fastest,
            packets: share.packets,
            buffers: [share.buffers, self.best_effort],
            earliest: earliest(share, horizon),
            unseen: self.links[from.index()].unseen,
            closer: share.closer,
        };
        let granted = granted(share, next);
        let way = &mut self.links[to.index()];
        if let Ok(Here::Passes { number, .. }) = self.table.get(label) {
            return way.out.settle_pass(*number, granted, &passes);
        }
        let pace = Pace::new(&passes.traffic, passes.packets, passes.unseen);
        let relay = Relay::new(payload, passes.buffers, passes.earliest, pace);
        let number = way.out.pass(granted, relay)?;
        way.ends[number as usize] = Some(label);
        let here = Here::Passes {
            from,
            host: share.host,
            link: to,
            number,
        };
        self.put(label, here);
        Ok(())
    }

    fn ends(&mut self, share: &Share, label: Label, from: LinkId) {
        let channel = share.hold.channel;
        let Some(Wants::Listens(listens)) = self.wants.get(&channel).copied() else {
            return;
        };
        let ends = self.far_end(share, listens);
        let hold = share.hold;
        match self.table.get_mut(label) {
            Ok(Here::Ends { far, version, .. }) => {
                far.settle(ends);
                if std::mem::replace(version, hold.version) == hold.version {
                    return;
                }
            }
            _ => {
                let version = hold.version;
                let far = Box::new(FarEnd::new(ends));
                let here = Here::Ends {
                    from,
                    host: share.host,
                    far,
                    version,
                };
                self.put(label, here);
            }
        }
        self.events.push_back(Event::Listening { hold, end: label });
    }

    fn far_end(&self, share: &Share, listens: Listens) -> Ends {
        let host = self.signalling.admission();
        let largest = NonZeroU32::new(listens.largest.max(share.largest));
        let room = listens.room.get();
        let on_way = share.buffers.div_ceil(share.packets.get());
        let best_effort = if self.best_effort > 0 { room } else { 0 };
        Ends {
            traffic: share.traffic,
            packet_bytes: host.payload(),
            largest: largest.unwrap_or(NonZeroU32::MIN),
            buffers: [on_way.saturating_add(room), best_effort],
            delay: share.delays.own,
            earliest: earliest(share, host.horizon()),
            unseen: listens.unseen,
            host: share.host,
            late: share.late,
            patience: listens.patience,
        }
    }

    fn put(&mut self, label: Label, here: Here) {
        let before = self.table.insert(label, here);
        debug_assert!(matches!(before, Ok(None)), "a label is one channel's");
    }

    /// This host does nothing more for a channel.
    pub(super) fn frees(&mut self, channel: ChannelId) {
        self.wants.remove(&channel);
        let Some(label) = self.labels.remove(&channel) else {
            return;
        };
        self.timers.leave(label.index);
        let lanes = Lane::ALL.map(|lane| self.counts(label, lane));
        let came = lanes.iter().flatten().map(EndCounts::came).sum::<u64>();
        let Ok(here) = self.table.remove(label) else {
            return;
        };
        if let Here::Passes { from, .. } | Here::Ends { from, .. } = here {
            self.links[from.index()].counts.ended += came;
        }
        let (link, number) = match here {
            Here::Begins { link, number } | Here::Passes { link, number, .. } => (link, number),
            Here::Ends { .. } => return,
        };
        let (way, events) = (&mut self.links[link.index()], &mut self.events);
        way.ends[number as usize] = None;
        let tell = |sent: Sent<B>| events.push_back(sent.into());
        way.sends(tell, |out, effect| out.close(number, effect));
    }
}

fn granted(share: &Share, next: Label) -> Granted {
    Granted {
        next,
        delay: share.delays.own,
        late: share.late,
    }
}

/// No frame comes earlier before it is current here.
fn earliest(share: &Share, horizon: Span) -> Span {
    let before = share.delays.before.checked_add(horizon);
    before.unwrap_or(Span::MAX)
}

const fn late(discard: bool) -> Late {
    match discard {
        true => Late::Discard,
        false => Late::Deliver,
    }
}

/// What becomes of best effort for which there is no room: nothing of it is in excess.
const fn if_full(excess: Excess) -> Excess {
    match excess {
        Excess::Block | Excess::DropOldest => excess,
        Excess::Shape | Excess::Demote | Excess::DropNewest => Excess::DropNewest,
    }
}
