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
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

use crate::os::sched::Tid;

/// The longest path of a group, with its end.
const PATH_BYTES: usize = 240;
/// The most things on the list.
const MOST: usize = 256;

const FREE: u32 = 0;
const GROUP: u32 = 1;
const CHILD: u32 = 2;

/// One thing to undo, as it goes through the pipe: 256 bytes, so that a write is atomic.
#[repr(C)]
#[derive(Clone, Copy)]
struct Record {
    /// [`GROUP`] or [`CHILD`].
    kind: u32,
    /// 1: put on the list, 0: strike.
    keep: u32,
    process: i32,
    padding: u32,
    path: [u8; PATH_BYTES],
}

const RECORD_BYTES: usize = size_of::<Record>();

impl Record {
    const EMPTY: Self = Self {
        kind: FREE,
        keep: 0,
        process: 0,
        padding: 0,
        path: [0; PATH_BYTES],
    };

    fn same(&self, other: &Self) -> bool {
        self.kind == other.kind && self.process == other.process && self.path == other.path
    }

    fn to_bytes(self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[0..4].copy_from_slice(&self.kind.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.keep.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.process.to_ne_bytes());
        bytes[16..].copy_from_slice(&self.path);
        bytes
    }

    fn from_bytes(bytes: &[u8; RECORD_BYTES]) -> Self {
        let word = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        let mut path = [0; PATH_BYTES];
        path.copy_from_slice(&bytes[16..]);
        Self {
            kind: u32::from_ne_bytes(word(0)),
            keep: u32::from_ne_bytes(word(4)),
            process: i32::from_ne_bytes(word(8)),
            padding: 0,
            path,
        }
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
        let mut ends = [0; 2];
        // SAFETY: room for two descriptors.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } == -1 {
            return Err(io::Error::last_os_error());
        }
        let [reader, writer] = ends;
        // SAFETY: the child makes async-signal-safe calls only and never returns.
        let child = unsafe { libc::fork() };
        if child == 0 {
            guard(reader);
        }
        // SAFETY: both ends are ours; the reading end is only the guardian's business.
        let pipe = unsafe {
            libc::close(reader);
            File::from_raw_fd(writer)
        };
        if child == -1 {
            return Err(io::Error::last_os_error());
        }
        // The first child ends at once, so that the guardian is no child of ours whom somebody might wait for.
        let mut status = 0;
        // SAFETY: `status` is a valid place; the child is ours.
        while unsafe { libc::waitpid(child, &raw mut status, 0) } == -1
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
        Ok(Self { pipe })
    }

    fn send(&self, record: Record) -> io::Result<()> {
        (&self.pipe).write_all(&record.to_bytes())
    }

    fn group(path: &Path, keep: bool) -> io::Result<Record> {
        let bytes = path.as_os_str().as_bytes();
        let mut record = Record {
            kind: GROUP,
            keep: u32::from(keep),
            ..Record::EMPTY
        };
        // One byte stays 0, and suffixes are put behind it in a larger buffer.
        if bytes.len() >= PATH_BYTES {
            return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
        }
        record.path[..bytes.len()].copy_from_slice(bytes);
        Ok(record)
    }

    /// From now on, the cgroup in this directory is thawed, emptied into its parent and removed if we die.
    pub(crate) fn watch_group(&self, path: &Path) -> io::Result<()> {
        self.send(Self::group(path, true)?)
    }

    /// The group has been removed.
    pub(crate) fn forget_group(&self, path: &Path) -> io::Result<()> {
        self.send(Self::group(path, false)?)
    }

    /// From now on, this child, the leader of its process group, is killed with its group if we die.
    pub(crate) fn watch_child(&self, child: Tid) -> io::Result<()> {
        self.child(child, 1)
    }

    /// The child has been reaped.
    pub(crate) fn forget_child(&self, child: Tid) -> io::Result<()> {
        self.child(child, 0)
    }

    fn child(&self, child: Tid, keep: u32) -> io::Result<()> {
        self.send(Record {
            kind: CHILD,
            keep,
            process: child.0,
            ..Record::EMPTY
        })
    }
}

