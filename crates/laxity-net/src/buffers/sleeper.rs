//! What puts threads to sleep that wait for a buffer, a packet, or a frame to have left.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use laxity_model::Instant;
use laxity_model::base::bell::Sleeping;

use crate::lock;

/// The host's way to let threads sleep, shared by all who may.
#[derive(Clone)]
pub struct Sleeper(Arc<dyn Sleeping + Send + Sync>);

impl Sleeper {
    /// As this host does.
    pub fn new(host: impl Sleeping + Send + Sync + 'static) -> Self {
        Self(Arc::new(host))
    }

    /// By what the standard library has, on any machine; `clock` reads the clock of all instants. Whoever wakes others waits for a
    /// lock then, though not where nobody sleeps: real-time hosts have a better one.
    #[must_use]
    pub fn portable(clock: fn() -> Instant) -> Self {
        Self::new(Portable {
            asleep: Mutex::new(()),
            woken: Condvar::new(),
            clock,
        })
    }
}

impl fmt::Debug for Sleeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sleeper")
    }
}

impl Sleeping for Sleeper {
    fn sleep(&self, word: &AtomicU32, seen: u32, until: Option<Instant>) -> bool {
        self.0.sleep(word, seen, until)
    }

    fn wake_all(&self, word: &AtomicU32) {
        self.0.wake_all(word);
    }
}

struct Portable {
    asleep: Mutex<()>,
    woken: Condvar,
    clock: fn() -> Instant,
}

impl Sleeping for Portable {
    fn sleep(&self, word: &AtomicU32, seen: u32, until: Option<Instant>) -> bool {
        let asleep = lock(&self.asleep);
        // Under the lock: whoever changes the word wakes after this thread has begun to wait.
        if word.load(Ordering::SeqCst) != seen {
            return true;
        }
        let Some(until) = until else {
            drop(self.woken.wait(asleep));
            return true;
        };
        let left = until.saturating_since((self.clock)());
        if left.is_zero() {
            return false;
        }
        let left = Duration::from_nanos(left.as_nanos());
        drop(self.woken.wait_timeout(asleep, left));
        true
    }

    fn wake_all(&self, _: &AtomicU32) {
        drop(lock(&self.asleep));
        self.woken.notify_all();
    }
}
