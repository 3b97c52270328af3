//! Utilizations with a given sum, each with a bound of its own.

use super::{Draws, RecipeError};

/// The most steps that a sum may be divided into.
const STEPS_MAX: usize = 1 << 20;
/// The most places in the table of weights: 128 MB.
const TABLE_MAX: usize = 1 << 24;

/// Draws vectors with a given sum under a bound for each component, all vectors as likely as each other.
///
/// That is the distribution that Dirichlet-Rescale is made for (Griffin, Bate, Davis, "Generating utilization vectors for the systematic
/// evaluation of schedulability tests", RTSS 2020), made in another way: the sum is divided into equal steps, and the vectors of whole
/// steps within the bounds are *counted*, so each is drawn with the same probability by construction, whatever the bounds, and none is
/// discarded. The price is that utilizations are multiples of sum / steps, and a table of (n + 1) · (steps + 1) numbers.
///
/// Bounds are rounded down to whole steps, never up.
#[derive(Clone, Debug)]
pub struct BoundedSimplex {
    step: f64,
    /// In steps.
    bounds: Vec<usize>,
    /// `weights[i][s]`: in how many ways the first i components can have the sum s, times a factor that depends on i only.
    weights: Vec<Vec<f64>>,
}

impl BoundedSimplex {
    /// Prepares to draw vectors with this sum, component i at most `bounds[i]`, in this many steps. O(n · steps).
    ///
    /// # Errors
    ///
    /// [`RecipeError::Number`] for a sum that is not positive, a bound that is negative, or neither a number; [`RecipeError::Steps`] for
    /// no steps or too many for memory; [`RecipeError::Impossible`] if the bounds, rounded down to steps, do not reach the sum.
    pub fn new(total: f64, bounds: &[f64], steps: usize) -> Result<Self, RecipeError> {
        if !(total.is_finite() && total > 0.0) {
            return Err(RecipeError::Number("the sum of utilizations", total));
        }
        if let Some(bad) = bounds.iter().find(|b| b.is_nan() || **b < 0.0) {
            return Err(RecipeError::Number("a bound of utilization", *bad));
        }
        if !(1..=STEPS_MAX).contains(&steps) || bounds.len() >= TABLE_MAX / (steps + 1) {
            return Err(RecipeError::Steps);
        }
        let step = total / steps as f64;
        // Saturates, and is cut to the sum anyway.
        let bounds: Vec<usize> = bounds
            .iter()
            .map(|bound| (libm::floor(bound / step * (1.0 + f64::EPSILON)) as usize).min(steps))
            .collect();
        if bounds.iter().sum::<usize>() < steps {
            return Err(RecipeError::Impossible);
        }
        let mut first = vec![0.0; steps + 1];
        first[0] = 1.0;
        let mut weights = vec![first];
        for bound in &bounds {
            let last = &weights[weights.len() - 1];
            weights.push(scaled(window_sums(last, bound + 1)));
        }
        Ok(Self {
            step,
            bounds,
            weights,
        })
    }

    /// One vector. O(n · steps) at worst.
    #[must_use]
    pub fn draw(&self, draws: &mut Draws) -> Vec<f64> {
        let steps = self.draw_steps(draws);
        steps.iter().map(|s| *s as f64 * self.step).collect()
    }

    /// The vector in whole steps: from the last component to the first, each with the probability that the others can make up the rest.
    fn draw_steps(&self, draws: &mut Draws) -> Vec<usize> {
        let mut drawn = vec![0; self.bounds.len()];
        let mut left = self.weights[0].len() - 1;
        for (index, &bound) in self.bounds.iter().enumerate().rev() {
            let ways = &self.weights[index][left - bound.min(left)..=left];
            let total: f64 = ways.iter().sum();
            let mut mark = draws.unit() * total;
            // Component k leaves left − k, so the ways lie in reverse. The last possible one is the choice that rounding may leave.
            let mut chosen = 0;
            for (k, weight) in ways.iter().rev().enumerate().filter(|(_, w)| **w > 0.0) {
                chosen = k;
                if mark < *weight {
                    break;
                }
                mark -= weight;
            }
            drawn[index] = chosen;
            left -= chosen;
        }
        drawn
    }
}

/// At s, the sum of the `width` numbers up to s. Additions only: a running sum that also subtracts would lose the small ones, which are
/// all that count where the bounds are tight. Blocks of the width, summed from their begin and from their end (van Herk's trick): O(n).
fn window_sums(numbers: &[f64], width: usize) -> Vec<f64> {
    let mut prefix = numbers.to_vec();
    let mut suffix = numbers.to_vec();
    for block in prefix.chunks_mut(width) {
        for i in 1..block.len() {
            block[i] += block[i - 1];
        }
    }
    for block in suffix.chunks_mut(width) {
        for i in (1..block.len()).rev() {
            block[i - 1] += block[i];
        }
    }
    (0..numbers.len())
        .map(|end| match (end + 1).checked_sub(width) {
            None => prefix[end],
            Some(begin) if begin % width == 0 => prefix[end],
            Some(begin) => suffix[begin] + prefix[end],
        })
        .collect()
}

