//! What a wire does to frames: how long it is taken by each, and which are lost, doubled, late or wrong.
//!
//! Every wire that is not real stands on this, in virtual time and live, so that a fault means the same on both.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::link::{Left, Stamp};
use crate::base::random::SplitMix64;
use crate::{Instant, Span};

/// What a wire carries around a frame's own bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Framing {
    /// Nothing.
    #[default]
    Bare,
    /// Ethernet (IEEE 802.3): preamble, padding to the shortest frame, check sequence, and the gap before the next frame.
    Ethernet,
    /// ATM cells of 53 bytes, which carry 48, under AAL5 (ITU-T I.363.5): the frame, padding, and a trailer that ends the last cell.
    Cells,
}

/// Preamble and start of a frame, its check sequence, and the gap behind it.
const AROUND_ETHERNET: u64 = 8 + 4 + 12;
/// The shortest frame without its check sequence.
const SHORTEST_ETHERNET: u64 = 60;
/// What ends the last cell of a frame.
const AAL5_TRAILER: u64 = 8;
const CELL: u64 = 53;
const CELL_PAYLOAD: u64 = 48;

impl Framing {
    /// So many bytes go over the wire for a frame of this many.
    #[must_use]
    pub const fn bytes(self, length: usize) -> u64 {
        let length = length as u64;
        match self {
            Self::Bare => length,
            Self::Ethernet if length < SHORTEST_ETHERNET => SHORTEST_ETHERNET + AROUND_ETHERNET,
            Self::Ethernet => length.saturating_add(AROUND_ETHERNET),
            Self::Cells => length
                .saturating_add(AAL5_TRAILER)
                .div_ceil(CELL_PAYLOAD)
                .saturating_mul(CELL),
        }
    }

    /// For how long a frame of this many bytes takes a wire of so many bits a second; of 0, no time.
    #[must_use]
    pub fn takes(self, length: usize, rate: u64) -> Span {
        let nanos = (u128::from(self.bytes(length)) * 8_000_000_000).checked_div(rate.into());
        Span::from_nanos(nanos.unwrap_or(0).try_into().unwrap_or(u64::MAX))
    }
}

/// What a wire does to frames, each way alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    /// Bits a second; 0: a frame takes no time.
    pub rate: u64,
    /// From when the last bit leaves until it arrives.
    pub delay: Span,
    /// Of a million frames so many are lost.
    pub lost: u32,
    /// So many arrive twice.
    pub doubled: u32,
    /// So many arrive later than others, by [`late_by`](Self::late_by).
    pub late: u32,
    /// How much later.
    pub late_by: Span,
    /// So many arrive with one bit wrong.
    pub corrupted: u32,
}

/// Of a frame that leaves an interface of this wire's own, as it is.
pub const WHOLE: Told = (
    Stamp::Wire,
    Left {
        checksum: false,
        segment: 0,
    },
);

const MILLION: u64 = 1_000_000;

fn happens(drawn: u64, of_a_million: u32) -> bool {
    drawn % MILLION < of_a_million.into()
}

/// Of a frame that begins to fly: whose word the instant is, and what is not in it yet.
pub type Told = (Stamp, Left);

/// A frame on the wire: the first to arrive first, and of those that arrive together the first that was sent.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Flying {
    /// When it arrives.
    pub at: Instant,
    number: u64,
    /// What arrives.
    pub bytes: Vec<u8>,
    /// Who says when it left, and what was left of it then.
    pub told: Told,
}

/// What flies towards one end. For each frame four numbers are drawn, in this order: whether it is lost, doubled, late, and which of its bits
/// is wrong; the second copy of one that is doubled has the last two of its own, which follow from the second. So a fault that is made rarer leaves all others where they were.
#[derive(Debug)]
pub struct Way {
    random: SplitMix64,
    flying: BinaryHeap<Reverse<Flying>>,
    number: u64,
    /// Memory of frames that have landed.
    landed: Vec<Vec<u8>>,
}

