//! Names of interfaces, and opening whichever is named.

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::str::FromStr;

use laxity_model::Instant;
use laxity_model::nif::link::{Facts, Left, Link, LinkError, Losses, Memory, Received};
use laxity_model::nif::registry::ClientId;

use super::error::{OpenCause, OpenError};
use super::xdp::Mode;
use super::{PacketLink, Settings, TapLink, UdpLink, UmemFrame, XdpLink};

/// An interface, and the way to it, as a user names them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InterfaceName {
    /// `auto:NAME`, or a bare `NAME`: `xdp` if that can be had, else `packet`.
    Auto(String),
    /// `xdp:NAME`: `AF_XDP` in the generic mode. `xdp-native:NAME`: in the driver's own.
    Xdp(String, Mode),
    /// `packet:NAME`: a packet socket.
    Packet(String),
    /// `tap:NAME`: a TAP interface, made if it is not there.
    Tap(String),
    /// `tun:NAME`: a TUN interface, made if it is not there.
    Tun(String),
    /// `udp:LOCAL-REMOTE`: Ethernet in UDP between these two addresses, each with its port: `udp:127.0.0.1:4000-127.0.0.1:4001`.
    Udp(SocketAddr, SocketAddr),
}

impl FromStr for InterfaceName {
    type Err = OpenError;

    fn from_str(text: &str) -> Result<Self, OpenError> {
        let wrong = |why: &str| OpenCause::Name(why.to_owned()).of(text);
        let (way, name) = text.split_once(':').unwrap_or(("auto", text));
        if way == "udp" {
            let mut ends = name.split('-').map(str::parse);
            return match (ends.next(), ends.next(), ends.next()) {
                (Some(Ok(local)), Some(Ok(remote)), None) => Ok(Self::Udp(local, remote)),
                _ => Err(wrong(
                    "two addresses are wanted, each with a port, with `-` between",
                )),
            };
        }
        let is_possible = |name: &str| {
            (1..libc::IFNAMSIZ).contains(&name.len())
                && !name
                    .contains(|c: char| matches!(c, '/' | ':' | '%' | '\0') || c.is_whitespace())
                && !matches!(name, "." | "..")
        };
        if !is_possible(name) {
            return Err(wrong(
                "an interface's name has 1 to 15 bytes, and no `/`, `:`, `%` or space",
            ));
        }
        let name = name.to_owned();
        match way {
            "auto" => Ok(Self::Auto(name)),
            "xdp" => Ok(Self::Xdp(name, Mode::Generic)),
            "xdp-native" => Ok(Self::Xdp(name, Mode::Native)),
            "packet" => Ok(Self::Packet(name)),
            "tap" => Ok(Self::Tap(name)),
            "tun" => Ok(Self::Tun(name)),
            _ => Err(wrong("there is no such way to an interface")),
        }
    }
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto(name) => write!(f, "auto:{name}"),
            Self::Xdp(name, Mode::Generic) => write!(f, "xdp:{name}"),
            Self::Xdp(name, Mode::Native) => write!(f, "xdp-native:{name}"),
            Self::Packet(name) => write!(f, "packet:{name}"),
            Self::Tap(name) => write!(f, "tap:{name}"),
            Self::Tun(name) => write!(f, "tun:{name}"),
            Self::Udp(local, remote) => write!(f, "udp:{local}-{remote}"),
        }
    }
}

/// An interface that was opened by its name.
#[derive(Debug)]
pub struct Opened {
    /// It.
    pub link: AnyLink,
    /// What is lost against what `auto` would rather have had, and why; nothing where nothing is.
    pub lost: Option<String>,
}

/// Opens the interface of this name.
///
/// # Errors
///
/// [`OpenError`], with what mends it; of `auto` that of the last way.
pub fn open(name: &InterfaceName, settings: &Settings) -> Result<Opened, OpenError> {
    let link = match name {
        InterfaceName::Auto(name) => return automatically(name, settings),
        InterfaceName::Xdp(name, mode) => {
            AnyLink::Xdp(Box::new(XdpLink::open(name, *mode, settings)?))
        }
        InterfaceName::Packet(name) => {
            AnyLink::Copying(Box::new(PacketLink::open(name, settings)?))
        }
        InterfaceName::Tap(name) => AnyLink::Copying(Box::new(TapLink::open(name, settings)?)),
        InterfaceName::Tun(name) => AnyLink::Copying(Box::new(TapLink::open_tun(name, settings)?)),
        InterfaceName::Udp(local, remote) => {
            AnyLink::Copying(Box::new(UdpLink::open(*local, *remote, settings)?))
        }
    };
    Ok(Opened { link, lost: None })
}

