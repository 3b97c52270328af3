//! Seeded Gaussian noise, the same on every machine.

use std::sync::{Arc, LazyLock};

use laxity_model::base::random::SplitMix64;

const QUANTILES: usize = 4096;

/// Quantiles of the normal distribution, scaled so that the sum of two has variance one.
static TABLE: LazyLock<Arc<[f32]>> = LazyLock::new(|| {
    let quantiles: Vec<f64> = (0..QUANTILES)
        .map(|i| normal_quantile((i as f64 + 0.5) / QUANTILES as f64))
        .collect();
    let power = quantiles.iter().map(|q| q * q).sum::<f64>() / QUANTILES as f64;
    quantiles
        .iter()
        .map(|q| (q / libm::sqrt(2.0 * power)) as f32)
        .collect()
});

/// White Gaussian noise of variance one.
#[derive(Debug, Clone)]
pub(crate) struct Noise {
    random: SplitMix64,
    table: Arc<[f32]>,
}

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: SplitMix64::new(seed),
            table: TABLE.clone(),
        }
    }

    /// The next value: the sum of two table look-ups, which has the normal tail up to 5 σ where one
    /// look-up would end at 3.7.
    #[inline]
    pub(crate) fn next(&mut self) -> f32 {
        let random = self.random.draw();
        self.table[(random >> 52) as usize] + self.table[(random >> 20) as usize % QUANTILES]
    }
}

/// The x below which a normal variable lies with probability `p`, by bisection.
fn normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-10.0, 10.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if 0.5 * libm::erfc(-middle / core::f64::consts::SQRT_2) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_tails_are_normal() {
        let mut noise = Noise::new(7);
        let n = 2_000_000;
        let (mut power, mut fourth, mut beyond_3) = (0.0, 0.0, 0_u32);
        for _ in 0..n {
            let x = f64::from(noise.next());
            power += x * x;
            fourth += x * x * x * x;
            beyond_3 += u32::from(x.abs() > 3.0);
        }
        let power = power / f64::from(n);
        assert!((power - 1.0).abs() < 0.01, "variance {power}");
        let kurtosis = fourth / f64::from(n) / (power * power);
        assert!((kurtosis - 3.0).abs() < 0.03, "kurtosis {kurtosis}");
        // P(|x| > 3) = 0.0027
        let tail = f64::from(beyond_3) / f64::from(n);
        assert!((tail - 0.0027).abs() < 0.000_27, "tail {tail}");
    }
}
