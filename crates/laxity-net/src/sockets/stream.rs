//! A connection.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use laxity_model::nif::link::Memory;
use laxity_model::{Instant, Span};
use smoltcp::socket::tcp;

use super::blocking::{Mode, Way, attempt};
use crate::lock;
use crate::stack::{Connection, Moved, Stack, Tuple};

/// A TCP connection with a client of its own. Dropped, what was written is still sent, by its [stack](Stack::poll); a peer that has all of it, and does not end within the stack's
/// [patience](crate::stack::Config::patience), is reset.
pub struct TcpStream<M: Memory + 'static> {
    stack: Stack<M>,
    connection: Arc<Connection<M>>,
    mode: Mode,
    is_read_shut: AtomicBool,
}

impl<M: Memory + 'static> TcpStream<M> {
    /// Connects, and waits until that is done.
    ///
    /// # Errors
    ///
    /// [`ConnectionRefused`](ErrorKind::ConnectionRefused), also of who does not answer in the stack's [patience](crate::stack::Config::patience); no address of its
    /// kind is ours; no port is free; the driver refuses a client.
    pub fn connect(stack: &Stack<M>, peer: SocketAddr) -> io::Result<Self> {
        let stream = Self::start(stack, peer)?;
        stream.mode.set_nonblocking(false);
        stream.attempt(Way::Out, |socket| match socket.state() {
            tcp::State::SynSent | tcp::State::SynReceived => None,
            tcp::State::Closed => Some(Err(ErrorKind::ConnectionRefused.into())),
            _ => Some(Ok(())),
        })?;
        Ok(stream)
    }

    /// Begins to connect. The stream does not block; it is connected when it takes or gives bytes.
    ///
    /// # Errors
    ///
    /// No address of its kind is ours, or no port is free.
    pub fn start(stack: &Stack<M>, peer: SocketAddr) -> io::Result<Self> {
        let tuple = stack.0.free_tuple(peer)?;
        let now = (stack.0.common.clock)();
        let connection = stack.0.connection(tuple, now).map_err(io::Error::other)?;
        {
            let mut endpoint = lock(&connection.endpoint);
            let (address, port) = tuple.local;
            endpoint.connect(peer.into(), (address, port).into());
            endpoint.poll(now);
        }
        let stream = Self::of(stack, connection);
        stream.set_nonblocking(true);
        Ok(stream)
    }

    pub(super) fn of(stack: &Stack<M>, connection: Arc<Connection<M>>) -> Self {
        Self {
            stack: stack.clone(),
            connection,
            mode: Mode::default(),
            is_read_shut: AtomicBool::new(false),
        }
    }

    fn attempt<T>(
        &self,
        way: Way,
        mut answer: impl FnMut(&mut tcp::Socket<'static>) -> Option<io::Result<T>>,
    ) -> io::Result<T> {
        let Connection { endpoint, bell, .. } = &*self.connection;
        let (place, mode) = ((endpoint, &**bell), (&self.mode, way));
        let common = &self.stack.0.common;
        attempt(common, place, mode, ErrorKind::Other, |endpoint, _| {
            endpoint.socket().and_then(&mut answer)
        })
    }

    /// Takes what arrived and sends what may go. When to come again, if nothing arrives before.
    pub fn poll(&self, now: Instant) -> Option<Instant> {
        lock(&self.connection.endpoint).poll(now)
    }

    /// Reads some bytes; 0: the peer has sent all. [`Read`] does the same.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](ErrorKind::WouldBlock), [`TimedOut`](ErrorKind::TimedOut), [`ConnectionReset`](ErrorKind::ConnectionReset), or that the driver refuses a
    /// client.
    pub fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() || self.is_read_shut.load(Ordering::Relaxed) {
            return Ok(0);
        }
        self.attempt(Way::In, |socket| {
            let is_beginning = matches!(
                socket.state(),
                tcp::State::SynSent | tcp::State::SynReceived | tcp::State::Listen
            );
            match socket.recv_slice(into) {
                Ok(0) => None,
                Ok(count) => Some(Ok(count)),
                Err(_) if is_beginning => None,
                Err(tcp::RecvError::Finished) => Some(Ok(0)),
                Err(tcp::RecvError::InvalidState) => Some(Err(ErrorKind::ConnectionReset.into())),
            }
        })
    }

    /// Writes some bytes into the connection's buffer. [`Write`] does the same.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](ErrorKind::WouldBlock), [`TimedOut`](ErrorKind::TimedOut), [`BrokenPipe`](ErrorKind::BrokenPipe), or that the driver refuses a client.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        self.attempt(Way::Out, |socket| match socket.send_slice(bytes) {
            Ok(0) => None,
            Ok(count) => Some(Ok(count)),
            Err(_) => match socket.state() {
                tcp::State::SynSent | tcp::State::SynReceived => None,
                _ => Some(Err(ErrorKind::BrokenPipe.into())),
            },
        })
    }

    /// Ends one way, or both: the peer reads to the end of what was written.
    pub fn shutdown(&self, how: Shutdown) {
        if how != Shutdown::Write {
            self.is_read_shut.store(true, Ordering::Relaxed);
        }
        if how != Shutdown::Read {
            self.with(tcp::Socket::close);
        }
    }

    /// Ends at once, and tells the peer so (a reset).
    pub fn abort(&self) {
        self.with(tcp::Socket::abort);
    }

    fn with(&self, act: impl FnOnce(&mut tcp::Socket<'static>)) {
        self.connection.with((self.stack.0.common.clock)(), act);
    }

    /// Whether what is written is sent at once, as it is unless somebody says otherwise, or a short segment waits until all before it are acknowledged.
    pub fn set_nodelay(&self, is_at_once: bool) {
        self.with(|socket| socket.set_nagle_enabled(!is_at_once));
    }

    /// The packets that calls of this stream, and its stack's, have worked on.
    #[must_use]
    pub fn moved(&self) -> Moved {
        lock(&self.connection.endpoint).moved()
    }

    /// Whether its calls return at once.
    pub fn set_nonblocking(&self, does_not_block: bool) {
        self.mode.set_nonblocking(does_not_block);
    }

    /// The most that reading waits; `None`: whatever it takes.
    pub fn set_read_timeout(&self, most: Option<Span>) {
        self.mode.set_most(Way::In, most);
    }

    /// The most that writing waits; `None`: whatever it takes.
    pub fn set_write_timeout(&self, most: Option<Span>) {
        self.mode.set_most(Way::Out, most);
    }

    /// Of the other end.
    #[must_use]
    pub fn peer_addr(&self) -> SocketAddr {
        self.connection.tuple.remote.into()
    }

    /// Of this end.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.connection.tuple.local.into()
    }
}

