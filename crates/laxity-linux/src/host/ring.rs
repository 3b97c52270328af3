//! Rings of messages between two processes: sealed memory, and how each side sleeps and wakes the other.
//!
//! What is written there, and what of it is believed, is [`laxity_model::channels::ring`]'s. One process makes a ring and sends the other two descriptors: the memory, and the other end of a socket by which who waits for a descriptor is woken. Each has an end of its own, so that
//! whatever the other does with his (makes it blocking, fills it) nobody who wakes or is woken ever waits for it: with an eventfd, whose counter and mode both have in common, he could make the other do so. And its end tells of the other's end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

use laxity_model::Instant;
use laxity_model::base::bell::Sleeping;
use laxity_model::channels::ring::{Control, Memory, Receiver, Sender, Shape, Side};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, recv, send, shutdown,
    socketpair,
};

use crate::os::futex::{self, Woken};
use crate::os::sealed::{Sealed, Unsealed};

/// Why there is no ring.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// The kernel said no.
    #[error("the memory of a ring: {0}")]
    Os(#[from] io::Error),
    /// The descriptor names no memory of such a ring.
    #[error("the descriptor names no memory of a ring: {0}")]
    Unknown(&'static str),
}

impl From<Unsealed> for RingError {
    fn from(unsealed: Unsealed) -> Self {
        match unsealed {
            Unsealed::Os(error) => Self::Os(error),
            Unsealed::Other(why) => Self::Unknown(why),
        }
    }
}

/// A ring, as one of its two sides has it. It can be polled: what it is readable for is [cleared](Self::clear) then.
#[derive(Clone, Debug)]
pub struct Ring(Arc<Mapped>);

#[derive(Debug)]
struct Mapped {
    sealed: Sealed,
    shape: Shape,
    own: Side,
    bell: OwnedFd,
}

impl Ring {
    /// A new one, whose maker is this side; and what the other side attaches: the memory and the end of a socket.
    ///
    /// # Errors
    ///
    /// No memory, or no descriptors.
    pub fn create(shape: Shape, own: Side) -> io::Result<(Self, [OwnedFd; 2])> {
        let sealed = Sealed::create("laxity-ring", bytes(shape)?)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (bell, other) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let memory = sealed.as_fd().try_clone_to_owned()?;
        let mapped = Mapped {
            sealed,
            shape,
            own,
            bell,
        };
        Ok((Self(Arc::new(mapped)), [memory, other]))
    }

    /// The one that another process has made, of the shape that it has said.
    ///
    /// # Errors
    ///
    /// [`RingError`]: among others where the memory might become shorter while it is in use.
    pub fn attach(
        shape: Shape,
        own: Side,
        [memory, bell]: [OwnedFd; 2],
    ) -> Result<Self, RingError> {
        let sealed = Sealed::attach(memory, bytes(shape)?)?;
        Ok(Self(Arc::new(Mapped {
            sealed,
            shape,
            own,
            bell,
        })))
    }

    /// None of its pages is taken away from now on, as in locked memory of the process none is.
    ///
    /// # Errors
    ///
    /// Without `CAP_IPC_LOCK` where it is more than `RLIMIT_MEMLOCK`.
    pub fn lock(&self) -> io::Result<()> {
        self.0.sealed.lock()
    }

    /// Who sends by it; once only, and by its own side.
    #[must_use]
    pub fn sender(&self) -> Sender<Self> {
        assert_eq!(self.0.own, Side::Sender, "the other side sends");
        Sender::new(self.clone(), self.0.shape).expect("the memory is of this shape")
    }

    /// Who receives by it; once only, and by its own side.
    #[must_use]
    pub fn receiver(&self) -> Receiver<Self> {
        assert_eq!(self.0.own, Side::Receiver, "the other side receives");
        Receiver::new(self.clone(), self.0.shape).expect("the memory is of this shape")
    }

    /// Nobody has woken this side any more. Whether the other side is still there: its end of the socket is.
    pub fn clear(&self) -> bool {
        // As often as it was woken since: there is a byte for each time that it was to sleep, from whoever keeps to that.
        let woken = recv(&self.0.bell, &mut [0; 64][..], RecvFlags::DONTWAIT);
        !matches!(woken, Ok((0, _)))
    }
}

fn bytes(shape: Shape) -> io::Result<usize> {
    usize::try_from(shape.memory()).map_err(|_| io::ErrorKind::OutOfMemory.into())
}

impl Sleeping for Ring {
    fn sleep(&self, word: &AtomicU32, seen: u32, until: Option<Instant>) -> bool {
        futex::wait_among(word, seen, until) != Woken::TimedOut
    }

    fn wake_all(&self, word: &AtomicU32) {
        // One waits there who may; others of a process that has more would each cost whoever wakes them.
        futex::wake_among(word, 1);
    }
}

impl Memory for Ring {
    fn control(&self) -> &Control {
        // SAFETY: mapped, no shorter than this and aligned to a page, until the last of these is dropped. The seal keeps the file as long. All that is there is atomic, and every bit pattern is a valid one.
        unsafe { self.0.sealed.memory().cast().as_ref() }
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: behind the control there are so many words of the shape, by which the memory's size was reckoned; a multiple of their alignment from the beginning of a page. The rest is as there.
        unsafe {
            let words = self.0.sealed.memory().cast::<Control>().add(1).cast();
            slice::from_raw_parts(words.as_ptr(), self.0.shape.words())
        }
    }

    fn raise(&self, side: Side) {
        let Mapped { bell, own, .. } = &*self.0;
        if side == *own {
            // Only its end is for the own side, too.
            let _ = shutdown(bell, Shutdown::Both);
        } else {
            // What is full is raised already, and who is gone needs none.
            let _ = send(bell, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.bell.as_fd()
    }
}
