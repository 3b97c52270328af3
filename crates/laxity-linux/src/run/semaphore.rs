//! Counting semaphores on one word. Signalling takes no lock and waits for nobody, so a handler may signal an ordinary thread.

use std::convert::Infallible;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use laxity_model::Instant;

use crate::os::clock;
use crate::os::descriptor::Alarm;
use crate::os::futex;

/// Set in the word when the run has ended: nobody waits any more.
const CLOSED: u32 = 1 << 31;
/// No count grows past this.
const MOST: u32 = CLOSED - 1;

/// A counting semaphore.
#[derive(Debug)]
pub(crate) struct Semaphore {
    /// The count, and [`CLOSED`].
    word: AtomicU32,
    waiters: AtomicU32,
    /// When it was signalled last, in nanoseconds.
    signalled_ns: AtomicU64,
    /// The same of the last signal that found a count of zero.
    filled_ns: AtomicU64,
    /// The count never grows past this; further signals change nothing.
    most: u32,
    /// Of those who wait on descriptors too.
    alarm: OnceLock<Alarm>,
}

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taken {
    /// One was taken.
    One,
    /// Time was up.
    TimedOut,
    /// The run has ended.
    Closed,
}

impl Semaphore {
    pub(crate) fn new(count: u32) -> Self {
        Self::bounded(count, MOST)
    }

    /// One that counts no further than `most`.
    pub(crate) fn bounded(count: u32, most: u32) -> Self {
        let most = most.min(MOST);
        Self {
            most,
            alarm: OnceLock::new(),
            word: AtomicU32::new(count.min(most)),
            waiters: AtomicU32::new(0),
            signalled_ns: AtomicU64::new(0),
            filled_ns: AtomicU64::new(0),
        }
    }

    /// Adds one, and wakes a waiter: the one of highest priority, among equals the one that came first. `false` if the count is as large
    /// as it may be.
    pub(crate) fn signal(&self, now: Instant) -> bool {
        let now_ns = now.as_nanos();
        self.signalled_ns.store(now_ns, Ordering::Relaxed);
        // Before it can be taken; and after it, if what was there has been taken meanwhile.
        if self.count() == 0 {
            self.filled_ns.store(now_ns, Ordering::Relaxed);
        }
        let added = self
            .word
            .fetch_update(Ordering::SeqCst, Ordering::Relaxed, |word| {
                (word & MOST < self.most).then(|| word + 1)
            });
        if added.is_ok_and(|before| before & MOST == 0) {
            self.filled_ns.store(now_ns, Ordering::Relaxed);
        }
        // SeqCst on both words: either we see the waiter, or it sees the count before it sleeps.
        if added.is_ok() && self.waiters.load(Ordering::SeqCst) > 0 {
            futex::wake(&self.word, 1);
            if let Some(alarm) = self.alarm.get() {
                alarm.raise();
            }
        }
        added.is_ok()
    }

    /// How many can be taken. One load.
    pub(crate) fn count(&self) -> u32 {
        self.word.load(Ordering::SeqCst) & MOST
    }

