//! The guardian: a process that undoes what outlives us, if we die without doing it ourselves (SIGKILL included).
//!
//! It is forked once, before the first child of the application, into a session of its own, and reads a pipe of which only we have the
//! other end. Every child that would outlive this process is written to the pipe. When the pipe ends, we are gone: the guardian kills
//! the children it knows, each with its process group, and exits. Who has ended properly is struck from its list, so usually there is
//! nothing to do.
//!
//! A fork of a process with threads may only make async-signal-safe calls, since locks of the C library may be held by threads
//! that do not exist in the child. So the guardian allocates nothing and calls the kernel only; its list has a fixed size.

use std::ffi::c_int;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::os::sched::Tid;

/// The most children on the list.
const MOST: usize = 256;

/// The children's numbers; 0 where there is none.
type List = [i32; MOST];

/// What goes through the pipe: a child's number to put it on the list, and the same negated to strike it. So short that a write is
/// atomic.
const MESSAGE_BYTES: usize = size_of::<i32>();

/// Our end of the pipe.
#[derive(Debug)]
pub(crate) struct Guardian {
    pipe: File,
}

/// The guardian of this process, started at the first call. Call it early: what a fork must copy grows with the process.
pub(crate) fn start() -> io::Result<&'static Guardian> {
    static GUARDIAN: OnceLock<Result<Guardian, i32>> = OnceLock::new();
    GUARDIAN
        .get_or_init(|| Guardian::fork().map_err(|error| error.raw_os_error().unwrap_or(0)))
        .as_ref()
        .map_err(|errno| io::Error::from_raw_os_error(*errno))
}

impl Guardian {
    fn fork() -> io::Result<Self> {
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        // SAFETY: the child makes async-signal-safe calls only and never returns.
        let child = unsafe { libc::fork() };
        match child {
            0 => guard(reader.as_raw_fd()),
            -1 => return Err(io::Error::last_os_error()),
            _ => {}
        }
        // The first child ends at once, so that the guardian is no child of ours whom somebody might wait for.
        let mut status = 0;
        // SAFETY: `status` is a valid place; the child is ours.
        while unsafe { libc::waitpid(child, &raw mut status, 0) } == -1
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
        let pipe = File::from(writer);
        Ok(Self { pipe })
    }

    fn send(&self, message: i32) -> io::Result<()> {
        (&self.pipe).write_all(&message.to_ne_bytes())
    }

    /// From now on this child, the leader of its process group, is killed with its group if we die.
    pub(crate) fn watch(&self, child: Tid) -> io::Result<()> {
        self.send(child.0)
    }

    /// The child has ended.
    pub(crate) fn forget(&self, child: Tid) -> io::Result<()> {
        self.send(-child.0)
    }
}

/// The guardian's life. Kernel calls only.
fn guard(reader: c_int) -> ! {
    detach(reader);
    let mut list = [0; MOST];
    while let Some(message) = read_message() {
        note(&mut list, message);
    }
    kill(&list);
    // SAFETY: ends this process.
    unsafe { libc::_exit(0) }
}

/// The descriptor of the pipe after [`detach`].
const PIPE: c_int = 3;

/// Leaves everything of the parent: its session, its descriptors, its signals' meaning.
fn detach(reader: c_int) {
    // SAFETY: plain kernel calls on numbers and static strings; none of them can touch memory that is not there.
    unsafe {
        if libc::fork() != 0 {
            libc::_exit(0);
        }
        libc::setsid();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::prctl(libc::PR_SET_NAME, c"laxity-guardian".as_ptr());
        libc::dup2(reader, PIPE);
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for standard in 0..PIPE {
            libc::dup2(null, standard);
        }
        libc::syscall(libc::SYS_close_range, PIPE as u32 + 1, u32::MAX, 0u32);
        libc::chdir(c"/".as_ptr());
    }
}

/// Reads one message; `None` at the end of the pipe.
fn read_message() -> Option<i32> {
    // SAFETY: nobody closes it in this process.
    let pipe = unsafe { BorrowedFd::borrow_raw(PIPE) };
    let mut message = [0; MESSAGE_BYTES];
    let mut filled = 0;
    while filled < MESSAGE_BYTES {
        match rustix::io::read(pipe, &mut message[filled..]) {
            Ok(got @ 1..) => filled += got,
            Err(Errno::INTR) => {}
            _ => return None,
        }
    }
    Some(i32::from_ne_bytes(message))
}

/// Puts a child on the list or strikes it.
fn note(list: &mut List, message: i32) {
    let (before, after) = match message {
        1.. => (0, message),
        struck => (struck.wrapping_neg(), 0),
    };
    if let Some(place) = list.iter_mut().find(|place| **place == before) {
        *place = after;
    }
}

/// Our parent started them, and had not reaped them. What has gone needs no signal.
fn kill(list: &List) {
    for child in list.iter().filter_map(|child| Pid::from_raw(*child)) {
        let _ = kill_process_group(child, Signal::KILL);
        let _ = kill_process(child, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_ended_is_struck() {
        let mut list = [0; MOST];
        for message in [7, 8, -7, 9] {
            note(&mut list, message);
        }
        assert_eq!(list[..3], [9, 8, 0]);
        for message in [-8, -9, -10] {
            note(&mut list, message);
        }
        assert_eq!(list, [0; MOST]);
    }
}
