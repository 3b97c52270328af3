//! Tasks of which nothing is promised.

use super::common::{Bench, assert_code, assert_says, stdout, unbroken};
use super::json;

/// A file in which a thread of real time is admitted, with one beside it to which nothing is promised: whose cost is known or not.
#[test]
fn of_whom_nothing_is_promised_nothing_need_be_known_and_no_margin_is_shown() {
    let bench = Bench::new();
    let timer = r#""timer": { "ref": "unique", "period": 10000 }"#;
    for (does, arguments) in [
        (r#""run": 3000"#, "--processors=2"),
        (r#""lock": "m", "run": 3000"#, "--processors=2"),
        (r#""run": 3000"#, "--processors=1"),
        (r#""lock": "m", "run": 3000"#, "--processors=1"),
    ] {
        let control =
            format!(r#"{{ "policy": "SCHED_FIFO", "priority": 9, "run": 6000, {timer} }}"#);
        let logger = format!(r#"{{ "policy": "SCHED_OTHER", "cpus": [0], {does}, {timer} }}"#);
        let text = format!(r#"{{ "tasks": {{ "control": {control}, "logger": {logger} }} }}"#);
        bench.write("rt.json", &text);
        for further in [&["--json"][..], &[]] {
            let output = bench.run(&[&["plan", arguments, "rt.json"], further].concat());
            let said = stdout(&output);
            assert_code(&output, 0);
            assert!(!said.contains("18446744"), "{said}");
            assert!(!said.contains("UNKNOWN"), "{said}");
        }
    }
}

/// Of a set without any task of real time the answer is what it would be, and nobody is promised that.
#[test]
fn of_timesharing_alone_the_answer_is_as_if_in_real_time() {
    let bench = Bench::new();
    let of = |run: u32| format!(r#""run": {run}, "timer": {{ "ref": "unique", "period": 10000 }}"#);
    let set = |b: u32| {
        format!(
            r#"{{ "tasks": {{ "a": {{ {} }}, "b": {{ {} }} }} }}"#,
            of(2_000),
            of(b)
        )
    };
    for (b, code, said) in [
        (3_000, 0, "admitted (as if real-time)"),
        (9_000, 3, "REFUSED (as if real-time)"),
    ] {
        bench.write("rt.json", &set(b));
        let output = bench.run(&["plan", "rt.json"]);
        assert_code(&output, code);
        assert_says(&unbroken(&stdout(&output)), &[said]);
        let plan = json(&bench.run(&["plan", "--json=-", "rt.json"]).stdout);
        assert_eq!(plan["as_if_real_time"], true);
        let processor = &plan["processors"][0];
        let unpromised = processor["unpromised"].as_array().map_or(0, Vec::len);
        assert_eq!(unpromised, if code == 0 { 2 } else { 0 }, "{plan}");
        let lines = processor["lines"].as_array().expect("lines");
        assert!(lines.iter().all(|line| line["deadline"] != "met"), "{plan}");
    }
}

/// Threads that share a timer take turns: what they ask for together is not what is analysed.
#[test]
fn who_shares_a_timer_is_not_refused() {
    let bench = Bench::new();
    let thread =
        r#""policy": "SCHED_FIFO", "run": 6000, "timer": { "ref": "tick", "period": 10000 }"#;
    bench.write(
        "rt.json",
        &format!(r#"{{ "tasks": {{ "a": {{ {thread} }}, "b": {{ {thread} }} }} }}"#),
    );
    let output = bench.run(&["plan", "rt.json"]);
    assert_code(&output, 5);
    assert_says(
        &unbroken(&stdout(&output)),
        &["UNKNOWN", "wait for one timer, `tick`"],
    );
}

/// What nothing is promised to is refused where it is late for sure; else the answer says of whom it is.
#[test]
fn of_whom_nothing_is_promised_who_is_late_for_sure_is_refused() {
    let bench = Bench::new();
    for (run, code, said) in [
        (12_000, 3, "1 deadline can be missed: `t2`"),
        (7_000, 0, "admitted (the real-time tasks)"),
    ] {
        let text = format!(
            r#"{{ "tasks": {{ "t1": {{ "run": 2000, "timer": {{ "ref": "u", "period": 10000 }}, "policy": "SCHED_FIFO", "priority": 10 }}, "t2": {{ "run": {run}, "timer": {{ "ref": "v", "period": 10000 }} }} }} }}"#
        );
        bench.write("rt.json", &text);
        let output = bench.run(&["plan", "rt.json"]);
        assert_code(&output, code);
        assert_says(&unbroken(&stdout(&output)), &[said]);
        let output = bench.run(&["plan", "--json=-", "rt.json"]);
        let plan = json(&output.stdout);
        assert_eq!(plan["admitted"], code == 0);
        let unpromised = &plan["processors"][0]["unpromised"];
        assert_eq!(unpromised.is_array(), code == 0, "{plan}");
    }
}
