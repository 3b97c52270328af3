//! What is sent to be recognised: a sequence that a receiver can check from anywhere on.

use laxity_devices::bits::{BitSink, BitSource};

/// A pseudo-random sequence that obeys b[n] = b[n-18] ⊕ b[n-23] ⊕ 1, so that a receiver can check
/// it from anywhere on.
pub(crate) struct Sequence(pub(crate) u32);

impl Sequence {
    /// What follows the last 23 bits.
    fn expected(&self) -> bool {
        (self.0 >> 17 ^ self.0 >> 22) & 1 == 0
    }

    fn take(&mut self, bit: bool) {
        self.0 = self.0 << 1 | u32::from(bit);
    }
}

impl BitSource for Sequence {
    fn next_bit(&mut self) -> bool {
        let bit = self.expected();
        self.take(bit);
        bit
    }
}

/// Counts the bits that do not follow from those before.
pub(crate) struct Checker {
    sequence: Sequence,
    pub(crate) bits: u64,
    pub(crate) errors: u64,
    /// Bits since the last error.
    pub(crate) clean: u64,
}

impl Checker {
    pub(crate) fn new() -> Self {
        // The source's start: the first bit is checked too.
        Self {
            sequence: Sequence(0),
            bits: 0,
            errors: 0,
            clean: 0,
        }
    }
}

impl BitSink for Checker {
    fn push_bit(&mut self, bit: bool) {
        let wrong = bit != self.sequence.expected();
        self.sequence.take(bit);
        self.bits += 1;
        self.errors += u64::from(wrong);
        self.clean = if wrong { 0 } else { self.clean + 1 };
    }
}
