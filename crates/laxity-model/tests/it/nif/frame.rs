//! Keys of frames: against what was put in, against another parser, and with every length and version wrong in turn.

use std::net::IpAddr;

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use laxity_model::nif::frame::{
    ARP, Behind, EXTENSIONS, IPV4, Key, Malformed, SCTP, TCP, Tail, UDP, carried, parse,
};
use proptest::prelude::*;

use super::packets::{
    AUTHENTICATION, DESTINATION_OPTIONS, Draw, HOP_BY_HOP, Network, Packet, ROUTING,
};

/// What a key says.
type Says = (
    Vec<u16>,
    u16,
    Option<(IpAddr, IpAddr)>,
    Option<u8>,
    Option<(u16, u16)>,
);

fn says(key: &Key) -> Says {
    let tags = [key.vlan(), key.inner_vlan()];
    (
        tags.into_iter().flatten().collect(),
        key.ether_type().unwrap_or(0),
        key.addresses(),
        key.protocol(),
        key.ports(),
    )
}

fn is_in(packet: &Packet) -> Says {
    (
        packet.tags.iter().map(|(_, id)| id & 0xfff).collect(),
        packet.ether_type(),
        packet.addresses(),
        packet.protocol(),
        packet.ports(),
    )
}

/// What the other parser finds, of frames that both read alike: no SCTP, no 802.3.
fn sliced(bytes: &[u8]) -> Says {
    let all = SlicedPacket::from_ethernet(bytes).expect("well formed");
    let (addresses, protocol) = match &all.net {
        Some(NetSlice::Ipv4(packet)) => {
            let header = packet.header();
            let ends = (
                header.source_addr().into(),
                header.destination_addr().into(),
            );
            (Some(ends), Some(header.protocol().0))
        }
        Some(NetSlice::Ipv6(packet)) => {
            let header = packet.header();
            let ends = (
                header.source_addr().into(),
                header.destination_addr().into(),
            );
            (Some(ends), Some(packet.payload().ip_number.0))
        }
        Some(NetSlice::Arp(packet)) => {
            let address = |octets: &[u8]| <[u8; 4]>::try_from(octets).expect("four").into();
            let ends = (
                address(packet.sender_protocol_addr()),
                address(packet.target_protocol_addr()),
            );
            (Some(ends), None)
        }
        None => (None, None),
    };
    let ports = match &all.transport {
        Some(TransportSlice::Udp(udp)) => Some((udp.source_port(), udp.destination_port())),
        Some(TransportSlice::Tcp(tcp)) => Some((tcp.source_port(), tcp.destination_port())),
        _ => None,
    };
    let tags = all.vlan_ids().iter().map(|id| id.value()).collect();
    let ether_type = match &all.net {
        Some(NetSlice::Ipv4(_)) => IPV4,
        Some(NetSlice::Ipv6(_)) => laxity_model::nif::frame::IPV6,
        Some(NetSlice::Arp(_)) => ARP,
        None => all.payload_ether_type().expect("one").0,
    };
    (tags, ether_type, addresses, protocol, ports)
}

