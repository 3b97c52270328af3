//! Sums and products of fractions, compared exactly: quickly in fixed point where that decides, else in numbers of any length.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

use super::Fraction;

/// How Σ `left` compares with Σ `right`. Exact; quick unless they are within n·2⁻⁶⁴ of each other, then O(n²).
pub(super) fn compare_sums(
    left: impl Iterator<Item = Fraction> + Clone,
    right: impl Iterator<Item = Fraction> + Clone,
) -> Ordering {
    let quick = estimate(left.clone()).zip(estimate(right.clone()));
    if let Some(((left_low, left_high), (right_low, right_high))) = quick {
        if left_low > right_high {
            return Ordering::Greater;
        }
        if left_high < right_low {
            return Ordering::Less;
        }
    }
    compare_sums_exactly(left, right)
}

/// A sum in units of 2⁻⁶⁴, from below and from above; `None` if it does not fit.
fn estimate(terms: impl Iterator<Item = Fraction>) -> Option<(u128, u128)> {
    let (mut low, mut count) = (0_u128, 0_u128);
    for term in terms {
        let term = (u128::from(term.numerator()) << 64) / u128::from(term.denominator());
        low = low.checked_add(term)?;
        count += 1;
    }
    Some((low, low.checked_add(count)?))
}

/// Both sums over the product of all denominators.
pub(super) fn compare_sums_exactly(
    left: impl Iterator<Item = Fraction>,
    right: impl Iterator<Item = Fraction>,
) -> Ordering {
    let mut sums = [Natural::from(0), Natural::from(0)];
    let mut common = Natural::from(1);
    let terms = left.map(|term| (0, term));
    for (side, term) in terms.chain(right.map(|term| (1, term))) {
        let added = common.times(term.numerator());
        sums = sums.map(|sum| sum.times(term.denominator()));
        sums[side] = sums[side].plus(&added);
        common = common.times(term.denominator());
    }
    sums[0].cmp(&sums[1])
}

/// Π `factors` ≤ 2? Exact.
pub(super) fn product_is_at_most_two(factors: impl Iterator<Item = Fraction>) -> bool {
    let (mut numerator, mut denominator) = (Natural::from(1), Natural::from(1));
    for factor in factors {
        numerator = numerator.times(factor.numerator());
        denominator = denominator.times(factor.denominator());
    }
    numerator <= denominator.times(2)
}

/// A product of factors from 1 to 2, between two numbers in units of 2⁻⁶², as long as it is not sure to be more than 2.
#[derive(Clone, Copy)]
pub(super) struct Product {
    low: u128,
    high: u128,
}

impl Product {
    const POINT: u32 = 62;
    const TWO: u128 = 2 << Self::POINT;

    pub(super) const ONE: Self = Self {
        low: 1 << Self::POINT,
        high: 1 << Self::POINT,
    };

    /// Times a factor from 1 to 2. What exceeds 2 exceeds it for good: it is cut off just above, and so always fits.
    #[must_use]
    pub(super) fn times(self, factor: Fraction) -> Self {
        let (numerator, denominator) = (
            u128::from(factor.numerator()),
            u128::from(factor.denominator()),
        );
        Self {
            low: (self.low * numerator / denominator).min(Self::TWO + 1),
            high: (self.high * numerator)
                .div_ceil(denominator)
                .min(Self::TWO + 1),
        }
    }

    /// Whether it is at most 2, if that is known.
    pub(super) fn is_at_most_two(self) -> Option<bool> {
        if self.high <= Self::TWO {
            Some(true)
        } else if self.low > Self::TWO {
            Some(false)
        } else {
            None
        }
    }
}

/// A natural number of any length, least limb first, without leading zeros.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Natural(Vec<u64>);

impl From<u64> for Natural {
    fn from(number: u64) -> Self {
        Self(vec![number]).trimmed()
    }
}

impl Natural {
    fn trimmed(mut self) -> Self {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        self
    }

