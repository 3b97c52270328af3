//! The message queue of a channel at its sender, where each parameter that a channel states is policed by itself (§2.1, §3.1).
//!
//! * *Too many*: a message with which the sender breaks its promise is shaped, waits with its sender, is best effort, or is dropped: it, or the oldest one that waits.
//! * *Too large*: one of N packets, where N_max are stated, counts as ⌈N / N_max⌉ messages. Its part j is current at ℓ + (j − 1) / R_max and due the channel's delay later, and the next message's logical arrival follows: who sends too
//!   much at once has *decayed* deadlines (§3.1, §4.2).
//!
//! Nobody else's messages change by any of that.

use alloc::collections::VecDeque;
use core::num::NonZeroU32;

use crate::Instant;
use crate::nif::urgency::{Due, Mark, Stated, Urgency};

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
    parts: u32,
    at: Instant,
    /// The line before it.
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
#[derive(Clone, Debug)]
pub struct Source<M> {
    limits: Limits,
    urgency: Urgency,
    waiting: VecDeque<Waiting<M>>,
    /// How many parts those have.
    parts: u32,
    counts: Counts,
}

impl<M> Source<M> {
    /// With nothing in it.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let room = limits.room.get() as usize;
        Self {
            limits,
            urgency: Urgency::new(limits.stated),
            waiting: VecDeque::with_capacity(room),
            parts: 0,
            counts: Counts::default(),
        }
    }

    /// A message of so many packets is offered. O(1), but for those that are dropped for it, which are handed out.
    pub fn offer(
        &mut self,
        now: Instant,
        packets: NonZeroU32,
        message: M,
        mut displaced: impl FnMut(M),
    ) -> Offered<M> {
        let parts = packets.get().div_ceil(self.limits.packets.get());
        let has_room = self.has_room(parts);
        if has_room && self.urgency.keeps(now, parts) {
            return self.wait(now, parts, message);
        }
        match self.limits.excess {
            Excess::Shape if has_room => self.shape(now, parts, message),
            Excess::DropOldest if self.fits(parts) => {
                while !self.has_room(parts) || !self.urgency.keeps(now, parts) {
                    let Some(oldest) = self.displace() else {
                        return self.shape(now, parts, message);
                    };
                    displaced(oldest);
                }
                self.wait(now, parts, message)
            }
            // What would never keep the promise is not waited for.
            Excess::Block if self.fits(parts) && self.urgency.keeps_from(parts).is_some() => {
                self.counts.blocked += 1;
                let until = self.urgency.keeps_from(parts);
                Offered::Blocked(message, until.filter(|from| now < *from))
            }
            Excess::Demote => {
                self.counts.offered += 1;
                self.counts.demoted += 1;
                Offered::BestEffort(message)
            }
            _ => {
                self.counts.offered += 1;
                self.counts.dropped += 1;
                Offered::Dropped(message)
            }
        }
    }

    /// The message that is next, and when its first part is current and due.
    #[must_use]
    pub fn first(&self) -> Option<(&M, Due)> {
        let first = self.waiting.front()?;
        let due = self.urgency.since(first.mark).arrived(first.at, 1);
        Some((&first.message, due))
    }

    /// Takes the message that is next, with its parts, in order: all are handed out.
    pub fn take(&mut self, mut part: impl FnMut(Part)) -> Option<M> {
        let first = self.waiting.pop_front()?;
        let mut line = self.urgency.since(first.mark);
        for left in (0..first.parts).rev() {
            let due = line.arrived(first.at, 1);
            part(Part { due, left });
        }
        self.parts -= first.parts;
        self.counts.taken += 1;
        Some(first.message)
    }

    /// How many messages came to what: those that were offered were taken, demoted, dropped or displaced, or wait.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// How many messages wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn fits(&self, parts: u32) -> bool {
        parts <= self.limits.room.get()
    }

    fn has_room(&self, parts: u32) -> bool {
        parts <= self.limits.room.get() - self.parts
    }

    fn shape(&mut self, now: Instant, parts: u32, message: M) -> Offered<M> {
        self.counts.shaped += 1;
        self.wait(now, parts, message)
    }

    fn wait(&mut self, now: Instant, parts: u32, message: M) -> Offered<M> {
        let mark = self.urgency.mark();
        self.urgency.arrived(now, parts);
        self.waiting.push_back(Waiting {
            message,
            parts,
            at: now,
            mark,
        });
        self.parts += parts;
        self.counts.offered += 1;
        self.counts.large += u64::from(parts > 1);
        Offered::Waits
    }

    /// The oldest that waits goes, and the others move up in the line. O(n).
    fn displace(&mut self) -> Option<M> {
        let oldest = self.waiting.pop_front()?;
        self.urgency.back_to(oldest.mark);
        for one in &mut self.waiting {
            one.mark = self.urgency.mark();
            self.urgency.arrived(one.at, one.parts);
        }
        self.parts -= oldest.parts;
        self.counts.displaced += 1;
        Some(oldest.message)
    }
}
