//! Wires of live interfaces, and what they leave behind.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use laxity_conformance::links::Wire;
use laxity_linux::net::xdp::Mode;
use laxity_linux::net::{
    AnyLink, InterfaceName, PacketLink, Settings, TapLink, UdpLink, XdpLink, open, way,
};
use laxity_linux::os::clock;
use laxity_model::Instant;
use laxity_model::nif::link::{Left, Link, LinkError, Memory};
use libtest_mimic::Trial;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sendto, socket};

use super::bare::Bare;
use super::common::until;
use super::in_namespace;
use super::namespace::{ip, is_up, pair, promiscuity, shown, up};

/// Two interfaces and what they are called, if they are the kernel's.
pub(crate) struct Live<A, B> {
    near: A,
    far: B,
    name: Option<&'static str>,
    copies: u64,
}

impl<A: Link, B: Link> Wire for Live<A, B> {
    type Near = A;
    type Far = B;

    fn near(&mut self) -> &mut A {
        &mut self.near
    }

    fn far(&mut self) -> &mut B {
        &mut self.far
    }

    fn now(&mut self) -> Instant {
        clock::now()
    }

    fn pass(&mut self) {
        std::thread::sleep(Duration::from_micros(50));
    }

    fn set_up(&mut self, is_up: bool) -> bool {
        self.name.map(|name| up(name, is_up)).is_some()
    }

    fn copies(&self) -> u64 {
        self.copies
    }

    fn delete(&mut self) -> bool {
        self.name
            .is_some_and(|name| ip(&format!("link del {name}")))
    }
}

pub(crate) fn udp() -> Live<UdpLink, UdpLink> {
    let [near, far] = free_addresses();
    Live {
        near: UdpLink::open(near, far, &Settings::default()).unwrap(),
        far: UdpLink::open(far, near, &Settings::default()).unwrap(),
        name: None,
        copies: 0,
    }
}

/// Two on the loop of this thread's namespace, which nobody has.
pub(crate) fn free_addresses() -> [SocketAddr; 2] {
    up("lo", true);
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    sockets.map(|socket| socket.local_addr().unwrap())
}

/// A TAP interface, and a packet socket of the kernel's end of it.
pub(crate) fn tap() -> Live<TapLink, PacketLink> {
    let near = TapLink::open("lax0", &Settings::default()).unwrap();
    is_up("lax0");
    Live {
        near,
        far: PacketLink::open("lax0", &Settings::default()).unwrap(),
        name: Some("lax0"),
        copies: 0,
    }
}

/// A TUN interface, and the kernel's end of it.
pub(crate) fn tun() -> Live<TapLink, Bare> {
    let near = TapLink::open_tun("lax0", &Settings::default()).unwrap();
    is_up("lax0");
    Live {
        near,
        far: Bare::open("lax0"),
        name: Some("lax0"),
        copies: 0,
    }
}

pub(crate) fn packet() -> Live<PacketLink, PacketLink> {
    pair("near", "far");
    Live {
        near: PacketLink::open("near", &Settings::default()).unwrap(),
        far: PacketLink::open("far", &Settings::default()).unwrap(),
        name: Some("near"),
        copies: 1,
    }
}

pub(crate) fn xdp() -> Live<XdpLink, XdpLink> {
    pair("near", "far");
    both(Mode::Generic)
}

pub(crate) fn xdp_native() -> Live<XdpLink, XdpLink> {
    pair("near", "far");
    both(Mode::Native)
}

fn both(mode: Mode) -> Live<XdpLink, XdpLink> {
    let open = |name| XdpLink::open(name, mode, &Settings::default()).unwrap();
    Live {
        near: open("near"),
        far: open("far"),
        name: Some("near"),
        copies: 1,
    }
}

/// By their names, one of each kind.
pub(crate) fn any() -> Live<AnyLink, AnyLink> {
    pair("near", "far");
    let opened = |name: &str| {
        let name: InterfaceName = name.parse().unwrap();
        open(&name, &Settings::default()).unwrap()
    };
    let automatic = opened("near");
    assert_eq!(automatic.lost, None);
    Live {
        near: automatic.link,
        far: opened("packet:far").link,
        name: Some("near"),
        copies: 1,
    }
}

