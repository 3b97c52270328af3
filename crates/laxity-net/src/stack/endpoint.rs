//! One interface of smoltcp with at most one socket: smoltcp looks at each socket of an interface for every packet, so a client's own has no other's.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;

use laxity_model::Instant;
use laxity_model::nif::link::{Left, Memory};
use smoltcp::iface::{Interface, PollIngressSingleResult, PollResult, SocketHandle, SocketSet};
use smoltcp::phy::{self, DeviceCapabilities, Medium};
use smoltcp::socket::{AnySocket, Socket, tcp};
use smoltcp::time::Instant as NetInstant;
use smoltcp::wire::{HardwareAddress, IpCidr, IpEndpoint, IpListenEndpoint};

use super::Common;
use super::arrival::{Arrivals, Packet};
use super::edge::Edge;
use super::moved::{Count, Moved};
use super::neighbours::PATIENCE;
use super::registrar::{Outcome, Registration, leave};
use super::wire::{self, HEADER, Hardware, IPV4, IPV6, Seen, TCP};
use crate::buffers::{Buffer, Empty, Filled, Pool, Sending};

/// The longest packet that is left to the interface to cut: an interface of Linux takes 65,536 bytes with its Ethernet header, of which a tag may be a part, and a packet socket drops what is longer.
const LONGEST: Option<NonZeroUsize> = NonZeroUsize::new(65_536 - HEADER - 4);
/// Packets that wait for an endpoint whose client is being registered.
const EARLY: usize = 4;

/// An interface of smoltcp, its socket, and the client whose packets it takes.
pub(crate) struct Endpoint<M: Memory + 'static> {
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: Option<SocketHandle>,
    device: Device<M>,
    registration: Option<Registration<M>>,
    /// To be connected as soon as there is a client.
    connects: Option<(IpEndpoint, IpListenEndpoint)>,
    failed: Option<String>,
    /// Takes a packet only when it is asked to, so that what waits is in its client's buffers.
    takes_singly: bool,
}

struct Device<M: Memory + 'static> {
    common: Arc<Common<M>>,
    pool: Option<Pool<M>>,
    arrivals: Option<Arrivals<M>>,
    input: VecDeque<Packet<M>>,
    route: Route,
    moved: Moved,
    now: Instant,
    /// All that was sent is acknowledged but the end of it, and up to where.
    ending: Option<Ending>,
    edge: Edge,
}

/// What was acknowledged since nothing but the end of what was sent is on its way. smoltcp takes the third acknowledgement of the same for a sign that data were lost, sends them again, and stops its
/// clock; where there are no data any more it would send nothing, and the end never again. So it sees each of these once.
#[derive(Default)]
struct Ending(Option<u32>);

impl Ending {
    fn has_seen(&mut self, packet: &[u8]) -> bool {
        let Some(number) = wire::acknowledges_only(packet) else {
            return false;
        };
        let is_behind = |last: u32| number.wrapping_sub(last).cast_signed() <= 0;
        let has_seen = self.0.is_some_and(is_behind);
        if !has_seen {
            self.0 = Some(number);
        }
        has_seen
    }
}

/// Where its last packet went. Its lock is this endpoint's, and not the neighbours'.
#[derive(Default)]
struct Route {
    cached: Option<(IpAddr, Hardware, Instant)>,
    /// The driver is still to be told of what was sent: of all at once, as it is above whoever sends, and would wake for each.
    is_untold: bool,
}

