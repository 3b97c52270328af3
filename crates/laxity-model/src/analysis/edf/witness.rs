//! From an overload to a job that is late.

use alloc::vec::Vec;

use super::qpa::{Latest, latest_overload};
use super::set::Set;
use crate::Span;
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Doubt, Preemption, Result, Task, Verdict, Witness};

/// What an overload by `time`, the latest, proves on a supply that is attained.
///
/// Every window shorter than the shortest overfull one is met. So in its worst case, whatever is late is due at its very end;
/// and if several jobs are, the one that is released last can be the one that runs last.
pub(super) fn judge<S: SupplyBound>(
    tasks: &[Task],
    set: &Set,
    supply: &S,
    time: u64,
) -> Result<Verdict> {
    let certain = without_uncertain_blocking(tasks);
    let Some(certain) = certain.map(|tasks| Set::new(&tasks)).transpose()? else {
        return shortest(tasks, set, supply, Latest::Overload(time));
    };
    let certain = certain.by_deadline();
    let latest = latest_overload(&certain, supply, 0, time)?;
    shortest(tasks, &certain, supply, latest)
}

/// What the latest overload, of a set where all who block are sure to be able to, proves.
fn shortest<S: SupplyBound>(
    tasks: &[Task],
    set: &Set,
    supply: &S,
    latest: Latest,
) -> Result<Verdict> {
    // No overload up to here.
    let mut met = 0;
    let mut overload = match latest {
        Latest::Clear => return Ok(Verdict::Unknown(Doubt::Sufficient)),
        Latest::TooLong => return Ok(Verdict::Unknown(Doubt::TooLong)),
        // The same is due by the deadline before, and less is given.
        Latest::Overload(time) => set.last_due_by(time),
    };
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

/// The set without the regions of those who may have to run for a while before their longest one begins: they may then be due
/// too early to block. `None` if there are none.
fn without_uncertain_blocking(tasks: &[Task]) -> Option<Vec<Task>> {
    let uncertain = |task: &Task| matches!(task.preemption(), Preemption::Fixed { longest, .. } if longest < task.cost());
    if !tasks.iter().any(uncertain) {
        return None;
    }
    let without = |task: &Task| {
        if uncertain(task) {
            task.without_regions()
        } else {
            *task
        }
    };
    Some(tasks.iter().map(without).collect())
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
