//! n(2^(1/n) − 1) from below, in integers.

use crate::analysis::Fraction;

/// Bits behind the point.
const POINT: u32 = 62;
/// 1, in units of 2⁻⁶².
const ONE: u64 = 1 << POINT;
/// 2, in units of 2⁻⁶².
const TWO: u64 = 1 << (POINT + 1);
/// So many roots are computed by the compiler.
const TABLED: usize = 33;

/// Roots by n; of index 0, the one for 1.
const ROOTS: [u64; TABLED] = {
    let mut roots = [ONE; TABLED];
    let mut n = 1;
    while n < TABLED {
        roots[n] = root_less_one(n as u64);
        n += 1;
    }
    roots
};

/// The least upper bound of rate monotonic scheduling, n(2^(1/n) − 1), as a fraction that is never more than it and less by at most
/// n·2⁻⁵⁹ (2·10⁻¹⁵ for a thousand tasks). 1 for no task, as for one.
///
/// Source: Liu, Layland, "Scheduling algorithms for multiprogramming in a hard-real-time environment", JACM 20(1), 1973, theorem 5.
/// Cost: O(1) up to 32 tasks, above O(log n) multiplications 62 times.
///
/// ```
/// use laxity_model::analysis::utilization::liu_layland_bound;
///
/// assert_eq!(liu_layland_bound(1).ppm(), 1_000_000);
/// assert_eq!(liu_layland_bound(2).ppm(), 828_428);
/// assert_eq!(liu_layland_bound(3).ppm(), 779_764);
/// assert_eq!(liu_layland_bound(1_000_000).ppm(), 693_148); // ln 2 is the limit
/// ```
pub fn liu_layland_bound(tasks: usize) -> Fraction {
    let n = (tasks as u64).max(1);
    let root = ROOTS
        .get(tasks)
        .copied()
        .unwrap_or_else(|| root_less_one(n));
    // (1 + root)^n ≤ 2, so by Bernoulli n · root ≤ 1: it fits.
    Fraction::new(n * root, ONE).unwrap_or(Fraction::ONE)
}

/// √2 − 1 from below: how full rate monotonic first fit leaves a processor at least, on the average.
pub(in crate::analysis) const SQRT_2_LESS_ONE: Fraction = match Fraction::new(ROOTS[2], ONE) {
    Some(fraction) => fraction,
    None => Fraction::ONE,
};

/// 2^(1/n) − 1 in units of 2⁻⁶², rounded down, at most a few units too low.
const fn root_less_one(n: u64) -> u64 {
    let (mut within, mut beyond) = (0, ONE + 1);
    while beyond - within > 1 {
        let middle = within + (beyond - within) / 2;
        if power_is_at_most_two(ONE + middle, n) {
            within = middle;
        } else {
            beyond = middle;
        }
    }
    within
}

/// Whether base^exponent ≤ 2, all steps rounded up: a yes is sure. From the highest bit of the exponent down, so that what is in
/// between never exceeds the end.
const fn power_is_at_most_two(base: u64, exponent: u64) -> bool {
    let mut power = ONE;
    let mut bit = u64::BITS - exponent.leading_zeros();
    while bit > 0 {
        bit -= 1;
        power = times_up(power, power);
        if power <= TWO && exponent >> bit & 1 == 1 {
            power = times_up(power, base);
        }
        if power > TWO {
            return false;
        }
    }
    true
}

/// The product of two numbers of at most 2, rounded up.
const fn times_up(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128).div_ceil(ONE as u128)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::exact::Natural;

    /// (2⁶² + b)^n against 2 · (2⁶²)^n.
    fn is_within(root: u64, n: u64) -> bool {
        let power = |base: u64| (0..n).fold(Natural::from(1), |power, _| power.times(base));
        power(ONE + root) <= power(ONE).times(2)
    }

    #[test]
    fn roots_are_never_too_high_and_hardly_too_low() {
        for n in (1..=64).chain([100, 333, 500]) {
            let root = root_less_one(n);
            assert!(is_within(root, n), "{n}");
            assert!(!is_within(root + 8, n), "{n}");
        }
    }

    #[test]
    fn bounds_fall() {
        let ordered = (1..4_096).map(liu_layland_bound);
        let next = (2..4_097).map(liu_layland_bound);
        for (bound, next) in ordered.zip(next) {
            assert!(next.numerator() < bound.numerator());
            assert_eq!(next.denominator(), bound.denominator());
        }
        assert_eq!(liu_layland_bound(0), liu_layland_bound(1));
    }
}
