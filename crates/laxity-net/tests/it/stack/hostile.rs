//! Peers that send what should not be.

use std::sync::atomic::Ordering::SeqCst;

use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use laxity_net::sockets::TcpListener;

use super::{HOST, PEER, Scripted, arp};

fn builder() -> etherparse::PacketBuilderStep<etherparse::IpHeaders> {
    PacketBuilder::ethernet2(PEER, HOST).ipv4([10, 0, 0, 2], [10, 0, 0, 1], 64)
}

fn syn(port: u16) -> Vec<u8> {
    let mut frame = Vec::new();
    let tcp = builder().tcp(1000, port, 77, 8192).syn();
    tcp.write(&mut frame, &[]).unwrap();
    frame
}

fn echo() -> Vec<u8> {
    let mut frame = Vec::new();
    builder()
        .icmpv4_echo_request(5, 6)
        .write(&mut frame, b"payload")
        .unwrap();
    frame
}

/// A peer whose hardware address is known, so that whatever is answered is seen at once.
fn world() -> Scripted {
    let mut world = Scripted::new();
    let asked = world.say(&echo());
    assert!(Scripted::is_asked(&asked));
    let echoed = world.say(&arp(2, PEER, 2, HOST, 1));
    assert_eq!(echoed.len(), 1);
    assert_eq!(echoed[0][34], 0);
    world
}

fn fix(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let words = frame[14..34]
        .chunks(2)
        .map(|two| u32::from(two[0]) << 8 | u32::from(two[1]));
    let sum: u32 = words.sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
}

#[test]
fn an_echo_is_answered_and_not_when_any_byte_of_its_headers_is_wrong() {
    let mut world = world();
    assert_eq!(world.say(&echo()).len(), 1);
    for at in 0..42 {
        for bit in 0..8 {
            let mut frame = echo();
            frame[at] ^= 1 << bit;
            let is_senders = (6..12).contains(&at);
            let answers = world.say(&frame);
            assert!(
                is_senders || answers.is_empty(),
                "byte {at}, bit {bit}: {answers:?}"
            );
        }
    }
}

#[test]
fn what_is_not_from_or_to_one_host_is_not_answered() {
    let mut world = world();
    // Source: ours, of all, of the network, of many, of nobody, of this host.
    for source in [
        [10, 0, 0, 1],
        [255; 4],
        [10, 0, 0, 255],
        [10, 0, 0, 0],
        [224, 0, 0, 1],
        [0; 4],
        [0, 1, 2, 9],
        [127, 0, 0, 1],
    ] {
        let mut frame = echo();
        frame[26..30].copy_from_slice(&source);
        fix(&mut frame);
        assert!(world.say(&frame).is_empty(), "{source:?}");
    }
    for destination in [[255; 4], [10, 0, 0, 255], [224, 0, 0, 1], [10, 0, 0, 9]] {
        let mut frame = echo();
        frame[30..34].copy_from_slice(&destination);
        fix(&mut frame);
        assert!(world.say(&frame).is_empty(), "{destination:?}");
    }
    // Fragments, whichever piece.
    for (first, second) in [(0x20, 0), (0, 1), (0x20, 1), (0x1f, 0xff)] {
        let mut frame = echo();
        frame[20..22].copy_from_slice(&[first, second]);
        fix(&mut frame);
        assert!(world.say(&frame).is_empty());
    }
    // Not to this host's hardware.
    let mut frame = echo();
    frame[..6].fill(0xff);
    assert!(world.say(&frame).is_empty());
}

#[test]
fn only_a_sound_first_packet_begins_a_connection() {
    let mut world = world();
    let listener = TcpListener::bind(&world.host.stack, 7, 4).unwrap();
    for flags in 0..=255_u8 {
        if flags & 0x17 == 0x02 {
            continue;
        }
        let mut frame = syn(7);
        frame[47] = flags;
        checksum(&mut frame);
        let before = world.host.stack.account().began;
        let answers = world.say(&frame);
        assert_eq!(world.host.stack.account().began, before, "{flags:#x}");
        assert!(
            flags & 4 == 0 || answers.is_empty(),
            "a reset is answered: {flags:#x}"
        );
    }
    for at in 34..54 {
        let mut frame = syn(7);
        frame[at] ^= 1;
        assert!(world.say(&frame).is_empty(), "{at}");
    }
    assert_eq!(world.host.stack.account().began, 0);
    let answers = world.say(&syn(7));
    let sliced = SlicedPacket::from_ethernet(&answers[0]).unwrap();
    let Some(TransportSlice::Tcp(tcp)) = sliced.transport else {
        panic!("{answers:?}");
    };
    assert!(tcp.syn() && tcp.ack() && tcp.acknowledgment_number() == 78);
    assert!(listener.try_accept().is_none());
}

#[test]
fn a_port_that_nobody_has_is_reset_and_a_reset_is_not() {
    let mut world = world();
    let answers = world.say(&syn(99));
    let sliced = SlicedPacket::from_ethernet(&answers[0]).unwrap();
    let Some(TransportSlice::Tcp(tcp)) = sliced.transport else {
        panic!("{answers:?}");
    };
    assert!(tcp.rst());
    let mut reset = Vec::new();
    builder()
        .tcp(1000, 99, 77, 0)
        .rst()
        .write(&mut reset, &[])
        .unwrap();
    assert!(world.say(&reset).is_empty());
}

#[test]
fn a_wrong_checksum_is_accepted_only_of_what_was_left_begun() {
    let mut world = world();
    let _listener = TcpListener::bind(&world.host.stack, 7, 4).unwrap();
    let mut begun = syn(7);
    begun[50] ^= 0x55;
    assert!(world.say(&begun).is_empty());
    world.is_begun.store(true, SeqCst);
    assert_eq!(world.say(&begun).len(), 1);
    world.is_begun.store(false, SeqCst);
    assert_eq!(world.host.stack.account().began, 1);
}

fn checksum(frame: &mut [u8]) {
    let sum = {
        let sliced = SlicedPacket::from_ethernet(frame).unwrap();
        let (Some(TransportSlice::Tcp(tcp)), Some(NetSlice::Ipv4(ip))) =
            (sliced.transport, sliced.net)
        else {
            panic!("no TCP");
        };
        let ip = ip.header().to_header();
        tcp.to_header()
            .calc_checksum_ipv4(&ip, tcp.payload())
            .unwrap()
    };
    frame[50..52].copy_from_slice(&sum.to_be_bytes());
}
