//! Rate monotonic with delayed preemption: the job whose handler comes most often goes first, as soon as the running one looks.
//!
//! Gopalakrishnan, Parulkar, "Real-time Upcalls: A Mechanism to Provide Real-time Processing Guarantees", WUCS-95-06, 1995, §5.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::in_order::analysed;
use super::linked::{self, Linked};
use super::{InOrder, Job, Order, Unschedulable, Yielded, long_run};
use crate::analysis::supply::SupplyBound;
use crate::analysis::{self, Budget, Response, Task, fixed_priority};
use crate::base::number::last_of;
use crate::{Instant, Service, Span};

/// The job that has the shortest time from release to deadline goes first; among equals the one that entered first. That time is the
/// handler's period where nothing else is said, so that this is the order of rates, and deadline monotonic elsewhere. A running job is
/// to yield to one that has less time; what is left of it goes on in its turn, before its equals.
pub type Rmdp<const N: usize = { super::HANDLERS }> = InOrder<ByRate, N>;

/// The order of [`Rmdp`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ByRate;

impl Order for ByRate {
    fn rank(job: &Job) -> u64 {
        match job.deadline {
            Instant::MAX => u64::MAX,
            deadline => deadline.saturating_since(job.release).as_nanos(),
        }
    }

    fn yielded(_: Instant) -> Yielded {
        Yielded::InTurn
    }

    /// [Response times](fixed_priority::response_time_among) of all: each waits for the whole of every other with no more time, since
    /// equals go in the order in which they enter (as looks find them released, by place where one look finds several), and once for the longest region of one with more, which may have begun in the very instant of its
    /// release. Exact on an attained supply where no two have the same time and all say which region is their last; and else sufficient.
    fn admit(tasks: &[Task], supply: &dyn SupplyBound) -> Result<(), Unschedulable> {
        let tasks: Vec<Task> = tasks.iter().map(analysed).collect();
        let among = (supply, &Budget::default());
        let bound = |place| bound(&tasks[place], place, &tasks, among).map(drop);
        (0..tasks.len()).try_for_each(bound)
    }

    fn bounds(
        all: &[Linked],
        supply: &dyn SupplyBound,
    ) -> Option<Result<Vec<Span>, Unschedulable>> {
        Some(linked::bounds(all, supply))
    }
}

/// How long the jobs of each of these take at the longest beside the others, in time or not: by this an executor of this policy [admits](Order::admit) them. Only who says nothing
/// of its regions can be preempted anywhere here, and never looks there.
///
/// # Errors
///
/// [`Overflow`](analysis::Overflow), as of [`fixed_priority::response_times`].
pub fn response_times(tasks: &[Task], supply: &dyn SupplyBound) -> analysis::Result<Vec<Response>> {
    let budget = Budget::default();
    let each = tasks.iter().enumerate().map(|(place, own)| {
        let (before, blocking) = beside(own.deadline(), tasks, |other| other != place);
        fixed_priority::response_time_within(own, &before, blocking, &supply, &budget)
    });
    each.collect()
}

/// The longest floating region of each of these that all with less time tolerate, zero if none, where all may have theirs at once; `None` if one is not known to be
/// in time even without any. What regions they have now does not matter. Some 30 response times a task.
///
/// # Errors
///
/// [`Overflow`](analysis::Overflow), as of [`fixed_priority::response_times`].
pub fn longest_regions(
    tasks: &[Task],
    supply: &dyn SupplyBound,
) -> analysis::Result<Option<Vec<Service>>> {
    let budget = Budget::default();
    let mut tolerated = Vec::with_capacity(tasks.len());
    for (place, task) in tasks.iter().enumerate() {
        let own = task.without_regions();
        let due = own.deadline();
        let (before, _) = beside(due, tasks, |other| other != place);
        let is_met = |nanos| {
            let blocking = Service::from_nanos(nanos);
            let found =
                fixed_priority::response_time_within(&own, &before, blocking, &supply, &budget)?;
            Ok(found.bound().is_some_and(|bound| bound.from_arrival <= due))
        };
        if !is_met(0)? {
            return Ok(None);
        }
        let less_urgent = tasks.iter().filter(|other| other.deadline() > due);
        let most = less_urgent
            .map(Task::cost)
            .max()
            .map_or(0, Service::as_nanos);
        let most = match is_met(most)? {
            true => most,
            false => last_of(0, most, is_met)?,
        };
        tolerated.push((due, Service::from_nanos(most)));
    }
    let longest = tasks.iter().map(|task| {
        let more_urgent = tolerated.iter().filter(|(due, _)| *due < task.deadline());
        let all = more_urgent.map(|(_, most)| *most).chain([task.cost()]);
        all.min().unwrap_or(Service::ZERO)
    });
    Ok(Some(longest.collect()))
}

