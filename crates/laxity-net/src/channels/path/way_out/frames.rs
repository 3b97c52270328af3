//! The packets of a link's channels, from when they wait until they have left.

use core::num::NonZeroU16;

use laxity_model::channels::clocks::Logical;
use laxity_model::channels::handler::Late;
use laxity_model::nif::registry::ClientId;
use laxity_model::nif::transmit::{self, FrameId, Outgoing};
use laxity_model::nif::wire::Framing;
use laxity_model::{Instant, Priority, Span};

use super::{Channel, Effect, Handed, Kind, Leaves, NOT_OPEN, Next, WayOut};
use crate::channels::frame::{Data, Left};
use crate::channels::path::relay::{Forwarded, Kept};
use crate::channels::path::{Arrival, Lane};

/// A packet from when it waits until it has left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) channel: u32,
    pub(super) lane: Lane,
    pub(super) logical: Logical,
    /// Which host of its way this is.
    pub(super) host: u8,
    pub(super) was_late: bool,
    pub(super) message: u64,
    pub(super) part: u16,
    pub(super) parts: NonZeroU16,
    pub(super) length: u32,
    /// Where its bytes are.
    pub(super) place: u32,
}

/// When frames will have left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wire {
    pub(super) rate: u64,
    pub(super) overhead: usize,
    /// All that are out of reach will have left then.
    pub(super) idle_from: Instant,
}

impl Wire {
    /// When a frame with so many bytes of payload has left that is handed over now: its last bit, behind those that are out of reach.
    fn leaves(&self, now: Instant, payload: u32) -> Instant {
        let takes = Framing::Bare.takes(payload as usize + self.overhead, self.rate);
        let leaves = now.max(self.idle_from).checked_add(takes);
        leaves.unwrap_or(Instant::MAX)
    }
}

impl<B: AsRef<[u8]>> WayOut<B> {
    /// A frame of a channel that passes here came then. O(its bytes + log channels).
    ///
    /// # Panics
    ///
    /// No such channel is open.
    pub fn forward(
        &mut self,
        channel: u32,
        now: Instant,
        came: impl Into<Arrival>,
        data: &Data<'_>,
    ) -> Forwarded {
        let came = came.into();
        let Channel { granted, kind, .. } = self.channel(channel);
        let Kind::Passes(relay) = kind else {
            panic!("{NOT_OPEN}");
        };
        let Kept {
            place,
            logical,
            was_late,
        } = match relay.comes(now, &came, data, (granted.delay, granted.late)) {
            Ok(kept) => kept,
            Err(dropped) => return dropped,
        };
        self.wait(
            Waiting {
                channel,
                lane: Lane::of(data.best_effort),
                logical,
                host: came.link.number.saturating_add(1),
                was_late,
                message: data.message,
                part: data.part,
                parts: data.parts,
                length: data.payload.len() as u32,
                place,
            },
            now,
        );
        Forwarded::Queued
    }

    /// A frame of so many bytes, less those of a data frame beside its payload, begins to wait, of a number that [`own`](Self::own) gave; it is current then. Whether there was room.
    ///
    /// # Panics
    ///
    /// There is no such number.
    pub fn say(&mut self, own: u32, now: Instant, logical: Instant, length: u32) -> bool {
        let of = self.channel(own);
        assert!(matches!(of.kind, Kind::Own), "{NOT_OPEN}");
        let has_room = of.there < of.room;
        if has_room {
            let waiting = Waiting {
                channel: own,
                lane: Lane::RealTime,
                logical: Logical::here(logical),
                host: 0,
                was_late: false,
                message: 0,
                part: 0,
                parts: NonZeroU16::MIN,
                length,
                place: 0,
            };
            self.wait(waiting, now);
        }
        has_room
    }

    pub(super) fn wait(&mut self, waiting: Waiting, now: Instant) {
        let Waiting { channel, lane, .. } = waiting;
        let of = self.channel(channel);
        of.packets[lane as usize].queued += 1;
        of.there += 1;
        let due = match lane {
            Lane::RealTime => waiting.logical.at.checked_add(of.granted.delay),
            Lane::BestEffort => None,
        };
        let outgoing = Outgoing {
            client: ClientId(2 * channel + lane as u32),
            length: waiting.length as usize,
            priority: Priority::NORMAL,
            due: due.unwrap_or(Instant::MAX),
        };
        let frame = self.transmit.offer(&outgoing, now);
        let frame = frame.expect("each channel has its own packets");
        self.waiting[frame.index()] = Some(waiting);
    }

    /// [`leave`](Self::leave), where there are frames of channels only.
    pub fn take(
        &mut self,
        now: Instant,
        mut hand: impl FnMut(&Data<'_>) -> Handed,
        effect: impl FnMut(Effect<B>),
    ) -> Next {
        let hand = |leaves: Leaves<'_>| match leaves {
            Leaves::Data(data) => hand(&data),
            Leaves::Own(_) => Handed::Refused,
        };
        self.leave(now, hand, effect)
    }

