//! A scenario's commands on this machine: what becomes of them is part of the verdict.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use laxity::doctor::rights::{self, LiveTest, Right};
use laxity_lab::evidence::results::RunResults;
use laxity_lab::report::page;
use laxity_lab::report::run::{report, table};
use laxity_lab::runner::{self, On, RunError, Silent};
use laxity_lab::scenario::{self, Length};
use laxity_model::verify::contract::Outcome;

fn live() -> Option<LiveTest> {
    rights::require(&[Right::RealTime])
}

/// A command that always runs.
const SPIN: &str = r#"argv = ["sh", "-c", "while :; do :; done"]"#;

/// A variant in which the command is reserved by the kernel.
const RESERVED: &str = r#"placement = { other = "reserved 10ms/40ms" }
enforcer = "deadline""#;

/// The results of a short run beside a command with this declaration.
fn beside(command: &str) -> Result<RunResults, RunError> {
    judged(command, "")
}

/// The same, judged by a contract with this limit on the command too.
fn judged(command: &str, limit: &str) -> Result<RunResults, RunError> {
    placed(command, "", limit)
}

/// The same, with these keys of the variant.
fn placed(command: &str, placement: &str, limit: &str) -> Result<RunResults, RunError> {
    let own = match limit {
        "" => "",
        _ => ", \"own\"",
    };
    let contract = format!("[contracts.own]\nsubject = \"other\"\nlimits = [{{ {limit} }}]");
    let contract = if limit.is_empty() { "" } else { &contract };
    let text = format!(
        r#"
[quick]
idle = "300ms"

[tasks.timer]
kind = "periodic"
period = "10ms"

[tasks.other]
kind = "command"
{command}

[contracts.ten-seconds]
limits = [{{ quantity = "wakeup_gap", at_most = "10s" }}]

{contract}

[variants.beside-it]
on = "live"
contracts = ["ten-seconds"{own}]
{placement}
"#
    );
    let resolved = scenario::parse(&text, "commands.toml").expect("a scenario");
    let resolved = resolved.resolve(Length::Quick);
    runner::run(&resolved, On::Linux, Vec::new(), &mut Silent).map(|finished| finished.results)
}

/// Whether these tell anything: where the machine stood still too often they are inconclusive for that, and the rest of the test is skipped.
fn are_told(results: &RunResults) -> bool {
    let stood_still = |reason: &&String| {
        reason.contains("of the run was disturbed")
            || reason.contains("the machine stood still for")
            || reason.contains("nothing undisturbed was observed")
    };
    let contracts = results.variants.iter().flat_map(|one| &one.contracts);
    let reasons = contracts.flat_map(|contract| &contract.verdict.reasons);
    let besides = results.variants.iter().flat_map(|one| &one.verdict.reasons);
    let found = reasons.chain(besides).find(stood_still);
    if let Some(reason) = found {
        rights::skip(reason);
    }
    found.is_none()
}

/// What the JSON tells of the command.
fn told(results: &RunResults) -> serde_json::Value {
    let file: serde_json::Value = serde_json::from_slice(&results.to_json()).expect("JSON");
    let subjects = file["variants"][0]["subjects"].as_array().expect("a list");
    let own = subjects.iter().find(|one| one["name"] == "other");
    own.expect("the command").clone()
}

