//! The file transfer over TCP/IP: a server that sends a file to whoever connects, and a client that
//! receives and checks it.
//!
//! TCP and IP are smoltcp's; this module is their network device and the two applications. The file
//! is a header of [`HEADER_OCTETS`] octets (length and CRC-32, big-endian) and then octets that do
//! not compress, made from a seed.
//!
//! Acknowledgements wait 40 ms at most for a second segment (RFC 1122, section 4.2.3.2); on a
//! telephone line a segment takes longer, so each is acknowledged. Nagle's algorithm is off, and
//! there is no congestion window: the link below loses nothing and takes no more than the line
//! carries.

use core::net::Ipv4Addr;
use std::collections::VecDeque;

use crc::{CRC_32_ISO_HDLC, Crc};
use laxity_model::{Instant, Span};
use smoltcp::iface::{Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, DeviceCapabilities, Medium};
use smoltcp::socket::tcp;
use smoltcp::time::{Duration as NetDuration, Instant as NetInstant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

/// Octets in front of the file: its length (8) and its CRC-32 (4).
pub(super) const HEADER_OCTETS: usize = 12;

/// Octets of IP and TCP header without options.
pub(super) const TCP_IP_HEADER_OCTETS: u16 = 40;

/// The port on which the file is served.
pub(super) const PORT: u16 = 2001;

const CLIENT_PORT: u16 = 49_152;
const CRC: Crc<u32, crc::Table<16>> = Crc::<u32, crc::Table<16>>::new(&CRC_32_ISO_HDLC);
/// How long an acknowledgement may wait for the second segment.
const ACK_DELAY: NetDuration = NetDuration::from_millis(40);
/// Less than this needs no window scaling, and is more than the line holds with all buffers below.
const WINDOW_OCTETS: usize = 16 * 1024;

/// Fills `out` with octets number `offset` and following of the file made from `seed` (the
/// SplitMix64 sequence of Steele, Lea and Flood, *Fast splittable pseudorandom number generators*,
/// 2014).
pub(super) fn file_octets(seed: u64, offset: u64, out: &mut [u8]) {
    for (position, octet) in (offset..).zip(out) {
        let mut z = seed.wrapping_add((position / 8 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        *octet = (z ^ z >> 31).to_le_bytes()[(position % 8) as usize];
    }
}

/// A file's length and CRC-32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    octets: u64,
    crc32: u32,
}

impl Header {
    fn of_file(seed: u64, octets: u64) -> Self {
        let mut digest = CRC.digest();
        let mut piece = [0; 4096];
        let mut offset = 0;
        while offset < octets {
            let piece = &mut piece[..(octets - offset).min(4096) as usize];
            file_octets(seed, offset, piece);
            digest.update(piece);
            offset += piece.len() as u64;
        }
        Self {
            octets,
            crc32: digest.finalize(),
        }
    }

    fn to_octets(self) -> [u8; HEADER_OCTETS] {
        let mut octets = [0; HEADER_OCTETS];
        octets[..8].copy_from_slice(&self.octets.to_be_bytes());
        octets[8..].copy_from_slice(&self.crc32.to_be_bytes());
        octets
    }

    fn from_octets(octets: [u8; HEADER_OCTETS]) -> Self {
        let [a, b, c, d, e, f, g, h, crc32 @ ..] = octets;
        Self {
            octets: u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            crc32: u32::from_be_bytes(crc32),
        }
    }
}

/// What this side does with the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Application {
    /// Sends a file to whoever connects.
    Server {
        /// What the file is made from.
        seed: u64,
        /// How long the file is.
        octets: u64,
    },
    /// Connects to the server and receives its file.
    Client,
}

/// How far the transfer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// No connection yet.
    Waiting,
    /// So many octets of the file were received, or taken by TCP for sending.
    Transferring {
        /// Octets of the file, without its header.
        octets: u64,
    },
    /// The file has arrived.
    Done {
        /// From the first segment of the connection (or its arrival) to the last octet of the file;
        /// for the server, to its acknowledgement.
        duration: Span,
        /// Whether length and CRC-32 are those that the server told. True for the server itself.
        checksum_ok: bool,
    },
    /// The connection was reset or closed before the end.
    Broken,
}

