//! What tests answer.

use core::fmt;

use crate::Span;

/// A number that a test needs does not fit 64 bits of nanoseconds (584 years), or 128 bits in between.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0} does not fit 64 bits: execution times, periods or their number are too large")]
pub struct Overflow(
    /// What was computed.
    pub &'static str,
);

/// The answer of a schedulability test for a whole set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// No job misses its deadline, whatever the phases, as long as the tasks are what they say.
    Schedulable,
    /// This job can miss its deadline. Only tests that are exact say so.
    NotSchedulable(Witness),
    /// The test cannot tell.
    Unknown(Doubt),
}

/// A job that can miss its deadline, in the worst case of its test: time 0 is the beginning of the busy window, when all tasks that
/// delay the job release one as early as they may, a less urgent one perhaps having just begun a region. (By earliest deadline first,
/// of a set with tasks that are cut at known points, a job that is due earlier in the same window may be late in its stead.)
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Witness {
    /// Its task, as an index into the set that was tested.
    pub task: usize,
    /// When it is released.
    pub release: Span,
    /// When it is due.
    pub due: Span,
}

/// Why a test cannot tell.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Doubt {
    /// The test is only sufficient, and does not accept this set.
    Sufficient,
    /// The test is for other sets: it needs, say, deadlines equal to periods, or priorities by rate.
    OutOfScope,
    /// The set is so full, and its periods so many, that the busy window was not searched to its end.
    TooLong,
}

/// A bound on the response times of a task's jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    /// From a job's arrival, from which its deadline counts, to its completion.
    pub from_arrival: Span,
    /// From its release to its completion: what somebody who sees only releases can observe.
    pub from_release: Span,
}

/// How long a task's jobs take at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Response {
    /// No longer than this.
    Bounded(Bound),
    /// The supply cannot keep up with the demand in the long run: no bound.
    Unbounded,
    /// The test cannot tell.
    Unknown(Doubt),
}

impl Verdict {
    /// Whether the answer is yes.
    #[must_use]
    pub const fn is_schedulable(&self) -> bool {
        matches!(self, Self::Schedulable)
    }
}

impl Response {
    /// The bound, if there is one.
    #[must_use]
    pub const fn bound(&self) -> Option<Bound> {
        match self {
            Self::Bounded(bound) => Some(*bound),
            Self::Unbounded | Self::Unknown(_) => None,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schedulable => f.write_str("schedulable"),
            Self::NotSchedulable(witness) => write!(f, "not schedulable: {witness}"),
            Self::Unknown(doubt) => write!(f, "unknown: {doubt}"),
        }
    }
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a job of task {} released {} after the worst instant is not complete {} after it, when it is due",
            self.task, self.release, self.due
        )
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sufficient => "the test is only sufficient",
            Self::OutOfScope => "the set is not what the test is made for",
            Self::TooLong => "the busy window is too long to be searched",
        })
    }
}
