//! How an application and its node hand each other messages: a ring in memory that both write, between one sender and one receiver, without a lock and without a system call while the other side is awake.
//!
//! The memory has buffers of one size, a list of what was sent, and a list of the buffers that came back, so that messages may be given back in another order than they were sent in. A message is written into a buffer and sent by its number;
//! whoever has a buffer's number alone touches the buffer. There are never more numbers on a list than there are buffers, so neither list runs over and neither has an end that the other side would have to tell.
//!
//! # What is believed
//!
//! The other process may write anything anywhere at any time. So all that is shared is atomic, bodies too, and what is read is read once, into memory of one's own, and checked before it is used: counts, numbers of buffers, lengths. What cannot be is [`Broken`](Refused::Broken), for good; what is changed in a
//! buffer afterwards changes that message only. Whose buffer it is each side knows by itself. A wake-up too many is looked at and slept over.
//!
//! ```
//! # #[cfg(not(loom))] {
//! use laxity_model::channels::ring::{Here, Receiver, Sender, Shape, Tag};
//!
//! let shape = Shape::new(2, 64)?;
//! let memory = Here::new(shape);
//! let (mut sender, mut receiver) = (Sender::new(&memory, shape)?, Receiver::new(&memory, shape)?);
//! sender.send(b"a message", Tag::default())?;
//! let taken = receiver.take()?.expect("it is there");
//! let mut bytes = [0; 9];
//! receiver.copy(&taken, 0, &mut bytes);
//! receiver.give_back(taken);
//! assert_eq!(&bytes, b"a message");
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod body;
mod here;
mod receiver;
mod sender;
mod waiting;

pub use here::Here;
pub use receiver::{Receiver, Taken};
pub use sender::{Loan, Sender};
pub use waiting::end;

use crate::base::atomic::{AtomicU32, AtomicU64};
use crate::base::bell::Sleeping;

/// No ring has more buffers.
pub const MOST_BUFFERS: u32 = 1 << 12;
/// No buffer is longer, in bytes.
pub const MOST_BYTES: u32 = 1 << 24;
/// No ring takes more memory, in bytes.
pub const MOST_MEMORY: u64 = 1 << 28;

/// Words of what is said of a message, and of a buffer that came back.
const SAID: usize = 4;
const WORD: usize = size_of::<u64>();

/// How many buffers a ring has, and of how many bytes each. Both sides are told it by other ways: nothing in the memory says so.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    buffers: u32,
    bytes: u32,
}

/// There is no such ring.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum ShapeError {
    /// None or too many buffers, or of too many bytes.
    #[error(
        "a ring has 1 to {MOST_BUFFERS} buffers of 1 to {MOST_BYTES} bytes, and {MOST_MEMORY} bytes together"
    )]
    Extent,
    /// The memory has another size than such a ring.
    #[error("the memory is not that of such a ring")]
    Memory,
}

impl Shape {
    /// So many buffers of so many bytes each.
    ///
    /// # Errors
    ///
    /// [`ShapeError::Extent`].
    pub const fn new(buffers: u32, bytes: u32) -> Result<Self, ShapeError> {
        let shape = Self { buffers, bytes };
        let is_some = buffers > 0 && bytes > 0 && buffers <= MOST_BUFFERS && bytes <= MOST_BYTES;
        // Less than 2³⁷ as both are in their ranges.
        if is_some && shape.memory() <= MOST_MEMORY {
            Ok(shape)
        } else {
            Err(ShapeError::Extent)
        }
    }

    /// How many buffers.
    #[must_use]
    pub const fn buffers(self) -> u32 {
        self.buffers
    }

    /// Bytes of the longest message.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        self.bytes
    }

    /// Words of 8 bytes of the memory, behind its [`Control`].
    #[must_use]
    pub const fn words(self) -> usize {
        self.place(self.buffers)
    }

    /// Bytes of the whole memory, its [`Control`] first.
    #[must_use]
    pub const fn memory(self) -> u64 {
        (size_of::<Control>() + self.words() * WORD) as u64
    }

    /// How many places each of the lists has.
    const fn places(self) -> usize {
        self.buffers.next_power_of_two() as usize
    }

    /// Where a list's `count`-th entry stands.
    const fn index(self, count: u64) -> usize {
        count as usize & (self.places() - 1)
    }

    /// The first word of a buffer.
    const fn place(self, buffer: u32) -> usize {
        self.places() * (SAID + 1) + buffer as usize * self.stride()
    }

    const fn stride(self) -> usize {
        (self.bytes as usize).div_ceil(WORD)
    }
}

/// One of the two who share a ring.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// Who sends.
    Sender,
    /// Who receives.
    Receiver,
}

/// What one side writes: lines of its own, which processors fetch in pairs.
#[derive(Debug, Default)]
#[repr(C, align(128))]
struct Written {
    /// How many entries it has written to its list.
    count: AtomicU64,
    /// Whether and how it sleeps. Whoever wakes it writes that, too.
    sleeps: AtomicU32,
    /// Whether the other side is to wait.
    holds: AtomicU32,
    /// Whether it is over, by whichever side.
    ended: AtomicU32,
}

/// What the memory of a ring begins with. Every pattern of bits is one, and zeros are a ring in which nothing was sent.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Control {
    sender: Written,
    receiver: Written,
}

impl Control {
    const fn of(&self, side: Side) -> &Written {
        match side {
            Side::Sender => &self.sender,
            Side::Receiver => &self.receiver,
        }
    }
}

/// The memory of a ring as one of its sides has it.
pub trait Memory: Sleeping {
    /// Its beginning.
    fn control(&self) -> &Control;

    /// What is behind that.
    fn words(&self) -> &[AtomicU64];

    /// This side waits for a descriptor of its own, which is to be readable now. Nothing where there is none.
    fn raise(&self, side: Side);
}

impl<M: Memory> Memory for &M {
    fn control(&self) -> &Control {
        (**self).control()
    }

    fn words(&self) -> &[AtomicU64] {
        (**self).words()
    }

    fn raise(&self, side: Side) {
        (**self).raise(side);
    }
}

/// What is said of a message beside its bytes, by whoever sends it; what it means is theirs to agree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Tag {
    /// Its number.
    pub number: u64,
    /// A span or an instant, in nanoseconds.
    pub stamp: u64,
    /// Anything else.
    pub flags: u32,
}

/// Why a message was not sent, or none can be taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Refused {
    /// All buffers are with the receiver.
    #[error("all buffers are with the receiver")]
    Full,
    /// The receiver wants nothing now.
    #[error("the receiver takes nothing now")]
    Held,
    /// The message is longer than a buffer.
    #[error("a message of {0} bytes is longer than a buffer")]
    TooLong(usize),
    /// The other side has written what cannot be.
    #[error("the other side has written what cannot be")]
    Broken,
    /// One of the two has ended it.
    #[error("it was ended")]
    Ended,
}

fn check<M: Memory>(memory: &M, shape: Shape) -> Result<(), ShapeError> {
    match memory.words().len() == shape.words() {
        true => Ok(()),
        false => Err(ShapeError::Memory),
    }
}
