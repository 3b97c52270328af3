//! Scheduling policies and affinities, as types: every setter reads back what it set and never reports success without effect.

use std::fmt;
use std::io;
use std::mem;

use derive_more::Display;
use laxity_model::analysis::multiprocessor::{Bandwidth, DeadlineRequest};
use laxity_model::policy::classes::Scheduling;
use laxity_model::{Service, Span};

use crate::os::cpuset::CpuSet;

/// A thread as the kernel numbers it; also a process, whose first thread has its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Display)]
pub struct Tid(pub i32);

impl Tid {
    /// The calling thread.
    #[must_use]
    pub fn current() -> Self {
        // SAFETY: takes no argument and cannot fail.
        Self(unsafe { libc::gettid() })
    }
}

/// How the kernel schedules a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Display)]
pub enum Policy {
    /// `SCHED_OTHER` with a nice value, −20 to 19.
    #[display("SCHED_OTHER nice {nice}")]
    Other {
        /// Lower is more.
        nice: i32,
    },
    /// `SCHED_BATCH`.
    #[display("SCHED_BATCH nice {nice}")]
    Batch {
        /// Lower is more.
        nice: i32,
    },
    /// `SCHED_IDLE`.
    #[display("SCHED_IDLE")]
    Idle,
    /// `SCHED_FIFO`, priority 1 to 99.
    #[display("SCHED_FIFO priority {_0}")]
    Fifo(u8),
    /// `SCHED_RR`, priority 1 to 99.
    #[display("SCHED_RR priority {_0}")]
    RoundRobin(u8),
    /// `SCHED_DEADLINE`.
    #[display("SCHED_DEADLINE runtime {} deadline {} period {}", _0.runtime, _0.deadline, _0.period)]
    Deadline(DeadlineRequest),
    /// A policy this library does not know, by its number (`SCHED_EXT` is 7).
    #[display("scheduling policy {_0}")]
    Unknown(u32),
}

impl From<Scheduling> for Policy {
    fn from(scheduling: Scheduling) -> Self {
        match scheduling {
            Scheduling::Fifo(priority) => Self::Fifo(priority),
            Scheduling::RoundRobin(priority) => Self::RoundRobin(priority),
            Scheduling::Fair { nice } => Self::Other { nice: nice.into() },
            Scheduling::Idle => Self::Idle,
        }
    }
}

impl Policy {
    /// Whether the policy ranks above all ordinary threads.
    pub fn is_real_time(self) -> bool {
        matches!(
            self,
            Self::Fifo(_) | Self::RoundRobin(_) | Self::Deadline(_)
        )
    }

    /// Whether it takes the processor from a FIFO thread of `priority`; equal priorities do not.
    pub(crate) fn outranks(self, priority: u8) -> bool {
        match self {
            Self::Fifo(theirs) | Self::RoundRobin(theirs) => theirs > priority,
            Self::Deadline(_) => true,
            _ => false,
        }
    }

    /// What it holds of a processor under `SCHED_DEADLINE`.
    pub(crate) fn bandwidth(self) -> Bandwidth {
        match self {
            Self::Deadline(held) => held.bandwidth(),
            _ => Bandwidth::ZERO,
        }
    }
}

/// Why a policy or an affinity was not set, or could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SchedError {
    /// The kernel said no.
    #[error("{call}({request}) for thread {tid}: {}", io::Error::from_raw_os_error(*errno))]
    Os {
        /// The system call.
        call: &'static str,
        /// For whom.
        tid: Tid,
        /// What was asked for.
        request: String,
        /// The kernel's answer.
        errno: i32,
    },
    /// The kernel said yes, but reading back shows something else.
    #[error("{call}({request}) for thread {tid} had no effect: it has {found}")]
    NoEffect {
        /// The system call.
        call: &'static str,
        /// For whom.
        tid: Tid,
        /// What was asked for.
        request: String,
        /// What it has.
        found: String,
    },
}

impl SchedError {
    /// What the kernel said to the calling thread last.
    pub(crate) fn last(call: &'static str, tid: Tid, request: impl fmt::Display) -> Self {
        Self::Os {
            call,
            tid,
            request: request.to_string(),
            errno: io::Error::last_os_error().raw_os_error().unwrap_or(0),
        }
    }