/// The guardian's life. Kernel calls only.
fn guard(reader: c_int) -> ! {
    detach(reader);
    let mut list = [Record::EMPTY; MOST];
    let mut bytes = [0; RECORD_BYTES];
    while read_record(&mut bytes) {
        note(&mut list, &Record::from_bytes(&bytes));
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

/// Reads one record; `false` at the end of the pipe.
fn read_record(bytes: &mut [u8; RECORD_BYTES]) -> bool {
    let mut filled = 0;
    while filled < RECORD_BYTES {
        let rest = &mut bytes[filled..];
        // SAFETY: `rest` is valid for its length.
        let got = unsafe { libc::read(PIPE, rest.as_mut_ptr().cast(), rest.len()) };
        match got {
            1.. => filled += got as usize,
            -1 if crate::os::sched::errno() == libc::EINTR => {}
            _ => return false,
        }
    }
    true
}

/// Puts a record on the list or strikes it.
fn note(list: &mut [Record; MOST], record: &Record) {
    let wanted = if record.keep == 1 {
        &Record::EMPTY
    } else {
        record
    };
    if let Some(place) = list.iter_mut().find(|entry| entry.same(wanted)) {
        *place = if record.keep == 1 {
            *record
        } else {
            Record::EMPTY
        };
    }
}

fn undo(list: &[Record; MOST]) {
    for entry in list.iter().filter(|entry| entry.kind == CHILD) {
        // SAFETY: signals to processes that our parent started and had not reaped.
        unsafe {
            libc::kill(-entry.process, libc::SIGKILL);
            libc::kill(entry.process, libc::SIGKILL);
        }
    }
    for entry in list.iter().filter(|entry| entry.kind == GROUP) {
        write_file(&entry.path, b"/cgroup.freeze", b"0");
    }
    for entry in list.iter().filter(|entry| entry.kind == GROUP) {
        // A process that is just being killed keeps its group busy for a moment.
        for _ in 0..2_000 {
            if remove(entry) {
                break;
            }
            let pause = libc::timespec {
                tv_sec: 0,
                tv_nsec: 1_000_000,
            };
            // SAFETY: a valid timespec, no remainder wanted.
            unsafe {
                libc::nanosleep(&raw const pause, std::ptr::null_mut());
            }
        }
    }
}

/// Empties a group into its parent and removes it; `true` when it is gone.
fn remove(entry: &Record) -> bool {
    let mut procs = [0u8; 4096];
    let length = read_file(&entry.path, b"/cgroup.procs", &mut procs);
    for process in procs[..length].split(|byte| *byte == b'\n') {
        if !process.is_empty() {
            write_file(&entry.path, b"/../cgroup.procs", process);
        }
    }
    // SAFETY: the path ends with a 0 byte, as `Guardian::group` has checked.
    let result = unsafe { libc::rmdir(entry.path.as_ptr().cast()) };
    result == 0 || crate::os::sched::errno() == libc::ENOENT
}

/// The path with a suffix, ended by 0.
fn join<'a>(
    path: &[u8; PATH_BYTES],
    suffix: &[u8],
    buffer: &'a mut [u8; PATH_BYTES + 32],
) -> Option<&'a CStr> {
    let length = path.iter().position(|byte| *byte == 0)?;
    buffer.get_mut(..length)?.copy_from_slice(&path[..length]);
    buffer
        .get_mut(length..length + suffix.len())?
        .copy_from_slice(suffix);
    CStr::from_bytes_until_nul(buffer).ok()
}

fn write_file(path: &[u8; PATH_BYTES], suffix: &[u8], value: &[u8]) {
    let mut buffer = [0; PATH_BYTES + 32];
    if let Some(name) = join(path, suffix, &mut buffer) {
        // SAFETY: a path ended by 0, and a value valid for its length.
        unsafe {
            let file = libc::open(name.as_ptr(), libc::O_WRONLY);
            if file >= 0 {
                libc::write(file, value.as_ptr().cast(), value.len());
                libc::close(file);
            }
        }
    }
}

fn read_file(path: &[u8; PATH_BYTES], suffix: &[u8], into: &mut [u8]) -> usize {
    let mut buffer = [0; PATH_BYTES + 32];
    let Some(name) = join(path, suffix, &mut buffer) else {
        return 0;
    };
    // SAFETY: a path ended by 0, and room for the length that is named.
    let got = unsafe {
        let file = libc::open(name.as_ptr(), libc::O_RDONLY);
        if file < 0 {
            return 0;
        }
        let got = libc::read(file, into.as_mut_ptr().cast(), into.len());
        libc::close(file);
        got
    };
    usize::try_from(got).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_the_pipe_and_fit_an_atomic_write() {
        let record = Guardian::group(Path::new("/sys/fs/cgroup/x"), true).unwrap();
        assert!(Record::from_bytes(&record.to_bytes()).same(&record));
        assert_eq!(RECORD_BYTES, 256);
    }

    #[test]
    fn what_was_undone_is_struck() {
        let mut list = [Record::EMPTY; MOST];
        let path = Path::new("/sys/fs/cgroup/x");
        note(&mut list, &Guardian::group(path, true).unwrap());
        assert_eq!(list.iter().filter(|e| e.kind == GROUP).count(), 1);
        note(&mut list, &Guardian::group(path, false).unwrap());
        assert_eq!(list.iter().filter(|e| e.kind != FREE).count(), 0);
    }

    #[test]
    fn a_path_too_long_to_be_kept_is_refused() {
        let long = "x".repeat(PATH_BYTES);
        assert!(Guardian::group(Path::new(&long), true).is_err());
    }
}