#[test]
fn a_command_that_runs_until_the_end_changes_nothing() {
    let Some(_live) = live() else { return };
    let results = beside(r#"argv = ["sleep", "1000"]"#).expect("it runs");
    if !are_told(&results) {
        return;
    }
    assert_eq!(
        (results.verdict.result, results.exit_code),
        (Some(Outcome::Met), 0)
    );
}

#[test]
fn a_command_that_fails_is_named_and_nothing_is_met() {
    let Some(_live) = live() else { return };
    for (script, how) in [
        ("sleep 0.1; exit 3", "ended with exit code 3"),
        ("kill -KILL $$", "was killed by signal 9"),
        ("exec /no/such/program", "ended with exit code 127"),
    ] {
        let command = format!(r#"argv = ["sh", "-c", "{script}"]"#);
        let results = beside(&command).expect("the others are told all the same");
        if !are_told(&results) {
            return;
        }
        assert_eq!(results.exit_code, 1, "{:?}", results.verdict);
        let variant = &results.variants[0];
        assert!(!variant.as_expected);
        for result in [
            results.verdict.result,
            variant.verdict.result,
            Some(variant.contracts[0].verdict.result),
        ] {
            assert_eq!(result, Some(Outcome::Inconclusive));
        }
        let reason = &results.verdict.reasons[0];
        let told = format!("beside-it: the command of `other` {how} ");
        assert!(reason.starts_with(&told), "{reason}");
        assert!(reason.ends_with("the start"), "{reason}");
    }
}

#[test]
fn a_command_that_never_starts_is_an_error() {
    let Some(_live) = live() else { return };
    let Err(error) = beside(r#"argv = ["/no/such/program"]"#) else {
        panic!("nothing was started");
    };
    let text = error.to_string();
    assert!(matches!(error, RunError::Failed { .. }), "{text}");
    assert!(
        text.contains("the command of `other` cannot be started: No such file"),
        "{text}"
    );
}

/// The results of a scenario with these variants of a timer and some commands.
fn of_variants(tasks: &str, variants: &str) -> Result<RunResults, RunError> {
    let limits = [("ten-seconds", "10s"), ("at-once", "1us")];
    let limits = limits
        .into_iter()
        .filter(|(name, _)| variants.contains(name));
    let contracts: String = limits
        .map(|(name, most)| {
            format!(
                "[contracts.{name}]\nlimits = [{{ quantity = \"wakeup_gap\", at_most = \"{most}\" }}]\n"
            )
        })
        .collect();
    let text = format!(
        r#"
[quick]
idle = "300ms"
[tasks.timer]
kind = "periodic"
period = "10ms"
{tasks}
{contracts}
[defaults]
on = "live"
{variants}
"#
    );
    let resolved = scenario::parse(&text, "commands.toml").expect("a scenario");
    let resolved = resolved.resolve(Length::Quick);
    runner::run(&resolved, On::Linux, Vec::new(), &mut Silent).map(|finished| finished.results)
}

fn executes(name: &str, argv: &[&str]) -> String {
    format!("[tasks.{name}]\nkind = \"command\"\nargv = {argv:?}\n")
}

/// Whatever else failed, what was judged and is not as expected is what the run ends with.
#[test]
fn a_violation_stands_beside_a_command_that_failed() {
    let Some(_live) = live() else { return };
    let dies = executes("dies", &["sh", "-c", "exit 3"]);
    let failing = "[variants.failing]\ncontracts = [\"ten-seconds\"]\n";
    let other = |contract| {
        format!("[variants.other]\ntasks = [\"timer\"]\ncontracts = [\"{contract}\"]\n{failing}")
    };
    let results = of_variants(&dies, &other("at-once")).expect("it runs");
    if !are_told(&results) {
        return;
    }
    assert_eq!(
        (results.verdict.result, results.exit_code),
        (Some(Outcome::Violated), 2),
        "{:?}",
        results.verdict
    );
    let results = of_variants(&dies, &other("ten-seconds")).expect("it runs");
    if !are_told(&results) {
        return;
    }
    assert_eq!(
        (results.verdict.result, results.exit_code),
        (Some(Outcome::Inconclusive), 1)
    );
    let text = table(&results, 100, None);
    assert!(text.contains("something failed"), "{text}");
}

/// A control beside which a command was to run shows nothing once that has died.
#[test]
fn a_control_whose_command_failed_is_no_yardstick() {
    let Some(_live) = live() else { return };
    let variants = r#"[contracts.halved]
limits = [{ quantity = "wakeup_gap", at_most = "0.5 x control" }]
[variants.alone]
tasks = ["timer", "other"]
[variants.beside]
tasks = ["timer"]
contracts = ["halved"]
control = "alone"
"#;
    for (argv, result, exit_code) in [
        (&["sleep", "1000"][..], Outcome::Violated, 2),
        (&["false"], Outcome::Inconclusive, 1),
    ] {
        let results = of_variants(&executes("other", argv), variants).expect("it runs");
        if !are_told(&results) {
            return;
        }
        let verdict = &results.variant("beside").unwrap().contracts[0].verdict;
        assert_eq!(verdict.result, result, "{verdict:?}");
        assert_eq!(results.exit_code, exit_code, "{:?}", results.verdict);
        let why = "`alone` is not judged itself, the command of `other` ended with exit code 1";
        assert_eq!(
            verdict.reasons[0].contains(why),
            exit_code == 1,
            "{verdict:?}"
        );
    }
}

#[test]
fn what_cannot_be_executed_is_found_before_anything_is_started() {
    let Some(_live) = live() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let mark = directory.path().join("ran");
    let mark = mark.to_str().expect("a plain path");
    let tasks = executes(
        "first",
        &["sh", "-c", &format!("touch {mark}; exec sleep 1000")],
    );
    let variants = "[variants.a]\ntasks = [\"timer\", \"first\"]\n[variants.b]\ntasks = [\"timer\", \"second\"]\n";
    for (program, why) in [
        ("no-such-program-anywhere", "no directory of PATH has a"),
        ("/no/such/program", "No such file"),
        (
            directory.path().to_str().expect("plain"),
            "Permission denied",
        ),
    ] {
        let tasks = format!("{tasks}{}", executes("second", &[program]));
        let Err(error) = of_variants(&tasks, variants) else {
            panic!("{program} was started");
        };
        let text = error.to_string();
        let told = "variant `b`: the command of `second` cannot be started: ";
        assert!(text.starts_with(told) && text.contains(why), "{text}");
        assert!(!Path::new(mark).exists(), "the first was started");
    }
}

/// A script whose interpreter is not there looks like a program until it is executed.
#[test]
fn a_command_that_does_not_start_costs_no_other_result() {
    let Some(_live) = live() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let script = directory.path().join("script");
    fs::write(&script, "#!/no/such/interpreter\n").expect("our directory");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("our file");
    let tasks = executes("script", &[script.to_str().expect("a plain path")]);
    let both = "[variants.without]\ntasks = [\"timer\"]\ncontracts = [\"ten-seconds\"]\n[variants.beside]\n";
    let results = of_variants(&tasks, both).expect("the other is told");
    assert_eq!(results.variants.len(), 1);
    assert_eq!(results.variants[0].verdict.result, Some(Outcome::Met));
    assert_eq!(
        (results.verdict.result, results.exit_code),
        (Some(Outcome::Inconclusive), 1)
    );
    let told = "the command of `script` cannot be started: No such file";
    let skipped = &results.skipped[0];
    assert!(skipped.name == "beside" && skipped.reason.starts_with(told));
    assert!(results.verdict.reasons[0].starts_with(&format!("beside: {told}")));
    let alone = of_variants(&tasks, "[variants.beside]\n");
    assert!(matches!(alone, Err(RunError::Failed { .. })));
}

/// Nobody is in the program, it lasts as long as the scenario says, and it is looked for halts of the machine all the same.
#[test]
fn a_run_beside_commands_alone_lasts_as_long_as_the_scenario_says() {
    let Some(_live) = live() else { return };
    let tasks = executes("ends", &["sleep", "0.1"]) + &executes("stays", &["sleep", "1000"]);
    let variant = "[variants.alone]\ntasks = [\"ends\", \"stays\"]\n";
    let before = Instant::now();
    let results = of_variants(&tasks, variant).expect("it runs");
    if !are_told(&results) {
        return;
    }
    assert!(before.elapsed() >= Duration::from_millis(300));
    assert_eq!(results.exit_code, 0, "{:?}", results.verdict);
    assert!(results.variants[0].disturbed.witness_wakeups > 0);
    let file: serde_json::Value = serde_json::from_slice(&results.to_json()).expect("JSON");
    let subjects = &file["variants"][0]["subjects"];
    let after = |number: usize| subjects[number]["command_runs"][0]["ended_after_ns"].as_u64();
    assert!(after(0).is_some(), "{subjects}");
    assert_eq!(after(1), None);
}

#[test]
fn the_code_that_is_expected_is_no_failure() {
    let Some(_live) = live() else { return };
    for command in [
        "argv = [\"sh\", \"-c\", \"exit 3\"]\nexit = 3",
        "argv = [\"true\"]",
    ] {
        let results = beside(command).expect("it runs");
        if !are_told(&results) {
            return;
        }
        assert_eq!(results.exit_code, 0, "{:?}", results.verdict);
    }
    let results = beside("argv = [\"true\"]\nexit = 3").expect("it runs");
    if !are_told(&results) {
        return;
    }
    assert_eq!(results.exit_code, 1);
}

/// Where a contract is about the exit code, that is judged, and the others are judged all the same.
#[test]
fn an_exit_code_that_a_contract_limits_is_judged() {
    let Some(_live) = live() else { return };
    let limit = "quantity = \"exit_code\", at_most = 0";
    for (script, code, how, result, exit) in [
        ("exit 0", Some(0), "0", Outcome::Met, 0),
        ("exit 3", Some(3), "3", Outcome::Violated, 2),
        ("kill -KILL $$", Some(137), "signal 9", Outcome::Violated, 2),
        // It never ended, so nothing is known of its end.
        ("sleep 1000", None, "running", Outcome::Inconclusive, 5),
    ] {
        let command = format!(r#"argv = ["sh", "-c", "{script}"]"#);
        let results = judged(&command, limit).expect("it runs");
        if !are_told(&results) {
            return;
        }
        let variant = &results.variants[0];
        let [others, own] = &variant.contracts[..] else {
            panic!("{:?}", variant.contracts);
        };
        assert_eq!(others.verdict.result, Outcome::Met, "{script}");
        assert_eq!((own.verdict.result, results.exit_code), (result, exit));
        let told = own.verdict.reasons.first().cloned().unwrap_or_default();
        match code {
            Some(code @ 1..) => {
                assert_eq!(told, format!("other: exit code: maximum {code} is above 0"));
            }
            Some(_) => assert_eq!(told, ""),
            None => assert_eq!(told, "other: exit code: nothing was observed"),
        }
        for text in [
            table(&results, 80, None),
            page::render(&report(&results, Vec::new())).expect("a page"),
        ] {
            assert!(text.contains("exit") && text.contains(how), "{text}");
        }
    }
}

#[test]
fn what_a_command_took_is_told_and_limited() {
    let Some(_live) = live() else { return };
    let limit = "quantity = \"processor_time\", at_least = \"1us\"";
    let results = judged(SPIN, limit).expect("it runs");
    if !are_told(&results) {
        return;
    }
    assert_eq!(
        results.verdict.result,
        Some(Outcome::Met),
        "{:?}",
        results.verdict
    );
    let run = &told(&results)["command_runs"][0];
    assert!(run["processor_time_ns"].as_u64() > Some(1_000), "{run}");
    assert!(run["exit_code"].is_null() && run["ended_after_ns"].is_null());
    let limit = "quantity = \"processor_time\", at_least = \"100s\"";
    let results = judged(SPIN, limit).expect("it runs");
    if !are_told(&results) {
        return;
    }
    assert_eq!(
        (results.verdict.result, results.exit_code),
        (Some(Outcome::Violated), 2)
    );
}

/// The kernel stops who has used up its budget until the next one: a gap in which it was runnable.
#[test]
fn the_service_gap_of_a_reserved_command_is_told_and_limited() {
    let Some(_live) = rights::require(&[Right::RealTime, Right::Deadline]) else {
        return;
    };
    let limit = "quantity = \"service_gap\", at_most = \"10s\"";
    let results = placed(SPIN, RESERVED, limit).expect("it runs");
    if !are_told(&results) {
        return;
    }
    assert_eq!(results.exit_code, 0, "{:?}", results.verdict);
    let own = told(&results);
    let longest = own["quantities"]["service_gap_ns"]["max"].as_u64();
    assert!(longest > Some(15_000_000), "{own}");
    assert!(own["command_runs"][0]["service_gap_unknown"].is_null());
    for text in [
        table(&results, 80, None),
        page::render(&report(&results, Vec::new())).expect("a page"),
    ] {
        assert!(text.contains("thread"), "{text}");
    }
    let limit = "quantity = \"service_gap\", at_most = \"1ms\"";
    let results = placed(SPIN, RESERVED, limit).expect("it runs");
    if !are_told(&results) {
        return;
    }
    assert_eq!(
        (results.verdict.result, results.exit_code),
        (Some(Outcome::Violated), 2)
    );
}

/// The reservation is the first thread's: what that starts may wait for as long as the run lasts, and nobody sees it.
#[test]
fn where_the_first_thread_has_little_of_what_a_command_took_its_gaps_are_not_all_there_were() {
    let Some(_live) = rights::require(&[Right::RealTime, Right::Deadline]) else {
        return;
    };
    let children = r#"argv = ["sh", "-c", "while :; do :; done & while :; do sleep 0.01; done"]"#;
    let limit = "quantity = \"service_gap\", at_most = \"200ms\"";
    let results = placed(children, RESERVED, limit).expect("it runs");
    if are_told(&results) {
        assert_eq!(results.exit_code, 5, "{:?}", results.verdict);
        let unknown = &told(&results)["command_runs"][0]["service_gap_unknown"];
        assert!(unknown.as_str().unwrap().contains("first thread's alone"));
    }
}

/// What somebody took away was not granted, however much the command got all the same.
#[test]
fn a_command_that_was_taken_out_of_its_reservation_is_told_unenforced_and_violates() {
    let Some(_live) = rights::require(&[Right::RealTime, Right::Deadline]) else {
        return;
    };
    let limit = "quantity = \"service_gap\", at_most = \"10s\"";
    let kept = placed(SPIN, RESERVED, limit).expect("it runs");
    if !are_told(&kept) {
        return;
    }
    assert_eq!(told(&kept)["grade"], "enforced");
    let taken = r#"argv = ["sh", "-c", "chrt -o -p 0 $$ && while :; do :; done"]"#;
    let results = placed(taken, RESERVED, limit).expect("it runs");
    if !are_told(&results) {
        return;
    }
    let variant = &results.variants[0];
    assert_eq!(variant.grade.as_deref(), Some("unenforced"));
    let reason = variant.grade_reason.as_deref().unwrap();
    assert!(reason.contains("taken out of its reservation"), "{reason}");
    assert_eq!(told(&results)["grade"], "unenforced");
    assert_eq!(
        (results.verdict.result, results.exit_code),
        (Some(Outcome::Violated), 2)
    );
    let reasons = &results.variants[0].contracts[1].verdict.reasons;
    let own = reasons.iter().any(|said| said.contains("unenforced"));
    assert!(own, "{reasons:?}");
}
