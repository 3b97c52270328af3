//! The tasks of one processor under one scheduler: everybody's response time, and whether all deadlines are met.

use laxity_model::Service;
use laxity_model::analysis::Budget;
use laxity_model::analysis::supply::SupplyBound;
use laxity_model::analysis::{
    Doubt, Fraction, Overflow, Response, Search, Task, Verdict, edf, fixed_priority, utilization,
};
use laxity_model::request::ONCE;

use super::budgets::{Budgets, begins_whole, budget, seen_below};
use super::place::share;
use super::{Scheduler, by_turns};
use crate::import::Policy;
use crate::plan::{NoBound, Reason, bound};

/// A task on its processor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) policy: Policy,
    /// What it does, or why that is not known.
    pub(super) work: Result<Task, String>,
    /// Whether it may ask for less than that.
    pub(super) asks_less: bool,
    /// Whether it sleeps within its jobs, or behind them and by no timer.
    pub(super) sleeps: bool,
    /// Whether it takes turns with those of its priority.
    pub(super) takes_turns: bool,
    /// Whether the file says when its jobs are due.
    pub(super) own_deadline: bool,
    /// Whether it may be on one processor alone.
    pub(super) is_bound: bool,
}

impl Member {
    /// Whether nobody of its priority goes before a job that came later: who sleeps within a job is behind those that came meanwhile.
    pub(super) const fn keeps_its_place(&self) -> bool {
        !self.sleeps && !self.takes_turns
    }
}

/// The members of whose work something is known, and that.
pub(super) fn known(members: &[Member]) -> (Vec<usize>, Vec<Task>) {
    let pairs = members.iter().enumerate();
    pairs
        .filter_map(|(index, member)| Some((index, *member.work.as_ref().ok()?)))
        .unzip()
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
    /// Priorities by the time until a job is due; who is preempted goes on to the end of its region (Gopalakrishnan, Parulkar, "Real-time Upcalls").
    Rmdp,
}

impl Method {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::AsGiven => "response times, as the file says",
            Self::Monotonic => "response times, priorities by deadline",
            Self::BestOrder => "response times, best priorities",
            Self::Edf => "earliest deadline first, by demand",
            Self::Rmdp => "response times under RMDP",
        }
    }

    pub(super) const fn has_fixed_priorities(self) -> bool {
        !matches!(self, Self::Edf)
    }

    /// Whether it promises anything to who is scheduled so; whatever others do leaves all that it promises as it is.
    pub(super) const fn promises_to(self, policy: Policy) -> bool {
        !matches!(self, Self::AsGiven) || !matches!(policy, Policy::Unsaid | Policy::Timesharing)
    }
}

/// Which schedulers are asked for a set of such members, the one that is preferred first.
pub(super) fn methods(members: &[Member], scheduler: Scheduler) -> Vec<Method> {
    let ranked = |member: &Member| {
        matches!(
            member.policy,
            Policy::Priority(_) | Policy::Changing(Some(_))
        )
    };
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

/// What a scheduler's test says of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    Admits,
    /// It does not admit it, after a search to the end.
    Refuses,
    /// It was not searched to the end.
    TooLong,
    /// Its test does not admit it, and does not know it to miss a deadline either.
    CannotTell,
}

/// Whether a scheduler admits these: what [`attempt`] says, without everybody's response times where that is quicker.
pub(super) fn admits(
    method: Method,
    members: &[Member],
    supply: &dyn SupplyBound,
) -> Result<Answer, Overflow> {
    if method == Method::AsGiven {
        let found = as_given(members, supply)?;
        return Ok(match (found.admits, found.is_too_long()) {
            (true, _) => Answer::Admits,
            (false, false) => Answer::Refuses,
            (false, true) => Answer::TooLong,
        });
    }
    let (_, tasks) = known(members);
    // A search that ends because its numbers do not fit has not been to the end.
    Ok(accepts(method, &tasks, supply).unwrap_or(Answer::TooLong))
}

