//! Who goes first where somebody runs: a halt of the machine that pushes a job into what these do next costs it that as well.

use alloc::vec::Vec;

use super::ranks;
use crate::request::Work;
use crate::{Activity, Enforcer, Placement, Program, Span};

/// Above whatever has a `SCHED_FIFO` priority.
const BY_DEADLINE: u8 = 100;

/// By [`ActivityId`](crate::ActivityId): the work that is declared of those that may go first where it runs. Of who has a reservation nothing: it has what is reserved.
#[must_use]
pub fn above(program: &Program) -> Vec<Vec<Work>> {
    let each = program.numbered().map(|(own, activity)| {
        let others = program.work.iter().filter(|(other, _)| *other != own);
        let above = others.filter(|(other, _)| {
            let other = program.activities.get(other.index());
            activity.reservation.is_none() && other.is_some_and(|other| goes_first(other, activity))
        });
        above.map(|(_, work)| *work).collect()
    });
    each.collect()
}

/// Equals may.
fn goes_first(one: &Activity, own: &Activity) -> bool {
    let is_outside = |of: &Activity| matches!(of.placement, Placement::External);
    let is_here = one.processor == own.processor && !is_outside(one) && !is_outside(own);
    is_here && rank(one) >= rank(own)
}

/// What takes turns on an executor is below all: it is not known here how that is ranked.
fn rank(activity: &Activity) -> Option<u8> {
    let own = match activity.placement {
        Placement::On { .. } => None,
        placement => ranks::of_placement(placement).real_time(),
    };
    let reserved = activity.reservation.map(|request| match request.enforcer {
        Enforcer::Slots => ranks::OCCUPANT,
        Enforcer::Deadline => BY_DEADLINE,
    });
    own.max(reserved)
}

/// Nobody is late by more because of one halt: those for whom that came out take all there is, and the halt is not why.
const MOST: Span = Span::from_secs(10);

/// By how much a halt of this length delays whoever these go before: the least d for which d = h + Σ ⌈d / T⌉ C, as a response time is found (Joseph, Pandya, "Finding Response Times in a
/// Real-Time System", 1986).
pub(super) fn behind(halted: Span, above: &[Work]) -> Span {
    let mut delayed = halted;
    loop {
        let meanwhile = above.iter().map(|work| {
            let jobs = delayed.as_nanos().div_ceil(work.period.as_nanos().max(1));
            work.service.as_dedicated_span() * jobs
        });
        let next = meanwhile.fold(halted, |all, one| all + one);
        if next >= MOST {
            // They leave nothing: who waits for them is late with and without the halt.
            return halted;
        }
        if next <= delayed {
            return next;
        }
        delayed = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_halt_that_pushes_a_job_into_what_goes_first_costs_that_too() {
        let of = |service_ms, period_ms| Work {
            service: crate::Service::from_millis(service_ms),
            period: Span::from_millis(period_ms),
        };
        let ms = Span::from_millis;
        let table = [
            (&[][..], 2, 2),
            (&[of(5, 10)], 2, 7),
            (&[of(5, 10)], 6, 16),
            (&[of(2, 5), of(1, 20)], 1, 4),
            (&[of(10, 10)], 1, 1),
            (&[of(6, 5)], 1, 1),
            (&[of(1, 5)], 20_000, 20_000),
            (&[of(5, 10)], 0, 0),
        ];
        for (above, halted, expected) in table {
            assert_eq!(
                behind(ms(halted), above),
                ms(expected),
                "{above:?} {halted}"
            );
        }
    }
}
