//! What each test of the library says of a processor's tasks.

use std::num::NonZeroU16;

use laxity_model::Span;
use laxity_model::analysis::supply::SupplyBound;
use laxity_model::analysis::{
    Doubt, Overflow, Response, Search, Task, Verdict, Witness, edf, fixed_priority, utilization,
};

use super::attempt::{
    Attempt, Member, Method, by_rate, can_be_late, in_order, is_overloaded, is_surely_late,
    is_whole, known, meets,
};
use super::budgets::{budgets, is_short, kernel_refusal};
use super::{TestPlan, by_turns};
use crate::import::Policy;

/// A bound of [`utilization`], with its name.
type Bound = (&'static str, fn(&[Task]) -> Result<Verdict, Overflow>);

const BOUNDS: [Bound; 6] = [
    ("Liu, Layland", utilization::liu_layland),
    ("hyperbolic", utilization::hyperbolic),
    (
        "Sha, blocking, task by task",
        utilization::blocking_per_task,
    ),
    ("Sha, blocking, in one sum", utilization::blocking_summed),
    (
        "hyperbolic with blocking",
        utilization::hyperbolic_with_blocking,
    ),
    ("RMDP", utilization::rmdp),
];

/// What a test says that can neither admit nor refuse.
const CANNOT_TELL: &str = "cannot tell";

/// All tests, whoever is to schedule the set. Those that ask nobody's policy see the tasks of which something is known.
pub(super) fn run(
    members: &[Member],
    attempt: &Attempt,
    supply: &dyn SupplyBound,
) -> Result<Vec<TestPlan>, Overflow> {
    let (places, tasks) = known(members);
    if tasks.is_empty() {
        return Ok(kernel(members, NonZeroU16::MIN).into_iter().collect());
    }
    let name = |index: usize| members[places[index]].name.as_str();
    let known = |index: usize| (name(index), tasks[index]);
    let mut tests = bounds(&tasks, supply)?;
    if attempt.method == Method::AsGiven {
        tests.push(as_given(members, attempt, supply)?);
    }
    tests.extend(kernel(members, NonZeroU16::MIN));
    if attempt.method == Method::Rmdp {
        tests.push(by_turns::test(&tasks, name, supply)?);
    }
    let order = fixed_priority::deadline_monotonic(&tasks);
    let verdict = fixed_priority::test(&in_order(&tasks, &order), &supply)?;
    let whose = |index: usize| known(order[index]);
    tests.push(of_verdict(Method::Monotonic.name(), verdict, whose));
    let best = fixed_priority::best_order(&tasks, &supply)?;
    let nothing = "no order meets all deadlines";
    tests.push(of_search("best priorities (Audsley)", best, name, nothing));
    let best = fixed_priority::best_order_with_final_regions(&tasks, &supply)?;
    let nothing = "no order and regions meet all deadlines";
    tests.push(of_search(
        "best priorities and last regions",
        best,
        |(index, _)| name(index),
        nothing,
    ));
    tests.push(match edf::test(&tasks, &supply) {
        Ok(verdict) => of_verdict(Method::Edf.name(), verdict, known),
        Err(overflow) => TestPlan::new(Method::Edf.name(), CANNOT_TELL, overflow.to_string()),
    });
    Ok(tests)
}

/// What the response times under the file's own policies come to. That a deadline is missed is only sure where the bound is no more
/// than what can happen.
fn as_given(
    members: &[Member],
    attempt: &Attempt,
    supply: &dyn SupplyBound,
) -> Result<TestPlan, Overflow> {
    let name = Method::AsGiven.name();
    if attempt.admits {
        return Ok(TestPlan::new(name, "admits", ""));
    }
    let refuses = |why: String| Ok(TestPlan::new(name, "refuses", why));
    if let Some(Err(why)) = kernel_refusal(members, NonZeroU16::MIN) {
        return refuses(format!("the kernel refuses {why}"));
    }
    if let Verdict::NotSchedulable(_) = edf::test(&budgets(members), &supply)? {
        return refuses("the reservations by deadline are more than there is".into());
    }
    let is_overloaded = is_overloaded(members);
    let mut why = "the bounds are not exact where reservations meet or equals may come twice, or on such a supply".to_owned();
    for (member, response) in members.iter().zip(&attempt.responses) {
        if !Method::AsGiven.promises_to(member.policy) {
            if is_surely_late(member, is_overloaded) {
                return refuses(format!("`{}` is late, whoever goes first", member.name));
            }
            continue;
        }
        match (&member.work, response) {
            (Ok(task), Ok(response)) if meets(task, *response) => {}
            (Ok(_), Ok(Response::Unbounded))
                if !matches!(member.policy, Policy::Priority(_))
                    || can_be_late(member, members, supply)? =>
            {
                return refuses(format!(
                    "`{}` and what goes first ask for more than there is",
                    member.name
                ));
            }
            (Ok(task), _) if is_short(member, task) => {
                return refuses(format!("`{}` asks for more than its budget", member.name));
            }
            (Ok(_), Ok(Response::Bounded(_))) if can_be_late(member, members, supply)? => {
                return refuses(format!("`{}` can be late", member.name));
            }
            (Ok(_), Ok(Response::Unknown(doubt))) => why = format!("`{}`: {doubt}", member.name),
            (_, Err(unknown)) => why = format!("`{}`: {}", member.name, unknown.words),
            (_, Ok(_)) => {}
        }
    }
    Ok(TestPlan::new(name, CANNOT_TELL, why))
}

/// Whether the file's own policies neither meet all deadlines nor are known to miss one.
pub(super) fn is_doubtful(
    members: &[Member],
    attempt: &Attempt,
    supply: &dyn SupplyBound,
) -> Result<bool, Overflow> {
    let is_asked = attempt.method == Method::AsGiven && !attempt.admits;
    Ok(is_asked && as_given(members, attempt, supply)?.verdict == CANNOT_TELL)
}

/// Whether the kernel lets the reservations in, if there are any, where so many processors are all there are.
pub(super) fn kernel(members: &[Member], processors: NonZeroU16) -> Option<TestPlan> {
    let found = kernel_refusal(members, processors)?;
    Some(match found {
        Ok(()) => TestPlan::new(KERNEL, "admits", ""),
        Err(why) => TestPlan::new(KERNEL, "refuses", why),
    })
}

/// What the kernel's own test is called.
pub(super) const KERNEL: &str = "SCHED_DEADLINE's admission";

/// The test of global earliest deadline first, by those who found it.
pub(super) const GLOBAL_EDF: &str = "Goossens, Funk, Baruah";

/// The utilization bounds, priorities by rate.
fn bounds(tasks: &[Task], supply: &dyn SupplyBound) -> Result<Vec<TestPlan>, Overflow> {
    if !is_whole(supply) {
        let why = "it is made for a processor of its own";
        let lines = BOUNDS.map(|(name, _)| TestPlan::new(name, "not applicable", why));
        return Ok(lines.into());
    }
    let mut lines = Vec::new();
    for (name, test) in BOUNDS {
        let found = by_rate(tasks, test)?;
        // These tests name no job.
        let mut line = of_verdict(name, found.verdict, |index| ("", tasks[index]));
        if found.is_shortened && found.verdict.is_schedulable() {
            line.detail = "with periods of min(T, D) − J".into();
        }
        lines.push(line);
    }
    Ok(lines)
}

fn of_search<'n, T>(
    test: &str,
    found: Search<Vec<T>>,
    name: impl Fn(T) -> &'n str,
    nothing: &str,
) -> TestPlan {
    match found {
        Search::Found(order) => {
            let names: Vec<&str> = order.into_iter().map(name).collect();
            TestPlan::new(
                test,
                "admits",
                format!("from the top: {}", shortened(&names)),
            )
        }
        Search::None => TestPlan::new(test, "refuses", nothing),
        Search::Unknown(doubt) => TestPlan::new(test, CANNOT_TELL, doubt.to_string()),
    }
}

