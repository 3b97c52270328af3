//! What a pool, its buffers and its driver share: a slot for each buffer, and stacks of the slots' numbers.
//!
//! The driver's thread outranks whoever uses the pool, perhaps on the same processor: so neither waits for the other. Only who has a
//! slot's number touches the slot, so that its lock, which is there to be safe, is always free.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use laxity_model::base::bell::Bell;
use laxity_model::base::stack::Stack;
use laxity_model::nif::exchange::Census;
use laxity_model::nif::link::{LinkError, Memory};

use super::buffer::{Sending, Unavailable};
use super::line::Line;
use super::message::Gathered;
use super::sleeper::Sleeper;
use crate::lock;

/// Where a buffer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Place {
    Vacant,
    Free,
    Given,
    Driver,
    Sending,
    Held,
}

/// What a sender says of a frame.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Frame {
    pub(crate) length: usize,
    pub(crate) sending: Sending,
    /// Frames of all clients are numbered in the order in which they were sent.
    pub(crate) number: u64,
    /// Whether a thread waits for it, and takes the buffer back.
    pub(crate) is_awaited: bool,
    /// Whether its driver is told of it later, with others.
    pub(crate) is_quiet: bool,
    /// Whether the end of its bytes is elsewhere, behind those in its buffer.
    pub(crate) is_gathered: bool,
}

/// What is at home in a slot.
struct Contents<M> {
    memory: Option<M>,
    frame: Frame,
    /// Of a frame that is gathered. It is let go of by who takes or gives the buffer next, so not by the driver.
    behind: Gathered<'static>,
    outcome: Option<Result<(), LinkError>>,
}

struct Slot<M> {
    contents: Mutex<Contents<M>>,
    place: AtomicU8,
}

impl<M> Slot<M> {
    fn lock(&self) -> MutexGuard<'_, Contents<M>> {
        lock(&self.contents)
    }

    fn move_to(&self, place: Place) {
        self.place.store(place as u8, Ordering::Relaxed);
    }
}

/// A pool of buffers, as all who have to do with it see it.
pub(crate) struct Shared<M> {
    slots: Box<[Slot<M>]>,
    vacant: Stack,
    free: Stack,
    given: Stack,
    outgoing: Stack,
    /// How many buffers it has, and how many of them leave as they come home: in the upper and the lower half.
    extent: AtomicU64,
    closed: AtomicBool,
    /// Whether a frame was gathered ever.
    gathers: AtomicBool,
    freed: Bell,
    sleeper: Sleeper,
    /// Where to announce what is to be sent; `None`: its memory is of no interface's kind.
    line: Option<(Arc<Line>, u32)>,
}

const OWED: u64 = u32::MAX as u64;
const ONE: u64 = 1 << 32;

impl<M: Memory> Shared<M> {
    /// A pool of these, that may grow to `most`; `None` if that is more than a pool may have.
    pub(crate) fn new(
        memories: Vec<M>,
        most: u32,
        sleeper: Sleeper,
        line: Option<(Arc<Line>, u32)>,
    ) -> Option<Arc<Self>> {
        let most = most.max(u32::try_from(memories.len()).ok()?);
        let contents = || Contents {
            memory: None,
            frame: Frame::default(),
            behind: Gathered::default(),
            outcome: None,
        };
        let slot = |_| Slot {
            contents: Mutex::new(contents()),
            place: AtomicU8::new(Place::Vacant as u8),
        };
        let shared = Self {
            vacant: Stack::new(most)?,
            slots: (0..most).map(slot).collect(),
            free: Stack::new(most)?,
            given: Stack::new(most)?,
            outgoing: Stack::new(most)?,
            extent: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            gathers: AtomicBool::new(false),
            freed: Bell::default(),
            sleeper,
            line,
        };
        (0..most).rev().for_each(|index| shared.vacant.push(index));
        shared.grow(memories);
        Some(Arc::new(shared))
    }

