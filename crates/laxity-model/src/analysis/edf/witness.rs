//! From an overload to a job that is late.

use super::qpa::{Latest, latest_overload};
use super::set::Set;
use crate::Span;
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Result, Task, Verdict, Witness};

/// What an overload by `time`, the latest, proves on a supply that is attained: a job that is due at the end of the shortest overfull window.
///
/// Every window shorter than that one is met. So in its worst case, whatever is late is due at its very end;
/// and if several jobs are, the one that is released last can be the one that runs last.
pub(super) fn judge<S: SupplyBound>(
    tasks: &[Task],
    set: &Set<'_>,
    supply: &S,
    time: u64,
) -> Result<Verdict> {
    // No overload up to here.
    let mut met = 0;
    // The same is due by the deadline before, and less is given.
    let mut overload = set.last_due_by(time);
    while met + 1 < overload {
        // The first overload is most often early.
        let middle = met + (overload - met).div_ceil(4);
        match latest_overload(set, supply, met, middle)? {
            Latest::Clear if set.last_due_by(overload - 1) <= middle => break,
            Latest::Clear => met = middle,
            Latest::Overload(time) => overload = set.last_due_by(time),
            Latest::TooLong => break,
        }
    }
    Ok(Verdict::NotSchedulable(last_due_by(tasks, overload)))
}

/// Of the jobs that are due last by this time, the one that is released last.
fn last_due_by(tasks: &[Task], time: u64) -> Witness {
    let jobs = tasks.iter().enumerate().filter_map(|(task, of)| {
        let [deadline, jitter, period] =
            [of.deadline(), of.jitter(), of.period()].map(Span::as_nanos);
        let after = time.checked_sub(deadline - jitter)?;
        let due = time - after % period;
        Some((due, due.saturating_sub(deadline), task))
    });
    let (due, release, task) = jobs.max().unwrap_or_default();
    Witness {
        task,
        release: Span::from_nanos(release),
        due: Span::from_nanos(due),
    }
}
