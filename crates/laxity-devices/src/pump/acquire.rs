//! Finding the training signal: by its period, before anything is known about the channel.
//!
//! Two successive periods of a received superframe differ only by what the clocks and carriers of
//! the two ends differ. So the comparison of two periods detects the signal, and measures clock and
//! carrier offset together, whatever the channel does. Where a superframe begins is then found by
//! correlation with its known part.

use super::fir::{DelayLine, dot};
use super::resample::{kaiser, sinc};
use super::training::Superframe;

/// What the search found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    /// Factor by which the resampler's step must change.
    pub(crate) step: f64,
    /// Carrier offset, radians per symbol.
    pub(crate) carrier: f64,
    /// Samples since the strongest echo of the known part's first symbol.
    pub(crate) age: usize,
    /// Root mean square of the signal.
    pub(crate) rms: f32,
}

/// Collects two periods of samples and looks at them four times a period.
#[derive(Debug, Clone)]
pub(crate) struct Acquisition {
    superframe: Superframe,
    /// Samples per symbol.
    spacing: usize,
    /// Carrier cycles per symbol, 0 for baseband.
    carrier: f64,
    samples: Vec<f32>,
}

impl Acquisition {
    pub(crate) fn new(superframe: Superframe, spacing: usize, carrier: f64) -> Self {
        Self { superframe, spacing, carrier, samples: Vec::new() }
    }

    /// Begins anew.
    pub(crate) fn restart(&mut self) {
        self.samples.clear();
        self.samples.reserve(2 * self.period());
    }

    /// Samples of a superframe.
    fn period(&self) -> usize {
        self.superframe.period() * self.spacing
    }

    /// Takes a sample. Once found, the memory is empty again.
    pub(crate) fn push(&mut self, sample: f32) -> Option<Found> {
        self.samples.push(sample);
        let period = self.period();
        if self.samples.len() < 2 * period {
            return None;
        }
        let found = self.look();
        if found.is_some() {
            self.samples.clear();
        } else {
            self.samples.drain(..period / 4);
        }
        found
    }

    fn look(&self) -> Option<Found> {
        let period = self.period();
        let (first, second) = self.samples.split_at(period);
        let (power_1, power_2) = (dot(first, first), dot(second, second));
        let quadrature = hilbert(first);
        let (cross, turned) = (dot(first, second), dot(&quadrature, second));
        let likeness = cross * cross + turned * turned;
        // Below -60 dB of full scale there is no signal worth a search.
        if power_2 < 1e-6 * period as f32 || likeness < 0.8 * power_1 * power_2 {
            return None;
        }
        let start = self.locate(power_1 + power_2)?;
        let (shift, turn) = self.compare(start);
        Some(Found {
            step: 1.0 - shift / period as f64,
            carrier: turn / self.superframe.period() as f64,
            age: self.samples.len() - start,
            rms: (power_2 / period as f32).sqrt(),
        })
    }

    /// Where the known part begins: the largest correlation, if it stands out.
    fn locate(&self, power: f32) -> Option<usize> {
        let known = &self.superframe.known;
        let mut pattern = [Vec::with_capacity(known.len()), Vec::with_capacity(known.len())];
        for (k, symbol) in known.iter().enumerate() {
            let angle = core::f64::consts::TAU * self.carrier * k as f64;
            let (cos, sin) = (libm::cos(angle) as f32, libm::sin(angle) as f32);
            pattern[0].push(symbol[0] * cos - symbol[1] * sin);
            pattern[1].push(symbol[0] * sin + symbol[1] * cos);
        }
        let phases: Vec<Vec<f32>> = (0..self.spacing)
            .map(|phase| self.samples.iter().skip(phase).step_by(self.spacing).copied().collect())
            .collect();
        let (mut best, mut start) = (0.0, 0);
        for lag in 0..self.period() {
            let symbol = lag / self.spacing;
            let window = &phases[lag % self.spacing][symbol..symbol + known.len()];
            let re = dot(&pattern[0], window);
            let im = if self.carrier == 0.0 { 0.0 } else { dot(&pattern[1], window) };
            if re * re + im * im > best {
                (best, start) = (re * re + im * im, lag);
            }
        }
        let expected =
            power / self.samples.len() as f32 * known.len() as f32 * dot(&pattern[0], &pattern[0]);
        (best > 0.06 * expected).then_some(start)
    }

