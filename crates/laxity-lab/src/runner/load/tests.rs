use laxity_model::base::random::SplitMix64;
use laxity_model::request::Stranger;
use laxity_model::{Disturbance, Instant};

use super::*;
use crate::scenario::units;

const BLOCK: Span = Span::from_micros(12_500);

fn calibration(load: &str) -> Calibration {
    let load = units::load(load).expect("a load");
    Calibration::new(load, BLOCK, 20, 2_000)
}

/// What a block takes with so many repeats: its own work, and that of each repeat, at this speed in percent.
fn block(repeats: usize, percent: u64) -> Service {
    Service::from_nanos((160_000 + 21_000 * repeats as u64) * percent / 100)
}

/// Lets a calibration measure what `machine` gives, until it ends; and how often it did.
fn run(
    mut calibration: Calibration,
    mut machine: impl FnMut(usize) -> Measured,
) -> (Result<Found, NoCount>, usize) {
    for measured in 0..100 {
        match calibration.next() {
            Err(no) => return (Err(no), measured),
            Ok(Next::Found(found)) => return (Ok(found), measured),
            Ok(Next::Measure(repeats)) => calibration.take(machine(repeats)),
        }
    }
    panic!("it has no end: {calibration:?}");
}

#[test]
fn every_load_gets_its_own_count_and_is_measured_with_it() {
    for (load, repeats) in [("5 % ± 0.5", 22), ("14.7 % ± 0.7", 80), ("30 % ± 1", 171)] {
        let (found, measured) = run(calibration(load), |repeats| Ok(block(repeats, 100)));
        let found = found.expect(load);
        assert_eq!((found.repeats, measured), (repeats, 7), "{load}");
        assert!(calibration(load).is_within(found.share_ppm));
    }
}

/// Of two shares of a time in which blocks were dropped, a line made 2,000 receivers.
#[test]
fn what_could_not_be_used_changes_nothing() {
    let trouble = [
        Trouble::Lossy(180),
        Trouble::Disturbed(31_000),
        Trouble::TooFew {
            processed: 9,
            of: 40,
        },
    ];
    let mut turn = 0;
    let (found, measured) = run(calibration("14.7 % ± 0.7"), |repeats| {
        turn += 1;
        match turn % 2 {
            0 => Err(trouble[turn / 2 % 3].clone()),
            _ => Ok(block(repeats, 100)),
        }
    });
    assert_eq!(found.expect("a count").repeats, 80);
    assert_eq!(measured, 13);
}

/// A run of 400 ms in which the machine stood still for 8 ms, 2 % of it.
fn halted() -> RunRecord {
    RunRecord {
        disturbances: vec![Disturbance {
            processor: ProcessorId(0),
            from: Instant::from_millis(100),
            to: Instant::from_millis(108),
        }],
        witness_wakeups: 800,
        ..RunRecord::empty(Instant::ZERO, Instant::from_millis(400))
    }
}

/// Nine of eleven measurements were thrown away for halts that touched one of their 32 blocks each.
#[test]
fn a_halt_costs_the_calls_that_it_touched_and_no_others() {
    let counted = |calls: u64, lost| {
        let mut undisturbed = Histogram::new();
        (0..calls).for_each(|_| undisturbed.record(1_840_000));
        let counted = Counted {
            calls: undisturbed,
            lost,
            undelivered: 0,
        };
        counted.measured(&halted(), Span::from_micros(12_500))
    };
    assert_eq!(counted(31, 0), Ok(Service::from_nanos(1_840_000)));
    let halted = Err(Trouble::Disturbed(20_000));
    assert_eq!((counted(15, 0), counted(31, 12)), (halted.clone(), halted));
}

#[test]
fn who_is_in_the_way_is_named() {
    let rogue = "thread 42 \"greedy\" of process 41 (SCHED_FIFO priority 85)";
    let (found, measured) = run(calibration("14.7 % ± 0.7"), |_| {
        Err(Trouble::Strangers(vec![rogue.to_owned()]))
    });
    let Err(NoCount::Inconclusive(why)) = found else {
        panic!("{found:?}");
    };
    assert!(why.contains(rogue) && why.contains("9 of 9"), "{why}");
    assert_eq!(measured, MOST_REJECTED + 1);
}

#[test]
fn a_count_is_not_believed_before_its_load_was_measured() {
    // The medians were measured on a machine that then becomes slower, and stays so.
    let mut before = 2 * MEASUREMENTS;
    let (found, measured) = run(calibration("14.7 % ± 0.7"), |repeats| {
        let is_slow = before == 0;
        before = before.saturating_sub(1);
        Ok(block(repeats, if is_slow { 130 } else { 100 }))
    });
    let found = found.expect("a count");
    assert!((58..=62).contains(&found.repeats), "{found:?}");
    assert!(calibration("14.7 % ± 0.7").is_within(found.share_ppm));
    assert!(measured > 7, "the first was wrong");
}

#[test]
fn a_speed_that_never_rests_is_told() {
    let mut slow = false;
    let (found, measured) = run(calibration("14.7 % ± 0.7"), |repeats| {
        slow = !slow;
        Ok(block(repeats, if slow { 130 } else { 70 }))
    });
    let Err(NoCount::Inconclusive(why)) = found else {
        panic!("{found:?}");
    };
    assert!(why.contains("14.7 % ± 0.7 %"), "{why}");
    assert_eq!(measured, 2 * MEASUREMENTS + CHECKS);
}

