//! Utilizations that are uniform over all that have a given sum.

use super::{Draws, RecipeError};

/// So often a vector is drawn again before it is given up: more than that, and less than one in 10⁵ is what was asked for.
const TRIES_MAX: u32 = 100_000;

/// `count` utilizations with this sum, every such vector of non-negative numbers as likely as any other: UUniFast (Bini, Buttazzo,
/// "Measuring the performance of schedulability tests", Real-Time Systems 30, 2005). O(n).
///
/// The sum of what is left after i draws is the largest of n − i uniform numbers, which is a power of one.
#[must_use]
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

/// The same with none above `limit`: vectors with a larger one are drawn again (Davis, Burns, "Priority assignment for global fixed
/// priority pre-emptive scheduling in multiprocessor real-time systems", RTSS 2009, with 1 as the limit). Uniform over what is left.
///
/// # Errors
///
/// [`RecipeError::Impossible`] if the limit is too low for the sum, [`RecipeError::TooRare`] if 100,000 vectors in a row were discarded: then
/// [`BoundedSimplex`](super::BoundedSimplex) does it without discarding any.
pub fn uunifast_discard(
    count: usize,
    total: f64,
    limit: f64,
    draws: &mut Draws,
) -> Result<Vec<f64>, RecipeError> {
    if limit * (count as f64) < total {
        return Err(RecipeError::Impossible);
    }
    for _ in 0..TRIES_MAX {
        let utilizations = uunifast(count, total, draws);
        if utilizations.iter().all(|u| *u <= limit) {
            return Ok(utilizations);
        }
    }
    Err(RecipeError::TooRare)
}
