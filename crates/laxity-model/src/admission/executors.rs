//! What the policies of executors say of those who are placed on them.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::above::Above;
use super::{Prediction, RequestAdmission, Supply};
use crate::analysis::supply::{Dedicated, ExplicitDeadline, KernelDeadline, Residual, SupplyBound};
use crate::executor::Unschedulable;
use crate::{Activity, ActivityId, Enforcer, ExecutorId, Grade, Program, ReservationRequest, Span};

/// What became of the tasks on one executor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExecutorAdmission {
    /// Which.
    pub executor: ExecutorId,
    /// The activity that it is.
    pub activity: ActivityId,
    /// How firmly its policy's promise to them holds, or why the policy makes none.
    pub answer: Result<Grade, Unschedulable>,
    /// The bottleneck, where the policy names one.
    pub bottleneck: Option<ActivityId>,
}

/// Asks the policy of every executor on which tasks are declared.
pub(super) fn executors(
    program: &Program,
    requests: &[RequestAdmission],
    supply: &Supply,
) -> Vec<ExecutorAdmission> {
    let declared = program.executors().filter_map(|(executor, activity)| {
        let tasks: Vec<ActivityId> = program.tasks_on(executor).map(|(id, _)| id).collect();
        if tasks.is_empty() {
            return None;
        }
        let request = requests.iter().find(|r| r.activity == activity);
        let granted = request.and_then(|request| request.asked.as_ref().ok());
        let holder = &program.activities[activity.index()];
        let place = supply.processors.get(holder.processor.index());
        let slots = place.and_then(|place| Some((place, place.slots.as_ref().ok()?)));
        let above = slots.map_or(Above::nobody(), |(place, slots)| {
            Above::of(program, place, slots)
        });
        let late = |edges: Span| supply.timer_grain.checked_add(edges).unwrap_or(Span::MAX);
        let answer = match (holder.reservation, granted) {
            (None, _) => program
                .admit_on(executor, &Dedicated, late(Span::ZERO))
                .map(|()| without_reservation(holder)),
            (Some(asked), Some(granted)) => {
                let late = late(slots.map_or(Span::ZERO, |(_, slots)| slots.jitter));
                let bound = reserved(asked, &above, supply);
                let answer = bound.and_then(|bound| program.admit_on(executor, &bound, late));
                answer.map(|()| with_reservation(program, executor, &above, (asked, granted)))
            }
            // That is refused itself, and said there.
            (Some(_), None) => return None,
        };
        let bottleneck = answer.as_ref().err().and_then(|why| why.bottleneck);
        Some(ExecutorAdmission {
            executor,
            activity,
            bottleneck: bottleneck.and_then(|task| tasks.get(task).copied()),
            answer,
        })
    });
    declared.collect()
}

/// A whole processor was not enough to refuse it; but it is not promised one.
fn without_reservation(holder: &Activity) -> Grade {
    let mut reason = String::from("`");
    reason.push_str(&holder.name);
    reason.push_str("` has no reservation: whatever ranks above it takes of its time");
    Grade::Unenforced { reason }
}

/// How firm the promise of the policy is on a reservation on which it makes one.
fn with_reservation(
    program: &Program,
    executor: ExecutorId,
    above: &Above,
    (asked, granted): (ReservationRequest, &Prediction),
) -> Grade {
    let unenforced = |reason: String| Grade::Unenforced { reason };
    if let Grade::Unenforced { .. } = granted.grade {
        return granted.grade.clone();
    }
    if let Some(other) = program.undeclared_on(executor).next() {
        let name = &other.name;
        return unenforced(format!(
            "`{name}` takes turns there too, and how much it takes is not declared"
        ));
    }
    if !asked.begins_at_start {
        return unenforced("its reservation begins only when it asks for it".into());
    }
    if asked.enforcer == Enforcer::Slots && above.is_unknown() {
        return unenforced("what ranks above its slots takes an amount that is not known".into());
    }
    Grade::Enforced
}

/// What the holder of a reservation gets, under work that is known to run above the slots of its processor.
fn reserved(
    asked: ReservationRequest,
    above: &Above,
    supply: &Supply,
) -> Result<Box<dyn SupplyBound>, Unschedulable> {
    let refused = |error: &dyn core::fmt::Display| Unschedulable {
        bottleneck: None,
        reason: error.to_string(),
    };
    match asked.enforcer {
        Enforcer::Slots => {
            let slots = ExplicitDeadline::continuous(asked.reservation);
            let left = Residual::new(slots, above.tasks()).map_err(|error| refused(&error))?;
            Ok(Box::new(left))
        }
        Enforcer::Deadline => {
            let deadline = supply.deadline.as_ref().map_err(|why| refused(why))?;
            let bound = KernelDeadline::among_others(asked.reservation, deadline.tick);
            Ok(Box::new(bound.map_err(|error| refused(&error))?))
        }
    }
}
