//! One queue of a card: what was posted, what arrived, what has left, and when that wants an interrupt.

use std::collections::VecDeque;

use laxity_model::nif::link::{Left, Losses, Received, Stamp};
use laxity_model::{Instant, Span};

use super::card::Moderation;

pub(super) type Packet = Box<[u8]>;

/// Whose memory a packet was stored into, to whom memory is owed for it.
type Owner = Option<u64>;

/// A frame that was stored, or is on its way into memory.
#[derive(Debug)]
struct Stored {
    done: Instant,
    owner: Owner,
    received: Received<Packet>,
}

#[derive(Debug, Default)]
pub(super) struct Ring {
    pub(super) posted: VecDeque<Packet>,
    stored: VecDeque<Stored>,
    /// Memory of frames from when they were put onto the wire.
    left: VecDeque<(Instant, Packet)>,
    /// Frames of this queue that have not been put onto the wire.
    pub(super) waiting: usize,
    /// For each packet taken, in order, whose memory is to be posted next.
    pub(super) owed: VecDeque<Owner>,
    pub(super) is_masked: bool,
    /// How often the wire went down and its driver was told.
    pub(super) told: u64,
    pub(super) losses: Losses,
}

impl Ring {
    /// A frame that landed at `at` is in `memory` from `done` on.
    pub(super) fn store(
        &mut self,
        frame: &[u8],
        mut memory: Packet,
        (at, done): (Instant, Instant),
        (owner, early): (Owner, Option<u32>),
    ) {
        memory[..frame.len()].copy_from_slice(frame);
        let received = Received {
            memory,
            length: frame.len(),
            at,
            stamp: Stamp::Wire,
            left: Left::default(),
            early,
        };
        self.stored.push_back(Stored {
            done,
            owner,
            received,
        });
    }

    /// Takes the first packet that is in memory.
    pub(super) fn take(&mut self, now: Instant) -> Option<Received<Packet>> {
        if self.stored.front()?.done > now {
            return None;
        }
        let Stored {
            owner, received, ..
        } = self.stored.pop_front()?;
        self.owed.push_back(owner);
        Some(received)
    }

    pub(super) fn leave(&mut self, at: Instant, memory: Packet) {
        self.waiting -= 1;
        self.left.push_back((at, memory));
    }

    /// Memory of the first frame whose last bit has left.
    pub(super) fn sent(&mut self, now: Instant) -> Option<Packet> {
        if self.left.front()?.0 > now {
            return None;
        }
        self.left.pop_front().map(|(_, memory)| memory)
    }

    /// How many descriptors for sending are in use.
    pub(super) fn below(&self) -> usize {
        self.waiting + self.left.len()
    }

    /// Any memory that the queue holds.
    pub(super) fn reclaim(&mut self) -> Option<Packet> {
        let left = self.left.pop_front().map(|(_, memory)| memory);
        let stored = || self.stored.pop_front().map(|one| one.received.memory);
        left.or_else(stored).or_else(|| self.posted.pop_front())
    }

    /// When the queue's interrupt is due: when so many packets and frames are done as [`Moderation`] says, or the first of them has waited for so long.
    pub(super) fn due(&self, moderation: Moderation) -> Option<Instant> {
        if self.is_masked {
            return None;
        }
        let (mut stored, mut left) = (
            self.stored.iter().map(|one| one.done).peekable(),
            self.left.iter().map(|one| one.0).peekable(),
        );
        let mut merged = std::iter::from_fn(|| match (stored.peek(), left.peek()) {
            (Some(one), Some(other)) if other < one => left.next(),
            (Some(_), _) => stored.next(),
            (None, _) => left.next(),
        });
        let first = merged.next()?;
        let by_time = first
            .checked_add(moderation.longest)
            .unwrap_or(Instant::MAX);
        let by_count = match moderation.most {
            0 | 1 => Some(first),
            most => merged.nth(most as usize - 2),
        };
        Some(by_count.map_or(by_time, |at| at.min(by_time)))
    }
}

/// When a transfer ends that may begin now or when the one before it has ended.
pub(super) fn transfer(free_at: &mut Instant, now: Instant, takes: Span) -> Instant {
    let ends = (*free_at)
        .max(now)
        .checked_add(takes)
        .unwrap_or(Instant::MAX);
    *free_at = ends;
    ends
}
