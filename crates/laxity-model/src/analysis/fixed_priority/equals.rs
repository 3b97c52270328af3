//! Equal priorities, first in, first out among them.

use core::cmp::Ordering;

use super::requests::{HORIZON, Requests, requested, requests_of};
use super::window::{Budget, Point, TOO_LONG, Window, repetition, window_for};
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Bound, Doubt, Overflow, Response, Result, Task};
use crate::{Service, Span};

/// The response time of a task among others of its priority, where who is released first goes first (`SCHED_FIFO`, whose jobs neither sleep nor yield before they are done), below `interferers` that are more urgent, all
/// of whose jobs go first that are released before its own completes; and once in a busy window for `blocking` of service by others.
///
/// A job waits for those of `equals` that are released no later than itself, and not for what they release after it, so this is no more than
/// [`response_time_among`](super::response_time_among) with all of them as interferers. Ties are broken against the task. **Exact** on a supply that is
/// [attained](SupplyBound::is_attained), and else a bound. Without equals it is what that one says. [`Response::Unbounded`] and [`Doubt::TooLong`] as for
/// [`response_times`](super::response_times).
///
/// **Cost**: O(n) for each release of its priority in the busy window, and for each pass.
///
/// **Source**: George, Rivierre, Spuri, "Preemptive and non-preemptive real-time uniprocessor scheduling", INRIA RR-2966, 1996 (fixed priorities, ties in the order of release: every
/// release in the busy window is looked at); Bedarkar and others, RTSS 2022, as for [`fifo`](super::fifo). The job that is released last, at A, is complete at the least F with
/// sbf(F) ≥ B + Σ over its priority ⌈(A + 1 + J)/T⌉ C + Σ over the more urgent ⌈(F + J)/T⌉ C. Its own last region is heeded as in the busy windows of others.
///
/// ```
/// use laxity_model::analysis::{Task, fixed_priority, supply::Dedicated};
/// use laxity_model::{Service, Span};
///
/// let task = |cost, period| Task::new(Service::from_millis(cost), Span::from_millis(period));
/// // What comes every 4 ms goes before the long job once, and not each time it comes until that is done.
/// let (long, often) = (task(8, 20)?, task(1, 4)?);
/// let bound = fixed_priority::response_time_among_equals(&long, &[often], &[], Service::ZERO, &Dedicated)?;
/// assert_eq!(bound.bound().map(|bound| bound.from_arrival), Some(Span::from_millis(9)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn response_time_among_equals<S: SupplyBound>(
    task: &Task,
    equals: &[Task],
    interferers: &[Task],
    blocking: Service,
    supply: &S,
) -> Result<Response> {
    let budget = Budget::default();
    // A job that is late by all its jitter has as many of its own before it as if none were late; one that is not has those besides that were.
    let longest = |own: &Task| {
        let all = interferers.iter().chain([own]).chain(equals);
        let (rows, load) = requests_of(all, supply.rate())?;
        if load.is_gt() {
            return Ok(Err(Response::Unbounded));
        }
        let level = Level {
            rows: &rows,
            above: interferers.len(),
            regions: (blocking, task.tail()),
        };
        let found = level.longest((supply, load), &budget)?;
        Ok(found.ok_or(Response::Unknown(Doubt::TooLong)))
    };
    let (late, in_time) = match (longest(&task.with_jitter(Span::ZERO))?, longest(task)?) {
        (Ok(late), Ok(in_time)) => (late, in_time),
        (Err(none), _) | (_, Err(none)) => return Ok(none),
    };
    let from_arrival = late.checked_add(task.jitter());
    Ok(Response::Bounded(Bound {
        from_arrival: from_arrival.ok_or(Overflow("a response time"))?,
        from_release: in_time,
    }))
}

/// A priority: the rows of the more urgent, of the task itself, and of its equals.
struct Level<'a> {
    rows: &'a [Requests],
    above: usize,
    /// The blocking, and the task's tail.
    regions: (Service, Service),
}

impl Level<'_> {
    /// The longest from a release of the task to its completion, in a busy window of this priority; `None` if that is not found.
    fn longest<S: SupplyBound>(
        &self,
        (supply, load): (&S, Ordering),
        budget: &Budget,
    ) -> Result<Option<Span>> {
        let level = &self.rows[self.above..];
        let (blocking, tail) = (self.regions.0.as_nanos(), self.regions.1.as_nanos());
        let with_own = &self.rows[..=self.above];
        let mut window = Window::new(with_own, self.regions, (supply, load), 0, budget);
        let (mut release, mut longest, mut repeats) = (0_u64, 0_u64, None);
        loop {
            if !budget.allows_pass(level.len()) {
                return Ok(None);
            }
            let asked = requested(level, release + 1);
            let whole = blocking.checked_add(asked.service);
            let whole = whole.filter(|whole| *whole <= HORIZON).ok_or(TOO_LONG)?;
            let begun = whole - tail;
            let Point::At { demand, .. } = window.fixed_point(begun, begun, u64::MAX)? else {
                return Ok(None);
            };
            let complete = window_for(supply, demand + tail)?;
            longest = longest.max(complete.saturating_sub(release));
            let Point::At { window: idle, .. } =
                window.fixed_point(whole, demand + tail, u64::MAX)?
            else {
                return Ok(None);
            };
            if release == 0 && load.is_eq() {
                // From the next release on there are two ticks of service, and more.
                let periods = self.rows.iter().map(Requests::period);
                let repeat = repetition(supply, periods);
                repeats = repeat.and_then(|length| length.checked_add(asked.until));
            }
            release = asked.until;
            if idle <= release || repeats.is_some_and(|end| release > end) {
                return Ok(Some(Span::from_nanos(longest)));
            }
        }
    }
}
