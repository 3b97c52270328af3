//! Bursts: octets to phase steps and back.

use crc::{CRC_32_ISO_HDLC, Crc};

use super::SLOT_VALUES;
use crate::card::{Block, Checked};
use crate::signal::{Complex, nearest_step, numbered_crc, right_angles, root_raised_cosine};

/// Samples a symbol.
pub(super) const OVERSAMPLING: usize = 4;
/// Samples of a slot before its burst: room for the filter's beginning.
pub(super) const GUARD: usize = 120;
/// Octets of a burst, the CRC included: 248 symbols of two bits.
pub(super) const OCTETS: usize = 62;
/// Octets of its CRC.
pub(super) const CRC_OCTETS: usize = 2;
/// Taps of the pulse on either side of its middle: three symbols.
const HALF: usize = 3 * OVERSAMPLING;
/// How much wider than half the symbol rate the pulse's band is.
const ROLL_OFF: f64 = 0.5;

static DIGEST: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

/// The root-raised-cosine pulse, its power 1: the filter of either end.
pub(super) fn pulse() -> Vec<f32> {
    let middle = HALF as f64;
    let taps = (0..=2 * HALF).map(|tap| {
        let t = (tap as f64 - middle) / OVERSAMPLING as f64;
        root_raised_cosine(t, ROLL_OFF)
    });
    let taps: Vec<f64> = taps.collect();
    let power: f64 = taps.iter().map(|tap| tap * tap).sum();
    let scale = 1.0 / libm::sqrt(power);
    taps.iter().map(|tap| (tap * scale) as f32).collect()
}

/// The steps of phase that carry octets, in right angles; neighbours differ in one bit.
pub(super) fn steps(octets: &[u8]) -> impl Iterator<Item = u8> {
    let pairs = octets
        .iter()
        .flat_map(|octet| [0, 2, 4, 6].map(|shift| octet >> shift & 3));
    pairs.map(right_angles)
}

/// A receiver of bursts, each by itself.
#[derive(Clone, Debug)]
pub struct Receiver {
    pulse: Vec<f32>,
    /// After so many slots their numbers begin again.
    slots: u64,
    samples: Vec<Complex>,
    octets: [u8; OCTETS],
}

impl Receiver {
    /// A receiver; slots are counted up to `slots`, and from 0 again.
    #[must_use]
    pub fn new(slots: u64) -> Self {
        Self {
            pulse: pulse(),
            slots,
            samples: Vec::with_capacity(SLOT_VALUES / 2),
            octets: [0; OCTETS],
        }
    }

    /// The matched filter's output at a symbol.
    fn symbol(&self, number: usize) -> Complex {
        let middle = GUARD + number * OVERSAMPLING;
        let window = &self.samples[middle - HALF..=middle + HALF];
        let terms = self.pulse.iter().zip(window);
        terms.fold(Complex::default(), |sum, (tap, sample)| {
            sum + sample.scale(*tap)
        })
    }
}

impl Block for Receiver {
    fn process(&mut self, number: u64, input: &[i16], _: &mut [i16]) -> Checked {
        let values = input.chunks_exact(2);
        self.samples.clear();
        self.samples
            .extend(values.map(|iq| Complex::new(f32::from(iq[0]), f32::from(iq[1]))));
        self.octets.fill(0);
        let mut before = self.symbol(0);
        for pair in 0..4 * OCTETS {
            let symbol = self.symbol(pair + 1);
            let bits = nearest_step(symbol * before.conj());
            self.octets[pair / 4] |= bits << (2 * (pair % 4));
            before = symbol;
        }
        let (payload, crc) = self.octets.split_at(OCTETS - CRC_OCTETS);
        let number = (number % self.slots) as u32;
        let good = numbered_crc(number, payload).to_le_bytes() == *crc;
        Checked {
            good: u32::from(good),
            damaged: u32::from(!good),
            digest: DIGEST.checksum(&self.octets),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_pulses_in_a_row_do_not_disturb_their_neighbours() {
        let pulse = pulse();
        for symbol in 1..3 {
            let shift = symbol * OVERSAMPLING;
            let overlap: f32 = pulse.iter().zip(&pulse[shift..]).map(|(a, b)| a * b).sum();
            assert!(overlap.abs() < 0.02, "{overlap} at {symbol} symbols");
        }
    }
}
