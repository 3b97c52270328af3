//! Programs that are started: placed before they execute, watched while they run, and ended with everything that they started.

pub(in crate::host) mod family;
mod keeper;
mod kept;
mod lookup;
mod told;
mod used;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use laxity_model::{HostError, Instant, Service};

pub use lookup::look_for;
pub use used::Used;

use crate::doctor;
use crate::os::cpuset::CpuSet;
use crate::os::fact::Fact;
use crate::os::proc;
use crate::os::sched::{self, Policy, SchedError, Tid};
use crate::os::signals;
use keeper::{Ours, Theirs};
use kept::Kept;
use told::Told;

/// In which process group a program runs: who gets what the terminal's keys send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProcessGroup {
    /// One of its own: the terminal's keys are not for it.
    Own,
    /// The caller's, as a shell's child has it.
    Callers,
}

/// Why a program does not run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It could not be executed.
    #[error("cannot be started: {0}")]
    NotStarted(#[from] io::Error),
    /// It could not be placed as asked for, and was not executed.
    #[error("cannot be placed: {0}")]
    NotPlaced(#[source] HostError),
}

/// Why not everything has ended, or cannot be known to have.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EndError {
    /// Somebody killed the process that looks after it; the program itself is killed then.
    #[error(
        "the process that looked after it was killed, and what it had started may be running still"
    )]
    Unwatched,
    /// Somebody keeps the process that looks after it from running, stopped or frozen: it was killed, and before it what could be found.
    #[error(
        "the process that looked after it did not answer; it was killed with what it had started, as far as that could be found"
    )]
    Silent,
    /// The kernel did not let it be killed, or not in time.
    #[error("{} cannot be ended", .0.map_or("something that it started".to_owned(), |process| format!("process {process}, which it started,")))]
    Left(Option<Tid>),
}

/// How a program ended by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// Its exit code, or the signal that ended it.
    pub status: ExitStatus,
    /// When that was noticed: by an ordinary process, which may come late where real-time threads leave it nothing.
    pub at: Instant,
}

/// The end of a program and of everything that it started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// How it had ended by itself; `None`: it was running still.
    pub by_itself: Option<Ended>,
    /// The processor time of all of them together; `None` where the kernel does not tell.
    pub service: Option<Service>,
    /// Somebody had stopped the process that looks after it, which was let go on: when it ended by itself may have been noticed late.
    pub keeper_was_stopped: bool,
}

/// A program that does not execute yet. What it is given now, it has from its first instruction on, and all that it starts inherits it.
#[derive(Debug)]
pub struct Held {
    id: Tid,
}

impl Held {
    /// Its process, which has one thread.
    pub fn id(&self) -> Tid {
        self.id
    }

    /// Has the kernel schedule it like this, on these processors; what it starts is scheduled so too, except by `SCHED_DEADLINE`, which is its first
    /// thread's alone and keeps to no processor.
    ///
    /// # Errors
    ///
    /// The cause and the remedy where it is refused the policy; which processors there are where one of these is none of them; else
    /// [`HostError::Failed`], with the call that failed.
    pub fn schedule(&self, policy: impl Into<Policy>, cpus: &CpuSet) -> Result<(), HostError> {
        let policy = policy.into();
        let placed = if let Policy::Deadline(_) = policy {
            // The kernel refuses a narrower mask, and so it does forks of who hands the policy on.
            sched::allow_all(self.id).and_then(|()| sched::set_policy(self.id, policy))
        } else {
            // First the policy, then the processor: the other way round it might starve before it has its policy.
            sched::set_policy_inherited(self.id, policy)
                .and_then(|()| sched::set_affinity(self.id, cpus))
        };
        placed.map_err(|error| match doctor::why_refused(policy, &error) {
            Some(why) => why.as_of_host(format!("{policy}: {why}")),
            None => self.only_on(cpus, &error),
        })
    }

    /// Has it run on these processors, and what it starts; how it is scheduled stays as it is.
    ///
    /// # Errors
    ///
    /// As of [`Self::schedule`], of processors.
    pub fn keep_to(&self, cpus: &CpuSet) -> Result<(), HostError> {
        sched::set_affinity(self.id, cpus).map_err(|error| self.only_on(cpus, &error))
    }

    /// Why it cannot be on these: some may not be used, if that is why. It is on all others then, and is not to execute.
    fn only_on(&self, cpus: &CpuSet, error: &SchedError) -> HostError {
        let usable = sched::allow_all(self.id).and_then(|()| sched::affinity(self.id));
        match usable.map(|usable| (cpus.without(&usable), usable)) {
            Ok((missing, usable)) if !missing.is_empty() => HostError::NoProcessor {
                missing: missing.to_string(),
                usable: usable.to_string(),
            },
            _ => HostError::Failed(error.to_string()),
        }
    }
}

