//! What the command promises to whoever calls it: exit codes, what goes to which stream, and which files are there afterwards.

mod common;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;

use common::{Bench, assert_code, assert_says, shipped, shipped_text, stderr, stdout, unbroken};
use laxity::doctor::rights::{self, Right};
use serde_json::Value;

const REPORT: &str = "laxity-report.html";
const TRACE: &str = "laxity-trace.pftrace";

/// Its second variant asks for more than any machine has, and parses.
const TOO_MUCH: &str = r#"
[devices.modem]
kind = "soft-modem"

[tasks.cothread]
kind = "periodic"
period = "1ms"
service = "0.5ms"
priority = 31

[variants.modest]
placement = "thread 24"

[variants.greedy]
placement = "reserved 7.9ms/8ms"
"#;

/// The second line lacks a unit.
const BROKEN: &str = r#"[tasks.cothread]
period = 1
kind = "periodic"

[variants.none]
placement = "absent"
"#;

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("this is JSON")
}

#[test]
fn help_and_version_go_to_standard_output() {
    let bench = Bench::new();
    let version = bench.run(&["--version"]);
    assert_code(&version, 0);
    let expected = format!("laxity {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(stdout(&version), expected);
    for arguments in [&["--help"][..], &["run", "--help"], &["plan", "--help"]] {
        let help = bench.run(arguments);
        assert_code(&help, 0);
        assert_says(&stdout(&help), &["Usage: laxity", "Examples:"]);
        assert_eq!(stderr(&help), "");
    }
    let plan = stdout(&bench.run(&["plan", "--help"]));
    assert_says(&plan, &["Of priorities the larger is the more urgent"]);
    let help = stdout(&bench.run(&["--help"]));
    assert_says(&help, &["Exit codes", "64 usage"]);
}

#[test]
fn a_wrong_command_line_is_a_usage_error_and_says_how_it_is_used() {
    let bench = Bench::new();
    let scenario = shipped("soft-modem.toml");
    let wrong: [&[&str]; 6] = [
        &[],
        &["walk"],
        &["run"],
        &["run", "--on", "mars", &scenario],
        &["run", "--threads", "many", &scenario],
        &["plan", "--html=x", &scenario],
    ];
    for arguments in wrong {
        let output = bench.run(arguments);
        assert_code(&output, 64);
        assert_says(&stderr(&output), &["--help"]);
        assert_eq!(stdout(&output), "", "{arguments:?}");
    }
    assert!(bench.files().is_empty());
}

#[test]
fn a_broken_scenario_points_at_its_place_and_starts_nothing() {
    let bench = Bench::new();
    bench.write("broken.toml", BROKEN);
    for arguments in [
        &["run", "--on", "twin", "broken.toml"][..],
        &["run", "--on", "auto", "broken.toml"],
        &["run", "--on", "linux", "broken.toml"],
        &[
            "run",
            "--on",
            "twin",
            "--json=out.json",
            "--quiet",
            "broken.toml",
        ],
        &["plan", "--on", "twin", "--json=out.json", "broken.toml"],
    ] {
        let output = bench.run(arguments);
        assert_code(&output, 64);
        let said = stderr(&output);
        assert_says(&said, &["broken.toml:2:10", "help:", "nothing was started"]);
        // The notices and the progress of a run come on the same stream.
        assert!(!said.contains("none"), "{said}");
        assert_eq!(stdout(&output), "");
        assert_eq!(bench.files(), ["broken.toml"], "{arguments:?}");
    }
}

#[test]
fn an_unknown_variant_is_a_usage_error_that_lists_the_known_ones() {
    let bench = Bench::new();
    let scenario = shipped("soft-modem.toml");
    let output = bench.run(&["run", "--on", "twin", "--variant", "wings", &scenario]);
    assert_code(&output, 64);
    assert_says(&stderr(&output), &["`wings`", "none", "reserved-slots"]);
    assert!(bench.files().is_empty());
}

#[test]
fn a_scenario_that_cannot_be_read_is_an_error_with_its_cause() {
    let bench = Bench::new();
    fs::create_dir(bench.path("directory.toml")).expect("the directory is ours");
    for (name, cause) in [
        ("missing.toml", "No such file"),
        ("directory.toml", "Is a directory"),
    ] {
        for command in ["run", "plan"] {
            let output = bench.run(&[command, "--on", "twin", name]);
            assert_code(&output, 1);
            assert_says(&stderr(&output), &[name, cause]);
        }
    }
    assert_eq!(bench.files(), ["directory.toml"]);
}

#[test]
fn a_refused_plan_names_the_resource_the_amount_and_what_would_fit() {
    let bench = Bench::new();
    bench.write("too-much.toml", TOO_MUCH);
    let output = bench.run(&["plan", "--on", "twin", "too-much.toml"]);
    assert_code(&output, 3);
    let said = stdout(&output);
    assert!(
        said.lines().all(|line| line.chars().count() <= 80),
        "{said}"
    );
    let said = unbroken(&said);
    let refusal = "processor time: ";
    let modest = "modest: nothing to admit; 1 deadline can be missed";
    assert_says(&said, &[modest, "greedy: REFUSED", refusal]);
    assert_says(&said, &[" needed", " available", " missing", "would fit: "]);

    let output = bench.run(&["plan", "--on", "twin", "--json=-", "too-much.toml"]);
    assert_code(&output, 3);
    let plan = json(&output.stdout);
    let variants = plan["variants"].as_array().expect("variants");
    assert_eq!(variants[0]["admitted"], true);
    assert_eq!(variants[1]["admitted"], false);
    let refusal = variants[1]["refusals"][0].as_str().expect("a refusal");
    assert_says(refusal, &["processor time", "missing", "would fit"]);
    // The study's host has milliseconds of 1000/1024.
    assert_eq!(variants[1]["requests"][0]["service_ns"], 7_714_843);
    assert_eq!(bench.files(), ["too-much.toml"]);
}

#[test]
fn what_the_plan_says_would_fit_is_granted() {
    let bench = Bench::new();
    bench.write("too-much.toml", TOO_MUCH);
    let said = unbroken(&stdout(&bench.run(&[
        "plan",
        "--on",
        "twin",
        "too-much.toml",
    ])));
    // would fit: 3.801ms/7.812500ms for `modem thread`; or 7.714843ms/15.845ms for `modem thread`
    let in_ticks = "is told in real time: ask for 1.024 times that, rounded up";
    assert_says(&said, &[in_ticks]);
    let asked = |time: &str| {
        let ms: f64 = time.trim_end_matches("ms").parse().expect("milliseconds");
        format!("{:.0}ns", (ms * 1_024_000.0).ceil())
    };
    let offers = said.split("would fit: ").nth(1).expect("offers");
    let offers = offers.split(" asks ").next().expect("a sentence");
    let offers: Vec<&str> = offers
        .split("; or ")
        .filter_map(|offer| offer.split(' ').next())
        .collect();
    assert_eq!(offers.len(), 2, "{said}");
    for offer in offers {
        let offer = offer.split('/').map(asked).collect::<Vec<_>>().join("/");
        bench.write("modest.toml", &TOO_MUCH.replace("7.9ms/8ms", &offer));
        assert_code(&bench.run(&["plan", "--on", "twin", "modest.toml"]), 0);
    }
}

/// Admission comes before anything: also the variant that would have been admitted does not begin.
fn assert_refused_before_anything_runs(host: &str) {
    let bench = Bench::new();
    bench.write("too-much.toml", TOO_MUCH);
    let output = bench.run(&["run", "--on", host, "too-much.toml"]);
    assert_code(&output, 3);
    let said = stderr(&output);
    assert_says(&said, &["greedy", "processor time", "missing", "would fit"]);
    for progress in ["modest", "calibrating"] {
        assert!(!said.contains(progress), "{said}");
    }
    assert_eq!(bench.files(), ["too-much.toml"]);
}

#[test]
fn a_refused_scenario_does_not_run_in_the_twin() {
    assert_refused_before_anything_runs("twin");
}

#[test]
fn a_refused_scenario_does_not_run_live() {
    if let Some(_alone) = rights::require(&[Right::RealTime]) {
        assert_refused_before_anything_runs("linux");
    }
}

/// What a variant with one modem has besides, and one without does not have, as JSON pointers.
const MODEM_KEYS: [&str; 12] = [
    "/placement",
    "/enforcer",
    "/transfer/completed",
    "/transfer/checksum_ok",
    "/transfer/duration_ns",
    "/samples_lost",
    "/samples_underrun",
    "/samples_pending_max",
    "/processing_ns/p50",
    "/processing_ns/max",
    "/cpu_share",
    "/context_switches",
];

/// What a variant has at least, as JSON pointers.
const VARIANT_KEYS: [&str; 13] = [
    "/name",
    "/cothread_gap_ns/p50",
    "/cothread_gap_ns/p99",
    "/cothread_gap_ns/p999",
    "/cothread_gap_ns/max",
    "/steal_ns",
    "/disturbed",
    "/grade",
    "/expected",
    "/as_expected",
    "/verdict",
    "/verdict/result",
    "/verdict/reasons",
];

#[test]
fn a_run_in_the_twin_writes_json_report_and_trace() {
    let bench = Bench::new();
    let scenario = shipped("soft-modem.toml");
    let output = bench.run(&["run", "--on", "twin", "--json=out.json", &scenario]);
    assert_code(&output, 0);
    assert_says(&stdout(&output), &["verdict: met", REPORT, TRACE]);
    assert_eq!(bench.files(), [REPORT, TRACE, "out.json"]);

    let results = json(&bench.read("out.json"));
    assert_eq!(results["host"], "twin win2000-pii450");
    assert_eq!(results["seed"], 1);
    assert_eq!(results["exit_code"], 0);
    let notices = results["notices"].as_array().expect("notices");
    let ticks = notices[0].as_str().expect("words");
    assert_says(ticks, &["milliseconds, which are ticks of its clock"]);
    assert_eq!(notices.len(), 1);
    let variants = results["variants"].as_array().expect("variants");
    for variant in variants {
        for key in VARIANT_KEYS {
            assert!(variant.pointer(key).is_some(), "{key} in {variant:#}");
        }
        let has_modem = variant["name"] != "none";
        for key in MODEM_KEYS {
            let is_there = variant.pointer(key).is_some();
            assert_eq!(is_there, has_modem, "{key} in {variant:#}");
        }
    }
    let named = |name: &str| {
        let found = variants.iter().find(|variant| variant["name"] == name);
        found.unwrap_or_else(|| panic!("no variant {name}"))
    };
    let reserved = named("reserved-slots");
    assert_eq!(reserved["placement"], "reserved 1.6ms/8ms");
    assert_eq!(reserved["enforcer"], "slots");
    assert_eq!(reserved["grade"], "enforced");
    assert_eq!(reserved["transfer"]["checksum_ok"], true);
    assert_eq!(named("interrupt")["verdict"]["result"], "violated");
    assert_eq!(named("interrupt")["expected"], "violated");

    let report = String::from_utf8(bench.read(REPORT)).expect("text");
    assert!(report.trim_end().ends_with("</html>"));
    assert!(report.len() <= 300 * 1024, "{} bytes", report.len());
    // A packet of Perfetto's begins with the tag of field 1, a message.
    assert_eq!(bench.read(TRACE)[0], 0x0a);
}

#[test]
fn a_run_in_the_twin_is_the_same_bytes_again_on_any_number_of_threads() {
    let scenario = shipped("soft-modem.toml");
    let made = ["1", "2", "2"].map(|threads| {
        let bench = Bench::new();
        let arguments = ["run", "--on", "twin", "--threads", threads];
        let outputs = ["--json=out.json", "--trace-summary=summary.json", &scenario];
        let output = bench.run(&[&arguments[..], &outputs].concat());
        assert_code(&output, 0);
        let files = ["out.json", "summary.json", REPORT, TRACE];
        (stdout(&output), files.map(|name| bench.read(name)))
    });
    for (table, files) in &made[1..] {
        assert_eq!(*table, made[0].0);
        // No `assert_eq`: nobody wants to read megabytes.
        assert!(*files == made[0].1, "not the same bytes");
    }
}

#[test]
fn another_seed_gives_another_line_noise() {
    let bench = Bench::new();
    // A line so bad that frames are lost: which ones, and how many, is the noise's affair.
    let noisy = shipped_text("soft-modem.toml").replace("\"52 dB\"", "\"22 dB\"");
    bench.write("noisy.toml", &noisy);
    let transfer = |seed: &str| {
        let arguments = ["run", "--on", "twin", "--variant", "interrupt"];
        let options = ["--seed", seed, "--json=out.json", "noisy.toml"];
        let output = bench.run(&[&arguments[..], &options].concat());
        // The scenario expects the transfer to complete.
        assert_code(&output, 2);
        let results = json(&bench.read("out.json"));
        assert_eq!(results["seed"].to_string(), seed);
        results["variants"][1]["transfer"].to_string()
    };
    let seeds = ["1", "2", "3"];
    let first: BTreeSet<String> = seeds.map(transfer).into();
    assert!(first.len() > 1, "the seed makes no difference: {first:?}");
    // And the same seeds give the same again.
    assert_eq!(first, seeds.map(transfer).into());
}

#[test]
fn json_on_standard_output_stands_alone() {
    let bench = Bench::new();
    let scenario = shipped("soft-modem.toml");
    let arguments = ["run", "--on", "twin", "--variant", "interrupt", "--json=-"];
    let output = bench.run(&[&arguments[..], &[&scenario]].concat());
    assert_code(&output, 0);
    let results = json(&output.stdout);
    let variants = results["variants"].as_array().expect("variants");
    let names: Vec<_> = variants.iter().map(|variant| &variant["name"]).collect();
    // The one asked for, and the control that it is compared with.
    assert_eq!(names, ["none", "interrupt"]);
    assert_eq!(bench.files(), [REPORT, TRACE]);
}

#[test]
fn a_quiet_run_says_nothing() {
    let bench = Bench::new();
    let scenario = shipped("soft-modem.toml");
    let output = bench.run(&[
        "run",
        "--on",
        "twin",
        "--quiet",
        "--variant",
        "interrupt",
        &scenario,
    ]);
    assert_code(&output, 0);
    assert_eq!(
        (stdout(&output), stderr(&output)),
        (String::new(), String::new())
    );
    assert_eq!(bench.files(), [REPORT, TRACE]);
}

#[test]
fn without_rights_linux_is_refused_with_the_remedy() {
    let (bench, programs) = (Bench::new(), Bench::new());
    bench.write("scenario.toml", &shipped_text("soft-modem.toml"));
    let Some(mut command) = bench.command_without_rights(&programs) else {
        return;
    };
    command.args(["run", "--on", "linux", "--json=out.json", "scenario.toml"]);
    let output = command.output().expect("laxity starts");
    assert_code(&output, 4);
    assert_says(&stderr(&output), &["CAP_SYS_NICE", "setcap cap_sys_nice"]);
    assert_eq!(bench.files(), ["scenario.toml"]);
}

#[test]
fn without_rights_auto_runs_in_the_twin_and_says_so_first_and_last() {
    let (bench, programs) = (Bench::new(), Bench::new());
    // A scenario that is noted upon: what is less important comes later.
    let superfluous = "enforcer = \"deadline\"\noutside = \"confined\"\n";
    let noted = shipped_text("soft-modem.toml").replace("enforcer = \"deadline\"\n", superfluous);
    bench.write("noted.toml", &noted);
    bench.write("scenario.toml", &shipped_text("soft-modem.toml"));
    for (scenario, variant) in [("scenario.toml", "interrupt"), ("noted.toml", "none")] {
        let Some(mut command) = bench.command_without_rights(&programs) else {
            return;
        };
        command.args(["run", "--json=out.json", "--variant", variant, scenario]);
        let output = command.output().expect("laxity starts");
        assert_code(&output, 0);
        let said = stderr(&output);
        assert_eq!(said.contains("always confined"), scenario == "noted.toml");
        let first = said.lines().next().expect("something is said");
        assert_says(
            first,
            &["in the twin", "CAP_SYS_NICE", "setcap cap_sys_nice"],
        );
        // Whoever sees only how it ended sees it too.
        assert_eq!(stdout(&output).lines().last(), Some(first));
        let results = json(&bench.read("out.json"));
        assert_eq!(results["notices"][0].as_str(), Some(first));
        assert_eq!(results["host"], "twin win2000-pii450");
    }
}

#[test]
fn output_that_nobody_takes_is_an_error_and_no_panic() {
    let scenario = shipped("soft-modem.toml");
    let run = ["run", "--on", "twin", "--variant", "interrupt"];
    let commands = [
        [&run[..], &[&scenario]].concat(),
        [&run[..], &["--json=-", &scenario]].concat(),
        vec!["plan", "--on", "twin", &scenario],
        vec!["plan", "--on", "twin", "--json=-", &scenario],
        vec!["doctor"],
        vec!["doctor", "--json=-"],
    ];
    for arguments in commands {
        let full = File::options().write(true).open("/dev/full");
        let bench = Bench::new();
        let mut command = bench.command();
        command.stdout(Stdio::from(full.expect("every Linux has it")));
        command.stderr(Stdio::piped());
        let output = command.args(&arguments).output().expect("laxity starts");
        assert_code(&output, 1);
        let said = stderr(&output);
        assert_says(&said, &["standard output", "No space left"]);
        assert!(!said.contains("panicked"), "{said}");
    }
}

/// A device stands in the place of a file: the results go into it, or the attempt fails; it is never replaced by a file, which would break
/// the machine for everybody if it were `/dev/null` and the caller root.
#[test]
fn a_device_is_written_to_and_not_replaced() {
    let bench = Bench::new();
    let scenario = shipped("soft-modem.toml");
    let run = [
        "run",
        "--on",
        "twin",
        "--variant",
        "interrupt",
        "--json=out",
    ];
    for (device, code, said) in [("/dev/null", 0, ""), ("/dev/full", 1, "No space left")] {
        // By another name, so that a mistake costs no machine its device.
        let link = bench.path("out");
        std::os::unix::fs::symlink(device, &link).expect("the directory is ours");
        let output = bench.run(&[&run[..], &[&scenario]].concat());
        assert_eq!(
            fs::read_link(&link).ok().as_deref(),
            Some(Path::new(device)),
            "the link has been replaced"
        );
        assert_code(&output, code);
        assert_says(&stderr(&output), &[said]);
        fs::remove_file(&link).expect("the link is ours");
    }
}

#[test]
fn a_file_that_is_no_text_is_a_usage_error_with_its_place() {
    let bench = Bench::new();
    let latin = b"title = \"x\"\nseed = 1 # \xe9\n";
    fs::write(bench.path("latin.toml"), latin).expect("the directory is ours");
    for command in ["run", "plan"] {
        let output = bench.run(&[command, "latin.toml"]);
        assert_code(&output, 64);
        assert_says(&stderr(&output), &["latin.toml:2:12", "UTF-8"]);
    }
}
