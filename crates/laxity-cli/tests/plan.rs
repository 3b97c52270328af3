//! `laxity plan` on task sets, and what it adds to scenarios: exit codes, streams and JSON.

mod common;

use common::{Bench, assert_code, assert_says, shipped, stderr, stdout};
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
        assert_says(&stdout(&output), words);
        assert_eq!(stderr(&output), "", "{arguments:?}");
    }
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
    assert_eq!(stdout(&output), "");
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
    assert_eq!(figure("cost_ns"), 1_840_000);
    assert!(figure("observed_max_ns") <= figure("bound_ns"));
    assert!(figure("bound_ns") < figure("deadline_ns"));
    let device = &reserved.expect("a variant")["devices"][0];
    assert_eq!(device["answer"], "served");
    assert_eq!(device["device"]["block_ns"], 12_500_000);
    assert!(device["margins"]["response_ns"].as_u64() < Some(figure("bound_ns")));
    let spinners = lines
        .iter()
        .find(|line| line["name"] == "spinners")
        .expect("a line");
    assert_says(
        spinners["no_bound"].as_str().expect("a reason"),
        &["never stops"],
    );
}
