//! Whether there is time for another upcall.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::analysis::{Task, TaskError};
use crate::executor::Unschedulable;
use crate::executor::linked::Linked;
use crate::program::upcall::Timing;
use crate::{Service, Span};

/// What an executor adds to each call, and to each of its quanta.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overhead {
    /// A call may begin so long after its release though nobody else is at work: how late timers fire and their threads wake.
    pub late: Span,
    /// What releasing, choosing and entering a call takes.
    pub each: Service,
    /// What a quantum takes beside its work, each of a call: to look, choose, enter and measure it.
    pub quantum: Service,
}

impl Overhead {
    /// What so many calls take beside their work, of so many quanta in all.
    #[must_use]
    pub const fn of(&self, calls: u32, quanta: u64) -> Service {
        let each = self.each.as_nanos().saturating_mul(calls as u64);
        let quanta = self.quantum.as_nanos().saturating_mul(quanta);
        Service::from_nanos(each.saturating_add(quanta))
    }
}

impl Default for Overhead {
    /// Timers of a real-time thread are not later than 0.1 ms on a processor that stays awake; some thousand instructions; and a few readings of the clock.
    fn default() -> Self {
        Self {
            late: Span::from_micros(100),
            each: Service::from_micros(2),
            quantum: Service::from_nanos(500),
        }
    }
}

/// Why an upcall is not admitted. Those that were there before are as they were.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{bottleneck} may be late{}: {reason}{}", beside(asked, bottleneck), proposal(asked, *fits))]
pub struct NotAdmitted {
    /// The new upcall.
    pub asked: String,
    /// The upcall that would be late; the new one, or one that was there before.
    pub bottleneck: String,
    /// What is missing, with the amounts.
    pub reason: String,
    /// The most that a unit of the new one may take for all to be in time; `None` if not even a nanosecond.
    pub fits: Option<Service>,
}

fn beside(asked: &str, bottleneck: &str) -> String {
    match asked == bottleneck {
        true => String::new(),
        false => alloc::format!(" if {asked} is admitted"),
    }
}

fn proposal(asked: &str, most: Option<Service>) -> String {
    match most {
        Some(most) => alloc::format!("; with at most {most} a unit {asked} would fit"),
        None => alloc::format!("; whatever a unit takes, {asked} would not fit"),
    }
}

/// What an upcall is to analysis, whose units take at most this much each.
///
/// # Errors
///
/// Numbers that are no task.
pub fn task(timing: &Timing, unit: Service, deadline: Span) -> Result<Task, TaskError> {
    let batch = unit.as_nanos().saturating_mul(timing.batch.get().into());
    timing.task(Service::from_nanos(batch), deadline)
}

/// Whether all upcalls are in time when another one comes, by what the policy says of a set: all there would be with the new one, and the names of those that come before it.
///
/// # Errors
///
/// Who would be late, and how much a unit of the new one may take so that nobody is.
pub fn admit_among(
    (names, with): (&[&str], &dyn Fn(Task) -> Vec<Linked>),
    (name, timing, unit, deadline): (&str, &Timing, Service, Span),
    overhead: Overhead,
    policy: &dyn Fn(&[Linked]) -> Result<(), Unschedulable>,
) -> Result<Task, NotAdmitted> {
    let refused = |bottleneck: &str, reason: String, fits| NotAdmitted {
        asked: name.to_string(),
        bottleneck: bottleneck.to_string(),
        reason,
        fits,
    };
    let invalid = |error: TaskError| refused(name, error.to_string(), None);
    let own = task(timing, unit, deadline).map_err(invalid)?;
    let with = |own: Task| policy(&charged(with(own), overhead));
    let Err(unschedulable) = with(own) else {
        return Ok(own);
    };
    let does = |unit| task(timing, unit, deadline).is_ok_and(|own| with(own).is_ok());
    let bottleneck = match unschedulable.bottleneck {
        Some(place) => names.get(place).unwrap_or(&name),
        None => name,
    };
    Err(refused(bottleneck, unschedulable.reason, most(unit, does)))
}

/// These, with what the executor adds to their calls, and to the quantum that others may wait for.
#[must_use]
pub fn charged(mut all: Vec<Linked>, overhead: Overhead) -> Vec<Linked> {
    for linked in &mut all {
        let task = linked.task;
        let beside = overhead.of(linked.calls, linked.quanta);
        let cost = task.cost().checked_add(beside);
        let late = task.jitter().checked_add(overhead.late);
        let costly = task.with_cost(cost.unwrap_or(Service::MAX));
        // Who waits for a quantum waits for its look, too, and where that is a call's first, for the call's begin.
        linked.task = costly
            .unwrap_or(task)
            .with_longer_regions(overhead.of(1, 1))
            .with_jitter(late.unwrap_or(Span::MAX));
    }
    all
}

/// The most whole microseconds below `asked` that do, or less than one where none does.
fn most(asked: Service, does: impl Fn(Service) -> bool) -> Option<Service> {
    let below = |grain: Service, asked: u64| {
        let (mut least, mut most) = (0, asked / grain.as_nanos());
        while least < most {
            let middle = least + (most - least).div_ceil(2);
            if does(grain * middle) {
                least = middle;
            } else {
                most = middle - 1;
            }
        }
        (least > 0).then(|| grain * least)
    };
    let asked = asked.as_nanos();
    below(Service::from_micros(1), asked)
        .or_else(|| below(Service::from_nanos(1), asked.min(1_000)))
}
