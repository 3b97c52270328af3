//! Who receives.

use alloc::boxed::Box;

use super::waiting::{is_ended, rests, rouse, wait};
use super::{Memory, Refused, SAID, Shape, ShapeError, Side, Tag, body, check};
use crate::Instant;
use crate::base::atomic::Ordering;

/// The receiving side. Nothing is allocated after it is made.
#[derive(Debug)]
pub struct Receiver<M> {
    memory: M,
    shape: Shape,
    /// So many were taken, and so many given back.
    taken: u64,
    back: u64,
    /// Whether a buffer is here.
    is_here: Box<[bool]>,
    is_broken: bool,
}

/// A message that was taken, in its buffer until it is [given back](Receiver::give_back).
#[derive(PartialEq, Eq, Debug)]
#[must_use = "its buffer is gone where it is not given back"]
pub struct Taken {
    /// What its sender said of it.
    pub tag: Tag,
    length: u32,
    buffer: u32,
}

impl Taken {
    /// Its bytes.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length as usize
    }
}

impl<M: Memory> Receiver<M> {
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
            taken: 0,
            back: 0,
            is_here: (0..shape.buffers).map(|_| false).collect(),
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

    /// The next message, if one is there. O(1).
    ///
    /// # Errors
    ///
    /// [`Refused::Broken`], or [`Refused::Ended`] where all that was sent was taken.
    pub fn take(&mut self) -> Result<Option<Taken>, Refused> {
        if self.is_broken {
            return Err(Refused::Broken);
        }
        // What was sent before the end is taken: so the end is looked at first.
        let Self { memory, shape, .. } = self;
        let other = memory.control().of(Side::Sender);
        let is_ended = is_ended(other);
        // Acquire: with the count comes the message.
        let count = other.count.load(Ordering::Acquire);
        let there = count.wrapping_sub(self.taken);
        if there == 0 {
            return if is_ended {
                Err(Refused::Ended)
            } else {
                Ok(None)
            };
        }
        let words = &memory.words()[shape.index(self.taken) * SAID..];
        let said = [0, 1, 2, 3].map(|word: usize| words[word].load(Ordering::Relaxed));
        let taken = self.believed(there, said);
        self.is_broken = taken.is_none();
        taken.map(Some).ok_or(Refused::Broken)
    }

    /// What is said of a message, if it can be so.
    fn believed(&mut self, there: u64, [place, number, stamp, flags]: [u64; 4]) -> Option<Taken> {
        let taken = Taken {
            tag: Tag {
                number,
                stamp,
                flags: u32::try_from(flags).ok()?,
            },
            length: place as u32,
            buffer: (place >> 32) as u32,
        };
        let is_here = self.is_here.get_mut(taken.buffer as usize)?;
        let is_long = taken.length > self.shape.bytes;
        if there > self.shape.buffers.into() || is_long || *is_here {
            return None;
        }
        *is_here = true;
        self.taken = self.taken.wrapping_add(1);
        Some(taken)
    }

    /// Copies bytes of a message, from the `at`-th on. A sender that does not keep to what was agreed may change them until they are copied. O(bytes).
    ///
    /// # Panics
    ///
    /// The message has not so many, or is of another ring.
    pub fn copy(&self, taken: &Taken, at: usize, into: &mut [u8]) {
        let end = at.checked_add(into.len());
        let fits = end.is_some_and(|end| end <= taken.length());
        assert!(fits && taken.length <= self.shape.bytes, "of {taken:?}");
        let words = &self.memory.words()[self.shape.place(taken.buffer)..];
        body::read(&words[..self.shape.stride()], at, into);
    }

    /// Its buffer may be used again; in any order. The sender is woken if it sleeps. O(1).
    ///
    /// # Panics
    ///
    /// The message is of another ring.
    pub fn give_back(&mut self, Taken { buffer, .. }: Taken) {
        let is_here = self.is_here.get_mut(buffer as usize);
        let was_here = is_here.is_some_and(core::mem::take);
        assert!(was_here, "a message of another ring");
        let Self { memory, shape, .. } = self;
        let place = shape.places() * SAID + shape.index(self.back);
        memory.words()[place].store(buffer.into(), Ordering::Relaxed);
        self.back = self.back.wrapping_add(1);
        // Release: what was read of the buffer was read before.
        let count = &memory.control().of(Side::Receiver).count;
        count.store(self.back, Ordering::Release);
        rouse(memory, Side::Sender);
    }

    /// Takes the next message and gives its buffer back: so many bytes of `into` are the message's. One that is longer is cut off.
    ///
    /// # Errors
    ///
    /// As [`take`](Self::take).
    pub fn receive(&mut self, into: &mut [u8]) -> Result<Option<(usize, Tag)>, Refused> {
        let Some(taken) = self.take()? else {
            return Ok(None);
        };
        let length = taken.length().min(into.len());
        self.copy(&taken, 0, &mut into[..length]);
        let tag = taken.tag;
        self.give_back(taken);
        Ok(Some((length, tag)))
    }

    /// Whether the sender is to wait, though there are buffers.
    pub fn hold(&mut self, holds: bool) {
        let own = self.memory.control().of(Side::Receiver);
        own.holds.store(holds.into(), Ordering::Release);
        if !holds {
            rouse(&self.memory, Side::Sender);
        }
    }

    /// Waits until a message is there, no longer than until then, and takes it.
    ///
    /// # Errors
    ///
    /// As [`take`](Self::take).
    pub fn wait(&mut self, until: Option<Instant>) -> Result<Option<Taken>, Refused> {
        let own = (Self::memory, Side::Receiver);
        wait(self, own, until, |own| own.take().transpose()).transpose()
    }

    /// Whether this side may wait for its descriptor now: from now on it is raised as soon as something is there. Where something is already, it may not.
    pub fn rests(&mut self) -> bool {
        rests(self, (Self::memory, Side::Receiver), |own| {
            let other = own.memory.control().of(Side::Sender);
            own.is_broken || is_ended(other) || other.count.load(Ordering::Acquire) != own.taken
        })
    }
}
