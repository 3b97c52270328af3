//! What the evidence of a study does not tell is told as that, everywhere.

use laxity_lab::report::{Check, Compared, Figure, Report, Unjudged, Verdict, json, page, text};
use laxity_model::verify::contract::Outcome;
use serde_json::Value as Json;

/// A study of which so many checks were made, and one could not be.
fn left_open(held: &[bool]) -> Report {
    let check = |held: &bool| Check {
        claim: "every burst is granted".into(),
        held: *held,
        seen: "80 bursts".into(),
    };
    Report {
        experiment: "constraints",
        checks: held.iter().map(check).collect(),
        not_judged: vec![Unjudged {
            claim: "no sample is lost".into(),
            seen: "none of 400".into(),
            why: "too much was disturbed".into(),
        }],
        ..Report::default()
    }
}

#[test]
fn what_could_not_be_judged_leaves_the_whole_open_unless_something_failed() {
    use Outcome::{Inconclusive, Violated};
    for (held, outcome, banner, last) in [
        (
            &[true][..],
            Inconclusive,
            "open",
            "verdict: inconclusive, 1 of 2 checks held, one could not be judged\n",
        ),
        (
            &[],
            Inconclusive,
            "open",
            "verdict: inconclusive, 0 of 1 checks held, one could not be judged\n",
        ),
        (
            &[true, false],
            Violated,
            "bad",
            "verdict: 1 of 2 checks did not hold, one could not be judged\n",
        ),
    ] {
        let report = left_open(held);
        assert_eq!(report.outcome(), outcome);
        let shown = text::render(&report, 80);
        assert!(shown.ends_with(last), "{shown}");
        let told = "  not judged  no sample is lost: none of 400 (too much was disturbed)\n";
        assert!(shown.contains(told), "{shown}");
        let page = page::render(&report).expect("a page");
        let banner = format!("<div class=\"banner {banner}\">");
        assert!(page.contains(&banner), "{page}");
        assert!(page.contains("too much was disturbed"), "{page}");
        let json: Json = serde_json::from_slice(&json::render(&report)).expect("JSON");
        let [told] = &json["not_judged"].as_array().expect("a list")[..] else {
            panic!("one: {json}");
        };
        assert_eq!(told["claim"], "no sample is lost");
        assert_eq!(told["seen"], "none of 400");
        assert_eq!(told["why"], "too much was disturbed");
    }
}

#[test]
fn where_all_was_judged_nothing_is_said_of_it() {
    let report = Report {
        not_judged: Vec::new(),
        ..left_open(&[true])
    };
    assert_eq!(report.outcome(), Outcome::Met);
    let json: Json = serde_json::from_slice(&json::render(&report)).expect("JSON");
    assert_eq!(json.get("not_judged"), None);
    assert!(text::render(&report, 80).ends_with("verdict: every check held (1)\n"));
}

#[test]
fn a_value_that_is_inconclusive_is_in_the_last_line_too() {
    let row = Compared {
        live_verdict: Verdict::Inconclusive("disturbed".into()),
        ..Compared::new("wake-ups")
    };
    let report = Report {
        figures: vec![Figure {
            compared: vec![row],
            ..Figure::default()
        }],
        not_judged: Vec::new(),
        ..left_open(&[true, false])
    };
    let last = "verdict: 1 of 2 checks did not hold, one value is inconclusive\n";
    let shown = text::render(&report, 80);
    assert!(shown.ends_with(last), "{shown}");
}
