//! The self-synchronising scrambler: idle flags become a signal without lines or a mean.
//!
//! A wrong bit on the line makes three wrong bits behind the descrambler.

/// A polynomial 1 + x^-a + x^-b, and what it begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Polynomial {
    /// 1 + x^-18 + x^-23 (as in ITU-T V.32, clause 4).
    Upstream,
    /// 1 + x^-5 + x^-23.
    Downstream,
    /// 1 + x^-14 + x^-17 with a guard against long runs of ones (V.22bis, "Scrambler and descrambler").
    #[cfg(feature = "v22bis")]
    V22bis,
}

/// The last bits of the line, for a scrambler or a descrambler.
#[derive(Debug, Clone)]
pub(crate) struct Scrambler {
    history: u32,
    taps: [u32; 2],
    /// Ones in a row on the line.
    ones: u32,
    /// Ones in a row after which the next data bit is inverted.
    run: u32,
}

impl Scrambler {
    pub(crate) fn new(polynomial: Polynomial) -> Self {
        // The history is not zero, so that the first zeros of a link are scrambled too, where no standard says otherwise.
        let (history, taps, run) = match polynomial {
            Polynomial::Upstream => (0x2A_5C33, [17, 22], u32::MAX),
            Polynomial::Downstream => (0x2A_5C33, [4, 22], u32::MAX),
            #[cfg(feature = "v22bis")]
            Polynomial::V22bis => (0, [13, 16], 64),
        };
        Self {
            history,
            taps,
            ones: 0,
            run,
        }
    }

    /// The line's bit for a data bit.
    #[inline]
    pub(crate) fn scramble(&mut self, bit: bool) -> bool {
        let line = bit ^ self.key();
        self.push(line);
        line
    }

    /// The data bit for a bit of the line.
    #[inline]
    pub(crate) fn descramble(&mut self, line: bool) -> bool {
        let bit = line ^ self.key();
        self.push(line);
        bit
    }

    /// In what the next bits of line and data differ.
    #[inline]
    fn key(&mut self) -> bool {
        let is_inverted = self.ones == self.run;
        if is_inverted {
            self.ones = 0;
        }
        let [first, second] = self.taps;
        is_inverted ^ ((self.history >> first ^ self.history >> second) & 1 == 1)
    }

    #[inline]
    fn push(&mut self, line: bool) {
        self.history = self.history << 1 | u32::from(line);
        self.ones = if line { self.ones.saturating_add(1) } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_descrambler_synchronises_itself(
            bits in proptest::collection::vec(any::<bool>(), 24..300), history: u32
        ) {
            let polynomials = [
                Polynomial::Upstream,
                Polynomial::Downstream,
                #[cfg(feature = "v22bis")]
                Polynomial::V22bis,
            ];
            for polynomial in polynomials {
                let mut scrambler = Scrambler { history, ..Scrambler::new(polynomial) };
                let mut descrambler = Scrambler::new(polynomial);
                let received: Vec<bool> =
                    bits.iter().map(|b| descrambler.descramble(scrambler.scramble(*b))).collect();
                prop_assert_eq!(&received[23..], &bits[23..]);
            }
        }
    }

    #[test]
    fn idle_is_balanced() {
        let mut scrambler = Scrambler::new(Polynomial::Downstream);
        let ones = (0..100_000).filter(|_| scrambler.scramble(false)).count();
        assert!((49_000..51_000).contains(&ones), "{ones}");
    }

    #[cfg(feature = "v22bis")]
    #[test]
    fn a_locked_up_scrambler_is_freed_and_the_far_end_follows() {
        // All ones in the register and ones at the input keep the line at one.
        let mut scrambler = Scrambler {
            history: u32::MAX,
            ..Scrambler::new(Polynomial::V22bis)
        };
        let mut descrambler = scrambler.clone();
        let line: Vec<bool> = (0..200).map(|_| scrambler.scramble(true)).collect();
        assert!(line[..64].iter().all(|bit| *bit));
        assert!(!line[64]);
        assert!(line.iter().all(|bit| descrambler.descramble(*bit)));
    }
}
