//! Which reservations would admit a processor's tasks.

use laxity_model::analysis::Overflow;
use laxity_model::analysis::devices::cheapest;
use laxity_model::analysis::supply::{SupplyBound, least_reservation};
use laxity_model::{Reservation, Service, Span};

use super::attempt::{Answer, Member, Method, admits};
use super::effort::Effort;
use super::{ReservationsPlan, Supply};
use crate::plan::Proposal;
use crate::runner::proposal::{GRAIN, is_sensible, periods};

/// The least reservations of the kind of a supply with which one of these methods admits the members; `None` if it is no reservation.
pub(super) fn least(
    members: &[Member],
    methods: &[Method],
    asked: Supply,
    effort: &Effort<'_>,
) -> Result<Option<ReservationsPlan>, Overflow> {
    let Some(period) = asked.reservation().map(Reservation::period) else {
        return Ok(None);
    };
    let is_enough = |reservation: Reservation| {
        let Some(supply) = asked.of(reservation) else {
            return Ok(false);
        };
        for method in methods {
            let question = |supply: &dyn SupplyBound| admits(*method, members, supply);
            if effort.ask_on(&*supply, question)? == Answer::Admits {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let least = least_reservation(period, GRAIN, is_enough)?.filter(|one| is_sensible(*one));
    let mut best = least;
    for period in periods() {
        // Only what is cheaper than the best is asked about.
        let below = best.map_or(period.as_full_service(), |best| less_than(best, period));
        let cap = Reservation::new(below, period);
        if cap.is_ok_and(|cap| is_enough(cap).unwrap_or(false)) {
            let found = least_reservation(period, GRAIN, is_enough)?;
            let found = found.filter(|one| is_sensible(*one));
            best = cheapest(best.into_iter().chain(found));
        }
    }
    Ok(Some(ReservationsPlan {
        period_ns: period.as_nanos(),
        least_service_ns: least.map(|least| least.service().as_nanos()),
        cheapest: best.map(Proposal::of),
    }))
}

/// The largest X in grains that takes no more of a processor at this period than another reservation.
fn less_than(other: Reservation, period: Span) -> Service {
    let nanos = |span: Span| u128::from(span.as_nanos());
    let share = u128::from(other.service().as_nanos()) * nanos(period) / nanos(other.period());
    let grains = u64::try_from(share / nanos(GRAIN)).unwrap_or(u64::MAX);
    GRAIN
        .as_full_service()
        .checked_mul(grains)
        .unwrap_or(Service::ZERO)
}
