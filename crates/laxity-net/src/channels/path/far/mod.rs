//! A channel where it ends: from frames to messages, and of each whether it was in time.
//!
//! # What a far end can know
//!
//! From earliness alone it knows when a message was due by all that the hops before it saw: what waited in a host, whichever, is in it, and clocks need not agree. So a message that is late by that is late for certain, but for what wires take less than was declared. What nobody saw (a switch's queue, a frame that waited in a
//! kernel or card after its earliness was written) makes a message look earlier than it is, by [`unseen`](Ends::unseen) at the most over the whole way: one that is in time by more than that is in time for certain, and what is between is within the error.
//!
//! A frame says when it left, too, so where the relation of two clocks is known ([`Arrival`]) what the link between took unseen shows, and what is left of the error is how far the clocks are known: each host on the way adds what it does not know, and the smaller of that and what was stated counts.
//!
//! Who took too long it is told by the frame, where a host before knew it, or knows of itself. Where neither is so, and several hosts are before it, a frame that left the last of them late may have been made late by any: each counts what it [held up](super::Packets::held_up), which is what came in time and left late.
//!
//! That messages are lost is known from the next one that comes. Behind the last one nothing comes, so whoever wants to know of that has to be told.

mod assembly;

use core::num::NonZeroU32;

use assembly::{Assembly, Frame, Telling};
use laxity_model::channels::admission::{self, Traffic};
use laxity_model::channels::clocks::{Delivered, Place};
use laxity_model::channels::handler::Late;
use laxity_model::channels::reassembly::{Arrived, Why};
use laxity_model::{Instant, Span};

use super::{Arrival, Came, Ended, Lane, PerLane};
use crate::channels::frame::Data;

/// How a channel ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// What it may send.
    pub traffic: Traffic,
    /// S: bytes of each part of a message but the last, which may have fewer.
    pub packet_bytes: NonZeroU32,
    /// Bytes of the largest message that is put together, which may be more than is stated.
    pub largest: NonZeroU32,
    /// So many messages of each lane may be put together or wait for the application; a lane of none has no messages.
    pub buffers: PerLane<u32>,
    /// d of this host.
    pub delay: Span,
    /// No frame comes earlier before it is current here: the delay of the hop before, and its horizon.
    pub earliest: Span,
    /// What all links on the way together may take of a frame that no host sees, where clocks do not tell; [`Span::MAX`]: not known.
    pub unseen: Span,
    /// Which host of the way this is, from 1: so many are before it.
    pub host: u8,
    /// What becomes of what is late.
    pub late: Late,
    /// How long after it was due a message is given up that is not complete. With [`Late::Discard`] it is at once.
    pub patience: Span,
}

/// What became of a message that its application is to know, beside those that it takes. One event for each message that was late, and one for each that was lost.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// It was late, and it is told who took too long if that is known.
    Late {
        /// Which.
        message: u64,
        /// By so many nanoseconds at the least.
        by: u64,
        /// Who took too long.
        guilty: Option<Place>,
    },
    /// So many messages from this one on were lost.
    Lost {
        /// Which of the two lanes, each of which counts its own.
        lane: Lane,
        /// The first.
        first: u64,
        /// So many.
        count: u64,
        /// Why.
        why: Lost,
    },
}

/// Why messages were lost.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lost {
    /// Nothing of them was there when one behind them was complete, or given up.
    Missing,
    /// So many parts of it were there.
    Incomplete {
        /// So many.
        came: u32,
        /// Why no more was waited for.
        why: Why,
    },
}

/// What became of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stored {
    /// Its message is not complete.
    Stored,
    /// Its message is complete, and waits for the application.
    Complete,
    /// Its message is complete, late and not wanted.
    Discarded,
    /// It was there already.
    Doubled,
    /// A newer message is complete, or its own was given up.
    Stale,
    /// No message of the channel has such a part.
    Malformed,
    /// All buffers are with messages that are complete, or newer.
    NoBuffer,
}

