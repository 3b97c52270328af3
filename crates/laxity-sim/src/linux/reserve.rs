//! How reservations are enforced under Linux: by a deadline server, or by the dispatcher of a slot table.

use laxity_model::policy::Policy;
use laxity_model::policy::deadline::Server;
use laxity_model::{Enforcer, Instant, Refused, Reservation};

use super::kernel::System;
use crate::core::{Machinery, Waiting};

impl System {
    pub(super) fn begin_enforcing(&mut self, task: u32) {
        let now = self.now;
        let activity = &mut self.activities[task as usize];
        let Some(request) = activity.in_force().copied() else {
            return;
        };
        let place = &mut self.processors[usize::from(activity.processor)];
        if request.enforcer == Enforcer::Deadline {
            place.own.queue.leave(task, now);
            place.undecided = true;
            activity.own.server = Some(Server::new(request.reservation, now));
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

    /// As admission says, beside what all others were granted.
    pub(super) fn change_server(
        &mut self,
        task: u32,
        asked: Reservation,
    ) -> Result<Instant, Refused> {
        let (now, id) = (self.now, self.activity(task).id);
        let deadline = self.parts.deadline.as_mut();
        deadline.ok_or(Refused::NotInForce)?.change(id, asked)?;
        let Some(server) = &mut self.activity_mut(task).own.server else {
            return Err(Refused::NotInForce);
        };
        server.change(asked);
        // The budget under way stays what it is.
        Ok(server.deadline().max(now))
    }

    /// The dispatcher is handed what was granted, and woken to look at it.
    pub(super) fn ring(&mut self, task: u32) {
        let Some((slots, _)) = self.slots_of(task) else {
            return;
        };
        slots.dispatcher.follow(slots.admission.calendar().clone());
        let (thread, busy) = (slots.carried.thread, slots.carried.prolonged.is_some());
        // One that prolongs a slot looks when it has done that.
        if busy || self.activity(thread).waiting != Waiting::ForTime {
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
