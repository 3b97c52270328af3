//! What this machine can do, and the remedy for what it cannot.
//!
//! * [`Machine::probe`](machine::Machine::probe) reads the facts; [`machine`] has them as data.
//! * [`diagnose`] judges them one by one.
//! * [`explain`](explain()) turns a failed scheduling call into its one true cause, [`foresee`] says beforehand what would fail.
//! * `why_refused` asks it of a policy that a thread was refused just now.
//! * [`can_run_live`] is the short question before a live run.
//! * [`parse`] reads the kernel's texts.

mod cause;
mod checks;
mod explain;
mod groups;
pub mod machine;
mod network;
pub(crate) mod outranking;
pub mod parse;
pub(crate) mod probe;
pub mod rights;

pub use cause::{Cause, Diagnosis, Operation, ParameterError};
pub use checks::{Finding, Status, diagnose};
pub use explain::{explain, foresee};
pub use machine::{Machine, Rights};
pub use outranking::Hidden;

use laxity_model::Span;

use self::machine::RealTimeGroup;
use crate::os::clock;
use crate::os::fact::{Fact, Unknown, read_as};
use crate::os::limits;
use crate::os::sched::{self, Policy, Restore, SchedError, Tid};

/// The highest FIFO priority that a live run needs.
pub const HIGHEST_PRIORITY: u8 = 99;

/// Whether this process may do what a live run needs: FIFO up to 99, no limit on real-time processor time, and all
/// memory locked. Says first what lacks first. FIFO is really tried, in a thread that ends at once; nothing of the process is changed.
///
/// `SCHED_DEADLINE` is not asked for: `slots` does without. [`diagnose`] tells about it.
///
/// # Errors
///
/// The cause and its remedy.
pub fn can_run_live() -> Result<(), Diagnosis> {
    can_run(&Rights::probe())
}

fn can_run(rights: &Rights) -> Result<(), Diagnosis> {
    let no = |found: Option<Diagnosis>| found.map_or(Ok(()), Err);
    no(explain::fifo(HIGHEST_PRIORITY, rights))?;
    try_fifo()?;
    no(explain::time_limit(rights))?;
    no(explain::lock_memory(rights))
}

/// Whether it may give slots: besides what a live run needs, whoever shares its control group's time, at whatever rank, may use up what slots have of it.
pub(crate) fn can_give_slots() -> Result<(), Diagnosis> {
    let rights = Rights::probe();
    can_run(&rights)?;
    group_limit(&rights.group, None).map_or(Ok(()), Err)
}

/// Why nothing can be promised to another process that is FIFO, for the control group that it is in, if there is a reason.
pub(crate) fn group_limit_of(process: u32) -> Option<Diagnosis> {
    group_limit(&probe::real_time_group_of(process), Some(process))
}

/// A group that is out of sight, as within a container, refuses nothing.
fn group_limit(group: &Fact<RealTimeGroup>, process: Option<u32>) -> Option<Diagnosis> {
    let group = group.as_ref().ok()?;
    explain::group_runtime(group, process).or_else(|| {
        let limited = explain::group_share(group, &limits::throttling(), process);
        limited.unwrap_or_else(|Unknown(why)| {
            let what = format!(
                "whether its control group leaves real-time threads as much as the machine does is not known: {why}"
            );
            let remedy = "run where `/proc/sys/kernel` can be read, as outside a container";
            Some(Diagnosis::new(Cause::Unexplained, what, remedy))
        })
    })
}

/// Whether a thread of this process may be FIFO at this priority for as long as it likes, by what can be known without trying.
///
/// # Errors
///
/// The cause and its remedy.
pub(crate) fn can_be_fifo(priority: u8) -> Result<(), Diagnosis> {
    let rights = Rights::probe();
    let no = |found: Option<Diagnosis>| found.map_or(Ok(()), Err);
    no(explain::fifo(priority, &rights))?;
    no(explain::time_limit(&rights))
}

/// What will end another process whose threads are FIFO and do not block, if anything; or why that is not known.
pub(crate) fn time_limit_of(process: u32) -> Fact<Option<Diagnosis>> {
    let limit_us = read_as(format!("/proc/{process}/limits"), parse::real_time_limit)?;
    Ok(limit_us.map(|limit_us| explain::time_limited(limit_us, process)))
}

