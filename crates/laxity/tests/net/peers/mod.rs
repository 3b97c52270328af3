//! Real peers: this machine's kernel and the distribution's programs, over each interface that needs no other machine.

mod iperf;
mod programs;
mod transfers;

use std::net::IpAddr;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use laxity::doctor::rights::lacks;
use laxity::net::sockets::TcpStream;
use laxity::net::{AnyMemory, Interface, LiveStack, Options, StackConfig};

use super::namespace::{ip, is_up, pair, up};

pub(super) type Stream = TcpStream<AnyMemory>;

/// How this end has the wire whose other end is the kernel's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Over {
    Packet,
    /// The kernel leaves checksums and segments to us.
    PacketSegments,
    Xdp,
    Tap,
    TapSegments,
    Tun,
    TunSegments,
}

pub(super) const ALL: [Over; 7] = [
    Over::Packet,
    Over::PacketSegments,
    Over::Xdp,
    Over::Tap,
    Over::TapSegments,
    Over::Tun,
    Over::TunSegments,
];

pub(super) const OURS: [u8; 4] = [10, 0, 0, 2];
pub(super) const KERNELS: [u8; 4] = [10, 0, 0, 1];

pub(super) fn ours6() -> IpAddr {
    [0xfd00, 0, 0, 0, 0, 0, 0, 2].into()
}

pub(super) fn kernels6() -> IpAddr {
    [0xfd00, 0, 0, 0, 0, 0, 0, 1].into()
}

/// A host of ours with the kernel at the other end. The host ends first.
pub(super) struct Peers {
    pub(super) host: LiveStack,
    pub(super) interface: Interface,
}

impl Peers {
    pub(super) fn new(over: Over) -> Self {
        Self::with(over, config())
    }

    pub(super) fn with(over: Over, config: StackConfig) -> Self {
        let mut options = Options::default();
        options.settings.segments = matches!(
            over,
            Over::PacketSegments | Over::TapSegments | Over::TunSegments
        );
        let is_pair = matches!(over, Over::Packet | Over::PacketSegments | Over::Xdp);
        let name = match over {
            Over::Packet | Over::PacketSegments => "packet:near",
            Over::Xdp => "xdp:near",
            Over::Tap | Over::TapSegments => "tap:far",
            Over::Tun | Over::TunSegments => "tun:far",
        };
        if is_pair {
            pair("near", "far");
        }
        if matches!(over, Over::Packet | Over::Xdp) {
            // Nobody cuts segments on the way to us.
            assert!(ip("link set dev far gso_max_segs 1"));
        }
        let interface = Interface::open(name, options).unwrap();
        up("far", true);
        is_up("far");
        std::fs::write("/proc/sys/net/ipv6/conf/far/disable_ipv6", "0").unwrap();
        assert!(ip("address add 10.0.0.1/24 dev far"));
        assert!(ip("address add fd00::1/64 dev far nodad"));
        is_kernels("fd00::1");
        let host = interface.stack(config).unwrap();
        Self { host, interface }
    }
}

/// Waits until the kernel takes packets for this address: it does by work that it puts off, and drops them before.
fn is_kernels(address: &str) {
    let begin = Instant::now();
    loop {
        let shown = run("ip", &format!("route get {address}"));
        if shown.stdout.starts_with(b"local") {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{shown:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

pub(super) fn config() -> StackConfig {
    StackConfig {
        addresses: vec![(OURS.into(), 24), (ours6(), 64)],
        ..StackConfig::default()
    }
}

/// Whether a program is there; else the test is skipped.
pub(super) fn has(program: &str) -> bool {
    let mut which = Command::new("which");
    let is_there = which.arg(program).stdout(Stdio::null()).status();
    let is_there = is_there.is_ok_and(|status| status.success());
    if !is_there {
        lacks(&format!("no `{program}`"));
    }
    is_there
}

pub(super) fn run(program: &str, arguments: &str) -> Output {
    let mut command = Command::new(program);
    command.args(arguments.split(' ')).output().unwrap()
}

/// Bytes of which no piece is another's.
pub(super) fn pattern(length: usize, seed: usize) -> Vec<u8> {
    let byte = |at: usize| (at * 31 + at / 253 + at / 65_521 + seed) as u8;
    (0..length).map(byte).collect()
}
