//! Random numbers that are the same everywhere: a seed, a counter, and nothing of the machine.

use laxity_model::Span;
use laxity_model::base::random::scrambled;
use rand::Rng;
use rand_pcg::Pcg64;

/// A sequence of random draws, fixed by a seed and an index: PCG64 (O'Neill 2014), with conversions of its own, so that no library's
/// choice of them can change a published figure.
#[derive(Clone, Debug)]
pub struct Draws(Pcg64);

/// 2⁻⁵³: the spacing of [`Draws::unit`].
const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;
/// Any odd number would do; this is what the generator's author uses.
const STREAM: u128 = 0xa02_bdbf_7bb3_c0a7_ac28_fa16_a64a_bf96;

impl Draws {
    /// The sequence number `index` of this seed. Two indices give two stretches of one sequence of 2¹²⁸ numbers, at places that have
    /// nothing to do with each other.
    #[must_use]
    pub fn new(seed: u64, index: u64) -> Self {
        let state = u128::from(scrambled(seed)) << 64 | u128::from(scrambled(!index));
        Self(Pcg64::new(state, STREAM))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1): a multiple of 2⁻⁵³.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * UNIT
    }

    /// Uniform in (0, 1): an odd multiple of 2⁻⁵³, never 0 and never 1.
    pub fn open_unit(&mut self) -> f64 {
        ((self.bits() >> 11) | 1) as f64 * UNIT
    }

    /// Exponential, of this mean.
    pub fn exponential(&mut self, mean: Span) -> Span {
        let nanos = -libm::log(self.open_unit()) * mean.as_nanos() as f64;
        Span::from_nanos(nanos as u64)
    }

    /// Uniform among the whole numbers from `low` to `high`, both included; `low` where there are none. Without bias: numbers that would
    /// favour some are drawn again (Lemire, "Fast random integer generation in an interval", 2019).
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        let Some(count) = high.checked_sub(low).map(|span| u128::from(span) + 1) else {
            return low;
        };
        let surplus = (1_u128 << 64) % count;
        loop {
            let product = u128::from(self.bits()) * count;
            if product & u128::from(u64::MAX) >= surplus {
                // Below `count`, so at most `high`.
                return low + (product >> 64) as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_and_an_index_fix_the_sequence() {
        let first = |seed, index| Draws::new(seed, index).bits();
        assert_eq!(first(1, 0), first(1, 0));
        // Also a swap of the two is another sequence.
        let all = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 1), (1, 2)];
        let mut values: Vec<_> = all.iter().map(|(s, i)| first(*s, *i)).collect();
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), all.len());
        // The same on every machine, today and later.
        assert_eq!(first(1, 0), GOLDEN);
    }

    const GOLDEN: u64 = 16_328_145_462_777_068_482;

    #[test]
    fn an_interval_is_drawn_from_evenly_with_both_its_ends() {
        let mut draws = Draws::new(3, 0);
        let mut counts = [0_i64; 6];
        for _ in 0..60_000 {
            counts[usize::try_from(draws.between(10, 15) - 10).expect("small")] += 1;
        }
        // χ² of five degrees of freedom is below 20.5 in 999 of 1000 cases.
        let chi: f64 = counts
            .iter()
            .map(|count| ((count - 10_000) as f64).powi(2) / 10_000.0)
            .sum();
        assert!(chi < 20.5, "{counts:?}: {chi}");
        assert_eq!(draws.between(7, 7), 7);
        assert_eq!(draws.between(9, 8), 9);
        assert_ne!(draws.between(0, u64::MAX), draws.between(0, u64::MAX));
    }
}
