//! The dispatcher, driven through time by the tests.

use laxity_model::enforce::{Command, Count, Dispatcher, Look, Switching};
use laxity_model::policy::slots::{PlanCosts, Slot, SlotTable};
use laxity_model::{Instant, Service, Span};
use proptest::prelude::*;

const LEAD: Span = Span::from_micros(40);
const COMPENSATION: Span = Span::from_micros(11);
const ORIGIN: Instant = Instant::from_millis(100);

fn us(micros: u64) -> Span {
    Span::from_micros(micros)
}

fn slot(start_us: u64, length_us: u64, owner: usize) -> Slot {
    Slot {
        start: us(start_us),
        length: us(length_us),
        owner,
    }
}

/// 2 ms from the start of every 13 ms for 0, and 1 ms from 5 ms on for 1.
fn dispatcher() -> Dispatcher {
    let slots = vec![slot(0, 2_000, 0), slot(5_000, 1_000, 1)];
    let table = SlotTable::new(Span::from_millis(13), slots).unwrap();
    Dispatcher::new(table, ORIGIN, LEAD, COMPENSATION)
}

fn switch(from: Option<usize>, to: Option<usize>, edge: Instant) -> Command {
    Command::Switch { from, to, edge }
}

#[test]
fn it_wakes_early_spins_and_switches_ahead_of_the_edge() {
    let mut dispatcher = dispatcher();
    let now = Instant::from_millis(99);
    assert_eq!(dispatcher.poll(now), Command::SleepUntil(ORIGIN - LEAD));
    assert_eq!(
        dispatcher.poll(ORIGIN - LEAD),
        Command::SpinUntil(ORIGIN - COMPENSATION)
    );
    let ahead = ORIGIN - COMPENSATION;
    assert_eq!(dispatcher.poll(ahead), switch(None, Some(0), ORIGIN));
    // The end of a slot is neither led nor compensated: the owner is to have all of it.
    let end = ORIGIN + us(2_000);
    assert_eq!(dispatcher.poll(ahead), Command::SleepUntil(end));
    assert_eq!(dispatcher.poll(end - us(1)), Command::SleepUntil(end));
    assert_eq!(dispatcher.poll(end), switch(Some(0), None, end));
    let next = ORIGIN + us(5_000);
    assert_eq!(dispatcher.poll(end), Command::SleepUntil(next - LEAD));
    assert_eq!(dispatcher.poll(next), switch(None, Some(1), next));
}

#[test]
fn adjacent_slots_hand_over_directly() {
    let table = SlotTable::new(us(300), vec![slot(0, 100, 0), slot(100, 100, 1)]).unwrap();
    let mut dispatcher = Dispatcher::new(table, ORIGIN, LEAD, COMPENSATION);
    assert_eq!(dispatcher.poll(ORIGIN), switch(None, Some(0), ORIGIN));
    let edge = ORIGIN + us(100);
    assert_eq!(dispatcher.poll(ORIGIN), Command::SleepUntil(edge - LEAD));
    assert_eq!(
        dispatcher.poll(edge - LEAD),
        Command::SpinUntil(edge - COMPENSATION)
    );
    assert_eq!(
        dispatcher.poll(edge - COMPENSATION),
        switch(Some(0), Some(1), edge)
    );
}

#[test]
fn after_a_stall_it_skips_to_the_present() {
    let mut dispatcher = dispatcher();
    assert_eq!(dispatcher.poll(ORIGIN), switch(None, Some(0), ORIGIN));
    // 1000 cycles later, inside the slot of 1: no edge on the way is replayed.
    let cycle = Span::from_millis(13) * 1_000;
    let edge = ORIGIN + cycle + us(5_000);
    assert_eq!(
        dispatcher.poll(edge + us(300)),
        switch(Some(0), Some(1), edge)
    );
    assert_eq!(
        dispatcher.poll(edge + us(300)),
        Command::SleepUntil(edge + us(1_000))
    );
}

