//! Reservations by `SCHED_DEADLINE`: whether the kernel lets them in and is in time with their budgets, and how long a task takes in its own.
//!
//! The kernel keeps each as a server of constant bandwidth (`update_dl_entity`). Who wakes when its last budget was due, or later, gets a new one,
//! whole. Who wakes before that goes on with the rest of the old one, which is due as it was, and so may go before others; if that is more than its
//! share until then, it gets a new one at once, or, where budgets are due before their periods end, no more than this share.

use std::num::NonZeroU16;

use laxity_model::analysis::multiprocessor::{DeadlineRequest, KernelLimits, kernel_admits};
use laxity_model::analysis::supply::{KernelDeadline, SupplyBound};
use laxity_model::analysis::{
    Bound, Fraction, Overflow, Response, Task, Verdict, edf, fixed_priority,
};
use laxity_model::{Reservation, Service, Span};

use super::attempt::{Member, is_whole};
use crate::import::Policy;
use crate::plan::{NoBound, Reason};

/// The reservations of members as tasks: X every Y, due when the kernel has to have given it.
pub(super) fn budgets(members: &[Member]) -> Vec<Task> {
    let all = members.iter();
    all.filter_map(|member| budget(member.policy)).collect()
}

/// A reservation as a task.
pub(super) fn budget(policy: Policy) -> Option<Task> {
    let request = policy.reservation()?;
    let task = Task::new(request.runtime, request.period).ok()?;
    task.with_deadline(request.deadline).ok()
}

/// A reservation as whoever is below all of them sees it. Of who goes on with the rest of a budget two may lie back to back: the end of one period, the
/// beginning of the next. A job that begins with a whole budget and needs no other one always may run, like one of a higher fixed priority: none is pending
/// where a busy window begins (Lehoczky, "Fixed priority scheduling of periodic task sets with arbitrary deadlines", RTSS 1990), so that those that are
/// released in it are all there are, however those above are ordered among themselves.
pub(super) fn seen_below(member: &Member) -> Option<Task> {
    let budget = budget(member.policy)?;
    let cost = budget.cost().as_dedicated_span();
    Some(match begins_whole(member) {
        true => budget,
        false => budget.with_jitter(budget.deadline().saturating_sub(cost)),
    })
}

/// Whether the kernel lets the reservations in where so many processors are all there are; `None` if there are none.
pub(super) fn kernel_refusal(
    members: &[Member],
    processors: NonZeroU16,
) -> Option<Result<(), String>> {
    let asking = |member: &Member| Some((member.name.clone(), member.policy.reservation()?));
    let (holders, requests): (Vec<String>, Vec<DeadlineRequest>) =
        members.iter().filter_map(asking).unzip();
    if requests.is_empty() {
        return None;
    }
    let found = kernel_admits(&requests, processors, &KernelLimits::WITH_FAIR_SERVER);
    Some(match found {
        Ok(_) => Ok(()),
        Err((index, refusal)) => Err(format!("`{}`: {refusal}", holders[index])),
    })
}

/// Whether a budget has room for each job, in a period of its own. A job that comes late may be followed by one within the same period of the budget.
fn has_room(task: &Task, request: DeadlineRequest) -> bool {
    let is_rare = task.period() >= request.period && task.jitter().is_zero();
    task.cost() <= request.runtime && is_rare
}

/// Whether jobs that are all of a budget do not get all of it. A budget that is used up is filled up when its period ends, and due anew from there on: whoever
/// comes later than that, as who comes no more often than every period may, has its share of the rest alone, if that is due before the next period.
fn is_cut(task: &Task, request: DeadlineRequest) -> bool {
    let is_early = request.deadline < request.period;
    task.cost() == request.runtime && is_early && task.period() >= request.period
}

/// Whether each job of a holder begins with a whole budget, and has no other, so that this is released like a job.
pub(super) fn begins_whole(member: &Member) -> bool {
    let both = member.work.as_ref().ok().zip(member.policy.reservation());
    let both = both.filter(|_| !member.sleeps);
    both.is_some_and(|(task, request)| has_room(task, request) && !is_cut(task, request))
}

/// The holders, by their places, that may go on with the rest of a budget.
fn resuming(members: &[Member]) -> Vec<usize> {
    let holds = |index: &usize| members[*index].policy.reservation().is_some();
    let holders = (0..members.len()).filter(holds);
    holders
        .filter(|index| !begins_whole(&members[*index]))
        .collect()
}

/// Whose jobs are all of a budget, in a sentence each.
pub(super) fn without_margin(members: &[Member]) -> impl Iterator<Item = String> {
    let is_full = |member: &&Member| {
        let both = member.work.as_ref().ok().zip(member.policy.reservation());
        both.is_some_and(|(task, request)| task.cost() == request.runtime)
    };
    let full = members.iter().filter(is_full);
    full.map(|member| {
        format!(
            "`{}` has no margin: its job is all of its budget, and waits for the next one if it takes any longer, as by what the machine takes besides",
            member.name
        )
    })
}

