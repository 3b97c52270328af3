//! Random packets of all kinds, and what stands in each.

use std::net::IpAddr;

use laxity_model::base::random::SplitMix64;
use laxity_model::nif::frame::{ARP, IPV4, IPV6, RARP, SCTP, TCP, UDP};

pub(super) const HOP_BY_HOP: u8 = 0;
pub(super) const ROUTING: u8 = 43;
pub(super) const FRAGMENT: u8 = 44;
pub(super) const AUTHENTICATION: u8 = 51;
pub(super) const DESTINATION_OPTIONS: u8 = 60;

pub(super) const PORTS: [u16; 4] = [0, 53, 80, 443];
pub(super) const IDS: [u16; 3] = [0, 5, 6];
pub(super) const PROTOCOLS: [u8; 8] = [TCP, UDP, SCTP, TCP, UDP, 1, 58, 99];
pub(super) const OLD: [&str; 4] = ["10.0.0.1", "10.0.0.2", "10.1.0.1", "192.168.0.1"];
pub(super) const NEW: [&str; 4] = ["fd00::1", "fd00::2", "fd00:1::1", "2001:db8::1"];

/// Numbers that follow from a seed.
pub(super) struct Draw(pub(super) SplitMix64);

impl Draw {
    pub(super) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.0.draw() % end as u64) as usize
    }

    /// In so many of a hundred cases.
    pub(super) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(super) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    pub(super) fn address(&mut self, is_new: bool) -> IpAddr {
        let text = self.of(if is_new { &NEW } else { &OLD });
        text.parse().expect("an address")
    }

    pub(super) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.below(256) as u8).collect()
    }
}

/// Place and whether more pieces follow.
pub(super) type Piece = Option<(u16, bool)>;

#[derive(Clone, Debug)]
pub(super) enum Network {
    /// An 802.3 frame.
    Length,
    Other(u16),
    Arp {
        ether_type: u16,
        /// Between Ethernet and IPv4 addresses.
        is_usual: bool,
    },
    Old {
        options: usize,
        piece: Piece,
    },
    New {
        /// Extension headers before a fragment header.
        before: Vec<u8>,
        piece: Piece,
        /// And behind it.
        behind: Vec<u8>,
    },
}

/// What a packet is made of.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    /// The outermost first: its EtherType, and its id with priority bits.
    pub(super) tags: Vec<(u16, u16)>,
    pub(super) network: Network,
    pub(super) ends: (IpAddr, IpAddr),
    pub(super) protocol: u8,
    pub(super) ports: (u16, u16),
    pub(super) payload: Vec<u8>,
    pub(super) padding: usize,
}

impl Packet {
    pub(super) fn draw(draw: &mut Draw) -> Self {
        let network = network(draw);
        let is_new = matches!(network, Network::New { .. });
        let tag = |draw: &mut Draw| {
            let priority = draw.of(&[0, 0, 0xe000]);
            (draw.of(&[0x8100, 0x88a8, 0x9100]), priority | draw.of(&IDS))
        };
        let tags = draw.of(&[0, 0, 0, 1, 1, 2]);
        let length = 8 * draw.below(5);
        Self {
            tags: (0..tags).map(|_| tag(draw)).collect(),
            ends: (draw.address(is_new), draw.address(is_new)),
            protocol: draw.of(&PROTOCOLS),
            ports: (draw.of(&PORTS), draw.of(&PORTS)),
            payload: draw.bytes(length),
            padding: draw.of(&[0, 0, 6, 18]),
            network,
        }
    }

    /// One that has ports.
    pub(super) fn draw_flow(draw: &mut Draw) -> Self {
        loop {
            let packet = Self::draw(draw);
            if packet.ports().is_some() {
                return packet;
            }
        }
    }

    pub(super) fn ether_type(&self) -> u16 {
        match &self.network {
            Network::Length => 0,
            Network::Other(number) => *number,
            Network::Arp { ether_type, .. } => *ether_type,
            Network::Old { .. } => IPV4,
            Network::New { .. } => IPV6,
        }
    }

