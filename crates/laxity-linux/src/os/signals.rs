//! SIGINT and SIGTERM while a run is under way: noted and announced, so that everything can be restored before the program ends.

use std::mem::{self, MaybeUninit};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use laxity_model::Instant;

use crate::os::futex;

/// Rung whenever something happened that a supervising thread should look at. One for the process: a ring too many is harmless.
static DOORBELL: AtomicU32 = AtomicU32::new(0);
/// The signal that came, 0 for none.
static CAUGHT: AtomicI32 = AtomicI32::new(0);
/// The handlers from before, while at least one [`Watch`] lives.
static WATCHES: Mutex<Watches> = Mutex::new(Watches {
    count: 0,
    before: None,
});

const SIGNALS: [(libc::c_int, &str); 2] = [(libc::SIGINT, "SIGINT"), (libc::SIGTERM, "SIGTERM")];

struct Watches {
    count: usize,
    before: Option<[libc::sigaction; 2]>,
}

/// Wakes every supervising thread. May be called in a signal handler.
pub fn ring() {
    DOORBELL.fetch_add(1, Ordering::SeqCst);
    futex::wake_all(&DOORBELL);
}

/// The doorbell's number; a [`wait`] with it returns at once if it has rung since.
#[must_use]
pub(crate) fn doorbell() -> u32 {
    DOORBELL.load(Ordering::SeqCst)
}

/// Waits for the doorbell, no longer than until the instant.
pub fn wait(seen: u32, until: Option<Instant>) {
    futex::wait(&DOORBELL, seen, until);
}

extern "C" fn note(signal: libc::c_int) {
    CAUGHT.store(signal, Ordering::SeqCst);
    ring();
}

/// Installs a handler and returns what was there. The handler must be async-signal-safe.
pub(crate) fn install(
    signal: libc::c_int,
    handler: extern "C" fn(libc::c_int),
) -> Option<libc::sigaction> {
    // SAFETY: all-zero bytes are a valid sigaction: no handler, no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    let mut before = MaybeUninit::uninit();
    // SAFETY: both point to sigactions; the handler only touches atomics and makes async-signal-safe system calls.
    let result = unsafe { libc::sigaction(signal, &raw const action, before.as_mut_ptr()) };
    // SAFETY: a successful call has written the old action.
    (result == 0).then(|| unsafe { before.assume_init() })
}

/// Puts an earlier handler back.
pub(crate) fn reinstall(signal: libc::c_int, before: &libc::sigaction) {
    // SAFETY: `before` came from the kernel.
    unsafe {
        libc::sigaction(signal, before, ptr::null_mut());
    }
}

/// While it lives, SIGINT and SIGTERM are noted instead of ending the process. The handlers from before come back with the last.
#[derive(Debug)]
pub struct Watch(());

impl Watch {
    /// Begins to watch.
    #[must_use]
    pub fn begin() -> Self {
        let mut watches = WATCHES.lock().unwrap_or_else(PoisonError::into_inner);
        if watches.count == 0 {
            CAUGHT.store(0, Ordering::SeqCst);
            let [first, second] = SIGNALS.map(|(signal, _)| install(signal, note));
            watches.before = first.zip(second).map(|(first, second)| [first, second]);
        }
        watches.count += 1;
        Self(())
    }

    /// The signal that came since the first watch began, by name.
    #[must_use]
    pub fn caught(&self) -> Option<&'static str> {
        let caught = CAUGHT.load(Ordering::SeqCst);
        SIGNALS
            .iter()
            .find(|(signal, _)| *signal == caught)
            .map(|(_, name)| *name)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut watches = WATCHES.lock().unwrap_or_else(PoisonError::into_inner);
        watches.count -= 1;
        if watches.count == 0
            && let Some(before) = watches.before.take()
        {
            for ((signal, _), action) in SIGNALS.iter().zip(&before) {
                reinstall(*signal, action);
            }
        }
    }
}
