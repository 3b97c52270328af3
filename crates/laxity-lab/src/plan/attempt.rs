//! The tasks of one processor under one scheduler: everybody's response time, and whether all deadlines are met.

use std::num::NonZeroU16;

use laxity_model::analysis::multiprocessor::{DeadlineRequest, KernelLimits, kernel_admits};
use laxity_model::analysis::supply::{KernelDeadline, SupplyBound};
use laxity_model::analysis::{
    Doubt, Fraction, Overflow, Response, Task, edf, fixed_priority, utilization,
};
use laxity_model::{Reservation, Service, Span};

use super::Scheduler;
use crate::import::Policy;

/// A task on its processor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) policy: Policy,
    /// What it does, or why that is not known.
    pub(super) work: Result<Task, String>,
}

/// Who schedules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Method {
    /// As the file says: reservations by deadline, below them priorities, below them timesharing.
    AsGiven,
    /// Priorities by deadline.
    Monotonic,
    /// The best priorities (Audsley).
    BestOrder,
    /// Earliest deadline first.
    Edf,
    /// Priorities by rate, admitted by the upcalls paper's test.
    Rmdp,
}

impl Method {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::AsGiven => "response times, as the file says",
            Self::Monotonic => "response times, priorities by deadline",
            Self::BestOrder => "response times, best priorities",
            Self::Edf => "earliest deadline first, by demand",
            Self::Rmdp => "RMDP",
        }
    }

    pub(super) const fn has_fixed_priorities(self) -> bool {
        !matches!(self, Self::Edf)
    }
}

/// Which schedulers are asked for a set of such members, the one that is preferred first.
pub(super) fn methods(members: &[Member], scheduler: Scheduler) -> Vec<Method> {
    let ranked = |member: &Member| matches!(member.policy, Policy::Priority(_));
    let said = |member: &Member| member.policy != Policy::Unsaid;
    match scheduler {
        Scheduler::Auto if members.iter().any(said) => vec![Method::AsGiven],
        Scheduler::Auto => vec![Method::Monotonic, Method::BestOrder, Method::Edf],
        Scheduler::FixedPriority if members.iter().all(ranked) => vec![Method::AsGiven],
        Scheduler::FixedPriority => vec![Method::Monotonic, Method::BestOrder],
        Scheduler::Edf => vec![Method::Edf],
        Scheduler::Rmdp => vec![Method::Rmdp],
    }
}

/// Whether a scheduler admits these: what [`attempt`] says, without everybody's response times where that is quicker.
pub(super) fn admits(
    method: Method,
    members: &[Member],
    supply: &dyn SupplyBound,
) -> Result<bool, Overflow> {
    if method == Method::AsGiven {
        return Ok(as_given(members, supply)?.admits);
    }
    let tasks: Vec<Task> = members
        .iter()
        .filter_map(|member| member.work.clone().ok())
        .collect();
    accepts(method, &tasks, supply)
}

/// Whether a scheduler that asks nobody's policy admits these tasks; one that does takes them by deadline.
pub(super) fn accepts(
    method: Method,
    tasks: &[Task],
    supply: &dyn SupplyBound,
) -> Result<bool, Overflow> {
    let sorted =
        |order: Vec<usize>| -> Vec<Task> { order.iter().map(|index| tasks[*index]).collect() };
    let verdict = match method {
        Method::BestOrder => return Ok(fixed_priority::best_order(tasks, &supply)?.is_some()),
        Method::Edf => edf::test(tasks, &supply)?,
        Method::Rmdp if !is_whole(supply) => return Ok(false),
        Method::Rmdp => utilization::rmdp(&sorted(fixed_priority::rate_monotonic(tasks)))?,
        Method::AsGiven | Method::Monotonic => {
            fixed_priority::test(&sorted(fixed_priority::deadline_monotonic(tasks)), &supply)?
        }
    };
    Ok(verdict.is_schedulable() && !tasks.is_empty())
}

/// Whether a supply is a processor of one's own, which the utilization bounds are made for.
pub(super) fn is_whole(supply: &dyn SupplyBound) -> bool {
    supply
        .rate()
        .compare_sum(core::iter::once(Fraction::ONE))
        .is_le()
        && supply.delay().is_zero()
}

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Attempt {
    pub(super) method: Method,
    /// The members, the most urgent first where priorities are fixed.
    pub(super) order: Vec<usize>,
    /// By member: how long its jobs take, or why that is not known.
    pub(super) responses: Vec<Result<Response, String>>,
    /// Whether everybody who was promised something gets it.
    pub(super) admits: bool,
}

/// Whether a response is over by the deadline.
pub(super) fn meets(task: &Task, response: Response) -> bool {
    response
        .bound()
        .is_some_and(|bound| bound.from_arrival <= task.deadline())
}

