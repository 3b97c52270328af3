//! That threads of laxity itself were stopped is no standstill of the machine.

use super::*;

#[test]
fn a_dispatcher_that_was_late_alone_was_stopped_and_the_machine_was_not() {
    let dispatcher = |from_ms, for_ms| Event {
        activity: DISPATCHER_ACTIVITY,
        ..late(EventKind::Disturbed, from_ms, for_ms)
    };
    let witness = |from_ms, for_ms| late(EventKind::Disturbed, from_ms, for_ms);
    let seen = Seen::default();
    let told = |events| {
        let found = found(&seen, events, true, Span::ZERO);
        (found.still, found.slots)
    };
    let stopped = "the dispatcher of processor 3 was stopped for 35ms, 7ms after the start";
    assert_eq!(told(vec![dispatcher(7, 35)]), (0, stopped.to_owned()));
    // The witness beside it saw the same, or could not have.
    let nothing = String::new();
    assert_eq!(
        told(vec![dispatcher(7, 35), witness(8, 34)]),
        (1, nothing.clone())
    );
    assert_eq!(told(vec![dispatcher(7, 2)]), (1, nothing));
    let twice = told(vec![dispatcher(7, 35), dispatcher(90, 85), witness(300, 5)]);
    assert_eq!(twice.0, 1);
    assert!(
        twice
            .1
            .ends_with("2 times, for 85ms at most, first 7ms after the start"),
        "{twice:?}"
    );
}

/// It waited for its processor, and the witness did not: whoever had it is below that one. Where the kernel does not tell that it waited, it may have been stopped.
#[test]
fn a_dispatcher_that_was_held_alone_was_not_stopped() {
    let held = Event {
        activity: DISPATCHER_ACTIVITY,
        ..late(EventKind::Held, 7, 35)
    };
    let told = |tells| found(&Seen::default(), vec![held], tells, Span::ZERO).slots;
    let kept = "kept from its processor";
    let by = "by somebody of its own rank, for 35ms, 7ms after the start";
    let dispatcher = "the dispatcher of processor 3 was";
    assert_eq!(told(true), format!("{dispatcher} {kept}, {by}"));
    assert_eq!(told(false), format!("{dispatcher} stopped, or {kept} {by}"));
}

#[test]
fn what_was_stopped_by_a_signal_is_no_standstill_of_the_machine() {
    // The dispatcher woke up late from the same stop, and does not know why.
    let of_dispatcher = Event {
        activity: DISPATCHER_ACTIVITY,
        ..late(EventKind::Held, 60, 389)
    };
    let events = vec![
        late(EventKind::Disturbed, 20, 5),
        late(EventKind::Stopped, 50, 399),
        of_dispatcher,
    ];
    let found = found(&Seen::default(), events, true, Span::ZERO);
    // One stop, though two have seen it.
    assert_eq!((found.still, found.doubts), (2, 1), "{found:?}");
    let once = "somebody stopped laxity itself: its threads of processor 3 stood still for 399ms, 50ms after the start";
    assert!(found.notices[0].contains("stopped laxity"), "{found:?}");
    assert_eq!([found.slots, found.deadline], [once, once]);
}
