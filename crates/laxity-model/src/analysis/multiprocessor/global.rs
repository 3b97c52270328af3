//! Earliest deadline first over all processors: the m most urgent ready jobs run, wherever.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::iter;
use core::num::NonZeroU16;

use crate::analysis::utilization::utilizations;
use crate::analysis::{Doubt, Fraction, Overflow, Result, Task, Verdict};
use crate::{Service, Span};

/// How late jobs may be under global earliest deadline first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tardiness {
    /// A job is complete at most this long after its deadline, by task; zero: no deadline is missed.
    Bounded(Vec<Span>),
    /// ΣU exceeds the number of processors, or some U exceeds 1: jobs get later and later if they come as fast as they may.
    Unbounded,
    /// The bound is for other sets.
    Unknown(Doubt),
}

/// Whether global earliest deadline first misses no deadline: Σδ ≤ m − (m − 1)·δ_max, with the density δ = C/D; or no more tasks than
/// processors, and no δ more than 1. Sufficient only.
///
/// For sporadic tasks that can be preempted anywhere, D ≤ T, no jitter; else [`Doubt::OutOfScope`].
///
/// Goossens, Funk, Baruah, "Priority-driven scheduling of periodic task systems on multiprocessors", Real-Time Systems 25(2–3), 2003,
/// for D = T. A sporadic task with D < T is one with a period of D that never comes that often.
///
/// Cost: O(n); O(n²) if the sums are within 10⁻⁹. Errors: m·C does not fit.
///
/// ```
/// use core::num::NonZeroU16;
/// use laxity_model::analysis::multiprocessor::global_edf;
/// use laxity_model::analysis::{Doubt, Task, Verdict};
/// use laxity_model::{Service, Span};
///
/// let task = |cost, period| Task::new(Service::from_millis(cost), Span::from_millis(period)).expect("a task");
/// let two = NonZeroU16::new(2).expect("two");
/// assert_eq!(global_edf(&[task(5, 10); 3], two), Ok(Verdict::Schedulable)); // 3/2 ≤ 2 − 1/2
/// // Dhall's effect: two light tasks run first, and the heavy one is late.
/// let dhall = [task(2, 10), task(2, 10), task(11, 12)];
/// assert_eq!(global_edf(&dhall, two), Ok(Verdict::Unknown(Doubt::Sufficient)));
/// ```
pub fn global_edf(tasks: &[Task], processors: NonZeroU16) -> Result<Verdict> {
    if !is_in_scope(tasks) {
        return Ok(Verdict::Unknown(Doubt::OutOfScope));
    }
    let Some(densest) = tasks.iter().max_by(|a, b| compare_density(a, b)) else {
        return Ok(Verdict::Schedulable);
    };
    let m = u64::from(processors.get());
    let alone = densest.cost().as_dedicated_span() <= densest.deadline();
    if alone && tasks.len() as u64 <= m {
        return Ok(Verdict::Schedulable);
    }
    let largest = densest.cost().checked_mul(m - 1);
    let largest = largest.ok_or(Overflow("an execution time times the processors"))?;
    let densities = tasks
        .iter()
        .map(|task| Fraction::of(task.cost(), task.deadline()))
        .chain(iter::once(Fraction::of(largest, densest.deadline())));
    Ok(match whole(m).compare_sum(densities) {
        Ordering::Less | Ordering::Equal => Verdict::Schedulable,
        Ordering::Greater => Verdict::Unknown(Doubt::Sufficient),
    })
}

