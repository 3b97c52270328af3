//! What waits when a run ends.

use super::*;

/// What came while the last job was at work is a miss, and nobody waits for it: what waits at the end is what is called after it.
#[test]
fn a_release_that_came_to_nothing_does_not_wait_at_the_end() {
    let events = vec![
        event(10, EventKind::Mark(RUNS), [10, 10]),
        event(25, Block, [0, 0]),
    ];
    let seen = |on_overrun, end_ms| {
        let probe = PeriodicProbe {
            on_overrun,
            ..probe()
        };
        let record = record(events.clone(), end_ms);
        let quantities = [
            Quantity::RESPONSE_TIME,
            Quantity::WAKEUP_LATENCY,
            Quantity::SERVICE_GAP,
            Quantity::DEADLINE_MISSES,
            Quantity::RELEASES_MISSED,
        ];
        quantities.map(|quantity| values_of(&probe, &record, quantity))
    };
    let (one, two) = (vec![1, 1], vec![0, 1]);
    for end_ms in [27, 30] {
        let gone = [vec![15], vec![0], vec![10], one.clone(), two.clone()];
        assert_eq!(seen(OnOverrun::SKIP, end_ms), gone, "{end_ms}");
    }
    let next = [vec![15], vec![0, 5], vec![5, 10], one.clone(), two.clone()];
    assert_eq!(seen(OnOverrun::SKIP, 35), next);
    // That at 20 ms is made up for: it is what waits.
    let late = [vec![15, 15], vec![0, 15], vec![10, 15], one, two];
    assert_eq!(seen(OnOverrun::ONCE_LATE, 35), late);
}

/// After as many late jobs in a row as are to be, what came meanwhile is gone.
#[test]
fn after_its_late_jobs_nothing_late_waits_at_the_end() {
    let events = vec![
        event(10, EventKind::Mark(RUNS), [10, 10]),
        event(25, Block, [0, 0]),
        event(25, EventKind::Mark(RUNS), [20, 25]),
        event(45, Block, [0, 0]),
    ];
    let probe = PeriodicProbe {
        on_overrun: OnOverrun::ONCE_LATE,
        ..probe()
    };
    let record = record(events, 55);
    let seen = |quantity| values_of(&probe, &record, quantity);
    assert_eq!(seen(Quantity::RESPONSE_TIME), [15, 25]);
    // Those at 30 and 40 ms.
    assert_eq!(seen(Quantity::RELEASES_MISSED), [0, 0, 1, 1]);
}

/// Whoever is suspended or ends at an overrun waits for nothing any more: what would have been released is missed.
#[test]
fn nothing_waits_at_the_end_of_who_stopped_at_an_overrun() {
    let begun = event(10, EventKind::Mark(RUNS), [10, 10]);
    let stops = [
        (OnOverrun::Suspend, Block),
        (OnOverrun::End, EventKind::Finish),
    ];
    for (on_overrun, over) in stops {
        let probe = PeriodicProbe {
            on_overrun,
            may_stop: true,
            ..probe()
        };
        let record = record(vec![begun, event(25, over, [0, 0])], 55);
        let seen = |quantity| values_of(&probe, &record, quantity);
        assert_eq!(seen(Quantity::JOBS_DONE), [1]);
        assert_eq!(seen(Quantity::RESPONSE_TIME), [15]);
        assert_eq!(seen(Quantity::WAKEUP_LATENCY), [0]);
        assert_eq!(seen(Quantity::SERVICE_GAP), [10]);
        // Those at 20, 30 and 40 ms; that at 50 was not due before the end.
        assert_eq!(seen(Quantity::RELEASES_MISSED), [0, 1, 1, 1]);
        // A successor of it is not released either.
        let successor = PeriodicProbe {
            is_successor: true,
            on_overrun: OnOverrun::SKIP,
            ..probe
        };
        let seen = |quantity| values_of(&successor, &record, quantity);
        assert_eq!(seen(Quantity::RESPONSE_TIME), [15]);
        assert_eq!(seen(Quantity::RELEASES_MISSED), [0, 1, 1, 1]);
    }
    // One that did not overrun is released as ever.
    let probe = PeriodicProbe {
        on_overrun: OnOverrun::Suspend,
        may_stop: true,
        ..probe()
    };
    let record = record(vec![begun, event(15, Block, [0, 0])], 35);
    assert_eq!(values_of(&probe, &record, Quantity::RESPONSE_TIME), [5, 15]);
}

/// What was passed over before the job that the end finds waiting was missed, as it is where that begins.
#[test]
fn what_was_passed_over_before_a_job_that_waits_at_the_end_is_missed() {
    let events = vec![
        event(10, EventKind::Mark(RUNS), [10, 10]),
        event(25, Block, [0, 0]),
        event(30, Wake, [30, 0]),
    ];
    let record = record(events, 35);
    assert_eq!(values(&record, Quantity::RELEASES_MISSED), [0, 1]);
    assert_eq!(values(&record, Quantity::DEADLINE_MISSES), [1, 1]);
}

/// Of a job that no event ends it may be that the event was lost.
#[test]
fn where_events_were_lost_nothing_is_told_of_what_the_end_finds() {
    let events = vec![
        event(10, EventKind::Mark(RUNS), [10, 10]),
        event(12, Block, [0, 0]),
        event(20, EventKind::Mark(RUNS), [20, 20]),
    ];
    let of = |events_lost| {
        let record = RunRecord {
            events_lost,
            ..record(events.clone(), 500)
        };
        let quantities = [Quantity::RESPONSE_TIME, Quantity::DEADLINE_MISSES];
        quantities.map(|quantity| values(&record, quantity).len())
    };
    assert_eq!(of(0), [2, 48]);
    assert_eq!(of(7), [1, 1]);
}
