//! SIGINT and SIGTERM while a run is under way: noted and announced, so that everything can be restored before the program ends.

use std::cell::Cell;
use std::convert::Infallible;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
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
/// How many of them came.
static TIMES: AtomicU32 = AtomicU32::new(0);
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
    TIMES.fetch_add(1, Ordering::SeqCst);
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

/// Does what a signal tells this process as if nobody caught it, nor had it [wait](Inbox): ends, or stops until it is continued. SIGTSTP, SIGTTIN and
/// SIGTTOU stop nobody whom no shell could continue.
pub fn obey(signal: i32) {
    let before = action(signal);
    reinstall(signal, Some(&default_action()));
    // SAFETY: a plain kernel call on a number.
    unsafe { libc::raise(signal) };
    // Where it is blocked, it comes now.
    let blocked = change_blocked(libc::SIG_UNBLOCK, &set_of([signal]));
    blocks_only(blocked.ok());
    reinstall(signal, before.as_ref());
}

/// A set of signals. Async-signal-safe.
pub(crate) fn set_of(signals: impl IntoIterator<Item = libc::c_int>) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the first call makes it whole.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

/// Has the calling thread block these too, or no more, and tells what it blocked before. Async-signal-safe.
pub(crate) fn change_blocked(
    how: libc::c_int,
    these: &libc::sigset_t,
) -> io::Result<libc::sigset_t> {
    let mut before = MaybeUninit::uninit();
    // SAFETY: the one set is made, and there is room for the other.
    match unsafe { libc::pthread_sigmask(how, these, before.as_mut_ptr()) } {
        // SAFETY: a successful call has written what was blocked.
        0 => Ok(unsafe { before.assume_init() }),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Takes one of these that is pending, with the least number first, and real-time ones in the order in which they came. Async-signal-safe.
pub(crate) fn take(of: &libc::sigset_t) -> Option<Got> {
    let now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut got = MaybeUninit::uninit();
    // SAFETY: the sets outlive the call, and there is room for what is told.
    let taken = unsafe { libc::sigtimedwait(of, got.as_mut_ptr(), &raw const now) };
    // SAFETY: a successful call has written it.
    (taken > 0).then(|| unsafe { got.assume_init() })
}

/// Where signals wait until they are taken, by who has opened it: none does anything by itself, and each is there as often as the kernel queued it, which is
/// once of all but real-time ones. Who is started by that thread from then on does not get them either. Can be read where one waits.
///
/// Handlers would not do: what they note has to have room, and a child that was not executed yet would have them too.
#[derive(Debug)]
pub struct Inbox {
    meant: libc::sigset_t,
    readable: OwnedFd,
}

impl Inbox {
    /// From now on these wait, and they do when it is dropped: what comes then is nobody's.
    ///
    /// # Errors
    ///
    /// What the kernel says, as where no more files may be open.
    pub fn open(meant: impl Iterator<Item = i32>) -> io::Result<Self> {
        let meant = set_of(meant);
        let flags = libc::SFD_NONBLOCK | libc::SFD_CLOEXEC;
        // SAFETY: the set outlives the call.
        let readable = match unsafe { libc::signalfd(-1, &raw const meant, flags) } {
            -1 => return Err(io::Error::last_os_error()),
            // SAFETY: it is new, and nobody else's.
            readable => unsafe { OwnedFd::from_raw_fd(readable) },
        };
        change_blocked(libc::SIG_BLOCK, &meant)?;
        Ok(Self { meant, readable })
    }

    /// One that has come.
    pub fn take(&mut self) -> Option<Got> {
        take(&self.meant)
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }
}

/// A signal that this process got, as the kernel tells of it.
pub type Got = libc::siginfo_t;

/// What a thread's own instruction causes: where it is blocked, it ends the process all the same.
const FAULTS: [libc::c_int; 6] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
];

/// The signals that are for a program, where who started it gets them in its place: all that can be caught, but what an own instruction
/// causes, and SIGCHLD, which is about a child.
pub fn for_a_program() -> impl Iterator<Item = i32> {
    let own = [libc::SIGKILL, libc::SIGSTOP, libc::SIGCHLD];
    // Those between are the C library's.
    let all = (1..32).chain(libc::SIGRTMIN()..=libc::SIGRTMAX());
    all.filter(move |signal| !FAULTS.contains(signal) && !own.contains(signal))
}

/// Whether a signal came of what this process did itself, and is for nobody else: it wrote where nobody reads, or where a limit is, or used up what it may.
#[must_use]
pub fn is_own(got: &Got) -> bool {
    let own = [libc::SIGPIPE, libc::SIGXFSZ, libc::SIGXCPU];
    // SAFETY: reads a number, which is the sender's where a process sent it, which the code tells.
    let by_itself = || unsafe { got.si_pid() }.cast_unsigned() == std::process::id();
    own.contains(&got.si_signo) && (got.si_code > 0 || by_itself())
}

/// Sends another process a signal that this one got, with the value that a process has queued with it.
pub(crate) fn send_on(to: BorrowedFd<'_>, got: &Got) -> io::Result<()> {
    // Who sent it is told of no other: that would be a lie.
    let value = match got.si_code {
        libc::SI_QUEUE => ptr::from_ref(got),
        _ => ptr::null(),
    };
    let call = libc::SYS_pidfd_send_signal;
    // SAFETY: it takes numbers, and reads what was got, where that is handed on.
    match unsafe { libc::syscall(call, to.as_raw_fd(), got.si_signo, value, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
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
            for signal in FAULTS.into_iter().chain([park_signal()]) {
                libc::sigdelset(all.as_mut_ptr(), signal);
            }
            all.assume_init()
        };
        Self(change_blocked(libc::SIG_BLOCK, &all).ok())
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
            TIMES.store(0, Ordering::SeqCst);
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

    /// How many signals came since the first watch began: whoever sends a second one does not want to wait.
    pub fn times(&self) -> u32 {
        TIMES.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;
    use std::sync::atomic::AtomicUsize;

    use rustix::process::{PidfdFlags, getpid, pidfd_open};

    use super::*;

    /// The value that came last, and one more.
    static CAME: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn note_value(_: libc::c_int, got: *mut Got, _: *mut libc::c_void) {
        // SAFETY: the kernel hands the handler a whole one; of one that nobody queued, the value is 0.
        let value = unsafe { (*got).si_value().sival_ptr.addr() };
        CAME.store(value + 1, Ordering::SeqCst);
    }

    /// As one process gets it of another, with this value.
    fn got(signal: libc::c_int, code: libc::c_int, value: i32) -> Got {
        // SAFETY: all-zero bytes are a valid one.
        let mut got: Got = unsafe { mem::zeroed() };
        (got.si_signo, got.si_code) = (signal, code);
        // SAFETY: after three numbers and, on 64 bits, a gap, there are the sender's two numbers, and then the value.
        unsafe { (&raw mut got).cast::<i32>().add(6).write(value) };
        got
    }

    #[test]
    fn a_value_that_was_queued_with_a_signal_is_handed_on() {
        let signal = libc::SIGRTMIN() + 9;
        let mut action = default_action();
        action.sa_sigaction = note_value as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        // SAFETY: the handler only touches an atomic.
        let set = unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
        assert_eq!(set, 0);
        let own = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
        for (code, value) in [(libc::SI_QUEUE, 41), (libc::SI_USER, 0)] {
            CAME.store(0, Ordering::SeqCst);
            send_on(own.as_fd(), &got(signal, code, 41)).unwrap();
            // Any thread may handle it.
            while CAME.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            assert_eq!((code, CAME.load(Ordering::SeqCst) - 1), (code, value));
        }
    }

    #[test]
    fn what_came_of_our_own_limits_is_for_nobody_else() {
        let kernels = |signal| is_own(&got(signal, libc::SI_KERNEL, 0));
        assert!(kernels(libc::SIGXCPU) && !kernels(libc::SIGALRM));
        // Of process 0, which is one of another namespace.
        let anothers = |signal| is_own(&got(signal, libc::SI_USER, 0));
        assert!(!anothers(libc::SIGXCPU) && !anothers(libc::SIGPIPE));
    }
}
