//! The soft-modem study in the twin: the same numbers on every run and any number of threads, and those that are committed.
//!
//! `LAXITY_GOLDEN` says which numbers are compared with the committed ones: those of the figures that take no time (unless it is set), `reduced`: of all
//! figures, and of tables with one attempt a row; `full`: with ten. `LAXITY_ACCEPT` writes them instead; a difference is then for the reader of the
//! commit to judge. `cargo xtask golden` sets both.

use std::collections::BTreeMap;
use std::path::PathBuf;

use laxity_lab::bench::{Experiment, Request};
use laxity_lab::report::{Report, Verdict, json, svg};
use laxity_lab::runner::Silent;
use laxity_model::verify::contract::Outcome;
use laxity_studies::modem::Modem;
use serde_json::Value;

/// Drawn from a run or two each.
const QUICK: [&str; 14] = [
    "figure-1",
    "figure-2",
    "figure-3",
    "figure-4",
    "figure-5",
    "figure-6",
    "figure-7",
    "figure-8",
    "figure-9",
    "figure-10",
    "figure-14",
    "figure-15",
    "stress",
    "constants",
];

fn study(figures: &[&str], threads: usize, repeats: Option<u32>) -> Report {
    let request = Request {
        figures: figures.iter().map(ToString::to_string).collect(),
        threads,
        seed: 1,
        repeats,
        ..Request::default()
    };
    Modem
        .perform(&request, &mut Silent)
        .expect("the twin runs everywhere")
}

/// What is committed of a report: what the study prints, the twin's values with what was said of them, tables with their headings, and what was
/// claimed. No drawings, no words around them.
fn numbers(report: &Report) -> BTreeMap<String, Value> {
    let parsed: Value = serde_json::from_slice(&json::render(report)).expect("it is JSON");
    let each = |part: &Value| part.as_array().cloned().unwrap_or_default();
    let figures = each(&parsed["figures"]).into_iter().map(|figure| {
        let key = figure["key"].as_str().unwrap_or_default().to_owned();
        // The reasons of constants are words.
        let is_kept = |column: usize| key != "constants" || column != 3;
        let compared: Vec<Value> = each(&figure["compared"]).iter().map(row).collect();
        let tables = each(&figure["tables"]);
        let lines = tables.iter().flat_map(|table| {
            let rows = each(&table["rows"]);
            [table["columns"].clone()].into_iter().chain(rows)
        });
        let rows: Vec<Value> = lines.map(|cells| line(&cells, is_kept).into()).collect();
        let kept = serde_json::json!({ "compared": compared, "tables": rows });
        (key, kept)
    });
    let mut numbers: BTreeMap<String, Value> = figures.collect();
    numbers.insert("checks".into(), parsed["checks"].clone());
    numbers
}

/// A comparison.
fn row(compared: &Value) -> Value {
    let [quantity, paper, twin] = ["quantity", "paper", "twin"].map(|key| &compared[key]);
    let verdict = &compared["verdict"]["result"];
    serde_json::json!({ "quantity": quantity, "paper": paper, "twin": twin, "verdict": verdict })
}

/// The values of a table's row, or its headings.
fn line(cells: &Value, is_kept: impl Fn(usize) -> bool) -> String {
    let cells = cells.as_array().map(Vec::as_slice).unwrap_or_default();
    let value = |(_, cell): (usize, &Value)| {
        if let Value::String(heading) = cell {
            return heading.clone();
        }
        let fields = cell.as_object();
        let value = fields.and_then(|fields| fields.iter().find(|(name, _)| *name != "origin"));
        match value {
            Some((_, Value::String(text))) => text.clone(),
            Some((_, value)) => value.to_string(),
            None => "-".to_owned(),
        }
    };
    let kept = cells.iter().enumerate().filter(|(n, _)| is_kept(*n));
    let values: Vec<String> = kept.map(value).collect();
    values.join(" | ")
}

fn golden(name: &str) -> PathBuf {
    let file = format!("tests/golden/modem-{name}.json");
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file)
}

