//! How a process that we forked knows that we were killed, though somebody keeps threads of ours from running: those cannot die, and no pipe of ours comes to its end.
//!
//! One thread of ours may run anywhere and does nothing: its end tells that all are to end. A pidfd of that one thread can be read then (`PIDFD_THREAD`,
//! Linux 6.9; of the first thread it cannot, since 6.15, before the others have ended too). Who waits lets the others loose then: they die elsewhere.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::mpsc::channel;
use std::thread;

use rustix::fs::{Mode, OFlags, RawDir, open, openat};
use rustix::io::Errno;
use rustix::path::DecInt;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::os::fork::PerProcess;
use crate::os::proc;
use crate::os::sched::{self, Policy, Tid};
use crate::os::signals;

/// Of a thread that has begun to exit, in its `stat` (the kernel's `PF_EXITING`), or takes the signal by which it will (`PF_SIGNALED`).
const EXITING: u32 = 0x4 | 0x400;

/// A pidfd of one thread, as the kernel has it; where it knows none, it says so.
const OF_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(OFlags::EXCL.bits());

/// Whether the kernel has such descriptors.
///
/// # Errors
///
/// What it says where it has none.
pub(crate) fn can_watch() -> rustix::io::Result<()> {
    pidfd_open(rustix::thread::gettid(), OF_THREAD).map(drop)
}

/// It does nothing.
const STACK_BYTES: usize = 1 << 16;

/// This process, for who is forked from it: its number, and that of the thread whose end tells of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    process: u32,
    thread: Tid,
}

impl Life {
    /// Of this process, which has the thread from the first call on. `None` where there can be none, or the other would not find it.
    pub(crate) fn own() -> Option<Self> {
        static THREAD: PerProcess<OnceLock<Option<Tid>>> = PerProcess::new(|_| OnceLock::new());
        proc::shows_own_numbers().ok()?;
        let thread = *THREAD.get().get_or_init(idle);
        let process = std::process::id();
        thread.map(|thread| Self { process, thread })
    }

    /// In the process that was forked, of its parent: what it watches. Kernel calls only.
    pub(crate) fn watch(self) -> Option<Watched> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let all = open(c"/proc", flags, Mode::empty()).ok()?;
        let own = DecInt::new(self.process);
        let process = openat(all, own, flags, Mode::empty()).ok()?;
        let threads = openat(process, c"task", flags, Mode::empty()).ok()?;
        match pidfd_open(Pid::from_raw(self.thread.0)?, OF_THREAD) {
            Ok(ended) => Some(Watched { ended, threads }),
            // The parent was killed before this.
            Err(Errno::SRCH) => {
                let_loose(&threads);
                None
            }
            Err(_) => None,
        }
    }
}

/// Starts the thread. It may run anywhere, whatever its starter is, and is ordinary, as soon as it gets to that: nobody waits for it then, as others may go first.
fn idle() -> Option<Tid> {
    let (tell, told) = channel();
    let builder = thread::Builder::new().name("laxity-life".to_owned());
    let started = signals::start_deaf(builder.stack_size(STACK_BYTES), move || {
        let own = Tid::current();
        // Bound, its end might come as late as the others', and made ordinary first it might wait for those of its starter's processor.
        let free = sched::allow_all(own);
        let heard = tell.send(free.is_ok().then_some(own));
        // It takes no time, whatever it is.
        let _ = sched::set_policy(own, Policy::Other { nice: 0 });
        while free.is_ok() && heard.is_ok() {
            thread::park();
        }
    });
    started.ok()?;
    told.recv().ok().flatten()
}

/// What a forked process watches of its parent.
#[derive(Debug)]
pub(crate) struct Watched {
    /// Can be read when the thread has ended.
    ended: OwnedFd,
    /// The directory of the threads: always that process's, whoever has its number later.
    threads: OwnedFd,
}

impl Watched {
    /// Lets every thread that is to die do so where it may run. Kernel calls only.
    pub(crate) fn let_loose(self) {
        let_loose(&self.threads);
    }
}

/// Can be read when the threads are to be let loose.
impl AsFd for Watched {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }
}

fn let_loose(threads: &OwnedFd) {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(threads, &mut buffer);
    while let Some(Ok(entry)) = entries.next() {
        let name = entry.file_name();
        let number = name.to_str().ok().and_then(|name| name.parse().ok());
        if let Some(number) = number.and_then(Pid::from_raw)
            && let Some(cpu) = dies_on(threads, name)
        {
            move_off(number, cpu);
        }
    }
}

/// Lets a thread run everywhere, from now on elsewhere where that may be: let run everywhere at once, it stays and waits where it is.
fn move_off(thread: Pid, cpu: usize) {
    let all = every_processor();
    let mut allowed = all;
    if cpu < CpuSet::MAX_CPU {
        allowed.unset(cpu);
    }
    // Where there is none but this one, or it has gone, there is nothing to be done.
    let _ = sched_setaffinity(Some(thread), &allowed);
    let _ = sched_setaffinity(Some(thread), &all);
}

fn every_processor() -> CpuSet {
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
    all
}

/// Lets the calling process, of one thread, run wherever its cpuset has a processor: what it is to do may have to be done while somebody keeps it from those that its parent had. Kernel calls only.
pub(crate) fn run_anywhere() {
    // Where that cannot be it stays where it is.
    let _ = sched_setaffinity(None, &every_processor());
}

/// The processor of a thread that was killed and has not died. One that executes another program has killed the others only, and stays where it is.
fn dies_on(threads: &OwnedFd, name: &CStr) -> Option<usize> {
    // In this order: who begins to exit has no signal pending any more.
    let pending: u64 = proc::stat_in(threads, name, 31)?;
    let flags: u32 = proc::stat_in(threads, name, 9)?;
    let dies = pending >> (libc::SIGKILL - 1) & 1 == 1 || flags & EXITING != 0;
    dies.then(|| proc::stat_in(threads, name, 39))?
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    use rustix::process::{WaitId, WaitIdOptions, waitid};

    use super::*;
    use crate::doctor::rights::{self, Right};
    use crate::os::cpuset;

    /// The thread that would tell had ended before anybody watched, and the other is exiting.
    #[test]
    fn who_was_killed_before_is_let_loose_at_once() {
        let Some(_live) = rights::require(&[Right::Processors(2), Right::ThreadPidfd]) else {
            return;
        };
        let gone = thread::spawn(Tid::current).join().unwrap();
        let has_gone = || pidfd_open(Pid::from_raw(gone.0).unwrap(), PidfdFlags::empty());
        while has_gone().err() != Some(Errno::SRCH) {
            thread::yield_now();
        }
        let cpu = sched::affinity(Tid::current()).unwrap();
        let cpu = cpuset::CpuSet::single(cpu.iter().next().unwrap());
        let mut command = Command::new("true");
        let bound = cpu.clone();
        let bind = move || sched::set_affinity(Tid::current(), &bound).map_err(io::Error::other);
        // SAFETY: one system call, that takes no lock.
        let mut child = unsafe { command.pre_exec(bind) }.spawn().unwrap();
        let tid = Tid(child.id().cast_signed());
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_raw(tid.0).unwrap()), ended).unwrap();
        assert_eq!(sched::affinity(tid).unwrap(), cpu);
        let life = Life {
            process: child.id(),
            thread: gone,
        };
        assert!(life.watch().is_none());
        assert_ne!(sched::affinity(tid).unwrap(), cpu);
        child.wait().unwrap();
    }
}