/// How late jobs are at most under global earliest deadline first: x + C of the task, with
///
/// > x = (sum of the Λ largest C − smallest C) / (m − sum of the Λ − 1 largest U), Λ = ⌈ΣU⌉ − 1,
///
/// rounded up to a tick; zero for all where [`global_edf`] accepts the set (on one processor: always).
///
/// For sporadic tasks that can be preempted anywhere, D = T, no jitter; else [`Doubt::OutOfScope`]. The answer
/// [`Tardiness::Unbounded`] is exact. The threads of `SCHED_DEADLINE` are such tasks (runtime, period), where the
/// kernel enforces budgets exactly: a kernel that looks at them only every tick is later, by what this does not say. The bound is never
/// more than that of the kernel's own documentation (`sched-deadline.rst`, §3.1), which takes m − 1 for Λ and the largest C and U for all.
///
/// Devi, Anderson, "Tardiness bounds under global EDF scheduling on a multiprocessor", Real-Time Systems 38(2), 2008 (RTSS 2005); with Λ
/// from Devi, "Soft real-time scheduling on multiprocessors", University of North Carolina, 2006, as in `SchedCAT`.
///
/// Cost: O(n log n + m·n). Errors: the sum of the Λ largest C or a bound does not fit.
///
/// ```
/// use core::num::NonZeroU16;
/// use laxity_model::analysis::Task;
/// use laxity_model::analysis::multiprocessor::{Tardiness, tardiness};
/// use laxity_model::{Service, Span};
///
/// let task = |cost, period| Task::new(Service::from_millis(cost), Span::from_millis(period)).expect("a task");
/// let two = NonZeroU16::new(2).expect("two");
/// // x = (4 − 2) / 2: both processors full, yet nobody is later than this.
/// let full = [task(2, 3), task(2, 3), task(4, 6)];
/// let bounds = [3, 3, 5].map(Span::from_millis);
/// assert_eq!(tardiness(&full, two), Ok(Tardiness::Bounded(bounds.to_vec())));
/// ```
pub fn tardiness(tasks: &[Task], processors: NonZeroU16) -> Result<Tardiness> {
    let implicit = tasks.iter().all(|task| task.deadline() == task.period());
    if !implicit || !is_in_scope(tasks) {
        return Ok(Tardiness::Unknown(Doubt::OutOfScope));
    }
    let m = u64::from(processors.get());
    let mut alone = tasks.iter();
    if alone.any(|task| task.cost().as_dedicated_span() > task.period())
        || whole(m).compare_sum(utilizations(tasks)).is_gt()
    {
        return Ok(Tardiness::Unbounded);
    }
    let common = if global_edf(tasks, processors)?.is_schedulable() {
        None
    } else {
        Some(common_tardiness(tasks, m)?)
    };
    let bounds = tasks.iter().map(|task| match common {
        None => Ok(Span::ZERO),
        Some(x) => x
            .checked_add(task.cost().as_dedicated_span())
            .ok_or(Overflow("a bound on the tardiness")),
    });
    bounds.collect::<Result<_, _>>().map(Tardiness::Bounded)
}

/// Bits behind the point.
const POINT: u32 = 62;

/// x, for ΣU ≤ m, all U ≤ 1 and m ≥ 2.
fn common_tardiness(tasks: &[Task], m: u64) -> Result<Span> {
    let lambda = (1..=m).find(|k| whole(*k).compare_sum(utilizations(tasks)).is_le());
    let lambda = usize::try_from(lambda.unwrap_or(m) - 1).unwrap_or(usize::MAX);
    let mut costs: Vec<u64> = tasks.iter().map(|task| task.cost().as_nanos()).collect();
    costs.sort_unstable_by(|a, b| b.cmp(a));
    let sum = costs.iter().take(lambda).map(|cost| u128::from(*cost));
    let least = costs.last().copied().unwrap_or(0);
    let work = sum.sum::<u128>().saturating_sub(u128::from(least));
    let work = u64::try_from(work).map_err(|_| Overflow("a sum of execution times"))?;

    let mut fullest: Vec<&Task> = tasks.iter().collect();
    fullest.sort_by(|a, b| compare_density(b, a));
    fullest.truncate(lambda.saturating_sub(1));
    let taken = fullest.iter().map(|task| {
        let cost = u128::from(task.cost().as_nanos()) << POINT;
        cost.div_ceil(u128::from(task.period().as_nanos()))
    });
    // At most m − 2 shares of at most 1: two processors remain at least.
    let rest = (u128::from(m) << POINT) - taken.sum::<u128>();
    let x = (u128::from(work) << POINT).div_ceil(rest);
    let x = u64::try_from(x).map_err(|_| Overflow("a bound on the tardiness"))?;
    // What was rounded up may have cost a tick.
    let less = x
        .checked_sub(1)
        .filter(|less| is_late_enough(*less, work, m, &fullest));
    Ok(Span::from_nanos(less.unwrap_or(x)))
}

/// Whether x (m − sum of the U of these) ≥ work; no if the numbers are too large to tell.
fn is_late_enough(x: u64, work: u64, m: u64, fullest: &[&Task]) -> bool {
    let fits = |service: Service| service.checked_mul(x).is_some();
    let Some(all) = x.checked_mul(m) else {
        return false;
    };
    if !fullest.iter().all(|task| fits(task.cost())) {
        return false;
    }
    let taken = fullest
        .iter()
        .map(|task| Fraction::of(task.cost() * x, task.period()));
    whole(all)
        .compare_sum(taken.chain(iter::once(whole(work))))
        .is_le()
}

/// Preemptible anywhere, D ≤ T, no jitter, no bursts.
fn is_in_scope(tasks: &[Task]) -> bool {
    tasks.iter().all(|task| {
        task.blocking().is_zero() && task.is_regular() && task.deadline() <= task.period()
    })
}

/// By C/D.
fn compare_density(a: &Task, b: &Task) -> Ordering {
    let density = |task: &Task| Fraction::of(task.cost(), task.deadline());
    density(a).cmp(&density(b))
}

fn whole(number: u64) -> Fraction {
    Fraction::new(number, 1).unwrap_or(Fraction::ONE)
}
