//! Filters: which packets a client wants, in a subset of the language of pcap.
//!
//! ```text
//! FILTER    = nothing: every packet | TERM { (and | && | or | ||) TERM }
//! TERM      = ( FILTER ) | PRIMITIVE
//! PRIMITIVE = ether proto (N | ip | ip6 | arp | rarp)
//!           | vlan [ID]
//!           | ip | ip6 | arp | rarp
//!           | [ip | ip6] proto N
//!           | tcp | udp | sctp | icmp | icmp6
//!           | [ip | ip6 | arp | rarp] [SIDES] host ADDRESS
//!           | [ip | ip6 | arp | rarp] [SIDES] net ADDRESS/BITS
//!           | [tcp | udp | sctp] [SIDES] port N
//!           | tail VALUE[/BITS]
//! SIDES     = src | dst | src or dst | src and dst
//! ```
//!
//! Numbers are decimal, or hexadecimal behind `0x`. As in pcap, `and` and `or` have equal precedence and group from the left: write
//! parentheses; `host` and `net` mean ARP and RARP too; without `SIDES` either will do; and what is said without `vlan` means
//! packets without a tag. `tail` is the number at the place that the driver [defines](Tail); its first so many bits, where
//! `/BITS` follows. There is no `not`: what a filter wants is a list of values under masks. Hardware addresses are not in the key.
//!
//! What differs from pcap on purpose:
//!
//! * **`vlan` shifts nothing by its place in the text.** A packet has as many tags as `vlan` stands in one `and`-ed line of conditions, the outermost
//!   first, and everything else is looked for behind them, wherever it stands: `ip and vlan 5` is `vlan 5 and ip`. pcap looks behind a
//!   tag in all that follows a `vlan`, behind `or` too.
//! * **Extension headers of IPv6 are looked through** for protocol and ports; pcap looks at the fixed header, and for the protocol of a
//!   fragment one further. Their own numbers are no protocol of an IPv6 packet: `ip6 proto 44` is refused, `proto 44` is IPv4's.
//! * **No piece of a fragmented packet has ports**; pcap finds them in the first piece of IPv4's.
//! * **Malformed frames** match nothing that looks behind what is malformed; pcap looks at its places all the same, and refuses a packet that ends
//!   before them whatever else was asked.
//! * **`host` and `net` of ARP and RARP** want Ethernet and IPv4 addresses in it.
//! * **`ether proto`** wants an EtherType (from 1,536 on); pcap also finds some inside of 802.3 frames.
//!
//! A filter compiles to at most [`MOST`] [conditions](Condition), of which a packet meets one or more.

pub mod classic;
mod condition;
mod draft;
mod grammar;
mod primitive;
mod value;
mod words;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::net::SocketAddr;

pub use condition::Condition;
pub use draft::MOST;
pub use words::{FilterError, LONGEST};

use super::frame::{End, Field, Key, SCTP, TCP, Tail, Words};

/// Which packets a client wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filter {
    text: Box<str>,
    alternatives: Box<[Condition]>,
}

impl Filter {
    /// Compiles a text, for a driver whose keys have this tail.
    ///
    /// # Errors
    ///
    /// The column and what would be right there: it is not in the language, no packet could ever match, it has more than [`MOST`]
    /// alternatives, is longer than [`LONGEST`] bytes, or asks for a tail where there is none.
    ///
    /// ```
    /// use laxity_model::nif::filter::Filter;
    ///
    /// let filter = Filter::parse("udp dst port 53 and src net 10.0.0.0/8", None)?;
    /// assert_eq!(filter.alternatives().len(), 1);
    /// let wrong = Filter::parse("udp and not port 53", None).expect_err("masks know no `not`");
    /// assert_eq!(wrong.column, 9);
    /// # Ok::<(), laxity_model::nif::filter::FilterError>(())
    /// ```
    pub fn parse(text: &str, tail: Option<Tail>) -> Result<Self, FilterError> {
        Ok(Self {
            alternatives: grammar::compile(text, tail)?.into(),
            text: text.trim().into(),
        })
    }

    /// What comes to this end over TCP, or else UDP; where a far end is named, only what comes from there.
    ///
    /// # Errors
    ///
    /// One is of IPv4 and the other of IPv6, so no packet could ever match.
    pub fn to(is_tcp: bool, own: SocketAddr, far: Option<SocketAddr>) -> Result<Self, FilterError> {
        let protocol = if is_tcp { "tcp" } else { "udp" };
        let end = |side: &str, address: SocketAddr| {
            let (ip, port) = (address.ip(), address.port());
            format!("{side} host {ip} and {protocol} {side} port {port}")
        };
        let far = far.map(|far| format!(" and {}", end("src", far)));
        Self::parse(&(end("dst", own) + &far.unwrap_or_default()), None)
    }

    /// Exactly the packets of the flow that this one belongs to, in this direction: its tags, addresses, protocol and ports. `None` where it
    /// has no ports.
    #[must_use]
    pub fn flow(key: &Key) -> Option<Self> {
        let text = flow_text(key)?;
        let tags = match (key.vlan(), key.inner_vlan()) {
            (None, _) => &[Field::HAS_OUTER][..],
            (_, None) => &[Field::HAS_OUTER, Field::OUTER, Field::HAS_INNER],
            _ => &[
                Field::HAS_OUTER,
                Field::OUTER,
                Field::HAS_INNER,
                Field::INNER,
            ],
        };
        let fields = FLOW.iter().chain(tags).map(|field| field.mask());
        let addresses = [End::Source, End::Destination].map(|end| end.address(u128::MAX));
        let mask = fields
            .chain(addresses)
            .fold(Words::default(), |mask, more| mask.or(&more));
        Some(Self {
            text: text.into(),
            alternatives: [Condition::ALL.with_bits(mask, *key.words())].into(),
        })
    }

    /// What a packet must meet one of.
    #[must_use]
    pub fn alternatives(&self) -> &[Condition] {
        &self.alternatives
    }

    /// Whether a packet is wanted. O(alternatives).
    #[must_use]
    pub fn matches(&self, key: &Key) -> bool {
        self.alternatives
            .iter()
            .any(|condition| condition.matches(key))
    }
}

/// What tells flows apart, besides tags and addresses.
const FLOW: [Field; 7] = [
    Field::ETHER_TYPE,
    Field::HAS_ADDRESSES,
    Field::HAS_PROTOCOL,
    Field::PROTOCOL,
    Field::HAS_PORTS,
    Field::SOURCE_PORT,
    Field::DESTINATION_PORT,
];

/// The flow of a packet, as a filter is written; `None` where it has no ports.
fn flow_text(key: &Key) -> Option<String> {
    let ((source, destination), (from, to)) = (key.addresses()?, key.ports()?);
    let protocol = match key.protocol()? {
        TCP => "tcp",
        SCTP => "sctp",
        _ => "udp",
    };
    let tags = [key.vlan(), key.inner_vlan()].into_iter().flatten();
    let mut text: String = tags.map(|id| format!("vlan {id} and ")).collect();
    text += &format!("src host {source} and dst host {destination} and ");
    text += &format!("{protocol} src port {from} and {protocol} dst port {to}");
    Some(text)
}

/// As it was written.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.text {
            "" => f.write_str("every packet"),
            text => f.write_str(text),
        }
    }
}
