//! A keeper as its parent sees it: it goes on where somebody stopped it, and where it does not answer, it is ended with all that it kept.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, ExitStatus};

use laxity_model::{Instant, Span};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, pidfd_open, pidfd_send_signal,
    waitid,
};

use super::family::Family;
use crate::os::clock;
use crate::os::sched::{self, Policy, Tid};

/// A keeper that has to end everything gives up [before this](super::keeper::LIMIT). One that is not done then does not run.
const PATIENCE: Span = Span::from_secs(5);

/// Somebody may stop it at any time: so often it is looked at.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// What is started while others are killed is found a round later. Who is not done then starts faster than it can be killed.
const ROUNDS: usize = 100;

/// A keeper, from its start to its end.
#[derive(Debug)]
pub(super) struct Kept {
    child: Child,
    process: OwnedFd,
    /// Somebody stopped it, and it was continued.
    was_stopped: bool,
    /// Since when it owes an answer.
    silent_since: Option<Instant>,
}

impl Kept {
    pub(super) fn of(child: Child) -> io::Result<Self> {
        let number = Pid::from_raw(child.id() as i32).ok_or(Errno::SRCH)?;
        // The number is its own until it is waited for.
        let process = pidfd_open(number, PidfdFlags::empty())?;
        Ok(Self {
            child,
            process,
            was_stopped: false,
            silent_since: None,
        })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) const fn was_stopped(&self) -> bool {
        self.was_stopped
    }

    /// Lets it go on, if somebody stopped it; tells whether it did.
    fn rouse(&mut self) -> bool {
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let stopped = waitid(WaitId::Pid(self.number()), options);
        let is_stopped = matches!(stopped, Ok(Some(_)));
        if is_stopped {
            self.was_stopped = true;
            let _ = pidfd_send_signal(&self.process, Signal::CONT);
        }
        is_stopped
    }

    fn number(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// It ought to have told something by now: it is let go on if somebody stopped it. Tells whether somebody did; `None` if it does not answer.
    pub(super) fn remind(&mut self) -> Option<bool> {
        let now = clock::now();
        let since = *self.silent_since.get_or_insert(now);
        let was_stopped = self.rouse();
        (now.saturating_since(since) < PATIENCE).then_some(was_stopped)
    }

    /// Waits for its end, now that it is to end; `None` if it does not in time.
    pub(super) fn wait(&mut self) -> Option<ExitStatus> {
        // Above the program, which else might leave it nothing, where that may be.
        let _ = sched::set_policy(Tid(self.id() as i32), Policy::Fifo(99));
        let until = clock::now() + PATIENCE;
        while clock::now() < until {
            self.rouse();
            let mut ended = [PollFd::new(&self.process, PollFlags::IN)];
            if matches!(poll(&mut ended, Some(&LOOK)), Ok(1..)) {
                return self.child.wait().ok();
            }
        }
        None
    }

    /// Kills it, and before it everything that can be found of what it kept: this program, and what came of it.
    pub(super) fn kill_with(&mut self, program: Tid) {
        let mut known = BTreeSet::new();
        for _ in 0..ROUNDS {
            let mut family = Family::new(program.0 as u32, Some(self.id()), true);
            // Where nothing can be seen, at least the program is ended.
            let _ = family.refresh();
            let found: BTreeSet<u32> = family.processes().collect();
            for process in found
                .iter()
                .filter_map(|number| Pid::from_raw(*number as i32))
            {
                // Nobody waits for them any more: the numbers are their own.
                let _ = kill_process(process, Signal::KILL);
            }
            if found.is_subset(&known) {
                break;
            }
            known.extend(found);
        }
        let _ = self.child.kill();
        self.wait();
    }
}
