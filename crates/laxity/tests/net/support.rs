//! Interfaces over UDP whose far end the test has, frames, and clients that tell what they get.

use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use laxity::doctor::rights::{LiveTest, lacks, turn};
use laxity::net::buffers::{Buffer, Filled, Pool, Sending};
use laxity::net::client::{Client, Context, Loan, News, Peek};
use laxity::net::{AnyMemory, Interface, Options};
use laxity_model::nif::link::LinkError;

use super::namespace;

/// Runs this in a network namespace of its own; skipped where none can be had.
pub(crate) fn in_namespace(run: impl FnOnce() + Send) {
    let _turn: LiveTest = turn();
    if namespace::in_own(run).is_none() {
        lacks("no network namespace of one's own with interfaces in it");
    }
}

/// An interface over UDP, and the socket at its other end.
pub(crate) fn over_udp(options: Options) -> (Interface, UdpSocket) {
    let far = UdpSocket::bind("127.0.0.1:0").unwrap();
    let remote = far.local_addr().unwrap();
    let local = free_address();
    let interface = Interface::open(&format!("udp:{local}-{remote}"), options).unwrap();
    far.connect(local).unwrap();
    far.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    (interface, far)
}

/// One that nobody has between this and whoever opens it: the kernel gives such numbers out in turn.
pub(crate) fn free_address() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap()
}

/// A datagram of UDP.
pub(crate) fn datagram(from: &str, to: &str, payload: &[u8]) -> Vec<u8> {
    namespace::packet(from, to, 17, payload)
}

/// What a client was told.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Heard {
    Packet(Vec<u8>),
    Sent(u64, Result<(), LinkError>),
    News(News),
}

/// A client that tells all, and gives each buffer again.
pub(crate) struct Tells(pub(crate) Sender<Heard>);

pub(crate) fn tells() -> (Tells, Receiver<Heard>) {
    let (tell, told) = channel();
    (Tells(tell), told)
}

impl Client<AnyMemory> for Tells {
    fn receive(&mut self, packet: Buffer<AnyMemory, Filled>, _: &mut Context<'_>) {
        self.0.send(Heard::Packet(packet.bytes().to_vec())).ok();
        packet.emptied().give().ok();
    }

    fn sent(&mut self, tag: u64, outcome: Result<(), LinkError>, _: &mut Context<'_>) {
        self.0.send(Heard::Sent(tag, outcome)).ok();
    }

    fn told(&mut self, news: News, _: &mut Context<'_>) {
        self.0.send(Heard::News(news)).ok();
    }
}

/// The same, which only looks.
impl Peek for Tells {
    fn look(&mut self, packet: Loan<'_>, _: &mut Context<'_>) {
        self.0.send(Heard::Packet(packet.bytes.to_vec())).ok();
    }

    fn told(&mut self, news: News, _: &mut Context<'_>) {
        self.0.send(Heard::News(news)).ok();
    }
}

/// What is told next.
pub(crate) fn next(told: &Receiver<Heard>) -> Heard {
    told.recv_timeout(Duration::from_secs(20)).unwrap()
}

/// Sends a frame, waiting for a buffer of the pool.
pub(crate) fn send(pool: &Pool<AnyMemory>, frame: &[u8], tag: u64) {
    let sending = Sending {
        tag,
        ..Sending::default()
    };
    let filled = pool.wait(None).unwrap().fill(frame).unwrap();
    filled.send(sending).unwrap();
}

/// Waits until something is so.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let latest = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < latest, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
