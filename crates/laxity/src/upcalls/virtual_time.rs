//! Upcalls of virtual time: without a period, called when their process would run.
//!
//! Gopalakrishnan, Parulkar, WUCS-95-06, §9, under "Virtual Time Upcalls": "an active VTU is delivered whenever the scheduler runs the process that contains the VTU".

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::State;
use super::call::Wish;
use super::core::Core;
use super::keeper::text;

type Handler = Box<dyn FnMut(&mut VirtualCall) + Send>;

/// One call of an upcall of virtual time.
#[derive(Debug)]
pub struct VirtualCall {
    wish: Wish,
}

impl VirtualCall {
    /// After this call it is suspended: it is not called until it is to run again.
    pub const fn suspend(&mut self) {
        self.wish = Wish::Suspend;
    }

    /// After this call it ends.
    pub const fn end(&mut self) {
        self.wish = Wish::End;
    }
}

const SUSPENDED: u8 = 0;
const ACTIVE: u8 = 1;
const ENDED: u8 = 2;
const PANICKED: u8 = 3;
/// Active, in a call, and nothing was asked of it since that began.
const CALLED: u8 = 4;

/// One of them.
struct Entry {
    state: AtomicU8,
    calls: AtomicU64,
    handler: Mutex<Handler>,
    said: Mutex<String>,
}

/// All of an executor.
#[derive(Default)]
pub(super) struct Virtuals {
    all: Mutex<Vec<Arc<Entry>>>,
    /// While one of them is called, or looked for.
    is_called: AtomicBool,
    /// The index of who is next, of whoever calls one.
    next: AtomicUsize,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Entry {
    fn is_active(&self) -> bool {
        self.state.load(Ordering::Acquire) == ACTIVE
    }

    /// Calls it once, for which it is [`CALLED`]. What was asked of it meanwhile stays: it asks for something that the call may not have seen.
    fn call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut call = VirtualCall { wish: Wish::GoOn };
        let work = || (lock(&self.handler))(&mut call);
        let done = panic::catch_unwind(AssertUnwindSafe(work));
        let (to, from): (u8, &[u8]) = match (done, call.wish) {
            (Err(payload), _) => {
                *lock(&self.said) = text(payload);
                (PANICKED, &[CALLED, ACTIVE, SUSPENDED])
            }
            (Ok(()), Wish::GoOn) => (ACTIVE, &[CALLED]),
            (Ok(()), Wish::Suspend) => (SUSPENDED, &[CALLED]),
            (Ok(()), Wish::End) => (ENDED, &[CALLED, ACTIVE, SUSPENDED]),
        };
        self.becomes(from, to);
    }

    /// From any of these to that; `false` if it was none of them.
    fn becomes(&self, from: &[u8], to: u8) -> bool {
        let next = |state| from.contains(&state).then_some(to);
        let (set, fetch) = (Ordering::SeqCst, Ordering::SeqCst);
        self.state.fetch_update(set, fetch, next).is_ok()
    }
}

impl Core {
    /// Whether one of them is active that nobody calls.
    pub(super) fn has_virtual(&self) -> bool {
        // Only looked at: for who took it meanwhile there would be nobody to call.
        let is_free = !self.virtuals.is_called.load(Ordering::SeqCst);
        is_free && lock(&self.virtuals.all).iter().any(|one| one.is_active())
    }

    /// Calls the next of those that are active, if nobody else calls one; none in a child.
    pub(super) fn call_virtual(&self) -> bool {
        if self.is_elsewhere() || !self.has_virtual() {
            return false;
        }
        let virtuals = &self.virtuals;
        if virtuals.is_called.swap(true, Ordering::SeqCst) {
            return false;
        }
        let next = {
            let (all, turn) = (lock(&virtuals.all), virtuals.next.load(Ordering::Relaxed));
            let from = (0..all.len()).map(|index| (turn % all.len() + index) % all.len());
            let mut called = from.filter(|index| all[*index].becomes(&[ACTIVE], CALLED));
            called.next().map(|index| (index, Arc::clone(&all[index])))
        };
        if let Some((index, entry)) = &next {
            virtuals.next.store(index + 1, Ordering::Relaxed);
            entry.call();
        }
        virtuals.is_called.store(false, Ordering::SeqCst);
        // Others may wait for their turn, or for what it did.
        self.bell.ring();
        next.is_some()
    }

    pub(super) fn create_virtual(self: &Arc<Self>, handler: Handler) -> Virtual {
        let entry = Arc::new(Entry {
            state: AtomicU8::new(SUSPENDED),
            calls: AtomicU64::new(0),
            handler: Mutex::new(handler),
            said: Mutex::default(),
        });
        lock(&self.virtuals.all).push(Arc::clone(&entry));
        let core = Arc::clone(self);
        Virtual { core, entry }
    }
}

/// An upcall of virtual time: it has no period, no rank and no promise, and is called over and over while it is active and its process would run. That is when a thread of the process is in
/// [`Upcalls::sleep`](super::Upcalls::sleep) or [`Upcalls::serve`](super::Upcalls::serve): it calls them there, as what it is. They go in turns, a call at a time, and are never at work at once, so that
/// what they share among themselves needs no more than the compiler's consent. Dropped, it is closed.
///
/// The executor's own upcalls run beside them, in another thread.
#[must_use = "it is closed when this is dropped"]
pub struct Virtual {
    core: Arc<Core>,
    entry: Arc<Entry>,
}

impl std::fmt::Debug for Virtual {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Virtual")
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

impl Virtual {
    /// Calls it from now on. Handlers of the executor may ask for it. Nothing where it has ended or panicked.
    pub fn run(&self) {
        self.entry.becomes(&[SUSPENDED, CALLED], ACTIVE);
        self.core.bell.ring();
    }

    /// Does not call it again until it is to run, whatever was asked before; a call that has begun goes on.
    pub fn suspend(&self) {
        self.entry.becomes(&[ACTIVE, CALLED], SUSPENDED);
    }

    /// How often it was called.
    pub fn calls(&self) -> u64 {
        self.entry.calls.load(Ordering::Relaxed)
    }

    /// What has become of it.
    pub fn state(&self) -> State {
        match self.entry.state.load(Ordering::Acquire) {
            SUSPENDED => State::Suspended,
            ACTIVE | CALLED => State::Active,
            PANICKED => State::Panicked(lock(&self.entry.said).clone()),
            _ => State::Ended,
        }
    }
}

impl Drop for Virtual {
    fn drop(&mut self) {
        self.entry.state.store(ENDED, Ordering::Release);
        if self.core.is_elsewhere() {
            return;
        }
        lock(&self.core.virtuals.all).retain(|one| !Arc::ptr_eq(one, &self.entry));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Options, Rank, Upcalls};
    use super::*;

    /// A thread that only looks whether one is active keeps nobody from calling it.
    #[test]
    fn who_serves_calls_what_is_active_whoever_looks() {
        let options = Options {
            rank: Rank::Fair,
            ..Options::default()
        };
        let upcalls = Upcalls::start(options).unwrap();
        let one = upcalls.create_virtual(VirtualCall::suspend);
        let ends = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    upcalls.core.has_virtual();
                }
            });
            let served = (0..20_000).filter(|_| {
                one.run();
                upcalls.serve() == 1
            });
            let served = served.count();
            ends.store(true, Ordering::Relaxed);
            assert_eq!(served, 20_000);
        });
    }
}
