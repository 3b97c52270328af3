//! The program while it runs: started or adopted, signalled, waited for.

use std::fmt::Display;
use std::fs;
use std::io;
use std::iter;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use laxity::command::{
    CpuSet, Ended, Got, Held, Inbox, ProcessGroup, RunningCommand, StartError, Used, affinity,
    for_a_program, is_ignored, is_own, obey, process_of,
};
use laxity::hold::{ProgramHold, ProgramRequest, Tid};
use laxity::{HostError, Service, Unknown};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use signal_hook::consts::{
    SIGCONT, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2,
};

use super::arguments::{Asked, Exec};
use super::measured::announced;
use super::reserved::Reserved;
use super::used::Count;
use crate::files;

/// How often signals are looked for that came just before they were waited for, and whether the program was stopped.
const LOOK_EVERY_NS: i64 = 100_000_000;

/// Why a program does not run with what was asked for.
pub(super) enum NotRun {
    /// The command cannot be executed.
    NotStarted(io::Error),
    /// It cannot have what was asked for.
    NotPlaced(String),
}

impl From<HostError> for NotRun {
    fn from(error: HostError) -> Self {
        Self::NotPlaced(error.to_string())
    }
}

/// What ended it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// It ended by itself, with this code.
    Exited(u8),
    /// This signal ended it.
    Killed(i32),
    /// It was adopted, and has ended: how, its parent alone is told.
    Gone,
    /// It runs still; laxity was told to let it go, or the one thread of it that was adopted has ended.
    LetGo,
}

/// Signals that tell us to let go of a program that was adopted.
const LET_GO: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];
/// Signals that stop a program, unless it has something better to do.
const STOP: [i32; 3] = [SIGTSTP, SIGTTIN, SIGTTOU];

/// So many signals are handed on before anything else is looked after: whoever sends many does not keep us from it.
const AT_ONCE: usize = 64;

/// Signals that laxity gets while a program runs; each by itself, since of two one may be for the program and one for all of its group.
pub(super) struct Signals(Inbox);

impl Signals {
    /// From now on they are noted. What is ignored is ignored still, also by the program, as `nohup` wants it. `adopts`: a program that got
    /// none of our signals before gets none now, and what tells us neither to let it go nor to stop is left as it is.
    pub(super) fn begin(adopts: bool) -> io::Result<Self> {
        let is_meant = |signal: &i32| !adopts || *signal == SIGTSTP || LET_GO.contains(signal);
        // One is ignored by whatever Rust has made, and by nothing that this starts.
        let is_heeded = |signal: &i32| *signal == SIGPIPE || !is_ignored(*signal);
        Inbox::open(for_a_program().filter(is_meant).filter(is_heeded)).map(Self)
    }

    /// Those that came since.
    fn pending(&mut self) -> impl Iterator<Item = Got> {
        let came = iter::from_fn(|| self.0.take()).take(AT_ONCE);
        came.filter(|got| !is_own(got))
    }
}

/// Waits until this can be read, or a signal comes, or for a moment.
fn wait(descriptor: BorrowedFd<'_>, signals: &Signals) {
    let moment = Timespec {
        tv_sec: 0,
        tv_nsec: LOOK_EVERY_NS,
    };
    let both = [descriptor, signals.0.as_fd()];
    let mut both = both.map(|one| PollFd::from_borrowed_fd(one, PollFlags::IN));
    // An interruption is a reason to look too.
    let _ = poll(&mut both, Some(&moment));
}

/// Started by us.
pub(super) struct Started {
    command: RunningCommand,
    pub(super) reserved: Option<Reserved>,
    /// The signal that we got to stop, if the program has not stopped by it yet.
    stop: Option<i32>,
}

impl Started {
    pub(super) fn start(arguments: &Exec, asked: &Asked) -> Result<Self, NotRun> {
        let (program, rest) = arguments
            .command
            .split_first()
            .ok_or_else(|| NotRun::NotPlaced("there is no command".to_owned()))?;
        let mut command = Command::new(program);
        command.args(rest);
        let mut reserved = None;
        let place = |held: &Held| {
            match asked {
                Asked::Reservation { request, is_open } => {
                    let hold = |request: &_| ProgramHold::of_held(request, held);
                    let begun = Reserved::begin(request, *is_open, hold, Count::from_the_start);
                    reserved = Some(begun?.just_started());
                    announce(arguments, (request, *is_open), true);
                }
                Asked::Policy(policy, processors) => {
                    let processors = processors.clone().map_or_else(own_processors, Ok)?;
                    match policy {
                        Some(policy) => held.schedule(*policy, &processors)?,
                        None => held.keep_to(&processors)?,
                    }
                }
            }
            Ok(())
        };
        let command = RunningCommand::start(command, ProcessGroup::Callers, place);
        match command {
            Ok(command) => Ok(Self {
                command,
                reserved,
                stop: None,
            }),
            Err(StartError::NotStarted(error)) => Err(NotRun::NotStarted(error)),
            Err(StartError::NotPlaced(error)) => Err(error.into()),
        }
    }

    /// Waits for its end, and hands signals on.
    pub(super) fn wait(&mut self, signals: &mut Signals) -> Result<End, String> {
        loop {
            for got in signals.pending() {
                let signal = got.si_signo;
                if STOP.contains(&signal) {
                    self.stop = Some(signal);
                } else if signal == SIGCONT {
                    self.stop = None;
                }
                // It may have ended, or become somebody else's.
                let _ = self.command.relay(&got);
            }
            if let Some(ended) = self.command.ended().map_err(|error| error.to_string())? {
                return end(ended);
            }
            if self.command.take_stopped().is_some()
                && let Some(signal) = self.stop.take()
            {
                // So that a shell sees the job stopped.
                stop(self.reserved.as_ref(), signal);
            }
            if let Some(reserved) = &mut self.reserved {
                reserved.look(
                    |request| ProgramHold::of_started(request, &self.command),
                    || self.command.used(),
                );
            }
            wait(self.command.as_fd(), signals);
        }
    }

