//! Bit-level framing of the link: flags, zero insertion, abort and frame check sequence.
//!
//! The frame structure is that of ITU-T V.42 clause 8.1 (the high-level data link control of
//! ISO/IEC 13239): octets go out with the least significant bit first, a zero is inserted after
//! five ones in a row, a frame lies between flags (`01111110`), neighbours share one flag, and 16
//! bits of frame check sequence precede the closing flag. Seven ones in a row abort a frame.
//!
//! ```
//! use laxity_devices::link::hdlc::{Deframer, Framer};
//!
//! let (mut framer, mut deframer) = (Framer::default(), Deframer::new(64));
//! let mut received = Vec::new();
//! framer.begin(b"laxity");
//! for _ in 0..200 {
//!     if let Some(Ok(frame)) = deframer.push(framer.next_bit()) {
//!         received.push(frame.to_vec());
//!     }
//! }
//! assert_eq!(received, [b"laxity"]);
//! ```

use crc::{CRC_16_IBM_SDLC, Crc};

/// The frame check sequence of V.42 clause 8.1.1 and of RFC 1662 appendix C: one polynomial,
/// one bit order.
pub(super) const FCS: Crc<u16, crc::Table<16>> = Crc::<u16, crc::Table<16>>::new(&CRC_16_IBM_SDLC);

/// Octets of frame check sequence in a frame.
pub const FCS_OCTETS: usize = 2;

/// The shortest frame worth a look, in octets without frame check sequence: an address and a
/// control field.
pub const MIN_FRAME_OCTETS: usize = 2;

const FLAG: u8 = 0x7e;

/// Turns frames into bits and never runs dry: between frames it sends flags.
#[derive(Debug, Default)]
pub struct Framer {
    frame: Vec<u8>,
    next_octet: usize,
    /// Bits ready to go, the next one lowest.
    bits: u32,
    bit_count: u32,
    /// Ones in a row at the end of what was put into `bits`.
    ones: u32,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
    /// Flags; a frame may begin whenever `bits` is used up.
    Flags,
    /// Octets of the frame.
    Frame,
    /// The flag after the frame.
    #[default]
    Closing,
}

impl Framer {
    /// Whether the last flag is out and nothing follows yet: the moment to [`begin`](Self::begin) a
    /// frame.
    ///
    /// A new framer is not ready until its first flag has gone out.
    pub fn is_ready(&self) -> bool {
        self.bit_count == 0 && self.stage == Stage::Flags
    }

    /// Sends `frame` next, followed by its frame check sequence and a flag.
    ///
    /// A frame that is still on its way is abandoned: the receiver sees the two run together and
    /// discards them. Ask [`is_ready`](Self::is_ready) first to avoid that.
    pub fn begin(&mut self, frame: &[u8]) {
        let sequence = FCS.checksum(frame).to_le_bytes();
        self.frame.clear();
        self.frame.extend_from_slice(frame);
        self.frame.extend_from_slice(&sequence);
        self.next_octet = 0;
        self.ones = 0;
        if self.stage != Stage::Closing {
            self.stage = Stage::Frame;
        }
    }

    /// The next bit of the line.
    #[inline]
    pub fn next_bit(&mut self) -> bool {
        if self.bit_count == 0 {
            self.refill();
        }
        let bit = self.bits & 1 == 1;
        self.bits >>= 1;
        self.bit_count -= 1;
        bit
    }

    fn refill(&mut self) {
        match self.stage {
            Stage::Frame if self.next_octet < self.frame.len() => {
                let octet = self.frame[self.next_octet];
                self.next_octet += 1;
                self.insert_zeros(octet);
                if self.next_octet == self.frame.len() {
                    self.stage = Stage::Closing;
                    self.frame.clear();
                    self.next_octet = 0;
                }
            }
            Stage::Flags | Stage::Frame | Stage::Closing => {
                (self.bits, self.bit_count) = (u32::from(FLAG), 8);
                // A frame given while the flag before it was still due follows this flag.
                self.stage = if self.frame.is_empty() {
                    Stage::Flags
                } else {
                    Stage::Frame
                };
            }
        }
    }

