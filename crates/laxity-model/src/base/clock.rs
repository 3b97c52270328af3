//! A host's clock in virtual time, which need not be right: it may be ahead, gain, and be set.

use crate::Instant;

const BILLION: i128 = 1_000_000_000;

/// What a host's clock says against a calendar's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clock {
    said: u64,
    at: u64,
    ppb: i32,
}

impl Clock {
    /// It is set to this at an instant of the calendar, and gains so many billionths from then on; it loses them where they are negative, of which there are less than a billion.
    #[must_use]
    pub const fn set(says: Instant, at: Instant, ppb: i32) -> Self {
        Self {
            said: says.as_nanos(),
            at: at.as_nanos(),
            ppb,
        }
    }

    /// One that is right.
    #[must_use]
    pub const fn right() -> Self {
        Self::set(Instant::ZERO, Instant::ZERO, 0)
    }

    /// What it says at an instant of the calendar that is not before it was set. What would be before zero is zero.
    #[must_use]
    pub fn says(self, at: Instant) -> Instant {
        let passed = i128::from(at.as_nanos()) - i128::from(self.at);
        let says = i128::from(self.said) + passed + passed * i128::from(self.ppb) / BILLION;
        let says = says.clamp(0, i128::from(u64::MAX));
        Instant::from_nanos(u64::try_from(says).unwrap_or(u64::MAX))
    }

    /// The first instant of the calendar at which it says this or more, which is not before it was set; [`Instant::MAX`] is never said.
    #[must_use]
    pub fn reaches(self, says: Instant) -> Instant {
        if says == Instant::MAX {
            return says;
        }
        let more = i128::from(says.as_nanos()) - i128::from(self.said);
        let rate = BILLION + i128::from(self.ppb);
        let passed = u64::try_from((more * BILLION).div_euclid(rate)).unwrap_or(0);
        let at = self.at.saturating_add(passed);
        // What the division left is less than two nanoseconds.
        let near = (0..3).map(|more| Instant::from_nanos(at.saturating_add(more)));
        near.clone()
            .find(|at| self.says(*at) >= says)
            .unwrap_or(Instant::from_nanos(at.saturating_add(3)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_clock_gains_what_it_is_said_to() {
        let clock = Clock::set(Instant::from_secs(3_600), Instant::from_secs(1), 200_000);
        assert_eq!(clock.says(Instant::from_secs(1)), Instant::from_secs(3_600));
        let says = Instant::from_secs(3_610) + crate::Span::from_millis(2);
        assert_eq!(clock.says(Instant::from_secs(11)), says);
        assert_eq!(clock.reaches(says), Instant::from_secs(11));
        assert_eq!(
            clock.reaches(Instant::ZERO),
            Instant::from_secs(1),
            "not before it was set"
        );
        assert_eq!(clock.reaches(Instant::MAX), Instant::MAX);
    }

    proptest! {
        #[test]
        fn it_is_reached_at_the_first_instant(
            said in 0..1_u64 << 50, at in 0..1_u64 << 50, ppb in -300_000..300_000_i32, more in 1..1_u64 << 50,
        ) {
            let clock = Clock::set(Instant::from_nanos(said), Instant::from_nanos(at), ppb);
            let says = Instant::from_nanos(said + more);
            let reached = clock.reaches(says);
            prop_assert!(clock.says(reached) >= says);
            prop_assert!(clock.says(Instant::from_nanos(reached.as_nanos() - 1)) < says);
        }
    }
}