/// Whether a scheduler that asks nobody's policy admits these tasks; one that does takes them by deadline.
pub(super) fn accepts(
    method: Method,
    tasks: &[Task],
    supply: &dyn SupplyBound,
) -> Result<Answer, Overflow> {
    if tasks.is_empty() {
        return Ok(Answer::Refuses);
    }
    let verdict = match method {
        Method::BestOrder => {
            return Ok(match fixed_priority::best_order(tasks, &supply)? {
                Search::Found(_) => Answer::Admits,
                Search::Unknown(Doubt::TooLong) => Answer::TooLong,
                Search::None => Answer::Refuses,
                Search::Unknown(_) => Answer::CannotTell,
            });
        }
        Method::Edf => edf::test(tasks, &supply)?,
        Method::Rmdp => return by_turns::answer(tasks, supply),
        Method::AsGiven | Method::Monotonic => {
            let order = fixed_priority::deadline_monotonic(tasks);
            fixed_priority::test(&in_order(tasks, &order), &supply)?
        }
    };
    Ok(match verdict {
        Verdict::Schedulable => Answer::Admits,
        Verdict::Unknown(Doubt::TooLong) => Answer::TooLong,
        Verdict::NotSchedulable(_) => Answer::Refuses,
        Verdict::Unknown(_) => Answer::CannotTell,
    })
}

pub(super) fn in_order(tasks: &[Task], order: &[usize]) -> Vec<Task> {
    order.iter().map(|index| tasks[*index]).collect()
}

/// What a test for priorities by rate says.
pub(super) struct ByRate {
    pub(super) verdict: Verdict,
    /// Whether min(T, D) − J stands for the periods.
    pub(super) is_shortened: bool,
}

/// Asks a test that is made for tasks that are due by their periods, without jitter, with priorities by rate. Where that is not so, min(T, D) − J
/// stands for the period: who meets its deadlines so meets its own.
pub(super) fn by_rate(
    tasks: &[Task],
    test: impl Fn(&[Task]) -> Result<Verdict, Overflow>,
) -> Result<ByRate, Overflow> {
    let found = |tasks: &[Task], is_shortened| {
        let order = fixed_priority::rate_monotonic(tasks);
        let verdict = test(&in_order(tasks, &order))?;
        Ok(ByRate {
            verdict,
            is_shortened,
        })
    };
    let as_it_is = found(tasks, false)?;
    if as_it_is.verdict == Verdict::Unknown(Doubt::OutOfScope) {
        let implicit: Option<Vec<Task>> = tasks.iter().map(utilization::implicit).collect();
        if let Some(implicit) = implicit.filter(|implicit| implicit != tasks) {
            return found(&implicit, true);
        }
    }
    Ok(as_it_is)
}

/// Whether a supply is a processor of one's own, which the utilization bounds are made for.
pub(super) fn is_whole(supply: &dyn SupplyBound) -> bool {
    supply.rate() >= Fraction::ONE && supply.delay().is_zero()
}

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Attempt {
    pub(super) method: Method,
    /// The members, the most urgent first where priorities are fixed.
    pub(super) order: Vec<usize>,
    /// By member: how long its jobs take, or why that is not known.
    pub(super) responses: Vec<Result<Response, Reason>>,
    /// Whether everybody who was promised something gets it.
    pub(super) admits: bool,
}

impl Attempt {
    /// Whether somebody's busy window was not searched to the end.
    pub(super) fn is_too_long(&self) -> bool {
        let too_long = Ok(Response::Unknown(Doubt::TooLong));
        self.responses.contains(&too_long)
    }
}

/// Whether a response is over by the deadline.
pub(super) fn meets(task: &Task, response: Response) -> bool {
    bound(response).is_ok_and(|bound| bound <= task.deadline())
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
            let order = best
                .found()
                .unwrap_or_else(|| fixed_priority::deadline_monotonic(tasks));
            ordered(tasks, order, supply)
        }),
        Method::Rmdp => free(method, members, |tasks| by_turns::found(tasks, supply)),
    }
}

