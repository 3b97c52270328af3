//! Common divisors and multiples.

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
}
