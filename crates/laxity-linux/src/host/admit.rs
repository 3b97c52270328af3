//! From what was admitted to where each thread is: in a slot table, under the kernel's reservations, or free.

use std::sync::Arc;

use laxity_model::admission::SlotPlan;
use laxity_model::{
    Activity, Enforcer, Grade, Grant, Outside, Placement, Priority, Program, Reservation,
};

use super::LiveConfig;
use super::supply::outranking;
use crate::enforce::holding::{Place, Sitting};
use crate::enforce::slots::{Bell, Desk, Seat};
use crate::os::proc;

/// The slots of one processor.
pub(crate) struct ProcessorSlots {
    pub(crate) cpu: usize,
    pub(crate) plan: SlotPlan,
    pub(crate) seats: Vec<Arc<Seat>>,
    pub(crate) bell: Arc<Bell>,
    /// Where changes are asked for.
    pub(crate) desk: Arc<Desk>,
    /// The kinds of confinement that must be calibrated.
    pub(crate) confined: bool,
}

/// Where every activity is, and the slots.
pub(crate) fn prepare(
    program: &Program,
    plans: Vec<SlotPlan>,
    config: &LiveConfig,
) -> (Vec<Place>, Vec<ProcessorSlots>) {
    let mut places = vec![Place::Free; program.activities.len()];
    for (id, _, reservation) in program.askers(Enforcer::Deadline) {
        places[id.index()] = Place::Deadline(reservation);
    }
    let mut slots = Vec::new();
    for plan in plans {
        let bell = Arc::new(Bell::default());
        let desk = Arc::new(Desk::new(Arc::clone(&bell)));
        let outside = |owner: &Activity| match (owner.reservation, owner.placement) {
            (Some(request), _) => request.outside,
            (None, Placement::Thread(priority)) => Outside::Timesharing(priority),
            (None, _) => Outside::Timesharing(Priority::NORMAL),
        };
        let mut seats = Vec::new();
        let mut confined = false;
        for (owner, id) in plan.owners.iter().enumerate() {
            let outside = outside(&program.activities[id.index()]);
            confined |= outside == Outside::Confined;
            let seat = Arc::new(Seat::new(*id, outside, Arc::clone(&bell)));
            let sitting = Sitting {
                seat: Arc::clone(&seat),
                desk: Arc::clone(&desk),
                owner,
            };
            places[id.index()] = if owner < plan.held.len() {
                Place::Slots(sitting)
            } else {
                Place::Guest(sitting)
            };
            seats.push(seat);
        }
        slots.push(ProcessorSlots {
            cpu: config.processors[plan.processor.index()],
            plan,
            seats,
            bell,
            desk,
            confined,
        });
    }
    (places, slots)
}

/// What is said of a reservation when the run is over: all but what is reserved, which may change meanwhile.
pub(crate) struct Granted {
    enforcer: Enforcer,
    cpu: usize,
    grade: Grade,
}

impl Granted {
    pub(crate) fn of(
        activity: &Activity,
        grade: Option<Grade>,
        config: &LiveConfig,
    ) -> Option<Self> {
        Some(Self {
            enforcer: activity.reservation?.enforcer,
            cpu: config.processors[activity.processor.index()],
            grade: grade?,
        })
    }

    /// As a grant of what is held now. Somebody may have come meanwhile: it is as good as its worst moment that was seen.
    pub(crate) fn of_reservation(self, reservation: Reservation) -> Grant {
        let grade = match (self.enforcer, self.grade) {
            (Enforcer::Slots, Grade::Enforced) => {
                let names = outranking(&proc::strangers_on(self.cpu));
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                Grade::below(&names)
            }
            (_, grade) => grade,
        };
        Grant {
            reservation,
            enforcer: self.enforcer,
            grade,
        }
    }
}
