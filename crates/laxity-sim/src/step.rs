//! Calling a body, and what it may do meanwhile.

use laxity_model::policy::bands::WaitEnd;
use laxity_model::{Body, Context, EventKind, Instant, Mark, Refused, SemaphoreId, Service};

use crate::activity::Waiting;
use crate::fault::Fault;
use crate::machine::Machine;

/// So many steps at one instant are taken for a program that never lets time pass.
const MAX_STEPS_AT_AN_INSTANT: u32 = 1_000_000;

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
            self.machine.fail(self.activity, Fault::NoSuchMark(mark.0));
        }
    }

    fn timed_out(&self) -> bool {
        self.machine.state(self.activity).timed_out
    }

    fn answer(&self) -> Result<Instant, Refused> {
        self.machine.state(self.activity).answer
    }

    fn service(&self) -> Service {
        self.machine.state(self.activity).received
    }
}

impl Machine {
    /// Calls the activity's body once and does what it asks for.
    pub(crate) fn step(&mut self, activity: u16, bodies: &mut [Box<dyn Body>]) {
        self.steps += 1;
        if self.steps > MAX_STEPS_AT_AN_INSTANT {
            let (steps, at_ns) = (self.steps, self.now.as_nanos());
            return self.fail(activity, Fault::Livelock { steps, at_ns });
        }
        let step = bodies[usize::from(activity)].step(&mut StepContext {
            machine: self,
            activity,
        });
        self.apply(activity, step);
    }

    /// The run is over because of this.
    pub(crate) fn fail(&mut self, activity: u16, fault: Fault) {
        self.ended = true;
        self.fault.get_or_insert((activity, fault));
    }

    fn signal(&mut self, semaphore: u16, by: u16) {
        let Some(signalled) = self.semaphores.get_mut(usize::from(semaphore)) else {
            return self.fail(by, Fault::NoSuchSemaphore(semaphore));
        };
        let waiter = signalled.waiters.pop(&mut self.links);
        if waiter.is_none() {
            signalled.count = signalled.count.saturating_add(1);
        }
        self.record(EventKind::Signal, by, [u64::from(semaphore), 0]);
        if let Some(waiter) = waiter {
            if let Waiting::ForEither(_) = self.state(waiter).waiting {
                self.timers.clear(waiter);
            }
            self.state_mut(waiter).timed_out = false;
            self.end_wait(waiter, WaitEnd::Signal, self.now);
        }
    }
}
