//! The slow, obvious answers that the fast ones are tested against: every tick is tried. For small numbers only.

use laxity_model::analysis::supply::SupplyBound;
use laxity_model::analysis::{Bound, Task};
use laxity_model::{Service, Span};

/// dbf(t), job by job: those that are released at or after 0, the first as late as it may, the others as early as they may,
/// and due by `window`.
pub(crate) fn demand(tasks: &[Task], window: Span) -> Service {
    let mut demand = Service::ZERO;
    for task in tasks {
        // Times from the arrival of the first.
        let (begin, mut arrival) = (task.jitter(), Span::ZERO);
        // A burst comes first.
        let mut jobs = task.burst().get();
        while arrival + task.deadline() <= begin + window {
            demand += task.cost() * jobs;
            arrival += task.period();
            jobs = 1;
        }
    }
    demand
}

/// The first time up to `horizon` by which something is due, and more than the supply is sure to have given, with the longest
/// region that can have begun before. O(horizon · jobs).
pub(crate) fn first_overload<S: SupplyBound>(
    tasks: &[Task],
    supply: &S,
    horizon: Span,
) -> Option<Span> {
    let overloaded = |time: &Span| {
        let demand = demand(tasks, *time);
        let blockers = tasks
            .iter()
            .filter(|task| task.deadline() > *time + task.jitter());
        let blocking = blockers.map(Task::blocking).max().unwrap_or_default();
        !demand.is_zero() && demand + blocking > supply.least_service(*time)
    };
    (0..=horizon.as_nanos())
        .map(Span::from_nanos)
        .find(overloaded)
}

/// The longest response times of a task's jobs, by trying every arrival in the busy window, or where that is longer than `horizon`, up to there.
/// O(horizon³ · jobs) at worst.
pub(crate) fn response_time<S: SupplyBound>(
    tasks: &[Task],
    index: usize,
    supply: &S,
    horizon: Span,
) -> Option<Bound> {
    let nanos = |span: Span| i128::from(span.as_nanos());
    let given = |window: i128| {
        let window = u64::try_from(window).unwrap_or(0);
        i128::from(supply.least_service(Span::from_nanos(window)).as_nanos())
    };
    let cost = |task: &Task| i128::from(task.cost().as_nanos());
    // How many jobs a task can release in a window, among those that arrive at or before `last` and are released in a busy
    // window that begins at 0.
    let jobs = |task: &Task, window: i128, last: i128| {
        let more = i128::from(task.burst().get()) - 1;
        let arrivals =
            (0..).map(|k: i128| (k - more).max(0) * nanos(task.period()) - nanos(task.jitter()));
        arrivals
            .take_while(|arrival| (*arrival < window) && *arrival <= last)
            .count() as i128
    };
    let request = |window| {
        let all = tasks
            .iter()
            .map(|task| jobs(task, window, window) * cost(task));
        all.sum::<i128>()
    };
    let busy = (1..=nanos(horizon)).find(|length| request(*length) <= given(*length));
    let busy = busy.unwrap_or(nanos(horizon));
    let own = &tasks[index];
    let tail = i128::from(own.tail().as_nanos());
    let completion = |arrival: i128| {
        let due = arrival + nanos(own.deadline());
        let blockers = tasks
            .iter()
            .filter(|task| nanos(task.deadline()) - nanos(task.jitter()) > due);
        let blocking = blockers
            .map(|task| i128::from(task.blocking().as_nanos()))
            .max();
        let earlier = jobs(own, i128::MAX, arrival) * cost(own) - tail;
        let workload = |window: i128| {
            let others = tasks
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != index);
            let others = others
                .map(|(_, task)| jobs(task, window, due - nanos(task.deadline())) * cost(task));
            blocking.unwrap_or(0) + earlier + others.sum::<i128>()
        };
        let alone = (1..).find(|window| given(*window) >= workload(*window));
        let service = workload(alone.unwrap_or(1)) + tail;
        (1..).find(|window| given(*window) >= service).unwrap_or(0)
    };
    let arrivals = || -nanos(own.jitter())..busy;
    let span = |ticks: Option<i128>| u64::try_from(ticks?).ok().map(Span::from_nanos);
    Some(Bound {
        from_arrival: span(
            arrivals()
                .map(|arrival| completion(arrival) - arrival)
                .max(),
        )?,
        from_release: span(
            arrivals()
                .map(|arrival| completion(arrival) - arrival.max(0))
                .max(),
        )?,
    })
}
