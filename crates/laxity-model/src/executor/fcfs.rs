//! First come, first served: jobs in the order of release, each until it waits.

use alloc::format;

use super::{ExecutorPolicy, Job, Ready, Unschedulable};
use crate::Instant;
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Response, Task, fixed_priority};
use crate::policy::{Decision, Policy};

/// Jobs in the order of release; among those released together the one that entered first. Nobody is ever to yield; who yields all the same goes behind all that
/// are released by then.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Fcfs<const N: usize = { super::HANDLERS }> {
    ready: Ready<N>,
}

impl Fcfs {
    /// With nobody released, and room for as many handlers as an executor of a program has.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl<const N: usize> Policy for Fcfs<N> {
    type Entry = Job;

    fn enter(&mut self, who: u32, job: Job, _: Instant) {
        self.ready.enter(who, job.release.as_nanos());
    }

    fn leave(&mut self, who: u32, _: Instant) {
        self.ready.leave(who);
    }

    fn yield_now(&mut self, who: u32, now: Instant) {
        self.ready.yield_now(who, Some(now.as_nanos()));
    }

    fn pause(&mut self, _: Instant) {}

    fn decide(&mut self, _: Instant) -> Decision {
        Decision {
            who: self.ready.first(),
            until: Instant::MAX,
        }
    }
}

impl<const N: usize> ExecutorPolicy for Fcfs<N> {
    fn precedes(&self, _: &Job, _: &Job) -> bool {
        false
    }

    fn is_intact(&self) -> bool {
        self.ready.is_intact()
    }

    /// Exact on an attained supply, and else sufficient: the longest response time of all ([`fixed_priority::fifo`]) against the shortest
    /// deadline. Handlers that yield on their own are not covered.
    fn admit(&self, tasks: &[Task], supply: &dyn SupplyBound) -> Result<(), Unschedulable> {
        let refused = |bottleneck, reason| Unschedulable { bottleneck, reason };
        let shortest = tasks.iter().enumerate().min_by_key(|(_, t)| t.deadline());
        let Some((bottleneck, shortest)) = shortest else {
            return Ok(());
        };
        let response = fixed_priority::fifo(tasks, &supply)
            .map_err(|overflow| refused(None, format!("{overflow}")))?;
        match response {
            Response::Bounded(bound) if bound.from_arrival <= shortest.deadline() => Ok(()),
            Response::Bounded(bound) => Err(refused(
                Some(bottleneck),
                format!(
                    "first come first served, a job may take {}, and task {bottleneck} ({shortest}) is due in {}",
                    bound.from_arrival,
                    shortest.deadline()
                ),
            )),
            Response::Unbounded => Err(refused(
                None,
                format!(
                    "the jobs need more than {} of a processor, which is all there is",
                    supply.rate()
                ),
            )),
            Response::Unknown(doubt) => Err(refused(None, format!("{doubt}"))),
        }
    }
}
