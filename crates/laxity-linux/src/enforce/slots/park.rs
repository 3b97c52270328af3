//! Confinement of a thread of this process: a signal parks it, wherever it is, until it is unparked.
//!
//! The thread parks in the handler of a real-time signal. The handler and [`Park`] touch atomics and one futex only, so the thread may be
//! stopped anywhere, also inside the allocator. What it holds then it holds while it is parked: a confined thread should share
//! no lock with threads that must be in time. Where this crate itself takes one, [`unparked`] puts parking off until it is released. A
//! system call that the thread was in returns `EINTR` where it cannot be restarted.

use std::cell::Cell;
use std::convert::Infallible;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::os::fork;
use crate::os::futex;
use crate::os::sched::{SchedError, Tid};
use crate::os::shared::{Needed, Shared};
use crate::os::signals::{self, park_signal};

const RUNNING: u32 = 0;
const PARKED: u32 = 1;

/// Where a confined thread waits outside its slot.
#[derive(Debug, Default)]
pub(crate) struct Park {
    state: AtomicU32,
    /// A signal is under way that has not reached its handler: another would say nothing new.
    signalled: AtomicU32,
    /// The thread waits of its own accord, and looks whether it is parked before it goes on.
    waiting: AtomicU32,
}

thread_local! {
    /// The park of the thread, for the signal handler, and the process that has it: in a child nobody unparks. Without a destructor, so that the handler
    /// may read it at any time.
    static OWN: Cell<(*const Park, u32)> = const { Cell::new((ptr::null(), 0)) };
}

/// The park of the calling thread, or null.
fn own() -> *const Park {
    let (park, generation) = OWN.with(Cell::get);
    let has_it = !park.is_null() && generation == fork::generation();
    if has_it { park } else { ptr::null() }
}

extern "C" fn on_park_signal(_signal: libc::c_int) {
    let park = own();
    // SAFETY: reading and writing the thread's own errno; a handler must leave it as it was.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the pointer is null or set by `Park::attach` on this thread, whose guard clears it before the park goes.
    if let Some(park) = unsafe { park.as_ref() } {
        park.signalled.store(0, Ordering::SeqCst);
        // One that waits of its own accord looks whether it is parked before it goes on; until then it may hold a lock.
        if park.waiting.load(Ordering::SeqCst) == 0 {
            park.pass();
        }
    }
    // SAFETY: as above.
    unsafe {
        *libc::__errno_location() = errno;
    }
}

impl Park {
    /// Makes this the calling thread's, until [`Park::detach`].
    pub(crate) fn attach(&self) {
        debug_assert!(own().is_null(), "a thread has one park");
        OWN.with(|own| own.set((self, fork::generation())));
        // It may have been started by who has all signals wait, or blocks them. A thread can always change that of its own.
        let _ = signals::change_blocked(libc::SIG_UNBLOCK, &signals::set_of([park_signal()]));
    }

    /// The calling thread cannot be parked any more.
    pub(crate) fn detach() {
        OWN.with(|own| own.set((ptr::null(), 0)));
    }

    /// Waits while the thread is parked.
    fn pass(&self) {
        while self.is_parked() {
            futex::wait(&self.state, PARKED, None);
        }
    }

    /// The thread is about to wait: parking it need not interrupt that.
    pub(crate) fn enter_wait(&self) {
        self.waiting.store(1, Ordering::SeqCst);
    }

    /// The thread has waited; goes on when it is not parked.
    pub(crate) fn leave_wait(&self) {
        // SeqCst on both words: either who parks sees us working and signals, or we see that we are parked.
        self.waiting.store(0, Ordering::SeqCst);
        self.pass();
    }

    /// Whether the thread is to stand still.
    pub(crate) fn is_parked(&self) -> bool {
        self.state.load(Ordering::SeqCst) == PARKED
    }

    /// Lets the thread run.
    pub(crate) fn unpark(&self) {
        self.state.store(RUNNING, Ordering::SeqCst);
        futex::wake_all(&self.state);
    }

    /// Stops the thread before its next instruction of its own.
    pub(crate) fn park(&self, tid: Tid) -> Result<(), SchedError> {
        self.state.store(PARKED, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) == 1 || self.signalled.swap(1, Ordering::SeqCst) == 1
        {
            return Ok(());
        }
        // SAFETY: a signal to a thread of this process, for which `ParkSignal` has installed a handler.
        let result =
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid.0, park_signal()) };
        if result == -1 {
            return Err(SchedError::last("tgkill", tid, "park"));
        }
        Ok(())
    }
}

/// Does something that must not be stopped halfway, as it holds what others wait for; the calling thread parks after it, if that was
/// asked for meanwhile. What it does is at the cost of whose slot it is then: some microseconds at most.
pub(crate) fn unparked<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: the pointer is null or set by `Park::attach` on this thread, which clears it before the park goes; nothing here does.
    let park = unsafe { own().as_ref() };
    if let Some(park) = park {
        park.enter_wait();
    }
    let done = work();
    if let Some(park) = park {
        park.leave_wait();
    }
    done
}

/// The handler from before, where it could be replaced.
static HANDLER: Shared<Option<libc::sigaction>> =
    Shared::new(|before| signals::reinstall(park_signal(), before.as_ref()));

/// While one lives, the parking signal has its handler; the handler from before comes back with the last.
#[derive(Debug)]
pub(crate) struct ParkSignal {
    _needed: Needed<Option<libc::sigaction>>,
}

impl ParkSignal {
    pub(crate) fn install() -> Self {
        let install = || signals::install(park_signal(), on_park_signal);
        let Ok(needed) = HANDLER.need(|| Ok::<_, Infallible>(install()));
        Self { _needed: needed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    #[test]
    fn who_must_not_be_stopped_halfway_parks_when_it_is_done() {
        let park = Arc::new(Park::default());
        let unparked_again = Arc::new(AtomicBool::new(false));
        let (to_main, from_thread) = std::sync::mpsc::channel();
        let (to_thread, from_main) = std::sync::mpsc::channel();
        let worker = thread::spawn({
            let (park, unparked_again) = (Arc::clone(&park), Arc::clone(&unparked_again));
            move || {
                park.attach();
                unparked(|| {
                    to_main.send(Tid::current()).unwrap();
                    from_main.recv().unwrap();
                    // A signal sent before: it would wait here, and nobody would hear of what follows.
                    on_park_signal(park_signal());
                    to_main.send(Tid::current()).unwrap();
                });
                let was_unparked = unparked_again.load(Ordering::SeqCst);
                Park::detach();
                was_unparked
            }
        });
        let tid = from_thread.recv().unwrap();
        park.park(tid).unwrap();
        to_thread.send(()).unwrap();
        from_thread.recv().unwrap();
        unparked_again.store(true, Ordering::SeqCst);
        park.unpark();
        assert!(worker.join().unwrap(), "it ran on while it was parked");
    }
}
