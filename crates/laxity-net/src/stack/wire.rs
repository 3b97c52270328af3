//! Between a frame and the IP packet in it: what may be looked at any further, and the Ethernet header of what is sent.
//!
//! Everything that reaches smoltcp comes through [`look`]: whole packets, to this host's hardware address and one of its own addresses, from somebody who can
//! be answered. Fragments are not put together: overlapping ones have been a way past every rule of whose a packet is.

use std::net::IpAddr;
use std::ops::Range;

pub(super) use laxity_model::nif::frame::{ARP, HEADER, IPV4, IPV6, TCP};
use laxity_model::nif::frame::{UDP, parse};
use laxity_model::nif::host;
use smoltcp::wire::{IpAddress, Ipv4Packet, Ipv6Packet, TcpPacket, UdpPacket};

const ICMPV6: u8 = 58;
const ICMP: u8 = 1;

/// A hardware address.
pub type Hardware = [u8; 6];

/// Whether this is the address of one card: no group's, and not none.
pub(super) fn is_one_cards(hardware: Hardware) -> bool {
    hardware[0] & 1 == 0 && hardware != [0; 6]
}

/// To whom a TCP or UDP packet goes, and from whom.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Tuple {
    pub(crate) local: (IpAddr, u16),
    pub(crate) remote: (IpAddr, u16),
}

/// What a frame is to this host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    /// A question or answer of ARP.
    Arp,
    /// To nobody's own address, or to ours: of ICMP for IPv6, which has neighbour discovery.
    Discovery,
    /// A TCP or UDP packet for this host.
    Transport(u8, Tuple),
    /// ICMP for this host.
    Control,
    /// Nothing of this is for us.
    Nothing,
}

/// What a frame is, to a host with these addresses. Reads nothing behind what the packet says is its end.
pub(super) fn look(frame: &[u8], hardware: Hardware, ours: &[(IpAddr, u8)]) -> Seen {
    let parsed = parse(frame, None);
    let key = parsed.key;
    if parsed.malformed.is_some() || key.vlan().is_some() {
        return Seen::Nothing;
    }
    let to_us = frame[..6] == hardware;
    if key.ether_type() == Some(ARP) {
        return if to_us || frame[..6] == [0xff; 6] {
            Seen::Arp
        } else {
            Seen::Nothing
        };
    }
    let (Some((from, to)), Some(protocol)) = (key.addresses(), key.protocol()) else {
        return Seen::Nothing;
    };
    let is_ours = |address| ours.iter().any(|(own, _)| *own == address);
    if protocol == ICMPV6 && frame.get(HEADER + 6) == Some(&ICMPV6) && is_discovery(frame) {
        return if to_us || frame[..2] == [0x33; 2] {
            Seen::Discovery
        } else {
            Seen::Nothing
        };
    }
    if !to_us
        || !frame[6..12].try_into().is_ok_and(is_one_cards)
        || !is_ours(to)
        || is_ours(from)
        || host::check(from, ours).is_err()
        || is_fragment(frame)
    {
        return Seen::Nothing;
    }
    match (protocol, key.ports()) {
        (TCP | UDP, Some((source, destination))) => Seen::Transport(
            protocol,
            Tuple {
                local: (to, destination),
                remote: (from, source),
            },
        ),
        (ICMP | ICMPV6, _) => Seen::Control,
        _ => Seen::Nothing,
    }
}

/// Router and neighbour discovery, of which this host does the second.
fn is_discovery(frame: &[u8]) -> bool {
    (133..=137).contains(frame.get(HEADER + 40).unwrap_or(&0))
}

/// One piece of a packet: more follow, or it does not begin there.
fn is_fragment(frame: &[u8]) -> bool {
    match frame.get(HEADER..) {
        Some([first, _, _, _, _, _, more, offset, ..]) if first >> 4 == 4 => {
            more & 0x3f != 0 || *offset != 0
        }
        // A fragment header behind others leaves the packet without ports, and ICMP with another number.
        Some([_, _, _, _, _, _, next, ..]) => ![TCP, UDP, ICMPV6].contains(next),
        _ => true,
    }
}

/// The checksum of a TCP packet is right.
pub(super) fn is_sound(packet: &[u8]) -> bool {
    let Some((from, to, payload)) = parts(packet) else {
        return false;
    };
    let tcp = TcpPacket::new_checked(&packet[payload]);
    tcp.is_ok_and(|tcp| tcp.verify_checksum(&from, &to))
}

