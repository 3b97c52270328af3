//! The telephone line between the two ends, 4-wire: each direction has its own path.
//!
//! Downstream the network's 8000 levels a second pass a codec filter and the subscriber loop and
//! are sampled by the card at 16 kHz by a clock of its own; upstream the card's samples pass the
//! same loop and filter into the network's 8000 samples a second. What is modelled: the filter's
//! edge at 4 kHz, a loss that grows with √f, the high-pass of the hybrid's transformer, delay
//! distortion, the difference of the clocks, a carrier offset upstream, delay, and white noise.

use core::f64::consts::{PI, TAU};
use std::collections::VecDeque;

use super::fir::{DelayLine, dot2};
use super::noise::Noise;
use super::resample::{Resampler, kaiser};

/// Taps of a channel filter at 16 kHz (12 ms).
const TAPS: usize = 192;
/// Root mean square of the card's samples on both directions of a line without loss.
pub(crate) const CARD_RMS: f32 = 5000.0;

/// What a line does to its signals.
#[derive(Debug, Clone, PartialEq)]
pub struct LineConfig {
    /// Seed of the noise.
    pub seed: u64,
    /// Downstream signal-to-noise ratio of the card's samples (over their whole 8 kHz), dB.
    pub snr_down_db: f64,
    /// Upstream signal-to-noise ratio of the network's samples (over their whole 4 kHz), dB.
    pub snr_up_db: f64,
    /// By how much the card's clock is faster than the network's, parts per million.
    pub clock_ppm: f64,
    /// Carrier offset of the upstream path, Hz.
    pub carrier_offset_hz: f64,
    /// Loss of the loop at 4 kHz, dB; it grows with √f.
    pub loss_db: f64,
    /// Loss of the codec's filter at 4 kHz, dB; it begins at 3 kHz and grows with the square.
    pub codec_db: f64,
    /// Corner of the second-order high-pass, Hz.
    pub highpass_hz: f64,
    /// Group delay at 3.6 kHz against that at 1.8 kHz, ms.
    pub delay_distortion_ms: f64,
    /// Delay of one way, ms.
    pub delay_ms: f64,
}

impl Default for LineConfig {
    fn default() -> Self {
        Self {
            seed: 1,
            snr_down_db: 52.0,
            snr_up_db: 44.0,
            clock_ppm: 50.0,
            carrier_offset_hz: 0.5,
            loss_db: 5.0,
            codec_db: 14.0,
            highpass_hz: 100.0,
            delay_distortion_ms: 0.5,
            delay_ms: 10.0,
        }
    }
}

impl LineConfig {
    /// The gain at a frequency, without the high-pass.
    fn gain(&self, frequency_hz: f64) -> f64 {
        let edge = (frequency_hz / 1000.0 - 3.0).max(0.0);
        let loss = self.loss_db * libm::sqrt(frequency_hz / 4000.0) + self.codec_db * edge * edge;
        libm::pow(10.0, -loss / 20.0)
    }

    /// The phase at a frequency: the integral of a group delay that is a parabola about 1.8 kHz.
    fn phase(&self, frequency_hz: f64) -> f64 {
        // Beyond the band the parabola would only lengthen the filter.
        let x = (frequency_hz.min(4000.0) - 1800.0) / 1800.0;
        let parabola = (x * x * x + 1.0) / 3.0 * 1800.0;
        let beyond = (frequency_hz - 4000.0).max(0.0) * (2200.0 * 2200.0) / (1800.0 * 1800.0);
        -TAU * self.delay_distortion_ms * 1e-3 * (parabola + beyond)
    }

