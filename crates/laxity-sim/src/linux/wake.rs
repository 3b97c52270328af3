//! How waits end: the clock's interrupt, signals, and the first instruction after.

use laxity_model::policy::Policy;
use laxity_model::policy::classes::Scheduling;
use laxity_model::{Body, EventKind, Instant};

use super::kernel::Kernel;
use super::task::{Role, Woken};
use crate::activity::{Class, Waiting};

impl Kernel {
    /// Sets the thread's timer on its processor.
    pub(super) fn set_timer(&mut self, task: u16, at: Instant) {
        let processor = &mut self.processors[self.tasks[usize::from(task)].processor];
        processor.timers.set(task, at);
        processor.set_due();
    }

    pub(super) fn clear_timer(&mut self, task: u16) {
        // A thread under `SCHED_DEADLINE` may have set it elsewhere.
        for processor in &mut self.processors {
            processor.timers.clear(task);
            processor.set_due();
        }
    }

    /// The clock's interrupt: everybody wakes whose instant has come.
    pub(super) fn interrupt(&mut self, processor: usize) {
        let now = self.now;
        self.processors[processor].interrupt_at = Instant::MAX;
        while let Some(task) = self.processors[processor].timers.pop_due(now) {
            self.timer_due(task);
        }
    }

    fn timer_due(&mut self, task: u16) {
        let entry = self.task_mut(task);
        if !std::mem::take(&mut entry.arriving) {
            entry.timed_out = false;
            if let Waiting::ForEither(semaphore) = entry.waiting {
                entry.timed_out = true;
                let waiters = &mut self.semaphores[usize::from(semaphore)].waiters;
                waiters.retain(|waiter| *waiter != task);
            }
        }
        let machine = &self.machine;
        let entry = &mut self.tasks[usize::from(task)];
        let busy = self.processors[entry.processor].running.is_some();
        // As in the latency that was drawn: what came before the interrupt and what comes after it are the figure together.
        entry.coming = Some(if busy {
            machine.preemption.median()
        } else {
            machine.context_switch.median()
        });
        if entry.role == Role::Activity && entry.woken != Some(Woken::First) {
            entry.woken = Some(Woken::Meant(entry.meant_at));
        }
        self.ready(task);
    }

    /// The thread's wait is over: it competes.
    fn ready(&mut self, task: u16) {
        let now = self.now;
        let entry = self.task_mut(task);
        entry.waiting = Waiting::No;
        if let Some(server) = &mut entry.server {
            server.wake(now);
            self.unassigned = true;
            return;
        }
        if self.policy_of(task).is_some() {
            let processor = &mut self.processors[self.tasks[usize::from(task)].processor];
            processor.queue.enter(task.into(), (), now);
            processor.undecided = true;
        }
    }

    pub(super) fn external_due(&mut self, activity: u16, bodies: &mut [Box<dyn Body>]) {
        let entry = self.task_mut(activity);
        entry.timed_out = false;
        if let Waiting::ForEither(semaphore) = entry.waiting {
            entry.timed_out = true;
            let waiters = &mut self.semaphores[usize::from(semaphore)].waiters;
            waiters.retain(|waiter| *waiter != activity);
        }
        self.task_mut(activity).waiting = Waiting::No;
        self.step(activity, bodies);
    }

    /// A semaphore's waiter is served: the one of highest priority, among equals the one that came first.
    pub(super) fn pop_waiter(&mut self, semaphore: usize) -> Option<u16> {
        let rank = |task: u16| self.policy_of(task).and_then(Scheduling::real_time);
        let waiters = &self.semaphores[semaphore].waiters;
        let mut best = 0;
        for (place, waiter) in waiters.iter().enumerate() {
            if rank(*waiter) > rank(waiters[best]) {
                best = place;
            }
        }
        self.semaphores[semaphore].waiters.remove(best)
    }

    /// A signal ends the thread's wait; `by` gave it.
    pub(super) fn signalled(&mut self, waiter: u16, by: u16) {
        let now = self.now;
        if let Waiting::ForEither(_) = self.task(waiter).waiting {
            self.clear_timer(waiter);
            self.externals.clear(waiter);
        }
        let near = self.task(by).class != Class::External
            && self.task(by).processor == self.task(waiter).processor;
        let machine = &self.machine;
        let entry = &mut self.tasks[usize::from(waiter)];
        entry.timed_out = false;
        entry.meant_at = now;
        match entry.class {
            Class::External => {
                entry.waiting = Waiting::No;
                self.externals.set(waiter, now);
            }
            _ if near => {
                entry.coming = Some(entry.draws.span(&machine.handover));
                entry.woken = Some(Woken::Meant(now));
                self.ready(waiter);
            }
            // From another processor it is an interrupt, as the clock's is.
            _ => {
                entry.waiting = Waiting::ForTime;
                entry.arriving = true;
                self.set_timer(waiter, now);
            }
        }
    }

    /// Records that a thread has the processor after a wait.
    pub(super) fn first_instruction(&mut self, task: u16) {
        let entry = self.task_mut(task);
        let Some(woken) = entry.woken.take() else {
            return;
        };
        if let (Woken::Meant(meant), class) = (woken, entry.class) {
            let args = [meant.as_nanos(), 0];
            match class {
                Class::Interrupt(_) => self.enter(task, EventKind::InterruptEnter, args),
                Class::Deferred => self.enter(task, EventKind::DeferredEnter, args),
                Class::Thread => self.record(EventKind::Wake, task, args),
                Class::External => {}
            }
        }
        if self.task(task).class == Class::Thread {
            self.record(EventKind::Dispatch, task, [0; 2]);
        }
    }

    /// A handler or deferred call is entered.
    pub(super) fn enter(&mut self, task: u16, kind: EventKind, args: [u64; 2]) {
        let entry = self.task_mut(task);
        entry.received_before = entry.received;
        self.record(kind, task, args);
    }
}
