//! Waiting on descriptors: until one can be read, or a counter is raised by another thread.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use laxity_model::{Instant, Span};

use crate::os::clock;

/// What another thread raises so that a wait on descriptors ends: an eventfd.
#[derive(Debug)]
pub struct Alarm(OwnedFd);

impl Alarm {
    /// One that has not been raised.
    ///
    /// # Errors
    ///
    /// What the kernel says: no descriptors left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the call takes no pointers; what it returns, if it is no error, is a descriptor that nobody else has.
        unsafe {
            let fd = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// Ends the wait of whoever waits now or next.
    pub fn raise(&self) {
        let one = 1_u64;
        // SAFETY: eight bytes are read from `one`. A counter that is full is raised already.
        unsafe {
            libc::write(self.0.as_raw_fd(), ptr::from_ref(&one).cast(), 8);
        }
    }

    fn clear(&self) {
        let mut count = 0_u64;
        // SAFETY: eight bytes are written to `count`. A counter that nobody raised is cleared already.
        unsafe {
            libc::read(self.0.as_raw_fd(), ptr::from_mut(&mut count).cast(), 8);
        }
    }
}

/// Waits until one of the descriptors can be read or has come to its end, the alarm is raised, `until` comes, or a signal is handled.
/// Tells for each descriptor what `poll` says of it; 0: nothing.
///
/// # Errors
///
/// What the kernel says of the wait, if it is more than that it was interrupted.
pub fn wait(
    descriptors: &[BorrowedFd<'_>],
    alarm: &Alarm,
    until: Option<Instant>,
) -> io::Result<Vec<u16>> {
    let wanted = |fd: i32| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    let mut polled: Vec<libc::pollfd> = descriptors
        .iter()
        .map(|descriptor| wanted(descriptor.as_raw_fd()))
        .chain([wanted(alarm.0.as_raw_fd())])
        .collect();
    let left = until.map(|until| until.saturating_since(clock::now()));
    let timeout = left.map(|left: Span| clock::timespec(Instant::ZERO + left));
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: as many entries as are said are there, and all pointers outlive the call.
    let ready = unsafe {
        let count = polled.len() as libc::nfds_t;
        libc::ppoll(polled.as_mut_ptr(), count, timeout, ptr::null())
    };
    if ready < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
        return Ok(vec![0; descriptors.len()]);
    }
    if polled.pop().is_some_and(|alarm| alarm.revents != 0) {
        alarm.clear();
    }
    Ok(polled.iter().map(|entry| entry.revents as u16).collect())
}
