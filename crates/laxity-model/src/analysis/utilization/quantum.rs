//! How long a quantum may be by RMDP, and what it costs.

use super::{fraction, is_in_scope, liu_layland_bound, longest_region, rmdp_accepts};
use crate::Service;
use crate::analysis::Task;

/// The longest quantum c with which [`rmdp`](super::rmdp) accepts the tasks, whatever regions they have now; never longer than the
/// longest execution time, because a quantum is a part of a job. `None` if the set is out of the test's scope, empty, or too full for
/// rate monotonic scheduling without any quantum (by Liu and Layland's bound).
///
/// Gopalakrishnan, Parulkar, "Real-time Upcalls", §5.3, solved for c. The longest region by exact analysis, task by task, is
/// [`fixed_priority::longest_regions`](crate::analysis::fixed_priority::longest_regions).
///
/// Cost: 64 times that of `rmdp` at most.
///
/// ```
/// use laxity_model::analysis::{Task, utilization};
/// use laxity_model::{Service, Span};
///
/// // Two upcalls, 10 ms every 40 and 30 ms every 90: 58.3 % of the 82.8 % that two tasks may take.
/// let (c1, t1) = (Service::from_millis(10), Span::from_millis(40));
/// let (c2, t2) = (Service::from_millis(30), Span::from_millis(90));
/// let tasks = [Task::new(c1, t1)?, Task::new(c2, t2)?];
/// let quantum = utilization::longest_quantum(&tasks).expect("some");
/// assert_eq!(quantum.as_micros(), 17_646); // (0.82842 − 0.58333) / (1/40 − 1/90) ms
/// # Ok::<(), laxity_model::analysis::TaskError>(())
/// ```
#[must_use]
pub fn longest_quantum(tasks: &[Task]) -> Option<Service> {
    let longest = tasks.iter().map(|task| task.cost().as_nanos()).max()?;
    let bound = liu_layland_bound(tasks.len());
    let accepts = |quantum| rmdp_accepts(tasks, Service::from_nanos(quantum), bound);
    if !is_in_scope(tasks) || !accepts(0) {
        return None;
    }
    if accepts(longest) {
        return Some(Service::from_nanos(longest));
    }
    let (mut within, mut beyond) = (0, longest);
    while beyond - within > 1 {
        let middle = within + (beyond - within) / 2;
        if accepts(middle) {
            within = middle;
        } else {
            beyond = middle;
        }
    }
    Some(Service::from_nanos(within))
}

/// c(1/T₁ − 1/Tₙ): what RMDP gives away of the utilization that plain rate monotonic scheduling could use, for the quantum that the
/// tasks have (their longest region). In parts per million of a processor, rounded up.
///
/// Gopalakrishnan, Parulkar, "Real-time Upcalls", §5.3. Cost: O(n).
///
/// ```
/// use laxity_model::analysis::{Preemption, Task, utilization};
/// use laxity_model::{Service, Span};
///
/// // The periods of the paper's first experiment, 40 to 90 ms, and a quantum of 2 ms: 2 (1/40 − 1/90).
/// let longest = Service::from_millis(2);
/// let mut tasks = [40, 50, 60, 70, 80, 90].map(|period| {
///     let task = Task::new(Service::from_millis(5), Span::from_millis(period));
///     let quantum = Preemption::Fixed { longest, last: longest };
///     task.and_then(|task| task.with_preemption(quantum)).expect("a task")
/// });
/// assert_eq!(utilization::given_away_ppm(&tasks), 27_778);
/// ```
#[must_use]
pub fn given_away_ppm(tasks: &[Task]) -> u64 {
    let periods = tasks.iter().map(|task| task.period().as_nanos());
    let (Some(shortest), Some(longest)) = (periods.clone().min(), periods.max()) else {
        return 0;
    };
    let quantum = u128::from(longest_region(tasks).as_nanos());
    let above = quantum * u128::from(longest - shortest);
    let below = u128::from(shortest) * u128::from(longest);
    let (whole, mut rest) = (above / below, above % below);
    // A million times the rest must fit.
    let shift = u128::BITS.saturating_sub(below.leading_zeros() + 100);
    rest = rest.div_ceil(1 << shift);
    let part = (rest * 1_000_000).div_ceil(below >> shift);
    u64::try_from(whole * 1_000_000 + part).unwrap_or(u64::MAX)
}

/// c/T.
pub(super) fn share(quantum: Service, task: &Task) -> crate::analysis::Fraction {
    fraction(quantum.as_nanos(), task.period())
}
