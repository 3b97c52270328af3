//! Symbols: 16 points on each tone, a cyclic prefix before each symbol.

use std::sync::Arc;

use rustfft::{Fft, FftPlannerScalar};

use crate::signal::Complex;

/// Symbols a second, as in ADSL.
const SYMBOLS_HZ: usize = 4_000;
/// Bits on each tone.
const TONE_BITS: usize = 4;
/// Below it is the telephone, and the other direction.
const FIRST_TONE: usize = 8;

/// How fast a line is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rate {
    /// 96 tones of 4 bits, 1.536 Mbit/s: like G.lite's 1.531 Mbit/s.
    GLite,
    /// 192 tones of 4 bits, 3.072 Mbit/s: like the full rate of 3.062 Mbit/s.
    Full,
}

impl Rate {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GLite => "DSL G.lite",
            Self::Full => "DSL full rate",
        }
    }

    /// How often G.lite's tones, samples and work it has.
    pub(super) const fn times(self) -> usize {
        match self {
            Self::GLite => 1,
            Self::Full => 2,
        }
    }

    /// The transform's length in samples.
    pub const fn transform(self) -> usize {
        256 * self.times()
    }

    /// Tones that carry data.
    pub const fn tones(self) -> usize {
        96 * self.times()
    }

    /// Samples a second: 1.104 or 2.208 MHz.
    pub const fn sample_rate_hz(self) -> u64 {
        (self.symbol_samples() * SYMBOLS_HZ) as u64
    }

    /// Samples that a symbol repeats of its end before its beginning.
    pub const fn prefix(self) -> usize {
        20 * self.times()
    }

    /// Samples of a symbol with its prefix.
    pub const fn symbol_samples(self) -> usize {
        self.transform() + self.prefix()
    }

    /// Octets that a symbol carries.
    pub const fn symbol_octets(self) -> usize {
        self.tones() * TONE_BITS / 8
    }
}

/// The levels of two bits in one dimension, neighbours differing in one bit; a point's mean power is 1.
const LEVELS: [f32; 4] = [-3.0 * UNIT, -UNIT, 3.0 * UNIT, UNIT];
/// 1/√10.
const UNIT: f32 = 0.316_227_77;

/// The point of four bits.
fn point(nibble: u8) -> Complex {
    let level = |bits: u8| LEVELS[usize::from(bits & 3)];
    Complex::new(level(nibble), level(nibble >> 2))
}

/// The two bits whose level is nearest.
fn nearest(value: f32) -> u8 {
    match (value < 0.0, value.abs() > 2.0 * UNIT) {
        (true, true) => 0,
        (true, false) => 1,
        (false, true) => 2,
        (false, false) => 3,
    }
}

/// Makes symbols, and takes them apart.
///
/// The transforms are rustfft's in plain arithmetic, which has no choice of vector instructions when it runs.
#[derive(Clone)]
pub(super) struct Modulation {
    rate: Rate,
    forward: Arc<dyn Fft<f32>>,
    inverse: Arc<dyn Fft<f32>>,
    values: Vec<Complex>,
    scratch: Vec<Complex>,
}

impl Modulation {
    /// For lines of this rate.
    #[must_use]
    pub(super) fn new(rate: Rate) -> Self {
        let mut planner = FftPlannerScalar::new();
        let forward = planner.plan_fft_forward(rate.transform());
        let inverse = planner.plan_fft_inverse(rate.transform());
        let scratch = forward.get_inplace_scratch_len();
        let scratch = scratch.max(inverse.get_inplace_scratch_len());
        Self {
            rate,
            forward,
            inverse,
            values: vec![Complex::default(); rate.transform()],
            scratch: vec![Complex::default(); scratch],
        }
    }

    /// The rate.
    pub(super) const fn rate(&self) -> Rate {
        self.rate
    }

    /// Appends a symbol that carries these octets, with its prefix; of mean power 2·tones.
    pub(super) fn modulate(&mut self, octets: &[u8], signal: &mut Vec<f32>) {
        self.values.fill(Complex::default());
        let n = self.values.len();
        let nibbles = octets.iter().flat_map(|octet| [octet & 15, octet >> 4]);
        for (tone, nibble) in (FIRST_TONE..).zip(nibbles) {
            self.values[tone] = point(nibble);
            self.values[n - tone] = point(nibble).conj();
        }
        self.inverse
            .process_with_scratch(&mut self.values, &mut self.scratch);
        let samples = self.values.iter().map(|value| value.re);
        signal.extend(samples.clone().skip(n - self.rate.prefix()));
        signal.extend(samples);
    }

    /// The values on a symbol's data tones, as received with its prefix.
    pub(super) fn tones(&mut self, symbol: &[i16]) -> &[Complex] {
        let body = &symbol[self.rate.prefix()..];
        for (value, sample) in self.values.iter_mut().zip(body) {
            *value = Complex::new(f32::from(*sample), 0.0);
        }
        self.forward
            .process_with_scratch(&mut self.values, &mut self.scratch);
        &self.values[FIRST_TONE..FIRST_TONE + self.rate.tones()]
    }

    /// Decides which octets a symbol carries, each tone corrected by its equalizer.
    pub(super) fn demodulate(
        &mut self,
        symbol: &[i16],
        equalizers: &[Complex],
        octets: &mut Vec<u8>,
    ) {
        let tones = self.tones(symbol);
        let decide = |(tone, equalizer): (&Complex, &Complex)| {
            let corrected = *tone * *equalizer;
            nearest(corrected.re) | nearest(corrected.im) << 2
        };
        let pairs = tones.chunks_exact(2).zip(equalizers.chunks_exact(2));
        octets.extend(pairs.map(|(tones, equalizers)| {
            decide((&tones[0], &equalizers[0])) | decide((&tones[1], &equalizers[1])) << 4
        }));
    }

    /// The point that these octets put on a data tone.
    pub(super) fn sent(octets: &[u8], tone: usize) -> Complex {
        point(octets[tone / 2] >> (4 * (tone % 2)) & 15)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_decided_as_itself() {
        for nibble in 0..16 {
            let Complex { re, im } = point(nibble);
            assert_eq!(nearest(re) | nearest(im) << 2, nibble);
        }
        let power: f32 = (0..16).map(|n| point(n).norm_sqr()).sum::<f32>() / 16.0;
        assert!((power - 1.0).abs() < 1e-5);
    }

    /// The library takes the sines of its factors from the system, in double precision: none is so near to the middle of two values of
    /// single precision that another system's sine, a few units in the last place off, would give other bits.
    #[test]
    fn the_transforms_factors_are_the_same_on_every_machine() {
        for rate in [Rate::GLite, Rate::Full] {
            for k in 0..rate.transform() {
                let turn = core::f64::consts::TAU * k as f64 / rate.transform() as f64;
                for factor in [libm::cos(turn), libm::sin(turn)] {
                    let near = |error: f64| (factor * (1.0 + error)) as f32;
                    assert_eq!(near(1e-14), near(-1e-14), "{factor}");
                }
            }
        }
    }

    #[test]
    fn rates_are_those_of_the_lines() {
        assert_eq!(Rate::GLite.sample_rate_hz(), 1_104_000);
        assert_eq!(Rate::Full.sample_rate_hz(), 2_208_000);
        assert_eq!(Rate::GLite.symbol_octets() * 8 * SYMBOLS_HZ, 1_536_000);
        assert_eq!(Rate::Full.symbol_octets() * 8 * SYMBOLS_HZ, 3_072_000);
    }
}
