//! The guardian: a process that undoes what outlives us, if we die without doing it ourselves (SIGKILL included).
//!
//! It is forked once, as early as the application wishes, into a session of its own, and reads a pipe of which only we have the
//! other end. Every change that would outlive this process is written to the pipe *before* it is made. When the pipe ends, we are
//! gone (it helps us to our end): the guardian gives foreign threads and network interfaces back what they had, thaws and empties the groups it knows, removes them, and exits. What was undone
//! properly is struck from its list, so usually there is nothing to do. If the guardian itself is killed, another takes its place and its list as soon
//! as that is noticed: when there is something new for the list, and whenever somebody looks, as runs and reservations do. So does it where the guardian
//! does not read what is told to it, as one that somebody stopped: nobody waits for that. Programs that were started have keepers of their own ([`crate::host::command`]).
//!
//! A fork of a process with threads may only make async-signal-safe calls, since locks of the C library may be held by threads
//! that do not exist in the child. So the guardian allocates nothing and calls the kernel only; its list has a fixed size.

mod group;
pub(crate) mod link;

use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use laxity_model::enforce::ranks::OCCUPANT;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use rustix::thread::nanosleep;
use rustix::time::Timespec;

use self::group::{for_each_line, remove, write_file};
use self::link::LinkChange;
use crate::os::claim;
use crate::os::fork::PerProcess;
use crate::os::life::{Life, Watched, run_anywhere};
use crate::os::sched::{RawAttributes, Restore, Tid};

/// The most things on the list; more are refused.
const MOST: usize = 1_024;

/// A thing to undo, as it is on the list: its kind, and behind it the group's path, or the thread and what it had. The last byte stays 0.
type Entry = [u8; 255];

const FREE: Entry = [0; 255];
const GROUP: u8 = 1;
const THREAD: u8 = 2;
const LINK: u8 = 3;
/// Where in an entry a thread's number ends, its attributes end, and the mask of its processors does.
const NUMBER_END: usize = 1 + size_of::<i32>();
const ATTRIBUTES_END: usize = NUMBER_END + size_of::<RawAttributes>();
const MASK_END: usize = ATTRIBUTES_END + MASK_BYTES;
/// Processors with higher numbers than fit are not remembered.
const MASK_BYTES: usize = 192;
const _: () = assert!(MASK_END < size_of::<Entry>());

/// What goes through the pipe: 1 to put an entry on the list or 0 to strike it, and the entry. So short that a write is atomic.
const MESSAGE_BYTES: usize = 1 + size_of::<Entry>();
const _: () = assert!(MESSAGE_BYTES <= libc::PIPE_BUF);

/// A guardian whose pipe is full reads by then, unless somebody keeps it from that.
const READS_WITHIN: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// What is to be undone if we die.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Undo<'a> {
    /// The cgroup in this directory is thawed, emptied into its parent and removed.
    Group(&'a Path),
    /// This thread of another process gets its policy and its processors back.
    Thread(&'a Restore),
    /// This network interface gets back what it had. A guardian acts through a socket that it must have from us, so for each another takes the place of who is there.
    Link(&'a LinkChange),
}

impl Undo<'_> {
    fn entry(self) -> io::Result<Entry> {
        let mut entry = FREE;
        match self {
            Self::Group(path) => {
                let bytes = path.as_os_str().as_bytes();
                entry[0] = GROUP;
                let room = entry[1..254].get_mut(..bytes.len());
                room.ok_or(Errno::NAMETOOLONG)?.copy_from_slice(bytes);
            }
            Self::Thread(restore) => {
                let (tid, attributes, processors) = restore.parts();
                entry[0] = THREAD;
                entry[1..NUMBER_END].copy_from_slice(&tid.0.to_ne_bytes());
                entry[NUMBER_END..ATTRIBUTES_END].copy_from_slice(&attributes.to_bytes());
                let mask = &mut entry[ATTRIBUTES_END..MASK_END];
                for cpu in processors.iter() {
                    let byte = mask.get_mut(cpu / 8).ok_or(Errno::OVERFLOW)?;
                    *byte |= 1 << (cpu % 8);
                }
            }
            Self::Link(change) => return Ok(change.entry()),
        }
        Ok(entry)
    }
}

/// The guardian as we know it.
#[derive(Debug)]
pub struct Guardian {
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    reads: Reads,
    /// What it has on its list.
    list: Vec<Entry>,
}

/// Who reads what is told to it.
#[derive(Debug)]
struct Reads {
    /// Our end of the pipe. Nobody waits at it.
    pipe: File,
    process: OwnedFd,
}

static GUARDIAN: PerProcess<Mutex<Option<&'static Guardian>>> =
    PerProcess::new(|_| Mutex::default());

/// The guardian of this process, started at the first call that can. Call it early: what a fork must copy grows with the process. A child that an application forks has one of its own: to replace its parent's would end that.
pub fn start() -> io::Result<&'static Guardian> {
    let started = GUARDIAN.get().lock();
    let mut started = started.unwrap_or_else(PoisonError::into_inner);
    Ok(match *started {
        Some(guardian) => guardian,
        None => started.insert(Box::leak(Box::new(Guardian::fork()?))),
    })
}

