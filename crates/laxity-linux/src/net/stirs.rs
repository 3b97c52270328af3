//! Word that something has happened to a link: a frame has left the kernel, or has come; or to what else is watched with it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

/// Can be read once something has happened to one of its links since this was last heard, and once in the beginning: a descriptor to poll.
///
/// The kernel wakes whoever waits to write to a socket for each frame of it that leaves, as long as less than half of the socket's memory is in use, as it is by far while a few
/// frames are. That is an edge; to poll the socket itself for room would end at once, since there is room.
#[derive(Debug)]
pub struct Stirs(OwnedFd);

/// So many are told of at a time; of the others the next time.
const AT_ONCE: usize = 64;
/// What is told of links.
const LINK: u64 = u64::MAX;

impl Stirs {
    /// Tells that a frame has left one of these links, which are UDP, packet or `AF_XDP` sockets.
    ///
    /// # Errors
    ///
    /// No descriptors are left.
    pub fn of_departures<'a, L: AsFd + 'a>(
        links: impl IntoIterator<Item = &'a L>,
    ) -> io::Result<Self> {
        Self::new(links, EventFlags::OUT)
    }

    /// The same, and that one has come: who is told looks until there is nothing more.
    ///
    /// # Errors
    ///
    /// No descriptors are left.
    pub fn of<'a, L: AsFd + 'a>(links: impl IntoIterator<Item = &'a L>) -> io::Result<Self> {
        Self::new(links, EventFlags::OUT | EventFlags::IN)
    }

    fn new<'a, L: AsFd + 'a>(
        links: impl IntoIterator<Item = &'a L>,
        of: EventFlags,
    ) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        for link in links {
            epoll::add(&epoll, link, EventData::new_u64(LINK), of | EventFlags::ET)?;
        }
        Ok(Self(epoll))
    }

    /// From now on it tells that something comes over a link of which it tells departures too, or it does not, as while nobody takes anything in: what has come meanwhile is told of then.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    pub fn hears(&self, link: &impl AsFd, arrivals: bool) -> io::Result<()> {
        let mut flags = EventFlags::OUT | EventFlags::ET;
        flags.set(EventFlags::IN, arrivals);
        Ok(epoll::modify(
            &self.0,
            link,
            EventData::new_u64(LINK),
            flags,
        )?)
    }

    /// The same of whatever else can be read from now on, until it is closed: once each time that more is there. It is told of by this number, which is less than [`u64::MAX`].
    ///
    /// # Errors
    ///
    /// What the kernel says.
    pub fn watch(&self, other: &impl AsFd, number: u64) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::ET;
        Ok(epoll::add(
            &self.0,
            other,
            EventData::new_u64(number),
            flags,
        )?)
    }

    /// Whether anything has happened since this was asked last. What, each link tells, and of what else is [watched](Self::watch) its number is told; what happens from now on will be told of again.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    pub fn heard(&self, mut of: impl FnMut(u64)) -> io::Result<bool> {
        let mut told = [epoll::Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(LINK),
        }; AT_ONCE];
        match epoll::wait(&self.0, &mut told[..], Some(&Timespec::default())) {
            Ok(count) => {
                let numbers = told[..count].iter().map(|one| one.data.u64());
                numbers.filter(|number| *number != LINK).for_each(&mut of);
                Ok(count > 0)
            }
            Err(Errno::INTR) => Ok(true),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl AsFd for Stirs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
