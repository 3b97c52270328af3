//! Calling a body, and what it may do meanwhile.

use laxity_model::bands::WaitEnd;
use laxity_model::{Context, EventKind, HostError, Instant, Mark, SemaphoreId};

use crate::fault::Fault;
use crate::machine::{Bodies, Machine};

struct StepContext<'a> {
    machine: &'a mut Machine,
    activity: u16,
}

impl Context for StepContext<'_> {
    fn now(&self) -> Instant {
        self.machine.now
    }

    fn signal(&mut self, semaphore: SemaphoreId) {
        self.machine.signal(semaphore.0, self.activity);
    }

    fn mark(&mut self, mark: Mark, args: [u64; 2]) {
        if usize::from(mark.0) < self.machine.marks {
            self.machine
                .record(EventKind::Mark(mark), self.activity, args);
        } else {
            self.machine.fault = Some(Fault::NoSuchMark(mark.0));
        }
    }

    fn timed_out(&self) -> bool {
        self.machine.state(self.activity).timed_out
    }
}

impl Machine {
    /// Calls the activity's body once and does what it asks for.
    pub(crate) fn step(&mut self, activity: u16, bodies: &mut Bodies) -> Result<(), HostError> {
        let blame = |fault: Fault| fault.by(&bodies.names[usize::from(activity)]);
        self.count_step().map_err(blame)?;
        let step = bodies.bodies[usize::from(activity)].step(&mut StepContext {
            machine: self,
            activity,
        });
        if let Some(fault) = self.fault {
            return Err(blame(fault));
        }
        self.apply(activity, step).map_err(blame)
    }

    fn signal(&mut self, semaphore: u16, by: u16) {
        let Some(signalled) = self.semaphores.get_mut(usize::from(semaphore)) else {
            self.fault = Some(Fault::NoSuchSemaphore(semaphore));
            return;
        };
        let waiter = signalled.waiters.pop(&mut self.links);
        if waiter.is_none() {
            signalled.count = signalled.count.saturating_add(1);
        }
        self.record(EventKind::Signal, by, [u64::from(semaphore), 0]);
        if let Some(waiter) = waiter {
            if let crate::activity::Waiting::ForEither(_) = self.state(waiter).waiting {
                self.timers.clear(waiter);
            }
            self.state_mut(waiter).timed_out = false;
            self.end_wait(waiter, WaitEnd::Signal, self.now);
        }
    }
}
