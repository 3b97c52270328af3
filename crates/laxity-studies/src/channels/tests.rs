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
    let seen = flagship::Seen::Ran(Box::new(outcome));
    (Run::Flagship(case), Seen::Flagship(seen))
}

/// A run of somebody's beside others' TCP over one link: the 99th percentile of control, all together and undisturbed, in microseconds, and how many are lost.
type Ran = (flagship::Who, [u64; 2], u64);

/// What is held of each claim but the first, which is of UDP in one queue.
fn held(runs: &[Ran]) -> Vec<Option<bool>> {
    let request = Request {
        live: true,
        figures: vec!["flagship".into()],
        ..Request::default()
    };
    let run = |(who, [raw, undisturbed], lost): &Ran| {
        let judged = |micros: u64| flagship::judge::Judged {
            due: 100,
            lost: *lost,
            missed: *lost,
            latency: Some([Span::from_micros(micros); 3]),
        };
        let queues = match who {
            flagship::Who::Channels => Queues::Node,
            _ => Queues::Class,
        };
        let (Run::Flagship(mut case), _) = carried(queues, [0, 0]) else {
            panic!("it is of the flagship");
        };
        (case.who, case.beside) = (*who, flagship::Beside::Tcp);
        let outcome = flagship::Outcome {
            flows: [judged(*raw); 2],
            undisturbed: [judged(*undisturbed); 2],
            best_effort: 87_000_000,
            node_ppm: Some(100_000),
        };
        let seen = flagship::Seen::Ran(Box::new(outcome));
        (Run::Flagship(case), Seen::Flagship(seen))
    };
    let live: Vec<_> = runs.iter().map(run).collect();
    let made = Made {
        said: vec![crate::disturbed(0); live.len()],
        live,
        ..Made::nothing(&request)
    };
    let report = judge(&Channels, &made).expect("it is judged");
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
    let own = |micros: [u64; 2], lost| (flagship::Who::Channels, micros, lost);
    let calm = own([500, 500], 0);
    let mut runs = vec![calm; 10];
    assert_eq!(held(&runs), kept);
    runs[..2].fill(own([501, 500], 0));
    assert_eq!(held(&runs), kept);
    runs[2] = own([501, 500], 0);
    assert_eq!(held(&runs), broken);
    assert_eq!(held(&[calm, own([501, 501], 0)]), broken);
    assert_eq!(held(&[calm, own([500, 500], 1)]), broken);
}

#[test]
fn laxitys_own_is_to_be_twice_as_early_as_udp_and_three_times_as_early_as_the_best_rival() {
    use flagship::Who::{Channels, Cyclone, Udp, ZenohTuned};
    let against = |udp, zenoh| {
        let runs = [
            (Udp, udp),
            (ZenohTuned, zenoh),
            (Cyclone, 9_000),
            (Channels, 500),
        ];
        let all = held(&runs.map(|(who, micros)| (who, [micros; 2], 0)));
        [all[2], all[3]]
    };
    assert_eq!(against(1_000, 1_500), [Some(true); 2]);
    assert_eq!(against(999, 1_500), [Some(false), Some(true)]);
    assert_eq!(against(1_000, 1_499), [Some(true), Some(false)]);
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
