//! The kernel's own ways to carry messages, UDP and TCP, and best effort beside them.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use laxity::{now, sleep_until};
use laxity_model::{Instant, Span};
use serde::{Deserialize, Serialize};

use super::carry::{REST, Receives, Sends};
use super::flows::When;

/// By what messages go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Kind {
    /// A datagram each, cut by IP.
    Udp,
    /// One after the other, each as soon as it is written.
    Tcp,
}

/// So often who waits looks whether it is over.
const LOOK: Duration = Duration::from_millis(20);
/// Who waits for so long for the other has lost it.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// What best effort by UDP offers, in bits a second; and of what size.
const OFFERED: u64 = 150_000_000;
const DATAGRAM: usize = 1_400;
/// What is written and read at a time of a stream.
const PIECE: usize = 1 << 16;
/// Datagrams are offered so often, as many as are due.
const TURN: Span = Span::from_millis(1);
/// Who was kept from it for longer leaves out the rest.
const LATE: Span = Span::from_millis(4);
/// A socket may have some hundred kB below it: so many have more than any link's queue holds.
const SOCKETS: usize = 16;

fn has_nothing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

impl Sends for UdpSocket {
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        match Self::send(self, message) {
            // It is the kernel's way to say that this one is lost.
            Err(error)
                if error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error()) =>
            {
                Ok(())
            }
            sent => sent.map(drop),
        }
    }
}

impl Receives for UdpSocket {
    fn receive(&mut self, room: &mut [u8], until: Instant) -> io::Result<Option<usize>> {
        loop {
            match self.recv(room) {
                Err(error) if has_nothing(&error) && now() < until => {}
                Err(error) if has_nothing(&error) => return Ok(None),
                received => return received.map(Some),
            }
        }
    }
}

impl Sends for TcpStream {
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.write_all(message)
    }
}

/// Messages of one length in a stream.
#[derive(Debug)]
pub struct Framed {
    stream: TcpStream,
    bytes: usize,
    filled: usize,
}

impl Receives for Framed {
    fn receive(&mut self, room: &mut [u8], until: Instant) -> io::Result<Option<usize>> {
        loop {
            let rest = room.get_mut(self.filled..self.bytes);
            match self.stream.read(rest.unwrap_or_default()) {
                Ok(0) => return Ok(None),
                Ok(read) => self.filled += read,
                Err(error) if has_nothing(&error) && now() < until => {}
                Err(error) if has_nothing(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
            if self.filled == self.bytes {
                return Ok(Some(std::mem::take(&mut self.filled)));
            }
        }
    }
}

/// A way to whoever receives there.
///
/// # Errors
///
/// The kernel's.
pub fn sender(kind: Kind, to: SocketAddr) -> io::Result<Box<dyn Sends>> {
    Ok(match kind {
        Kind::Udp => {
            let socket = UdpSocket::bind(("0.0.0.0", 0))?;
            socket.connect(to)?;
            Box::new(socket)
        }
        Kind::Tcp => {
            let stream = TcpStream::connect_timeout(&to, PATIENCE)?;
            stream.set_nodelay(true)?;
            Box::new(stream)
        }
    })
}

/// Who is to receive there, before anybody has come.
#[derive(Debug)]
pub enum Listening {
    /// Whoever sends.
    Udp(UdpSocket),
    /// The first to connect.
    Tcp(TcpListener),
}

impl Listening {
    /// At this address.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub fn at(kind: Kind, at: SocketAddr) -> io::Result<Self> {
        Ok(match kind {
            Kind::Udp => Self::Udp(UdpSocket::bind(at)?),
            Kind::Tcp => Self::Tcp(TcpListener::bind(at)?),
        })
    }

    /// Messages of so many bytes.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub fn messages(self, bytes: usize) -> io::Result<Box<dyn Receives>> {
        Ok(match self {
            Self::Udp(socket) => {
                socket.set_read_timeout(Some(LOOK))?;
                Box::new(socket)
            }
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_read_timeout(Some(LOOK))?;
                Box::new(Framed {
                    stream,
                    bytes,
                    filled: 0,
                })
            }
        })
    }

    /// Counts what comes in that time, in bytes of payload.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub fn count(self, when: When) -> io::Result<u64> {
        let over = when.until + REST;
        let mut receives = self.messages(PIECE)?;
        let (mut room, mut count) = (vec![0; PIECE], 0);
        while let Some(length) = receives.receive(&mut room, over)? {
            let at = now();
            if (when.from..when.until).contains(&at) {
                count += length as u64;
            }
            if at >= over {
                break;
            }
        }
        Ok(count)
    }
}

/// Best effort, from now on until the time is over: by UDP 150 Mbit/s, whatever becomes of it; by TCP all that goes.
///
/// # Errors
///
/// The kernel's.
pub fn flood(kind: Kind, to: SocketAddr, until: Instant) -> io::Result<()> {
    match kind {
        Kind::Udp => flood_datagrams(to, until),
        Kind::Tcp => {
            let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
            stream.set_write_timeout(Some(LOOK))?;
            let piece = vec![0; PIECE];
            while now() < until {
                match stream.write(&piece) {
                    Err(error) if has_nothing(&error) => {}
                    written => drop(written?),
                }
            }
            Ok(())
        }
    }
}

fn flood_datagrams(to: SocketAddr, until: Instant) -> io::Result<()> {
    let open = |_| -> io::Result<UdpSocket> {
        let socket = UdpSocket::bind(("0.0.0.0", 0))?;
        socket.connect(to)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    let sockets: Vec<UdpSocket> = (0..SOCKETS).map(open).collect::<Result<_, _>>()?;
    let each = Span::from_nanos(DATAGRAM as u64 * 8 * 1_000_000_000 / OFFERED);
    let (piece, from) = ([0; DATAGRAM], now());
    let (mut due, mut turn) = (from, from);
    for socket in sockets.iter().cycle() {
        if due >= until {
            break;
        }
        if due >= turn {
            turn += TURN;
            sleep_until(turn);
            // What could not be offered for long is not made up for.
            due = due.max(now().saturating_sub(LATE));
            turn = turn.max(due);
        }
        // Nobody waits where there is no room: it is lost, as it would be in the network.
        let _ = socket.send(&piece);
        due += each;
    }
    Ok(())
}
