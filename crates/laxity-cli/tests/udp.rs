//! The experiment whose client and server are processes that the command starts.

mod common;

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use common::{Bench, stderr};
use laxity::doctor::rights::{self, Right};
use serde_json::Value;

/// What is sent and received in a row.
fn counts(row: &Value) -> [u64; 3] {
    [3, 4, 5].map(|column| {
        let count = &row[column]["count"];
        count.as_u64().unwrap_or_else(|| panic!("{row}"))
    })
}

/// The experiment here, of the longest messages only.
fn experiment(bench: &Bench, figures: &[&str]) -> Command {
    let mut command = bench.command();
    command.args(["lab", "upcalls-udp", "--on=linux", "--sizes=1", "--quiet"]);
    command.arg("--json=udp.json").args(figures);
    command
}

#[test]
fn two_upcalls_lose_nothing_and_every_way_to_be_served_transfers() {
    let Some(_live) = rights::require(&[Right::RealTime, Right::Deadline]) else {
        return;
    };
    let bench = Bench::new();
    // Whether this machine has GStreamer makes no difference: it is not found here, and the shell of what runs beside is.
    let shell = Path::new("/bin/sh");
    symlink(shell, bench.path("sh")).expect("a link to the shell");
    let output = experiment(&bench, &[]).env("PATH", bench.path("")).output();
    let output = output.expect("laxity starts");
    // How fast this machine is today is its affair.
    assert!(
        [Some(0), Some(2), Some(5)].contains(&output.status.code()),
        "{}",
        stderr(&output)
    );
    let json: Value = serde_json::from_slice(&bench.read("udp.json")).expect("JSON");
    let said = json.to_string();
    assert!(said.contains("has no row: gst-inspect-1.0: "), "{said}");
    let figures = json["figures"].as_array().expect("figures");
    let rows: Vec<&Value> = figures
        .iter()
        .flat_map(|figure| figure["tables"][0]["rows"].as_array().expect("rows"))
        .collect();
    assert_eq!(rows.len(), 14, "{json}");
    for row in rows {
        let [sent, received, dropped] = counts(row);
        assert!(received > 0, "{row}");
        assert_eq!(sent, received + dropped, "{row}");
        let paced = !row[0].to_string().contains("plain");
        // A client that is paced sends 30 batches at most: none beyond its grid.
        assert!(!paced || sent <= 30 * 20, "{row}");
        if row[0].to_string().contains("both upcalls") {
            assert_eq!(dropped, 0, "{row}");
        }
    }
}

#[test]
fn threadshare_has_a_row_where_gstreamer_has_its_elements() {
    let mut inspect = Command::new("gst-inspect-1.0");
    let is_here = |output: Output| output.status.success();
    if !inspect.arg("ts-udpsrc").output().is_ok_and(is_here) {
        return rights::skip("GStreamer has no element ts-udpsrc here");
    }
    let Some(_live) = rights::require(&[Right::RealTime, Right::Deadline]) else {
        return;
    };
    let bench = Bench::new();
    let output = experiment(&bench, &["rivals"]).output();
    let output = output.expect("laxity starts");
    assert!(bench.path("udp.json").exists(), "{}", stderr(&output));
    let json: Value = serde_json::from_slice(&bench.read("udp.json")).expect("JSON");
    let rows = json["figures"][0]["tables"][0]["rows"].as_array();
    let is_its = |row: &&Value| row[0].to_string().contains("threadshare");
    let rows: Vec<&Value> = rows.expect("rows").iter().filter(is_its).collect();
    assert_eq!(rows.len(), 2, "{json}");
    for row in rows {
        let [sent, received, dropped] = counts(row);
        assert!(received > 0 && sent <= 30 * 20, "{row}");
        assert_eq!(sent, received + dropped, "{row}");
    }
}

#[test]
fn a_process_that_is_told_nothing_sensible_says_so() {
    let bench = Bench::new();
    let output = bench.run(&["peer", "upcalls-udp", "{}"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("missing field"),
        "{}",
        stderr(&output)
    );
}
