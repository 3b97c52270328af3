//! What is known of how long a holder was kept from the processor at one time.

use super::*;

#[test]
fn while_one_of_several_ran_they_were_not_kept_from_the_processor() {
    let shared = |at_ms, waited| Look {
        several: true,
        ..look(at_ms, 2_000, waited)
    };
    let mut meter = meter(Held::BySlots);
    for n in 1..=12 {
        // One waits for the other, which runs in each period.
        let waited = if n == 12 { MS(80) } else { MS(6) };
        meter.take(shared(8 * n, waited));
    }
    let gaps = |meter: &Meter| {
        let seen = meter.delivery();
        [
            seen.largest_gap,
            seen.largest_gap_possible,
            seen.kept_surely,
        ]
    };
    assert_eq!(gaps(&meter), [MS(0), MS(16), MS(0)]);
    // None of them runs for five looks.
    for n in 13..=17 {
        meter.take(Look {
            turn: Turn::No,
            ..shared(8 * n, MS(0))
        });
    }
    meter.take(shared(144, MS(50)));
    assert_eq!(gaps(&meter), [MS(40), MS(50), MS(40)]);
}

#[test]
fn how_long_it_was_surely_kept_is_told_whatever_lies_between_the_looks() {
    let mut meter = meter(Held::BySlots);
    meter.take(look(8, 2_000, MS(6)));
    // Waits of 30 ms in four periods that one look has together may have been four.
    meter.take(look(40, 8_000, MS(30)));
    assert_eq!(meter.delivery().kept_surely, MS(0));
    for n in 6..=11 {
        meter.take(Look {
            turn: Turn::No,
            ..look(8 * n, 0, MS(0))
        });
    }
    let halted = {
        let mut meter = meter.clone();
        meter.stood_still(still(at(50), at(80)));
        meter
    };
    for (mut meter, surely) in [(meter, 48), (halted, 16)] {
        meter.take(look(96, 1_000, MS(56)));
        assert_eq!(meter.delivery().kept_surely, MS(surely));
    }
}