/// A message that is complete. Its buffer is taken until it is [given back](FarEnd::give_back).
#[derive(PartialEq, Eq, Debug)]
pub struct Received {
    /// Which lane it came by.
    pub lane: Lane,
    /// Which of the lane's messages, from 0.
    pub message: u64,
    /// So many are missing between the one that was complete before and it.
    pub gap: u64,
    /// Whether it was in time, and what was left then; `None`: it was never due.
    pub delivered: Option<Delivered>,
    buffer: u32,
    length: usize,
}

/// A channel where it ends. Nothing is allocated after it is made.
#[derive(Debug)]
pub struct FarEnd {
    ends: Ends,
    /// S, N of a stated message, and room for one of the largest, in bytes.
    size: usize,
    packets: u32,
    room: usize,
    lanes: PerLane<Option<Assembly>>,
    came: PerLane<Came>,
}

impl FarEnd {
    /// With nothing received.
    #[must_use]
    pub fn new(ends: Ends) -> Self {
        let most = ends.largest.get().div_ceil(ends.packet_bytes.get());
        let most = NonZeroU32::new(most).unwrap_or(NonZeroU32::MIN);
        let size = ends.packet_bytes.get() as usize;
        let room = size * most.get() as usize;
        let lane =
            |buffers| NonZeroU32::new(buffers).map(|buffers| Assembly::new(buffers, most, room));
        Self {
            ends,
            size,
            packets: admission::packets(&ends.traffic, ends.packet_bytes).get(),
            room,
            lanes: ends.buffers.map(lane),
            came: PerLane::default(),
        }
    }

    /// It ends in another way from now on. There are no fewer buffers and no smaller ones than before, and what is there stays.
    pub fn settle(&mut self, ends: Ends) {
        let next = Self::new(ends);
        let (size, room) = (next.size, self.room.max(next.room));
        let most = NonZeroU32::new((room / size) as u32).unwrap_or(NonZeroU32::MIN);
        let before = std::mem::replace(self, next);
        self.came = before.came;
        for (of, mut had) in self.lanes.iter_mut().zip(before.lanes) {
            if let (Some(of), Some(had)) = (of.as_mut(), had.as_mut()) {
                had.grow(of.places(), most, (before.room, room));
            }
            if had.is_some() {
                *of = had;
            }
        }
        self.room = room;
    }

    /// A frame of the channel came then. O(its bytes + buffers).
    pub fn arrived(
        &mut self,
        now: Instant,
        came: impl Into<Arrival>,
        data: &Data<'_>,
        event: impl FnMut(Event),
    ) -> Stored {
        let lane = Lane::of(data.best_effort);
        let frame = self.frame(&came.into(), data);
        let stored = self.stored((lane, now), frame, data, event);
        let came = &mut self.came[lane as usize];
        came.came += 1;
        came.disbelieved += u64::from(!frame.is_believed);
        came.count(stored);
        stored
    }

    fn stored(
        &mut self,
        (lane, now): (Lane, Instant),
        frame: Frame,
        data: &Data<'_>,
        event: impl FnMut(Event),
    ) -> Stored {
        let Some(assembly) = &mut self.lanes[lane as usize] else {
            return Stored::NoBuffer;
        };
        let is_last = data.part + 1 == data.parts.get();
        let length = data.payload.len();
        let is_cut_so = length == self.size || is_last && length < self.size;
        // A part may be as long as any, and yet longer than what is left of the largest message.
        let whole = usize::from(data.part) * self.size + length;
        if !is_cut_so || whole > self.ends.largest.get() as usize {
            return Stored::Malformed;
        }
        let due = match lane {
            Lane::RealTime => given_up_at(&self.ends, frame.logical),
            Lane::BestEffort => Instant::MAX,
        };
        let mut telling = Telling {
            lane,
            event,
            next: assembly.told,
        };
        let places = (self.size, self.room);
        match assembly.arrived(data, due, &mut telling) {
            Arrived::Stored(buffer) => {
                assembly.store(buffer as usize, data, &frame, places);
                Stored::Stored
            }
            Arrived::Complete(buffer) => {
                assembly.store(buffer as usize, data, &frame, places);
                assembly.complete(buffer, (now, frame), &self.ends, &mut telling)
            }
            Arrived::Doubled => Stored::Doubled,
            Arrived::Stale => Stored::Stale,
            Arrived::Malformed => Stored::Malformed,
            Arrived::NoBuffer => Stored::NoBuffer,
        }
    }

