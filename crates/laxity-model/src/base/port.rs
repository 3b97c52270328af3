//! Ports: bounded queues of what arrived, and when.

use alloc::collections::VecDeque;

use crate::Instant;

/// Something that arrived at a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// When it arrived. A port that only counts knows of the last one only.
    pub at: Instant,
    /// What whoever put it there says; zeros from a port that only counts.
    pub payload: [u64; 2],
}

/// What a port keeps of its arrivals.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PortKind {
    /// How many there are: a semaphore.
    Count {
        /// How many there are at first.
        initial: u32,
        /// There are never more than this; the next is dropped.
        most: u32,
    },
    /// Each arrival by itself, in order; one that finds no room is dropped.
    Queue {
        /// How many fit.
        capacity: u32,
    },
}

impl PortKind {
    /// How many arrivals it holds at most.
    pub const fn most(self) -> u32 {
        match self {
            Self::Count { most, .. } => most,
            Self::Queue { capacity } => capacity,
        }
    }
}

/// What became of a port's arrivals: arrived = taken + queued + dropped. What a counting port held at first has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PortUsage {
    /// How many arrived.
    pub arrived: u64,
    /// How many were taken.
    pub taken: u64,
    /// How many found the port full.
    pub dropped: u64,
    /// How many are still there.
    pub queued: u64,
}

impl PortUsage {
    /// Whether none was lost uncounted.
    pub const fn is_conserved(&self) -> bool {
        self.arrived == self.taken + self.dropped + self.queued
    }
}

/// A port in the hands of one owner: the definition of what a port does, and the one of hosts without threads.
#[derive(Clone, Debug)]
pub struct Port {
    kind: PortKind,
    queue: VecDeque<Arrival>,
    last: Instant,
    usage: PortUsage,
}

impl Port {
    /// A port as a program declares it.
    #[must_use]
    pub fn new(kind: PortKind) -> Self {
        let mut usage = PortUsage::default();
        if let PortKind::Count { initial, most } = kind {
            usage.arrived = initial.min(most).into();
            usage.queued = usage.arrived;
        }
        Self {
            kind,
            queue: VecDeque::new(),
            last: Instant::ZERO,
            usage,
        }
    }

    /// Something arrives; `false` if it was dropped because the port is full.
    #[inline]
    pub fn put(&mut self, arrival: Arrival) -> bool {
        self.usage.arrived += 1;
        let room = self.usage.queued < u64::from(self.kind.most());
        if room {
            self.usage.queued += 1;
            self.last = arrival.at;
            if let PortKind::Queue { .. } = self.kind {
                self.queue.push_back(arrival);
            }
        } else {
            self.usage.dropped += 1;
        }
        debug_assert!(self.usage.is_conserved(), "{:?}", self.usage);
        room
    }

    /// Takes what arrived first.
    #[inline]
    pub fn take(&mut self) -> Option<Arrival> {
        self.usage.queued = self.usage.queued.checked_sub(1)?;
        self.usage.taken += 1;
        debug_assert!(self.usage.is_conserved(), "{:?}", self.usage);
        match self.kind {
            PortKind::Queue { .. } => self.queue.pop_front(),
            PortKind::Count { .. } => Some(Arrival {
                at: self.last,
                payload: [0; 2],
            }),
        }
    }

    /// What became of its arrivals so far.
    pub const fn usage(&self) -> PortUsage {
        self.usage
    }
}
