//! What no contract judges, and what the evidence does not tell, is not said to be met, held or failed: by the text, the page and the JSON alike.

use laxity_lab::evidence::results::RunResults;
use laxity_lab::report::page;
use laxity_lab::report::run::{report, table};
use laxity_model::verify::contract::Outcome;
use serde_json::Value;

use crate::common::run;

/// A modem beside spinners in a normal thread, which loses samples, and its control.
const SPINNERS: &str = r#"
[devices.modem]
kind = "soft-modem"
[tasks.spinners]
kind = "spinner"
count = 12
"#;

const NONE: &str = "
[variants.none]
placement = \"absent\"
contracts = []
";

const SOME_LOST: &str = "
[variants.thread-8]
placement = \"thread 8\"
contracts = []
lost = \"some\"
";

const MET: &str = "
[variants.thread-24]
placement = \"thread 24\"
";

/// The text, the page and the JSON.
fn told(results: &RunResults) -> (String, String, Value) {
    let page = page::render(&report(results, Vec::new())).expect("a page");
    let json = serde_json::from_slice(&results.to_json()).expect("JSON");
    (table(results, 80, None), page, json)
}

#[test]
fn where_no_contract_judged_nothing_is_met() {
    let results = run(&format!("{SPINNERS}{NONE}{SOME_LOST}"));
    let (text, page, json) = told(&results);
    for verdict in [
        &json["verdict"],
        &json["variants"][0]["verdict"],
        &json["variants"][1]["verdict"],
    ] {
        assert_eq!(verdict["result"], Value::Null, "{verdict}");
    }
    assert_eq!(json["exit_code"], 0);
    let last = "verdict: as expected (no contract judged anything), exit code 0\n";
    assert!(text.ends_with(last), "{text}");
    assert!(!text.contains("met") && !page.contains("met ("), "{text}");
    let read: RunResults = serde_json::from_value(json).expect("the file is read");
    assert_eq!(read, results);
}

#[test]
fn beside_what_is_judged_the_whole_is_met_and_the_rest_is_not() {
    let results = run(&format!("{SPINNERS}{MET}{SOME_LOST}"));
    let (text, _, json) = told(&results);
    assert_eq!(json["variants"][0]["verdict"]["result"], "met");
    assert_eq!(json["variants"][1]["verdict"]["result"], Value::Null);
    assert_eq!(json["verdict"]["result"], "met");
    assert!(text.contains("verdict: met (every variant"), "{text}");
}

/// One name is one number: what the page calls lost is what the JSON calls lost, and its parts add up.
#[test]
fn the_page_counts_lost_samples_as_the_json_does() {
    let results = run(&format!("{SPINNERS}{SOME_LOST}"));
    let (_, page, json) = told(&results);
    let variant = &json["variants"][0];
    for (fact, key) in [
        ("samples lost", "samples_lost"),
        ("of them overwritten", "samples_overwritten"),
        ("of them underrun", "samples_underrun"),
        ("of them undisturbed, as judged", "samples_lost_undisturbed"),
    ] {
        let digits: String = {
            let row = page.split_once(&format!(r#"<th scope="row" class="w">{fact}</th>"#));
            let (cell, _) = row.expect(fact).1.split_once("</td>").expect("a cell");
            let (_, cell) = cell.rsplit_once('>').unwrap_or_default();
            cell.chars().filter(char::is_ascii_digit).collect()
        };
        assert_eq!(digits, variant[key].to_string(), "{fact}");
    }
}

/// The same words as the code's rule: the share is of wake-ups or of time, and the witness is coarser beside deadlines.
#[test]
fn the_page_says_what_disturbed_means() {
    let (_, page, _) = told(&run(&format!("{SPINNERS}{NONE}")));
    let words = page.replace('\u{a0}', " ");
    for said in ["of the wake-ups", "whichever is more", "more than 1 ms"] {
        assert!(words.contains(said), "{said}");
    }
}

/// The control expects nothing: it is no check.
#[test]
fn a_check_says_what_was_expected_and_what_expects_nothing_is_none() {
    let results = run(&format!("{SPINNERS}{NONE}{SOME_LOST}{MET}"));
    let (_, page, json) = told(&results);
    let checks = report(&results, Vec::new()).checks;
    let claims: Vec<_> = checks.iter().map(|check| check.claim.as_str()).collect();
    let all = "thread-24: pc99 met, no sample lost, transfer complete";
    assert_eq!(claims, ["thread-8: samples lost", all]);
    assert!(page.contains(">every check held (2)<"), "{page}");
    let besides = &json["variants"][2]["expected_besides"];
    assert_eq!(besides[0], "no sample lost", "{json}");
}

#[test]
fn what_the_evidence_does_not_tell_is_no_failed_check() {
    let mut results = run(&format!("{SPINNERS}{MET}{SOME_LOST}"));
    let open = laxity_lab::evidence::results::Surprise {
        what: "the transfer was to complete: the machine stood still".into(),
        is_certain: false,
    };
    results.variants[0].summarise(vec![open.clone()]);
    let (_, page, _) = told(&results);
    let banner = r#"<div class="banner open">1 of 2 checks is open<"#;
    assert!(page.contains(banner), "{page}");
    assert!(page.contains(r#"<b class="open">open</b>"#), "{page}");
    assert!(!page.contains("not held"), "{page}");
    let certain = laxity_lab::evidence::results::Surprise {
        is_certain: true,
        ..open
    };
    results.variants[1].summarise(vec![certain]);
    let (_, page, _) = told(&results);
    let banner = r#"<div class="banner bad">1 of 2 checks did not hold, 1 is open<"#;
    assert!(page.contains(banner), "{page}");
}

/// A call that begins connected has dialled before the run, and nothing is asked of that. Of one that is to dial, and does not get so far, it is.
#[test]
fn a_call_is_judged_in_the_phases_that_its_run_can_have() {
    let judged = |variant: &str| run(&format!("{SPINNERS}\n[variants.modem]\n{variant}"));
    let connected = judged("placement = \"thread 28\"\nstart = \"connected\"");
    let told = &connected.variants[0].verdict;
    assert_eq!(connected.exit_code, 0, "{told:?}");
    let starved = judged("placement = \"thread 8\"\nlost = \"some\"\ntransfer = \"fails\"");
    let told = &starved.variants[0].verdict;
    assert_eq!(told.result, Some(Outcome::Inconclusive), "{told:?}");
    for phase in ["training", "connected"] {
        let open = format!("interrupt period in phase {phase}: nothing was observed");
        let is_told = told.reasons.iter().any(|reason| reason.contains(&open));
        assert!(is_told, "{phase}: {told:?}");
    }
}
