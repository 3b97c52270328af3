//! Locked memory: while a run is under way no page of the process is taken away, and new ones come at once.

use std::io;

use laxity_model::Event;
use rustix::mm::{MlockAllFlags, mlockall, munlockall};
use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};

use crate::os::cgroup::{self, GroupRoom};
use crate::os::fact::Fact;
use crate::os::proc;
use crate::os::shared::{Needed, Shared};

/// Whether the process had locked memory of its own before: unlocking everything would take that too.
static LOCK: Shared<bool> = Shared::of_one_process(|foreign| {
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

/// What memory there is for a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Room {
    /// Bytes that can be had without taking them from others; where the kernel does not say, any number may be there.
    available: Fact<u64>,
    /// What its control groups leave it, the least of them; `None` where none has a limit, or none is seen.
    group: Option<GroupRoom>,
    /// Bytes that may be locked beside what the process has already; `None`: as many as there are, or none are locked at all.
    lockable: Option<u64>,
}

impl Room {
    /// Of this process now; `locks`: it will try to lock its memory.
    pub(crate) fn now(locks: bool) -> Self {
        let limit = getrlimit(Resource::Memlock).current;
        let is_free =
            capabilities(None).is_ok_and(|own| own.effective.contains(CapabilitySet::IPC_LOCK));
        // Whoever has more than the limit already locks nothing, and so runs unlocked.
        let beside = || limit?.checked_sub(proc::address_space_bytes()?);
        Self {
            available: proc::available_memory_bytes(),
            group: cgroup::memory_left(),
            lockable: beside().filter(|_| locks && !is_free),
        }
    }

    /// Nothing else limits it.
    #[cfg(test)]
    pub(crate) const fn of_available(bytes: u64) -> Self {
        Self {
            available: Ok(bytes),
            group: None,
            lockable: None,
        }
    }

    /// Why there is no room for the threads of a run, each with its stack and so many events in its ring; `None` if there is.
    pub(crate) fn refusal(&self, threads: usize, events: usize) -> Option<String> {
        let ring = events.saturating_mul(size_of::<Event>());
        let each = ring.saturating_add(STACK_BYTES);
        let needed = each.saturating_mul(threads) as u64;
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        let missing = |there: u64, what: &str, remedy: &str| {
            format!(
                "memory: {threads} threads with their stacks and rings of events take {} MiB, and {} MiB {what}; {remedy}",
                mib(needed),
                there >> 20
            )
        };
        if let Ok(available) = self.available
            && needed > available
        {
            return Some(missing(available, "are available", "ask for fewer threads"));
        }
        if let Some(group) = self.group.as_ref().filter(|group| needed > group.left) {
            let what = format!("are left by {}", group.limit.display());
            return Some(missing(
                group.left,
                &what,
                "raise that limit, or ask for fewer threads",
            ));
        }
        let lockable = self.lockable.filter(|lockable| needed > *lockable)?;
        let what = "more may be locked (RLIMIT_MEMLOCK)";
        let remedy = "raise that limit (ulimit -l), or ask for fewer threads";
        Some(missing(lockable, what, remedy))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::fact::Unknown;

    #[test]
    fn what_does_not_fit_is_refused_with_both_numbers() {
        let room = |available: u64, lockable: Option<u64>| Room {
            available: Ok(available << 20),
            group: None,
            lockable: lockable.map(|mib| mib << 20),
        };
        let grouped = |mib: u64| Room {
            group: Some(GroupRoom {
                left: mib << 20,
                limit: "/sys/fs/cgroup/a/memory.max".into(),
            }),
            ..room(3_000, None)
        };
        // 1.5 MiB each.
        let refusal = |room: Room, threads| room.refusal(threads, 1 << 14);
        assert_eq!(refusal(room(3_000, None), 2_000), None);
        let short = refusal(room(2_999, None), 2_000).expect("one MiB is missing");
        assert!(
            short.contains("take 3000 MiB, and 2999 MiB are available"),
            "{short}"
        );
        assert_eq!(refusal(room(3_000, Some(60)), 40), None);
        let short = refusal(room(3_000, Some(59)), 40).expect("one MiB is missing");
        assert!(
            short.contains("take 60 MiB, and 59 MiB more may be locked"),
            "{short}"
        );
        assert_eq!(refusal(grouped(60), 40), None);
        let short = refusal(grouped(59), 40).expect("one MiB is missing");
        assert!(
            short.contains(
                "take 60 MiB, and 59 MiB are left by /sys/fs/cgroup/a/memory.max; raise that limit"
            ),
            "{short}"
        );
        let unseen = Room {
            group: None,
            available: Err(Unknown("hidden".to_owned())),
            lockable: None,
        };
        assert_eq!(refusal(unseen, 2_000), None);
        assert!(room(1, None).refusal(usize::MAX, usize::MAX).is_some());
    }

    #[test]
    fn a_small_run_has_room_here() {
        let room = Room::now(false);
        assert!(
            room.available.as_ref().is_ok_and(|bytes| *bytes > 1 << 20),
            "{room:?}"
        );
        assert_eq!(room.refusal(1, 16), None);
    }
}
