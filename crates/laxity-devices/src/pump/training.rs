//! What is sent until data flows: superframes of a known pseudo-random part, from which the other
//! end's receiver is trained, and a short frame with what the ends must tell each other.
//!
//! All of it has two levels in each coordinate, so a trained receiver reads frames at any noise at
//! which it could be trained at all. When both ends are trained, frames follow each other without
//! the known part.

use std::sync::Arc;

use laxity_model::base::random::SplitMix64;

/// One transmitted symbol: two coordinates for QAM, one (the first) for PAM.
pub(super) type Symbol = [f32; 2];

const CRC: crc::Crc<u16> = crc::Crc::<u16>::new(&crc::CRC_16_IBM_3740);
const SYNC: u16 = 0xE9CA;
/// Bits in a frame: sync word, message, check sequence.
const FRAME_BITS: usize = 48;

/// What one end tells the other. Rates are numbered from 1 in the order of the code table; 0 says
/// that the receiver is not trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Message {
    /// The rate that the sender's receiver asks for.
    pub(crate) wish: u8,
    /// The wish that the sender has received.
    pub(crate) heard: u8,
    /// Data at the rate `heard` follows this frame at once.
    pub(crate) last: bool,
}

impl Message {
    /// The frame's bits, first bit of the line in the highest of 48.
    pub(crate) fn encode(self) -> u64 {
        let payload = u16::from(self.wish & 15) << 12
            | u16::from(self.heard & 15) << 8
            | u16::from(self.last);
        let check = CRC.checksum(&payload.to_be_bytes());
        u64::from(SYNC) << 32 | u64::from(payload) << 16 | u64::from(check)
    }

    /// Reads the last 48 bits of the line, if they are a frame.
    pub(crate) fn decode(bits: u64) -> Option<Self> {
        if (bits >> 32) as u16 != SYNC {
            return None;
        }
        let payload = (bits >> 16) as u16;
        (CRC.checksum(&payload.to_be_bytes()) == bits as u16).then_some(Self {
            wish: (payload >> 12) as u8,
            heard: (payload >> 8) as u8 & 15,
            last: payload & 1 == 1,
        })
    }
}

/// The shape of a direction's superframe.
#[derive(Debug, Clone)]
pub(crate) struct Superframe {
    /// Symbols of the known part.
    pub(crate) known: Arc<[Symbol]>,
    /// Coordinates of a symbol: 1 or 2.
    pub(crate) dimensions: usize,
}

impl Superframe {
    /// A superframe of `period` symbols, of which the last carry the frame.
    pub(crate) fn new(period: usize, dimensions: usize, seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let mut level = || if random.draw() >> 63 == 1 { 1.0 } else { -1.0 };
        let known = (0..period - FRAME_BITS / dimensions)
            .map(|_| [level(), if dimensions == 2 { level() } else { 0.0 }])
            .collect();
        Self { known, dimensions }
    }

    /// Symbols of a frame.
    pub(crate) fn frame_symbols(&self) -> usize {
        FRAME_BITS / self.dimensions
    }

    /// Symbols of a superframe.
    pub(crate) fn period(&self) -> usize {
        self.known.len() + self.frame_symbols()
    }

    /// Symbol `index` of a frame.
    pub(crate) fn frame_symbol(&self, frame: u64, index: usize) -> Symbol {
        let level = |bit: usize| {
            if frame >> (FRAME_BITS - 1 - bit) & 1 == 1 {
                1.0
            } else {
                -1.0
            }
        };
        match self.dimensions {
            1 => [level(index), 0.0],
            _ => [level(2 * index), level(2 * index + 1)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn messages_survive_and_any_damage_is_noticed(
            wish in 0_u8..16, heard in 0_u8..16, last: bool, first in 0_u32..48, second in 0_u32..48
        ) {
            let message = Message { wish, heard, last };
            let frame = message.encode();
            prop_assert_eq!(Message::decode(frame), Some(message));
            prop_assert_eq!(Message::decode(frame ^ 1 << first), None);
            if first != second {
                prop_assert_eq!(Message::decode(frame ^ 1 << first ^ 1 << second), None);
            }
        }
    }
}
