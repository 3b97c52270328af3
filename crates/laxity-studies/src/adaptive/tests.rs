//! The policies in the twin.

use laxity::observe::Disturbances;
use laxity_lab::bench::{Request, judge, make};
use laxity_lab::runner::Silent;

use laxity_lab::runner::tasks::Times;
use laxity_model::enforce::Whereabouts;
use laxity_model::{Disturbance, Instant, ProcessorId};

use super::*;
use crate::{disturbed, told_and_open};

fn request(figures: &[&str]) -> Request {
    Request {
        figures: figures.iter().map(|&figure| figure.into()).collect(),
        seed: 1,
        ..Request::default()
    }
}

#[test]
fn loads_are_followed_and_what_is_constant_is_left_alone() {
    let request = request(&[]);
    let made = make(&Adaptive, &request, &mut Silent).expect("the twin runs them");
    let best = Way::Fixed(best_fixed(&made));
    let of_best = made.twin.iter().find(|(case, _)| case.setup.way == best);
    let best = &of_best.expect("it was tried").1;
    assert_eq!((best.late, best.lost), (0, 0));
    let adaptive = made.twin.iter().filter_map(|(case, outcome)| {
        let Way::Adaptive(policy, _) = case.setup.way else {
            return None;
        };
        Some((case.figure, policy, outcome))
    });
    let mut seen = 0;
    for (figure, policy, outcome) in adaptive {
        println!("{figure}, {policy:?}: {outcome:?}");
        seen += 1;
        let in_time = policy == Policy::InTime;
        match figure {
            "steps" => {
                let up = outcome.settled(STRETCH, STRETCH * 2);
                let down = outcome.settled(STRETCH * 2, STRETCH * 3);
                let is_soon = |after: Option<Span>| after.is_some_and(|after| after <= SOON);
                assert!(is_soon(up.after), "{policy:?} {up:?}");
                if !in_time {
                    assert!(is_soon(down.after), "{policy:?} {down:?}");
                    assert_eq!((up.later_changes, down.later_changes), (0, 0));
                    assert!(outcome.mean_share_ppm < best.mean_share_ppm);
                }
                assert_eq!(outcome.lost, 0, "{policy:?}");
            }
            "constant" => {
                let changes = outcome.most_changes(Span::ZERO, CONSTANT_FOR);
                assert!(changes <= if in_time { 3 } else { 1 }, "{changes} in 10 s");
                assert!(outcome.changes.len() <= 24, "{policy:?}");
            }
            _ => assert!(outcome.other_ppm >= Some(990_000)),
        }
    }
    assert_eq!(seen, 3 * Policy::ALL.len());
}

/// A step is settled when nothing has changed for ten seconds, and not before; what nobody followed has not settled at once.
#[test]
fn what_changes_again_within_ten_seconds_has_not_settled() {
    let settled = |tenths: &[u64]| {
        let at = |tenths: &u64| (Span::from_millis(tenths * 100), Service::from_millis(1));
        let outcome = Outcome {
            changes: tenths.iter().map(at).collect(),
            ..Outcome::default()
        };
        let found = outcome.settled(Span::from_secs(20), Span::from_secs(60));
        let after = found.after.map(|after| after.as_nanos() / 100_000_000);
        (after, found.later_changes)
    };
    assert_eq!(settled(&[210, 305]), (Some(105), 0));
    assert_eq!(settled(&[210, 310, 315]), (Some(10), 2));
    assert_eq!(settled(&[190, 305, 600]), (None, 1));
    assert_eq!(settled(&[]), (None, 0));
}

#[test]
fn a_burst_of_changes_is_seen_whatever_the_average() {
    let at = |second| (Span::from_secs(second), Service::from_millis(1));
    let outcome = Outcome {
        changes: vec![at(5), at(50), at(51), at(59), at(60), at(90)],
        ..Outcome::default()
    };
    assert_eq!(outcome.most_changes(Span::ZERO, CONSTANT_FOR), 3);
    assert_eq!(outcome.most_changes(Span::ZERO, Span::from_secs(52)), 2);
    assert_eq!(outcome.most_changes(Span::from_secs(61), CONSTANT_FOR), 1);
}

#[test]
fn only_what_is_asked_for_is_run() {
    let request = request(&["constant"]);
    let made = make(&Adaptive, &request, &mut Silent).expect("the twin runs it");
    assert_eq!(made.twin.len(), Policy::ALL.len());
}

#[test]
fn jobs_that_are_never_done_are_counted() {
    let times = Times::steady(Span::from_millis(1), trial::PERIOD);
    let mut outcome = Outcome {
        jobs: 2,
        ..Outcome::default()
    };
    // Released after 1 + 12.5 n ms: those of 26 and 38.5 are older than 64 ms at the end, those of 51 to 88.5 are late, that of 101 is not.
    outcome.end(Instant::from_millis(104), times, Instant::from_millis(0));
    assert_eq!((outcome.jobs, outcome.late, outcome.lost), (8, 4, 2));
}

/// Who follows too late where the machine went on is convicted, whatever share of the rest was disturbed.
#[test]
fn what_is_followed_too_late_in_undisturbed_time_is_beyond_doubt() {
    let ms = Span::from_millis;
    let way = Way::Adaptive(Policy::ALL[0], at_start());
    let more = (LIVE_STRETCH + SOON + ms(1), at_start() + GRAIN);
    let less = (LIVE_STRETCH * 2 + ms(1), at_start());
    for (halt_at, disturbed_ppm, checks) in [
        (ms(0), 10_000, 1),
        (ms(0), 10_001, 1),
        (LIVE_STRETCH + ms(100), 10_001, 0),
    ] {
        let from = Instant::from_nanos(0) + halt_at;
        let halt = Disturbance {
            processor: ProcessorId(0),
            from,
            to: from + ms(100),
        };
        let outcome = Outcome {
            held_first: Some(at_start()),
            changes: vec![more, less],
            halts: Disturbances::bearing_on(&[halt], [Whereabouts::Anywhere]),
            ..Outcome::default()
        };
        let request = request(&["live"]);
        let made = Made {
            live: vec![(case("live", way, 1), outcome)],
            said: vec![disturbed(disturbed_ppm)],
            ..Made::nothing(&request)
        };
        let report = judge(&Adaptive, &made).expect("nothing is analysed");
        assert!(report.checks.iter().all(|check| check.held != Some(true)));
        let found = told_and_open(&report);
        assert_eq!(found, (checks, 1 - checks), "{halt_at} {disturbed_ppm}");
    }
}
