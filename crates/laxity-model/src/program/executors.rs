//! The executors of a program: declared, and seated before it runs.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::executor::{Executes, Executor};
use super::{Activity, Context, Placement, Program, ReservationRequest, Step};
use crate::analysis::Task;
use crate::analysis::supply::SupplyBound;
use crate::base::port::PortKind;
use crate::policy::executor::{ExecutorPolicy, Unschedulable};
use crate::{ActivityId, ExecutorId, ProcessorId};

/// An executor whose program is being put together.
pub(super) struct Declared {
    activity: ActivityId,
    body: Box<dyn Executes>,
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
        let bell = self.add_port(PortKind::Count {
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
        let body: Executor<_> = Executor::new(policy, bell);
        self.executors.push(Declared {
            activity,
            body: Box::new(body),
        });
        ExecutorId((self.executors.len() - 1) as u16)
    }

    /// The activity that an executor is; `None` if there is no such executor, or the program was [seated](Self::seat).
    #[must_use]
    pub fn activity_of(&self, executor: ExecutorId) -> Option<ActivityId> {
        let declared = self.executors.get(executor.index());
        declared.map(|declared| declared.activity)
    }

    /// The tasks of those that are placed on an executor, with their activities; those without one are left out.
    pub fn tasks_on(
        &self,
        executor: ExecutorId,
    ) -> impl Iterator<Item = (ActivityId, Task)> + use<'_> {
        let activities = (0..=u16::MAX).map(ActivityId).zip(&self.activities);
        activities.filter_map(move |(id, activity)| match activity.placement {
            Placement::On { executor: on, task } if on == executor => Some((id, task?)),
            _ => None,
        })
    }

    /// What an executor's policy says of the tasks on it, if its activity gets this supply.
    ///
    /// # Errors
    ///
    /// What the policy cannot guarantee. Where it names a bottleneck, that is an index into [`Self::tasks_on`].
    pub fn admit_on(
        &self,
        executor: ExecutorId,
        supply: &dyn SupplyBound,
    ) -> Result<(), Unschedulable> {
        let tasks: Vec<Task> = self.tasks_on(executor).map(|(_, task)| task).collect();
        match self.executors.get(executor.index()) {
            Some(declared) if !tasks.is_empty() => declared.body.admit(&tasks, supply),
            _ => Ok(()),
        }
    }

    /// Moves the bodies of all activities that are placed on an executor there. What is left of them has nothing to run: hosts start no
    /// such activity. Hosts call it when they begin.
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong with the program.
    pub fn seat(&mut self) -> Result<(), String> {
        let mut executors = core::mem::take(&mut self.executors);
        let executing: Vec<ActivityId> = executors.iter().map(|e| e.activity).collect();
        for (id, activity) in (0..=u16::MAX).map(ActivityId).zip(&mut self.activities) {
            let Placement::On { executor, task } = activity.placement else {
                continue;
            };
            let (name, reserves) = (&activity.name, activity.reservation.is_some());
            let Some(declared) = executors.get_mut(executor.index()) else {
                return Err(format!(
                    "`{name}` is on executor {executor}, which the program does not have"
                ));
            };
            if executing.contains(&id) {
                return Err(format!("`{name}` is an executor, and placed on one"));
            }
            if reserves {
                return Err(format!(
                    "`{name}` asks for a reservation but is on an executor: only threads hold one"
                ));
            }
            let body = core::mem::replace(&mut activity.body, Box::new(absent));
            let deadline = task.map(|task| task.deadline());
            declared.body.place(id, deadline, body);
        }
        for declared in executors {
            self.activities[declared.activity.index()].body = declared.body;
        }
        Ok(())
    }
}