/// How long after its arrival a job of this task is over at the latest, beside all the others of these: if that is in time. What it is to itself may be something else than what it
/// is to others.
fn bound(
    own: &Task,
    place: usize,
    tasks: &[Task],
    (supply, budget): (&dyn SupplyBound, &Budget),
) -> Result<Span, Unschedulable> {
    let (before, blocking) = beside(own.deadline(), tasks, |other| other != place);
    let bound = response(own, place, (&before, blocking), (supply, budget))?;
    in_time(own, place, (bound, blocking), supply)
}

/// Those of these for whom a job waits that has so much time, and for how long it may wait for one of the others. Of those who are `there`.
pub(super) fn beside(
    deadline: Span,
    tasks: &[Task],
    there: impl Fn(usize) -> bool,
) -> (Vec<Task>, Service) {
    let (mut before, mut blocking) = (Vec::new(), Service::ZERO);
    for (_, task) in tasks.iter().enumerate().filter(|(place, _)| there(*place)) {
        if task.deadline() <= deadline {
            before.push(*task);
        } else {
            blocking = blocking.max(task.longest_region());
        }
    }
    (before, blocking)
}

/// How long after its arrival a job of this task is over at the latest, in time or not, where these go before it.
pub(super) fn response(
    own: &Task,
    place: usize,
    (before, blocking): (&[Task], Service),
    (supply, budget): (&dyn SupplyBound, &Budget),
) -> Result<Span, Unschedulable> {
    let refused = |reason| Unschedulable {
        bottleneck: Some(place),
        reason,
    };
    let response = fixed_priority::response_time_within(own, before, blocking, &supply, budget);
    match response.map_err(|overflow| refused(format!("{overflow}")))? {
        Response::Bounded(bound) => Ok(bound.from_arrival),
        Response::Unbounded => Err(refused(format!(
            "the bottleneck and those that are no less urgent need more than {}, which is all there is",
            long_run(supply)
        ))),
        Response::Unknown(doubt) => Err(refused(format!("{doubt}"))),
    }
}

/// The bound, if that is in time.
pub(super) fn in_time(
    own: &Task,
    place: usize,
    (bound, blocking): (Span, Service),
    supply: &dyn SupplyBound,
) -> Result<Span, Unschedulable> {
    if bound <= own.deadline() {
        return Ok(bound);
    }
    Err(Unschedulable {
        bottleneck: Some(place),
        reason: format!(
            "rate monotonic with delayed preemption, a job of the bottleneck may take {}, {blocking} of it for the less urgent{}, and is due in {}",
            bound.beside(own.deadline()),
            waits(own.jitter(), supply.delay()),
            own.deadline().beside(bound)
        ),
    })
}

/// What else a job may wait for, whoever else is there.
fn waits(late: Span, delay: Span) -> String {
    let all = [
        (late, "before it is released"),
        (delay, "until it has the processor"),
    ];
    let all = all.into_iter().filter(|(span, _)| !span.is_zero());
    all.map(|(span, what)| format!(", {span} {what}")).collect()
}
