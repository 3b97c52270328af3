//! The keeper: a process between us and a program, to which everything comes back that the program starts.
//!
//! It is the program's parent, and a subreaper: whatever loses its parent below it, by whatever `setsid` or double fork, becomes its
//! child. When it is told to, or when we are gone (it reads a pipe of which only we have the other end, and helps us to our end, see [`life`](crate::os::life)),
//! it kills its children until none is left. So nothing escapes, and nobody else's processes are touched, which could not be said if this process were the subreaper.
//!
//! A keeper of a program in our own process group stays in that group. Signals that people and shells send are pending with it for ever: so
//! it shows which of those that we got were for all of the group, the program included, and which for us alone.
//!
//! The program waits between `fork` and `exec` until it is let go. So whatever it is given then, all that it ever starts inherits.
//!
//! A fork of a process with threads may only make async-signal-safe calls: both sides here allocate nothing and call the kernel only.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use laxity_model::Span;
use rustix::fs::{Mode, OFlags, RawDir, open};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CapabilitySet, clear_ambient_capability_set, nanosleep};
use rustix::time::Timespec;

use super::ProcessGroup;
use super::told::Told;
use crate::os::clock;
use crate::os::descriptor;
use crate::os::life::{Life, Watched, run_anywhere};
use crate::os::open_files;
use crate::os::proc;
use crate::os::signals::{self, set_of};

/// The exit code of a keeper that could not end everything.
const LEFT_SOMETHING: i32 = 1;
/// The exit code of a program that was not let go.
const NEVER_BEGAN: i32 = 127;

/// For so long children are killed, again and again, before the keeper gives up.
pub(super) const LIMIT: Span = Span::from_secs(3);

/// Everything may go on without a keeper. Any other byte is the number of a signal: one such that is pending is to be forgotten.
pub(super) const LEAVE: u8 = 0;

/// Our ends of the pipes.
#[derive(Debug)]
pub(super) struct Ours {
    /// A byte: [`LEAVE`], or a signal to be forgotten. The end: everything is to be ended.
    pub(super) control: OwnedFd,
    /// From which the keeper is heard.
    pub(super) told: OwnedFd,
    /// A byte lets the program go; the end without it ends the program.
    pub(super) go: OwnedFd,
}

/// The ends of the keeper and the program.
#[derive(Debug)]
pub(super) struct Theirs {
    control: OwnedFd,
    told: OwnedFd,
    go: OwnedFd,
}

/// Three pipes.
pub(super) fn pipes() -> io::Result<(Ours, Theirs)> {
    let new = || pipe_with(PipeFlags::CLOEXEC);
    let (their_control, control) = new()?;
    let (told, their_told) = new()?;
    let (their_go, go) = new()?;
    let ours = Ours { control, told, go };
    let theirs = Theirs {
        control: their_control,
        told: their_told,
        go: their_go,
    };
    Ok((ours, theirs))
}

/// What the child does between `fork` and `exec`: it becomes the keeper, and its own child goes on to `exec` once it is let go.
pub(super) fn hook(
    ours: &Ours,
    theirs: &Theirs,
    group: ProcessGroup,
) -> impl FnMut() -> io::Result<()> + Send + Sync + 'static + use<> {
    let ours = [&ours.control, &ours.told, &ours.go].map(AsRawFd::as_raw_fd);
    let [control, told, go] = [&theirs.control, &theirs.told, &theirs.go].map(AsRawFd::as_raw_fd);
    let life = Life::own();
    move || {
        let keeper = std::process::id();
        if group == ProcessGroup::Callers {
            // What is blocked stays pending, whatever it means otherwise: with the keeper for ever, with the program until it executes.
            signals::change_blocked(libc::SIG_BLOCK, &set_of(signals::for_a_program()))?;
        }
        let (control, told) = (out_of_the_way(control)?, out_of_the_way(told)?);
        // SAFETY: both sides make async-signal-safe calls only, until the one ends and the other executes a program.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => wait_to_be_let_go(keeper, ours, go, group),
            program => keep(program, (control, told), group, life),
        }
    }
}

