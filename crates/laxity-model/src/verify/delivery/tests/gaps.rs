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
        [seen.largest_gap, seen.largest_gap_possible]
    };
    assert_eq!(gaps(&meter), [MS(0), MS(16)]);
    // None of them runs for five looks.
    for n in 13..=17 {
        meter.take(Look {
            turn: Turn::No,
            ..shared(8 * n, MS(0))
        });
    }
    meter.take(shared(144, MS(50)));
    // Then one may have waited while another had 2 ms.
    assert_eq!(gaps(&meter), [MS(48), MS(50)]);
}

#[test]
fn what_waits_are_in_one_late_look_is_told_as_what_one_of_them_may_have_been() {
    let gaps = |meter: &Meter| {
        let seen = meter.delivery();
        [seen.largest_gap, seen.largest_gap_possible]
    };
    let mut meter = meter(Held::BySlots);
    meter.take(look(8, 2_000, MS(6)));
    // Waits of 30 ms in four periods that one look has together may have been four; of 40, one had begun before.
    meter.take(look(40, 8_000, MS(30)));
    assert_eq!(gaps(&meter), [MS(6), MS(30)]);
    meter.take(look(72, 8_000, MS(40)));
    assert_eq!(gaps(&meter), [MS(8), MS(40)]);
    for n in 10..=11 {
        meter.take(Look {
            turn: Turn::No,
            ..look(8 * n, 0, MS(0))
        });
    }
    let halted = {
        let mut meter = meter.clone();
        meter.stood_still(still(at(80), at(88)));
        meter
    };
    for (mut meter, told) in [(meter, 24), (halted, 16)] {
        meter.take(look(96, 1_000, MS(24)));
        assert_eq!(meter.delivery().largest_gap, MS(told));
    }
}

/// The interrupt that finds a budget used up, and the ways out and in, are counted as its own service.
#[test]
fn a_wait_for_the_kernels_budget_may_be_longer_than_it_is_counted_and_was_no_shorter() {
    let table = [
        (Held::ByKernel, 1, MS(6), Span::from_micros(6_200)),
        (Held::ByKernel, 3, MS(6), Span::from_micros(6_200)),
        // It did not wait, and was switched to from nobody.
        (Held::ByKernel, 1, MS(0), MS(0)),
        (Held::BySlots, 1, MS(6), MS(6)),
        (Held::Confined, 1, MS(6), MS(6)),
    ];
    for (held, together, counted, told) in table {
        let mut meter = meter(held).together(together);
        for n in 1..=20 {
            meter.take(look(8 * together * n, 2_000 * together, counted));
        }
        let seen = meter.delivery();
        assert_eq!(seen.largest_gap, told, "{held:?} {together}");
        let least = if together > 1 { MS(0) } else { counted };
        assert_eq!(seen.largest_gap_least, least, "{held:?} {together}");
        assert_eq!(seen.gap_is_at_most(), told > counted, "{held:?} {together}");
        let gap_within = |most: Span| {
            let bound = Bound::AtMost(most.as_nanos());
            let contract = Contract {
                limits: vec![Limit::new(Quantity::SERVICE_GAP, Statistic::Maximum, bound)],
                ..Contract::default()
            };
            judged(&seen, &contract)
        };
        assert_eq!(gap_within(told), Outcome::Met);
        if counted.is_zero() {
            continue;
        }
        let just_below = |gap: Span| gap_within(gap.saturating_sub(Span::from_nanos(1)));
        let broken = match told > counted {
            true => Outcome::Inconclusive,
            false => Outcome::Violated,
        };
        assert_eq!(just_below(told), broken, "{held:?} {together}");
        if together == 1 {
            assert_eq!(just_below(counted), Outcome::Violated, "{held:?}");
        }
    }
}

/// Who ranks between the slots and their dispatcher, and is gone before anybody looks: it came 1 ms after the slot, and went 1 ms before or after another.
#[test]
fn a_wait_that_is_longer_than_the_kernels_own_leaves_slots_uncertain() {
    let two_of_eight = Reservation::new(Service::from_millis(2), MS(8)).unwrap();
    let grade = |waited, several, late| {
        let mut meter = meter(Held::BySlots);
        for n in 1..=12 {
            let punctual = Look {
                several,
                ..look(8 * n, 2_000, if several { MS(40) } else { MS(6) })
            };
            match n {
                6 if late => continue,
                // It ran a moment before the first of these.
                6 | 7 => meter.take(Look {
                    turn: Turn::No,
                    ..look(8 * n, 0, MS(0))
                }),
                8 => meter.take(Look {
                    several,
                    ..look(8 * n, 2_000, waited)
                }),
                _ => meter.take(punctual),
            };
        }
        meter.delivery().grade_of_slots(two_of_eight)
    };
    let is_uncertain = |grade| matches!(grade, Grade::Uncertain { .. });
    for is_late in [false, true] {
        assert_eq!(grade(MS(16), false, is_late), Grade::Enforced);
        assert!(is_uncertain(grade(MS(17), false, is_late)));
        // While one of them waited, after that, another ran.
        assert_eq!(grade(MS(18), true, is_late), Grade::Enforced);
        assert!(is_uncertain(grade(MS(19), true, is_late)));
    }
}

