//! How evenly frames were shown.

use laxity_lab::report::fixed;
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
        let all = count * (count - 1) * 1_000;
        u64::try_from((squares * count - sum * sum + all / 2) / all).ok()
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

/// Thousandths of a square millisecond, in words: all of them, so that how many times less one is than another can be reckoned again from what is printed.
pub(super) fn square(variance: u64) -> String {
    let number = fixed(variance, 1_000, 3);
    let number = number.trim_end_matches('0').trim_end_matches('.');
    format!("{number} ms²")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variance_is_that_of_a_sample() {
        let intervals = Intervals([98, 100, 102, 104].map(Span::from_millis).to_vec());
        // (9 + 1 + 1 + 9) / 3
        assert_eq!(intervals.variance(), Some(6_667));
        assert_eq!(Intervals::default().variance(), None);
    }

    #[test]
    fn what_is_printed_is_all_that_a_ratio_is_made_of() {
        let all = [75_234, 968, 49_000, 0].map(square);
        assert_eq!(all, ["75.234 ms²", "0.968 ms²", "49 ms²", "0 ms²"]);
    }
}
