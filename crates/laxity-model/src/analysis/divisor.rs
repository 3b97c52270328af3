//! Division by the same number again and again.

use core::hint::cold_path;

/// A divisor, and its reciprocal in units of 2⁻⁶⁴, rounded down: dividing is a multiplication and at most one correction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Divisor {
    by: u64,
    reciprocal: u64,
}

impl Divisor {
    /// `by` must not be zero.
    #[inline]
    pub(super) const fn new(by: u64) -> Self {
        Self {
            by,
            reciprocal: u64::MAX / by,
        }
    }

    /// The divisor.
    #[inline]
    pub(super) const fn get(self) -> u64 {
        self.by
    }

    /// More than 2⁶⁴/`by` − 1 − 2⁻⁶⁴, and at most 2⁶⁴/`by`.
    #[inline]
    pub(super) const fn reciprocal(self) -> u64 {
        self.reciprocal
    }

    /// The quotient, rounded down, and the rest.
    #[inline]
    pub(super) fn divide(self, number: u64) -> (u64, u64) {
        let product = u128::from(number) * u128::from(self.reciprocal);
        // The reciprocal is low by at most one unit, so the estimate by at most one: nothing below can wrap.
        let estimate = (product >> 64) as u64;
        let rest = number.wrapping_sub(estimate.wrapping_mul(self.by));
        if rest >= self.by {
            (estimate.wrapping_add(1), rest.wrapping_sub(self.by))
        } else {
            (estimate, rest)
        }
    }

    /// How many times the divisor make no less than a number from 1 to 2⁶³, and by how much they exceed it.
    #[inline]
    pub(super) fn divide_up(self, number: u64) -> (u64, u64) {
        // Of a multiple the estimate is one too low, as the reciprocal is below 2⁶⁴/`by`; of others that is rare.
        let product = u128::from(number) * u128::from(self.reciprocal);
        let mut times = ((product >> 64) as u64).wrapping_add(1);
        let mut multiple = times.wrapping_mul(self.by);
        if multiple < number {
            cold_path();
            times = times.wrapping_add(1);
            multiple = multiple.wrapping_add(self.by);
        }
        (times, multiple.wrapping_sub(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn agrees(number: u64, by: u64) {
        let divisor = Divisor::new(by);
        assert_eq!(divisor.divide(number), (number / by, number % by));
        if (1..=1 << 63).contains(&number) {
            let times = number.div_ceil(by);
            assert_eq!(divisor.divide_up(number), (times, times * by - number));
        }
    }

    #[test]
    fn the_corners_divide() {
        let corners = [
            1,
            2,
            3,
            1 << 32,
            (1 << 63) - 1,
            1 << 63,
            u64::MAX - 1,
            u64::MAX,
        ];
        for by in corners {
            for number in corners {
                agrees(number, by);
            }
            agrees(0, by);
        }
    }

    proptest! {
        #[test]
        fn as_the_processor_divides(
            number in any::<u64>(), by in 1..=u64::MAX, (less, fewer) in (0_u32..64, 0_u32..64),
        ) {
            agrees(number >> less, (by >> fewer).max(1));
        }
    }
}