    pub(super) fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        let has = match self.network {
            Network::Arp { is_usual, .. } => is_usual,
            Network::Old { .. } | Network::New { .. } => true,
            _ => false,
        };
        has.then_some(self.ends)
    }

    pub(super) fn is_piece(&self) -> bool {
        match &self.network {
            Network::Old { piece, .. } | Network::New { piece, .. } => {
                piece.is_some_and(|piece| piece != (0, false))
            }
            _ => false,
        }
    }

    pub(super) fn protocol(&self) -> Option<u8> {
        match &self.network {
            Network::Old { .. } => Some(self.protocol),
            Network::New { behind, .. } => {
                (!self.is_piece() || behind.is_empty()).then_some(self.protocol)
            }
            _ => None,
        }
    }

    pub(super) fn ports(&self) -> Option<(u16, u16)> {
        let has = self
            .protocol()
            .is_some_and(|n| [TCP, UDP, SCTP].contains(&n));
        (has && !self.is_piece()).then_some(self.ports)
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        for (ether_type, id) in &self.tags {
            bytes.extend(ether_type.to_be_bytes());
            bytes.extend(id.to_be_bytes());
        }
        let packet = self.packet();
        let number = match self.network {
            Network::Length => packet.len() as u16,
            _ => self.ether_type(),
        };
        bytes.extend(number.to_be_bytes());
        bytes.extend(packet);
        bytes.extend(vec![0xff; self.padding]);
        bytes
    }

    fn packet(&self) -> Vec<u8> {
        match &self.network {
            Network::Length => [vec![0xaa, 0xaa, 3, 0, 0, 0, 8, 0], self.payload.clone()].concat(),
            Network::Other(_) => self.payload.clone(),
            Network::Arp { is_usual, .. } => self.arp(*is_usual),
            Network::Old { options, piece } => self.old(*options, *piece),
            Network::New {
                before,
                piece,
                behind,
            } => self.new_one(before, *piece, behind),
        }
    }

    fn arp(&self, is_usual: bool) -> Vec<u8> {
        let kinds = if is_usual {
            [0, 1, 8, 0, 6, 4, 0, 1]
        } else {
            [0, 6, 8, 0, 6, 4, 0, 1]
        };
        let hardware = vec![2, 0, 0, 0, 0, 9];
        let (source, destination) = self.ends;
        let ends = [
            hardware.clone(),
            octets(source),
            hardware,
            octets(destination),
        ];
        [kinds.to_vec(), ends.concat()].concat()
    }

    fn old(&self, options: usize, piece: Piece) -> Vec<u8> {
        let transport = self.transport();
        let long = 20 + 4 * options;
        let mut header = vec![0x40 | (long / 4) as u8, 0];
        header.extend(((long + transport.len()) as u16).to_be_bytes());
        let (place, more) = piece.unwrap_or_default();
        // "Do not fragment", where it is not.
        let flags = if self.is_piece() { 0 } else { 0x4000 };
        let piece = place | u16::from(more) << 13 | flags;
        header.extend([0, 1]);
        header.extend(piece.to_be_bytes());
        header.extend([64, self.protocol, 0, 0]);
        header.extend(octets(self.ends.0));
        header.extend(octets(self.ends.1));
        header.extend(vec![1; 4 * options]);
        [header, transport].concat()
    }

    fn new_one(&self, before: &[u8], piece: Piece, behind: &[u8]) -> Vec<u8> {
        let kinds = before.iter().copied();
        let kinds = kinds.chain(piece.map(|_| FRAGMENT));
        let kinds: Vec<u8> = kinds.chain(behind.iter().copied()).collect();
        let mut payload = Vec::new();
        for (number, kind) in kinds.iter().enumerate() {
            let next = kinds.get(number + 1).copied().unwrap_or(self.protocol);
            payload.extend(extension(*kind, next, piece.unwrap_or_default()));
        }
        payload.extend(self.transport());
        let mut header = vec![0x60, 0, 0, 0];
        header.extend((payload.len() as u16).to_be_bytes());
        header.extend([kinds.first().copied().unwrap_or(self.protocol), 64]);
        header.extend(octets(self.ends.0));
        header.extend(octets(self.ends.1));
        [header, payload].concat()
    }

    /// All lengths are multiples of eight, so that any may be a piece.
    fn transport(&self) -> Vec<u8> {
        let mut header = self.ports.0.to_be_bytes().to_vec();
        header.extend(self.ports.1.to_be_bytes());
        match self.protocol {
            TCP => header.extend([
                0, 0, 0, 1, 0, 0, 0, 1, 0x60, 0x10, 4, 0, 0, 0, 0, 0, 1, 1, 1, 1,
            ]),
            UDP => {
                header.extend(((8 + self.payload.len()) as u16).to_be_bytes());
                header.extend([0, 0]);
            }
            _ => header.extend([0; 12]),
        }
        [header, self.payload.clone()].concat()
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// An extension header of 8 bytes, or 16.
fn extension(kind: u8, next: u8, (place, more): (u16, bool)) -> Vec<u8> {
    match kind {
        FRAGMENT => {
            let piece = (place << 3 | u16::from(more)).to_be_bytes();
            vec![next, 0, piece[0], piece[1], 0, 0, 0, 7]
        }
        AUTHENTICATION => [vec![next, 2], vec![9; 14]].concat(),
        ROUTING => [vec![next, 1, 4, 0], vec![0; 12]].concat(),
        _ => vec![next, 0, 1, 4, 0, 0, 0, 0],
    }
}

fn network(draw: &mut Draw) -> Network {
    let piece = |draw: &mut Draw| {
        let piece = draw.of(&[(0, false), (0, true), (3, true), (3, false)]);
        draw.percent(20).then_some(piece)
    };
    match draw.below(20) {
        0 => Network::Length,
        1 => Network::Other(draw.of(&[0x88b5, 0x1234, 0x0600])),
        2 | 3 => Network::Arp {
            ether_type: draw.of(&[ARP, ARP, RARP]),
            is_usual: draw.percent(80),
        },
        4..=12 => Network::Old {
            options: draw.of(&[0, 0, 0, 1, 10]),
            piece: piece(draw).filter(|piece| *piece != (0, false)),
        },
        _ => {
            let begin = draw.of(&[&[][..], &[], &[HOP_BY_HOP]]);
            let more = draw.of(&[&[][..], &[], &[], &[ROUTING], &[DESTINATION_OPTIONS]]);
            let end = draw.of(&[&[][..], &[], &[], &[AUTHENTICATION], &[DESTINATION_OPTIONS]]);
            Network::New {
                before: [begin, more].concat(),
                piece: piece(draw),
                behind: end.to_vec(),
            }
        }
    }
}

/// A packet as it goes to both, perhaps cut or lying.
pub(super) fn spoiled(draw: &mut Draw, packet: &Packet) -> Vec<u8> {
    let mut bytes = packet.bytes();
    let network = 14 + 4 * packet.tags.len();
    match draw.below(20) {
        0 => bytes.truncate(draw.below(bytes.len())),
        1 => {
            // A version, or a length: each lies.
            let at = match packet.network {
                Network::Old { .. } => draw.of(&[0, 2, 24]),
                Network::New { .. } => draw.of(&[0, 4]),
                _ => return bytes,
            };
            bytes[network + at] = 0x2f;
        }
        _ => {}
    }
    bytes
}
