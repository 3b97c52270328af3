//! How full a set may be so that a heuristic surely finds room for all of it.

use core::num::NonZeroU16;

use super::{Fit, Order};
use crate::analysis::Fraction;
use crate::analysis::utilization::{SQRT_2_LESS_ONE, liu_layland_bound};

/// If ΣU is no more than this, and no task's U is more than `largest`, then [`partition`](super::partition) places all tasks under earliest
/// deadline first: preemptible anywhere, D = T, no jitter, with a test that accepts ΣU ≤ 1
/// ([`earliest_deadline_first`](crate::analysis::utilization::earliest_deadline_first) or better). Zero if `largest` is more than 1.
///
/// With β = ⌊1/u⌋ tasks of the largest utilization u on one processor, it is (βm + 1)/(β + 1), and m − (m − 1)u for worst fit in the
/// order given: there many small tasks may leave equally little on every processor. Never rounded up.
///
/// Source: López, Díaz, García, "Utilization bounds for EDF scheduling on real-time multiprocessor systems", Real-Time Systems 28(1),
/// 2004. Why: where a task of utilization x fits nowhere, each processor has more than 1 − x, hence ΣU > m − (m − 1)x, which is enough
/// if x < 1/(β + 1). Else, in decreasing order, βm tasks of at least x went before. In the order given, each processor has at least β
/// tasks; under first and best fit the β first of a later one did not fit beside what an earlier one has, so all processors but one
/// have more than β/(β + 1).
///
/// ```
/// use core::num::NonZeroU16;
/// use laxity_model::analysis::Fraction;
/// use laxity_model::analysis::multiprocessor::{Fit, Order, edf_guarantee};
///
/// let four = NonZeroU16::new(4).expect("four");
/// let percent = |part| Fraction::new(part, 100).expect("a fraction");
/// // Any tasks at all: half of the processors and a bit. Up to a third each: 13/4.
/// assert_eq!(edf_guarantee(Fit::First, Order::Given, four, percent(100)).ppm(), 2_500_000);
/// assert_eq!(edf_guarantee(Fit::First, Order::Given, four, percent(33)).ppm(), 3_250_000);
/// assert_eq!(edf_guarantee(Fit::Worst, Order::Given, four, percent(33)).ppm(), 3_010_000);
/// ```
pub fn edf_guarantee(
    fit: Fit,
    order: Order,
    processors: NonZeroU16,
    largest: Fraction,
) -> Fraction {
    let m = u128::from(processors.get());
    let (above, below) = (
        u128::from(largest.numerator()),
        u128::from(largest.denominator()),
    );
    if above > below {
        return from_below(0, 1);
    }
    if (fit, order) == (Fit::Worst, Order::Given) {
        return from_below(m * below - (m - 1) * above, below);
    }
    // Without any task any β will do; and a smaller one is safe.
    let beta = below.checked_div(above).unwrap_or(u128::from(u32::MAX));
    let beta = beta.min(u128::from(u32::MAX));
    from_below(beta * m + 1, beta + 1)
}

/// If ΣU of `tasks` tasks is no more than this, and no U more than 1, then [`partition`](super::partition) places them all under rate monotonic
/// priorities: given by rate, preemptible anywhere, D = T, no jitter, with a test that accepts what
/// [`liu_layland`](crate::analysis::utilization::liu_layland) does. `None` where no guarantee is known to us: best and worst fit in the order given.
/// Never rounded up. m is the number of processors, n that of tasks.
///
/// * First fit in the order given: (m − 1)(√2 − 1) + (n − m + 1)(2^(1/(n − m + 1)) − 1); López, García, Díaz, García, "Utilization
///   bounds for multiprocessor rate-monotonic scheduling", Real-Time Systems 24(1), 2003. It is more than m(√2 − 1), of Oh, Baker,
///   "Utilization bounds for n-processor rate monotone scheduling with static processor assignment", Real-Time Systems 15(2), 1998.
/// * In decreasing order: (m + 1)(√2 − 1) for two processors or more; López, Díaz, García, "Minimum and maximum utilization bounds for
///   multiprocessor rate monotonic scheduling", IEEE Transactions on Parallel and Distributed Systems 15(7), 2004, for first and best
///   fit. For any fit: where a task of x fits nowhere, a processor with k tasks has k·x or more, and more than LL(k + 1) − x. On one
///   processor: Liu and Layland's bound, LL(n).
/// * With no more tasks than processors, any: n.
///
/// ```
/// use core::num::NonZeroU16;
/// use laxity_model::analysis::multiprocessor::{Fit, Order, rate_monotonic_guarantee};
///
/// let guarantee = |order, m: u16| {
///     rate_monotonic_guarantee(Fit::First, order, m.try_into().expect("not zero"), 100).expect("first fit").ppm()
/// };
/// assert_eq!(guarantee(Order::Given, 4), 1_938_271); // 3 · 0.4142 + 0.6956
/// assert_eq!(guarantee(Order::Decreasing, 4), 2_071_068); // 5 · 0.4142
/// ```
pub fn rate_monotonic_guarantee(
    fit: Fit,
    order: Order,
    processors: NonZeroU16,
    tasks: usize,
) -> Option<Fraction> {
    let m = u128::from(processors.get());
    let n = tasks as u128;
    if n <= m {
        return Some(from_below(n, 1));
    }
    // All have the same denominator.
    let unit = u128::from(SQRT_2_LESS_ONE.denominator());
    let root = u128::from(SQRT_2_LESS_ONE.numerator());
    let rest = liu_layland_bound(tasks + 1 - usize::from(processors.get()));
    let sum = match (fit, order) {
        _ if m == 1 => u128::from(rest.numerator()),
        (_, Order::Decreasing) => (m + 1) * root,
        // Less 10⁻¹² a processor, so that it holds though the tests' own bounds are rounded down.
        (Fit::First, Order::Given) => {
            (m - 1) * root + u128::from(rest.numerator()) - m * (unit >> 40)
        }
        _ => return None,
    };
    Some(from_below(sum, unit))
}

/// A fraction of two numbers of 64 bits, no more than that of these two.
fn from_below(mut numerator: u128, mut denominator: u128) -> Fraction {
    while numerator.max(denominator) > u128::from(u64::MAX) {
        numerator >>= 1;
        denominator = denominator.div_ceil(2);
    }
    let fits = |number| u64::try_from(number).unwrap_or(u64::MAX);
    Fraction::new(fits(numerator), fits(denominator)).unwrap_or(Fraction::ONE)
}
