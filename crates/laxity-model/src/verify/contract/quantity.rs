//! What a contract can limit.

use core::fmt;

use crate::Span;

/// A measured quantity: its name and its unit. What is measured of a component is for its [`Kind`](super::Kind) to say; those that
/// several kinds share, or that [`pc99`](super::pc99()) limits, stand here.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Quantity {
    name: &'static str,
    unit: Unit,
    counts: Counts,
    /// In every window of this length, the sum.
    window: Option<Span>,
}

/// What the values of a quantity have to do with each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Counts {
    /// Each stands for itself.
    Not,
    /// They add up, and it is known of each when it was.
    InTime,
    /// They add up.
    InAll,
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
        self.show_beside(value, value)
    }

    /// A value in this unit, for people, beside another one.
    pub(crate) const fn show_beside(self, value: u64, other: u64) -> Shown {
        Shown {
            unit: self,
            value,
            other,
        }
    }
}

/// A value that knows its unit.
#[derive(Clone, Copy)]
pub(crate) struct Shown {
    unit: Unit,
    value: u64,
    other: u64,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.unit {
            Unit::Nanoseconds => {
                let [value, other] = [self.value, self.other].map(Span::from_nanos);
                value.beside(other).fmt(f)
            }
            Unit::Count => self.value.fmt(f),
        }
    }
}

impl Quantity {
    /// The processor time that an interrupt handler takes from its entry to its return: what it keeps from others of its level.
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
    /// Jobs that did not end by their deadline: 0 or 1 a job, counted when it was released.
    pub const DEADLINE_MISSES: Self = Self::events("deadline_misses");
    /// Jobs that ended, in time or not: 1 a job, counted when it ended.
    pub const JOBS_DONE: Self = Self::events("jobs_done");
    /// Jobs that were still at work when the next was released: 0 or 1 a job, counted when it was released.
    pub const JOB_OVERRUNS: Self = Self::events("job_overruns");
    /// Releases that came to nothing: 1 each, counted when it was, and 0 for one that did not.
    pub const RELEASES_MISSED: Self = Self::events("releases_missed");
    /// The priority (0–31) at which long work runs.
    pub const THREAD_PRIORITY: Self = Self::level("thread_priority");

    /// A time, in nanoseconds. The name is words joined by `_`, without the unit.
    #[must_use]
    pub const fn time(name: &'static str) -> Self {
        Self::new(name, Unit::Nanoseconds, Counts::Not)
    }

    /// A number of which each value stands for itself, such as the fill of a buffer.
    #[must_use]
    pub const fn level(name: &'static str) -> Self {
        Self::new(name, Unit::Count, Counts::Not)
    }

    /// A number of things that happened, whose sum is what a limit is about unless it says otherwise.
    #[must_use]
    pub const fn events(name: &'static str) -> Self {
        Self::new(name, Unit::Count, Counts::InTime)
    }

    /// The same of things of which nobody knows when they happened, but how many of them in a run.
    #[must_use]
    pub const fn tally(name: &'static str) -> Self {
        Self::new(name, Unit::Count, Counts::InAll)
    }

    const fn new(name: &'static str, unit: Unit, counts: Counts) -> Self {
        Self {
            name,
            unit,
            counts,
            window: None,
        }
    }

    /// The sum of it in every window of this length, as [`in_windows`](super::in_windows) has them: `None` unless things happen in their time
    /// ([`Self::events`]).
    #[must_use]
    pub const fn in_every(self, window: Span) -> Option<Self> {
        match self.counts {
            Counts::InTime => Some(Self {
                window: Some(window),
                ..self
            }),
            Counts::Not | Counts::InAll => None,
        }
    }

    /// The windows in which it is summed up, if it is.
    pub const fn window(self) -> Option<Span> {
        self.window
    }

    /// What is summed up in windows, or the quantity itself.
    #[must_use]
    pub const fn of_each(self) -> Self {
        Self {
            window: None,
            ..self
        }
    }

    /// Its unit.
    pub const fn unit(self) -> Unit {
        self.unit
    }

    /// Whether a limit that names no statistic is about the sum.
    pub const fn is_summed(self) -> bool {
        self.adds_up() && self.window.is_none()
    }

    /// Whether its values are numbers of things.
    pub(crate) const fn adds_up(self) -> bool {
        !matches!(self.counts, Counts::Not)
    }

    /// Its name in files: words joined by `_`, without the unit and the window.
    pub const fn name(self) -> &'static str {
        self.name
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, word) in self.name().split('_').enumerate() {
            write!(f, "{}{word}", if i == 0 { "" } else { " " })?;
        }
        match self.window {
            Some(window) => write!(f, " in every {window}"),
            None => Ok(()),
        }
    }
}
