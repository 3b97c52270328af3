//! Utilization bounds, for tasks given by priority, the highest first; and for earliest deadline first, in any order.
//!
//! All of them are sufficient only, and answer [`Verdict::Schedulable`] or [`Verdict::Unknown`]: with [`Doubt::Sufficient`] where the
//! bound is exceeded, with [`Doubt::OutOfScope`] where the set is not what the test is made for. They are here because they are quick,
//! because everybody knows them, and to show what they give away beside [`fixed_priority`](super::fixed_priority).
//!
//! **Assumptions, checked.** Priorities by rate: periods do not fall from task to task. D ≥ T: every one of these tests shows that a
//! job is complete within T of its release, so a later deadline does no harm (and does no good). No jitter. The tests without
//! blocking need tasks that block nobody: regions of more than one tick only in the most urgent one. [`implicit`] makes a task
//! with jitter or a shorter deadline into one that fits.
//!
//! **Blocking** of task i, Bᵢ: the longest region of the less urgent tasks less one tick ([`Task::blocking`]), because it began a tick
//! before. Only [`rmdp`] takes the whole quantum, as its paper does. A task's own regions do not matter: the tests show that the busy
//! window is over within one period.
//!
//! **Numbers.** All comparisons are exact. n(2^(1/n) − 1) is irrational: [`liu_layland_bound`] is a fraction just below it, and the
//! tests never accept what exceeds that.
//!
//! | test | accepts whatever is accepted by |
//! |---|---|
//! | [`hyperbolic`] | [`liu_layland`] |
//! | [`blocking_per_task`] | [`blocking_summed`], [`rmdp`] |
//! | [`hyperbolic_with_blocking`] | [`blocking_per_task`] |

mod bound;

use alloc::vec::Vec;
use core::iter;

pub(super) use bound::SQRT_2_LESS_ONE;
pub use bound::liu_layland_bound;

use super::exact::{self, Product};
use super::task::Blocking;
use super::{Doubt, Fraction, Overflow, Preemption, Result, Task, Verdict};
use crate::Service;

/// Σ C/T ≤ n(2^(1/n) − 1), for tasks that can be preempted anywhere.
///
/// Liu, Layland, "Scheduling algorithms for multiprogramming in a hard-real-time environment", JACM 20(1), 1973, theorem 5.
/// Cost: O(n). Never overflows.
///
/// ```
/// use laxity_model::analysis::{Doubt, Task, Verdict, utilization};
/// use laxity_model::{Service, Span};
///
/// let task = |cost, period| Task::new(Service::from_millis(cost), Span::from_millis(period)).expect("a task");
/// assert_eq!(utilization::liu_layland(&[task(4, 10), task(8, 20)]), Ok(Verdict::Schedulable)); // 0.8 ≤ 0.828
/// let full = [task(5, 10), task(10, 20)]; // schedulable, but not by this test
/// assert_eq!(utilization::liu_layland(&full), Ok(Verdict::Unknown(Doubt::Sufficient)));
/// ```
pub fn liu_layland(tasks: &[Task]) -> Result<Verdict> {
    if !is_in_scope(tasks) || blocks(tasks) {
        return Ok(OUT_OF_SCOPE);
    }
    let bound = liu_layland_bound(tasks.len());
    Ok(verdict(bound.compare_sum(utilizations(tasks)).is_le()))
}

/// Π (C/T + 1) ≤ 2, for tasks that can be preempted anywhere: the hyperbolic bound.
///
/// Bini, Buttazzo, Buttazzo, "Rate monotonic analysis: the hyperbolic bound", IEEE Transactions on Computers 52(7), 2003.
/// Cost: O(n); O(n²) if the product is within 10⁻¹⁸·n of 2.
///
/// Errors: C + T does not fit.
///
/// ```
/// use laxity_model::analysis::{Verdict, Task, utilization};
/// use laxity_model::{Service, Span};
///
/// let task = |cost, period| Task::new(Service::from_millis(cost), Span::from_millis(period)).expect("a task");
/// // 1/2 and 1/3: 3/2 · 4/3 is 2 exactly, while 5/6 is more than Liu and Layland's 0.828.
/// assert_eq!(utilization::hyperbolic(&[task(5, 10), task(4, 12)]), Ok(Verdict::Schedulable));
/// ```
pub fn hyperbolic(tasks: &[Task]) -> Result<Verdict> {
    if !is_in_scope(tasks) || blocks(tasks) {
        return Ok(OUT_OF_SCOPE);
    }
    products_are_at_most_two(tasks, &[]).map(verdict)
}

