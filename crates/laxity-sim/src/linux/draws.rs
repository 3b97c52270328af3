//! Where the machine's moods come from: draws from its measured distributions, fixed by a seed.

use laxity_model::base::random::scrambled;
use laxity_model::enforce::machine::{Figure, Machine, Quantiles};
use laxity_model::{Instant, Span};
use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng;

/// A sequence of draws of its own: what others draw does not change it.
#[derive(Clone, Debug)]
pub(super) struct Draws(Pcg32);

impl Draws {
    /// The sequence of this number under this seed.
    pub(super) fn new(seed: u64, number: u64) -> Self {
        Self(Pcg32::new(scrambled(seed ^ scrambled(number)), number))
    }

    /// What a processor does at an instant, for a purpose: the same whatever else happens, and whoever asks first.
    pub(super) fn at(seed: u64, purpose: u64, processor: usize, instant: Instant) -> Self {
        let place = scrambled(purpose << 32 | processor as u64);
        Self::new(seed ^ place, scrambled(instant.as_nanos()))
    }

    /// One value of a distribution.
    pub(super) fn span(&mut self, from: &Quantiles) -> Span {
        // Parts per million from 0 to 999,999, each as likely as any other to within 2⁻³² · 10⁶.
        let ppm = (u64::from(self.0.next_u32()) * 1_000_000) >> 32;
        from.at(ppm as u32)
    }

    /// One value of a cost beyond what is usually paid of it elsewhere.
    pub(super) fn beyond(&mut self, machine: &Machine, cost: Figure, elsewhere: Figure) -> Span {
        let paid = machine.figure(elsewhere).median();
        self.span(machine.figure(cost)).saturating_sub(paid)
    }

    /// A value below `most`, each as likely.
    pub(super) fn below(&mut self, most: Span) -> Span {
        let drawn = (u128::from(self.0.next_u64()) * u128::from(most.as_nanos())) >> 64;
        Span::from_nanos(drawn as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether so many of 100,000 draws below one million are below `ppm`, to within four standard deviations.
    fn is_even(mut draw: impl FnMut(u64) -> Span) {
        const DRAWS: u64 = 100_000;
        let drawn: Vec<u64> = (0..DRAWS).map(|number| draw(number).as_nanos()).collect();
        for ppm in [1_000, 10_000, 100_000, 500_000, 900_000, 990_000] {
            let below = drawn.iter().filter(|at| **at < ppm).count() as u64;
            let expected = DRAWS * ppm / 1_000_000;
            let deviation = (expected * (1_000_000 - ppm) / 1_000_000).isqrt();
            assert!(
                below.abs_diff(expected) <= 4 * deviation,
                "{below} instead of {expected}"
            );
        }
    }

    #[test]
    fn draws_are_even_along_a_stream_and_across_instants() {
        let million =
            Quantiles::new([(0, Span::ZERO), (1_000_000, Span::from_nanos(1_000_000))].into());
        let million = million.expect("a distribution");
        let mut stream = Draws::new(1, 2);
        is_even(|_| stream.span(&million));
        is_even(|number| Draws::new(1, number).span(&million));
        is_even(|number| Draws::at(9, 1, 0, Instant::from_millis(number)).span(&million));
        is_even(|number| {
            Draws::at(9, 1, 0, Instant::from_nanos(number)).below(Span::from_millis(1))
        });
    }
}
