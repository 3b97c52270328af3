//! What a node's thread spends on what nobody was granted: frames that are forged or nobody's, best effort, signals, questions, and messages that come too fast.
//!
//! Above nearly all threads of its processor, it would hold that for as long as somebody sends without end. So it spends no more than a share of each period on all of these together, however they come. Who asks for more than is left waits for the next one, alone: over his link nothing is taken in meanwhile, or of his messages, and
//! others' go on. What is granted is no part of it, as it is bounded by what was promised.

use laxity_model::nif::most::{Most, Pace};
use laxity_model::{Instant, Span};

/// So many microseconds
const MOST: u32 = 500;
/// of each of these.
const EVERY: Span = Span::from_millis(1);
/// Whoever waits does so for this at the least: else what little is free again is spent on being woken for it.
const RESTS: Span = Span::from_micros(250);
/// What it takes to be woken for the first of them, and to look at all else.
const WOKEN: Span = Span::from_micros(5);

/// What is left of it.
pub(super) struct Spare {
    pace: Pace,
    is_woken: bool,
}

impl Spare {
    pub(super) fn new() -> Self {
        Self {
            pace: Pace::new(Most::new(MOST, EVERY)),
            is_woken: false,
        }
    }

    /// The thread looks at all that there is to do.
    pub(super) const fn looks(&mut self) {
        self.is_woken = true;
    }

    /// All since then was for somebody who was not granted it; until when he waits, where nothing is left.
    pub(super) fn spent(&mut self, since: Instant, now: Instant) -> Option<Instant> {
        let woken = match std::mem::take(&mut self.is_woken) {
            true => WOKEN,
            false => Span::ZERO,
        };
        let took = now.saturating_since(since).as_nanos() + woken.as_nanos();
        let micros = took.div_ceil(1_000);
        self.pace.took(now, micros.try_into().unwrap_or(usize::MAX));
        self.rests_until(now)
    }

    /// Until when nothing is left.
    pub(super) fn rests_until(&mut self, now: Instant) -> Option<Instant> {
        let until = self.pace.rests_until(now)?;
        Some(until.max(now.checked_add(RESTS).unwrap_or(until)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever takes all that there is: half of each millisecond, less what it takes to be woken, and no more of any, whether in many small pieces or in few.
    #[test]
    fn half_of_each_period_is_spent_and_no_more() {
        for piece in [
            Span::from_nanos(1),
            Span::from_nanos(1_500),
            Span::from_micros(100),
        ] {
            let mut spare = Spare::new();
            let (mut now, mut spent) = (Instant::ZERO, Span::ZERO);
            while now < Instant::ZERO + EVERY * 100 {
                spare.looks();
                let since = now;
                now += piece;
                spent += piece;
                if let Some(until) = spare.spent(since, now) {
                    assert!(until > now && until <= now + EVERY);
                    now = until;
                }
            }
            let all = Span::from_micros(MOST.into()) * 101 + piece;
            assert!(spent <= all, "{piece}: {spent}");
            if piece > WOKEN {
                assert!(spent >= all * 4 / 5, "{piece}: {spent}");
            }
        }
    }
}
