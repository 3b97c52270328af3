//! A host's time as its node counts it: it never goes back, and it is known when the node itself came late.

use crate::{Instant, Span};

/// From the host's clock, which may be set back, to a time that goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steady {
    now: Instant,
    /// How much the clock has been set back in all.
    back: Span,
}

impl Steady {
    /// The time is the clock's until that is set.
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            now,
            back: Span::ZERO,
        }
    }

    /// The time now. It has stood still while a clock was set back.
    pub(super) fn at(&mut self, clock: Instant) -> Instant {
        let time = clock.checked_add(self.back).unwrap_or(Instant::MAX);
        if time < self.now {
            self.back = self.now.saturating_since(clock);
        }
        self.now = self.now.max(time);
        self.now
    }

    /// The time when it was last asked for.
    pub(super) const fn now(&self) -> Instant {
        self.now
    }

    /// What the clock will say then.
    pub(super) const fn clock(&self, time: Instant) -> Instant {
        time.saturating_sub(self.back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_by_an_hour_does_not_stop_the_time() {
        let mut steady = Steady::new(Instant::from_secs(7_000));
        assert_eq!(
            steady.at(Instant::from_secs(7_001)),
            Instant::from_secs(7_001)
        );
        let set_back = Instant::from_secs(3_401);
        assert_eq!(steady.at(set_back), Instant::from_secs(7_001));
        let due = Instant::from_secs(7_003);
        assert_eq!(steady.clock(due), Instant::from_secs(3_403));
        assert_eq!(steady.at(Instant::from_secs(3_403)), due);
    }
}
