//! Parameters, and the time that follows from them.

use laxity_model::Span;

use super::frame::HEADER_OCTETS;
use crate::link::hdlc::FCS_OCTETS;
use crate::link::{LineRates, span_of_bits};

/// The parameters of a link, equal at both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// k: information frames that may be unacknowledged (V.42 clause 9.2; its default is 15).
    /// From 1 to 63, half the sequence numbers, so that a frame received again is told from one
    /// whose predecessor was lost.
    pub window: u8,
    /// N401: octets of information in a frame, at least 1 (V.42 clause 9.2; its default is 128).
    pub max_octets: usize,
    /// N400: how often a frame that asks for an answer is sent again before the connection counts
    /// as lost (V.42 clause 9.2).
    pub retries: u32,
    /// The longest time a signal takes to the other end and back.
    pub round_trip: Span,
    /// The time both ends together may take to act on a frame: block lengths, polling intervals,
    /// late calls.
    pub processing: Span,
    /// T403: after so long without a frame from the other end it is asked whether it is there (V.42
    /// clause 9.2).
    pub inactivity: Span,
    /// Octets that [`send`](super::Lapm::send) takes in before the first of them is sent.
    pub send_octets: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            window: 15,
            max_octets: 128,
            retries: 12,
            round_trip: Span::from_millis(150),
            processing: Span::from_millis(100),
            inactivity: Span::from_secs(5),
            send_octets: 4096,
        }
    }
}

impl Config {
    /// T401 (V.42 clause 9.2): how long an answer may take at these rates.
    ///
    /// The frame itself, the way to the other end and back, a frame the other end had just begun,
    /// its answer, and the time to process them; frames of full length with the most zeros
    /// inserted.
    pub fn acknowledgement_time(&self, rates: LineRates) -> Span {
        // Six bits for five in the worst case, and a flag.
        let frame_bits = ((HEADER_OCTETS + self.max_octets + FCS_OCTETS) as u64 * 8)
            .saturating_mul(6)
            .div_ceil(5)
            + 8;
        let own = span_of_bits(frame_bits, rates.transmit_bit_s);
        let others = span_of_bits(frame_bits * 2, rates.receive_bit_s);
        self.round_trip + self.processing + own + others
    }
}
