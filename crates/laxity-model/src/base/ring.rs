//! Where events are kept while they are recorded: a ring of 32-byte records between one writer and one reader.
//!
//! The writer is the thread that is being watched, so its side must not disturb what it measures: [`Producer::push`] is wait-free,
//! allocates nothing, makes no system call, and touches no cache line that the reader writes unless the ring looks full. A full
//! ring drops the newest event and counts it. Nothing is ever lost silently: *recorded + lost = emitted*.
//!
//! ```
//! use laxity_model::base::ring;
//! use laxity_model::{ActivityId, Event, EventKind, Instant, Mark, ProcessorId};
//!
//! let (mut producer, mut consumer) = ring::channel(1024);
//! producer.prefault();
//! producer.push(Event {
//!     at: Instant::from_micros(5),
//!     kind: EventKind::Mark(Mark(0)),
//!     processor: ProcessorId(0),
//!     activity: ActivityId(0),
//!     args: [42, 0],
//! });
//! let mut events = Vec::new();
//! assert_eq!(consumer.drain(&mut events), 1);
//! assert_eq!((consumer.recorded(), consumer.lost()), (1, 0));
//! ```

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::atomic::{AtomicU64, Ordering};
use crate::Event;

/// The smallest page that Linux uses on the supported machines, in bytes.
const SMALLEST_PAGE_BYTES: usize = 4096;

/// One record. Aligned to its size, so that it never straddles two cache lines.
#[repr(align(32))]
struct Slot([AtomicU64; 4]);

impl Slot {
    fn empty() -> Self {
        Self([(); 4].map(|()| AtomicU64::new(0)))
    }

    #[inline]
    fn store(&self, words: [u64; 4]) {
        for (cell, word) in self.0.iter().zip(words) {
            cell.store(word, Ordering::Relaxed);
        }
    }

    fn load(&self) -> [u64; 4] {
        [0, 1, 2, 3].map(|i: usize| self.0[i].load(Ordering::Relaxed))
    }
}

/// What only the writer writes. Two cache lines, since processors fetch them in pairs.
#[repr(align(128))]
struct WriterSide {
    /// How many events were recorded since the beginning; the last one's slot follows from it.
    head: AtomicU64,
    /// How many found the ring full.
    lost: AtomicU64,
}

/// What only the reader writes.
#[repr(align(128))]
struct ReaderSide {
    /// How many events were taken out since the beginning.
    tail: AtomicU64,
}

struct Indices {
    writer: WriterSide,
    reader: ReaderSide,
}

/// The writing end: one a thread, moved there before it starts.
pub struct Producer {
    slots: Arc<[Slot]>,
    indices: Arc<Indices>,
    head: u64,
    lost: u64,
    /// The reader's index when it was last looked at; it can only have grown since.
    tail_seen: u64,
}

/// The reading end.
pub struct Consumer {
    slots: Arc<[Slot]>,
    indices: Arc<Indices>,
    tail: u64,
}

/// A ring for at least `capacity` events, rounded up to a power of two; it takes 32 bytes an event, all allocated here.
///
/// # Panics
///
/// Where that power of two cannot be represented.
pub fn channel(capacity: usize) -> (Producer, Consumer) {
    let slots: Arc<[Slot]> = (0..capacity.next_power_of_two())
        .map(|_| Slot::empty())
        .collect();
    let indices = Arc::new(Indices {
        writer: WriterSide {
            head: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        },
        reader: ReaderSide {
            tail: AtomicU64::new(0),
        },
    });
    let producer = Producer {
        slots: Arc::clone(&slots),
        indices: Arc::clone(&indices),
        head: 0,
        lost: 0,
        tail_seen: 0,
    };
    let consumer = Consumer {
        slots,
        indices,
        tail: 0,
    };
    (producer, consumer)
}

/// The slot of the `index`-th event; `None` cannot happen, but the compiler need not know.
#[inline]
fn slot(slots: &[Slot], index: u64) -> Option<&Slot> {
    slots.get(index as usize & slots.len().wrapping_sub(1))
}

impl Producer {
    /// Records the event, or counts it as lost if the ring is full; tells which. A few nanoseconds, whatever the reader does.
    #[inline]
    pub fn push(&mut self, event: Event) -> bool {
        // Counters of events do not overflow in a machine's life; the wrapping forms only spare the check.
        if self.head.wrapping_sub(self.tail_seen) >= self.slots.len() as u64 && !self.has_room() {
            return false;
        }
        let Some(slot) = slot(&self.slots, self.head) else {
            return false;
        };
        slot.store(event.to_words());
        self.head = self.head.wrapping_add(1);
        // Release: whoever sees the new head sees the four words too.
        self.indices.writer.head.store(self.head, Ordering::Release);
        true
    }

