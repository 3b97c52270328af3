//! Whatever peers send, the host hears what comes after: all buffers that the late client received into at first are with the driver again.

use etherparse::PacketBuilder;
use laxity_model::base::random::SplitMix64;
use laxity_net::sockets::{TcpListener, UdpSocket};

use super::{HOST, PEER, Scripted, address, arp, socket};
use crate::support::{Counted, send};

/// What the late client has to receive into.
const GIVEN: u32 = 64;

fn builder() -> etherparse::PacketBuilderStep<etherparse::IpHeaders> {
    PacketBuilder::ethernet2(PEER, HOST).ipv4([10, 0, 0, 2], [10, 0, 0, 1], 64)
}

/// Of a connection from this port to port 80: its first packet, or one with data.
fn segment(from: u16, is_first: bool) -> Vec<u8> {
    let (mut frame, tcp) = (Vec::new(), builder().tcp(from, 80, 77, 8192));
    let (tcp, data): (_, &[u8]) = if is_first {
        (tcp.syn(), b"")
    } else {
        (tcp.ack(1), b"x")
    };
    tcp.write(&mut frame, data).unwrap();
    frame
}

fn datagram(to: u16) -> Vec<u8> {
    let mut frame = Vec::new();
    builder().udp(9, to).write(&mut frame, b"data").unwrap();
    frame
}

impl Scripted {
    /// Sends all of these before the host looks.
    fn burst(&mut self, frames: impl IntoIterator<Item = Vec<u8>>) {
        frames
            .into_iter()
            .for_each(|frame| send(&self.pool, &frame));
        self.hear();
    }

    /// Nothing is under way any more, nor waited for.
    fn rest(&mut self) {
        for _ in 0..200 {
            self.time.pass(1_000_000);
            self.hear();
        }
        assert_eq!(self.host.stack.tended(), 0);
    }

    fn hears_all(&mut self) {
        assert_eq!(self.host.stack.census().given, GIVEN);
        let answers = self.say(&arp(1, PEER, 2, [0; 6], 1));
        assert_eq!(answers.len(), 1, "{answers:?}");
    }
}

#[test]
fn a_host_that_has_no_clients_left_for_connections_hears_what_comes_after() {
    // The stack's own, and those of three sockets.
    let mut world = Scripted::with_clients(4);
    let listener = TcpListener::bind(&world.host.stack, 80, 64).unwrap();
    let sockets = [1, 2, 3].map(|port| socket(&world.host, address(1), port));
    world.hear();
    for from in 0..4 {
        world.burst((0..32).map(|number| segment(1_000 + 32 * from + number, true)));
        world.rest();
    }
    assert!(listener.try_accept().is_none());
    world.hears_all();
    drop(sockets);
}

#[test]
fn a_burst_for_a_connection_that_begins_costs_the_host_no_buffer() {
    let mut world = Scripted::with_clients(64);
    let _listener = TcpListener::bind(&world.host.stack, 80, 64).unwrap();
    for from in [1_000, 1_001] {
        world.burst((0..31).map(|number| segment(from, number == 0)));
        world.rest();
        world.hears_all();
    }
    // Each of them is one of these.
    let account = world.host.stack.account();
    let all = account.neighbours + account.passed + account.began + account.refused;
    let all = all + account.nobodys + account.dropped;
    assert_eq!(all, world.host.driver.account().swapped);
    assert_eq!((account.began, account.dropped), (2, 2 * 27));
}

/// One in three has some bits that are not as they were.
fn mutate(random: &mut SplitMix64, frame: &mut [u8]) {
    if random.draw().is_multiple_of(3) {
        for _ in 0..1 + random.draw() % 3 {
            let at = random.draw() as usize % frame.len();
            frame[at] ^= 1 << (random.draw() % 8);
        }
    }
}

fn drawn(random: &mut SplitMix64) -> Vec<u8> {
    let port = 1_000 + (random.draw() % 6) as u16;
    let mut frame = match random.draw() % 8 {
        0..2 => segment(port, true),
        2..5 => segment(port, false),
        5 => datagram(1 + (random.draw() % 4) as u16),
        6 => arp(
            1 + (random.draw() % 2) as u8,
            PEER,
            random.draw() as u8,
            HOST,
            1,
        ),
        _ => {
            let (mut frame, echo) = (Vec::new(), builder().icmpv4_echo_request(5, 6));
            echo.write(&mut frame, b"payload").unwrap();
            frame
        }
    };
    mutate(random, &mut frame);
    frame
}

/// Sockets come and go meanwhile, some find no client, and nobody works on the connections that are kept.
#[test]
fn after_any_story_all_buffers_of_the_late_client_are_given() {
    for seed in 0..24 {
        let mut random = SplitMix64::new(seed);
        let mut world = Scripted::with_clients(3 + seed as u32 % 5);
        let listener = TcpListener::bind(&world.host.stack, 80, 3).unwrap();
        let mut sockets: Vec<UdpSocket<Counted>> = Vec::new();
        let mut streams = Vec::new();
        for _ in 0..60 {
            let together = random.draw() % 48;
            let frames: Vec<_> = (0..together).map(|_| drawn(&mut random)).collect();
            world.burst(frames);
            match random.draw() % 6 {
                0 => sockets.push(socket(&world.host, address(1), 1 + sockets.len() as u16)),
                1 => drop(sockets.pop()),
                2 => streams.clear(),
                3 => {
                    world.time.pass(30_000_000);
                }
                _ => streams.extend(listener.try_accept()),
            }
        }
        world.rest();
        world.hears_all();
    }
}
