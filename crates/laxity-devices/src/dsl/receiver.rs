//! Samples to frames: transform, one-tap equalizers, decisions, CRC.

use crc::{CRC_32_ISO_HDLC, Crc};

use super::FRAME_SYMBOLS;
use super::dmt::{Modulation, Rate};
use crate::card::{Block, Checked};
use crate::signal::Complex;

/// The frames' CRC.
static CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

/// Octets of a frame's CRC.
pub(super) const CRC_OCTETS: usize = 4;

/// The CRC of frame `number`, which both ends count and nobody sends: a frame from another time is no better than a damaged one.
pub(super) fn frame_crc(number: u32, payload: &[u8]) -> u32 {
    let mut digest = CRC.digest();
    digest.update(&number.to_le_bytes());
    digest.update(payload);
    digest.finalize()
}

/// A receiver that has been trained on its line.
#[derive(Clone)]
pub struct Receiver {
    modulation: Modulation,
    /// What undoes the line on each tone.
    equalizers: Vec<Complex>,
    /// After so many frames their numbers begin again.
    frames: u64,
    octets: Vec<u8>,
}

impl Receiver {
    /// Learns the line from symbols whose octets it knows. `frames` is how many there are until their numbers begin again.
    #[must_use]
    pub(super) fn trained(rate: Rate, symbols: &[i16], sent: &[u8], frames: u64) -> Self {
        let mut modulation = Modulation::new(rate);
        let mut line = vec![Complex::default(); rate.tones()];
        let pairs = symbols
            .chunks_exact(rate.symbol_samples())
            .zip(sent.chunks_exact(rate.symbol_octets()));
        for (symbol, octets) in pairs {
            let tones = modulation.tones(symbol);
            for (tone, (sum, value)) in line.iter_mut().zip(tones).enumerate() {
                // Σ y·x* over Σ |x|², the least squares of y = h·x.
                *sum += *value * Modulation::sent(octets, tone).conj();
            }
        }
        let power = |tone| -> f32 {
            let octets = sent.chunks_exact(rate.symbol_octets());
            octets
                .map(|octets| Modulation::sent(octets, tone).norm_sqr())
                .sum()
        };
        let equalizers = line.iter().enumerate();
        let equalizers = equalizers.map(|(tone, sum)| sum.inv().scale(power(tone)));
        Self {
            equalizers: equalizers.collect(),
            octets: Vec::with_capacity(rate.symbol_octets() * FRAME_SYMBOLS),
            modulation,
            frames,
        }
    }
}

impl Block for Receiver {
    fn process(&mut self, number: u64, input: &[i16], _: &mut [i16]) -> Checked {
        self.octets.clear();
        for symbol in input.chunks_exact(self.modulation.rate().symbol_samples()) {
            let (equalizers, octets) = (&self.equalizers, &mut self.octets);
            self.modulation.demodulate(symbol, equalizers, octets);
        }
        let digest = CRC.checksum(&self.octets);
        let good = match self.octets.split_last_chunk::<CRC_OCTETS>() {
            Some((payload, crc)) => {
                frame_crc((number % self.frames) as u32, payload) == u32::from_le_bytes(*crc)
            }
            None => false,
        };
        Checked {
            good: u32::from(good),
            damaged: u32::from(!good),
            digest,
        }
    }
}
