//! Utilizations that are uniform over all that have a given sum.

use super::Draws;

/// `count` utilizations with this sum, every such vector of non-negative numbers as likely as any other: UUniFast (Bini, Buttazzo,
/// "Measuring the performance of schedulability tests", Real-Time Systems 30, 2005). O(n).
///
/// The sum of what is left after i draws is the largest of n − i uniform numbers, which is a power of one.
pub fn uunifast(count: usize, total: f64, draws: &mut Draws) -> Vec<f64> {
    let mut utilizations = Vec::with_capacity(count);
    let mut left = total;
    for after in (1..count).rev() {
        let next = left * libm::pow(draws.open_unit(), 1.0 / after as f64);
        utilizations.push(left - next);
        left = next;
    }
    if count > 0 {
        utilizations.push(left);
    }
    utilizations
}