/// How long each budget takes to come, in the order of those who have one.
pub(super) struct Budgets {
    responses: std::vec::IntoIter<Response>,
    resuming: Vec<usize>,
    /// Whether each is complete when it is due.
    in_time: Result<(), Reason>,
}

impl Budgets {
    /// Of the members of one processor; nothing is known of them where somebody may have another reservation (`all_known`).
    pub(super) fn of(
        members: &[Member],
        all_known: Result<(), Reason>,
        supply: &dyn SupplyBound,
    ) -> Result<Self, Overflow> {
        let budgets = budgets(members);
        let resuming = resuming(members);
        let in_time = match kernel_refusal(members, NonZeroU16::MIN) {
            None => Ok(()),
            Some(Err(why)) => Err(format!("the kernel refuses {why}").into()),
            Some(Ok(())) => {
                let first = resuming.first().map(|index| &members[*index]);
                are_in_time(&budgets, first, supply)?
            }
        };
        Ok(Self {
            responses: edf::response_times(&budgets, &supply)?.into_iter(),
            resuming,
            in_time: in_time.and(all_known),
        })
    }

    /// The response time of the next member, at this place, in its own. That of its budget is found as if all budgets were released like jobs; where
    /// another one may go on with the rest of one, all that is known is that it is in time.
    pub(super) fn response(
        &mut self,
        (place, member): (usize, &Member),
        request: DeadlineRequest,
    ) -> Result<Response, NoBound> {
        let found = self.responses.next().unwrap_or(Response::Unbounded);
        let own = match self.resuming.iter().all(|other| *other == place) {
            true => found,
            false => within(request.deadline),
        };
        reserved(member, request, own, &self.in_time)
    }
}

/// So long at most.
pub(super) const fn within(span: Span) -> Response {
    Response::Bounded(Bound {
        from_arrival: span,
        from_release: span,
    })
}

/// Whether budgets are complete when they are due. Who goes on with the rest of one asks for no more than its share (X of each D) of any time until
/// that is due, however short; so much of everybody is enough.
fn are_in_time(
    budgets: &[Task],
    resuming: Option<&Member>,
    supply: &dyn SupplyBound,
) -> Result<Result<(), Reason>, Overflow> {
    let more = "the reservations by deadline are more than there is";
    let share = |budget: &Task| {
        let due = budget.deadline().as_nanos();
        Fraction::new(budget.cost().as_nanos(), due)
    };
    let shares = budgets.iter().filter_map(share);
    let has_room = is_whole(supply) && Fraction::ONE.compare_sum(shares).is_le();
    Ok(match (edf::test(budgets, &supply)?, resuming) {
        (Verdict::NotSchedulable(_), _) => Err(Reason::too_much(more)),
        (Verdict::Unknown(_), _) => Err(more.into()),
        (Verdict::Schedulable, Some(member)) if !has_room => Err(format!(
            "`{}` may wake before its last budget is due, and go on with the rest of it; whether all others are in time then is not known",
            member.name
        )
        .into()),
        (Verdict::Schedulable, _) => Ok(()),
    })
}

/// A task in its own reservation; `own` is how long its budget takes to come.
pub(super) fn reserved(
    member: &Member,
    request: DeadlineRequest,
    own: Response,
    in_time: &Result<(), Reason>,
) -> Result<Response, NoBound> {
    let task = member.work.as_ref().map_err(String::clone)?;
    in_time.clone()?;
    let (runtime, period) = (request.runtime, request.period);
    if is_cut(task, request) {
        return Err("its job is all of its budget, is due before the budget's period ends, and may come later than that: with any less to do it has a bound".into());
    }
    if member.sleeps && task.jitter().is_zero() {
        return Err("it sleeps within its jobs, and behind a sleep may have a new budget, which is due later".into());
    }
    if has_room(task, request) {
        return Ok(own);
    }
    let reservation = Reservation::new(runtime, period).ok();
    let Some(reservation) = reservation.filter(|_| request.deadline == period) else {
        let words = format!(
            "a job of {} every {} is more than a budget of {} every {}, due in {}",
            task.cost().beside(runtime),
            task.period().beside(period),
            runtime.beside(task.cost()),
            period
                .beside(task.period())
                .and(request.deadline.as_nanos()),
            request.deadline.beside(period)
        );
        return Err(NoBound::Because(Reason {
            words,
            is_too_much: is_short(member, task),
        }));
    };
    let supply = KernelDeadline::among_others(reservation, Span::ZERO)?;
    Ok(fixed_priority::response_time(&[*task], 0, &supply)?)
}

/// Whether a reservation is too small for its task in the long run.
pub(super) fn is_short(member: &Member, task: &Task) -> bool {
    let product = |service: Service, period: Span| {
        u128::from(service.as_nanos()) * u128::from(period.as_nanos())
    };
    let asked = member.policy.reservation();
    asked.is_some_and(|asked| {
        product(task.cost(), asked.period) > product(asked.runtime, task.period())
    })
}
