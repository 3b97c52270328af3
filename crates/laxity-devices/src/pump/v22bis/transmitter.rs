//! Points to samples: pulse shaping and the carrier.

use core::f64::consts::TAU;
use std::sync::LazyLock;

use super::constellation::{Encoder, MEAN_POWER};
use super::{CARRIER_TABLE, Rate, Role, SAMPLES_PER_3_SYMBOLS, pulse};
use crate::bits::BitSource;
use crate::pump::scrambler::{Polynomial, Scrambler};
use crate::signal::{Complex, unit};

/// Root mean square of the samples: -12 dBm0.
const LEVEL_RMS: f32 = 4050.0;
/// Symbols one sample is made of.
const SPAN: usize = 8;

/// The pulse for each place of a sample between two symbols, newest symbol first.
static PULSES: LazyLock<Vec<[f32; SPAN]>> = LazyLock::new(|| {
    let half = 0.5 * SPAN as f64;
    let gain = f64::from(LEVEL_RMS) / libm::sqrt(0.5 * f64::from(MEAN_POWER));
    (0..SAMPLES_PER_3_SYMBOLS)
        .map(|phase| {
            core::array::from_fn(|age| {
                let t = age as f64 + phase as f64 / SAMPLES_PER_3_SYMBOLS as f64 - half;
                (gain * pulse(t, half)) as f32
            })
        })
        .collect()
});

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Silence,
    /// Ones at 1200 bit/s, not scrambled: a tone 150 Hz below the carrier.
    Ones,
    /// 00 and 11 in turn at 1200 bit/s, not scrambled: the mark of a modem that can do 2400 bit/s.
    S1,
    ScrambledOnes(Rate),
    Data(Rate),
}

#[derive(Debug, Clone)]
pub(super) struct Transmitter {
    carrier: [Complex; CARRIER_TABLE],
    carrier_at: usize,
    /// Place of the next sample between two symbols, in 40ths of a symbol.
    phase: usize,
    symbols: [Complex; SPAN],
    encoder: Encoder,
    scrambler: Scrambler,
    s1: bool,
}

/// One period (or two) of a carrier at 8 kHz, `direction` times its frequency.
pub(super) fn carrier(hz: f64, direction: f64) -> [Complex; CARRIER_TABLE] {
    core::array::from_fn(|n| unit(direction * TAU * hz * n as f64 / 8000.0))
}

impl Transmitter {
    pub(super) fn new(role: Role) -> Self {
        Self {
            carrier: carrier(role.transmit_hz(), 1.0),
            carrier_at: 0,
            phase: 0,
            symbols: [Complex::ZERO; SPAN],
            encoder: Encoder::default(),
            scrambler: Scrambler::new(Polynomial::V22bis),
            s1: false,
        }
    }

    /// The next sample. A new signal begins with a new symbol.
    #[inline]
    pub(super) fn next(&mut self, signal: Signal, source: &mut dyn BitSource) -> f32 {
        if self.phase < 3 {
            self.symbols.rotate_right(1);
            self.symbols[0] = self.symbol(signal, source);
        }
        let pulse = &PULSES[self.phase];
        let mut sum = Complex::ZERO;
        for (symbol, weight) in self.symbols.iter().zip(pulse) {
            sum += symbol.scale(*weight);
        }
        let sample = sum * self.carrier[self.carrier_at];
        self.carrier_at = (self.carrier_at + 1) % CARRIER_TABLE;
        self.phase = (self.phase + 3) % SAMPLES_PER_3_SYMBOLS;
        sample.re
    }

    fn symbol(&mut self, signal: Signal, source: &mut dyn BitSource) -> Complex {
        match signal {
            Signal::Silence => Complex::ZERO,
            Signal::Ones => self.encoder.encode(Rate::Bps1200, 0b11),
            Signal::S1 => {
                self.s1 = !self.s1;
                let bits = if self.s1 { 0b00 } else { 0b11 };
                self.encoder.encode(Rate::Bps1200, bits)
            }
            Signal::ScrambledOnes(rate) => self.scrambled(rate, &mut || true),
            Signal::Data(rate) => self.scrambled(rate, source),
        }
    }

    fn scrambled(&mut self, rate: Rate, source: &mut dyn BitSource) -> Complex {
        let mut bits = 0;
        for _ in 0..rate.bits() {
            bits = bits << 1 | u8::from(self.scrambler.scramble(source.next_bit()));
        }
        self.encoder.encode(rate, bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_is_kept_and_ones_are_a_tone_150_hz_below_the_carrier() {
        for (role, hz) in [(Role::Calling, 1050.0), (Role::Answering, 2250.0)] {
            let mut transmitter = Transmitter::new(role);
            let mut samples = |signal, count| -> Vec<f32> {
                (0..count)
                    .map(|_| transmitter.next(signal, &mut || true))
                    .collect()
            };
            let data = samples(Signal::ScrambledOnes(Rate::Bps2400), 80_000);
            let rms = libm::sqrtf(data.iter().map(|x| x * x).sum::<f32>() / 80_000.0);
            assert!((rms / LEVEL_RMS - 1.0).abs() < 0.03, "{rms}");

            samples(Signal::Ones, 800);
            let ones = samples(Signal::Ones, 1600);
            let power: f32 = ones.iter().map(|x| x * x).sum();
            let mut tone = Complex::ZERO;
            for (n, x) in ones.iter().enumerate() {
                tone += unit(-TAU * hz * n as f64 / 8000.0).scale(*x);
            }
            // The rest is 600 Hz above, where the roll-off has come down to (1 + cos 150°) / 2.
            let share = 2.0 * tone.norm_sqr() / (1600.0 * power);
            assert!(
                (share - 0.933).abs() < 0.01,
                "{share} of the power is at {hz} Hz"
            );
        }
    }
}