proptest! {
    #[test]
    fn a_key_says_what_is_in_the_packet(seed: u64) {
        let packet = Packet::draw(&mut Draw::new(seed));
        let parsed = parse(&packet.bytes(), None);
        prop_assert_eq!(parsed.malformed, None, "{:?}", packet);
        prop_assert_eq!(says(&parsed.key), is_in(&packet), "{:?}", packet);
        prop_assert_eq!(parsed.key.tail(), None);
    }

    #[test]
    fn another_parser_finds_the_same(seed: u64) {
        let packet = Packet::draw(&mut Draw::new(seed));
        let is_alike = match &packet.network {
            Network::Length => false,
            Network::Arp { ether_type, is_usual } => *ether_type == ARP && *is_usual,
            // It goes on behind the fragment header of a first piece.
            Network::New { behind, .. } => behind.is_empty() || !packet.is_piece(),
            _ => true,
        };
        if is_alike && packet.protocol != SCTP {
            let bytes = packet.bytes();
            prop_assert_eq!(sliced(&bytes), says(&parse(&bytes, None).key), "{:?}", packet);
        }
    }

    #[test]
    fn any_bytes_are_taken_and_what_is_cut_says_no_more_than_the_whole(seed: u64, kept in 0_usize..200, bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let tail = Tail::new(Behind::Udp, 3, 8);
        let _ = parse(&bytes, tail);
        let draw = &mut Draw::new(seed);
        let packet = Packet::draw(draw);
        let whole = packet.bytes();
        let cut = parse(&whole[..kept.min(whole.len())], tail);
        let whole_key = parse(&whole, tail).key;
        let bits = cut.key.words().as_array().iter().zip(whole_key.words().as_array());
        for (cut, whole) in bits {
            prop_assert_eq!(cut & !whole, 0, "{:?}", packet);
        }
        let mut spoiled = whole.clone();
        for _ in 0..3 {
            let at = draw.below(whole.len());
            spoiled[at] ^= 1 << draw.below(8);
        }
        let key = parse(&spoiled, tail).key;
        prop_assert!(key.ports().is_none() || (key.protocol().is_some() && key.addresses().is_some()));
    }

    #[test]
    fn what_is_carried_stands_behind_all_headers(seed: u64, kept in 0_usize..200) {
        let packet = Packet::draw(&mut Draw::new(seed));
        let bytes = packet.bytes();
        let found = carried(&bytes);
        prop_assert!(found.is_some(), "{:?}", packet);
        if packet.ports().is_some() {
            // Behind the header of SCTP these packets have four bytes more.
            let more = if packet.protocol == SCTP { 4 } else { 0 };
            let found = found.map(|found| &found[more..]);
            prop_assert_eq!(found, Some(&packet.payload[..]), "{:?}", packet);
        } else if let Network::Old { options, .. } = packet.network {
            let behind = bytes.len() - packet.padding - 14 - 4 * packet.tags.len() - 20 - 4 * options;
            prop_assert_eq!(found.map(<[u8]>::len), Some(behind), "{:?}", packet);
        }
        let cut = &bytes[..kept.min(bytes.len())];
        if parse(cut, None).malformed.is_some() {
            prop_assert_eq!(carried(cut), None, "{:?}", packet);
        }
    }

    #[test]
    fn a_tail_is_read_where_it_is_defined(seed: u64, offset in 0_u16..20, length in 1_u8..9) {
        let packet = Packet::draw(&mut Draw::new(seed));
        let bytes = packet.bytes();
        let [behind_type, behind_udp] = [Behind::EtherType, Behind::Udp].map(|behind| parse(&bytes, Tail::new(behind, offset, length)).key.tail());
        let number = |from: &[u8]| {
            let bytes = from.get(usize::from(offset)..usize::from(offset) + usize::from(length))?;
            Some(bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte)))
        };
        let frame = (packet.ether_type() != 0).then(|| &bytes[14 + 4 * packet.tags.len()..]);
        prop_assert_eq!(behind_type, frame.and_then(number));
        let is_udp = packet.ports().is_some() && packet.protocol == UDP;
        prop_assert_eq!(behind_udp, is_udp.then_some(&packet.payload[..]).and_then(number));
    }
}

fn old(protocol: u8) -> Packet {
    Packet {
        tags: Vec::new(),
        network: Network::Old {
            options: 0,
            piece: None,
        },
        ends: ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()),
        protocol,
        ports: (5, 6),
        payload: vec![0; 8],
        padding: 0,
    }
}

fn new(protocol: u8, before: &[u8]) -> Packet {
    Packet {
        network: Network::New {
            before: before.to_vec(),
            piece: None,
            behind: Vec::new(),
        },
        ends: ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap()),
        ..old(protocol)
    }
}

/// How far a key goes: tags, EtherType, addresses, protocol, ports.
fn depth(key: &Key) -> usize {
    let known = [
        key.ether_type().is_some(),
        key.addresses().is_some(),
        key.protocol().is_some(),
        key.ports().is_some(),
    ];
    known.iter().take_while(|known| **known).count()
}

#[test]
fn what_lies_is_named_and_nothing_behind_it_is_read() {
    use Malformed as M;
    // Behind an Ethernet header of 14 bytes: a byte, what it becomes, the reason, and how far the key goes.
    let all: Vec<(Packet, usize, u8, M, usize)> = vec![
        (old(UDP), 0, 0x65, M::Version, 1),
        (old(UDP), 0, 0x44, M::HeaderLength, 1),
        (old(UDP), 0, 0x4f, M::TooShort, 1),
        (old(UDP), 3, 19, M::TooShort, 1),
        (old(UDP), 3, 37, M::BeyondFrame, 1),
        (old(UDP), 3, 27, M::TransportCut, 3),
        (old(TCP), 3, 39, M::TransportCut, 3),
        (old(SCTP), 3, 31, M::TransportCut, 3),
        (old(UDP), 25, 7, M::UdpLength, 3),
        (old(UDP), 25, 17, M::UdpLength, 3),
        // The last piece of one, at 65,528 and 16 bytes long; and one that another follows, of 15 bytes.
        (old(UDP), 6, 0x1f, M::Fragment, 1),
        (old(UDP), 6, 0x20, M::Fragment, 1),
        (new(UDP, &[]), 0, 0x45, M::Version, 1),
        (new(UDP, &[]), 5, 17, M::BeyondFrame, 1),
        (new(UDP, &[]), 5, 7, M::TransportCut, 3),
        (new(UDP, &[]), 5, 0, M::TransportCut, 3),
        (new(UDP, &[]), 45, 7, M::UdpLength, 3),
        (new(UDP, &[HOP_BY_HOP]), 41, 3, M::ExtensionCut, 2),
        (new(UDP, &[AUTHENTICATION]), 41, 9, M::ExtensionCut, 2),
        (
            new(UDP, &[DESTINATION_OPTIONS, ROUTING]),
            5,
            7,
            M::ExtensionCut,
            2,
        ),
    ];
    for (packet, at, value, reason, known) in all {
        let mut bytes = packet.bytes();
        assert_eq!(parse(&bytes, None).malformed, None);
        bytes[14 + at] = value;
        if reason == M::Fragment {
            bytes[14 + 7] = if value == 0x1f { 0xff } else { 0 };
            bytes[14 + 3] = 35;
        }
        let parsed = parse(&bytes, None);
        assert_eq!(
            (parsed.malformed, depth(&parsed.key)),
            (Some(reason), known),
            "{packet:?} {at} {value}"
        );
    }
}

