//! What a packet costs by each way to an interface, beside the kernel's UDP with `sendmmsg` and `recvmmsg`, over a pair of interfaces (veth).
//!
//! `cargo bench -p laxity-linux --bench links`, as root, with `ip`. One thread on one processor sends 32 packets and then receives them, so that its
//! processor time has all that they cost at both ends, interrupts too. In our ways Ethernet, IPv4 and UDP are built and looked at, the IPv4 checksum made and
//! checked, and the payload copied from and to a user's buffer; the checksum of UDP is made nowhere, as the kernel makes none over such a pair. All
//! ways take turns in each round; medians of the rounds, and the ratio to the kernel's UDP.
#![allow(unsafe_code, reason = "calls of many messages, and namespaces")]

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::mpsc;

use laxity_linux::net::xdp::Mode;
use laxity_linux::net::xdp::early::{EarlySettings, Flow};
use laxity_linux::net::xdp::program::Rest;
use laxity_linux::net::{PacketLink, Settings, XdpLink};
use laxity_linux::os::clock;
use laxity_model::nif::link::{Left, Link, Memory};

const BATCH: usize = 32;
const BATCHES: usize = 1_000;
const ROUNDS: usize = 9;
const HEADERS: usize = 14 + 20 + 8;
const NEAR: [u8; 4] = [10, 9, 0, 1];
const FAR: [u8; 4] = [10, 9, 0, 2];
const PORT: u16 = 5_000;

/// The processor time of this thread, in nanoseconds.
fn spent() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the place outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn ip(arguments: &str) {
    let done = Command::new("ip").args(arguments.split(' ')).status();
    assert!(done.is_ok_and(|done| done.success()), "ip {arguments}");
}

fn enter() {
    // SAFETY: it takes a number, and concerns this thread alone.
    let entered = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    assert_eq!(entered, 0, "root is needed");
    for which in ["all", "default"] {
        let file = format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6");
        let _ = std::fs::write(file, "1");
    }
}

/// Work that the thread of the other namespace does, as opening something there.
type Job = Box<dyn FnOnce() + Send>;

/// The thread in the other namespace.
struct There(mpsc::Sender<Job>);

impl There {
    /// With the other end of the pair of which `near` is in this thread's namespace.
    fn begin() -> Self {
        enter();
        let (sender, jobs) = mpsc::channel::<Job>();
        let (told, number) = mpsc::channel();
        std::thread::spawn(move || {
            enter();
            // SAFETY: it takes nothing.
            let own = unsafe { libc::gettid() };
            told.send(own).expect("it is waited for");
            jobs.into_iter().for_each(|job| job());
        });
        let there = Self(sender);
        let number = number.recv().expect("it has begun");
        ip("link add near type veth peer name far");
        ip(&format!("link set far netns {number}"));
        ip("address add 10.9.0.1/24 dev near");
        ip("link set near up");
        there.run(|| {
            ip("address add 10.9.0.2/24 dev far");
            ip("link set far up");
        });
        there
    }

    fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (sender, answer) = mpsc::channel();
        let job: Job = Box::new(move || {
            let _ = sender.send(job());
        });
        self.0.send(job).expect("it is there");
        answer.recv().expect("it answers")
    }
}

fn settings() -> Settings {
    Settings {
        posted: 2 * BATCH,
        reach: BATCH,
        memory: 512,
        ..Settings::default()
    }
}

fn sum(header: &[u8]) -> u16 {
    let words = header.chunks_exact(2);
    let sum: u32 = words
        .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    (folded + (folded >> 16)) as u16
}

