//! Earliest deadline first among the jobs of an executor, each until it yields.

use alloc::format;
use alloc::vec::Vec;

use super::{ExecutorPolicy, Job, Ready, Unschedulable};
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Overflow, Preemption, Task, Verdict, edf};
use crate::policy::{Decision, Policy};
use crate::{Instant, Span};

/// The job that is due first goes first; among those due together the one that entered first. A running job is to yield to one
/// that is due earlier.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Edf<const N: usize = { super::HANDLERS }> {
    ready: Ready<N>,
}

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

impl Edf {
    /// With nobody released, and room for as many handlers as an executor of a program has.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl<const N: usize> Policy for Edf<N> {
    type Entry = Job;

    fn enter(&mut self, who: u32, job: Job, _: Instant) {
        self.ready.enter(who, job.deadline.as_nanos());
    }

    fn leave(&mut self, who: u32, _: Instant) {
        self.ready.leave(who);
    }

    fn yield_now(&mut self, who: u32, _: Instant) {
        self.ready.yield_now(who, None);
    }

    fn pause(&mut self, _: Instant) {}

    fn decide(&mut self, _: Instant) -> Decision {
        Decision {
            who: self.ready.first(),
            until: Instant::MAX,
        }
    }
}

impl<const N: usize> ExecutorPolicy for Edf<N> {
    fn precedes(&self, coming: &Job, running: &Job) -> bool {
        coming.deadline < running.deadline
    }

    fn is_intact(&self) -> bool {
        self.ready.is_intact()
    }

    /// [`edf::test`], with the regions that the tasks declare.
    fn admit(&self, tasks: &[Task], supply: &dyn SupplyBound) -> Result<(), Unschedulable> {
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
