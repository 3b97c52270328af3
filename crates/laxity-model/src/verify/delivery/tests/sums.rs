//! What is made of all periods together.

use super::*;

#[test]
fn what_several_holders_received_is_added_up_to_the_last_count() {
    let one = |n: u64| Delivery {
        service: Service::from_millis(n),
        most: Service::from_millis(n),
        largest_gap: MS(n),
        largest_gap_disturbed: MS(n + 1),
        largest_gap_least: MS(n.saturating_sub(1)),
        largest_gap_possible: MS(n + 2),
        largest_gap_unseen: MS(n + 3),
        periods: 100 * n,
        kept: 90 * n,
        exceeded: 4 * n,
        asleep: 60 * n,
        stopped: 13 * n,
        disturbed: 3 * n,
        short_disturbed: 2 * n,
        disturbed_by_stops: n,
        unseen: 7 * n,
        overruns: 5 * n,
        together: n,
        events_lost: 11 * n,
        halts_unseen: n == 3,
        halts: Halts {
            count: n,
            longest: MS(n),
            total: MS(n),
        },
        stops: Halts {
            count: 2 * n,
            longest: MS(n),
            total: MS(2 * n),
        },
    };
    let mut all = one(2);
    all.add(&one(3));
    let greatest = Delivery {
        service: Service::from_millis(5),
        ..one(3)
    };
    let added = Delivery {
        periods: 500,
        kept: 450,
        exceeded: 20,
        asleep: 300,
        stopped: 65,
        disturbed: 15,
        short_disturbed: 10,
        disturbed_by_stops: 5,
        unseen: 35,
        overruns: 25,
        events_lost: 55,
        ..greatest
    };
    assert_eq!(all, added);
}

#[test]
fn the_disturbed_share_is_one_of_all_periods() {
    let seen = Delivery {
        periods: 60,
        disturbed: 30,
        unseen: 10,
        events_lost: 4,
        ..Delivery::default()
    };
    let facts = seen.facts();
    assert_eq!([facts.disturbed_ppm, facts.unseen_ppm], [300_000, 100_000]);
    assert_eq!(facts.events_lost, 4);
}

#[test]
fn a_standstill_disturbs_no_stretch_but_its_own() {
    let mut meter = meter(Held::BySlots);
    meter.stood_still(still(at(9), at(10)));
    // Looks are not punctual: the two periods before the second of them begin with the standstill.
    meter.take(look(11, 2_000, MS(9)));
    meter.take(look(24, 4_000, MS(9)));
    let seen = meter.delivery();
    assert_eq!([seen.periods, seen.disturbed], [2, 1], "{seen:?}");
}

#[test]
fn looks_that_are_not_punctual_make_no_more_periods() {
    let mut meter = meter(Held::BySlots);
    for n in 0..50 {
        meter.take(look(16 * n + 13, 1_000, Span::ZERO));
        meter.take(look(16 * n + 16, 1_000, Span::ZERO));
    }
    let seen = meter.delivery();
    assert_eq!(seen.periods + seen.unseen, 100, "{seen:?}");
}

/// The witness of another processor saw the first of them too, and a dispatcher recorded the second once more.
#[test]
fn halts_of_the_machine_are_counted_with_the_longest_and_all_of_them() {
    let mut meter = meter(Held::BySlots);
    for (from, to) in [(1, 3), (2, 4), (9, 10), (9, 12), (20, 21)] {
        meter.stood_still(still(at(from), at(to)));
    }
    meter.take(look(24, 6_000, MS(6)));
    let seen = meter.delivery().halts;
    let found = (seen.count, seen.longest, seen.total);
    assert_eq!(found, (3, MS(3), MS(7)));
}

/// The first and the last fall into one another; what is excused is the same.
#[test]
fn stops_of_laxity_itself_are_no_halts_of_the_machine() {
    let mut meter = meter(Held::BySlots);
    for (from, to) in [(1, 3), (20, 21)] {
        meter.stood_still(still(at(from), at(to)));
    }
    for (from, to) in [(9, 11), (10, 12), (21, 22)] {
        meter.was_stopped(still(at(from), at(to)));
    }
    meter.take(look(32, 8_000, MS(6)));
    let seen = meter.delivery();
    let counted = [seen.halts, seen.stops].map(|halts| (halts.count, halts.longest, halts.total));
    assert_eq!(counted, [(2, MS(2), MS(3)), (2, MS(3), MS(4))]);
    let periods = [seen.periods, seen.disturbed, seen.disturbed_by_stops];
    assert_eq!(periods, [1, 3, 2], "{seen:?}");
}

