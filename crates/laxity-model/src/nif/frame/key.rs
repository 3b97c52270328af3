//! What a filter may look at of a frame: fields at fixed places in a few words, so that masks, comparisons and hashes are cheap.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::IPV6;

/// How many words a key has.
pub const WORDS: usize = 7;

/// The words of a key, or of a mask or value over keys.
///
/// | word | from bit 0 |
/// |---|---|
/// | 0 | EtherType (16), outer VLAN (12), whether there is one (1), inner VLAN (12), whether there is one (1), protocol (8), whether there are addresses, a protocol, ports, a tail (1 each) |
/// | 1 | destination port (16), source port (16) |
/// | 2, 3 | source address, its upper half first; an IPv4 address in the lower half of word 3 |
/// | 4, 5 | destination address, in the same way |
/// | 6 | the tail, as a number |
///
/// What is not known is zero, as are all other bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Words(pub(crate) [u64; WORDS]);

impl Words {
    /// As numbers.
    #[must_use]
    pub const fn as_array(&self) -> &[u64; WORDS] {
        &self.0
    }

    /// The bits that both have.
    #[inline]
    #[must_use]
    pub const fn and(&self, other: &Self) -> Self {
        // Word by word: what was just written word by word is read fast only so.
        let ([a, b, c, d, e, f, g], [h, i, j, k, l, m, n]) = (self.0, other.0);
        Self([a & h, b & i, c & j, d & k, e & l, f & m, g & n])
    }

    /// Whether all bits are the same.
    #[inline]
    #[must_use]
    pub(crate) const fn is(&self, other: &Self) -> bool {
        let ([a, b, c, d, e, f, g], [h, i, j, k, l, m, n]) = (self.0, other.0);
        (a ^ h) | (b ^ i) | (c ^ j) | (d ^ k) | (e ^ l) | (f ^ m) | (g ^ n) == 0
    }

    /// The bits that either has.
    #[must_use]
    pub(crate) fn or(&self, other: &Self) -> Self {
        let mut either = self.0;
        for (word, other) in either.iter_mut().zip(other.0) {
            *word |= other;
        }
        Self(either)
    }

    /// Whether it has all bits that the other has.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        self.and(other) == *other
    }

    /// How many bits it has.
    pub(crate) fn count_ones(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }
}

/// A field of a key: so many bits at a place of one of its words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    word: usize,
    shift: u32,
    bits: u32,
}

impl Field {
    /// What stands behind all tags, if it is no length.
    pub const ETHER_TYPE: Self = Self::at(0, 0, 16);
    /// The id of the outermost tag.
    pub const OUTER: Self = Self::at(0, 16, 12);
    /// 1: there is a tag.
    pub const HAS_OUTER: Self = Self::at(0, 28, 1);
    /// The id of the second tag.
    pub const INNER: Self = Self::at(0, 29, 12);
    /// 1: there is a second tag.
    pub const HAS_INNER: Self = Self::at(0, 41, 1);
    /// The protocol behind the network header and all its extensions.
    pub const PROTOCOL: Self = Self::at(0, 42, 8);
    /// 1: there are addresses, in a header that is whole.
    pub const HAS_ADDRESSES: Self = Self::at(0, 50, 1);
    /// 1: the protocol is known.
    pub const HAS_PROTOCOL: Self = Self::at(0, 51, 1);
    /// 1: there are ports, in a header that is whole.
    pub const HAS_PORTS: Self = Self::at(0, 52, 1);
    /// 1: the packet is long enough for the tail.
    pub const HAS_TAIL: Self = Self::at(0, 53, 1);
    /// Where it is sent to.
    pub const DESTINATION_PORT: Self = Self::at(1, 0, 16);
    /// Where it was sent from.
    pub const SOURCE_PORT: Self = Self::at(1, 16, 16);
    /// As a number of as many bytes as it has.
    pub const TAIL: Self = Self::at(6, 0, 64);

    const fn at(word: usize, shift: u32, bits: u32) -> Self {
        Self { word, shift, bits }
    }

