//! The slow, obvious answers that fixed-priority analysis is tested against: for small numbers only.

use laxity_model::analysis::supply::SupplyBound;
use laxity_model::analysis::{Bound, Preemption, Task};
use laxity_model::{Service, Span};

/// The service that these ask for in a window of this length, if they all release what arrived within their jitter as it begins, and then
/// go on as early as they may: job n arrives at nT − J, but with the last of those b − 1 more, so Σ (⌈(t + J)/T⌉ + b − 1) C, and nothing in no time.
pub(crate) fn requested(tasks: &[Task], window: Span) -> Service {
    if window.is_zero() {
        return Service::ZERO;
    }
    let of = |task: &Task| {
        let until_end = window + task.jitter();
        let more = task.burst().get() - 1;
        task.cost() * (until_end.as_nanos().div_ceil(task.period().as_nanos()) + more)
    };
    tasks.iter().map(of).sum()
}

/// When job k arrives after the first at the earliest: a burst comes together.
pub(crate) fn arrival(task: &Task, k: u64) -> Span {
    task.period() * (k + 1).saturating_sub(task.burst().get())
}

/// The busy window by the definition: what [`busy_window_among`](super::busy_window_among) computes. `None` if it does not close within the horizon.
pub(crate) fn busy_window(
    task: &Task,
    interferers: &[Task],
    blocking: Service,
    supply: &impl SupplyBound,
    horizon: Span,
) -> Option<Span> {
    let own = core::slice::from_ref(task);
    let closes = |t: &Span| {
        supply.least_service(*t) >= blocking + requested(interferers, *t) + requested(own, *t)
    };
    let mut ticks = (1..=horizon.as_nanos()).map(Span::from_nanos);
    ticks.find(closes)
}

/// The response time of a task by the definition, each window tried tick by tick: what [`response_time_among`](super::response_time_among)
/// computes. `None` if the busy window does not close within the horizon.
///
/// The busy window is looked for first; then each job that is released in it; for each the least F, and then the least R.
pub(crate) fn response_time(
    task: &Task,
    interferers: &[Task],
    blocking: Service,
    supply: &impl SupplyBound,
    horizon: Span,
) -> Option<Bound> {
    let ticks = || (1..=horizon.as_nanos()).map(Span::from_nanos);
    let length = busy_window(task, interferers, blocking, supply, horizon)?;
    let mut bound = Bound {
        from_arrival: Span::ZERO,
        from_release: Span::ZERO,
    };
    for k in 0.. {
        let arrived = arrival(task, k);
        let release = arrived.saturating_sub(task.jitter());
        if release >= length {
            break;
        }
        let before_tail = blocking + task.cost() * (k + 1) - task.tail();
        let begins =
            |t: &Span| supply.least_service(*t) >= before_tail + requested(interferers, *t);
        let begun = supply.least_service(ticks().find(begins)?);
        let complete = ticks().find(|t| supply.least_service(*t) >= begun + task.tail())?;
        bound.from_arrival = bound.from_arrival.max(complete + task.jitter() - arrived);
        bound.from_release = bound.from_release.max(complete - release);
    }
    Some(bound)
}

/// The longest response from release where all jobs run in the order of release: what [`fifo`](super::fifo) computes, each instant of the busy
/// window tried. `None` if it does not close within the horizon.
pub(crate) fn fifo(tasks: &[Task], supply: &impl SupplyBound, horizon: Span) -> Option<Span> {
    let ticks = || (1..=horizon.as_nanos()).map(Span::from_nanos);
    let length = ticks().find(|t| supply.least_service(*t) >= requested(tasks, *t))?;
    let one = Span::from_nanos(1);
    let releases = ticks().map(|t| t - one).take_while(|t| *t < length);
    let responses = releases.map(|release| {
        let asked = requested(tasks, release + one);
        let complete = ticks().find(|t| supply.least_service(*t) >= asked)?;
        Some(complete.saturating_sub(release))
    });
    responses.collect::<Option<Vec<_>>>()?.into_iter().max()
}

/// The most service for which a task can be blocked without missing a deadline that is no longer than its period less its jitter, on a
/// dedicated processor: max over 0 < t ≤ D − J of t − C − what the more urgent ask for in t. `None` if it misses its deadline even so.
///
/// Yao, Buttazzo, Bertogna, RTCSA 2009.
pub(crate) fn blocking_tolerance(task: &Task, more_urgent: &[Task]) -> Option<Service> {
    let latest = task.deadline().saturating_sub(task.jitter()).as_nanos();
    let slacks = (1..=latest).filter_map(|t| {
        let asked = task.cost() + requested(more_urgent, Span::from_nanos(t));
        t.checked_sub(asked.as_nanos())
    });
    slacks.max().map(Service::from_nanos)
}

/// A job to be run by [`run`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Job {
    /// Its task, an index into the set, whose order is that of priority.
    pub(crate) task: usize,
    /// When it is released.
    pub(crate) release: Span,
    /// What it needs; its task's C or less.
    pub(crate) cost: Service,
}

/// Runs jobs under fixed priorities tick by tick, and says when each is complete: `None` if it is not at the end.
///
/// `supplied(t)` is whether there is service in the tick from t to t + 1. At each tick that is supplied, a job that has begun a region goes
/// on; otherwise the first job of the most urgent task that has one runs, which may be the same. Jobs of one task are to be given in
/// the order of release. A floating region lies at a job's beginning; fixed regions fill it from the beginning, up to the last.
pub(crate) fn run(
    tasks: &[Task],
    jobs: &[Job],
    supplied: impl Fn(Span) -> bool,
    end: Span,
) -> Vec<Option<Span>> {
    let mut done = vec![Service::ZERO; jobs.len()];
    let mut complete = vec![None; jobs.len()];
    let mut running: Option<usize> = None;
    for now in (0..end.as_nanos()).map(Span::from_nanos) {
        if !supplied(now) {
            continue;
        }
        running = running.filter(|job| {
            complete[*job].is_none()
                && !is_point(&tasks[jobs[*job].task], jobs[*job].cost, done[*job])
        });
        if running.is_none() {
            let ready =
                (0..jobs.len()).filter(|job| complete[*job].is_none() && jobs[*job].release <= now);
            running = ready.min_by_key(|job| (jobs[*job].task, *job));
        }
        if let Some(job) = running {
            done[job] += Service::from_nanos(1);
            if done[job] == jobs[job].cost {
                complete[job] = Some(now + Span::from_nanos(1));
            }
        }
    }
    complete
}

/// Whether a job of this cost, of which so much is done, can be preempted there.
fn is_point(task: &Task, cost: Service, done: Service) -> bool {
    match task.preemption() {
        _ if done.is_zero() => true,
        Preemption::Anywhere => true,
        Preemption::Floating { longest } => done >= longest,
        Preemption::Fixed { longest, last } => {
            let before_last = cost.saturating_sub(last);
            done == before_last || (done < before_last && (done % longest).is_zero())
        }
        Preemption::Never => false,
    }
}
