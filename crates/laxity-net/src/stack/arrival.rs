//! Packets of the stack's clients. However one is let go of, its buffer is given to the driver again: so many as were given at first are there for packets or are looked at, whatever peers send, and whatever becomes of it.

use laxity_model::nif::link::Memory;

use crate::buffers::{Buffer, Filled};
use crate::clients::Queue;

/// What arrives for a client.
pub(crate) struct Arrivals<M: Memory>(Queue<M>);

/// A packet that arrived, or a copy of one.
pub(super) struct Packet<M: Memory> {
    /// `None` of a copy, and while it is dropped.
    buffer: Option<Buffer<M, Filled>>,
    copy: Vec<u8>,
    is_begun: bool,
}

impl<M: Memory> Arrivals<M> {
    pub(super) const fn of(queue: Queue<M>) -> Self {
        Self(queue)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The packet that waits for the longest time.
    pub(super) fn next(&self) -> Option<Packet<M>> {
        let buffer = self.0.try_next().ok()??;
        let arrived = buffer.arrived();
        Some(Packet {
            is_begun: arrived.is_some_and(|arrived| arrived.left.checksum),
            buffer: Some(buffer),
            copy: Vec::new(),
        })
    }
}

impl<M: Memory> Packet<M> {
    /// The same, for whoever looks at it later: nobody keeps a buffer of the late client from it.
    pub(super) fn copied(&self) -> Self {
        Self {
            buffer: None,
            copy: self.bytes().to_vec(),
            is_begun: self.is_begun,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match &self.buffer {
            Some(buffer) => buffer.bytes(),
            None => &self.copy,
        }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.buffer {
            Some(buffer) => buffer.bytes_mut(),
            None => &mut self.copy,
        }
    }

    /// Whether its checksum is only begun.
    pub(super) const fn is_begun(&self) -> bool {
        self.is_begun
    }
}

impl<M: Memory> Drop for Packet<M> {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            // Its client's, or, where that has ended, nobody's.
            buffer.emptied().give().ok();
        }
    }
}
