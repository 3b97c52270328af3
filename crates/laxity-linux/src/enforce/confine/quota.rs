//! Confinement by a quota of the fair class: real-time in the slot, almost nothing outside it, and nothing to notice.

use std::fs;
use std::thread;
use std::time::Duration;

use laxity_model::enforce::slots::MOST_SHARE_PPM;

use super::group::{ConfineError, Group};
use crate::os::cgroup::Hierarchy;

/// The least quota that the kernel takes, in microseconds.
const QUOTA_US: u64 = 1_000;
/// The longest period that it takes, in microseconds.
const PERIOD_US: u64 = 1_000_000;

/// How often, a millisecond apart, real-time runtime is asked for that is not there.
const RETRIES: usize = 500;

/// A group whose processes get at most 1 ms in a second while they are ordinary threads, and whatever their rank gives them while
/// they are real-time. Dropping it moves them back and removes it; their policy is the caller's to restore.
///
/// The leak of at most 0.1 % comes in bursts of up to some milliseconds, since the kernel hands quota out in slices.
#[derive(Debug)]
pub struct FairQuota {
    group: Group,
}

impl FairQuota {
    /// An empty group; `name` is a part of its directory's name, `slots_ppm` the share of a processor that its slots take, in
    /// parts per million.
    ///
    /// Needs the `cpu` controller: that of cgroup v1, or that of v2 where our own group already hands it down.
    pub fn create(name: &str, slots_ppm: u32) -> Result<Self, ConfineError> {
        let version_1 = Group::create(Hierarchy::V1("cpu"), name);
        let (group, unified) = match version_1 {
            Err(ConfineError::NotMounted(_) | ConfineError::Hidden(_)) => {
                (Group::create(Hierarchy::Unified, name)?, true)
            }
            other => (other?, false),
        };
        let quota = Self { group };
        if unified {
            quota
                .group
                .write("cpu.max", &format!("{QUOTA_US} {PERIOD_US}"))?;
        } else {
            quota
                .group
                .write("cpu.cfs_period_us", &PERIOD_US.to_string())?;
            quota
                .group
                .write("cpu.cfs_quota_us", &QUOTA_US.to_string())?;
            quota.permit_real_time(slots_ppm)?;
        }
        Ok(quota)
    }

    /// Where real-time groups are compiled in, a new group of version 1 has no real-time runtime, and refuses `SCHED_FIFO`.
    fn permit_real_time(&self, slots_ppm: u32) -> Result<(), ConfineError> {
        const FILE: &str = "cpu.rt_runtime_us";
        if !fs::exists(self.group.path().join(FILE)).unwrap_or(false) {
            return Ok(());
        }
        // Of a period of one second, so that parts per million are microseconds. A quarter more than the slots' share, and a
        // twentieth of a processor, as short slots are many: the kernel stops a group that has used its runtime for the rest of the second, which must not
        // happen by the dispatcher's jitter. And no more than that: all groups of the machine share what there is of one processor.
        let runtime_us = (slots_ppm + slots_ppm / 4 + 50_000).min(MOST_SHARE_PPM);
        let runtime_us = runtime_us.to_string();
        // The runtime of a group that was just removed comes back a moment later, and until then too much is EINVAL.
        for _ in 0..RETRIES {
            match self.group.write(FILE, &runtime_us) {
                Err(ConfineError::File { source, .. })
                    if source.raw_os_error() == Some(libc::EINVAL) =>
                {
                    thread::sleep(Duration::from_millis(1));
                }
                other => return other,
            }
        }
        Err(ConfineError::NoRuntime { runtime_us })
    }

    /// Puts a process there, with all its threads and what it starts later.
    pub fn add(&self, process: i32) -> Result<(), ConfineError> {
        self.group.add(process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::rights::{self, Right};

    /// All groups of the machine share what real-time work may take of one processor, on whichever they are.
    #[test]
    fn two_programs_have_a_quarter_each_at_the_same_time() {
        if let Some(why) = rights::missing(Right::FairQuota) {
            return rights::lacks(&why);
        }
        let one = FairQuota::create("quota-one", 250_000);
        let other = FairQuota::create("quota-other", 250_000);
        assert!(one.is_ok() && other.is_ok(), "{one:?} {other:?}");
    }
}
