//! From the bytes of an Ethernet frame to its [`Key`]: what a filter may look at (§2.2 of the paper; the driver defines its keys).
//!
//! Every byte is as the sender likes it. The rules:
//!
//! * **Tags.** 802.1Q, 802.1ad and the older 0x9100, at most two; a third is malformed. The EtherType of a key is what stands behind
//!   them. A number below 1,536 there is the length of an 802.3 frame: such a frame has no EtherType, and nothing behind it is read.
//! * **Lengths.** What the network header says counts: bytes behind it are padding and not part of the packet. A length that exceeds what
//!   is there, or falls short of the header that it counts, is malformed.
//! * **IPv4.** Options are skipped; a header of fewer than five words is malformed.
//! * **IPv6.** Up to [`EXTENSIONS`] of hop-by-hop options, routing, fragment, authentication and destination options are skipped; the
//!   protocol is what stands behind them. A payload that is longer than the length field can say (a jumbogram) is malformed.
//! * **Fragments.** *No* piece of a fragmented packet has ports or a tail behind UDP, not even the first: so all its pieces
//!   go to one client, who can put them together. All have the addresses; and the protocol, if none of IPv6's extensions stands behind the
//!   fragment header. A piece that reaches beyond 65,535 bytes, or has one behind it and is no multiple of 8 bytes long, is malformed. An
//!   IPv6 packet in one piece (offset 0, no more) is not fragmented.
//! * **Transport.** TCP, UDP and SCTP have ports if their header is there as far as it is always the same (20, 8 and 12 bytes); else the packet is
//!   malformed, as it is by a UDP length that falls short of that header or exceeds the packet. Checksums, flags and options are for
//!   the stack to judge.
//! * **ARP and RARP** between Ethernet and IPv4 addresses have the sender's and the target's protocol address; others have none.
//! * **The tail** is [what the driver says](Tail). A packet too short for it has none, and is sound.
//!
//! A malformed frame has a key as far as it is sound, so that a filter that looks behind what is malformed never matches. The caller counts it
//! under its [reason](Malformed).

mod carried;
mod key;

pub use carried::carried;
pub use key::{End, Field, Key, WORDS, Words};

/// Bytes of an Ethernet header without tags, which is no part of what an interface's MTU counts.
pub const HEADER: usize = 14;
/// The EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// The EtherType of ARP.
pub const ARP: u16 = 0x0806;
/// The EtherType of RARP.
pub const RARP: u16 = 0x8035;
/// The EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;
/// The EtherTypes of tags: 802.1Q, 802.1ad, and what was used for outer tags before that.
pub const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// What is below it in the place of an EtherType is the length of an 802.3 frame.
pub const FIRST_ETHER_TYPE: u16 = 0x0600;
/// How many extension headers of IPv6 are looked through.
pub const EXTENSIONS: usize = 8;

/// The number of the protocol TCP.
pub const TCP: u8 = 6;
/// The number of the protocol UDP.
pub const UDP: u8 = 17;
/// The number of the protocol SCTP.
pub const SCTP: u8 = 132;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
pub(crate) const FRAGMENT: u8 = 44;
pub(crate) const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;

/// What the tail stands behind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Behind {
    /// The EtherType and all tags: the frame as it stands, padding with it.
    EtherType,
    /// The header of a UDP packet, within the length that it says.
    Udp,
}

/// Up to 8 bytes at a place that the driver defines, as a number of as many bytes, the highest first: an id of its own protocol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tail {
    behind: Behind,
    offset: u16,
    length: u8,
}

impl Tail {
    /// So many bytes (1 to 8) behind that, from an offset in bytes on; `None` for another number of bytes.
    #[must_use]
    pub const fn new(behind: Behind, offset: u16, length: u8) -> Option<Self> {
        match length {
            1..=8 => Some(Self {
                behind,
                offset,
                length,
            }),
            _ => None,
        }
    }

    /// What it stands behind.
    #[must_use]
    pub const fn behind(self) -> Behind {
        self.behind
    }

    /// From there on, in bytes.
    pub(crate) const fn offset(self) -> u16 {
        self.offset
    }

    /// How many bits it has.
    #[must_use]
    pub const fn bits(self) -> u32 {
        8 * self.length as u32
    }
}

