//! What a kernel at the other end leaves of its packets: said of each, or counted; and what is left to it.
#![allow(unsafe_code, reason = "segments are asked for by a socket option")]

use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use laxity_linux::net::xdp::Mode;
use laxity_linux::net::{PacketLink, Settings, TapLink, XdpLink};
use laxity_linux::os::clock;
use laxity_model::nif::link::{Left, Link, Memory, Received};
use libtest_mimic::Trial;

use super::common::until;
use super::in_namespace;
use super::namespace::{ip, is_up, pair};

const KERNEL: &str = "10.9.0.1";
const OURS: &str = "10.9.0.2";
const SEGMENT: u16 = 1_000;
/// Behind Ethernet, IPv4 and UDP.
const PAYLOAD: usize = 14 + 20 + 8;

/// Gives the kernel an address on an interface, and tells it where ours is.
fn address(name: &str, ours: [u8; 6]) {
    let ours = ours.map(|byte| format!("{byte:02x}")).join(":");
    assert!(ip(&format!("address add {KERNEL}/24 dev {name}")));
    assert!(ip(&format!(
        "neighbour replace {OURS} lladdr {ours} dev {name}"
    )));
}

fn segmented() -> Settings {
    Settings {
        segments: true,
        posted: 16,
        ..Settings::default()
    }
}

/// A socket of the kernel's that sends to us, cut into segments or not.
fn kernels_socket(segment: Option<u16>) -> UdpSocket {
    const UDP_SEGMENT: i32 = 103;
    let socket = UdpSocket::bind((KERNEL, 4_000)).unwrap();
    if let Some(size) = segment {
        let (number, size) = (socket.as_raw_fd(), i32::from(size));
        let place = (&raw const size).cast();
        // SAFETY: the kernel reads a number of four bytes, which outlives the call.
        let set = unsafe { libc::setsockopt(number, libc::SOL_UDP, UDP_SEGMENT, place, 4) };
        assert_eq!(set, 0);
    }
    socket.connect((OURS, 5_000)).unwrap();
    socket
}

/// The next datagram of the kernel's socket.
fn datagram<L: Link>(link: &mut L) -> Received<L::Memory> {
    let mut found = None;
    until("a datagram", || {
        found = link.receive(clock::now()).unwrap();
        let is_it = |one: &Received<L::Memory>| {
            one.memory.bytes()[12..14] == [8, 0] && one.memory.bytes()[23] == 17
        };
        found.as_ref().is_some_and(is_it)
    });
    found.unwrap()
}

fn post<L: Link>(link: &mut L, count: usize) {
    for memory in link.allocate(count).unwrap() {
        assert!(link.post(memory).is_ok());
    }
}

fn begun() -> Left {
    Left {
        checksum: true,
        segment: 0,
    }
}

fn checksums_are_said_to_be_begun() {
    pair("near", "far");
    let mut packet = PacketLink::open("near", &Settings::default()).unwrap();
    address("far", packet.facts().address);
    post(&mut packet, 8);
    let socket = kernels_socket(None);
    socket.send(&[7; 300]).unwrap();
    let received = datagram(&mut packet);
    assert_eq!((received.left, received.length), (begun(), PAYLOAD + 300));
    drop(packet);
    for mode in [Mode::Generic, Mode::Native] {
        let mut link = XdpLink::open("near", mode, &Settings::default()).unwrap();
        // A native program brings the device down for a moment.
        is_up("far");
        post(&mut link, 8);
        socket.send(&[7; 300]).unwrap();
        let received = datagram(&mut link);
        assert_eq!((received.left, received.length), (begun(), PAYLOAD + 300));
    }
}

fn a_tap_says_what_is_left_where_that_was_allowed() {
    for (settings, left) in [
        (Settings::default(), Left::default()),
        (segmented(), begun()),
    ] {
        let mut tap = TapLink::open("lax0", &settings).unwrap();
        is_up("lax0");
        address("lax0", tap.facts().address);
        post(&mut tap, 16);
        kernels_socket(None).send(&[7; 300]).unwrap();
        let received = datagram(&mut tap);
        assert_eq!((received.left, received.length), (left, PAYLOAD + 300));
    }
}

fn segments_are_received_whole_or_counted() {
    const WHOLE: usize = 30_000;
    pair("near", "far");
    let mut whole = PacketLink::open("near", &segmented()).unwrap();
    let mut short = PacketLink::open("near", &Settings::default()).unwrap();
    address("far", whole.facts().address);
    post(&mut whole, 16);
    post(&mut short, 16);
    let socket = kernels_socket(Some(SEGMENT));
    socket.send(&[7; WHOLE]).unwrap();
    let received = datagram(&mut whole);
    let left = Left {
        checksum: true,
        segment: SEGMENT,
    };
    assert_eq!((received.left, received.length), (left, PAYLOAD + WHOLE));
    until("it is counted", || {
        assert!(short.receive(clock::now()).unwrap().is_none());
        short.losses().too_long == 1
    });
    drop((whole, short));
    let mut link = XdpLink::open("near", Mode::Generic, &Settings::default()).unwrap();
    post(&mut link, 16);
    socket.send(&[7; WHOLE]).unwrap();
    until("it is counted", || {
        assert!(link.receive(clock::now()).unwrap().is_none());
        link.losses().too_long == 1
    });
}

