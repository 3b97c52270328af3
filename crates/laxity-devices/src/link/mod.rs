//! The link: from bits on a line that loses some to a file that arrives whole.
//!
//! From below to above:
//!
//! * `tones`: what is heard and sent before the modems train: dial tone, ringing, digits, answer
//!   tone.
//! * [`hdlc`]: frames in bits.
//! * [`lapm`]: retransmission, so that the octets above arrive whole and in order.
//! * [`ppp`]: packets in octets, and the agreement on how.
//! * `tcpip`: TCP/IP; `transfer`: the file that goes over it.
//! * [`endpoint`]: one end of all that, from bits to file.
//!
//! All of it is state machines that are told the time and tell what to do; nothing reads a clock,
//! starts a thread or asks for randomness, so the same code runs live and in virtual time.

pub mod endpoint;
pub mod hdlc;
pub mod lapm;
pub mod ppp;
mod tcpip;
pub(crate) mod tones;
mod transfer;

use laxity_model::Span;

pub use tcpip::{ACK_DELAY, RETRANSMISSION, WINDOW_OCTETS, congestion};
pub use tones::{DIGIT_WINDOWS, PAUSE_WINDOWS, TONE_SHARE};
pub use transfer::Arrived;

/// What the line carries in each direction, seen from one end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineRates {
    /// What this end sends, in bit/s.
    pub transmit_bit_s: u32,
    /// What this end receives, in bit/s.
    pub receive_bit_s: u32,
}

impl LineRates {
    /// The same line seen from the other end.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self {
            transmit_bit_s: self.receive_bit_s,
            receive_bit_s: self.transmit_bit_s,
        }
    }
}

/// How long `bits` take, rounded up; a rate of 0 counts as 1 bit/s.
fn span_of_bits(bits: u64, bit_s: u32) -> Span {
    let nanos = (u128::from(bits) * 1_000_000_000).div_ceil(u128::from(bit_s.max(1)));
    Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
