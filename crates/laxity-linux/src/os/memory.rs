//! Locked memory: while a run is under way no page of the process is taken away, and new ones come at once.

use std::io;
use std::sync::{Mutex, PoisonError};

use rustix::mm::{MlockAllFlags, mlockall, munlockall};

use crate::os::proc;

struct Locks {
    count: usize,
    /// The process had locked memory of its own before: unlocking everything would take that too.
    foreign: bool,
}

static LOCKS: Mutex<Locks> = Mutex::new(Locks {
    count: 0,
    foreign: false,
});

/// All memory of the process locked, now and in future, until the last of these is dropped.
#[derive(Debug)]
pub struct MemoryLock(());

impl MemoryLock {
    /// Locks. Fails without `CAP_IPC_LOCK` where `RLIMIT_MEMLOCK` is less than what the process has.
    pub fn all() -> io::Result<Self> {
        let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
        if locks.count == 0 {
            locks.foreign = proc::locked_memory_kib().is_some_and(|kib| kib > 0);
            mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)?;
        }
        locks.count += 1;
        Ok(Self(()))
    }
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
        locks.count -= 1;
        if locks.count == 0 && !locks.foreign {
            // It never fails.
            let _ = munlockall();
        }
    }
}

/// Stack of an activity's thread, all of it faulted in before the start.
pub(crate) const STACK_BYTES: usize = 1 << 20;
/// How much of it is touched: the guard page and what the thread already uses are left alone.
const PREFAULT_BYTES: usize = STACK_BYTES / 2;

/// Writes to the stack below, so that no later call takes a page fault there.
#[inline(never)]
pub(crate) fn prefault_stack() {
    let mut pages = [0u8; PREFAULT_BYTES];
    std::hint::black_box(&mut pages);
}
