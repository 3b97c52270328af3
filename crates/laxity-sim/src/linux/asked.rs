//! What activities ask for while they run: another reservation, a time constraint. [`laxity_model::admission::changes::AdmissionState`] answers.

use laxity_model::analysis::multiprocessor::{Bandwidth, DeadlineRequest, KernelLimits};
use laxity_model::{Enforcer, EventKind, Instant, Refused, Reservation, TimeConstraint};
use std::num::NonZeroU16;

use super::kernel::{Kernel, Slots};
use crate::activity::Waiting;
use crate::fault::Fault;

impl Kernel {
    /// The slots of an activity's processor, and its number among their owners.
    fn slots_of(&mut self, activity: u16) -> Option<(&mut Slots, usize)> {
        let home = self.task(activity).home;
        let slots = self.processors[home].slots.as_mut()?;
        let number = slots.owners.iter().position(|owner| *owner == activity)?;
        Some((slots, number))
    }

    /// Another reservation in place of the activity's own.
    pub(super) fn change_reservation(&mut self, activity: u16, asked: Reservation) {
        let Some(held) = &self.task(activity).held else {
            return self.fail(activity, Fault::NoReservation);
        };
        let answer = match held.request.enforcer {
            Enforcer::Slots => self.change_slots(activity, asked),
            Enforcer::Deadline if held.in_force => self.change_server(activity, asked),
            Enforcer::Deadline => Err(Refused::NotInForce),
        };
        if let (Ok(_), Some(held)) = (answer, &mut self.task_mut(activity).held) {
            held.request.reservation = asked;
        }
        let args = [asked.service().as_nanos(), asked.period().as_nanos()];
        self.answer(activity, answer, EventKind::ReservationChange, args);
        if let Ok(from) = answer {
            let args = [from.as_nanos(), 0];
            self.record(EventKind::ReservationFrom, activity, args);
        }
    }

    fn change_slots(&mut self, activity: u16, asked: Reservation) -> Result<Instant, Refused> {
        let now = self.now;
        let (slots, number) = self.slots_of(activity).ok_or(Refused::NotInForce)?;
        let proposal = slots.admission.propose(number, asked)?;
        slots.admission.change(proposal, now)
    }

    /// By the kernel's own test, beside all other servers in force.
    fn change_server(&mut self, activity: u16, asked: Reservation) -> Result<Instant, Refused> {
        let others = (0..).zip(&self.tasks);
        let others = others.filter(|(number, task)| *number != activity && task.server.is_some());
        let others = others.filter_map(|(_, task)| {
            let held = task.held.as_ref()?;
            Some(DeadlineRequest::from(held.request.reservation).bandwidth())
        });
        let granted: Bandwidth = others.sum();
        let processors = NonZeroU16::new(self.processors.len() as u16).unwrap_or(NonZeroU16::MIN);
        KernelLimits::WITH_FAIR_SERVER
            .check(processors, granted, asked.into())
            .map_err(|_| Refused::DeadlineBandwidth {
                needed_ppm: asked.share_ppm(),
            })?;
        let now = self.now;
        let Some(server) = &mut self.task_mut(activity).server else {
            return Err(Refused::NotInForce);
        };
        server.change(asked);
        // The budget under way stays what it is.
        Ok(server.deadline().max(now))
    }

    /// So much service between two instants, once.
    pub(super) fn begin_constraint(&mut self, activity: u16, asked: TimeConstraint) {
        let now = self.now;
        let held = self.task(activity).held.as_ref();
        let may = held.is_none_or(|held| held.in_force);
        let Some((slots, number)) = self.slots_of(activity) else {
            return self.fail(activity, Fault::NotConstrained);
        };
        let answer = if may {
            slots.admission.constrain(number, asked, now)
        } else {
            Err(Refused::NotInForce)
        };
        let task = self.task_mut(activity);
        task.is_guest |= answer.is_ok() && task.held.is_none();
        let args = [asked.start().as_nanos(), asked.deadline().as_nanos()];
        self.answer(activity, answer, EventKind::ConstraintBegin, args);
    }

    /// Gives back what is left of the activity's time constraint, if it has one.
    pub(super) fn release_constraint(&mut self, activity: u16) {
        let now = self.now;
        let Some((slots, number)) = self.slots_of(activity) else {
            return;
        };
        let released = slots.admission.release(number, now);
        if std::mem::take(&mut self.task_mut(activity).is_guest) {
            self.end_slot(activity, now);
            // One that has finished competes no more.
            self.place(activity);
        }
        if let Some(deadline) = released {
            let args = [deadline.as_nanos(), 0];
            self.record(EventKind::ConstraintEnd, activity, args);
            self.ring(activity);
        }
    }

    fn answer(
        &mut self,
        activity: u16,
        answer: Result<Instant, Refused>,
        granted: EventKind,
        args: [u64; 2],
    ) {
        self.next_step_at_once(activity);
        self.task_mut(activity).answer = answer;
        match answer {
            Ok(_) => {
                self.record(granted, activity, args);
                self.ring(activity);
            }
            Err(_) => self.record(EventKind::Refused, activity, [0; 2]),
        }
    }

    /// The dispatcher is handed what was granted, and woken to look at it.
    fn ring(&mut self, activity: u16) {
        let Some((slots, _)) = self.slots_of(activity) else {
            return;
        };
        slots.dispatcher.follow(slots.admission.calendar().clone());
        let (thread, busy) = (slots.thread, slots.prolonged.is_some());
        // One that prolongs a slot looks when it has done that.
        if busy || self.task(thread).waiting != Waiting::ForTime {
            return;
        }
        if let Some((slots, _)) = self.slots_of(activity) {
            slots.due = None;
            slots.end_timer = None;
        }
        self.clear_timer(thread);
        self.signalled(thread, activity);
    }
}
