//! The channels of the 1996 paper in the twin: what is claimed of them is so, from several seeds, and the numbers are those that are committed.

use laxity_lab::bench::{Experiment, Request};
use laxity_lab::report::{Report, text};
use laxity_lab::runner::Silent;
use laxity_model::verify::contract::Outcome;
use laxity_studies::channels::Channels;

fn report(seed: u64, thousands: u64) -> Report {
    let request = Request {
        seed,
        options: [("thousands".to_owned(), thousands)].into(),
        ..Request::default()
    };
    let report = Channels.perform(&request, &mut Silent);
    let report = report.expect("the twin runs it");
    assert_eq!(report.checks.len(), 17);
    assert!(
        report.outcome() == Outcome::Met,
        "seed {seed}: {:#?}",
        report.checks
    );
    report
}

#[test]
fn what_is_claimed_is_so_and_its_numbers_are_those_that_are_committed() {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    let shown = text::render(&report(1, 32), 160);
    settings.bind(|| insta::assert_snapshot!("channels.twin", shown));
}

#[test]
fn what_is_claimed_hangs_on_no_seed() {
    for seed in 2..5 {
        report(seed, 16);
    }
}
