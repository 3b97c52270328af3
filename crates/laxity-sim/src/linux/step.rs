//! Calling a body, what it may do meanwhile, and doing what its step asks for.

use laxity_model::policy::Policy;
use laxity_model::policy::deadline::Server;
use laxity_model::{
    Body, Context, Enforcer, EventKind, Instant, Mark, Refused, SemaphoreId, Service, Step,
};

use super::kernel::{Kernel, Leaving};
use crate::activity::{Class, Waiting};
use crate::fault::Fault;
use crate::processor::later;

/// So many steps at one instant are taken for a program that never lets time pass.
const MAX_STEPS_AT_AN_INSTANT: u32 = 1_000_000;

struct StepContext<'a> {
    kernel: &'a mut Kernel,
    activity: u16,
}

impl Context for StepContext<'_> {
    fn now(&self) -> Instant {
        self.kernel.now
    }

    fn signal(&mut self, semaphore: SemaphoreId) {
        self.kernel.signal(semaphore.0, self.activity);
    }

    fn mark(&mut self, mark: Mark, args: [u64; 2]) {
        if usize::from(mark.0) < self.kernel.marks {
            self.kernel
                .record(EventKind::Mark(mark), self.activity, args);
        } else {
            self.kernel.fail(self.activity, Fault::NoSuchMark(mark.0));
        }
    }

    fn timed_out(&self) -> bool {
        self.kernel.task(self.activity).timed_out
    }

    fn answer(&self) -> Result<Instant, Refused> {
        self.kernel.task(self.activity).answer
    }

    fn service(&self) -> Service {
        self.kernel.task(self.activity).received
    }
}

impl Kernel {
    /// Calls the activity's body once and does what it asks for.
    pub(super) fn step(&mut self, activity: u16, bodies: &mut [Box<dyn Body>]) {
        self.steps += 1;
        if self.steps > MAX_STEPS_AT_AN_INSTANT {
            let (steps, at_ns) = (self.steps, self.now.as_nanos());
            return self.fail(activity, Fault::Livelock { steps, at_ns });
        }
        let step = bodies[usize::from(activity)].step(&mut StepContext {
            kernel: self,
            activity,
        });
        self.apply(activity, step);
    }

    /// The run is over because of this.
    pub(super) fn fail(&mut self, activity: u16, fault: Fault) {
        self.ended = true;
        self.fault.get_or_insert((activity, fault));
    }

    fn signal(&mut self, semaphore: u16, by: u16) {
        if usize::from(semaphore) >= self.semaphores.len() {
            return self.fail(by, Fault::NoSuchSemaphore(semaphore));
        }
        self.record(EventKind::Signal, by, [u64::from(semaphore), 0]);
        match self.pop_waiter(usize::from(semaphore)) {
            Some(waiter) => self.signalled(waiter, by),
            None => {
                let count = &mut self.semaphores[usize::from(semaphore)].count;
                *count = count.saturating_add(1);
            }
        }
    }

    fn apply(&mut self, activity: u16, step: Step) {
        match step {
            Step::Charge(service) => self.work(activity, service, true),
            Step::Burn(service) => self.work(activity, service, false),
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
            Step::EndConstraint => {
                self.release_constraint(activity);
                self.next_step_at_once(activity);
            }
            Step::Finish => {
                self.release_constraint(activity);
                self.task_mut(activity).waiting = Waiting::ForEver;
                self.alive -= 1;
                self.record(EventKind::Finish, activity, [0; 2]);
                self.leave_processor(activity, None);
            }
            Step::EndRun => self.ended = true,
        }
    }

    /// The thread has this much to do before its next step.
    pub(super) fn work(&mut self, task: u16, service: Service, charging: bool) {
        let entry = self.task(task);
        if entry.class == Class::External {
            let at = later(self.now, service.as_dedicated_span());
            self.externals.set(task, at);
            return;
        }
        let processor = entry.processor;
        // Somebody else may have the processor: the thread has just moved there.
        self.settle(processor);
        let entry = self.task_mut(task);
        entry.work = service;
        entry.charging = charging;
        self.go_on(processor);
    }

    /// Nothing to wait for: the next step is due at once.
    pub(super) fn next_step_at_once(&mut self, activity: u16) {
        self.work(activity, Service::ZERO, false);
    }

    fn sleep(&mut self, activity: u16, at: Instant) {
        let past = at <= self.now;
        let args = [at.as_nanos(), 0];
        match self.task(activity).class {
            Class::Deferred => return self.fail(activity, Fault::DeferredWaitsForTime),
            Class::Thread if past => self.record(EventKind::Wake, activity, args),
            // The device raised its line while the handler ran: it is entered again, in the same thread.
            Class::Interrupt(_) if past => {
                self.exit(activity, EventKind::InterruptExit);
                self.enter(activity, EventKind::InterruptEnter, args);
            }
            Class::External if past => {}
            Class::Interrupt(_) | Class::Thread | Class::External => {
                return self.wait_for_time(activity, at, Waiting::ForTime);
            }
        }
        self.next_step_at_once(activity);
    }

    fn wait_until(&mut self, activity: u16, semaphore: u16, at: Instant) {
        if self.task(activity).class == Class::Deferred {
            return self.fail(activity, Fault::DeferredWaitsForTime);
        }
        self.task_mut(activity).timed_out = false;
        if !self.must_wait(activity, semaphore) {
            return;
        }
        if at <= self.now {
            self.task_mut(activity).timed_out = true;
            self.next_step_at_once(activity);
        } else {
            self.wait_for_time(activity, at, Waiting::ForEither(semaphore));
        }
    }

