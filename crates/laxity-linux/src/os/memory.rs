//! Locked memory: while a run is under way no page of the process is taken away, and new ones come at once.

use std::io;

use rustix::mm::{MlockAllFlags, mlockall, munlockall};

use crate::os::proc;
use crate::os::shared::{Needed, Shared};

/// Whether the process had locked memory of its own before: unlocking everything would take that too.
static LOCK: Shared<bool> = Shared::new(|foreign| {
    if !foreign {
        // It never fails.
        let _ = munlockall();
    }
});

/// All memory of the process locked, now and in future, until the last of these is dropped.
#[derive(Debug)]
pub struct MemoryLock {
    _needed: Needed<bool>,
}

impl MemoryLock {
    /// Locks. Fails without `CAP_IPC_LOCK` where `RLIMIT_MEMLOCK` is less than what the process has.
    pub fn all() -> io::Result<Self> {
        let needed = LOCK.need(|| {
            let foreign = proc::locked_memory_kib().is_some_and(|kib| kib > 0);
            mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)?;
            Ok::<_, io::Error>(foreign)
        });
        Ok(Self { _needed: needed? })
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
