//! Standard error, for who may not wait until somebody reads there.

use std::io;
use std::os::fd::AsFd as _;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, write};
use rustix::net::{SendFlags, send};

/// Puts this on standard error, or as much of it as that takes at once; nothing where it is full, closed or broken. It takes no lock, sends no signal, and leaves the descriptor as it is, which other processes may have too.
pub fn say_at_once(text: &str) {
    let (stderr, bytes) = (io::stderr(), text.as_bytes());
    let sent = send(
        stderr.as_fd(),
        bytes,
        SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
    );
    if sent != Err(Errno::NOTSOCK) {
        return;
    }
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY;
    // Opened anew, so that it is this one alone that does not wait. A pipe that nobody reads is not opened.
    if let Ok(own) = open(c"/proc/self/fd/2", flags | OFlags::CLOEXEC, Mode::empty()) {
        let _ = write(own, bytes);
    }
}
