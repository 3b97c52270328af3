//! What a description of a network says.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU32;

use laxity_model::Span;
use laxity_model::channels::admission::{Traffic, TrafficError};
use laxity_model::channels::source::Excess;
use laxity_net::channels::frame::Carrier;

/// To which port of UDP nodes talk where a file says no other one: 27768.
pub const PORT: u16 = 0x6c78;

/// A network as its hosts have it described; what refers to another part does so by its place there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Network {
    /// Two at least.
    pub hosts: Vec<Host>,
    /// One at least.
    pub links: Vec<Link>,
    /// Channels that may be opened.
    pub channels: Vec<Channel>,
    /// Who may, besides root and who runs a node.
    pub users: Vec<User>,
}

/// The public key of a host, by which it is known to be that host (X25519).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey(pub [u8; 32]);

/// As a file has it: 64 hexadecimal digits.
impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// No other host has it.
    pub key: PublicKey,
}

/// How much of a link a node has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Own {
    /// An egress class ahead of the kernel's other traffic.
    Class,
    /// All of it: the host's other traffic comes through the node.
    All,
    /// Nothing but its turn: what goes over it is unenforced.
    None,
}

/// What connects two hosts, in both directions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// The places of both hosts, which differ.
    pub between: [usize; 2],
    /// Bits a second, each way.
    pub rate: u64,
    /// How much of it a node has.
    pub own: Own,
    /// Bytes that each frame takes besides its own.
    pub overhead: u16,
    /// Whether frames are sealed; else they have a checksum only.
    pub seal: bool,
    /// Where its ends are, in the order of `between`, which differ: both of IPv4 or both of IPv6. Without that it can be planned, and not served.
    pub at: Option<[SocketAddr; 2]>,
    /// Bytes of the longest packet of IP, with its header.
    pub mtu: u16,
    /// How long the last bit of a frame is under way at the most, in each direction.
    pub propagation: Span,
}

impl Link {
    /// Where this host is, and where its neighbour: by the first it finds its interface, and listens; `None` where the file does not say, or the host is not at the link.
    #[must_use]
    pub fn ends(&self, host: usize) -> Option<[SocketAddr; 2]> {
        let [one, other] = self.at?;
        match self.between {
            [first, _] if first == host => Some([one, other]),
            [_, second] if second == host => Some([other, one]),
            _ => None,
        }
    }

    /// What frames travel in: where the file does not say where its ends are, what takes more of it.
    #[must_use]
    pub fn carrier(&self) -> Carrier {
        match self.at {
            Some([SocketAddr::V4(_), _]) => Carrier::UdpIpv4,
            Some([SocketAddr::V6(_), _]) | None => Carrier::UdpIpv6,
        }
    }

    /// H: what a data frame has beside its payload, and the link beside that, in bytes.
    #[must_use]
    pub fn beside(&self) -> u32 {
        self.carrier().overhead(self.seal) as u32 + u32::from(self.overhead)
    }
}

impl Network {
    /// S: so many bytes of a message are in a packet, the same on all links, as relays cut nothing: as many as fit the narrowest.
    #[must_use]
    pub fn payload(&self) -> NonZeroU32 {
        let most = |link: &Link| link.carrier().largest_payload(link.mtu.into(), link.seal);
        let payload = self.links.iter().filter_map(most).min();
        // No MTU is so short that nothing fits.
        NonZeroU32::new(payload.unwrap_or(1) as u32).unwrap_or(NonZeroU32::MIN)
    }
}

/// When a message that cannot be in time any more is let go of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Late {
    /// Never: it is delivered, and told to be late.
    Deliver,
    /// At the first hop that knows.
    Discard,
}

/// A channel that may be opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Channel {
    /// Its name.
    pub name: String,
    /// The place of the host that sends.
    pub from: usize,
    /// The place of the host that receives.
    pub to: usize,
    /// The places of the links on the way, in order; one at least.
    pub route: Vec<usize>,
    /// Bytes of the largest message.
    pub max: u32,
    /// So many messages in each period: one or more, and no more than one a nanosecond.
    pub rate: (u32, Span),
    /// How many messages may come at once; one at least.
    pub burst: u32,
    /// From a message's logical arrival to its delivery.
    pub within: Span,
    /// What becomes of messages that are too many.
    pub over: Excess,
    /// What becomes of those that are late.
    pub late: Late,
}

impl Channel {
    /// What it may send.
    ///
    /// # Errors
    ///
    /// None of a channel that was read from a file.
    pub fn traffic(&self) -> Result<Traffic, TrafficError> {
        Traffic::new(self.max, self.rate, self.burst)
    }

    /// Bits a second of messages, without headers, rounded up.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.traffic().map_or(u64::MAX, |traffic| traffic.bits())
    }
}

/// What a user may do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    /// What the file calls this.
    pub name: String,
    /// By which the system knows the user.
    pub uid: u32,
    /// The place of the host where that is; on each, where it is not said.
    pub host: Option<usize>,
    /// How many channels may be open at once, of those that the user opened.
    pub channels: Option<u16>,
    /// Bits a second of all of them.
    pub rate: Option<u64>,
    /// The places of the channels that the user may open.
    pub open: Vec<usize>,
    /// The places of those that the user may listen to.
    pub listen: Vec<usize>,
}
