//! What a frame carries, behind all headers that are looked through.

use super::{
    FIRST_ETHER_TYPE, HEADER, IPV4, IPV6, Malformed, Reader, SCTP, TAGS, TCP, UDP, be16, parse,
    split, tags,
};

/// What stands behind the header of UDP, TCP or SCTP; behind that of IP in a packet of another protocol and in a piece of a fragmented one; behind the EtherType and
/// all tags in any other frame, padding with it. `None` of one that is malformed. Any bytes may come; O(1).
#[must_use]
pub fn carried(frame: &[u8]) -> Option<&[u8]> {
    match parse(frame, None).malformed {
        Some(_) => None,
        None => find(frame).ok().flatten(),
    }
}

fn find(frame: &[u8]) -> Result<Option<&[u8]>, Malformed> {
    let (header, mut rest) = split::<HEADER>(frame, Malformed::EthernetCut)?;
    let mut ether_type = be16(header, 12);
    if TAGS.contains(&ether_type) {
        (ether_type, rest) = tags(rest).1?;
    }
    if ether_type < FIRST_ETHER_TYPE {
        return Ok(rest.get(..ether_type.into()));
    }
    let mut reader = Reader::default();
    let behind = match ether_type {
        IPV4 => reader.ipv4(rest)?,
        IPV6 => reader.ipv6(rest)?,
        _ => return Ok(Some(rest)),
    };
    match behind {
        Some((protocol, packet)) => Ok(behind_transport(protocol, packet)),
        None => Ok(piece(ether_type, rest)),
    }
}

/// `None` where the header is cut, or says of itself what cannot be.
fn behind_transport(protocol: u8, packet: &[u8]) -> Option<&[u8]> {
    match protocol {
        TCP => {
            let length = 4 * usize::from(packet.get(12)? >> 4);
            packet.get(length.max(20)..)
        }
        UDP => packet.get(8..usize::from(be16(packet.first_chunk::<8>()?, 4))),
        SCTP => packet.get(12..),
        _ => Some(packet),
    }
}

/// Of a fragmented packet: what stands behind the header of IPv4, or the fixed one of IPv6, whose lengths have been found sound.
fn piece(ether_type: u16, packet: &[u8]) -> Option<&[u8]> {
    if ether_type == IPV6 {
        let length = usize::from(be16(packet.first_chunk::<40>()?, 4));
        return packet.get(40..40 + length);
    }
    let header = packet.first_chunk::<20>()?;
    packet.get(4 * usize::from(header[0] & 15)..be16(header, 2).into())
}
