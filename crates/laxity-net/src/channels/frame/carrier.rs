//! What frames travel in, and what that costs of a link.

use super::layout::{CHECKSUM, DATA, HEADER, TAG};

/// The Ethernet type of frames that travel by themselves: the first one of those that IEEE 802 sets aside for local use.
pub const ETHER_TYPE: u16 = 0x88b5;

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const IPV6: usize = 40;
const UDP: usize = 8;

/// What a frame is in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Carrier {
    /// A UDP datagram over IPv4, without options, on Ethernet.
    UdpIpv4,
    /// A UDP datagram over IPv6, without further headers, on Ethernet.
    UdpIpv6,
    /// Ethernet, with a [type of its own](ETHER_TYPE).
    Ethernet,
}

impl Carrier {
    /// Bytes in front of a frame, with those of Ethernet. What a link adds that no host sees (a preamble, a checksum, a gap: 24 bytes of Ethernet) is the link's own, and stated of it.
    #[must_use]
    pub const fn headers(self) -> usize {
        match self {
            Self::UdpIpv4 => ETHERNET + IPV4 + UDP,
            Self::UdpIpv6 => ETHERNET + IPV6 + UDP,
            Self::Ethernet => ETHERNET,
        }
    }

    /// Bytes of a data frame beside its payload, as they leave the host: what stands as H in the analysis.
    #[must_use]
    pub const fn overhead(self, sealed: bool) -> usize {
        let trailer = if sealed { TAG } else { CHECKSUM };
        self.headers() + HEADER + DATA + trailer
    }

    /// The largest payload of a data frame on a link of this MTU, in bytes: what stands as S in the analysis. `None`, where not even a header fits.
    #[must_use]
    pub const fn largest_payload(self, mtu: usize, sealed: bool) -> Option<usize> {
        // What an MTU bounds is what is behind the header of Ethernet.
        let whole = mtu.saturating_add(ETHERNET);
        let longest = self.headers() + super::layout::LONGEST;
        let whole = if whole < longest { whole } else { longest };
        whole.checked_sub(self.overhead(sealed))
    }
}

/// The largest [overhead](Carrier::overhead) of a data frame, in bytes: Ethernet 14, IPv6 40, UDP 8, the header 16, that of data 44, and the tag 16.
pub const MOST_OVERHEAD: usize = Carrier::UdpIpv6.overhead(true);

const _: () = assert!(MOST_OVERHEAD == 14 + 40 + 8 + 16 + 44 + 16);
