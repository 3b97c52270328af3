//! How reservations are enforced under Linux: by a deadline server, or by the dispatcher of a slot table.

use laxity_model::Enforcer;
use laxity_model::policy::Policy;
use laxity_model::policy::deadline::Server;

use super::kernel::System;
use crate::core::{Machinery, Waiting};

impl System {
    pub(super) fn begin_enforcing(&mut self, task: u32) {
        let now = self.now;
        let reservation = self.reservation(task);
        let activity = &mut self.activities[task as usize];
        let Some(enforcer) = activity.in_force().map(|held| held.enforcer) else {
            return;
        };
        let place = &mut self.processors[usize::from(activity.processor)];
        if enforcer == Enforcer::Deadline {
            place.own.queue.leave(task, now);
            place.undecided = true;
            activity.own.server = reservation.map(|reservation| Server::new(reservation, now));
            self.parts.unassigned = true;
            return;
        }
        let owner = place.slots.as_ref().and_then(|slots| {
            let current = slots.dispatcher.current()?;
            slots.owners.get(current).copied()
        });
        if owner == Some(task) {
            self.enter_slot(task, now);
        }
        self.place(task);
    }

    pub(super) fn end_enforcing(&mut self, task: u32) {
        let activity = self.activity_mut(task);
        activity.own.in_slot = false;
        if activity.own.server.take().is_some() {
            self.parts.unassigned = true;
            self.parts.budgets.clear(task);
            self.go_home(task);
        }
        self.place(task);
    }

    /// A thread that was under `SCHED_DEADLINE` goes back to the processor that it belongs to.
    fn go_home(&mut self, task: u32) {
        let activity = &mut self.activities[task as usize];
        let place = &mut self.processors[usize::from(activity.processor)];
        if place.own.deadline == Some(task) {
            place.own.deadline = None;
        }
        if activity.processor != activity.home {
            place.vacate();
            activity.processor = activity.home;
            let home = activity.place();
            self.settle(home);
        }
    }

    /// The dispatcher is handed what was granted, and woken to look at it.
    pub(super) fn ring(&mut self, task: u32) {
        let Some((slots, _)) = self.slots_of(task) else {
            return;
        };
        slots.dispatcher.follow(slots.admission.calendar().clone());
        let thread = slots.carried.thread;
        if self.activity(thread).waiting != Waiting::ForTime {
            return;
        }
        if let Some((slots, _)) = self.slots_of(task) {
            slots.carried.due = None;
            slots.carried.end_timer = None;
        }
        self.clear_timer(thread);
        let (now, dispatcher) = (self.now, self.activity_mut(thread));
        dispatcher.timed_out = false;
        dispatcher.meant_at = now;
        self.signalled(thread, task);
    }
}
