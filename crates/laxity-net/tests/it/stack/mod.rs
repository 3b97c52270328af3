//! TCP/IP over emulated wires, in virtual time: a stack at both ends, or one and a peer that sends what it likes.

mod deaf;
mod hostile;
mod leaving;
mod neighbours;
mod refused;
mod streams;
mod threads;

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};

use laxity_model::Instant;
use laxity_model::nif::frames::Frames;
use laxity_model::nif::link::Medium;
use laxity_net::buffers::{Pool, PoolSize, Sleeper};
use laxity_net::driver::{Driver, Host, Interest, Limits};
use laxity_net::emulated::{Faults, Wire};
use laxity_net::sockets::{TcpListener, TcpStream, UdpSocket};
use laxity_net::stack::{Config, Stack};

use crate::support::{Counted, CountedEnd, Keeper, send};

pub(crate) type Stream = TcpStream<Counted>;

/// The hardware addresses of a host and its peer.
pub(crate) const HOST: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub(crate) const PEER: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// A host with a stack.
pub(crate) struct Node {
    pub(crate) driver: Driver<CountedEnd, Frames>,
    pub(crate) stack: Stack<Counted>,
    alive: Arc<AtomicUsize>,
    /// Buffers when there is no connection.
    made: usize,
}

pub(crate) fn address(last: u8) -> IpAddr {
    [10, 0, 0, last].into()
}

pub(crate) fn address6(last: u8) -> IpAddr {
    [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last].into()
}

pub(crate) fn config(last: u8) -> Config {
    Config {
        hardware: [2, 0, 0, 0, 0, last],
        addresses: vec![(address(last), 24), (address6(last), 64)],
        seed: last.into(),
        ..Config::default()
    }
}

#[derive(Clone, Default)]
pub(crate) struct Time(Arc<AtomicU64>);

impl Time {
    pub(crate) fn now(&self) -> Instant {
        Instant::from_micros(self.0.load(SeqCst))
    }

    pub(crate) fn pass(&self, micros: u64) -> Instant {
        self.0.fetch_add(micros, SeqCst);
        self.now()
    }
}

fn driver(end: CountedEnd, clients: u32) -> Driver<CountedEnd, Frames> {
    // Whatever waits leaves at once.
    let limits = Limits {
        clients,
        reach: 64,
        ..Limits::default()
    };
    Driver::new(end, Frames::new(None, 1), limits, Host::default()).unwrap()
}

impl Node {
    fn new(end: CountedEnd, config: Config, clients: u32, time: &Time) -> Self {
        let alive = Arc::clone(&end.alive);
        let mut driver = driver(end, clients);
        let time = time.clone();
        let clock = Arc::new(move || time.now());
        let sleeper = Sleeper::portable(|| Instant::MAX);
        let made = Limits::default().posted + 2 * config.buffers as usize;
        let stack = Stack::new(&mut driver, config, sleeper, clock).unwrap();
        assert_eq!(alive.load(SeqCst), made);
        Self {
            driver,
            stack,
            alive,
            made,
        }
    }

    pub(crate) fn step(&mut self, now: Instant) {
        self.driver.poll(now, &mut ()).unwrap();
        self.stack.poll(now);
    }

    /// All buffers of connections have come home and gone with them: there are those that were made at first.
    pub(crate) fn has_all_home(&self) -> bool {
        self.alive.load(SeqCst) == self.made && self.driver.census().total() == 64
    }
}

/// Two hosts, a wire between them.
pub(crate) struct Two {
    pub(crate) time: Time,
    pub(crate) wire: Wire,
    pub(crate) near: Node,
    pub(crate) far: Node,
}

impl Two {
    pub(crate) fn new(faults: Faults) -> Self {
        Self::with(faults, config(1), 64)
    }

    /// The wire's faults follow from the seed.
    pub(crate) fn seeded(faults: Faults, seed: u64) -> Self {
        Self::made(faults, (seed, config(1)), 64)
    }

    pub(crate) fn with(faults: Faults, near_config: Config, clients: u32) -> Self {
        Self::made(faults, (7, near_config), clients)
    }

    /// The near end has one buffer to receive into, and one to send from.
    pub(crate) fn of_one_buffer(faults: Faults, seed: u64) -> Self {
        let near = Config {
            buffers: 1,
            ..config(1)
        };
        Self::made(faults, (seed, near), 64)
    }

    fn made(faults: Faults, (seed, near_config): (u64, Config), clients: u32) -> Self {
        let time = Time::default();
        let (wire, near, far) = Wire::new(faults, seed);
        let near = Node::new(CountedEnd::new(near), near_config, clients, &time);
        let far = Node::new(CountedEnd::new(far), config(2), clients, &time);
        Self {
            time,
            wire,
            near,
            far,
        }
    }

    pub(crate) fn step(&mut self) {
        let now = self.time.pass(100);
        self.near.step(now);
        self.far.step(now);
    }

    /// Until then, or a limit of steps.
    pub(crate) fn until<T>(&mut self, mut done: impl FnMut() -> Option<T>) -> T {
        for _ in 0..3_000_000 {
            self.step();
            if let Some(done) = done() {
                return done;
            }
        }
        panic!("it never happens");
    }