    #[must_use]
    pub(super) fn times(&self, factor: u64) -> Self {
        let mut carry = 0_u128;
        let mut product = Vec::with_capacity(self.0.len() + 1);
        for limb in &self.0 {
            carry += u128::from(*limb) * u128::from(factor);
            product.push(low(carry));
            carry >>= 64;
        }
        product.push(low(carry));
        Self(product).trimmed()
    }

    #[must_use]
    fn plus(&self, other: &Self) -> Self {
        let limb = |number: &Self, i: usize| u128::from(number.0.get(i).copied().unwrap_or(0));
        let length = self.0.len().max(other.0.len());
        let mut carry = 0_u128;
        let mut sum = Vec::with_capacity(length + 1);
        for i in 0..length {
            carry += limb(self, i) + limb(other, i);
            sum.push(low(carry));
            carry >>= 64;
        }
        sum.push(low(carry));
        Self(sum).trimmed()
    }
}

impl Ord for Natural {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_length = self.0.len().cmp(&other.0.len());
        by_length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

impl PartialOrd for Natural {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The lowest 64 bits.
const fn low(number: u128) -> u64 {
    (number & u64::MAX as u128) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fraction((numerator, denominator): (u64, u64)) -> Fraction {
        Fraction::new(numerator, denominator).expect("not zero")
    }

    #[test]
    fn the_largest_numbers_compare() {
        let most = fraction((u64::MAX, 1));
        let least = fraction((1, u64::MAX));
        assert_eq!(
            compare_sums([most, most, least].into_iter(), [most, most].into_iter()),
            Ordering::Greater
        );
        assert_eq!(
            compare_sums([most, most].into_iter(), [most, most].into_iter()),
            Ordering::Equal
        );
        assert_eq!(
            compare_sums([].into_iter(), [least].into_iter()),
            Ordering::Less
        );
    }

    #[test]
    fn a_product_near_two_is_left_open() {
        let (half, third) = (fraction((3, 2)), fraction((4, 3)));
        let exactly = Product::ONE.times(half).times(third);
        assert!(product_is_at_most_two([half, third].into_iter()));
        assert_ne!(exactly.is_at_most_two(), Some(false));
        let hair = fraction((u64::MAX, u64::MAX - 1));
        assert!(!product_is_at_most_two([half, third, hair].into_iter()));
        assert_ne!(exactly.times(hair).is_at_most_two(), Some(true));
        assert_eq!(exactly.times(third).is_at_most_two(), Some(false));
    }

    proptest! {
        /// Small enough for 128 bits.
        #[test]
        fn sums_compare_as_over_the_common_denominator(
            left in prop::collection::vec((0_u64..40, 1_u64..40), 0..4),
            right in prop::collection::vec((0_u64..40, 1_u64..40), 0..4),
        ) {
            let common: u128 = left.iter().chain(&right).map(|(_, d)| u128::from(*d)).product();
            let sum = |terms: &[(u64, u64)]| -> u128 {
                terms.iter().map(|(n, d)| u128::from(*n) * common / u128::from(*d)).sum()
            };
            let expected = sum(&left).cmp(&sum(&right));
            let sides = [left, right].map(|terms| terms.into_iter().map(fraction));
            let [left, right] = sides;
            prop_assert_eq!(compare_sums(left.clone(), right.clone()), expected);
            prop_assert_eq!(compare_sums_exactly(left, right), expected);
        }

        /// The quick answer, where it gives one, is the exact one.
        #[test]
        fn quick_products_agree(
            pairs in prop::collection::vec((1_u64..2_000, 1_u64..2_000), 1..8),
        ) {
            let factors = pairs.into_iter().map(|(a, b)| fraction((a.max(b) + a.min(b), a.max(b))));
            let quick = factors.clone().fold(Product::ONE, Product::times).is_at_most_two();
            let exact = product_is_at_most_two(factors);
            prop_assert!(quick.is_none_or(|quick| quick == exact));
        }
    }
}