/// For every i: (1 + (Cᵢ + Bᵢ)/Tᵢ) · Π over j < i of (1 + Cⱼ/Tⱼ) ≤ 2: the hyperbolic bound with blocking.
///
/// Bini, Buttazzo, Buttazzo (as for [`hyperbolic`]), who extend their bound to blocking. It follows from the bound itself: a job of
/// task i that is blocked for Bᵢ is as late as one that needs Cᵢ + Bᵢ, and less urgent tasks do not matter to it otherwise.
/// Cost: O(n); O(n²) for each i whose product is within 10⁻¹⁸·n of 2.
///
/// Errors: C + B + T does not fit.
///
/// ```
/// use laxity_model::analysis::{Preemption, Task, Verdict, utilization};
/// use laxity_model::{Service, Span};
///
/// let task = |cost, period| Task::new(Service::from_millis(cost), Span::from_millis(period)).expect("a task");
/// let longest = Service::from_millis(2);
/// let background = task(20, 100).with_preemption(Preemption::Floating { longest })?;
/// let tasks = [task(2, 10), task(4, 20), background]; // 7/5, 6/5 · 13/10 and 6/5 · 6/5 · 6/5
/// assert_eq!(utilization::hyperbolic_with_blocking(&tasks), Ok(Verdict::Schedulable));
/// # Ok::<(), laxity_model::analysis::TaskError>(())
/// ```
pub fn hyperbolic_with_blocking(tasks: &[Task]) -> Result<Verdict> {
    if !is_in_scope(tasks) {
        return Ok(OUT_OF_SCOPE);
    }
    products_are_at_most_two(tasks, &blocking_of_each(tasks)).map(verdict)
}

/// For every i: Σ over j ≤ i of Cⱼ/Tⱼ + Bᵢ/Tᵢ ≤ i(2^(1/i) − 1): the test with blocking, task by task.
///
/// Sha, Rajkumar, Lehoczky, "Priority inheritance protocols: an approach to real-time synchronization", IEEE Transactions on
/// Computers 39(9), 1990, theorem 15. Cost: O(n²). Never overflows.
///
/// ```
/// use laxity_model::analysis::{Doubt, Preemption, Task, Verdict, utilization};
/// use laxity_model::{Service, Span};
///
/// let task = |cost, period| Task::new(Service::from_millis(cost), Span::from_millis(period)).expect("a task");
/// let longest = Service::from_millis(5);
/// let background = task(30, 100).with_preemption(Preemption::Floating { longest })?;
/// let tasks = [task(4, 10), background];
/// // 4/10 + 5/10 ≤ 1 for the first, 4/10 + 30/100 ≤ 0.828 for the second; but 0.7 + 0.5 is more than that.
/// assert_eq!(utilization::blocking_per_task(&tasks), Ok(Verdict::Schedulable));
/// assert_eq!(utilization::blocking_summed(&tasks), Ok(Verdict::Unknown(Doubt::Sufficient)));
/// # Ok::<(), laxity_model::analysis::TaskError>(())
/// ```
pub fn blocking_per_task(tasks: &[Task]) -> Result<Verdict> {
    if !is_in_scope(tasks) {
        return Ok(OUT_OF_SCOPE);
    }
    let mut blocking = Service::ZERO;
    for (i, task) in tasks.iter().enumerate().rev() {
        let blocked = iter::once(Fraction::of(blocking, task.period()));
        let terms = utilizations(&tasks[..=i]).chain(blocked);
        if liu_layland_bound(i + 1).compare_sum(terms).is_gt() {
            return Ok(INSUFFICIENT);
        }
        blocking = blocking.max(task.blocking());
    }
    Ok(Verdict::Schedulable)
}

/// Σ C/T + max(B₁/T₁, …, Bₙ₋₁/Tₙ₋₁) ≤ n(2^(1/n) − 1): the test with blocking in one sum.
///
/// Sha, Rajkumar, Lehoczky (as for [`blocking_per_task`]), in the form that Gopalakrishnan, Parulkar, "Real-time Upcalls", §5.3, print.
/// Cost: O(n). Never overflows.
///
/// ```
/// use laxity_model::analysis::{Preemption, Task, Verdict, utilization};
/// use laxity_model::{Service, Span};
///
/// let task = |cost, period| Task::new(Service::from_millis(cost), Span::from_millis(period)).expect("a task");
/// let longest = Service::from_millis(1);
/// let background = task(30, 100).with_preemption(Preemption::Floating { longest })?;
/// // 0.4 + 0.3 + 1/10 ≤ 0.828
/// assert_eq!(utilization::blocking_summed(&[task(4, 10), background]), Ok(Verdict::Schedulable));
/// # Ok::<(), laxity_model::analysis::TaskError>(())
/// ```
pub fn blocking_summed(tasks: &[Task]) -> Result<Verdict> {
    if !is_in_scope(tasks) {
        return Ok(OUT_OF_SCOPE);
    }
    let blocked = blocking_of_each(tasks)
        .into_iter()
        .zip(tasks)
        .map(|(blocking, task)| Fraction::of(blocking, task.period()))
        .max();
    let terms = utilizations(tasks).chain(blocked);
    let bound = liu_layland_bound(tasks.len());
    Ok(verdict(bound.compare_sum(terms).is_le()))
}