impl<M: Memory + 'static> Drop for TcpStream<M> {
    fn drop(&mut self) {
        self.with(tcp::Socket::close);
        self.stack.tend_to_the_end(Arc::clone(&self.connection));
    }
}

impl<M: Memory + 'static> Read for TcpStream<M> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.receive(into)
    }
}

impl<M: Memory + 'static> Write for TcpStream<M> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<M: Memory + 'static> crate::stack::Core<M> {
    /// An address of ours and a free port, to connect to that peer.
    fn free_tuple(&self, peer: SocketAddr) -> io::Result<Tuple> {
        let own = self.own(peer.is_ipv4())?;
        let first = self.common.draw() as u16;
        let connections = lock(&self.connections);
        for step in 0..=0x3fff {
            let port = 0xc000 | (first.wrapping_add(step) & 0x3fff);
            let tuple = Tuple {
                local: (own, port),
                remote: (peer.ip(), peer.port()),
            };
            if !connections.contains_key(&tuple) {
                return Ok(tuple);
            }
        }
        Err(ErrorKind::AddrInUse.into())
    }

    pub(super) fn own(&self, is_ipv4: bool) -> io::Result<std::net::IpAddr> {
        let mut addresses = self.common.config.addresses.iter().map(|(own, _)| *own);
        let own = addresses.find(|own| own.is_ipv4() == is_ipv4);
        own.ok_or_else(|| ErrorKind::AddrNotAvailable.into())
    }
}
