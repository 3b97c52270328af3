//! Thirty-two queues and a bitmap that tells which of them hold somebody: every operation O(1), no allocation after the start.

use alloc::vec::Vec;

const LEVELS: usize = crate::Priority::COUNT;
const NOBODY: u16 = u16::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    next: u16,
    previous: u16,
}

/// Doubly linked queues of threads, one a level. A thread is in at most one of them.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    occupied: u32,
    first: [u16; LEVELS],
    last: [u16; LEVELS],
    links: Vec<Link>,
}

impl Levels {
    pub(super) fn new(threads: usize) -> Self {
        let link = Link {
            next: NOBODY,
            previous: NOBODY,
        };
        Self {
            occupied: 0,
            first: [NOBODY; LEVELS],
            last: [NOBODY; LEVELS],
            links: alloc::vec![link; threads],
        }
    }

    /// The highest level that holds somebody.
    #[inline]
    pub(super) fn highest(&self) -> Option<u8> {
        self.occupied.checked_ilog2().map(|level| level as u8)
    }

    /// Whether any of the levels in the mask holds somebody.
    #[inline]
    pub(super) fn any(&self, mask: u32) -> bool {
        self.occupied & mask != 0
    }

    #[inline]
    pub(super) fn holds(&self, level: u8) -> bool {
        self.any(1 << level)
    }

    #[inline]
    pub(super) fn first(&self, level: u8) -> Option<u16> {
        somebody(self.first[usize::from(level)])
    }

    #[inline]
    pub(super) fn after(&self, thread: u16) -> Option<u16> {
        somebody(self.links[usize::from(thread)].next)
    }

    #[inline]
    pub(super) fn push_last(&mut self, level: u8, thread: u16) {
        let queue = usize::from(level);
        let last = self.last[queue];
        self.links[usize::from(thread)] = Link {
            next: NOBODY,
            previous: last,
        };
        match somebody(last) {
            Some(last) => self.links[usize::from(last)].next = thread,
            None => self.first[queue] = thread,
        }
        self.last[queue] = thread;
        self.occupied |= 1 << level;
    }

    #[inline]
    pub(super) fn push_first(&mut self, level: u8, thread: u16) {
        let queue = usize::from(level);
        let first = self.first[queue];
        self.links[usize::from(thread)] = Link {
            next: first,
            previous: NOBODY,
        };
        match somebody(first) {
            Some(first) => self.links[usize::from(first)].previous = thread,
            None => self.last[queue] = thread,
        }
        self.first[queue] = thread;
        self.occupied |= 1 << level;
    }

    /// Takes a thread that is in the queue of this level out of it.
    #[inline]
    pub(super) fn remove(&mut self, level: u8, thread: u16) {
        let queue = usize::from(level);
        let Link { next, previous } = self.links[usize::from(thread)];
        match somebody(previous) {
            Some(previous) => self.links[usize::from(previous)].next = next,
            None => self.first[queue] = next,
        }
        match somebody(next) {
            Some(next) => self.links[usize::from(next)].previous = previous,
            None => self.last[queue] = previous,
        }
        if self.first[queue] == NOBODY {
            self.occupied &= !(1 << level);
        }
    }
}

fn somebody(thread: u16) -> Option<u16> {
    (thread != NOBODY).then_some(thread)
}
