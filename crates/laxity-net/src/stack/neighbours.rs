//! Hardware addresses of neighbours: asked for, answered and kept once, for all clients of a stack (ARP, RFC 826; neighbour discovery, RFC 4861).
//!
//! Only who was asked for is believed, and only until there is an answer: what lives is replaced by nobody. A question teaches nothing; it is answered to whoever
//! asked.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use laxity_model::nif::host;
use laxity_model::nif::link::Memory;
use laxity_model::{Instant, Span};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, Icmpv6Packet, Icmpv6Repr, IpProtocol,
    Ipv6Packet, Ipv6Repr, NdiscNeighborFlags, NdiscRepr,
};

use super::Config;
use super::wire::{ARP, HEADER, Hardware, IPV6, head, is_one_cards};
use crate::buffers::{Buffer, Filled, Pool, Sending};

/// How long an answer holds.
pub(super) const LIFE: Span = Span::from_secs(60);
/// The time between two questions for the same neighbour.
pub(super) const PATIENCE: Span = Span::from_secs(1);
/// So often a neighbour is asked for, for a packet that waits so many times as long: a question or an answer may be lost, or late on a busy host (RFC 4861, section 10: three).
const TRIES: u64 = 3;
/// Questions in a second, for whomever.
pub(super) const QUESTIONS: u32 = 64;
/// Neighbours that are known or asked for.
pub(super) const MOST: usize = 256;
/// Packets that wait for an answer.
pub(super) const WAITING: usize = 16;

/// What became of questions and answers, and of what waited for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NeighbourAccount {
    /// Questions that were sent.
    pub asked: u64,
    /// Answers that were believed.
    pub learned: u64,
    /// Answers nobody had asked for, or that came after another.
    pub disbelieved: u64,
    /// Questions of others that were answered.
    pub answered: u64,
    /// Packets that were lost for want of an answer, or of room to wait.
    pub lost: u64,
}

#[derive(Clone, Copy)]
enum State {
    Asked(Instant),
    Known(Hardware, Instant),
}

/// A frame, and how it is to be sent.
type Frame<M> = (Buffer<M, Filled>, Sending);

/// The table, its questions, and what waits for their answers.
pub(super) struct Neighbours<M: Memory> {
    hardware: Hardware,
    ours: Vec<(IpAddr, u8)>,
    pool: Pool<M>,
    table: BTreeMap<IpAddr, State>,
    waiting: VecDeque<(IpAddr, Instant, Frame<M>)>,
    /// Questions in the second that began then.
    second: (Instant, u32),
    pub(super) account: NeighbourAccount,
}

impl<M: Memory> Neighbours<M> {
    pub(super) fn new(config: &Config, pool: Pool<M>) -> Self {
        let known = config.neighbours.iter();
        let known = known.map(|(who, at)| (*who, State::Known(*at, Instant::MAX)));
        Self {
            hardware: config.hardware,
            ours: config.addresses.clone(),
            pool,
            table: known.collect(),
            waiting: VecDeque::new(),
            second: (Instant::ZERO, 0),
            account: NeighbourAccount::default(),
        }
    }

    /// A neighbour's hardware address and until when it holds; `None`: it has been asked for.
    pub(super) fn find(&mut self, address: IpAddr, now: Instant) -> Option<(Hardware, Instant)> {
        match self.table.get(&address) {
            Some(State::Known(hardware, until)) if now < *until => {
                return Some((*hardware, *until));
            }
            Some(State::Asked(at)) if now < *at + PATIENCE => return None,
            _ => {}
        }
        if self.makes_room(address, now) && self.may_ask(now) {
            self.table.insert(address, State::Asked(now));
            self.ask(address);
        }
        None
    }

    /// Nobody who is known gives way to one who is only asked for.
    fn makes_room(&mut self, address: IpAddr, now: Instant) -> bool {
        if self.table.len() < MOST || self.table.contains_key(&address) {
            return true;
        }
        let gone = self.table.iter().find(|(_, state)| match state {
            State::Asked(at) => *at + PATIENCE <= now,
            State::Known(_, until) => *until <= now,
        });
        let gone = gone.map(|(address, _)| *address);
        gone.is_some_and(|gone| self.table.remove(&gone).is_some())
    }

    fn may_ask(&mut self, now: Instant) -> bool {
        if self.second.0 + Span::from_secs(1) <= now {
            self.second = (now, 0);
        }
        self.second.1 += 1;
        self.second.1 <= QUESTIONS
    }

