//! Ethernet in UDP, between two sockets. It needs no rights, and no interface: a frame is the payload of a datagram. Or what is in a datagram is a packet of one type, and the header of Ethernet in front of it is made up here.

use std::io::IoSlice;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use laxity_model::Instant;
use laxity_model::nif::link::{Facts, Left, LinkError, MOST_PIECES, Medium, Stamp};
use rustix::io::{Errno, writev};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::Settings;
use super::call;
use super::copied::{Below, Copied, Packet, Read};
use super::egress::Held;
use super::error::{OpenCause, OpenError};
use super::interface::failed;
use super::unfinished::{ETHERNET, TAG};

/// The MTU of the Ethernet inside, as of most outside.
const MTU: usize = 1500;
/// `SO_MEMINFO` of Linux 4.12: what a socket has of memory, and what it dropped.
const MEMORY_INFORMATION: i32 = 55;
/// Which of its numbers are the drops.
const DROPS: usize = 8;
/// What the kernel charges a socket at least for a packet of this length.
const CHARGED: usize = 2_304;

/// One end of a wire between two UDP sockets. Only the socket at the other address is heard.
///
/// An instant of arrival is that of the read.
pub type UdpLink = Copied<Udp>;

/// The way to the other socket.
#[derive(Debug)]
pub struct Udp {
    socket: UdpSocket,
    facts: Facts,
    /// What has not left, if it is told: by a class of an owned link, and of bare datagrams.
    held: Option<Held>,
    /// The header in front of what arrives, where datagrams have none.
    made_up: Option<[u8; ETHERNET]>,
}

impl UdpLink {
    /// Opens the end at this address; the other may come later.
    ///
    /// # Errors
    ///
    /// [`OpenError`], with what mends it.
    pub fn open(
        local: SocketAddr,
        remote: SocketAddr,
        settings: &Settings,
    ) -> Result<Self, OpenError> {
        let name = format!("udp:{local}-{remote}");
        let udp = Udp::open(&name, (local, remote), settings, None);
        let udp = udp.map_err(|cause| cause.of(&name))?;
        Ok(Self::new(udp, settings, MTU + ETHERNET + TAG))
    }

    /// The same, where a datagram is no frame of Ethernet but what would be behind its header, of this Ethernet type. Here it stands behind such a header all the same, which is made up where a packet arrives, and left out where one is sent. No datagram is cut into fragments of IP, and each is told as sent when it has left, with and without a class.
    ///
    /// # Errors
    ///
    /// As of [`open`](Self::open).
    pub fn open_bare(
        local: SocketAddr,
        remote: SocketAddr,
        ether_type: u16,
        settings: &Settings,
    ) -> Result<Self, OpenError> {
        let name = format!("udp:{local}-{remote}");
        let udp = Udp::open(&name, (local, remote), settings, Some(ether_type));
        let udp = udp.map_err(|cause| cause.of(&name))?;
        let longest = udp.facts.mtu + ETHERNET;
        Ok(Self::new(udp, settings, longest))
    }
}

impl Udp {
    fn open(
        name: &str,
        (local, remote): (SocketAddr, SocketAddr),
        settings: &Settings,
        bare: Option<u16>,
    ) -> Result<Self, OpenCause> {
        let cause = |call: &'static str| {
            move |error: std::io::Error| match Errno::from_io_error(&error) {
                Some(Errno::ADDRINUSE | Errno::ADDRNOTAVAIL) => OpenCause::AddressTaken,
                errno => OpenCause::System(call, errno.unwrap_or(Errno::IO)),
            }
        };
        if local.is_ipv4() != remote.is_ipv4() {
            let why = "both addresses are of IPv4, or both of IPv6";
            return Err(OpenCause::Name(why.to_owned()));
        }
        let socket = UdpSocket::bind(local).map_err(cause("bind"))?;
        socket.connect(remote).map_err(cause("connect"))?;
        socket.set_nonblocking(true).map_err(cause("fcntl"))?;
        let room = (settings.posted * CHARGED) as i32;
        // The kernel takes the limit of its own where that is less.
        let _ = call::set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &room);
        if let Some(class) = settings.class {
            class.applied_to(&socket)?;
        }
        let mtu = match (bare, settings.class) {
            (Some(_), _) => unfragmented(&socket, local.is_ipv4())?,
            (None, Some(_)) => {
                let payload = unfragmented(&socket, local.is_ipv4())?;
                MTU.min(payload.saturating_sub(ETHERNET + TAG))
            }
            (None, None) => MTU,
        };
        Ok(Self {
            held: (settings.class.is_some() || bare.is_some()).then(Held::default),
            made_up: bare.map(|ether_type| header_to(local, remote, ether_type)),
            socket,
            facts: Facts {
                name: name.to_owned(),
                address: address_of(local),
                mtu,
                reach: settings.reach(),
                is_shared_with_kernel: false,
                medium: Medium::Ethernet,
                gathers: true,
                copies: false,
            },
        })
    }
}

impl Udp {
    /// The kernel's memory that frames take which have not left.
    fn out(&self) -> Result<u64, LinkError> {
        let mut out = 0_i32;
        // SAFETY: the request takes an `i32`.
        let told = unsafe { call::ioctl(&self.socket, libc::TIOCOUTQ, &mut out) };
        told.map_err(|errno| failed("ioctl", errno))?;
        Ok(u64::try_from(out).unwrap_or(0))
    }

