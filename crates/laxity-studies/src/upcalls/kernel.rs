//! What can be asked of the kernel's `SCHED_DEADLINE`.

use laxity_model::Service;

use super::trial::Serving;

/// It grants nothing shorter (`DL_SCALE` in kernel/sched/sched.h).
const LEAST: Service = Service::from_nanos(1_024);
/// What it grants and gives of a processor, in parts per million, as long as nobody has changed that: from Linux 7.0 on, and 95 % before.
const MOST_PPM: u64 = 900_000;

impl Serving {
    /// What a thread has reserved for jobs that take so much: a tenth more, since what waking takes is its own time, and no less than can be.
    pub(super) fn reserved(cost: Service) -> Service {
        (cost + cost / 10).max(LEAST)
    }

    /// The greatest utilization that can be asked for, in parts per million.
    pub(super) const fn most_ppm(self) -> u64 {
        match self {
            Self::Kernel => MOST_PPM * 10 / 11,
            Self::Threads | Self::ByRate | Self::ByDeadline | Self::Intervals => 1_000_000,
        }
    }
}
