//! The message queue of a channel at its sender, where each parameter that a channel states is policed by itself (§2.1, §3.1).
//!
//! * *Too many*: a message with which the sender breaks its promise is shaped, waits with its sender, is best effort, or is dropped: it, or the oldest one that waits.
//! * *Too large*: one of N packets, where N_max are stated, counts as ⌈N / N_max⌉ messages. Its part j is current at ℓ + (j − 1) / R_max and due the channel's delay later, and the next message's logical arrival follows: who sends too
//!   much at once has *decayed* deadlines (§3.1, §4.2).
//!
//! Nobody else's messages change by any of that.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::num::NonZeroU32;

use crate::Instant;
use crate::nif::urgency::{Due, Mark, Place, Stated, Urgency};

/// What becomes of a message with which the sender breaks its promise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Excess {
    /// It waits in the queue for its logical arrival, if there is room; else it is dropped.
    Shape,
    /// Its sender waits until it keeps the promise.
    Block,
    /// It goes as best effort, past the queue: it may overtake.
    Demote,
    /// It is dropped.
    DropNewest,
    /// The oldest that wait are dropped for it, and those behind them move up in the line: the queue has the last ones. Where none waits it is shaped.
    DropOldest,
}

/// What a sender may do, and what it may not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Rate and burst of messages, and within which time of its logical arrival each is due.
    pub stated: Stated,
    /// Packets of the largest message: N_max.
    pub packets: NonZeroU32,
    /// How many messages of so many packets may wait.
    pub room: NonZeroU32,
    /// What becomes of what is too much.
    pub excess: Excess,
}

/// What became of a message that was offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offered<M> {
    /// It waits.
    Waits,
    /// It is best effort.
    BestEffort(M),
    /// Its sender waits: until then, where it would keep the promise then, or until somebody leaves the queue.
    Blocked(M, Option<Instant>),
    /// It is dropped.
    Dropped(M),
}

/// How many messages came to what.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Offered, without those whose senders wait.
    pub offered: u64,
    /// Of these, taken from the queue and processed, or to be.
    pub taken: u64,
    /// Of these, waiting as such that broke the promise.
    pub shaped: u64,
    /// Of these, with more packets than stated.
    pub large: u64,
    /// Best effort.
    pub demoted: u64,
    /// Dropped when they were offered.
    pub dropped: u64,
    /// Dropped for one that came later.
    pub displaced: u64,
    /// How often a sender had to wait.
    pub blocked: u64,
}

/// A message that waits.
#[derive(Clone, Debug)]
struct Waiting<M> {
    message: M,
    parts: NonZeroU32,
    at: Instant,
    /// The line at its logical arrival.
    mark: Mark,
}

/// A part of a message that is to be processed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// When it is current, and when due.
    pub due: Due,
    /// How many of the message come behind it.
    pub left: u32,
}

/// The message queue of one channel. Nothing is allocated after it is made.
///
/// There may be thousands, each of which is at hand for one packet, and then not for a long time. So what a message goes through stands together, in two lines of the
/// cache where a message is a number of 32 bits, and the message that is next is there too: most wait alone.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Source<M> {
    urgency: Urgency,
    first: Option<Waiting<M>>,
    packets: NonZeroU32,
    room: NonZeroU32,
    /// How many parts those have that wait.
    parts: u32,
    excess: Excess,
    offered: u64,
    behind: Box<Behind<M>>,
}

/// What most messages have nothing to do with.
#[derive(Clone, Debug)]
struct Behind<M> {
    waiting: VecDeque<Waiting<M>>,
    /// Those that were offered are counted outside, and those that were taken are what is left of them.
    counts: Counts,
}