/// Why a frame is malformed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Malformed {
    /// Fewer than the [bytes](HEADER) of an Ethernet header.
    EthernetCut,
    /// It ends within a tag.
    TagCut,
    /// More than two tags.
    TooManyTags,
    /// It ends within ARP.
    ArpCut,
    /// It ends within the IP header.
    NetworkCut,
    /// The version in the IP header is not what the EtherType says.
    Version,
    /// An IPv4 header of fewer than five words.
    HeaderLength,
    /// An IPv4 packet that is to be shorter than its own header.
    TooShort,
    /// A length of more bytes than there are.
    BeyondFrame,
    /// A piece that cannot be put together with others.
    Fragment,
    /// An extension header of IPv6 that ends behind the packet.
    ExtensionCut,
    /// More than [`EXTENSIONS`] extension headers.
    TooManyExtensions,
    /// It ends within the transport header.
    TransportCut,
    /// A UDP length that is shorter than its header or longer than the packet.
    UdpLength,
}

impl Malformed {
    /// All reasons; each one's place here is its number (`as usize`).
    pub const ALL: [Self; 14] = [
        Self::EthernetCut,
        Self::TagCut,
        Self::TooManyTags,
        Self::ArpCut,
        Self::NetworkCut,
        Self::Version,
        Self::HeaderLength,
        Self::TooShort,
        Self::BeyondFrame,
        Self::Fragment,
        Self::ExtensionCut,
        Self::TooManyExtensions,
        Self::TransportCut,
        Self::UdpLength,
    ];

    /// In words.
    #[must_use]
    pub const fn why(self) -> &'static str {
        match self {
            Self::EthernetCut => "shorter than an Ethernet header",
            Self::TagCut => "it ends within a VLAN tag",
            Self::TooManyTags => "more than two VLAN tags",
            Self::ArpCut => "it ends within ARP",
            Self::NetworkCut => "it ends within the IP header",
            Self::Version => "another version of IP than its EtherType says",
            Self::HeaderLength => "an IPv4 header of fewer than 20 bytes",
            Self::TooShort => "shorter than its own header, by the length it has",
            Self::BeyondFrame => "longer than its frame, by the length it has",
            Self::Fragment => "a fragment of impossible place or length",
            Self::ExtensionCut => "it ends within an extension header",
            Self::TooManyExtensions => "more than eight extension headers",
            Self::TransportCut => "it ends within the transport header",
            Self::UdpLength => "a UDP length that cannot be",
        }
    }
}

impl core::fmt::Display for Malformed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.why())
    }
}

impl core::error::Error for Malformed {}

/// What came of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parsed {
    /// As far as it is sound.
    pub key: Key,
    /// Why it is not sound behind that.
    pub malformed: Option<Malformed>,
}

/// Reads the key of a frame that begins with its Ethernet header. Any bytes may come; O(1).
// Always: a key that goes through memory is read again at once, by whoever looks it up, which costs more than all of the parsing.
#[inline(always)]
#[must_use]
pub fn parse(frame: &[u8], tail: Option<Tail>) -> Parsed {
    let mut reader = Reader::default();
    let malformed = reader.ethernet(frame, tail).err();
    Parsed {
        key: reader.key(),
        malformed,
    }
}

/// A key in the making. Its words are apart, and never lent to what is not inlined, so that they stay in registers.
#[derive(Default)]
struct Reader {
    kinds: u64,
    ports: u64,
    source: u128,
    destination: u128,
    tail: u64,
}

impl Reader {
    #[inline(always)]
    const fn key(&self) -> Key {
        let Self {
            kinds,
            ports,
            source: from,
            destination: to,
            tail,
        } = *self;
        Key(Words([
            kinds,
            ports,
            (from >> 64) as u64,
            from as u64,
            (to >> 64) as u64,
            to as u64,
            tail,
        ]))
    }

    #[inline(always)]
    fn ethernet(&mut self, frame: &[u8], tail: Option<Tail>) -> Result<(), Malformed> {
        let (header, mut rest) = split::<HEADER>(frame, Malformed::EthernetCut)?;
        let mut ether_type = be16(header, 12);
        if TAGS.contains(&ether_type) {
            let (bits, behind) = tags(rest);
            self.kinds |= bits;
            (ether_type, rest) = behind?;
        }
        if ether_type < FIRST_ETHER_TYPE {
            let is_there = usize::from(ether_type) <= rest.len();
            return sound(is_there, Malformed::BeyondFrame);
        }
        self.kinds |= Field::ETHER_TYPE.bits_of(ether_type.into());
        if let Some(tail) = tail
            && tail.behind == Behind::EtherType
        {
            self.put_tail(tail, rest);
        }
        let behind = match ether_type {
            IPV4 => self.ipv4(rest)?,
            IPV6 => self.ipv6(rest)?,
            ARP | RARP => return self.arp(rest),
            _ => return Ok(()),
        };
        match behind {
            Some((protocol, packet)) => self.transport(protocol, packet, tail),
            None => Ok(()),
        }
    }

