//! The machine under Linux: its state, and what the core calls it for.

use laxity_model::enforce::machine::{Figure, Machine};
use laxity_model::enforce::{Witness, ranks};
use laxity_model::policy::classes::RunQueue;
use laxity_model::policy::{Policy, Rank};
use laxity_model::{EventKind, Instant, Priority, Reservation, Service, Span};

use super::dispatch::Timing;
use super::draws::Draws;
use super::task::{Role, Thread};
use super::{CLOCK, TICK};
use crate::core::{self, Bodies, Class, Core, Machinery, Parts, Timers, Waiting, later};

pub(super) type System = Core<Kernel>;

/// What leaving a processor takes from it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Leaving {
    /// A system call of this length, and then a switch.
    By(Span),
    /// All of it.
    Taking(Span),
}

/// What the kernel keeps for a processor.
#[derive(Debug)]
pub(crate) struct Place {
    pub(super) queue: RunQueue,
    /// The `SCHED_DEADLINE` thread that has it.
    pub(super) deadline: Option<u32>,
    pub(super) leaving: Option<Leaving>,
    /// Of all its threads, by what they asked for.
    pub(super) timers: Timers,
    /// When the clock's interrupt is there for the earliest of them.
    pub(super) interrupt_at: Instant,
    pub(super) tick_at: Instant,
    /// When the budget of the deadline thread is found used up, where the kernel has a timer for it.
    pub(super) budget_ends: Instant,
    /// When the kernel next looks at a slice because its thread asks for its own processor time.
    pub(super) slice_looked_at: Instant,
}

impl Place {
    pub(super) fn new(queue: RunQueue, tasks: usize, tick_at: Instant) -> Self {
        Self {
            queue,
            deadline: None,
            leaving: None,
            timers: Timers::new(tasks),
            interrupt_at: Instant::MAX,
            tick_at,
            budget_ends: Instant::MAX,
            slice_looked_at: Instant::MAX,
        }
    }
}

/// The machine as a whole.
pub(crate) struct Kernel {
    pub(super) machine: Machine,
    /// What it turns into, and when; the next one is the last.
    pub(super) later: Vec<(Instant, Machine)>,
    pub(super) tick: Span,
    /// Whether the kernel notices by a timer that a budget is used up.
    pub(super) has_budget_timer: bool,
    pub(super) witness: Option<Witness>,
    pub(super) seed: u64,
    /// When throttled threads get their next budget.
    pub(super) budgets: Timers,
    /// Who runs by `SCHED_DEADLINE`, and where, is to be decided.
    pub(super) unassigned: bool,
}

impl Parts for Kernel {
    type Own = Thread;
    type Place = Place;
    type Carried = Timing;

    fn next_due(&self) -> Instant {
        self.budgets.next()
    }

    /// An idle processor does not tick.
    fn due(place: &core::Processor<Self>) -> Instant {
        let own = &place.own;
        let clock = if own.interrupt_at == Instant::MAX {
            own.timers.next()
        } else {
            own.interrupt_at
        };
        match place.executing {
            Some(_) => {
                let looks = own.tick_at.min(own.budget_ends).min(own.slice_looked_at);
                clock.min(place.work_ends).min(looks)
            }
            None => clock,
        }
    }

    fn charge(own: &mut Thread, service: Service) {
        if let Some(server) = &mut own.server {
            server.charge(service);
        }
    }
}

impl Machinery for System {
    /// The dispatchers are there before the rest: a slot that is under way at the start is given at once.
    fn begin(&mut self) {
        self.begin_reservations_at_start();
        for processor in 0..self.processors.len() {
            if self.processors[processor].slots.is_some() {
                self.dispatch(processor);
            }
        }
        let start = self.start;
        for task in 0..self.activities.len() as u32 {
            match (self.activity(task).own.role, self.activity(task).class) {
                (Role::Dispatcher, _) => {}
                (_, Class::External) => self.timers.set(task, start),
                _ => self.set_timer(task, start),
            }
        }
    }

