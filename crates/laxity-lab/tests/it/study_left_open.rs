//! What the evidence of a study does not tell is told as that, everywhere.

use laxity_lab::report::{Check, Compared, Figure, Report, Verdict, json, page, text};
use laxity_model::verify::contract::Outcome;
use serde_json::Value as Json;

/// A study of which these checks were made.
fn made(held: &[Option<bool>]) -> Report {
    let check = |held: &Option<bool>| Check {
        claim: "every burst is granted".into(),
        held: *held,
        seen: "80 bursts".into(),
    };
    Report {
        experiment: "constraints",
        checks: held.iter().map(check).collect(),
        ..Report::default()
    }
}

#[test]
fn what_could_not_be_judged_leaves_the_whole_open_unless_something_failed() {
    use Outcome::{Inconclusive, Met, Violated};
    let (held, broken) = (Some(true), Some(false));
    for (checks, outcome, banner, last) in [
        (
            &[held, None][..],
            Inconclusive,
            "open",
            "1 of 2 checks is open",
        ),
        (&[None], Inconclusive, "open", "1 of 1 checks is open"),
        (
            &[held, broken, None],
            Violated,
            "bad",
            "1 of 3 checks did not hold, 1 is open",
        ),
        (&[held], Met, "good", "every check held (1)"),
    ] {
        let report = made(checks);
        assert_eq!(report.outcome(), outcome);
        let shown = text::render(&report, 80);
        assert!(shown.ends_with(&format!("verdict: {last}\n")), "{shown}");
        let told = "  open      every burst is granted: 80 bursts\n";
        assert_eq!(shown.contains(told), checks.contains(&None), "{shown}");
        let page = page::render(&report).expect("a page");
        let banner = format!("<div class=\"banner {banner}\">");
        assert!(page.contains(&banner), "{page}");
        let json: Json = serde_json::from_slice(&json::render(&report)).expect("JSON");
        assert_eq!(json["holds"], outcome == Met);
        let last = json["checks"]
            .as_array()
            .expect("a list")
            .last()
            .expect("one");
        assert_eq!(last["held"].as_bool(), checks[checks.len() - 1]);
    }
}

#[test]
fn a_value_that_is_inconclusive_or_disagrees_is_in_the_last_line_and_in_the_banner() {
    let (agrees, disagrees) = (
        Verdict::Agrees("20 %".into()),
        Verdict::Disagrees("18 to 20 %".into()),
    );
    let open = Verdict::Inconclusive("disturbed".into());
    let said = |held: &[Option<bool>], verdict: &Verdict, live_verdict: &Verdict| {
        let row = Compared {
            verdict: verdict.clone(),
            live_verdict: live_verdict.clone(),
            ..Compared::new("wake-ups")
        };
        let report = Report {
            figures: vec![Figure {
                compared: vec![row],
                ..Figure::default()
            }],
            ..made(held)
        };
        let shown = text::render(&report, 80);
        let last = shown.lines().last().unwrap_or_default().to_owned();
        (last, page::render(&report).expect("a page"))
    };
    let (held, failed) = (&[Some(true)][..], &[Some(true), Some(false)][..]);
    let [one, no] = ["every check held (1)", "1 of 2 checks did not hold"];
    let (differs, unjudged) = ("one value disagrees", "one value is inconclusive");
    for (checks, [verdict, live], banner, told) in [
        (held, [&agrees, &agrees], "good", one.to_owned()),
        (
            held,
            [&agrees, &disagrees],
            "open",
            format!("{one}, {differs}"),
        ),
        (held, [&open, &agrees], "open", format!("{one}, {unjudged}")),
        (
            failed,
            [&disagrees, &open],
            "bad",
            format!("{no}, {unjudged}, {differs}"),
        ),
    ] {
        let (last, page) = said(checks, verdict, live);
        assert_eq!(last, format!("verdict: {told}"));
        let banner = format!("<div class=\"banner {banner}\">{told}</div>");
        assert!(page.contains(&banner), "{banner}");
    }
}
