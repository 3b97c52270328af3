//! Events of an application's own, or of one of its drivers: a ring a thread, one counter reading and one 32-byte record an event.

use laxity_model::base::ring::{self, Consumer, Producer};
use laxity_model::{ActivityId, Event, EventKind, Instant, Mark, ProcessorId};

use crate::os::clock::{self, Anchor};

/// The writing end, for one thread. Never blocks, never allocates, makes no system call where the clock source is the
/// processor's counter.
pub struct EventLog {
    ring: Producer,
    activity: ActivityId,
    processor: ProcessorId,
}

/// The reading end: turns counter readings into instants.
pub struct EventReader {
    ring: Consumer,
    anchor: Anchor,
}

impl EventLog {
    /// A log of at least `capacity` events of one activity, with its pages faulted in, and the end to read it from.
    #[must_use]
    pub fn new(
        capacity: usize,
        activity: ActivityId,
        processor: ProcessorId,
    ) -> (Self, EventReader) {
        let (mut producer, consumer) = ring::channel(capacity);
        producer.prefault();
        let log = Self {
            ring: producer,
            activity,
            processor,
        };
        let reader = EventReader {
            ring: consumer,
            anchor: Anchor::take(),
        };
        (log, reader)
    }

    /// Records an event of the application's own; `false` if the ring was full and it was only counted.
    #[inline]
    pub fn mark(&mut self, mark: Mark, args: [u64; 2]) -> bool {
        self.record(EventKind::Mark(mark), args)
    }

    /// The same of any kind.
    #[inline]
    pub fn record(&mut self, kind: EventKind, args: [u64; 2]) -> bool {
        self.ring.push(Event {
            // The counter's reading; the reader makes an instant of it.
            at: Instant::from_nanos(clock::ticks()),
            kind,
            processor: self.processor,
            activity: self.activity,
            args,
        })
    }

    /// How many events were lost so far.
    pub fn lost(&self) -> u64 {
        self.ring.lost()
    }
}

impl EventReader {
    /// Moves what was recorded since the last time to the end of `into`, oldest first; returns how many events that were.
    ///
    /// Instants are those of [`clock::now`], to well under a microsecond.
    pub fn drain(&mut self, into: &mut Vec<Event>) -> usize {
        let first = into.len();
        let count = self.ring.drain(into);
        // Taken after the ring was read: every drained event lies before it, between the two anchors.
        let later = Anchor::take();
        for event in &mut into[first..] {
            event.at = self.anchor.instant(&later, event.at.as_nanos());
        }
        self.anchor = later;
        count
    }

    /// How many events were lost so far; exact when the writer is done.
    pub fn lost(&self) -> u64 {
        self.ring.lost()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_in_order_at_their_instants() {
        let (mut log, mut reader) = EventLog::new(64, ActivityId(3), ProcessorId(1));
        let mut events = Vec::new();
        let mut between = Vec::new();
        for number in 0..6 {
            let before = clock::now();
            assert!(log.mark(Mark(2), [number, 0]));
            between.push((before, clock::now()));
            if number % 2 == 1 {
                clock::sleep_until(clock::now() + laxity_model::Span::from_millis(2));
                assert_eq!(reader.drain(&mut events), 2);
            }
        }
        let slack = laxity_model::Span::from_micros(5);
        for (event, (before, after)) in events.iter().zip(between) {
            assert!(event.at + slack >= before && event.at <= after + slack);
        }
        let numbers: Vec<u64> = events.iter().map(|event| event.args[0]).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_full_log_counts_what_it_loses() {
        let (mut log, mut reader) = EventLog::new(4, ActivityId(0), ProcessorId(0));
        let kept = (0..10).filter(|n| log.mark(Mark(0), [*n, 0])).count();
        assert_eq!((kept, log.lost(), reader.lost()), (4, 6, 6));
        assert_eq!(reader.drain(&mut Vec::new()), 4);
    }
}