/// One host: a network device whose other end is the link below, TCP/IP, and an application.
pub(super) struct Stack {
    device: Device,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    application: Running,
    progress: Progress,
    started: Option<Instant>,
}

enum Running {
    Server {
        seed: u64,
        header: Header,
        taken: u64,
    },
    Client {
        header_octets: Vec<u8>,
        header: Option<Header>,
        received: u64,
        digest: crc::Digest<'static, u32, crc::Table<16>>,
    },
}

static CLIENT_CRC: Crc<u32, crc::Table<16>> = CRC;

impl core::fmt::Debug for Stack {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Stack")
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}

impl Stack {
    /// A host with the given address, whose datagrams are at most `mtu` octets; a client connects
    /// at once.
    ///
    /// `seed` determines TCP's initial sequence number.
    ///
    /// # Panics
    ///
    /// If `mtu` has no room for TCP and IP headers and an octet.
    #[must_use]
    pub(super) fn new(
        application: Application,
        local: Ipv4Addr,
        peer: Ipv4Addr,
        mtu: u16,
        seed: u64,
        now: Instant,
    ) -> Self {
        assert!(
            mtu > TCP_IP_HEADER_OCTETS,
            "an MTU of {mtu} holds no TCP segment"
        );
        let mut device = Device {
            received: VecDeque::new(),
            sent: VecDeque::new(),
            mtu,
            ready: true,
        };
        let mut config = smoltcp::iface::Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut device, net_instant(now));
        interface.update_ip_addrs(|addresses| {
            // The list has room for two and is empty.
            let _ = addresses.push(IpCidr::new(IpAddress::Ipv4(local), 24));
        });
        let _ = interface.routes_mut().add_default_ipv4_route(peer);
        let mut socket = new_socket(mtu);
        let application = match application {
            Application::Server { seed, octets } => {
                // A new socket and a port that is not 0: there is nothing to fail.
                let _ = socket.listen(PORT);
                Running::Server {
                    seed,
                    header: Header::of_file(seed, octets),
                    taken: 0,
                }
            }
            Application::Client => {
                let _ = socket.connect(
                    interface.context(),
                    (IpAddress::Ipv4(peer), PORT),
                    CLIENT_PORT,
                );
                let digest = CLIENT_CRC.digest();
                Running::Client {
                    header_octets: Vec::new(),
                    header: None,
                    received: 0,
                    digest,
                }
            }
        };
        let started = matches!(application, Running::Client { .. }).then_some(now);
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(socket);
        Self {
            device,
            interface,
            sockets,
            socket,
            application,
            progress: Progress::Waiting,
            started,
        }
    }

    /// Takes a datagram from the link.
    pub(super) fn input(&mut self, datagram: Vec<u8>) {
        self.device.received.push_back(datagram);
    }

    /// The next datagram for the link.
    pub(super) fn output(&mut self) -> Option<Vec<u8>> {
        self.device.sent.pop_front()
    }

    /// Lets TCP and the application do what they can at `now`. While the link is not `ready`, only
    /// answers are sent.
    ///
    /// At most one segment is sent by itself a call, so that the link can tell anew whether it is
    /// ready; tells whether to call again at once.
    pub(super) fn poll(&mut self, now: Instant, ready: bool) -> bool {
        self.device.ready = ready;
        let arrived = !self.device.received.is_empty();
        self.interface
            .poll(net_instant(now), &mut self.device, &mut self.sockets);
        let worked = self.run_application(now);
        arrived || worked || (ready && !self.device.sent.is_empty())
    }

    /// How far the transfer is.
    #[must_use]
    pub(super) fn progress(&self) -> Progress {
        self.progress
    }

    fn run_application(&mut self, now: Instant) -> bool {
        let socket = self.sockets.get_mut::<tcp::Socket<'_>>(self.socket);
        if socket.state() == tcp::State::Established {
            self.started.get_or_insert(now);
        }
        let duration = now.saturating_since(self.started.unwrap_or(now));
        let before = self.progress;
        match &mut self.application {
            Running::Server {
                seed,
                header,
                taken,
            } => {
                self.progress = serve(socket, *seed, *header, taken, before, duration);
            }
            Running::Client {
                header_octets,
                header,
                received,
                digest,
            } => {
                if matches!(before, Progress::Done { .. } | Progress::Broken) {
                    return false;
                }
                take_in(socket, header_octets, header, received, digest);
                self.progress = match *header {
                    Some(header) if *received >= header.octets => {
                        socket.close();
                        let checksum_ok =
                            *received == header.octets && digest.clone().finalize() == header.crc32;
                        Progress::Done {
                            duration,
                            checksum_ok,
                        }
                    }
                    _ if !socket.may_recv() && socket.state() != tcp::State::SynSent => {
                        Progress::Broken
                    }
                    Some(_) => Progress::Transferring { octets: *received },
                    None => Progress::Waiting,
                };
            }
        }
        self.progress != before
    }
}

