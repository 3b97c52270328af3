//! Hardware addresses: asked for once, believed once.

use std::net::{IpAddr, SocketAddr};

use etherparse::PacketBuilder;
use laxity_model::Span;
use laxity_model::nif::link::Medium;
use laxity_net::emulated::Faults;
use laxity_net::sockets::{TcpListener, TcpStream};
use laxity_net::stack::NeighbourAccount;

use super::{HOST, PEER, Scripted, Two, address, address6, arp, socket, sockets};

const FORGER: [u8; 6] = [2, 0, 0, 0, 0, 66];

fn datagrams(answers: &[Vec<u8>]) -> Vec<[u8; 6]> {
    let ip = answers.iter().filter(|frame| frame[12..14] == [8, 0]);
    ip.map(|frame| frame[..6].try_into().unwrap()).collect()
}

#[test]
fn only_the_first_answer_to_a_question_is_believed_and_what_waited_for_it_is_sent() {
    let mut world = Scripted::new();
    let socket = socket(&world.host, address(1), 9);
    world.hear();
    world.say(&arp(2, FORGER, 2, HOST, 1));
    assert_eq!(world.host.stack.neighbours().disbelieved, 1);
    let to = SocketAddr::new(address(2), 9);
    socket.send_to(b"one", to).unwrap();
    let asked = world.hear();
    assert!(Scripted::is_asked(&asked) && datagrams(&asked).is_empty());
    assert_eq!(datagrams(&world.say(&arp(2, PEER, 2, HOST, 1))), [PEER]);
    for forged in [
        arp(2, FORGER, 2, HOST, 1),
        arp(1, FORGER, 2, [0; 6], 1),
        arp(1, FORGER, 2, [0; 6], 2),
    ] {
        world.say(&forged);
        socket.send_to(b"two", to).unwrap();
        assert_eq!(datagrams(&world.hear()), [PEER]);
    }
}

/// What is learnt is where frames for one host go.
#[test]
fn no_group_and_nobody_is_believed_to_be_a_neighbour() {
    let mut world = Scripted::new();
    let socket = socket(&world.host, address(1), 9);
    world.hear();
    let to = SocketAddr::new(address(2), 9);
    socket.send_to(b"one", to).unwrap();
    assert!(Scripted::is_asked(&world.hear()));
    for (said, disbelieved) in [[3, 0, 0, 0, 0, 2], [0; 6], HOST].into_iter().zip(1..) {
        let answers = world.say(&arp(2, said, 2, HOST, 1));
        assert!(datagrams(&answers).is_empty(), "{said:?}");
        let account = world.host.stack.neighbours();
        assert_eq!((account.disbelieved, account.learned), (disbelieved, 0));
    }
    assert_eq!(datagrams(&world.say(&arp(2, PEER, 2, HOST, 1))), [PEER]);
}

/// A question (135) or an answer (136) of neighbour discovery about this address, from the peer to the host.
fn discovery(kind: u8, about: u8, hop_limit: u8) -> Vec<u8> {
    let [host, peer, about] = [1, 2, about].map(|last| match address6(last) {
        IpAddr::V6(address) => address.octets(),
        IpAddr::V4(_) => panic!("it is of IPv6"),
    });
    let is_answer = kind == 136;
    let solicited = [if is_answer { 0x40 } else { 0 }, 0, 0, 0];
    let mut said = about.to_vec();
    said.extend([1 + u8::from(is_answer), 1]);
    said.extend(PEER);
    let mut frame = Vec::new();
    PacketBuilder::ethernet2(PEER, HOST)
        .ipv6(peer, host, hop_limit)
        .icmpv6_raw(kind, 0, solicited)
        .write(&mut frame, &said)
        .unwrap();
    frame
}

/// A router takes one from the hop limit, so what comes from another link never has all of it.
#[test]
fn neighbour_discovery_from_another_link_is_ignored() {
    let mut world = Scripted::new();
    let socket = socket(&world.host, address6(1), 9);
    world.hear();
    assert!(world.say(&discovery(135, 1, 254)).is_empty());
    assert_eq!(world.say(&discovery(135, 1, 255)).len(), 1);
    let to = SocketAddr::new(address6(2), 9);
    socket.send_to(b"one", to).unwrap();
    assert_eq!(world.hear().len(), 1, "it is asked");
    assert!(world.say(&discovery(136, 2, 254)).is_empty());
    assert_eq!(world.host.stack.neighbours().learned, 0);
    let sent = world.say(&discovery(136, 2, 255));
    assert_eq!(world.host.stack.neighbours().learned, 1);
    assert_eq!((sent.len(), &sent[0][..6]), (1, &PEER[..]));
}

#[test]
fn a_question_for_this_host_is_answered_and_one_for_another_is_not() {
    let mut world = Scripted::new();
    assert_eq!(
        world.say(&arp(1, PEER, 2, [0; 6], 1)),
        [arp(2, HOST, 1, PEER, 2)]
    );
    assert!(world.say(&arp(1, PEER, 2, [0; 6], 3)).is_empty());
    // Who says that it is us.
    assert!(world.say(&arp(1, PEER, 1, [0; 6], 1)).is_empty());
    // Who asks for somebody else.
    let mut forged = arp(1, PEER, 2, [0; 6], 1);
    forged[22..28].copy_from_slice(&FORGER);
    assert!(world.say(&forged).is_empty());
}

