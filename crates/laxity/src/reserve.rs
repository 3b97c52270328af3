//! A reservation of the calling thread.

use std::cell::Cell;

use laxity_linux::doctor::machine::CAP_IPC_LOCK;
use laxity_linux::doctor::{Cause, Diagnosis, Machine, Operation, Rights, explain, foresee};
use laxity_linux::host::hold::{HoldError, HoldRequest, Observer, ThreadHold};
use laxity_linux::os::fact::Unknown;
use laxity_linux::os::fork;
use laxity_linux::os::memory::MemoryLock;
use laxity_model::verify::delivery::Delivery;
use laxity_model::{Enforcer, Grade, Outside, Reservation, Service, Span};

use crate::Error;

thread_local! {
    /// What the thread holds. Two reservations dropped in the wrong order would leave the thread with the first one's policy.
    /// With the process in which it does: a child that the thread forks holds nothing.
    static HELD: Cell<Option<(Reservation, u32)>> = const { Cell::new(None) };
}

/// What the calling thread holds.
fn held() -> Option<Reservation> {
    let (held, generation) = HELD.get()?;
    (generation == fork::generation()).then_some(held)
}

/// Reserves `service` out of every `period` for the calling thread, by `SCHED_DEADLINE`, until the returned value is dropped: a [`Request`]
/// that asks for nothing else.
///
/// # Errors
///
/// Those of [`Request::new`] and [`Request::reserve`].
pub fn reserve(service: Service, period: Span) -> Result<Reserved, Error> {
    Request::new(service, period)?.reserve()
}

/// What a thread asks for, and of whom.
///
/// # What each enforcer gives
///
/// [`Enforcer::Deadline`], which is asked unless another is: the share, and priority over everything but other such reservations; nothing beyond
/// the share. Not `service` in *every* window of length `period`: budgets served early in one period and late in the next lie
/// 2(`period` − `service`) apart (Abeni and Buttazzo's constant bandwidth server), and a kernel that looks at budgets only at its tick
/// (most do) lets gaps grow to several periods where `service` is less than a tick. It takes services from 1024 ns and periods from 100 µs
/// to 4.19 s, unless it is set otherwise. The thread may run on every processor meanwhile, however it was pinned.
///
/// [`Enforcer::Slots`]: `service` in every window of `period`, in slots that a thread beside the caller gives it (a *dispatcher*), on one
/// processor, to which the caller is pinned. Outside them it competes as before, or does not run ([`Self::confined`]). One thread of one process may
/// hold slots on each processor.
///
/// ```no_run
/// use laxity::{Enforcer, Request, Service, Span};
///
/// let request = Request::new(Service::from_millis(2), Span::from_millis(8))?;
/// let reserved = request.by(Enforcer::Slots).on(0).confined().reserve()?;
/// // … work …
/// let seen = reserved.delivery()?;
/// println!("{} of {} periods kept, largest gap {}", seen.kept, seen.periods, seen.largest_gap);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use = "nothing is reserved before `reserve` is called"]
pub struct Request(pub(crate) HoldRequest);

impl Request {
    /// `service` out of every `period`, by `SCHED_DEADLINE`.
    ///
    /// # Errors
    ///
    /// Numbers that are no reservation.
    pub fn new(service: Service, period: Span) -> Result<Self, Error> {
        Ok(Self(HoldRequest {
            name: "the calling thread".to_owned(),
            reservation: Reservation::new(service, period)?,
            enforcer: Enforcer::Deadline,
            outside: Outside::AsPlaced,
            processor: None,
        }))
    }

    /// Asks this enforcer.
    pub fn by(mut self, enforcer: Enforcer) -> Self {
        self.0.enforcer = enforcer;
        self
    }

    /// Asks for slots on this processor, by the kernel's number. Without it, on the first that is free and where nobody is seen who would
    /// outrank them.
    pub fn on(mut self, processor: usize) -> Self {
        self.0.processor = Some(processor);
        self
    }

    /// The thread does not run outside its slots. It is stopped by a signal wherever it is, also in the middle of an allocation: it should share
    /// no lock with threads that must be in time. A system call that it was in returns `EINTR` where the kernel cannot restart it. By
    /// `deadline` nothing runs outside the reservation in any case.
    pub fn confined(mut self) -> Self {
        self.0.outside = Outside::Confined;
        self
    }

