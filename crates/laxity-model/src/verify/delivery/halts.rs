//! How often, and for how long, the machine stood still.

use crate::Span;

/// Halts of the machine, of which several who saw one that overlaps are one.
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
    pub(super) fn note(&mut self, known: Option<Span>, length: Span) {
        self.count += u64::from(known.is_none());
        self.longest = self.longest.max(length);
        self.total += length.saturating_sub(known.unwrap_or(Span::ZERO));
    }
}
