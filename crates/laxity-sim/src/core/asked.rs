//! What activities ask for while they run: to have a reservation in force, another one, a time constraint.
//! [`AdmissionState`](laxity_model::admission::changes::AdmissionState) answers.

use laxity_model::{Enforcer, EventKind, Instant, Refused, Reservation, TimeConstraint};

use super::{Core, Fault, Machinery, Parts, Slots};

impl<P: Parts> Core<P> {
    /// The slots of an activity's processor, and its number among their owners.
    pub(crate) fn slots_of(&mut self, who: u32) -> Option<(&mut Slots<P::Carried>, usize)> {
        let home = usize::from(self.activity(who).home);
        let slots = self.processors[home].slots.as_mut()?;
        let number = slots.number_of(who)?;
        Some((slots, number))
    }

    /// What an activity was granted, in force or not.
    pub(crate) fn reservation(&self, who: u32) -> Option<Reservation> {
        let activity = self.activity(who);
        match activity.held.as_ref()?.enforcer {
            Enforcer::Deadline => self.deadline.as_ref()?.held(activity.id),
            Enforcer::Slots => {
                let slots = self.processors[usize::from(activity.home)].slots.as_ref()?;
                slots.admission.held(slots.number_of(who)?)
            }
        }
    }

    /// A slot of the activity's begins, by the table at `edge`. Tells whether that is anything to it.
    pub(crate) fn begin_slot(&mut self, who: u32, edge: Instant) -> bool {
        let activity = self.activity_mut(who);
        let used = activity.uses_its_slots();
        if used && !std::mem::replace(&mut activity.slot_recorded, true) {
            self.record(EventKind::SlotBegin, who, [edge.as_nanos(), 0]);
        }
        used
    }

    /// A slot of the activity's ends.
    pub(crate) fn end_slot(&mut self, who: u32, edge: Instant) {
        if std::mem::take(&mut self.activity_mut(who).slot_recorded) {
            self.record(EventKind::SlotEnd, who, [edge.as_nanos(), 0]);
        }
    }
}

impl<P: Parts> Core<P>
where
    Self: Machinery,
{
    pub(crate) fn begin_reservations_at_start(&mut self) {
        for who in 0..self.activities.len() as u32 {
            let held = self.activity(who).held.as_ref();
            if held.is_some_and(|held| held.begins_at_start) {
                self.put_in_force(who);
            }
        }
    }

    fn put_in_force(&mut self, who: u32) {
        let Some(held) = &mut self.activity_mut(who).held else {
            return;
        };
        if std::mem::replace(&mut held.in_force, true) {
            return;
        }
        held.has_begun = true;
        if let Some(reservation) = self.reservation(who) {
            self.record(EventKind::ReservationBegin, who, numbers(reservation));
        }
        self.enforce(who);
    }

    pub(super) fn begin_reservation(&mut self, who: u32) {
        if self.activity(who).held.is_none() {
            return self.fail(who, Fault::NoReservation);
        }
        self.put_in_force(who);
        self.pay_for_reservation(who);
    }

    pub(super) fn end_reservation(&mut self, who: u32) {
        let Some(held) = &mut self.activity_mut(who).held else {
            return self.fail(who, Fault::NoReservation);
        };
        if std::mem::take(&mut held.in_force) {
            self.release_constraint(who);
            self.end_slot(who, self.now);
            self.record(EventKind::ReservationEnd, who, [0; 2]);
            self.release(who);
        }
        self.pay_for_reservation(who);
    }

    /// Another reservation in place of the activity's own.
    pub(super) fn change_reservation(&mut self, who: u32, asked: Reservation) {
        let Some(held) = &self.activity(who).held else {
            return self.fail(who, Fault::NoReservation);
        };
        let answer = match held.enforcer {
            Enforcer::Slots => self.change_slots(who, asked),
            Enforcer::Deadline if held.in_force => self.change_deadline(who, asked),
            Enforcer::Deadline => Err(Refused::NotInForce),
        };
        if let Ok(from) = answer {
            self.record(EventKind::ReservationChange, who, numbers(asked));
            self.record(EventKind::ReservationFrom, who, [from.as_nanos(), 0]);
        }
        self.answer(who, answer);
    }

    /// As admission says, beside what all others were granted.
    fn change_deadline(&mut self, who: u32, asked: Reservation) -> Result<Instant, Refused> {
        let id = self.activity(who).id;
        let deadline = self.deadline.as_mut().ok_or(Refused::NotInForce)?;
        deadline.change(id, asked)?;
        self.change_server(who, asked).ok_or(Refused::NotInForce)
    }

    fn change_slots(&mut self, who: u32, asked: Reservation) -> Result<Instant, Refused> {
        let now = self.now;
        let (slots, number) = self.slots_of(who).ok_or(Refused::NotInForce)?;
        let proposal = slots.admission.propose(number, asked)?;
        slots.admission.change(proposal, now)
    }

    /// So much service between two instants, once.
    pub(super) fn begin_constraint(&mut self, who: u32, asked: TimeConstraint) {
        let now = self.now;
        let activity = self.activity(who);
        let is_guest = activity.held.is_none();
        let may = is_guest || activity.in_force().is_some();
        let Some((slots, number)) = self.slots_of(who) else {
            return self.fail(who, Fault::NotConstrained);
        };
        let answer = if may {
            slots.admission.constrain(number, asked, now)
        } else {
            Err(Refused::NotInForce)
        };
        if answer.is_ok() {
            self.activity_mut(who).is_guest |= is_guest;
            let args = [asked.start().as_nanos(), asked.deadline().as_nanos()];
            self.record(EventKind::ConstraintBegin, who, args);
        }
        self.answer(who, answer);
    }

    /// Gives back what is left of the activity's time constraint, if it has one.
    pub(super) fn release_constraint(&mut self, who: u32) {
        let now = self.now;
        let Some((slots, number)) = self.slots_of(who) else {
            return;
        };
        let released = slots.admission.release(number, now);
        if std::mem::take(&mut self.activity_mut(who).is_guest) {
            self.dismiss_guest(who);
        }
        if let Some(deadline) = released {
            self.record(EventKind::ConstraintEnd, who, [deadline.as_nanos(), 0]);
            self.adopt(who);
        }
    }

    fn answer(&mut self, who: u32, answer: Result<Instant, Refused>) {
        self.next_step_at_once(who);
        self.activity_mut(who).answer = answer;
        if answer.is_ok() {
            self.adopt(who);
        } else {
            self.record(EventKind::Refused, who, [0; 2]);
        }
    }
}

/// As a reservation's events have it.
fn numbers(reservation: Reservation) -> [u64; 2] {
    [
        reservation.service().as_nanos(),
        reservation.period().as_nanos(),
    ]
}
