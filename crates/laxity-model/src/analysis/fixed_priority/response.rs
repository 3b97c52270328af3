//! Response times.

use alloc::vec::Vec;
use core::cmp::Ordering;

use super::requests::{Requests, compare_load, requests_of, requests_within};
use super::window::{Outcome, Window, blocking_by};
use crate::analysis::supply::SupplyBound;
use crate::analysis::task::Blocking;
use crate::analysis::{Bound, Budget, Doubt, Response, Result, Task};
use crate::{Service, Span};

/// The response time of one task of a set that is given by priority, the highest first, no two alike.
///
/// Like [`response_times`], which says what is assumed, for one. O(n) a pass.
///
/// # Panics
///
/// If `index` is not the index of a task.
pub fn response_time<S: SupplyBound>(tasks: &[Task], index: usize, supply: &S) -> Result<Response> {
    let less_urgent = &tasks[index + 1..];
    response_time_among(
        &tasks[index],
        &tasks[..index],
        blocking_by(less_urgent),
        supply,
    )
}

/// The response time of a task that waits for all jobs of `interferers` that are released before its own completes (or, if its last
/// region is known, begins that), and once in a busy window for `blocking` of service by others.
///
/// This is for orders that are not one line. Among tasks of equal priority, give all others of that priority as interferers: that
/// is a bound under first in, first out (`SCHED_FIFO`), in turns (`SCHED_RR`) and in any other order among them, if nobody preempts the task's own last region. It is exact where all
/// interferers are more urgent, as [`response_times`] says, and under `SCHED_FIFO` also with equals of which none comes twice in that time (jitter counted): a thread that is at work when its
/// next job comes goes on with that, before equals that came sooner. The interferers' own regions and their order do not matter. O(n) a pass.
///
/// ```
/// use laxity_model::analysis::{Task, fixed_priority, supply::Dedicated};
/// use laxity_model::{Service, Span};
///
/// // Two at one priority, each 2 every 10: either may wait for the other.
/// let task = Task::new(Service::from_millis(2), Span::from_millis(10))?;
/// let response = fixed_priority::response_time_among(&task, &[task], Service::ZERO, &Dedicated)?;
/// assert_eq!(response.bound().map(|bound| bound.from_arrival), Some(Span::from_millis(4)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn response_time_among<S: SupplyBound>(
    task: &Task,
    interferers: &[Task],
    blocking: Service,
    supply: &S,
) -> Result<Response> {
    response_time_within(task, interferers, blocking, supply, &Budget::default())
}

/// [`response_time_among`], as one of several calls for which all together there is this budget. To begin takes as much of it as a pass.
pub fn response_time_within<S: SupplyBound>(
    task: &Task,
    interferers: &[Task],
    blocking: Service,
    supply: &S,
    budget: &Budget,
) -> Result<Response> {
    if !budget.allows_pass(interferers.len()) {
        return Ok(Response::Unknown(Doubt::TooLong));
    }
    let all = interferers.iter().chain([task]);
    let Some((requests, load)) = requests_within(all, supply.rate(), budget)? else {
        return Ok(Response::Unknown(Doubt::TooLong));
    };
    if load.is_gt() {
        return Ok(Response::Unbounded);
    }
    let regions = (blocking, task.tail());
    let window = Window::new(&requests, regions, (supply, load), 0, budget);
    let (response, _) = bound(window)?;
    Ok(response)
}

/// The busy window of [`response_time_among`]: for how long a task, all that is released before its jobs are complete, and the blocking can keep the supply
/// busy at the most. `None` where that may never end, or is not found in as many passes.
pub fn busy_window_among<S: SupplyBound>(
    task: &Task,
    interferers: &[Task],
    blocking: Service,
    supply: &S,
) -> Result<Option<Span>> {
    let (requests, load) = requests_of(interferers.iter().chain([task]), supply.rate())?;
    if load.is_gt() {
        return Ok(None);
    }
    let (regions, budget) = ((blocking, Service::ZERO), Budget::default());
    Window::new(&requests, regions, (supply, load), 0, &budget).length()
}