    /// Whether what was read back is what was asked for.
    fn unless_same<T: PartialEq + fmt::Display>(
        call: &'static str,
        tid: Tid,
        request: &T,
        found: &T,
    ) -> Result<(), Self> {
        if request == found {
            return Ok(());
        }
        Err(Self::NoEffect {
            call,
            tid,
            request: request.to_string(),
            found: found.to_string(),
        })
    }

    /// The kernel's answer, if it said no.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Os { errno, .. } => Some(*errno),
            Self::NoEffect { .. } => None,
        }
    }
}

/// A `sched_attr` as bytes.
pub(crate) type RawAttributes = [u8; size_of::<libc::sched_attr>()];

const SCHED_DEADLINE: i32 = 6;
const FLAG_RESET_ON_FORK: u64 = 1;
/// So often what the kernel tells of a thread may be half of one policy and half of another.
const LOOKS: usize = 5;

/// A thread's policy as the kernel keeps it, flags included.
#[derive(Clone, Copy)]
pub struct Attributes(libc::sched_attr);

impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (flags {})", self.policy(), self.0.sched_flags)
    }
}

impl Attributes {
    /// Of a thread. One that has ended and that nobody has waited for yet is there no more.
    pub fn of(tid: Tid) -> Result<Self, SchedError> {
        // The kernel reads without a lock: what is being changed is whole soon.
        for _ in 0..LOOKS {
            let found = Self::as_told(tid)?;
            if found.is_whole() {
                return Ok(found);
            }
        }
        Err(SchedError::Os {
            call: "sched_getattr",
            tid,
            request: String::new(),
            errno: libc::ESRCH,
        })
    }

    /// Whether a thread that runs can have this. When one ends, the kernel takes its reservation away and leaves its class.
    fn is_whole(&self) -> bool {
        match self.policy() {
            Policy::Fifo(priority) | Policy::RoundRobin(priority) => priority > 0,
            Policy::Deadline(held) => !held.runtime.is_zero(),
            _ => true,
        }
    }

    fn as_told(tid: Tid) -> Result<Self, SchedError> {
        // SAFETY: all-zero bytes are a valid sched_attr.
        let mut raw: libc::sched_attr = unsafe { mem::zeroed() };
        let size = size_of::<libc::sched_attr>() as u32;
        // SAFETY: `raw` has room for `size` bytes.
        let result =
            unsafe { libc::syscall(libc::SYS_sched_getattr, tid.0, &raw mut raw, size, 0u32) };
        if result == -1 {
            return Err(SchedError::last("sched_getattr", tid, ""));
        }
        Ok(Self(raw))
    }

    /// For a policy. Children of a real-time thread start as ordinary threads where `reset_on_fork` says so.
    #[must_use]
    pub fn new(policy: Policy, reset_on_fork: bool) -> Self {
        // SAFETY: all-zero bytes are a valid sched_attr.
        let mut raw: libc::sched_attr = unsafe { mem::zeroed() };
        raw.size = size_of::<libc::sched_attr>() as u32;
        raw.sched_flags = if reset_on_fork { FLAG_RESET_ON_FORK } else { 0 };
        let (number, nice, priority) = match policy {
            Policy::Other { nice } => (libc::SCHED_OTHER, nice, 0),
            Policy::Batch { nice } => (libc::SCHED_BATCH, nice, 0),
            Policy::Idle => (libc::SCHED_IDLE, 0, 0),
            Policy::Fifo(priority) => (libc::SCHED_FIFO, 0, priority),
            Policy::RoundRobin(priority) => (libc::SCHED_RR, 0, priority),
            Policy::Deadline(asked) => {
                raw.sched_runtime = asked.runtime.as_nanos();
                raw.sched_deadline = asked.deadline.as_nanos();
                raw.sched_period = asked.period.as_nanos();
                (SCHED_DEADLINE, 0, 0)
            }
            Policy::Unknown(number) => (number.cast_signed(), 0, 0),
        };
        raw.sched_policy = number.cast_unsigned();
        raw.sched_nice = nice;
        raw.sched_priority = u32::from(priority);
        Self(raw)
    }

