//! What is put back of a network interface: the root of its queues, and how many segments the kernel may leave to it. Kernel calls only, on requests that were made while
//! whoever changed it lived.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use rustix::io::{Errno, Result};

use super::{Entry, FREE, LINK};
use crate::os::{descriptor, route};

/// Where in an entry the socket's number ends, the lengths of the requests do, and ours of the segments.
const SOCKET_END: usize = 1 + size_of::<RawFd>();
const LENGTHS_END: usize = SOCKET_END + 3;
const OURS_END: usize = LENGTHS_END + size_of::<u32>();

/// The most segments of an interface (`IFLA_GSO_MAX_SEGS`), behind a header of so many bytes.
const SEGMENTS: u16 = 40;
const LINK_HEADER: usize = 16;

/// A change of an interface, and what undoes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkChange(Entry);

/// The requests that undo one, each of which wants an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requests<'a> {
    /// Takes the root of its queues away, if it is ours: the kernel compares its kind and its handle before it does.
    pub(crate) delete: &'a [u8],
    /// Asks for the interface; empty where its segments were not changed.
    pub(crate) ask: &'a [u8],
    /// Gives it the segments back that it had.
    pub(crate) set: &'a [u8],
    /// So many segments it has been given.
    pub(crate) ours: u32,
}

/// What came of putting an interface back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PutBack {
    /// The root of its queues is gone, or why it stayed.
    pub(crate) root: Result<()>,
    /// Its segments are as they were, where that is `None`; so many somebody else has given it meanwhile, and they are left.
    pub(crate) segments: Result<Option<u32>>,
}

impl LinkChange {
    /// Undone through this routing socket of the interface's namespace, which stays open as long as the change may have to be undone.
    ///
    /// # Errors
    ///
    /// The requests are too long.
    pub(crate) fn new(socket: BorrowedFd<'_>, requests: Requests<'_>) -> Result<Self> {
        let Requests {
            delete,
            ask,
            set,
            ours,
        } = requests;
        let mut entry = FREE;
        entry[0] = LINK;
        entry[1..SOCKET_END].copy_from_slice(&socket.as_raw_fd().to_ne_bytes());
        entry[LENGTHS_END..OURS_END].copy_from_slice(&ours.to_ne_bytes());
        let mut at = OURS_END;
        for (which, request) in [delete, ask, set].into_iter().enumerate() {
            let end = at + request.len();
            let place = entry.get_mut(at..end).ok_or(Errno::TOOBIG)?;
            place.copy_from_slice(request);
            // No more than an entry has bytes.
            entry[SOCKET_END + which] = request.len() as u8;
            at = end;
        }
        Ok(Self(entry))
    }

    pub(super) fn entry(&self) -> Entry {
        self.0
    }

    /// Undoes it. What is somebody else's by now stays as it is.
    pub(crate) fn put_back(&self) -> PutBack {
        put_back(&self.0)
    }
}

/// Closes all descriptors from this number on but the sockets of the list.
pub(super) fn close_but(list: &[Entry], mut from: u32) {
    let sockets = || list.iter().filter_map(socket_of).map(|fd| fd as u32);
    while let Some(next) = sockets().filter(|fd| *fd >= from).min() {
        if next > from {
            descriptor::close(from..=next - 1, false);
        }
        from = next + 1;
    }
    descriptor::close(from..=u32::MAX, false);
}

/// The number of the socket that an entry is undone through; `None` of an entry of another kind.
pub(super) fn socket_of(entry: &Entry) -> Option<RawFd> {
    let number = entry[1..SOCKET_END].first_chunk()?;
    (entry[0] == LINK).then(|| RawFd::from_ne_bytes(*number))
}

pub(super) fn put_back(entry: &Entry) -> PutBack {
    let Some(number) = socket_of(entry) else {
        return PutBack {
            root: Ok(()),
            segments: Ok(None),
        };
    };
    // SAFETY: it is open as long as the entry is on a list, which whoever made the entry sees to.
    let socket = unsafe { BorrowedFd::borrow_raw(number) };
    let [delete, ask, set] = requests_of(entry);
    let root = route::request(socket, delete, |_| {});
    let segments = if ask.is_empty() {
        Ok(None)
    } else {
        put_segments_back(socket, ask, set, ours_of(entry))
    };
    PutBack { root, segments }
}

fn put_segments_back(
    socket: BorrowedFd<'_>,
    ask: &[u8],
    set: &[u8],
    ours: Option<u32>,
) -> Result<Option<u32>> {
    let mut now = None;
    route::request(socket, ask, |message| now = segments_of(message).or(now))?;
    if now != ours {
        return Ok(now);
    }
    route::request(socket, set, |_| {}).map(|()| None)
}

/// How many segments an interface has, in the kernel's message about it.
pub(crate) fn segments_of(message: &[u8]) -> Option<u32> {
    route::word(route::attribute(message, LINK_HEADER, SEGMENTS)?, 0)
}

fn ours_of(entry: &Entry) -> Option<u32> {
    route::word(entry, LENGTHS_END)
}

fn requests_of(entry: &Entry) -> [&[u8]; 3] {
    let mut at = OURS_END;
    [0, 1, 2].map(|which: usize| {
        let begin = at;
        at += usize::from(entry[SOCKET_END + which]);
        entry.get(begin..at).unwrap_or(&[])
    })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn requests_come_out_as_they_went_in_and_none_is_cut() {
        let socket = route::open().unwrap();
        let (delete, ask, set) = ([1; 44], [2; 32], [3; 40]);
        let requests = Requests {
            delete: &delete,
            ask: &ask,
            set: &set,
            ours: 1,
        };
        let entry = LinkChange::new(socket.as_fd(), requests).unwrap().entry();
        assert_eq!(requests_of(&entry), [&delete[..], &ask[..], &set[..]]);
        assert_eq!(ours_of(&entry), Some(1));
        assert_eq!(socket_of(&entry), Some(socket.as_raw_fd()));
        assert_eq!(socket_of(&FREE), None);
        let long = Requests {
            delete: &[0; 250],
            ..requests
        };
        assert!(LinkChange::new(socket.as_fd(), long).is_err());
    }
}
