//! Clients that are found at the hook.

use laxity_linux::net::xdp::Mode;
use laxity_linux::net::xdp::early::{EarlySettings, EarlySocket, Flow};
use laxity_linux::net::xdp::program::Rest;
use laxity_linux::net::{PacketLink, Settings, UmemFrame, XdpLink};
use laxity_linux::os::clock;
use laxity_model::base::random::SplitMix64;
use laxity_model::nif::filter::Filter;
use laxity_model::nif::frame::is_extension;
use laxity_model::nif::frames::Frames;
use laxity_model::nif::link::{Left, Link, Memory, Received, Stamp};
use laxity_model::nif::registry::{ClientId, Demultiplex, Found};
use libtest_mimic::Trial;

use super::common::until;
use super::in_namespace;
use super::namespace::{packet, pair};

pub(super) fn datagram(from: &str, to: &str, protocol: u8) -> Vec<u8> {
    packet(from, to, protocol, &[1, 2, 3, 4])
}

fn flow(own: &str, far: Option<&str>) -> Flow {
    Flow {
        is_tcp: false,
        own: own.parse().unwrap(),
        far: far.map(|far| far.parse().unwrap()),
    }
}

pub(super) const UDP: u8 = 17;
const OWN: &str = "10.0.0.2:2000";

struct Stage {
    far: PacketLink,
    link: XdpLink,
}

impl Stage {
    fn new(rest: Rest, posted: usize) -> Self {
        pair("near", "far");
        let early = EarlySettings {
            flows: 64,
            clients: 8,
            rest,
        };
        let opened = XdpLink::open_early("near", Mode::Generic, &Settings::default(), &early);
        let mut link = opened.unwrap();
        for frame in link.allocate(posted).unwrap() {
            link.post(frame).unwrap();
        }
        let far = PacketLink::open("far", &Settings::default()).unwrap();
        Self { far, link }
    }

    fn send(&mut self, frame: &[u8]) {
        let mut memory = self.far.allocate(1).unwrap().pop().unwrap();
        memory.bytes_mut()[..frame.len()].copy_from_slice(frame);
        let now = clock::now();
        self.far.send(memory, frame.len(), now).unwrap();
        until("it has left", || self.far.sent(clock::now()).is_some());
    }

    fn arrival(&mut self) -> Received<UmemFrame> {
        let mut arrived = None;
        until("a packet", || {
            arrived = self.link.receive(clock::now()).unwrap();
            arrived.is_some()
        });
        arrived.unwrap()
    }

    /// Who has which of these frames. The kernel counts each of them before the next is sent: packet sockets send within the call, and a veth's other
    /// end is served by the same processor before that returns.
    fn client_of(&mut self, frame: &[u8]) -> Option<u32> {
        self.send(frame);
        let received = self.arrival();
        assert_eq!(received.memory.bytes()[..received.length], *frame);
        assert_eq!(received.stamp, Stamp::Hook);
        received.early
    }
}