#[test]
fn who_had_too_much_is_told_from_who_had_too_little() {
    let mut meter = meter(Held::Confined);
    for (number, service_us) in (1..).zip([2_000, 500, 2_500, 2_000, 8_000]) {
        let waited = Span::from_micros(8_000 - service_us);
        meter.take(look(8 * number, service_us, waited));
    }
    let seen = meter.delivery();
    assert_eq!([seen.periods, seen.kept, seen.exceeded], [5, 2, 2]);
}

/// Exact slots of 2 ms from the third of every 8 on, at which somebody looks late: what is seen of the next slot then is not missing from it, and is not too much.
#[test]
fn a_late_look_that_sees_some_of_the_next_slot_finds_no_excess() {
    let had = |us: u64| (us / 8_000) * 2_000 + (us % 8_000).saturating_sub(3_000).min(2_000);
    let looks = |service_us: &dyn Fn(u64) -> u64| {
        let mut meter = meter(Held::Confined);
        let (mut before, mut number) = (0, 0);
        while number < 1_000 {
            number += 1;
            // Late by up to 3.9 ms, in no order.
            let now = 8_000 * number + (number * 2_617) % 3_900;
            let service_us = service_us(now) - service_us(before);
            let waited = Span::from_micros((now - before).saturating_sub(service_us));
            meter.take(Look {
                at: Instant::from_micros(now),
                ..look(0, service_us, waited)
            });
            before = now;
        }
        meter.delivery().exceeded
    };
    assert_eq!(looks(&had), 0);
    assert!(looks(&|us| had(us) * 3 / 2) > 500, "half as much again");
}

/// Whoever sleeps most of the time is to be served when it does not.
#[test]
fn periods_that_were_slept_through_make_up_for_none_that_was_short() {
    let judged = |asleep| {
        let seen = Delivery {
            periods: 3_000,
            kept: 2_940,
            asleep,
            ..Delivery::default()
        };
        by_promise(&seen, Grade::Enforced).result
    };
    assert_eq!(judged(0), Outcome::Met);
    assert_eq!(judged(1), Outcome::Violated);
    assert_eq!(judged(2_940), Outcome::Violated);
}

/// Who looks was kept from it for 0.1 s of twenty: nobody knows whether that was one wait, or a dozen of what may be waited for in each period.
#[test]
fn a_gap_that_nobody_saw_leaves_a_contract_on_the_gap_open() {
    // What is known of the wait: of so many milliseconds until the late look, and, pending then, until the next one.
    let table = [
        (MS(85), None, [MS(6), MS(85)], Outcome::Inconclusive),
        (MS(7), None, [MS(6), MS(7)], Outcome::Met),
        // It was not seen to run until then: one wait.
        (MS(0), Some(MS(85)), [MS(85), MS(0)], Outcome::Violated),
        // Of more than there is between two looks the rest is.
        (MS(120), None, [MS(16), MS(120)], Outcome::Violated),
    ];
    for (waited, pending, [surely, perhaps], expected) in table {
        let mut meter = meter(Held::BySlots);
        for n in 1..=2_500 {
            let looked = look(8 * n, 2_000, MS(6));
            match n {
                500..512 => None,
                512 if pending.is_some() => meter.take(Look {
                    turn: Turn::No,
                    ..look(8 * n, 0, waited)
                }),
                512 => meter.take(look(8 * n, 19_000, waited)),
                513 => meter.take(look(8 * n, 2_000, pending.unwrap_or(MS(6)))),
                _ => meter.take(looked),
            };
        }
        let seen = meter.delivery();
        let gaps = [seen.largest_gap, seen.largest_gap_possible];
        assert_eq!(gaps, [surely, perhaps], "{waited} {pending:?}");
        let gap = Bound::AtMost(MS(10).as_nanos());
        let of_the_gap = Contract {
            limits: vec![Limit::new(Quantity::SERVICE_GAP, Statistic::Maximum, gap)],
            ..Contract::default()
        };
        assert_eq!(judged(&seen, &of_the_gap), expected, "{waited} {pending:?}");
    }
}

/// Of 2 ms in 8 by a kernel that looks at ticks of 4 ms, seen three periods at a time.
fn at_ticks() -> Meter {
    meter(Held::ByKernel).together(3).noticed_at(MS(4))
}

