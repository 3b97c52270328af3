//! What looks at a holder make of its periods.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::*;
use crate::verify::contract::{Evidence, Outcome, Subject, Verdict, judge};
use crate::{Disturbance, Grade, Instant, ProcessorId, Reservation};

mod gaps;
mod idle;
mod sums;

const MS: fn(u64) -> Span = Span::from_millis;

fn meter(held: Held) -> Meter {
    let two_of_eight = Reservation::new(Service::from_millis(2), MS(8)).unwrap();
    Meter::new(two_of_eight, held, Instant::ZERO)
}

fn look(at_ms: u64, service_us: u64, kept_from: Span) -> Look {
    Look {
        at: Instant::from_millis(at_ms),
        service: Service::from_micros(service_us),
        kept_from,
        longest: kept_from,
        several: false,
        turn: Turn::Ran,
        ended: false,
        unwatched: false,
    }
}

/// The machine stood still between these.
fn still(from: Instant, to: Instant) -> Disturbance {
    let processor = ProcessorId(0);
    Disturbance {
        processor,
        from,
        to,
    }
}

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

#[test]
fn a_period_is_kept_within_a_twentieth() {
    let kept = |held, service_us, kept_from_us| {
        let mut meter = meter(held);
        meter.take(look(8, service_us, Span::from_micros(kept_from_us)));
        meter.delivery().kept == 1
    };
    assert!(kept(Held::Confined, 1_900, 6_100));
    assert!(!kept(Held::Confined, 1_899, 6_101));
    assert!(kept(Held::Confined, 2_300, 5_700));
    assert!(!kept(Held::Confined, 2_301, 5_699));
    assert!(kept(Held::ByKernel, 2_250, 5_750));
    assert!(!kept(Held::ByKernel, 2_251, 5_749));
    assert!(
        kept(Held::BySlots, 8_000, 0),
        "what nobody else wants it may have"
    );
    assert!(kept(Held::Confined, 10, 0), "it slept");
}

#[test]
fn who_is_not_seen_to_run_may_sleep_or_wait_and_the_next_look_tells() {
    let unseen = |at_ms| Look {
        turn: Turn::No,
        ..look(at_ms, 0, Span::ZERO)
    };
    let after_two_periods = |kept_from| {
        let mut meter = meter(Held::BySlots);
        meter.take(unseen(8));
        meter.take(unseen(16));
        assert_eq!(meter.delivery().periods, 0);
        meter.take(look(24, 1_000, kept_from));
        let seen = meter.delivery();
        (seen.periods, seen.kept, seen.largest_gap)
    };
    assert_eq!(after_two_periods(MS(1)), (3, 3, MS(1)));
    assert_eq!(after_two_periods(MS(22)), (3, 0, MS(22)));
}

#[test]
fn the_end_tells_a_starving_holder_from_a_sleeping_one() {
    let ended = |at_ms, waits| {
        let mut meter = meter(Held::BySlots);
        meter.finish(Instant::from_millis(at_ms), waits);
        let seen = meter.delivery();
        (seen.periods, seen.kept, seen.largest_gap)
    };
    assert_eq!(ended(80, false), (10, 10, Span::ZERO));
    assert_eq!(ended(80, true), (10, 0, MS(80)));
    assert_eq!(ended(5, true), (0, 0, MS(5)));
}

#[test]
fn a_stretch_lasts_until_it_is_seen_to_run_and_has_its_longest_wait() {
    let stretch = |from_ms, to_ms, gap| Stretch {
        from: Instant::from_millis(from_ms),
        to: Instant::from_millis(to_ms),
        gap,
    };
    let mut meter = meter(Held::ByKernel);
    let first = meter.take(look(8, 2_000, MS(6)));
    assert_eq!(first, Some(stretch(0, 8, MS(6))));
    let unseen = Look {
        turn: Turn::No,
        ..look(16, 0, Span::ZERO)
    };
    assert_eq!(meter.take(unseen), None);
    let second = meter.take(look(24, 1_000, MS(13)));
    assert_eq!(second, Some(stretch(8, 24, MS(13))));
    assert_eq!(
        meter.clone().finish(Instant::from_millis(27), true),
        stretch(24, 27, MS(3))
    );
    assert_eq!(
        meter.finish(Instant::from_millis(64), false),
        stretch(24, 64, MS(0))
    );
    assert_eq!(meter.delivery().largest_gap_least, MS(13));
}