fn automatically(name: &str, settings: &Settings) -> Result<Opened, OpenError> {
    let refused = match XdpLink::open(name, Mode::Generic, settings) {
        Ok(link) => {
            let link = AnyLink::Xdp(Box::new(link));
            return Ok(Opened { link, lost: None });
        }
        Err(refused) => refused,
    };
    let link = AnyLink::Copying(Box::new(PacketLink::open(name, settings)?));
    let lost = format!(
        "a packet socket: the kernel receives and answers what arrives too, no client is found before a packet is queued, and arrivals are stamped behind the hook; since {refused}"
    );
    Ok(Opened {
        link,
        lost: Some(lost),
    })
}

/// An interface that [copies](super::Copied).
pub trait CopyingLink: Link<Memory = Box<[u8]>> + AsFd + fmt::Debug + Send {}

impl<L: Link<Memory = Box<[u8]>> + AsFd + fmt::Debug + Send> CopyingLink for L {}

/// Any of the interfaces.
#[derive(Debug)]
pub enum AnyLink {
    /// By `AF_XDP`.
    Xdp(Box<XdpLink>),
    /// All others: a packet socket, TAP, TUN, UDP.
    Copying(Box<dyn CopyingLink>),
}

/// Memory of any of them.
#[derive(Debug)]
pub enum AnyMemory {
    /// The kernel shares it.
    Umem(UmemFrame),
    /// The process has it.
    Own(Box<[u8]>),
}

use AnyMemory::{Own, Umem};

impl Memory for AnyMemory {
    fn bytes(&self) -> &[u8] {
        match self {
            Umem(frame) => frame.bytes(),
            Own(bytes) => bytes,
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Umem(frame) => frame.bytes_mut(),
            Own(bytes) => bytes,
        }
    }
}

fn any<M>(received: Received<M>, memory: impl FnOnce(M) -> AnyMemory) -> Received<AnyMemory> {
    Received {
        memory: memory(received.memory),
        length: received.length,
        at: received.at,
        stamp: received.stamp,
        left: received.left,
        early: received.early,
    }
}

/// What is said of memory that the other kind of interface has.
fn foreign() -> LinkError {
    LinkError::Failed("this memory is another interface's".to_owned())
}

impl Link for AnyLink {
    type Memory = AnyMemory;

    fn facts(&self) -> &Facts {
        match self {
            Self::Xdp(link) => link.facts(),
            Self::Copying(link) => link.facts(),
        }
    }

    fn allocate(&mut self, packets: usize) -> Result<Vec<AnyMemory>, LinkError> {
        Ok(match self {
            Self::Xdp(link) => link.allocate(packets)?.into_iter().map(Umem).collect(),
            Self::Copying(link) => link.allocate(packets)?.into_iter().map(Own).collect(),
        })
    }

    fn post(&mut self, memory: AnyMemory) -> Result<(), AnyMemory> {
        match (self, memory) {
            (Self::Xdp(link), Umem(frame)) => link.post(frame).map_err(Umem),
            (Self::Copying(link), Own(bytes)) => link.post(bytes).map_err(Own),
            (_, memory) => Err(memory),
        }
    }

    fn receive(&mut self, now: Instant) -> Result<Option<Received<AnyMemory>>, LinkError> {
        Ok(match self {
            Self::Xdp(link) => link.receive(now)?.map(|received| any(received, Umem)),
            Self::Copying(link) => link.receive(now)?.map(|received| any(received, Own)),
        })
    }

    fn has_discarded(&self) -> bool {
        match self {
            Self::Xdp(link) => link.has_discarded(),
            Self::Copying(link) => link.has_discarded(),
        }
    }

    fn send(
        &mut self,
        memory: AnyMemory,
        length: usize,
        now: Instant,
    ) -> Result<(), (AnyMemory, LinkError)> {
        match (self, memory) {
            (Self::Xdp(link), Umem(frame)) => {
                let sent = link.send(frame, length, now);
                sent.map_err(|(frame, why)| (Umem(frame), why))
            }
            (Self::Copying(link), Own(bytes)) => {
                let sent = link.send(bytes, length, now);
                sent.map_err(|(bytes, why)| (Own(bytes), why))
            }
            (_, memory) => Err((memory, foreign())),
        }
    }