#[test]
fn the_numbers_are_those_that_are_committed() {
    let scale = std::env::var("LAXITY_GOLDEN").ok();
    let (name, seen) = match scale.as_deref() {
        None => ("reduced", study(&QUICK, 0, Some(1))),
        Some("reduced") => ("reduced", study(&[], 0, Some(1))),
        Some("full") => ("full", study(&[], 0, None)),
        Some(other) => panic!("LAXITY_GOLDEN is `reduced` or `full`, not `{other}`"),
    };
    let mut seen = numbers(&seen);
    if scale.is_none() {
        // Checks are of all runs.
        seen.remove("checks");
    }
    let path = golden(name);
    if std::env::var_os("LAXITY_ACCEPT").is_some() {
        let mut text = serde_json::to_string_pretty(&seen).expect("it was JSON");
        text.push('\n');
        std::fs::write(&path, text).unwrap();
        return;
    }
    let option = if name == "full" { " --full" } else { "" };
    let accept = format!("`cargo xtask golden{option} --accept` writes it anew");
    let text = std::fs::read_to_string(&path);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}; {accept}", path.display()));
    let committed = serde_json::from_str::<BTreeMap<String, Value>>(&text);
    let committed =
        committed.unwrap_or_else(|error| panic!("{}: {error}; {accept}", path.display()));
    for (key, seen) in &seen {
        let committed = committed.get(key);
        assert!(
            committed == Some(seen),
            "{key} is not what {} has; {accept}. Seen:\n{seen:#}\nCommitted:\n{committed:#?}",
            path.display()
        );
    }
    if scale.is_some() {
        let gone: Vec<_> = committed
            .keys()
            .filter(|key| !seen.contains_key(*key))
            .collect();
        assert!(gone.is_empty(), "committed and not there: {gone:?}");
    }
}

#[test]
fn threads_make_no_difference_to_any_byte() {
    // Several runs of unequal length, so that two threads end them in another order than one.
    let figures = ["figure-1", "figure-7", "figure-10", "figure-12", "stress"];
    let one = study(&figures, 1, Some(1));
    let two = study(&figures, 2, Some(1));
    assert_eq!(json::render(&one), json::render(&two));
}

#[test]
fn what_is_put_in_is_never_said_to_agree() {
    use laxity_lab::report::Origin;
    let figures = [&QUICK[..], &["figure-12"]].concat();
    let report = study(&figures, 0, Some(1));
    let rows = report.figures.iter();
    let rows = rows.flat_map(|figure| figure.compared.iter().map(move |row| (&figure.key, row)));
    let mut chosen = 0;
    for (figure, row) in rows {
        let origin = row.twin.as_ref().map(|cell| cell.origin);
        chosen += u32::from(matches!(origin, Some(Origin::Charged | Origin::Calibrated)));
        // Nor is what comes out of these runs, of which all that the study tells rests on what was put in.
        let agrees = matches!(row.verdict, Verdict::Agrees(_));
        assert!(!agrees, "{figure}, {}: {:?}", row.quantity, row.verdict);
    }
    assert!(chosen >= 10, "{chosen} rows of what was put in");
    assert!(report.outcome() == Outcome::Met, "{:?}", report.checks);
}

/// Of the drawings that the page shows those that take no time; figure 17 with all its transfers only with `LAXITY_GOLDEN`.
#[test]
fn the_drawings_of_the_page_are_current() {
    let mut figures = vec!["figure-1", "figure-11", "figure-14", "figure-16"];
    if std::env::var_os("LAXITY_GOLDEN").is_some() {
        figures.push("figure-17");
    }
    let drawings = svg::files(&study(&figures, 0, None));
    assert_eq!(drawings.len(), figures.len());
    for (name, drawing) in drawings {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../../docs")
            .join(&name);
        let committed = std::fs::read_to_string(&path);
        let committed = committed.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(
            committed == drawing,
            "docs/{name} is not what the command of docs/soft-modem.md draws"
        );
    }
}

#[test]
fn only_what_is_asked_for_is_drawn() {
    let report = study(&["figure-9", "figure-7"], 0, Some(1));
    let keys: Vec<&str> = report.figures.iter().map(|f| f.key.as_str()).collect();
    assert_eq!(keys, ["figure-7", "figure-9"], "in the order of the study");
    let known: Vec<&str> = Modem
        .text()
        .figures
        .iter()
        .map(|f| f.key.as_str())
        .collect();
    assert!(keys.iter().all(|key| known.contains(key)));
}