#[test]
fn what_ends_too_soon_is_named() {
    use Malformed as M;
    let arp = Packet {
        network: Network::Arp {
            ether_type: ARP,
            is_usual: true,
        },
        ..old(UDP)
    };
    let tagged = Packet {
        tags: vec![(0x88a8, 5), (0x8100, 6)],
        ..old(UDP)
    };
    let length = Packet {
        network: Network::Length,
        ..old(UDP)
    };
    let all = [
        (old(UDP), 0, M::EthernetCut, 0),
        (old(UDP), 13, M::EthernetCut, 0),
        (old(UDP), 14, M::NetworkCut, 1),
        (old(UDP), 33, M::NetworkCut, 1),
        (old(UDP), 34, M::BeyondFrame, 1),
        (new(UDP, &[]), 53, M::NetworkCut, 1),
        (arp.clone(), 21, M::ArpCut, 1),
        (arp, 41, M::ArpCut, 1),
        (tagged.clone(), 17, M::TagCut, 0),
        (tagged, 21, M::TagCut, 0),
        (length, 20, M::BeyondFrame, 0),
    ];
    for (packet, kept, reason, known) in all {
        let parsed = parse(&packet.bytes()[..kept], None);
        assert_eq!(
            (parsed.malformed, depth(&parsed.key)),
            (Some(reason), known),
            "{packet:?} {kept}"
        );
    }
    let third = Packet {
        tags: vec![(0x8100, 5); 3],
        ..old(UDP)
    };
    let parsed = parse(&third.bytes(), None);
    assert_eq!(
        (
            parsed.malformed,
            parsed.key.inner_vlan(),
            depth(&parsed.key)
        ),
        (Some(M::TooManyTags), Some(5), 0)
    );
}

#[test]
fn so_many_extensions_are_looked_through_and_one_more_is_not() {
    let chain = |count| parse(&new(UDP, &vec![DESTINATION_OPTIONS; count]).bytes(), None);
    let (most, more) = (chain(EXTENSIONS), chain(EXTENSIONS + 1));
    assert_eq!((most.malformed, most.key.ports()), (None, Some((5, 6))));
    assert_eq!(
        (more.malformed, more.key.protocol()),
        (Some(Malformed::TooManyExtensions), None)
    );
}

#[test]
fn every_piece_of_a_packet_says_the_same() {
    let places = [(0, true), (3, true), (6, false)];
    let keys = places.map(|piece| {
        let piece = Some(piece);
        let packets = [
            Packet {
                network: Network::Old { options: 1, piece },
                ..old(UDP)
            },
            Packet {
                network: Network::New {
                    before: vec![],
                    piece,
                    behind: vec![],
                },
                ..new(UDP, &[])
            },
            Packet {
                network: Network::New {
                    before: vec![],
                    piece,
                    behind: vec![DESTINATION_OPTIONS],
                },
                ..new(UDP, &[])
            },
        ];
        packets.map(|packet| parse(&packet.bytes(), Tail::new(Behind::Udp, 0, 1)).key)
    });
    assert!(keys.iter().all(|key| *key == keys[0]));
    assert_eq!(keys[0].map(|key| depth(&key)), [3, 3, 2]);
}

#[test]
fn a_tail_has_1_to_8_bytes_and_reasons_are_numbered() {
    let lengths: Vec<_> = (0..12)
        .filter(|length| Tail::new(Behind::Udp, 0, *length).is_some())
        .collect();
    assert_eq!(lengths, [1, 2, 3, 4, 5, 6, 7, 8]);
    for (place, reason) in Malformed::ALL.into_iter().enumerate() {
        assert_eq!(reason as usize, place);
    }
}