fn judged(seen: &Delivery, contract: &Contract) -> Outcome {
    verdict(seen, contract, Grade::Enforced).result
}

fn verdict(seen: &Delivery, contract: &Contract, grade: Grade) -> Verdict {
    let evidence = Evidence {
        subject: Subject {
            name: "it".into(),
            kind: KIND,
        },
        runs: vec![seen.observations()],
        control: vec![],
        grades: vec![("it".into(), grade)],
        phases_over: vec![],
        doubts: seen.doubts(),
    };
    judge(contract, &[evidence], &seen.facts())
}

#[test]
fn two_in_a_hundred_may_be_short_and_nothing_seen_is_nothing_judged() {
    let outcome = |kept| {
        let seen = Delivery {
            periods: 100,
            kept,
            ..Delivery::default()
        };
        let seen = if kept == 0 { Delivery::default() } else { seen };
        judged(&seen, &seen.promise())
    };
    assert_eq!(outcome(98), Outcome::Met);
    assert_eq!(outcome(97), Outcome::Violated);
    assert_eq!(outcome(0), Outcome::Inconclusive);
}

/// Judged by what was promised, where the grant was worth that.
fn by_promise(seen: &Delivery, grade: Grade) -> Verdict {
    verdict(seen, &seen.promise(), grade)
}

#[test]
fn where_nobody_looks_for_halts_what_is_short_convicts_nobody() {
    let judged = |kept, grade| {
        let seen = Delivery {
            periods: 100,
            kept,
            halts_unseen: true,
            ..Delivery::default()
        };
        by_promise(&seen, grade)
    };
    assert_eq!(judged(98, Grade::Enforced).result, Outcome::Met);
    let short = judged(97, Grade::Enforced);
    assert_eq!(short.result, Outcome::Inconclusive);
    let told: Vec<String> = short.reasons.iter().map(ToString::to_string).collect();
    assert!(told[0].contains("exceeds 2"), "{told:?}");
    assert!(
        told[1].contains("whether the machine stood still"),
        "{told:?}"
    );
    let reason = "taken out of it".into();
    let unenforced = judged(97, Grade::Unenforced { reason });
    assert_eq!(unenforced.result, Outcome::Violated);
}

#[test]
fn the_kernel_stops_only_who_has_used_up_its_budget() {
    let overruns = |held| {
        let mut meter = meter(held);
        meter.take(look(8, 1_500, MS(5)));
        meter.take(look(16, 1_500, Span::from_micros(400)));
        meter.delivery().overruns
    };
    assert_eq!([Held::ByKernel, Held::BySlots].map(overruns), [1, 0]);
}

#[test]
fn what_is_used_up_is_an_overrun_and_what_was_disturbed_is_apart() {
    let mut meter = meter(Held::Confined);
    meter.take(look(8, 1_899, MS(1)));
    meter.take(look(16, 1_900, MS(1)));
    meter.take(look(24, 1_700, MS(6)));
    meter.stood_still(still(at(24), at(32)));
    meter.take(look(32, 0, MS(5)));
    let seen = meter.delivery();
    assert_eq!((seen.periods, seen.kept, seen.disturbed), (3, 3, 1));
    assert_eq!(seen.overruns, 1);
    assert_eq!(
        (seen.largest_gap, seen.largest_gap_disturbed),
        (MS(6), MS(5))
    );
    assert_eq!(seen.service, Service::from_micros(5_499));
    assert_eq!(seen.most, Service::from_micros(1_900));
}