    /// The policy without the flags.
    pub fn policy(&self) -> Policy {
        let raw = &self.0;
        let priority = raw.sched_priority as u8;
        match raw.sched_policy as i32 {
            libc::SCHED_OTHER => Policy::Other {
                nice: raw.sched_nice,
            },
            libc::SCHED_BATCH => Policy::Batch {
                nice: raw.sched_nice,
            },
            libc::SCHED_IDLE => Policy::Idle,
            libc::SCHED_FIFO => Policy::Fifo(priority),
            libc::SCHED_RR => Policy::RoundRobin(priority),
            SCHED_DEADLINE => {
                let mut held = DeadlineRequest {
                    runtime: Service::from_nanos(raw.sched_runtime),
                    deadline: Span::from_nanos(raw.sched_deadline),
                    period: Span::from_nanos(raw.sched_period),
                };
                // The kernel leaves the period out where it is the deadline.
                held.period = held.period();
                Policy::Deadline(held)
            }
            number => Policy::Unknown(number as u32),
        }
    }

    /// As the kernel takes them.
    pub(crate) fn to_bytes(self) -> RawAttributes {
        // What the kernel writes of them is all numbers, and what it leaves out is 0.
        let raw = Self(libc::sched_attr {
            size: size_of::<libc::sched_attr>() as u32,
            ..self.0
        });
        // SAFETY: a structure of integers without gaps is as many bytes.
        unsafe { mem::transmute::<libc::sched_attr, RawAttributes>(raw.0) }
    }

    /// Whether children of a real-time thread start as ordinary threads.
    pub fn resets_on_fork(&self) -> bool {
        self.0.sched_flags & FLAG_RESET_ON_FORK != 0
    }

    /// Gives them to a thread and reads them back.
    pub fn apply(&self, tid: Tid) -> Result<(), SchedError> {
        self.apply_unchecked(tid)?;
        let found = Self::of(tid)?.policy();
        SchedError::unless_same("sched_setattr", tid, &self.policy(), &found)
    }

    /// Gives them to a thread: one system call (about 1 µs), for the edges of time slots.
    pub fn apply_unchecked(&self, tid: Tid) -> Result<(), SchedError> {
        // SAFETY: `self.0` is a complete sched_attr whose size field is right.
        let result =
            unsafe { libc::syscall(libc::SYS_sched_setattr, tid.0, &raw const self.0, 0u32) };
        if result == -1 {
            Err(SchedError::last("sched_setattr", tid, self.policy()))
        } else {
            Ok(())
        }
    }
}

/// The policy of a thread.
pub fn policy(tid: Tid) -> Result<Policy, SchedError> {
    Attributes::of(tid).map(|attributes| attributes.policy())
}

/// Gives a thread a policy; what it forks starts as an ordinary thread. Read back.
pub fn set_policy(tid: Tid, policy: Policy) -> Result<(), SchedError> {
    let reset_on_fork = policy.is_real_time();
    Attributes::new(policy, reset_on_fork).apply(tid)
}

/// Gives a thread a policy that the threads it starts inherit. Read back.
pub fn set_policy_inherited(tid: Tid, policy: Policy) -> Result<(), SchedError> {
    Attributes::new(policy, false).apply(tid)
}

/// More processors than any kernel is built for: a call fails if the mask is shorter than the kernel's own.
type Mask = [u64; 65_536 / 64];

/// The processors that a thread may run on.
pub fn affinity(tid: Tid) -> Result<CpuSet, SchedError> {
    let mut mask: Mask = [0; 65_536 / 64];
    // SAFETY: the kernel writes at most the stated number of bytes to `mask`, which is that large.
    let bytes = unsafe {
        libc::syscall(
            libc::SYS_sched_getaffinity,
            tid.0,
            size_of::<Mask>(),
            mask.as_mut_ptr(),
        )
    };
    if bytes == -1 {
        return Err(SchedError::last("sched_getaffinity", tid, ""));
    }
    let is_in = |cpu: &usize| mask[cpu / 64] >> (cpu % 64) & 1 == 1;
    Ok((0..8 * bytes as usize).filter(is_in).collect())
}

/// Says where a thread may run, and reads it back.
pub fn set_affinity(tid: Tid, set: &CpuSet) -> Result<(), SchedError> {
    let mut mask: Mask = [0; 65_536 / 64];
    for cpu in set.iter() {
        if let Some(word) = mask.get_mut(cpu / 64) {
            *word |= 1 << (cpu % 64);
        }
    }
    set_mask(tid, &mask, set)?;
    SchedError::unless_same("sched_setaffinity", tid, set, &affinity(tid)?)
}

/// Keeps the calling thread to one processor.
pub(crate) fn pin(cpu: usize) -> Result<(), SchedError> {
    set_affinity(Tid::current(), &CpuSet::single(cpu))
}

