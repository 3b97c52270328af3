//! Stamps of the time of day, told as instants of the clock that nobody sets.
//!
//! The kernel stamps what a packet socket receives by `CLOCK_REALTIME`, which may be set at any time, forwards or back. How far it is from the monotonic
//! clock is read again every millisecond. A packet arrived after the ring was last seen empty, not before the one in front of it, and before now: an
//! instant outside that was stamped before the clock was set, and is told by how far the clocks were apart before, or, if that does not help, put at the
//! nearest end. So setting the clock moves no instant further than from one look at the ring to the next.

use laxity_model::{Instant, Span};

/// How long a distance between the clocks is good for: at most 500 parts per million are steered away meanwhile.
const GOOD_FOR: Span = Span::from_millis(1);

/// Both clocks at one moment, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Both {
    pub(super) monotonic: Instant,
    pub(super) of_day: u64,
}

/// Converts stamps in their order.
#[derive(Clone, Debug)]
pub(super) struct Stamps {
    now: Both,
    before: Both,
    /// No packet that is still to be taken arrived before.
    earliest: Instant,
}

impl Stamps {
    pub(super) const fn new(now: Both) -> Self {
        Self {
            now,
            before: now,
            earliest: now.monotonic,
        }
    }

    /// The ring was seen empty then.
    #[inline]
    pub(super) fn empty_at(&mut self, now: Instant) {
        self.earliest = self.earliest.max(now);
    }

    /// When a packet arrived that was stamped so, and is taken now.
    #[inline]
    pub(super) fn instant(
        &mut self,
        stamp: u64,
        mut now: Instant,
        read: impl Fn() -> Both,
    ) -> Instant {
        // It is no earlier than when both clocks were read last, as that was for the packet in front of it.
        now = now.max(self.now.monotonic);
        if now.saturating_since(self.now.monotonic) >= GOOD_FOR {
            self.look(read());
        }
        let mut found = told_by(self.now, stamp);
        if found > now || found < self.earliest {
            // The caller may have looked at the clock before it came, or it was set since.
            let both = read();
            now = now.max(both.monotonic);
            self.look(both);
            let ways = [self.now, self.before].map(|clocks| told_by(clocks, stamp));
            let fits = |at: &Instant| (self.earliest..=now).contains(at);
            let fitting = ways.into_iter().find(fits);
            found = fitting.unwrap_or_else(|| ways[0].max(self.earliest).min(now));
        }
        self.earliest = self.earliest.max(found);
        found
    }

    /// Keeps how far they were apart before, where that is not what it is now.
    fn look(&mut self, both: Both) {
        const SET: u64 = 1_000;
        let gone_on = told_by(self.now, both.of_day);
        let off = gone_on
            .saturating_since(both.monotonic)
            .max(both.monotonic.saturating_since(gone_on));
        if off.as_nanos() > SET {
            self.before = self.now;
        }
        self.now = both;
    }
}

/// The instant of a time of day, by two clocks that go alike.
fn told_by(clocks: Both, of_day: u64) -> Instant {
    let monotonic = clocks.monotonic.as_nanos();
    Instant::from_nanos(if of_day >= clocks.of_day {
        monotonic.saturating_add(of_day - clocks.of_day)
    } else {
        monotonic.saturating_sub(clocks.of_day - of_day)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000_000_000;
    const START: u64 = 1_700_000_000_000_000_000;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    fn both(monotonic: u64, ahead: u64) -> Both {
        Both {
            monotonic: at(monotonic),
            of_day: monotonic + ahead,
        }
    }

    #[test]
    fn a_stamp_is_told_to_the_nanosecond_while_nobody_sets_the_clock() {
        let mut stamps = Stamps::new(both(1_000, START));
        for arrival in [2_000, 5_000_000, 5_000_001, 9_000_000_000] {
            let now = arrival + 300;
            let found = stamps.instant(START + arrival, at(now), || both(now, START));
            assert_eq!(found, at(arrival));
        }
    }

    #[test]
    fn setting_the_clock_between_arrival_and_taking_moves_nothing() {
        for ahead in [START + HOUR, START - HOUR] {
            let mut stamps = Stamps::new(both(1_000, START));
            stamps.empty_at(at(10_000_000));
            // Stamped before the clock was set, taken after.
            let taken = 20_000_000;
            let found = stamps.instant(START + 15_000_000, at(taken), || both(taken, ahead));
            assert_eq!(found, at(15_000_000));
            // Stamped and taken after.
            let found = stamps.instant(ahead + 21_000_000, at(22_000_000), || {
                both(22_000_000, ahead)
            });
            assert_eq!(found, at(21_000_000));
        }
    }

    #[test]
    fn whatever_is_stamped_no_instant_is_later_than_now_or_before_the_last() {
        let mut stamps = Stamps::new(both(1_000, START));
        let mut last = at(1_000);
        let mut random = 1_u64;
        for step in 1..10_000_u64 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let now = 1_000 + step * 1_000;
            let ahead = START + (random >> 60) * HOUR;
            let found = stamps.instant(random >> 3, at(now), || both(now, ahead));
            assert!(found >= last && found <= at(now), "{found:?}");
            last = found;
        }
    }
}
