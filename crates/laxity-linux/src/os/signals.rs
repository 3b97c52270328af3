//! SIGINT and SIGTERM while a run is under way: noted and announced, so that everything can be restored before the program ends.

use std::cell::Cell;
use std::convert::Infallible;
use std::mem::{self, MaybeUninit};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::{io, ptr};

use laxity_model::Instant;

use crate::os::futex;
use crate::os::sched::Tid;
use crate::os::shared::{Needed, Shared};

/// Rung whenever something happened that a supervising thread should look at. One for the process: a ring too many is harmless.
static DOORBELL: AtomicU32 = AtomicU32::new(0);
/// The signal that came, 0 for none.
static CAUGHT: AtomicI32 = AtomicI32::new(0);
const SIGNALS: [(libc::c_int, &str); 2] = [(libc::SIGINT, "SIGINT"), (libc::SIGTERM, "SIGTERM")];

/// The handlers from before, where they could be replaced.
type Before = [Option<libc::sigaction>; 2];

static WATCHES: Shared<Before> = Shared::new(|before| {
    let all = SIGNALS.iter().map(|(signal, _)| *signal);
    for (signal, before) in all.zip(&before) {
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

/// Whether this process has this thread. So it is known of other users' too, whatever `/proc` hides; nobody is signalled.
pub(crate) fn has_thread(process: u32, thread: Tid) -> bool {
    // SAFETY: it takes numbers, and looks whether there would be somebody to signal.
    let told = unsafe { libc::syscall(libc::SYS_tgkill, process.cast_signed(), thread.0, 0) };
    // What else it says, it says of one that is there. No process and no thread is zero or less, which it calls invalid.
    let none = [libc::ESRCH, libc::EINVAL].map(Some);
    told == 0 || !none.contains(&io::Error::last_os_error().raw_os_error())
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

/// By which slots park a thread, and which is sent to that alone. The first few real-time signals are the C library's and tools'.
pub(crate) fn park_signal() -> libc::c_int {
    libc::SIGRTMIN() + 7
}

thread_local! {
    /// Of a thread that was [started deaf](start_deaf): what was blocked where it was started. Without a destructor, as it is read in a child.
    static BEFORE: Cell<Option<libc::sigset_t>> = const { Cell::new(None) };
}

/// Signals of the calling thread that were blocked before, and are so again, with no others, when this is dropped.
struct Blocked(Option<libc::sigset_t>);

impl Blocked {
    /// Blocks all signals but those that a thread's own instruction causes, and the one that [parks](park_signal) it.
    fn all() -> Self {
        let mut all = MaybeUninit::uninit();
        // SAFETY: there is room for the set, which the first call makes; the others take it and numbers.
        let all = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            let own = [
                libc::SIGSEGV,
                libc::SIGBUS,
                libc::SIGFPE,
                libc::SIGILL,
                libc::SIGTRAP,
                libc::SIGSYS,
                park_signal(),
            ];
            for signal in own {
                libc::sigdelset(all.as_mut_ptr(), signal);
            }
            all.assume_init()
        };
        let mut before = MaybeUninit::uninit();
        // SAFETY: the one set is made, and there is room for the other.
        let result =
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, before.as_mut_ptr()) };
        // SAFETY: a successful call has written what was blocked.
        Self((result == 0).then(|| unsafe { before.assume_init() }))
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        blocks_only(self.0);
    }
}

/// The calling thread blocks these and no others; nothing changes where they are not known.
fn blocks_only(these: Option<libc::sigset_t>) {
    if let Some(these) = these {
        // SAFETY: a set that the C library made; what was blocked is not asked.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const these, ptr::null_mut());
        }
    }
}

/// Starts a thread that signals to the process never interrupt, from its first instruction on: they are for the application's own threads, whatever those block.
pub(crate) fn start_deaf<T: Send + 'static>(
    builder: thread::Builder,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let blocked = Blocked::all();
    let before = blocked.0;
    builder.spawn(move || {
        BEFORE.set(before);
        work()
    })
}

/// In a child that a thread forked which was [started deaf](start_deaf): signals are the child's as they are the application's. Takes no lock.
pub(crate) fn hear_again() {
    blocks_only(BEFORE.get());
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
            Ok::<_, Infallible>(SIGNALS.map(|(signal, _)| install(signal, note)))
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
}
