//! What is made of periods in which a holder asks for nothing, or cannot.

use super::*;

fn unseen(at_ms: u64, turn: Turn) -> Look {
    Look {
        turn,
        ..look(at_ms, 0, Span::ZERO)
    }
}

#[test]
fn of_who_asked_for_nothing_nothing_is_judged() {
    let generous = Contract {
        limits: vec![
            Limit::new(Quantity::SERVICE_GAP, Statistic::Maximum, Bound::AtMost(1)),
            Limit::new(OVERRUNS, Statistic::Total, Bound::AtMost(3)),
        ],
        ..Contract::default()
    };
    for (ran, outcome) in [(false, Outcome::Inconclusive), (true, Outcome::Met)] {
        let mut meter = meter(Held::BySlots);
        if ran {
            meter.take(look(8, 100, Span::ZERO));
        }
        meter.take(unseen(400, Turn::Asleep));
        meter.finish(at(800), false);
        let seen = meter.delivery();
        assert_eq!([seen.periods, seen.kept], [100, 100]);
        assert_eq!(seen.asleep, 100 - u64::from(ran));
        assert_eq!(judged(&seen, &seen.promise()), outcome);
        assert_eq!(judged(&seen, &generous), outcome);
    }
}

#[test]
fn who_is_stopped_does_not_sleep() {
    // A letter is a look of one period: `r` it ran, `n` it did not, and nobody asked whether it sleeps, `s` it did, `T` it was stopped. Beside it periods,
    // of these asleep, stopped.
    let table: [(&str, [u64; 3]); 9] = [
        ("rTTTTTTTTT", [1, 0, 9]),
        ("TTTTTTTTTT", [0, 0, 10]),
        ("ssssssssss", [10, 10, 0]),
        ("rssssTTTTr", [6, 4, 4]),
        // Stopped or let go on between two looks at which somebody asked.
        ("rsnnTnnTnr", [3, 1, 7]),
        ("rTnnsssssr", [6, 4, 4]),
        ("rnnnTnnnnn", [1, 0, 9]),
        ("rnnnnnnnnr", [10, 8, 0]),
        ("rTTTrsssTr", [6, 3, 4]),
    ];
    for (looks, expected) in table {
        let mut meter = meter(Held::BySlots);
        for (n, letter) in (1..).zip(looks.chars()) {
            meter.take(match letter {
                'r' => look(8 * n, 1_000, Span::ZERO),
                's' => unseen(8 * n, Turn::Asleep),
                'T' => unseen(8 * n, Turn::Stopped),
                _ => unseen(8 * n, Turn::No),
            });
        }
        meter.finish(at(80), false);
        let seen = meter.delivery();
        let found = [seen.periods, seen.asleep, seen.stopped];
        assert_eq!(found, expected, "{looks}");
        assert_eq!(seen.kept, seen.periods, "{looks}");
    }
}

#[test]
fn who_is_killed_while_it_is_stopped_had_no_chance_to_ask() {
    let mut meter = meter(Held::BySlots);
    meter.take(look(8, 1_000, Span::ZERO));
    meter.take(unseen(400, Turn::Stopped));
    meter.take(unseen(408, Turn::Gone));
    let seen = meter.delivery();
    assert_eq!([seen.periods, seen.stopped, seen.unseen], [1, 49, 0]);
}

#[test]
fn who_slept_until_just_now_has_not_waited_for_longer() {
    let mut meter = meter(Held::BySlots);
    meter.take(unseen(40, Turn::Asleep));
    meter.finish(at(80), true);
    let seen = meter.delivery();
    assert_eq!([seen.periods, seen.kept, seen.asleep], [10, 5, 5]);
    assert_eq!(seen.largest_gap, MS(40));
}

#[test]
fn of_nobody_no_period_is_judged() {
    let mut meter = meter(Held::BySlots);
    // For a second nobody held anything; the machine stood still meanwhile.
    meter.stood_still(still(at(900), at(990)));
    meter.begin_at(at(1_000));
    assert_eq!(meter.delivery(), Delivery::default());
    meter.take(look(1_008, 2_000, MS(6)));
    let seen = meter.delivery();
    assert_eq!((seen.periods, seen.kept, seen.disturbed), (1, 1, 0));
    meter.finish(at(1_016), true);
    assert_eq!(meter.delivery().largest_gap, MS(8));
}