fn most_specific_flow_wins() {
    let mut stage = Stage::new(Rest::ClientZero, 64);
    let early = stage.link.early().unwrap();
    for client in 0..5 {
        early.give(client, 10);
    }
    let own6 = "[fd00::2]:2000";
    early.steer(&flow(OWN, None), 1, 0).unwrap();
    let exact = flow(OWN, Some("10.0.0.1:1000"));
    early.steer(&exact, 2, 0).unwrap();
    early.steer(&flow(own6, None), 3, 0).unwrap();
    let exact6 = flow(own6, Some("[fd00::1]:1000"));
    early.steer(&exact6, 4, 0).unwrap();
    let to = |from: &str| datagram(from, OWN, UDP);
    assert_eq!(stage.client_of(&to("10.0.0.1:1000")), Some(2));
    assert_eq!(stage.client_of(&to("10.0.0.1:1001")), Some(1));
    assert_eq!(stage.client_of(&to("10.0.0.3:1000")), Some(1));
    assert_eq!(
        stage.client_of(&datagram("[fd00::1]:1000", own6, UDP)),
        Some(4)
    );
    assert_eq!(
        stage.client_of(&datagram("[fd00::1]:999", own6, UDP)),
        Some(3)
    );
    // Of nobody: another port, another protocol, a fragment, options, a tag, a length beyond the packet.
    let plain = to("10.0.0.1:1000");
    let mut others = vec![
        datagram("10.0.0.1:1000", "10.0.0.2:2001", UDP),
        datagram("10.0.0.1:1000", OWN, 6),
        datagram("10.0.0.1:1000", OWN, 1),
    ];
    for (at, value) in [(20, 0x20), (14, 0x46), (17, 200), (17, 20), (14, 0x65)] {
        let mut other = plain.clone();
        other[at] = value;
        others.push(other);
    }
    let credits = stage.link.early().unwrap().credits(0);
    for other in &others {
        assert_eq!(stage.client_of(other), Some(0), "{other:?}");
    }
    let early = stage.link.early().unwrap();
    assert_eq!(early.credits(0), credits - others.len() as u32);
    assert_eq!(early.credits(2), 9);
    assert_eq!(early.forget(&exact), Ok(true));
    assert_eq!(early.forget(&exact), Ok(false));
    assert_eq!(stage.client_of(&plain), Some(1));
}

/// Every packet belongs to whom the driver would say, or it is left to the driver.
fn the_hook_finds_whom_the_driver_finds() {
    const OWN6: &str = "[a00:2::]:2000";
    let mut stage = Stage::new(Rest::ClientZero, 64);
    let early = stage.link.early().unwrap();
    early.give(0, 8);
    let mut frames = Frames::new(None, 1);
    let all = [
        (17, OWN, None),
        (17, OWN, Some("10.0.0.1:1000")),
        (17, OWN, Some("0.0.0.0:0")),
        // As bytes they are the first two's.
        (17, OWN6, None),
        (17, OWN6, Some("[a00:1::]:1000")),
        (6, OWN, None),
        (6, OWN6, Some("[a00:1::]:1000")),
    ];
    for (client, (protocol, own, far)) in (1..).zip(all) {
        let flow = Flow {
            is_tcp: protocol == 6,
            ..flow(own, far)
        };
        early.steer(&flow, client, 0).unwrap();
        early.give(client, 8);
        let filter = Filter::to(flow.is_tcp, flow.own, flow.far).unwrap();
        frames.register(&filter, ClientId(client)).unwrap();
    }
    let mut random = SplitMix64::new(31);
    let mut found = [0; 8];
    for _ in 0..6_000 {
        let frame = hostile(&mut random);
        stage.send(&frame);
        let received = stage.arrival();
        assert_eq!(received.memory.bytes()[..received.length], *frame);
        let at_hook = received.early.unwrap();
        let at_driver = match frames.find(&frame) {
            Found::Client(client) => client.0,
            Found::Nobody | Found::Malformed(_) => 0,
        };
        let is_longer = match frame[12] {
            8 => frame[14] & 15 != 5,
            _ => is_extension(frame[20]),
        };
        let is_left = at_hook == 0 && is_longer;
        assert!(
            at_hook == at_driver || is_left,
            "{at_hook}, not {at_driver}: {frame:x?}"
        );
        found[at_hook as usize] += 1;
        stage.link.post(received.memory).unwrap();
        stage.link.early().unwrap().give(at_hook, 1);
    }
    assert!(found.iter().all(|each| *each > 60), "{found:?}");
}

