//! What is sent next, and what is below the driver's reach.
//!
//! Liao, Tan, Campbell 1996, §2.2: in the simplest case first come, first served; else by some function of priority. Here the order is
//! a trait: `now` goes in, and which frame leaves comes out, or when to ask again. Whatever has been handed to the interface is out of
//! reach, and a more urgent frame waits for all of it: so at most so many may be there.

use alloc::boxed::Box;
use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::fmt;

use super::registry::ClientId;
use crate::{Instant, Priority};

/// A frame that waits or is below: its place in the list, another's when it is done.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FrameId(pub u32);

impl FrameId {
    /// As an index into a table with one entry a frame.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What is known of a frame that is to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Outgoing {
    /// Whose it is.
    pub client: ClientId,
    /// Bytes.
    pub length: usize,
    /// How urgent its client says it is.
    pub priority: Priority,
    /// When it should have left; [`Instant::MAX`]: whenever.
    pub due: Instant,
}

/// What an order says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Next {
    /// This one leaves; it waits no more.
    Frame(FrameId),
    /// None of those that wait leaves before then.
    NotBefore(Instant),
    /// None waits.
    Nothing,
}

/// In which order frames leave.
pub trait Order: Send {
    /// A frame begins to wait. Never more wait than the queue was made for, so this need not allocate.
    fn add(&mut self, frame: FrameId, outgoing: &Outgoing, now: Instant);

    /// Which one of them leaves next.
    fn next(&mut self, now: Instant) -> Next;

    /// None waits any more.
    fn clear(&mut self);
}

/// First come, first served.
#[derive(Clone, Debug)]
pub struct FirstCome(VecDeque<FrameId>);

impl FirstCome {
    /// For so many frames at the most.
    #[must_use]
    pub fn new(most: u32) -> Self {
        Self(VecDeque::with_capacity(most as usize))
    }
}

impl Order for FirstCome {
    fn add(&mut self, frame: FrameId, _: &Outgoing, _: Instant) {
        self.0.push_back(frame);
    }

    fn next(&mut self, _: Instant) -> Next {
        self.0.pop_front().map_or(Next::Nothing, Next::Frame)
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

/// The highest priority first; of the same, first come, first served.
#[derive(Clone, Debug)]
pub struct ByPriority {
    waiting: BinaryHeap<(Priority, Reverse<u64>, FrameId)>,
    came: u64,
}

impl ByPriority {
    /// For so many frames at the most.
    #[must_use]
    pub fn new(most: u32) -> Self {
        Self {
            waiting: BinaryHeap::with_capacity(most as usize),
            came: 0,
        }
    }
}

impl Order for ByPriority {
    fn add(&mut self, frame: FrameId, outgoing: &Outgoing, _: Instant) {
        self.came += 1;
        self.waiting
            .push((outgoing.priority, Reverse(self.came), frame));
    }

    fn next(&mut self, _: Instant) -> Next {
        let first = self.waiting.pop();
        first.map_or(Next::Nothing, |(_, _, frame)| Next::Frame(frame))
    }

    fn clear(&mut self) {
        self.waiting.clear();
    }
}

/// An order named a frame that does not wait. It has lost track, and no frame is sent by it any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotWaiting(pub FrameId);

impl fmt::Display for NotWaiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frame {} was to leave, which does not wait", self.0.0)
    }
}

impl core::error::Error for NotWaiting {}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Unused,
    Waiting,
    Below,
}

/// The frames of a driver from when they are queued until they have left.
pub struct Transmit<O: ?Sized = dyn Order> {
    order: Box<O>,
    stages: Box<[Stage]>,
    unused: Vec<FrameId>,
    /// The interface had no room for it: it goes first.
    again: Option<FrameId>,
    /// In the order in which they were handed over.
    below: VecDeque<FrameId>,
    reach: usize,
}

impl<O: Order + ?Sized> Transmit<O> {
    /// For so many frames at the most, of which no more than `reach`, at least 1, are ever below.
    #[must_use]
    pub fn new(order: Box<O>, most: u32, reach: usize) -> Self {
        let reach = reach.max(1);
        Self {
            order,
            stages: (0..most).map(|_| Stage::Unused).collect(),
            unused: (0..most).rev().map(FrameId).collect(),
            again: None,
            below: VecDeque::with_capacity(reach.min(most as usize)),
            reach,
        }
    }

    /// The order, for what it is told beside frames.
    pub const fn order(&mut self) -> &mut O {
        &mut self.order
    }

    /// How many are below.
    #[inline]
    pub fn below(&self) -> usize {
        self.below.len()
    }

    /// How many wait.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.stages.len() - self.unused.len() - self.below.len()
    }

    /// A frame begins to wait; `None` if no more can.
    #[inline]
    pub fn offer(&mut self, outgoing: &Outgoing, now: Instant) -> Option<FrameId> {
        let frame = self.unused.pop()?;
        self.stages[frame.index()] = Stage::Waiting;
        self.order.add(frame, outgoing, now);
        Some(frame)
    }

    /// Which frame goes below now; [`Next::Nothing`], too, while as many are there as may be.
    ///
    /// # Errors
    ///
    /// The order is none.
    #[inline]
    pub fn next(&mut self, now: Instant) -> Result<Next, NotWaiting> {
        if self.below.len() >= self.reach {
            return Ok(Next::Nothing);
        }
        let next = match self.again.take() {
            Some(frame) => Next::Frame(frame),
            None => self.order.next(now),
        };
        if let Next::Frame(frame) = next {
            match self.stages.get_mut(frame.index()) {
                Some(stage @ Stage::Waiting) => *stage = Stage::Below,
                _ => return Err(NotWaiting(frame)),
            }
            self.below.push_back(frame);
        }
        Ok(next)
    }

    /// The interface had no room for the frame that [`next`](Self::next) named last: it waits again, and goes first.
    pub fn put_back(&mut self) {
        if let Some(frame) = self.below.pop_back() {
            self.stages[frame.index()] = Stage::Waiting;
            self.again = Some(frame);
        }
    }

    /// Whether such a frame waits.
    #[inline]
    pub const fn is_put_back(&self) -> bool {
        self.again.is_some()
    }

    /// The interface will never take the frame that [`next`](Self::next) named last.
    #[inline]
    pub fn refused(&mut self) {
        let last = self.below.pop_back();
        self.done(last);
    }

    /// The order has let a frame go that waited: it will not leave.
    pub fn withdrawn(&mut self, frame: FrameId) {
        debug_assert_eq!(self.stages[frame.index()], Stage::Waiting);
        self.done(Some(frame));
    }

    /// The frame that is below for the longest time has left; `None` if none is there.
    #[inline]
    pub fn sent(&mut self) -> Option<FrameId> {
        let first = self.below.pop_front();
        self.done(first);
        first
    }

    /// No frame waits any more. Those below still do.
    pub fn clear(&mut self) {
        self.order.clear();
        self.again = None;
        for (number, stage) in (0..).zip(&mut self.stages) {
            if *stage == Stage::Waiting {
                *stage = Stage::Unused;
                self.unused.push(FrameId(number));
            }
        }
    }

    #[inline]
    fn done(&mut self, frame: Option<FrameId>) {
        if let Some(frame) = frame {
            self.stages[frame.index()] = Stage::Unused;
            self.unused.push(frame);
        }
    }
}