    /// A packet waits for the answer, with its Ethernet header but for the destination; the oldest goes if there are too many.
    pub(super) fn wait(
        &mut self,
        address: IpAddr,
        now: Instant,
        frame: (Buffer<M, Filled>, Sending),
    ) {
        if self.waiting.len() == WAITING {
            self.waiting.pop_front();
            self.account.lost += 1;
        }
        self.waiting
            .push_back((address, now + PATIENCE * TRIES, frame));
    }

    /// Whoever has waited for too long is lost; for the others the question is asked again where it is time. When to look again.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Instant> {
        while let Some((_, until, _)) = self.waiting.front()
            && *until <= now
        {
            self.waiting.pop_front();
            self.account.lost += 1;
        }
        let mut next = self.waiting.front()?.1;
        for at in 0..self.waiting.len() {
            let address = self.waiting[at].0;
            self.find(address, now);
            let again = match self.table.get(&address) {
                Some(State::Asked(at)) if now < *at + PATIENCE => *at + PATIENCE,
                // There is no room to ask, or there were too many questions in this second.
                _ => now + PATIENCE,
            };
            next = next.min(again);
        }
        Some(next)
    }

    /// Whether this is the address of one card, and not of ours.
    fn is_a_neighbours(&self, hardware: Hardware) -> bool {
        is_one_cards(hardware) && hardware != self.hardware
    }

    fn learn(&mut self, address: IpAddr, hardware: Hardware, now: Instant) {
        let is_asked =
            matches!(self.table.get(&address), Some(State::Asked(at)) if now < *at + PATIENCE);
        if !is_asked || !self.is_a_neighbours(hardware) {
            self.account.disbelieved += 1;
            return;
        }
        self.account.learned += 1;
        self.table
            .insert(address, State::Known(hardware, now + LIFE));
        for (waits, until, (mut frame, sending)) in std::mem::take(&mut self.waiting) {
            if waits == address {
                frame.bytes_mut()[..6].copy_from_slice(&hardware);
                if frame.send(sending).is_err() {
                    self.account.lost += 1;
                }
            } else {
                self.waiting.push_back((waits, until, (frame, sending)));
            }
        }
    }

    /// A frame of ARP: a question for one of our addresses is answered.
    pub(super) fn arp(&mut self, frame: &[u8], now: Instant) {
        let packet = ArpPacket::new_checked(&frame[HEADER..]);
        let Ok(ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr: EthernetAddress(from),
            source_protocol_addr: who,
            target_hardware_addr: EthernetAddress(to),
            target_protocol_addr: whom,
        }) = packet.and_then(|packet| ArpRepr::parse(&packet))
        else {
            return;
        };
        // Whoever sends for another is a forger.
        let is_own = frame[6..12] == from;
        let is_ours = |address: Ipv4Addr| self.ours.iter().any(|(own, _)| *own == address);
        match operation {
            _ if !is_own || is_ours(who) || !is_ours(whom) => self.account.disbelieved += 1,
            // Who looks whether an address is free has none yet (RFC 5227, section 2.1.1).
            ArpOperation::Request
                if self.is_a_neighbours(from)
                    && (who.is_unspecified() || host::check(who.into(), &self.ours).is_ok()) =>
            {
                self.account.answered += 1;
                self.send_arp(ArpOperation::Reply, whom, from, who);
            }
            ArpOperation::Reply if to == self.hardware => self.learn(who.into(), from, now),
            _ => self.account.disbelieved += 1,
        }
    }

    /// A packet of neighbour discovery; hop limit 255 says that it comes from this link (RFC 4861, section 7.1).
    pub(super) fn discovery(&mut self, frame: &[u8], now: Instant) {
        let Ok(ip) = Ipv6Packet::new_checked(&frame[HEADER..]) else {
            return;
        };
        let (from, to) = (ip.src_addr(), ip.dst_addr());
        let icmp = Icmpv6Packet::new_checked(ip.payload());
        let read = icmp.and_then(|icmp| {
            Icmpv6Repr::parse(&from, &to, &icmp, &ChecksumCapabilities::default())
        });
        let (255, Ok(Icmpv6Repr::Ndisc(said))) = (ip.hop_limit(), read) else {
            return;
        };
        let is_ours = |address: Ipv6Addr| self.ours.iter().any(|(own, _)| *own == address);
        let mut asker = Hardware::default();
        asker.copy_from_slice(&frame[6..12]);
        match said {
            NdiscRepr::NeighborSolicit { target_addr, .. }
                if is_ours(target_addr)
                    && !is_ours(from)
                    && self.is_a_neighbours(asker)
                    && host::check(from.into(), &self.ours).is_ok() =>
            {
                self.account.answered += 1;
                self.advertise(target_addr, from, asker);
            }
            NdiscRepr::NeighborAdvert {
                flags,
                target_addr,
                lladdr,
            } => {
                let said = lladdr.map_or(&frame[6..12], |said| {
                    let bytes: &[u8] = &frame[6..12];
                    if said.as_bytes() == bytes { bytes } else { &[] }
                });
                match said.try_into() {
                    Ok(hardware)
                        if flags.contains(NdiscNeighborFlags::SOLICITED) && is_ours(to) =>
                    {
                        self.learn(target_addr.into(), hardware, now);
                    }
                    _ => self.account.disbelieved += 1,
                }
            }
            NdiscRepr::NeighborSolicit { .. } => self.account.disbelieved += 1,
            _ => {}
        }
    }

    fn ask(&mut self, address: IpAddr) {
        self.account.asked += 1;
        for (own, _) in &self.ours {
            match (*own, address) {
                (IpAddr::V4(own), IpAddr::V4(whom)) => {
                    return self.send_arp(ArpOperation::Request, own, [0; 6], whom);
                }
                (IpAddr::V6(own), IpAddr::V6(whom)) => return self.solicit(own, whom),
                _ => {}
            }
        }
    }

    fn send_arp(&self, operation: ArpOperation, own: Ipv4Addr, to: Hardware, whom: Ipv4Addr) {
        let said = ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr: EthernetAddress(self.hardware),
            source_protocol_addr: own,
            target_hardware_addr: EthernetAddress(to),
            target_protocol_addr: whom,
        };
        let to = if operation == ArpOperation::Request {
            [0xff; 6]
        } else {
            to
        };
        self.send(to, ARP, said.buffer_len(), |packet| {
            said.emit(&mut ArpPacket::new_unchecked(packet));
        });
    }

    fn solicit(&self, own: Ipv6Addr, whom: Ipv6Addr) {
        let [.., a, b, c] = whom.octets();
        let tail = u16::from_be_bytes([b, c]);
        let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(a), tail);
        let said = NdiscRepr::NeighborSolicit {
            target_addr: whom,
            lladdr: Some(EthernetAddress(self.hardware).into()),
        };
        self.send_discovery(own, group, [0x33, 0x33, 0xff, a, b, c], said);
    }

    fn advertise(&self, own: Ipv6Addr, whom: Ipv6Addr, to: Hardware) {
        let said = NdiscRepr::NeighborAdvert {
            flags: NdiscNeighborFlags::SOLICITED | NdiscNeighborFlags::OVERRIDE,
            target_addr: own,
            lladdr: Some(EthernetAddress(self.hardware).into()),
        };
        self.send_discovery(own, whom, to, said);
    }

    fn send_discovery(&self, own: Ipv6Addr, whom: Ipv6Addr, to: Hardware, said: NdiscRepr<'_>) {
        let said = Icmpv6Repr::Ndisc(said);
        let ip = Ipv6Repr {
            src_addr: own,
            dst_addr: whom,
            next_header: IpProtocol::Icmpv6,
            payload_len: said.buffer_len(),
            hop_limit: 255,
        };
        self.send(to, IPV6, ip.buffer_len() + said.buffer_len(), |packet| {
            let mut packet = Ipv6Packet::new_unchecked(packet);
            ip.emit(&mut packet);
            let mut inner = Icmpv6Packet::new_unchecked(packet.payload_mut());
            said.emit(&own, &whom, &mut inner, &ChecksumCapabilities::default());
        });
    }

    /// Whoever finds no buffer free is as if lost: the question is asked again.
    fn send(&self, to: Hardware, kind: u16, length: usize, write: impl FnOnce(&mut [u8])) {
        let Ok(mut buffer) = self.pool.take() else {
            return;
        };
        if let Some(frame) = buffer.space().get_mut(..HEADER + length) {
            head(frame, to, self.hardware, kind);
            write(&mut frame[HEADER..]);
            if let Ok(filled) = buffer.filled(HEADER + length) {
                filled.send(Sending::default()).ok();
            }
        }
    }
}
