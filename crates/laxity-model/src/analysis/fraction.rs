//! Exact fractions, and the exact comparison of a sum of them: utilizations of exactly 1 are common, and must not be misjudged.

use core::cmp::Ordering;
use core::{fmt, iter};

use super::exact::compare_sums_exactly;

/// A non-negative fraction of two 64-bit numbers, kept as it was given. Its denominator is never zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fraction {
    numerator: u64,
    denominator: u64,
}

/// Bits behind the point of the quick estimate.
const POINT: u32 = 32;

impl Fraction {
    /// One.
    pub const ONE: Self = Self {
        numerator: 1,
        denominator: 1,
    };

    /// `numerator` / `denominator`; `None` if the denominator is zero.
    #[must_use]
    pub const fn new(numerator: u64, denominator: u64) -> Option<Self> {
        if denominator == 0 {
            return None;
        }
        Some(Self {
            numerator,
            denominator,
        })
    }

    /// Above the line.
    #[inline]
    #[must_use]
    pub const fn numerator(self) -> u64 {
        self.numerator
    }

    /// Below the line; not zero.
    #[inline]
    #[must_use]
    pub const fn denominator(self) -> u64 {
        self.denominator
    }

    /// In parts per million, rounded up.
    #[must_use]
    pub fn ppm(self) -> u64 {
        let ppm = (u128::from(self.numerator) * 1_000_000).div_ceil(u128::from(self.denominator));
        u64::try_from(ppm).unwrap_or(u64::MAX)
    }

    /// How the sum of `terms` compares with this. Exact, and quick unless they are within some 10⁻⁹ of each other; then O(n²).
    #[must_use]
    pub fn compare_sum(self, terms: impl Iterator<Item = Self> + Clone) -> Ordering {
        let (mut least, mut count) = (0_u128, 1_u128);
        for term in terms.clone() {
            least += term.scaled();
            count += 1;
        }
        let own = self.scaled();
        // Every estimate is low by less than one unit.
        if least > own {
            return Ordering::Greater;
        }
        if least + count <= own {
            return Ordering::Less;
        }
        compare_sums_exactly(terms, iter::once(self))
    }

    /// In units of 2⁻³², rounded down.
    #[inline]
    fn scaled(self) -> u128 {
        if self.numerator >> POINT == 0 {
            u128::from((self.numerator << POINT) / self.denominator)
        } else {
            (u128::from(self.numerator) << POINT) / u128::from(self.denominator)
        }
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fraction(numerator: u64, denominator: u64) -> Fraction {
        Fraction::new(numerator, denominator).expect("not zero")
    }

    #[test]
    fn thirds_make_one() {
        let third = fraction(1, 3);
        assert_eq!(
            Fraction::ONE.compare_sum([third, third, third].into_iter()),
            Ordering::Equal
        );
        let more = fraction(u64::MAX / 3 + 1, u64::MAX);
        assert_eq!(
            Fraction::ONE.compare_sum([third, third, more].into_iter()),
            Ordering::Greater
        );
        let less = fraction(u64::MAX / 3 - 1, u64::MAX);
        assert_eq!(
            Fraction::ONE.compare_sum([third, third, less].into_iter()),
            Ordering::Less
        );
    }

    #[test]
    fn nothing_below_the_line_is_no_fraction() {
        assert_eq!(Fraction::new(1, 0), None);
    }

    proptest! {
        /// Small enough for 128 bits, near one often enough to need the exact way.
        #[test]
        fn sums_compare_as_over_the_common_denominator(
            terms in prop::collection::vec((1_u64..40, 1_u64..40), 0..5),
            own in (1_u64..80, 1_u64..40),
        ) {
            let common: u128 = terms.iter().map(|(_, d)| u128::from(*d)).product();
            let sum: u128 = terms.iter().map(|(n, d)| u128::from(*n) * common / u128::from(*d)).sum();
            let expected = (sum * u128::from(own.1)).cmp(&(u128::from(own.0) * common));
            let fractions = terms.iter().map(|(n, d)| fraction(*n, *d));
            prop_assert_eq!(fraction(own.0, own.1).compare_sum(fractions), expected);
        }
    }
}
