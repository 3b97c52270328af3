//! Who has which flow, decided at the hook: before a packet is queued anywhere, it has a client, and costs that one a credit.
//!
//! A client has as many credits as it has [given](Early::give): one for each piece of memory that was posted for it. So the memory posted for one is never
//! spent on another, and a flood for a client without credits is dropped at the hook, as the cheapest thing that a kernel does with a packet. Give no
//! more credits than memory was posted: a packet that has taken a credit and finds no memory is lost, and [counted below](super::XdpLink::lost_below) with its credit. One that is longer than that memory is dropped before it costs any.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use laxity_model::Instant;
use laxity_model::nif::link::Received;
use rustix::io::{Errno, Result};

use super::program::{self, Key, Maps, Rest};
use super::rings::Incoming;
use super::umem::{Pool, UmemFrame};
use super::{SOCKETS, received};
use crate::net::bpf::assemble::Instruction;
use crate::net::bpf::{Kind, Map};
use crate::net::call::Mapping;
use crate::net::error::OpenCause;

/// How many there may be, and what becomes of the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EarlySettings {
    /// The most flows at a time.
    pub flows: u32,
    /// The most clients, with client 0.
    pub clients: u32,
    /// What becomes of packets that are of no client's flow.
    pub rest: Rest,
}

/// What a client wants of all that arrives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Flow {
    /// Whether it is TCP; else it is UDP.
    pub is_tcp: bool,
    /// The address and port that packets are sent to.
    pub own: SocketAddr,
    /// Those that they come from; `None`: from anywhere that no other flow names.
    pub far: Option<SocketAddr>,
}

impl Flow {
    /// As the program makes it of a packet; `None` where one address is of IPv4 and the other of IPv6.
    fn key(&self) -> Option<Key> {
        let words = |address: Option<SocketAddr>| -> [u32; 4] {
            let mut bytes = [0; 16];
            match address.map(|address| address.ip()) {
                Some(IpAddr::V4(address)) => bytes[..4].copy_from_slice(&address.octets()),
                Some(IpAddr::V6(address)) => bytes = address.octets(),
                None => {}
            }
            std::array::from_fn(|at| {
                u32::from_ne_bytes(std::array::from_fn(|byte| bytes[4 * at + byte]))
            })
        };
        if self
            .far
            .is_some_and(|far| far.is_ipv4() != self.own.is_ipv4())
        {
            return None;
        }
        let [a, b, c, d] = words(self.far);
        let [e, f, g, h] = words(Some(self.own));
        let [i, j] = self.far.map_or([0; 2], |far| far.port().to_be_bytes());
        let [k, l] = self.own.port().to_be_bytes();
        let ports = u32::from_ne_bytes([i, j, k, l]);
        let mut kind = if self.is_tcp {
            program::TCP
        } else {
            program::UDP
        };
        if self.own.is_ipv6() {
            kind |= program::IPV6;
        }
        if self.far.is_some() {
            kind |= program::NAMED;
        }
        Some([a, b, c, d, e, f, g, h, ports, kind as u32])
    }
}

/// The clients of an interface that are found at its hook.
#[derive(Debug)]
pub struct Early {
    flows: Map<Key, [u32; 2]>,
    credits: Mapping,
    /// Keeps it open.
    _credits: Map<u32, [u64; 3]>,
    clients: u32,
}

impl Early {
    /// With the program that does so, for packets of so many bytes at the most.
    pub(super) fn new(
        settings: &EarlySettings,
        longest: usize,
        sockets: impl AsFd,
    ) -> std::result::Result<(Self, Vec<Instruction>), OpenCause> {
        let refused = |errno| OpenCause::of_bpf("map", errno);
        let clients = settings.clients.max(1);
        let flows = Map::new(Kind::Hash, settings.flows.max(1)).map_err(refused)?;
        let credits: Map<u32, [u64; 3]> = Map::new(Kind::Array, clients).map_err(refused)?;
        let maps = Maps {
            flows: flows.as_fd(),
            credits: credits.as_fd(),
            sockets,
        };
        let program = program::early(&maps, settings.rest, longest as i32);
        let early = Self {
            credits: credits.mapped(clients).map_err(refused)?,
            flows,
            _credits: credits,
            clients,
        };
        Ok((early, program))
    }

    /// From now on packets of this flow are this client's, and go to the socket of this number; 0 is the interface's own.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a flow from IPv4 to IPv6, a client or a socket beyond the most; `E2BIG` if there are too many flows.
    pub fn steer(&self, flow: &Flow, client: u32, socket: u32) -> Result<()> {
        if client >= self.clients || socket >= SOCKETS {
            return Err(Errno::INVAL);
        }
        let key = flow.key().ok_or(Errno::INVAL)?;
        self.flows.insert(key, [client, socket])
    }

