//! First come, first served: jobs in the order of release, each until it waits.

use alloc::format;

use super::{InOrder, Job, Order, Unschedulable, Yielded, long_run};
use crate::Instant;
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Response, Task, fixed_priority};

/// Jobs in the order of release; among those released together the one that entered first. Nobody is ever to yield; who yields all the same goes behind all that
/// are released by then.
pub type Fcfs<const N: usize = { super::HANDLERS }> = InOrder<ByRelease, N>;

/// The order of [`Fcfs`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ByRelease;

impl Order for ByRelease {
    fn rank(job: &Job) -> u64 {
        job.release.as_nanos()
    }

    fn yielded(now: Instant) -> Yielded {
        Yielded::Behind(now.as_nanos())
    }

    fn precedes(_: &Job, _: &Job) -> bool {
        false
    }

    /// Exact on an attained supply, and else sufficient: the longest time from release to end of all ([`fixed_priority::fifo`]) against
    /// the least D − J. Handlers that yield on their own are not covered.
    fn admit(tasks: &[Task], supply: &dyn SupplyBound) -> Result<(), Unschedulable> {
        let refused = |bottleneck, reason| Unschedulable { bottleneck, reason };
        let left = |task: &Task| task.deadline().saturating_sub(task.jitter());
        let shortest = tasks.iter().enumerate().min_by_key(|(_, task)| left(task));
        let Some((bottleneck, shortest)) = shortest else {
            return Ok(());
        };
        let response = fixed_priority::fifo(tasks, &supply)
            .map_err(|overflow| refused(None, format!("{overflow}")))?;
        match response {
            Response::Bounded(bound) if bound.from_release <= left(shortest) => Ok(()),
            Response::Bounded(bound) => Err(refused(
                Some(bottleneck),
                format!(
                    "first come first served, a job may take {} from its release, and the bottleneck ({shortest}) is due in {}",
                    bound.from_release.beside(left(shortest)),
                    left(shortest).beside(bound.from_release)
                ),
            )),
            Response::Unbounded => Err(refused(
                None,
                format!(
                    "the jobs need more than {}, which is all there is",
                    long_run(supply)
                ),
            )),
            Response::Unknown(doubt) => Err(refused(None, format!("{doubt}"))),
        }
    }
}