/// Gives TCP what it takes of the header and the file.
fn serve(
    socket: &mut tcp::Socket<'_>,
    seed: u64,
    header: Header,
    taken: &mut u64,
    before: Progress,
    duration: Span,
) -> Progress {
    if matches!(before, Progress::Done { .. } | Progress::Broken) {
        return before;
    }
    let total = HEADER_OCTETS as u64 + header.octets;
    let header_octets = header.to_octets();
    while *taken < total && socket.can_send() {
        let at = *taken;
        let given = socket.send(|room| match header_octets.get(at as usize..) {
            Some(rest @ [_, ..]) => {
                let count = rest.len().min(room.len());
                room[..count].copy_from_slice(&rest[..count]);
                (count, count)
            }
            _ => {
                let count = room
                    .len()
                    .min(usize::try_from(total - at).unwrap_or(usize::MAX));
                file_octets(seed, at - HEADER_OCTETS as u64, &mut room[..count]);
                (count, count)
            }
        });
        match given {
            Ok(count @ 1..) => *taken += count as u64,
            Ok(0) | Err(_) => break,
        }
    }
    if *taken == total && socket.send_queue() == 0 {
        socket.close();
        return Progress::Done {
            duration,
            checksum_ok: true,
        };
    }
    match socket.state() {
        tcp::State::Listen | tcp::State::SynReceived => Progress::Waiting,
        tcp::State::Established => Progress::Transferring {
            octets: taken.saturating_sub(HEADER_OCTETS as u64),
        },
        _ => Progress::Broken,
    }
}

/// Takes from TCP what has arrived of the header and the file.
fn take_in(
    socket: &mut tcp::Socket<'_>,
    header_octets: &mut Vec<u8>,
    header: &mut Option<Header>,
    received: &mut u64,
    digest: &mut crc::Digest<'static, u32, crc::Table<16>>,
) {
    while socket.can_recv() {
        let taken = socket.recv(|octets| {
            let count = octets.len().min(HEADER_OCTETS - header_octets.len());
            let (first, rest) = octets.split_at(count);
            header_octets.extend_from_slice(first);
            digest.update(rest);
            *received += rest.len() as u64;
            (octets.len(), ())
        });
        if taken.is_err() {
            break;
        }
    }
    if header.is_none() {
        *header = header_octets
            .as_slice()
            .try_into()
            .ok()
            .map(Header::from_octets);
    }
}

fn new_socket(mtu: u16) -> tcp::Socket<'static> {
    // A whole number of segments, so that none is cut where the buffer wraps.
    let segment = usize::from(mtu - TCP_IP_HEADER_OCTETS);
    let send = vec![0; (WINDOW_OCTETS / segment).max(2) * segment];
    let receive = vec![0; WINDOW_OCTETS];
    let mut socket = tcp::Socket::new(
        tcp::SocketBuffer::new(receive),
        tcp::SocketBuffer::new(send),
    );
    socket.set_nagle_enabled(false);
    socket.set_ack_delay(Some(ACK_DELAY));
    socket
}

