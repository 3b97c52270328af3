//! What each test of the library says of a processor's tasks.

use laxity_model::analysis::supply::SupplyBound;
use laxity_model::analysis::{Doubt, Overflow, Task, Verdict, edf, fixed_priority, utilization};

use super::TestPlan;
use super::attempt::{Attempt, Member, Method, is_whole, kernel_refusal};

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
    (Method::Rmdp.name(), utilization::rmdp),
];

/// All tests, whoever is to schedule the set. Those that ask nobody's policy see the tasks of which something is known.
pub(super) fn run(
    members: &[Member],
    attempt: &Attempt,
    supply: &dyn SupplyBound,
) -> Result<Vec<TestPlan>, Overflow> {
    let known: Vec<(&str, Task)> = members
        .iter()
        .filter_map(|member| Some((member.name.as_str(), member.work.clone().ok()?)))
        .collect();
    if known.is_empty() {
        return Ok(Vec::new());
    }
    let tasks: Vec<Task> = known.iter().map(|(_, task)| *task).collect();
    let mut tests = bounds(&tasks, supply)?;
    if attempt.method == Method::AsGiven {
        let verdict = if attempt.admits { "admits" } else { "refuses" };
        tests.push(line(Method::AsGiven.name(), verdict, ""));
    }
    tests.extend(kernel(members));
    let order = fixed_priority::deadline_monotonic(&tasks);
    let sorted: Vec<Task> = order.iter().map(|index| tasks[*index]).collect();
    let name = |index: usize| known[order[index]].0;
    let verdict = fixed_priority::test(&sorted, &supply)?;
    tests.push(of_verdict(Method::Monotonic.name(), verdict, name));
    let best = fixed_priority::best_order(&tasks, &supply)?;
    let names = best.map(|order| {
        order
            .iter()
            .map(|index| known[*index].0)
            .collect::<Vec<_>>()
    });
    tests.push(match names {
        Some(names) => line(
            "best priorities (Audsley)",
            "admits",
            format!("from the top: {}", shortened(&names)),
        ),
        None => line(
            "best priorities (Audsley)",
            "refuses",
            "no order meets all deadlines",
        ),
    });
    tests.push(final_regions(&known, &tasks, supply)?);
    let verdict = edf::test(&tasks, &supply)?;
    tests.push(of_verdict(Method::Edf.name(), verdict, |index| {
        known[index].0
    }));
    Ok(tests)
}

/// Whether the kernel lets the reservations in, if there are any and this processor is all there is.
fn kernel(members: &[Member]) -> Option<TestPlan> {
    let name = "SCHED_DEADLINE's admission";
    let found = kernel_refusal(members)?;
    Some(match found {
        Ok(()) => line(name, "admits", ""),
        Err(why) => line(name, "refuses", why),
    })
}

/// The utilization bounds, priorities by rate.
fn bounds(tasks: &[Task], supply: &dyn SupplyBound) -> Result<Vec<TestPlan>, Overflow> {
    if !is_whole(supply) {
        let why = "it is made for a processor of its own";
        let lines = BOUNDS.map(|(name, _)| line(name, "not applicable", why));
        return Ok(lines.into());
    }
    let by_rate = |tasks: &[Task]| -> Vec<Task> {
        let order = fixed_priority::rate_monotonic(tasks);
        order.iter().map(|index| tasks[*index]).collect()
    };
    let implicit: Option<Vec<Task>> = tasks.iter().map(utilization::implicit).collect();
    let sorted = by_rate(tasks);
    let shortened = implicit.filter(|implicit| implicit != tasks);
    let shortened = shortened.map(|tasks| by_rate(&tasks));
    let mut lines = Vec::new();
    for (name, test) in BOUNDS {
        let verdict = test(&sorted)?;
        let other = match (verdict, &shortened) {
            (Verdict::Unknown(Doubt::OutOfScope), Some(tasks)) => Some(test(tasks)?),
            _ => None,
        };
        let mut found = of_verdict(name, other.unwrap_or(verdict), |_| "");
        if other.is_some_and(|verdict| verdict.is_schedulable()) {
            found.detail = "with periods of min(T, D) − J".into();
        }
        lines.push(found);
    }
    Ok(lines)
}

fn final_regions(
    known: &[(&str, Task)],
    tasks: &[Task],
    supply: &dyn SupplyBound,
) -> Result<TestPlan, Overflow> {
    let best = fixed_priority::best_order_with_final_regions(tasks, &supply)?;
    let name = "best priorities and last regions";
    Ok(match best {
        Some(order) => {
            let names: Vec<&str> = order.iter().map(|(index, _)| known[*index].0).collect();
            line(
                name,
                "admits",
                format!("from the top: {}", shortened(&names)),
            )
        }
        None => line(name, "refuses", "no order and regions meet all deadlines"),
    })
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

fn of_verdict<'n>(test: &str, verdict: Verdict, name: impl Fn(usize) -> &'n str) -> TestPlan {
    match verdict {
        Verdict::Schedulable => line(test, "admits", ""),
        Verdict::NotSchedulable(witness) => {
            let detail = format!(
                "`{}`: a job released {} into the worst case is not complete at {}, when it is due",
                name(witness.task),
                witness.release,
                witness.due
            );
            line(test, "refuses", detail)
        }
        Verdict::Unknown(Doubt::OutOfScope) => {
            line(test, "not applicable", Doubt::OutOfScope.to_string())
        }
        Verdict::Unknown(doubt) => line(test, "cannot tell", doubt.to_string()),
    }
}

fn line(test: &str, verdict: &str, detail: impl Into<String>) -> TestPlan {
    TestPlan {
        test: test.into(),
        verdict: verdict.into(),
        detail: detail.into(),
    }
}
