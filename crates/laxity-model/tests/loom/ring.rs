//! The event ring under every interleaving of its two threads that the memory model allows.

use laxity_model::base::ring;
use laxity_model::{ActivityId, Event, EventKind, Instant, ProcessorId};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering::Relaxed};
use loom::thread;

/// An event whose four words all tell its number, so that a torn or stale record shows.
fn event(number: u64) -> Event {
    Event {
        at: Instant::from_nanos(number + 1),
        kind: EventKind::Wake,
        processor: ProcessorId(0),
        activity: ActivityId(number as u16 + 1),
        args: [number + 1, !number],
    }
}

/// Lets the reader drain `drains` times while the writer emits `emitted` events, then once more after it has ended.
fn flood(capacity: usize, emitted: u64, drains: usize) {
    loom::model(move || {
        let (mut producer, mut consumer) = ring::channel(capacity);
        let writer = thread::spawn(move || {
            (0..emitted)
                .filter(|&number| producer.push(event(number)))
                .collect::<Vec<_>>()
        });
        let mut events = Vec::new();
        for _ in 0..drains {
            consumer.drain(&mut events);
        }
        let accepted = writer.join().unwrap();
        consumer.drain(&mut events);

        let expected: Vec<_> = accepted.into_iter().map(event).collect();
        assert_eq!(events, expected);
        assert_eq!(consumer.recorded() + consumer.lost(), emitted);
        assert_eq!(consumer.recorded(), events.len() as u64);
    });
}

#[test]
fn nothing_is_torn_reordered_or_lost_uncounted() {
    flood(1, 3, 2);
    flood(2, 4, 2);
}

/// The checker runs loads in program order, so it cannot show a read of a slot that moves behind the writer's reuse of it. What
/// forbids that move shows otherwise: whoever gets the only slot a second time sees all that the reader did before its drain.
#[test]
fn a_slot_is_reused_only_after_the_drain_that_freed_it() {
    loom::model(|| {
        let (mut producer, mut consumer) = ring::channel(1);
        assert!(producer.push(event(0)));
        let about_to_drain = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&about_to_drain);
        let writer = thread::spawn(move || {
            if producer.push(event(1)) {
                assert!(seen.load(Relaxed));
            }
        });
        about_to_drain.store(true, Relaxed);
        consumer.drain(&mut Vec::new());
        writer.join().unwrap();
    });
}