fn build(into: &mut [u8], payload: &[u8], port: u16) -> usize {
    let length = HEADERS + payload.len();
    let (addresses, rest) = into[..length].split_at_mut(12);
    addresses.fill(2);
    rest[..2].copy_from_slice(&[8, 0]);
    let (header, rest) = rest[2..].split_at_mut(20);
    header.copy_from_slice(&[
        0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ]);
    header[2..4].copy_from_slice(&((length - 14) as u16).to_be_bytes());
    header[12..16].copy_from_slice(&NEAR);
    header[16..].copy_from_slice(&FAR);
    let checksum = !sum(header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    rest[..2].copy_from_slice(&4_000_u16.to_be_bytes());
    rest[2..4].copy_from_slice(&port.to_be_bytes());
    rest[4..6].copy_from_slice(&((length - 34) as u16).to_be_bytes());
    rest[6..8].fill(0);
    rest[8..].copy_from_slice(payload);
    length
}

/// Whether it is one of ours, and its payload.
fn parse(frame: &[u8]) -> Option<&[u8]> {
    let is_ours = frame.len() >= HEADERS
        && frame[12..15] == [8, 0, 0x45]
        && frame[23] == 17
        && frame[30..34] == FAR
        && sum(&frame[14..34]) == 0xffff;
    let length = usize::from(u16::from_be_bytes([frame[38], frame[39]])).checked_sub(8)?;
    is_ours
        .then(|| frame.get(HEADERS..HEADERS + length))
        .flatten()
}

/// Processor time for each packet, from one link to the other.
fn links<A: Link, B: Link>(near: &mut A, far: &mut B, payload: usize, ports: u16) -> u64 {
    let (sent, mut got) = (vec![7_u8; payload], vec![0_u8; payload]);
    let mut free = near.allocate(BATCH).expect("there is memory");
    for memory in far.allocate(2 * BATCH).expect("there is memory") {
        assert!(far.post(memory).is_ok());
    }
    let mut random = 1_u32;
    let mut measured = 0;
    // The first tenth only warms up.
    for batch in 0..BATCHES + BATCHES / 10 {
        let begin = spent();
        let now = clock::now();
        for mut memory in free.drain(..) {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let port = PORT + (random >> 16) as u16 % ports;
            let length = build(memory.bytes_mut(), &sent, port);
            assert!(near.queue(memory, length, Left::default(), now).is_ok());
        }
        near.flush(now).expect("it sends");
        // As a driver has it that looks for them.
        let now = clock::now();
        let mut left = BATCH;
        while left > 0 {
            let Some(received) = far.receive(now).expect("it receives") else {
                continue;
            };
            if let Some(payload) = parse(&received.memory.bytes()[..received.length]) {
                got.copy_from_slice(payload);
                left -= 1;
            }
            assert!(far.post(received.memory).is_ok());
        }
        while free.len() < BATCH {
            free.extend(near.sent(now));
        }
        if batch >= BATCHES / 10 {
            measured += spent() - begin;
        }
    }
    assert_eq!(sent, got);
    measured / (BATCHES * BATCH) as u64
}

/// A way, and what a packet of so much payload costs by it.
type Way = fn(&There, usize) -> u64;

fn xdp(there: &There, payload: usize) -> u64 {
    let open = |name| XdpLink::open(name, Mode::Generic, &settings()).expect("it opens");
    let mut far = there.run(move || open("far"));
    links(&mut open("near"), &mut far, payload, 1)
}

fn native(there: &There, payload: usize) -> u64 {
    let open = |name| XdpLink::open(name, Mode::Native, &settings()).expect("it opens");
    let mut far = there.run(move || open("far"));
    links(&mut open("near"), &mut far, payload, 1)
}

fn packet(there: &There, payload: usize) -> u64 {
    let open = |name| PacketLink::open(name, &settings()).expect("it opens");
    let mut far = there.run(move || open("far"));
    links(&mut open("near"), &mut far, payload, 1)
}

fn early<const FLOWS: u16>(there: &There, payload: usize) -> u64 {
    let mut far = there.run(|| {
        let early = EarlySettings {
            flows: 16_384,
            clients: 1 + u32::from(FLOWS),
            rest: Rest::ClientZero,
        };
        let opened = XdpLink::open_early("far", Mode::Generic, &settings(), &early);
        let link = opened.expect("it opens");
        for client in 0..FLOWS {
            let flow = Flow {
                is_tcp: false,
                own: (FAR, PORT + client).into(),
                far: Some((NEAR, 4_000).into()),
            };
            let early = link.early().expect("it was asked for");
            early
                .steer(&flow, 1 + u32::from(client), 0)
                .expect("there is room");
            early.give(1 + u32::from(client), 1 << 30);
        }
        link
    });
    let near = XdpLink::open("near", Mode::Generic, &settings());
    links(&mut near.expect("it opens"), &mut far, payload, FLOWS)
}

fn messages(buffers: &mut [Vec<u8>]) -> (Vec<libc::iovec>, Vec<libc::mmsghdr>) {
    let pieces = buffers.iter_mut().map(|buffer| libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    });
    let mut pieces: Vec<_> = pieces.collect();
    let headers = pieces.iter_mut().map(|piece| {
        // SAFETY: zeros are a message without address and control data.
        let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
        header.msg_hdr.msg_iov = piece;
        header.msg_hdr.msg_iovlen = 1;
        header
    });
    let headers = headers.collect();
    (pieces, headers)
}