/// A copy of a keeper's end above the numbers that [`detach`] gives to both, so that neither takes the other's place. It is made before there is a
/// keeper: where no more files may be open, whoever starts the program is told so, and nobody waits for a keeper that cannot be heard.
fn out_of_the_way(end: RawFd) -> io::Result<RawFd> {
    // SAFETY: a plain kernel call on a number.
    match unsafe { libc::fcntl(end, libc::F_DUPFD_CLOEXEC, TOLD + 1) } {
        -1 => Err(io::Error::last_os_error()),
        copy => Ok(copy),
    }
}

/// The program's side: waits, and gives up what the program is not to have.
fn wait_to_be_let_go(
    keeper: u32,
    ours: [RawFd; 3],
    go: RawFd,
    group: ProcessGroup,
) -> io::Result<()> {
    // SAFETY: plain kernel calls on numbers; the descriptors are copies of which nobody else in this process knows.
    unsafe {
        // As long as they are open here, no pipe comes to its end when we are gone.
        for end in ours {
            libc::close(end);
        }
        if group == ProcessGroup::Own {
            libc::setpgid(0, 0);
        }
        let go = BorrowedFd::borrow_raw(go);
        loop {
            match rustix::io::read(go, &mut [0_u8]) {
                Ok(1) => break,
                Err(Errno::INTR) => {}
                _ => exit(NEVER_BEGAN),
            }
        }
        open_files::as_before()?;
        become_the_user()?;
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong);
        // The keeper may have died before the call above took effect.
        if libc::getppid() as u32 != keeper {
            return Err(Errno::SRCH.into());
        }
    }
    if group == ProcessGroup::Callers {
        hear_what_came()?;
    }
    Ok(())
}

/// What came to the program before it is one does to it what it does to any that has no handler yet. But what stops it is gone: whoever starts it waits until it
/// executes, and no shell would know of it.
fn hear_what_came() -> io::Result<()> {
    let stops = set_of([libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU]);
    while signals::take(&stops).is_some() {}
    let all = set_of(signals::for_a_program());
    signals::change_blocked(libc::SIG_UNBLOCK, &all).map(|_| ())
}

/// Gives up what this process has by being set-user-ID, and what capabilities it would hand on: a program that a scenario names gets no
/// right that its user has not got.
///
/// # Safety
///
/// For a process with one thread: others would keep their rights.
unsafe fn become_the_user() -> io::Result<()> {
    // SAFETY: plain kernel calls on numbers. By number, since those of the C library tell other threads, and there are none.
    unsafe {
        let (user, group) = (libc::getuid(), libc::getgid());
        let given_up = (libc::getegid() == group
            || libc::syscall(libc::SYS_setresgid, group, group, group) == 0)
            && (libc::geteuid() == user
                || libc::syscall(libc::SYS_setresuid, user, user, user) == 0);
        if !given_up {
            return Err(io::Error::last_os_error());
        }
    }
    // A kernel without ambient capabilities hands none on.
    let _ = clear_ambient_capability_set();
    let mut sets = rustix::thread::capabilities(None)?;
    sets.inheritable = CapabilitySet::empty();
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

/// The descriptors of a keeper's pipes after [`detach`].
const CONTROL: RawFd = 3;
const TOLD: RawFd = 4;

/// The keeper's life.
fn keep(program: i32, pipes: (RawFd, RawFd), group: ProcessGroup, life: Option<Life>) -> ! {
    let ended = detach(pipes, group);
    // The program was forked before, and stays where it may run.
    run_anywhere();
    let mut watched = life.and_then(Life::watch);
    tell(Told::Held(program));
    let mut keeper = Keeper {
        program,
        has_ended: false,
    };
    while keeper.reap(true) {
        match wanted(ended, &mut watched) {
            Wanted::Nothing => {}
            Wanted::Forget(signal) => {
                // Of a real-time one there may be several, each of which we get too.
                signals::take(&set_of([signal.into()]));
                tell(Told::Forgot);
            }
            // Once more: what ended by itself before we were told to end it is told as that.
            Wanted::End if keeper.reap(true) && !keeper.end_all() => {
                tell_used();
                exit(LEFT_SOMETHING)
            }
            Wanted::End => break,
            // While the program is there, it would die with its keeper.
            Wanted::Leave if !keeper.has_ended => {}
            Wanted::Leave => break,
        }
    }
    tell_used();
    exit(0)
}

/// The kernel adds up what children had that were waited for, and theirs.
fn tell_used() {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: there is room for what is written, and it is whole where the call succeeds.
    let usage = unsafe {
        if libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) != 0 {
            return;
        }
        usage.assume_init()
    };
    let nanos =
        |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    tell(Told::Used(nanos(usage.ru_utime) + nanos(usage.ru_stime)));
}