    /// All its bits.
    #[inline]
    const fn bits(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    /// Its place.
    #[must_use]
    pub const fn mask(self) -> Words {
        let mut words = Words([0; WORDS]);
        words.0[self.word] = self.bits() << self.shift;
        words
    }

    /// A value as it stands in its word. Bits that do not fit are lost.
    #[inline]
    pub(super) const fn bits_of(self, value: u64) -> u64 {
        (value & self.bits()) << self.shift
    }

    /// Writes a value where zeros are. Bits that do not fit are lost.
    pub(crate) const fn put(self, words: &mut Words, value: u64) {
        words.0[self.word] |= self.bits_of(value);
    }

    /// Its value.
    #[inline]
    #[must_use]
    pub const fn of(self, words: &Words) -> u64 {
        words.0[self.word] >> self.shift & self.bits()
    }
}

/// Whose address, or port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The sender's.
    Source,
    /// The receiver's.
    Destination,
}

impl End {
    /// The field of its port.
    #[must_use]
    pub const fn port(self) -> Field {
        match self {
            Self::Source => Field::SOURCE_PORT,
            Self::Destination => Field::DESTINATION_PORT,
        }
    }

    /// The first word of its address.
    const fn word(self) -> usize {
        match self {
            Self::Source => 2,
            Self::Destination => 4,
        }
    }

    /// A number at the place of its address.
    #[must_use]
    pub const fn address(self, number: u128) -> Words {
        let mut words = Words([0; WORDS]);
        words.0[self.word()] = (number >> 64) as u64;
        words.0[self.word() + 1] = number as u64;
        words
    }

    const fn number(self, words: &Words) -> u128 {
        (words.0[self.word()] as u128) << 64 | words.0[self.word() + 1] as u128
    }
}

/// What a filter may look at of one frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Key(pub(super) Words);

impl Key {
    /// As words.
    #[inline]
    #[must_use]
    pub const fn words(&self) -> &Words {
        &self.0
    }

    /// What stands behind all tags; `None` where that is a length, or the frame is malformed before it.
    #[must_use]
    pub fn ether_type(&self) -> Option<u16> {
        let number = Field::ETHER_TYPE.of(&self.0) as u16;
        (number != 0).then_some(number)
    }

    /// The id of the outermost tag; `None` without a tag.
    #[must_use]
    pub fn vlan(&self) -> Option<u16> {
        self.known(Field::HAS_OUTER, Field::OUTER)
            .map(|id| id as u16)
    }

    /// The id of the second tag; `None` without one.
    #[must_use]
    pub fn inner_vlan(&self) -> Option<u16> {
        self.known(Field::HAS_INNER, Field::INNER)
            .map(|id| id as u16)
    }

    /// Source and destination; of ARP, the sender's and the target's protocol address.
    #[must_use]
    pub fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        self.known(Field::HAS_ADDRESSES, Field::HAS_ADDRESSES)?;
        let address = |end: End| {
            let number = end.number(&self.0);
            if self.ether_type() == Some(IPV6) {
                IpAddr::V6(Ipv6Addr::from_bits(number))
            } else {
                IpAddr::V4(Ipv4Addr::from_bits(number as u32))
            }
        };
        Some((address(End::Source), address(End::Destination)))
    }

    /// The protocol behind the network header and its extensions.
    #[must_use]
    pub fn protocol(&self) -> Option<u8> {
        self.known(Field::HAS_PROTOCOL, Field::PROTOCOL)
            .map(|number| number as u8)
    }

    /// Source and destination port.
    #[must_use]
    pub fn ports(&self) -> Option<(u16, u16)> {
        self.known(Field::HAS_PORTS, Field::HAS_PORTS)?;
        let port = |end: End| end.port().of(&self.0) as u16;
        Some((port(End::Source), port(End::Destination)))
    }

    /// What stands at the place of the [`Tail`](super::Tail), as a number.
    #[must_use]
    pub fn tail(&self) -> Option<u64> {
        self.known(Field::HAS_TAIL, Field::TAIL)
    }

    fn known(&self, whether: Field, value: Field) -> Option<u64> {
        (whether.of(&self.0) == 1).then(|| value.of(&self.0))
    }
}
