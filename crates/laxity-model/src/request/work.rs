//! What is known of an activity's work before it runs.

use crate::{Service, Span};

/// Work that is known to come: at most `service` in every `period`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// How much.
    pub service: Service,
    /// How often; more than zero.
    pub period: Span,
}

impl Work {
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