    fn wait_for_time(&mut self, activity: u16, at: Instant, waiting: Waiting) {
        self.task_mut(activity).meant_at = at;
        if self.task(activity).class == Class::External {
            self.externals.set(activity, at);
        } else {
            self.set_timer(activity, at);
        }
        self.wait(activity, waiting);
    }

    /// Whether the thread has to wait for the semaphore; if not, it has taken one from its count and goes on.
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
        let machine = &self.machine;
        let entry = &mut self.tasks[usize::from(activity)];
        let call = match waiting {
            Waiting::ForSignal(_) | Waiting::ForEither(_) => entry.draws.span(&machine.block),
            _ => entry.draws.span(&machine.timer),
        };
        entry.waiting = waiting;
        if let Waiting::ForSignal(semaphore) | Waiting::ForEither(semaphore) = waiting {
            let waiters = &mut self.semaphores[usize::from(semaphore)].waiters;
            waiters.push_back(activity);
        }
        if self.task(activity).class == Class::Thread {
            self.record(EventKind::Block, activity, [0; 2]);
        }
        self.leave_processor(activity, Some(Leaving::By(call)));
    }

    /// Who runs gives its processor up.
    pub(super) fn leave_processor(&mut self, task: u16, leaving: Option<Leaving>) {
        let now = self.now;
        let entry = &mut self.tasks[usize::from(task)];
        if entry.class == Class::External {
            return;
        }
        entry.voluntary_switches += 1;
        entry.preempted = false;
        let place = &mut self.processors[entry.processor];
        place.running = None;
        place.work_ends = Instant::MAX;
        place.leaving = leaving;
        place.undecided = true;
        match &mut entry.server {
            None => place.queue.leave(task.into(), now),
            Some(server) => {
                self.unassigned = true;
                if server.look(now) {
                    self.throttle(task);
                }
            }
        }
        match self.task(task).class {
            Class::Interrupt(_) => self.exit(task, EventKind::InterruptExit),
            Class::Deferred => self.exit(task, EventKind::DeferredExit),
            Class::Thread | Class::External => {}
        }
    }

    fn exit(&mut self, task: u16, kind: EventKind) {
        let entry = self.task(task);
        let took = entry.received.saturating_sub(entry.received_before);
        self.record(kind, task, [took.as_nanos(), 0]);
    }

    fn yield_now(&mut self, activity: u16) {
        self.next_step_at_once(activity);
        let now = self.now;
        let entry = &mut self.tasks[usize::from(activity)];
        if entry.class != Class::Thread {
            return;
        }
        if let Some(server) = &mut entry.server {
            if server.give_way(now) {
                self.throttle(activity);
            }
        } else {
            let place = &mut self.processors[entry.processor];
            place.queue.yield_now(activity.into(), now);
            place.undecided = true;
        }
    }

    fn begin_reservation(&mut self, activity: u16) {
        if self.task(activity).held.is_none() {
            return self.fail(activity, Fault::NoReservation);
        }
        self.change_policy(activity);
        self.enforce(activity);
    }

    /// The activity goes on once the system call that changes its policy is done.
    pub(super) fn change_policy(&mut self, activity: u16) {
        let cost = self.machine.policy_change.clone();
        let entry = self.task_mut(activity);
        let call = entry.draws.span(&cost).as_full_service();
        self.work(activity, call, false);
    }

    /// The activity's reservation is in force from now on.
    pub(super) fn enforce(&mut self, activity: u16) {
        let now = self.now;
        let Some(held) = &mut self.task_mut(activity).held else {
            return;
        };
        if std::mem::replace(&mut held.in_force, true) {
            return;
        }
        let request = held.request;
        let reservation = request.reservation;
        let args = [
            reservation.service().as_nanos(),
            reservation.period().as_nanos(),
        ];
        self.record(EventKind::ReservationBegin, activity, args);
        let entry = &mut self.tasks[usize::from(activity)];
        let place = &mut self.processors[entry.processor];
        if request.enforcer == Enforcer::Deadline {
            place.queue.leave(activity.into(), now);
            place.undecided = true;
            entry.server = Some(Server::new(reservation, now));
            self.unassigned = true;
            return;
        }
        let owner = place.slots.as_ref().and_then(|slots| {
            let current = slots.dispatcher.current()?;
            slots.owners.get(current).copied()
        });
        if owner == Some(activity) {
            self.begin_slot(activity, now);
        }
        self.place(activity);
    }

    fn end_reservation(&mut self, activity: u16) {
        if self.task(activity).held.is_none() {
            return self.fail(activity, Fault::NoReservation);
        }
        self.release_constraint(activity);
        let held = self.task_mut(activity).held.as_mut();
        if held.is_some_and(|held| std::mem::take(&mut held.in_force)) {
            self.end_slot(activity, self.now);
            self.record(EventKind::ReservationEnd, activity, [0; 2]);
            if self.task_mut(activity).server.take().is_some() {
                self.unassigned = true;
                self.budgets.clear(activity);
                self.go_home(activity);
            }
            self.place(activity);
        }
        self.change_policy(activity);
    }

    /// A thread that was under `SCHED_DEADLINE` goes back to the processor that it belongs to.
    fn go_home(&mut self, activity: u16) {
        let entry = &mut self.tasks[usize::from(activity)];
        let place = &mut self.processors[entry.processor];
        if place.deadline == Some(activity) {
            place.deadline = None;
        }
        if entry.processor != entry.home {
            place.running = None;
            place.work_ends = Instant::MAX;
            place.undecided = true;
            entry.processor = entry.home;
        }
    }
}
