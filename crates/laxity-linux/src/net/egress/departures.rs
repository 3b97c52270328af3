//! Word that a frame of a socket has left the kernel.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

/// Can be read once a frame of a link has left since this was last heard, and once in the beginning: a descriptor to poll.
///
/// The kernel wakes whoever waits to write to a socket for each frame of it that leaves, as long as less than half of the socket's memory is in use, as it is by far while a few
/// frames are. That is an edge; to poll the socket itself for room would end at once, since there is room.
#[derive(Debug)]
pub struct Departures(OwnedFd);

impl Departures {
    /// Of a UDP, packet or `AF_XDP` socket, which is [`as_fd`](AsFd::as_fd) of a link.
    ///
    /// # Errors
    ///
    /// No descriptors are left.
    pub fn of(link: &impl AsFd) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let edge = EventFlags::OUT | EventFlags::ET;
        epoll::add(&epoll, link, EventData::new_u64(0), edge)?;
        Ok(Self(epoll))
    }

    /// Whether one has left since this was asked last. Which ones, the link's [`sent`](laxity_model::nif::link::Link::sent) tells; those that leave from now on will be told of again.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    pub fn heard(&self) -> io::Result<bool> {
        let mut told = [epoll::Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        }];
        match epoll::wait(&self.0, &mut told[..], Some(&Timespec::default())) {
            Ok(count) => Ok(count > 0),
            Err(Errno::INTR) => Ok(true),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl AsFd for Departures {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