impl<M> Source<M> {
    /// With nothing in it.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let room = limits.room.get() as usize;
        Self {
            urgency: Urgency::new(limits.stated),
            first: None,
            packets: limits.packets,
            room: limits.room,
            parts: 0,
            excess: limits.excess,
            offered: 0,
            behind: Box::new(Behind {
                waiting: VecDeque::with_capacity(room - 1),
                counts: Counts::default(),
            }),
        }
    }

    /// A message of so many packets is offered. O(1), but for those that are dropped for it, which are handed out.
    #[inline]
    pub fn offer(
        &mut self,
        now: Instant,
        packets: NonZeroU32,
        message: M,
        displaced: impl FnMut(M),
    ) -> Offered<M> {
        let parts = self.parts_of(packets);
        let place = self.urgency.place(now, parts.get());
        if self.has_room(parts) && !place.exceeds() {
            return self.wait(now, parts, message, place);
        }
        self.police(now, parts, message, displaced)
    }

    /// What becomes of a message that breaks the promise, or finds no room.
    fn police(
        &mut self,
        now: Instant,
        parts: NonZeroU32,
        message: M,
        mut displaced: impl FnMut(M),
    ) -> Offered<M> {
        match self.excess {
            Excess::Shape if self.has_room(parts) => self.shape(now, parts, message),
            Excess::DropOldest if self.fits(parts) => {
                while !self.has_room(parts) || !self.urgency.keeps(now, parts.get()) {
                    let Some(oldest) = self.displace() else {
                        return self.shape(now, parts, message);
                    };
                    displaced(oldest);
                }
                let place = self.urgency.place(now, parts.get());
                self.wait(now, parts, message, place)
            }
            // What would never keep the promise is not waited for.
            Excess::Block if self.fits(parts) && self.urgency.keeps_from(parts.get()).is_some() => {
                self.behind.counts.blocked += 1;
                let until = self.urgency.keeps_from(parts.get());
                Offered::Blocked(message, until.filter(|from| now < *from))
            }
            Excess::Demote => {
                self.offered += 1;
                self.behind.counts.demoted += 1;
                Offered::BestEffort(message)
            }
            _ => {
                self.offered += 1;
                self.behind.counts.dropped += 1;
                Offered::Dropped(message)
            }
        }
    }

    /// The message that is next, and when its first part is current and due.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<(&M, Due)> {
        let first = self.first.as_ref()?;
        let due = self.urgency.since(first.mark).arrived(first.at, 1);
        Some((&first.message, due))
    }

    /// Takes the message that is next, with its parts, in order: all are handed out.
    #[inline]
    pub fn take(&mut self, mut part: impl FnMut(Part)) -> Option<M> {
        let first = self.pop()?;
        let mut line = self.urgency.since(first.mark);
        for left in (0..first.parts.get()).rev() {
            let due = line.arrived(first.at, 1);
            part(Part { due, left });
        }
        Some(first.message)
    }

    /// Other limits hold from now on, for those that wait, too: each has so many packets. None of them is dropped, and the next one's logical arrival stays.
    pub fn settle(&mut self, limits: Limits, packets: impl Fn(&M) -> NonZeroU32) {
        if let Some(first) = &self.first {
            self.urgency.back_to(first.mark);
        }
        self.urgency.states(limits.stated);
        (self.packets, self.room, self.excess) = (limits.packets, limits.room, limits.excess);
        self.parts = 0;
        let most = self.packets;
        for one in self.first.iter_mut().chain(&mut self.behind.waiting) {
            one.parts = packets(&one.message).div_ceil(most);
            self.parts = self.parts.saturating_add(one.parts.get());
            let place = self.urgency.place(one.at, one.parts.get());
            one.mark = place.mark();
            self.urgency.take(place);
        }
        let waiting = &mut self.behind.waiting;
        waiting.reserve((limits.room.get() as usize).saturating_sub(waiting.len()));
    }

    /// How many messages came to what: those that were offered were taken, demoted, dropped or displaced, or wait.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let counts = self.behind.counts;
        let gone = counts.demoted + counts.dropped + counts.displaced;
        Counts {
            offered: self.offered,
            taken: self.offered - gone - self.len() as u64,
            ..counts
        }
    }

    /// How many messages wait.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.behind.waiting.len()
    }

    /// Whether none waits.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    fn fits(&self, parts: NonZeroU32) -> bool {
        parts <= self.room
    }

    /// As how many messages one of so many packets counts.
    fn parts_of(&self, packets: NonZeroU32) -> NonZeroU32 {
        // Most are not too large, which is known without a division.
        if packets <= self.packets {
            NonZeroU32::MIN
        } else {
            packets.div_ceil(self.packets)
        }
    }

    fn has_room(&self, parts: NonZeroU32) -> bool {
        parts.get() <= self.room.get().saturating_sub(self.parts)
    }

    fn shape(&mut self, now: Instant, parts: NonZeroU32, message: M) -> Offered<M> {
        self.behind.counts.shaped += 1;
        let place = self.urgency.place(now, parts.get());
        self.wait(now, parts, message, place)
    }

    #[inline]
    fn wait(&mut self, at: Instant, parts: NonZeroU32, message: M, place: Place) -> Offered<M> {
        self.urgency.take(place);
        let waiting = Waiting {
            message,
            parts,
            at,
            mark: place.mark(),
        };
        if self.first.is_none() {
            self.first = Some(waiting);
        } else {
            self.behind.waiting.push_back(waiting);
        }
        self.parts += parts.get();
        self.offered += 1;
        if parts > NonZeroU32::MIN {
            self.behind.counts.large += 1;
        }
        Offered::Waits
    }

    /// The message that is next is no longer there.
    #[inline]
    fn pop(&mut self) -> Option<Waiting<M>> {
        let first = self.first.take()?;
        self.parts -= first.parts.get();
        if self.parts > 0 {
            self.first = self.behind.waiting.pop_front();
        }
        Some(first)
    }

    /// The oldest that waits goes, and the others move up in the line. O(n).
    fn displace(&mut self) -> Option<M> {
        let oldest = self.pop()?;
        self.urgency.back_to(oldest.mark);
        for one in self.first.iter_mut().chain(&mut self.behind.waiting) {
            let place = self.urgency.place(one.at, one.parts.get());
            one.mark = place.mark();
            self.urgency.take(place);
        }
        self.behind.counts.displaced += 1;
        Some(oldest.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_most_messages_go_through_is_in_two_lines_of_the_cache() {
        assert_eq!(size_of::<Source<u32>>(), 128);
    }
}
