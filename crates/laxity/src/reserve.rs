//! A reservation of the calling thread.

use std::cell::Cell;

use laxity_linux::ThreadReservation;
use laxity_linux::doctor::machine::{CAP_IPC_LOCK, Fact};
use laxity_linux::doctor::{Cause, Diagnosis, Machine, Operation, Rights, explain, foresee};
use laxity_linux::enforce::deadline::DeadlineError;
use laxity_linux::os::memory::MemoryLock;
use laxity_linux::os::sched::{self, Policy, Restore, SchedError, Tid};
use laxity_model::{Grade, Reservation, Service, Span};

use crate::Error;
use crate::error::call;

thread_local! {
    /// What the thread holds. Two reservations dropped in the wrong order would leave the thread with the first one's policy.
    static HELD: Cell<Option<Reservation>> = const { Cell::new(None) };
}

/// Reserves `service` out of every `period` for the calling thread, by `SCHED_DEADLINE`, until the returned value is dropped.
///
/// The kernel takes services from 1024 ns and periods from 100 µs to 4.19 s, unless it is set otherwise. The thread may run on every
/// processor meanwhile, however it was pinned; what it starts are ordinary threads. Where it is allowed and cannot do harm, all memory of
/// the process is locked: see [`Reserved::memory_locked`].
///
/// # What the kernel gives
///
/// The share, and priority over everything but other such reservations; nothing beyond the share. Not `service` in *every* window of length
/// `period`: budgets served early in one period and late in the next lie 2(`period` − `service`) apart (Abeni and Buttazzo's
/// constant bandwidth server), and a kernel that looks at budgets only at its tick (most do) lets gaps grow to several periods where
/// `service` is less than a tick. Reservations by [`Enforcer::Slots`](crate::Enforcer::Slots), in a [`Program`](crate::Program), keep to
/// every window.
///
/// # Errors
///
/// Numbers that are no reservation; a reservation that the thread holds already; or what the kernel says, explained.
///
/// # Cost
///
/// Reads what the process may do (milliseconds) and touches all its memory, before the reservation begins. Where bandwidth is
/// short, waits until that of reservations which this process gave back before is free again: at most their longest period.
pub fn reserve(service: Service, period: Span) -> Result<Reserved, Error> {
    let reservation = Reservation::new(service, period)?;
    if let Some(held) = HELD.get() {
        return Err(Error::AlreadyReserved { held });
    }
    let machine = Machine::probe();
    // Locked first: to fault everything in out of the reservation's budget would take many periods.
    let memory = lock_memory(&machine);
    let thread = ThreadReservation::deadline(reservation)
        .map_err(|source| explained(reservation, source))?;
    HELD.set(Some(reservation));
    Ok(Reserved {
        thread,
        unadmitted: unadmitted(&machine.throttling.runtime_us),
        memory,
    })
}

/// A reservation that the calling thread holds; given back, with policy and processors as before, when dropped.
///
/// It belongs to the thread that made it and cannot be sent to another:
///
/// ```compile_fail,E0277
/// # use laxity::{Service, Span, reserve};
/// let reserved = reserve(Service::from_millis(2), Span::from_millis(8))?;
/// std::thread::spawn(move || drop(reserved));
/// # Ok::<(), laxity::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "the reservation ends when this is dropped"]
pub struct Reserved {
    // Dropped in this order: unlocking memory is no part of the reserved work.
    thread: ThreadReservation,
    /// Why the kernel's yes means little here.
    unadmitted: Option<String>,
    memory: Result<MemoryLock, Diagnosis>,
}

impl Reserved {
    /// What is reserved.
    pub fn reservation(&self) -> Reservation {
        self.thread.reservation()
    }

    /// Whether it is enforced *now*: the thread's policy is read back (a system call), since who has the right may change it at any time.
    pub fn grade(&self) -> Grade {
        let granted = Policy::Deadline(self.reservation().into());
        let reason = match sched::policy(Tid::current()) {
            Ok(found) if found == granted => self.unadmitted.clone(),
            Ok(found) => Some(format!("the thread was taken out of it and has {found}")),
            Err(error) => Some(error.to_string()),
        };
        reason.map_or(Grade::Enforced, |reason| Grade::Unenforced { reason })
    }

    /// Whether the process's memory is locked while this is held, so that no page fault waits for a disk; if not, why not, and the remedy.
    ///
    /// It is not where a limit on locked memory would keep the process from growing: its allocations would fail.
    pub fn memory_locked(&self) -> Result<(), &Diagnosis> {
        self.memory.as_ref().map(|_| ())
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        HELD.set(None);
    }
}

