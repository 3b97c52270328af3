//! The executors of a program: declared, and given their bodies before it runs.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use super::executor::{Executes, Executor};
use super::upcalls::{Overhead, charged};
use super::{Activity, Context, Placement, Program, ReservationRequest, Step};
use crate::analysis::Task;
use crate::analysis::supply::SupplyBound;
use crate::base::port::PortKind;
use crate::executor::{ExecutorPolicy, Unschedulable};
use crate::{ActivityId, ExecutorId, ProcessorId, Span};

/// An executor.
pub(super) struct Declared {
    activity: ActivityId,
    /// Until its program is put together: then its activity has it.
    body: Option<Box<dyn Executes>>,
}

impl Declared {
    /// Whether its order is that of deadlines.
    pub(super) fn goes_by_deadlines(&self) -> bool {
        self.body
            .as_ref()
            .is_some_and(|body| body.goes_by_deadlines())
    }
}

impl fmt::Debug for Declared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Declared")
            .field("activity", &self.activity)
            .finish_non_exhaustive()
    }
}

/// What stands for a body that has moved to an executor, or not yet become one.
fn absent(_: &mut dyn Context) -> Step {
    Step::Finish
}

impl Program {
    /// Adds an executor: an activity in which all activities that are placed on it take turns, as the policy says. It ends when they
    /// have.
    pub fn executor(
        &mut self,
        name: &str,
        (processor, placement): (ProcessorId, Placement),
        reservation: Option<ReservationRequest>,
        policy: impl ExecutorPolicy + 'static,
    ) -> ExecutorId {
        let doorbell = self.add_port(PortKind::Count {
            initial: 0,
            most: 1,
        });
        let activity = self.push(Activity {
            name: name.into(),
            processor,
            placement,
            reservation,
            body: Box::new(absent),
        });
        let body: Executor<_> = Executor::new(policy, doorbell);
        self.executors.push(Declared {
            activity,
            body: Some(Box::new(body)),
        });
        ExecutorId((self.executors.len() - 1) as u16)
    }

    /// The executors, each with the activity that it is.
    pub fn executors(&self) -> impl Iterator<Item = (ExecutorId, ActivityId)> {
        let activities = self.executors.iter().map(|declared| declared.activity);
        (0..=u16::MAX).map(ExecutorId).zip(activities)
    }

    /// The tasks of those that are placed on an executor, each due as soon as it may be raised to be, with their activities; those without one are left out.
    pub fn tasks_on(
        &self,
        executor: ExecutorId,
    ) -> impl Iterator<Item = (ActivityId, Task)> + use<'_> {
        self.numbered()
            .filter_map(move |(id, _)| match self.at_highest(id)? {
                Placement::On { executor: on, task } if on == executor => Some((id, task?)),
                _ => None,
            })
    }

    /// Those who take turns on an executor without a task: nothing says what they take.
    pub(crate) fn undeclared_on(&self, executor: ExecutorId) -> impl Iterator<Item = &Activity> {
        self.activities.iter().filter(move |activity| {
            matches!(activity.placement, Placement::On { executor: on, task: None } if on == executor)
        })
    }

    /// What an executor's policy says of the tasks on it, if its activity gets this supply, and each job is charged this
    /// overhead: how long each [single](crate::executor::members::Set::singles) takes at the longest, from the release of the first of its chain, where the policy has such bounds.
    ///
    /// # Errors
    ///
    /// What the policy cannot guarantee. Where it names a bottleneck, that is an index into [`Self::members_on`].
    pub(crate) fn admit_on(
        &self,
        executor: ExecutorId,
        supply: &dyn SupplyBound,
        overhead: Overhead,
    ) -> Result<Vec<Span>, Unschedulable> {
        let members = self.members_on(executor);
        self.can_link(&members)?;
        let charged = charged(members.linked(), overhead);
        let declared = self.executors.get(executor.index());
        match declared.and_then(|declared| declared.body.as_ref()) {
            Some(body) if !charged.is_empty() => body.admit(&charged, supply),
            _ => Ok(Vec::new()),
        }
    }

    /// Moves the bodies of all activities that are placed on an executor there. What is left of them has nothing to run: hosts start no
    /// such activity.
    pub(crate) fn place_bodies(&mut self) {
        let raised: Vec<_> = self.numbered().map(|(id, _)| self.heard_by(id)).collect();
        let heard_by = |id: ActivityId| raised.get(id.index()).copied().flatten();
        for (id, activity) in (0..=u16::MAX).map(ActivityId).zip(&mut self.activities) {
            if let Placement::On { executor, task } = activity.placement
                && let Some(declared) = self.executors.get_mut(executor.index())
                && let Some(host) = &mut declared.body
            {
                let body = core::mem::replace(&mut activity.body, Box::new(absent));
                let deadline = task.map(|task| task.deadline());
                host.place((id, heard_by(id)), deadline, body);
            }
        }
        for declared in &mut self.executors {
            if let Some(body) = declared.body.take() {
                self.activities[declared.activity.index()].body = body;
            }
        }
    }
}
