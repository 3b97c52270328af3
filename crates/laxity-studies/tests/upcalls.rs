//! The upcalls of the 1995 paper in the twin: what is claimed of them is so, and the numbers are those that are committed.

use laxity_lab::bench::{Experiment, Request};
use laxity_lab::report::text;
use laxity_lab::runner::Silent;
use laxity_model::verify::contract::Outcome;
use laxity_studies::upcalls::Upcalls;

#[test]
fn what_is_claimed_of_the_twin_is_so_and_its_numbers_are_those_that_are_committed() {
    let request = Request {
        seed: 1,
        repeats: Some(1),
        ..Request::default()
    };
    let report = Upcalls.perform(&request, &mut Silent);
    let report = report.expect("the twin runs it");
    let claims = report.checks.len();
    assert!(
        claims == 20 && report.outcome() == Outcome::Met,
        "{:#?}",
        report.checks
    );
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    let shown = text::render(&report, 120);
    settings.bind(|| insta::assert_snapshot!("upcalls.twin", shown));
}
