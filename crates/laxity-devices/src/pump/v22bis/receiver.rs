//! Samples to symbols: matched filter, timing, gain, carrier and equalizer.

use core::f32::consts::TAU;
use std::sync::LazyLock;

use super::constellation::{Decision, MEAN_POWER};
use super::equalizer::Equalizer;
use super::pattern::{Pattern, PatternDetector};
use super::transmitter::carrier;
use super::{CARRIER_TABLE, Rate, Role, SAMPLES_PER_3_SYMBOLS, pulse};
use crate::signal::{Complex, unit};

/// Samples a half symbol.
const HALF_SYMBOL: f32 = SAMPLES_PER_3_SYMBOLS as f32 / 6.0;
/// Samples the matched filter sees: twelve symbols.
const TAPS: usize = 160;
/// Places between two samples at which it can be read.
const PHASES: usize = 64;
/// Delay of the matched filter and the pattern detector, samples.
pub(super) const PATTERN_DELAY: u32 =
    (TAPS / 2 + PatternDetector::LAG * SAMPLES_PER_3_SYMBOLS / 6) as u32;
/// Power after the matched filter of a carrier of -43 dBm0, from which V.22bis asks for detection.
const CARRIER_ON: f32 = 114.0 * 114.0;

/// Symbols after a pattern or silence until nothing of it is left in the filters.
const SETTLE: u32 = 8;
/// Symbols from which the timing is estimated at once, before it is tracked.
const TIMING: u32 = 32;
/// Symbols from which the gain is estimated, while the carrier is being found.
const GAIN: u32 = 32;

/// The matched filter, oldest sample first, for `phase` 64ths of a sample before the newest one.
static MATCHED: LazyLock<Vec<[f32; TAPS]>> = LazyLock::new(|| {
    let per_symbol = SAMPLES_PER_3_SYMBOLS as f64 / 3.0;
    let half = 0.5 * TAPS as f64 / per_symbol;
    (0..PHASES)
        .map(|phase| {
            core::array::from_fn(|i| {
                let age = (TAPS - 1 - i) as f64 - phase as f64 / PHASES as f64;
                let t = (age - (TAPS / 2) as f64 + 0.5) / per_symbol;
                (libm::sqrt(2.0) / per_symbol * pulse(t, half)) as f32
            })
        })
        .collect()
});

/// The samples at the carrier's frequency, of which the filter takes the last.
#[derive(Debug, Clone)]
struct MatchedFilter {
    carrier: [Complex; CARRIER_TABLE],
    carrier_at: usize,
    re: [f32; 2 * TAPS],
    im: [f32; 2 * TAPS],
    at: usize,
}

impl MatchedFilter {
    #[inline]
    fn push(&mut self, sample: f32) {
        let mixed = self.carrier[self.carrier_at].scale(sample);
        self.carrier_at = (self.carrier_at + 1) % CARRIER_TABLE;
        // Each sample is stored twice, so that the last ones always lie in a row.
        for at in [self.at, self.at + TAPS] {
            self.re[at] = mixed.re;
            self.im[at] = mixed.im;
        }
        self.at = (self.at + 1) % TAPS;
    }

    /// The output `back` of a sample, below one, before the newest sample.
    fn output(&self, back: f32) -> Complex {
        let taps = &MATCHED[((back * PHASES as f32) as usize).min(PHASES - 1)];
        let dot = |samples: &[f32]| -> f32 {
            let mut sums = [0.0_f32; 4];
            for (s, t) in samples.chunks_exact(4).zip(taps.chunks_exact(4)) {
                for lane in 0..4 {
                    sums[lane] += s[lane] * t[lane];
                }
            }
            sums.iter().sum()
        };
        Complex::new(
            dot(&self.re[self.at..self.at + TAPS]),
            dot(&self.im[self.at..self.at + TAPS]),
        )
    }
}

/// Gardner's loop: the sample between two symbols shows by how much it is late.
#[derive(Debug, Clone, Default)]
struct Timing {
    /// Samples until the next output.
    until: f32,
    /// Correction of the period, samples a symbol.
    drift: f32,
    /// Mean power of the outputs.
    power: f32,
    previous: Complex,
    middle: Complex,
    /// Sums of the estimate at once: its cosine and its sine.
    cos: f32,
    sin: f32,
}

impl Timing {
    fn late(&self, symbol: Complex) -> f32 {
        (self.middle * (symbol - self.previous).conj()).re
    }

    fn gather(&mut self, symbol: Complex) {
        self.sin += self.late(symbol);
        self.cos += symbol.norm_sqr() - self.middle.norm_sqr();
    }

