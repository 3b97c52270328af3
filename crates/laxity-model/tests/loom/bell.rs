//! The bell under every interleaving of who rings and who waits: whom a ring misses sleeps for ever, which the checker reports.
//!
//! It rests on exchanges and loads that are in one order for all threads (`SeqCst`). The checker keeps to that among such exchanges,
//! but lets a load find what a word began with at any time: so each word is exchanged before the threads begin.

use laxity_model::Instant;
use laxity_model::base::bell::{Bell, Sleeping};
use laxity_model::base::stack::Stack;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// A futex as the kernel has it: the value is compared under the lock that wakers take.
#[derive(Default)]
struct Futex {
    asleep: Mutex<()>,
    woken: Condvar,
}

impl Sleeping for Futex {
    fn sleep(&self, word: &AtomicU32, seen: u32, _: Option<Instant>) -> bool {
        let asleep = self.asleep.lock().unwrap();
        if word.load(Ordering::SeqCst) == seen {
            drop(self.woken.wait(asleep).unwrap());
        }
        true
    }

    fn wake_all(&self, _: &AtomicU32) {
        drop(self.asleep.lock().unwrap());
        self.woken.notify_all();
    }
}

/// A pool of one buffer, as those who wait for it, bring it home and close it share it.
struct Pool {
    free: Stack,
    closed: AtomicBool,
    bell: Bell,
    futex: Futex,
}

impl Pool {
    /// Whose buffer is in somebody's hands.
    fn new() -> Arc<Self> {
        let pool = Self {
            free: Stack::new(1).unwrap(),
            closed: AtomicBool::new(true),
            bell: Bell::default(),
            futex: Futex::default(),
        };
        pool.closed.store(false, Ordering::SeqCst);
        pool.home();
        pool.bell.ring(&pool.futex);
        let mut looks = 0;
        let second = || {
            looks += 1;
            (looks == 2).then(|| pool.free.pop())
        };
        assert_eq!(pool.bell.wait_for(&pool.futex, None, second), Some(Some(0)));
        Arc::new(pool)
    }

    fn home(&self) {
        self.free.push(0);
        self.bell.ring_after_exchange(&self.futex);
    }

    fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.bell.ring(&self.futex);
    }

    fn take(&self) -> Option<Result<u32, ()>> {
        if self.closed.load(Ordering::SeqCst) {
            return Some(Err(()));
        }
        self.free.pop().map(Ok)
    }

    fn wait(&self) -> Result<u32, ()> {
        let waited = self.bell.wait_for(&self.futex, None, || self.take());
        waited.unwrap()
    }
}

/// So many times at the most a thread is held up while it could go on: all take some 0.2 s of processor time so, and 5 s without that bound. Two
/// show each mistake that was put in.
const HELD_UP: usize = 4;

fn model(run: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(HELD_UP));
    model.check(run);
}

/// One thread does this while another waits; what it waited for.
fn beside(does: fn(&Pool), check: fn(Result<u32, ()>)) {
    model(move || {
        let pool = Pool::new();
        let other = Arc::clone(&pool);
        let ringer = thread::spawn(move || does(&other));
        check(pool.wait());
        ringer.join().unwrap();
    });
}

#[test]
fn whoever_waits_for_a_buffer_has_the_one_that_comes_home() {
    beside(Pool::home, |waited| assert_eq!(waited, Ok(0)));
}

/// The first ring may wake somebody who finds nothing, as it was taken again, and who sleeps once more: the second wakes it then.
#[test]
fn what_comes_home_and_is_taken_and_comes_home_is_not_missed() {
    let twice = |pool: &Pool| {
        pool.home();
        if pool.free.pop().is_some() {
            pool.home();
        }
    };
    beside(twice, |waited| assert_eq!(waited, Ok(0)));
}

#[test]
fn whoever_waits_for_a_buffer_sees_that_there_will_be_none() {
    beside(Pool::close, |waited| assert_eq!(waited, Err(())));
}

/// What is told need be no exchange, nor looked for by such a load: a ring is.
#[test]
fn whoever_waits_for_the_second_of_two_rings_is_woken() {
    model(|| {
        let pool = Pool::new();
        let told = Arc::new(AtomicU32::new(0));
        let (other, tells) = (Arc::clone(&pool), Arc::clone(&told));
        let ringer = thread::spawn(move || {
            for told in [1, 2] {
                tells.store(told, Ordering::Relaxed);
                other.bell.ring(&other.futex);
            }
        });
        let both = || (told.load(Ordering::Relaxed) == 2).then_some(());
        assert_eq!(pool.bell.wait_for(&pool.futex, None, both), Some(()));
        ringer.join().unwrap();
    });
}
