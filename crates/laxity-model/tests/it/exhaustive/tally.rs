//! What was counted: a check that never had anything to check is seen here.

use crate::exhaustive::explore::Policy;

/// Counts over all sets.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Tally {
    pub(crate) runs: u64,
    pub(crate) schedulable: u64,
    pub(crate) not_schedulable: u64,
    pub(crate) unknown: u64,
    pub(crate) unbounded: u64,
    /// Missed deadlines that were named by a test and seen.
    pub(crate) witnesses: u64,
    /// Bounds by fixed priority, all reached.
    pub(crate) priority_bounds: u64,
    /// Bounds by earliest deadline without jitter where the processor is idle at times, all reached.
    pub(crate) deadline_bounds: u64,
    /// The other bounds by earliest deadline: how many there are, and how many were reached.
    pub(crate) jitter_bounds: (u64, u64),
    /// Bounds for first in, first out, all reached.
    pub(crate) queues: u64,
    pub(crate) accepted_by_bounds: u64,
    pub(crate) regions: u64,
    pub(crate) orders: u64,
    pub(crate) final_regions: u64,
    pub(crate) supplies: u64,
    pub(crate) supplies_reached: u64,
}

impl Tally {
    pub(crate) fn bound(&mut self, policy: Policy, is_other: bool, reached: bool) {
        match (policy, is_other) {
            (Policy::FirstReleased, _) => self.queues += 1,
            (Policy::FixedPriority, _) => self.priority_bounds += 1,
            (Policy::EarliestDeadline, false) => self.deadline_bounds += 1,
            (Policy::EarliestDeadline, true) => {
                self.jitter_bounds.0 += 1;
                self.jitter_bounds.1 += u64::from(reached);
            }
        }
    }
}