    /// Reserves for the calling thread, until the returned value is dropped. What the thread starts are ordinary threads. Where it is allowed
    /// and cannot do harm, all memory of the process is locked: see [`Reserved::memory_locked`].
    ///
    /// # Errors
    ///
    /// A reservation that the thread holds already; what the kernel says, explained; or what admission says to slots.
    ///
    /// # Cost
    ///
    /// Reads what the process may do (milliseconds), touches all its memory, and starts a thread that looks once a period (or once a millisecond,
    /// by `deadline` twenty, where that is longer) at what is received, before the reservation begins. By slots: two threads more, and a measurement of
    /// 0.1 s the first time on each processor. Where the kernel's bandwidth is short, waits until that of reservations which this process gave
    /// back before is free again: at most their longest period.
    pub fn reserve(&self) -> Result<Reserved, Error> {
        let reservation = self.0.reservation;
        if let Some(held) = held() {
            return Err(Error::AlreadyReserved { held });
        }
        let machine = Machine::probe();
        // Locked first: to fault everything in out of the reservation's budget would take many periods.
        let memory = lock_memory(&machine);
        let hold = ThreadHold::begin(&self.0).map_err(|error| match error {
            HoldError::Refused {
                reservation,
                diagnosis,
                source,
            } => Error::Refused {
                reservation,
                diagnosis,
                source,
            },
            HoldError::Deadline(source) => Error::Failed {
                reservation,
                source,
            },
            HoldError::Host(source) => Error::Host {
                reservation,
                source,
            },
        })?;
        HELD.set(Some((reservation, fork::generation())));
        Ok(Reserved {
            hold,
            reservation,
            memory,
        })
    }
}

/// A reservation that the calling thread holds; given back, with policy and processors as before, when dropped.
///
/// A child that the thread forks (`fork`, not a bare `clone`) holds nothing: there this says that it is *unenforced*, tells of no service, and drops without a trace; the parent
/// holds it as before. The child is an ordinary thread, on the processor of its parent's slots as all that a holder starts, and may reserve for itself.
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
    hold: ThreadHold,
    reservation: Reservation,
    memory: Result<MemoryLock, Diagnosis>,
}

impl Reserved {
    /// What is reserved.
    pub fn reservation(&self) -> Reservation {
        self.reservation
    }

    /// Whether it is enforced, by the worst moment that was seen until *now*: by `deadline` the thread's policy is read back (a system call),
    /// since who has the right may change it at any time; by slots, whoever outranks them is looked for now, and every tenth of
    /// a second (a system call for each thread of the machine).
    pub fn grade(&self) -> Grade {
        self.observer().grade()
    }

    /// What the thread has received: service, the largest gap, periods kept, overruns. By the last look, at most three periods ago (or three
    /// milliseconds, by `deadline` 60). By `deadline` several periods of less than 20 ms are seen together and counted as one ([`Delivery::together`]): the
    /// largest gap is at most what is told, and single periods are not seen.
    ///
    /// # Errors
    ///
    /// Why it cannot be seen: a kernel without `SCHED_INFO`, or no `/proc`; or this is a child that was forked.
    pub fn delivery(&self) -> Result<Delivery, Unknown> {
        self.observer().delivery()
    }

    /// The processor of its slots, by the kernel's number; by `deadline` there is none.
    pub fn processor(&self) -> Option<usize> {
        self.observer().processor()
    }

    /// Tells the same to any thread, also when the reservation was given back.
    pub fn observer(&self) -> &Observer {
        self.hold.observer()
    }

    /// Whether the process's memory is locked while this is held, so that no page fault waits for a disk; if not, why not, and the remedy.
    ///
    /// A child that was forked has nothing locked of what its parent has. It is not where a limit on locked memory would keep the process from growing: its allocations would fail.
    pub fn memory_locked(&self) -> Result<(), &Diagnosis> {
        self.memory.as_ref().map(|_| ())
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // What a child holds is another one.
        if !self.hold.is_of_parent() {
            HELD.set(None);
        }
    }
}

/// Locks the memory of the process where that is allowed and cannot do harm.
pub(crate) fn lock_memory_now() -> Result<MemoryLock, Diagnosis> {
    lock_memory(&Machine::probe())
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
