//! How often a witness that looks for halts met one: what hides between its looks is as frequent.

use laxity_model::enforce::{DISPATCHER_ACTIVITY, WITNESS_ACTIVITY};
use laxity_model::{Event, EventKind, Whereabouts};

use super::halts::still;
use super::*;

/// Ten halts of a processor made as many gaps of another open.
#[test]
fn halts_of_one_processor_leave_open_nothing_that_ran_on_another() {
    let mut record = record(&[], 1_000);
    record.disturbances = (0..10)
        .map(|k| still(1, 1_000 + 20 * k, 1_010 + 20 * k))
        .collect();
    let met = |ran| Doubts::of([(&record, [ran])]).looks_ppm;
    assert_eq!(met(Whereabouts::On(ProcessorId(0))), 0);
    assert_eq!(met(Whereabouts::On(ProcessorId(1))), 10_000);
    assert_eq!(met(Whereabouts::Anywhere), 10_000);
    assert_eq!(met(Whereabouts::Outside), 0);
    // Nobody is on two of them: as many of another one make no more of it.
    let others = (0..10).map(|k| still(0, 1_005 + 20 * k, 1_015 + 20 * k));
    record.disturbances.extend(others);
    let met = Doubts::of([(&record, [Whereabouts::Anywhere])]).looks_ppm;
    assert_eq!(met, 10_000);
}

/// A dispatcher looks at other instants, and nobody counts how often.
#[test]
fn what_a_dispatcher_saw_alone_is_none_of_the_witnesss_looks() {
    let mut record = record(&[(100, 110), (200, 210), (300, 310)], 1_000);
    record.events = [
        (WITNESS_ACTIVITY, 100, 110),
        (DISPATCHER_ACTIVITY, 103, 110),
        (DISPATCHER_ACTIVITY, 200, 210),
    ]
    .map(|(activity, from, to)| Event {
        at: Instant::from_millis(to),
        kind: EventKind::Disturbed,
        processor: ProcessorId(0),
        activity,
        args: [from, to].map(|ms| Instant::from_millis(ms).as_nanos()),
    })
    .to_vec();
    // Of the third nobody says who saw it.
    let met = Doubts::of([(&record, [Whereabouts::Anywhere])]).looks_ppm;
    assert_eq!(met, 2_000);
}

/// One halt is one, however long, and ends with the run.
#[test]
fn a_long_halt_is_met_once_and_by_nobody_after_the_end() {
    let over_the_end = record(&[(2_970, 3_200), (3_300, 3_400)], 1_000);
    let looks_ppm = Doubts::of([(&over_the_end, [Whereabouts::Anywhere])]).looks_ppm;
    let disturbed_ppm = RunFacts::of([&over_the_end]).disturbed_ppm;
    assert_eq!((looks_ppm, disturbed_ppm), (1_000, 10_000));
}
