use laxity_lab::bench::{Experiment, judge};
use laxity_lab::runner::Silent;
use laxity_model::channels::handler::Packet;
use laxity_model::nif::urgency::Due;
use laxity_model::{Instant, Span};

use super::tally::Of;
use super::*;

fn request(seed: u64) -> Request {
    Request {
        seed,
        threads: 1,
        figures: vec!["figure-6".into()],
        options: [("thousands".to_owned(), 2)].into(),
        ..Request::default()
    }
}

#[test]
fn the_same_seed_gives_the_same_report_and_another_one_another() {
    let report = |seed| {
        let report = Channels.perform(&request(seed), &mut Silent);
        report.expect("the twin runs it")
    };
    assert_eq!(report(1), report(1));
    assert_ne!(report(1), report(2));
}

#[test]
fn nothing_is_measured_and_that_is_said() {
    let live = Request {
        live: true,
        ..request(1)
    };
    let error = Channels.perform(&live, &mut Silent);
    let error = error.expect_err("it cannot run here").to_string();
    assert!(error.contains("is measured on this machine yet"), "{error}");
}

/// A run of a second in which each channel had this.
fn seen(of: Of) -> Tally {
    let mut tally = Tally::new(Counted { packets: 2, cut: 0 });
    let packet = Packet {
        message: 0,
        part: 0,
        bytes: 0,
        due: Due {
            logical: Instant::ZERO,
            deadline: Instant::MAX,
            exceeds: false,
        },
        is_last: true,
    };
    for at in [Instant::ZERO, Instant::ZERO + Span::from_secs(1)] {
        tally.sent(0, packet, at);
    }
    tally.of = [of; tally::SENDERS];
    tally
}

/// As if nobody had what he states, and nothing of figure 7 did harm.
#[test]
fn what_is_claimed_can_fail() {
    let request = Request::default();
    let cases = cases(&request).expect("they are");
    let trials = cases.into_iter().enumerate().map(|(number, case)| {
        let harm = Of {
            offered: 0,
            sent: 40_960_000 / (number as u64 + 1),
            messages: 1,
            laxity_ns: number as i128 * 10_000_000,
            least_ns: Some(-1),
            missed: 1,
            dropped: 10_000,
        };
        let none = Of {
            missed: 0,
            dropped: 0,
            ..harm
        };
        let of = if case.figure.starts_with("figure-7") {
            none
        } else {
            harm
        };
        (case, seen(of))
    });
    let made = Made {
        twin: trials.collect(),
        ..Made::nothing(&request)
    };
    let report = judge(&Channels, &made).expect("it is judged");
    assert_eq!(report.checks.len(), 17);
    assert!(
        report.checks.iter().all(|check| check.held == Some(false)),
        "{:#?}",
        report.checks
    );
}