    /// Looks at the reader's index afresh; counts a loss if there is still no room.
    #[cold]
    fn has_room(&mut self) -> bool {
        // Acquire: the reader has finished with every slot below its index before we write there again.
        self.tail_seen = self.indices.reader.tail.load(Ordering::Acquire);
        let room = self.head.wrapping_sub(self.tail_seen) < self.slots.len() as u64;
        if !room {
            self.lost = self.lost.wrapping_add(1);
            self.indices.writer.lost.store(self.lost, Ordering::Relaxed);
        }
        room
    }

    /// Writes to every page of the ring, so that no later push takes a page fault. Keeps what is recorded.
    ///
    /// Call it on the thread that will push, after its memory was locked.
    pub fn prefault(&mut self) {
        for slot in self
            .slots
            .iter()
            .step_by(SMALLEST_PAGE_BYTES / size_of::<Slot>())
        {
            // The reader never writes a slot, so writing back what is there races with nobody.
            slot.0[0].store(slot.0[0].load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// How many events the ring holds at most.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// How many events were recorded so far.
    pub fn recorded(&self) -> u64 {
        self.head
    }

    /// How many found the ring full so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

impl Consumer {
    /// Moves what is recorded to the end of `into`, oldest first, and returns how many events that were.
    pub fn drain(&mut self, into: &mut Vec<Event>) -> usize {
        let head = self.indices.writer.head.load(Ordering::Acquire);
        let before = into.len();
        into.reserve(head.wrapping_sub(self.tail) as usize);
        // A producer stores events only, so every record decodes.
        into.extend(
            (self.tail..head).filter_map(|i| Event::from_words(slot(&self.slots, i)?.load())),
        );
        self.tail = head;
        // Release: our reads of the slots are over before the writer may use them again.
        self.indices.reader.tail.store(head, Ordering::Release);
        into.len() - before
    }

    /// How many events were recorded so far, drained or not.
    pub fn recorded(&self) -> u64 {
        self.indices.writer.head.load(Ordering::Acquire)
    }

    /// How many found the ring full so far: exact once the writing thread has been joined, a lower bound before.
    pub fn lost(&self) -> u64 {
        self.indices.writer.lost.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ActivityId, EventKind, Instant, Mark, ProcessorId};
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    fn event(number: u64) -> Event {
        Event {
            at: Instant::from_nanos(number),
            kind: EventKind::Mark(Mark(number as u16 & 0x7fff)),
            processor: ProcessorId(1),
            activity: ActivityId(2),
            args: [!number, number << 7],
        }
    }

    #[derive(Clone, Copy, Debug)]
    enum Op {
        Push(u8),
        Drain,
        Prefault,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => (1..12u8).prop_map(Op::Push),
            2 => Just(Op::Drain),
            1 => Just(Op::Prefault),
        ]
    }

    proptest! {
        /// The oracle is a bounded queue that refuses what does not fit.
        #[test]
        fn behaves_as_a_bounded_queue(
            capacity in 1..20usize,
            ops in proptest::collection::vec(op(), 0..60),
        ) {
            let (mut producer, mut consumer) = channel(capacity);
            prop_assert_eq!(producer.capacity(), capacity.next_power_of_two());
            let (mut queue, mut emitted, mut lost) = (VecDeque::new(), 0, 0);
            let (mut drained, mut expected) = (Vec::new(), Vec::new());
            for op in ops {
                match op {
                    Op::Push(n) => for _ in 0..n {
                        let fits = queue.len() < producer.capacity();
                        prop_assert_eq!(producer.push(event(emitted)), fits);
                        if fits { queue.push_back(event(emitted)) } else { lost += 1 }
                        emitted += 1;
                    },
                    Op::Drain => {
                        prop_assert_eq!(consumer.drain(&mut drained), queue.len());
                        expected.extend(queue.drain(..));
                    }
                    Op::Prefault => producer.prefault(),
                }
                prop_assert_eq!(&drained, &expected);
                prop_assert_eq!(consumer.lost(), lost);
                prop_assert_eq!(producer.lost(), lost);
                prop_assert_eq!(consumer.recorded(), producer.recorded());
                prop_assert_eq!(consumer.recorded() + consumer.lost(), emitted);
            }
        }
    }

    #[test]
    fn a_flood_from_another_thread_is_recorded_or_counted() {
        extern crate std;
        const EMITTED: u64 = 200_000;
        let (mut producer, mut consumer) = channel(64);
        let writer = std::thread::spawn(move || {
            for number in 0..EMITTED {
                producer.push(event(number));
            }
        });
        let mut events = Vec::new();
        while !writer.is_finished() {
            consumer.drain(&mut events);
            std::thread::yield_now();
        }
        writer.join().unwrap();
        consumer.drain(&mut events);
        assert_eq!(events.len() as u64 + consumer.lost(), EMITTED);
        assert!(events.windows(2).all(|pair| pair[0].at < pair[1].at));
        assert!(events.iter().all(|e| *e == event(e.at.as_nanos())));
    }

    #[test]
    fn a_record_is_32_bytes_and_keeps_to_its_cache_line() {
        assert_eq!((size_of::<Slot>(), align_of::<Slot>()), (32, 32));
    }
}
