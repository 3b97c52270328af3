//! The self-synchronising scrambler: idle flags become a signal without lines or a mean.
//!
//! Each direction has its own polynomial of degree 23 (as in ITU-T V.32, clause 4). A wrong bit on
//! the line makes three wrong bits behind the descrambler.

/// Which of the two polynomials: 1 + x^-18 + x^-23 upstream, 1 + x^-5 + x^-23 downstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Polynomial {
    Upstream,
    Downstream,
}

/// The last 23 bits of the line, for a scrambler or a descrambler.
#[derive(Debug, Clone)]
pub(crate) struct Scrambler {
    history: u32,
    tap: u32,
}

impl Scrambler {
    pub(crate) fn new(polynomial: Polynomial) -> Self {
        let tap = match polynomial {
            Polynomial::Upstream => 17,
            Polynomial::Downstream => 4,
        };
        // Not zero, so that the first zeros of a link are scrambled too.
        Self {
            history: 0x2A_5C33,
            tap,
        }
    }

    /// The line's bit for a data bit.
    #[inline]
    pub(crate) fn scramble(&mut self, bit: bool) -> bool {
        let line = (u32::from(bit) ^ (self.history >> self.tap) ^ (self.history >> 22)) & 1;
        self.history = (self.history << 1) | line;
        line == 1
    }

    /// The data bit for a bit of the line.
    #[inline]
    pub(crate) fn descramble(&mut self, line: bool) -> bool {
        let bit = (u32::from(line) ^ (self.history >> self.tap) ^ (self.history >> 22)) & 1;
        self.history = (self.history << 1) | u32::from(line);
        bit == 1
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
            for polynomial in [Polynomial::Upstream, Polynomial::Downstream] {
                let mut scrambler = Scrambler::new(polynomial);
                let mut descrambler = Scrambler { history, ..Scrambler::new(polynomial) };
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
}
