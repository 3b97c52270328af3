//! The experiments on what is asked for while it runs: small runs in the twin, and the same report every time.

use laxity_lab::bench::{Experiment, Request};
use laxity_lab::report::json;
use laxity_lab::runner::Silent;
use laxity_studies::constraints::Constraints;
use laxity_studies::modem::Modem;
use laxity_studies::nif::Nif;
use laxity_studies::on_hook::OnHook;

fn report_of(
    study: &dyn Experiment,
    threads: usize,
    figures: &[&str],
    repeats: u32,
) -> laxity_lab::report::Report {
    let request = Request {
        figures: figures.iter().map(|figure| (*figure).to_owned()).collect(),
        threads,
        seed: 1,
        repeats: Some(repeats),
        ..Request::default()
    };
    study
        .perform(&request, &mut Silent)
        .expect("the twin runs it")
}

fn expect_held(report: &laxity_lab::report::Report) {
    let failed: Vec<String> = report
        .checks
        .iter()
        .filter(|check| check.held != Some(true))
        .map(|check| format!("{}: {}", check.claim, check.seen))
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn what_is_claimed_of_time_constraints_is_so() {
    let report = report_of(&Constraints, 0, &[], 3);
    expect_held(&report);
    let drawn = report.figures.iter().map(|figure| &figure.key);
    assert!(drawn.eq(Constraints.text().figures.iter().map(|figure| &figure.key)));
}

/// In the twin nothing is run for it.
#[test]
fn a_figure_of_this_machine_alone_says_so() {
    let report = report_of(&Nif, 0, &["stacks"], 1);
    let summary = report.summary.join(" ");
    assert!(summary.contains("--on linux"), "{summary}");
}

#[test]
fn a_map_with_holes_says_so_and_claims_nothing_of_what_was_not_tried() {
    let request = Request {
        figures: vec!["figure-17".into()],
        seed: 1,
        repeats: Some(1),
        // Of 56 the first, which is near a line.
        options: [("every".into(), 56)].into(),
        ..Request::default()
    };
    let report = Modem
        .perform(&request, &mut Silent)
        .expect("the twin runs it");
    let holes = "1 of 56: one in 56";
    let told = report.circumstances.iter().any(|(_, value)| value == holes);
    assert!(told, "{:?}", report.circumstances);
    let json = String::from_utf8(json::render(&report)).expect("it is text");
    assert!(json.contains(holes));
    let seen: Vec<&str> = report.checks.iter().map(|check| &*check.seen).collect();
    assert!(
        matches!(&seen[..], [seen] if seen.starts_with("0 of 1 differ; not judged, ")),
        "{seen:?}"
    );
    let [check] = &report.checks[..] else {
        panic!("{:?}", report.checks)
    };
    assert!(
        check.held.is_none() && !check.claim.contains("7/20"),
        "{check:?}"
    );
    assert!(!json.contains("7/20"), "it was not tried");
    let figure = &report.figures[0];
    assert!(
        figure
            .remarks
            .iter()
            .any(|remark| remark.contains("nothing is claimed"))
    );
    let mut predicted = figure
        .compared
        .iter()
        .filter(|row| row.quantity.starts_with("predicted by"));
    assert!(predicted.clone().count() > 0 && predicted.all(|row| row.twin.is_none()));
}

#[test]
fn what_is_claimed_of_a_change_is_so_whatever_the_number_of_threads() {
    let report = report_of(&OnHook, 2, &[], 1);
    expect_held(&report);
    assert_eq!(report, report_of(&OnHook, 1, &[], 1));
}