/// Tries a scheduler.
pub(super) fn attempt(
    method: Method,
    members: &[Member],
    supply: &dyn SupplyBound,
) -> Result<Attempt, Overflow> {
    match method {
        Method::AsGiven => as_given(members, supply),
        Method::Edf => free(method, members, |tasks| {
            let order = (0..tasks.len()).collect();
            let responses = edf::response_times(tasks, &supply)?;
            let admits = edf::test(tasks, &supply)?.is_schedulable();
            Ok((order, responses, admits))
        }),
        Method::Monotonic => free(method, members, |tasks| {
            ordered(tasks, fixed_priority::deadline_monotonic(tasks), supply)
        }),
        Method::BestOrder => free(method, members, |tasks| {
            let best = fixed_priority::best_order(tasks, &supply)?;
            let order = best.unwrap_or_else(|| fixed_priority::deadline_monotonic(tasks));
            ordered(tasks, order, supply)
        }),
        Method::Rmdp => free(method, members, |tasks| {
            let order = fixed_priority::rate_monotonic(tasks);
            let sorted: Vec<Task> = order.iter().map(|index| tasks[*index]).collect();
            let says = utilization::rmdp(&sorted)?.is_schedulable();
            let (order, responses, _) = ordered(tasks, order, supply)?;
            Ok((order, responses, says && is_whole(supply)))
        }),
    }
}

type Found = (Vec<usize>, Vec<Response>, bool);

/// Fixed priorities in this order.
fn ordered(tasks: &[Task], order: Vec<usize>, supply: &dyn SupplyBound) -> Result<Found, Overflow> {
    let sorted: Vec<Task> = order.iter().map(|index| tasks[*index]).collect();
    let found = fixed_priority::response_times(&sorted, &supply)?;
    let mut responses = vec![Response::Unbounded; tasks.len()];
    for (index, response) in order.iter().zip(found) {
        responses[*index] = response;
    }
    let mut pairs = tasks.iter().zip(&responses);
    let admits = pairs.all(|(task, response)| meets(task, *response));
    Ok((order, responses, admits))
}

/// A scheduler that asks nobody's policy. Who is not known stays below all others, and is promised nothing.
fn free(
    method: Method,
    members: &[Member],
    found: impl FnOnce(&[Task]) -> Result<Found, Overflow>,
) -> Result<Attempt, Overflow> {
    let known: Vec<usize> = (0..members.len())
        .filter(|index| members[*index].work.is_ok())
        .collect();
    let tasks: Vec<Task> = members
        .iter()
        .filter_map(|member| member.work.clone().ok())
        .collect();
    let (order, found, admits) = found(&tasks)?;
    let mut responses: Vec<Result<Response, String>> = members
        .iter()
        .map(|member| match &member.work {
            Ok(_) => Ok(Response::Unbounded),
            Err(why) => Err(why.clone()),
        })
        .collect();
    for (index, response) in known.iter().zip(found) {
        responses[*index] = Ok(response);
    }
    let mut order: Vec<usize> = order.into_iter().map(|index| known[index]).collect();
    order.extend((0..members.len()).filter(|index| members[*index].work.is_err()));
    Ok(Attempt {
        method,
        order,
        responses,
        // A set of which nothing is known is not admitted.
        admits: admits && !tasks.is_empty(),
    })
}

/// Its reservation as a task: X every Y, due when the kernel has to have given it.
fn budget(policy: Policy) -> Option<Task> {
    let Policy::Deadline {
        runtime,
        period,
        deadline,
    } = policy
    else {
        return None;
    };
    let task = Task::new(runtime, period).ok()?;
    task.with_deadline(deadline).ok()
}

/// Whether the kernel lets the reservations in where this processor is all there is; `None` if there are none.
pub(super) fn kernel_refusal(members: &[Member]) -> Option<Result<(), String>> {
    let asking = |member: &Member| match member.policy {
        Policy::Deadline {
            runtime,
            period,
            deadline,
        } => Some(DeadlineRequest {
            runtime,
            deadline,
            period,
        }),
        _ => None,
    };
    let pairs = members
        .iter()
        .filter_map(|member| Some((member, asking(member)?)));
    let (holders, requests): (Vec<&Member>, Vec<DeadlineRequest>) = pairs.unzip();
    if requests.is_empty() {
        return None;
    }
    let found = kernel_admits(&requests, NonZeroU16::MIN, &KernelLimits::WITH_FAIR_SERVER);
    Some(match found {
        Ok(_) => Ok(()),
        Err((index, refusal)) => Err(format!("`{}`: {refusal}", holders[index].name)),
    })
}

fn level(policy: Policy) -> Option<u8> {
    match policy {
        Policy::Priority(level) => Some(level),
        _ => None,
    }
}

/// Where a policy stands, the most urgent first.
fn rank(policy: Policy) -> (u8, u8) {
    match policy {
        Policy::Deadline { .. } => (0, 0),
        Policy::Priority(level) => (1, u8::MAX - level),
        Policy::Unsaid => (2, 0),
        Policy::Timesharing => (3, 0),
    }
}

