//! A lock whose holder runs at the rank of the first who waits for it: priority inheritance, as the kernel's futexes have it.
//!
//! Without it an ordinary thread that holds a lock could be kept from the processor by those for whom a real-time thread does not wait
//! (Sha, Rajkumar, Lehoczky, "Priority Inheritance Protocols", IEEE Transactions on Computers 39(9), 1990, §II).

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{self, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use rustix::thread::futex::{Flags, lock_pi, unlock_pi};

use crate::os::sched::Tid;

const FREE: u32 = 0;
/// Where the kernel does not know the operation, who waits looks so often.
const LOOK_EVERY: Duration = Duration::from_micros(100);

/// A value that one thread at a time may use. Not to be locked twice by one thread. A panic of who holds it unlocks it.
#[derive(Debug)]
pub(crate) struct Inheriting<T> {
    /// The holder's thread number, with a flag of the kernel's while somebody waits.
    holder: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the lock hands the value to one thread at a time.
unsafe impl<T: Send> Sync for Inheriting<T> {}

impl<T> Inheriting<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            holder: AtomicU32::new(FREE),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits until nobody else holds it. No system call but for the thread's number where nobody does.
    pub(crate) fn lock(&self) -> Held<'_, T> {
        let own = Tid::current().0.cast_unsigned();
        let wait = || lock_pi(&self.holder, Flags::PRIVATE, None);
        while !(self.take(own) || operate(wait)) {
            // A holder that is about to end, or a kernel without the operation.
            thread::sleep(LOOK_EVERY);
        }
        Held {
            lock: self,
            own,
            _of_this_thread: PhantomData,
        }
    }

    fn take(&self, own: u32) -> bool {
        let taken = self
            .holder
            .compare_exchange(FREE, own, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok()
    }
}

/// The value, until this is dropped.
#[derive(Debug)]
pub(crate) struct Held<'a, T> {
    lock: &'a Inheriting<T>,
    own: u32,
    /// Only who locked can unlock.
    _of_this_thread: PhantomData<*const ()>,
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the lock is held by this thread until `self` is dropped.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and `self` is borrowed alone.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        let holder = &self.lock.holder;
        let alone = holder.compare_exchange(self.own, FREE, Ordering::Release, Ordering::Relaxed);
        if alone.is_err() {
            // The kernel set the flag, so it knows how to unlock too: it hands over to the waiter of the highest rank.
            operate(|| unlock_pi(holder, Flags::PRIVATE));
        }
    }
}

/// Has the kernel do it; whether it did.
fn operate(operation: impl FnOnce() -> rustix::io::Result<()>) -> bool {
    // What the kernel writes orders nothing by Rust's rules.
    atomic::fence(Ordering::SeqCst);
    let done = operation();
    atomic::fence(Ordering::SeqCst);
    done.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::rights::{self, Right};
    use crate::os::clock;
    use crate::os::proc::stat_of;
    use crate::os::sched::{self, Policy};
    use laxity_model::Span;

    /// The rank by which the kernel chooses a thread of this process now: below zero for a real-time one.
    fn rank(tid: Tid) -> i64 {
        stat_of(tid, 18).unwrap()
    }

    #[test]
    fn an_ordinary_holder_has_the_rank_of_a_real_time_thread_that_waits() {
        let Some(_live) = rights::require(&[Right::RealTime]) else {
            return;
        };
        let lock = Inheriting::new(());
        let own = Tid::current();
        let before = rank(own);
        assert!(before >= 0, "the test is an ordinary thread");
        let held = lock.lock();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                sched::set_policy(Tid::current(), Policy::Fifo(10)).unwrap();
                drop(lock.lock());
            });
            let latest = clock::now() + Span::from_secs(10);
            while rank(own) != -11 {
                assert!(clock::now() < latest, "nothing is inherited");
                thread::yield_now();
            }
            drop(held);
            waiter.join().unwrap();
        });
        assert_eq!(rank(own), before);
    }

    #[test]
    fn one_at_a_time_and_nobody_is_forgotten() {
        let lock = Inheriting::new((0_u32, 0_u32));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        let mut held = lock.lock();
                        // Others get a chance to come between.
                        let seen = held.0;
                        thread::yield_now();
                        held.0 = seen + 1;
                        held.1 += 1;
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), (8_000, 8_000));
    }

    #[test]
    fn a_panic_unlocks() {
        let lock = Inheriting::new(1);
        let panicked = thread::scope(|scope| {
            let holder = scope.spawn(|| {
                let _held = lock.lock();
                panic!("while it is held");
            });
            holder.join().is_err()
        });
        assert!(panicked);
        assert_eq!(*lock.lock(), 1);
    }
}
