//! How waits end under Linux: threads become ready, and execute their first instruction after.

use laxity_model::EventKind;
use laxity_model::enforce::machine::Figure;
use laxity_model::policy::Policy;

use super::kernel::System;
use super::task::{Role, Woken};
use crate::core::{Class, Waiting};

impl System {
    /// The clock's interrupt, or one from another processor, is there for a thread.
    pub(super) fn wake(&mut self, task: u32) {
        if !std::mem::take(&mut self.activity_mut(task).own.arriving) {
            self.time_is_up(task);
        }
        let machine = &self.parts.machine;
        let activity = &mut self.activities[task as usize];
        let busy = self.processors[usize::from(activity.processor)]
            .executing
            .is_some();
        // As in the latency that was drawn: what came before the interrupt and what comes after it are the figure together.
        activity.own.coming = Some(if busy {
            machine.figure(Figure::Preemption).median()
        } else {
            machine.figure(Figure::ContextSwitch).median()
        });
        if activity.own.role == Role::Activity && activity.own.woken != Some(Woken::First) {
            activity.own.woken = Some(Woken::Meant(activity.meant_at));
        }
        self.ready(task);
    }

    /// The thread's wait is over: it competes.
    pub(super) fn ready(&mut self, task: u32) {
        let now = self.now;
        let activity = &mut self.activities[task as usize];
        activity.waiting = Waiting::No;
        activity.own.ready_at = now;
        if let Some(server) = &mut activity.own.server {
            server.wake(now);
            self.parts.unassigned = true;
        } else if activity.scheduling().is_some() {
            let place = &mut self.processors[usize::from(activity.processor)];
            place.own.queue.enter(task, (), now);
            place.undecided = true;
        }
    }

    /// Records that a thread has the processor after a wait.
    pub(super) fn first_instruction(&mut self, task: u32) {
        let activity = self.activity_mut(task);
        let class = activity.class;
        let Some(woken) = activity.own.woken.take() else {
            return;
        };
        if let Woken::Meant(meant) = woken {
            match class {
                Class::Interrupt(_) => self.record_entry(EventKind::InterruptEnter, task, meant),
                Class::Deferred => self.record_entry(EventKind::DeferredEnter, task, meant),
                Class::Thread => self.record(EventKind::Wake, task, [meant.as_nanos(), 0]),
                Class::External => {}
            }
        }
        if class == Class::Thread {
            self.record(EventKind::Dispatch, task, [0; 2]);
        }
    }
}