fn exit(code: i32) -> ! {
    // SAFETY: ends this process.
    unsafe { libc::_exit(code) }
}

/// Leaves everything of the parent: its session (unless signals to the group are to be seen), its descriptors, its signals' meaning, its policy.
/// Hands back a descriptor that can be read when a child has ended or stopped; without one, -1.
fn detach((control, told): (RawFd, RawFd), group: ProcessGroup) -> RawFd {
    // SAFETY: plain kernel calls on numbers and static strings; `mask` is a signal set that the first call makes whole.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as libc::c_ulong);
        // Who signals all that is called laxity does not mean it: it would be taken for a signal to the group.
        libc::prctl(libc::PR_SET_NAME, c"keeper".as_ptr());
        match group {
            ProcessGroup::Own => {
                libc::setsid();
            }
            // It is so since before it had a child.
            ProcessGroup::Callers => {}
        }
        for signal in 1..=libc::SIGRTMAX() {
            // Two cannot be ignored, and children would vanish without their status if the third was.
            if signal != libc::SIGCHLD {
                libc::signal(signal, libc::SIG_IGN);
            }
        }
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::sched_setscheduler(
            0,
            libc::SCHED_OTHER,
            &libc::sched_param { sched_priority: 0 },
        );
        libc::dup2(control, CONTROL);
        libc::dup2(told, TOLD);
        // The program's output ends when nobody has it any more: the keeper must not.
        descriptor::close(0..=CONTROL as u32 - 1, false);
        descriptor::close(TOLD as u32 + 1..=u32::MAX, false);
        libc::chdir(c"/".as_ptr());
        let mut mask = MaybeUninit::uninit();
        libc::sigemptyset(mask.as_mut_ptr());
        libc::sigaddset(mask.as_mut_ptr(), libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_BLOCK, mask.as_ptr(), std::ptr::null_mut());
        libc::signalfd(-1, mask.as_ptr(), libc::SFD_NONBLOCK)
    }
}

fn tell(told: Told) {
    // SAFETY: nobody closes it in this process.
    let pipe = unsafe { BorrowedFd::borrow_raw(TOLD) };
    // If nobody listens any more, the other pipe tells it.
    let _ = rustix::io::write(pipe, &told.encode());
}

enum Wanted {
    Nothing,
    End,
    Leave,
    Forget(u8),
}