    /// Whether nobody waits any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.word.load(Ordering::SeqCst) & CLOSED != 0
    }

    /// Takes one if there is one.
    pub(crate) fn try_take(&self) -> Option<Taken> {
        let taken = self
            .word
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |word| {
                (word & CLOSED == 0 && word > 0).then(|| word - 1)
            });
        match taken {
            Ok(_) => Some(Taken::One),
            Err(word) if word & CLOSED != 0 => Some(Taken::Closed),
            Err(_) => None,
        }
    }

    /// Waits until one can be taken, the instant comes, or the run ends.
    pub(crate) fn take(&self, until: Option<Instant>) -> Taken {
        if let Some(taken) = self.try_take() {
            return taken;
        }
        let wait = || {
            futex::wait(&self.word, 0, until);
            Ok::<_, Infallible>(())
        };
        let Ok(taken) = self.take_after(until, wait);
        taken
    }

    /// The same, where the waiter waits on descriptors too: `wait` returns when its alarm is raised, or else has found out itself.
    pub(crate) fn take_by(
        &self,
        until: Option<Instant>,
        mut wait: impl FnMut(&Alarm) -> io::Result<()>,
    ) -> io::Result<Taken> {
        let alarm = self.arm()?;
        if until.is_some_and(|until| clock::now() >= until) {
            // Who does not wait asks what can be read, too, and not only where there is nothing to take.
            wait(alarm)?;
            return Ok(self.try_take().unwrap_or(Taken::TimedOut));
        }
        self.take_after(until, || wait(alarm))
    }

    /// Whoever waits from now on can wait on descriptors too, for which there is a descriptor more.
    ///
    /// # Errors
    ///
    /// What the kernel says: no descriptors left.
    pub(crate) fn arm(&self) -> io::Result<&Alarm> {
        match self.alarm.get() {
            Some(alarm) => Ok(alarm),
            None => {
                let made = Alarm::new()?;
                Ok(self.alarm.get_or_init(|| made))
            }
        }
    }

    /// Waits as long as there is nothing to take, and the instant has not come.
    fn take_after<E>(
        &self,
        until: Option<Instant>,
        mut wait: impl FnMut() -> Result<(), E>,
    ) -> Result<Taken, E> {
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let taken = loop {
            if let Some(taken) = self.try_take() {
                break Ok(taken);
            }
            if let Err(error) = wait() {
                break Err(error);
            }
            if until.is_some_and(|until| clock::now() >= until) {
                break Ok(self.try_take().unwrap_or(Taken::TimedOut));
            }
        };
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        taken
    }

    /// When it was signalled last; the epoch if never.
    pub(crate) fn last_signal(&self) -> Instant {
        Instant::from_nanos(self.signalled_ns.load(Ordering::Relaxed))
    }

    /// When the signal came that found a count of zero, the last such one: it ended the wait of whoever waited. The epoch if there was none.
    pub(crate) fn filled(&self) -> Instant {
        Instant::from_nanos(self.filled_ns.load(Ordering::Relaxed))
    }

    /// Ends all waiting, now and in future.
    pub(crate) fn close(&self) {
        self.word.fetch_or(CLOSED, Ordering::SeqCst);
        futex::wake_all(&self.word);
        if let Some(alarm) = self.alarm.get() {
            alarm.raise();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_model::Span;
    use std::sync::Arc;

    #[test]
    fn counts_are_kept_and_taken() {
        let semaphore = Semaphore::new(1);
        semaphore.signal(clock::now());
        assert_eq!(semaphore.take(None), Taken::One);
        assert_eq!(semaphore.take(None), Taken::One);
        let until = clock::now() + Span::from_millis(1);
        assert_eq!(semaphore.take(Some(until)), Taken::TimedOut);
        assert!(clock::now() >= until);
    }

    #[test]
    fn who_waited_was_woken_by_the_first_signal_and_not_by_the_last() {
        let semaphore = Semaphore::new(0);
        let signals = [10, 11, 12].map(Instant::from_millis);
        semaphore.signal(signals[0]);
        semaphore.signal(signals[1]);
        assert_eq!(semaphore.filled(), signals[0]);
        assert_eq!(semaphore.last_signal(), signals[1]);
        assert_eq!([0, 1].map(|_| semaphore.take(None)), [Taken::One; 2]);
        semaphore.signal(signals[2]);
        assert_eq!(semaphore.filled(), signals[2]);
    }

    #[test]
    fn who_does_not_wait_looks_at_descriptors_though_there_is_one_to_take() {
        let semaphore = Semaphore::new(1);
        let mut looks = 0;
        let look = |_: &Alarm| {
            looks += 1;
            Ok(())
        };
        let taken = semaphore.take_by(Some(Instant::ZERO), look).unwrap();
        assert_eq!((taken, looks), (Taken::One, 1));
    }

    #[test]
    fn a_closed_semaphore_lets_nobody_wait() {
        let semaphore = Arc::new(Semaphore::new(0));
        let waiter = {
            let semaphore = Arc::clone(&semaphore);
            std::thread::spawn(move || semaphore.take(None))
        };
        semaphore.close();
        assert_eq!(waiter.join().unwrap(), Taken::Closed);
        assert_eq!(semaphore.take(None), Taken::Closed);
    }

    #[test]
    fn every_signal_is_taken_once_whoever_takes_it() {
        const SIGNALS: u64 = 20_000;
        let semaphore = Arc::new(Semaphore::new(0));
        let takers: Vec<_> = (0..3)
            .map(|_| {
                let semaphore = Arc::clone(&semaphore);
                std::thread::spawn(move || {
                    let mut taken = 0;
                    while semaphore.take(None) == Taken::One {
                        taken += 1;
                    }
                    taken
                })
            })
            .collect();
        for _ in 0..SIGNALS {
            semaphore.signal(clock::now());
        }
        while semaphore.word.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
        semaphore.close();
        let taken: u64 = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
        assert_eq!(taken, SIGNALS);
    }
}
