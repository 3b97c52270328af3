//! Who has a processor: `SCHED_DEADLINE` by earliest deadline over all processors, then what the processor's own queue says.

use laxity_model::policy::Policy;
use laxity_model::policy::classes::Scheduling;
use laxity_model::policy::deadline::{Contender, assign};
use laxity_model::{EventKind, Instant, Outside, Service};

use super::Enforcement;
use super::kernel::{Kernel, Leaving};
use super::policy;
use super::task::Role;
use crate::processor::later;

impl Kernel {
    /// Decides who has the processor from now on.
    pub(super) fn decide(&mut self, processor: usize) {
        let now = self.now;
        let place = &mut self.processors[processor];
        place.undecided = false;
        let next = match place.deadline {
            Some(task) => {
                place.queue.pause(now);
                Some(task)
            }
            None => place.queue.decide(now).who.map(|who| who as u16),
        };
        if place.running == next {
            place.set_due();
            if let Some(next) = next {
                self.task_mut(next).yielded = false;
            }
            return;
        }
        self.settle(processor);
        let former = self.processors[processor].running.take();
        let leaving = self.processors[processor].leaving.take();
        if let Some(former) = former {
            self.put_off(former);
        }
        self.processors[processor].budget_ends = Instant::MAX;
        if let Some(next) = next {
            self.switch_to(processor, next, former, leaving);
        }
        self.go_on(processor);
        self.watch_budget(processor);
    }

    /// The processor is taken from a thread that could go on.
    fn put_off(&mut self, former: u16) {
        let gated = self.policy_of(former).is_none();
        let task = self.task_mut(former);
        task.preempted = true;
        task.yielded = false;
        // A confined thread waits at its gate of its own accord; whoever yields is counted as put off.
        if gated {
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
        next: u16,
        former: Option<u16>,
        leaving: Option<Leaving>,
    ) {
        let (now, tick) = (self.now, self.tick);
        let machine = &self.machine;
        let task = &mut self.tasks[usize::from(next)];
        let coming = task.coming.take();
        let switch = task.draws.span(&machine.context_switch);
        let cost = match (leaving, coming) {
            (Some(Leaving::By(call)), _) => call + switch,
            (Some(Leaving::Taking(all)), _) => all,
            (None, Some(coming)) => coming,
            (None, None) => switch,
        };
        if std::mem::take(&mut task.preempted) && task.charging && !task.work.is_zero() {
            task.work += task.draws.span(&machine.cache_reload).as_full_service();
        }
        let shown = task.is_seen_running();
        if let (Some(former), None, Some(_)) = (former, leaving, coming) {
            // The kernel counts the interrupt as the interrupted thread's own time.
            let lost = cost.as_full_service();
            let former = &mut self.tasks[usize::from(former)];
            let worked = if former.charging { Service::ZERO } else { lost };
            former.receive(lost, worked);
        }
        let place = &mut self.processors[processor];
        place.running = Some(next);
        place.cost_until = later(place.cost_until.max(now), cost);
        if place.tick_at <= now {
            let missed = (now - place.tick_at) / tick + 1;
            place.tick_at += tick * missed;
        }
        if shown {
            self.record(EventKind::Dispatch, next, [0; 2]);
        }
    }

    /// The policy under which a thread competes on its processor; `None` if it may not run at all.
    pub(super) fn policy_of(&self, task: u16) -> Option<Scheduling> {
        let task = self.task(task);
        if !task.uses_its_slots() {
            return Some(task.own);
        }
        if task.in_slot {
            return Some(policy::OCCUPANT);
        }
        match task.held.as_ref().map(|held| held.request.outside) {
            None => Some(task.own),
            Some(Outside::Timesharing(priority)) => Some(policy::of_thread(priority)),
            Some(Outside::Confined) => None,
        }
    }

    /// Puts a thread where its state says: into its queue or out of it, under its policy.
    pub(super) fn place(&mut self, task: u16) {
        let now = self.now;
        if self.task(task).server.is_some() {
            self.unassigned = true;
            return;
        }
        let policy = self.policy_of(task);
        let ready = self.task(task).is_ready();
        let processor = &mut self.processors[self.tasks[usize::from(task)].processor];
        match policy {
            Some(policy) => {
                processor.queue.schedule(task.into(), policy, now);
                if ready {
                    processor.queue.enter(task.into(), (), now);
                }
            }
            None => processor.queue.leave(task.into(), now),
        }
        processor.undecided = true;
    }

    /// The earliest deadlines get the processors: each stays where it was if it can.
    pub(super) fn assign_deadlines(&mut self) {
        let mut ready = Vec::new();
        for (who, task) in (0..).zip(&self.tasks) {
            if let Some(server) = task.server
                && task.is_ready()
                && !server.is_throttled()
            {
                ready.push(Contender {
                    deadline: server.deadline(),
                    who,
                    processor: task.processor,
                });
            }
        }
        let given = assign(ready, self.processors.len());
        let given: Vec<Option<u16>> = given
            .into_iter()
            .map(|who| who.map(|who| who as u16))
            .collect();
        for (processor, task) in given.iter().enumerate() {
            if let Some(task) = task.filter(|task| self.task(*task).processor != processor) {
                self.migrate(task, processor);
            }
        }
        for (processor, given) in given.into_iter().enumerate() {
            let place = &mut self.processors[processor];
            if place.deadline != given {
                place.deadline = given;
                place.undecided = true;
            }
        }
    }

    fn migrate(&mut self, task: u16, to: usize) {
        let from = self.task(task).processor;
        if self.processors[from].running == Some(task) {
            self.settle(from);
            let place = &mut self.processors[from];
            place.running = None;
            place.work_ends = Instant::MAX;
            place.undecided = true;
            self.put_off(task);
        }
        self.task_mut(task).processor = to;
    }

    /// The kernel looks whether the budget of the deadline thread is used up.
    pub(super) fn look_at_budget(&mut self, processor: usize) {
        self.processors[processor].budget_ends = Instant::MAX;
        let Some(task) = self.processors[processor].running else {
            return;
        };
        self.settle(processor);
        let now = self.now;
        if let Some(server) = &mut self.task_mut(task).server
            && server.look(now)
        {
            self.throttle(task);
        }
        self.go_on(processor);
        self.watch_budget(processor);
    }

    /// A thread waits for its next budget.
    pub(super) fn throttle(&mut self, task: u16) {
        let switch = self.machine.context_switch.median();
        let entry = &mut self.tasks[usize::from(task)];
        let Some(server) = entry.server else { return };
        let late = entry.draws.span(&self.machine.deadline_replenish);
        let at = later(server.deadline(), late.saturating_sub(switch));
        self.budgets.set(task, at);
        self.unassigned = true;
    }

    /// A thread gets its next budget.
    pub(super) fn replenish(&mut self, task: u16) {
        let now = self.now;
        if let Some(server) = &mut self.task_mut(task).server {
            server.replenish(now);
            self.unassigned = true;
        }
    }

    /// Where the kernel has a timer for the budget, sets it.
    fn watch_budget(&mut self, processor: usize) {
        if self.enforcement == Enforcement::Tick {
            return;
        }
        let place = &mut self.processors[processor];
        let Some(running) = place.running else {
            return;
        };
        let task = &mut self.tasks[usize::from(running)];
        if let (Role::Activity, Some(server)) = (task.role, task.server) {
            let over = task.draws.span(&self.machine.deadline_overrun);
            let left = server.left().as_dedicated_span();
            place.budget_ends = later(later(place.working_since, left), over);
            place.set_due();
        }
    }
}
