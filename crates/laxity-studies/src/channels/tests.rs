use laxity::net::world::{Between, Queues};
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
        (Run::Figure(case), Seen::Figure(Box::new(seen(of))))
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

/// A run of UDP beside others', in which so many of each flow were lost and missed.
fn carried(queues: Queues, [lost, missed]: [u64; 2]) -> (Run, Seen) {
    let case = flagship::Case {
        who: flagship::Who::Udp,
        between: Between::Wire,
        queues,
        beside: flagship::Beside::Udp,
        length: Span::from_secs(1),
    };
    let judged = flagship::judge::Judged {
        due: 100,
        lost,
        missed,
        latency: None,
    };
    let outcome = flagship::Outcome {
        flows: [judged; 2],
        undisturbed: [judged; 2],
        node_ppm: None,
        best_effort: 90_000_000,
    };
    let seen = flagship::Seen::Ran(outcome);
    (Run::Flagship(case), Seen::Flagship(seen))
}

/// Runs of laxity's own over one link: for each the 99th percentile of control, all together and undisturbed, in microseconds, and how many are lost.
fn own(runs: &[([u64; 2], u64)]) -> Vec<Option<bool>> {
    let request = Request {
        live: true,
        figures: vec!["flagship".into()],
        ..Request::default()
    };
    let run = |([raw, undisturbed], lost): &([u64; 2], u64)| {
        let judged = |micros: u64| flagship::judge::Judged {
            due: 100,
            lost: *lost,
            missed: *lost,
            latency: Some([Span::from_micros(micros); 3]),
        };
        let (Run::Flagship(mut case), _) = carried(Queues::Node, [0, 0]) else {
            panic!("it is of the flagship");
        };
        (case.who, case.beside) = (flagship::Who::Channels, flagship::Beside::Tcp);
        let outcome = flagship::Outcome {
            flows: [judged(*raw); 2],
            undisturbed: [judged(*undisturbed); 2],
            best_effort: 87_000_000,
            node_ppm: Some(100_000),
        };
        let seen = flagship::Seen::Ran(outcome);
        (Run::Flagship(case), Seen::Flagship(seen))
    };
    let live: Vec<_> = runs.iter().map(run).collect();
    let made = Made {
        said: vec![crate::disturbed(0); live.len()],
        live,
        ..Made::nothing(&request)
    };
    let report = judge(&Channels, &made).expect("it is judged");
    // The first is of UDP, which was not run.
    report
        .checks
        .iter()
        .skip(1)
        .map(|check| check.held)
        .collect()
}

#[test]
fn laxitys_own_is_convicted_of_a_loss_and_of_what_is_late_undisturbed_or_too_often() {
    let [kept, broken] = [true, false].map(|held| vec![Some(held), Some(true), Some(true)]);
    let calm = ([500, 500], 0);
    let mut runs = vec![calm; 10];
    assert_eq!(own(&runs), kept);
    runs[..2].fill(([501, 500], 0));
    assert_eq!(own(&runs), kept);
    runs[2] = ([501, 500], 0);
    assert_eq!(own(&runs), broken);
    assert_eq!(own(&[calm, ([501, 501], 0)]), broken);
    assert_eq!(own(&[calm, ([500, 500], 1)]), broken);
}

#[test]
fn the_class_is_convicted_of_a_loss_and_whoever_was_not_run_is_told_with_the_reason() {
    let request = Request {
        live: true,
        figures: vec!["flagship".into()],
        ..Request::default()
    };
    let held = |class, queue| {
        let mut live = vec![carried(Queues::Class, class), carried(Queues::Fifo, queue)];
        let (Run::Flagship(mut case), _) = carried(Queues::Fifo, [0, 0]) else {
            panic!("it is of the flagship");
        };
        case.who = flagship::Who::Zenoh;
        let why = flagship::Seen::Missing("it is not there".into());
        live.push((Run::Flagship(case), Seen::Flagship(why)));
        let made = Made {
            said: vec![crate::disturbed(0); live.len()],
            live,
            ..Made::nothing(&request)
        };
        let report = judge(&Channels, &made).expect("it is judged");
        let [check] = &report.checks[..] else {
            panic!("{:?}", report.checks);
        };
        let [figure] = &report.figures[..] else {
            panic!("{:?}", report.figures);
        };
        assert_eq!(figure.tables[0].rows.len(), 2);
        let remarks = figure.remarks.join(" ");
        assert!(remarks.contains("zenoh") && remarks.contains("it is not there"));
        check.held
    };
    assert_eq!(held([0, 7], [0, 51]), Some(true));
    assert_eq!(held([1, 7], [0, 51]), Some(false));
    assert_eq!(held([0, 7], [0, 50]), Some(false));
}