    fn slot(&self, index: u32) -> &Slot<M> {
        &self.slots[index as usize]
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    fn hold(self: &Arc<Self>, index: u32, place: Place) -> Held<M> {
        let (frame, held) = self.hold_frame(index, place);
        if frame.is_gathered {
            self.let_go(index);
        }
        held
    }

    /// Drops what was sent from elsewhere.
    fn let_go(&self, index: u32) {
        let mut contents = self.slot(index).lock();
        contents.frame.is_gathered = false;
        let behind = mem::take(&mut contents.behind);
        drop(contents);
        drop(behind);
    }

    fn hold_frame(self: &Arc<Self>, index: u32, place: Place) -> (Frame, Held<M>) {
        let slot = self.slot(index);
        let mut contents = slot.lock();
        let (frame, memory) = (contents.frame, contents.memory.take());
        drop(contents);
        slot.move_to(place);
        let pool = Arc::clone(self);
        let held = Held {
            memory,
            index,
            pool,
        };
        (frame, held)
    }

    pub(crate) fn take(self: &Arc<Self>) -> Result<Held<M>, Unavailable> {
        if self.is_closed() {
            return Err(Unavailable::Closed);
        }
        let index = self.free.pop().ok_or(Unavailable::NoneFree)?;
        Ok(self.hold(index, Place::Held))
    }

    pub(crate) fn wait<T>(
        &self,
        until: Option<laxity_model::Instant>,
        look: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        self.freed.wait_for(&self.sleeper, until, look)
    }

    /// One that was given, for the driver.
    pub(crate) fn given(self: &Arc<Self>) -> Option<Held<M>> {
        let index = self.given.pop()?;
        Some(self.hold(index, Place::Driver))
    }

    /// Gives one that is free; `None` if there is none.
    pub(crate) fn give_free(&self) -> Option<()> {
        if self.is_closed() {
            return None;
        }
        let index = self.free.pop()?;
        if self.gathers.load(Ordering::Relaxed) {
            self.let_go(index);
        }
        self.slot(index).move_to(Place::Given);
        self.show_given(index);
        Some(())
    }

    fn show_given(&self, index: u32) {
        self.given.push(index);
        // Whoever closes looks for what was given after closing, and we look whether it is closed after giving: one of us sees the other.
        if self.is_closed() {
            self.recall();
        }
    }

    fn show_outgoing(&self, index: u32, is_quiet: bool) {
        self.outgoing.push(index);
        // As with what is given.
        if self.is_closed() {
            self.recall_outgoing();
        } else if !is_quiet {
            self.announce();
        }
    }

    /// Tells the driver that frames wait.
    pub(crate) fn announce(&self) {
        if let Some((line, client)) = &self.line {
            line.announce(*client);
        }
    }

    fn recall(&self) {
        while let Some(index) = self.given.pop() {
            self.home(index);
        }
    }

    /// A buffer whose memory is in its slot comes home.
    fn home(&self, index: u32) {
        let slot = self.slot(index);
        let less = |extent: u64| (extent & OWED != 0).then(|| extent - 1 - ONE);
        let leaves = self.extent.load(Ordering::Relaxed) & OWED != 0
            && self
                .extent
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
                .is_ok();
        if leaves {
            let mut contents = slot.lock();
            let gone = (contents.memory.take(), mem::take(&mut contents.behind));
            drop(contents);
            slot.move_to(Place::Vacant);
            self.vacant.push(index);
            drop(gone);
        } else {
            slot.move_to(Place::Free);
            self.free.push(index);
        }
        self.freed.ring(&self.sleeper);
    }

    /// Takes these in, as far as there is room; what was to leave stays first. The memory that was not needed.
    pub(crate) fn grow(&self, memories: Vec<M>) -> Vec<M> {
        let stays = |extent: u64| (extent & OWED != 0).then(|| extent - 1);
        let mut surplus = Vec::new();
        for memory in memories {
            let stayed = self
                .extent
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, stays);
            let index = if stayed.is_ok() {
                None
            } else {
                self.vacant.pop()
            };
            if let Some(index) = index {
                self.slot(index).lock().memory = Some(memory);
                self.extent.fetch_add(ONE, Ordering::SeqCst);
                self.home(index);
            } else {
                surplus.push(memory);
            }
        }
        surplus
    }

    /// So many leave: at once, or as they come home.
    pub(crate) fn shrink(&self, buffers: u32) {
        let more = |extent: u64| {
            let stay = (extent >> 32).saturating_sub(extent & OWED);
            Some(extent + stay.min(buffers.into()))
        };
        // Always changed.
        let _ = self
            .extent
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        for index in self.free.take_all() {
            self.home(index);
        }
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.recall();
        self.recall_outgoing();
        self.freed.ring(&self.sleeper);
    }

    /// Frames that no driver will look for any more.
    fn recall_outgoing(&self) {
        for index in self.outgoing.take_all() {
            let is_awaited = self.slot(index).lock().frame.is_awaited;
            self.end(index, is_awaited, Err(LinkError::Gone));
        }
    }

    /// A frame is done, and its memory is in its slot.
    fn end(&self, index: u32, is_awaited: bool, outcome: Result<(), LinkError>) {
        if is_awaited {
            let slot = self.slot(index);
            slot.move_to(Place::Held);
            slot.lock().outcome = Some(outcome);
            self.freed.ring(&self.sleeper);
        } else {
            self.home(index);
        }
    }