impl Way {
    /// Nothing flies there; faults follow from the seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            random: SplitMix64::new(seed),
            flying: BinaryHeap::new(),
            number: 0,
            landed: Vec::new(),
        }
    }

    /// A frame whose last bit leaves then.
    pub fn fly(&mut self, frame: &[u8], leaves: Instant, told: Told, faults: &Faults) {
        let [lost, doubled, late, wrong] = [(); 4].map(|()| self.random.draw());
        if happens(lost, faults.lost) {
            return;
        }
        self.launch(frame, (leaves, told), [late, wrong], faults);
        if happens(doubled, faults.doubled) {
            let mut of_copy = SplitMix64::new(doubled);
            let drawn = [(); 2].map(|()| of_copy.draw());
            self.launch(frame, (leaves, told), drawn, faults);
        }
    }

    /// One copy, by whether it is late and which of its bits is wrong.
    fn launch(
        &mut self,
        frame: &[u8],
        (leaves, told): (Instant, Told),
        drawn: [u64; 2],
        faults: &Faults,
    ) {
        let [late, wrong] = drawn;
        let after = |instant: Instant, span| instant.checked_add(span).unwrap_or(Instant::MAX);
        let mut at = after(leaves, faults.delay);
        if happens(late, faults.late) {
            at = after(at, faults.late_by);
        }
        let mut bytes = self.landed.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(frame);
        let bits = frame.len() as u64 * 8;
        if happens(wrong, faults.corrupted) && bits > 0 {
            let bit = wrong / MILLION % bits;
            bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
        let number = self.number;
        self.number += 1;
        self.flying.push(Reverse(Flying {
            at,
            number,
            bytes,
            told,
        }));
    }

    /// When the next frame lands.
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        self.flying.peek().map(|Reverse(first)| first.at)
    }

    /// The first frame that has landed by now.
    pub fn land(&mut self, now: Instant) -> Option<Flying> {
        if self.next()? > now {
            return None;
        }
        self.flying.pop().map(|Reverse(first)| first)
    }

    /// Takes the memory of a frame that has landed, for one that flies later.
    pub fn reuse(&mut self, landed: Vec<u8>) {
        self.landed.push(landed);
    }

    /// What flies is lost.
    pub fn clear(&mut self) {
        self.flying.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_carry_48_of_53_bytes_and_a_trailer_of_8() {
        let cells = |length| Framing::Cells.bytes(length) / 53;
        assert_eq!(cells(0), 1);
        assert_eq!(cells(40), 1, "40 bytes and the trailer fill one cell");
        assert_eq!(cells(41), 2, "one byte more pads a second");
        assert_eq!(cells(88), 2);
        assert_eq!(cells(89), 3);
        assert_eq!(cells(1_514), 32);
        // 53 bytes at 155 Mbit/s take 2.735 µs.
        assert_eq!(
            Framing::Cells.takes(40, 155_000_000),
            Span::from_nanos(2_735)
        );
    }

    /// Of those of a frame that is always doubled both are wrong, or late, as often as each alone, and not always together.
    #[test]
    fn each_copy_of_a_doubled_frame_has_its_own_fate() {
        let faults = Faults {
            doubled: 1_000_000,
            late: 200_000,
            late_by: Span::from_millis(5),
            corrupted: 200_000,
            ..Faults::default()
        };
        let mut way = Way::new(1);
        // How many frames have so many copies that are wrong, and that are late.
        let (mut wrong, mut late) = ([0; 3], [0; 3]);
        for _ in 0..10_000 {
            way.fly(&[0; 100], Instant::ZERO, WHOLE, &faults);
            let copies: Vec<_> = core::iter::from_fn(|| way.land(Instant::MAX)).collect();
            assert_eq!(copies.len(), 2);
            wrong[copies.iter().filter(|copy| copy.bytes != [0; 100]).count()] += 1;
            late[copies.iter().filter(|copy| copy.at > Instant::ZERO).count()] += 1;
        }
        for [none, one, both] in [wrong, late] {
            assert!((6_200..6_600).contains(&none), "{none}");
            assert!((3_000..3_400).contains(&one), "{one}");
            assert!((300..500).contains(&both), "{both}");
        }
    }

    #[test]
    fn ethernet_pads_a_short_frame_and_adds_what_is_around_each() {
        assert_eq!(Framing::Ethernet.bytes(14), 84);
        assert_eq!(Framing::Ethernet.bytes(60), 84);
        assert_eq!(Framing::Ethernet.bytes(61), 85);
        assert_eq!(Framing::Ethernet.bytes(1_514), 1_538);
        // At 10 Mbit/s the shortest frame takes 67.2 µs, as the standard has it.
        assert_eq!(
            Framing::Ethernet.takes(60, 10_000_000),
            Span::from_nanos(67_200)
        );
        assert_eq!(Framing::Bare.takes(1_500, 0), Span::ZERO);
    }
}
