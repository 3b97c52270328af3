//! The guardian: a process that undoes what outlives us, if we die without doing it ourselves (SIGKILL included).
//!
//! It is forked once, as early as the application wishes, into a session of its own, and reads a pipe of which only we have the
//! other end. Every change that would outlive this process is written to the pipe *before* it is made. When the pipe ends, we are
//! gone: the guardian thaws and empties the groups it knows, kills the children it knows, gives foreign threads their policies
//! back, removes the groups, and exits. What was undone properly is struck from its list, so usually there is nothing to do.
//!
//! A fork of a process with threads may only make async-signal-safe calls, since locks of the C library may be held by threads
//! that do not exist in the child. So the guardian allocates nothing and calls the kernel only; its list has a fixed size.

use std::ffi::{CStr, c_int};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags, open, rmdir};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use rustix::thread::nanosleep;
use rustix::time::Timespec;

use crate::os::sched::Tid;

/// The most things on the list.
const MOST: usize = 256;

/// A thing to undo, as it is on the list: its kind, and behind it the group's path or the child's number. The last byte stays 0.
type Entry = [u8; 255];

const FREE: Entry = [0; 255];
const GROUP: u8 = 1;
const CHILD: u8 = 2;

/// What goes through the pipe: 1 to put an entry on the list or 0 to strike it, and the entry. So short that a write is atomic.
const MESSAGE_BYTES: usize = 1 + size_of::<Entry>();
const _: () = assert!(MESSAGE_BYTES <= libc::PIPE_BUF);

/// What is to be undone if we die.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Undo<'a> {
    /// The cgroup in this directory is thawed, emptied into its parent and removed.
    Group(&'a Path),
    /// This child, the leader of its process group, is killed with its group.
    Child(Tid),
}

impl Undo<'_> {
    fn entry(self) -> io::Result<Entry> {
        let mut entry = FREE;
        let (kind, bytes) = match &self {
            Self::Group(path) => (GROUP, path.as_os_str().as_bytes()),
            Self::Child(child) => (CHILD, &child.0.to_ne_bytes()[..]),
        };
        entry[0] = kind;
        let room = entry[1..254].get_mut(..bytes.len());
        room.ok_or(Errno::NAMETOOLONG)?.copy_from_slice(bytes);
        Ok(entry)
    }
}

/// Our end of the pipe.
#[derive(Debug)]
pub struct Guardian {
    pipe: File,
}

/// The guardian of this process, started at the first call. Call it early: what a fork must copy grows with the process.
pub fn start() -> io::Result<&'static Guardian> {
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

    fn send(&self, keep: bool, undo: Undo<'_>) -> io::Result<()> {
        let mut message = [u8::from(keep); MESSAGE_BYTES];
        message[1..].copy_from_slice(&undo.entry()?);
        (&self.pipe).write_all(&message)
    }

    /// From now on, this is undone if we die.
    pub(crate) fn watch(&self, undo: Undo<'_>) -> io::Result<()> {
        self.send(true, undo)
    }

    /// It has been undone.
    pub(crate) fn forget(&self, undo: Undo<'_>) -> io::Result<()> {
        self.send(false, undo)
    }
}