/// It has a tick of 4 ms, and then skips a period: in the long run that is what is reserved. Less of it is not.
#[test]
fn what_a_tick_gives_now_and_takes_back_then_is_as_reserved() {
    let kept = |each_ms: [u64; 4]| {
        let mut meter = at_ticks();
        for (number, service_ms) in (1..).zip(each_ms.iter().cycle().take(40)) {
            let waited = MS(24 - service_ms);
            meter.take(look(24 * number, service_ms * 1_000, waited));
        }
        let seen = meter.delivery();
        (seen.periods, seen.kept)
    };
    assert_eq!(kept([4, 8, 4, 8]), (40, 40));
    assert_eq!(kept([8, 4, 8, 4]), (40, 40));
    let (all, of_less) = kept([4, 6, 4, 6]);
    assert!(all == 40 && of_less < 30, "{of_less}");
    let (_, of_none) = kept([0, 0, 0, 0]);
    assert_eq!(of_none, 0);
    for more in [12, 10] {
        let (_, of_more) = kept([more; 4]);
        assert!(of_more <= 1, "{more}: {of_more}");
    }
}

/// What a tick explains it explains once: a job that is calm in between pays nothing back.
#[test]
fn what_is_owed_stays_so_while_nothing_is_asked_for() {
    let one_of_20 = Reservation::new(Service::from_millis(1), MS(20)).unwrap();
    let mut meter = Meter::new(one_of_20, Held::ByKernel, Instant::ZERO).noticed_at(MS(4));
    for n in 0..20 {
        let waited = Span::from_micros(79_700);
        meter.take(look(100 * n + 80, 300, waited));
        meter.take(look(100 * n + 100, 100, MS(0)));
    }
    let seen = meter.delivery();
    assert!(seen.periods - seen.kept >= 19 * 3, "{seen:?}");
}

/// Three waits of a stretch are known by their sum: it is no gap that convicts, and no gap that acquits.
#[test]
fn the_sum_of_several_waits_leaves_a_limit_of_one_open() {
    let outcome = |waited_ms: u64, at_most_ms: u64| {
        let mut meter = at_ticks();
        meter.take(look(24, 6_000, MS(waited_ms)));
        let limit = Limit::new(
            Quantity::SERVICE_GAP,
            Statistic::Maximum,
            Bound::AtMost(MS(at_most_ms).as_nanos()),
        );
        let contract = Contract {
            limits: vec![limit],
            ..Contract::default()
        };
        judged(&meter.delivery(), &contract)
    };
    assert_eq!(outcome(17, 18), Outcome::Met);
    assert_eq!(
        outcome(18, 18),
        Outcome::Inconclusive,
        "a wait is counted short"
    );
    assert_eq!(outcome(24, 18), Outcome::Inconclusive);
    assert_eq!(outcome(52, 18), Outcome::Violated, "28 at least");
}

/// Eight threads wake together and wait for one slot: each waits no longer than a reservation leaves to others, and all of them together do.
#[test]
fn threads_that_wait_for_one_slot_together_are_not_kept_from_it_longer() {
    let kept = |service_us, longest, sum| {
        let mut meter = meter(Held::BySlots);
        for number in 1..=10 {
            meter.take(Look {
                longest,
                several: true,
                ..look(8 * number, service_us, sum)
            });
        }
        let seen = meter.delivery();
        (seen.periods, seen.kept, seen.unseen)
    };
    assert_eq!(kept(400, MS(6), MS(45)), (10, 10, 0));
    assert_eq!(kept(400, MS(8), MS(60)), (10, 0, 0), "no slot came");
    // One waits from 3 to 11 while another runs from 4 to 8: it is told by the look at 16.
    let mut shared = meter(Held::BySlots);
    let several = |at_ms, service_us, longest| Look {
        several: true,
        longest,
        ..look(at_ms, service_us, longest)
    };
    shared.take(several(8, 4_000, MS(0)));
    shared.take(several(16, 400, MS(8)));
    assert_eq!(shared.delivery().kept, 1);
    assert_eq!(shared.delivery().unseen, 1);
    // Others had the processor in the slot, or nobody had it for a while.
    let between = Span::from_micros(6_400);
    assert_eq!(kept(400, between, MS(48)), (0, 0, 10));
    assert_eq!(
        kept(1_950, MS(8), MS(60)),
        (10, 10, 0),
        "all of it was used"
    );
}
