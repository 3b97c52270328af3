//! The conditions of a filter that are not made of others.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;

use super::condition::Condition;
use super::grammar::Parser;
use super::value::{bits, host, net, number};
use super::words::{FilterError, Word};
use crate::nif::frame::{
    ARP, Behind, End, FIRST_ETHER_TYPE, Field, IPV4, IPV6, RARP, SCTP, TAGS, TCP, UDP, Words,
    is_extension,
};

const ICMP: u8 = 1;
const ICMP6: u8 = 58;

/// Whose address or port.
#[derive(Clone, Copy)]
enum Sides {
    One(End),
    Either,
    Both,
}

impl Sides {
    /// What is asked of one end, of these.
    fn on(self, base: Condition, ask: impl Fn(Condition, End) -> Condition) -> Vec<Condition> {
        match self {
            Self::One(end) => vec![ask(base, end)],
            Self::Either => vec![ask(base, End::Source), ask(base, End::Destination)],
            Self::Both => vec![ask(ask(base, End::Source), End::Destination)],
        }
    }
}

impl<'t> Parser<'_, 't> {
    /// One condition without `vlan`, as its alternatives.
    pub(super) fn primitive(&mut self) -> Result<Vec<Condition>, FilterError> {
        let word = self.take();
        match word.text {
            "ether" => self.ether(),
            "ip" => self.network(&[IPV4]),
            "ip6" => self.network(&[IPV6]),
            "arp" => self.network(&[ARP]),
            "rarp" => self.network(&[RARP]),
            "tcp" => self.transport(TCP),
            "udp" => self.transport(UDP),
            "sctp" => self.transport(SCTP),
            "icmp" => Ok(protocols(&[IPV4], ICMP)),
            "icmp6" => Ok(protocols(&[IPV6], ICMP6)),
            "proto" => self.protocol(&[IPV4, IPV6]),
            "src" | "dst" => {
                let sides = self.sides(word);
                let what = self.take();
                match what.text {
                    "port" => self.port(sides, &[TCP, UDP, SCTP]),
                    _ => self.addresses(what, sides, &[IPV4, ARP, RARP, IPV6]),
                }
            }
            "host" | "net" => self.addresses(word, Sides::Either, &[IPV4, ARP, RARP, IPV6]),
            "port" => self.port(Sides::Either, &[TCP, UDP, SCTP]),
            "tail" => self.tail(word),
            _ => Err(word.expected(
                "one of ether, vlan, ip, ip6, arp, rarp, tcp, udp, sctp, icmp, icmp6, proto, host, net, port, src, dst, tail (every condition begins with its own words: `port 80 or port 443`)",
            )),
        }
    }

    fn ether(&mut self) -> Result<Vec<Condition>, FilterError> {
        let word = self.take();
        match word.text {
            "proto" => {}
            "host" | "src" | "dst" => {
                return Err(word.wrong(
                    "hardware addresses are not looked at; `ether proto` is what there is",
                ));
            }
            _ => return Err(word.expected("`proto`")),
        }
        let value = self.take();
        let ether_type = match value.text.trim_start_matches('\\') {
            "ip" => IPV4,
            "ip6" => IPV6,
            "arp" => ARP,
            "rarp" => RARP,
            _ => number(value, FIRST_ETHER_TYPE.into(), u16::MAX.into())? as u16,
        };
        if TAGS.contains(&ether_type) {
            return Err(value.wrong("that is a tag, and looked behind: write `vlan`"));
        }
        Ok(vec![of_type(ether_type)])
    }

    /// Behind `ip` and the like.
    fn network(&mut self, ether_types: &[u16]) -> Result<Vec<Condition>, FilterError> {
        let word = self.peek();
        match word.text {
            "proto" if ether_types == [IPV4] || ether_types == [IPV6] => {
                self.take();
                self.protocol(ether_types)
            }
            "src" | "dst" => {
                self.take();
                let sides = self.sides(word);
                let what = self.take();
                self.addresses(what, sides, ether_types)
            }
            "host" | "net" => {
                self.take();
                self.addresses(word, Sides::Either, ether_types)
            }
            _ => Ok(ether_types.iter().map(|asked| of_type(*asked)).collect()),
        }
    }

    /// Behind `tcp` and the like.
    fn transport(&mut self, number: u8) -> Result<Vec<Condition>, FilterError> {
        let word = self.peek();
        let sides = match word.text {
            "port" => Sides::Either,
            "src" | "dst" => {
                self.take();
                self.sides(word)
            }
            _ => return Ok(protocols(&[IPV4, IPV6], number)),
        };
        let what = self.take();
        if what.text != "port" {
            return Err(what.expected("`port`"));
        }
        self.port(sides, &[number])
    }

    /// Behind `src` or `dst`, which was taken.
    fn sides(&mut self, first: Word<'t>) -> Sides {
        let (end, other) = match first.text {
            "src" => (End::Source, "dst"),
            _ => (End::Destination, "src"),
        };
        let sides = match (self.peek().text, self.ahead(1).text == other) {
            ("or" | "||", true) => Sides::Either,
            ("and" | "&&", true) => Sides::Both,
            _ => return Sides::One(end),
        };
        self.take();
        self.take();
        sides
    }

    fn protocol(&mut self, ether_types: &[u16]) -> Result<Vec<Condition>, FilterError> {
        let word = self.take();
        let number = number(word, 0, u8::MAX.into())? as u8;
        let all = protocols(ether_types, number);
        if all.is_empty() {
            return Err(word.wrong(format!(
                "{number} is an extension header of IPv6, and looked behind: no packet has it as its protocol"
            )));
        }
        Ok(all)
    }

    fn port(&mut self, sides: Sides, numbers: &[u8]) -> Result<Vec<Condition>, FilterError> {
        let port = number(self.take(), 0, u16::MAX.into())?;
        let mut all = Vec::new();
        for base in numbers.iter().flat_map(|n| protocols(&[IPV4, IPV6], *n)) {
            let base = base.with(Field::HAS_PORTS, 1);
            let at = |base: Condition, end: End| base.with(end.port(), port);
            all.extend(sides.on(base, at));
        }
        Ok(all)
    }

    /// Behind `host` or `net`, which was taken.
    fn addresses(
        &mut self,
        what: Word<'t>,
        sides: Sides,
        ether_types: &[u16],
    ) -> Result<Vec<Condition>, FilterError> {
        if !matches!(what.text, "host" | "net") {
            return Err(what.expected("`host` or `net`"));
        }
        let word = self.take();
        let (address, mask) = match what.text {
            "host" => (host(word)?, u128::MAX),
            _ => net(word)?,
        };
        let (of_version, number): (&[u16], _) = match address {
            IpAddr::V4(address) => (&[IPV4, ARP, RARP], address.to_bits().into()),
            IpAddr::V6(address) => (&[IPV6], address.to_bits()),
        };
        let mut all = Vec::new();
        for ether_type in ether_types
            .iter()
            .filter(|asked| of_version.contains(asked))
        {
            let base = of_type(*ether_type).with(Field::HAS_ADDRESSES, 1);
            let at =
                |base: Condition, end: End| base.with_bits(end.address(mask), end.address(number));
            all.extend(sides.on(base, at));
        }
        if all.is_empty() {
            return Err(word.expected("an address of the other version of IP"));
        }
        Ok(all)
    }

    fn tail(&mut self, word: Word<'t>) -> Result<Vec<Condition>, FilterError> {
        let Some(tail) = self.tail else {
            return Err(word.wrong("the keys of this driver have no tail"));
        };
        let (value, mask) = bits(self.take(), tail.bits())?;
        let ask = |base: Condition| {
            let (mut under, mut words) = (Words::default(), Words::default());
            Field::TAIL.put(&mut under, mask);
            Field::TAIL.put(&mut words, value);
            base.with(Field::HAS_TAIL, 1).with_bits(under, words)
        };
        Ok(match tail.behind() {
            Behind::EtherType => vec![ask(Condition::ALL)],
            Behind::Udp => {
                let udp = protocols(&[IPV4, IPV6], UDP).into_iter();
                udp.map(|udp| ask(udp.with(Field::HAS_PORTS, 1))).collect()
            }
        })
    }
}

fn of_type(ether_type: u16) -> Condition {
    Condition::ALL.with(Field::ETHER_TYPE, ether_type.into())
}

/// Packets of a protocol, over each of these that can have it.
fn protocols(ether_types: &[u16], number: u8) -> Vec<Condition> {
    let can = |ether_type: &&u16| **ether_type != IPV6 || !is_extension(number);
    let over = ether_types.iter().filter(can).map(|over| of_type(*over));
    over.map(|over| {
        over.with(Field::HAS_PROTOCOL, 1)
            .with(Field::PROTOCOL, number.into())
    })
    .collect()
}
