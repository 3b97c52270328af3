//! A sound that carries frames: a tone of 4 kHz whose phase steps every half millisecond.

use laxity_model::base::random::SplitMix64;

use crate::card::Listener;
use crate::signal::{Complex, nearest_step, numbered_crc, right_angles, unit};

/// Samples of a frame in the sound's file: 10 ms at 44.1 kHz.
const FRAME_SAMPLES: usize = 441;
/// The file's rate.
const FILE_HZ: f64 = 44_100.0;
/// Frames of the file, which is played again and again. A prime.
const FRAMES: usize = 61;
/// The tone.
const TONE_HZ: f64 = 4_000.0;
/// Symbols of a frame; the first carries no bits.
const SYMBOLS: usize = 20;
/// A symbol's length.
const SYMBOL_S: f64 = 0.000_5;
/// Bits of a frame before its CRC: 19 steps of two bits less 16.
const PAYLOAD_BITS: u32 = 22;
/// How loud it is.
const AMPLITUDE: f32 = 12_000.0;
/// Samples of a symbol at 48 kHz.
const HEARD: usize = 24;
/// Where those of them begin that are listened to: the resampler smears the edges.
const FROM: usize = 6;
/// How many of them are listened to: a whole period of the tone.
const LISTENED: usize = 12;

/// The file that is played.
#[derive(Clone, PartialEq, Debug)]
pub struct Sound(Vec<f32>);

impl Sound {
    /// A sound from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let mut samples = Vec::with_capacity(FRAMES * FRAME_SAMPLES);
        for number in 0..FRAMES {
            let payload = (random.draw() >> (64 - PAYLOAD_BITS)) as u32;
            let crc = u64::from(numbered_crc(number as u32, &payload.to_le_bytes()));
            let bits = u64::from(payload) | crc << PAYLOAD_BITS;
            let mut turns = [0_u8; SYMBOLS];
            for symbol in 1..SYMBOLS {
                let pair = (bits >> (2 * (symbol - 1)) & 3) as u8;
                turns[symbol] = (turns[symbol - 1] + right_angles(pair)) & 3;
            }
            samples.extend((0..FRAME_SAMPLES).map(|sample| {
                let at = sample as f64 / FILE_HZ;
                let symbol = ((at / SYMBOL_S) as usize).min(SYMBOLS - 1);
                let turned = TONE_HZ * at + f64::from(turns[symbol]) / 4.0;
                libm::cos(2.0 * core::f64::consts::PI * turned) as f32 * AMPLITUDE
            }));
        }
        Self(samples)
    }

    /// Sample `index` of the sound without end.
    pub fn sample(&self, index: u64) -> f32 {
        self.0[(index % self.0.len() as u64) as usize]
    }
}

/// Listens to the card at 48 kHz, period by period.
#[derive(Clone, Debug)]
pub struct Ear {
    tone: [Complex; LISTENED],
}

impl Ear {
    /// How strong the tone is in a symbol, and in which phase.
    fn symbol(&self, samples: &[i16]) -> Complex {
        let listened = samples[FROM..FROM + LISTENED].iter();
        let terms = listened.zip(&self.tone);
        terms.fold(Complex::default(), |sum, (sample, tone)| {
            sum + tone.scale(f32::from(*sample))
        })
    }
}

impl Default for Ear {
    fn default() -> Self {
        let turn = -2.0 * core::f64::consts::PI / LISTENED as f64;
        Self {
            tone: core::array::from_fn(|sample| unit(turn * sample as f64)),
        }
    }
}

impl Listener for Ear {
    fn hear(&mut self, number: u64, samples: &[i16]) -> bool {
        let mut symbols = samples
            .chunks_exact(HEARD)
            .map(|symbol| self.symbol(symbol));
        let mut before = symbols.next().unwrap_or_default();
        let mut bits = 0_u64;
        for (place, symbol) in symbols.enumerate() {
            let step = symbol * before.conj();
            bits |= u64::from(nearest_step(step)) << (2 * place);
            before = symbol;
        }
        let payload = (bits & ((1 << PAYLOAD_BITS) - 1)) as u32;
        let number = (number % FRAMES as u64) as u32;
        numbered_crc(number, &payload.to_le_bytes()) == (bits >> PAYLOAD_BITS) as u16
    }
}
