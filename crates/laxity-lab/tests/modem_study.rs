//! The soft-modem study in the twin: the same numbers on every run and any number of threads, and those that are committed.
//!
//! `LAXITY_GOLDEN` says which numbers are compared with the committed ones: those of the figures that take no time (unless it is set), `reduced`: of all
//! figures, and of tables with one attempt a row; `full`: with ten. `LAXITY_ACCEPT` writes them instead; a difference is then for the reader of the
//! commit to judge. `cargo xtask golden` sets both.

use std::collections::BTreeMap;
use std::path::PathBuf;

use laxity_lab::lab::modem::STUDY;
use laxity_lab::lab::sheet::{Sheet, Verdict, json};
use laxity_lab::lab::study::Request;
use laxity_lab::runner::Silent;
use serde_json::Value;

/// Drawn from a run or two each.
const QUICK: [&str; 13] = [
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
];

fn study(figures: &[&str], threads: usize, repeats: Option<u32>) -> Sheet {
    let request = Request {
        figures: figures.iter().map(ToString::to_string).collect(),
        live: false,
        threads,
        seed: 1,
        repeats,
        machine: None,
    };
    (STUDY.run)(&request, &mut Silent).expect("the twin runs everywhere")
}

/// What is committed of a sheet: everything but the drawings and the words around them.
fn numbers(sheet: &Sheet) -> BTreeMap<String, Value> {
    let parsed: Value = serde_json::from_slice(&json::render(sheet)).expect("it is JSON");
    let figures = parsed["figures"].as_array().cloned().unwrap_or_default();
    let kept = figures.into_iter().map(|figure| {
        let kept = ["compared", "tables"].map(|part| (part.to_string(), figure[part].clone()));
        let key = figure["key"].as_str().unwrap_or_default().to_owned();
        (key, Value::Object(kept.into_iter().collect()))
    });
    let mut numbers: BTreeMap<String, Value> = kept.collect();
    numbers.insert("checks".into(), parsed["checks"].clone());
    numbers
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
    let text = std::fs::read_to_string(&path).unwrap();
    let committed: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
    for (key, seen) in &seen {
        let committed = committed.get(key);
        assert!(
            committed == Some(seen),
            "{key} is not what {} has; `cargo xtask golden --accept` writes it anew. Seen:\n{seen:#}\nCommitted:\n{committed:#?}",
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
    use laxity_lab::lab::sheet::Origin;
    let sheet = study(&QUICK, 0, Some(1));
    let rows = sheet.figures.iter().flat_map(|figure| &figure.compared);
    let mut chosen = 0;
    for row in rows {
        let origin = row.twin.as_ref().map(|cell| cell.origin);
        if matches!(origin, Some(Origin::Charged | Origin::Calibrated)) {
            chosen += 1;
            let agrees = matches!(row.verdict, Verdict::Agrees(_));
            assert!(!agrees, "{}: {:?}", row.quantity, row.verdict);
        }
    }
    assert!(chosen >= 10, "{chosen} rows of what was put in");
    assert!(sheet.holds(), "{:?}", sheet.checks);
}

#[test]
fn only_what_is_asked_for_is_drawn() {
    let sheet = study(&["figure-9", "figure-7"], 0, Some(1));
    let keys: Vec<&str> = sheet.figures.iter().map(|f| f.key.as_str()).collect();
    assert_eq!(keys, ["figure-7", "figure-9"], "in the order of the study");
    let known: Vec<&str> = STUDY.figures.iter().map(|(key, _)| *key).collect();
    assert!(keys.iter().all(|key| known.contains(key)));
}
