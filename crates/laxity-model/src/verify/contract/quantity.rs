//! What a contract can limit.

use core::fmt;
use core::str::FromStr;

use alloc::string::{String, ToString};

use crate::Span;

/// A measured quantity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Quantity {
    /// From entry to return of an interrupt handler: the time it keeps others of its level out.
    InterruptTime,
    /// The time that all deferred calls queued at an instant take together until the queue is empty.
    DeferredTime,
    /// From one interrupt of the device to its next. An interval in which the device changed its rate or its phase belongs to
    /// neither phase and is not observed.
    InterruptPeriod,
    /// How late a thread runs after the instant it was to wake.
    WakeupLatency,
    /// From one periodic wake-up to the next.
    WakeupGap,
    /// From the release of a job to its end.
    ResponseTime,
    /// The longest time a runnable holder of a reservation was without service.
    ServiceGap,
    /// Samples left in the ring after the processing.
    SamplesPending,
    /// Samples lost: overwritten before they were read, or sent as garbage because none were there.
    SamplesLost,
    /// Jobs that ended after their deadline: 0 or 1 a job.
    DeadlineMisses,
    /// Times the link had to be trained again.
    Retrainings,
    /// The priority (0–31) at which long work runs.
    ThreadPriority,
}

/// The unit of a quantity's values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// A plain count.
    Count,
}

impl Unit {
    /// A value in this unit, for people.
    pub(crate) const fn show(self, value: u64) -> Shown {
        Shown { unit: self, value }
    }
}

/// A value that knows its unit.
pub(crate) struct Shown {
    unit: Unit,
    value: u64,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.unit {
            Unit::Nanoseconds => Span::from_nanos(self.value).fmt(f),
            Unit::Count => self.value.fmt(f),
        }
    }
}

impl Quantity {
    /// All there are.
    pub const ALL: [Self; 12] = [
        Self::InterruptTime,
        Self::DeferredTime,
        Self::InterruptPeriod,
        Self::WakeupLatency,
        Self::WakeupGap,
        Self::ResponseTime,
        Self::ServiceGap,
        Self::SamplesPending,
        Self::SamplesLost,
        Self::DeadlineMisses,
        Self::Retrainings,
        Self::ThreadPriority,
    ];

    /// Its unit.
    #[must_use]
    pub const fn unit(self) -> Unit {
        match self {
            Self::InterruptTime
            | Self::DeferredTime
            | Self::InterruptPeriod
            | Self::WakeupLatency
            | Self::WakeupGap
            | Self::ResponseTime
            | Self::ServiceGap => Unit::Nanoseconds,
            Self::SamplesPending
            | Self::SamplesLost
            | Self::DeadlineMisses
            | Self::Retrainings
            | Self::ThreadPriority => Unit::Count,
        }
    }

    /// Its name in files: words joined by `_`, without the unit.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InterruptTime => "interrupt_time",
            Self::DeferredTime => "deferred_time",
            Self::InterruptPeriod => "interrupt_period",
            Self::WakeupLatency => "wakeup_latency",
            Self::WakeupGap => "wakeup_gap",
            Self::ResponseTime => "response_time",
            Self::ServiceGap => "service_gap",
            Self::SamplesPending => "samples_pending",
            Self::SamplesLost => "samples_lost",
            Self::DeadlineMisses => "deadline_misses",
            Self::Retrainings => "retrainings",
            Self::ThreadPriority => "thread_priority",
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, word) in self.name().split('_').enumerate() {
            write!(f, "{}{word}", if i == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

/// A name that is no quantity's.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no quantity that a contract can limit")]
pub struct UnknownQuantity(pub String);

impl FromStr for Quantity {
    type Err = UnknownQuantity;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|q| q.name() == name);
        found.ok_or_else(|| UnknownQuantity(name.to_string()))
    }
}