/// Lets a thread run on every processor that its cpuset has.
pub fn allow_all(tid: Tid) -> Result<(), SchedError> {
    set_mask(tid, &[u64::MAX; 65_536 / 64], "all")
}

fn set_mask(tid: Tid, mask: &Mask, request: impl fmt::Display) -> Result<(), SchedError> {
    // SAFETY: `mask` is as large as is said, and outlives the call, which reads it.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_setaffinity,
            tid.0,
            size_of::<Mask>(),
            mask.as_ptr(),
        )
    };
    if result == -1 {
        return Err(SchedError::last("sched_setaffinity", tid, request));
    }
    Ok(())
}

/// Gives a thread its policy and affinity back when dropped; if the thread has gone, nothing is to be done.
#[derive(Debug)]
pub struct Restore {
    tid: Tid,
    attributes: Attributes,
    affinity: CpuSet,
}

impl Restore {
    /// Remembers what the thread has now.
    pub fn of(tid: Tid) -> Result<Self, SchedError> {
        Ok(Self::to(tid, (Attributes::of(tid)?, affinity(tid)?)))
    }

    /// It is to have this.
    pub(crate) fn to(tid: Tid, (attributes, affinity): (Attributes, CpuSet)) -> Self {
        Self {
            tid,
            attributes,
            affinity,
        }
    }

    /// Whose it is, and what it had.
    pub(crate) fn parts(&self) -> (Tid, Attributes, &CpuSet) {
        (self.tid, self.attributes, &self.affinity)
    }

    /// Gives it back now.
    pub(crate) fn give_back(&self) {
        // A deadline thread refuses a narrower affinity, and asks for the whole one: leave that policy first, enter it last.
        let restored = self.attributes.policy();
        let leaves = |now| matches!(now, Policy::Deadline(_)) && now != restored;
        if policy(self.tid).is_ok_and(leaves) {
            let _ = set_policy(self.tid, Policy::Other { nice: 0 });
        }
        let _ = set_affinity(self.tid, &self.affinity);
        let _ = self.attributes.apply(self.tid);
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::rights;

    #[test]
    fn errors_say_which_call_for_whom_and_why() {
        let nobody = Tid(i32::MAX);
        let error = set_policy(nobody, Policy::Fifo(10)).unwrap_err();
        assert_eq!(error.errno(), Some(libc::ESRCH));
        let text = error.to_string();
        for part in ["sched_setattr", "SCHED_FIFO priority 10", "2147483647"] {
            assert!(text.contains(part), "{text}");
        }
    }

    /// Beside changes one read in 250 told FIFO with priority 0; of a thread that has ended each tells a reservation of nothing.
    #[test]
    fn what_no_thread_can_have_is_not_whole() {
        let is_whole = |policy| Attributes::new(policy, false).is_whole();
        let nothing = Attributes(libc::sched_attr {
            sched_policy: SCHED_DEADLINE.cast_unsigned(),
            ..Attributes::new(Policy::Idle, false).0
        });
        assert!(!nothing.is_whole() && !is_whole(Policy::Fifo(0)));
        assert!(is_whole(Policy::Idle) && is_whole(Policy::Fifo(1)));
    }

    #[test]
    fn policies_survive_the_kernels_form() {
        for policy in [
            Policy::Other { nice: -3 },
            Policy::Batch { nice: 4 },
            Policy::Idle,
            Policy::Fifo(99),
            Policy::RoundRobin(1),
            Policy::Deadline(DeadlineRequest {
                runtime: Service::from_millis(2),
                deadline: Span::from_millis(6),
                period: Span::from_millis(8),
            }),
        ] {
            assert_eq!(Attributes::new(policy, true).policy(), policy);
        }
    }

    #[test]
    fn what_was_changed_is_restored() {
        let Some(_live) = rights::require(&[rights::Right::RealTime]) else {
            return;
        };
        let own = Tid::current();
        let (before, cpus) = (policy(own).unwrap(), affinity(own).unwrap());
        let restore = Restore::of(own).unwrap();
        set_policy(own, Policy::Fifo(1)).unwrap();
        set_affinity(own, &CpuSet::single(cpus.iter().next().unwrap())).unwrap();
        assert_eq!(policy(own).unwrap(), Policy::Fifo(1));
        drop(restore);
        assert_eq!(
            (policy(own).unwrap(), affinity(own).unwrap()),
            (before, cpus)
        );
    }
}
