//! A host's time as its node counts it: what passes while the node is called as it asked for.

use crate::{Instant, Span};

/// From the host's clock to a time that neither goes back nor leaps: where the clock was set, or the node stood still, no time has passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steady {
    now: Instant,
    /// What the clock said then.
    clock: Instant,
}

impl Steady {
    /// The time is the clock's until that is set.
    pub(super) const fn new(now: Instant) -> Self {
        Self { now, clock: now }
    }

    /// The time now, where the node was to be called at that one. Where it is more than the tolerance after that it is that one.
    pub(super) fn at(&mut self, clock: Instant, due: Instant, tolerance: Span) -> Instant {
        let passed = clock.saturating_since(self.clock);
        let time = self.now.checked_add(passed).unwrap_or(Instant::MAX);
        let is_late = time.saturating_since(due) > tolerance;
        self.now = if is_late { due.max(self.now) } else { time };
        self.clock = clock;
        self.now
    }

    /// The time when it was last asked for.
    pub(super) const fn now(&self) -> Instant {
        self.now
    }

    /// What the clock will say then.
    pub(super) fn clock(&self, time: Instant) -> Instant {
        let left = time.saturating_since(self.now);
        self.clock.checked_add(left).unwrap_or(Instant::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: Instant = Instant::MAX;
    const TOLERANCE: Span = Span::from_secs(1);

    #[test]
    fn a_clock_that_is_set_back_by_an_hour_does_not_stop_the_time() {
        let mut steady = Steady::new(Instant::from_secs(7_000));
        let mut at = |clock| steady.at(Instant::from_secs(clock), NEVER, TOLERANCE);
        assert_eq!(at(7_001), Instant::from_secs(7_001));
        assert_eq!(at(3_401), Instant::from_secs(7_001));
        assert_eq!(at(3_403), Instant::from_secs(7_003));
        let due = Instant::from_secs(7_004);
        assert_eq!(steady.clock(due), Instant::from_secs(3_404));
    }

    #[test]
    fn no_time_passes_while_nobody_is_called_who_was_to_be() {
        let mut steady = Steady::new(Instant::from_secs(7_000));
        let due = Instant::from_secs(7_002);
        let mut at = |clock| steady.at(Instant::from_secs(clock), due, TOLERANCE);
        assert_eq!(at(7_001), Instant::from_secs(7_001));
        assert_eq!(at(10_603), due);
        assert_eq!(at(10_604), Instant::from_secs(7_003));
        assert_eq!(steady.clock(due), Instant::from_secs(10_604));
    }
}