    #[inline]
    fn arp(&mut self, packet: &[u8]) -> Result<(), Malformed> {
        let (kinds, _) = split::<8>(packet, Malformed::ArpCut)?;
        // Ethernet and IPv4 addresses, of 6 and 4 bytes.
        if !kinds.starts_with(&[0, 1, 8, 0, 6, 4]) {
            return Ok(());
        }
        let (packet, _) = split::<28>(packet, Malformed::ArpCut)?;
        self.put_addresses(be32(packet, 14).into(), be32(packet, 24).into());
        Ok(())
    }

    /// Protocol and packet behind the header; `None` of a piece.
    #[inline(always)]
    fn ipv4<'f>(&mut self, packet: &'f [u8]) -> Result<Option<(u8, &'f [u8])>, Malformed> {
        let (header, _) = split::<20>(packet, Malformed::NetworkCut)?;
        sound(header[0] >> 4 == 4, Malformed::Version)?;
        let long = 4 * usize::from(header[0] & 15);
        let total = usize::from(be16(header, 2));
        sound(long >= header.len(), Malformed::HeaderLength)?;
        sound(total >= long, Malformed::TooShort)?;
        let payload = packet.get(long..total).ok_or(Malformed::BeyondFrame)?;
        let piece = be16(header, 6);
        let is_piece = piece & 0x3fff != 0;
        if is_piece {
            fits(piece & 0x1fff, piece & 0x2000 != 0, payload.len())?;
        }
        self.put_addresses(be32(header, 12).into(), be32(header, 16).into());
        self.put_protocol(header[9]);
        Ok((!is_piece).then_some((header[9], payload)))
    }

    /// The same.
    #[inline(always)]
    fn ipv6<'f>(&mut self, packet: &'f [u8]) -> Result<Option<(u8, &'f [u8])>, Malformed> {
        let (header, rest) = split::<40>(packet, Malformed::NetworkCut)?;
        sound(header[0] >> 4 == 6, Malformed::Version)?;
        let length = usize::from(be16(header, 4));
        let payload = rest.get(..length).ok_or(Malformed::BeyondFrame)?;
        self.put_addresses(be128(header, 8), be128(header, 24));
        let mut protocol = Some(header[6]);
        let mut packet = Some(payload);
        if is_extension(header[6]) {
            (protocol, packet) = behind_extensions(header[6], payload)?;
        }
        if let Some(protocol) = protocol {
            self.put_protocol(protocol);
        }
        Ok(protocol.zip(packet))
    }

    #[inline(always)]
    fn transport(
        &mut self,
        protocol: u8,
        packet: &[u8],
        tail: Option<Tail>,
    ) -> Result<(), Malformed> {
        let header = match protocol {
            TCP => 20,
            UDP => 8,
            SCTP => 12,
            _ => return Ok(()),
        };
        sound(packet.len() >= header, Malformed::TransportCut)?;
        let (first, _) = split::<8>(packet, Malformed::TransportCut)?;
        if protocol == UDP {
            let length = usize::from(be16(first, 4));
            sound(length >= header, Malformed::UdpLength)?;
            let payload = packet.get(header..length).ok_or(Malformed::UdpLength)?;
            if let Some(tail) = tail
                && tail.behind == Behind::Udp
            {
                self.put_tail(tail, payload);
            }
        }
        // Both ports, as they stand.
        self.ports = be32(first, 0).into();
        self.kinds |= Field::HAS_PORTS.bits_of(1);
        Ok(())
    }

    #[inline]
    const fn put_protocol(&mut self, protocol: u8) {
        self.kinds |= Field::PROTOCOL.bits_of(protocol as u64) | Field::HAS_PROTOCOL.bits_of(1);
    }

    #[inline]
    const fn put_addresses(&mut self, source: u128, destination: u128) {
        (self.source, self.destination) = (source, destination);
        self.kinds |= Field::HAS_ADDRESSES.bits_of(1);
    }

    /// Reads the tail, if these bytes are long enough.
    #[inline]
    fn put_tail(&mut self, tail: Tail, bytes: &[u8]) {
        let from = usize::from(tail.offset);
        if let Some(bytes) = bytes.get(from..from + usize::from(tail.length)) {
            let append = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
            self.tail = bytes.iter().fold(0, append);
            self.kinds |= Field::HAS_TAIL.bits_of(1);
        }
    }
}

