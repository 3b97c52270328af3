//! Rate monotonic with delayed preemption, as the executor of that policy has it: whose job has the least time goes first, and equals in the order in which they
//! enter.

use std::cmp::Ordering;

use laxity_model::Service;
use laxity_model::analysis::supply::SupplyBound;
use laxity_model::analysis::{Doubt, Overflow, Response, Task, fixed_priority};
use laxity_model::executor::rmdp;
use laxity_model::request::ONCE;

use super::TestPlan;
use super::attempt::{Answer, Found, Method, meets};

/// Everybody's response times.
pub(super) fn found(tasks: &[Task], supply: &dyn SupplyBound) -> Result<Found, Overflow> {
    let responses = rmdp::response_times(tasks, supply)?;
    let admits = late(tasks, &responses).next().is_none();
    let order = fixed_priority::deadline_monotonic(tasks);
    Ok((order, responses, admits))
}

pub(super) fn answer(tasks: &[Task], supply: &dyn SupplyBound) -> Result<Answer, Overflow> {
    let (_, responses, admits) = found(tasks, supply)?;
    let is_sure = |place| is_sure(place, (tasks, &responses), supply);
    Ok(if admits {
        Answer::Admits
    } else if late(tasks, &responses).any(is_sure) {
        Answer::Refuses
    } else if responses.contains(&Response::Unknown(Doubt::TooLong)) {
        Answer::TooLong
    } else {
        Answer::CannotTell
    })
}

/// The same in words.
pub(super) fn test<'n>(
    tasks: &[Task],
    name: impl Fn(usize) -> &'n str,
    supply: &dyn SupplyBound,
) -> Result<TestPlan, Overflow> {
    let (_, responses, _) = found(tasks, supply)?;
    let is_sure = |place: &usize| is_sure(*place, (tasks, &responses), supply);
    let sure = late(tasks, &responses).find(is_sure);
    let Some(place) = sure.or_else(|| late(tasks, &responses).next()) else {
        return Ok(TestPlan::new(Method::Rmdp.name(), "admits", ""));
    };
    let name = name(place);
    let why = match responses[place] {
        Response::Bounded(bound) => format!(
            "`{name}` may take {}, and is due in {}",
            bound.from_arrival,
            tasks[place].deadline()
        ),
        Response::Unbounded => {
            format!("`{name}` and those that are no less urgent ask for more than there is")
        }
        Response::Unknown(doubt) => format!("`{name}`: {doubt}"),
    };
    let verdict = match sure {
        Some(_) => "refuses",
        None => "cannot tell",
    };
    Ok(TestPlan::new(Method::Rmdp.name(), verdict, why))
}

/// Those that are not known to be in time.
fn late(tasks: &[Task], responses: &[Response]) -> impl Iterator<Item = usize> {
    let pairs = tasks.iter().zip(responses).enumerate();
    pairs.filter_map(|(place, (task, response))| (!meets(task, *response)).then_some(place))
}

/// Whether one that is not known to be in time can be late: its bound is exact where it has no equals, each of which is counted as if it came first; and else it is late
/// where it is so behind one job of those before it, which a look that finds all at once has go first, or of one behind it, which began just before.
fn is_sure(
    place: usize,
    (tasks, responses): (&[Task], &[Response]),
    supply: &dyn SupplyBound,
) -> bool {
    let own = &tasks[place];
    match responses[place] {
        Response::Unbounded => true,
        Response::Bounded(_) => {
            supply.is_attained() && is_late_behind_one(place, own, tasks, supply)
        }
        Response::Unknown(_) => false,
    }
}

/// Whether a job can be late though each equal has one job before it at the most.
fn is_late_behind_one(place: usize, own: &Task, tasks: &[Task], supply: &dyn SupplyBound) -> bool {
    let mut first = Vec::new();
    let mut begun = Service::ZERO;
    for (other, task) in tasks
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != place)
    {
        match task.deadline().cmp(&own.deadline()) {
            Ordering::Less => first.push(*task),
            Ordering::Equal if other < place => first.extend(Task::new(task.cost(), ONCE)),
            // It began a tick before.
            Ordering::Equal => {
                begun = begun.max(task.cost().saturating_sub(Service::from_nanos(1)));
            }
            Ordering::Greater => begun = begun.max(task.blocking()),
        }
    }
    let found = fixed_priority::response_time_among(own, &first, begun, &supply);
    found.is_ok_and(|found| !matches!(found, Response::Unknown(_)) && !meets(own, found))
}