    fn queue(
        &mut self,
        memory: AnyMemory,
        length: usize,
        left: Left,
        now: Instant,
    ) -> Result<(), (AnyMemory, LinkError)> {
        match (self, memory) {
            (Self::Xdp(link), Umem(frame)) => {
                let queued = link.queue(frame, length, left, now);
                queued.map_err(|(frame, why)| (Umem(frame), why))
            }
            (Self::Copying(link), Own(bytes)) => {
                let queued = link.queue(bytes, length, left, now);
                queued.map_err(|(bytes, why)| (Own(bytes), why))
            }
            (_, memory) => Err((memory, foreign())),
        }
    }

    fn queue_gathered(
        &mut self,
        memory: AnyMemory,
        length: usize,
        behind: &[&[u8]],
        left: Left,
        now: Instant,
    ) -> Result<bool, (AnyMemory, LinkError)> {
        match (self, memory) {
            (Self::Xdp(link), Umem(frame)) => {
                let queued = link.queue_gathered(frame, length, behind, left, now);
                queued.map_err(|(frame, why)| (Umem(frame), why))
            }
            (Self::Copying(link), Own(bytes)) => {
                let queued = link.queue_gathered(bytes, length, behind, left, now);
                queued.map_err(|(bytes, why)| (Own(bytes), why))
            }
            (_, memory) => Err((memory, foreign())),
        }
    }

    fn flush(&mut self, now: Instant) -> Result<(), LinkError> {
        match self {
            Self::Xdp(link) => link.flush(now),
            Self::Copying(link) => link.flush(now),
        }
    }

    fn has_thrown_away(&self) -> bool {
        match self {
            Self::Xdp(link) => link.has_thrown_away(),
            Self::Copying(link) => link.has_thrown_away(),
        }
    }

    fn finishes(&self) -> bool {
        match self {
            Self::Xdp(link) => link.finishes(),
            Self::Copying(link) => link.finishes(),
        }
    }

    fn is_silent(&self) -> bool {
        match self {
            Self::Xdp(link) => link.is_silent(),
            Self::Copying(link) => link.is_silent(),
        }
    }

    fn ended(&mut self, client: ClientId) {
        match self {
            Self::Xdp(link) => link.ended(client),
            Self::Copying(link) => link.ended(client),
        }
    }

    fn sent(&mut self, now: Instant) -> Option<AnyMemory> {
        match self {
            Self::Xdp(link) => link.sent(now).map(Umem),
            Self::Copying(link) => link.sent(now).map(Own),
        }
    }

    fn reclaim(&mut self) -> Option<AnyMemory> {
        match self {
            Self::Xdp(link) => link.reclaim().map(Umem),
            Self::Copying(link) => link.reclaim().map(Own),
        }
    }

    fn losses(&self) -> Losses {
        match self {
            Self::Xdp(link) => link.losses(),
            Self::Copying(link) => link.losses(),
        }
    }
}

impl AsFd for AnyLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Xdp(link) => link.as_fd(),
            Self::Copying(link) => link.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in [
            "auto:eth0",
            "xdp:veth0",
            "xdp-native:veth0",
            "packet:veth0",
            "tap:lax0",
            "tun:lax0",
            "udp:127.0.0.1:4000-127.0.0.1:4001",
            "udp:[::1]:1-[::1]:2",
        ] {
            let read: InterfaceName = name.parse().unwrap();
            assert_eq!(read.to_string(), name);
        }
        let bare = InterfaceName::Auto("eth0".to_owned());
        assert_eq!("eth0".parse(), Ok(bare));
    }

    #[test]
    fn what_names_nothing_is_refused_with_what_would_be_right() {
        for name in [
            "",
            "xdp:",
            "packet:sixteen-bytes-xx",
            "tap:a/b",
            "tap:..",
            "raw:eth0",
            "auto:a:b",
            "udp:127.0.0.1:4000",
            "udp:127.0.0.1-127.0.0.1:1",
            "udp:127.0.0.1:1-127.0.0.1:2-127.0.0.1:3",
        ] {
            let refused = name.parse::<InterfaceName>().unwrap_err();
            assert!(matches!(refused.cause, OpenCause::Name(_)), "{refused}");
            assert!(
                refused.to_string().contains("udp:LOCAL-REMOTE"),
                "{refused}"
            );
        }
    }
}