/// The order, everybody's response, and whether all are in time.
pub(super) type Found = (Vec<usize>, Vec<Response>, bool);

/// Fixed priorities in this order.
fn ordered(tasks: &[Task], order: Vec<usize>, supply: &dyn SupplyBound) -> Result<Found, Overflow> {
    let found = fixed_priority::response_times(&in_order(tasks, &order), &supply)?;
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
    let (known, tasks) = known(members);
    let (order, found, admits) = found(&tasks)?;
    let mut found = found.into_iter();
    let responses = members.iter().map(|member| {
        let work = member
            .work
            .as_ref()
            .map_err(|why| Reason::from(why.as_str()));
        work.map(|_| found.next().unwrap_or(Response::Unbounded))
    });
    let responses = responses.collect();
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

/// Where a policy stands, the most urgent first.
fn rank(policy: Policy) -> (u8, u8) {
    match policy {
        Policy::Deadline(_) | Policy::Changing(None) => (0, 0),
        Policy::Priority(level) | Policy::Changing(Some(level)) => (1, u8::MAX - level),
        Policy::Unsaid => (2, 0),
        Policy::Timesharing => (3, 0),
    }
}

/// So much is looked at for all of a set together: about half a second.
const EFFORT: u64 = 1 << 28;

fn as_given(members: &[Member], supply: &dyn SupplyBound) -> Result<Attempt, Overflow> {
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|index| rank(members[*index].policy));
    let effort = Budget::of(EFFORT);
    let mut own = Budgets::of(members, are_all_reservations_known(members), supply)?;
    let budgets: Vec<Task> = members.iter().filter_map(seen_below).collect();
    let is_overloaded = is_overloaded(members);
    let mut responses = Vec::new();
    for (place, member) in members.iter().enumerate() {
        responses.push(NoBound::settle(match member.policy {
            Policy::Deadline(request) => own.response((place, member), request),
            Policy::Priority(level) => by_priority(
                (member, level),
                Equals::All,
                members,
                &budgets,
                (supply, &effort),
            ),
            Policy::Unsaid | Policy::Timesharing | Policy::Changing(_) => match &member.work {
                Ok(_) => Err(of_no_promise(member, is_overloaded).into()),
                Err(why) => Err(why.clone().into()),
            },
        })?);
    }
    let mut pairs = members.iter().zip(&responses);
    let admits = pairs.all(|(member, response)| match (&member.work, response) {
        _ if !Method::AsGiven.promises_to(member.policy) => !is_surely_late(member, is_overloaded),
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

/// Whether members surely take more of their processor in the long run than there is of it: those that may be on no other one, and do all that is
/// known of them, a reservation permitting. Who sleeps runs less than is analysed, or comes less often where it is late.
pub(super) fn is_overloaded(members: &[Member]) -> bool {
    let sure = |member: &&Member| member.is_bound && !member.asks_less && !member.sleeps;
    let taken = |member: &Member| {
        let asked = share(member.work.as_ref().ok()?);
        let most = budget(member.policy).map_or(asked, |budget| share(&budget));
        Some(asked.min(most))
    };
    let taken = members.iter().filter(sure).filter_map(taken);
    Fraction::ONE.compare_sum(taken).is_gt()
}

/// Whether jobs of one to whom nothing is promised are late whatever the others leave: they take longer even alone, or all together are more than there is.
pub(super) fn is_surely_late(member: &Member, is_overloaded: bool) -> bool {
    let task = member.work.as_ref().ok();
    let is_alone = |task: &Task| task.cost().as_dedicated_span() > task.deadline();
    let falls_behind = is_overloaded && !member.sleeps;
    !member.asks_less && task.is_some_and(|task| falls_behind || is_alone(task))
}

/// Why there is no bound of one to whom nothing is promised.
fn of_no_promise(member: &Member, is_overloaded: bool) -> Reason {
    if !is_surely_late(member, is_overloaded) {
        return "it is timesharing: nothing is promised to it".into();
    }
    Reason {
        words: match is_overloaded {
            true => "it and all others here ask for more than there is".into(),
            false => "its job takes longer than until it is due, even alone".into(),
        },
        is_too_much: is_overloaded,
    }
}

/// Why nothing is known of whom one may delay that is not analysed.
fn goes_before(other: &Member, why: &str) -> Reason {
    let name = &other.name;
    format!("`{name}` may go first, and is not analysed: {why}").into()
}

/// Whether all that may have a reservation by deadline have the one that the file says.
///
/// # Errors
///
/// Who may have another.
pub(super) fn are_all_reservations_known(members: &[Member]) -> Result<(), Reason> {
    let mut others = members.iter();
    let other = others.find(|other| other.policy == Policy::Changing(None));
    other.map_or(Ok(()), |other| {
        let why = other.work.as_ref().err();
        Err(goes_before(other, why.map_or("", String::as_str)))
    })
}

/// What equals do that may go first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Equals {
    /// All that comes: under `SCHED_FIFO` a thread that is at work when its next job comes goes on with that, and does not queue again.
    All,
    /// A job of each, which came just before.
    Once,
}

/// A task by its priority: whoever is above it goes first, and so may its equals.
fn by_priority(
    (member, level): (&Member, u8),
    equals: Equals,
    members: &[Member],
    budgets: &[Task],
    (supply, effort): (&dyn SupplyBound, &Budget),
) -> Result<Response, NoBound> {
    let task = member.work.as_ref().map_err(String::clone)?;
    let mut interferers = budgets.to_vec();
    let mut blocking = Service::ZERO;
    for other in members.iter().filter(|other| other.name != member.name) {
        let goes_first = match other.policy {
            Policy::Priority(theirs) | Policy::Changing(Some(theirs)) => theirs >= level,
            Policy::Changing(None) => true,
            Policy::Deadline(_) | Policy::Unsaid | Policy::Timesharing => continue,
        };
        let comes_once = equals == Equals::Once && other.policy == member.policy;
        match (&other.work, goes_first) {
            (Ok(work), true) if comes_once => {
                interferers.push(Task::new(work.cost(), ONCE).unwrap_or(*work));
            }
            (Ok(work), true) => interferers.push(*work),
            (Ok(work), false) => blocking = blocking.max(work.blocking()),
            (Err(why), true) => return Err(goes_before(other, why).into()),
            (Err(_), false) => {}
        }
    }
    let found =
        fixed_priority::response_time_within(task, &interferers, blocking, &supply, effort)?;
    Ok(found)
}

/// Whether a job by priority is late in a course of events that there may be: of reservations those go before it whose jobs each begin with a whole budget, with
/// what these do, and of each of its equals a job that came just before it.
pub(super) fn can_be_late(
    member: &Member,
    members: &[Member],
    supply: &dyn SupplyBound,
) -> Result<bool, Overflow> {
    let (Policy::Priority(level), Ok(task)) = (member.policy, &member.work) else {
        return Ok(false);
    };
    let mut equals = members.iter().filter(|other| other.policy == member.policy);
    let is_in_order = equals.clone().count() == 1 || equals.all(Member::keeps_its_place);
    let is_sure = |other: &&Member| begins_whole(other) && other.is_bound && !other.asks_less;
    let sure = members.iter().filter(is_sure);
    let sure: Vec<Task> = sure.filter_map(|other| other.work.clone().ok()).collect();
    let found = |equals| {
        let effort = Budget::default();
        let given = (supply, &effort);
        NoBound::settle(by_priority((member, level), equals, members, &sure, given))
    };
    if found(Equals::All)? == Ok(Response::Unbounded) {
        return Ok(true);
    }
    let is_late = |found| matches!(found, Response::Bounded(_)) && !meets(task, found);
    let can_be = supply.is_attained() && is_in_order;
    Ok(can_be && found(Equals::Once)?.is_ok_and(is_late))
}
