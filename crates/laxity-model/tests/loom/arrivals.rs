//! The queue of a live port under every interleaving of its threads that the memory model allows.

use laxity_model::Instant;
use laxity_model::base::arrivals::Arrivals;
use laxity_model::base::port::Arrival;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

/// An arrival whose words all tell its number, so that a torn or stale one shows.
fn arrival(number: u64) -> Arrival {
    Arrival {
        at: Instant::from_nanos(number),
        payload: [number + 7, !number],
    }
}

/// A queue with the counter of its permits, as a host has it.
struct Port {
    queue: Arrivals,
    permits: AtomicU64,
}

impl Port {
    fn new(capacity: u32) -> Arc<Self> {
        Arc::new(Self {
            queue: Arrivals::new(capacity),
            permits: AtomicU64::new(0),
        })
    }

    fn put(&self, number: u64) -> bool {
        let room = self.queue.put(arrival(number));
        if room {
            self.permits.fetch_add(1, Ordering::SeqCst);
        }
        room
    }

    fn take(&self) -> Option<u64> {
        let less = |permits: u64| permits.checked_sub(1);
        self.permits
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
            .ok()?;
        let taken = self.queue.take();
        let number = taken.at.as_nanos();
        assert_eq!(taken, arrival(number), "torn");
        Some(number)
    }
}

/// Two threads put, one takes meanwhile: nothing is torn, lost or doubled, and what one thread puts stays in order.
#[test]
fn what_two_put_one_takes_once_and_in_order() {
    loom::model(|| {
        let port = Port::new(2);
        let other = Arc::clone(&port);
        let putter = thread::spawn(move || [other.put(1), other.put(2)]);
        let mut taken: Vec<u64> = Vec::new();
        let third = port.put(3);
        taken.extend(port.take());
        let [first, second] = putter.join().unwrap();
        while let Some(number) = port.take() {
            taken.push(number);
        }
        let mut expected = Vec::new();
        for (number, room) in [(1, first), (2, second), (3, third)] {
            if room {
                expected.push(number);
            }
        }
        let position = |number| taken.iter().position(|taken| *taken == number);
        if let (Some(first), Some(second)) = (position(1), position(2)) {
            assert!(first < second, "{taken:?}");
        }
        let mut sorted = taken.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, expected);
    });
}

/// Two threads take: each arrival goes to one of them.
#[test]
fn what_one_puts_two_take_once() {
    loom::model(|| {
        let port = Port::new(2);
        assert!(port.put(1));
        let other = Arc::clone(&port);
        let taker = thread::spawn(move || other.take());
        let put = port.put(2);
        let own = port.take();
        let mut taken: Vec<u64> = taker.join().unwrap().into_iter().chain(own).collect();
        while let Some(number) = port.take() {
            taken.push(number);
        }
        taken.sort_unstable();
        assert!(put);
        assert_eq!(taken, [1, 2]);
    });
}

/// A slot is filled again only when whoever took from it has read it.
#[test]
fn the_only_slot_is_filled_again_after_it_was_read() {
    loom::model(|| {
        let port = Port::new(1);
        assert!(port.put(1));
        let other = Arc::clone(&port);
        let putter = thread::spawn(move || other.put(2));
        assert_eq!(port.take(), Some(1));
        let put = putter.join().unwrap();
        assert_eq!(port.take(), put.then_some(2));
    });
}
