//! SIGINT and SIGTERM while a run is under way: noted and announced, so that everything can be restored before the program ends. SIGCONT is noted too:
//! what stood still until then was this process, and not the machine.

use std::convert::Infallible;
use std::mem::{self, MaybeUninit};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use laxity_model::Instant;

use crate::os::shared::{Needed, Shared};
use crate::os::{clock, futex};

/// Rung whenever something happened that a supervising thread should look at. One for the process: a ring too many is harmless.
static DOORBELL: AtomicU32 = AtomicU32::new(0);
/// The signal that came, 0 for none.
static CAUGHT: AtomicI32 = AtomicI32::new(0);
const SIGNALS: [(libc::c_int, &str); 2] = [(libc::SIGINT, "SIGINT"), (libc::SIGTERM, "SIGTERM")];

/// When this process was continued, in nanoseconds: the first times.
static CONTINUED_NS: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];
/// How often it was.
static CONTINUED: AtomicUsize = AtomicUsize::new(0);

/// The handlers from before, where they could be replaced; the last is that of SIGCONT.
type Before = [Option<libc::sigaction>; 3];

static WATCHES: Shared<Before> = Shared::new(|before| {
    let all = SIGNALS.iter().map(|(signal, _)| *signal);
    for (signal, before) in all.chain([libc::SIGCONT]).zip(&before) {
        reinstall(signal, before.as_ref());
    }
});

/// Wakes every supervising thread. May be called in a signal handler.
pub fn ring() {
    DOORBELL.fetch_add(1, Ordering::SeqCst);
    futex::wake_all(&DOORBELL);
}

/// The doorbell's number; a [`wait`] with it returns at once if it has rung since.
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

extern "C" fn note_continued(_: libc::c_int) {
    let index = CONTINUED.fetch_add(1, Ordering::SeqCst);
    if let Some(at) = CONTINUED_NS.get(index) {
        at.store(clock::now().as_nanos(), Ordering::SeqCst);
    }
}

/// Installs a handler and returns what was there. The handler must be async-signal-safe.
pub(crate) fn install(
    signal: libc::c_int,
    handler: extern "C" fn(libc::c_int),
) -> Option<libc::sigaction> {
    let mut action = default_action();
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    let mut before = MaybeUninit::uninit();
    // SAFETY: both point to sigactions; the handler only touches atomics and makes async-signal-safe system calls.
    let result = unsafe { libc::sigaction(signal, &raw const action, before.as_mut_ptr()) };
    // SAFETY: a successful call has written the old action.
    (result == 0).then(|| unsafe { before.assume_init() })
}

extern "C" fn ignore(_: libc::c_int) {}

/// From now on a file that may not grow any more (`RLIMIT_FSIZE`) is an error of the write, and does not end the process. Programs that it
/// starts are ended by it as ever.
pub fn survive_file_size_limit() {
    // A handler, which `exec` takes away, and not "ignored", which programs would inherit.
    install(libc::SIGXFSZ, ignore);
}

/// What the kernel does by itself.
fn default_action() -> libc::sigaction {
    // SAFETY: all-zero bytes are a valid sigaction, and `SIG_DFL` is 0.
    unsafe { mem::zeroed() }
}

/// What is done now at a signal; `None` of a number that is none.
fn action(signal: libc::c_int) -> Option<libc::sigaction> {
    let mut action = default_action();
    // SAFETY: nothing is changed, and there is room for the answer.
    (unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) } == 0).then_some(action)
}

/// Whether this process ignores a signal, as what `nohup` starts ignores SIGHUP. What it starts ignores it too, unless a handler is installed before.
pub fn is_ignored(signal: i32) -> bool {
    action(signal).is_some_and(|action| action.sa_sigaction == libc::SIG_IGN)
}

/// Stops this process by a signal as if nobody caught it, until it is continued: SIGTSTP, SIGTTIN and SIGTTOU stop nobody whom no shell could continue.
pub fn stop_by(signal: i32) {
    let before = action(signal);
    reinstall(signal, Some(&default_action()));
    // SAFETY: a plain kernel call on a number.
    unsafe { libc::raise(signal) };
    reinstall(signal, before.as_ref());
}

/// Puts an earlier handler back, if it was replaced.
pub(crate) fn reinstall(signal: libc::c_int, before: Option<&libc::sigaction>) {
    let Some(before) = before else { return };
    // SAFETY: `before` came from the kernel, or is what the kernel does by itself.
    unsafe {
        libc::sigaction(signal, before, ptr::null_mut());
    }
}

/// While it lives, SIGINT and SIGTERM are noted instead of ending the process. The handlers from before come back with the last.
#[derive(Debug)]
pub struct Watch {
    _needed: Needed<Before>,
}

impl Watch {
    /// Begins to watch.
    #[must_use]
    pub fn begin() -> Self {
        let Ok(needed) = WATCHES.need(|| {
            CAUGHT.store(0, Ordering::SeqCst);
            CONTINUED.store(0, Ordering::SeqCst);
            let [interrupted, terminated] = SIGNALS.map(|(signal, _)| install(signal, note));
            let continued = install(libc::SIGCONT, note_continued);
            Ok::<_, Infallible>([interrupted, terminated, continued])
        });
        Self { _needed: needed }
    }

    /// The signal that came since the first watch began, by name.
    pub fn caught(&self) -> Option<&'static str> {
        let caught = CAUGHT.load(Ordering::SeqCst);
        SIGNALS
            .iter()
            .find(|(signal, _)| *signal == caught)
            .map(|(_, name)| *name)
    }

    /// When this process was continued that somebody had stopped, since the first watch began: the first eight times.
    pub fn continued(&self) -> Vec<Instant> {
        let times = CONTINUED.load(Ordering::SeqCst);
        let noted = CONTINUED_NS.iter().take(times);
        let noted = noted.map(|at| Instant::from_nanos(at.load(Ordering::SeqCst)));
        noted.collect()
    }
}
