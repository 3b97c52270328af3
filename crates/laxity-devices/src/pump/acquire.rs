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
        Self {
            superframe,
            spacing,
            carrier,
            samples: Vec::new(),
        }
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
        let second = &self.samples[period + HILBERT..];
        let power_2 = dot(second, second);
        // Below -60 dB of full scale there is no signal worth a search.
        if power_2 < 1e-6 * second.len() as f32 {
            return None;
        }
        // The Hilbert transform lacks its first samples.
        let quadrature = hilbert(&self.samples[..period + HILBERT]);
        let (quadrature, first) = (&quadrature[HILBERT..period], &self.samples[HILBERT..period]);
        let power_1 = dot(first, first);
        let (cross, turned) = (dot(first, second), dot(quadrature, second));
        // The two frames may differ, which leaves 0.95 of the likeness; less means that the signal
        // has only begun.
        if cross * cross + turned * turned < 0.92 * power_1 * power_2 {
            return None;
        }
        let start = self.locate(power_1 + power_2)?;
        let turn = libm::atan2f(-turned, cross);
        let (shift, turn) = self.compare(start, f64::from(turn));
        Some(Found {
            step: 1.0 - shift / period as f64,
            carrier: turn / self.superframe.period() as f64,
            age: self.samples.len() - start,
            rms: (power_2 / second.len() as f32).sqrt(),
        })
    }

    /// Where the known part begins: the largest correlation, if it stands out.
    fn locate(&self, power: f32) -> Option<usize> {
        let known = &self.superframe.known;
        let mut pattern = [
            Vec::with_capacity(known.len()),
            Vec::with_capacity(known.len()),
        ];
        for (k, symbol) in known.iter().enumerate() {
            let angle = core::f64::consts::TAU * self.carrier * k as f64;
            let (cos, sin) = (libm::cos(angle) as f32, libm::sin(angle) as f32);
            pattern[0].push(symbol[0] * cos - symbol[1] * sin);
            pattern[1].push(symbol[0] * sin + symbol[1] * cos);
        }
        let phases: Vec<Vec<f32>> = (0..self.spacing)
            .map(|phase| {
                self.samples
                    .iter()
                    .skip(phase)
                    .step_by(self.spacing)
                    .copied()
                    .collect()
            })
            .collect();
        let (mut best, mut start) = (0.0, 0);
        for lag in 0..self.period() {
            let symbol = lag / self.spacing;
            let window = &phases[lag % self.spacing][symbol..symbol + known.len()];
            let re = dot(&pattern[0], window);
            let im = if self.carrier == 0.0 {
                0.0
            } else {
                dot(&pattern[1], window)
            };
            if re * re + im * im > best {
                (best, start) = (re * re + im * im, lag);
            }
        }
        let expected =
            power / self.samples.len() as f32 * known.len() as f32 * dot(&pattern[0], &pattern[0]);
        (best > 0.06 * expected).then_some(start)
    }

    /// By how many samples the second period lags behind the first, and by how many radians its
    /// carrier has turned, starting from a rough `turn`: Gauss–Newton on the first period, shifted
    /// and turned to fit the second.
    fn compare(&self, start: usize, turn: f64) -> (f64, f64) {
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
        let (mut shift, mut turn) = (0.0_f64, turn);
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
                for (sum, term) in sums
                    .iter_mut()
                    .zip([d * d, d * q, q * q, d * rest, q * rest])
                {
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
            if odd {
                (2.0 / (core::f64::consts::PI * k) * window) as f32
            } else {
                0.0
            }
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
    after
        .iter()
        .zip(&before)
        .map(|(a, b)| (a - b) / (2.0 * STEP as f32))
        .collect()
}

/// The signal through `kernel`, zero at the ends.
fn interpolate(samples: &[f32], kernel: &[f32]) -> Vec<f32> {
    (0..samples.len())
        .map(|n| {
            n.checked_sub(HALF)
                .and_then(|from| samples.get(from..from + 2 * HALF))
        })
        .map(|window| window.map_or(0.0, |window| dot(kernel, window)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::equalizer::CARRIER;
    use super::super::line::{Line, LineConfig};
    use super::super::receiver::Direction;
    use super::super::resample::Resampler;
    use super::super::training::Message;
    use super::super::transmitter::{Modulator, QamModulator, Transmitter, Want};
    use super::*;

    /// What the far end finds of the near end's training signal behind `line`.
    fn search(line: &LineConfig) -> Found {
        let direction = Direction::up();
        let mut transmitter = Transmitter::new(direction.clone());
        let mut modulator = QamModulator::new();
        let mut line = Line::new(line);
        let mut resampler = Resampler::new(48, 1.0, 6.0, 8000.0 / 9600.0);
        let mut acquisition = Acquisition::new(direction.superframe, 3, CARRIER);
        let mut network = Vec::new();
        for _ in 0..10_000 {
            let sample = modulator.sample(|| {
                let mut idle = || false;
                transmitter
                    .next(Want::Superframes, Message::default(), &mut idle)
                    .0
            });
            line.up.push(&[sample as i16], &mut network);
            for sample in network.drain(..) {
                resampler.push(sample);
                while let Some(sample) = resampler.next() {
                    if let Some(found) = acquisition.push(sample) {
                        return found;
                    }
                }
            }
        }
        panic!("not found in 625 ms");
    }

    #[test]
    fn measures_clock_and_carrier_within_one_look() {
        for (clock_ppm, carrier_offset_hz) in [(0.0, 0.0), (100.0, 2.0), (-80.0, 0.5), (50.0, -2.0)]
        {
            let found = search(&LineConfig {
                clock_ppm,
                carrier_offset_hz,
                ..LineConfig::default()
            });
            let carrier_hz = found.carrier * 3200.0 / core::f64::consts::TAU;
            assert!(
                (carrier_hz - carrier_offset_hz).abs() < 0.02,
                "{carrier_hz} Hz"
            );
            // A card that is fast shortens the superframe by as much.
            let ppm = (found.step - 1.0) * -1e6;
            assert!((ppm - clock_ppm).abs() < 2.0, "{ppm} ppm");
        }
    }

    #[test]
    fn noise_and_tones_are_not_taken_for_training() {
        let direction = Direction::up();
        let mut noise = super::super::noise::Noise::new(5);
        let mut acquisition = Acquisition::new(direction.superframe, 3, CARRIER);
        for n in 0..50_000 {
            // A tone repeats itself like a superframe, but has none of its known part.
            let tone = (n % 12) as f32 / 6.0 - 1.0;
            let sample = if n < 25_000 { noise.next() } else { tone };
            assert!(acquisition.push(sample).is_none());
        }
    }
}
