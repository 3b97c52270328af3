//! No more frames lie in the kernel than a link's reach, and word comes of each that has left.

use std::net::SocketAddr;
use std::os::fd::AsFd;

use laxity_linux::net::Stirs;
use laxity_linux::net::egress::{ClassId, Owned};
use laxity_linux::net::pair::Namespace;
use laxity_linux::net::xdp::Mode;
use laxity_linux::net::{CopyingLink, OpenCause, PacketLink, Settings, TapLink, UdpLink, XdpLink};
use laxity_linux::os::clock;
use laxity_model::nif::link::{Link, LinkError};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use super::super::live::free_addresses;
use super::super::namespace::pair;
use super::super::refused::without;
use super::{egress, tc};
use laxity_linux::doctor::rights;
use rustix::thread::CapabilitySet;

pub(super) const TESTS: [(&str, fn()); 4] = [
    ("a_packet_socket_holds_no_more_than_its_reach", packet),
    ("a_udp_socket_holds_no_more_than_its_reach", udp),
    ("af_xdp_goes_past_the_classes", xdp),
    ("who_goes_by_no_class_says_so", refused),
];

/// So slow that frames are still there when they are looked at: a full one takes 30 ms.
pub(super) const SLOW: u64 = 400_000;
/// A full frame takes a second and a half.
const SLOWEST: u64 = 8_000;
const FRAMES: u32 = 24;

pub(super) fn by_class(reach: usize) -> Settings {
    Settings {
        reach,
        class: Some(ClassId::CHANNELS),
        ..Settings::default()
    }
}

/// A frame of so many bytes with this number behind its header.
pub(super) fn numbered(number: u32, bytes: usize) -> Vec<u8> {
    let mut frame = vec![2; bytes];
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame[14..18].copy_from_slice(&number.to_be_bytes());
    frame
}

pub(super) fn number_of(frame: &[u8]) -> u32 {
    u32::from_be_bytes(*frame[14..].first_chunk().unwrap())
}

/// Sends it, if there is room.
pub(super) fn send(link: &mut dyn CopyingLink, frame: &[u8]) -> Result<(), LinkError> {
    let mut memory = link.allocate(1).unwrap().remove(0);
    memory[..frame.len()].copy_from_slice(frame);
    link.send(memory, frame.len(), clock::now())
        .map_err(|(_, why)| why)
}

/// Waits for a descriptor, which must come.
pub(super) fn wait(descriptor: &impl AsFd) {
    let patience = Timespec {
        tv_sec: 20,
        tv_nsec: 0,
    };
    let mut polled = [PollFd::new(descriptor, PollFlags::IN)];
    assert!(poll(&mut polled, Some(&patience)).unwrap() > 0, "in vain");
}

/// Waits until a frame of a link has left, and tells how many have.
pub(super) fn departed(link: &mut dyn CopyingLink, departures: &Stirs) -> usize {
    loop {
        wait(departures);
        assert!(departures.heard(drop).unwrap());
        let told = std::iter::from_fn(|| link.sent(clock::now())).count();
        if told > 0 {
            return told;
        }
    }
}

/// The numbers of so many frames, as they arrive.
pub(super) fn arrived(link: &mut dyn CopyingLink, count: u32) -> Vec<u32> {
    let mut numbers = Vec::new();
    while numbers.len() < count as usize {
        while let Some(received) = link.receive(clock::now()).unwrap() {
            numbers.push(number_of(&received.memory));
            link.post(received.memory).unwrap();
        }
        if numbers.len() < count as usize {
            wait(&link);
        }
    }
    numbers
}

pub(super) fn post(link: &mut dyn CopyingLink) {
    for memory in link.allocate(64).unwrap() {
        link.post(memory).unwrap();
    }
}

/// How many frames `tc` sees in the class of channels.
fn backlog() -> usize {
    let shown = tc("-s class show dev near classid 6c78:10").unwrap();
    let mut words = shown
        .split_whitespace()
        .skip_while(|word| *word != "backlog");
    let packets = words.nth(2).and_then(|word| word.strip_suffix('p'));
    packets
        .and_then(|packets| packets.parse().ok())
        .unwrap_or_else(|| panic!("{shown}"))
}

/// Where no frame leaves for seconds: so many are there, to the last, and none more; and all are told as gone when their queue is.
fn fills(near: &mut dyn CopyingLink, reach: usize) {
    let owned = Owned::take("near", egress(SLOWEST)).unwrap();
    let departures = Stirs::of_departures([&near.as_fd()]).unwrap();
    let frame = numbered(0, near.facts().mtu + 14);
    // What has been saved up.
    for _ in 0..2 {
        send(near, &frame).unwrap();
        assert_eq!(departed(near, &departures), 1);
    }
    for _ in 0..reach {
        send(near, &frame).unwrap();
    }
    assert_eq!(send(near, &frame), Err(LinkError::Full));
    assert_eq!(backlog(), reach);
    assert!(near.sent(clock::now()).is_none());
    owned.put_back().unwrap();
    let mut below = reach;
    while below > 0 {
        below -= departed(near, &departures);
    }
}