/// Σ C/T + c(1/T₁ − 1/Tₙ) ≤ n(2^(1/n) − 1): rate monotonic with delayed preemption, as its authors state it.
///
/// c is the largest quantum in the set, the whole of the longest region, whoever has it; T₁ and Tₙ are the shortest and the longest
/// period. Gopalakrishnan, Parulkar, "Real-time Upcalls", WUCS-95-06, §5.3. Why it is true (the paper leaves the proof out): who blocks
/// task i is one of those below it, has Cₖ ≥ c, and so takes at least c/Tₙ of the sum that [`blocking_per_task`] leaves out for i; hence
/// whatever this test accepts, that one accepts.
///
/// Cost: O(n); O(n²) if the two sides are within n·2⁻⁶⁴. Never overflows.
///
/// ```
/// use laxity_model::analysis::{Preemption, Task, Verdict, utilization};
/// use laxity_model::{Service, Span};
///
/// let longest = Service::from_millis(2);
/// let tasks = [40, 50, 60, 70, 80, 90].map(|period| {
///     let task = Task::new(Service::from_millis(7), Span::from_millis(period));
///     let quantum = Preemption::Fixed { longest, last: longest };
///     task.and_then(|task| task.with_preemption(quantum)).expect("a task")
/// });
/// // 0.697 + 2 (1/40 − 1/90) ≤ 0.735; but 0.697 + 2/40 is more.
/// assert_eq!(utilization::rmdp(&tasks), Ok(Verdict::Schedulable));
/// assert_ne!(utilization::blocking_summed(&tasks), Ok(Verdict::Schedulable));
/// ```
pub fn rmdp(tasks: &[Task]) -> Result<Verdict> {
    if !is_in_scope(tasks) {
        return Ok(OUT_OF_SCOPE);
    }
    let (bound, quantum) = (liu_layland_bound(tasks.len()), longest_region(tasks));
    let share = |task: &Task| Fraction::of(quantum, task.period());
    let asked = utilizations(tasks).chain(tasks.first().map(share));
    let allowed = iter::once(bound).chain(tasks.last().map(share));
    Ok(verdict(exact::compare_sums(asked, allowed).is_le()))
}

/// Σ C/T ≤ 1 under earliest deadline first, for tasks that can be preempted anywhere. In any order; D ≥ T, no jitter.
///
/// Liu, Layland (as for [`liu_layland`]), theorem 7. Where all D = T it is exact, but without a witness: for one, and for all other sets,
/// see [`edf`](super::edf). Cost: O(n); O(n²) if the sum is within 10⁻⁹ of 1. Never overflows.
///
/// ```
/// use laxity_model::analysis::{Task, Verdict, utilization};
/// use laxity_model::{Service, Span};
///
/// let third = Task::new(Service::from_millis(1), Span::from_millis(3))?;
/// assert_eq!(utilization::earliest_deadline_first(&[third; 3]), Ok(Verdict::Schedulable));
/// # Ok::<(), laxity_model::analysis::TaskError>(())
/// ```
pub fn earliest_deadline_first(tasks: &[Task]) -> Result<Verdict> {
    if !is_late_enough(tasks) || tasks.iter().any(|task| !task.blocking().is_zero()) {
        return Ok(OUT_OF_SCOPE);
    }
    let sum = Fraction::ONE.compare_sum(utilizations(tasks));
    Ok(verdict(sum.is_le()))
}