/// What this process has open, and the programs and maps that there are.
fn footprint() -> [usize; 3] {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().count();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let of_sockets = |line: &&str| line.contains("socket:") || line.contains("bpf-map");
    let memory: u64 = maps.lines().filter(of_sockets).count() as u64;
    let programs = std::fs::read_dir("/proc/self/fdinfo").unwrap();
    let of_bpf = programs.filter(|file| {
        let file = file.as_ref().unwrap().path();
        std::fs::read_to_string(file).is_ok_and(|text| text.contains("prog_id"))
    });
    [open, memory as usize, of_bpf.count()]
}

fn nothing_is_left(cycles: usize, cycle: impl Fn()) {
    cycle();
    let before = footprint();
    for _ in 0..cycles {
        cycle();
    }
    assert_eq!(footprint(), before);
}

fn down_for_a_moment() {
    pair("near", "far");
    let mut link = PacketLink::open("near", &Settings::default()).unwrap();
    let wakes = |link: &PacketLink| {
        let mut waits = [PollFd::new(link, PollFlags::IN)];
        poll(&mut waits, Some(&Timespec::default())).unwrap() > 0
    };
    // Nobody looked meanwhile.
    up("near", false);
    up("near", true);
    assert!(wakes(&link));
    is_up("near");
    assert!(link.receive(clock::now()).unwrap().is_none());
    assert!(!wakes(&link));
}

fn promiscuous() {
    pair("near", "far");
    for name in ["packet:near", "xdp:near"] {
        let name: InterfaceName = name.parse().unwrap();
        for promiscuous in [true, false] {
            let settings = Settings {
                promiscuous,
                ..Settings::default()
            };
            assert_eq!(promiscuity("near"), 0, "before {name}");
            let opened = open(&name, &settings).unwrap();
            assert_eq!(promiscuity("near"), u32::from(promiscuous), "{name}");
            drop(opened);
            assert_eq!(promiscuity("near"), 0, "after {name}");
        }
    }
}

fn thrown_away() {
    pair("near", "far");
    let mut link = XdpLink::open("near", Mode::Generic, &Settings::default()).unwrap();
    let mut sent_of = |count: usize| {
        for mut memory in link.allocate(count).unwrap() {
            memory.bytes_mut()[..60].fill(0);
            link.queue(memory, 60, Left::default(), clock::now())
                .unwrap();
        }
        let _ = link.flush(clock::now());
        let mut thrown_away = Vec::new();
        until("all are told of", || {
            if link.sent(clock::now()).is_some() {
                thrown_away.push(link.has_thrown_away());
            }
            thrown_away.len() == count
        });
        thrown_away
    };
    assert_eq!(sent_of(3), [false; 3]);
    up("far", false);
    assert_eq!(sent_of(3), [true; 3]);
    up("far", true);
    is_up("near");
    assert_eq!(sent_of(3), [false; 3]);
}

fn said_of_the_way() {
    let ends = free_addresses();
    let mut link = UdpLink::open(ends[0], ends[1], &Settings::default()).unwrap();
    let says = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::ICMP)).unwrap();
    for code in 0..16 {
        let said = unreachable(code, ends);
        let say = || sendto(&says, &said, SendFlags::empty(), &ends[0]).unwrap();
        // Over the loop it has been heard by now.
        say();
        let received = link.receive(clock::now());
        assert!(matches!(received, Ok(None)), "{code}: {received:?}");
        say();
        let memory = link.allocate(1).unwrap().remove(0);
        let sent = link.send(memory, 60, clock::now()).map_err(|(_, why)| why);
        assert_eq!(sent, Ok(()), "{code}");
        assert!(link.sent(clock::now()).is_some());
    }
}