/// Why a yes of this kernel is no promise: without a limit on real-time work it admits everything.
fn unadmitted(runtime_us: &Fact<Option<u64>>) -> Option<String> {
    match runtime_us {
        Ok(Some(_)) => None,
        Ok(None) => Some(
            "the kernel admits more reservations than it has processors for (sched_rt_runtime_us = -1)"
                .to_owned(),
        ),
        Err(unknown) => Some(format!(
            "whether the kernel admits reservations by what it has is not known: {unknown}"
        )),
    }
}

/// The cause of a refusal, looked for under the conditions in which it happened.
fn explained(reservation: Reservation, source: DeadlineError) -> Error {
    let failed = call(&source);
    let (Some(errno), Some(operation)) = (failed.errno(), operation(reservation, failed)) else {
        return Error::Failed {
            reservation,
            source,
        };
    };
    let own = Tid::current();
    // The kernel refused a thread that was allowed on all processors; since then it has its own again.
    let restore = Restore::of(own);
    let _ = sched::allow_all(own);
    let machine = Machine::probe();
    drop(restore);
    let diagnosis = explain(&operation, errno, &machine);
    Error::Refused {
        reservation,
        diagnosis: Box::new(diagnosis),
        source,
    }
}

/// What was tried, where that can be refused for a cause that is known.
fn operation(reservation: Reservation, failed: &SchedError) -> Option<Operation> {
    match failed {
        SchedError::Os {
            call: "sched_setattr",
            ..
        } => Some(Operation::SetDeadline(reservation.into())),
        _ => None,
    }
}

fn lock_memory(machine: &Machine) -> Result<MemoryLock, Diagnosis> {
    if let Some(diagnosis) = foresee(&Operation::LockMemory, machine) {
        return Err(diagnosis);
    }
    if let Some(limit_bytes) = limit(&machine.rights) {
        return Err(would_not_grow(limit_bytes, &machine.rights));
    }
    MemoryLock::all().map_err(|error| {
        let errno = error.raw_os_error().unwrap_or_default();
        explain(&Operation::LockMemory, errno, machine)
    })
}

/// How much memory the thread may lock in all, if there is a limit.
fn limit(rights: &Rights) -> Option<u64> {
    let limit = rights.memlock_bytes;
    limit.filter(|_| rights.has(CAP_IPC_LOCK) != Some(true))
}

/// What is, and what will be, would be locked: beyond the limit the process would get no memory at all.
fn would_not_grow(limit_bytes: u64, rights: &Rights) -> Diagnosis {
    Diagnosis {
        cause: Cause::MemoryLockRefused {
            limit_bytes,
            needed_bytes: rights.memory_bytes.as_ref().ok().copied(),
        },
        what: format!(
            "RLIMIT_MEMLOCK lets {} KiB be locked without CAP_IPC_LOCK, and with its memory locked the process could not grow beyond that",
            limit_bytes / 1024
        ),
        remedy: "`ulimit -l unlimited` as root, or `@realtime - memlock unlimited` in /etc/security/limits.conf and log in again, or `sudo setcap cap_sys_nice,cap_ipc_lock+ep PROGRAM`".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_linux::doctor::machine::Unknown;

    #[test]
    fn a_yes_without_admission_is_no_promise() {
        assert_eq!(unadmitted(&Ok(Some(950_000))), None);
        let reason = unadmitted(&Ok(None)).unwrap();
        assert!(reason.contains("sched_rt_runtime_us = -1"), "{reason}");
        let reason = unadmitted(&Err(Unknown("no such file".to_owned()))).unwrap();
        assert!(reason.contains("no such file"), "{reason}");
    }

    #[test]
    fn only_the_call_that_reserves_is_explained_by_what_reserving_takes() {
        let reservation = Reservation::new(Service::from_millis(2), Span::from_millis(8)).unwrap();
        let failed = |call| SchedError::Os {
            call,
            tid: Tid(1),
            request: String::new(),
            errno: 1,
        };
        assert!(operation(reservation, &failed("sched_setattr")).is_some());
        for call in ["sched_getattr", "sched_setaffinity"] {
            let error = explained(reservation, failed(call).into());
            assert_eq!((error.errno(), error.diagnosis()), (Some(1), None));
            let shown = format!("{error:?}");
            assert!(shown.contains("2ms/8ms") && shown.contains(call), "{shown}");
        }
    }
}