/// How much later than else any real-time thread of this machine may go on, because whoever has its processor may put off the end of its turn (the time slice extension of Linux 7.0). Where the kernel does not tell, it
/// is what may be.
pub fn put_off() -> Span {
    match probe::slice_extension() {
        Ok(longest) => longest.unwrap_or(Span::ZERO),
        Err(_) => parse::LONGEST_EXTENSION,
    }
}

/// The grain at which the kernel notices that a budget of `SCHED_DEADLINE` is used up: its tick, or zero where it has a timer for it (`HRTICK_DL`).
pub fn budget_grain() -> Span {
    match probe::hrtick() {
        Ok(true) => Span::ZERO,
        _ => clock::tick(),
    }
}

/// Why a thread was refused a policy, by this call that failed just now; `None` of a call that policies are not refused by.
pub(crate) fn why_refused(policy: Policy, failed: &SchedError) -> Option<Diagnosis> {
    let SchedError::Os { call, errno, .. } = failed else {
        return None;
    };
    let (operation, machine) = match policy {
        Policy::Deadline(asked) => (Operation::SetDeadline(asked), Machine::as_reserving()),
        Policy::Fifo(priority) | Policy::RoundRobin(priority) => {
            (Operation::SetFifo { priority }, Machine::probe())
        }
        Policy::Other { nice } | Policy::Batch { nice } => {
            (Operation::SetNice { nice }, Machine::probe())
        }
        Policy::Idle | Policy::Unknown(_) => return None,
    };
    match (*call, *errno) {
        // It has gone.
        (_, libc::ESRCH) => None,
        ("sched_setattr", errno) => Some(explain(&operation, errno, &machine)),
        // Whose thread it is was asked first, as when it is let run on all processors. The right that lets one have the policy lets one do that too.
        ("sched_setaffinity", libc::EPERM) => foresee(&operation, &machine).filter(|why| {
            matches!(
                why.cause,
                Cause::NoCapability(_) | Cause::CapabilityOfNamespace(_)
            )
        }),
        _ => None,
    }
}

impl Machine {
    /// The machine as the kernel sees it when it is asked to reserve: who reserves by deadline is let run on all processors first.
    pub(crate) fn as_reserving() -> Self {
        let own = Tid::current();
        let restore = Restore::of(own);
        if restore.is_ok() {
            // Where that is refused, the probe tells what follows.
            let _ = sched::allow_all(own);
        }
        Self::probe()
    }
}

/// What no fact shows, as a security module, shows in the attempt.
pub(crate) fn try_fifo() -> Result<(), Diagnosis> {
    let attempt = || {
        let fifo = Policy::Fifo(HIGHEST_PRIORITY);
        sched::set_policy(Tid::current(), fifo).map_err(|error| {
            let operation = Operation::SetFifo {
                priority: HIGHEST_PRIORITY,
            };
            explained(&operation, error.errno())
        })
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .spawn_scoped(scope, attempt)
            .map_err(|error| explained(&Operation::Fork, error.raw_os_error()))?;
        match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn explained(operation: &Operation, errno: Option<i32>) -> Diagnosis {
    explain(operation, errno.unwrap_or_default(), &Machine::probe())
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_model::{Reservation, Service};

    #[test]
    fn only_what_refuses_a_policy_is_explained_by_what_the_policy_takes() {
        let asked = Reservation::new(Service::from_nanos(1), Span::from_millis(8)).unwrap();
        let why = |call, errno| {
            let failed = SchedError::Os {
                call,
                tid: Tid::current(),
                request: String::new(),
                errno,
            };
            why_refused(Policy::Deadline(asked.into()), &failed).map(|why| why.cause)
        };
        let too_short = Cause::OutOfRange(ParameterError::RuntimeTooShort);
        assert_eq!(why("sched_setattr", libc::EINVAL), Some(too_short));
        assert_eq!(why("sched_setattr", libc::ESRCH), None);
        for call in ["sched_getattr", "sched_setaffinity"] {
            assert_eq!(why(call, libc::EINVAL), None, "{call}");
        }
    }
}