/// The first few names.
fn shortened(names: &[&str]) -> String {
    const SHOWN: usize = 6;
    let mut text = names[..names.len().min(SHOWN)].join(", ");
    if names.len() > SHOWN {
        text.push_str(", …");
    }
    text
}

fn of_verdict<'n>(
    test: &str,
    verdict: Verdict,
    whose: impl Fn(usize) -> (&'n str, Task),
) -> TestPlan {
    match verdict {
        Verdict::Schedulable => TestPlan::new(test, "admits", ""),
        Verdict::NotSchedulable(witness) => {
            let (name, task) = whose(witness.task);
            TestPlan::new(
                test,
                "refuses",
                format!("`{name}`: {}", witness_words(witness, &task)),
            )
        }
        Verdict::Unknown(Doubt::OutOfScope) => {
            TestPlan::new(test, "not applicable", Doubt::OutOfScope.to_string())
        }
        Verdict::Unknown(doubt) => TestPlan::new(test, CANNOT_TELL, doubt.to_string()),
    }
}

fn witness_words(witness: Witness, task: &Task) -> String {
    if task.jitter() >= task.deadline() {
        let late = task.jitter().saturating_sub(task.deadline());
        return format!("a job may be released as late as {late} after it is due");
    }
    format!(
        "a job released {} into the worst case is not complete at {}, when it is due",
        long(witness.release),
        long(witness.due)
    )
}

/// A time, in days as well where nobody reads seconds.
fn long(time: Span) -> String {
    const DAY_NS: u64 = 86_400 * 1_000_000_000;
    match time.as_nanos() / DAY_NS {
        0 | 1 => time.to_string(),
        days => format!("{time} ({days} days)"),
    }
}
