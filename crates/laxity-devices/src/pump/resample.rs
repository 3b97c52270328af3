//! Fractional resampling by a windowed sinc: the clock of one end against that of the other.

use std::sync::Arc;

use super::fir::{DelayLine, dot2};

/// Positions between two samples for which the sinc is tabulated. Values between are interpolated
/// linearly, which costs an error of about (ω/128)²/8: under -80 dB up to the Nyquist frequency.
const PHASES: usize = 128;

/// A resampler whose step can be changed at every output sample.
#[derive(Debug, Clone)]
pub(crate) struct Resampler {
    line: DelayLine,
    table: Arc<[f32]>,
    taps: usize,
    /// Position of the next output after the centre of the line, in input samples.
    position: f64,
    /// Input samples per output sample.
    step: f64,
}

impl Resampler {
    /// A resampler with `taps` taps (a multiple of 16) and a sinc that is down 6 dB at `cutoff`
    /// times the input's Nyquist frequency, under a Kaiser window of shape `beta`.
    pub(crate) fn new(taps: usize, cutoff: f64, beta: f64, step: f64) -> Self {
        let mut table = Vec::with_capacity((PHASES + 1) * taps);
        for phase in 0..=PHASES {
            let offset = phase as f64 / PHASES as f64 + (taps / 2 - 1) as f64;
            table.extend((0..taps).map(|tap| {
                let x = tap as f64 - offset;
                (cutoff * sinc(cutoff * x) * kaiser(x / (taps / 2) as f64, beta)) as f32
            }));
        }
        Self {
            line: DelayLine::new(taps),
            table: table.into(),
            taps,
            position: 0.0,
            step,
        }
    }

    /// Takes one input sample; then call [`Self::next`] until it has no more.
    #[inline]
    pub(crate) fn push(&mut self, sample: f32) {
        self.line.push(sample);
        self.position -= 1.0;
    }

    /// The next output sample, if the input suffices.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<f32> {
        if self.position >= 1.0 {
            return None;
        }
        let position = self.position.max(0.0) * PHASES as f64;
        let phase = (position as usize).min(PHASES - 1);
        let fraction = (position - phase as f64) as f32;
        self.position += self.step;
        let window = self.line.window(self.taps, 0);
        let (low, high) =
            self.table[phase * self.taps..(phase + 2) * self.taps].split_at(self.taps);
        let [low, high] = dot2([low, high], window);
        Some(low + fraction * (high - low))
    }

    /// Input samples per output sample.
    pub(crate) fn step(&self) -> f64 {
        self.step
    }

    /// Sets the input samples per output sample.
    pub(crate) fn set_step(&mut self, step: f64) {
        self.step = step;
    }

    /// Moves the next output by `input_samples`, at most a quarter of one.
    #[inline]
    pub(crate) fn shift(&mut self, input_samples: f64) {
        self.position += input_samples.clamp(-0.25, 0.25);
    }
}

/// sin(πx)/(πx).
pub(crate) fn sinc(x: f64) -> f64 {
    let angle = core::f64::consts::PI * x;
    if angle.abs() < 1e-9 {
        1.0
    } else {
        libm::sin(angle) / angle
    }
}

/// The Kaiser window at `x` of its half width, zero outside.
pub(crate) fn kaiser(x: f64, beta: f64) -> f64 {
    if x.abs() >= 1.0 {
        0.0
    } else {
        bessel_i0(beta * libm::sqrt(1.0 - x * x)) / bessel_i0(beta)
    }
}

/// The modified Bessel function of order zero, by its power series.
fn bessel_i0(x: f64) -> f64 {
    let (mut sum, mut term, mut k) = (1.0, 1.0, 1.0);
    while term > 1e-12 * sum {
        term *= (x / (2.0 * k)) * (x / (2.0 * k));
        sum += term;
        k += 1.0;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sine_survives_a_change_of_clock() {
        let (step, frequency) = (1.0 + 50e-6, 0.21);
        let mut resampler = Resampler::new(16, 1.0, 8.0, step);
        let (mut outputs, mut worst) = (0_u32, 0.0_f64);
        for n in 0..20_000 {
            resampler.push(libm::sin(core::f64::consts::TAU * frequency * f64::from(n)) as f32);
            while let Some(y) = resampler.next() {
                // The first output lies 9 samples before the first input: 8 of the line's half, and
                // one by which the position starts behind.
                let time = f64::from(outputs) * step - 9.0;
                outputs += 1;
                if time > 10.0 {
                    let exact = libm::sin(core::f64::consts::TAU * frequency * time);
                    worst = worst.max((f64::from(y) - exact).abs());
                }
            }
        }
        assert!(outputs > 19_990);
        assert!(worst < 1e-3, "largest error {worst}");
    }
}