/// Sends frames of many lengths as fast as there is room, and looks at the class after each.
fn holds(near: &mut dyn CopyingLink, far: &mut dyn CopyingLink, reach: usize) {
    let owned = Owned::take("near", egress(SLOW)).unwrap();
    let departures = Stirs::of_departures([&near.as_fd()]).unwrap();
    post(far);
    let mut below = 0;
    for number in 0..FRAMES {
        let whole = near.facts().mtu + 14;
        let frame = numbered(number, [whole, 60, 700, whole, 100][number as usize % 5]);
        while let Err(why) = send(near, &frame) {
            assert_eq!((why, below), (LinkError::Full, reach));
            below -= departed(near, &departures);
        }
        below += 1;
        let seen = backlog();
        assert!(seen <= reach, "{seen} of {reach}");
    }
    while below > 0 {
        below -= departed(near, &departures);
    }
    assert_eq!(backlog(), 0);
    assert_eq!(arrived(far, FRAMES), (0..FRAMES).collect::<Vec<_>>());
    owned.put_back().unwrap();
}

fn packet() {
    pair("near", "far");
    for reach in [1, 2, 3] {
        let mut near = PacketLink::open("near", &by_class(reach)).unwrap();
        fills(&mut near, reach);
        let mut far = PacketLink::open("far", &Settings::default()).unwrap();
        holds(&mut near, &mut far, reach);
    }
}

/// Two hosts: what one of them sends to the other goes over a pair, from `near` to `far`.
pub(super) fn hosts() -> ([Namespace; 2], [SocketAddr; 2]) {
    let [near, far] = [(); 2].map(|()| Namespace::new().unwrap());
    near.join("near", (&far, "far")).unwrap();
    near.set_address("near", "10.0.0.1/24", true).unwrap();
    far.set_address("far", "10.0.0.2/24", true).unwrap();
    let addresses = ["10.0.0.1:4000", "10.0.0.2:4000"].map(|address| address.parse().unwrap());
    ([near, far], addresses)
}

fn udp() {
    let ([host, other], [local, remote]) = hosts();
    let open = |host: &Namespace, ends: [SocketAddr; 2], settings: &Settings| {
        let opened = host.within(None, || UdpLink::open(ends[0], ends[1], settings));
        opened.unwrap().unwrap()
    };
    for reach in [1, 2, 3] {
        let mut near = open(&host, [local, remote], &by_class(reach));
        let mut far = open(&other, [remote, local], &Settings::default());
        // Their kernels have to ask for each other's address first.
        post(&mut far);
        send(&mut near, &numbered(7, 60)).unwrap();
        assert_eq!(arrived(&mut far, 1), [7]);
        while near.sent(clock::now()).is_none() {
            std::thread::yield_now();
        }
        host.within(None, || {
            holds(&mut near, &mut far, reach);
            fills(&mut near, reach);
        })
        .unwrap();
    }
}

fn xdp() {
    pair("near", "far");
    let Ok(mut near) = XdpLink::open("near", Mode::Generic, &Settings::default()) else {
        return rights::lacks("no AF_XDP");
    };
    let _owned = Owned::take("near", egress(SLOW)).unwrap();
    let mut far = PacketLink::open("far", &Settings::default()).unwrap();
    post(&mut far);
    let departures = Stirs::of_departures([&near]).unwrap();
    assert!(departures.heard(drop).unwrap());
    for number in 0..FRAMES {
        let mut memory = near.allocate(1).unwrap().remove(0);
        let frame = numbered(number, 1_514);
        laxity_model::nif::link::Memory::bytes_mut(&mut memory)[..1_514].copy_from_slice(&frame);
        near.send(memory, 1_514, clock::now()).unwrap();
        wait(&departures);
        assert!(departures.heard(drop).unwrap());
        assert!(near.sent(clock::now()).is_some());
    }
    assert_eq!(arrived(&mut far, FRAMES), (0..FRAMES).collect::<Vec<_>>());
    let shown = tc("-s class show dev near classid 6c78:10").unwrap();
    assert!(shown.contains("Sent 0 bytes 0 pkt"), "{shown}");
}

fn refused() {
    pair("near", "far");
    let settings = by_class(2);
    let xdp = XdpLink::open("near", Mode::Generic, &settings);
    assert_eq!(
        xdp.map_err(|error| error.cause).err(),
        Some(OpenCause::NoClass)
    );
    let tap = TapLink::open("lax0", &settings);
    assert_eq!(
        tap.map_err(|error| error.cause).err(),
        Some(OpenCause::NoClass)
    );
    let [local, remote] = free_addresses();
    assert!(UdpLink::open(local, remote, &settings).is_ok());
    without(CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW);
    let udp = UdpLink::open(local, remote, &settings);
    assert_eq!(
        udp.map_err(|error| error.cause).err(),
        Some(OpenCause::NoClassRight)
    );
}
