//! Telling any number of threads that something has changed, without a lock between them and whoever tells: the words, and who looks at which when. To sleep on a word is the host's.

use super::atomic::{AtomicU32, Ordering};
use crate::Instant;

/// What puts threads to sleep.
pub trait Sleeping {
    /// The caller sleeps while the word has this value, no longer than until then; it may wake for nothing. The value is compared after all that the caller has done before, and nobody who wakes the word after that is missed. `false` if time was up.
    fn sleep(&self, word: &AtomicU32, seen: u32, until: Option<Instant>) -> bool;

    /// All who sleep on the word wake.
    fn wake_all(&self, word: &AtomicU32);
}

impl<S: Sleeping> Sleeping for &S {
    fn sleep(&self, word: &AtomicU32, seen: u32, until: Option<Instant>) -> bool {
        (**self).sleep(word, seen, until)
    }

    fn wake_all(&self, word: &AtomicU32) {
        (**self).wake_all(word);
    }
}

/// A count that threads wait on. Ringing costs one addition where nobody waits.
#[derive(Debug, Default)]
pub struct Bell {
    rung: AtomicU32,
    waiters: AtomicU32,
}

impl Bell {
    /// Something has changed. Never waits.
    #[inline]
    pub fn ring(&self, host: &impl Sleeping) {
        // SeqCst on both words: either we see the waiter, or it sees the count before it sleeps.
        self.rung.fetch_add(1, Ordering::SeqCst);
        if self.waiters.load(Ordering::SeqCst) > 0 {
            host.wake_all(&self.rung);
        }
    }

    /// The same of what was changed by a sequentially consistent exchange, and is looked for by such a load: costs one load where nobody waits.
    #[inline]
    pub fn ring_after_exchange(&self, host: &impl Sleeping) {
        // Either we see the waiter, or it sees the change when it looks.
        if self.waiters.load(Ordering::SeqCst) > 0 {
            self.ring(host);
        }
    }

    /// Waits until `look` finds what is waited for, and looks again at each ring; `None` if `until` comes first.
    pub fn wait_for<T>(
        &self,
        host: &impl Sleeping,
        until: Option<Instant>,
        mut look: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        // For who need not wait nobody makes a system call.
        if let Some(found) = look() {
            return Some(found);
        }
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let found = loop {
            let seen = self.rung.load(Ordering::SeqCst);
            if let Some(found) = look() {
                break Some(found);
            }
            if !host.sleep(&self.rung, seen, until) {
                break look();
            }
        };
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        found
    }
}
