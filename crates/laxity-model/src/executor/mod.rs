//! Who runs next inside one thread: an executor takes turns among the jobs of its handlers, each of which runs until it yields, waits
//! or ends.
//!
//! A *handler* has at most one *job* at a time: it is released when an instant comes or when something arrives at a port, and over
//! when the handler waits again. A job is never interrupted by another. It looks from time to time whether somebody more urgent has
//! been released, and if so it yields.
//!
//! * [`ExecutorPolicy`]: the order among released jobs, and the schedulability test that belongs to it.
//! * [`Handlers`]: the state of all handlers, and who of them runs.
//! * [`Ready`]: a queue that most policies can be made of; [`InOrder`]: those that keep to one [`Order`].
//! * [`edf`], [`fcfs`], [`rmdp`], [`multiclass_edf`]: those that come with it.
//! * [`pacing`]: when a handler is called; [`share`]: a budget that several have together; [`linked`]: what that, and chains of handlers, mean to deadlines; [`members`]: who
//!   of those that take turns has to do with whom.
//!
//! All state is of fixed size: what takes turns among them allocates nothing.

pub mod account;
pub mod edf;
pub mod fcfs;
mod handlers;
mod in_order;
pub mod linked;
pub mod members;
pub mod multiclass_edf;
pub mod pacing;
pub mod rmdp;
pub mod share;

pub use handlers::{HandlerId, Handlers, Released, Wait};
pub use in_order::{InOrder, Order, Yielded};

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use self::linked::Linked;
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Fraction, Task};
use crate::policy::Policy;
use crate::{Instant, Span};

/// How many handlers an executor has room for unless it is said otherwise.
pub const HANDLERS: usize = 128;

/// The places of released jobs by rank, the smallest first; among equal ranks the one that entered first.
pub type Ready<const N: usize = HANDLERS> = crate::base::ready::Ready<N>;

/// A released job, as policies see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Job {
    /// When it was released: the instant that its handler waited for, or when what it waited for arrived.
    pub release: Instant,
    /// From here on it is current, and early before: its release, but for what its handler has [inherited](Handlers::inherit).
    pub logical: Instant,
    /// When it is due; [`Instant::MAX`] if never.
    pub deadline: Instant,
}

/// A job that is released or will be, among those of other executors; the least goes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Claim {
    /// The time from its release to its deadline, in nanoseconds; the greatest number if it is never due.
    pub rank_ns: u64,
    /// When it is or was released; [`Instant::MAX`] if only something that arrives releases it.
    pub release: Instant,
}

impl From<Job> for Claim {
    fn from(job: Job) -> Self {
        Self {
            rank_ns: rmdp::ByRate::rank(&job),
            release: job.release,
        }
    }
}

/// What an operation on an executor comes to.
pub type Result<T = (), E = ExecutorError> = core::result::Result<T, E>;

/// Why an operation of an executor did nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ExecutorError {
    /// All places are taken.
    #[error("the executor has no room for another handler")]
    Full,
    /// There is no executor to ask.
    #[error("whoever asks is on no executor")]
    NoExecutor,
    /// The handler has ended.
    #[error("the executor has no such handler")]
    NoSuchHandler,
    /// The handler is not in the state that the operation needs.
    #[error("the handler is not {0}")]
    NotInState(&'static str),
}

/// Why a policy does not admit a set of handlers.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Unschedulable {
    /// The handler that is the bottleneck, as an index into the set; `None` where it is the set as a whole.
    pub bottleneck: Option<usize>,
    /// A sentence, with the amounts. It names no handler: whoever knows their names says which is the bottleneck.
    pub reason: String,
}

/// What a supply gives in the long run, rounded down: so much of every so much, neither of which is told in more or less than people can read.
fn long_run(supply: &dyn SupplyBound) -> String {
    let rate = supply.rate();
    if rate >= Fraction::ONE {
        return "a whole processor".to_string();
    }
    let below = u128::from(rate.denominator());
    let every = below.clamp(1_000_000, 1_000_000_000);
    let service = u128::from(rate.numerator()) * every / below;
    let [service, every] = [service, every].map(|nanos| Span::from_nanos(nanos as u64));
    format!("{service} of every {every}")
}

/// The order among the released jobs of an executor: those who compete are the places of its handlers, each of which has one job at
/// most. A running job stays entered; the executor takes it out when it is over. Nothing ever pauses one job of an executor alone.
///
/// Its state must be of fixed size, like that of [`Ready`], of which most policies can be made.
pub trait ExecutorPolicy: Policy<Entry = Job> + Send {
    /// Whether `coming` is so much more urgent than `running` that the latter is to yield.
    fn precedes(&self, coming: &Job, running: &Job) -> bool;

    /// Whether the order is that of deadlines: then a job can be [raised](crate::policy::raise) by another one.
    fn goes_by_deadlines(&self) -> bool {
        false
    }

    /// Whether handlers whose jobs are these tasks meet all their deadlines on this supply; costs include what the executor itself
    /// takes for each job. A task's preemption says how long its handler works without a look for a yield; one that is
    /// preemptible [anywhere](crate::analysis::Preemption::Anywhere) has said nothing, and counts as one that never looks.
    ///
    /// `Ok` is a guarantee.
    ///
    /// # Errors
    ///
    /// What cannot be guaranteed, and which handler is the bottleneck.
    fn admit(&self, tasks: &[Task], supply: &dyn SupplyBound) -> Result<(), Unschedulable>;

    /// How long each of these takes at the longest, as [`linked::bounds`] has it; `None` where this order has no bounds of single handlers.
    fn bounds(
        &self,
        _all: &[Linked],
        _supply: &dyn SupplyBound,
    ) -> Option<Result<Vec<Span>, Unschedulable>> {
        None
    }
}