    /// Chooses the frame that leaves now, and hands over what it says; those that would be late and are not wanted then are given up before. Its earliness is that of its last bit, as far as the link's rate tells. O(log channels), but for these.
    pub fn leave(
        &mut self,
        now: Instant,
        mut hand: impl FnMut(Leaves<'_>) -> Handed,
        mut effect: impl FnMut(Effect<B>),
    ) -> Next {
        loop {
            let next = self.transmit.next(now);
            let frame = match next.expect("the scheduler names only those that wait") {
                transmit::Next::Frame(frame) => frame,
                transmit::Next::NotBefore(at) => return Next::NotBefore(at),
                transmit::Next::Nothing => return Next::Nothing,
            };
            let wire = self.wire;
            let (waiting, of) = self.waiting(frame);
            let Waiting { channel, lane, .. } = waiting;
            let leaves = wire.leaves(now, waiting.length);
            let late = lane == Lane::RealTime && earliness(&waiting, of.granted.delay, leaves) < 0;
            let packets = &mut of.packets[lane as usize];
            if of.is_closed {
                packets.closed += 1;
            } else if late && of.granted.late == Late::Discard {
                packets.discarded += 1;
            } else {
                match hand(of.leaves(&waiting, leaves)) {
                    Handed::Taken => {
                        let packets = &mut of.packets[lane as usize];
                        packets.sent += 1;
                        packets.late += u64::from(late);
                        packets.held_up += u64::from(late && !waiting.was_late);
                        self.wire.idle_from = leaves;
                        return Next::Handed(channel, lane);
                    }
                    Handed::NoRoom => {
                        self.transmit.put_back();
                        return Next::NoRoom;
                    }
                    Handed::Refused => of.packets[lane as usize].refused += 1,
                }
            }
            self.transmit.refused();
            self.gone(frame, &mut effect);
        }
    }

    /// The frame that is out of reach for the longest time has left by now. Whether there was one.
    pub fn sent(&mut self, now: Instant, effect: impl FnMut(Effect<B>)) -> bool {
        let frame = self.transmit.sent();
        if self.transmit.below() == 0 {
            self.wire.idle_from = self.wire.idle_from.min(now);
        }
        if let Some(frame) = frame {
            self.gone(frame, effect);
        }
        frame.is_some()
    }

    /// A packet that is there, and its channel.
    pub(super) fn waiting(&mut self, frame: FrameId) -> (Waiting, &mut Channel<B>) {
        let waiting = self.waiting[frame.index()].expect("it waits or is below");
        let of = self.channels[waiting.channel as usize].as_mut();
        (waiting, of.expect("its channel is there as long as it is"))
    }

    /// A packet is no longer there.
    pub(super) fn gone(&mut self, frame: FrameId, mut effect: impl FnMut(Effect<B>)) {
        let (waiting, of) = self.waiting(frame);
        let Waiting {
            channel,
            lane,
            place,
            ..
        } = waiting;
        of.there -= 1;
        match &mut of.kind {
            Kind::Own => {}
            Kind::Passes(relay) => relay.gone(lane, place),
            Kind::Begins(lanes) => {
                if let Some(begins) = &mut lanes[lane as usize] {
                    begins.gone(place).into_iter().for_each(&mut effect);
                    if begins.handler.left() && !of.is_closed {
                        effect(Effect::Wakes(channel, lane));
                    }
                }
            }
        }
        self.waiting[frame.index()] = None;
        self.vacate(channel);
    }
}

impl<B: AsRef<[u8]>> Channel<B> {
    /// What a packet says that leaves then.
    fn leaves(&self, waiting: &Waiting, leaves: Instant) -> Leaves<'_> {
        let Waiting { lane, place, .. } = *waiting;
        let payload = match &self.kind {
            Kind::Own => return Leaves::Own(waiting.channel),
            Kind::Passes(relay) => relay.payload(lane, place, waiting.length),
            Kind::Begins(lanes) => (lanes[lane as usize].as_ref())
                .map_or(&[][..], |begins| begins.payload(place, waiting.part)),
        };
        let delay = self.granted.delay;
        let carried = match lane {
            Lane::RealTime => Some(waiting.logical.leaves(delay, leaves, waiting.host)),
            Lane::BestEffort => None,
        };
        Leaves::Data(Data {
            channel: self.granted.next,
            message: waiting.message,
            part: waiting.part,
            parts: waiting.parts,
            earliness: carried.map_or(0, |carried| carried.earliness),
            left: carried.map_or(Left::UNKNOWN, |carried| Left {
                at: carried.left,
                error: carried.error,
                late: carried.late,
            }),
            best_effort: lane == Lane::BestEffort,
            payload,
        })
    }
}

/// By how much a packet leaves before it is due here: ℓ + d − departure, in nanoseconds.
fn earliness(waiting: &Waiting, delay: Span, leaves: Instant) -> i64 {
    waiting.logical.laxity(delay, leaves)
}
