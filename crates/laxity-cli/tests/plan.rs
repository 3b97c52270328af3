//! `laxity plan` on task sets, and what it adds to scenarios: exit codes, streams and JSON.

mod common;
#[path = "plan/promised.rs"]
mod promised;

use common::{Bench, assert_code, assert_says, shipped, stderr, stdout, unbroken};
use serde_json::Value;

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("this is JSON")
}

const LIGHT: &str = "name,cost_us,period_ms\na,1000,10\nb,2000,20\n";
/// Both cannot be had by priority, and are by deadline.
const TIGHT: &str = "name,cost_ms,period_ms,priority\na,2,4,2\nb,3,6,1\n";
const HEAVY: &str = "name,cost_ms,period_ms\na,8,10\nb,8,20\n";

#[test]
fn admitted_is_0_and_refused_is_3() {
    let bench = Bench::new();
    bench.write("light.csv", LIGHT);
    bench.write("tight.csv", TIGHT);
    bench.write("heavy.csv", HEAVY);
    let cases: [(&[&str], u8, &[&str]); 6] = [
        (&["light.csv"], 0, &["2 tasks", "admitted by", "margin"]),
        (
            &["tight.csv"],
            3,
            &["REFUSED", "as it is, under earliest deadline first"],
        ),
        (
            &["--scheduler", "edf", "tight.csv"],
            0,
            &["earliest deadline first"],
        ),
        (
            &["heavy.csv"],
            3,
            &[
                "120.0 % used",
                "would be admitted:",
                "`b` at most 4ms every 20ms",
            ],
        ),
        (
            &["--processors", "2", "heavy.csv"],
            0,
            &["processor 1", "first fit", "on 2 processors", "global EDF"],
        ),
        (
            &["--supply", "1ms/8ms", "light.csv"],
            3,
            &["1ms/8ms by slots: REFUSED"],
        ),
    ];
    for (arguments, code, words) in cases {
        let arguments = [&["plan"], arguments].concat();
        let output = bench.run(&arguments);
        assert_code(&output, code.into());
        assert_says(&unbroken(&stdout(&output)), words);
        assert_eq!(stderr(&output), "", "{arguments:?}");
    }
}

/// Nothing says how long a set is to run, nor what it does.
#[test]
fn a_set_is_not_run_and_it_is_said_what_reads_it() {
    let bench = Bench::new();
    bench.write("light.csv", LIGHT);
    let output = bench.run(&["run", "light.csv"]);
    assert_code(&output, 64);
    let said = unbroken(&stderr(&output));
    assert_says(&said, &["light.csv is a task set", "`laxity plan`"]);
}

#[test]
fn json_has_every_figure_in_nanoseconds() {
    let bench = Bench::new();
    bench.write("light.csv", LIGHT);
    let output = bench.run(&["plan", "--json=-", "light.csv"]);
    assert_code(&output, 0);
    let plan = json(&output.stdout);
    assert_eq!(plan["file_version"], 3);
    let processor = &plan["processors"][0];
    assert_eq!(processor["utilization_ppm"], 200_000);
    let second = &processor["lines"][1];
    assert_eq!(second["name"], "b");
    assert_eq!(second["bound_ns"], 3_000_000);
    assert_eq!(second["slack_ns"], 17_000_000);
    assert_eq!(second["observed_max_ns"], 3_000_000);
    assert_eq!(plan["on_several"], Value::Null);
    bench.write("heavy.csv", HEAVY);
    let output = bench.run(&["plan", "--processors=2", "--json=-", "heavy.csv"]);
    assert_code(&output, 0);
    let several = &json(&output.stdout)["on_several"];
    assert_eq!(several["utilization_ppm"], 1_200_000);
    assert_eq!(several["partitionings"][2]["heuristic"], "worst fit");
    assert_eq!(several["partitionings"][2]["processors"][1][0], "b");
    assert_eq!(several["tardiness"][0]["tardiness_ns"], 0);
    let output = bench.run(&["plan", "--no-observe", "--json=out.json", "light.csv"]);
    assert_code(&output, 0);
    assert_says(&stdout(&output), &["admitted by response times"]);
    let text = std::fs::read(bench.path("out.json")).expect("written");
    let plan = json(&text);
    assert_eq!(
        plan["processors"][0]["lines"][1]["observed_max_ns"],
        Value::Null
    );
    let how = plan["processors"][0]["observed"].as_str().expect("a word");
    assert_says(how, &["not asked for"]);
}

