//! How evenly frames were shown.

use laxity_model::{Instant, Span};

/// From each frame of video to the next.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Intervals(pub Vec<Span>);

impl Intervals {
    /// Between these instants, which are in order.
    #[must_use]
    pub fn between(all: &[Instant]) -> Self {
        Self(all.windows(2).map(|pair| pair[1] - pair[0]).collect())
    }

    /// The variance, in thousandths of a square millisecond; `None` of fewer than two.
    pub fn variance(&self) -> Option<u64> {
        let count = i128::try_from(self.0.len()).ok()?;
        if count < 2 {
            return None;
        }
        let micros = |span: &Span| i128::from(span.as_nanos() / 1_000);
        let sum: i128 = self.0.iter().map(micros).sum();
        let squares: i128 = self.0.iter().map(|span| micros(span).pow(2)).sum();
        let variance = (squares * count - sum * sum) / (count * (count - 1));
        u64::try_from(variance / 1_000).ok()
    }

    /// The longest.
    pub fn longest(&self) -> Option<Span> {
        self.0.iter().max().copied()
    }

    /// The shortest.
    pub fn shortest(&self) -> Option<Span> {
        self.0.iter().min().copied()
    }
}

/// Thousandths of a square millisecond, in words.
pub(super) fn square(variance: u64) -> String {
    format!("{}.{} ms²", variance / 1_000, variance % 1_000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variance_is_that_of_a_sample() {
        let intervals = Intervals([98, 100, 102, 104].map(Span::from_millis).to_vec());
        // (9 + 1 + 1 + 9) / 3
        assert_eq!(intervals.variance(), Some(6_666));
        assert_eq!(Intervals::default().variance(), None);
    }
}
