//! Waiting on descriptors: until one can be read, or a counter is raised by another thread.

use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::task::Wake;

use laxity_model::Instant;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;

use crate::os::clock;

/// What another thread raises so that a wait on descriptors ends: an eventfd.
#[derive(Debug)]
pub(crate) struct Alarm(OwnedFd);

impl Alarm {
    /// One that has not been raised.
    ///
    /// # Errors
    ///
    /// What the kernel says: no descriptors left.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(
            0,
            EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK,
        )?))
    }

    /// Ends the wait of whoever waits now or next.
    pub(crate) fn raise(&self) {
        // A counter that is full is raised already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Nobody has raised it any more.
    pub(crate) fn clear(&self) {
        // A counter that nobody raised is cleared already.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.raise();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.raise();
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Closes the descriptors of these numbers, or `at_exec` as soon as another program is executed. Takes no lock and allocates nothing: for what was forked.
pub(crate) fn close(numbers: RangeInclusive<u32>, at_exec: bool) {
    let flags = if at_exec {
        libc::CLOSE_RANGE_CLOEXEC
    } else {
        0
    };
    // SAFETY: it takes numbers, and whoever asks has nothing open there that anybody uses from here on. Where the kernel does not know the call, they stay open.
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            *numbers.start(),
            *numbers.end(),
            flags,
        );
    }
}

/// Waits until one of the descriptors can be read or has come to its end, the alarm is raised, `until` comes, or a signal is handled.
/// Tells for each descriptor what `poll` says of it; 0: nothing.
///
/// # Errors
///
/// What the kernel says of the wait, if it is more than that it was interrupted.
pub(crate) fn wait(
    descriptors: &[BorrowedFd<'_>],
    alarm: &Alarm,
    until: Option<Instant>,
) -> io::Result<Vec<u16>> {
    let mut polled = vec![PollFd::new(&alarm.0, PollFlags::IN)];
    polled.extend(descriptors.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
    let left = until.map(|until| until.saturating_since(clock::now()));
    let timeout = left.map(|left| clock::timespec(Instant::ZERO + left));
    match poll(&mut polled, timeout.as_ref()) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(vec![0; descriptors.len()]),
        Err(error) => return Err(error.into()),
    }
    if !polled[0].revents().is_empty() {
        alarm.clear();
    }
    Ok(polled[1..]
        .iter()
        .map(|entry| entry.revents().bits())
        .collect())
}