/// What a TCP packet acknowledges that does nothing else.
pub(super) fn acknowledges_only(packet: &[u8]) -> Option<u32> {
    let tcp = TcpPacket::new_checked(payload(packet)?).ok()?;
    let is_bare = tcp.ack() && !tcp.syn() && !tcp.fin() && !tcp.rst() && tcp.payload().is_empty();
    is_bare.then(|| tcp.ack_number().0 as u32)
}

/// Whether this is a packet of TCP.
pub(super) fn is_tcp(packet: &[u8]) -> bool {
    let at = if packet[0] >> 4 == 4 { 9 } else { 6 };
    packet.get(at) == Some(&TCP)
}

/// Begins the checksum of a TCP packet for an interface that finishes it: the sum of what stands for its IP header.
pub(super) fn begin(packet: &mut [u8]) {
    let Some((_, _, payload)) = parts(packet) else {
        return;
    };
    let addresses = if packet[0] >> 4 == 4 { 12..20 } else { 8..40 };
    let words = packet[addresses].chunks_exact(2);
    let words = words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum = words.sum::<u32>() + payload.len() as u32 + u32::from(TCP);
    let once = (sum & 0xffff) + (sum >> 16);
    let folded = (once & 0xffff) + (once >> 16);
    if let Ok(mut tcp) = TcpPacket::new_checked(&mut packet[payload]) {
        tcp.set_checksum(folded as u16);
    }
}

/// Finishes the checksum that the sender's kernel only began. Such a packet came from this machine's memory, so there is nothing that it could have told.
pub(super) fn finish(packet: &mut [u8], protocol: u8) {
    let Some((from, to, payload)) = parts(packet) else {
        return;
    };
    let payload = &mut packet[payload];
    if protocol == TCP {
        if let Ok(mut tcp) = TcpPacket::new_checked(payload) {
            tcp.fill_checksum(&from, &to);
        }
    } else if let Ok(mut udp) = UdpPacket::new_checked(payload) {
        udp.fill_checksum(&from, &to);
    }
}

/// From whom, to whom, and where the payload is.
fn parts(packet: &[u8]) -> Option<(IpAddress, IpAddress, Range<usize>)> {
    if packet.first()? >> 4 == 4 {
        let ip = Ipv4Packet::new_checked(packet).ok()?;
        let payload = usize::from(ip.header_len())..usize::from(ip.total_len());
        Some((ip.src_addr().into(), ip.dst_addr().into(), payload))
    } else {
        let ip = Ipv6Packet::new_checked(packet).ok()?;
        let payload = ip.header_len()..ip.total_len();
        Some((ip.src_addr().into(), ip.dst_addr().into(), payload))
    }
}

/// Where an IP packet of ours goes.
pub(super) fn destination(packet: &[u8]) -> Option<IpAddr> {
    if packet.first()? >> 4 == 4 {
        let octets: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
        Some(octets.into())
    } else {
        let octets: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
        Some(octets.into())
    }
}

/// Writes the Ethernet header.
pub(super) fn head(frame: &mut [u8], to: Hardware, from: Hardware, kind: u16) {
    frame[..6].copy_from_slice(&to);
    frame[6..12].copy_from_slice(&from);
    frame[12..HEADER].copy_from_slice(&kind.to_be_bytes());
}

/// What is in an IP packet.
pub(super) fn payload(packet: &[u8]) -> Option<&[u8]> {
    parts(packet).and_then(|(_, _, payload)| packet.get(payload))
}

/// What one of our packets of TCP acknowledges, and how much more its receiver may send, not scaled.
pub(super) fn told(packet: &[u8]) -> Option<(u32, u16)> {
    if !is_tcp(packet) {
        return None;
    }
    let tcp = TcpPacket::new_checked(payload(packet)?).ok()?;
    Some((tcp.ack_number().0 as u32, tcp.window_len()))
}

/// Gives a packet of TCP that has one of these numbers the one before. Its checksum is wrong then: nobody looks at it any more.
pub(super) fn step_back(packet: &mut [u8], from: [u32; 2]) {
    let Some((_, _, payload)) = parts(packet) else {
        return;
    };
    if let Ok(mut tcp) = TcpPacket::new_checked(&mut packet[payload]) {
        let number = tcp.seq_number();
        if from.contains(&(number.0 as u32)) {
            tcp.set_seq_number(number - 1);
        }
    }
}
