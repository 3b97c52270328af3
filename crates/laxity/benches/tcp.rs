//! TCP of ours beside the kernel's, with the kernel's at the other end of the same pair of interfaces (veth), or of a TAP.
//!
//! `cargo bench -p laxity --bench tcp`, as root, with `ip` and `ethtool`, on two processors: one for this end, with its driver, and one for the peer. Sending and receiving apart, at an MTU of 1500; the kernel's
//! offloads (checksums, segments, GRO) off at both ends, or on. Contenders take turns. Processor time is that of the process, so of both ends, and of what the kernel does for it in interrupts meanwhile.
#![allow(unsafe_code, reason = "a thread enters a namespace by a system call")]

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use laxity::net::{Interface, LiveStack, Options, StackConfig, sockets};
use laxity_linux::os::cpuset::CpuSet;
use laxity_linux::os::sched::{self, Policy, Tid};

const ROUNDS: usize = 7;
const BYTES: usize = 24 << 20;
const SEGMENT: usize = 1_460;
const OURS: usize = 0;
const THEIRS: usize = 1;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Kernel,
    Packet,
    Xdp,
    Tap,
}

/// Who has this end, and whether the kernel's offloads are on, wherever it is.
const CONTENDERS: [(Way, bool); 7] = [
    (Way::Kernel, false),
    (Way::Kernel, true),
    (Way::Packet, false),
    (Way::Packet, true),
    (Way::Xdp, false),
    (Way::Tap, false),
    (Way::Tap, true),
];

fn run(program: &str, arguments: &str) {
    let done = Command::new(program).args(arguments.split(' ')).output();
    let done = done.expect("it is installed");
    assert!(done.status.success(), "{program} {arguments}: {done:?}");
}

fn offloads(interface: &str, is_on: bool) {
    let to = if is_on { "on" } else { "off" };
    run(
        "ethtool",
        &format!("-K {interface} tx {to} tso {to} gso {to} gro {to}"),
    );
}

/// Does this in a thread of its own, on a processor above all ordinary threads, in a namespace.
fn there<T: Send>(namespace: &File, processor: usize, act: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(|| enter(namespace, processor, act)).join()).expect("it ends")
}

fn enter<T>(namespace: &File, processor: usize, act: impl FnOnce() -> T) -> T {
    // SAFETY: it takes a descriptor that is open, and concerns this thread alone.
    let entered = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
    assert_eq!(entered, 0, "root may");
    let own = Tid::current();
    sched::set_affinity(own, &CpuSet::single(processor)).expect("it is there");
    sched::set_policy_inherited(own, Policy::Fifo(20)).expect("root may");
    act()
}

/// A namespace that lives as long as this is open.
fn namespace() -> File {
    let made = thread::spawn(|| {
        // SAFETY: it takes a number, and concerns this thread alone.
        let entered = unsafe { libc::unshare(libc::CLONE_NEWNET) };
        assert_eq!(entered, 0, "root is needed");
        for which in ["all", "default"] {
            let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6"), "1");
        }
        File::open("/proc/thread-self/ns/net").expect("it is there")
    });
    made.join().expect("it ends")
}

trait Both: Read + Write + Send {}
impl<T: Read + Write + Send> Both for T {}

/// This end.
enum Near {
    Kernel,
    Ours(
        LiveStack,
        #[expect(dead_code, reason = "it is open for as long as its host is there")] Box<Interface>,
    ),
}

impl Near {
    fn open(way: Way, offloads: bool) -> Self {
        let name = match way {
            Way::Kernel => return Self::Kernel,
            Way::Packet => "packet:near",
            Way::Xdp => "xdp:near",
            Way::Tap => "tap:lax0",
        };
        let mut options = Options {
            processor: Some(OURS),
            ..Options::default()
        };
        options.settings.segments = offloads;
        options.settings.memory = 4_096;
        let interface = Interface::open(name, options).expect("root may");
        let host = interface.stack(StackConfig {
            addresses: vec![(address(way, 2).ip(), 24)],
            window: 256 << 10,
            buffers: if offloads { 64 } else { 256 },
            ..StackConfig::default()
        });
        Self::Ours(host.expect("it is free"), Box::new(interface))
    }

    fn connect(&self, to: SocketAddr) -> Box<dyn Both> {
        match self {
            Self::Kernel => Box::new(TcpStream::connect(to).expect("it listens")),
            Self::Ours(host, _) => {
                Box::new(sockets::TcpStream::connect(host, to).expect("it listens"))
            }
        }
    }
}

fn address(way: Way, last: u8) -> SocketAddr {
    ([10, 0, u8::from(way == Way::Tap), last], 5_000).into()
}

/// Of this process, in user's and system's mode.
fn processor_time() -> Duration {
    let own = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(own.tv_sec as u64, own.tv_nsec as u32)
}

