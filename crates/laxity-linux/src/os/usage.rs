//! What a thread has used, by the kernel's own count.

use std::mem;

use laxity_model::Service;

use crate::os::clock;

/// A thread's counters, or the difference of two readings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ThreadUsage {
    /// Processor time received.
    pub(crate) service: Service,
    /// Times it gave the processor up to wait.
    pub(crate) voluntary_switches: u64,
    /// Times the processor was taken from it.
    pub(crate) involuntary_switches: u64,
    /// Page faults served without and with I/O.
    pub(crate) page_faults: u64,
}

impl ThreadUsage {
    /// Of the calling thread, since it began. Two system calls.
    #[must_use]
    pub(crate) fn now() -> Self {
        // SAFETY: all-zero bytes are a valid rusage.
        let mut usage: libc::rusage = unsafe { mem::zeroed() };
        // SAFETY: `usage` is a valid place for the answer; the call cannot fail for RUSAGE_THREAD.
        unsafe {
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        }
        Self {
            service: clock::thread_service(),
            voluntary_switches: usage.ru_nvcsw as u64,
            involuntary_switches: usage.ru_nivcsw as u64,
            page_faults: (usage.ru_minflt + usage.ru_majflt) as u64,
        }
    }

    /// What was added since an earlier reading of the same thread.
    #[must_use]
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            service: self.service.saturating_sub(earlier.service),
            voluntary_switches: self.voluntary_switches - earlier.voluntary_switches,
            involuntary_switches: self.involuntary_switches - earlier.involuntary_switches,
            page_faults: self.page_faults - earlier.page_faults,
        }
    }
}
