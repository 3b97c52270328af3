//! What a kernel leaves to whoever puts a packet on a wire: checksums that are only begun, and segments that are still to be cut.
//!
//! Packet sockets and TAP interfaces say so in front of each packet, in the header of virtio-net (virtio 1.2, section 5.1.6). What comes through the hook of
//! `AF_XDP` says nothing, and there it is seen in the packet: a checksum that is only begun is the sum of the pseudo header alone.

pub(super) use laxity_model::nif::frame::HEADER as ETHERNET;
use laxity_model::nif::frame::{TCP, UDP};
use laxity_model::nif::link::{Left, LinkError};

/// A tag in it (IEEE 802.1Q).
pub(super) const TAG: usize = 4;
/// The longest packet that is still to be cut, with all that may be in front of it.
pub(super) const LONGEST: usize = 65_535 + ETHERNET + TAG;

const NEEDS_CHECKSUM: u8 = 1;
const SEGMENT_TCP4: u8 = 1;
const SEGMENT_TCP6: u8 = 4;
const SEGMENT_UDP: u8 = 5;

/// The header of virtio-net: flags, kind of segments, then four numbers of two bytes in the machine's order.
pub(super) const HEADER: usize = 10;

/// What the header says of the packet behind it.
pub(super) fn left_of(header: &[u8; HEADER]) -> Left {
    let segments = header[1] != 0;
    Left {
        checksum: header[0] & NEEDS_CHECKSUM != 0,
        segment: if segments { number(header, 4) } else { 0 },
    }
}

fn number(header: &[u8; HEADER], at: usize) -> u16 {
    u16::from_ne_bytes([header[at], header[at + 1]])
}

/// The header that leaves so much of this frame to the kernel.
///
/// # Errors
///
/// [`LinkError::Failed`] where the frame holds nothing that can be finished: neither TCP nor UDP in one piece over IPv4 or IPv6 without extensions.
pub(super) fn header_of(frame: &[u8], left: Left) -> Result<[u8; HEADER], LinkError> {
    let mut header = [0; HEADER];
    if left == Left::default() {
        return Ok(header);
    }
    let Some(transport) = Transport::of(frame) else {
        let why = "nothing can be left to the interface of a frame that is neither TCP nor UDP";
        return Err(LinkError::Failed(why.to_owned()));
    };
    header[0] = NEEDS_CHECKSUM;
    let mut put = |at: usize, value: u16| {
        header[at..at + 2].copy_from_slice(&value.to_ne_bytes());
    };
    put(6, transport.at as u16);
    put(8, transport.checksum_at() as u16);
    if left.segment > 0 {
        put(2, transport.payload_at(frame) as u16);
        put(4, left.segment);
        header[1] = match (transport.protocol, transport.is_ipv6) {
            (UDP, _) => SEGMENT_UDP,
            (_, false) => SEGMENT_TCP4,
            (_, true) => SEGMENT_TCP6,
        };
    }
    Ok(header)
}

/// The same header where the frame's Ethernet header is left out.
pub(super) fn without_ethernet(mut header: [u8; HEADER]) -> [u8; HEADER] {
    for at in [2, 6] {
        let from_ip = number(&header, at).saturating_sub(ETHERNET as u16);
        header[at..at + 2].copy_from_slice(&from_ip.to_ne_bytes());
    }
    header
}

/// Whether the checksum of a frame's transport header is only begun. One complete checksum in 65,535 looks like it, which then goes unchecked.
pub(super) fn is_only_begun(frame: &[u8]) -> bool {
    let Some(transport) = Transport::of(frame) else {
        return false;
    };
    let at = transport.at + transport.checksum_at();
    frame.get(at..at + 2) == Some(&transport.pseudo_sum.to_be_bytes())
}

/// Where the header of TCP or UDP lies.
struct Transport {
    at: usize,
    protocol: u8,
    is_ipv6: bool,
    /// Of the pseudo header, in ones' complement.
    pseudo_sum: u16,
}

impl Transport {
    fn of(frame: &[u8]) -> Option<Self> {
        let mut at = ETHERNET;
        while matches!(frame.get(at - 2..at)?, [0x81, 0] | [0x88, 0xa8]) && at < ETHERNET + 2 * TAG
        {
            at += TAG;
        }
        let ip = frame.get(at..)?;
        match frame.get(at - 2..at)? {
            [8, 0] => Self::of_ipv4(at, ip),
            [0x86, 0xdd] => Self::of_ipv6(at, ip),
            _ => None,
        }
    }

    fn of_ipv4(at: usize, ip: &[u8]) -> Option<Self> {
        let words = usize::from(ip.first()? & 15);
        let is_whole = u16::from_be_bytes([*ip.get(6)?, ip[7]]) & 0x3fff == 0;
        let payload = usize::from(u16::from_be_bytes([ip[2], ip[3]])).checked_sub(words * 4)?;
        let protocol = *ip.get(9)?;
        (is_whole && words >= 5 && ip[0] >> 4 == 4).then_some(())?;
        Self::found(at + words * 4, protocol, false, ip.get(12..20)?, payload)
    }