#[test]
fn what_was_slept_through_is_no_standstill_and_what_was_waited_for_is() {
    // A letter is a look of one period: `s` it did not run, `S` the machine stood still too, `r` it ran for 1 ms, `R` the machine stood still too. Beside
    // it how long it had waited when it ran last, in milliseconds, or waits still at the end; and periods, of these kept, disturbed.
    let table: [(&str, u64, Option<u64>, [u64; 3]); 13] = [
        ("ssssssssss", 0, None, [10, 10, 0]),
        // As a program that sleeps for a second: it is not the machine that stood.
        ("Ssssssssss", 0, None, [10, 10, 0]),
        ("SSSSSSSSSS", 0, None, [10, 10, 0]),
        ("rssssSssss", 0, None, [10, 10, 0]),
        ("rsssSssssr", 0, None, [10, 10, 0]),
        ("Rssssssssr", 0, None, [9, 9, 1]),
        ("rssssssssR", 0, None, [9, 9, 1]),
        // Waiting from the period before on, it may be for the machine.
        ("rsssssssSr", 9, None, [9, 9, 1]),
        ("rsSssssssr", 26, None, [10, 6, 0]),
        // Waiting all the time: a standstill excuses no more than itself.
        ("rsssSssssr", 71, None, [9, 1, 1]),
        ("sssSSsssss", 0, Some(80), [8, 0, 2]),
        ("rSSSSSSSSS", 0, Some(72), [1, 1, 9]),
        ("rrRrrrRrrr", 1, None, [8, 8, 2]),
    ];
    for (looks, waited_ms, waits, expected) in table {
        let mut meter = meter(Held::BySlots);
        for (n, letter) in looks.chars().enumerate() {
            let ran = letter.eq_ignore_ascii_case(&'r');
            let is_last = n + 1 == looks.len();
            let from_ms = 8 * n as u64;
            if letter.is_ascii_uppercase() {
                meter.stood_still(still(at(from_ms), at(from_ms + 8)));
            }
            let kept_from = if ran && is_last {
                MS(waited_ms)
            } else {
                Span::ZERO
            };
            let service_us = if ran { 1_000 } else { 0 };
            meter.take(Look {
                turn: if ran { Turn::Ran } else { Turn::No },
                ..look(from_ms + 8, service_us, kept_from)
            });
        }
        meter.finish(
            Instant::from_millis(8 * looks.len() as u64),
            waits.is_some(),
        );
        let seen = meter.delivery();
        let found = [seen.periods, seen.kept, seen.disturbed];
        assert_eq!(found, expected, "{looks} {waited_ms} {waits:?}");
        if let Some(waits) = waits {
            let gap = seen.largest_gap.max(seen.largest_gap_disturbed);
            assert_eq!(gap, MS(waits), "{looks}");
        }
    }
}

#[test]
fn a_budget_used_up_after_a_sleep_is_an_overrun() {
    let mut meter = meter(Held::Confined);
    for n in 1..=9 {
        meter.take(Look {
            turn: Turn::No,
            ..look(8 * n, 0, Span::ZERO)
        });
    }
    meter.take(look(80, 1_900, Span::ZERO));
    let seen = meter.delivery();
    assert_eq!((seen.periods, seen.kept, seen.overruns), (10, 10, 1));
}

