//! The experiment whose client and server are processes that the command starts.

mod common;

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

#[test]
fn two_upcalls_lose_nothing_and_every_way_to_be_served_transfers() {
    let Some(_live) = rights::require(&[Right::RealTime, Right::Deadline]) else {
        return;
    };
    let bench = Bench::new();
    let output = bench.run(&[
        "lab",
        "upcalls-udp",
        "--on=linux",
        "--sizes=1",
        "--quiet",
        "--json=udp.json",
    ]);
    // How fast this machine is today is its affair.
    assert!(
        [Some(0), Some(2), Some(5)].contains(&output.status.code()),
        "{}",
        stderr(&output)
    );
    let json: Value = serde_json::from_slice(&bench.read("udp.json")).expect("JSON");
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