    fn insert_zeros(&mut self, octet: u8) {
        (self.bits, self.bit_count) = (0, 0);
        for index in 0..8 {
            let bit = u32::from(octet >> index & 1);
            self.bits |= bit << self.bit_count;
            self.bit_count += 1;
            self.ones = if bit == 1 { self.ones + 1 } else { 0 };
            if self.ones == 5 {
                self.bit_count += 1;
                self.ones = 0;
            }
        }
    }
}

/// Why what lay between two flags was no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// Seven ones in a row: the sender gave up, or the line is idle or broken.
    Aborted,
    /// Fewer octets than an address, a control field and a frame check sequence, or no whole number
    /// of octets.
    Malformed,
    /// More octets than the receiver takes.
    TooLong,
    /// The frame check sequence is wrong.
    BadFcs,
}

/// Finds frames in bits, whatever the bits are.
///
/// After any garbage the next flag begins anew, so of a clean stretch at most the frame in front of
/// the first flag is lost.
#[derive(Debug)]
pub struct Deframer {
    octets: Vec<u8>,
    max_octets: usize,
    /// The last bits of a frame that do not make an octet yet, the newest highest.
    partial: u8,
    partial_bits: u32,
    /// Ones in a row.
    ones: u32,
    state: Receive,
    /// A flag has come, and `octets` may still be lent out: begin anew on the next bit.
    ended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Receive {
    /// Waiting for a flag.
    Hunting,
    /// Between flags.
    Framed,
    /// Between flags, and the frame has become too long.
    Overlong,
}

impl Deframer {
    /// A deframer for frames of up to `max_octets` octets, without frame check sequence.
    #[must_use]
    pub fn new(max_octets: usize) -> Self {
        Self {
            octets: Vec::with_capacity(max_octets + FCS_OCTETS),
            max_octets: max_octets + FCS_OCTETS,
            partial: 0,
            partial_bits: 0,
            ones: 0,
            state: Receive::Hunting,
            ended: false,
        }
    }

    /// Forgets what it has of a frame and waits for a flag.
    pub fn reset(&mut self) {
        self.start(Receive::Hunting);
        self.ones = 0;
    }

    /// Takes the next bit of the line; gives a frame without its frame check sequence, or the
    /// reason there is none.
    ///
    /// # Errors
    ///
    /// A [`FrameError`] when something that was no good frame ended. Flags in a row are not an
    /// error.
    #[inline]
    pub fn push(&mut self, bit: bool) -> Option<Result<&[u8], FrameError>> {
        if self.ended {
            self.start(Receive::Framed);
        }
        if bit {
            self.ones += 1;
            if self.ones >= 7 {
                return self.abort();
            }
        } else {
            match core::mem::take(&mut self.ones) {
                5 => return None,
                6 => return self.flag(),
                // Seven ones or more have put the receiver into hunting already.
                _ => {}
            }
        }
        if self.state == Receive::Framed {
            self.append(bit);
        }
        None
    }

    fn append(&mut self, bit: bool) {
        self.partial = self.partial >> 1 | u8::from(bit) << 7;
        self.partial_bits += 1;
        if self.partial_bits == 8 {
            self.partial_bits = 0;
            if self.octets.len() == self.max_octets {
                self.state = Receive::Overlong;
            } else {
                self.octets.push(self.partial);
            }
        }
    }

    fn abort(&mut self) -> Option<Result<&[u8], FrameError>> {
        // Keeps the count from running over on a line that is stuck at one.
        self.ones = 7;
        let within_frame = self.state != Receive::Hunting && !self.octets.is_empty();
        self.start(Receive::Hunting);
        within_frame.then_some(Err(FrameError::Aborted))
    }

