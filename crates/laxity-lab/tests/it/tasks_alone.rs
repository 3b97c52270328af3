//! Periodic tasks without a modem, in the study's twin: what a person is told of them.

use laxity_lab::evidence::results::RunResults;
use laxity_lab::machine_file::Known;
use laxity_lab::plan::scenario::plan;
use laxity_lab::report::page;
use laxity_lab::report::run::{report, table};
use laxity_lab::runner::conclude::conclude;
use laxity_lab::runner::{self, Made, On, Silent, twin};
use laxity_lab::scenario;
use laxity_model::verify::contract::Outcome;

use crate::common::{resolved, run};

/// A task of which a rogue makes every few jobs late.
const LATE: &str = "
[tasks.audio]
kind = \"periodic\"
period = \"10ms\"
service = \"4ms\"
priority = 20
[tasks.hog]
kind = \"rogue\"
burst = \"60ms\"
every = \"200ms\"
priority = 26
[contracts.timely]
limits = [{ quantity = \"deadline_misses\", at_most = 0 }]
";

/// The verdict in the table's line of a variant.
fn verdict_of<'t>(table: &'t str, variant: &str) -> &'t str {
    let mut lines = table.lines();
    let line = lines.find(|line| line.starts_with(&format!("{variant} ")));
    line.and_then(|line| line.split_whitespace().last())
        .unwrap()
}

