//! Waiting on a word of memory: the one thing that threads of all priorities may share without a lock between them.
//!
//! A waiter with an absolute timeout wakes as punctually as `clock_nanosleep` (both are one high-resolution timer), and unlike
//! that it can also be woken early, which is how a run ends promptly.

use std::num::NonZeroU32;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use laxity_model::Instant;
use rustix::io::Errno;
use rustix::thread::futex::{Flags, lock_pi, unlock_pi, wait_bitset};

use crate::os::clock;
use crate::os::sched::Tid;

/// Why a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Woken {
    /// Somebody woke the waiter, the word no longer had the expected value, or a signal was handled: look again.
    LookAgain,
    /// The instant came.
    TimedOut,
}

/// Waits while `word` has the value `expected`, until `until` at the latest.
///
/// Allocates nothing and takes no lock of the process, so it may be called in a signal handler.
pub(crate) fn wait(word: &AtomicU32, expected: u32, until: Option<Instant>) -> Woken {
    wait_by(Flags::PRIVATE, word, expected, until)
}

/// The same on a word that processes share.
pub(crate) fn wait_among(word: &AtomicU32, expected: u32, until: Option<Instant>) -> Woken {
    wait_by(Flags::empty(), word, expected, until)
}

fn wait_by(flags: Flags, word: &AtomicU32, expected: u32, until: Option<Instant>) -> Woken {
    let timeout = until.map(clock::timespec);
    // With a bitset the timeout is absolute, on CLOCK_MONOTONIC.
    let ended = wait_bitset(word, flags, expected, timeout.as_ref(), NonZeroU32::MAX);
    if ended == Err(Errno::TIMEDOUT) {
        Woken::TimedOut
    } else {
        Woken::LookAgain
    }
}

/// Wakes at most so many waiters, the ones of highest real-time priority first, equals in the order they came.
pub(crate) fn wake(word: &AtomicU32, count: u32) {
    // A word that can be read cannot be a wrong one.
    let _ = rustix::thread::futex::wake(word, Flags::PRIVATE, count);
}

/// The same of a word that processes share.
pub(crate) fn wake_among(word: &AtomicU32, count: u32) {
    // A word that can be read cannot be a wrong one.
    let _ = rustix::thread::futex::wake(word, Flags::empty(), count);
}

/// Wakes every waiter.
pub(crate) fn wake_all(word: &AtomicU32) {
    wake(word, i32::MAX.unsigned_abs());
}

/// A turn that one thread has at a time. Whoever has it is as urgent as the most urgent who waits for it, so that nobody in between keeps that one waiting.
/// Free, it costs a system call (the thread's number, 0.1 µs).
#[derive(Debug, Default)]
pub(crate) struct Turn(AtomicU32);

/// The turn of the calling thread, until this is dropped.
#[derive(Debug)]
pub(crate) struct Taken<'a> {
    turn: &'a Turn,
    own: u32,
}

impl Turn {
    /// Waits until it is the calling thread's, which must not have it already.
    pub(crate) fn take(&self) -> Taken<'_> {
        let own = Tid::current().0.cast_unsigned();
        let free = self.0.compare_exchange(0, own, Acquire, Relaxed);
        let retry = |errno| errno == Errno::INTR || errno == Errno::AGAIN;
        // A kernel that refuses otherwise leaves the turn to whoever comes: what it is about has a lock of its own.
        while free.is_err() && lock_pi(&self.0, Flags::PRIVATE, None).is_err_and(retry) {}
        Taken { turn: self, own }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let word = &self.turn.0;
        let alone = word.compare_exchange(self.own, 0, Release, Relaxed);
        if alone.is_err() {
            // Somebody waits, of whom only the kernel knows.
            let _ = unlock_pi(word, Flags::PRIVATE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_model::Span;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_turn_is_one_thread_s_at_a_time() {
        let (turn, inside) = (Turn::default(), AtomicU32::new(0));
        let most = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let taken = turn.take();
                        let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                        most.fetch_max(now, Ordering::SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(taken);
                    }
                });
            }
        });
        assert_eq!(most.into_inner(), 1);
        assert_eq!(turn.0.into_inner(), 0, "it is free");
    }

    #[test]
    fn a_wait_ends_by_time_by_value_and_by_wake() {
        let word = Arc::new(AtomicU32::new(7));
        assert_eq!(wait(&word, 8, None), Woken::LookAgain);
        let until = clock::now() + Span::from_millis(2);
        while wait(&word, 7, Some(until)) != Woken::TimedOut {}
        assert!(clock::now() >= until);

        let other = Arc::clone(&word);
        let waker = std::thread::spawn(move || {
            other.store(9, Ordering::SeqCst);
            wake_all(&other);
        });
        while word.load(Ordering::SeqCst) == 7 {
            wait(&word, 7, None);
        }
        waker.join().expect("the waker does not panic");
    }
}
