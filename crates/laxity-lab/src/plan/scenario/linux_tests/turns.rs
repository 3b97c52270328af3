//! What is bounded of tasks that take turns.

use super::{bounded, with_lines};
use crate::plan::Deadline;

/// A bound counts what the machine takes besides, which an executor does not know.
#[test]
fn an_executor_says_of_a_task_what_its_line_does() {
    let text = include_str!("../../../../../../scenarios/upcalls-chain.toml");
    let plan = with_lines(text, |_| {});
    let lines = plan.lines.iter();
    let bounds = lines.filter_map(|line| Some((line.name.clone(), line.bound_ns?)));
    assert_eq!(plan.executors[0].bounds, bounds.collect::<Vec<_>>());
    assert_eq!(bounded(&plan), ["receive", "decode", "show"]);
}

/// Three tasks on an executor by rate, placed so.
fn by_rate(placement: &str) -> String {
    let task = |(name, period, service, quantum)| {
        format!(
            "[tasks.{name}]\nkind = \"periodic\"\nperiod = \"{period}ms\"\nservice = \"{service}ms\"\non = \"media\"\nbatch = {service}\nquantum = {quantum}\n"
        )
    };
    let tasks = [("a", 10, 2, 1), ("b", 25, 7, 2), ("c", 70, 10, 3)].map(task);
    let executor = format!("[executors.media]\npolicy = \"rmdp\"\n{placement}\n");
    format!("{executor}{}[variants.v]\non = \"live\"\n", tasks.concat())
}

#[test]
fn who_takes_turns_by_rate_without_a_chain_has_a_bound_before_its_deadline() {
    let text = by_rate("placement = \"reserved 9ms/10ms\"\noutside = \"confined\"");
    let plan = with_lines(&text, |_| {});
    let bounds = plan
        .lines
        .iter()
        .map(|line| line.bound_ns.expect("a bound"));
    let bounds: Vec<u64> = bounds.collect();
    let deadlines = [10_000_000, 25_000_000, 70_000_000];
    let is_before = bounds
        .iter()
        .zip(deadlines)
        .all(|(bound, deadline)| *bound < deadline);
    assert!(is_before, "{bounds:?}");
}

/// What the machine takes comes on top of it.
#[test]
fn an_executor_without_a_reservation_says_what_its_lines_do() {
    let plan = with_lines(&by_rate("placement = \"thread 30\""), |_| {});
    assert_eq!(bounded(&plan), ["a", "b", "c"]);
    for (line, (name, promised_ns)) in plan.lines.iter().zip(&plan.executors[0].bounds) {
        let beyond = line
            .bound_ns
            .and_then(|bound| bound.checked_sub(*promised_ns));
        let is_near = beyond.is_some_and(|beyond| (1..1_000_000).contains(&beyond));
        assert!(is_near && line.name == *name, "{line:?} {promised_ns}");
        assert_eq!(line.deadline, Some(Deadline::Met));
    }
}

/// Slots give an executor no more than they are, however many tasks it has: 2 ms and 7.5 are no more than 10.
#[test]
fn the_tasks_of_an_executor_take_together_no_more_than_its_slots_give() {
    let answer = |service: &str| {
        let task = |name: &str| {
            format!(
                "[tasks.{name}]\nkind = \"periodic\"\nperiod = \"10ms\"\nservice = \"1.5ms\"\non = \"held\"\n"
            )
        };
        let executor = "[executors.held]\npolicy = \"edf\"\nplacement = \"reserved 2ms/10ms\"\noutside = \"confined\"\n";
        let below = format!(
            "[tasks.below]\nkind = \"periodic\"\nperiod = \"10ms\"\nservice = \"{service}\"\npriority = 20\n"
        );
        let tasks = executor.to_owned() + &task("one") + &task("two") + &below;
        let plan = with_lines(&format!("{tasks}[variants.v]\non = \"live\"\n"), |_| {});
        let mut lines = plan.lines.iter();
        let found = lines.find(|line| line.name == "below");
        found.expect("its line").deadline
    };
    assert_eq!(answer("7.5ms"), Some(Deadline::NotKnown));
    assert_eq!(answer("8.2ms"), Some(Deadline::CanBeMissed));
}
