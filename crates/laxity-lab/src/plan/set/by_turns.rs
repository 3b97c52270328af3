//! Rate monotonic with delayed preemption, as the executor of that policy has it: whose job has the least time goes first, and equals in the order in which they
//! enter.

use laxity_model::analysis::supply::SupplyBound;
use laxity_model::analysis::{Doubt, Overflow, Response, Task, fixed_priority};
use laxity_model::executor::rmdp;

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

/// Whether one that is not known to be in time can be late: its bound is exact where it has no equals, each of which is counted as if it came first.
fn is_sure(
    place: usize,
    (tasks, responses): (&[Task], &[Response]),
    supply: &dyn SupplyBound,
) -> bool {
    let due = tasks[place].deadline();
    let equals = tasks.iter().filter(|task| task.deadline() == due);
    match responses[place] {
        Response::Unbounded => true,
        Response::Bounded(_) => supply.is_attained() && equals.count() == 1,
        Response::Unknown(_) => false,
    }
}