    /// When a frame's message is current here, and whether the frame was in time when it left.
    fn frame(&self, came: &Arrival, data: &Data<'_>) -> Frame {
        let (of_part, is_believed) = came.logical(data, self.ends.earliest);
        // A message that is too large is due as its last piece is.
        let (parts, part) = (u32::from(data.parts.get()), u32::from(data.part));
        let behind = (parts - 1) / self.packets - part / self.packets;
        let (messages, per) = self.ends.traffic.rate();
        let nanos = u128::from(behind) * u128::from(per.as_nanos());
        let nanos = nanos.div_ceil(messages.get().into());
        let later = u64::try_from(nanos).map_or(Span::MAX, Span::from_nanos);
        Frame {
            came: came.at,
            logical: of_part.at.checked_add(later).unwrap_or(Instant::MAX),
            error: of_part.error,
            late: of_part.late,
            left_late: data.earliness < 0,
            is_believed,
        }
    }

    /// What is not complete by now and was to be is given up. O(buffers).
    pub fn expire(&mut self, now: Instant, mut event: impl FnMut(Event)) {
        for (lane, assembly) in Lane::ALL.into_iter().zip(&mut self.lanes) {
            if let Some(assembly) = assembly {
                let next = assembly.told;
                let event = &mut event;
                assembly.expire(now, &mut Telling { lane, event, next });
            }
        }
    }

    /// When something is to be given up, if nothing comes before.
    #[must_use]
    pub fn expires(&self) -> Option<Instant> {
        let lanes = self.lanes.iter().flatten();
        let dues = lanes.filter_map(|lane| lane.reassembly.first_due());
        dues.filter(|due| *due < Instant::MAX).min()
    }

    /// The next message for the application: what keeps its promise before best effort, and in order.
    pub fn take(&mut self) -> Option<Received> {
        let mut lanes = self.lanes.iter_mut().flatten();
        lanes.find_map(|lane| {
            let first = lane.ready.pop_front()?;
            lane.ended.delivered += 1;
            Some(first)
        })
    }

    /// A message's bytes.
    #[must_use]
    pub fn bytes(&self, message: &Received) -> &[u8] {
        let lane = self.lanes[message.lane as usize].as_ref();
        lane.map_or(&[], |lane| {
            lane.bytes(message.buffer, message.length, self.room)
        })
    }

    /// The application has done with a message.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a message that was given back is nobody's"
    )]
    pub fn give_back(&mut self, message: Received) {
        let Received { lane, buffer, .. } = message;
        if let Some(lane) = &mut self.lanes[lane as usize] {
            lane.reassembly.give_back(buffer);
        }
    }

    /// What came of a lane's frames, and of its messages.
    #[must_use]
    pub fn counts(&self, lane: Lane) -> (Came, Ended) {
        let of = self.lanes[lane as usize].as_ref();
        let ended = of.map_or_else(Ended::default, |of| of.ended);
        (self.came[lane as usize], ended)
    }

    /// How many messages wait for the application.
    #[must_use]
    pub fn ready(&self, lane: Lane) -> usize {
        let lane = self.lanes[lane as usize].as_ref();
        lane.map_or(0, |lane| lane.ready.len())
    }
}

/// When a message is given up that is not complete, which is when it is too late for one that is.
fn given_up_at(ends: &Ends, logical: Instant) -> Instant {
    let patience = match ends.late {
        Late::Deliver => ends.patience,
        Late::Discard => Span::ZERO,
    };
    let due = logical.checked_add(ends.delay);
    let due = due.and_then(|due| due.checked_add(patience));
    due.and_then(|due| due.checked_add(Span::from_nanos(1)))
        .unwrap_or(Instant::MAX)
}

impl Came {
    const fn count(&mut self, stored: Stored) {
        let count = match stored {
            Stored::Stored => &mut self.stored,
            Stored::Complete | Stored::Discarded => &mut self.complete,
            Stored::Doubled => &mut self.doubled,
            Stored::Stale => &mut self.stale,
            Stored::Malformed => &mut self.malformed,
            Stored::NoBuffer => &mut self.no_buffer,
        };
        *count += 1;
    }
}
