//! What was tried, how it failed, and the causes there are.

use laxity_model::analysis::multiprocessor::{Bandwidth, DeadlineRequest};
use laxity_model::{HostError, Service, Span};

use crate::os::cpuset::CpuSet;

/// What was tried, by the calling thread on itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// To become FIFO or round robin, at this priority (1 to 99).
    SetFifo {
        /// The priority.
        priority: u8,
    },
    /// To become an ordinary thread of this nice value (−20 to 19).
    SetNice {
        /// The nice value.
        nice: i32,
    },
    /// To become `SCHED_DEADLINE`.
    SetDeadline(DeadlineRequest),
    /// To start a process or a thread.
    Fork,
    /// `mlockall` of all that is and will be.
    LockMemory,
}

impl Operation {
    /// To make a reservation so small that only missing rights can stand against it.
    pub(crate) const SMALLEST_RESERVATION: Self = Self::SetDeadline(DeadlineRequest {
        runtime: Service::from_micros(10),
        deadline: Span::from_millis(100),
        period: Span::from_millis(100),
    });
}

/// The bound that a parameter breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParameterError {
    /// A FIFO priority outside 1 to 99.
    Priority,
    /// Runtime under 1024 ns.
    RuntimeTooShort,
    /// Runtime longer than the deadline.
    RuntimeOverDeadline,
    /// Deadline longer than the period.
    DeadlineOverPeriod,
    /// Period under the machine's shortest.
    PeriodTooShort,
    /// Period over the machine's longest.
    PeriodTooLong,
}

/// The one cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The caller lacks this capability, and no limit makes up for it.
    NoCapability(&'static str),
    /// The caller has this capability in its own user namespace only, where scheduling does not honour it.
    CapabilityOfNamespace(&'static str),
    /// `RLIMIT_RTPRIO` is more than 0, and less than the priority.
    RtprioTooLow {
        /// The limit.
        limit: u64,
        /// What was asked.
        priority: u8,
    },
    /// The control group of the caller, or of the process that was asked about, leaves all its real-time threads together less of a processor than the
    /// machine does.
    RealTimeGroupLimited {
        /// The group's directory.
        group: String,
    },
    /// The caller's group has no real-time runtime. FIFO is refused, deadline is not.
    RealTimeGroupWithoutRuntime {
        /// The group's directory.
        group: String,
    },
    /// `sched_rt_runtime_us` is 0: nothing at all is admitted.
    NoRealTimeRuntime,
    /// A deadline thread must be allowed on every processor of its root domain.
    AffinityNarrowerThanRootDomain {
        /// Where the thread may run.
        affinity: CpuSet,
        /// Where it would have to.
        root_domain: CpuSet,
    },
    /// The deadline bandwidth of the root domain is taken.
    NoBandwidthLeft {
        /// How much too little is left. `None` if what can be seen would leave enough: then it is held by what cannot be seen, as a thread
        /// that has left until its zero-lag time.
        missing: Option<Bandwidth>,
    },
    /// A number that the kernel takes on no machine, or not on this one.
    OutOfRange(ParameterError),
    /// `RLIMIT_RTTIME` ends real-time threads that do not block for so long.
    RealTimeTimeLimited {
        /// The soft limit, in microseconds.
        limit_us: u64,
    },
    /// `RLIMIT_MEMLOCK` is less than what is to be locked, and `CAP_IPC_LOCK` is not there.
    MemoryLockRefused {
        /// The limit.
        limit_bytes: u64,
        /// What is to be locked.
        needed_bytes: Option<u64>,
    },
    /// A deadline thread may not fork unless its children fall back.
    ForkWithoutResetOnFork,
    /// None of the causes that can be checked.
    Unexplained,
}

/// A cause in words, with what to do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what}; remedy: {remedy}")]
pub struct Diagnosis {
    /// The cause, for programs.
    pub cause: Cause,
    /// The cause, for people: one sentence.
    pub what: String,
    /// A command or setting to apply.
    pub remedy: String,
}

impl Diagnosis {
    pub(super) fn new(cause: Cause, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            cause,
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    /// As the error of a host, in these words.
    pub(crate) fn as_of_host(&self, text: String) -> HostError {
        match self.cause {
            Cause::NoBandwidthLeft { .. } | Cause::OutOfRange(_) => HostError::Refused(text),
            _ => HostError::CannotRun(text),
        }
    }

    /// What a call returns that is refused for it; `None` of what refuses none.
    pub fn errno(&self) -> Option<i32> {
        match &self.cause {
            Cause::OutOfRange(_) => Some(libc::EINVAL),
            Cause::NoBandwidthLeft { .. } => Some(libc::EBUSY),
            Cause::ForkWithoutResetOnFork => Some(libc::EAGAIN),
            // With a limit of 0 the caller has no right to lock; with more, not enough of it.
            Cause::MemoryLockRefused { limit_bytes, .. } if *limit_bytes > 0 => Some(libc::ENOMEM),
            Cause::RealTimeTimeLimited { .. } | Cause::Unexplained => None,
            _ => Some(libc::EPERM),
        }
    }
}
