//! What is known of an activity's work before it runs.

use crate::{Service, Span};

/// The period of what comes once: longer than any window that is looked at.
pub const ONCE: Span = Span::from_secs(100_000);

/// Work that is known to come: at most `service` in every `period`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// How much.
    pub service: Service,
    /// How often; more than zero.
    pub period: Span,
}

impl Work {
    /// How many jobs work in a window at most: those that begin in it, and one from before where there may be two.
    pub fn jobs_in(self, window: Span) -> u64 {
        let begin = window.as_nanos().div_ceil(self.period.as_nanos().max(1));
        begin.saturating_add(u64::from(self.period < ONCE))
    }

    /// The share of one processor in parts per million, rounded up; work without a period takes all of it.
    pub fn share_ppm(self) -> u64 {
        let period = u128::from(self.period.as_nanos());
        if period == 0 {
            return 1_000_000;
        }
        let share = (u128::from(self.service.as_nanos()) * 1_000_000).div_ceil(period);
        u64::try_from(share).unwrap_or(u64::MAX)
    }
}