    /// The tick, work that ends, a look at a budget or a slice, the clock's interrupt.
    fn serve(&mut self, processor: usize, bodies: &mut Bodies) {
        let now = self.now;
        if self.processors[processor].executing.is_some() {
            if self.processors[processor].own.tick_at <= now {
                self.tick(processor);
            }
            if self.processors[processor].work_ends <= now {
                self.settle(processor);
                self.work_ended(processor, bodies);
                if self.ended {
                    return;
                }
            }
            if self.processors[processor].own.budget_ends <= now {
                self.look_at_budget(processor);
            }
            let place = &mut self.processors[processor];
            if place.own.slice_looked_at <= now {
                place.own.slice_looked_at = Instant::MAX;
                place.undecided = true;
            }
        }
        let own = &self.processors[processor].own;
        if own.interrupt_at <= now {
            self.interrupt(processor);
        } else if own.interrupt_at == Instant::MAX && own.timers.next() <= now {
            self.arm(processor);
        }
        self.processors[processor].set_due();
    }

    fn timer_due(&mut self, task: u32) {
        self.wake(task);
    }

    fn before_decisions(&mut self) {
        while let Some(task) = self.parts.budgets.pop_due(self.now) {
            self.replenish(task);
        }
        if std::mem::take(&mut self.parts.unassigned) {
            self.assign_deadlines();
        }
    }

    fn decide(&mut self, processor: usize) {
        self.decide_here(processor);
    }

    fn set_timer(&mut self, task: u32, at: Instant) {
        let place = self.activity(task).place();
        let place = &mut self.processors[place];
        place.own.timers.set(task, at);
        place.set_due();
    }

    fn clear_timer(&mut self, task: u32) {
        // A thread under `SCHED_DEADLINE` may have set it elsewhere.
        for place in &mut self.processors {
            place.own.timers.clear(task);
            place.set_due();
        }
    }

    /// The one of highest priority, among equals the one that came first.
    fn first_waiter(&self, port: u32) -> Option<u32> {
        let rank = |task: u32| self.activity(task).scheduling()?.real_time();
        let mut waiters = self.ports[port as usize].waiters.iter(&self.links);
        let first = waiters.next()?;
        Some(waiters.fold(first, |best, waiter| {
            if rank(waiter) > rank(best) {
                waiter
            } else {
                best
            }
        }))
    }

    fn signalled(&mut self, waiter: u32, by: u32) {
        let now = self.now;
        let from = self.activity(by);
        let near =
            from.class != Class::External && from.processor == self.activity(waiter).processor;
        let machine = &self.parts.machine;
        let task = &mut self.activities[waiter as usize];
        if near {
            task.own.coming = Some(task.own.draws.span(machine.figure(Figure::Handover)));
            task.own.woken = Some(super::task::Woken::Meant(now));
            self.ready(waiter);
        } else {
            // From another processor it is an interrupt, as the clock's is.
            task.waiting = Waiting::ForTime;
            task.own.arriving = true;
            self.set_timer(waiter, now);
        }
    }

    fn leave(&mut self, task: u32, waiting: Waiting) {
        let machine = &self.parts.machine;
        let activity = &mut self.activities[task as usize];
        activity.waiting = waiting;
        let draws = &mut activity.own.draws;
        let call = match waiting {
            Waiting::ForSignal(_) | Waiting::ForEither(_) => {
                Some(draws.span(machine.figure(Figure::Block)))
            }
            Waiting::No | Waiting::ForTime => Some(draws.span(machine.figure(Figure::Timer))),
            Waiting::ForEver => None,
        };
        self.leave_by(task, call.map(Leaving::By));
        match self.activity(task).class {
            Class::Interrupt(_) => self.record_exit(EventKind::InterruptExit, task),
            Class::Deferred => self.record_exit(EventKind::DeferredExit, task),
            Class::Thread | Class::External => {}
        }
    }

    /// In the same thread, which does not give the processor up.
    fn raise_again(&mut self, task: u32, at: Instant) {
        self.record_exit(EventKind::InterruptExit, task);
        self.record_entry(EventKind::InterruptEnter, task, at);
        self.next_step_at_once(task);
    }

    fn become_urgent(&mut self, task: u32, priority: Priority) {
        let now = self.now;
        let activity = &mut self.activities[task as usize];
        activity.own.scheduling = ranks::of_thread(priority);
        let place = &mut self.processors[usize::from(activity.processor)];
        place.own.queue.raise(task, Rank::Priority(priority), now);
        place.undecided = true;
    }

    fn yield_now(&mut self, task: u32) {
        let now = self.now;
        let activity = &mut self.activities[task as usize];
        if let Some(server) = &mut activity.own.server {
            if server.give_way(now) {
                self.throttle(task);
            }
        } else {
            let place = &mut self.processors[usize::from(activity.processor)];
            place.own.queue.yield_now(task, now);
            place.undecided = true;
        }
    }

