//! Exact fractions, and the exact comparison of a sum of them: utilizations of exactly 1 are common, and must not be misjudged.

use core::cmp::Ordering;
use core::hash::{Hash, Hasher};
use core::iter;

use super::exact::compare_sums_exactly;
use crate::base::number::gcd;
use crate::{Service, Span};
use derive_more::Display;

/// A non-negative fraction of two 64-bit numbers, kept as it was given. Its denominator is never zero.
///
/// Fractions are compared by value, exactly: 1/2 and 2/4 are equal, and are the same key.
#[derive(Clone, Copy, Debug, Display)]
#[display("{numerator}/{denominator}")]
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

    /// So much service in every so much time, which must not be zero.
    pub(super) fn of(service: Service, span: Span) -> Self {
        Self::new(service.as_nanos(), span.as_nanos()).unwrap_or(Self::ONE)
    }

    /// The same number in lowest terms.
    pub(super) const fn reduced(self) -> Self {
        // Not zero, because the denominator is not.
        let common = gcd(self.numerator, self.denominator);
        Self {
            numerator: self.numerator / common,
            denominator: self.denominator / common,
        }
    }

    /// Above the line.
    #[inline]
    pub const fn numerator(self) -> u64 {
        self.numerator
    }

    /// Below the line; not zero.
    #[inline]
    pub const fn denominator(self) -> u64 {
        self.denominator
    }

    /// In parts per million, rounded up.
    pub fn ppm(self) -> u64 {
        let ppm = (u128::from(self.numerator) * 1_000_000).div_ceil(u128::from(self.denominator));
        u64::try_from(ppm).unwrap_or(u64::MAX)
    }

    /// How the sum of `terms` compares with this. Exact, and quick unless they are within some 10⁻⁹ of each other; then O(n²).
    pub fn compare_sum(self, terms: impl Iterator<Item = Self> + Clone) -> Ordering {
        let quick = self.compare_sum_quickly(terms.clone());
        quick.unwrap_or_else(|| compare_sums_exactly(terms, iter::once(self)))
    }

    /// The same in O(n); `None` where they are so close that only numbers of any length tell.
    pub(crate) fn compare_sum_quickly(self, terms: impl Iterator<Item = Self>) -> Option<Ordering> {
        let (mut least, mut count) = (0_u128, 1_u128);
        for term in terms {
            least += term.scaled();
            count += 1;
        }
        let own = self.scaled();
        // Every estimate is low by less than one unit.
        if least > own {
            return Some(Ordering::Greater);
        }
        (least + count <= own).then_some(Ordering::Less)
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

impl PartialEq for Fraction {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Fraction {}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fraction {
    fn cmp(&self, other: &Self) -> Ordering {
        let product = |above: &Self, below: &Self| {
            u128::from(above.numerator) * u128::from(below.denominator)
        };
        product(self, other).cmp(&product(other, self))
    }
}

impl Hash for Fraction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let reduced = self.reduced();
        (reduced.numerator, reduced.denominator).hash(state);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

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
    fn fractions_are_equal_by_value() {
        assert_eq!(fraction(1, 2), fraction(2, 4));
        assert_eq!(fraction(0, 3), fraction(0, 7));
        assert_eq!(fraction(6, 8).reduced().denominator(), 4);
        // Next to each other, and to one.
        let (most, less) = (u64::MAX, u64::MAX - 1);
        assert!(fraction(less, most) < Fraction::ONE && Fraction::ONE < fraction(most, less));
        assert!(fraction(less - 1, less) < fraction(less, most));
        let hash = |fraction: Fraction| {
            let mut state = std::hash::DefaultHasher::new();
            fraction.hash(&mut state);
            state.finish()
        };
        assert_eq!(hash(fraction(1, 2)), hash(fraction(2, 4)));
        assert_ne!(hash(fraction(1, 2)), hash(fraction(1, 4)));
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