    /// What it has started and what runs still is left alone, as it was before it had a reservation. What has ended has used this, if that is known.
    pub(super) fn leave(self) -> Result<Result<Service, Unknown>, String> {
        drop(self.reserved);
        let left = self.command.leave_others();
        let left = left.map_err(|error| error.to_string())?;
        let unknown = || Unknown("its keeper does not tell what it used".to_owned());
        Ok(left.service.ok_or_else(unknown))
    }
}

/// Stops this process by a signal. Who gives slots must not stand still while it does: the program runs, or somebody may continue it alone.
fn stop(reserved: Option<&Reserved>, signal: i32) {
    reserved.into_iter().for_each(Reserved::pause);
    obey(signal);
    reserved.into_iter().for_each(Reserved::resume);
}

/// Says that it is measured now, where its reservation is open and that takes long.
fn announce(arguments: &Exec, (request, is_open): (&ProgramRequest, bool), is_just_started: bool) {
    let period = request.hold.reservation.period();
    let announced = announced(&arguments.name(), period, is_just_started);
    if let Some(announced) = announced.filter(|_| is_open && !arguments.quiet) {
        files::say(&format!("laxity: {announced}"));
    }
}

/// Where this process may run, and so what it starts.
fn own_processors() -> Result<CpuSet, HostError> {
    let unknown =
        |error| HostError::CannotRun(format!("{error}: name some processors with --processor"));
    affinity(Tid::current()).map_err(unknown)
}

fn end(ended: Ended) -> Result<End, String> {
    let status = ended.status;
    match (status.code().map(u8::try_from), status.signal()) {
        (Some(Ok(code)), _) => Ok(End::Exited(code)),
        (_, Some(signal)) => Ok(End::Killed(signal)),
        _ => Err(format!("the program has ended in no known way: {status}")),
    }
}

/// Whether all of a process has ended, be it waited for or not. Its first thread may have, while others go on.
fn has_ended(process: &OwnedFd) -> bool {
    let mut one = [PollFd::new(process, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut one, Some(&now)) == Ok(1)
}

/// Adopted: it ran before.
pub(super) struct Adopted {
    process: OwnedFd,
    number: u32,
    /// Only this one of it.
    thread: Option<Tid>,
    pub(super) reserved: Reserved,
}

impl Adopted {
    pub(super) fn adopt(arguments: &Exec, asked: &Asked) -> Result<Self, NotRun> {
        let missing =
            |error: &dyn Display| NotRun::NotPlaced(format!("{}: {error}", arguments.name()));
        let Asked::Reservation { request, is_open } = asked else {
            return Err(NotRun::NotPlaced(
                "only a reservation can be given to a program that runs: ask for one, with --reserve X/Y"
                    .to_owned(),
            ));
        };
        let thread = arguments.tid.map(|thread| Tid(thread.cast_signed()));
        let process = match (arguments.pid, thread) {
            (Some(process), _) => process,
            (None, Some(thread)) => process_of(thread).map_err(|error| missing(&error))?,
            (None, None) => return Err(NotRun::NotPlaced("there is no command".to_owned())),
        };
        let pid = Pid::from_raw(process.cast_signed());
        let pid = pid.ok_or_else(|| missing(&io::Error::from(io::ErrorKind::NotFound)))?;
        let opened = pidfd_open(pid, PidfdFlags::empty());
        let opened = opened.map_err(|error| missing(&io::Error::from(error)))?;
        if has_ended(&opened) {
            return Err(missing(&"no such program: it has ended"));
        }
        let hold = |request: &_| ProgramHold::of_running(request, process);
        let count = || Count::from_now(Used::of(process));
        let reserved = Reserved::begin(request, *is_open, hold, count);
        let reserved = reserved.map_err(HostError::from)?;
        announce(arguments, (request, *is_open), false);
        Ok(Self {
            process: opened,
            number: process,
            thread,
            reserved,
        })
    }

    /// Waits for its end, or that of its only thread that is meant, or for a signal that tells to let it go.
    pub(super) fn wait(&mut self, signals: &mut Signals) -> End {
        let number = self.number;
        let mut is_left = false;
        loop {
            let used = || Used::of(number);
            self.reserved
                .look(|request| ProgramHold::of_running(request, number), used);
            // Once it has gone, nobody tells it any more.
            self.reserved.count(used());
            for got in signals.pending() {
                if got.si_signo != SIGTSTP {
                    return End::LetGo;
                }
                stop(Some(&self.reserved), got.si_signo);
            }
            if has_ended(&self.process) {
                return End::Gone;
            }
            if is_left {
                return End::LetGo;
            }
            // The program may be about to end with it: that is seen by the next look.
            is_left = self.thread.is_some_and(|thread| {
                let is_there = fs::exists(format!("/proc/{number}/task/{thread}"));
                is_there.is_ok_and(|is_there| !is_there)
            });
            wait(self.process.as_fd(), signals);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::ExitStatus;

    use laxity::Instant;

    use super::*;

    #[test]
    fn how_a_program_ended_is_what_its_keeper_told_or_not_known() {
        let ended = |status| {
            end(Ended {
                status: ExitStatus::from_raw(status),
                at: Instant::ZERO,
            })
        };
        assert_eq!(ended(7 << 8), Ok(End::Exited(7)));
        assert_eq!(ended(9), Ok(End::Killed(9)));
        // It was stopped, or let go on.
        for status in [0x137f, 0xffff] {
            assert!(ended(status).is_err(), "{status:#x}");
        }
    }
}
