//! A host: smoltcp's TCP and IP, the network device below, and one of the [applications](super::transfer) above.
//!
//! Acknowledgements wait 40 ms at most for a second segment (RFC 1122, section 4.2.3.2); on a
//! telephone line a segment takes longer, so each is acknowledged. Nagle's algorithm is off, and
//! there is no congestion window ([`CONGESTION`]).

use core::net::Ipv4Addr;
use std::collections::VecDeque;

use laxity_model::{Instant, Span};
use smoltcp::iface::{Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, DeviceCapabilities, Medium};
use smoltcp::socket::tcp;
use smoltcp::time::{Duration as NetDuration, Instant as NetInstant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

use super::transfer::{Application, Progress};

/// Octets of IP and TCP header without options.
pub(super) const TCP_IP_HEADER_OCTETS: u16 = 40;

/// The port on which the file is served.
pub(super) const PORT: u16 = 2001;

const CLIENT_PORT: u16 = 49_152;
/// How long an acknowledgement may wait for the second segment.
pub const ACK_DELAY: Span = Span::from_millis(40);
/// TCP's window either way: less than what needs window scaling, and more than the line holds with all buffers below.
pub const WINDOW_OCTETS: usize = 16 * 1024;
/// What TCP does about congestion: it has no window for it, as the link below loses nothing and takes no more than the line carries.
const CONGESTION: tcp::CongestionControl = tcp::CongestionControl::None;
/// How long TCP waits for an acknowledgement before it sends again: at first and at least, and at most; doubled each time. These are smoltcp's own.
pub const RETRANSMISSION: [Span; 2] = [Span::from_secs(1), Span::from_secs(60)];

/// What TCP does about congestion, in a word.
pub fn congestion() -> String {
    format!("{CONGESTION:?}").to_lowercase()
}

/// One host: a network device whose other end is the link below, TCP/IP, and an application.
pub(super) struct Stack {
    device: Device,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    application: Application,
    progress: Progress,
    started: Option<Instant>,
}

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
        // A new socket and ports that are not 0: there is nothing to fail.
        let started = match application {
            Application::Server(_) => {
                let _ = socket.listen(PORT);
                None
            }
            Application::Client(_) => {
                let peer = (IpAddress::Ipv4(peer), PORT);
                let _ = socket.connect(interface.context(), peer, CLIENT_PORT);
                Some(now)
            }
        };
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
    pub(super) fn progress(&self) -> Progress {
        self.progress
    }

    fn run_application(&mut self, now: Instant) -> bool {
        let socket = self.sockets.get_mut::<tcp::Socket<'_>>(self.socket);
        if socket.state() == tcp::State::Established {
            self.started.get_or_insert(now);
        }
        let took = now.saturating_since(self.started.unwrap_or(now));
        let before = self.progress;
        if !matches!(before, Progress::Done(_) | Progress::Broken) {
            self.progress = match &mut self.application {
                Application::Server(server) => server.serve(socket, took),
                Application::Client(client) => client.take_in(socket, took),
            };
        }
        self.progress != before
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
    socket.set_congestion_control(CONGESTION);
    let delay = NetDuration::from_micros(ACK_DELAY.as_micros());
    socket.set_ack_delay(Some(delay));
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
    use crate::link::Arrived;

    fn is_whole(progress: Progress) -> bool {
        matches!(progress, Progress::Done(Arrived { intact: true, .. }))
    }

    fn transfer(mtu: u16, octets: u64, spoil: Option<usize>) -> (Progress, Progress, usize) {
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 1));
        let mut client = Stack::new(Application::client(), a, b, mtu, 1, Instant::from_nanos(0));
        let mut server = Stack::new(
            Application::server(9, octets),
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
            assert!(is_whole(client), "{client:?}");
            assert!(is_whole(server), "{server:?}");
            assert_eq!(largest, usize::from(mtu));
        }
    }

    /// smoltcp does not tell its times.
    #[test]
    fn who_is_not_answered_asks_again_after_the_times_that_are_told() {
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 1));
        let mut client = Stack::new(Application::client(), a, b, 576, 1, Instant::from_nanos(0));
        let mut asked = Vec::new();
        for step in 0..2_300 {
            let now = Instant::from_millis(100 * step);
            client.poll(now, true);
            asked.extend(std::iter::from_fn(|| client.output()).map(|_| now));
        }
        let waits = asked.windows(2).map(|two| two[1].saturating_since(two[0]));
        let [first, most] = RETRANSMISSION;
        let doubled = (0..).map(|times| (first * (1 << times)).min(most));
        let expected: Vec<Span> = doubled.take(8).collect();
        assert_eq!(waits.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_spoilt_segment_is_repaired() {
        let (client, ..) = transfer(576, 20_000, Some(7));
        assert!(is_whole(client), "{client:?}");
    }
}
