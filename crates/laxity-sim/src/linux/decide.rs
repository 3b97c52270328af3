//! Who has a processor: `SCHED_DEADLINE` by earliest deadline over all processors, then what the processor's own queue says.

use laxity_model::enforce::machine::Figure;
use laxity_model::policy::deadline::{Contender, assign};
use laxity_model::policy::{Decision, Policy};
use laxity_model::{EventKind, Instant, Service};

use super::kernel::{Leaving, System};
use super::task::Role;
use crate::core::later;

impl System {
    /// Decides who has the processor from now on.
    pub(super) fn decide_here(&mut self, processor: usize) {
        let now = self.now;
        let place = &mut self.processors[processor];
        place.undecided = false;
        let (next, until) = match place.own.deadline {
            Some(task) => {
                place.own.queue.pause(now);
                (Some(task), Instant::MAX)
            }
            None => {
                let Decision { who, until } = place.own.queue.decide(now);
                (who, until)
            }
        };
        if place.executing == next {
            return self.watch_slice(processor, until);
        }
        self.settle(processor);
        let former = self.processors[processor].executing.take();
        let leaving = self.processors[processor].own.leaving.take();
        if let Some(former) = former {
            self.put_off(former);
        }
        self.processors[processor].own.budget_ends = Instant::MAX;
        if let Some(next) = next {
            self.switch_to(processor, next, former, leaving);
        }
        self.go_on(processor);
        if let Some(next) = next {
            let since = self.processors[processor].working_since;
            self.activity_mut(next).own.readings.resume(since);
        }
        self.watch_budget(processor);
        self.watch_slice(processor, until);
    }

    /// The processor is taken from a thread that could go on.
    fn put_off(&mut self, former: u32) {
        let parks = self.activity(former).scheduling().is_none();
        let now = self.now;
        let task = self.activity_mut(former);
        task.own.preempted = true;
        task.own.readings.put_off(now);
        // A confined thread parks of its own accord; whoever yields is counted as put off.
        if parks {
            task.voluntary_switches += 1;
        } else {
            task.involuntary_switches += 1;
        }
        if task.is_seen_running() {
            self.record(EventKind::Preempt, former, [0; 2]);
        }
    }

    /// The processor goes to a thread, which costs what the way it comes costs.
    fn switch_to(
        &mut self,
        processor: usize,
        next: u32,
        former: Option<u32>,
        leaving: Option<Leaving>,
    ) {
        let (now, tick) = (self.now, self.parts.tick);
        let machine = &self.parts.machine;
        let task = &mut self.activities[next as usize];
        let coming = task.own.coming.take();
        let switch = task.own.draws.span(machine.figure(Figure::ContextSwitch));
        let cost = match (leaving, coming) {
            (Some(Leaving::By(call)), _) => call + switch,
            (Some(Leaving::Taking(all)), _) => all,
            (None, Some(coming)) => coming,
            (None, None) => switch,
        };
        if std::mem::take(&mut task.own.preempted) && task.charging && !task.work.is_zero() {
            let reload = task.own.draws.span(machine.figure(Figure::CacheReload));
            task.work += reload.as_full_service();
        }
        let shown = task.is_seen_running();
        if let (Some(former), None, Some(_)) = (former, leaving, coming) {
            // The kernel counts the interrupt as the interrupted thread's own time.
            let lost = cost.as_full_service();
            let former = &mut self.activities[former as usize];
            let worked = if former.charging { Service::ZERO } else { lost };
            former.receive(lost, worked);
        }
        let place = &mut self.processors[processor];
        place.executing = Some(next);
        place.cost_until = later(place.cost_until.max(now), cost);
        if place.own.tick_at <= now {
            let missed = (now - place.own.tick_at) / tick + 1;
            place.own.tick_at += tick * missed;
        }
        if shown {
            self.record(EventKind::Dispatch, next, [0; 2]);
        }
    }

