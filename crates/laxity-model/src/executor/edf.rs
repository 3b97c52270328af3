//! Earliest deadline first among the jobs of an executor, each until it yields.

use alloc::format;
use alloc::vec::Vec;

use super::in_order::analysed;
use super::{InOrder, Job, Order, Unschedulable, Yielded};
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Task, Verdict, edf};
use crate::{Instant, Service, Span};

/// The job that is due first goes first; among those due together the one that entered first. A running job is to yield to one
/// that is due earlier.
pub type Edf<const N: usize = { super::HANDLERS }> = InOrder<ByDeadline, N>;

/// The order of [`Edf`]; where that is not `JUDGED`, also of a set that may miss some.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ByDeadline<const JUDGED: bool = true>;

impl<const JUDGED: bool> Order for ByDeadline<JUDGED> {
    fn rank(job: &Job) -> u64 {
        job.deadline.as_nanos()
    }

    fn yielded(_: Instant) -> Yielded {
        Yielded::BehindEquals
    }

    fn due(deadline: Instant) -> Option<u64> {
        Some(deadline.as_nanos())
    }

    /// [`edf::test`], with the regions that the tasks declare, which may begin in the very instant of a release.
    fn admit(tasks: &[Task], supply: &dyn SupplyBound) -> Result<(), Unschedulable> {
        if !JUDGED {
            return Ok(());
        }
        let refused = |bottleneck, reason| Unschedulable { bottleneck, reason };
        let analysed: Vec<Task> = tasks.iter().map(analysed).collect();
        let verdict = edf::test_beside(&analysed, Service::ZERO, &supply)
            .map_err(|overflow| refused(None, format!("{overflow}")))?;
        match verdict {
            Verdict::Schedulable => Ok(()),
            Verdict::NotSchedulable(witness) => Err(refused(
                Some(witness.task),
                format!(
                    "earliest deadline first, a job of the bottleneck released {} after the worst instant is not complete {} after it, when it is due",
                    witness.release, witness.due
                ),
            )),
            Verdict::Unknown(doubt) => {
                let last = latest(&analysed, supply);
                let reason = last.map(|(task, bound)| {
                    let due = analysed[task].deadline();
                    format!("earliest deadline first, a job of the bottleneck may take {bound}, and is due in {due}: {doubt}")
                });
                let bottleneck = last.map(|(task, _)| task);
                Err(refused(
                    bottleneck,
                    reason.unwrap_or_else(|| format!("{doubt}")),
                ))
            }
        }
    }
}

/// The task whose jobs may be latest, if they may be late, and how long they may take.
fn latest(tasks: &[Task], supply: &dyn SupplyBound) -> Option<(usize, Span)> {
    let responses = edf::response_times(tasks, &supply).ok()?;
    let bounds = responses.iter().zip(tasks).enumerate();
    let late = bounds.filter_map(|(place, (response, task))| {
        let bound = response.bound()?.from_arrival;
        let late = bound.saturating_sub(task.deadline());
        (!late.is_zero()).then_some((late, place, bound))
    });
    let (_, place, bound) = late.max()?;
    Some((place, bound))
}