/// It waits when it ends, and has since the last look by which it ran.
#[test]
fn who_waits_to_the_end_was_kept_from_the_processor_for_so_long() {
    let mut meter = meter(Held::BySlots);
    meter.take(look(8, 2_000, MS(6)));
    meter.take(Look {
        turn: Turn::No,
        ..look(16, 0, MS(0))
    });
    let [waits, sleeps] = [true, false].map(|waits| {
        let mut meter = meter.clone();
        meter.finish(at(25), waits);
        let two_of_eight = Reservation::new(Service::from_millis(2), MS(8)).unwrap();
        let seen = meter.delivery();
        let is_enforced = seen.grade_of_slots(two_of_eight) == Grade::Enforced;
        (seen.largest_gap, is_enforced)
    });
    assert_eq!(waits, (MS(17), false));
    assert_eq!(sleeps, (MS(6), true));
}

/// Who ranks between the slots and their dispatcher holds the processor, and the program is told to end meanwhile: it does so as soon as it runs.
#[test]
fn a_wait_that_the_end_cuts_off_is_not_forgotten() {
    let two_of_eight = Reservation::new(Service::from_millis(2), MS(8)).unwrap();
    let ended = |turns: [Turn; 8], halt: Option<[u64; 2]>| {
        let mut meter = meter(Held::BySlots);
        meter.take(look(8, 2_000, MS(6)));
        for (n, turn) in (2..).zip(turns) {
            meter.take(Look {
                turn,
                ..look(8 * n, 0, MS(0))
            });
        }
        if let Some([from, to]) = halt {
            meter.stood_still(still(at(from), at(to)));
        }
        meter.take(Look {
            turn: Turn::Gone,
            ended: true,
            ..look(80, 0, MS(0))
        });
        meter.finish(at(84), false);
        let seen = meter.delivery();
        let is_enforced = seen.grade_of_slots(two_of_eight) == Grade::Enforced;
        (seen.largest_gap_possible, is_enforced)
    };
    assert_eq!(ended([Turn::Wants; 8], None), (MS(72), false));
    // The machine stood still in all periods but the first.
    let halt = Some([17, 73]);
    assert_eq!(ended([Turn::Wants; 8], halt), (MS(8), true));
    // Nobody asked, or it could not tell: a contract on the gap is open, and what it was worth is as for who slept.
    assert_eq!(ended([Turn::No; 8], None), (MS(72), true));
    assert_eq!(ended([Turn::Asleep; 8], None), (MS(0), true));
    assert_eq!(ended([Turn::Ran; 8], None), (MS(0), true));
    // It woke a moment before the last look.
    let mut wakes = [Turn::Asleep; 8];
    wakes[7] = Turn::Wants;
    assert_eq!(ended(wakes, None), (MS(16), true));
    let mut stopped = [Turn::Wants; 8];
    stopped[7] = Turn::Stopped;
    assert_eq!(ended(stopped, None), (MS(0), true));
}

/// It woke when its slot was just over, and in the next it does the last that it has to do: it need not have waited for longer than was promised.
#[test]
fn who_ends_in_its_first_slot_after_it_was_seen_to_wait_leaves_slots_enforced() {
    let half = Reservation::new(Service::from_millis(50), MS(100)).unwrap();
    let is_enforced = |waits: u64| {
        let mut meter = Meter::new(half, Held::BySlots, Instant::ZERO);
        let seen = |n: u64, turn| Look {
            turn,
            ..look(100 * n, 0, MS(0))
        };
        meter.take(seen(1, Turn::Asleep));
        for n in 0..waits {
            meter.take(seen(2 + n, Turn::Wants));
        }
        meter.take(seen(2 + waits, Turn::Gone));
        meter.delivery().grade_of_slots(half) == Grade::Enforced
    };
    assert_eq!([1, 2].map(is_enforced), [true, false]);
}

/// A stranger stops who looks, and holds the processor meanwhile: several waits are not told from one.
#[test]
fn what_may_have_been_while_nobody_could_look_leaves_slots_uncertain() {
    let two_of_eight = Reservation::new(Service::from_millis(2), MS(8)).unwrap();
    let is_enforced = |unwatched, waited_ms, turn| {
        let mut meter = meter(Held::BySlots);
        meter.take(look(8, 2_000, MS(6)));
        meter.take(Look {
            unwatched,
            turn,
            ..look(80, 2_000, MS(waited_ms))
        });
        meter.finish(at(84), false);
        meter.delivery().grade_of_slots(two_of_eight) == Grade::Enforced
    };
    // Of two threads one may have waited while the other ran.
    let mut punctual = meter(Held::BySlots);
    punctual.take(Look {
        unwatched: true,
        several: true,
        ..look(11, 2_000, MS(40))
    });
    assert_eq!(punctual.delivery().largest_gap_unseen, MS(0));
    assert!(is_enforced(false, 54, Turn::Ran));
    assert!(!is_enforced(true, 54, Turn::Ran));
    assert!(is_enforced(true, 16, Turn::Ran));
    assert!(!is_enforced(true, 0, Turn::Gone));
    assert!(is_enforced(false, 0, Turn::Gone));
}