/// What is behind the header fills a datagram, of any socket's at the other end; what comes has a header, with both ends' addresses and the type. What is longer than the way carries whole is refused.
fn fills_a_datagram() {
    const TYPE: u16 = 0x88b5;
    let [near, far] = free_addresses();
    let other = UdpSocket::bind(far).unwrap();
    other.connect(near).unwrap();
    let mut link = UdpLink::open_bare(near, far, TYPE, &Settings::default()).unwrap();
    let mut memory = link.allocate(2).unwrap();
    link.post(memory.remove(0)).unwrap();
    other.send(b"comes").unwrap();
    let came = link.receive(clock::now()).unwrap().unwrap();
    assert_eq!(came.length, 14 + 5);
    assert_eq!(came.memory[12..came.length], *b"\x88\xb5comes");
    let mut leaves = memory.remove(0);
    leaves[14..20].copy_from_slice(b"leaves");
    let in_pieces = link.queue_gathered(leaves, 16, &[b"av", b"es"], Left::default(), clock::now());
    assert!(!in_pieces.unwrap());
    let whole = link.sent(clock::now()).unwrap();
    link.send(whole, 20, clock::now()).unwrap();
    let (mut first, mut second) = ([0; 32], [0; 32]);
    let lengths = [&mut first, &mut second].map(|into| other.recv(into).unwrap());
    assert_eq!(
        (lengths, &first[..6], &second[..6]),
        ([6, 6], &b"leaves"[..], &b"leaves"[..])
    );
    let long = vec![0; link.facts().mtu + 15].into_boxed_slice();
    let (_, why) = link
        .send(long, link.facts().mtu + 15, clock::now())
        .unwrap_err();
    assert!(matches!(why, LinkError::TooLong(..)), "{why}");
}

/// That what this socket of UDP sent to the other was not delivered, for this reason (RFC 792).
fn unreachable(code: u8, [from, to]: [SocketAddr; 2]) -> Vec<u8> {
    let mut said = vec![3, code, 0, 0, 0, 0, 0, 0];
    said.extend([
        0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1,
    ]);
    for port in [from, to] {
        said.extend(port.port().to_be_bytes());
    }
    said.extend([0, 8, 0, 0]);
    let words = said.chunks_exact(2);
    let sum: u32 = words
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
        .sum();
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    said[2..4].copy_from_slice(&checksum.to_be_bytes());
    said
}

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        in_namespace(
            "an_interface_that_was_down_for_a_moment_wakes_nobody_once_that_is_known",
            down_for_a_moment,
        ),
        in_namespace(
            "an_interface_takes_what_is_addressed_to_others_while_that_is_asked_for",
            promiscuous,
        ),
        in_namespace("what_the_kernel_threw_away_was_not_sent", thrown_away),
        in_namespace(
            "what_is_said_of_the_way_by_icmp_stops_no_udp",
            said_of_the_way,
        ),
        in_namespace(
            "an_address_is_reached_by_an_interface_or_not_at_all",
            || {
                pair("near", "far");
                assert!(ip("address add 10.0.0.1/24 dev near"));
                assert_eq!(way::to([10, 0, 0, 2].into()).unwrap(), "near");
                let nowhere = way::to([192, 0, 2, 1].into()).unwrap_err();
                assert_eq!(nowhere.kind(), std::io::ErrorKind::NetworkUnreachable);
            },
        ),
        in_namespace("what_is_bare_fills_a_datagram", fills_a_datagram),
        in_namespace("opening_and_closing_leaves_nothing_of_udp", || {
            let [near, far] = free_addresses();
            nothing_is_left(1_000, || {
                drop(UdpLink::open(near, far, &Settings::default()).unwrap());
            });
        }),
        in_namespace(
            "opening_and_closing_leaves_nothing_of_a_packet_socket",
            || {
                pair("near", "far");
                // The kernel takes 60 ms over each.
                nothing_is_left(50, || {
                    drop(PacketLink::open("near", &Settings::default()).unwrap());
                });
            },
        ),
        in_namespace("opening_and_closing_leaves_nothing_of_tap", || {
            nothing_is_left(100, || {
                drop(TapLink::open("lax0", &Settings::default()).unwrap());
            });
            assert!(!ip("link show lax0"), "it is gone with its descriptor");
        }),
        in_namespace("opening_and_closing_leaves_nothing_of_xdp", || {
            pair("near", "far");
            // Each waits until the kernel has let go of the queue of the one before.
            nothing_is_left(50, || {
                drop(XdpLink::open("near", Mode::Generic, &Settings::default()).unwrap());
            });
            let shown = shown("near");
            assert!(!shown.contains("xdp"), "{shown}");
        }),
    ]
}
