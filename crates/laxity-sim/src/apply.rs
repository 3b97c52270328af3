//! Doing what a step asks for.

use laxity_model::policy::Policy;
use laxity_model::{EventKind, Instant, Service, Step};

use crate::activity::{Class, Waiting};
use crate::fault::Fault;
use crate::machine::Machine;
use crate::processor::later;

impl Machine {
    pub(crate) fn apply(&mut self, activity: u16, step: Step) {
        match step {
            Step::Charge(service) | Step::Burn(service) => self.charge(activity, service),
            Step::SleepUntil(at) => self.sleep(activity, at),
            Step::Wait(semaphore) => {
                if self.must_wait(activity, semaphore.0) {
                    self.wait(activity, Waiting::ForSignal(semaphore.0));
                }
            }
            Step::WaitUntil(semaphore, at) => self.wait_until(activity, semaphore.0, at),
            Step::Yield => self.yield_now(activity),
            Step::BeginReservation => self.begin_reservation(activity),
            Step::EndReservation => self.end_reservation(activity),
            Step::ChangeReservation(asked) => self.change_reservation(activity, asked),
            Step::BeginConstraint(asked) => self.begin_constraint(activity, asked),
            Step::EndConstraint => self.end_constraint(activity),
            Step::Finish => self.finish(activity),
            Step::EndRun => self.ended = true,
        }
    }

    /// The activity has this much work to do before its next step.
    fn charge(&mut self, activity: u16, service: Service) {
        let state = &mut self.activities[usize::from(activity)];
        if state.class == Class::External {
            let at = later(self.now, service.as_dedicated_span());
            self.timers.set(activity, at);
            return;
        }
        state.work = service;
        let processor = usize::from(state.processor);
        self.go_on(processor);
    }

    /// Nothing to wait for: the next step is due at once.
    pub(crate) fn next_step_at_once(&mut self, activity: u16) {
        self.charge(activity, Service::ZERO);
    }

    fn sleep(&mut self, activity: u16, at: Instant) {
        let past = at <= self.now;
        match self.state(activity).class {
            Class::Deferred => self.fail(activity, Fault::DeferredWaitsForTime),
            Class::Thread if past => {
                self.record(EventKind::Wake, activity, [at.as_nanos(), 0]);
                self.next_step_at_once(activity);
            }
            Class::External if past => self.next_step_at_once(activity),
            Class::Interrupt(level) if past => {
                self.leave_processor(activity);
                self.raise(activity, level, at);
            }
            Class::Interrupt(_) | Class::Thread | Class::External => {
                self.set_timer(activity, at);
                self.wait(activity, Waiting::ForTime);
            }
        }
    }

    fn wait_until(&mut self, activity: u16, semaphore: u16, at: Instant) {
        if self.state(activity).class == Class::Deferred {
            return self.fail(activity, Fault::DeferredWaitsForTime);
        }
        self.state_mut(activity).timed_out = false;
        if !self.must_wait(activity, semaphore) {
            return;
        }
        if at <= self.now {
            self.state_mut(activity).timed_out = true;
            self.next_step_at_once(activity);
        } else {
            self.set_timer(activity, at);
            self.wait(activity, Waiting::ForEither(semaphore));
        }
    }

    fn set_timer(&mut self, activity: u16, at: Instant) {
        let wake_at = match self.state(activity).class {
            Class::Thread => self.profile.wake_at(at),
            Class::Interrupt(_) | Class::Deferred | Class::External => at,
        };
        self.state_mut(activity).meant_at = at;
        self.timers.set(activity, wake_at);
    }

    /// Whether the activity has to wait for the semaphore; if not, it has taken one from its count and goes on.
    fn must_wait(&mut self, activity: u16, semaphore: u16) -> bool {
        let Some(wanted) = self.semaphores.get_mut(usize::from(semaphore)) else {
            self.fail(activity, Fault::NoSuchSemaphore(semaphore));
            return false;
        };
        if wanted.count == 0 {
            return true;
        }
        wanted.count -= 1;
        self.next_step_at_once(activity);
        false
    }

    fn wait(&mut self, activity: u16, waiting: Waiting) {
        if let Waiting::ForSignal(semaphore) | Waiting::ForEither(semaphore) = waiting {
            self.semaphores[usize::from(semaphore)]
                .waiters
                .push(&mut self.links, activity);
        }
        self.state_mut(activity).waiting = waiting;
        if self.state(activity).class == Class::Thread {
            self.record(EventKind::Block, activity, [0; 2]);
            self.state_mut(activity).voluntary_switches += 1;
        }
        self.leave_processor(activity);
    }

    fn finish(&mut self, activity: u16) {
        self.release_constraint(activity);
        self.state_mut(activity).waiting = Waiting::ForEver;
        self.alive -= 1;
        self.record(EventKind::Finish, activity, [0; 2]);
        self.leave_processor(activity);
    }

    /// What executes gives its processor up.
    fn leave_processor(&mut self, activity: u16) {
        let now = self.now;
        let state = &self.activities[usize::from(activity)];
        let processor = &mut self.processors[usize::from(state.processor)];
        let left = match state.class {
            Class::External => return,
            Class::Interrupt(_) => {
                processor.handlers.pop();
                processor.pay(self.profile.costs.interrupt_exit, now);
                Some(EventKind::InterruptExit)
            }
            Class::Deferred => {
                processor.deferred = None;
                Some(EventKind::DeferredExit)
            }
            Class::Thread => {
                processor.bands.leave(activity.into(), now);
                processor.thread = None;
                processor.reserved = None;
                None
            }
        };
        processor.executing = None;
        processor.work_ends = Instant::MAX;
        processor.undecided = true;
        if let Some(kind) = left {
            let state = self.state(activity);
            let took = state.received.saturating_sub(state.received_before);
            self.record(kind, activity, [took.as_nanos(), 0]);
        }
    }

    fn yield_now(&mut self, activity: u16) {
        self.next_step_at_once(activity);
        let state = &mut self.activities[usize::from(activity)];
        if state.class == Class::Thread {
            let processor = &mut self.processors[usize::from(state.processor)];
            if processor.reserved != Some(activity) {
                processor.bands.yield_now(activity.into(), self.now);
                processor.undecided = true;
                state.yielded = true;
            }
        }
    }
}