#[test]
fn a_stall_that_ends_in_a_later_slot_of_the_same_owner_changes_nothing() {
    let mut dispatcher = dispatcher();
    assert_eq!(dispatcher.poll(ORIGIN), switch(None, Some(0), ORIGIN));
    let cycle = ORIGIN + Span::from_millis(26);
    assert_eq!(
        dispatcher.poll(cycle + us(1)),
        Command::SleepUntil(cycle + us(2_000))
    );
}

#[test]
fn an_empty_table_only_sleeps() {
    let table = SlotTable::new(us(300), vec![]).unwrap();
    let mut dispatcher = Dispatcher::new(table, ORIGIN, LEAD, COMPENSATION);
    for now in [Instant::ZERO, ORIGIN, ORIGIN + us(299)] {
        assert!(matches!(dispatcher.poll(now), Command::SleepUntil(until) if until > now));
    }
}

#[test]
fn near_the_epoch_nothing_underflows() {
    let table = SlotTable::new(us(300), vec![slot(5, 100, 0)]).unwrap();
    let mut dispatcher = Dispatcher::new(table, Instant::ZERO, LEAD, COMPENSATION);
    let edge = Instant::ZERO + us(5);
    assert_eq!(dispatcher.poll(Instant::ZERO), switch(None, Some(0), edge));
}

/// Slots and pauses in microseconds, both longer than the compensation, pauses also zero.
fn tables() -> impl Strategy<Value = SlotTable> {
    let pause = prop_oneof![Just(0_u64), 60_u64..300];
    let pieces = prop::collection::vec((pause, 60_u64..400, 0_usize..3), 1..8);
    (pieces, 1_u64..300).prop_map(|(pieces, tail)| {
        let mut at = 0;
        let mut slots = Vec::new();
        for (pause, length, owner) in pieces {
            slots.push(slot(at + pause, length, owner));
            at += pause + length;
        }
        SlotTable::new(us(at + tail), slots).unwrap()
    })
}

proptest! {
    /// Whoever obeys, however late, gives the processor to whom the table names; and is told to wait for the future only.
    #[test]
    fn the_processor_follows_the_table(table in tables(), delays_us in prop::collection::vec(prop_oneof![Just(0_u64), 0_u64..50, 0_u64..5_000], 1..60)) {
        let mut dispatcher = Dispatcher::new(table.clone(), ORIGIN, LEAD, COMPENSATION);
        let mut now = ORIGIN - us(500);
        let mut holder = None;
        for delay in delays_us {
            let wait = match dispatcher.poll(now) {
                Command::Switch { from, to, edge } => {
                    prop_assert_eq!(from, holder);
                    prop_assert_ne!(from, to);
                    prop_assert!(edge <= now + COMPENSATION);
                    prop_assert!(to.is_some() || edge <= now, "a slot was cut short");
                    prop_assert!(edge < ORIGIN || table.at(ORIGIN, edge).owner == to);
                    holder = to;
                    continue;
                }
                Command::SleepUntil(until) | Command::SpinUntil(until) => until,
                Command::Look { owner } => unreachable!("nobody follows the slots of {owner}"),
            };
            // Nothing is left to switch: the holder is the table's, now or at the edge that is about to come.
            let by_table = |at: Instant| if at < ORIGIN { None } else { table.at(ORIGIN, at).owner };
            prop_assert!(holder == by_table(now) || holder == by_table(now + COMPENSATION));
            prop_assert!(wait > now, "told to wait for the past");
            now = wait + us(delay);
        }
    }
}

/// One slot of so many microseconds from the start of every cycle, on a machine where a switch takes 10 µs, 6 of them once the dispatcher is done, and
/// each way in and out 5.
fn following([length_us, cycle_us]: [u64; 2], leaving_us: i64) -> Dispatcher {
    let table = SlotTable::new(us(cycle_us), vec![slot(0, length_us, 0)]).unwrap();
    let measured = Switching {
        lead: us(30),
        entering: us(10),
        resuming: us(6),
        leaving_ns: leaving_us * 1_000,
        waking: us(12),
        unseen_each: us(5),
        ..Switching::default()
    };
    let costs = PlanCosts {
        per_slot: Service::from_micros(50),
        max_share_ppm: 940_000,
        other_ppm: 0,
        granularity: us(50),
    };
    Dispatcher::following(table, ORIGIN, 1, measured, costs)
}