    /// Moves to where the sums gathered say.
    fn jump(&mut self) {
        let symbols = libm::atan2f(self.sin, self.cos) / TAU;
        // Samples passed do not come back; a symbol later is as good.
        let move_by = -symbols * 2.0 * HALF_SYMBOL;
        self.until += if move_by < 0.0 {
            move_by + 2.0 * HALF_SYMBOL
        } else {
            move_by
        };
        (self.cos, self.sin) = (0.0, 0.0);
    }

    fn track(&mut self, symbol: Complex, gain: f32) {
        let late = (self.late(symbol) / (self.power + 1.0)).clamp(-1.0, 1.0);
        self.drift = (self.drift - 0.002 * gain * late).clamp(-0.02, 0.02);
        self.until += self.drift - gain * late;
    }
}

/// The decision-directed carrier loop, of second order.
#[derive(Debug, Clone, Default)]
struct CarrierLoop {
    phase: f32,
    /// Radians a symbol.
    frequency: f32,
}

impl CarrierLoop {
    fn track(&mut self, error: f32, gain: f32) {
        self.frequency = (self.frequency + 0.1 * gain * gain * error).clamp(-0.15, 0.15);
        self.phase += self.frequency + gain * error;
        self.phase -= TAU * libm::roundf(self.phase / TAU);
    }
}

/// One symbol received.
#[derive(Debug, Clone, Copy)]
pub(super) struct Symbol {
    pub(super) pattern: Pattern,
    /// Its bits, the first one highest, once the receiver is trained.
    pub(super) bits: Option<u8>,
}

#[derive(Debug, Clone)]
pub(super) struct Receiver {
    filter: MatchedFilter,
    detector: PatternDetector,
    timing: Timing,
    carrier: CarrierLoop,
    equalizer: Equalizer,
    gain: f32,
    power_sum: f32,
    between: bool,
    /// Symbols since the last silence or pattern.
    trained: u32,
    /// Whether patterns are looked for; they could be seen in data too.
    patterns: bool,
    rate: Rate,
    quadrant: u8,
    error: f32,
}

impl Receiver {
    pub(super) fn new(role: Role) -> Self {
        Self {
            filter: MatchedFilter {
                carrier: carrier(role.receive_hz(), -1.0),
                carrier_at: 0,
                re: [0.0; 2 * TAPS],
                im: [0.0; 2 * TAPS],
                at: 0,
            },
            detector: PatternDetector::default(),
            timing: Timing {
                until: HALF_SYMBOL,
                ..Timing::default()
            },
            carrier: CarrierLoop::default(),
            equalizer: Equalizer::new(),
            gain: 1.0,
            power_sum: 0.0,
            between: false,
            trained: 0,
            patterns: true,
            rate: Rate::Bps1200,
            quadrant: 0,
            error: MEAN_POWER,
        }
    }

    /// From now on the symbols are scrambled, of so many points.
    pub(super) fn decide(&mut self, rate: Rate) {
        self.rate = rate;
        self.patterns = false;
    }

    /// Bits in a [`Symbol`].
    pub(super) fn bits_per_symbol(&self) -> u8 {
        self.rate.bits()
    }

    /// The signal-to-noise ratio at the slicer, dB.
    pub(super) fn snr_db(&self) -> f32 {
        10.0 * libm::log10f(MEAN_POWER / self.error.max(1e-6))
    }

    /// Takes a sample; every 13 or 14 of them are a symbol.
    #[inline]
    pub(super) fn push(&mut self, sample: f32) -> Option<Symbol> {
        self.filter.push(sample);
        self.timing.until -= 1.0;
        if self.timing.until > 0.0 {
            return None;
        }
        let output = self.filter.output(-self.timing.until);
        self.timing.until += HALF_SYMBOL;
        self.detector.push(output);
        self.timing.power += (output.norm_sqr() - self.timing.power) * (1.0 / 64.0);
        self.equalizer.push(output.scale(self.gain));
        self.between = !self.between;
        if self.between {
            self.timing.middle = output;
            return None;
        }
        let symbol = self.symbol(output);
        self.timing.previous = output;
        Some(symbol)
    }

    fn symbol(&mut self, output: Complex) -> Symbol {
        let mut pattern = self.detector.pattern(CARRIER_ON);
        if !self.patterns && pattern != Pattern::Silence {
            pattern = Pattern::Other;
        }
        if pattern != Pattern::Other {
            self.restart();
            return Symbol {
                pattern,
                bits: None,
            };
        }
        self.trained = self.trained.saturating_add(1);
        Symbol {
            pattern,
            bits: self.train(output),
        }
    }

    fn restart(&mut self) {
        if self.trained > 0 {
            self.trained = 0;
            self.carrier = CarrierLoop::default();
            self.equalizer = Equalizer::new();
            self.timing.drift = 0.0;
            (self.timing.cos, self.timing.sin) = (0.0, 0.0);
            self.power_sum = 0.0;
            self.error = MEAN_POWER;
        }
    }