    /// A frame was given to the kernel, which had so much memory out before.
    fn hold(&mut self, pieces: &[IoSlice<'_>], before: Option<u64>) -> Result<(), LinkError> {
        let Some(before) = before else { return Ok(()) };
        // It has it in any case: as if nothing were known but its length.
        let after = self.out().unwrap_or(before);
        let bytes = pieces.iter().map(|piece| piece.len()).sum();
        if let Some(held) = &mut self.held {
            held.add(bytes, (before, after));
        }
        Ok(())
    }
}

/// Has the kernel cut no datagram of a socket into fragments of IP, each of which would count as a frame, and believe nobody who says that the way carries shorter ones, as whoever is on it may forge that; and tells the longest payload that fits the way as it is known now.
fn unfragmented(socket: &UdpSocket, is_ipv4: bool) -> Result<usize, OpenCause> {
    const UDP: usize = 8;
    let (level, [how, never, asked], header) = match is_ipv4 {
        true => (
            libc::IPPROTO_IP,
            [libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE, libc::IP_MTU],
            20,
        ),
        false => (
            libc::IPPROTO_IPV6,
            [
                libc::IPV6_MTU_DISCOVER,
                libc::IPV6_PMTUDISC_PROBE,
                libc::IPV6_MTU,
            ],
            40,
        ),
    };
    let refused = |call| move |errno| OpenCause::System(call, errno);
    call::set_option(socket, level, how, &never).map_err(refused("setsockopt"))?;
    let whole = call::option(socket, level, asked, 0_i32).map_err(refused("getsockopt"))?;
    let whole = usize::try_from(whole).unwrap_or_default();
    Ok(whole.saturating_sub(header + UDP))
}

/// In front of what comes here from there.
fn header_to(local: SocketAddr, remote: SocketAddr, ether_type: u16) -> [u8; ETHERNET] {
    let mut header = [0; ETHERNET];
    header[..6].copy_from_slice(&address_of(local));
    header[6..12].copy_from_slice(&address_of(remote));
    header[12..].copy_from_slice(&ether_type.to_be_bytes());
    header
}

/// One that nobody assigned, and that differs where the ends of a wire do: by the port and the end of the address.
fn address_of(local: SocketAddr) -> [u8; 6] {
    let [high, low] = local.port().to_be_bytes();
    let [.., third, last] = match local {
        SocketAddr::V4(address) => address.ip().octets(),
        SocketAddr::V6(address) => {
            let [.., a, b] = address.ip().octets();
            [0, 0, a, b]
        }
    };
    [2, b'u', third, last, high, low]
}

/// What somebody on the way, or who says that he is there, told by ICMP of what was sent before: heard once, at the next call.
const fn is_of_the_way(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::CONNREFUSED
            | Errno::HOSTDOWN
            | Errno::HOSTUNREACH
            | Errno::MSGSIZE
            | Errno::NETUNREACH
            | Errno::NONET
            | Errno::NOPROTOOPT
            | Errno::OPNOTSUPP
            | Errno::PROTO
    )
}

impl Below for Udp {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn read(&mut self, into: &mut [u8], now: Instant) -> Result<Read, LinkError> {
        let in_front = self.made_up.map_or(0, |_| ETHERNET.min(into.len()));
        let (header, into) = into.split_at_mut(in_front);
        let room = into.len();
        let mut read = || {
            recv(
                &self.socket,
                &mut *into,
                RecvFlags::TRUNC | RecvFlags::DONTWAIT,
            )
        };
        // What was said of the way stands before what has come.
        let came = match read() {
            Err(errno) if is_of_the_way(errno) => read(),
            came => came,
        };
        match came {
            Ok((_, length)) if length > room => Ok(Read::TooLong),
            Ok((_, length)) => {
                if let Some(made_up) = &self.made_up {
                    header.copy_from_slice(&made_up[..in_front]);
                }
                Ok(Read::Packet(Packet {
                    length: in_front + length,
                    at: now,
                    stamp: Stamp::Read,
                    left: Left::default(),
                }))
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(Read::Nothing),
            Err(errno) if is_of_the_way(errno) => Ok(Read::Nothing),
            Err(errno) => Err(failed("recv", errno)),
        }
    }

    fn write(&mut self, pieces: &[IoSlice<'_>], _: Left) -> Result<(), LinkError> {
        let mut own = [IoSlice::new(&[]); MOST_PIECES + 1];
        let own = &mut own[..pieces.len()];
        own.copy_from_slice(pieces);
        if self.made_up.is_some() {
            own[0].advance(ETHERNET);
        }
        let own = &*own;
        let send = || match own {
            [whole] => send(&self.socket, whole, SendFlags::empty()),
            _ => writev(&self.socket, own),
        };
        let before = self.held.is_some().then(|| self.out()).transpose()?;
        // What nobody hears is lost as on any wire.
        let sent = match send() {
            Err(errno) if is_of_the_way(errno) => send(),
            sent => sent,
        };
        match sent {
            Ok(_) | Err(Errno::CONNREFUSED) => self.hold(pieces, before),
            Err(Errno::AGAIN | Errno::NOBUFS) => Err(LinkError::Full),
            Err(Errno::NETUNREACH | Errno::NETDOWN | Errno::HOSTUNREACH) => Err(LinkError::Down),
            Err(errno) => Err(failed("send", errno)),
        }
    }

    fn has_left(&mut self) -> bool {
        if self.held.is_none() {
            return true;
        }
        // Where the kernel does not tell, none is told as gone.
        let out = self.out();
        let held = self.held.as_mut().zip(out.ok());
        held.is_some_and(|(held, out)| held.has_left(out))
    }

    fn overflown(&self) -> Option<u64> {
        let told = call::option(
            &self.socket,
            libc::SOL_SOCKET,
            MEMORY_INFORMATION,
            [0_u32; 9],
        );
        told.ok().map(|told| told[DROPS].into())
    }
}

impl AsFd for Udp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
