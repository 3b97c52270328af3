//! The numbers that `docs/soft-modem.md` prints of the twin are those that are committed (`cargo xtask golden --full`).

use laxity_lab::bench::Experiment;
use serde_json::Value;

const PAGE: &str = include_str!("../../../docs/soft-modem.md");
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/modem-full.json");

fn golden() -> Value {
    let text = std::fs::read_to_string(GOLDEN);
    let text = text.unwrap_or_else(|error| {
        panic!("{GOLDEN}: {error}; `cargo xtask golden --full --accept` writes it")
    });
    serde_json::from_str(&text).expect("it is JSON")
}

/// The comparisons of a figure or table.
fn rows(golden: &Value, key: &str) -> Vec<Value> {
    let rows = golden[key]["compared"].as_array();
    rows.cloned().unwrap_or_else(|| panic!("{key} is compared"))
}

fn quantity(row: &Value) -> &str {
    row["quantity"].as_str().unwrap_or_default()
}

fn verdict(row: &Value) -> &str {
    row["verdict"].as_str().unwrap_or_default()
}

/// Milliseconds with three decimals.
fn milliseconds(row: &Value) -> String {
    let ns = row["twin"]["span_ns"].as_u64().expect("a span");
    format!("{:.3} ms", ns as f64 / 1e6)
}

/// Mean and deviation as the page has them, or that none succeeded.
fn attempts(row: &Value) -> String {
    let twin = &row["twin"]["attempts"];
    let [made, succeeded] = ["made", "succeeded"].map(|name| twin[name].as_u64().expect("a count"));
    if succeeded == 0 {
        return format!("0 of {made}");
    }
    let seconds = |name: &str| twin[name].as_u64().expect("a span") as f64 / 1e9;
    let (mean, deviation) = (seconds("mean_ns"), seconds("deviation_ns"));
    let decimals = if mean < 100.0 { 2 } else { 1 };
    format!("{mean:.decimals$} ± {deviation:.decimals$} s, {succeeded} of {made}")
}

/// The line of the page that begins so.
fn line(begins: &str) -> &'static str {
    let mut lines = PAGE.lines().filter(|line| line.starts_with(begins));
    let found = lines
        .next()
        .unwrap_or_else(|| panic!("the page has no {begins}"));
    assert_eq!(lines.next(), None, "{begins} stands there twice");
    found
}

#[test]
fn the_largest_gaps_are_those_that_are_committed() {
    let golden = golden();
    let of = [
        ("figure-10", "nothing (figure 10)"),
        ("figure-11", "INT (figure 11)"),
        ("figure-12", "DPC (figure 12)"),
        ("figure-13", "THR 24 (figure 13)"),
        ("figure-16", "RES 2/8 (figure 16)"),
    ];
    for (key, name) in of {
        let rows = rows(&golden, key);
        let find = |words: &str| {
            let mut found = rows.iter().filter(|row| quantity(row).starts_with(words));
            found.next()
        };
        let cells = |row: &Value| format!("{}, {}", milliseconds(row), verdict(row));
        let largest = find("largest gap").expect("a largest gap");
        let median = find("largest gap, median").map_or("-".into(), cells);
        let ends = format!("| {} | {median} |", cells(largest));
        let line = line(&format!("| {name} |"));
        assert!(line.ends_with(&ends), "{line}\ncommitted: {ends}");
    }
}

#[test]
fn the_transfers_of_table_3_are_those_that_are_committed() {
    let mut rows = rows(&golden(), "table-3");
    rows.retain(|row| row["twin"]["attempts"].is_object());
    assert_eq!(rows.len(), 12);
    for row in &rows {
        let name = quantity(row).trim_start_matches("RES ");
        let ends = format!("| {} | {} |", attempts(row), verdict(row));
        let line = line(&format!("| {name} |"));
        assert!(line.ends_with(&ends), "{line}\ncommitted: {ends}");
    }
}

#[test]
fn the_predictions_of_figure_17_are_those_that_are_committed() {
    let mut rows = rows(&golden(), "figure-17");
    rows.retain(|row| quantity(row).starts_with("predicted by"));
    let by = [
        "the study's lines",
        "lines at the calibrated cost",
        "the exact test",
    ];
    assert_eq!(rows.len(), by.len());
    for (by, row) in by.into_iter().zip(&rows) {
        let right = row["twin"]["text"].as_str().expect("words");
        let line = line(&format!("| {by}"));
        assert!(
            line.ends_with(&format!("| {right} |")),
            "{line}\ncommitted: {right}"
        );
    }
}

#[test]
fn the_page_counts_the_verdicts_as_they_are_committed() {
    let golden = golden();
    let figures = golden.as_object().expect("figures by key");
    let keys = figures
        .keys()
        .filter(|key| *key != "checks" && *key != "constants");
    let all: Vec<Value> = keys.flat_map(|key| rows(&golden, key)).collect();
    let count = |word: &str| all.iter().filter(|row| verdict(row) == word).count();
    let [agree, consistent, disagree] = ["agrees", "consistent", "disagrees"].map(count);
    assert_eq!(agree, 0, "the page says that none does");
    let words = format!("none agrees, {consistent} are only consistent, {disagree} disagree");
    assert!(PAGE.contains(&words), "committed: {words}");
}

/// What agrees must be able to come out otherwise, by more than a draw among sums of what was put in. Of table 3 and figure 17 all that comes true is decided
/// by what was put in, as the tests of the verdicts show.
#[test]
fn what_is_near_by_a_draw_is_said_to_be_no_more_than_consistent() {
    let of_figure = rows(&golden(), "figure-12");
    let mut largest = of_figure.iter();
    let largest = largest.find(|row| quantity(row) == "largest gap, largest of all calls");
    let gap = milliseconds(largest.expect("it is compared"));
    let words = format!(
        "Figure 12's largest gap of ten calls, {gap}, is within 15 % of the study's, and only consistent:"
    );
    assert!(PAGE.contains(&words), "committed: {words}");
}

/// The fact stands once, in the study's words.
#[test]
fn both_pages_say_with_how_many_seeds_7_of_20_is_at_full_speed() {
    let words = laxity_studies::modem::Modem.text().say("by-seed", &[]);
    for page in [PAGE, include_str!("../../../CAVEATS.md")] {
        assert!(page.contains(&words), "{words}");
    }
}

#[test]
fn something_is_claimed_of_every_table_and_of_figure_17_and_was_so() {
    let golden = golden();
    let checks = golden["checks"].as_array().expect("a list");
    for part in ["table 1", "table 2", "table 3", "figure 17"] {
        let mut of_part = checks.iter().filter(|check| {
            let claim = check["claim"].as_str().unwrap_or_default();
            claim.starts_with(&format!("twin, {part}:"))
        });
        assert!(of_part.next().is_some(), "nothing is claimed of {part}");
    }
    let failed: Vec<&Value> = checks
        .iter()
        .filter(|check| check["held"] != true)
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
}
