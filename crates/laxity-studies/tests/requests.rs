//! The experiments on what is asked for while it runs: small runs in the twin, and the same report every time.

use laxity_lab::bench::{Experiment, Request};
use laxity_lab::runner::Silent;
use laxity_studies::constraints::Constraints;
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
        .filter(|check| !check.held)
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

#[test]
fn what_is_claimed_of_a_change_is_so_whatever_the_number_of_threads() {
    let report = report_of(&OnHook, 2, &[], 1);
    expect_held(&report);
    assert_eq!(report, report_of(&OnHook, 1, &[], 1));
}
