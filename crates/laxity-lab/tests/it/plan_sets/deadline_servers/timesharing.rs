//! Threads of which nothing is promised: refused is only what is surely late.

use laxity_lab::import::{Format, read};
use laxity_lab::plan::Deadline;
use laxity_lab::plan::set::{Options, plan, render};

use super::unobserved;
use crate::plans::only;

/// Of whom nothing is promised, who is late whatever the others leave makes a set refused, and the answer is of the others alone.
#[test]
fn of_timesharing_only_what_is_surely_late_is_refused() {
    let of = |run: u32, every: u32, further: &str, processors: u16| {
        let text = format!(
            r#"{{ "tasks": {{ "t1": {{ "run": 2000, "policy": "SCHED_FIFO", "priority": 10, "timer": {{ "ref": "u", "period": 10000 }} }},
                "t2": {{ {further} "run": {run}, "timer": {{ "ref": "v", "period": {every} }} }} }} }}"#
        );
        let set = read(&text, "x.json", Format::RtApp).expect("a task set");
        let options = Options {
            processors: Some(processors),
            ..unobserved()
        };
        plan(&set, &options).expect("a plan")
    };
    let cpu = r#""cpus": [0],"#;
    for (plan, answer) in [
        (of(12_000, 10_000, "", 1), Some(Deadline::CanBeMissed)),
        (of(9_000, 10_000, "", 1), Some(Deadline::CanBeMissed)),
        (of(7_000, 10_000, "", 1), None),
        // Elsewhere there is more than enough; and of two of three there is.
        (of(9_000, 10_000, cpu, 2), None),
        (of(12_000, 10_000, cpu, 2), Some(Deadline::CanBeMissed)),
        (of(12_000, 10_000, "", 2), Some(Deadline::CanBeMissed)),
    ] {
        let text = render(&plan, 1_000);
        assert_eq!(plan.admitted, answer.is_none(), "{text}");
        assert!(!plan.unknown, "{text}");
        let mut lines = plan.processors.iter().flat_map(|one| &one.lines);
        let line = lines.find(|line| line.name == "t2").expect("its line");
        assert_eq!(line.deadline, answer.or(Some(Deadline::NotKnown)), "{text}");
        let unpromised = plan.processors.iter().flat_map(|one| &one.unpromised);
        let is_told = unpromised.filter(|name| *name == "t2").count() == 1;
        assert_eq!(is_told, plan.admitted, "{text}");
        assert_eq!(
            text.contains("admitted (the real-time tasks)"),
            plan.admitted,
            "{text}"
        );
        assert_eq!(text.contains("REFUSED"), !plan.admitted, "{text}");
    }
}

/// Who sleeps runs less than is analysed, or comes less often where it is late, and of jobs that differ not each is the largest.
#[test]
fn of_timesharing_that_may_take_less_than_is_analysed_nothing_is_surely_late() {
    let timer = |number: u32| format!(r#""timer{number}": {{ "ref": "v", "period": 10000 }}"#);
    for does in [
        r#""run": 50000, "sleep": 10000"#.to_owned(),
        format!(r#""run": 6000, "sleep": 3000, {}"#, timer(0)),
        format!(r#""run0": 9000, {}, "run1": 1000, {}"#, timer(0), timer(1)),
    ] {
        let text = format!(
            r#"{{ "tasks": {{ "t1": {{ "run": 4000, "policy": "SCHED_FIFO", "priority": 10, "timer": {{ "ref": "u", "period": 10000 }} }}, "t2": {{ {does} }} }} }}"#
        );
        let set = read(&text, "x.json", Format::RtApp).expect("a task set");
        let found = only(&set, &unobserved());
        assert!(found.admitted, "{does}: {found:?}");
        assert_eq!(found.unpromised, ["t2"], "{does}");
    }
}
