//! Datagrams.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use laxity_model::base::bell::Bell;
use laxity_model::nif::link::Memory;
use laxity_model::{Instant, Span};
use smoltcp::socket::udp;
use smoltcp::wire::IpAddress;

use super::blocking::{Mode, Way, attempt};
use crate::lock;
use crate::stack::{Endpoint, Stack};

/// Headers of IPv4 and UDP, and of IPv6 and UDP, in bytes.
const HEADERS: [usize; 2] = [28, 48];
/// The longest datagram that may arrive, in bytes.
const LONGEST: usize = 65_536;

/// A UDP socket with a client of its own: its queue is its client's buffers, and what finds none of them is the driver's to
/// [count](crate::Driver::account_of).
pub struct UdpSocket<M: Memory + 'static> {
    stack: Stack<M>,
    endpoint: Mutex<Endpoint<M>>,
    bell: Arc<Bell>,
    mode: Mode,
    local: SocketAddr,
}

impl<M: Memory + 'static> UdpSocket<M> {
    /// Takes what comes to one of the stack's addresses and this port. Whether another has it is known when the driver has answered: the first call
    /// tells.
    ///
    /// # Errors
    ///
    /// [`AddrNotAvailable`](ErrorKind::AddrNotAvailable): not an address of the stack; [`InvalidInput`](ErrorKind::InvalidInput) for port 0.
    pub fn bind(stack: &Stack<M>, local: SocketAddr) -> io::Result<Self> {
        let common = &stack.0.common;
        let mut addresses = common.config.addresses.iter();
        if !addresses.any(|(own, _)| *own == local.ip()) {
            return Err(ErrorKind::AddrNotAvailable.into());
        }
        if local.port() == 0 {
            return Err(ErrorKind::InvalidInput.into());
        }
        let bell = Arc::<Bell>::default();
        let asked = common.early(false, (local, None), &bell);
        let (queue, registration) = asked.map_err(io::Error::other)?;
        let [receive, send] = [LONGEST, common.config.window.max(common.config.mtu)].map(|bytes| {
            udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; 16], vec![0; bytes])
        });
        let mut socket = udp::Socket::new(receive, send);
        // A new socket and a port that is not 0: there is nothing to fail.
        socket.bind((local.ip(), local.port())).ok();
        let now = (common.clock)();
        let common = Arc::clone(common);
        let endpoint =
            Endpoint::with_socket(common, queue, registration, socket, now).take_singly();
        Ok(Self {
            stack: stack.clone(),
            endpoint: endpoint.into(),
            bell,
            mode: Mode::default(),
            local,
        })
    }

    fn attempt<T>(
        &self,
        way: Way,
        answer: impl FnMut(&mut Endpoint<M>, Instant) -> Option<io::Result<T>>,
    ) -> io::Result<T> {
        let (place, mode) = ((&self.endpoint, &*self.bell), (&self.mode, way));
        let common = &self.stack.0.common;
        attempt(common, place, mode, ErrorKind::AddrInUse, answer)
    }

    /// Sends a datagram; how many bytes that were.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](ErrorKind::InvalidInput): longer than a packet, or to nobody; otherwise as [`TcpStream::send`](super::TcpStream::send);
    /// [`AddrInUse`](ErrorKind::AddrInUse).
    pub fn send_to(&self, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        let most = self.stack.0.common.config.mtu - HEADERS[usize::from(to.is_ipv6())];
        if bytes.len() > most || to.is_ipv4() != self.local.is_ipv4() {
            return Err(ErrorKind::InvalidInput.into());
        }
        self.attempt(Way::Out, |endpoint, _| {
            let socket = endpoint.socket::<udp::Socket<'_>>()?;
            match socket.send_slice(bytes, smoltcp::wire::IpEndpoint::from(to)) {
                Ok(()) => Some(Ok(bytes.len())),
                Err(udp::SendError::BufferFull) => None,
                Err(udp::SendError::Unaddressable) => Some(Err(ErrorKind::InvalidInput.into())),
            }
        })
    }

    /// Receives the datagram that waits for the longest time: how many bytes, and from whom. What does not fit is cut.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](ErrorKind::WouldBlock), [`TimedOut`](ErrorKind::TimedOut), [`AddrInUse`](ErrorKind::AddrInUse).
    pub fn recv_from(&self, into: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.attempt(Way::In, |endpoint, now| {
            loop {
                let socket = endpoint.socket::<udp::Socket<'_>>()?;
                if let Ok((bytes, from)) = socket.recv() {
                    let count = bytes.len().min(into.len());
                    into[..count].copy_from_slice(&bytes[..count]);
                    let address = match from.endpoint.addr {
                        IpAddress::Ipv4(address) => IpAddr::V4(address),
                        IpAddress::Ipv6(address) => IpAddr::V6(address),
                    };
                    return Some(Ok((count, (address, from.endpoint.port).into())));
                }
                if !endpoint.take_one(now) {
                    return None;
                }
            }
        })
    }

    /// Sends what may go. When to come again, if nothing arrives before.
    pub fn poll(&self, now: Instant) -> Option<Instant> {
        lock(&self.endpoint).poll(now)
    }

    /// Whether its calls return at once.
    pub fn set_nonblocking(&self, does_not_block: bool) {
        self.mode.set_nonblocking(does_not_block);
    }

    /// The most that receiving waits; `None`: whatever it takes.
    pub fn set_read_timeout(&self, most: Option<Span>) {
        self.mode.set_most(Way::In, most);
    }

    /// Of this end.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }
}
