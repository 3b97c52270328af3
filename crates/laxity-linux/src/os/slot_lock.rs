//! That one process alone gives slots on a processor: each admits its own, and knows nothing of another's.
//!
//! It is told by a lock (`flock`) on the processor's directory in `/sys`. That is there for each processor, every user may open and lock it, nobody can make it, put something in its place or remove it, and the lock ends
//! with whoever has it, however that ends. A file in a directory of ours would be one user's alone. Like an abstract socket's name, which says of nobody whose it is, it is told within one network namespace, or where others have
//! the same mount of `/sys`; for those beyond, dispatchers are looked for.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;

use crate::os::claim;
use crate::os::fork::{self, PerProcess, Withheld};

/// No other process gives slots on a processor, as long as this is there. Those who ask in one process share it.
#[derive(Debug)]
pub(crate) struct SlotLock {
    cpu: usize,
    generation: u32,
}

/// Why a process has no such lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SlotLockError {
    /// Another process has it: its name for people.
    Held(String),
    /// There is none to be had here.
    Unknown,
}

/// By processor, how many share the lock, and what is locked.
type All = BTreeMap<usize, (usize, Withheld)>;

fn all() -> MutexGuard<'static, All> {
    static ALL: PerProcess<Mutex<All>> = PerProcess::new(|_| Mutex::default());
    ALL.get().lock().unwrap_or_else(PoisonError::into_inner)
}

impl SlotLock {
    /// Of this processor, by the kernel's number.
    pub(crate) fn of(cpu: usize) -> Result<Self, SlotLockError> {
        let mut all = all();
        let users = match all.remove(&cpu) {
            Some((users, locked)) => (users + 1, locked),
            None => (1, lock(cpu)?),
        };
        all.insert(cpu, users);
        Ok(Self {
            cpu,
            generation: fork::generation(),
        })
    }
}

impl Drop for SlotLock {
    fn drop(&mut self) {
        // What a parent has its child has not.
        if self.generation != fork::generation() {
            return;
        }
        let mut all = all();
        if let Some((users, locked)) = all.get_mut(&self.cpu) {
            *users -= 1;
            if *users == 0 {
                // At once, though a process that is being forked may still have the descriptor.
                let _ = flock(&*locked, FlockOperation::Unlock);
                all.remove(&self.cpu);
            }
        }
    }
}

fn lock(cpu: usize) -> Result<Withheld, SlotLockError> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}");
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = open(path, flags, Mode::empty());
    // Before it is locked: no child is to have it.
    let directory = Withheld::new(opened.map_err(|_| SlotLockError::Unknown)?);
    match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(directory),
        Err(Errno::WOULDBLOCK) => Err(SlotLockError::Held(other(&directory))),
        Err(_) => Err(SlotLockError::Unknown),
    }
}

/// Who has it.
fn other(directory: &Withheld) -> String {
    let holders = claim::holders(directory).ok();
    match holders.and_then(|all| all.first().copied()) {
        Some(process @ 1..) => format!("another laxity (process {process})"),
        Some(0) | None => "another laxity, which cannot be seen from here".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::rights;

    #[test]
    fn a_process_shares_what_no_other_has() {
        let _turn = rights::turn();
        let Ok(first) = SlotLock::of(0) else {
            return rights::skip("somebody else gives slots on processor 0");
        };
        let second = SlotLock::of(0).unwrap();
        drop(first);
        // As another process would: the lock goes by what was opened.
        let own = format!("another laxity (process {})", std::process::id());
        assert_eq!(lock(0).err(), Some(SlotLockError::Held(own)));
        drop(second);
        assert!(lock(0).is_ok());
        assert_eq!(lock(usize::MAX).err(), Some(SlotLockError::Unknown));
    }
}
