//! How often, and for how long, the machine stood still, or laxity itself.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::{Disturbance, Instant, Span};

/// Of a holder that does not run so many standstills of a kind at most are remembered, the latest: no wait is excused by more.
const MOST_DISTURBED: usize = 64;

/// Halts of the machine, or stops of laxity itself, of which several who saw one that overlaps are one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Halts {
    /// How many.
    pub count: u64,
    /// The longest.
    pub longest: Span,
    /// All of them.
    pub total: Span,
}

impl Halts {
    /// One more of this length; or one of which so much was known already.
    fn note(&mut self, known: Option<Span>, length: Span) {
        self.count += u64::from(known.is_none());
        self.longest = self.longest.max(length);
        self.total += length.saturating_sub(known.unwrap_or(Span::ZERO));
    }
}

/// When something stood still last, each in the order in which it began: what was before it bears on nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Standstills {
    /// The machine.
    pub(super) halts: Vec<Disturbance>,
    /// Laxity itself, since somebody had stopped it.
    pub(super) stops: Vec<Disturbance>,
}

impl Standstills {
    /// Whether there was one at some time between these.
    pub(super) fn within(&self, from: Instant, to: Instant) -> bool {
        let mut all = self.halts.iter().chain(&self.stops);
        all.any(|still| still.overlaps(from, to))
    }

    /// Of either kind.
    pub(super) fn all(&self) -> Cow<'_, [Disturbance]> {
        if self.stops.is_empty() {
            return Cow::Borrowed(&self.halts);
        }
        let mut all = [&self.halts[..], &self.stops].concat();
        all.sort_by_key(|still| still.from);
        Cow::Owned(all)
    }
}

/// One more of these, which began in this order.
pub(super) fn note(all: &mut Vec<Disturbance>, halts: &mut Halts, still: Disturbance) {
    match all.last_mut() {
        Some(last) if still.from <= last.to => {
            let known = last.length();
            last.from = last.from.min(still.from);
            last.to = last.to.max(still.to);
            halts.note(Some(known), last.length());
        }
        _ => {
            if all.len() == MOST_DISTURBED {
                all.remove(0);
            }
            all.push(still);
            halts.note(None, still.length());
        }
    }
}

/// In how many of so many periods before an instant there was one of these, which began in this order, from `awake` on.
pub(super) fn periods_touched(
    all: &[Disturbance],
    period: Span,
    awake: Instant,
    (at, periods): (Instant, u64),
) -> u64 {
    let first = at.saturating_sub(period * periods);
    let number = |instant: Instant| {
        let since = instant.saturating_since(first);
        since.as_nanos() / period.as_nanos()
    };
    let (mut touched, mut next) = (0, 0);
    for still in all {
        let (from, to) = (still.from.max(awake).max(first), still.to.min(at));
        if from < to {
            let end = number(to - Span::from_nanos(1)) + 1;
            touched += end.saturating_sub(number(from).max(next));
            next = end.max(next);
        }
    }
    touched
}