/// One or two tags as they are in a key, as far as they are there; what stands behind them, and the rest.
#[cold]
fn tags(mut rest: &[u8]) -> (u64, Result<(u16, &[u8]), Malformed>) {
    let mut bits = 0;
    for (has, id) in [
        (Field::HAS_OUTER, Field::OUTER),
        (Field::HAS_INNER, Field::INNER),
    ] {
        let (tag, behind) = match split::<4>(rest, Malformed::TagCut) {
            Ok(tag) => tag,
            Err(cut) => return (bits, Err(cut)),
        };
        bits |= has.bits_of(1) | id.bits_of(be16(tag, 0).into());
        let ether_type = be16(tag, 2);
        if !TAGS.contains(&ether_type) {
            return (bits, Ok((ether_type, behind)));
        }
        rest = behind;
    }
    (bits, Err(Malformed::TooManyTags))
}

/// The headers of IPv6 that are looked through.
pub(crate) const LOOKED_THROUGH: [u8; 5] = [
    HOP_BY_HOP,
    ROUTING,
    FRAGMENT,
    AUTHENTICATION,
    DESTINATION_OPTIONS,
];

/// Whether a header of IPv6 is looked through.
#[inline]
pub fn is_extension(protocol: u8) -> bool {
    LOOKED_THROUGH.contains(&protocol)
}

/// Protocol and packet behind extension headers: of a piece no packet, and perhaps no protocol.
#[cold]
fn behind_extensions(
    mut protocol: u8,
    mut rest: &[u8],
) -> Result<(Option<u8>, Option<&[u8]>), Malformed> {
    for _ in 0..EXTENSIONS {
        if !is_extension(protocol) {
            break;
        }
        let (header, behind) = split::<8>(rest, Malformed::ExtensionCut)?;
        let long = match protocol {
            FRAGMENT => header.len(),
            AUTHENTICATION => 4 * (usize::from(header[1]) + 2),
            _ => 8 * (usize::from(header[1]) + 1),
        };
        let piece = be16(header, 2);
        if protocol == FRAGMENT && piece & 0xfff9 != 0 {
            fits(piece >> 3, piece & 1 != 0, behind.len())?;
            let protocol = Some(header[0]).filter(|next| !is_extension(*next));
            return Ok((protocol, None));
        }
        rest = rest.get(long..).ok_or(Malformed::ExtensionCut)?;
        protocol = header[0];
    }
    sound(!is_extension(protocol), Malformed::TooManyExtensions)?;
    Ok((Some(protocol), Some(rest)))
}

/// Whether a piece may be: its place, in 8 bytes, whether more come behind it, its length.
fn fits(place: u16, more: bool, length: usize) -> Result<(), Malformed> {
    let end = 8 * usize::from(place) + length;
    let is_whole = !more || (length > 0 && length.is_multiple_of(8));
    let is_near = end <= usize::from(u16::MAX);
    sound(is_whole && is_near, Malformed::Fragment)
}

#[inline]
fn sound(is_sound: bool, otherwise: Malformed) -> Result<(), Malformed> {
    if is_sound { Ok(()) } else { Err(otherwise) }
}

/// The first bytes, so many, and what is behind them.
#[inline]
fn split<const N: usize>(bytes: &[u8], short: Malformed) -> Result<(&[u8; N], &[u8]), Malformed> {
    bytes.split_first_chunk().ok_or(short)
}

/// Two bytes from a place on, which the caller knows to be there.
#[inline]
const fn be16<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[inline]
const fn be32<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    (be16(bytes, at) as u32) << 16 | be16(bytes, at + 2) as u32
}

#[inline]
const fn be128<const N: usize>(bytes: &[u8; N], at: usize) -> u128 {
    let upper = (be32(bytes, at) as u64) << 32 | be32(bytes, at + 4) as u64;
    let lower = (be32(bytes, at + 8) as u64) << 32 | be32(bytes, at + 12) as u64;
    (upper as u128) << 64 | lower as u128
}