impl Guardian {
    fn fork() -> io::Result<Self> {
        let known = Known {
            reads: fork(&[])?,
            list: Vec::new(),
        };
        Ok(Self {
            known: Mutex::new(known),
        })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on, this is undone if we die.
    pub(crate) fn watch(&self, undo: Undo<'_>) -> io::Result<()> {
        let entry = undo.entry()?;
        let mut known = self.known();
        if known.list.len() >= MOST {
            return Err(io::Error::other(format!(
                "no more than {MOST} threads, groups and interfaces are given back by it"
            )));
        }
        if let Undo::Link(_) = undo {
            known.list.push(entry);
            return known.replace().inspect_err(|_| {
                known.list.pop();
            });
        }
        known.send(true, &entry)?;
        known.list.push(entry);
        Ok(())
    }

    /// It has been undone.
    pub(crate) fn forget(&self, undo: Undo<'_>) -> io::Result<()> {
        let entry = undo.entry()?;
        let mut known = self.known();
        if let Some(at) = known.list.iter().position(|kept| *kept == entry) {
            known.list.swap_remove(at);
        }
        // Struck before that is told, in which another may take its place, which gets the list without it and is told all the same.
        known.send(false, &entry)
    }

    /// Has another take its place if it has died; tells whether it had.
    pub fn replace_if_dead(&self) -> io::Result<bool> {
        self.known().replace_if_dead()
    }
}

impl Known {
    fn replace_if_dead(&mut self) -> io::Result<bool> {
        let is_dead = has_no_reader(&self.reads.pipe)?;
        if is_dead {
            self.replace()?;
        }
        Ok(is_dead)
    }

    /// Another takes its place, with this list. Who was there must not see the pipe's end, by which it would give everything back.
    fn replace(&mut self) -> io::Result<()> {
        // Where there is nobody to do so, who is there stays.
        let next = fork(&self.list)?;
        // It may have gone.
        let _ = pidfd_send_signal(&self.reads.process, Signal::KILL);
        self.reads = next;
        Ok(())
    }