/// Whoever expects nothing of a contract is told what came of it all the same.
#[test]
fn what_nothing_is_expected_of_is_not_called_met() {
    let results = run(&format!(
        "{LATE}
[variants.any]
contracts = [\"timely\"]
expect = \"any\"
[variants.no-contract]
contracts = []
"
    ));
    let table = table(&results, 110, None);
    let any = results.variant("any").unwrap();
    assert_eq!(any.verdict.result, Some(Outcome::Violated));
    assert!(any.as_expected && results.exit_code == 0, "{table}");
    assert_eq!(verdict_of(&table, "any"), "violated", "{table}");
    assert_eq!(verdict_of(&table, "no-contract"), "-", "{table}");
    assert!(!table.contains("any: met"), "{table}");
}

/// A variant's tasks are the same in whatever order they are named.
#[test]
fn a_control_is_found_in_either_order() {
    for order in ["\"a\", \"b\"", "\"b\", \"a\""] {
        for named in ["", "control = \"none\""] {
            let text = format!(
                "[devices.m]
kind = \"soft-modem\"
[tasks.a]
kind = \"periodic\"
period = \"1ms\"
[tasks.b]
kind = \"periodic\"
period = \"5ms\"
[contracts.unnoticed]
limits = [{{ quantity = \"wakeup_gap\", at_most = \"1.05 x control\" }}]
[variants.none]
placement = \"absent\"
tasks = [\"a\", \"b\"]
[variants.beside]
placement = \"thread 24\"
tasks = [{order}]
contracts = [\"unnoticed\"]
{named}
"
            );
            let resolved = resolved(&text);
            assert_eq!(resolved.variants[1].control, Some(0), "{text}");
        }
    }
}

/// What spinners and rogues do to others, compared with a run without them. The second run is as the first.
#[test]
fn a_variant_without_a_device_is_compared_with_the_control_it_names() {
    let text = |control: &str| {
        format!(
            "
[tasks.tick]
kind = \"periodic\"
period = \"5ms\"
priority = 20
[tasks.hog]
kind = \"rogue\"
burst = \"20ms\"
every = \"100ms\"
priority = 26
[contracts.unnoticed]
limits = [{{ quantity = \"wakeup_gap\", at_most = \"1.05 x control\" }}]
[variants.none]
tasks = [\"tick\"]
[variants.same]
tasks = [\"tick\"]
contracts = [\"unnoticed\"]
{control}
[variants.hogged]
contracts = [\"unnoticed\"]
expect = \"violated\"
{control}
"
        )
    };
    let results = run(&text("control = \"none\""));
    let table = table(&results, 110, None);
    assert_eq!(results.exit_code, 0, "{table}");
    let told = |name| {
        let line = table.lines().find(|line| line.starts_with(name));
        let words: Vec<&str> = line.unwrap().split_whitespace().rev().take(2).collect();
        (words[1].parse::<f64>().unwrap(), words[0].to_owned())
    };
    assert_eq!(told("same"), (1.0, "met".to_owned()), "{table}");
    let (ratio, verdict) = told("hogged");
    assert!(ratio > 2.0 && verdict == "violated", "{table}");
    let [found, ..] = &scenario::parse(&text(""), "tasks.toml").unwrap_err()[..] else {
        panic!("no control is named");
    };
    assert!(found.to_string().contains("control = \"none\""), "{found}");
}

/// What cannot be judged itself is no yardstick for others: how long its gaps were then tells nothing.
#[test]
fn nothing_is_compared_with_a_control_that_is_not_judged_itself() {
    let scenario = resolved(
        "
[tasks.tick]
kind = \"periodic\"
period = \"5ms\"
[contracts.halved]
limits = [{ quantity = \"wakeup_gap\", at_most = \"0.5 x control\" }]
[variants.none]
[variants.beside]
contracts = [\"halved\"]
control = \"none\"
",
    );
    let judged = |change: fn(&mut Made)| {
        let mut made = twin::run(&scenario, 1, &mut Silent).expect("runs");
        change(&mut made);
        conclude(&made.settled, &made.runs, made.skipped, made.circumstances)
    };
    let told = |results: &RunResults| {
        let verdict = &results.variant("beside").unwrap().contracts[0].verdict;
        (verdict.result, verdict.reasons[0].clone())
    };
    let (result, reason) = told(&judged(|_| {}));
    assert_eq!(result, Outcome::Violated, "{reason}");
    let lost = judged(|made| {
        let mut runs = made.runs.iter_mut();
        let control = runs.find(|run| run.planned.variant == 0);
        control.unwrap().record.events_lost = 1;
    });
    let failed = judged(|made| {
        let failed = &mut made.circumstances.failed;
        failed.insert(0, "the command of `c` cannot be started".to_owned());
    });
    for (results, why) in [
        (lost, "1 event was lost"),
        (failed, "the command of `c` cannot be started"),
    ] {
        let (result, reason) = told(&results);
        assert_eq!(result, Outcome::Inconclusive, "{reason}");
        let wanted = format!(
            "wakeup gap: nothing was observed in a control run: `none` is not judged itself, {why}"
        );
        assert_eq!(reason, wanted);
    }
}

/// Every component that broke a contract is named, not the first alone.
#[test]
fn all_who_break_a_contract_are_named() {
    let results = run(&format!(
        "{LATE}
[tasks.video]
kind = \"periodic\"
period = \"20ms\"
service = \"4ms\"
priority = 19
[variants.judged]
contracts = [\"timely\"]
"
    ));
    assert_eq!(results.exit_code, 2);
    let [why] = &results.verdict.reasons[..] else {
        panic!("{:?}", results.verdict.reasons);
    };
    for name in ["audio: deadline misses", "video: deadline misses"] {
        assert_eq!(why.matches(name).count(), 1, "{why}");
    }
}

/// What is declared for nothing is told in the table, in JSON and in the plan.
#[test]
fn who_takes_part_in_no_variant_is_named() {
    let resolved = resolved(
        "
[quick]
idle = \"100ms\"
[executors.idle]
policy = \"edf\"
placement = \"thread 20\"
[tasks.control]
kind = \"periodic\"
period = \"4ms\"
service = \"1ms\"
[tasks.unused]
kind = \"spinner\"
[variants.a]
tasks = [\"control\"]
[variants.b]
tasks = []
",
    );
    let told = [
        "the task `unused` takes part in no variant",
        "the executor `idle` has no task in any variant",
    ];
    let on = On::Twin { threads: 1 };
    let finished = runner::run(&resolved, on, Vec::new(), &mut Silent).expect("runs");
    let table = table(&finished.results, 110, None);
    let plan = plan(&resolved, (on, false), &Known::Nothing, &mut Silent).expect("a plan");
    for one in told {
        assert!(table.contains(one), "{table}");
        for notes in [&finished.results.notices, &plan.notes] {
            let count = notes.iter().filter(|note| *note == one).count();
            assert_eq!(count, 1, "{notes:?}");
        }
    }
}

/// What takes no part is not shown as if it had been there and done nothing.
#[test]
fn a_report_without_a_modem_tells_of_its_tasks() {
    let (tasks, _) = LATE.split_once("[contracts").expect("a contract");
    let results = run(&format!("{tasks}[variants.alone]\ncontracts = []\n"));
    let page = page::render(&report(&results, Vec::new())).unwrap();
    for absent in [
        "Processing time",
        "Samples pending",
        "not completed",
        "samples lost",
        "receivers",
        "absent",
        "o-thread gap",
    ] {
        assert!(!page.contains(absent), "{absent}");
    }
    let quantities = &results.variants[0].subjects[0].quantities;
    let missed = quantities["deadline_misses"].buckets.last().unwrap();
    let jobs = quantities["deadline_misses"].count;
    assert!(missed.0 == 1 && missed.1 > 0, "{missed:?}");
    for there in [
        "audio: gap between wake-ups",
        "audio: response, wall time",
        "audio: deadline misses",
        &format!("{} of {jobs} jobs", missed.1),
        "no contract, seed 1",
    ] {
        assert!(page.contains(there), "{there}\n{page}");
    }
    let table = table(&results, 110, None);
    assert!(
        table.contains("wake-ups of `audio`, every 10 ms"),
        "{table}"
    );
    assert!(!table.contains("contract ,"), "{table}");
    let json: serde_json::Value = serde_json::from_slice(&results.to_json()).unwrap();
    let variant = &json["variants"][0];
    for key in ["placement", "samples_lost", "transfer", "receivers"] {
        assert!(variant.get(key).is_none(), "{key}");
    }
    assert!(variant.get("cothread_gap_ns").is_some());
}

/// A table that has headings, and of nobody a line below them, is none.
#[test]
fn gaps_that_nobody_has_make_no_table_of_their_own() {
    let task = |name: &str| {
        format!("[tasks.{name}]\nkind = \"periodic\"\nperiod = \"300ms\"\nservice = \"20ms\"\n")
    };
    // Each wakes once in a run: its job is done, and from one wake-up to the next there is nothing.
    let once = |tasks: &str| {
        let lengths = "[quick]\nidle = \"200ms\"\n";
        run(&format!(
            "{lengths}{tasks}[variants.alone]\ncontracts = []\n"
        ))
    };
    for tasks in [task("audio"), task("audio") + &task("video")] {
        let results = once(&tasks);
        let narrow = table(&results, 60, None);
        assert!(narrow.contains("response"), "{narrow}");
        assert!(
            !narrow.contains("gap ms\n") && !narrow.contains("wake-ups"),
            "{narrow}"
        );
        assert_eq!(narrow.matches("variant ").count(), 1, "{narrow}");
        let page = page::render(&report(&results, Vec::new())).unwrap();
        assert!(!page.contains("× control"), "{page}");
    }
}

/// A job that ends after the next release passes that over: wherever the run ends, no response is longer than the plan's bound, and no gap than a period.
#[test]
fn wherever_a_run_ends_no_response_exceeds_its_bound() {
    let text = |idle_us: u64, bound_ns: u64| {
        format!(
            "
[tasks.task]
kind = \"periodic\"
period = \"1ms\"
service = \"0.21ms\"
priority = 31
[contracts.bound]
limits = [
    {{ quantity = \"response_time\", at_most = \"{bound_ns}ns\" }},
    {{ quantity = \"service_gap\", at_most = \"1ms\" }},
]
[variants.alone]
contracts = [\"bound\"]
[quick]
idle = \"{idle_us}us\"
"
        )
    };
    let resolved = resolved(&text(40_000, 1));
    let on = On::Twin { threads: 1 };
    let plan = plan(&resolved, (on, false), &Known::Nothing, &mut Silent).expect("a plan");
    let bound = plan.variants[0].lines[0].bound_ns.expect("a bound");
    // Releases and ticks of the clock, 976.5625 us, meet again after 125 ms.
    for idle_us in (40_000..165_000).step_by(450) {
        let results = run(&text(idle_us, bound));
        let reasons = &results.variants[0].verdict.reasons;
        assert_eq!(results.exit_code, 0, "{idle_us} us: {reasons:?}");
    }
}