fn as_given(members: &[Member], supply: &dyn SupplyBound) -> Result<Attempt, Overflow> {
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|index| rank(members[*index].policy));
    let budgets: Vec<Task> = members
        .iter()
        .filter_map(|member| budget(member.policy))
        .collect();
    let kernel = kernel_refusal(members).unwrap_or(Ok(()));
    let in_time = match kernel {
        Ok(()) if budgets.is_empty() || edf::test(&budgets, &supply)?.is_schedulable() => Ok(()),
        Ok(()) => Err("the reservations by deadline are more than there is".to_owned()),
        Err(why) => Err(format!("the kernel refuses {why}")),
    };
    let mut of_budgets = edf::response_times(&budgets, &supply)?.into_iter();
    let mut responses = Vec::new();
    for member in members {
        responses.push(match member.policy {
            Policy::Deadline { .. } => {
                let own = of_budgets.next().unwrap_or(Response::Unbounded);
                reserved(member, own, &in_time)?
            }
            Policy::Priority(_) => by_priority(member, members, &budgets, supply)?,
            Policy::Unsaid | Policy::Timesharing => match &member.work {
                Ok(_) => Err("it is timesharing: nothing is promised to it".into()),
                Err(why) => Err(why.clone()),
            },
        });
    }
    let promised = |policy: Policy| matches!(policy, Policy::Deadline { .. } | Policy::Priority(_));
    let mut pairs = members.iter().zip(&responses);
    let admits = pairs.all(|(member, response)| match (&member.work, response) {
        _ if !promised(member.policy) => true,
        (Ok(task), Ok(response)) => meets(task, *response),
        _ => false,
    });
    Ok(Attempt {
        method: Method::AsGiven,
        order,
        responses,
        admits,
    })
}

/// A task in its own reservation; `own` is how long its budget takes to come.
fn reserved(
    member: &Member,
    own: Response,
    in_time: &Result<(), String>,
) -> Result<Result<Response, String>, Overflow> {
    let (task, runtime, period, deadline) = match (&member.work, member.policy) {
        (Err(why), _) => return Ok(Err(why.clone())),
        (
            Ok(task),
            Policy::Deadline {
                runtime,
                period,
                deadline,
            },
        ) => (task, runtime, period, deadline),
        (Ok(_), _) => return Ok(Err("it has no reservation".into())),
    };
    if let Err(why) = in_time {
        return Ok(Err(why.clone()));
    }
    if task.cost() <= runtime && task.period() >= period {
        return Ok(Ok(own));
    }
    let Some(reservation) = Reservation::new(runtime, period)
        .ok()
        .filter(|_| deadline == period)
    else {
        return Ok(Err(format!(
            "a job of {} every {} is more than a budget of {runtime} every {period}, due in {deadline}",
            task.cost(),
            task.period()
        )));
    };
    let supply = KernelDeadline::among_others(reservation, Span::ZERO)?;
    let response = fixed_priority::response_time(&[*task], 0, &supply)?;
    Ok(Ok(response))
}

/// A task by its priority: whoever is not below it may go first.
fn by_priority(
    member: &Member,
    members: &[Member],
    budgets: &[Task],
    supply: &dyn SupplyBound,
) -> Result<Result<Response, String>, Overflow> {
    let task = match &member.work {
        Ok(task) => task,
        Err(why) => return Ok(Err(why.clone())),
    };
    // Two budgets may lie back to back: the end of one period, the beginning of the next.
    let mut interferers: Vec<Task> = budgets
        .iter()
        .map(|budget| {
            let late = budget
                .deadline()
                .as_nanos()
                .saturating_sub(budget.cost().as_nanos());
            budget.with_jitter(Span::from_nanos(late))
        })
        .collect();
    let mut blocking = Service::ZERO;
    for other in members.iter().filter(|other| other.name != member.name) {
        match (&other.work, level(other.policy) >= level(member.policy)) {
            _ if level(other.policy).is_none() => {}
            (Ok(work), true) => interferers.push(*work),
            (Ok(work), false) => blocking = blocking.max(work.blocking()),
            (Err(why), true) => {
                return Ok(Err(format!(
                    "`{}` may go first, and is not analysed: {why}",
                    other.name
                )));
            }
            (Err(_), false) => {}
        }
    }
    let response = fixed_priority::response_time_among(task, &interferers, blocking, &supply)?;
    Ok(Ok(response))
}

/// A doubt in words.
pub(crate) fn why_unknown(response: Response) -> Option<&'static str> {
    match response {
        Response::Bounded(_) => None,
        Response::Unbounded => Some("it and what goes first ask for more than there is"),
        Response::Unknown(Doubt::TooLong) => Some("the busy window is too long to be searched"),
        Response::Unknown(_) => Some("the analysis is not made for it"),
    }
}