    /// Tells it, or who takes its place.
    fn send(&mut self, keep: bool, entry: &Entry) -> io::Result<()> {
        let mut message = [u8::from(keep); MESSAGE_BYTES];
        message[1..].copy_from_slice(entry);
        loop {
            self.replace_if_dead()?;
            match rustix::io::write(&self.reads.pipe, &message) {
                Ok(_) => return Ok(()),
                Err(Errno::AGAIN) if self.reads.goes_on()? => {}
                Err(Errno::AGAIN) => self.replace()?,
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Reads {
    /// Whether it reads from its full pipe, once it is let go on: somebody may have stopped it.
    fn goes_on(&self) -> io::Result<bool> {
        // It may have gone.
        let _ = pidfd_send_signal(&self.process, Signal::CONT);
        loop {
            let mut polled = [PollFd::new(&self.pipe, PollFlags::OUT)];
            match poll(&mut polled, Some(&READS_WITHIN)) {
                Err(Errno::INTR) => {}
                ready => return Ok(ready? > 0),
            }
        }
    }
}

/// Whether nobody has the other end of a pipe any more. Asked before writing: in a program that is not Rust's, SIGPIPE would end us.
fn has_no_reader(pipe: &File) -> io::Result<bool> {
    let mut polled = [PollFd::new(pipe, PollFlags::empty())];
    poll(&mut polled, Some(&Timespec::default()))?;
    Ok(polled[0].revents().contains(PollFlags::ERR))
}

/// Starts a guardian with this list.
fn fork(known: &[Entry]) -> io::Result<Reads> {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    fcntl_setfl(&writer, OFlags::NONBLOCK)?;
    // What the child needs is there before: it may not allocate, and whose thread this is may have a small stack.
    let mut list = vec![FREE; MOST];
    list[..known.len()].copy_from_slice(known);
    let mut claims: Vec<Option<OwnedFd>> = list.iter().map(|_| None).collect();
    let life = Life::own();
    // SAFETY: the child makes async-signal-safe calls only and never returns.
    let child = unsafe { libc::fork() };
    match child {
        0 => guard((reader.as_raw_fd(), life), &mut list, &mut claims),
        -1 => return Err(io::Error::last_os_error()),
        _ => {}
    }
    // The first child ends at once, so that the guardian is no child of ours whom somebody might wait for.
    let mut status = 0;
    // SAFETY: `status` is a valid place; the child is ours.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } == -1
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
    // SAFETY: a plain kernel call on a descriptor of ours.
    let guardian = unsafe { libc::fcntl(reader.as_raw_fd(), libc::F_GETOWN) };
    let guardian = Pid::from_raw(guardian).ok_or(Errno::SRCH)?;
    let process = pidfd_open(guardian, PidfdFlags::empty()).inspect_err(|_| {
        // It has the list, and would give all of it back at the pipe's end.
        let _ = kill_process(guardian, Signal::KILL);
    })?;
    let pipe = File::from(writer);
    Ok(Reads { pipe, process })
}

/// Looks whether the guardian of this process lives, if it has one, and has another take its place if not; tells whether it had died. One that is being started
/// is looked after the next time.
pub(crate) fn look_after() -> io::Result<bool> {
    let started = GUARDIAN.get().try_lock().ok().and_then(|started| *started);
    started.map_or(Ok(false), Guardian::replace_if_dead)
}

/// The guardian's life. Kernel calls only.
fn guard(
    (reader, life): (c_int, Option<Life>),
    list: &mut [Entry],
    claims: &mut [Option<OwnedFd>],
) -> ! {
    detach(reader, list);
    let mut watched = life.and_then(Life::watch);
    for (claimed, entry) in claims.iter_mut().zip(&*list) {
        *claimed = claim(entry);
    }
    let mut message = [0; MESSAGE_BYTES];
    while read_message(&mut message, &mut watched) {
        if let Some(place) = note(list, &message) {
            claims[place] = claim(&list[place]);
        }
    }
    undo(list);
    // SAFETY: ends this process.
    unsafe { libc::_exit(0) }
}

/// The descriptor of the pipe after [`detach`].
const PIPE: c_int = 3;

/// Leaves everything of the parent: its session, its descriptors but those that the list needs, its signals' meaning. Descriptors come first, while the parent still waits: what it closes afterwards, as a
/// socket whose port it wants again, is open nowhere else.
fn detach(reader: c_int, list: &[Entry]) {
    // SAFETY: plain kernel calls on numbers and static strings; none of them can touch memory that is not there.
    unsafe {
        libc::dup2(reader, PIPE);
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for standard in 0..PIPE {
            libc::dup2(null, standard);
        }
        link::close_but(list, PIPE as u32 + 1);
        let guardian = libc::fork();
        if guardian != 0 {
            // The pipe remembers whose it is, for who asks. Where there is nobody, it is nobody's.
            if guardian > 0 {
                libc::fcntl(PIPE, libc::F_SETOWN, guardian);
            }
            libc::_exit(0);
        }
        libc::setsid();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::prctl(libc::PR_SET_NAME, claim::GUARDIAN.as_ptr());
        libc::chdir(c"/".as_ptr());
    }
    // Whichever thread of ours started it.
    schedule(0, libc::SCHED_OTHER, 0);
    run_anywhere();
}

/// Reads one message; `false` at the end of the pipe.
fn read_message(message: &mut [u8; MESSAGE_BYTES], watched: &mut Option<Watched>) -> bool {
    // SAFETY: nobody closes it in this process.
    let pipe = unsafe { BorrowedFd::borrow_raw(PIPE) };
    let mut filled = 0;
    while filled < MESSAGE_BYTES {
        help_to_end(pipe, watched);
        match rustix::io::read(pipe, &mut message[filled..]) {
            Ok(got @ 1..) => filled += got,
            Err(Errno::INTR) => {}
            _ => return false,
        }
    }
    true
}

/// Waits until the pipe can be read or has come to its end, to which threads that cannot die where they are must be let loose.
fn help_to_end(pipe: BorrowedFd<'_>, watched: &mut Option<Watched>) {
    while let Some(ended) = watched {
        let mut polled = [
            PollFd::new(&pipe, PollFlags::IN),
            PollFd::new(&*ended, PollFlags::IN),
        ];
        match poll(&mut polled, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return,
        }
        let [to_read, has_ended] = polled.map(|polled| !polled.revents().is_empty());
        if has_ended && let Some(watched) = watched.take() {
            watched.let_loose();
        }
        if to_read {
            return;
        }
    }
}

/// A thread on the list is nobody else's before it has what it had. Where that cannot be, it is given back all the same. Of an interface it is the socket, as long as it is on the list.
fn claim(entry: &Entry) -> Option<OwnedFd> {
    if let Some(socket) = link::socket_of(entry) {
        // SAFETY: it was left open for this entry, and nobody else in this process has it.
        return Some(unsafe { OwnedFd::from_raw_fd(socket) });
    }
    (entry[0] == THREAD).then(|| claim::share(thread_of(entry)).ok())?
}

/// Puts an entry on the list or strikes it; tells where.
fn note(list: &mut [Entry], message: &[u8; MESSAGE_BYTES]) -> Option<usize> {
    let mut entry = FREE;
    entry.copy_from_slice(&message[1..]);
    let (before, after) = match message[0] {
        1 => (FREE, entry),
        _ => (entry, FREE),
    };
    let place = list.iter().position(|place| *place == before)?;
    list[place] = after;
    Some(place)
}

fn undo(list: &[Entry]) {
    let of_kind = |kind| list.iter().filter(move |entry| entry[0] == kind);
    if list.iter().any(|entry| *entry != FREE) {
        // Above those threads, where that may be: they may leave an ordinary process nothing. And no longer than that.
        schedule(0, libc::SCHED_FIFO, 99);
        of_kind(GROUP).for_each(take_ranks);
        of_kind(THREAD).for_each(give_back);
        schedule(0, libc::SCHED_OTHER, 0);
    }
    of_kind(LINK).for_each(|entry| {
        // What cannot be put back is left as it is.
        let _ = link::put_back(entry);
    });
    for group in of_kind(GROUP) {
        write_file(group, b"/cgroup.freeze", b"0");
    }
    for group in of_kind(GROUP) {
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

/// Gives a thread a policy, where it may have that; 0 is this process.
fn schedule(tid: i32, policy: c_int, priority: c_int) {
    let parameter = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: `parameter` outlives the call.
    unsafe { libc::sched_setscheduler(tid, policy, &raw const parameter) };
}

/// Whether a thread has the rank of slots.
fn is_ranked(tid: i32) -> bool {
    let mut parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameter` is a valid place.
    let policy = unsafe {
        libc::sched_getparam(tid, &raw mut parameter);
        libc::sched_getscheduler(tid) & !libc::SCHED_RESET_ON_FORK
    };
    policy == libc::SCHED_FIFO && parameter.sched_priority == c_int::from(OCCUPANT)
}

/// Who was started in slots may have their rank without being on the list: in a group of ours it is an ordinary thread from now on, before those on the list
/// have what was theirs.
fn take_ranks(group: &Entry) {
    // Who is just being started has what its starter had a moment ago: it is found in the next round.
    for _ in 0..100 {
        let mut found = false;
        for_each_line(group, b"/cgroup.threads", |line| {
            let tid = std::str::from_utf8(line)
                .ok()
                .and_then(|line| line.parse().ok());
            if let Some(tid) = tid.filter(|tid| is_ranked(*tid)) {
                schedule(tid, libc::SCHED_OTHER, 0);
                found = true;
            }
        });
        if !found {
            return;
        }
    }
}

fn thread_of(entry: &Entry) -> Tid {
    Tid(i32::from_ne_bytes([entry[1], entry[2], entry[3], entry[4]]))
}

/// Gives a thread its policy and its processors back; one that has gone needs nothing.
fn give_back(entry: &Entry) {
    let Tid(tid) = thread_of(entry);
    let attributes = entry[NUMBER_END..].as_ptr();
    let mask = entry[ATTRIBUTES_END..].as_ptr();
    // A deadline thread refuses a narrower mask, and asks for the whole one: so the policy both before and after.
    for _ in 0..2 {
        // SAFETY: both stand in the entry as they were given; the kernel reads so many bytes of them, wherever they lie.
        unsafe {
            libc::syscall(libc::SYS_sched_setattr, tid, attributes, 0u32);
            libc::syscall(libc::SYS_sched_setaffinity, tid, MASK_BYTES, mask);
        }
    }
}

#[cfg(test)]
mod tests;
