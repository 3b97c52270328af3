//! What tests answer.

use crate::Span;
use derive_more::Display;

/// A number that a test needs is too large: most must fit 64 bits of nanoseconds (584 years), some, of which sums are made without
/// looking, 61 (73 years); 128 bits in between.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0} is too large: sums of execution times and periods must fit 64 bits of nanoseconds")]
pub struct Overflow(
    /// What was computed.
    pub &'static str,
);

/// The answer of a schedulability test for a whole set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Display)]
pub enum Verdict {
    /// No job misses its deadline, whatever the phases, as long as the tasks are what they say.
    #[display("schedulable")]
    Schedulable,
    /// This job can miss its deadline. Only tests that are exact say so.
    #[display("not schedulable: {_0}")]
    NotSchedulable(Witness),
    /// The test cannot tell.
    #[display("unknown: {_0}")]
    Unknown(Doubt),
}

/// A job that can miss its deadline, in the worst case of its test: time 0 is the beginning of the busy window, when all tasks that
/// delay the job release one as early as they may, a less urgent one perhaps having just begun a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Display)]
#[display(
    "a job of task {task} released {release} after the worst instant is not complete {due} after it, when it is due"
)]
pub struct Witness {
    /// Its task, as an index into the set that was tested.
    pub task: usize,
    /// When it is released.
    pub release: Span,
    /// When it is due.
    pub due: Span,
}

/// Why a test cannot tell.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Display)]
pub enum Doubt {
    /// The test is only sufficient, and does not accept this set.
    #[display("the test is only sufficient")]
    Sufficient,
    /// The test is for other sets: it needs, say, deadlines equal to periods, or priorities by rate.
    #[display("the set is not what the test is made for")]
    OutOfScope,
    /// The set is so full, and its periods so many, that the busy window was not searched to its end.
    #[display("the busy window is too long to be searched")]
    TooLong,
}

/// What a search for something that meets all deadlines found: an order of priorities, the lengths of regions.
#[must_use]
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Search<T> {
    /// This does: all that was looked for is met with it.
    Found(T),
    /// There is nothing that does, whatever one chooses. Only said after a search to the end, on a supply that is
    /// [attained](super::supply::SupplyBound::is_attained), or where one task is too much for any processor.
    None,
    /// Nothing was found, but there may be something: [`Doubt::Sufficient`] on a supply that is not attained,
    /// [`Doubt::TooLong`] where not all was searched.
    Unknown(Doubt),
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
    pub const fn is_schedulable(&self) -> bool {
        matches!(self, Self::Schedulable)
    }
}

impl<T> Search<T> {
    /// What was found, if anything was.
    pub fn found(self) -> Option<T> {
        match self {
            Self::Found(found) => Some(found),
            Self::None | Self::Unknown(_) => None,
        }
    }

    /// That nothing was found by a search to its end: there is nothing if the supply is attained, and else nobody knows.
    pub(super) const fn nothing(is_attained: bool) -> Self {
        if is_attained {
            Self::None
        } else {
            Self::Unknown(Doubt::Sufficient)
        }
    }
}

impl Response {
    /// The bound, if there is one.
    pub const fn bound(&self) -> Option<Bound> {
        match self {
            Self::Bounded(bound) => Some(*bound),
            Self::Unbounded | Self::Unknown(_) => None,
        }
    }
}