    /// The impulse response at 16 kHz with its phase turned by `turn`.
    fn impulse_response(&self, turn: f64) -> Vec<f32> {
        const BINS: usize = 512;
        let centre = (TAPS / 2) as f64 - 8.0;
        let bins: Vec<(f64, f64, f64)> = (0..BINS)
            .map(|bin| {
                let frequency = (bin as f64 + 0.5) * 8000.0 / BINS as f64;
                let omega = TAU * frequency / 16_000.0;
                (omega, self.gain(frequency), self.phase(frequency) + turn)
            })
            .collect();
        (0..TAPS)
            .map(|tap| {
                let t = tap as f64 - centre;
                let sum: f64 = bins
                    .iter()
                    .map(|(omega, gain, phase)| gain * libm::cos(omega * t + phase))
                    .sum();
                let window = kaiser(
                    (tap as f64 - 0.5 * (TAPS - 1) as f64) / (TAPS / 2) as f64,
                    5.0,
                );
                (sum / BINS as f64 * window) as f32
            })
            .rev()
            .collect()
    }
}

/// Second-order Butterworth high-pass.
#[derive(Debug, Clone)]
struct HighPass {
    gain: f32,
    feedback: [f32; 2],
    state: [f32; 2],
}

impl HighPass {
    fn new(corner_hz: f64, rate_hz: f64) -> Self {
        let k = libm::tan(PI * corner_hz / rate_hz);
        let norm = 1.0 / (1.0 + core::f64::consts::SQRT_2 * k + k * k);
        let feedback = [
            (2.0 * (k * k - 1.0) * norm) as f32,
            ((1.0 - core::f64::consts::SQRT_2 * k + k * k) * norm) as f32,
        ];
        Self {
            gain: norm as f32,
            feedback,
            state: [0.0; 2],
        }
    }

    #[inline]
    fn next(&mut self, sample: f32) -> f32 {
        let x = self.gain * sample;
        let y = x + self.state[0];
        self.state[0] = self.state[1] - 2.0 * x - self.feedback[0] * y;
        self.state[1] = x - self.feedback[1] * y;
        y
    }
}

/// The path from the far end to the card.
#[derive(Debug, Clone)]
pub struct Downstream {
    delay: VecDeque<f32>,
    line: DelayLine,
    /// The channel for the two samples of a symbol.
    halves: [Vec<f32>; 2],
    highpass: HighPass,
    resampler: Resampler,
    noise: Noise,
    noise_rms: f32,
}

impl Downstream {
    fn new(config: &LineConfig) -> Self {
        let response = config.impulse_response(0.0);
        let power: f32 = response.iter().map(|h| h * h).sum();
        // Every other input of the filter is zero, which takes half of the power.
        let scale = CARD_RMS * core::f32::consts::SQRT_2;
        let signal_rms = scale * (power / 2.0).sqrt();
        let half = |first: usize| {
            response
                .iter()
                .skip(first)
                .step_by(2)
                .map(|h| h * scale)
                .collect::<Vec<f32>>()
        };
        Self {
            delay: vec![0.0; (config.delay_ms * 8.0) as usize].into(),
            line: DelayLine::new(TAPS / 2),
            // The response is stored newest input first: the sample that falls on a symbol sees
            // the taps of odd index.
            halves: [half(1), half(0)],
            highpass: HighPass::new(config.highpass_hz, 16_000.0),
            resampler: Resampler::new(16, 1.0, 8.0, 1.0 / (1.0 + config.clock_ppm * 1e-6)),
            noise: Noise::new(config.seed ^ 0xD0_3A57),
            noise_rms: signal_rms * libm::pow(10.0, -config.snr_down_db / 20.0) as f32,
        }
    }

    /// Takes `levels` of the network (mean square one) and appends to `card` the samples that the
    /// card takes meanwhile: about two for each.
    pub fn push(&mut self, levels: &[f32], card: &mut Vec<i16>) {
        for &level in levels {
            self.delay.push_back(level);
            self.line.push(self.delay.pop_front().unwrap_or(level));
            let window = self.line.window(TAPS / 2, 0);
            for half in dot2([&self.halves[0], &self.halves[1]], window) {
                self.resampler.push(self.highpass.next(half));
                while let Some(sample) = self.resampler.next() {
                    let noisy = sample + self.noise_rms * self.noise.next();
                    card.push(round(noisy));
                }
            }
        }
    }
}