impl<M: Memory + 'static> Endpoint<M> {
    /// Without a socket: it answers what is for nobody else.
    pub(super) fn bare(common: Arc<Common<M>>, pool: Pool<M>, now: Instant) -> Self {
        Self::build(common, Some(pool), None, None, now)
    }

    /// With a socket and a client of its own, which may still be asked for.
    pub(crate) fn with_socket<T: AnySocket<'static>>(
        common: Arc<Common<M>>,
        arrivals: Arrivals<M>,
        registration: Registration<M>,
        socket: T,
        now: Instant,
    ) -> Self {
        let mut made = Self::build(common, None, Some(arrivals), Some(registration), now);
        made.socket = Some(made.sockets.add(socket));
        made
    }

    fn build(
        common: Arc<Common<M>>,
        pool: Option<Pool<M>>,
        arrivals: Option<Arrivals<M>>,
        registration: Option<Registration<M>>,
        now: Instant,
    ) -> Self {
        let mut device = Device {
            pool,
            arrivals,
            input: VecDeque::new(),
            route: Route::default(),
            moved: Moved::default(),
            now,
            ending: None,
            edge: Edge::of(common.receivable()),
            common,
        };
        let mut config = smoltcp::iface::Config::new(HardwareAddress::Ip);
        config.random_seed = device.common.draw();
        let mut interface = Interface::new(config, &mut device, net(now));
        interface.update_ip_addrs(|all| {
            for (address, bits) in &device.common.config.addresses {
                // No more than fit: that was checked as the stack was made.
                all.push(IpCidr::new((*address).into(), *bits)).ok();
            }
        });
        Self {
            interface,
            sockets: SocketSet::new(Vec::new()),
            socket: None,
            device,
            registration,
            connects: None,
            failed: None,
            takes_singly: false,
        }
    }

    /// Connects as soon as its client is registered, so that no answer comes before.
    pub(crate) fn connect(&mut self, remote: IpEndpoint, local: IpListenEndpoint) {
        self.connects = Some((remote, local));
    }

    /// A packet that came to the late client, to be looked at later. `false`: there was no room.
    pub(super) fn pass(&mut self, packet: &Packet<M>) -> bool {
        let has_room = self.device.input.len() < EARLY;
        if has_room {
            self.device.input.push_back(packet.copied());
        }
        has_room
    }

    /// A packet that is looked at now. What finds no buffer to be answered from is as if lost.
    pub(super) fn answer(&mut self, packet: Packet<M>, now: Instant) {
        self.device.input.push_back(packet);
        while self.take_one(now) {}
        self.device.input.clear();
    }

    /// From now on it takes no packet but by [`take_one`](Self::take_one).
    pub(crate) fn take_singly(mut self) -> Self {
        self.takes_singly = true;
        self
    }

    /// Its socket, if that is of this kind.
    pub(crate) fn socket<T: AnySocket<'static>>(&mut self) -> Option<&mut T> {
        let socket = self.socket?;
        Some(self.sockets.get_mut(socket))
    }

    /// What it has worked on.
    pub(crate) const fn moved(&self) -> Moved {
        self.device.moved
    }

    /// Why it has no client.
    pub(crate) fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Whether its client is still asked for.
    pub(crate) fn is_starting(&self) -> bool {
        self.device.pool.is_none() || self.connects.is_some()
    }

    /// Takes what arrived and sends what may go, at most as many packets as a poll may. When to come again, if nothing happens before.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Instant> {
        self.device.now = now;
        self.adopt();
        self.device.pool.as_ref()?;
        let most = self.device.common.config.per_poll;
        let most = if self.takes_singly { 0 } else { most };
        let has_more = (0..most).all(|_| self.ingress(now)) && most > 0;
        self.egress(now);
        if has_more {
            return Some(now);
        }
        self.retire();
        let next = self.interface.poll_at(net(now), &self.sockets)?;
        let next = Instant::from_micros(u64::try_from(next.total_micros()).unwrap_or(0));
        // What could not go waits for a buffer, which rings; but not one that waited for a neighbour's answer, and is given up.
        let has_buffer = !matches!(&self.device.pool, Some(pool) if pool.census().free == 0);
        let is_next = next > now || has_buffer;
        Some(if is_next { next } else { now + PATIENCE })
    }

    /// Where all is said that its peer has to hear, what may still come is for the late client, and its own client ends.
    fn retire(&mut self) {
        if self.connects.is_none()
            && self.device.pool.is_some()
            && self.sockets.iter().any(|(_, socket)| is_over(socket))
            && let Some(registration) = self.registration.take()
        {
            self.device.arrivals = None;
            self.device.pool = Some(self.device.common.pool.clone());
            leave(&*self.device.common.registrar, registration);
        }
    }

    /// Takes one packet that arrived; `false`: there is none.
    pub(crate) fn take_one(&mut self, now: Instant) -> bool {
        self.device.now = now;
        self.adopt();
        let taken = self.ingress(now);
        self.device.tell();
        taken
    }

    fn ingress(&mut self, now: Instant) -> bool {
        let (device, sockets) = (&mut self.device, &mut self.sockets);
        if !sockets.iter().any(|(_, socket)| is_ending(socket)) {
            device.ending = None;
        } else if device.ending.is_none() {
            device.ending = Some(Ending::default());
        }
        let taken = self
            .interface
            .poll_ingress_single(net(now), device, sockets);
        taken != PollIngressSingleResult::None
    }

    /// Sends what may go.
    pub(crate) fn egress(&mut self, now: Instant) {
        self.device.now = now;
        self.adopt();
        for _ in 0..self.device.common.config.per_poll {
            let (device, sockets) = (&mut self.device, &mut self.sockets);
            if self.interface.poll_egress(net(now), device, sockets) == PollResult::None {
                break;
            }
        }
        self.device.tell();
    }

    /// Looks whether the driver has registered its client.
    fn adopt(&mut self) {
        let (None, None, Some(registration)) =
            (&self.device.pool, &self.failed, &self.registration)
        else {
            return;
        };
        match registration.outcome() {
            Some(Outcome::Made(_, pool)) => self.device.pool = Some(pool.clone()),
            Some(Outcome::Refused(why)) => self.failed = Some(why.clone()),
            None => {}
        }
        if self.device.pool.is_none() {
            return;
        }
        let (Some((remote, local)), Some(handle)) = (self.connects.take(), self.socket) else {
            return;
        };
        let socket: &mut tcp::Socket<'static> = self.sockets.get_mut(handle);
        if let Err(why) = socket.connect(self.interface.context(), remote, local) {
            self.failed = Some(why.to_string());
        }
    }
}

