//! What activities ask for while they run: another reservation, a time constraint.

use laxity_model::{EventKind, Refused, Reservation, TimeConstraint};

use crate::fault::Fault;
use crate::machine::Machine;
use crate::processor::Slots;

impl Machine {
    /// The slots of an activity's processor, and its number among their owners.
    fn slots_of(&mut self, activity: u16) -> Option<(&mut Slots, usize)> {
        let processor = usize::from(self.state(activity).processor);
        let slots = self.processors[processor].slots.as_mut()?;
        let number = slots.number(activity)?;
        Some((slots, number))
    }

    pub(crate) fn change_reservation(&mut self, activity: u16, asked: Reservation) {
        let now = self.now;
        let held = self.state(activity).held;
        let Some((slots, number)) = self.slots_of(activity).filter(|_| held.is_some()) else {
            return self.fail(activity, Fault::NoReservation);
        };
        let admission = &mut slots.admission;
        let proposal = admission.propose(number, asked);
        let answer = proposal.and_then(|proposal| admission.change(proposal, now));
        self.state_mut(activity).answer = answer;
        match answer {
            Ok(from) => {
                if let Some(held) = &mut self.state_mut(activity).held {
                    held.request.reservation = asked;
                }
                let args = [asked.service().as_nanos(), asked.period().as_nanos()];
                self.record(EventKind::ReservationChange, activity, args);
                let args = [from.as_nanos(), 0];
                self.record(EventKind::ReservationFrom, activity, args);
                self.adopt(activity);
            }
            Err(_) => self.record(EventKind::Refused, activity, [0; 2]),
        }
        self.next_step_at_once(activity);
    }

    pub(crate) fn begin_constraint(&mut self, activity: u16, asked: TimeConstraint) {
        let now = self.now;
        let uses_its_slots = self.state(activity).uses_its_slots();
        let Some((slots, number)) = self.slots_of(activity) else {
            return self.fail(activity, Fault::NotConstrained);
        };
        let answer = if uses_its_slots {
            slots.admission.constrain(number, asked, now)
        } else {
            Err(Refused::NotInForce)
        };
        self.state_mut(activity).answer = answer;
        match answer {
            Ok(_) => {
                let args = [asked.start().as_nanos(), asked.deadline().as_nanos()];
                self.record(EventKind::ConstraintBegin, activity, args);
                self.adopt(activity);
            }
            Err(_) => self.record(EventKind::Refused, activity, [0; 2]),
        }
        self.next_step_at_once(activity);
    }

    pub(crate) fn end_constraint(&mut self, activity: u16) {
        self.release_constraint(activity);
        self.next_step_at_once(activity);
    }

    /// Gives back what is left of the activity's time constraint, if it has one.
    pub(crate) fn release_constraint(&mut self, activity: u16) {
        let now = self.now;
        let released = self.slots_of(activity);
        let released = released.and_then(|(slots, number)| slots.admission.release(number, now));
        if let Some(deadline) = released {
            let args = [deadline.as_nanos(), 0];
            self.record(EventKind::ConstraintEnd, activity, args);
            self.adopt(activity);
        }
    }

    /// The dispatcher is handed what the activity was granted.
    fn adopt(&mut self, activity: u16) {
        let now = self.now;
        if let Some((slots, _)) = self.slots_of(activity) {
            slots.adopt(now);
        }
        let processor = usize::from(self.state(activity).processor);
        self.processors[processor].undecided = true;
    }
}
