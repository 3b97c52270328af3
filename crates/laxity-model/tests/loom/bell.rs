//! The bell under every interleaving of who rings and who waits.

use laxity_model::Instant;
use laxity_model::base::bell::{Bell, Sleeping};
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// Lets threads sleep as a futex does.
#[derive(Default)]
struct Host {
    asleep: Mutex<()>,
    woken: Condvar,
}

impl Sleeping for Host {
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

#[derive(Default)]
struct Things {
    bell: Bell,
    host: Host,
    there: AtomicU32,
}

/// Two ring once each, and who waits for both is woken by whichever comes last: else it sleeps for ever, which the model tells.
fn who_waits_misses_none_of(ring: fn(&Things)) {
    loom::model(move || {
        let things = Arc::new(Things::default());
        let ringers = [0, 1].map(|_| {
            let things = Arc::clone(&things);
            thread::spawn(move || {
                things.there.fetch_add(1, Ordering::SeqCst);
                ring(&things);
            })
        });
        let both = || (things.there.load(Ordering::SeqCst) == 2).then_some(());
        assert_eq!(things.bell.wait_for(&things.host, None, both), Some(()));
        ringers.map(|ringer| ringer.join().unwrap());
    });
}

#[test]
fn who_waits_misses_no_ring() {
    who_waits_misses_none_of(|things| things.bell.ring(&things.host));
}

#[test]
fn who_waits_misses_no_ring_after_an_exchange() {
    who_waits_misses_none_of(|things| things.bell.ring_after_exchange(&things.host));
}