    fn flag(&mut self) -> Option<Result<&[u8], FrameError>> {
        self.ended = true;
        // The flag's zero and six ones were taken for data: apart from them there must be whole
        // octets. Flags that share a zero leave six ones only.
        let bits = self.partial_bits;
        match self.state {
            Receive::Hunting => None,
            Receive::Overlong => Some(Err(FrameError::TooLong)),
            Receive::Framed if self.octets.is_empty() && bits >= 6 => None,
            Receive::Framed if bits != 7 || self.octets.len() < MIN_FRAME_OCTETS + FCS_OCTETS => {
                Some(Err(FrameError::Malformed))
            }
            Receive::Framed => match self.octets.split_last_chunk::<FCS_OCTETS>() {
                Some((frame, sequence)) if FCS.checksum(frame) == u16::from_le_bytes(*sequence) => {
                    Some(Ok(frame))
                }
                _ => Some(Err(FrameError::BadFcs)),
            },
        }
    }

    fn start(&mut self, state: Receive) {
        self.octets.clear();
        self.partial_bits = 0;
        self.state = state;
        self.ended = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(framer: &mut Framer, count: usize) -> String {
        (0..count)
            .map(|_| if framer.next_bit() { '1' } else { '0' })
            .collect()
    }

    fn feed(deframer: &mut Deframer, line: &str) -> Vec<Result<Vec<u8>, FrameError>> {
        line.chars()
            .filter_map(|c| {
                deframer
                    .push(c == '1')
                    .map(|result| result.map(<[u8]>::to_vec))
            })
            .collect()
    }

    #[test]
    fn an_idle_line_carries_flags() {
        assert_eq!(bits(&mut Framer::default(), 24), "011111100111111001111110");
    }

    #[test]
    fn five_ones_are_followed_by_a_zero() {
        let mut framer = Framer::default();
        framer.begin(&[0xff, 0x03]);
        let line = bits(&mut framer, 8 + 18);
        assert_eq!(
            line,
            concat!("01111110", "11111", "0", "11111", "0", "000000")
        );
    }

    #[test]
    fn frames_share_one_flag() {
        let mut framer = Framer::default();
        assert_eq!(bits(&mut framer, 8), "01111110");
        assert!(framer.is_ready());
        framer.begin(&[0, 0]);
        let first = bits(&mut framer, 32);
        assert_eq!(bits(&mut framer, 8), "01111110");
        assert!(framer.is_ready());
        framer.begin(&[0, 0]);
        assert_eq!(bits(&mut framer, 32), first);
    }

    #[test]
    fn flags_may_share_a_zero_and_are_no_frames() {
        let mut deframer = Deframer::new(16);
        assert_eq!(feed(&mut deframer, "0111111011111101111110"), []);
    }

    #[test]
    fn an_abort_is_told_once_and_the_next_frame_arrives() {
        let (mut framer, mut deframer) = (Framer::default(), Deframer::new(16));
        framer.begin(&[1, 2, 3, 4]);
        let mut results = feed(&mut deframer, &bits(&mut framer, 8 + 20));
        results.extend(feed(&mut deframer, "11111111"));
        let mut framer = Framer::default();
        framer.begin(&[5, 6]);
        results.extend(feed(&mut deframer, &bits(&mut framer, 100)));
        assert_eq!(results, [Err(FrameError::Aborted), Ok(vec![5, 6])]);
    }

    #[test]
    fn each_defect_has_its_name() {
        let mut framer = Framer::default();
        framer.begin(&[1, 2, 3]);
        let line = bits(&mut framer, 8 + 40 + 8);
        let flip = |index: usize| {
            let mut line = line.clone().into_bytes();
            line[index] ^= 1;
            String::from_utf8(line).expect("ASCII")
        };
        assert_eq!(feed(&mut Deframer::new(16), &line), [Ok(vec![1, 2, 3])]);
        assert_eq!(
            feed(&mut Deframer::new(16), &flip(20)),
            [Err(FrameError::BadFcs)]
        );
        let missing_bit = format!("{}{}", &line[..20], &line[21..]);
        assert_eq!(
            feed(&mut Deframer::new(16), &missing_bit),
            [Err(FrameError::Malformed)]
        );
        assert_eq!(
            feed(&mut Deframer::new(2), &line),
            [Err(FrameError::TooLong)]
        );
    }
}