/// A packet for one of some flows, or beside them, with whatever somebody may have changed about it.
fn hostile(random: &mut SplitMix64) -> Vec<u8> {
    let mut draw = |of: u64| (random.draw() % of) as usize;
    let is_ipv6 = draw(2) == 1;
    let [from, to] = if is_ipv6 {
        [
            ["[a00:1::]:1000", "[a00:1::]:1001", "[fd00::1]:1000"][draw(3)],
            ["[a00:2::]:2000", "[a00:2::1]:2000"][draw(8) / 7],
        ]
    } else {
        [
            ["10.0.0.1:1000", "10.0.0.1:1001", "0.0.0.0:0"][draw(3)],
            [OWN, "10.0.0.3:2000"][draw(8) / 7],
        ]
    };
    let protocol = if draw(2) == 1 { 6 } else { UDP };
    let mut frame = packet(from, to, protocol, &[7; 24]);
    let (behind, lengths) = if is_ipv6 {
        (54, [18, 58])
    } else {
        (34, [16, 38])
    };
    match draw(10) {
        // A length of IP or of UDP that is nearly right, or not at all.
        0..3 => {
            let at = lengths[draw(2)];
            let length = [
                0, 3, 7, 8, 19, 20, 27, 28, 31, 32, 33, 40, 51, 52, 53, 4_000,
            ][draw(16)];
            frame[at..at + 2].copy_from_slice(&(length as u16).to_be_bytes());
        }
        // Cut, anywhere behind its addresses or at the end of a header.
        3 => frame.truncate(behind + [0, 4, 6, 7, 8, 19, 20, 31][draw(8)]),
        // Another version, header, protocol or place of a piece.
        4 => frame[14] = [0x45, 0x46, 0x44, 0x65, 0x60, 0x6f][draw(6)],
        5 => frame[[20, 23][draw(2)]] = [0, 1, 6, 17, 43, 44, 60, 0x20, 0x40][draw(9)],
        6 => frame[12..14].copy_from_slice(&[[8, 0], [0x86, 0xdd], [0x81, 0], [8, 6]][draw(4)]),
        // Any bits.
        7 => {
            for _ in 0..=draw(4) {
                let at = 12 + draw(frame.len() as u64 - 12);
                frame[at] ^= 1 << draw(8);
            }
        }
        _ => {}
    }
    frame
}

fn credits_are_packets() {
    let mut stage = Stage::new(Rest::ClientZero, 64);
    let early = stage.link.early().unwrap();
    early.steer(&flow(OWN, None), 1, 0).unwrap();
    early.give(0, 1);
    early.give(1, 10);
    let (ours, other) = (
        datagram("10.0.0.1:1000", OWN, UDP),
        datagram("10.0.0.1:1000", "10.0.0.2:9", UDP),
    );
    for _ in 0..32 {
        stage.send(&ours);
    }
    stage.send(&other);
    let mut arrived = Vec::new();
    until("the last", || {
        let received = stage.link.receive(clock::now()).unwrap();
        arrived.extend(received.map(|one| one.early.unwrap()));
        arrived.last() == Some(&0)
    });
    assert_eq!(arrived, [[1; 10].as_slice(), &[0]].concat());
    let early = stage.link.early().unwrap();
    assert_eq!(
        (early.credits(1), early.dropped(1), early.dropped(0)),
        (0, 22, 0)
    );
    assert_eq!(stage.link.losses().no_room, 22);
    early.give(1, 3);
    assert_eq!((early.take_back(1), early.credits(1)), (3, 0));
    assert_eq!(
        early
            .steer(&flow(OWN, None), 8, 0)
            .map_err(rustix::io::Errno::raw_os_error),
        Err(22)
    );
}

/// As the kernel's own senders do over a virtual wire, which leave it to the card to cut.
fn what_is_too_long_costs_no_credit() {
    let mut stage = Stage::new(Rest::ClientZero, 64);
    let segments = Settings {
        segments: true,
        ..Settings::default()
    };
    let mut far = PacketLink::open("far", &segments).unwrap();
    let early = stage.link.early().unwrap();
    early.steer(&flow(OWN, None), 1, 0).unwrap();
    early.give(0, 4);
    early.give(1, 4);
    for own in [OWN, "10.0.0.2:9"] {
        for _ in 0..6 {
            let frame = packet("10.0.0.1:1000", own, UDP, &[7; 5_000]);
            let mut memory = far.allocate(1).unwrap().pop().unwrap();
            memory.bytes_mut()[..frame.len()].copy_from_slice(&frame);
            let (left, now) = (
                Left {
                    checksum: true,
                    segment: 1_000,
                },
                clock::now(),
            );
            assert!(far.queue(memory, frame.len(), left, now).is_ok());
            far.flush(now).unwrap();
            until("it has left", || far.sent(clock::now()).is_some());
        }
    }
    until("all are counted", || stage.link.losses().too_long == 12);
    let early = stage.link.early().unwrap();
    assert_eq!((early.credits(0), early.credits(1)), (4, 4));
    assert_eq!((early.dropped(1), stage.link.lost_below()), (0, Some(0)));
    let ours = datagram("10.0.0.1:1000", OWN, UDP);
    assert_eq!(stage.client_of(&ours), Some(1));
}