/// A datagram to the kernel, its checksum only begun.
fn to_the_kernel(from: [u8; 6], to: [u8; 6], payload: usize) -> Vec<u8> {
    let mut frame = [to, from].concat();
    let (udp, all) = ((8 + payload) as u16, (28 + payload) as u16);
    let mut header = vec![
        0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 9, 0, 2, 10, 9, 0, 1,
    ];
    header[2..4].copy_from_slice(&all.to_be_bytes());
    let sum = |bytes: &[u8]| {
        let words = bytes.chunks_exact(2);
        let sum: u32 = words
            .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]))
            .sum();
        (sum % 0xffff) as u16
    };
    let checksum = !sum(&header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    let pseudo = sum(&[&header[12..], &[0, 17], &udp.to_be_bytes()].concat());
    frame.extend([8, 0]);
    frame.extend(header);
    frame.extend(5_000_u16.to_be_bytes());
    frame.extend(4_000_u16.to_be_bytes());
    frame.extend(udp.to_be_bytes());
    frame.extend(pseudo.to_be_bytes());
    frame.extend((0..payload).map(|at| at as u8));
    frame
}

/// The kernel at the other end finishes what is left to it, and its socket has each datagram.
fn is_finished<L: Link>(link: &mut L, kernels: [u8; 6]) {
    let socket = kernels_socket(None);
    let mut buffer = [0; 4_000];
    for (payload, segment) in [(300, 0), (2_500, SEGMENT)] {
        let frame = to_the_kernel(link.facts().address, kernels, payload);
        let left = Left {
            checksum: true,
            segment,
        };
        assert!(link.finishes());
        let mut memory = link.allocate(1).unwrap().pop().unwrap();
        memory.bytes_mut()[..frame.len()].copy_from_slice(&frame);
        let now = clock::now();
        assert!(link.queue(memory, frame.len(), left, now).is_ok());
        link.flush(now).unwrap();
        let each = if segment == 0 {
            payload
        } else {
            segment.into()
        };
        for whole in frame[PAYLOAD..].chunks(each) {
            let length = socket.recv(&mut buffer).unwrap();
            assert_eq!(buffer[..length], *whole);
        }
    }
}

fn what_is_left_the_interface_finishes() {
    pair("near", "far");
    // The kernel's end checks what comes, as it would from a wire.
    let mut packet = PacketLink::open("near", &segmented()).unwrap();
    let far = PacketLink::open("far", &Settings::default()).unwrap();
    address("far", packet.facts().address);
    is_finished(&mut packet, far.facts().address);
    assert!(ip("link del near"));
    let mut tap = TapLink::open("lax0", &segmented()).unwrap();
    is_up("lax0");
    let kernels = PacketLink::open("lax0", &Settings::default()).unwrap();
    address("lax0", tap.facts().address);
    is_finished(&mut tap, kernels.facts().address);
}

fn what_nobody_finishes_is_refused() {
    pair("near", "far");
    let mut packet = PacketLink::open("near", &Settings::default()).unwrap();
    let mut xdp = XdpLink::open("near", Mode::Generic, &Settings::default()).unwrap();
    fn refuses<L: Link>(link: &mut L) {
        let memory = link.allocate(1).unwrap().pop().unwrap();
        assert!(!link.finishes());
        assert!(link.queue(memory, 100, begun(), clock::now()).is_err());
    }
    refuses(&mut packet);
    refuses(&mut xdp);
}

fn tags_are_put_back() {
    pair("near", "far");
    let mut near = PacketLink::open("near", &Settings::default()).unwrap();
    let mut far = PacketLink::open("far", &Settings::default()).unwrap();
    post(&mut far, 2);
    let mut frame = vec![2; 12];
    frame.extend([0x81, 0, 0x60, 7, 0x88, 0xb5]);
    frame.extend(0..50);
    let mut memory = near.allocate(1).unwrap().pop().unwrap();
    memory[..frame.len()].copy_from_slice(&frame);
    assert!(near.send(memory, frame.len(), clock::now()).is_ok());
    let mut found = None;
    until("it arrives", || {
        found = far.receive(clock::now()).unwrap();
        found.is_some()
    });
    let received = found.unwrap();
    assert_eq!(received.memory[..received.length], frame);
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        in_namespace(
            "checksums_that_are_only_begun_are_said_to_be",
            checksums_are_said_to_be_begun,
        ),
        in_namespace(
            "a_tap_says_what_is_left_where_that_was_allowed",
            a_tap_says_what_is_left_where_that_was_allowed,
        ),
        in_namespace(
            "what_is_still_to_be_cut_is_received_whole_or_counted",
            segments_are_received_whole_or_counted,
        ),
        in_namespace(
            "what_is_left_the_interface_finishes",
            what_is_left_the_interface_finishes,
        ),
        in_namespace(
            "what_nobody_finishes_is_refused",
            what_nobody_finishes_is_refused,
        ),
        in_namespace(
            "a_tag_that_the_kernel_took_out_is_put_back",
            tags_are_put_back,
        ),
    ]
}
