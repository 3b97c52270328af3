//! Who of a program may be raised, and how far.

use alloc::format;
use alloc::string::String;

use super::{Placement, Program, executors};
use crate::analysis::Task;
use crate::base::port::PortKind;
use crate::policy::raise::{Highest, Raisable, Raises, Thread};
use crate::{ActivityId, PortId, Span};

/// So many raises of one activity may wait until its executor looks; what comes then is lost.
const UNHEARD: u32 = 64;

/// What was declared of an activity.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declared {
    activity: ActivityId,
    highest: Highest,
    /// By which its executor is told, if it is on one.
    port: PortId,
}

impl Program {
    /// Declares that an activity may be [raised](super::Context::raise), and how far; once for each. Admission counts it as if it always were.
    pub fn declare_raise(&mut self, activity: ActivityId, highest: Highest) {
        let port = match highest {
            Highest::Deadline(_) => self.add_port(PortKind::Queue { capacity: UNHEARD }),
            // Nobody uses it.
            Highest::Priority(_) => PortId(u16::MAX),
        };
        self.raises.push(Declared {
            activity,
            highest,
            port,
        });
    }

    /// How urgent those are that may be raised, when the program begins.
    pub fn raises(&self) -> Raises {
        let all = self.raises.iter().filter_map(|declared| {
            let raisable = match (declared.highest, self.placement(declared.activity)?) {
                (Highest::Priority(highest), Placement::Thread(own)) => {
                    Raisable::Thread(Thread::new(own, highest))
                }
                (Highest::Deadline(_), Placement::On { .. }) => Raisable::Handler(declared.port),
                _ => return None,
            };
            Some((declared.activity, raisable))
        });
        Raises::new(all)
    }

    /// Where an activity is at its most urgent.
    pub(crate) fn at_highest(&self, activity: ActivityId) -> Option<Placement> {
        let own = self.placement(activity)?;
        Some(match (own, self.highest(activity)) {
            (Placement::Thread(_), Some(Highest::Priority(highest))) => Placement::Thread(highest),
            (Placement::On { executor, task }, Some(Highest::Deadline(soonest))) => {
                let sooner = |task: Task| task.with_deadline(soonest.min(task.deadline())).ok();
                let task = task.and_then(sooner);
                Placement::On { executor, task }
            }
            _ => own,
        })
    }

    /// How an executor is told of the raises of an activity that is on it, and how soon after its release that is due at the soonest.
    pub(super) fn heard_by(&self, activity: ActivityId) -> Option<(PortId, Span)> {
        let declared = self.raises.iter().find(|one| one.activity == activity)?;
        match declared.highest {
            Highest::Deadline(soonest) => Some((declared.port, soonest)),
            Highest::Priority(_) => None,
        }
    }

    /// What is wrong with what is declared to be raised.
    pub(crate) fn wrong_raise(&self) -> Option<String> {
        self.raises.iter().find_map(|declared| {
            let id = declared.activity;
            let Some(activity) = self.activities.get(id.index()) else {
                return Some(format!(
                    "activity {id} may be raised, but does not exist"
                ));
            };
            let others = self.raises.iter().filter(|one| one.activity == id);
            let wrong = match (declared.highest, activity.placement) {
                _ if others.count() > 1 => "is declared to be raised twice",
                (Highest::Priority(_), Placement::Thread(_))
                    if activity.reservation.is_some() || self.constrained.contains(&id) =>
                {
                    "is to be raised, and has a reservation, or time constraints: these say when it runs"
                }
                (Highest::Priority(highest), Placement::Thread(own)) if highest < own => {
                    "is to be raised to less than its own priority"
                }
                (Highest::Priority(_), Placement::Thread(_)) => return None,
                (Highest::Deadline(soonest), Placement::On { .. }) if soonest.is_zero() => {
                    "is to be due as soon as it is released"
                }
                (Highest::Deadline(_), Placement::On { executor, .. }) => {
                    let executor = self.executors.get(executor.index());
                    if executor.is_none_or(executors::Declared::goes_by_deadlines) {
                        return None;
                    }
                    "is to be raised on an executor that does not go by deadlines"
                }
                _ => "is to be raised: only threads of the 32 priorities are by a priority, and only what is on an executor is by a deadline",
            };
            Some(format!("`{}` {wrong}", activity.name))
        })
    }

    fn highest(&self, activity: ActivityId) -> Option<Highest> {
        let mut all = self.raises.iter();
        all.find_map(|one| (one.activity == activity).then_some(one.highest))
    }

    fn placement(&self, activity: ActivityId) -> Option<Placement> {
        let activity = self.activities.get(activity.index())?;
        Some(activity.placement)
    }
}
