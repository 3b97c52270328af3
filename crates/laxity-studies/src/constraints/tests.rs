//! What is claimed of live runs of which too much was disturbed.

use laxity_lab::bench::{Request, judge};
use laxity_lab::report::Report;
use laxity_model::{Enforcer, Grade, Grant, Service, Usage};

use super::burst::Burst;
use super::sweep::Granted;
use super::*;
use crate::{disturbed, live_run, told_and_open};

/// What is made of these live runs, each disturbed by so much.
fn judged(live: Vec<Trial<Constraints>>, disturbed_ppm: u32) -> Report {
    beside(live, &disturbed(disturbed_ppm))
}

/// The same where each says this of itself.
fn beside(live: Vec<Trial<Constraints>>, said: &Said) -> Report {
    let request = Request {
        live: true,
        ..Request::default()
    };
    let made = Made {
        said: vec![said.clone(); live.len()],
        live,
        ..Made::nothing(&request)
    };
    judge(&Constraints, &made).expect("nothing is analysed")
}

fn held(report: &Report) -> Vec<bool> {
    report
        .checks
        .iter()
        .filter_map(|check| check.held)
        .collect()
}

/// 1,436 time constraints that were granted, so many of which received nothing.
fn sweep(missed: usize) -> Vec<Trial<Constraints>> {
    let asked = Service::from_millis(5);
    let granted = |number: usize| Granted {
        asked,
        received: if number < missed {
            Service::ZERO
        } else {
            asked
        },
        disturbed: false,
    };
    let swept = Swept {
        granted: (0..1_436).map(granted).collect(),
        ..Swept::default()
    };
    vec![(Case::Sweep(1, Span::from_secs(3)), Seen::Sweep(swept))]
}

#[test]
fn what_was_missed_in_undisturbed_time_convicts_whatever_else_was_disturbed() {
    for (missed, disturbed_ppm, so, open) in [
        (9, 10_000, vec![false], 0),
        (9, 10_001, vec![false], 0),
        (9, 500_000, vec![false], 0),
        (0, 10_000, vec![true], 0),
        (0, 10_001, vec![], 1),
    ] {
        let report = judged(sweep(missed), disturbed_ppm);
        assert_eq!(held(&report), so, "{missed}, {disturbed_ppm}");
        assert_eq!(told_and_open(&report).1, open, "{missed}, {disturbed_ppm}");
    }
}

/// What was missed while a stranger held the processor is no doing of ours, nor is a promise kept that nobody enforced.
#[test]
fn what_a_stranger_took_is_neither_held_nor_broken_and_he_is_named() {
    let told = |witness_wakeups, grade| {
        let mut record = live_run(0);
        record.witness_wakeups = witness_wakeups;
        record.unwatched = witness_wakeups == 0;
        record.notices = vec!["`rogue` may rank above".to_owned()];
        let grant = Grant {
            reservation: burst::every(burst::HELD),
            enforcer: Enforcer::Slots,
            grade,
            has_begun: true,
        };
        record.usage = vec![Usage {
            grant: Some(grant),
            ..Usage::default()
        }];
        Said::of(&record)
    };
    let reason = || "processor 0 was held for 30ms, 40ms after the start: `rogue`".to_owned();
    let by_rogue = || Grade::Unenforced { reason: reason() };
    let by_somebody = || Grade::Uncertain { reason: reason() };
    let cannot_see = || Grade::Unenforced {
        reason: "cannot see who outranks the slot, perhaps `rogue`".to_owned(),
    };
    for (missed, wakeups, grade, held) in [
        (0, 2_000, Grade::Enforced, Some(true)),
        (9, 2_000, Grade::Enforced, Some(false)),
        (0, 2_000, by_rogue(), None),
        (9, 2_000, by_rogue(), None),
        (0, 2_000, cannot_see(), None),
        (0, 2_000, by_somebody(), None),
        (9, 2_000, by_somebody(), Some(false)),
        // The witness never woke.
        (0, 0, Grade::Enforced, None),
        (9, 0, Grade::Enforced, None),
    ] {
        let is_named = grade != Grade::Enforced && held.is_none();
        let report = beside(sweep(missed), &told(wakeups, grade.clone()));
        let [check] = &report.checks[..] else {
            panic!("{:?}", report.checks);
        };
        assert_eq!(check.held, held, "{missed}, {grade}: {}", check.seen);
        assert_eq!(check.seen.contains("`rogue`"), is_named, "{}", check.seen);
        let notices = report.summary.iter();
        let notices = notices.filter(|said| said.contains("may rank above"));
        assert_eq!(notices.count(), 1, "{:?}", report.summary);
    }
}