impl<M: Memory + 'static> Drop for Endpoint<M> {
    fn drop(&mut self) {
        if let Some(registration) = self.registration.take() {
            leave(&*self.device.common.registrar, registration);
        }
    }
}

/// Its peer has all but the end of what was sent.
fn is_ending(socket: &Socket<'_>) -> bool {
    use tcp::State::{Closing, FinWait1, LastAck};
    matches!(socket, Socket::Tcp(socket)
        if matches!(socket.state(), FinWait1 | Closing | LastAck) && socket.send_queue() == 0)
}

/// Both ends have ended, or nothing of it is left.
fn is_over(socket: &Socket<'_>) -> bool {
    matches!(socket, Socket::Tcp(socket) if match socket.state() {
        tcp::State::TimeWait => true,
        tcp::State::Closed => socket.remote_endpoint().is_none(),
        _ => false,
    })
}

pub(crate) fn net(now: Instant) -> NetInstant {
    NetInstant::from_micros(i64::try_from(now.as_micros()).unwrap_or(i64::MAX))
}

impl<M: Memory> phy::RxToken for Packet<M> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.bytes()[HEADER..])
    }
}

pub(crate) struct Sent<'a, M: Memory + 'static> {
    buffer: Buffer<M, Empty>,
    /// The interface is to cut it into segments of so many bytes; 0: it is none.
    segment: u16,
    common: &'a Common<M>,
    route: &'a mut Route,
    sent: &'a mut Count,
    edge: &'a mut Edge,
    now: Instant,
}

impl<M: Memory + 'static> phy::TxToken for Sent<'_, M> {
    fn set_meta(&mut self, meta: phy::PacketMeta) {
        self.segment = meta.segmentation_offload_size.map_or(0, u16::from);
    }

    fn consume<R, F: FnOnce(&mut [u8]) -> R>(mut self, length: usize, write: F) -> R {
        let Some(frame) = self.buffer.room_for(HEADER + length) else {
            // Longer than the interface carries: as if lost on the way.
            return write(&mut vec![0; length]);
        };
        let packet = &mut frame[HEADER..];
        let written = write(packet);
        self.edge.tell(packet);
        let mut sending = Sending::default();
        if self.common.finishes && wire::is_tcp(packet) {
            wire::begin(packet);
            sending.left = Left {
                checksum: true,
                segment: self.segment,
            };
        }
        let kind = if packet[0] >> 4 == 4 { IPV4 } else { IPV6 };
        let to = wire::destination(packet);
        wire::head(
            frame,
            Hardware::default(),
            self.common.config.hardware,
            kind,
        );
        if let (Some(to), Ok(filled)) = (to, self.buffer.filled(HEADER + length)) {
            self.sent.add(length);
            self.common
                .send(to, (filled, sending), self.route, self.now);
        }
        written
    }
}