fn count(received_us: u64, turns: u64) -> Count {
    Count {
        service: Service::from_micros(received_us),
        turns: Some(turns),
    }
}

/// Has the slot at `ORIGIN` entered.
fn enter(dispatcher: &mut Dispatcher) {
    let early = ORIGIN - us(20);
    assert_eq!(dispatcher.poll(early), Command::SpinUntil(ORIGIN - us(10)));
    let decided = ORIGIN - us(10);
    assert_eq!(dispatcher.poll(decided), switch(None, Some(0), ORIGIN));
    dispatcher.entered(ORIGIN, Some(count(0, 0)), ORIGIN - us(6));
}

/// Wakes it at the end of a slot, and has it look at what the holder received. Returns what it does then.
fn look(dispatcher: &mut Dispatcher, end: Instant, count: Count) -> Command {
    assert_eq!(dispatcher.poll(end), Command::Look { owner: 0 });
    let woke = end + us(12);
    let look = Look {
        count,
        woke,
        own: None,
    };
    dispatcher.looked(Some(&look), woke + us(2));
    dispatcher.poll(woke + us(2))
}

#[test]
fn a_slot_is_prolonged_until_its_holder_has_received_what_it_lacks() {
    let mut dispatcher = following([1_000, 10_000], 0);
    enter(&mut dispatcher);
    let end = ORIGIN + us(1_000);
    assert_eq!(dispatcher.poll(ORIGIN - us(6)), Command::SleepUntil(end));
    // 925 µs, of which two ways in and out are not its own: 85 are missing, and it runs again 6 µs from now.
    let until = end + us(14 + 6 + 85);
    let then = look(&mut dispatcher, end, count(925, 2));
    assert_eq!(then, Command::SleepUntil(until));
    let then = look(&mut dispatcher, until, count(1_015, 3));
    assert_eq!(then, switch(Some(0), None, end));
}

#[test]
fn nothing_is_made_up_in_the_time_in_which_the_next_slot_is_prepared() {
    let mut dispatcher = following([800, 900], 0);
    enter(&mut dispatcher);
    let end = ORIGIN + us(800);
    let then = look(&mut dispatcher, end, count(710, 1));
    assert_eq!(then, Command::SleepUntil(end + us(50)));
    let then = look(&mut dispatcher, end + us(50), count(745, 2));
    assert_eq!(then, switch(Some(0), None, end));
}

#[test]
fn where_timers_are_late_a_slot_ends_before_its_edge_and_once() {
    let mut dispatcher = following([1_000, 10_000], 20);
    enter(&mut dispatcher);
    let (end, next) = (ORIGIN + us(1_000), ORIGIN + us(10_000));
    let early = end - us(20);
    assert_eq!(dispatcher.poll(ORIGIN - us(6)), Command::SleepUntil(early));
    assert_eq!(
        dispatcher.poll(ORIGIN + us(300)),
        Command::SleepUntil(early)
    );
    let then = look(&mut dispatcher, early, count(1_005, 1));
    assert_eq!(then, switch(Some(0), None, end));
    for now in [early + us(15), end, end + us(40)] {
        let command = dispatcher.poll(now);
        assert!(
            matches!(command, Command::SleepUntil(until) if until >= end && until < next),
            "{command:?} at {now:?}"
        );
    }
}

#[test]
fn a_holder_that_was_not_there_is_not_made_up_for() {
    for received in [None, Some(count(0, 0)), Some(count(860, 1))] {
        let mut dispatcher = following([1_000, 10_000], 0);
        enter(&mut dispatcher);
        let end = ORIGIN + us(1_000);
        assert_eq!(dispatcher.poll(end), Command::Look { owner: 0 });
        let seen = received.map(|count| Look {
            count,
            woke: end,
            own: None,
        });
        dispatcher.looked(seen.as_ref(), end);
        assert_eq!(dispatcher.poll(end), switch(Some(0), None, end));
    }
}
