//! First in, first out, among all tasks.

use super::requests::{Requests, requested, requests_of};
use super::window::{MOST_PASSES, repetition, window_for};
use crate::Span;
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Bound, Budget, Doubt, Overflow, Response, Result, Task};

/// How long any job takes at most where all tasks' jobs run in the order of release, each to its end: a queue of work, or `SCHED_FIFO` at one priority where each job is over before the next of its
/// thread.
///
/// Ties are broken against every job. `from_release` is exact, as the longest of all tasks' jobs, on a supply that is
/// [attained](SupplyBound::is_attained), and else a bound; `from_arrival` adds the longest jitter, and is a bound. Regions do not
/// matter. [`Response::Unbounded`] and [`Doubt::TooLong`] as for [`response_times`](super::response_times). With no tasks at all, zero.
///
/// **Cost**: O(n) for each release in the busy window.
///
/// **Source**: Bedarkar, Vardishvili, Bozhko, Maida, Brandenburg, "From intuition to Coq: a case study in verified response-time analysis of
/// FIFO scheduling", RTSS 2022: the job that is released last at A is complete once all that was released in [0, A] is. On a supply,
/// that is the least F with sbf(F) ≥ Σ ⌈(A + 1 + J)/T⌉ C.
///
/// ```
/// use laxity_model::analysis::{Task, fixed_priority, supply::Dedicated};
/// use laxity_model::{Service, Span};
///
/// let task = |cost, period| Task::new(Service::from_micros(cost), Span::from_micros(period));
/// let tasks = [task(79, 120)?, task(11, 34)?, task(1, 190)?];
/// let response = fixed_priority::fifo(&tasks, &Dedicated)?;
/// assert_eq!(response.bound().map(|bound| bound.from_release), Some(Span::from_micros(91)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn fifo<S: SupplyBound>(tasks: &[Task], supply: &S) -> Result<Response> {
    let (requests, load) = requests_of(tasks, supply.rate())?;
    if load.is_gt() {
        return Ok(Response::Unbounded);
    }
    let bounded = |from_release: u64| {
        let from_release = Span::from_nanos(from_release);
        let jitter = tasks.iter().map(Task::jitter).max();
        let from_arrival = from_release.checked_add(jitter.unwrap_or(Span::ZERO));
        let from_arrival = from_arrival.ok_or(Overflow("a response time"))?;
        Ok(Response::Bounded(Bound {
            from_arrival,
            from_release,
        }))
    };
    let (mut release, mut longest, mut repeats) = (0_u64, 0_u64, None);
    let budget = Budget::default();
    for _ in 0..MOST_PASSES {
        if !budget.allows_pass(requests.len()) {
            break;
        }
        let asked = requested(&requests, release + 1);
        let complete = window_for(supply, asked.service)?;
        longest = longest.max(complete.saturating_sub(release));
        if release == 0 && load.is_eq() {
            // From the next release on there are two ticks of service, and more.
            repeats = repetition(supply, requests.iter().map(Requests::period))
                .and_then(|length| length.checked_add(asked.until));
        }
        // The next release is at the end of the longest window in which no more is asked for.
        release = asked.until;
        if complete <= release || repeats.is_some_and(|end| release > end) {
            return bounded(longest);
        }
    }
    Ok(Response::Unknown(Doubt::TooLong))
}