#[test]
fn of_periods_that_are_seen_together_none_is_counted_by_itself() {
    let fifth = Reservation::new(Service::from_micros(200), MS(1)).unwrap();
    // Of each stretch of 20 ms: the service in microseconds, for how long it was kept from more; stretches, of these kept.
    let table: [(u64, u64, [u64; 2]); 5] = [
        (4_000, 16_000, [100, 100]),
        // One whole period of each stretch was empty, or all had 5 % less: which, nobody knows.
        (3_800, 16_200, [100, 100]),
        (3_799, 16_201, [100, 0]),
        (10, 0, [100, 100]),
        (4_501, 15_499, [100, 0]),
    ];
    for (service_us, kept_from_us, expected) in table {
        let mut meter = Meter::new(fifth, Held::ByKernel, Instant::ZERO).together(20);
        for n in 1..=100 {
            meter.take(look(20 * n, service_us, Span::from_micros(kept_from_us)));
        }
        let seen = meter.delivery();
        assert_eq!([seen.periods, seen.kept], expected, "{service_us}");
        assert_eq!(seen.together, 20);
        let of_stretches = if expected[1] == 100 {
            Outcome::Met
        } else {
            Outcome::Violated
        };
        assert_eq!(judged(&seen, &seen.promise()), of_stretches, "{service_us}");
        for quantity in [SHORT_PERIODS, OVERRUNS] {
            let limit = Limit::new(quantity, Statistic::Total, Bound::AtMost(2_000));
            let of_periods = Contract {
                limits: vec![limit],
                ..Contract::default()
            };
            assert_eq!(
                judged(&seen, &of_periods),
                Outcome::Inconclusive,
                "{service_us}"
            );
        }
    }
}

#[test]
fn a_period_that_is_looked_at_by_itself_is_one() {
    let mut meter = meter(Held::ByKernel).together(1);
    meter.take(look(8, 2_000, MS(6)));
    let seen = meter.delivery();
    assert!(!seen.is_of_several());
    assert_eq!((seen.periods, seen.kept, seen.overruns), (1, 1, 1));
    let observed = seen.observations();
    assert!(observed.whole(OVERRUNS).undisturbed.sum() == 1);
}

#[test]
fn what_was_disturbed_leaves_the_verdict_open_where_it_might_have_broken_it() {
    // Of a hundred periods so many were disturbed, and in so many of these it is not seen to have had what is reserved.
    let table = [
        (0, 0, Outcome::Met),
        (1, 1, Outcome::Met),
        (5, 5, Outcome::Inconclusive),
        // All of it had what is reserved: what holds of everything needs no excuse.
        (40, 0, Outcome::Met),
        (40, 40, Outcome::Inconclusive),
    ];
    for (disturbed, short, expected) in table {
        let mut meter = meter(Held::Confined);
        for n in 1..=100 {
            let had = if n > short { 2_000 } else { 500 };
            if n <= disturbed {
                meter.stood_still(still(at(8 * n - 5), at(8 * n - 3)));
            }
            meter.take(look(8 * n, had, Span::from_micros(8_000 - had)));
        }
        let seen = meter.delivery();
        let counted = [
            seen.periods,
            seen.kept,
            seen.disturbed,
            seen.short_disturbed,
        ];
        assert_eq!(
            counted,
            [100 - disturbed, 100 - disturbed, disturbed, short]
        );
        assert_eq!(
            judged(&seen, &seen.promise()),
            expected,
            "{disturbed} {short}"
        );
    }
}

#[test]
fn a_standstill_excuses_the_periods_that_it_touches_and_no_others() {
    // It waits for ten periods; so long the machine stood still, from the 21st millisecond on.
    for (us, disturbed) in [(1, 1), (2_000, 1), (3_000, 1), (3_001, 2), (12_000, 3)] {
        let mut meter = meter(Held::BySlots);
        let from = at(21);
        meter.stood_still(still(from, from + Span::from_micros(us)));
        for n in 1..=9 {
            meter.take(Look {
                turn: Turn::No,
                ..look(8 * n, 0, Span::ZERO)
            });
        }
        meter.take(look(80, 0, MS(80)));
        let seen = meter.delivery();
        let counted = [seen.periods, seen.kept, seen.disturbed];
        assert_eq!(counted, [10 - disturbed, 0, disturbed], "{us}");
        assert_eq!(seen.largest_gap, MS(80 - 8 * disturbed));
    }
}

