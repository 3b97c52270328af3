//! A buffer away from home: in a client's hands, or in the driver's as a frame.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use laxity_model::nif::link::Memory;

use super::{Contents, Frame, Place, Shared};
use crate::buffers::buffer::Unavailable;
use crate::buffers::message::Gathered;

/// A frame's buffer in the hands of the driver, which knows its pool, and tells that when it is [done](Shared::end).
pub(crate) struct Lent<M> {
    pub(super) contents: Box<Contents<M>>,
    pub(super) index: u32,
}

impl<M> Lent<M> {
    /// What its sender said of it.
    pub(crate) const fn frame(&self) -> &Frame {
        &self.contents.frame
    }

    /// What is sent behind its own bytes, of a frame that is gathered.
    pub(crate) const fn behind(&self) -> &Gathered<'static> {
        &self.contents.behind
    }

    /// Its memory, for its interface to send.
    pub(crate) fn lend(&mut self) -> Option<M>
    where
        M: Memory,
    {
        let memory = self.contents.memory.take()?;
        self.contents.lent = memory.bytes().as_ptr().addr();
        Some(memory)
    }

    /// What was lent, or as much of the same kind.
    pub(crate) fn restore(&mut self, memory: M)
    where
        M: Memory,
    {
        if self.contents.lent != memory.bytes().as_ptr().addr() {
            self.contents.known = 0;
        }
        self.contents.memory = Some(memory);
    }
}

/// A buffer in somebody's hands: it comes home when they let go of it.
pub(crate) struct Held<M: Memory> {
    /// `None` once it has been laid down.
    pub(super) contents: Option<Box<Contents<M>>>,
    pub(super) index: u32,
    pub(super) pool: Arc<Shared<M>>,
}

impl<M: Memory> Held<M> {
    fn memory(&self) -> Option<&M> {
        self.contents.as_ref()?.memory.as_ref()
    }

    fn memory_mut(&mut self) -> Option<&mut M> {
        self.contents.as_mut()?.memory.as_mut()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.memory().map_or(&[], Memory::bytes)
    }

    /// All of its memory, also what is left over from others: whoever asks writes as much as is [known](Self::knows) then.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory_mut()
            .map_or(Default::default(), Memory::bytes_mut)
    }

    /// So many bytes from the beginning are its client's now.
    pub(crate) fn knows(&mut self, length: usize) {
        if let Some(contents) = &mut self.contents {
            contents.known = contents.known.max(length);
        }
    }

    /// So many bytes from the beginning, where what is not its client's is zeros.
    pub(crate) fn wiped(&mut self, length: usize) -> &mut [u8] {
        let known = self.contents.as_ref().map_or(0, |contents| contents.known);
        self.knows(length);
        let bytes = &mut self.bytes_mut()[..length];
        if let Some(left_over) = bytes.get_mut(known..) {
            left_over.fill(0);
        }
        bytes
    }

    pub(in crate::buffers) const fn pool(&self) -> &Arc<Shared<M>> {
        &self.pool
    }

    pub(crate) fn is_held(&self) {
        self.pool.slot(self.index).move_to(Place::Held);
    }

    /// Another's memory for its own.
    pub(crate) fn swap(&mut self, other: &mut M) {
        if let Some(memory) = self.memory_mut() {
            mem::swap(memory, other);
        }
        if let Some(contents) = &mut self.contents {
            contents.known = 0;
        }
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
    pub(crate) fn put_behind(&mut self, behind: Gathered<'static>) {
        self.pool.gathers.store(true, Ordering::Relaxed);
        if let Some(contents) = &mut self.contents {
            contents.behind = behind;
        }
    }

    pub(crate) fn give(mut self) -> Result<(), Self> {
        if self.pool.is_closed() {
            return Err(self);
        }
        if let Some(contents) = self.contents.take() {
            self.pool.slot(self.index).put(contents, Place::Given);
            self.pool.show_given(self.index);
        }
        Ok(())
    }

    /// Sends it, if it [may](Self::may_send) be sent, and tells by which number its pool knows it.
    pub(crate) fn send(mut self, mut frame: Frame) -> u32 {
        if let Some((line, _)) = &self.pool.line {
            frame.number = line.sent.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(mut contents) = self.contents.take() {
            contents.frame = frame;
            self.pool.slot(self.index).put(contents, Place::Sending);
            self.pool.show_outgoing(self.index, frame.is_quiet);
        }
        self.index
    }
}

impl<M: Memory> Drop for Held<M> {
    fn drop(&mut self) {
        if let Some(contents) = self.contents.take() {
            self.pool.slot(self.index).put(contents, Place::Free);
            self.pool.home(self.index);
        }
    }
}