    /// A connection to the far end's listener, accepted.
    pub(crate) fn connected(&mut self, to: IpAddr) -> (Stream, Stream) {
        let listener = TcpListener::bind(&self.far.stack, 7, 1).unwrap();
        let stream = TcpStream::start(&self.near.stack, SocketAddr::new(to, 7)).unwrap();
        let time = self.time.clone();
        let peer = self.until(|| {
            stream.poll(time.now());
            listener.try_accept()
        });
        (stream, peer)
    }

    /// Everything ends, and every buffer comes home.
    pub(crate) fn end(mut self) {
        self.wire.set_faults(Faults::default());
        for _ in 0..1_500_000 {
            self.step();
            if self.near.has_all_home() && self.far.has_all_home() {
                return;
            }
        }
        panic!("buffers are missing");
    }
}

/// Sockets of both hosts, each at port 53, that do not block.
pub(crate) fn sockets(two: &mut Two, own: fn(u8) -> IpAddr) -> [UdpSocket<Counted>; 2] {
    let both = [(&two.near, 1), (&two.far, 2)].map(|(node, last)| socket(node, own(last), 53));
    (0..8).for_each(|_| two.step());
    both
}

pub(crate) fn socket(node: &Node, own: IpAddr, port: u16) -> UdpSocket<Counted> {
    let socket = UdpSocket::bind(&node.stack, SocketAddr::new(own, port)).unwrap();
    socket.set_nonblocking(true);
    socket
}

/// Why something fails; `None` as long as it would block.
pub(crate) fn failure<T: std::fmt::Debug>(result: std::io::Result<T>) -> Option<ErrorKind> {
    let kind = result.unwrap_err().kind();
    (kind != ErrorKind::WouldBlock).then_some(kind)
}

/// What of it goes now.
pub(crate) fn write(stream: &mut Stream, bytes: &[u8]) -> usize {
    match stream.write(bytes) {
        Ok(count) => count,
        Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
        Err(error) => panic!("{error}"),
    }
}

/// What has come; `None` at the end.
pub(crate) fn read(stream: &mut Stream, into: &mut Vec<u8>) -> Option<()> {
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return None,
            Ok(count) => into.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Some(()),
            Err(error) => panic!("{error}"),
        }
    }
}

/// A host, and a peer that sends any frame.
pub(crate) struct Scripted {
    pub(crate) time: Time,
    pub(crate) host: Node,
    /// What the host receives has a checksum that was only begun.
    pub(crate) is_begun: Arc<AtomicBool>,
    peer: Driver<CountedEnd, Frames>,
    heard: Keeper<Counted>,
    hears: Pool<Counted>,
    pool: Pool<Counted>,
}

impl Scripted {
    pub(crate) fn new() -> Self {
        Self::build(Medium::Ethernet, 64)
    }

    /// The host's interface says that it carries this.
    pub(crate) fn over(medium: Medium) -> Self {
        Self::build(medium, 64)
    }

    /// The host's driver has room for so many.
    pub(crate) fn with_clients(clients: u32) -> Self {
        Self::build(Medium::Ethernet, clients)
    }

    fn build(medium: Medium, clients: u32) -> Self {
        let time = Time::default();
        let (_, near, far) = Wire::new(Faults::default(), 7);
        let mut near = CountedEnd::new(near);
        near.facts.medium = medium;
        let is_begun = Arc::clone(&near.is_begun);
        let host = Node::new(near, config(1), clients, &time);
        let mut peer = driver(CountedEnd::new(far), 64);
        let heard = Keeper::default();
        let client = peer.register(Interest::Default, PoolSize::fixed(64), heard.clone());
        let hears = client.unwrap().pool;
        let sends = Keeper::<Counted>::default();
        let sender = peer.register(Interest::Nothing, PoolSize::fixed(64), sends);
        let pool = sender.unwrap().pool;
        Self {
            time,
            host,
            is_begun,
            peer,
            heard,
            hears,
            pool,
        }
    }

    /// Sends a frame, and what is answered.
    pub(crate) fn say(&mut self, frame: &[u8]) -> Vec<Vec<u8>> {
        send(&self.pool, frame);
        self.hear()
    }

    pub(crate) fn hear(&mut self) -> Vec<Vec<u8>> {
        for _ in 0..4 {
            while let Some(packet) = self.heard.pop() {
                drop(packet);
            }
            self.hears.give(64);
            let now = self.time.pass(100);
            self.peer.poll(now, &mut ()).unwrap();
            self.host.step(now);
        }
        self.peer.poll(self.time.now(), &mut ()).unwrap();
        self.heard.bytes()
    }

    /// Whether a question of ARP is among them.
    pub(crate) fn is_asked(answers: &[Vec<u8>]) -> bool {
        answers.iter().any(|frame| frame[12..14] == [8, 6])
    }
}

/// An answer of ARP.
pub(crate) fn arp(operation: u8, from: [u8; 6], who: u8, to: [u8; 6], whom: u8) -> Vec<u8> {
    let mut frame = if operation == 1 {
        vec![0xff; 6]
    } else {
        to.to_vec()
    };
    frame.extend(from);
    frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, operation]);
    frame.extend(from);
    frame.extend([10, 0, 0, who]);
    frame.extend(to);
    frame.extend([10, 0, 0, whom]);
    frame
}
