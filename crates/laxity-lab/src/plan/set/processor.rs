//! The plan of one processor.

use std::num::NonZeroU16;

use laxity_model::analysis::supply::SupplyBound;
use laxity_model::analysis::{Overflow, Response, Search, Task, Verdict, edf, fixed_priority};
use laxity_model::executor::rmdp;
use laxity_model::{Service, Span};

use super::advice::Advisor;
use super::attempt::{Answer, Attempt, Member, Method, admits, attempt, known, methods};
use super::budgets::{budget, kernel_refusal, seen_below};
use super::effort::Effort;
use super::observe::{Seen, observe};
use super::place::{load_ppm, share, sum_ppm};
use super::{Options, ProcessorPlan, reservations, verdicts};
use crate::import::Policy;
use crate::plan::{Bottleneck, Deadline, Line, Reason, bound, relative, slack_ns, unserved_ns};

/// Plans what is on one processor; `members` is not empty.
pub(super) fn plan(
    number: u16,
    members: &[Member],
    options: &Options,
    supply: &dyn SupplyBound,
) -> Result<ProcessorPlan, Overflow> {
    let methods = methods(members, options.scheduler);
    let chosen = choose(&methods, members, supply)?;
    let observed = observe(members, &chosen, options);
    let bottleneck = bottleneck(members, &chosen, supply);
    // For a set that is admitted, margins are those of the test that admitted it.
    let asked = match chosen.admits {
        true => std::slice::from_ref(&chosen.method),
        false => methods.as_slice(),
    };
    let advisor = Advisor {
        members,
        methods: asked,
        admitted_by: chosen.admits.then_some(chosen.method),
        effort: &Effort::new(supply, members.len()),
        cuts_budgets: false,
    };
    let advice = advisor.advise(bottleneck.as_ref().map(|(offender, _)| *offender))?;
    let effort = Effort::new(supply, members.len());
    let reservations = reservations::least(members, &methods, options.supply, &effort)?;
    let mut left_out = advice.left_out;
    let regions = match longest_regions(members, &chosen, supply)? {
        Ok(regions) => regions,
        Err(why) => {
            left_out.extend(why);
            vec![None; members.len()]
        }
    };
    let lines = chosen.order.iter().map(|&index| {
        let member = &members[index];
        Line {
            largest_cost_ns: advice.costs[index].map(|most| most.number),
            largest_cost_is_exact: advice.costs[index].is_some_and(|most| most.is_exact),
            longest_region_ns: regions[index].map(Service::as_nanos),
            priority: priority(member.policy, chosen.method),
            ..line(
                member,
                chosen.responses[index].clone(),
                observed.members[index],
            )
        }
    });
    let unknown = members.iter().filter(|member| member.work.is_err());
    Ok(ProcessorPlan {
        processor: Some(number),
        utilization_ppm: sum_ppm(members),
        admitted: admitted(&chosen, members),
        unpromised: unpromised(&chosen, members),
        unknown: is_open(&methods, members, (&chosen, &observed.members), supply)?,
        test: chosen.method.name().into(),
        tests: verdicts::run(members, &chosen, supply)?,
        tests_without: unknown.map(|member| member.name.clone()).collect(),
        lines: proved(lines, (&chosen, supply), members),
        bottleneck: bottleneck.map(|(_, found)| found),
        scale_ppm: advice.scale.map(|most| most.number * 1_000),
        scale_is_exact: advice.scale.is_some_and(|most| most.is_exact),
        margins_by: margins_by(&chosen, &methods),
        nearest: advice.nearest,
        reservations,
        left_out,
        observed: observed.how,
    })
}

/// Whether all that are promised something are known, and get it.
fn admitted(chosen: &Attempt, members: &[Member]) -> bool {
    chosen.admits && is_known(chosen.method, members)
}

/// Of a set that is admitted, to whom nothing is promised.
fn unpromised(chosen: &Attempt, members: &[Member]) -> Vec<String> {
    let is_unpromised = |one: &&Member| !chosen.method.promises_to(one.policy);
    let unpromised = members.iter().filter(is_unpromised);
    let unpromised = unpromised.filter(|_| admitted(chosen, members));
    unpromised.map(|member| member.name.clone()).collect()
}

/// By which test margins are, where one that would be asked after it might admit more.
fn margins_by(chosen: &Attempt, methods: &[Method]) -> Option<String> {
    let is_last = methods.last() == Some(&chosen.method);
    (chosen.admits && !is_last).then(|| chosen.method.name().into())
}

