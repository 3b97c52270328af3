//! What a pool, its buffers and its driver share: a slot for each buffer, and stacks of the slots' numbers.
//!
//! The driver's thread outranks whoever uses the pool, perhaps on the same processor: so neither waits for the other. Only who has a
//! slot's number touches the slot: what is there is boxed once, and moves in and out by one exchange of a word, which nobody waits for.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use crossbeam_utils::atomic::AtomicCell;
use laxity_model::base::bell::Bell;
use laxity_model::base::stack::Stack;
use laxity_model::nif::exchange::Census;
use laxity_model::nif::link::{LinkError, Memory};

use super::buffer::{Sending, Unavailable};
use super::line::Line;
use super::message::Gathered;
use super::sleeper::Sleeper;

mod hands;

pub(crate) use hands::{Held, Lent};

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
    /// `None` only while its interface has it, and where that kept it as its driver ended.
    memory: Option<M>,
    /// So many bytes from its beginning are its client's to see: of a packet that it got, or written by it. What is behind them is left over, perhaps from another client's packet.
    known: usize,
    /// Where the memory is that its interface has.
    lent: usize,
    frame: Frame,
    /// Of a frame that is gathered. It is let go of by who takes or gives the buffer next, so not by the driver.
    behind: Gathered<'static>,
    outcome: Option<Result<(), LinkError>>,
}

impl<M> Drop for Contents<M> {
    fn drop(&mut self) {
        // It may be the driver that lets go of them, and what they are made of is their client's.
        let behind = mem::take(&mut self.behind);
        catch_unwind(AssertUnwindSafe(|| drop(behind))).ok();
    }
}

struct Slot<M> {
    /// `None` while somebody has it.
    contents: AtomicCell<Option<Box<Contents<M>>>>,
    place: AtomicU8,
}

/// Whoever exchanges a slot's contents waits for nobody.
const _: () = assert!(AtomicCell::<Option<Box<u8>>>::is_lock_free());

impl<M> Slot<M> {
    fn put(&self, contents: Box<Contents<M>>, place: Place) {
        self.move_to(place);
        self.contents.store(Some(contents));
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
        let slot = |_| Slot {
            contents: AtomicCell::new(None),
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

    /// The most buffers that it may have.
    pub(crate) const fn most(&self) -> usize {
        self.slots.len()
    }

    fn slot(&self, index: u32) -> &Slot<M> {
        &self.slots[index as usize]
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    fn hold(self: &Arc<Self>, index: u32, place: Place) -> Held<M> {
        let slot = self.slot(index);
        slot.move_to(place);
        let mut held = Held {
            contents: slot.contents.take(),
            index,
            pool: Arc::clone(self),
        };
        let gathered = held
            .contents
            .as_mut()
            .filter(|contents| contents.frame.is_gathered);
        if let Some(contents) = gathered {
            contents.frame.is_gathered = false;
            drop(mem::take(&mut contents.behind));
        }
        held
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
    pub(crate) fn give_free(self: &Arc<Self>) -> Option<()> {
        if self.is_closed() {
            return None;
        }
        let index = self.free.pop()?;
        if self.gathers.load(Ordering::Relaxed) {
            // What was sent from elsewhere is let go of here.
            return self.hold(index, Place::Free).give().ok();
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
            let contents = slot.contents.take();
            slot.move_to(Place::Vacant);
            self.vacant.push(index);
            drop(contents);
        } else {
            slot.move_to(Place::Free);
            self.free.push(index);
        }
        self.freed.ring_after_exchange(&self.sleeper);
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
                let contents = Contents {
                    memory: Some(memory),
                    known: 0,
                    lent: 0,
                    frame: Frame::default(),
                    behind: Gathered::default(),
                    outcome: None,
                };
                self.slot(index).put(Box::new(contents), Place::Free);
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
            if let Some(contents) = self.slot(index).contents.take() {
                self.end(Lent { contents, index }, Err(LinkError::Gone));
            }
        }
    }

    /// A frame of this pool is done.
    pub(crate) fn end(&self, lent: Lent<M>, outcome: Result<(), LinkError>) {
        let Lent {
            mut contents,
            index,
        } = lent;
        let slot = self.slot(index);
        if contents.frame.is_awaited {
            contents.outcome = Some(outcome);
            slot.contents.store(Some(contents));
            // Who waits looks at this, and not at what others may just be taking.
            slot.place.store(Place::Held as u8, Ordering::SeqCst);
            self.freed.ring(&self.sleeper);
        } else {
            slot.contents.store(Some(contents));
            self.home(index);
        }
    }

    /// What is to be sent, for the driver: the last that was sent comes first.
    pub(crate) fn outgoing(&self) -> impl Iterator<Item = Lent<M>> {
        let all = self.outgoing.take_all();
        all.filter_map(|index| {
            let contents = self.slot(index).contents.take()?;
            Some(Lent { contents, index })
        })
    }

    /// Waits for a frame that this thread sent, and takes its buffer back.
    pub(crate) fn wait_sent(self: &Arc<Self>, index: u32) -> (Held<M>, Result<(), LinkError>) {
        let place = &self.slot(index).place;
        let is_done = || (place.load(Ordering::SeqCst) == Place::Held as u8).then_some(());
        // Without a limit of time the wait ends when it is.
        self.wait(None, is_done);
        let mut held = self.hold(index, Place::Held);
        let outcome = held.contents.as_mut().and_then(|own| own.outcome.take());
        (held, outcome.unwrap_or(Err(LinkError::Gone)))
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

#[cfg(test)]
mod tests;