/// Each correction missed, as the next measurement was made at the other speed.
#[test]
fn of_two_speeds_by_turns_the_load_is_met_at_the_mean() {
    let mut slow = false;
    let (found, measured) = run(calibration("14.7 % ± 0.7"), |repeats| {
        slow = !slow;
        Ok(block(repeats, if slow { 108 } else { 92 }))
    });
    let found = found.expect("a count");
    assert!((78..=82).contains(&found.repeats), "{found:?}");
    assert!(calibration("14.7 % ± 0.7").is_within(found.share_ppm));
    assert_eq!(measured, 2 * MEASUREMENTS + CHECKS);
}

/// Whatever the speed does, and whatever is rejected: it ends, and a count that is found was measured within the tolerance, or is the mean of all that were
/// tried.
#[test]
fn every_course_of_a_machine_ends_in_a_load_or_a_reason() {
    let mut random = SplitMix64::new(7);
    let mut found_ones = 0;
    for _ in 0..2_000 {
        let mut percent = 100_u64;
        let mut last = None;
        let (found, measured) = run(calibration("14.7 % ± 0.7"), |repeats| {
            percent = (percent + random.draw() % 9).clamp(74, 134) - 4;
            last = Some((repeats, block(repeats, percent)));
            match random.draw() % 6 {
                0 => Err(Trouble::Lossy(1)),
                _ => Ok(block(repeats, percent)),
            }
        });
        assert!(measured <= Calibration::MOST);
        if let Ok(found) = found {
            let (repeats, service) = last.expect("it was measured");
            let own = calibration("14.7 % ± 0.7");
            let was_measured = (found.repeats, found.share_ppm) == (repeats, own.share(service));
            assert!(was_measured || measured >= 2 * MEASUREMENTS + CHECKS);
            assert!(own.is_within(found.share_ppm));
            found_ones += usize::from(was_measured);
        }
    }
    assert!(found_ones > 1_500, "{found_ones}");
}

#[test]
fn a_machine_too_fast_is_no_clamp() {
    let fast = |repeats: usize| Ok(Service::from_nanos(1_000 + 100 * repeats as u64));
    let (found, _) = run(calibration("14.7 % ± 0.7"), fast);
    let Err(NoCount::Impossible(why)) = found else {
        panic!("{found:?}");
    };
    assert!(why.contains("too fast") && why.contains("2000"), "{why}");
}

/// It takes 3.3 % without repeats: whoever asks for less is told what it takes, and everybody alike.
#[test]
fn work_that_takes_more_without_repeats_takes_that_and_it_is_told() {
    let found = |load: &str| {
        let (found, _) = run(calibration(load), |repeats| Ok(block(repeats, 100)));
        let found = found.expect(load);
        (found, found.beyond(&units::load(load).expect("a load")))
    };
    let (least, told) = found("1 % ± 0.1");
    assert_eq!(least.repeats, 0);
    assert!(least.share_ppm > 11_000, "{least:?}");
    let told = told.expect("it is more");
    assert!(told.contains("more than the 1 % ± 0.1 %"), "{told}");
    // Who can meet what was asked for has it.
    let (met, told) = found("14.7 % ± 0.7");
    assert!(met.share_ppm.abs_diff(147_000) <= 7_000);
    assert_eq!(told, None);
}

/// A stranger above whoever is measured, by what it has had whenever it is looked at, in microseconds, and whether it was measured beside it.
fn beside(had: &[Option<u64>]) -> (Result<(), Trouble>, bool) {
    let mut looks = had.iter();
    let looked = std::cell::RefCell::new(&mut looks);
    let strangers = |_: &mut ()| {
        let had = looked
            .borrow_mut()
            .next()
            .expect("it is looked for more often");
        Ok(Strangers {
            seen: had
                .iter()
                .map(|micros| Stranger {
                    name: "watchdog".to_owned(),
                    had: Some(Service::from_micros(*micros)),
                })
                .collect(),
            ..Strangers::default()
        })
    };
    let mut is_measured = false;
    let seen = beside_nobody(&mut (), Span::from_millis(1), strangers, |_| {
        is_measured = true;
        Ok(())
    });
    (seen.expect("no error"), is_measured)
}

#[test]
fn who_only_could_be_in_the_way_is_not() {
    let trouble = || Err(Trouble::Strangers(vec!["watchdog".to_owned()]));
    assert_eq!(beside(&[None, None]), (Ok(()), true));
    // It sleeps; nothing is begun beside one that works; one that works later, or comes, spoils what was measured.
    let sleeps = Some(5_000);
    assert_eq!(beside(&[sleeps, sleeps, Some(5_100)]), (Ok(()), true));
    assert_eq!(beside(&[sleeps, Some(5_101)]), (trouble(), false));
    assert_eq!(beside(&[sleeps, sleeps, Some(5_101)]), (trouble(), true));
    assert_eq!(beside(&[None, Some(0)]), (trouble(), true));
    assert_eq!(beside(&[sleeps, None, None]), (Ok(()), true));
}