    /// Packets of this flow are nobody's again. Whether they were somebody's.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    pub fn forget(&self, flow: &Flow) -> Result<bool> {
        flow.key().map_or(Ok(false), |key| self.flows.remove(key))
    }

    /// Gives a client so many credits more. A client beyond the most has none.
    #[inline]
    pub fn give(&self, client: u32, credits: u32) {
        if let Some((credit, ..)) = self.account(client) {
            credit.fetch_add(credits.into(), Ordering::Release);
        }
    }

    /// Takes all its credits away from a client; how many there were.
    pub fn take_back(&self, client: u32) -> u32 {
        // What the hook took too much, and has yet to give back, stays: else it would be a credit for nothing.
        let all = |has: i64| (has > 0).then_some(0);
        let account = self.account(client);
        let had = account.and_then(|(credit, ..)| {
            let taken = credit.fetch_update(Ordering::AcqRel, Ordering::Acquire, all);
            taken.ok()
        });
        had.map_or(0, |had| had.try_into().unwrap_or(u32::MAX))
    }

    /// The credits that a client has left.
    pub fn credits(&self, client: u32) -> u32 {
        let account = self.account(client);
        let has = account.map_or(0, |(credit, ..)| credit.load(Ordering::Acquire));
        has.try_into().unwrap_or_default()
    }

    /// Packets of a client that were dropped for want of a credit.
    pub fn dropped(&self, client: u32) -> u64 {
        let account = self.account(client);
        account.map_or(0, |(_, dropped, _)| dropped.load(Ordering::Acquire))
    }

    /// Packets of all clients that were dropped so, and those that were longer than the memory posted for them.
    pub(super) fn all_dropped(&self) -> [u64; 2] {
        let each = (0..self.clients).filter_map(|client| self.account(client));
        each.fold([0; 2], |[none, long], (_, dropped, too_long)| {
            let [more, longer] = [dropped, too_long].map(|count| count.load(Ordering::Acquire));
            [none + more, long + longer]
        })
    }

    #[inline]
    fn account(&self, client: u32) -> Option<(&AtomicI64, &AtomicU64, &AtomicU64)> {
        const EACH: usize = size_of::<[u64; 3]>();
        if client >= self.clients {
            return None;
        }
        let place = self.credits.place(client as usize * EACH, EACH);
        // SAFETY: three words lie there, aligned, which both sides change as a whole only, and which are mapped for as long as this lives.
        Some(unsafe {
            (
                AtomicI64::from_ptr(place.cast()),
                AtomicU64::from_ptr(place.add(8).cast()),
                AtomicU64::from_ptr(place.add(16).cast()),
            )
        })
    }
}

/// A further socket of an interface, for clients that have a thread of their own: what is [steered](Early::steer) to it arrives there, and only there.
///
/// Memory is posted for it, and frames are sent, by the interface.
#[derive(Debug)]
pub struct EarlySocket {
    pub(super) number: u32,
    pub(super) socket: Arc<OwnedFd>,
    pub(super) receive: Incoming<libc::xdp_desc>,
    pub(super) pool: Arc<Pool>,
    pub(super) ahead: Option<i64>,
}

impl EarlySocket {
    /// Its number, for [`Early::steer`].
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The packet that arrived first of those that were not taken yet; `None` if there is none now.
    #[inline]
    pub fn receive(&mut self, now: Instant) -> Option<Received<UmemFrame>> {
        loop {
            let packet = self.receive.take()?;
            // Nothing is there, that was reclaimed meanwhile.
            if let Some(memory) = self.pool.back_early(packet.addr) {
                return Some(received(packet, memory, true, self.ahead, now));
            }
        }
    }
}

impl AsFd for EarlySocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_keyed_as_their_packets_are() {
        let flow = |own: &str, far: Option<&str>| Flow {
            is_tcp: false,
            own: own.parse().unwrap(),
            far: far.map(|far| far.parse().unwrap()),
        };
        let key = flow("10.0.0.2:2000", Some("10.0.0.1:1000")).key().unwrap();
        let bytes: Vec<u8> = key.iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(bytes[..4], [10, 0, 0, 1]);
        assert_eq!(bytes[16..20], [10, 0, 0, 2]);
        assert_eq!(bytes[32..36], [3, 0xe8, 7, 0xd0]);
        assert_eq!(key[9], 17 | 1 << 9);
        let from_anywhere = flow("10.0.0.2:2000", None).key().unwrap();
        assert_eq!(from_anywhere[..4], [0; 4]);
        assert_eq!(from_anywhere[8].to_ne_bytes(), [0, 0, 7, 0xd0]);
        assert_eq!(from_anywhere[9], 17);
        let six = flow("[a00:2::]:2000", None).key().unwrap();
        assert_eq!(
            (six[..8] == from_anywhere[..8], six[9]),
            (true, 17 | 1 << 8)
        );
        assert_eq!(flow("10.0.0.2:1", Some("[::1]:1")).key(), None);
    }
}
