//! What needs no analysis: tasks that are too much for a processor even if they have it to themselves.

use super::{Result, Task, Verdict, Witness};
use crate::Span;

/// What was judged; of a set whose numbers are too large for that, the job that is late whatever else there is.
pub(super) fn or_late_alone(tasks: &[Task], judged: Result<Verdict>) -> Result<Verdict> {
    judged.or_else(|overflow| {
        let late = late_alone(tasks).map(Verdict::NotSchedulable);
        late.ok_or(overflow)
    })
}

/// A job that misses its deadline on any supply, whoever else is there, because jobs of its own task need too much: C > D − J, or C > T.
/// Of the first such task the first such job, if its numbers fit.
///
/// That is all a test need know of a set whose numbers do not fit its sums. Time 0 is when the task's first job is released, J after it
/// arrived; jobs run in the order of arrival, so the k-th after it is complete (k + 1)·C later at the earliest, and is due at k·T + D − J.
fn late_alone(tasks: &[Task]) -> Option<Witness> {
    tasks.iter().enumerate().find_map(|(index, task)| {
        let [period, deadline, jitter] =
            [task.period(), task.deadline(), task.jitter()].map(Span::as_nanos);
        let first_due = deadline.saturating_sub(jitter);
        let late = match task.cost().as_nanos().checked_sub(first_due) {
            Some(1..) => 0,
            // Each job is later by C − T than the one before.
            _ => {
                let spare = first_due - task.cost().as_nanos();
                let more = task.cost().as_nanos().checked_sub(period)?;
                spare.checked_div(more)?.checked_add(1)?
            }
        };
        let arrived = late.checked_mul(period)?;
        Some(Witness {
            task: index,
            release: Span::from_nanos(arrived.saturating_sub(jitter)),
            due: Span::from_nanos(arrived.checked_add(deadline)?.saturating_sub(jitter)),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Service;

    fn task(cost: u64, period: u64, deadline: u64, jitter: u64) -> Task {
        let task = Task::new(Service::from_nanos(cost), Span::from_nanos(period));
        let task = task.and_then(|task| task.with_deadline(Span::from_nanos(deadline)));
        task.expect("a task").with_jitter(Span::from_nanos(jitter))
    }

    fn late(task: Task) -> Option<(u64, u64)> {
        late_alone(&[task]).map(|late| (late.release.as_nanos(), late.due.as_nanos()))
    }

    #[test]
    fn more_than_there_is_until_it_is_due_is_late() {
        assert_eq!(late(task(4, 9, 4, 0)), None);
        assert_eq!(late(task(5, 9, 4, 0)), Some((0, 4)));
        assert_eq!(late(task(4, 9, 4, 1)), Some((0, 3)));
        assert_eq!(late(task(1, 9, 4, 7)), Some((0, 0)));
        let huge = task(u64::MAX, 1, 1, 0);
        assert_eq!(late(huge), Some((0, 1)));
    }

    #[test]
    fn a_task_that_is_more_than_a_processor_falls_behind() {
        assert_eq!(late(task(9, 9, 30, 0)), None);
        // Complete at 10, 20, 30, and due at 30, 39, 48: the third job is at 30 of 48, the k-th at 10 (k + 1) of 9 k + 30.
        assert_eq!(late(task(10, 9, 30, 0)), Some((21 * 9, 21 * 9 + 30)));
        assert_eq!(late(task(u64::MAX, u64::MAX - 1, u64::MAX, 0)), None);
    }
}