/// The path from the card to the far end.
#[derive(Debug, Clone)]
pub struct Upstream {
    delay: VecDeque<f32>,
    resampler: Resampler,
    second: bool,
    line: DelayLine,
    /// The channel, and the channel with its phase turned by a quarter: together they shift the
    /// frequency.
    response: [Vec<f32>; 2],
    highpass: HighPass,
    /// The carrier offset's phasor and its step.
    phasor: [f32; 2],
    turn: [f32; 2],
    noise: Noise,
    noise_rms: f32,
}

impl Upstream {
    fn new(config: &LineConfig) -> Self {
        let turn = TAU * config.carrier_offset_hz / 8000.0;
        let response = [0.0, -PI / 2.0].map(|turn| {
            let mut response = config.impulse_response(turn);
            response.iter_mut().for_each(|h| *h /= CARD_RMS);
            response
        });
        // The upstream signal fills 160 to 3680 Hz evenly.
        let power = (0..512)
            .map(|i| config.gain(160.0 + f64::from(i) * 3520.0 / 512.0).powi(2) / 512.0)
            .sum::<f64>();
        Self {
            delay: vec![0.0; (config.delay_ms * 16.0) as usize].into(),
            resampler: Resampler::new(16, 1.0, 8.0, 1.0 + config.clock_ppm * 1e-6),
            second: false,
            line: DelayLine::new(TAPS),
            response,
            highpass: HighPass::new(config.highpass_hz, 8000.0),
            phasor: [1.0, 0.0],
            turn: [libm::cos(turn) as f32, libm::sin(turn) as f32],
            noise: Noise::new(config.seed ^ 0x0B_5EED),
            noise_rms: libm::sqrt(power * libm::pow(10.0, -config.snr_up_db / 10.0)) as f32,
        }
    }

    /// Takes the card's samples and appends to `network` the samples that the network takes
    /// meanwhile: about one for two. Their mean square is about one.
    pub fn push(&mut self, card: &[i16], network: &mut Vec<f32>) {
        for &sample in card {
            self.delay.push_back(f32::from(sample));
            self.resampler
                .push(self.delay.pop_front().unwrap_or_default());
            while let Some(sample) = self.resampler.next() {
                self.line.push(sample);
                self.second = !self.second;
                if self.second {
                    continue;
                }
                network.push(self.network_sample());
            }
        }
    }

    fn network_sample(&mut self) -> f32 {
        let window = self.line.window(TAPS, 0);
        let analytic = dot2([&self.response[0], &self.response[1]], window);
        let [re, im] = self.phasor;
        let shifted = analytic[0] * re - analytic[1] * im;
        let [turn_re, turn_im] = self.turn;
        let next = [re * turn_re - im * turn_im, re * turn_im + im * turn_re];
        // Keeps the phasor's length at one against rounding.
        let grow = 1.5 - 0.5 * (next[0] * next[0] + next[1] * next[1]);
        self.phasor = next.map(|v| v * grow);
        self.highpass.next(shifted) + self.noise_rms * self.noise.next()
    }
}

/// Both directions of a line, and the card's samples that were produced and not yet taken.
#[derive(Debug, Clone)]
pub struct Line {
    /// From the far end to the card.
    pub down: Downstream,
    /// From the card to the far end.
    pub up: Upstream,
    pending: Vec<i16>,
    network: Vec<f32>,
    levels: Vec<f32>,
}

/// Samples by which [`Line::exchange`] holds the downstream back so that it never runs dry.
const SLACK: usize = 8;

impl Line {
    /// A line; the same configuration and input give the same output, bit for bit. Costs a few
    /// milliseconds.
    pub fn new(config: &LineConfig) -> Self {
        Self {
            down: Downstream::new(config),
            up: Upstream::new(config),
            pending: vec![0; SLACK],
            network: Vec::new(),
            levels: Vec::new(),
        }
    }