    fn enforce(&mut self, task: u32) {
        self.begin_enforcing(task);
    }

    fn release(&mut self, task: u32) {
        self.end_enforcing(task);
    }

    /// The activity goes on once the system call that changes its policy is done.
    fn pay_for_reservation(&mut self, task: u32) {
        let cost = self.parts.machine.figure(Figure::PolicyChange);
        let call = self.activities[task as usize].own.draws.span(cost);
        self.work(task, call.as_full_service(), false);
    }

    fn change_server(&mut self, task: u32, asked: Reservation) -> Option<Instant> {
        let now = self.now;
        let server = self.activity_mut(task).own.server.as_mut()?;
        server.change(asked);
        // The budget under way stays what it is.
        Some(server.deadline().max(now))
    }

    fn adopt(&mut self, task: u32) {
        self.ring(task);
    }

    /// One that has finished competes no more.
    fn dismiss_guest(&mut self, task: u32) {
        self.leave_slot(task, self.now);
        self.place(task);
    }
}

impl System {
    fn work_ended(&mut self, processor: usize, bodies: &mut Bodies) {
        let Some(task) = self.processors[processor].executing else {
            return;
        };
        match self.activity(task).own.role {
            Role::Activity => {
                self.first_instruction(task);
                self.step(task, bodies);
                self.begin_burning(processor, task);
            }
            Role::Witness => self.wake_witness(task),
            Role::Dispatcher => {
                if self.on_time(processor) {
                    self.dispatch(processor);
                }
            }
        }
    }

    /// The kernel's tick: takes a moment from who runs, and ends slices and budgets.
    fn tick(&mut self, processor: usize) {
        self.settle(processor);
        while let Some((_, machine)) = self.parts.later.pop_if(|(from, _)| *from <= self.now) {
            self.parts.machine = machine;
        }
        let (now, tick) = (self.now, self.parts.tick);
        let mut draws = Draws::at(self.parts.seed, TICK, processor, now);
        let cost = draws.span(self.parts.machine.figure(Figure::Tick));
        let place = &mut self.processors[processor];
        place.own.tick_at = later(place.own.tick_at, tick);
        place.own.queue.tick(now);
        place.undecided = true;
        if let Some(running) = place.executing {
            let task = &mut self.activities[running as usize];
            if task.charging {
                task.work += cost.as_full_service();
            }
        }
        self.go_on(processor);
        if !self.parts.has_budget_timer {
            self.look_at_budget(processor);
        }
    }

    /// The clock's interrupt for the earliest timer will be there after the machine's latency.
    fn arm(&mut self, processor: usize) {
        let machine = &self.parts.machine;
        let mut draws = Draws::at(self.parts.seed, CLOCK, processor, self.now);
        let place = &mut self.processors[processor];
        let slots = place.slots.as_ref();
        let ends_slot = slots.is_some_and(|slots| slots.carried.end_timer == Some(self.now));
        let latency = match place.executing {
            Some(_) if ends_slot => draws.span(machine.figure(Figure::SlotLeaving)),
            Some(_) => draws.beyond(machine, Figure::Wakeup, Figure::Preemption),
            None => draws.beyond(machine, Figure::WakeupIdle, Figure::ContextSwitch),
        };
        place.own.interrupt_at = later(self.now, latency);
    }

    /// The clock's interrupt: everybody wakes whose instant has come.
    fn interrupt(&mut self, processor: usize) {
        self.processors[processor].own.interrupt_at = Instant::MAX;
        while let Some(task) = self.processors[processor].own.timers.pop_due(self.now) {
            self.wake(task);
        }
    }

    /// Who runs gives its processor up, which takes this.
    pub(super) fn leave_by(&mut self, task: u32, leaving: Option<Leaving>) {
        let now = self.now;
        let activity = &mut self.activities[task as usize];
        activity.voluntary_switches += 1;
        activity.own.preempted = false;
        let place = &mut self.processors[usize::from(activity.processor)];
        place.vacate();
        place.own.leaving = leaving;
        match &mut activity.own.server {
            None => place.own.queue.leave(task, now),
            Some(server) => {
                self.parts.unassigned = true;
                if server.look(now) {
                    self.throttle(task);
                }
            }
        }
    }
}
