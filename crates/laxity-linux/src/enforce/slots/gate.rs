//! Confinement of a thread of this process: a signal makes it wait at its gate, wherever it is, until the gate opens.
//!
//! The thread parks in the handler of a real-time signal. Handler and gate touch atomics and one futex only, so the thread may be
//! stopped anywhere, also inside the allocator. What it holds then it holds while it is parked: a confined thread should share
//! no lock with threads that must be in time. Where this crate itself takes one, [`unparked`] puts parking off until it is released. A
//! system call that the thread was in returns `EINTR` where it cannot be restarted.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::os::futex;
use crate::os::sched::{self, SchedError, Tid};
use crate::os::signals;

const OPEN: u32 = 0;
const CLOSED: u32 = 1;

/// Where a confined thread waits outside its slot.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: AtomicU32,
    /// A signal is under way that has not reached its handler: another would say nothing new.
    signalled: AtomicU32,
    /// The thread waits of its own accord, and looks at the gate before it goes on.
    waiting: AtomicU32,
}

thread_local! {
    /// The gate of the thread, for the signal handler. Without a destructor, so that the handler may read it at any time.
    static OWN: Cell<*const Gate> = const { Cell::new(ptr::null()) };
}

/// The signal that parks. The first few real-time signals are the C library's and tools'.
fn park_signal() -> libc::c_int {
    libc::SIGRTMIN() + 7
}

extern "C" fn park(_signal: libc::c_int) {
    let gate = OWN.with(Cell::get);
    // SAFETY: reading and writing the thread's own errno; a handler must leave it as it was.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the pointer is null or set by `Gate::attach` on this thread, whose guard clears it before the gate goes.
    if let Some(gate) = unsafe { gate.as_ref() } {
        gate.signalled.store(0, Ordering::SeqCst);
        // One that waits of its own accord looks at its gate before it goes on; until then it may hold a lock.
        if gate.waiting.load(Ordering::SeqCst) == 0 {
            gate.pass();
        }
    }
    // SAFETY: as above.
    unsafe {
        *libc::__errno_location() = errno;
    }
}

impl Gate {
    /// Makes this the calling thread's gate, until [`Gate::detach`].
    pub(crate) fn attach(&self) {
        OWN.with(|own| own.set(self));
    }

    /// The calling thread has no gate any more.
    pub(crate) fn detach() {
        OWN.with(|own| own.set(ptr::null()));
    }

    /// Waits while the gate is closed.
    fn pass(&self) {
        while self.state.load(Ordering::SeqCst) == CLOSED {
            futex::wait(&self.state, CLOSED, None);
        }
    }

    /// The thread is about to wait: closing the gate need not interrupt that.
    pub(crate) fn enter_wait(&self) {
        self.waiting.store(1, Ordering::SeqCst);
    }

    /// The thread has waited; goes on when the gate is open.
    pub(crate) fn leave_wait(&self) {
        // SeqCst on both words: either the closer sees us working and signals, or we see its gate closed.
        self.waiting.store(0, Ordering::SeqCst);
        self.pass();
    }

    /// Lets the thread run.
    pub(crate) fn open(&self) {
        self.state.store(OPEN, Ordering::SeqCst);
        futex::wake_all(&self.state);
    }

    /// Stops the thread before its next instruction of its own.
    pub(crate) fn close(&self, tid: Tid) -> Result<(), SchedError> {
        self.state.store(CLOSED, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) == 1 || self.signalled.swap(1, Ordering::SeqCst) == 1
        {
            return Ok(());
        }
        // SAFETY: a signal to a thread of this process, for which `ParkSignal` has installed a handler.
        let result =
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid.0, park_signal()) };
        if result == -1 {
            return Err(SchedError::Os {
                call: "tgkill",
                tid,
                request: "park".to_owned(),
                errno: sched::errno(),
            });
        }
        Ok(())
    }
}

/// Does something that must not be stopped halfway, as it holds what others wait for; the calling thread parks after it, if its gate has
/// been closed meanwhile. What it does is at the cost of whose slot it is then: some microseconds at most.
pub(crate) fn unparked<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: the pointer is null or set by `Gate::attach` on this thread, which clears it before the gate goes; nothing here does.
    let gate = unsafe { OWN.with(Cell::get).as_ref() };
    if let Some(gate) = gate {
        gate.enter_wait();
    }
    let done = work();
    if let Some(gate) = gate {
        gate.leave_wait();
    }
    done
}

/// While one lives, the parking signal has its handler; the handler from before comes back with the last.
#[derive(Debug)]
pub(crate) struct ParkSignal(());

struct Installed {
    count: usize,
    before: Option<libc::sigaction>,
}

static INSTALLED: Mutex<Installed> = Mutex::new(Installed {
    count: 0,
    before: None,
});

impl ParkSignal {
    pub(crate) fn install() -> Self {
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        if installed.count == 0 {
            installed.before = signals::install(park_signal(), park);
        }
        installed.count += 1;
        Self(())
    }
}

impl Drop for ParkSignal {
    fn drop(&mut self) {
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        installed.count -= 1;
        if installed.count == 0
            && let Some(before) = installed.before.take()
        {
            signals::reinstall(park_signal(), &before);
        }
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
        let gate = Arc::new(Gate::default());
        let opened = Arc::new(AtomicBool::new(false));
        let (to_main, from_thread) = std::sync::mpsc::channel();
        let (to_thread, from_main) = std::sync::mpsc::channel();
        let worker = thread::spawn({
            let (gate, opened) = (Arc::clone(&gate), Arc::clone(&opened));
            move || {
                gate.attach();
                unparked(|| {
                    to_main.send(Tid::current()).unwrap();
                    from_main.recv().unwrap();
                    // A signal sent before: it would wait here, and nobody would hear of what follows.
                    park(park_signal());
                    to_main.send(Tid::current()).unwrap();
                });
                let was_open = opened.load(Ordering::SeqCst);
                Gate::detach();
                was_open
            }
        });
        let tid = from_thread.recv().unwrap();
        gate.close(tid).unwrap();
        to_thread.send(()).unwrap();
        from_thread.recv().unwrap();
        opened.store(true, Ordering::SeqCst);
        gate.open();
        assert!(worker.join().unwrap(), "it went through a closed gate");
    }
}