/// The lines, in the order of the attempt, with what its test has proved of all of them: it may know more than what was found of each. Whose jobs get later and
/// later is told where that is sure.
fn proved(
    lines: impl Iterator<Item = Line>,
    (chosen, supply): (&Attempt, &dyn SupplyBound),
    members: &[Member],
) -> Vec<Line> {
    let mut lines: Vec<Line> = lines.collect();
    for (place, line) in lines.iter_mut().enumerate() {
        let is_sure = falls_behind(place, members, (chosen, supply));
        line.grow_if(is_sure, "all do as much and come as often as they may");
    }
    if admitted(chosen, members) {
        for (line, index) in lines.iter_mut().zip(&chosen.order) {
            if chosen.method.promises_to(members[*index].policy) {
                line.be_met_by(chosen.method.name());
            }
        }
    }
    lines
}

/// The first method that admits the set; the first of all if none does.
fn choose(
    methods: &[Method],
    members: &[Member],
    supply: &dyn SupplyBound,
) -> Result<Attempt, Overflow> {
    let first = attempt(methods[0], members, supply)?;
    if first.admits {
        return Ok(first);
    }
    for method in &methods[1..] {
        // What is too large for one analysis need not be for the first.
        if let Ok(other) = attempt(*method, members, supply)
            && other.admits
        {
            return Ok(other);
        }
    }
    Ok(first)
}

/// Whether nobody is left out who is promised something: those of whom nothing is known need something, too.
fn is_known(method: Method, members: &[Member]) -> bool {
    let mut promised = members.iter().filter(|one| method.promises_to(one.policy));
    promised.all(|member| member.work.is_ok())
}

/// Whether a set that is not admitted is not refused either: the file does not tell what some tasks do, or they may do less than is analysed,
/// and the others would be admitted without them; the search ended before it found anything; or bounds are late that are not exact, and no job was seen to be.
fn is_open(
    methods: &[Method],
    members: &[Member],
    (chosen, seen): (&Attempt, &[Seen]),
    supply: &dyn SupplyBound,
) -> Result<bool, Overflow> {
    if chosen.admits {
        return Ok(!is_known(chosen.method, members));
    }
    if let Some(Err(_)) = kernel_refusal(members, NonZeroU16::MIN) {
        return Ok(false);
    }
    let is_hopeless = is_hopeless(methods, members, supply);
    let mut can_tell = true;
    if !is_hopeless {
        for method in methods {
            match admits(*method, members, supply)? {
                Answer::TooLong => return Ok(true),
                Answer::CannotTell => can_tell = false,
                Answer::Admits | Answer::Refuses => {}
            }
        }
    }
    let is_told = |member: &&Member| member.work.is_ok() && !member.asks_less;
    let told = members.iter().filter(is_told);
    let told: Vec<Member> = told.cloned().collect();
    if told.len() < members.len() {
        if told.is_empty() {
            return Ok(true);
        }
        let without = choose(methods, &told, supply)?;
        // Whoever was seen late may have been so by those who are left out now.
        let unseen = vec![Seen::default(); told.len()];
        return Ok(without.admits || is_open(methods, &told, (&without, &unseen), supply)?);
    }
    let was_late = |(member, seen): (&Member, &Seen)| {
        let due = member.work.as_ref().ok().map(Task::deadline);
        let is_promised = chosen.method.promises_to(member.policy);
        is_promised && seen.longest_ns > due.map(Span::as_nanos)
    };
    let is_late = members.iter().zip(seen).any(was_late);
    if is_hopeless || is_late {
        return Ok(false);
    }
    Ok(!can_tell || verdicts::is_doubtful(members, chosen, supply)?)
}

/// Whether no scheduler whatever meets the deadlines of those who are promised that: more can be due by some time than is given by then, even if all
/// of them could be preempted anywhere.
pub(super) fn is_hopeless(
    methods: &[Method],
    members: &[Member],
    supply: &dyn SupplyBound,
) -> bool {
    let is_promised = |member: &Member| matches!(member.policy, Policy::Priority(_));
    if methods.contains(&Method::AsGiven) && !members.iter().all(is_promised) {
        return false;
    }
    let (_, tasks) = known(members);
    let free: Vec<Task> = tasks.iter().map(Task::without_regions).collect();
    matches!(edf::test(&free, &supply), Ok(Verdict::NotSchedulable(_)))
}