#[test]
fn wrong_files_and_options_are_usage_errors_that_point_at_them() {
    let bench = Bench::new();
    bench.write("wrong.csv", "cost_us,period_us\n1,x\n");
    bench.write("wrong.json", "{ \"tasks\": { \"a\": { \"run\": true } } }");
    bench.write("light.csv", LIGHT);
    let scenario = shipped("soft-modem.toml");
    let cases: [(&[&str], &str); 8] = [
        (&["wrong.csv"], "wrong.csv:2:3"),
        (&["wrong.json"], "wrong.json:1:28"),
        (&["--scheduler", "lottery", "light.csv"], "--help"),
        (&["--supply", "2/8", "light.csv"], "--supply"),
        (&["--enforcer", "slots", "light.csv"], "--supply"),
        (&["--processors", "0", "light.csv"], "--processors"),
        (&["--on", "twin", "light.csv"], "--on is for scenarios"),
        (
            &["--processors", "2", &scenario],
            "--processors is for task sets",
        ),
    ];
    for (arguments, word) in cases {
        let output = bench.run(&[&["plan"], arguments].concat());
        assert_code(&output, 64);
        assert_says(&stderr(&output), &[word]);
        assert_eq!(stdout(&output), "", "{arguments:?}");
    }
    bench.write("far.csv", "cost_us,period_us,processor\n1,9,5\n");
    let output = bench.run(&["plan", "--processors", "2", "far.csv"]);
    assert_code(&output, 64);
    assert_says(&stderr(&output), &["processor 5, and there are 2"]);
    bench.write("long.csv", "cost_s,period_s\n9000000000,18000000000\n");
    let output = bench.run(&["plan", "long.csv"]);
    assert_code(&output, 64);
    assert_says(&stderr(&output), &["long.csv: ", "is too large"]);
}

#[test]
fn a_scenario_has_bounds_beside_what_the_twin_shows() {
    let bench = Bench::new();
    let scenario = shipped("soft-modem.toml");
    let output = bench.run(&["plan", "--on", "twin", "--json=-", &scenario]);
    assert_code(&output, 0);
    let plan = json(&output.stdout);
    assert_eq!(plan["file_version"], 3);
    let variants = plan["variants"].as_array().expect("variants");
    let reserved = variants
        .iter()
        .find(|variant| variant["name"] == "reserved-slots");
    let lines = reserved.expect("a variant")["lines"]
        .as_array()
        .expect("lines");
    let connected = lines
        .iter()
        .find(|line| line["phase"] == "connected")
        .expect("a line");
    let figure = |name: &str| connected[name].as_u64().expect(name);
    assert_eq!(figure("cost_ns"), 1_778_000);
    assert!(figure("observed_max_ns") <= figure("bound_ns"));
    let device = &reserved.expect("a variant")["devices"][0];
    assert_eq!(device["answer"], "served");
    assert_eq!(device["device"]["block_ns"], 12_500_000);
    assert!(device["margins"]["response_ns"].as_u64() < Some(figure("bound_ns")));
    // Served in pieces: a call may last longer than a block of 11.25 ms does, and ends before its last piece is due.
    assert!(figure("bound_ns") < figure("deadline_ns"));
    let spinners = lines
        .iter()
        .find(|line| line["name"] == "spinners")
        .expect("a line");
    assert_says(
        spinners["no_bound"].as_str().expect("a reason"),
        &["never stops"],
    );
}

