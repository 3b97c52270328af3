//! Periodic tasks in the study's twin: judged by their deadlines where nothing else is said, and by what they do in every window of time.

use laxity_lab::report::page;
use laxity_lab::report::run::{report, table};
use laxity_model::verify::contract::Outcome;

use crate::common::run;

/// A task whose job takes 4 ms of every 10.
const VIDEO: &str = "
[tasks.video]
kind = \"periodic\"
period = \"10ms\"
service = \"4ms\"
priority = 20
";

/// Somebody who takes the processor for 60 ms, five times a second.
const HOG: &str = "
[tasks.hog]
kind = \"rogue\"
burst = \"60ms\"
every = \"200ms\"
priority = 26
";

/// What becomes of a program's only variant that is judged by this limit.
fn limited(program: &str, limit: &str) -> (Outcome, u8) {
    let results = run(&format!(
        "{program}
[contracts.steady]
limits = [{{ {limit} }}]
[variants.alone]
contracts = [\"steady\"]
"
    ));
    (
        results.verdict.result.expect("it is judged"),
        results.exit_code,
    )
}

/// The outcome where no contract is named.
fn unsaid(program: &str) -> (Outcome, u8) {
    let results = run(&format!("{program}\n[variants.alone]\n"));
    (
        results.verdict.result.expect("it is judged"),
        results.exit_code,
    )
}

const MET: (Outcome, u8) = (Outcome::Met, 0);
const VIOLATED: (Outcome, u8) = (Outcome::Violated, 2);

#[test]
fn a_throughput_that_is_kept_on_average_is_not_kept_in_every_window() {
    let every = |window: &str, least: u32| {
        let limit =
            format!("quantity = \"jobs_done\", in_every = \"{window}\", at_least = {least}");
        limited(&format!("{VIDEO}{HOG}"), &limit)
    };
    // Seven of ten are done in 200 ms, and next to none beside the hog.
    assert_eq!(every("200ms", 13), MET);
    assert_eq!(every("200ms", 16), VIOLATED);
    assert_eq!(every("50ms", 1), VIOLATED);
    let alone = "quantity = \"jobs_done\", in_every = \"100ms\", at_least = 9";
    assert_eq!(limited(VIDEO, alone), MET);
}

#[test]
fn so_many_misses_of_so_many_jobs_are_allowed_wherever_they_are() {
    let misses = |window: &str, most: u32| {
        let limit =
            format!("quantity = \"deadline_misses\", in_every = \"{window}\", at_most = {most}");
        limited(&format!("{VIDEO}{HOG}"), &limit)
    };
    assert_eq!(misses("200ms", 7), MET);
    assert_eq!(misses("200ms", 4), VIOLATED);
    assert_eq!(misses("10ms", 0), VIOLATED);
}

/// No window fits the run, though it would with `--full`: nothing is known, and nothing is met.
#[test]
fn a_window_longer_than_the_run_leaves_the_verdict_open() {
    let limit = "quantity = \"jobs_done\", in_every = \"10s\", at_least = 1";
    assert_eq!(limited(VIDEO, limit), (Outcome::Inconclusive, 5));
}

#[test]
fn a_task_that_never_runs_keeps_no_throughput_and_no_deadline() {
    let starved = format!(
        "{}[tasks.spinner]\nkind = \"spinner\"\npriority = 31\n",
        VIDEO.replace("20", "1")
    );
    let limit = "quantity = \"jobs_done\", in_every = \"100ms\", at_least = 1";
    assert_eq!(limited(&starved, limit), VIOLATED);
    let total = "quantity = \"jobs_done\", at_least = 1";
    assert_eq!(limited(&starved, total), VIOLATED);
    assert_eq!(unsaid(&starved), VIOLATED);
}

#[test]
fn who_says_nothing_else_is_judged_by_its_deadlines() {
    assert_eq!(unsaid(VIDEO), MET);
    assert_eq!(unsaid(&format!("{VIDEO}{HOG}")), VIOLATED);
    let due_in = |deadline: &str| {
        let period = "period = \"10ms\"";
        unsaid(&VIDEO.replace(period, &format!("{period}\ndeadline = \"{deadline}\"")))
    };
    assert_eq!(due_in("8ms"), MET);
    assert_eq!(due_in("3ms"), VIOLATED);
    // A wake-up is no job.
    let probe = VIDEO.replace("service = \"4ms\"", "");
    let results = run(&format!("{probe}{HOG}[variants.alone]\n"));
    assert!(results.variants[0].contracts.is_empty());
    // One of its own takes the place of that.
    let own = "[contracts.in-time]\nkind = \"periodic\"\nlimits = [{ quantity = \"deadline_misses\", at_most = 500 }]\n";
    assert_eq!(unsaid(&format!("{VIDEO}{HOG}{own}")), MET);
}

/// Also where it stands in a table of its own, for want of room.
#[test]
fn what_there_was_in_windows_has_its_tasks_name_beside_it() {
    let long = "control-of-the-robots-left-arm";
    let results = run(&format!(
        "{VIDEO}{}{HOG}
[contracts.steady]
limits = [{{ quantity = \"jobs_done\", in_every = \"100ms\", at_least = 1 }}]
[variants.alone]
contracts = [\"steady\"]
",
        VIDEO.replace("video", long)
    ));
    let table = table(&results, 80, None);
    let mut rows = table
        .lines()
        .filter(|line| line.contains("jobs done/100ms"));
    for name in ["video", "control-of"] {
        let row = rows.next().unwrap_or_default();
        assert!(row.contains(name), "{name}: {table}");
    }
}

#[test]
fn what_there_was_in_windows_is_shown_in_every_view() {
    let results = run(&format!(
        "{VIDEO}{HOG}
[contracts.steady]
subject = \"video\"
limits = [{{ quantity = \"jobs_done\", in_every = \"100ms\", at_least = 9 }}]
[variants.alone]
contracts = [\"steady\"]
expect = \"violated\"
"
    ));
    assert_eq!(results.exit_code, 0);
    let [windows] = &results.variants[0].subjects[0].windows[..] else {
        panic!("{:?}", results.variants[0].subjects);
    };
    assert_eq!(windows.quantity, "jobs_done");
    assert_eq!(windows.window_ns, 100_000_000);
    let (least, most) = windows.least.zip(windows.most).unwrap();
    assert!(least < 9 && 9 < most, "{windows:?}");
    let cell = format!("{least}-{most} jobs done/100ms");
    for width in [80, 140] {
        let table = table(&results, width, None);
        assert!(table.contains(&cell), "{table}");
        let why = format!("jobs done in every 100ms: minimum {least} is below 9");
        assert!(table.replace("\n    ", " ").contains(&why), "{table}");
    }
    let page = page::render(&report(&results, Vec::new())).unwrap();
    assert!(page.contains(&cell), "{page}");
    let json: serde_json::Value = serde_json::from_slice(&results.to_json()).unwrap();
    let own = &json["variants"][0]["subjects"][0]["windows"][0];
    assert_eq!(own["least"], least);
}