/// What is known of a member; its margins are not.
pub(super) fn line(member: &Member, response: Result<Response, Reason>, seen: Seen) -> Line {
    let task = member.work.as_ref().ok();
    let mut line = Line {
        name: member.name.clone(),
        priority: priority(member.policy, Method::AsGiven),
        cost_ns: task.map(|task| task.cost().as_nanos()),
        period_ns: task.map(|task| task.period().as_nanos()),
        deadline_ns: task.map(|task| task.deadline().as_nanos()),
        utilization_ppm: task.map(|_| load_ppm(member)),
        observed_max_ns: seen.longest_ns,
        observed_jobs: seen.jobs,
        ..Line::default()
    };
    line.answer(response.and_then(bound));
    // Whatever goes first, no job is complete before its work is done.
    if line.cost_ns > line.deadline_ns && !member.asks_less {
        line.deadline = Some(Deadline::CanBeMissed);
    }
    line
}

/// What the file gives, where the scheduler asks for it.
fn priority(policy: Policy, method: Method) -> Option<String> {
    match policy {
        _ if method != Method::AsGiven => None,
        Policy::Unsaid => None,
        Policy::Priority(level) => Some(level.to_string()),
        Policy::Deadline(asked) => Some(format!("deadline {}/{}", asked.runtime, asked.period)),
        Policy::Timesharing => Some("other".into()),
        Policy::Changing(_) => Some("changes".into()),
    }
}

/// By member, what region all others tolerate, where the scheduler takes one line of tasks; or why there is none to be named.
fn longest_regions(
    members: &[Member],
    attempt: &Attempt,
    supply: &dyn SupplyBound,
) -> Result<Result<Vec<Option<Service>>, Option<String>>, Overflow> {
    let order = attempt.order.iter();
    let (known, tasks): (Vec<usize>, Vec<Task>) = order
        .filter_map(|index| Some((*index, *members[*index].work.as_ref().ok()?)))
        .unzip();
    if attempt.method == Method::AsGiven || !attempt.admits {
        return Ok(Err(None));
    }
    let found = match attempt.method {
        Method::Rmdp => match rmdp::longest_regions(&tasks, supply)? {
            Some(found) => Search::Found(found),
            None => {
                let why = "the longest regions: the test does not admit the tasks if all could be preempted anywhere";
                return Ok(Err(Some(why.into())));
            }
        },
        method if method.has_fixed_priorities() => {
            fixed_priority::longest_regions(&tasks, &supply)?
        }
        _ => edf::longest_regions(&tasks, &supply)?,
    };
    Ok(match found {
        Search::Found(found) => {
            let mut regions = vec![None; members.len()];
            for (index, region) in known.iter().zip(found) {
                regions[*index] = Some(region);
            }
            Ok(regions)
        }
        Search::None => Err(Some(
            "the longest regions: if all tasks could be preempted anywhere, a deadline would be missed".into(),
        )),
        Search::Unknown(doubt) => Err(Some(format!(
            "the longest regions: whether deadlines are met without any is not known; {doubt}"
        ))),
    })
}

/// The one with the least slack as a part of its deadline, of those that are analysed, one without a bound first; and who takes most of its time.
fn bottleneck(
    members: &[Member],
    attempt: &Attempt,
    supply: &dyn SupplyBound,
) -> Option<(usize, Bottleneck)> {
    let is_known =
        |index: &usize| attempt.responses[*index].is_ok() && members[*index].work.is_ok();
    let known = attempt.order.iter().copied().filter(is_known);
    let slack = |index: &usize| {
        let due = members[*index].work.as_ref().ok()?.deadline();
        let response = *attempt.responses[*index].as_ref().ok()?;
        let slack = slack_ns(due, bound(response).ok()?);
        Some(relative(slack, due.as_nanos()))
    };
    let index = known.min_by_key(slack)?;
    let task = members[index].work.as_ref().ok()?;
    let response = attempt.responses[index].as_ref().ok()?.bound();
    let window = response.map_or(task.deadline(), |bound| bound.from_release);
    let (contributor, taken_ns) = contributor(index, members, attempt, window)?;
    let found = Bottleneck {
        name: members[index].name.clone(),
        phase: None,
        contributor: Some(contributor),
        never_stops: false,
        waits_for: None,
        contribution_ns: taken_ns,
    };
    Some((
        index,
        found.or_wait("its supply", unserved_ns(supply, window)),
    ))
}

