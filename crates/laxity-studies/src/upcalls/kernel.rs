//! What can be asked of the kernel's `SCHED_DEADLINE`.

use laxity_model::Service;
use laxity_model::analysis::multiprocessor::KernelLimits;

use super::trial::Serving;

/// What it grants of a processor, in parts per million, as long as nobody has changed that: since Linux 6.12, which keeps 5 % of each for ordinary threads, and 95 % before. Since 7.0, where
/// it is built with `sched_ext`, it is 85 %.
const MOST_PPM: u64 = 900_000;

impl Serving {
    /// What a thread has reserved for jobs that take so much: a tenth more, since what waking takes is its own time, and no less than can be.
    pub(super) fn reserved(cost: Service) -> Service {
        (cost + cost / 10).max(KernelLimits::SHORTEST_RUNTIME)
    }

    /// The greatest utilization that can be asked for, in parts per million.
    pub(super) const fn most_ppm(self) -> u64 {
        match self {
            Self::Kernel => MOST_PPM * 10 / 11,
            Self::Threads | Self::ByRate | Self::ByDeadline | Self::Intervals => 1_000_000,
        }
    }
}