#[test]
fn questions_are_bounded_and_what_waits_too_long_is_lost_and_counted() {
    let mut world = Scripted::new();
    let socket = socket(&world.host, address(1), 9);
    world.hear();
    for last in 2..250 {
        let to = SocketAddr::new(address(last), 9);
        socket.send_to(b"x", to).unwrap();
        world.hear();
    }
    let account = world.host.stack.neighbours();
    assert_eq!((account.asked, account.lost), (64, 248 - 16));
    world.time.pass(Span::from_secs(4).as_micros());
    world.hear();
    assert_eq!(world.host.stack.neighbours().lost, 248);
}

/// What waits for its answer has all of its buffers, and nobody tells when it is given up.
#[test]
fn who_has_no_buffer_left_for_want_of_an_answer_comes_again_when_it_is_lost() {
    let mut two = Two::of_one_buffer(Faults::default(), 7);
    let [socket, _other] = sockets(&mut two, address);
    let to = SocketAddr::new(address(9), 9);
    for _ in 0..2 {
        socket.send_to(b"x", to).unwrap();
    }
    let (time, stack) = (two.time.clone(), two.near.stack.clone());
    let again = socket.poll(time.now()).expect("the other still waits");
    assert!(again <= time.now() + Span::from_secs(1));
    // The second one leaves when the first is lost, and is so, too.
    for lost in 1..=2 {
        let until = time.now() + Span::from_millis(3_001);
        while time.now() <= until {
            two.step();
        }
        assert_eq!(stack.neighbours().lost, lost);
        socket.poll(time.now());
    }
}

/// Where IP alone is carried, whoever is at the other end has every packet, also one for another network.
#[test]
fn where_nobody_has_a_hardware_address_nobody_is_asked_or_answered() {
    let mut world = Scripted::over(Medium::Ip);
    let socket = socket(&world.host, address(1), 9);
    world.hear();
    for to in [address(2), [192, 0, 2, 7].into()] {
        socket.send_to(b"x", SocketAddr::new(to, 9)).unwrap();
        assert_eq!(world.hear().len(), 1);
    }
    assert!(world.say(&arp(1, PEER, 2, [0; 6], 1)).is_empty());
    assert_eq!(world.host.stack.neighbours(), NeighbourAccount::default());
    assert_eq!(world.host.stack.account().dropped, 1);
}

#[test]
fn a_question_that_was_lost_is_asked_again() {
    let mut two = Two::new(Faults {
        lost: 1_000_000,
        ..Faults::default()
    });
    let wire = two.wire.clone();
    (0..20).for_each(|_| two.step());
    let time = two.time.clone();
    let from = time.now();
    let to = SocketAddr::new(address(2), 7);
    let stream = TcpStream::start(&two.near.stack, to).unwrap();
    let listener = TcpListener::bind(&two.far.stack, 7, 1).unwrap();
    let accepted = two.until(|| {
        stream.poll(time.now());
        if time.now().saturating_since(from) > Span::from_millis(500) {
            wire.set_faults(Faults::default());
        }
        listener.try_accept()
    });
    assert!(two.near.stack.neighbours().asked >= 2);
    drop((stream, accepted, listener));
    two.end();
}

/// Nobody sends a datagram again: it is the question that is asked again while it waits, and only so often.
#[test]
fn a_datagram_outlives_a_question_that_was_lost() {
    let mut world = Scripted::new();
    let socket = socket(&world.host, address(1), 9);
    world.hear();
    socket
        .send_to(b"x", SocketAddr::new(address(2), 9))
        .unwrap();
    assert!(Scripted::is_asked(&world.hear()));
    for _ in 0..2 {
        world.time.pass(Span::from_millis(990).as_micros());
        assert!(world.hear().is_empty());
        world.time.pass(Span::from_millis(11).as_micros());
        assert!(Scripted::is_asked(&world.hear()));
    }
    let answers = world.say(&arp(2, PEER, 2, HOST, 1));
    assert_eq!(datagrams(&answers), [PEER]);
    assert_eq!(world.host.stack.neighbours().lost, 0);
}

/// One forged frame would have us send to all of the link, or to nobody.
#[test]
fn who_cannot_be_a_neighbour_is_not_answered() {
    let mut world = Scripted::new();
    for hardware in [[0xff; 6], [3, 0, 0, 0, 0, 2], [0; 6], HOST] {
        assert!(
            world.say(&arp(1, hardware, 2, [0; 6], 1)).is_empty(),
            "{hardware:?}"
        );
        let mut frame = discovery(135, 1, 255);
        frame[6..12].copy_from_slice(&hardware);
        assert!(world.say(&frame).is_empty(), "{hardware:?}");
    }
    let mut from = |who: [u8; 4]| {
        let mut frame = arp(1, PEER, 2, [0; 6], 1);
        frame[28..32].copy_from_slice(&who);
        world.say(&frame).len()
    };
    for who in [[255; 4], [224, 0, 0, 1], [10, 0, 0, 255], [127, 0, 0, 1]] {
        assert_eq!(from(who), 0, "{who:?}");
    }
    assert_eq!(from([0; 4]), 1, "who looks whether it is free");
    assert_eq!(from([10, 0, 0, 2]), 1);
}
