//! How much to ask for.

use crate::analysis::{Overflow, Result};
use crate::base::number::last_of;
use crate::{Reservation, Service, Span};

/// The least X, a multiple of `granularity` (of 1 ns if that is zero), for which X every `period` is enough; `None` if not even the largest
/// multiple in the period is.
///
/// More X must not be less. What cannot be computed of a lesser X counts as too little. Cost: 64 questions at most.
///
/// ```
/// use laxity_model::analysis::supply::{ExplicitDeadline, least_reservation};
/// use laxity_model::analysis::{Task, edf};
/// use laxity_model::{Service, Span};
///
/// let tasks = [Task::new(Service::from_millis(1), Span::from_millis(10)).unwrap()];
/// let least = least_reservation(Span::from_millis(4), Span::from_micros(100), |asked| {
///     Ok(edf::test(&tasks, &ExplicitDeadline::continuous(asked))?.is_schedulable())
/// });
/// // Two slots and all of a third may have to come in 10 ms.
/// assert_eq!(least.unwrap().map(|found| found.service()), Some(Service::from_micros(500)));
/// ```
pub fn least_reservation(
    period: Span,
    granularity: Span,
    is_enough: impl Fn(Reservation) -> Result<bool>,
) -> Result<Option<Reservation>> {
    let grain = granularity.as_nanos().max(1);
    let of = |grains: u64| Reservation::new(Service::from_nanos(grains * grain), period).ok();
    let does = |grains: u64| of(grains).map_or(Ok(false), &is_enough);
    let all = period.as_nanos() / grain;
    if all == 0 || !does(all)? {
        return Ok(None);
    }
    let is_short = |grains| Ok::<_, Overflow>(!does(grains).unwrap_or(false));
    Ok(of(last_of(0, all, is_short)? + 1))
}
