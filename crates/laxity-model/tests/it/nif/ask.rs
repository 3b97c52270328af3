//! Random filters as trees, how they are written, and which packets they mean: read off the packet's parts, condition by condition.

use std::fmt;
use std::net::IpAddr;

use laxity_model::nif::frame::{ARP, IPV4, IPV6, RARP, SCTP, TCP, UDP};

use super::packets::{Draw, IDS, PORTS, Packet};

#[derive(Clone, Copy, Debug)]
pub(super) enum Sides {
    Source,
    Destination,
    Either,
    Both,
}

impl Sides {
    fn hold<T: Copy>(self, (source, destination): (T, T), is_it: impl Fn(T) -> bool) -> bool {
        match self {
            Self::Source => is_it(source),
            Self::Destination => is_it(destination),
            Self::Either => is_it(source) || is_it(destination),
            Self::Both => is_it(source) && is_it(destination),
        }
    }
}

/// A filter.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    EtherProto(u16),
    Vlan(Option<u16>),
    Type(&'static str),
    Proto(Option<&'static str>, u8),
    Transport(&'static str),
    Host(Option<&'static str>, Sides, IpAddr),
    Net(Option<&'static str>, Sides, IpAddr, u32),
    Port(Option<&'static str>, Sides, u16),
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
}

fn number(word: &str) -> u16 {
    match word {
        "ip" => IPV4,
        "ip6" => IPV6,
        "arp" => ARP,
        _ => RARP,
    }
}

fn of_transport(word: &str) -> u8 {
    match word {
        "tcp" => TCP,
        "udp" => UDP,
        _ => SCTP,
    }
}

/// The first so many bits of an address.
fn first(address: IpAddr, bits: u32) -> Vec<bool> {
    let octets = match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let all = octets.into_iter();
    let all = all.flat_map(|octet| (0..8).rev().map(move |bit| octet >> bit & 1 == 1));
    all.take(bits as usize).collect()
}

impl Ask {
    /// One without `vlan`, with so many operators at most.
    pub(super) fn draw(draw: &mut Draw, operators: usize) -> Self {
        if operators == 0 {
            return Self::primitive(draw);
        }
        let left = draw.below(operators);
        let one = Box::new(Self::draw(draw, left));
        let other = Box::new(Self::draw(draw, operators - 1 - left));
        if draw.percent(55) {
            Self::And(one, other)
        } else {
            Self::Or(one, other)
        }
    }

    pub(super) fn draw_vlan(draw: &mut Draw) -> Self {
        Self::Vlan(draw.percent(70).then(|| draw.of(&IDS)))
    }

    fn primitive(draw: &mut Draw) -> Self {
        let sides = [
            Sides::Source,
            Sides::Destination,
            Sides::Either,
            Sides::Both,
        ];
        let sides = draw.of(&sides);
        let is_new = draw.percent(40);
        let of_version = if is_new {
            draw.of(&[None, None, Some("ip6")])
        } else {
            draw.of(&[
                None,
                None,
                None,
                Some("ip"),
                Some("ip"),
                Some("arp"),
                Some("rarp"),
            ])
        };
        match draw.below(12) {
            0 => Self::EtherProto(draw.of(&[IPV4, IPV6, ARP, 0x88b5, 0x1234])),
            1 => Self::Type(draw.of(&["ip", "ip6", "arp", "rarp"])),
            2 => Self::Proto(
                draw.of(&[None, Some("ip"), Some("ip6")]),
                draw.of(&[TCP, UDP, 1, 58, 99]),
            ),
            3 => Self::Transport(draw.of(&["tcp", "udp", "sctp", "icmp", "icmp6"])),
            4..=6 => Self::Host(of_version, sides, draw.address(is_new)),
            7 => {
                let bits = draw.below(if is_new { 129 } else { 33 }) as u32;
                let address = masked(draw.address(is_new), bits);
                Self::Net(of_version, sides, address, bits)
            }
            _ => Self::Port(
                draw.of(&[None, Some("tcp"), Some("udp"), Some("sctp")]),
                sides,
                draw.of(&PORTS),
            ),
        }
    }

    /// Alternatives, each a list of what has to be met.
    fn lines(&self) -> Vec<Vec<&Self>> {
        match self {
            Self::And(one, other) => {
                let (one, other) = (one.lines(), other.lines());
                let pairs = one
                    .iter()
                    .flat_map(|one| other.iter().map(move |other| (one, other)));
                pairs
                    .map(|(one, other)| [&one[..], other].concat())
                    .collect()
            }
            Self::Or(one, other) => [one.lines(), other.lines()].concat(),
            leaf => vec![vec![leaf]],
        }
    }

    /// Whether a packet is meant.
    pub(super) fn is_met(&self, packet: &Packet) -> bool {
        self.lines().iter().any(|line| {
            let is_vlan = |leaf: &&&Self| matches!(leaf, Self::Vlan(_));
            let (tags, leaves): (Vec<&Self>, Vec<&Self>) = line.iter().partition(is_vlan);
            let count = packet.tags.len();
            let counts = if leaves.is_empty() {
                count >= tags.len()
            } else {
                count == tags.len()
            };
            let mut pairs = tags.iter().zip(&packet.tags);
            let id = |(ask, (_, id)): (&&Self, &(u16, u16))| match ask {
                Self::Vlan(Some(asked)) => *asked == id & 0xfff,
                _ => true,
            };
            counts && pairs.all(id) && leaves.iter().all(|leaf| leaf.leaf_is_met(packet))
        })
    }

    fn leaf_is_met(&self, packet: &Packet) -> bool {
        let is_type =
            |word: Option<&str>| word.is_none_or(|word| number(word) == packet.ether_type());
        match *self {
            Self::EtherProto(asked) => packet.ether_type() == asked,
            Self::Type(word) => is_type(Some(word)),
            Self::Proto(word, asked) => is_type(word) && packet.protocol() == Some(asked),
            Self::Transport("icmp") => is_type(Some("ip")) && packet.protocol() == Some(1),
            Self::Transport("icmp6") => is_type(Some("ip6")) && packet.protocol() == Some(58),
            Self::Transport(word) => packet.protocol() == Some(of_transport(word)),
            Self::Host(word, sides, asked) => {
                let ends = packet.addresses();
                is_type(word) && ends.is_some_and(|ends| sides.hold(ends, |end| end == asked))
            }
            Self::Net(word, sides, asked, bits) => {
                let begins = |end: IpAddr| {
                    end.is_ipv4() == asked.is_ipv4() && first(end, bits) == first(asked, bits)
                };
                let ends = packet.addresses();
                is_type(word) && ends.is_some_and(|ends| sides.hold(ends, begins))
            }
            Self::Port(word, sides, asked) => {
                let is_one = word.is_none_or(|word| packet.protocol() == Some(of_transport(word)));
                let ports = packet.ports();
                is_one && ports.is_some_and(|ports| sides.hold(ports, |port| port == asked))
            }
            Self::Vlan(_) | Self::And(..) | Self::Or(..) => unreachable!("no leaf"),
        }
    }
}

fn masked(address: IpAddr, bits: u32) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            IpAddr::V4((address.to_bits() & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            IpAddr::V6((address.to_bits() & mask).into())
        }
    }
}

impl fmt::Display for Sides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Source => "src ",
            Self::Destination => "dst ",
            Self::Either => "",
            Self::Both => "src and dst ",
        })
    }
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |word: &Option<&str>| word.map(|word| format!("{word} ")).unwrap_or_default();
        match self {
            Self::EtherProto(IPV4) => write!(f, "ether proto \\ip"),
            Self::EtherProto(number) => write!(f, "ether proto {number:#x}"),
            Self::Vlan(None) => write!(f, "vlan"),
            Self::Vlan(Some(id)) => write!(f, "vlan {id}"),
            Self::Type(word) | Self::Transport(word) => f.write_str(word),
            Self::Proto(of, number) => write!(f, "{}proto {number}", word(of)),
            Self::Host(of, sides, address) => write!(f, "{}{sides}host {address}", word(of)),
            Self::Net(of, sides, address, bits) => {
                write!(f, "{}{sides}net {address}/{bits}", word(of))
            }
            Self::Port(of, sides, port) => write!(f, "{}{sides}port {port}", word(of)),
            // From the left without, from the right with parentheses: `and` and `or` are equal.
            Self::And(one, other) => write!(f, "{one} and {}", Behind(other)),
            Self::Or(one, other) => write!(f, "{one} or {}", Behind(other)),
        }
    }
}

struct Behind<'a>(&'a Ask);

impl fmt::Display for Behind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Ask::And(..) | Ask::Or(..) => write!(f, "({})", self.0),
            leaf => write!(f, "{leaf}"),
        }
    }
}