    /// Puts a thread where its state says: into its queue or out of it, under its policy.
    pub(super) fn place(&mut self, task: u32) {
        let now = self.now;
        if self.activity(task).own.server.is_some() {
            self.parts.unassigned = true;
            return;
        }
        let scheduling = self.activity(task).scheduling();
        let ready = self.activity(task).is_ready();
        let place = self.activity(task).place();
        let place = &mut self.processors[place];
        match scheduling {
            Some(scheduling) => {
                place.own.queue.schedule(task, scheduling, now);
                if ready {
                    place.own.queue.enter(task, (), now);
                }
            }
            None => place.own.queue.leave(task, now),
        }
        place.undecided = true;
    }

    /// The earliest deadlines get the processors: each stays where it was if it can.
    pub(super) fn assign_deadlines(&mut self) {
        let mut ready = Vec::new();
        for (who, task) in (0..).zip(&self.activities) {
            if let Some(server) = task.own.server
                && task.is_ready()
                && !server.is_throttled()
            {
                ready.push(Contender {
                    deadline: server.deadline(),
                    who,
                    processor: task.place(),
                });
            }
        }
        let given = assign(ready, self.processors.len());
        for (processor, task) in given.iter().enumerate() {
            if let Some(task) = task.filter(|task| self.activity(*task).place() != processor) {
                self.migrate(task, processor);
            }
        }
        for (processor, given) in given.into_iter().enumerate() {
            let place = &mut self.processors[processor];
            if place.own.deadline != given {
                place.own.deadline = given;
                place.undecided = true;
            }
        }
    }

    fn migrate(&mut self, task: u32, to: usize) {
        let from = self.activity(task).place();
        if self.processors[from].executing == Some(task) {
            self.settle(from);
            self.processors[from].vacate();
            self.put_off(task);
        }
        self.activity_mut(task).processor = to as u16;
    }

    /// The kernel looks whether the budget of the deadline thread is used up.
    pub(super) fn look_at_budget(&mut self, processor: usize) {
        self.processors[processor].own.budget_ends = Instant::MAX;
        let Some(task) = self.processors[processor].executing else {
            return;
        };
        self.settle(processor);
        let now = self.now;
        if let Some(server) = &mut self.activity_mut(task).own.server
            && server.look(now)
        {
            self.throttle(task);
        }
        self.go_on(processor);
        self.watch_budget(processor);
    }

    /// A thread waits for its next budget.
    pub(super) fn throttle(&mut self, task: u32) {
        let own = &mut self.activities[task as usize].own;
        let Some(server) = own.server else {
            return;
        };
        let (machine, replenish) = (&self.parts.machine, Figure::DeadlineReplenish);
        let late = own.draws.beyond(machine, replenish, Figure::ContextSwitch);
        let at = later(server.deadline(), late);
        self.parts.budgets.clear(task);
        self.parts.budgets.set(task, at);
        self.parts.unassigned = true;
    }

    /// A thread gets its next budget.
    pub(super) fn replenish(&mut self, task: u32) {
        let now = self.now;
        if let Some(server) = &mut self.activity_mut(task).own.server {
            server.replenish(now);
            self.parts.unassigned = true;
        }
    }

    /// Where the kernel has a timer for the budget, sets it.
    fn watch_budget(&mut self, processor: usize) {
        if !self.parts.has_budget_timer {
            return;
        }
        let place = &mut self.processors[processor];
        let Some(running) = place.executing else {
            return;
        };
        let task = &mut self.activities[running as usize];
        if let (Role::Activity, Some(server)) = (task.own.role, task.own.server) {
            let overrun = self.parts.machine.figure(Figure::DeadlineOverrun);
            let over = task.own.draws.span(overrun);
            let left = server.left().as_dedicated_span();
            place.own.budget_ends = later(later(place.working_since, left), over);
            place.set_due();
        }
    }
}