fn what_is_lost_below_is_counted_with_its_credit() {
    let mut stage = Stage::new(Rest::ClientZero, 2);
    stage.link.early().unwrap().give(0, 6);
    for _ in 0..6 {
        stage.send(&datagram("10.0.0.1:1000", "10.0.0.2:9", UDP));
    }
    stage.arrival();
    stage.arrival();
    until("the rest is lost", || stage.link.lost_below() == Some(4));
    assert_eq!(stage.link.early().unwrap().credits(0), 0);
}

fn further_sockets_have_their_own() {
    let mut stage = Stage::new(Rest::ClientZero, 64);
    let mut sockets: Vec<EarlySocket> = (0..4).map(|_| stage.link.further().unwrap()).collect();
    let early = stage.link.early().unwrap();
    early.give(0, 10);
    for (client, socket) in (1..).zip(&sockets) {
        let own = format!("10.0.0.2:{}", 2000 + client);
        early
            .steer(&flow(&own, None), client, socket.number())
            .unwrap();
        early.give(client, 5);
    }
    for client in 1..=4 {
        let own = format!("10.0.0.2:{}", 2000 + client);
        for _ in 0..8 {
            stage.send(&datagram("10.0.0.1:1", &own, UDP));
        }
    }
    stage.send(&datagram("10.0.0.1:1", OWN, UDP));
    assert_eq!(stage.arrival().early, Some(0));
    for (client, socket) in (1..).zip(&mut sockets) {
        let all = std::iter::from_fn(|| socket.receive(clock::now()));
        let clients: Vec<_> = all.map(|received| received.early).collect();
        assert_eq!(clients, [Some(client); 5]);
    }
    assert!(stage.link.receive(clock::now()).unwrap().is_none());
}

fn the_kernel_has_the_rest() {
    let mut stage = Stage::new(Rest::Kernel, 16);
    let early = stage.link.early().unwrap();
    early.steer(&flow(OWN, None), 1, 0).unwrap();
    early.give(1, 4);
    // A packet socket of the same interface sees what the kernel has.
    let mut beside = PacketLink::open("near", &Settings::default()).unwrap();
    for memory in beside.allocate(8).unwrap() {
        beside.post(memory).unwrap();
    }
    let other = datagram("10.0.0.1:1000", "10.0.0.2:9", UDP);
    stage.send(&datagram("10.0.0.1:1000", OWN, UDP));
    stage.send(&other);
    assert_eq!(stage.arrival().early, Some(1));
    let mut seen = None;
    until("the kernel has it", || {
        seen = beside.receive(clock::now()).unwrap();
        seen.is_some()
    });
    let seen = seen.unwrap();
    assert_eq!(seen.memory[..seen.length], other);
    assert!(beside.receive(clock::now()).unwrap().is_none());
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        in_namespace(
            "the_most_specific_flow_wins_at_the_hook",
            most_specific_flow_wins,
        ),
        in_namespace(
            "the_hook_finds_whom_the_driver_finds",
            the_hook_finds_whom_the_driver_finds,
        ),
        in_namespace("so_many_credits_so_many_packets", credits_are_packets),
        in_namespace(
            "a_packet_that_is_longer_than_its_memory_costs_no_credit",
            what_is_too_long_costs_no_credit,
        ),
        in_namespace(
            "what_is_lost_below_the_hook_is_counted",
            what_is_lost_below_is_counted_with_its_credit,
        ),
        in_namespace(
            "a_further_socket_has_its_clients_packets",
            further_sockets_have_their_own,
        ),
        in_namespace("what_is_nobodys_the_kernel_has", the_kernel_has_the_rest),
    ]
}
