//! The demand bound function.

use crate::analysis::{Overflow, Task};
use crate::{Service, Span};

/// dbf(t): the service that jobs which are released, and are due, within one window of this length need at most.
///
/// Σ max(0, ⌊(t + J − D)/T⌋ + 1) · C: the first job of each task is released as late as possible, at the beginning of the
/// window. (Baruah, Mok, Rosier, "Preemptively scheduling hard-real-time sporadic tasks on one processor", RTSS 1990; jitter
/// as in Spuri, "Analysis of deadline scheduled real-time systems", INRIA report 2772, 1996.) Exact. O(n).
///
/// ```
/// use laxity_model::analysis::{Task, edf};
/// use laxity_model::{Service, Span};
///
/// let task = Task::new(Service::from_millis(2), Span::from_millis(8)).unwrap();
/// let ms = |ms| edf::demand(&[task], Span::from_millis(ms)).unwrap();
/// assert_eq!((ms(7), ms(8), ms(16)), (Service::ZERO, Service::from_millis(2), Service::from_millis(4)));
/// ```
pub fn demand(tasks: &[Task], window: Span) -> Result<Service, Overflow> {
    let mut demand = 0_u128;
    for task in tasks {
        let [window, deadline, jitter] =
            [window, task.deadline(), task.jitter()].map(|span| u128::from(span.as_nanos()));
        if let Some(after) = (window + jitter).checked_sub(deadline) {
            let jobs = after / u128::from(task.period().as_nanos()) + 1;
            demand = (jobs.checked_mul(u128::from(task.cost().as_nanos())))
                .and_then(|cost| demand.checked_add(cost))
                .ok_or(Overflow("the demand"))?;
        }
    }
    let nanos = u64::try_from(demand).map_err(|_| Overflow("the demand"))?;
    Ok(Service::from_nanos(nanos))
}