fn net_instant(now: Instant) -> NetInstant {
    NetInstant::from_micros(i64::try_from(now.as_micros()).unwrap_or(i64::MAX))
}

/// The network device: two queues of datagrams.
struct Device {
    received: VecDeque<Vec<u8>>,
    sent: VecDeque<Vec<u8>>,
    mtu: u16,
    /// Whether the link takes a datagram that is not an answer.
    ready: bool,
}

struct Received(Vec<u8>);

struct Sent<'a>(&'a mut VecDeque<Vec<u8>>);

impl phy::RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl phy::TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, octets: usize, f: F) -> R {
        let mut datagram = vec![0; octets];
        let result = f(&mut datagram);
        self.0.push_back(datagram);
        result
    }
}

impl phy::Device for Device {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sent<'a>;

    fn receive(&mut self, _now: NetInstant) -> Option<(Received, Sent<'_>)> {
        let datagram = self.received.pop_front()?;
        Some((Received(datagram), Sent(&mut self.sent)))
    }

    fn transmit(&mut self, _now: NetInstant) -> Option<Sent<'_>> {
        (self.ready && self.sent.is_empty()).then_some(Sent(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = usize::from(self.mtu);
        capabilities
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_the_same_however_it_is_read() {
        let mut whole = [0; 100];
        file_octets(7, 0, &mut whole);
        let mut part = [0; 41];
        file_octets(7, 13, &mut part);
        assert_eq!(whole[13..54], part);
        let mut other = [0; 100];
        file_octets(8, 0, &mut other);
        assert_ne!(whole, other);
    }

    #[test]
    fn the_header_is_read_as_written() {
        let header = Header::of_file(3, 5000);
        assert_eq!(header.octets, 5000);
        assert_eq!(Header::from_octets(header.to_octets()), header);
    }

    fn transfer(mtu: u16, octets: u64, spoil: Option<usize>) -> (Progress, Progress, usize) {
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 1));
        let mut client = Stack::new(Application::Client, a, b, mtu, 1, Instant::from_nanos(0));
        let mut server = Stack::new(
            Application::Server { seed: 9, octets },
            b,
            a,
            mtu,
            2,
            Instant::from_nanos(0),
        );
        let (mut largest, mut count) = (0, 0);
        for step in 0..20_000 {
            let now = Instant::from_millis(step);
            client.poll(now, true);
            while let Some(datagram) = client.output() {
                server.input(datagram);
            }
            server.poll(now, true);
            while let Some(mut datagram) = server.output() {
                largest = largest.max(datagram.len());
                count += 1;
                if spoil == Some(count) {
                    // The checksum of TCP catches it, and TCP repairs it.
                    datagram[50] ^= 1;
                }
                client.input(datagram);
            }
        }
        (client.progress(), server.progress(), largest)
    }

    #[test]
    fn a_file_arrives_in_segments_of_the_stated_size() {
        for mtu in [576, 1500] {
            let (client, server, largest) = transfer(mtu, 20_000, None);
            assert!(
                matches!(
                    client,
                    Progress::Done {
                        checksum_ok: true,
                        ..
                    }
                ),
                "{client:?}"
            );
            assert!(
                matches!(
                    server,
                    Progress::Done {
                        checksum_ok: true,
                        ..
                    }
                ),
                "{server:?}"
            );
            assert_eq!(largest, usize::from(mtu));
        }
    }

    #[test]
    fn a_spoilt_segment_is_repaired() {
        let (client, ..) = transfer(576, 20_000, Some(7));
        assert!(
            matches!(
                client,
                Progress::Done {
                    checksum_ok: true,
                    ..
                }
            ),
            "{client:?}"
        );
    }
}
