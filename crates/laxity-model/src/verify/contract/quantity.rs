//! What a contract can limit.

use core::fmt;

use crate::Span;

/// A measured quantity: its name and its unit. What is measured of a component is for its [`Kind`](super::Kind) to say; those that
/// several kinds share, or that [`pc99`](super::pc99()) limits, stand here.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Quantity {
    name: &'static str,
    unit: Unit,
    is_summed: bool,
}

/// The unit of a quantity's values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
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
    /// From entry to return of an interrupt handler: the time it keeps others of its level out.
    pub const INTERRUPT_TIME: Self = Self::time("interrupt_time");
    /// The time that all deferred calls queued at an instant take together until the queue is empty.
    pub const DEFERRED_TIME: Self = Self::time("deferred_time");
    /// From one interrupt of the device to its next. An interval in which the device changed its rate or its phase belongs to
    /// neither phase and is not observed.
    pub const INTERRUPT_PERIOD: Self = Self::time("interrupt_period");
    /// How late a thread runs after the instant it was to wake.
    pub const WAKEUP_LATENCY: Self = Self::time("wakeup_latency");
    /// From one periodic wake-up to the next.
    pub const WAKEUP_GAP: Self = Self::time("wakeup_gap");
    /// From the release of a job to its end.
    pub const RESPONSE_TIME: Self = Self::time("response_time");
    /// For how long a thread that had work was without the processor, each time.
    pub const SERVICE_GAP: Self = Self::time("service_gap");
    /// Jobs that ended after their deadline: 0 or 1 a job.
    pub const DEADLINE_MISSES: Self = Self::events("deadline_misses");
    /// The priority (0–31) at which long work runs.
    pub const THREAD_PRIORITY: Self = Self::level("thread_priority");

    /// A time, in nanoseconds. The name is words joined by `_`, without the unit.
    #[must_use]
    pub const fn time(name: &'static str) -> Self {
        Self {
            name,
            unit: Unit::Nanoseconds,
            is_summed: false,
        }
    }

    /// A number of which each value stands for itself, such as the fill of a buffer.
    #[must_use]
    pub const fn level(name: &'static str) -> Self {
        Self {
            name,
            unit: Unit::Count,
            is_summed: false,
        }
    }

    /// A number of things that happened, whose sum is what a limit is about unless it says otherwise.
    #[must_use]
    pub const fn events(name: &'static str) -> Self {
        Self {
            name,
            unit: Unit::Count,
            is_summed: true,
        }
    }

    /// Its unit.
    pub const fn unit(self) -> Unit {
        self.unit
    }

    /// Whether a limit that names no statistic is about the sum.
    pub const fn is_summed(self) -> bool {
        self.is_summed
    }

    /// Its name in files: words joined by `_`, without the unit.
    pub const fn name(self) -> &'static str {
        self.name
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