/// A running program. Dropping it kills it, and everything that it started and that still runs, whatever became of its parents; so does
/// the death of this process, by whatever signal.
///
/// A *keeper* process of ours between the two is what this rests on; see [`EndError::Unwatched`].
#[derive(Debug)]
pub struct RunningCommand {
    id: Tid,
    /// Another process may have its number once it has ended; this is always its own.
    process: OwnedFd,
    keeper: Kept,
    /// `None` once everything is to end.
    control: Option<OwnedFd>,
    told: OwnedFd,
    ended: Option<Ended>,
    /// The signal that stopped it, until somebody asks.
    stopped: Option<Signal>,
    /// The keeper has forgotten what was pending with it.
    forgot: bool,
    /// What it and all that it started have had, once all have ended.
    service: Option<Service>,
}

const AT_ONCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// A keeper that does not answer for so long is stopped itself.
const PATIENCE: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

impl RunningCommand {
    /// Starts a program, which `place` sees before it executes. It has no right that its user has not got, whatever this process has
    /// from its own file.
    ///
    /// # Errors
    ///
    /// [`StartError`]. Nothing is left running then.
    pub fn start(
        mut command: Command,
        group: ProcessGroup,
        place: impl FnOnce(&Held) -> Result<(), HostError>,
    ) -> Result<Self, StartError> {
        let named = proc::shows_own_numbers();
        named.map_err(|why| StartError::NotPlaced(HostError::CannotRun(why.to_string())))?;
        let (ours, theirs) = keeper::pipes()?;
        // SAFETY: the hook makes async-signal-safe calls and allocates nothing.
        unsafe {
            command.pre_exec(keeper::hook(&ours, &theirs, group));
        }
        // `spawn` comes back when the program executes, which it does when we let it go.
        thread::scope(|scope| {
            let spawn = move || spawn(command, theirs);
            let spawning = thread::Builder::new().spawn_scoped(scope, spawn)?;
            let Ours { control, told, go } = ours;
            let held = held(told.as_fd());
            let placed = held.as_ref().map_or(Ok(()), |(held, _)| place(held));
            if held.is_ok() && placed.is_ok() {
                // A program that was killed meanwhile needs no permission.
                let _ = rustix::io::write(&go, &[0]);
            }
            drop(go);
            let spawned = spawning.join();
            let spawned = spawned.unwrap_or_else(|payload| std::panic::resume_unwind(payload));
            let running = Self::kept(spawned?, held, control, told)?;
            // Dropped with an error, it ends the keeper too.
            placed.map_err(StartError::NotPlaced)?;
            Ok(running)
        })
    }

    fn kept(
        mut keeper: Child,
        held: io::Result<(Held, OwnedFd)>,
        control: OwnedFd,
        told: OwnedFd,
    ) -> io::Result<Self> {
        let (held, process) = held.inspect_err(|_| {
            // It ends by itself, since it has nothing to keep.
            let _ = keeper.wait();
        })?;
        let keeper = Kept::of(keeper)?;
        Ok(Self {
            id: held.id,
            process,
            keeper,
            control: Some(control),
            told,
            ended: None,
            stopped: None,
            forgot: true,
            service: None,
        })
    }

    /// Its process.
    pub fn id(&self) -> Tid {
        self.id
    }

    /// The process that looks after it, and to which everything comes back that it starts.
    pub(crate) fn keeper(&self) -> u32 {
        self.keeper.id()
    }