/// The guardian's life. Kernel calls only.
fn guard(reader: c_int) -> ! {
    detach(reader);
    let mut list = [FREE; MOST];
    let mut message = [0; MESSAGE_BYTES];
    while read_message(&mut message) {
        note(&mut list, &message);
    }
    undo(&list);
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

/// Reads one message; `false` at the end of the pipe.
fn read_message(message: &mut [u8; MESSAGE_BYTES]) -> bool {
    // SAFETY: nobody closes it in this process.
    let pipe = unsafe { BorrowedFd::borrow_raw(PIPE) };
    let mut filled = 0;
    while filled < MESSAGE_BYTES {
        match rustix::io::read(pipe, &mut message[filled..]) {
            Ok(got @ 1..) => filled += got,
            Err(Errno::INTR) => {}
            _ => return false,
        }
    }
    true
}

/// Puts an entry on the list or strikes it.
fn note(list: &mut [Entry; MOST], message: &[u8; MESSAGE_BYTES]) {
    let mut entry = FREE;
    entry.copy_from_slice(&message[1..]);
    let (before, after) = match message[0] {
        1 => (FREE, entry),
        _ => (entry, FREE),
    };
    if let Some(place) = list.iter_mut().find(|place| **place == before) {
        *place = after;
    }
}

fn undo(list: &[Entry; MOST]) {
    for entry in list.iter().filter(|entry| entry[0] == CHILD) {
        let child = i32::from_ne_bytes([entry[1], entry[2], entry[3], entry[4]]);
        // Our parent started it, and had not reaped it. What has gone needs no signal.
        if let Some(child) = Pid::from_raw(child) {
            let _ = kill_process_group(child, Signal::KILL);
            let _ = kill_process(child, Signal::KILL);
        }
    }
    for group in list.iter().filter(|entry| entry[0] == GROUP) {
        write_file(group, b"/cgroup.freeze", b"0");
    }
    for group in list.iter().filter(|entry| entry[0] == GROUP) {
        // A process that is just being killed keeps its group busy for a moment.
        for _ in 0..2_000 {
            if remove(group) {
                break;
            }
            let _ = nanosleep(&Timespec {
                tv_sec: 0,
                tv_nsec: 1_000_000,
            });
        }
    }
}

/// Empties a group into its parent and removes it; `true` when it is gone.
fn remove(group: &Entry) -> bool {
    let mut procs = [0u8; 4096];
    let length = read_file(group, b"/cgroup.procs", &mut procs);
    for process in procs[..length].split(|byte| *byte == b'\n') {
        if !process.is_empty() {
            write_file(group, b"/../cgroup.procs", process);
        }
    }
    let mut buffer = [0; PATH_BYTES];
    let removed = join(group, b"", &mut buffer).map(rmdir);
    matches!(removed, Some(Ok(()) | Err(Errno::NOENT)))
}

/// Room for a group's path with a suffix.
const PATH_BYTES: usize = size_of::<Entry>() + 32;

/// A group's path with a suffix, ended by 0.
fn join<'a>(group: &Entry, suffix: &[u8], buffer: &'a mut [u8; PATH_BYTES]) -> Option<&'a CStr> {
    let path = group[1..].split(|byte| *byte == 0).next()?;
    let (start, rest) = buffer.split_at_mut(path.len());
    start.copy_from_slice(path);
    rest.get_mut(..suffix.len())?.copy_from_slice(suffix);
    CStr::from_bytes_until_nul(buffer).ok()
}

/// What cannot be written belongs to nobody any more.
fn write_file(group: &Entry, suffix: &[u8], value: &[u8]) {
    let mut buffer = [0; PATH_BYTES];
    let path = join(group, suffix, &mut buffer);
    if let Some(Ok(file)) = path.map(|path| open(path, OFlags::WRONLY, Mode::empty())) {
        let _ = rustix::io::write(file, value);
    }
}

fn read_file(group: &Entry, suffix: &[u8], into: &mut [u8]) -> usize {
    let mut buffer = [0; PATH_BYTES];
    let path = join(group, suffix, &mut buffer);
    match path.map(|path| open(path, OFlags::RDONLY, Mode::empty())) {
        Some(Ok(file)) => rustix::io::read(file, into).unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(keep: u8, undo: Undo<'_>) -> [u8; MESSAGE_BYTES] {
        let mut message = [keep; MESSAGE_BYTES];
        message[1..].copy_from_slice(&undo.entry().unwrap());
        message
    }

    #[test]
    fn what_was_undone_is_struck() {
        let mut list = [FREE; MOST];
        let group = Undo::Group(Path::new("/sys/fs/cgroup/x"));
        let child = Undo::Child(Tid(7));
        note(&mut list, &message(1, group));
        note(&mut list, &message(1, child));
        let mut buffer = [0; PATH_BYTES];
        let path = join(&list[0], b"/cgroup.procs", &mut buffer).unwrap();
        assert_eq!(path, c"/sys/fs/cgroup/x/cgroup.procs");
        note(&mut list, &message(0, group));
        assert_eq!(list.iter().filter(|entry| **entry != FREE).count(), 1);
        note(&mut list, &message(0, child));
        assert!(list.iter().all(|entry| *entry == FREE));
    }

    #[test]
    fn a_path_too_long_to_be_kept_is_refused() {
        let long = "x".repeat(size_of::<Entry>());
        assert!(Undo::Group(Path::new(&long)).entry().is_err());
    }
}