/// The witness looks every half of a millisecond. What is short by less, once or no more often than a halt that was seen met one, may be a halt's that
/// was not; whatever lacks more, or is short more often, is not.
#[test]
fn what_a_halt_that_nobody_sees_may_have_taken_convicts_nobody() {
    let asked = Service::from_millis(5);
    for (lacked_us, times, met, held) in [
        (499, 1, 0, None),
        (500, 1, 0, Some(false)),
        (499, 2, 1, Some(false)),
        (499, 2, 2, None),
        (0, 2, 0, Some(true)),
    ] {
        let (mut live, short) = (sweep(0), Service::from_micros(lacked_us));
        let (_, Seen::Sweep(swept)) = &mut live[0] else {
            panic!("a sweep");
        };
        let tolerated = asked.as_nanos() / 20 + 2 * sweep::PIECE.as_nanos();
        let received = asked.saturating_sub(Service::from_nanos(tolerated) + short);
        for granted in &mut swept.granted[..times] {
            granted.received = received;
        }
        for granted in &mut swept.granted[times..times + met] {
            granted.disturbed = true;
        }
        let report = judged(live, 0);
        let [check] = &report.checks[..] else {
            panic!("{:?}", report.checks);
        };
        assert_eq!(check.held, held, "{lacked_us}, {times}: {}", check.seen);
        let told = check.seen.contains("is seen by nobody");
        assert_eq!(told, held.is_none(), "{}", check.seen);
    }
}

/// Bursts without a time constraint, all late, and with one: as they came, and as many as there should be but for the last, which is as given.
fn bursts(last: Burst, kept_ppm: Option<u64>) -> Vec<Trial<Constraints>> {
    let bursts = |granted, response, last: Option<Burst>| {
        let burst = Burst {
            response,
            granted,
            disturbed: false,
            took: burst::WORK,
            lacked: response.saturating_sub(burst::WITHIN),
        };
        let mut bursts = vec![burst; HERE.bursts as usize - usize::from(last.is_some())];
        bursts.extend(last);
        let seen = Seen::Bursts(Bursts {
            bursts,
            other: kept_ppm.map(|kept_ppm| Other {
                least: Service::ZERO,
                kept_ppm,
            }),
        });
        (Case::Bursts(HERE.bursts, granted), seen)
    };
    vec![
        bursts(false, burst::WITHIN * 2, None),
        bursts(true, burst::WITHIN, Some(last)),
    ]
}

#[test]
fn no_halt_excuses_a_refusal_nor_what_was_late_while_the_machine_went_on() {
    let well = Burst {
        response: burst::WITHIN,
        granted: true,
        disturbed: false,
        took: burst::WORK,
        lacked: Span::ZERO,
    };
    let refused = Burst {
        granted: false,
        disturbed: true,
        ..well
    };
    let late = Burst {
        response: burst::WITHIN * 2,
        lacked: burst::WITHIN,
        ..well
    };
    let halted = Burst {
        disturbed: true,
        ..late
    };
    let kept = HERE.kept_ppm;
    for (last, kept, so, open) in [
        (well, Some(kept), vec![], 3),
        (halted, Some(kept), vec![], 3),
        (refused, Some(kept), vec![false], 2),
        (late, Some(kept), vec![false], 2),
        (well, Some(kept - 1), vec![false], 2),
        (well, None, vec![], 3),
    ] {
        let report = judged(bursts(last, kept), 10_001);
        assert_eq!(held(&report), so, "{last:?}, {kept:?}");
        assert_eq!(told_and_open(&report).1, open, "{last:?}, {kept:?}");
        let report = judged(bursts(last, kept), 10_000);
        assert_eq!(told_and_open(&report), (3, 0));
    }
}
