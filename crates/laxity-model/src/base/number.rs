//! Common divisors and multiples; medians.

use alloc::vec::Vec;
use core::cmp::Reverse;

/// The greatest common divisor (Euclid); the other number, if one is zero.
pub(crate) const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The least common multiple of numbers that are not zero, if it fits; of none, 1.
pub fn lcm(mut numbers: impl Iterator<Item = u64>) -> Option<u64> {
    numbers.try_fold(1_u64, |multiple, number| {
        (multiple / gcd(multiple, number)).checked_mul(number)
    })
}

/// The median; the lower one of an even number, `None` of none. O(n log n).
pub fn median<T: Ord + Copy>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    let middle = values.len().checked_sub(1)? / 2;
    values.get(middle).copied()
}

/// The same; the upper one of an even number: where less is better, half of the values are no worse.
pub fn upper_median<T: Ord + Copy>(values: impl Iterator<Item = T>) -> Option<T> {
    median(values.map(Reverse)).map(|Reverse(value)| value)
}

/// The last number of which something holds: of `yes` it does, of `no` it does not, and of no number after one of which it does not. By
/// bisection.
pub(crate) fn last_of<E>(
    mut yes: u64,
    mut no: u64,
    mut holds: impl FnMut(u64) -> Result<bool, E>,
) -> Result<u64, E> {
    while no - yes > 1 {
        let middle = yes + (no - yes) / 2;
        if holds(middle)? {
            yes = middle;
        } else {
            no = middle;
        }
    }
    Ok(yes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_divisors_and_multiples() {
        assert_eq!(
            (gcd(12, 18), gcd(18, 12), gcd(0, 7), gcd(7, 0)),
            (6, 6, 7, 7)
        );
        assert_eq!(lcm([4, 6, 10].into_iter()), Some(60));
        assert_eq!(lcm([].into_iter()), Some(1));
        assert_eq!(lcm([1 << 63, 3].into_iter()), None);
    }

    #[test]
    fn of_an_even_number_there_are_two_medians() {
        let all = [&[][..], &[7], &[9, 1], &[3, 1, 2], &[4, 1, 3, 2]];
        let lower = all.map(|values| median(values.iter().copied()));
        assert_eq!(lower, [None, Some(7), Some(1), Some(2), Some(2)]);
        let upper = all.map(|values| upper_median(values.iter().copied()));
        assert_eq!(upper, [None, Some(7), Some(9), Some(2), Some(3)]);
    }
}