    /// Lets the time of one card block pass: `played` goes into the line, `recorded` (as long)
    /// comes out, and `far` is called once with the network samples of that time: received, and
    /// the levels to transmit. How a stream is cut into blocks does not change it.
    ///
    /// # Panics
    /// If the two blocks differ in length.
    pub fn exchange(
        &mut self,
        played: &[i16],
        recorded: &mut [i16],
        far: impl FnOnce(&[f32], &mut [f32]),
    ) {
        assert_eq!(
            played.len(),
            recorded.len(),
            "the card plays and records by one clock"
        );
        self.network.clear();
        self.up.push(played, &mut self.network);
        self.levels.clear();
        self.levels.resize(self.network.len(), 0.0);
        far(&self.network, &mut self.levels);
        self.down.push(&self.levels, &mut self.pending);
        recorded.copy_from_slice(&self.pending[..recorded.len()]);
        self.pending.drain(..recorded.len());
    }
}

/// The nearest sample of 16 bits; halves go away from zero.
#[inline]
pub(crate) fn round(value: f32) -> i16 {
    // The cast cuts to the range.
    (value + 0.5_f32.copysign(value)) as i16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_response_has_its_edge_at_4_khz() {
        let config = LineConfig::default();
        let response = config.impulse_response(0.0);
        let gain_db = |frequency: f64| {
            let (mut re, mut im) = (0.0, 0.0);
            for (n, h) in response.iter().enumerate() {
                let angle = TAU * frequency / 16_000.0 * n as f64;
                re += f64::from(*h) * libm::cos(angle);
                im += f64::from(*h) * libm::sin(angle);
            }
            10.0 * libm::log10(re * re + im * im)
        };
        assert!((gain_db(1000.0) + 2.5).abs() < 0.3, "{}", gain_db(1000.0));
        assert!((gain_db(4000.0) + 19.0).abs() < 1.0, "{}", gain_db(4000.0));
        assert!(gain_db(6000.0) < -70.0);
    }

    #[test]
    fn exchange_does_not_run_dry_at_any_clock_and_cut() {
        for clock_ppm in [-100.0, 100.0] {
            let mut line = Line::new(&LineConfig {
                clock_ppm,
                ..LineConfig::default()
            });
            let mut networks = 0;
            for block in [1, 7, 210, 211, 180].repeat(400) {
                let mut recorded = vec![0; block];
                line.exchange(&vec![0; block], &mut recorded, |received, _| {
                    networks += received.len();
                });
            }
            let exact = 609.0 * 400.0 / 2.0 / (1.0 + clock_ppm * 1e-6);
            assert!((networks as f64 - exact).abs() < 20.0, "{networks} {exact}");
        }
    }

    #[test]
    fn the_noise_is_as_configured() {
        let run = |snr_down_db, snr_up_db| {
            let config = LineConfig {
                snr_down_db,
                snr_up_db,
                ..LineConfig::default()
            };
            let mut line = Line::new(&config);
            let mut random = Noise::new(1);
            let (mut card, mut network) = (Vec::new(), Vec::new());
            for _ in 0..40_000 {
                line.down.push(&[random.next()], &mut card);
            }
            // White noise is not the upstream signal; between 160 and 3680 Hz it has the same
            // density if its power fills 8 kHz instead of 3.52.
            let scale = CARD_RMS * (8.0_f32 / 3.52).sqrt();
            for _ in 0..80_000 {
                line.up
                    .push(&[round(0.3 * scale * random.next())], &mut network);
            }
            (
                card.into_iter().map(f32::from).collect::<Vec<f32>>(),
                network,
            )
        };
        let power = |samples: &[f32]| samples.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
        let snr_db = |clean: &[f32], noisy: &[f32]| {
            let noise: Vec<f32> = clean.iter().zip(noisy).map(|(a, b)| a - b).collect();
            10.0 * libm::log10(power(clean) / power(&noise))
        };
        let (clean, noisy) = (run(150.0, 150.0), run(30.0, 40.0));
        let down = snr_db(&clean.0, &noisy.0);
        assert!((down - 30.0).abs() < 0.5, "{down}");
        // 0.3 of the level, and a little more band than the signal has.
        let up = snr_db(&clean.1, &noisy.1) + 20.0 * libm::log10(1.0 / 0.3);
        assert!((up - 40.0).abs() < 0.8, "{up}");
    }
}
