//! The scrambler 1 + x^-14 + x^-17 with its guard against long runs of ones (V.22bis, "Scrambler and descrambler").

/// Ones in a row on the line after which the next data bit is inverted.
const RUN: u8 = 64;

/// The last 17 bits of the line, for a scrambler or a descrambler.
#[derive(Debug, Clone, Default)]
pub(super) struct Scrambler {
    history: u32,
    ones: u8,
}

impl Scrambler {
    /// The line's bit for a data bit.
    #[inline]
    pub(super) fn scramble(&mut self, bit: bool) -> bool {
        let line = bit ^ self.guard() ^ self.taps();
        self.push(line);
        line
    }

    /// The data bit for a bit of the line.
    #[inline]
    pub(super) fn descramble(&mut self, line: bool) -> bool {
        let bit = line ^ self.guard() ^ self.taps();
        self.push(line);
        bit
    }

    /// Whether this bit is to be inverted; the count then begins anew.
    fn guard(&mut self) -> bool {
        let guard = self.ones == RUN;
        if guard {
            self.ones = 0;
        }
        guard
    }

    fn taps(&self) -> bool {
        ((self.history >> 13) ^ (self.history >> 16)) & 1 == 1
    }

    fn push(&mut self, line: bool) {
        self.history = (self.history << 1) | u32::from(line);
        self.ones = if line { self.ones + 1 } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_descrambler_synchronises_itself(
            bits in proptest::collection::vec(any::<bool>(), 100..600), history: u32
        ) {
            let mut scrambler = Scrambler { history, ones: 0 };
            let mut descrambler = Scrambler::default();
            let received: Vec<bool> =
                bits.iter().map(|b| descrambler.descramble(scrambler.scramble(*b))).collect();
            prop_assert_eq!(&received[17..], &bits[17..]);
        }
    }

    #[test]
    fn a_locked_up_scrambler_is_freed_and_the_far_end_follows() {
        // All ones in the register and ones at the input keep the line at one.
        let mut scrambler = Scrambler {
            history: u32::MAX,
            ones: 0,
        };
        let mut descrambler = scrambler.clone();
        let line: Vec<bool> = (0..200).map(|_| scrambler.scramble(true)).collect();
        assert!(line[..64].iter().all(|bit| *bit));
        assert!(!line[64]);
        assert!(line.iter().all(|bit| descrambler.descramble(*bit)));
    }
}
