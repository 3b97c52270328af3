//! Who sends.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::waiting::{is_ended, rests, rouse, wait};
use super::{Memory, Refused, SAID, Shape, ShapeError, Side, Tag, body, check};
use crate::Instant;
use crate::base::atomic::Ordering;

/// The sending side. Nothing is allocated after it is made.
#[derive(Debug)]
pub struct Sender<M> {
    memory: M,
    shape: Shape,
    /// So many were sent, and so many came back.
    sent: u64,
    back: u64,
    free: Vec<u32>,
    /// Whether a buffer is with the receiver.
    is_out: Box<[bool]>,
    is_broken: bool,
}

/// A buffer that is filled in place. It is free again where it is dropped and not sent.
#[derive(Debug)]
#[must_use = "what is not sent is not there"]
pub struct Loan<'a, M: Memory> {
    sender: &'a mut Sender<M>,
    buffer: u32,
    is_sent: bool,
}

impl<M: Memory> Sender<M> {
    /// Of a ring in which nothing was sent.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Memory`].
    pub fn new(memory: M, shape: Shape) -> Result<Self, ShapeError> {
        check(&memory, shape)?;
        Ok(Self {
            memory,
            shape,
            sent: 0,
            back: 0,
            // The first is taken first.
            free: (0..shape.buffers).rev().collect(),
            is_out: (0..shape.buffers).map(|_| false).collect(),
            is_broken: false,
        })
    }

    /// Where its ring is.
    pub const fn memory(&self) -> &M {
        &self.memory
    }

    /// Of the ring.
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// A buffer to be filled. O(buffers that have come back since none was left).
    ///
    /// # Errors
    ///
    /// [`Refused`]; never [`TooLong`](Refused::TooLong).
    pub fn loan(&mut self) -> Result<Loan<'_, M>, Refused> {
        self.ready()?;
        let buffer = self.free.pop().ok_or(Refused::Full)?;
        Ok(Loan {
            sender: self,
            buffer,
            is_sent: false,
        })
    }

    /// Sends a copy of these bytes. O(bytes).
    ///
    /// # Errors
    ///
    /// [`Refused`]: nothing was sent.
    pub fn send(&mut self, bytes: &[u8], tag: Tag) -> Result<(), Refused> {
        let length = u32::try_from(bytes.len()).ok();
        let Some(length) = length.filter(|length| *length <= self.shape.bytes) else {
            return Err(Refused::TooLong(bytes.len()));
        };
        let mut loan = self.loan()?;
        loan.write(0, bytes);
        loan.commit(length, tag);
        Ok(())
    }

    /// Whether a message could be sent now.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn ready(&mut self) -> Result<(), Refused> {
        if self.is_broken {
            return Err(Refused::Broken);
        }
        let other = self.memory.control().of(Side::Receiver);
        if is_ended(other) {
            return Err(Refused::Ended);
        }
        if other.holds.load(Ordering::Acquire) != 0 {
            return Err(Refused::Held);
        }
        if self.free.is_empty() {
            self.collect()?;
        }
        match self.free.is_empty() {
            true => Err(Refused::Full),
            false => Ok(()),
        }
    }

    /// Waits until a message can be sent, no longer than until then.
    ///
    /// # Errors
    ///
    /// Why it still cannot.
    pub fn wait(&mut self, until: Option<Instant>) -> Result<(), Refused> {
        let mut last = Refused::Full;
        let own = (Self::memory, Side::Sender);
        let found = wait(self, own, until, |own| match own.ready() {
            Err(refused @ (Refused::Full | Refused::Held)) => {
                last = refused;
                None
            }
            ready => Some(ready),
        });
        found.unwrap_or(Err(last))
    }

    /// Whether this side may wait for its descriptor now: from now on it is raised as soon as a message can be sent. Where one can already, or never will, it may not.
    pub fn rests(&mut self) -> bool {
        rests(self, (Self::memory, Side::Sender), |own| {
            !matches!(own.ready(), Err(Refused::Full | Refused::Held))
        })
    }

    /// Buffers that came back are free.
    fn collect(&mut self) -> Result<(), Refused> {
        let Self { memory, shape, .. } = self;
        // Acquire: the receiver has read what was in them.
        let count = memory
            .control()
            .of(Side::Receiver)
            .count
            .load(Ordering::Acquire);
        let new = count.wrapping_sub(self.back);
        if new > shape.buffers.into() {
            return Err(self.breaks());
        }
        for _ in 0..new {
            let place = shape.places() * SAID + shape.index(self.back);
            let said = memory.words()[place].load(Ordering::Relaxed);
            let buffer = u32::try_from(said).ok();
            let is_out = buffer.and_then(|buffer| self.is_out.get_mut(buffer as usize));
            let (Some(buffer), Some(is_out)) = (buffer, is_out) else {
                return Err(self.breaks());
            };
            if !core::mem::replace(is_out, false) {
                return Err(self.breaks());
            }
            self.free.push(buffer);
            self.back = self.back.wrapping_add(1);
        }
        Ok(())
    }

    const fn breaks(&mut self) -> Refused {
        self.is_broken = true;
        Refused::Broken
    }
}

impl<M: Memory> Loan<'_, M> {
    /// Writes these bytes to it, from the `at`-th on. O(bytes).
    ///
    /// # Panics
    ///
    /// They reach beyond its end.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        let Sender { memory, shape, .. } = &*self.sender;
        let end = at.checked_add(bytes.len());
        let fits = end.is_some_and(|end| end <= shape.bytes as usize);
        assert!(fits, "a buffer has {} bytes", shape.bytes);
        let words = &memory.words()[shape.place(self.buffer)..][..shape.stride()];
        body::write(words, at, bytes);
    }

    /// Sends its first `length` bytes. The receiver is woken if it sleeps.
    ///
    /// # Panics
    ///
    /// It has not so many.
    pub fn commit(mut self, length: u32, tag: Tag) {
        let sender = &mut *self.sender;
        let Sender { memory, shape, .. } = sender;
        assert!(length <= shape.bytes, "a buffer has {} bytes", shape.bytes);
        let said = [
            u64::from(self.buffer) << 32 | u64::from(length),
            tag.number,
            tag.stamp,
            tag.flags.into(),
        ];
        let place = shape.index(sender.sent) * SAID;
        for (word, said) in memory.words()[place..].iter().zip(said) {
            word.store(said, Ordering::Relaxed);
        }
        sender.is_out[self.buffer as usize] = true;
        sender.sent = sender.sent.wrapping_add(1);
        // Release: whoever sees the count sees the message.
        let count = &memory.control().of(Side::Sender).count;
        count.store(sender.sent, Ordering::Release);
        self.is_sent = true;
        rouse(memory, Side::Receiver);
    }
}

impl<M: Memory> Drop for Loan<'_, M> {
    fn drop(&mut self) {
        if !self.is_sent {
            self.sender.free.push(self.buffer);
        }
    }
}
