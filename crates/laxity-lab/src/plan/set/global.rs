//! `SCHED_DEADLINE` on several processors: the kernel schedules all its threads by one order, the earliest deadline first, on whatever processors there
//! are, and lets none of them be bound to a part of these.

use std::num::NonZeroU16;

use laxity_model::Span;
use laxity_model::analysis::multiprocessor::{Tardiness, global_edf, tardiness};
use laxity_model::analysis::supply::{Dedicated, Residual, SupplyBound, SupplyError};
use laxity_model::analysis::{Overflow, Response, Task, Verdict};

use super::attempt::{Member, are_all_reservations_known, is_whole};
use super::budgets::{begins_whole, budgets, kernel_refusal, reserved, within};
use super::observe::Seen;
use super::place::sum_ppm;
use super::processor::line;
use super::verdicts::{GLOBAL_EDF, KERNEL, kernel};
use super::{Options, ProcessorPlan, Scheduler, TestPlan};
use crate::import::Policy;
use crate::plan::{Line, NoBound, Reason};

/// The threads of `SCHED_DEADLINE`, on all processors.
pub(super) struct Global {
    pub(super) plan: ProcessorPlan,
    /// What they leave of each processor, or why that is not known.
    pub(super) left: Result<Residual<Dedicated>, String>,
}

/// Whether a member is on all processors.
pub(super) fn is_global(member: &Member, scheduler: Scheduler, processors: u16) -> bool {
    let as_the_kernel_has_it = scheduler == Scheduler::Auto && processors > 1;
    as_the_kernel_has_it && matches!(member.policy, Policy::Deadline(_))
}

/// Plans those that are on all processors; `None` if there are none.
pub(super) fn plan(
    members: &[Member],
    processors: u16,
    options: &Options,
    supply: &dyn SupplyBound,
) -> Result<Option<Global>, Overflow> {
    let all_known = are_all_reservations_known(members);
    let global = |member: &&Member| is_global(member, options.scheduler, processors);
    let members: Vec<Member> = members.iter().filter(global).cloned().collect();
    let Some(processors) = NonZeroU16::new(processors).filter(|_| !members.is_empty()) else {
        return Ok(None);
    };
    let budgets = budgets(&members);
    let late = NoBound::settle(lateness(&budgets, processors, supply))?;
    let kernel_says = match kernel_refusal(&members, processors) {
        Some(Err(why)) => Err(Reason::from(format!("the kernel refuses {why}"))),
        Some(Ok(())) | None => Ok(()),
    };
    let in_time = kernel_says.clone().and_then(|()| late.clone());
    let mut lines = Vec::new();
    for (index, member) in members.iter().enumerate() {
        let response = match (&in_time, &all_known) {
            (Err(why), _) | (Ok(_), Err(why)) => Err(NoBound::from(why.clone())),
            (Ok(late), Ok(())) => response(member, &budgets[index], late[index]),
        };
        let known = member
            .work
            .as_ref()
            .map_err(|why| Reason::from(why.as_str()));
        let response = known.and(NoBound::settle(response)?);
        lines.push(line(member, response, Seen::default()));
    }
    let left = match &late {
        Ok(late) => {
            let left = NoBound::settle(what_is_left((&members, &budgets), late))?;
            left.map_err(|why| why.words)
        }
        Err(why) => Err(format!("threads of SCHED_DEADLINE go first: {}", why.words)),
    };
    let observed = if options.observe {
        "not observed: sets are run on one processor, without budgets"
    } else {
        "not observed: not asked for"
    };
    let is_bounded = |line: &Line| line.bound_ns.is_some();
    let admitted = kernel_says.is_ok() && lines.iter().all(is_bounded);
    let is_untold = |member: &Member| member.work.is_err() || member.asks_less;
    let is_untold = all_known.is_err() || members.iter().any(is_untold);
    Ok(Some(Global {
        plan: ProcessorPlan {
            utilization_ppm: sum_ppm(&members),
            admitted,
            unknown: !admitted && in_time.is_ok() && is_untold,
            test: format!("{KERNEL}, over all processors"),
            lines,
            tests: tests(&members, processors, &budgets, &late)?,
            left_out: vec![
                "margins: they are not looked for where tasks are on all processors".into(),
            ],
            observed: observed.into(),
            ..ProcessorPlan::default()
        },
        left,
    }))
}

