//! Telling any number of threads that something has changed, without a lock between them and whoever tells.

use std::sync::atomic::{AtomicU32, Ordering};

use laxity_model::Instant;

use crate::os::futex::{self, Woken};

/// A count that threads wait on. Ringing costs one addition where nobody waits.
#[derive(Debug, Default)]
pub struct Bell {
    rung: AtomicU32,
    waiters: AtomicU32,
}

impl Bell {
    /// Something has changed. Never waits.
    pub fn ring(&self) {
        // SeqCst on both words: either we see the waiter, or it sees the count before it sleeps.
        self.rung.fetch_add(1, Ordering::SeqCst);
        if self.waiters.load(Ordering::SeqCst) > 0 {
            futex::wake_all(&self.rung);
        }
    }

    /// Waits until `look` finds what is waited for, and looks again at each ring; `None` if `until` comes first.
    pub fn wait_for<T>(
        &self,
        until: Option<Instant>,
        mut look: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let found = loop {
            let seen = self.rung.load(Ordering::SeqCst);
            if let Some(found) = look() {
                break Some(found);
            }
            if futex::wait(&self.rung, seen, until) == Woken::TimedOut {
                break look();
            }
        };
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        found
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::os::clock;

    #[test]
    fn whoever_waits_sees_what_was_told_before_the_ring() {
        let (bell, there) = (Bell::default(), AtomicBool::new(false));
        let is_there = || there.load(Ordering::SeqCst).then_some(7);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| bell.wait_for(None, is_there));
            there.store(true, Ordering::SeqCst);
            bell.ring();
            assert_eq!(waiter.join().unwrap(), Some(7));
        });
        let past = clock::now();
        assert_eq!(bell.wait_for(Some(past), || None::<u32>), None);
    }
}