    fn of_ipv6(at: usize, ip: &[u8]) -> Option<Self> {
        let payload = usize::from(u16::from_be_bytes([*ip.get(4)?, *ip.get(5)?]));
        Self::found(at + 40, *ip.get(6)?, true, ip.get(8..40)?, payload)
    }

    fn found(
        at: usize,
        protocol: u8,
        is_ipv6: bool,
        addresses: &[u8],
        payload: usize,
    ) -> Option<Self> {
        matches!(protocol, TCP | UDP).then_some(())?;
        let words = addresses.chunks_exact(2);
        let sum: u32 = words
            .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
            .sum::<u32>()
            + u32::from(protocol)
            + payload as u32;
        let folded = (sum & 0xffff) + (sum >> 16);
        let pseudo_sum = ((folded & 0xffff) + (folded >> 16)) as u16;
        Some(Self {
            at,
            protocol,
            is_ipv6,
            pseudo_sum,
        })
    }

    /// From its beginning on.
    const fn checksum_at(&self) -> usize {
        match self.protocol {
            TCP => 16,
            _ => 6,
        }
    }

    fn payload_at(&self, frame: &[u8]) -> usize {
        let words = frame.get(self.at + 12).map_or(0, |byte| byte >> 4);
        self.at
            + match self.protocol {
                TCP => usize::from(words) * 4,
                _ => 8,
            }
    }
}

/// Whether an interface of this MTU carries the first `length` bytes of this memory: one tag more than its MTU allows is no packet that is too long.
///
/// # Errors
///
/// [`LinkError::TooLong`], [`LinkError::TooShort`].
#[inline]
pub(super) fn fits(memory: &[u8], length: usize, mtu: usize) -> Result<(), LinkError> {
    let is_tagged = matches!(memory.get(12..14), Some([0x81, 0] | [0x88, 0xa8]));
    let most = mtu + ETHERNET + if is_tagged { TAG } else { 0 };
    let most = most.min(memory.len());
    if length > most {
        return Err(LinkError::TooLong(length, most));
    }
    match length < ETHERNET {
        true => Err(LinkError::TooShort(length)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UDP from 10.0.0.1:1000 to 10.0.0.2:2000, four bytes, the checksum only begun.
    fn datagram(tagged: bool) -> Vec<u8> {
        let mut frame = vec![0; 12];
        if tagged {
            frame.extend([0x81, 0, 0, 7]);
        }
        frame.extend([8, 0, 0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, UDP, 0, 0]);
        frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        // 0x0a00 + 1 + 0x0a00 + 2 + 17 + 12
        frame.extend([3, 0xe8, 7, 0xd0, 0, 12, 0x14, 0x20, 1, 2, 3, 4]);
        frame
    }

    #[test]
    fn a_checksum_that_is_only_begun_is_the_pseudo_headers() {
        for tagged in [false, true] {
            let mut frame = datagram(tagged);
            assert!(is_only_begun(&frame));
            let at = frame.len() - 6;
            frame[at] ^= 1;
            assert!(!is_only_begun(&frame));
        }
        let mut fragment = datagram(false);
        fragment[ETHERNET + 7] = 1;
        assert!(!is_only_begun(&fragment));
        assert!(!is_only_begun(&[0; ETHERNET]) && !is_only_begun(&[]));
    }

    #[test]
    fn what_is_left_is_said_in_the_header_and_read_from_it() {
        let frame = datagram(true);
        let left = Left {
            checksum: true,
            segment: 1_000,
        };
        let header = header_of(&frame, left).unwrap();
        assert_eq!(left_of(&header), left);
        assert_eq!(header[..2], [NEEDS_CHECKSUM, SEGMENT_UDP]);
        let numbers = [2, 4, 6, 8].map(|at| number(&header, at));
        assert_eq!(numbers, [18 + 20 + 8, 1_000, 18 + 20, 6]);
        let bare = without_ethernet(header);
        let numbers = [2, 4, 6, 8].map(|at| number(&bare, at));
        assert_eq!(numbers, [4 + 20 + 8, 1_000, 4 + 20, 6]);
        assert_eq!(header_of(&frame, Left::default()), Ok([0; HEADER]));
        let nothing = header_of(&frame[..20], left);
        assert!(matches!(nothing, Err(LinkError::Failed(_))));
    }

    #[test]
    fn a_tag_is_no_part_of_the_packet() {
        let (plain, mut tagged) = (vec![0; 200], vec![0; 200]);
        tagged[12] = 0x81;
        assert_eq!(fits(&plain, 114, 100), Ok(()));
        assert_eq!(fits(&plain, 115, 100), Err(LinkError::TooLong(115, 114)));
        assert_eq!(fits(&tagged, 118, 100), Ok(()));
        assert_eq!(fits(&plain, 201, 500), Err(LinkError::TooLong(201, 200)));
        assert_eq!(fits(&plain, 13, 100), Err(LinkError::TooShort(13)));
    }
}