    /// What it and all that it started have had of processors until now.
    ///
    /// # Errors
    ///
    /// Where that cannot be seen here.
    pub fn used(&self) -> Fact<Used> {
        Used::of_family(self.id.0.cast_unsigned(), Some(self.keeper()))
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    ///
    /// [`EndError::Unwatched`], [`EndError::Silent`].
    pub fn ended(&mut self) -> Result<Option<Ended>, EndError> {
        while self.ended.is_none() {
            match Told::read(self.told.as_fd()) {
                Ok(Some(told)) => self.note(told)?,
                Err(Errno::AGAIN) => return self.remind().map(|()| None),
                Ok(None) | Err(_) => return Err(EndError::Unwatched),
            }
        }
        Ok(self.ended)
    }

    /// It may have ended, and its keeper not tell it, because somebody stopped that.
    fn remind(&mut self) -> Result<(), EndError> {
        let mut ended = [PollFd::new(&self.process, PollFlags::IN)];
        if !matches!(poll(&mut ended, Some(&AT_ONCE)), Ok(1..)) {
            return Ok(());
        }
        let was_stopped = self.keeper.remind().ok_or(EndError::Silent)?;
        if let (true, Some(control)) = (was_stopped, &self.control) {
            // What continued it was for it alone, and is not to be taken for a signal to the group.
            let _ = rustix::io::write(control, &[forget(Signal::CONT.as_raw())]);
        }
        Ok(())
    }

    /// Sends it a signal. One that has ended gets none.
    ///
    /// # Errors
    ///
    /// What the kernel says, such as that it may not be signalled.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        match pidfd_send_signal(&self.process, signal) {
            Err(Errno::SRCH) | Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The signal that stopped it since this was asked last, as it is known since [`Self::ended`] was asked last.
    pub fn take_stopped(&mut self) -> Option<Signal> {
        self.stopped.take()
    }

    /// Sends on a signal that this process got: not where the program got it too, because it was for the process group that both are in.
    ///
    /// # Errors
    ///
    /// What the kernel says, such as that the program has ended; [`io::ErrorKind::BrokenPipe`] without a keeper.
    pub fn relay(&mut self, got: &signals::Got) -> io::Result<()> {
        // Without `/proc` it is rather sent twice than never. The kernel goes through a group from the youngest to the oldest: the keeper has it before us.
        let pending = proc::pending_signals(self.keeper.id()).unwrap_or(0);
        if pending >> (got.si_signo - 1) & 1 == 0 {
            return signals::send_on(self.process.as_fd(), got);
        }
        // What is pending is one signal, however often it came, unless it is a real-time one: before it is forgotten the next one could not be told from it.
        let control = self.control.as_ref().ok_or(Errno::PIPE)?;
        // One that did not answer last time, as it is stopped, is not waited for again.
        let patience = if self.forgot { PATIENCE } else { AT_ONCE };
        self.forgot = rustix::io::write(control, &[forget(got.si_signo)])? == 0;
        while !self.forgot {
            let mut told = [PollFd::new(&self.told, PollFlags::IN)];
            if poll(&mut told, Some(&patience))? == 0 {
                break;
            }
            match Told::read(self.told.as_fd())? {
                Some(told) => self.note(told).map_err(io::Error::other)?,
                None => return Err(Errno::PIPE.into()),
            }
        }
        Ok(())
    }

    /// Ends it with everything that it started. Tells how it had ended by itself; `None`: it was running still.
    ///
    /// # Errors
    ///
    /// [`EndError`]: something may be left.
    pub fn end(mut self) -> Result<End, EndError> {
        let by_itself = self.finish()?;
        Ok(self.at_end(by_itself))
    }

    fn at_end(&self, by_itself: Option<Ended>) -> End {
        End {
            by_itself,
            service: self.service,
            keeper_was_stopped: self.keeper.was_stopped(),
        }
    }

    /// Leaves alone what it has started and what runs still, which is not in [`End::service`] then. For a program that has ended; one that has not is ended after all.
    ///
    /// # Errors
    ///
    /// [`EndError`].
    pub fn leave_others(mut self) -> Result<End, EndError> {
        if self.ended()?.is_some()
            && let Some(control) = &self.control
        {
            // A keeper that has nothing to keep has gone already.
            let _ = rustix::io::write(control, &[keeper::LEAVE]);
        }
        let by_itself = self.finish()?;
        Ok(self.at_end(by_itself))
    }

    fn note(&mut self, told: Told) -> Result<(), EndError> {
        match told {
            Told::Ended(status, at) => {
                self.ended = Some(Ended {
                    status: ExitStatus::from_raw(status),
                    at: Instant::from_nanos(at),
                });
                Ok(())
            }
            Told::Left(0) => Err(EndError::Left(None)),
            Told::Left(process) => Err(EndError::Left(Some(Tid(process)))),
            Told::Stopped(signal) => {
                self.stopped = Signal::from_named_raw(signal);
                Ok(())
            }
            Told::Forgot => {
                self.forgot = true;
                Ok(())
            }
            Told::Held(_) => Ok(()),
            Told::Used(nanos) => {
                self.service = Some(Service::from_nanos(nanos));
                Ok(())
            }
        }
    }

    fn finish(&mut self) -> Result<Option<Ended>, EndError> {
        let Some(control) = self.control.take() else {
            return Ok(self.ended);
        };
        drop(control);
        let Some(left) = self.keeper.wait() else {
            self.keeper.kill_with(self.id);
            return Err(EndError::Silent);
        };
        if left.code().is_none() {
            // It dies with its keeper, unless it has become somebody else's.
            let _ = self.signal(Signal::KILL);
            return Err(EndError::Unwatched);
        }
        while let Ok(Some(told)) = Told::read(self.told.as_fd()) {
            self.note(told)?;
        }
        Ok(self.ended)
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        // Who wants to know asks for the end.
        let _ = self.finish();
    }
}

/// Can be read when it has ended.
impl AsFd for RunningCommand {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.process.as_fd()
    }
}

/// What tells the keeper to forget a signal. Their numbers are up to 64.
const fn forget(signal: i32) -> u8 {
    signal as u8
}

/// Starts the keeper; comes back when the program executes, or never will. The keeper's ends of the pipes are closed here then, so that
/// they are the keeper's alone.
fn spawn(mut command: Command, theirs: Theirs) -> io::Result<Child> {
    let spawned = command.spawn();
    drop(theirs);
    spawned
}

/// The program, when it is there.
fn held(told: BorrowedFd<'_>) -> io::Result<(Held, OwnedFd)> {
    let Some(Told::Held(process)) = Told::read(told)? else {
        return Err(io::Error::other("the program was never there"));
    };
    let pid = Pid::from_raw(process).ok_or(Errno::SRCH)?;
    // It has not ended, since it waits for us: the number is its own.
    let opened = pidfd_open(pid, PidfdFlags::empty())?;
    // What comes next is looked for, not waited for.
    fcntl_setfl(told, OFlags::NONBLOCK)?;
    Ok((Held { id: Tid(process) }, opened))
}