/// Reads to the end; how many bytes.
fn hear(mut from: impl Read) -> usize {
    let (mut count, mut piece) = (0, vec![0; 128 << 10]);
    loop {
        match from.read(&mut piece).expect("it is there") {
            0 => return count,
            read => count += read,
        }
    }
}

fn say(mut to: impl Write) {
    let piece = vec![7; 128 << 10];
    for _ in 0..BYTES / piece.len() {
        to.write_all(&piece).expect("it is there");
    }
}

/// MB/s, and nanoseconds of processor time for each full segment.
type Figures = [f64; 2];

fn measure(near: &Near, way: Way, peer: &File, sends: bool) -> Figures {
    let (ready, is_ready): (_, Receiver<()>) = channel();
    thread::scope(|scope| {
        let far = scope.spawn(move || {
            enter(peer, THEIRS, || {
                let listener = TcpListener::bind(address(way, 1)).expect("it is free");
                ready.send(()).expect("it waits");
                let (stream, _) = listener.accept().expect("it connects");
                if sends {
                    assert_eq!(hear(stream), BYTES);
                } else {
                    say(stream);
                }
            });
        });
        is_ready.recv().expect("it listens");
        let stream = near.connect(address(way, 1));
        let (began, before) = (Instant::now(), processor_time());
        if sends {
            say(stream);
        } else {
            assert_eq!(hear(stream), BYTES);
        }
        far.join().expect("it ends");
        let (took, spent) = (began.elapsed(), processor_time() - before);
        [
            BYTES as f64 / 1e6 / took.as_secs_f64(),
            spent.as_nanos() as f64 / (BYTES / SEGMENT) as f64,
        ]
    })
}

/// Sending, receiving.
fn contend(way: Way, is_on: bool, [own, peer]: [&File; 2]) -> [Figures; 2] {
    let own = if way == Way::Tap { peer } else { own };
    there(own, OURS, || {
        if way == Way::Kernel {
            run("ip", "address add 10.0.0.2/24 dev near");
        }
        let near = Near::open(way, is_on);
        if way == Way::Tap {
            run("ip", "address add 10.0.1.1/24 dev lax0");
        } else {
            offloads("near", is_on);
            there(peer, THEIRS, || offloads("far", is_on));
        }
        let figures = [true, false].map(|sends| measure(&near, way, peer, sends));
        drop(near);
        if way == Way::Kernel {
            run("ip", "address del 10.0.0.2/24 dev near");
        }
        figures
    })
}

fn spread(mut all: Vec<f64>) -> [f64; 3] {
    all.sort_by(f64::total_cmp);
    [all[all.len() / 2], all[0], all[all.len() - 1]]
}

fn main() {
    let (own, peer) = (namespace(), namespace());
    there(&peer, THEIRS, || {
        let tid = rustix::thread::gettid().as_raw_nonzero();
        let peers = thread::scope(|scope| {
            let made = scope.spawn(|| {
                enter(&own, OURS, || {
                    run("ip", "link add near type veth peer name far");
                    run("ip", &format!("link set far netns {tid}"));
                    run("ip", "link set near up");
                });
            });
            made.join()
        });
        peers.expect("root may");
        run("ip", "address add 10.0.0.1/24 dev far");
        run("ip", "link set far up");
    });
    let mut all = vec![[const { Vec::new() }; 2]; CONTENDERS.len()];
    for _ in 0..ROUNDS {
        for (figures, (way, is_on)) in all.iter_mut().zip(CONTENDERS) {
            let [sending, receiving] = contend(way, is_on, [&own, &peer]);
            figures[0].push(sending);
            figures[1].push(receiving);
        }
    }
    for (direction, name) in ["sending", "receiving"].into_iter().enumerate() {
        println!(
            "{name} {} MB, {ROUNDS} rounds, median [least, most]; x: of the kernel's without, with offloads",
            BYTES >> 20
        );
        let of = |contender: usize, what: usize| {
            spread(
                all[contender][direction]
                    .iter()
                    .map(|one| one[what])
                    .collect(),
            )
        };
        for (at, (way, is_on)) in CONTENDERS.into_iter().enumerate() {
            let [rate, time] = [of(at, 0), of(at, 1)];
            println!(
                "  {:<8} offloads {:<3}  {:>6.0} [{:.0}, {:.0}] MB/s {:.2} x {:.2} x  {:>6.0} [{:.0}, {:.0}] ns a segment {:.2} x {:.2} x",
                format!("{way:?}"),
                if is_on { "on" } else { "off" },
                rate[0],
                rate[1],
                rate[2],
                rate[0] / of(0, 0)[0],
                rate[0] / of(1, 0)[0],
                time[0],
                time[1],
                time[2],
                time[0] / of(0, 1)[0],
                time[0] / of(1, 1)[0],
            );
        }
    }
}
