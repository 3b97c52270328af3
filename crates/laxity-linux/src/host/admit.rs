//! From what was admitted to where each thread is: in a slot table, under the kernel's reservations, or free.

use std::sync::{Arc, Mutex};

use laxity_model::admission::{DeadlineState, SlotPlan};
use laxity_model::{Activity, ActivityId, Enforcer, Grade, Grant, Outside, Program, Reservation};

use super::LiveConfig;
use super::conclude::{Conclusion, Granted};
use crate::enforce::holding::{Booked, Bound, Place};
use crate::enforce::slots::{ChangeQueue, Doorbell, SlotBinding};

/// The slots of one processor.
pub(crate) struct ProcessorSlots {
    pub(crate) cpu: usize,
    pub(crate) plan: SlotPlan,
    pub(crate) bindings: Vec<Arc<SlotBinding>>,
    pub(crate) doorbell: Arc<Doorbell>,
    /// Where changes are asked for.
    pub(crate) changes: Arc<ChangeQueue>,
    /// The kinds of confinement that must be calibrated.
    pub(crate) confined: bool,
}

/// Where every activity is, and the slots.
pub(crate) fn prepare(
    program: &Program,
    (plans, deadline): (Vec<SlotPlan>, Option<DeadlineState>),
    config: &LiveConfig,
) -> (Vec<Place>, Vec<ProcessorSlots>) {
    let mut places = vec![Place::Free; program.activities.len()];
    if let Some(all) = deadline {
        let all = Arc::new(Mutex::new(all));
        for (activity, ..) in program.askers(Enforcer::Deadline) {
            let all = Arc::clone(&all);
            places[activity.index()] = Place::Deadline(Booked { activity, all });
        }
    }
    let mut slots = Vec::new();
    for plan in plans {
        let doorbell = Arc::new(Doorbell::default());
        let changes = Arc::new(ChangeQueue::new(Arc::clone(&doorbell)));
        let outside = |owner: &Activity| {
            let request = owner.reservation;
            request.map_or(Outside::AsPlaced, |request| request.outside)
        };
        let mut bindings = Vec::new();
        let mut confined = false;
        for (owner, id) in plan.owners.iter().enumerate() {
            let outside = outside(&program.activities[id.index()]);
            confined |= outside == Outside::Confined;
            let binding = Arc::new(SlotBinding::new(*id, outside, Arc::clone(&doorbell)));
            let bound = Bound {
                binding: Arc::clone(&binding),
                changes: Arc::clone(&changes),
                owner,
            };
            places[id.index()] = if owner < plan.held.len() {
                Place::Slots(bound)
            } else {
                Place::Guest(bound)
            };
            bindings.push(binding);
        }
        slots.push(ProcessorSlots {
            cpu: config.processors[plan.processor.index()],
            plan,
            bindings,
            doorbell,
            changes,
            confined,
        });
    }
    (places, slots)
}

/// What is said of a reservation when the run is over: all but what is reserved, which may change meanwhile.
pub(crate) struct Admitted {
    enforcer: Enforcer,
    holder: ActivityId,
    cpu: usize,
    grade: Grade,
}

impl Admitted {
    /// By activity, those that asked.
    pub(super) fn of_all(
        program: &Program,
        grades: Vec<Option<Grade>>,
        config: &LiveConfig,
    ) -> Vec<Option<Self>> {
        let graded = program.numbered().zip(grades);
        graded
            .map(|(activity, grade)| Self::of(activity, grade, config))
            .collect()
    }

    fn of(
        (holder, activity): (ActivityId, &Activity),
        grade: Option<Grade>,
        config: &LiveConfig,
    ) -> Option<Self> {
        Some(Self {
            enforcer: activity.reservation?.enforcer,
            holder,
            cpu: config.processors[activity.processor.index()],
            grade: grade?,
        })
    }

    /// Whom it is granted to, and where.
    pub(super) const fn granted(&self) -> Granted {
        (self.enforcer, self.holder, self.cpu)
    }

    /// As a grant of what is held now, with what was seen meanwhile.
    pub(super) fn concluded(
        self,
        (reservation, has_begun): (Reservation, bool),
        conclusion: &Conclusion,
    ) -> Grant {
        let granted = self.granted();
        Grant {
            reservation,
            enforcer: self.enforcer,
            grade: conclusion.grade(self.grade, granted),
            has_begun,
        }
    }
}
