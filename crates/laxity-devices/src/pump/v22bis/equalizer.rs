//! An adaptive equalizer with two taps a symbol, normalised least mean squares.

use crate::signal::Complex;

const TAPS: usize = 17;

#[derive(Debug, Clone)]
pub(super) struct Equalizer {
    taps: [Complex; TAPS],
    samples: [Complex; TAPS],
}

impl Equalizer {
    /// One that passes its input on, delayed by eight half symbols.
    pub(super) fn new() -> Self {
        let mut taps = [Complex::ZERO; TAPS];
        taps[TAPS / 2] = Complex::ONE;
        Self {
            taps,
            samples: [Complex::ZERO; TAPS],
        }
    }

    #[inline]
    pub(super) fn push(&mut self, sample: Complex) {
        self.samples.rotate_right(1);
        self.samples[0] = sample;
    }

    #[inline]
    pub(super) fn output(&self) -> Complex {
        let mut sum = Complex::ZERO;
        for (tap, sample) in self.taps.iter().zip(&self.samples) {
            sum += *tap * *sample;
        }
        sum
    }

    /// Moves the taps against `error` (wanted less given, at the output); a `step` of one would remove it whole.
    #[inline]
    pub(super) fn adapt(&mut self, error: Complex, step: f32) {
        let power: f32 = self.samples.iter().map(Complex::norm_sqr).sum();
        let scaled = error.scale(step / (power + 1e-3));
        for (tap, sample) in self.taps.iter_mut().zip(&self.samples) {
            *tap += scaled * sample.conj();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pump::v22bis::Rate;
    use crate::pump::v22bis::constellation::{Encoder, MEAN_POWER};

    #[test]
    fn a_dispersive_channel_is_undone() {
        let (mut encoder, mut equalizer) = (Encoder::default(), Equalizer::new());
        let mut sent = [Complex::ZERO; 5];
        let mut last = 0.0;
        for n in 0..4000_u32 {
            let bits = (n.wrapping_mul(2_654_435_761) >> 20) as u8 & 15;
            sent.rotate_right(1);
            let before = sent[1];
            sent[0] = encoder.encode(Rate::Bps2400, bits);
            equalizer.push((before + sent[0]).scale(0.5));
            equalizer.push(sent[0] + before * Complex::new(0.2, 0.3));
            // The middle tap is on the symbol sent four symbols ago.
            let error = sent[4] - equalizer.output();
            equalizer.adapt(error, 0.1);
            last = 0.99 * last + 0.01 * error.norm_sqr();
        }
        assert!(last < MEAN_POWER * 1e-3, "error power {last}");
    }
}