/// Waits until a child has ended or stopped, or something is wanted.
fn wanted(ended: RawFd, watched: &mut Option<Watched>) -> Wanted {
    let poll = |fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    let of_watched = watched
        .as_ref()
        .map_or(-1, |watched| watched.as_fd().as_raw_fd());
    let mut polled = [poll(CONTROL), poll(ended), poll(of_watched)];
    let patience_ms = if ended < 0 { 10 } else { -1 };
    let mut bytes = [0_u8; 128];
    // SAFETY: `polled` is three entries long, and there is room in `bytes` for what is read.
    unsafe {
        libc::poll(polled.as_mut_ptr(), 3, patience_ms);
        if polled[1].revents != 0 {
            libc::read(ended, bytes.as_mut_ptr().cast(), bytes.len());
        }
        // When all of them have ended, so does the pipe.
        if polled[2].revents != 0
            && let Some(watched) = watched.take()
        {
            watched.let_loose();
        }
        if polled[0].revents == 0 {
            return Wanted::Nothing;
        }
        match (libc::read(CONTROL, bytes.as_mut_ptr().cast(), 1), bytes[0]) {
            (1, LEAVE) => Wanted::Leave,
            (1, signal) => Wanted::Forget(signal),
            _ => Wanted::End,
        }
    }
}

/// What a keeper knows.
struct Keeper {
    program: i32,
    has_ended: bool,
}

impl Keeper {
    /// Takes away every child that has ended; that the program has, or was stopped, is told unless it was killed here. `false` if no child is
    /// left.
    fn reap(&mut self, tells: bool) -> bool {
        let options = libc::WNOHANG | libc::__WALL | libc::WUNTRACED;
        loop {
            let mut status = 0;
            // SAFETY: `status` is a valid place.
            match unsafe { libc::waitpid(-1, &raw mut status, options) } {
                -1 => return io::Error::last_os_error().kind() == io::ErrorKind::Interrupted,
                0 => return true,
                process if libc::WIFSTOPPED(status) && tells && process == self.program => {
                    tell(Told::Stopped(libc::WSTOPSIG(status)));
                }
                _ if libc::WIFSTOPPED(status) => {}
                process if process == self.program => {
                    self.has_ended = true;
                    if tells {
                        tell(Told::Ended(status, clock::now().as_nanos()));
                    }
                }
                _ => {}
            }
        }
    }

    /// Kills children until none is left. `false` if some could not be ended.
    ///
    /// What a child leaves becomes a child in its turn, so each round reaches one generation more.
    fn end_all(&mut self) -> bool {
        // Above whatever it is to end, where that may be.
        let highest = libc::sched_param { sched_priority: 99 };
        // SAFETY: `highest` outlives the call.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const highest) };
        let mut left = 0;
        let until = clock::now() + LIMIT;
        while clock::now() < until {
            // Where nothing can be seen in `/proc`, at least the program is ended.
            if let Some(program) = Pid::from_raw(self.program).filter(|_| !self.has_ended) {
                let _ = kill_process(program, Signal::KILL);
            }
            left = kill_children().unwrap_or(0);
            if !self.reap(false) {
                return true;
            }
            let _ = nanosleep(&Timespec {
                tv_sec: 0,
                tv_nsec: 1_000_000,
            });
        }
        tell(Told::Left(left));
        false
    }
}

/// Kills every child that can be seen; tells the number of the last one.
fn kill_children() -> rustix::io::Result<i32> {
    let own = std::process::id() as i32;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let proc = open(c"/proc", flags, Mode::empty())?;
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(&proc, &mut buffer);
    let mut last = 0;
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let Some(process) = number(entry.file_name().to_bytes()) else {
            continue;
        };
        if proc::stat_in(&proc, entry.file_name(), 4) == Some(own)
            && let Some(child) = Pid::from_raw(process)
        {
            // What has gone meanwhile needs no signal: it is a zombie until it is waited for, so its number is nobody else's.
            let _ = kill_process(child, Signal::KILL);
            last = process;
        }
    }
    Ok(last)
}

fn number(text: &[u8]) -> Option<i32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_found() {
        let own = open(c"/proc", OFlags::RDONLY, Mode::empty()).unwrap();
        assert!(proc::stat_in(&own, c"self", 4).is_some_and(|parent: i32| parent > 0));
    }
}