    /// Step by step: timing, then gain and carrier, then the equalizer with them.
    fn train(&mut self, output: Complex) -> Option<u8> {
        const TIMED: u32 = SETTLE + TIMING;
        // After a jump the samples of before are still in the equalizer and the loop.
        const FOUND: u32 = TIMED + 10;
        const SCALED: u32 = FOUND + GAIN;
        match self.trained {
            0..=SETTLE => None,
            n if n <= TIMED => {
                self.timing.gather(output);
                if n == TIMED {
                    self.timing.jump();
                }
                None
            }
            n if n <= FOUND => None,
            n if n <= SCALED => {
                self.timing.track(output, 0.3);
                self.follow(0.2, 0.0);
                self.power_sum += output.norm_sqr();
                if n == SCALED {
                    self.gain = libm::sqrtf(MEAN_POWER * GAIN as f32 / self.power_sum);
                }
                None
            }
            n => {
                let fast = n < SCALED + 120;
                self.timing.track(output, if fast { 0.2 } else { 0.05 });
                // The samples in the equalizer are scaled from here on.
                let ready = n > SCALED + 10;
                let step = if !ready {
                    0.0
                } else if fast {
                    0.05
                } else {
                    0.01
                };
                let bits = self.follow(if fast { 0.15 } else { 0.08 }, step);
                ready.then_some(bits)
            }
        }
    }

    /// Decides on a symbol; carrier and equalizer follow.
    fn follow(&mut self, carrier_gain: f32, step: f32) -> u8 {
        let turn = unit(f64::from(self.carrier.phase));
        let z = self.equalizer.output() * turn.conj();
        let decision = Decision::nearest(self.rate, z);
        let error = decision.point - z;
        let across = (z * decision.point.conj()).im;
        let length = libm::sqrtf(z.norm_sqr() * decision.point.norm_sqr());
        self.carrier.track(across / (length + 1e-6), carrier_gain);
        if step > 0.0 {
            self.equalizer.adapt(error * turn, step);
            self.error += (error.norm_sqr() - self.error) * 0.02;
        }
        let bits = decision.bits_after(self.rate, self.quadrant);
        self.quadrant = decision.quadrant();
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::super::transmitter::{Signal, Transmitter};
    use super::*;
    use crate::pump::scrambler::{Polynomial, Scrambler};

    /// The symbols of so many samples of a signal, heard with a delay of a part of a symbol.
    fn symbols(role: Role, signals: &[(Signal, usize)], delay: usize) -> Vec<Symbol> {
        let (calling, answering) = (Role::Calling, Role::Answering);
        let far = if role == calling { answering } else { calling };
        let (mut transmitter, mut receiver) = (Transmitter::new(far), Receiver::new(role));
        (0..delay).for_each(|_| assert!(receiver.push(0.0).is_none_or(|s| s.bits.is_none())));
        let mut symbols = Vec::new();
        for (signal, samples) in signals {
            for _ in 0..*samples {
                symbols.extend(receiver.push(transmitter.next(*signal, &mut || true)));
            }
        }
        symbols
    }

    #[test]
    fn each_pattern_is_seen_whatever_the_timing() {
        let signals = [
            (Signal::Silence, Pattern::Silence),
            (Signal::Ones, Pattern::Ones),
            (Signal::S1, Pattern::S1),
            (Signal::ScrambledOnes(Rate::Bps1200), Pattern::Other),
            (Signal::ScrambledOnes(Rate::Bps2400), Pattern::Other),
        ];
        for role in [Role::Calling, Role::Answering] {
            for delay in 0..14 {
                for (signal, pattern) in signals {
                    let symbols = symbols(role, &[(signal, 4000)], delay);
                    assert!(symbols.len() >= 298);
                    // Until the filters and the detector's window are full.
                    assert!(
                        symbols[25..].iter().all(|s| s.pattern == pattern),
                        "{signal:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn four_points_are_received_before_sixteen_may_follow() {
        // V.22bis gives a receiver 450 ms.
        for role in [Role::Calling, Role::Answering] {
            for delay in 0..14 {
                let ones = Signal::ScrambledOnes(Rate::Bps1200);
                let symbols = symbols(role, &[(Signal::S1, 800), (ones, 3600)], delay);
                let mut descrambler = Scrambler::new(Polynomial::V22bis);
                let bits: Vec<bool> = symbols
                    .iter()
                    .filter_map(|symbol| symbol.bits)
                    .flat_map(|bits| [bits & 2 != 0, bits & 1 != 0])
                    .map(|bit| descrambler.descramble(bit))
                    .collect();
                assert!(bits.len() > 200, "{} bits", bits.len());
                assert!(bits[20..].iter().all(|bit| *bit));
            }
        }
    }
}