    /// What is to be sent, for the driver: the last that was sent comes first.
    pub(crate) fn outgoing(self: &Arc<Self>) -> impl Iterator<Item = (Frame, Held<M>)> {
        let all = self.outgoing.take_all();
        all.map(|index| self.hold_frame(index, Place::Sending))
    }

    /// Waits for a frame that this thread sent, and takes its buffer back.
    pub(crate) fn wait_sent(self: &Arc<Self>, index: u32) -> (Held<M>, Result<(), LinkError>) {
        let outcome = self.wait(None, || self.slot(index).lock().outcome.take());
        // Without a limit of time the wait ends with an outcome.
        let outcome = outcome.unwrap_or(Err(LinkError::Gone));
        (self.hold(index, Place::Held), outcome)
    }

    pub(crate) fn census(&self) -> Census {
        let mut census = Census::default();
        for slot in &self.slots {
            match slot.place.load(Ordering::Relaxed) {
                place if place == Place::Free as u8 => census.free += 1,
                place if place == Place::Given as u8 => census.given += 1,
                place if place == Place::Driver as u8 => census.in_driver += 1,
                place if place == Place::Sending as u8 => census.sending += 1,
                place if place == Place::Held as u8 => census.held += 1,
                _ => {}
            }
        }
        census
    }
}

/// A buffer in somebody's hands: it comes home when they let go of it.
pub(crate) struct Held<M: Memory> {
    /// `None` only while its interface has it.
    memory: Option<M>,
    index: u32,
    pool: Arc<Shared<M>>,
}

impl<M: Memory> Held<M> {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.memory.as_ref().map_or(&[], Memory::bytes)
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory
            .as_mut()
            .map_or(Default::default(), Memory::bytes_mut)
    }

    pub(crate) const fn pool(&self) -> &Arc<Shared<M>> {
        &self.pool
    }

    pub(crate) fn is_held(&self) {
        self.pool.slot(self.index).move_to(Place::Held);
    }

    /// Another's memory for its own.
    pub(crate) fn swap(&mut self, other: &mut M) {
        if let Some(memory) = &mut self.memory {
            mem::swap(memory, other);
        }
    }

    /// Its memory, for its interface to send.
    pub(crate) const fn lend(&mut self) -> Option<M> {
        self.memory.take()
    }

    /// Whether it can be sent now.
    pub(crate) fn may_send(&self) -> Result<(), Unavailable> {
        if self.pool.line.is_none() {
            return Err(Unavailable::NoInterface);
        }
        if self.pool.is_closed() {
            return Err(Unavailable::Closed);
        }
        Ok(())
    }

    /// What is sent behind its own bytes, when it is sent next.
    pub(crate) fn put_behind(&self, behind: Gathered<'static>) {
        self.pool.gathers.store(true, Ordering::Relaxed);
        self.pool.slot(self.index).lock().behind = behind;
    }

    /// Looks at that.
    pub(crate) fn with_behind<R>(&self, look: impl FnOnce(&Gathered<'static>) -> R) -> R {
        look(&self.pool.slot(self.index).lock().behind)
    }

    /// What was lent, or as much of the same kind.
    pub(crate) fn restore(&mut self, memory: M) {
        self.memory = Some(memory);
    }

    /// Puts its memory into its slot; it is for the caller to say where that is. `None` if it has none.
    fn lay_down(&mut self, place: Place, frame: Option<Frame>) -> Option<u32> {
        let memory = self.memory.take()?;
        let slot = self.pool.slot(self.index);
        let mut contents = slot.lock();
        contents.memory = Some(memory);
        contents.frame = frame.unwrap_or(contents.frame);
        slot.move_to(place);
        Some(self.index)
    }

    pub(crate) fn give(mut self) -> Result<(), Self> {
        if self.pool.is_closed() {
            return Err(self);
        }
        if let Some(index) = self.lay_down(Place::Given, None) {
            self.pool.show_given(index);
        }
        Ok(())
    }

    /// Sends it, if it [may](Self::may_send) be sent, and tells by which number its pool knows it.
    pub(crate) fn send(mut self, mut frame: Frame) -> u32 {
        if let Some((line, _)) = &self.pool.line {
            frame.number = line.sent.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(index) = self.lay_down(Place::Sending, Some(frame)) {
            self.pool.show_outgoing(index, frame.is_quiet);
        }
        self.index
    }

    /// Its frame is done.
    pub(crate) fn end(mut self, is_awaited: bool, outcome: Result<(), LinkError>) {
        if let Some(index) = self.lay_down(Place::Sending, None) {
            self.pool.end(index, is_awaited, outcome);
        }
    }
}

impl<M: Memory> Drop for Held<M> {
    fn drop(&mut self) {
        if let Some(index) = self.lay_down(Place::Free, None) {
            self.pool.home(index);
        }
    }
}
