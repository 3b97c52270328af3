//! When somebody looks again whom nobody is to foresee: whoever knows the instants at which he is looked for is never there then.

use crate::base::random::SplitMix64;
use crate::{Instant, Span};

/// Into so many parts half of a pause is divided, of which some are drawn.
const PARTS: u64 = 1 << 10;

/// The instants of looks that come by themselves, whatever others are asked for meanwhile.
///
/// ```
/// use laxity_model::enforce::Unforeseen;
/// use laxity_model::{Instant, Span};
///
/// let pause = Span::from_millis(100);
/// let mut looks = Unforeseen::new(Instant::ZERO, 7);
/// assert_eq!(looks.due(pause), Instant::from_millis(100));
/// // One that somebody asked for puts nothing off.
/// looks.looked(Instant::from_millis(90), pause);
/// assert_eq!(looks.due(pause), Instant::from_millis(100));
/// looks.looked(Instant::from_millis(101), pause);
/// let next = looks.due(pause);
/// assert!(next >= Instant::from_millis(151) && next < Instant::from_millis(201));
/// ```
#[derive(Clone, Debug)]
pub struct Unforeseen {
    since: Instant,
    draws: SplitMix64,
    /// So many parts of half a pause lie beyond the other half.
    drawn: u64,
}

impl Unforeseen {
    /// The first comes a whole pause after this instant; where the others come follows from the seed.
    #[must_use]
    pub const fn new(since: Instant, seed: u64) -> Self {
        Self {
            since,
            draws: SplitMix64::new(seed),
            drawn: PARTS,
        }
    }

    /// When the next one comes: after half a pause at least, and the whole of it at most.
    #[must_use]
    pub fn due(&self, pause: Span) -> Instant {
        let half = pause / 2;
        self.since + (pause.saturating_sub(half) + half * self.drawn / PARTS)
    }

    /// Somebody looks now. If that was due, it is drawn when the next comes.
    pub fn looked(&mut self, now: Instant, pause: Span) {
        if now >= self.due(pause) {
            self.begin(now);
        }
    }

    /// Looks count from now on: it is drawn when the first comes.
    pub const fn begin(&mut self, now: Instant) {
        self.since = now;
        self.drawn = self.draws.draw() % PARTS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Span = Span::from_millis(100);

    /// Of each 20 ms somebody is there for 9, and each time that he has gone an alarm has somebody look; so often he is there when that is done by itself.
    fn met(seed: u64) -> usize {
        let mut looks = Unforeseen::new(Instant::ZERO, seed);
        let mut met = 0;
        for turn in 0..125 {
            let comes = Instant::from_millis(20 * turn);
            let gone = comes + Span::from_millis(9);
            let comes_again = comes + Span::from_millis(20);
            for (until, is_there) in [(gone, true), (comes_again, false)] {
                while looks.due(PAUSE) < until {
                    met += usize::from(is_there);
                    looks.looked(looks.due(PAUSE), PAUSE);
                }
                looks.looked(until, PAUSE);
            }
        }
        met
    }

    #[test]
    fn who_is_there_for_half_of_the_time_is_met_however_often_alarms_are_raised() {
        for seed in 0..200 {
            assert!(met(seed) >= 3, "{seed}: {}", met(seed));
        }
    }

    #[test]
    fn the_next_comes_after_half_a_pause_or_more_and_no_two_seeds_agree() {
        let of = |seed| {
            let mut looks = Unforeseen::new(Instant::ZERO, seed);
            let mut before = Instant::ZERO;
            let pauses = (0..50).map(|_| {
                let now = looks.due(PAUSE);
                looks.looked(now, PAUSE);
                now.saturating_since(core::mem::replace(&mut before, now))
            });
            pauses.collect::<alloc::vec::Vec<_>>()
        };
        let pauses = of(1);
        let in_range = |pause: &Span| *pause >= PAUSE / 2 && *pause <= PAUSE;
        assert!(pauses.iter().all(in_range), "{pauses:?}");
        assert_ne!(pauses, of(2));
        assert_eq!(pauses, of(1));
    }
}