/// A task that these tests take, and that is at least as demanding: with period and deadline min(T, D) − J and without jitter. If all
/// deadlines are met with it in the set under fixed priorities, they are met with the original in its place. `None` if
/// min(T, D) ≤ J, or C is more than the new period.
///
/// Releases that arrive T apart and are up to J late are never closer than T − J; a job complete within min(T, D) − J of its release is
/// so within D of its arrival. The order of priorities must then be by the new periods.
///
/// ```
/// use laxity_model::analysis::{Task, utilization};
/// use laxity_model::{Service, Span};
///
/// let task = Task::new(Service::from_millis(1), Span::from_millis(10))?
///     .with_deadline(Span::from_millis(8))?
///     .with_jitter(Span::from_millis(3));
/// let implicit = utilization::implicit(&task).expect("8 − 3 is more than 1");
/// assert_eq!(implicit, Task::new(Service::from_millis(1), Span::from_millis(5))?);
/// # Ok::<(), laxity_model::analysis::TaskError>(())
/// ```
pub fn implicit(task: &Task) -> Option<Task> {
    let period = task
        .period()
        .min(task.deadline())
        .saturating_sub(task.jitter());
    let fits = task.cost().as_dedicated_span() <= period;
    let fits = fits && task.burst().get() == 1;
    let implicit = Task::new(task.cost(), period).ok().filter(|_| fits)?;
    implicit.with_preemption(task.preemption()).ok()
}

const OUT_OF_SCOPE: Verdict = Verdict::Unknown(Doubt::OutOfScope);
const INSUFFICIENT: Verdict = Verdict::Unknown(Doubt::Sufficient);

const fn verdict(accepted: bool) -> Verdict {
    if accepted {
        Verdict::Schedulable
    } else {
        INSUFFICIENT
    }
}

/// D ≥ T, J = 0 and no bursts.
fn is_late_enough(tasks: &[Task]) -> bool {
    tasks
        .iter()
        .all(|task| task.deadline() >= task.period() && task.is_regular())
}

/// The same, and priorities by rate.
fn is_in_scope(tasks: &[Task]) -> bool {
    is_late_enough(tasks) && tasks.is_sorted_by_key(Task::period)
}

/// For each task, the most service for which a job of a later one can block its own.
fn blocking_of_each(tasks: &[Task]) -> Vec<Service> {
    let mut blocking = Blocking::new(tasks);
    (0..tasks.len()).map(|index| blocking.of(index)).collect()
}

/// Whether some task has a more urgent one to block.
fn blocks(tasks: &[Task]) -> bool {
    let mut less_urgent = tasks.iter().skip(1);
    less_urgent.any(|task| !task.blocking().is_zero())
}

/// C/T of each task.
pub(super) fn utilizations(tasks: &[Task]) -> impl Iterator<Item = Fraction> + Clone {
    tasks
        .iter()
        .map(|task| Fraction::of(task.cost(), task.period()))
}

/// The longest region of all tasks: the largest quantum in the set. Zero if all can be preempted anywhere.
fn longest_region(tasks: &[Task]) -> Service {
    let regions = tasks.iter().map(|task| match task.preemption() {
        Preemption::Anywhere => Service::ZERO,
        Preemption::Floating { longest } | Preemption::Fixed { longest, .. } => longest,
        Preemption::Never => task.cost(),
    });
    regions.max().unwrap_or(Service::ZERO)
}

/// Whether for every i (1 + (Cᵢ + Bᵢ)/Tᵢ) · Π over j < i of (1 + Cⱼ/Tⱼ) ≤ 2; blocking missing at the end is none.
fn products_are_at_most_two(tasks: &[Task], blocking: &[Service]) -> Result<bool> {
    let mut product = Product::ONE;
    for (i, task) in tasks.iter().enumerate() {
        let blocked = blocking.get(i).copied().unwrap_or(Service::ZERO);
        // More than one period of work alone makes a factor of more than 2.
        let Some(last) = factor(task, blocked)? else {
            return Ok(false);
        };
        let exactly = || {
            let before = tasks[..i].iter().filter_map(factor_alone);
            exact::product_is_at_most_two(before.chain(iter::once(last)))
        };
        if !product.times(last).is_at_most_two().unwrap_or_else(exactly) {
            return Ok(false);
        }
        product = factor_alone(task).map_or(product, |alone| product.times(alone));
    }
    Ok(true)
}

/// 1 + C/T, if it is no more than 2 and fits.
fn factor_alone(task: &Task) -> Option<Fraction> {
    factor(task, Service::ZERO).ok().flatten()
}

/// 1 + (C + B)/T; `None` if it is more than 2.
fn factor(task: &Task, blocking: Service) -> Result<Option<Fraction>> {
    let overflow = Overflow("the sum of an execution time, its blocking and its period");
    let period = task.period();
    let work = task.cost().checked_add(blocking).ok_or(overflow)?;
    if work.as_dedicated_span() > period {
        return Ok(None);
    }
    let sum = period.as_full_service().checked_add(work);
    Ok(Some(Fraction::of(sum.ok_or(overflow)?, period)))
}
