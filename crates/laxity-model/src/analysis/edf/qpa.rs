//! The demand test: quick processor-demand analysis, with blocking, on any supply.

use core::cmp::Ordering;

use super::horizon::horizon;
use super::set::{Set, least_service, window_for};
use super::witness;
use crate::analysis::alone::or_late_alone;
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Budget, Doubt, Overflow, Result, Task, Verdict, Witness};
use crate::{Service, Span};

/// What a search found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Latest {
    /// No overload.
    Clear,
    /// The latest overload: more is due by then than the supply is sure to have given.
    Overload(u64),
    /// The budget ran out.
    TooLong,
}

/// Whether all deadlines are met under earliest deadline first, ties broken anyhow.
///
/// A set meets its deadlines on a supply if dbf(t) + B(t) ≤ sbf(t) for all t by which anything is due, where B(t) is the
/// longest [`Task::blocking`] of those tasks whose first deadline, D − J, is after t: nothing of a task that blocks can be
/// due by t, because its jobs run in the order of arrival. (Baruah, "The limited-preemption uniprocessor scheduling of
/// sporadic task systems", ECRTS 2005; jitter together with blocking: Zhang, Burns, "Schedulability analysis of EDF-scheduled
/// embedded real-time systems with resource sharing", ACM TECS 12(3), 2013; supplies: Shin, Lee, "Periodic resource model for
/// compositional real-time guarantees", RTSS 2003.)
///
/// # Exactness
///
/// *Schedulable* is always sure. *Not schedulable* is said only on a supply that [is attained](SupplyBound::is_attained), and
/// there always: the test is exact. Who blocks has begun its longest region one tick before all others are released, and no job need
/// take more than that region: of a task that is preemptible nowhere (Jeffay, Stanat, Martel, RTSS 1991), of floating regions, and of
/// regions between known points too, for what comes before them may take next to nothing in one job. A supply may always have
/// served then.
///
/// Where a set's own jobs cannot be preempted makes no difference: the demand due by t must be served by t, in whatever order.
/// A task with J ≥ D is never schedulable: a job of it may be released when it is due. Its witness is that job, due at time 0.
///
/// The [`Witness`] is a job due at the end of the shortest overfull window, the one released last if there are several.
/// Where numbers do not fit, a task that is too much even alone, with C > D − J or C > T, is named all the same, on any supply.
///
/// # Cost
///
/// O(n) a step; some ten steps, or hundreds where ΣU is within a percent of the rate. From t, all that is later than the time
/// by which the supply has given dbf(t) + B(t) is met, so the next t is just before that time (Zhang, Burns, "Schedulability
/// Analysis for Real-Time Systems with EDF Scheduling", IEEE TC 58(9), 2009). dbf + B does not fall, so regions cost nothing
/// more. A search ends after 2²² tasks looked at, some 5 ms, with [`Doubt::TooLong`]. There is one for the busy window, where that
/// is needed, and one for the verdict; to find the witness of a miss may take a hundred more, quick ones as a rule.
///
/// ```
/// use laxity_model::analysis::supply::Dedicated;
/// use laxity_model::analysis::{Preemption, Task, Verdict, edf};
/// use laxity_model::{Service, Span};
///
/// // ΣU is exactly 1.
/// let short = Task::new(Service::from_micros(100), Span::from_micros(300)).unwrap();
/// let long = Task::new(Service::from_micros(200), Span::from_micros(300)).unwrap();
/// assert_eq!(edf::test(&[short, long], &Dedicated), Ok(Verdict::Schedulable));
///
/// // A job that cannot be preempted may have begun just before the one that is due in 150 us.
/// let hurried = short.with_deadline(Span::from_micros(150)).unwrap();
/// assert_eq!(edf::test(&[hurried, long], &Dedicated), Ok(Verdict::Schedulable));
/// let stubborn = long.with_preemption(Preemption::Never).unwrap();
/// let Ok(Verdict::NotSchedulable(witness)) = edf::test(&[hurried, stubborn], &Dedicated) else {
///     panic!("it can miss its deadline");
/// };
/// assert_eq!((witness.task, witness.due), (0, Span::from_micros(150)));
/// ```
pub fn test<S: SupplyBound>(tasks: &[Task], supply: &S) -> Result<Verdict> {
    or_late_alone(tasks, judge(tasks, Set::new(tasks)?, supply))
}

/// The same beside somebody who is never due, and blocks for so long at the most (zero: there is nobody), where a region may begin in the very instant in which others
/// are released, just before them: it blocks for all of its length, not for one tick less. That is right for whatever begins at any instant, as frames on a link, and the somebody is
/// best effort there. On a supply with pauses the one tick more may be a pause more.
///
/// Jobs that are there before their time, but due as if they had come in it, change nothing, where no region is longer than a job: one that has begun so, and blocks, has all jobs of its task behind it
/// that are due before, and they would have asked for more.
///
/// Exact as [`test()`] is; in the worst case that somebody has begun just before all others are released.
///
/// ```
/// use laxity_model::analysis::supply::Dedicated;
/// use laxity_model::analysis::{Task, edf};
/// use laxity_model::{Service, Span};
///
/// let control = Task::new(Service::from_nanos(10_400), Span::from_millis(1))?;
/// let control = control.with_deadline(Span::from_nanos(127_680))?;
/// let is_met = |packet| edf::test_beside(&[control], Service::from_nanos(packet), &Dedicated);
/// assert!(is_met(117_280)?.is_schedulable());
/// assert!(!is_met(117_281)?.is_schedulable());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn test_beside<S: SupplyBound>(
    tasks: &[Task],
    never_due: Service,
    supply: &S,
) -> Result<Verdict> {
    let set = Set::with_whole_regions(tasks)?.beside(never_due);
    or_late_alone(tasks, judge(tasks, set, supply))
}

