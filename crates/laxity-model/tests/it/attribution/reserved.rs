//! Victims with a reservation and time slots.

use super::*;

/// A victim with a reservation and time slots: `(begin, end)` of each, in which it runs if it has work; microseconds.
fn reserved(slots: &[(u64, u64)], release: u64, work: u64) -> Vec<Event> {
    let event = |at: u64, kind, args: [u64; 2]| Event {
        at: Instant::from_micros(at),
        kind,
        processor: ProcessorId(0),
        activity: ActivityId(VICTIM),
        args,
    };
    let mut events = vec![event(
        0,
        EventKind::ReservationBegin,
        [1_000_000, 8_000_000],
    )];
    let mut left = work;
    let mut begun = false;
    events.push(event(0, EventKind::Block, [0; 2]));
    events.push(event(release, EventKind::Wake, [release * 1_000, 0]));
    for (from, to) in slots {
        events.push(event(*from, EventKind::SlotBegin, [0; 2]));
        if *from >= release && left > 0 {
            events.push(event(*from, EventKind::Dispatch, [0; 2]));
            if !begun {
                events.push(event(*from, EventKind::Mark(BEGIN), [release * 1_000, 0]));
                begun = true;
            }
            let ran = left.min(to - from);
            left -= ran;
            if left == 0 {
                events.push(event(from + ran, EventKind::Mark(END), [0; 2]));
                events.push(event(from + ran, EventKind::Block, [0; 2]));
            } else {
                events.push(event(*to, EventKind::Preempt, [0; 2]));
            }
        }
        events.push(event(*to, EventKind::SlotEnd, [0; 2]));
    }
    events.sort_by_key(|event| event.at);
    events
}

/// Milliseconds in every eight.
fn in_eight(service_ms: u64) -> Reservation {
    let service = Service::from_millis(service_ms);
    Reservation::new(service, Span::from_millis(8)).expect("less than eight")
}

#[test]
fn a_change_is_held_against_a_job_only_from_when_it_holds() {
    let slots: Vec<_> = (1..6).map(|n| (n * 8_000, n * 8_000 + 1_000)).collect();
    for (holds_from_ms, told) in [(9, 3), (30, 1)] {
        let mut events = reserved(&slots, 9_500, 2_000);
        let change = |kind, args| Event {
            at: Instant::from_millis(9),
            kind,
            processor: ProcessorId(0),
            activity: ActivityId(VICTIM),
            args,
        };
        let asked = in_eight(3);
        let asked = [asked.service().as_nanos(), asked.period().as_nanos()];
        events.push(change(EventKind::ReservationChange, asked));
        let from = [holds_from_ms * 1_000_000, 0];
        events.push(change(EventKind::ReservationFrom, from));
        events.sort_by_key(|event| event.at);
        let findings = asked_of(&events);
        let Fault::Reservation { reserved, .. } = findings.late[0].fault else {
            panic!("{:?}", findings.late[0].fault);
        };
        assert_eq!(reserved, in_eight(told), "from {holds_from_ms} ms on");
    }
}

#[test]
fn too_small_a_reservation_is_not_the_fault_of_who_runs_beside_it() {
    let slots: Vec<_> = (1..6).map(|n| (n * 8_000, n * 8_000 + 1_000)).collect();
    let mut events = reserved(&slots, 9_500, 2_000);
    // A spinner has what is not reserved, as it may.
    for (from, to) in slots.windows(2).map(|pair| (pair[0].1, pair[1].0)) {
        for (at, kind) in [(from, EventKind::Dispatch), (to, EventKind::Preempt)] {
            events.push(Event {
                at: Instant::from_micros(at),
                kind,
                processor: ProcessorId(0),
                activity: ActivityId(1),
                args: [0; 2],
            });
        }
    }
    events.sort_by_key(|event| event.at);
    let findings = asked_of(&events);
    assert_eq!(findings.named, []);
    let Fault::Reservation {
        reserved,
        needed,
        in_slots,
    } = findings.late[0].fault
    else {
        panic!("{:?}", findings.late[0]);
    };
    assert_eq!(reserved.service(), Service::from_millis(1));
    assert_eq!(needed, Service::from_millis(2));
    assert_eq!(in_slots, Service::from_millis(1));
}
