//! The seam between signal processing and link layer: one bit at a time, in the order of the line.

/// Where a transmitter takes the next bit from. A link layer never runs dry: it sends flags when idle.
pub trait BitSource {
    /// The next bit to transmit.
    fn next_bit(&mut self) -> bool;
}

/// Where a receiver puts the bits it decided on, errors included.
pub trait BitSink {
    /// Takes the next received bit.
    fn push_bit(&mut self, bit: bool);
}

impl<F: FnMut() -> bool> BitSource for F {
    fn next_bit(&mut self) -> bool {
        self()
    }
}

impl BitSink for Vec<bool> {
    fn push_bit(&mut self, bit: bool) {
        self.push(bit);
    }
}