/// What the file does not tell is neither admitted nor refused; what is too much without it is refused all the same.
#[test]
fn what_the_file_does_not_tell_is_unknown() {
    let bench = Bench::new();
    let timer = r#""timer": { "ref": "unique", "period": 10000 }"#;
    let fifo = r#""policy": "SCHED_FIFO""#;
    let of = |a: &str, run: u32| {
        let b = format!(r#"{{ {fifo}, "run": {run}, {timer} }}"#);
        format!(r#"{{ "tasks": {{ "a": {{ {fifo}, {a} }}, "b": {b} }} }}"#)
    };
    let mem = format!(r#""mem": 4096, "run": 10, {timer}"#);
    let suspend = format!(r#""suspend", "run": 10, {timer}"#);
    let old = r#""exec": 1000, "period": 10000"#;
    for (does, named) in [
        (&*mem, "`a`: `mem` in line 1"),
        (&suspend, "`a`: `suspend` in line 1"),
        (old, "`a`: `exec` in line 1"),
    ] {
        bench.write("set.json", &of(does, 100));
        let output = bench.run(&["plan", "set.json"]);
        assert_code(&output, 5);
        assert_says(&unbroken(&stdout(&output)), &["UNKNOWN", named]);
        for scheduler in ["fp", "edf", "rmdp"] {
            let output = bench.run(&["plan", "--scheduler", scheduler, "set.json"]);
            assert_code(&output, 5);
        }
        let output = bench.run(&["plan", "--json=-", "set.json"]);
        assert_code(&output, 5);
        let plan = json(&output.stdout);
        assert_eq!(
            (&plan["admitted"], &plan["unknown"]),
            (&false.into(), &true.into())
        );
        bench.write("set.json", &of(does, 10_001));
        let output = bench.run(&["plan", "set.json"]);
        assert_code(&output, 3);
        assert_says(&stdout(&output), &["REFUSED"]);
    }
}

/// A budget that is too small for its task is refused and does not grow with it; a bound that is not exact refuses nothing.
#[test]
fn of_reservations_only_what_is_sure_is_refused() {
    let bench = Bench::new();
    let reserved = |runtime: u32, period: u32, run: u32| {
        format!(
            r#""policy": "SCHED_DEADLINE", "dl-runtime": {runtime}, "dl-period": {period}, "run": {run}, "timer": {{ "ref": "unique", "period": {period} }}"#
        )
    };
    let small = reserved(2_000, 10_000, 3_000);
    bench.write(
        "set.json",
        &format!(r#"{{ "tasks": {{ "dl": {{ {small} }} }} }}"#),
    );
    let output = bench.run(&["plan", "--json=-", "set.json"]);
    assert_code(&output, 3);
    let processor = &json(&output.stdout)["processors"][0];
    assert_eq!(processor["scale_ppm"], 666_000);
    assert_eq!(processor["lines"][0]["largest_cost_ns"], 2_000_000);
    let video = reserved(3_000, 20_000, 2_500);
    let beside = |period: u32| {
        let control = format!(
            r#""policy": "SCHED_FIFO", "priority": 50, "run": 400, "timer": {{ "ref": "unique", "period": {period} }}"#
        );
        let set =
            format!(r#"{{ "tasks": {{ "video": {{ {video} }}, "control": {{ {control} }} }} }}"#);
        bench.write("set.json", &set);
        bench.run(&["plan", "set.json"])
    };
    // Each job of `video` begins with a whole budget, so that one comes between two of `control` at most.
    assert_code(&beside(3_400), 0);
    let output = beside(3_300);
    assert_code(&output, 5);
    let said = unbroken(&stdout(&output));
    assert_says(
        &said,
        &[
            "UNKNOWN",
            "is not known to be met: `control`",
            "cannot tell",
        ],
    );
    assert_says(&said, &["`video` reserves at most 2.900ms"]);
    assert!(
        !said.contains("REFUSED") && !said.contains(" 0ns"),
        "{said}"
    );
}

#[test]
fn a_dash_is_standard_input_everywhere() {
    let bench = Bench::new();
    let scenario = common::shipped_text("reserved-minimal.toml");
    let from_input = |arguments: &[&str], text: &str| {
        bench.write("input", text);
        let input = std::fs::File::open(bench.path("input")).expect("it is there");
        let mut command = bench.command();
        command.args(arguments).stdin(input);
        command.output().expect("laxity starts")
    };
    let output = from_input(&["plan", "-"], LIGHT);
    assert_code(&output, 0);
    assert_says(&stdout(&output), &["standard input (CSV, 2 tasks)"]);
    let output = from_input(
        &["plan", "-"],
        r#"{ "tasks": { "a": { "run": 1, "sleep": 9 } } }"#,
    );
    assert_code(&output, 0);
    assert_says(&stdout(&output), &["standard input (rt-app, 1 task)"]);
    let output = from_input(&["plan", "--on", "twin", "-"], &scenario);
    assert_code(&output, 0);
    let output = from_input(&["run", "--on", "twin", "--json=-", "-"], &scenario);
    assert_code(&output, 0);
    assert_eq!(json(&output.stdout)["file"], "standard input");
    let output = from_input(&["run", "-"], "title = 1");
    assert_code(&output, 64);
    assert_says(&stderr(&output), &["standard input:1:9"]);
    let output = from_input(
        &["lab", "prediction", "--on", "twin", "--machine=-"],
        "x = 1",
    );
    assert_code(&output, 64);
    assert_says(&stderr(&output), &["standard input"]);
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let output = Bench::new().run(&["plan", "/dev/zero"]);
    assert_code(&output, 64);
    assert_says(&stderr(&output), &["/dev/zero: larger than 4 MiB"]);
}

/// Everything here took half a minute and more.
#[test]
fn a_plan_ends_soon_whatever_it_is_given() {
    let bench = Bench::new();
    let task = |name: &str, run: u64, period: u64| {
        format!(
            r#""{name}": {{ "policy": "SCHED_FIFO", "run": {run}, "timer": {{ "ref": "{name}", "period": {period} }} }}"#
        )
    };
    let [a, b, c] = [
        task("a", 1, 3),
        task("b", 1_000_000, 3_000_001),
        task("c", 333_332_000, 1_000_000_007),
    ];
    bench.write(
        "apart.json",
        &format!(r#"{{ "tasks": {{ {a}, {b}, {c} }} }}"#),
    );
    let columns: Vec<String> = (0..20_000).map(|column| format!("col{column}")).collect();
    bench.write("wide.csv", &columns.join(","));
    let lines = "a,x,y\n".repeat(20_000);
    bench.write("wrong.csv", &format!("name,cost_us,period_us\n{lines}"));
    for (file, words) in [
        ("apart.json", "too long to look at"),
        ("wide.csv", "20000 columns"),
        ("wrong.csv", "errors"),
    ] {
        let begun = std::time::Instant::now();
        let output = bench.run(&["plan", file]);
        assert!(
            begun.elapsed() < std::time::Duration::from_secs(5),
            "{file}"
        );
        let said = stdout(&output) + &stderr(&output);
        assert!(said.len() < 60_000, "{file}: {}", said.len());
        assert_says(&said, &[words]);
    }
}

#[test]
fn columns_by_other_names_are_understood_as_what_was_meant() {
    let bench = Bench::new();
    bench.write(
        "set.csv",
        "name,C,T,D,WCET_ms,perid_us,colour\na,1,10,10,1,1,1\n",
    );
    let output = bench.run(&["plan", "set.csv"]);
    assert_code(&output, 64);
    let meant = [
        "cost_us",
        "period_us",
        "deadline_us",
        "cost_ms",
        "period_us",
    ];
    let meant = meant.map(|name| format!("did you mean `{name}`?"));
    let said = stderr(&output);
    assert_says(&said, &meant.each_ref().map(String::as_str));
    assert_eq!(said.matches("did you mean").count(), 5);
}

/// `--json` without a file is standard output, so a file is named behind `=`, and whoever does not know that is told.
#[test]
fn a_file_for_json_behind_a_space_is_shown_where_it_belongs() {
    let bench = Bench::new();
    bench.write("light.csv", LIGHT);
    let cases: [(&[&str], u8); 5] = [
        (&["plan", "--json", "out.json", "light.csv"], 64),
        (&["plan", "light.csv", "--json", "out.json"], 64),
        (&["run", "--json", "out.json", "s.toml"], 64),
        (&["exec", "--json", "out.json", "--", "true", "--json"], 125),
        (&["lab", "modem", "--json", "out.json"], 64),
    ];
    for (arguments, code) in cases {
        let output = bench.run(arguments);
        assert_code(&output, code.into());
        let words = ["'out.json'", "behind `=`: '--json=out.json'"];
        assert_says(&stderr(&output), &words);
        assert!(!stderr(&output).contains("light.csv"), "{arguments:?}");
    }
    // Where that would not be right either, it is not said.
    let output = bench.run(&["plan", "--json", "light.csv", "--nonsense"]);
    assert_says(&stderr(&output), &["--nonsense"]);
    assert!(!stderr(&output).contains("behind"), "{}", stderr(&output));
}

#[test]
fn of_a_file_of_another_kind_it_is_said_which_are_read() {
    let bench = Bench::new();
    for (name, text) in [
        ("set.tsv", "name\tperiod\na\t10\n"),
        ("set.xml", "<simulation duration=\"1\"/>\n"),
        ("set.yaml", "tasks:\n  - period: 10\n"),
    ] {
        bench.write(name, text);
        let output = bench.run(&["plan", name]);
        assert_code(&output, 64);
        assert_says(&stderr(&output), &["read as a scenario", ".csv", "rt-app"]);
    }
    bench.write("wrong.toml", "a\n");
    let said = stderr(&bench.run(&["plan", "wrong.toml"]));
    assert!(!said.contains("rt-app"), "{said}");
}