/// How long after its deadline each budget is complete at most.
fn lateness(
    budgets: &[Task],
    processors: NonZeroU16,
    supply: &dyn SupplyBound,
) -> Result<Vec<Span>, NoBound> {
    if !is_whole(supply) {
        return Err("no bound is known for deadline threads on several processors that are not wholly theirs".into());
    }
    match tardiness(budgets, processors)? {
        Tardiness::Bounded(late) => Ok(late),
        Tardiness::Unbounded => {
            let why = "the reservations by deadline are more than there is";
            Err(Reason::too_much(why).into())
        }
        Tardiness::Unknown(_) => match global_edf(budgets, processors)? {
            Verdict::Schedulable => Ok(vec![Span::ZERO; budgets.len()]),
            Verdict::NotSchedulable(_) | Verdict::Unknown(_) => Err(
                "the kernel runs deadline threads globally, and where they are due before their periods end and ask for so much, no bound is known"
                    .into(),
            ),
        },
    }
}

/// How long a job takes whose budget is complete so long after its deadline at most.
fn response(member: &Member, budget: &Task, late: Span) -> Result<Response, NoBound> {
    let complete = budget
        .deadline()
        .checked_add(late)
        .ok_or(Overflow("a deadline and how late it may be"))?;
    if let Ok(task) = &member.work
        && (task.cost() > budget.cost()
            || task.period() < budget.period()
            || !task.jitter().is_zero())
        && !late.is_zero()
    {
        return Err("a job needs several budgets, and the kernel, which runs deadline threads globally, may be late with each".into());
    }
    let request = member.policy.reservation();
    let request = request.ok_or("it has no reservation")?;
    reserved(member, request, within(complete), &Ok(()))
}

/// What budgets leave of each processor, wherever they run: in a window, no more of one than of its jobs that are released within it or
/// pending at its beginning. Who may go on with the rest of a budget that is due when its period ends may also have the next one before that, no more
/// than X of each Y since the one that was pending, and one whole at the end of the window: what jobs that come another Y − X later ask for is no
/// less.
fn what_is_left(
    (members, budgets): (&[Member], &[Task]),
    late: &[Span],
) -> Result<Residual<Dedicated>, NoBound> {
    let of_each = members.iter().zip(budgets).zip(late);
    let above = of_each.map(|((member, budget), late)| {
        let cost = budget.cost().as_dedicated_span();
        let may_resume = !begins_whole(member) && budget.deadline() == budget.period();
        let sooner = Some(budget.period().saturating_sub(cost)).filter(|_| may_resume);
        let carried = budget.deadline().checked_add(*late);
        let carried = carried.and_then(|sum| sum.checked_add(sooner.unwrap_or(Span::ZERO)));
        budget.with_jitter(carried.unwrap_or(Span::MAX).saturating_sub(cost))
    });
    Residual::new(Dedicated, above.collect()).map_err(|error| match error {
        SupplyError::Overflow(overflow) => overflow.into(),
        _ => "threads of SCHED_DEADLINE go first, and may take all of one processor".into(),
    })
}

fn tests(
    members: &[Member],
    processors: NonZeroU16,
    budgets: &[Task],
    late: &Result<Vec<Span>, Reason>,
) -> Result<Vec<TestPlan>, Overflow> {
    let mut tests: Vec<TestPlan> = kernel(members, processors).into_iter().collect();
    let (verdict, detail) = if global_edf(budgets, processors)?.is_schedulable() {
        ("admits", "no budget is late")
    } else {
        ("cannot tell", "a budget may be late")
    };
    tests.push(TestPlan::new(GLOBAL_EDF, verdict, detail));
    tests.push(match late {
        Ok(late) => {
            let most = late.iter().max().copied().unwrap_or(Span::ZERO);
            TestPlan::new("tardiness", "admits", format!("late by at most {most}"))
        }
        Err(why) => TestPlan::new("tardiness", "cannot tell", why.words.clone()),
    });
    Ok(tests)
}