/// The response times of all tasks of a set that is given by priority, the highest first, no two alike.
///
/// **Assumed**: the tasks are independent; a job runs unless one of a more urgent task, or a region that is not preemptible, does; jobs
/// of one task run in the order of arrival; nothing else costs time.
///
/// **Exact** on a supply that is [attained](SupplyBound::is_attained), and otherwise a bound: release jitter, deadlines of any length
/// (every job of the busy window is looked at), blocking by less urgent tasks' regions, and the task's own last region where it is
/// known. It is wrong on the safe side where a task's `longest` region is longer than any that the program has, and on
/// the *unsafe* side where a job's last region is shorter than the `last` that is said: see [`Preemption`](crate::analysis::Preemption).
///
/// [`Response::Unbounded`] where the task and the more urgent ones together ask for more than the supply's rate in the long run. Where
/// they ask for exactly that, the busy window closes or not; if not, it repeats itself after the least
/// common multiple of the periods and the supply's cycle, and the bound is exact all the same. [`Doubt::TooLong`] after 2¹⁸ passes, each of which adds up
/// the requests of all more urgent tasks once: where the load is, or is next to, the supply's rate, and the periods have no small
/// common multiple. After 2²⁶ requests have been added up in one call, some 0.1 s, it is the answer for all that was not searched:
/// only sets of hundreds of tasks come to that.
///
/// **Cost**: a pass is O(n); a few passes a task, where the load is not next to the rate; nothing is allocated but the result and
/// one row a task.
///
/// **Source**: Joseph, Pandya, "Finding response times in a real-time system", 1986; Lehoczky, "Fixed priority scheduling of periodic task
/// sets with arbitrary deadlines", RTSS 1990 (the busy window); Tindell, Burns, Wellings, "An extendible approach for analyzing fixed
/// priority hard real-time tasks", 1994 (jitter); Bril, Lukkien, Verhaegh, "Worst-case response time analysis of real-time tasks under
/// fixed-priority scheduling with deferred preemption", Real-Time Systems 42, 2009 (last regions, and that the first job is not
/// always the worst); Bozhko, Brandenburg, "Abstract response-time analysis", ECRTS 2020 (in ticks, and proved by machine in PROSA
/// for floating and last regions, on any supply bound function).
///
/// ```
/// use laxity_model::analysis::{Task, fixed_priority, supply::Dedicated};
/// use laxity_model::{Service, Span};
///
/// let task = |cost, period| Task::new(Service::from_millis(cost), Span::from_millis(period));
/// // Lehoczky, RTSS 1990, §2: the fifth of seven jobs of the second task takes longest, 118, not the first, which takes 114.
/// let tasks = [task(26, 70)?, task(62, 100)?];
/// let responses = fixed_priority::response_times(&tasks, &Dedicated)?;
/// let bounds = responses.iter().map(|response| response.bound().map(|bound| bound.from_arrival));
/// assert_eq!(
///     bounds.collect::<Vec<_>>(),
///     [Some(Span::from_millis(26)), Some(Span::from_millis(118))]
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn response_times<S: SupplyBound>(tasks: &[Task], supply: &S) -> Result<Vec<Response>> {
    let (requests, all) = requests_of(tasks, supply.rate())?;
    let mut blocking = Blocking::new(tasks);
    let budget = Budget::default();
    let mut responses = Vec::with_capacity(tasks.len());
    let (mut reached, mut blocked) = (0_u64, Service::ZERO);
    for (i, task) in tasks.iter().enumerate() {
        let requests = &requests[..=i];
        let load = load_of(requests, all, supply);
        if load.is_gt() {
            responses.resize(tasks.len(), Response::Unbounded);
            break;
        }
        let blocking = blocking.of(i);
        let regions = (blocking, task.tail());
        let least = least_demand(reached, blocked, regions, task.cost());
        let window = Window::new(requests, regions, (supply, load), least, &budget);
        let (response, demand) = bound(window)?;
        responses.push(response);
        (reached, blocked) = (demand, blocking);
    }
    Ok(responses)
}

/// How the load of some tasks compares with the supply's rate, if that of more tasks compares like `all`.
#[inline]
pub(super) fn load_of(requests: &[Requests], all: Ordering, supply: &impl SupplyBound) -> Ordering {
    if all.is_lt() {
        all
    } else {
        compare_load(requests, supply.rate())
    }
}

/// What the first job of a task's busy window has of demand at least, if the task before it in the order, blocked for `blocked`, had
/// `reached`: that of the task before it is in there, as are all that delayed it, except for what the task itself blocked.
///
/// If the difference were negative, its window might be the shorter one, and nothing is known.
#[inline]
pub(super) fn least_demand(
    reached: u64,
    blocked: Service,
    regions: (Service, Service),
    cost: Service,
) -> u64 {
    let (blocking, tail) = regions;
    let lost = blocked.saturating_sub(blocking);
    let added = cost.saturating_sub(tail);
    if reached == 0 || added < lost {
        return 0;
    }
    reached.saturating_add(added.saturating_sub(lost).as_nanos())
}

/// The longest response of the jobs of a busy window, and the demand when the first job's whole cost was done, if it was.
#[inline]
fn bound<S: SupplyBound>(mut window: Window<'_, S>) -> Result<(Response, u64)> {
    let mut bound = Bound {
        from_arrival: Span::ZERO,
        from_release: Span::ZERO,
    };
    let mut first = 0;
    loop {
        let due = window.arrival();
        let Outcome::Completed(job) = window.next_job(u64::MAX)? else {
            return Ok((Response::Unknown(Doubt::TooLong), first));
        };
        if first == 0 {
            first = job.demand;
        }
        let (from_arrival, from_release) = due.until(job.at);
        bound.from_arrival = bound.from_arrival.max(from_arrival);
        bound.from_release = bound.from_release.max(from_release);
        if job.last {
            return Ok((Response::Bounded(bound), first));
        }
    }
}
