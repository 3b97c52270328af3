//! A port's arrivals in the hands of many threads: a bounded queue without locks, in which nobody waits for anybody.
//!
//! Whoever puts claims a free slot, fills it, and shows it; whoever takes claims the shown slot that was claimed first. A thread that
//! is interrupted in the middle keeps its one slot, and nobody else from any other: an ordinary thread that is preempted while
//! it puts cannot hold up a handler that takes what others have put.
//!
//! Whoever takes must hold a permit: one for each arrival that was shown. The counter that hands them out is the host's, since waiting
//! for one is a system call.

use alloc::boxed::Box;

use super::atomic::{AtomicU64, Ordering};
use super::port::Arrival;
use crate::Instant;

/// Stages of a slot, which its owner alone changes, or whoever makes itself the owner: free → filling → shown → taking → free.
const FREE: u64 = 0;
const FILLING: u64 = 1;
const TAKING: u64 = 2;
/// From here on: shown, with this much more than the number of its arrival.
const SHOWN: u64 = 3;

/// One slot. Aligned, so that it never straddles two cache lines.
#[repr(align(32))]
struct Slot {
    stage: AtomicU64,
    at: AtomicU64,
    payload: [AtomicU64; 2],
}

/// The queue.
pub struct Arrivals {
    slots: Box<[Slot]>,
    /// The number of the next arrival.
    next: AtomicU64,
}

impl Arrivals {
    /// With room for so many.
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        let slot = |_| Slot {
            stage: AtomicU64::new(FREE),
            at: AtomicU64::new(0),
            payload: [AtomicU64::new(0), AtomicU64::new(0)],
        };
        Self {
            slots: (0..capacity).map(slot).collect(),
            next: AtomicU64::new(SHOWN),
        }
    }

    /// Puts an arrival; `false` if there is no room. After `true`, one more permit may be handed out. O(capacity).
    pub fn put(&self, arrival: Arrival) -> bool {
        let claimed = self.slots.iter().find(|slot| {
            let claim = |from, to| {
                // Acquire: whoever had the slot before has done with it.
                let stage = &slot.stage;
                stage.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed)
            };
            claim(FREE, FILLING).is_ok()
        });
        let Some(slot) = claimed else {
            return false;
        };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        slot.at.store(arrival.at.as_nanos(), Ordering::Relaxed);
        for (word, value) in slot.payload.iter().zip(arrival.payload) {
            word.store(value, Ordering::Relaxed);
        }
        // Release: whoever sees it shown sees what it holds.
        slot.stage.store(number, Ordering::Release);
        true
    }

    /// The slot that was claimed first among those shown, and its number. Acquire: a look after this one sees what was shown before that slot.
    fn oldest(&self) -> Option<(u64, &Slot)> {
        let shown = self.slots.iter().filter_map(|slot| {
            let stage = slot.stage.load(Ordering::Acquire);
            (stage >= SHOWN).then_some((stage, slot))
        });
        shown.min_by_key(|(stage, _)| *stage)
    }

    /// Takes the arrival whose slot was claimed first among those shown, for whoever holds a permit. O(capacity), and again whenever
    /// another one was faster.
    ///
    /// A permit is for an arrival that was shown before, and everybody who takes has one; so there is always one to be found, perhaps not
    /// in the first look, when others put and take meanwhile.
    pub fn take(&self) -> Arrival {
        loop {
            let Some((stage, slot)) = self.oldest() else {
                pause();
                continue;
            };
            // What its thread put before it may have been shown behind the look: then the next one sees that.
            if self.oldest().is_none_or(|(oldest, _)| oldest != stage) {
                continue;
            }
            // Acquire: what the slot holds is what was there when it was shown. No number is ever used twice.
            let claimed =
                slot.stage
                    .compare_exchange(stage, TAKING, Ordering::Acquire, Ordering::Relaxed);
            if claimed.is_err() {
                continue;
            }
            let [first, second] = &slot.payload;
            let arrival = Arrival {
                at: Instant::from_nanos(slot.at.load(Ordering::Relaxed)),
                payload: [
                    first.load(Ordering::Relaxed),
                    second.load(Ordering::Relaxed),
                ],
            };
            // Release: our reads are over before the slot is filled again.
            slot.stage.store(FREE, Ordering::Release);
            return arrival;
        }
    }
}

/// Somebody else changed the queue under our eyes.
#[allow(unexpected_cfgs)]
fn pause() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::port::{Port, PortKind};
    use proptest::prelude::*;

    proptest! {
        /// The oracle is the port of one owner.
        #[test]
        fn behaves_as_a_port_of_one_owner(
            capacity in 1..6_u32,
            puts in proptest::collection::vec(any::<bool>(), 0..80),
        ) {
            let queue = Arrivals::new(capacity);
            let mut port = Port::new(PortKind::Queue { capacity });
            for (number, put) in (0..).zip(puts) {
                if put {
                    let arrival = Arrival {
                        at: Instant::from_nanos(number),
                        payload: [number * 3, !number],
                    };
                    prop_assert_eq!(queue.put(arrival), port.put(arrival));
                } else if let Some(arrival) = port.take() {
                    prop_assert_eq!(queue.take(), arrival);
                }
            }
        }
    }
}
