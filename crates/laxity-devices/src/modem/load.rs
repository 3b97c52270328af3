//! Further receivers, which make up the load that the study's signal processing was: each demodulates the same samples as the first
//! one, with an equalizer, loops and a descrambler of its own, and its bits are compared with the first one's.
//!
//! They work in frames of 12.5 ms, whatever the card's blocks are, so that every call of the driver takes about the same time, as the
//! study's did ("typically 1.8 ms", Jones, Saroiu §6.2.2, with blocks of 11.25 and 13.125 ms).

use crate::pump::PamReceiver;

/// Samples of a frame: 12.5 ms at 16 kHz, the card's blocks on average.
const FRAME_SAMPLES: usize = 200;

/// The further receivers of a modem.
#[derive(Default)]
pub(crate) struct Load {
    wanted: usize,
    receivers: Vec<PamReceiver>,
    /// Samples that the first receiver has had and the others have not.
    samples: Vec<i16>,
    /// The first receiver's bits from those samples on.
    expected: Vec<bool>,
    bits: Vec<bool>,
    compared: u64,
    errors: u64,
}

impl Load {
    /// No receivers yet; so many once data mode is entered.
    pub(crate) fn new(wanted: usize) -> Self {
        Self {
            wanted,
            ..Self::default()
        }
    }

    /// Data mode is entered: each receiver begins as the first one is now.
    pub(crate) fn begin(&mut self, first: &PamReceiver) {
        self.receivers = vec![first.clone(); self.wanted];
        self.samples.clear();
        self.expected.clear();
    }

    /// Data mode is left.
    pub(crate) fn end(&mut self) {
        self.receivers.clear();
    }

    /// The first receiver has made `bits` of `received`; the others work on a frame of what they have not had.
    pub(crate) fn process(&mut self, received: &[i16], bits: &[bool]) {
        if self.receivers.is_empty() {
            return;
        }
        self.samples.extend_from_slice(received);
        self.expected.extend_from_slice(bits);
        let frame = self.samples.len().min(FRAME_SAMPLES);
        let mut decided = 0;
        for receiver in &mut self.receivers {
            self.bits.clear();
            receiver.process(&self.samples[..frame], &mut self.bits);
            let pairs = self.bits.iter().zip(&self.expected);
            let missing = self.bits.len().saturating_sub(self.expected.len());
            self.errors += (pairs.filter(|(one, first)| one != first).count() + missing) as u64;
            self.compared += self.bits.len() as u64;
            decided = self.bits.len().min(self.expected.len());
        }
        self.samples.drain(..frame);
        self.expected.drain(..decided);
    }

    /// Bits that were compared.
    pub(crate) fn compared(&self) -> u64 {
        self.compared
    }

    /// Bits among them that differed from the first receiver's.
    pub(crate) fn errors(&self) -> u64 {
        self.errors
    }
}
