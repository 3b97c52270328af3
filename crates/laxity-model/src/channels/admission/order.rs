//! Fixed priorities: where a newcomer has its place, and within which time its messages go there.

use crate::analysis::fixed_priority::{response_time_among, response_time_within};
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Bound, Budget, Response, Result, Search, Task};
use crate::{Service, Span};

/// The highest place that a newcomer can have among channels by priority, the highest first, and how long its messages take there at the most. [`Search::None`] where somebody
/// misses its deadline wherever the newcomer is, or it would take for ever.
///
/// *D_order* (Kandlur, Shin, Ferrari, "Real-time communication in multi-hop networks", 1991), with packets that are not interrupted: with the newcomer above all, those that meet
/// their deadlines, from the last one up, stay below it; the first that does not is above it, and has to wait for its region only. Who can have it above can have it below: a region is no longer than a message. All messages of the
/// busy window are looked at, since not the first one need take longest (Davis, Burns, Bril, Lukkien, "Controller Area Network (CAN) schedulability analysis: refuted, revisited and revised", 2007).
pub(super) fn place<S: SupplyBound>(
    tasks: &[Task],
    newcomer: &Task,
    never_due: Service,
    supply: &S,
    budget: &Budget,
) -> Result<Search<(usize, Span)>> {
    let within = |task: &Task, above: &[Task], blocking| {
        Ok(
            match response_time_within(task, above, blocking, supply, budget)? {
                Response::Bounded(Bound { from_arrival, .. }) => Ok(Some(from_arrival)),
                Response::Unbounded => Ok(None),
                Response::Unknown(doubt) => Err(doubt),
            },
        )
    };
    let is_met =
        |task: &Task, within: Option<Span>| within.is_some_and(|time| time <= task.deadline());
    // Of those below, the newcomer is among those above them.
    let mut above = tasks.to_vec();
    above.push(*newcomer);
    let (mut place, mut blocking) = (tasks.len(), never_due);
    while let Some(last) = place.checked_sub(1) {
        let task = above.remove(last);
        match within(&task, &above, blocking)? {
            Ok(time) if is_met(&task, time) => {}
            Ok(_) => break,
            Err(doubt) => return Ok(Search::Unknown(doubt)),
        }
        blocking = blocking.max(task.longest_region());
        place = last;
    }
    let own = match within(newcomer, &tasks[..place], blocking)? {
        Ok(Some(own)) => own,
        Ok(None) => return Ok(Search::None),
        Err(doubt) => return Ok(Search::Unknown(doubt)),
    };
    blocking = blocking.max(newcomer.longest_region());
    for (above, task) in tasks[..place].iter().enumerate().rev() {
        match within(task, &tasks[..above], blocking)? {
            Ok(time) if is_met(task, time) => {}
            Ok(_) => return Ok(Search::None),
            Err(doubt) => return Ok(Search::Unknown(doubt)),
        }
        blocking = blocking.max(task.longest_region());
    }
    Ok(Search::Found((place, own)))
}

/// Whether all channels by priority, the highest first, meet their deadlines.
pub(super) fn is_met<S: SupplyBound>(
    tasks: &[Task],
    never_due: Service,
    supply: &S,
) -> Result<bool> {
    let mut blocking = never_due;
    for (place, task) in tasks.iter().enumerate().rev() {
        let response = response_time_among(task, &tasks[..place], blocking, supply)?;
        let bound = response.bound();
        if bound.is_none_or(|bound| bound.from_arrival > task.deadline()) {
            return Ok(false);
        }
        blocking = blocking.max(task.longest_region());
    }
    Ok(true)
}
