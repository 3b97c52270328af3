//! The line: echoes shorter than the prefix, noise, and what is recorded at its end.

use std::sync::Arc;

use laxity_model::base::random::SplitMix64;

use super::FRAME_SYMBOLS;
use super::dmt::{Modulation, Rate};
use super::receiver::{CRC_OCTETS, Receiver, frame_crc};
use crate::pump::noise::Noise;

/// Symbols that the receiver is trained on.
const TRAINING_SYMBOLS: usize = 64;
/// The root mean square at the card. A multitone signal's peaks are five times that now and then.
const LEVEL: f32 = 4_000.0;
/// The line's response from sample to sample: a delay, a main path and its smear.
const ECHOES: [f32; 8] = [0.06, 0.85, -0.38, 0.22, -0.12, 0.07, -0.03, 0.02];

/// How bad a line is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LineConfig {
    /// What payload and noise come from.
    pub seed: u64,
    /// Signal over noise at the card, in decibels, over the whole band. 16 points need about 20 dB for no errors.
    pub snr_db: f64,
    /// Frames until the recording begins again.
    pub frames: u64,
}

impl Default for LineConfig {
    fn default() -> Self {
        Self {
            seed: 1,
            snr_db: 30.0,
            // A prime: no number of rings brings the same frame to the same place soon.
            frames: 53,
        }
    }
}

/// What arrives at the end of a line, and a receiver that knows the line.
pub struct Recording {
    /// Whole frames, to be received again and again.
    pub samples: Arc<[i16]>,
    /// Trained before the first of them.
    pub receiver: Receiver,
}

/// Sends frames through a line.
pub fn record(rate: Rate, line: &LineConfig) -> Recording {
    let mut random = SplitMix64::new(line.seed);
    let mut octets =
        |count: usize| -> Vec<u8> { (0..count).map(|_| (random.draw() >> 56) as u8).collect() };
    let training = octets(TRAINING_SYMBOLS * rate.symbol_octets());
    let mut sent = training.clone();
    let payload = FRAME_SYMBOLS * rate.symbol_octets() - CRC_OCTETS;
    for number in 0..line.frames {
        let frame = octets(payload);
        let crc = frame_crc(number as u32, &frame);
        sent.extend(frame);
        sent.extend(crc.to_le_bytes());
    }
    let mut modulation = Modulation::new(rate);
    let mut signal = Vec::with_capacity(sent.len() / rate.symbol_octets() * rate.symbol_samples());
    for symbol in sent.chunks_exact(rate.symbol_octets()) {
        modulation.modulate(symbol, &mut signal);
    }
    let received = impair(&signal, rate, line);
    let (first, frames) = received.split_at(TRAINING_SYMBOLS * rate.symbol_samples());
    Recording {
        receiver: Receiver::trained(rate, first, &training, line.frames),
        samples: frames.into(),
    }
}

fn impair(signal: &[f32], rate: Rate, line: &LineConfig) -> Vec<i16> {
    let mut noise = Noise::new(line.seed ^ 0xD51);
    let level = LEVEL / (2.0 * rate.tones() as f32).sqrt();
    let gain: f32 = ECHOES.iter().map(|echo| echo * echo).sum::<f32>().sqrt();
    let deviation = LEVEL / libm::pow(10.0, line.snr_db / 20.0) as f32;
    let received = (0..signal.len()).map(|at| {
        let paths = ECHOES.iter().zip(signal[..=at].iter().rev());
        let clean: f32 = paths.map(|(echo, sample)| echo * sample).sum();
        let value = clean * level / gain + noise.next() * deviation;
        value.clamp(-32_768.0, 32_767.0) as i16
    });
    received.collect()
}
