//! Traces for tests and benches; both are given this file by its path.

use laxity_lab::evidence::trace::{Trace, TraceActivity, TraceMark};
use laxity_model::{ActivityId, Event, EventKind, Instant, Mark, ProcessorId};

const CARD: u16 = 0;
const DRIVER: u16 = 1;
const COTHREAD: u16 = 2;
const SPINNER: u16 = 3;
/// The cycle's length in nanoseconds, and how far into it each event lies: a device interrupt, its driver in a slot, a periodic
/// thread, and a thread that takes what is left.
const CYCLE_NS: u64 = 12_500_000;

/// One cycle: offset in nanoseconds, kind, activity, first argument as an offset.
fn cycle() -> Vec<(u64, EventKind, u16, u64)> {
    use EventKind as K;
    let mut events = vec![
        (0, K::Preempt, SPINNER, 0),
        (0, K::InterruptEnter, CARD, 0),
        (4_000, K::Signal, CARD, 0),
        (5_400, K::InterruptExit, CARD, 0),
        (5_400, K::Wake, DRIVER, 4_000),
        (6_000, K::SlotBegin, DRIVER, 6_000),
        (9_000, K::Dispatch, DRIVER, 0),
        (1_840_000, K::Mark(Mark(0)), DRIVER, 12),
        (1_849_000, K::Block, DRIVER, 0),
        (2_006_000, K::SlotEnd, DRIVER, 2_006_000),
        (2_006_000, K::Dispatch, SPINNER, 0),
    ];
    for millisecond in 3..12 {
        let at = millisecond * 1_000_000;
        events.extend([
            (at, K::Wake, COTHREAD, at),
            (at, K::Preempt, SPINNER, 0),
            (at + 3_000, K::Dispatch, COTHREAD, 0),
            (at + 4_000, K::Mark(Mark(1)), COTHREAD, 0),
            (at + 13_000, K::Block, COTHREAD, 0),
            (at + 13_000, K::Dispatch, SPINNER, 0),
        ]);
    }
    events
}

/// A trace of exactly so many events of a modem-like load on one processor.
pub(crate) fn busy(events: usize) -> Trace {
    let cycle = cycle();
    let names = ["card", "driver", "co-thread", "spinner"];
    let activities = names.map(|name| TraceActivity {
        name: name.into(),
        processor: 0,
    });
    let marks = [("pending", true), ("tick", false)].map(|(name, is_level)| TraceMark {
        name: name.into(),
        is_level,
    });
    let events: Vec<_> = (0..events)
        .map(|i| {
            let start = (i / cycle.len()) as u64 * CYCLE_NS;
            let (offset, kind, activity, argument) = cycle[i % cycle.len()];
            let level = matches!(kind, EventKind::Mark(_) | EventKind::Signal);
            Event {
                at: Instant::from_nanos(start + offset),
                kind,
                processor: ProcessorId(0),
                activity: ActivityId(activity),
                args: [if level { argument } else { start + argument }, 0],
            }
        })
        .collect();
    Trace {
        name: "thread real-time".into(),
        processors: 1,
        activities: activities.into(),
        marks: marks.into(),
        start: Instant::ZERO,
        end: Instant::from_nanos((events.len() / cycle.len() + 1) as u64 * CYCLE_NS),
        events,
        events_lost: 0,
    }
}