impl<M: Memory + 'static> Common<M> {
    /// Sends a frame to whoever is next on the way, now or when its hardware address is known.
    fn send(
        &self,
        to: IpAddr,
        (mut frame, sending): (Buffer<M, Filled>, Sending),
        route: &mut Route,
        now: Instant,
    ) {
        if self.is_bare {
            return send(frame, sending, route);
        }
        let Some(hop) = self.config.next_hop(to) else {
            return;
        };
        let cached = route
            .cached
            .filter(|(whose, _, until)| *whose == hop && now < *until);
        let hardware = match cached {
            Some((_, hardware, _)) => hardware,
            None => {
                let mut neighbours = self.neighbours();
                let Some((hardware, until)) = neighbours.find(hop, now) else {
                    return neighbours.wait(hop, now, (frame, sending));
                };
                route.cached = Some((hop, hardware, until));
                hardware
            }
        };
        frame.bytes_mut()[..6].copy_from_slice(&hardware);
        send(frame, sending, route);
    }
}

/// Sends it now; whose client has ended sends nothing.
fn send<M: Memory>(frame: Buffer<M, Filled>, sending: Sending, route: &mut Route) {
    frame.send_quietly(sending).ok();
    route.is_untold = true;
}

impl<M: Memory + 'static> Device<M> {
    /// Tells the driver of what was sent since it was told last.
    fn tell(&mut self) {
        if std::mem::take(&mut self.route.is_untold)
            && let Some(pool) = &self.pool
        {
            pool.announce();
        }
    }

    /// The next packet that may be looked at.
    fn next(&mut self) -> Option<Packet<M>> {
        for _ in 0..self.common.config.per_poll {
            let next = self.input.pop_front();
            let mut packet = next.or_else(|| self.arrivals.as_ref()?.next())?;
            let seen = self.common.look(packet.bytes());
            let begun = packet.is_begun();
            match seen {
                Seen::Transport(protocol, _) => {
                    let bytes = &mut packet.bytes_mut()[HEADER..];
                    if begun && protocol != TCP {
                        wire::finish(bytes, protocol);
                    }
                    let is_sound = protocol != TCP || begun || wire::is_sound(bytes);
                    if protocol == TCP {
                        self.edge.bring_within(bytes);
                    }
                    let ending = self.ending.as_mut();
                    if is_sound && !ending.is_some_and(|ending| ending.has_seen(bytes)) {
                        return Some(packet);
                    }
                }
                Seen::Control => return Some(packet),
                _ => {}
            }
        }
        None
    }
}

impl<M: Memory + 'static> phy::Device for Device<M> {
    type RxToken<'a> = Packet<M>;
    type TxToken<'a> = Sent<'a, M>;

    fn receive(&mut self, _: NetInstant) -> Option<(Packet<M>, Sent<'_, M>)> {
        let buffer = self.pool.as_ref()?.take().ok()?;
        let packet = self.next()?;
        self.moved.received.add(packet.bytes().len() - HEADER);
        let sent = self.transmit_from(buffer);
        Some((packet, sent))
    }

    fn transmit(&mut self, _: NetInstant) -> Option<Sent<'_, M>> {
        let buffer = self.pool.as_ref()?.take().ok()?;
        Some(self.transmit_from(buffer))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.common.config.mtu;
        // What arrives was checked before.
        capabilities.checksum.tcp = phy::Checksum::Tx;
        if self.common.finishes {
            capabilities.checksum.tcp = phy::Checksum::None;
            // Of IPv6, smoltcp 0.14 drops what is longer than the MTU, also where it is to be cut.
            capabilities.segmentation.tcpv4 = LONGEST;
        }
        capabilities
    }
}

impl<M: Memory + 'static> Device<M> {
    fn transmit_from(&mut self, buffer: Buffer<M, Empty>) -> Sent<'_, M> {
        Sent {
            buffer,
            segment: 0,
            common: &self.common,
            route: &mut self.route,
            sent: &mut self.moved.sent,
            edge: &mut self.edge,
            now: self.now,
        }
    }
}