    /// By how many samples the second period lags behind the first, and by how many radians its
    /// carrier has turned: Gauss–Newton on the first period, shifted and turned to fit the second.
    fn compare(&self, start: usize) -> (f64, f64) {
        let period = self.period();
        let margin = 2 * HILBERT;
        let frame = self.superframe.frame_symbols() * self.spacing;
        let frame_start = start + self.superframe.known.len() * self.spacing;
        // The frames may differ; the channel smears them.
        let usable = |n: usize| {
            let after = (n + 2 * period - frame_start) % period;
            after > frame + 200 && after < period - 40
        };
        let near = &self.samples[..period + margin];
        let quadrature = hilbert(near);
        let (mut shift, mut turn) = (0.0_f64, 0.0_f64);
        for _ in 0..3 {
            let moved = [near, &quadrature].map(|x| interpolate(x, &kernel(shift)));
            let slope = slope_kernel(shift);
            let slopes = [near, &quadrature].map(|x| interpolate(x, &slope));
            let (cos, sin) = (libm::cos(turn) as f32, libm::sin(turn) as f32);
            // Normal equations of: second - model = a·derivative + b·quadrature.
            let mut sums = [0.0_f64; 5];
            for n in (margin..period - margin).filter(|n| usable(*n)) {
                let (u, v) = (moved[0][n], moved[1][n]);
                let (model, quarter) = (u * cos - v * sin, u * sin + v * cos);
                let derivative = slopes[0][n] * cos - slopes[1][n] * sin;
                let rest = f64::from(self.samples[period + n] - model);
                let (d, q) = (f64::from(derivative), f64::from(-quarter));
                for (sum, term) in sums.iter_mut().zip([d * d, d * q, q * q, d * rest, q * rest]) {
                    *sum += term;
                }
            }
            let [dd, dq, qq, dr, qr] = sums;
            let determinant = dd * qq - dq * dq;
            if determinant > 1e-9 * dd * qq {
                shift += (dr * qq - qr * dq) / determinant;
                turn += (qr * dd - dr * dq) / determinant;
            }
        }
        (shift, turn)
    }
}

/// Half the length of the Hilbert transformer.
const HILBERT: usize = 32;

/// The signal turned by -90°, zero at the ends.
fn hilbert(samples: &[f32]) -> Vec<f32> {
    let taps: Vec<f32> = (0..2 * HILBERT + 1)
        .map(|tap| {
            // Oldest sample first: x[n - k] has the tap 2/(πk) for odd k.
            let k = HILBERT as f64 - tap as f64;
            let window = kaiser(k / (HILBERT + 1) as f64, 5.0);
            let odd = (tap + HILBERT) % 2 == 1;
            if odd { (2.0 / (core::f64::consts::PI * k) * window) as f32 } else { 0.0 }
        })
        .collect();
    let mut line = DelayLine::new(2 * HILBERT + 1);
    let mut out = vec![0.0; samples.len()];
    for (n, sample) in samples.iter().enumerate() {
        line.push(*sample);
        if n >= 2 * HILBERT {
            out[n - HILBERT] = dot(&taps, line.window(2 * HILBERT + 1, 0));
        }
    }
    out
}

/// Half the length of the interpolator.
const HALF: usize = 16;

/// Taps that read a signal `shift` samples later, |shift| < 2.
fn kernel(shift: f64) -> Vec<f32> {
    (0..2 * HALF)
        .map(|tap| {
            let x = tap as f64 - HALF as f64 - shift;
            (sinc(x) * kaiser(x / (HALF + 2) as f64, 6.0)) as f32
        })
        .collect()
}

/// Taps that give the derivative there.
fn slope_kernel(shift: f64) -> Vec<f32> {
    const STEP: f64 = 0.05;
    let (after, before) = (kernel(shift + STEP), kernel(shift - STEP));
    after.iter().zip(&before).map(|(a, b)| (a - b) / (2.0 * STEP as f32)).collect()
}

/// The signal through `kernel`, zero at the ends.
fn interpolate(samples: &[f32], kernel: &[f32]) -> Vec<f32> {
    (0..samples.len())
        .map(|n| n.checked_sub(HALF).and_then(|from| samples.get(from..from + 2 * HALF)))
        .map(|window| window.map_or(0.0, |window| dot(kernel, window)))
        .collect()
}