/// Whether all deadlines are met, of whole regions and without jitter, as one of several questions for which all together there is this budget; `None` where that is not enough. Who misses
/// one is not looked for. Where a time is told, all later deadlines are met, and the regions of those who are due later are in `blocking`.
pub(crate) fn is_met_within<S: SupplyBound>(
    tasks: &[Task],
    blocking: Service,
    supply: &S,
    (until, budget): (Option<Span>, &Budget),
) -> Result<Option<bool>> {
    let set = Set::with_whole_regions(tasks)?.beside(blocking);
    let set = set.within(budget).by_deadline();
    let until = match until {
        Some(until) => until.as_nanos(),
        None => {
            let load = set.load();
            let Some(ordering) = set.compare(load, supply.rate()) else {
                return Ok(None);
            };
            if ordering == Ordering::Greater {
                return Ok(Some(false));
            }
            match horizon(&set, supply, load, ordering)? {
                Some(until) => until,
                None => return Ok(None),
            }
        }
    };
    set.demand_fits(until)?;
    Ok(match latest_overload(&set, supply, 0, until)? {
        Latest::Clear => Some(true),
        Latest::Overload(_) => Some(false),
        Latest::TooLong => None,
    })
}

fn judge<S: SupplyBound>(tasks: &[Task], set: Set<'_>, supply: &S) -> Result<Verdict> {
    let set = set.by_deadline();
    if let Some(witness) = released_late(tasks, &set) {
        return Ok(Verdict::NotSchedulable(witness));
    }
    let load = set.load();
    let Some(ordering) = set.compare(load, supply.rate()) else {
        return Ok(Verdict::Unknown(Doubt::TooLong));
    };
    if ordering == Ordering::Greater {
        return if supply.is_attained() {
            let overload = overload_in_the_long_run(&set, supply)?;
            witness::judge(tasks, &set, supply, overload)
        } else {
            Ok(Verdict::Unknown(Doubt::Sufficient))
        };
    }
    let Some(until) = horizon(&set, supply, load, ordering)? else {
        return Ok(Verdict::Unknown(Doubt::TooLong));
    };
    set.demand_fits(until)?;
    match latest_overload(&set, supply, 0, until)? {
        Latest::Clear => Ok(Verdict::Schedulable),
        Latest::TooLong => Ok(Verdict::Unknown(Doubt::TooLong)),
        Latest::Overload(time) if supply.is_attained() => witness::judge(tasks, &set, supply, time),
        Latest::Overload(_) => Ok(Verdict::Unknown(Doubt::Sufficient)),
    }
}

/// A job that may be released when, or after, it is due.
fn released_late(tasks: &[Task], set: &Set<'_>) -> Option<Witness> {
    // Cheap to see in the prepared set: only then is the first one due at the shifted beginning.
    if set.shift == 0 && set.items.iter().all(|item| item.due > 0) {
        return None;
    }
    let (task, late) =
        (tasks.iter().enumerate()).find(|(_, task)| task.jitter() >= task.deadline())?;
    Some(Witness {
        task,
        release: late.jitter() - late.deadline(),
        due: Span::ZERO,
    })
}

/// The latest overload after `from`, up to `time`, for which [`Set::demand_fits`] has been asked.
pub(super) fn latest_overload<S: SupplyBound>(
    set: &Set<'_>,
    supply: &S,
    from: u64,
    mut time: u64,
) -> Result<Latest> {
    for _ in 0..set.budget() {
        if !set.allows_step() {
            break;
        }
        let (demand, blocking) = set.demand_and_blocking(time);
        if demand == 0 {
            return Ok(Latest::Clear);
        }
        // All from `met` to `time` is met: no more is asked for, and no less is given, than at `met`.
        let met = window_for(supply, demand.wrapping_add(blocking))?;
        if met > time {
            return Ok(Latest::Overload(time));
        }
        if met <= from.saturating_add(1) {
            return Ok(Latest::Clear);
        }
        time = met - 1;
    }
    Ok(Latest::TooLong)
}

/// An overload of a set that needs more than the supply gives in the long run.
fn overload_in_the_long_run<S: SupplyBound>(set: &Set<'_>, supply: &S) -> Result<u64> {
    let first = set.items.iter().map(|item| item.due).max().unwrap_or(0);
    let mut time = first.max(1);
    loop {
        set.demand_fits(time)?;
        if set.demand_and_blocking(time).0 > least_service(supply, time) {
            return Ok(time);
        }
        time = time.checked_mul(2).ok_or(Overflow("the demand"))?;
    }
}