fn udp(there: &There, payload: usize) -> u64 {
    let far = there.run(|| UdpSocket::bind(SocketAddr::from((FAR, PORT))).expect("it is free"));
    let near = UdpSocket::bind(SocketAddr::from((NEAR, 4_000))).expect("it is free");
    near.connect(SocketAddr::from((FAR, PORT)))
        .expect("there is a way");
    let (mut out, mut back) = (vec![vec![7; payload]; BATCH], vec![vec![0; payload]; BATCH]);
    let (_out, mut sending) = messages(&mut out);
    let (_back, mut receiving) = messages(&mut back);
    let mut measured = 0;
    for batch in 0..BATCHES + BATCHES / 10 {
        let begin = spent();
        let mut sent = 0;
        while sent < BATCH {
            let rest = &mut sending[sent..];
            let count = rest.len() as u32;
            // SAFETY: the headers and what they lead to outlive the call.
            let more = unsafe { libc::sendmmsg(near.as_raw_fd(), rest.as_mut_ptr(), count, 0) };
            sent += usize::try_from(more).expect("it sends");
        }
        let mut got = 0;
        while got < BATCH {
            let rest = &mut receiving[got..];
            let (count, none) = (rest.len() as u32, std::ptr::null_mut());
            let (number, first) = (far.as_raw_fd(), rest.as_mut_ptr());
            // SAFETY: as above.
            let more = unsafe { libc::recvmmsg(number, first, count, libc::MSG_WAITFORONE, none) };
            got += usize::try_from(more).expect("it receives");
        }
        if batch >= BATCHES / 10 {
            measured += spent() - begin;
        }
    }
    measured / (BATCHES * BATCH) as u64
}

fn main() {
    // SAFETY: the set is a valid place, and one processor is named, on which this thread may run.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(0, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
    }
    let there = There::begin();
    let ways: [(&str, Way); 7] = [
        ("UDP of the kernel", udp),
        ("AF_XDP generic", xdp),
        ("AF_XDP native", native),
        ("AF_PACKET", packet),
        ("AF_XDP, 1 flow found at the hook", early::<1>),
        ("AF_XDP, 100 flows found at the hook", early::<100>),
        ("AF_XDP, 10,000 flows found at the hook", early::<10_000>),
    ];
    for frame in [64, 1_514] {
        let mut figures = vec![Vec::new(); ways.len()];
        for _ in 0..ROUNDS {
            for ((_, way), all) in ways.iter().zip(&mut figures) {
                all.push(way(&there, frame - HEADERS));
            }
        }
        let mut medians = Vec::new();
        for all in &mut figures {
            all.sort_unstable();
            medians.push((all[ROUNDS / 2], all[0], all[ROUNDS - 1]));
        }
        println!(
            "{frame} bytes: ns of processor time for each packet sent and received, median [least, most] of {ROUNDS}"
        );
        for ((name, _), (median, least, most)) in ways.iter().zip(&medians) {
            let ratio = medians[0].0 as f64 / *median as f64;
            println!("  {name:<40} {median:>6} [{least}, {most}]  {ratio:.2} x cheaper");
        }
    }
}
