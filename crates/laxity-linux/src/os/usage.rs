//! What a thread has used, by the kernel's own count.

use std::mem;

use laxity_model::Usage;

use crate::os::clock;

/// What the kernel counts of the calling thread.
fn of_current() -> libc::rusage {
    // SAFETY: all-zero bytes are a valid rusage.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: `usage` is a valid place for the answer; the call cannot fail for RUSAGE_THREAD.
    unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
    }
    usage
}

/// How often the calling thread gave its processor up by itself: once for each time that it waited, and once more where it was stopped meanwhile.
/// One system call, no allocation.
pub fn waits() -> u64 {
    of_current().ru_nvcsw as u64
}

/// Of the calling thread, since it began. Two system calls.
pub(crate) fn now() -> Usage {
    let usage = of_current();
    Usage {
        service: clock::thread_service(),
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
        page_faults: (usage.ru_minflt + usage.ru_majflt) as u64,
        ..Usage::default()
    }
}

/// What the calling thread has used since an earlier reading.
pub(crate) fn since(earlier: &Usage) -> Usage {
    let now = now();
    Usage {
        service: now.service.saturating_sub(earlier.service),
        voluntary_switches: now.voluntary_switches - earlier.voluntary_switches,
        involuntary_switches: now.involuntary_switches - earlier.involuntary_switches,
        page_faults: now.page_faults - earlier.page_faults,
        ..Usage::default()
    }
}
