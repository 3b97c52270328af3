//! Packets in an octet stream: RFC 1662, section 4 (asynchronous framing with octet stuffing).

use super::super::hdlc::FCS;

/// The asynchronous control character map everything begins with: all 32 control characters are
/// escaped.
pub const DEFAULT_ACCM: u32 = 0xffff_ffff;

/// The largest packet a receiver takes, in octets (RFC 1661, section 6.1: the default maximum
/// receive unit).
pub const MAX_INFORMATION_OCTETS: usize = 1500;

pub(super) const FLAG: u8 = 0x7e;
const ESCAPE: u8 = 0x7d;
const ESCAPE_BIT: u8 = 0x20;
const ADDRESS: u8 = 0xff;
const CONTROL: u8 = 0x03;
const MAX_FRAME_OCTETS: usize = 2 + 2 + MAX_INFORMATION_OCTETS + 2;

/// Appends the frame of a packet to `out`, between flags, escaping the control characters in
/// `accm`.
///
/// Takes the flag of the frame before as this one's if `out` ends with one.
pub fn encode(protocol: u16, information: &[u8], accm: u32, out: &mut Vec<u8>) {
    let [high, low] = protocol.to_be_bytes();
    let header = [ADDRESS, CONTROL, high, low];
    let mut digest = FCS.digest();
    digest.update(&header);
    digest.update(information);
    let sequence = digest.finalize().to_le_bytes();
    if out.last() != Some(&FLAG) {
        out.push(FLAG);
    }
    for &octet in header.iter().chain(information).chain(&sequence) {
        if octet == FLAG || octet == ESCAPE || is_mapped(octet, accm) {
            out.extend([ESCAPE, octet ^ ESCAPE_BIT]);
        } else {
            out.push(octet);
        }
    }
    out.push(FLAG);
}

fn is_mapped(octet: u8, accm: u32) -> bool {
    octet < 32 && accm >> octet & 1 == 1
}

/// A packet as received: its protocol number and information field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The protocol number (RFC 1661, section 2).
    pub protocol: u16,
    /// The information field.
    pub information: &'a [u8],
}

/// Why what lay between two flags was no packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FramingError {
    /// An escape before a flag: the sender gave up.
    Aborted,
    /// Too short, too long, or not beginning with the address and control field of RFC 1662,
    /// section 3.1.
    Malformed,
    /// The frame check sequence is wrong.
    BadFcs,
}

/// Finds packets in octets, whatever the octets are; any flag begins anew.
#[derive(Debug)]
pub struct Decoder {
    octets: Vec<u8>,
    accm: u32,
    escaped: bool,
    overlong: bool,
    /// What is in `octets` was handed out: clear it on the next octet.
    delivered: bool,
}

impl Decoder {
    /// Sets the control characters that are ignored, since only the line can have put them there.
    pub fn set_accm(&mut self, accm: u32) {
        self.accm = accm;
    }

    /// Takes the next octet; gives a packet, or the reason there is none.
    ///
    /// # Errors
    ///
    /// A [`FramingError`] when something that was no good frame ended. Flags in a row are not an
    /// error.
    pub fn push(&mut self, octet: u8) -> Option<Result<Packet<'_>, FramingError>> {
        if core::mem::take(&mut self.delivered) {
            self.octets.clear();
        }
        match octet {
            FLAG => self.end(),
            ESCAPE => {
                self.escaped = true;
                None
            }
            octet if is_mapped(octet, self.accm) => None,
            octet => {
                let octet = if core::mem::take(&mut self.escaped) {
                    octet ^ ESCAPE_BIT
                } else {
                    octet
                };
                if self.octets.len() == MAX_FRAME_OCTETS {
                    self.overlong = true;
                } else {
                    self.octets.push(octet);
                }
                None
            }
        }
    }

    fn end(&mut self) -> Option<Result<Packet<'_>, FramingError>> {
        self.delivered = true;
        let aborted = core::mem::take(&mut self.escaped);
        let overlong = core::mem::take(&mut self.overlong);
        if aborted {
            return Some(Err(FramingError::Aborted));
        }
        if overlong {
            return Some(Err(FramingError::Malformed));
        }
        let frame = match self.octets.split_last_chunk::<2>() {
            None if self.octets.is_empty() => return None,
            None => return Some(Err(FramingError::Malformed)),
            Some((frame, sequence)) if FCS.checksum(frame) == u16::from_le_bytes(*sequence) => {
                frame
            }
            Some(_) => return Some(Err(FramingError::BadFcs)),
        };
        Some(match *frame {
            [ADDRESS, CONTROL, high, low, ref information @ ..] => Ok(Packet {
                protocol: u16::from_be_bytes([high, low]),
                information,
            }),
            _ => Err(FramingError::Malformed),
        })
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            octets: Vec::with_capacity(MAX_FRAME_OCTETS),
            accm: DEFAULT_ACCM,
            escaped: false,
            overlong: false,
            delivered: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(octets: &[u8], accm: u32) -> Vec<Result<(u16, Vec<u8>), FramingError>> {
        let mut decoder = Decoder::default();
        decoder.set_accm(accm);
        let push = |&octet: &u8| {
            decoder
                .push(octet)
                .map(|result| result.map(|packet| (packet.protocol, packet.information.to_vec())))
        };
        octets.iter().filter_map(push).collect()
    }

    #[test]
    fn flags_escapes_and_mapped_characters_are_escaped() {
        let mut all = Vec::new();
        encode(
            0xc021,
            &[0x7e, 0x7d, 0x01, 0x1f, 0x20],
            DEFAULT_ACCM,
            &mut all,
        );
        let start = [
            0x7e, 0xff, 0x7d, 0x23, 0xc0, 0x21, 0x7d, 0x5e, 0x7d, 0x5d, 0x7d, 0x21, 0x7d, 0x3f,
            0x20,
        ];
        assert_eq!(all[..start.len()], start);
        let mut none = Vec::new();
        encode(0xc021, &[0x01, 0x1f], 0, &mut none);
        assert_eq!(none[..7], [0x7e, 0xff, 0x03, 0xc0, 0x21, 0x01, 0x1f]);
    }

    #[test]
    fn control_characters_of_the_line_are_ignored() {
        let mut stream = Vec::new();
        encode(0x21, b"\x11abc", DEFAULT_ACCM, &mut stream);
        stream.insert(6, 0x11);
        stream.insert(3, 0x13);
        assert_eq!(
            decode(&stream, DEFAULT_ACCM),
            [Ok((0x21, b"\x11abc".to_vec()))]
        );
        assert_eq!(decode(&stream, 0), [Err(FramingError::BadFcs)]);
    }

    #[test]
    fn each_defect_has_its_name_and_the_next_packet_arrives() {
        let mut good = Vec::new();
        encode(0x21, b"good", 0, &mut good);
        let mut wrong = good.clone();
        wrong[5] ^= 1;
        let overlong = vec![b'x'; 2000];
        let cases: [(&[u8], FramingError); 4] = [
            (&wrong, FramingError::BadFcs),
            (b"~abc}~", FramingError::Aborted),
            (b"~a~", FramingError::Malformed),
            (&overlong, FramingError::Malformed),
        ];
        for (bad, error) in cases {
            let stream = [bad, &good].concat();
            assert_eq!(
                decode(&stream, 0),
                [Err(error), Ok((0x21, b"good".to_vec()))]
            );
        }
    }
}