/// So that the largest is 1: numbers of ways are beyond any float otherwise.
fn scaled(mut numbers: Vec<f64>) -> Vec<f64> {
    let largest = numbers.iter().copied().fold(0.0, f64::max);
    if largest > 0.0 {
        numbers.iter_mut().for_each(|number| *number /= largest);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// All vectors of whole numbers with this sum and these bounds.
    fn all(bounds: &[usize], sum: usize) -> Vec<Vec<usize>> {
        let Some((&bound, rest)) = bounds.split_first() else {
            return if sum == 0 { vec![vec![]] } else { vec![] };
        };
        let mut vectors = Vec::new();
        for first in 0..=bound.min(sum) {
            for mut tail in all(rest, sum - first) {
                tail.insert(0, first);
                vectors.push(tail);
            }
        }
        vectors
    }

    #[test]
    fn every_vector_of_steps_comes_equally_often() {
        let bounds = [0.5, 0.25, 1.0, 0.375];
        let simplex = BoundedSimplex::new(1.0, &bounds, 8).expect("possible");
        let there = all(&[4, 2, 8, 3], 8);
        let mut counts: BTreeMap<_, u32> = there.iter().map(|v| (v.clone(), 0)).collect();
        let (mut draws, each) = (Draws::new(11, 0), 400);
        for _ in 0..each * there.len() {
            let drawn = simplex.draw_steps(&mut draws);
            *counts.get_mut(&drawn).expect("within its bounds") += 1;
        }
        let each = each as f64;
        let chi: f64 = counts
            .values()
            .map(|count| (f64::from(*count) - each).powi(2) / each)
            .sum();
        // χ² of k degrees of freedom is normal enough: k ± √(2k), and 3.3 of those is one in a thousand.
        let freedom = (there.len() - 1) as f64;
        // The third makes up the rest, unless the others are 9 already.
        assert_eq!(there.len(), 5 * 3 * 4 - 1);
        assert!(
            (chi - freedom).abs() < 3.3 * (2.0 * freedom).sqrt(),
            "{chi} of {freedom}"
        );
    }

    #[test]
    fn bounds_that_leave_one_vector_give_it() {
        let simplex = BoundedSimplex::new(0.9, &[0.3, 0.6], 300).expect("possible");
        let drawn = simplex.draw(&mut Draws::new(1, 0));
        assert!((drawn[0] - 0.3).abs() < 1e-12 && (drawn[1] - 0.6).abs() < 1e-12);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let new = BoundedSimplex::new;
        assert_eq!(
            new(1.0, &[0.3, 0.3], 100).unwrap_err(),
            RecipeError::Impossible
        );
        assert_eq!(new(1.0, &[], 100).unwrap_err(), RecipeError::Impossible);
        assert_eq!(new(1.0, &[1.0], 0).unwrap_err(), RecipeError::Steps);
        assert_eq!(
            new(1.0, &[1.0], usize::MAX - 1).unwrap_err(),
            RecipeError::Steps
        );
        assert!(matches!(
            new(f64::NAN, &[1.0], 10),
            Err(RecipeError::Number(..))
        ));
        assert!(matches!(
            new(1.0, &[-0.1, 2.0], 10),
            Err(RecipeError::Number(..))
        ));
    }

    proptest! {
        #[test]
        fn windows_are_what_they_are(numbers in prop::collection::vec(0_u32..100, 1..40), width in 1_usize..50) {
            let floats: Vec<f64> = numbers.iter().map(|n| f64::from(*n)).collect();
            let sums = window_sums(&floats, width);
            for (end, sum) in sums.into_iter().enumerate() {
                let begin = (end + 1).saturating_sub(width);
                let expected: u32 = numbers[begin..=end].iter().sum();
                prop_assert_eq!(sum, f64::from(expected));
            }
        }

        #[test]
        fn sums_and_bounds_are_kept(
            bounds in prop::collection::vec(0.0_f64..1.0, 1..8),
            part in 0.01_f64..0.99,
            seed in 0_u64..1000,
        ) {
            let total = part * bounds.iter().sum::<f64>();
            prop_assume!(total > 1e-6);
            // Rounding seven bounds down takes less than a hundredth of the sum.
            let simplex = BoundedSimplex::new(total, &bounds, 1000).expect("possible");
            let drawn = simplex.draw(&mut Draws::new(seed, 0));
            prop_assert!((drawn.iter().sum::<f64>() - total).abs() < 1e-9);
            for (u, bound) in drawn.iter().zip(&bounds) {
                prop_assert!(*u >= 0.0 && *u <= bound * (1.0 + 1e-12));
            }
        }
    }
}