#[test]
fn a_look_that_is_late_excuses_nothing() {
    // It had nothing for 80 periods, of which a standstill of 0.15 ms at the end touched one.
    let mut meter = meter(Held::BySlots);
    meter.stood_still(still(at(639), at(640)));
    meter.take(look(640, 1_000, MS(639)));
    let seen = meter.delivery();
    assert_eq!((seen.disturbed, seen.kept), (1, 0));
    assert!(seen.periods > 70, "{seen:?}");
    assert_eq!(judged(&seen, &seen.promise()), Outcome::Violated);
}

#[test]
fn of_periods_before_a_late_look_only_what_is_so_of_each_is_known() {
    // After ten periods one look; what it had in them, and waited for, in milliseconds; of these kept, short, unseen.
    let table = [
        // It waited for less than others may have of one period.
        (1, 6, [10, 0, 0]),
        // It had all of it, and may have had it all in three periods.
        (20, 60, [0, 0, 10]),
        // Five periods must have been empty, if the others were not.
        (9, 71, [0, 5, 5]),
        (0, 80, [0, 10, 0]),
    ];
    for (had_ms, waited_ms, expected) in table {
        let mut meter = meter(Held::BySlots);
        meter.take(look(80, 1_000 * had_ms, MS(waited_ms)));
        let seen = meter.delivery();
        let slept = 10 - expected.iter().sum::<u64>();
        let found = [seen.kept - slept, seen.periods - seen.kept, seen.unseen];
        assert_eq!(found, expected, "{had_ms} {waited_ms}");
    }
}

#[test]
fn what_nobody_saw_before_it_ended_was_neither_kept_nor_slept_through() {
    let gone = |at_ms| Look {
        turn: Turn::Gone,
        ended: true,
        ..look(at_ms, 0, Span::ZERO)
    };
    // When it was seen to sleep, or not to run; when it was seen to have ended; periods, of these kept, unseen.
    let table: [(Option<Turn>, u64, [u64; 3]); 5] = [
        // In the period in which it ends it need not have anything.
        (None, 16, [1, 1, 0]),
        (None, 808, [1, 1, 99]),
        (Some(Turn::Asleep), 808, [50, 50, 50]),
        // It may have waited all the time.
        (Some(Turn::No), 408, [1, 1, 49]),
        (Some(Turn::Asleep), 408, [50, 50, 0]),
    ];
    for (turn, gone_ms, expected) in table {
        let mut meter = meter(Held::BySlots);
        meter.take(look(8, 1_900, MS(6)));
        for n in 2..=50 {
            if let Some(turn) = turn {
                meter.take(Look {
                    turn,
                    ..look(8 * n, 0, Span::ZERO)
                });
            }
        }
        meter.take(gone(gone_ms));
        // What comes after its end is none of it.
        meter.take(gone(gone_ms + 800));
        meter.finish(at(gone_ms + 1_600), false);
        let seen = meter.delivery();
        let found = [seen.periods, seen.kept, seen.unseen];
        assert_eq!(found[..2], expected[..2], "{turn:?} {gone_ms}");
        assert_eq!(found[2], expected[2], "{turn:?} {gone_ms}");
        let open = seen.unseen > 0;
        let outcome = if open {
            Outcome::Inconclusive
        } else {
            Outcome::Met
        };
        assert_eq!(judged(&seen, &seen.promise()), outcome);
    }
}

#[test]
fn of_a_thread_that_ended_before_a_late_look_nobody_knows_what_it_had() {
    let mut meter = meter(Held::BySlots);
    meter.take(Look {
        ended: true,
        ..look(80, 1_000, MS(1))
    });
    // The others slept for all but the last two milliseconds.
    let seen = meter.delivery();
    assert_eq!([seen.periods, seen.unseen], [1, 9]);
}