/// Whether who is at this place of the order is later and later for sure: it and those before it do more than is given in the long run, and none of these may do less.
fn falls_behind(
    place: usize,
    members: &[Member],
    (attempt, supply): (&Attempt, &dyn SupplyBound),
) -> bool {
    let own = &members[attempt.order[place]];
    let is_as_given = attempt.method == Method::AsGiven;
    let does_all = |member: &Member| !member.asks_less && !member.sleeps;
    let asked = |member: &Member| member.work.as_ref().ok().map(share);
    let given = |member: &Member| budget(member.policy).filter(|_| is_as_given);
    if !does_all(own) {
        return false;
    }
    if let (Some(asked), Some(budget)) = (asked(own), given(own)) {
        return asked > share(&budget);
    }
    let sure = attempt.order.iter().enumerate().filter(|(at, index)| {
        let other = &members[**index];
        let is_here = other.is_bound || given(other).is_none();
        let in_order = own.keeps_its_place() && other.keeps_its_place();
        let is_before = match attempt.method {
            Method::Edf => true,
            _ if are_equal(own, other, attempt.method) => in_order || *at == place,
            _ => *at <= place,
        };
        is_before && is_here && does_all(other)
    });
    let loads = sure.filter_map(|(_, index)| {
        let other = &members[*index];
        let least = given(other).map(|budget| share(&budget));
        let asked = asked(other)?;
        Some(least.map_or(asked, |least| least.min(asked)))
    });
    supply.rate().compare_sum(loads).is_gt()
}

/// Whether neither of two goes before the other by its rank.
fn are_equal(one: &Member, other: &Member, method: Method) -> bool {
    let due = |member: &Member| member.work.as_ref().ok().map(Task::deadline);
    match method {
        Method::AsGiven => {
            one.policy.priority().is_some() && one.policy.priority() == other.policy.priority()
        }
        Method::Rmdp => due(one).is_some() && due(one) == due(other),
        _ => false,
    }
}

/// Who takes most of a member's time in a window: of each that may go first, the jobs that can be released in it.
fn contributor(
    index: usize,
    members: &[Member],
    attempt: &Attempt,
    window: Span,
) -> Option<(String, u64)> {
    let task = members[index].work.as_ref().ok()?;
    let place = attempt.order.iter().position(|other| *other == index)?;
    let is_below_budgets =
        attempt.method == Method::AsGiven && members[index].policy.reservation().is_none();
    let mut best = (members[index].name.clone(), task.cost().as_nanos());
    for (at, other) in attempt.order.iter().enumerate() {
        let equal = are_equal(&members[index], &members[*other], attempt.method);
        let is_above = at < place || equal;
        // Below a reservation its whole budget is counted, however little of it is used, and whatever is known of its work.
        let budget = seen_below(&members[*other]).filter(|_| is_below_budgets && is_above);
        let work = budget.or(members[*other].work.as_ref().ok().copied());
        let Some(work) = work.filter(|_| *other != index) else {
            continue;
        };
        let taken = if !attempt.method.has_fixed_priorities() {
            match due_within(&work, task.deadline().max(window)) {
                0 => work.blocking().as_nanos(),
                due => due,
            }
        } else if equal && attempt.method == Method::AsGiven && members[index].keeps_its_place() {
            // Those that came before it.
            released_within(&work, Span::from_nanos(1))
        } else if is_above {
            released_within(&work, window)
        } else {
            work.blocking().as_nanos()
        };
        if taken > best.1 {
            best = (members[*other].name.clone(), taken);
        }
    }
    Some(best)
}

fn released_within(task: &Task, window: Span) -> u64 {
    let window = window.as_nanos().saturating_add(task.jitter().as_nanos());
    let jobs = window.div_ceil(task.period().as_nanos());
    jobs.saturating_mul(task.cost().as_nanos())
}

fn due_within(task: &Task, window: Span) -> u64 {
    let later = window.as_nanos().saturating_add(task.jitter().as_nanos());
    let jobs = later
        .checked_sub(task.deadline().as_nanos())
        .map_or(0, |rest| rest / task.period().as_nanos() + 1);
    jobs.saturating_mul(task.cost().as_nanos())
}
