//! Telling any number of threads that something has changed, without a lock between them and whoever tells.

use std::sync::atomic::AtomicU32;

use laxity_model::Instant;
use laxity_model::base::bell::{self, Sleeping};

use crate::os::futex::{self, Woken};

/// Sleeps on a futex of this process: whoever wakes others makes one system call, and waits for nobody.
#[derive(Clone, Copy, Debug)]
pub struct Futex;

impl Sleeping for Futex {
    fn sleep(&self, word: &AtomicU32, seen: u32, until: Option<Instant>) -> bool {
        futex::wait(word, seen, until) == Woken::LookAgain
    }

    fn wake_all(&self, word: &AtomicU32) {
        futex::wake_all(word);
    }
}

/// The [bell](bell::Bell) of the threads of this process.
#[derive(Debug, Default)]
pub struct Bell(bell::Bell);

impl Bell {
    /// Something has changed. Never waits.
    pub fn ring(&self) {
        self.0.ring(&Futex);
    }

    /// Waits until `look` finds what is waited for, and looks again at each ring; `None` if `until` comes first.
    pub fn wait_for<T>(
        &self,
        until: Option<Instant>,
        look: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        self.0.wait_for(&Futex, until, look)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

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
