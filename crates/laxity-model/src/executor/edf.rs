//! Earliest deadline first among the jobs of an executor, each until it yields.

use alloc::format;
use alloc::vec::Vec;

use super::{InOrder, Job, Order, Unschedulable};
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Overflow, Preemption, Task, Verdict, edf};
use crate::{Instant, Span};

/// The job that is due first goes first; among those due together the one that entered first. A running job is to yield to one
/// that is due earlier.
pub type Edf<const N: usize = { super::HANDLERS }> = InOrder<ByDeadline, N>;

/// The order of [`Edf`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ByDeadline;

/// A region may begin in the very instant in which another job arrives, and just before it. The analysis counts a region as begun one tick
/// before a release; a release one tick after the arrival says the same.
const SAME_INSTANT: Span = Span::from_nanos(1);

/// The task as the analysis is to see it; `None` where its jitter does not fit.
fn analysed(task: &Task) -> Option<Task> {
    let jitter = task.jitter().checked_add(SAME_INSTANT)?;
    let task = task.with_jitter(jitter);
    match task.preemption() {
        Preemption::Anywhere => task.with_preemption(Preemption::Never).ok(),
        _ => Some(task),
    }
}

impl Order for ByDeadline {
    fn rank(job: &Job) -> u64 {
        job.deadline.as_nanos()
    }

    fn rank_after_yield(_: Instant) -> Option<u64> {
        None
    }

    fn precedes(coming: &Job, running: &Job) -> bool {
        coming.deadline < running.deadline
    }

    /// [`edf::test`], with the regions that the tasks declare.
    fn admit(tasks: &[Task], supply: &dyn SupplyBound) -> Result<(), Unschedulable> {
        let refused = |bottleneck, reason| Unschedulable { bottleneck, reason };
        let analysed: Option<Vec<Task>> = tasks.iter().map(analysed).collect();
        let overflow = || refused(None, format!("{}", Overflow("a jitter")));
        let analysed = analysed.ok_or_else(overflow)?;
        let verdict = edf::test(&analysed, &supply)
            .map_err(|overflow| refused(None, format!("{overflow}")))?;
        match verdict {
            Verdict::Schedulable => Ok(()),
            Verdict::NotSchedulable(witness) => Err(refused(
                Some(witness.task),
                format!("earliest deadline first, {witness}"),
            )),
            Verdict::Unknown(doubt) => Err(refused(None, format!("{doubt}"))),
        }
    }
}
