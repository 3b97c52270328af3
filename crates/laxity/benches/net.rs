//! How soon a packet is with its client, and what others can do to that, over a pair of interfaces (veth).
//!
//! `cargo bench -p laxity --bench net`, as root, with `ip`, on two processors. Four parts: what the framework adds to each packet that is received, with the one match that any interface costs; from the hook to
//! `receive` against a bare `poll` of the same rank; from the hook to the client's own thread; and a flow of 1 kHz that is found at the hook beside a flood for a client without buffers, from either processor. Contenders take turns; on a
//! shared machine ratios of one run can be trusted, and a maximum tells of the machine.

#[path = "../../laxity-linux/tests/links/namespace.rs"]
#[allow(dead_code, reason = "a test has the rest")]
mod namespace;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant as Wall;

use laxity::net::buffers::{Buffer, Filled, PoolSize};
use laxity::net::client::{Client, Context};
use laxity::net::driver::{Driver, Host, Interest, Limits};
use laxity::net::filter::Filter;
use laxity::net::{
    AnyLink, AnyMemory, EarlyOptions, Flow, FlowOptions, Frames, Interface, Mode, Options, Rest,
    Settings,
};
use laxity::{Instant, Span, now, sleep_until};
use laxity_linux::net::{PacketLink, XdpLink};
use laxity_linux::os::cpuset::CpuSet;
use laxity_linux::os::sched::{self, Policy, Tid};
use laxity_model::nif::link::{Left, Link, Memory};
use rustix::event::{PollFd, PollFlags, poll};

const PACKETS: usize = 2_000;
const ROUNDS: usize = 5;
const EVERY: Span = Span::from_millis(1);
/// The processor of all that receives, and that of who sends.
const OURS: usize = 0;
const THEIRS: usize = 1;
const OWN: u16 = 2_000;
const FLOOD: u16 = 3_000;
const BATCH: usize = 32;
const BATCHES: usize = 500;

/// The calling thread, on this processor at this FIFO priority; 0: an ordinary one.
fn rank(processor: Option<usize>, priority: u8) {
    let own = Tid::current();
    if let Some(processor) = processor {
        sched::set_affinity(own, &CpuSet::single(processor)).expect("it is there");
    }
    if priority > 0 {
        sched::set_policy(own, Policy::Fifo(priority)).expect("root may");
    }
}

/// A datagram of 60 bytes with an instant in it.
fn frame(port: u16, at: Instant) -> [u8; 60] {
    let mut frame = [2; 60];
    frame[12..26].copy_from_slice(&[8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    frame[34..36].copy_from_slice(&1_000_u16.to_be_bytes());
    frame[36..38].copy_from_slice(&port.to_be_bytes());
    frame[38..42].copy_from_slice(&[0, 26, 0, 0]);
    frame[42..50].copy_from_slice(&at.as_nanos().to_be_bytes());
    frame
}

fn sent_at(frame: &[u8]) -> Instant {
    let bytes = frame.get(42..50).and_then(|bytes| bytes.try_into().ok());
    Instant::from_nanos(bytes.map_or(0, u64::from_be_bytes))
}

/// Sends so many packets, one each millisecond.
fn send_slowly(packets: usize) {
    thread::scope(|scope| {
        scope.spawn(|| {
            rank(Some(THEIRS), 60);
            send_each(packets);
        });
    });
}

fn send_each(packets: usize) {
    let mut far = PacketLink::open("far", &Settings::default()).expect("it is there");
    let mut memory = far.allocate(1).expect("there is memory");
    let mut due = now();
    for _ in 0..packets {
        due += EVERY;
        sleep_until(due);
        let mut one = loop {
            match memory.pop().or_else(|| far.sent(now())) {
                Some(one) => break one,
                None => thread::yield_now(),
            }
        };
        one[..60].copy_from_slice(&frame(OWN, now()));
        assert!(far.send(one, 60, now()).is_ok());
    }
}

/// Sends as fast as it can until it is over; tells how many.
fn flood(is_over: &AtomicBool, sent: &AtomicU64) {
    let settings = Settings {
        reach: 2 * BATCH,
        ..Settings::default()
    };
    let mut far = PacketLink::open("far", &settings).expect("it is there");
    let mut memory = far.allocate(BATCH).expect("there is memory");
    for one in &mut memory {
        one[..60].copy_from_slice(&frame(FLOOD, Instant::ZERO));
    }
    while !is_over.load(Ordering::Relaxed) {
        let mut count = 0;
        while let Some(one) = memory.pop() {
            match far.queue(one, 60, Left::default(), now()) {
                Ok(()) => count += 1,
                Err((one, _)) => {
                    memory.push(one);
                    break;
                }
            }
        }
        let _ = far.flush(now());
        sent.fetch_add(count, Ordering::Relaxed);
        memory.extend(std::iter::from_fn(|| far.sent(now())));
    }
}

/// When a packet was with its client, and how long that took, in nanoseconds.
type Seen = (Instant, u64);

/// From when until when a processor stood still.
static HALTS: Mutex<Vec<[Instant; 2]>> = Mutex::new(Vec::new());

/// Looks each millisecond whether this processor stands still, for as long as the bench lasts: nobody is above it.
fn witness(processor: usize) {
    rank(Some(processor), 99);
    let mut due = now();
    loop {
        due += EVERY;
        sleep_until(due);
        let woke = now();
        if woke.saturating_since(due) > Span::from_micros(100) {
            HALTS.lock().expect("nobody panics").push([due, woke]);
            due = woke;
        }
    }
}

fn at(all: &mut [u64], part: usize) -> u64 {
    all.sort_unstable();
    all[(all.len() - 1) * part / 1_000]
}

/// Tells of all, and of those during which no processor stood still: their 99th percentile.
fn told(name: &str, all: &[Seen], of: usize) -> u64 {
    let halts = HALTS.lock().expect("nobody panics");
    let mut raw: Vec<u64> = all.iter().map(|(_, late)| *late).collect();
    let is_undisturbed = |(with, late): &&Seen| {
        let from = with.saturating_sub(Span::from_nanos(*late));
        !halts
            .iter()
            .any(|[begin, end]| *begin <= *with && from <= *end)
    };
    let quiet = all.iter().filter(is_undisturbed).map(|(_, late)| *late);
    let mut quiet: Vec<u64> = quiet.collect();
    let micros = |nanos: u64| nanos as f64 / 1e3;
    println!(
        "  {name:<36} p50 {:>6.1}  p99 {:>6.1} ({:.1} with halts)  most {:>7.1} us; {} of {of} lost, {:.1} % beside halts",
        micros(at(&mut quiet, 500)),
        micros(at(&mut quiet, 990)),
        micros(at(&mut raw, 990)),
        micros(at(&mut quiet, 1_000)),
        of - all.len(),
        100.0 - 100.0 * quiet.len() as f64 / all.len() as f64,
    );
    at(&mut quiet, 990)
}

/// From the hook to a thread of FIFO 97 that polls the socket itself.
fn bare() -> Vec<Seen> {
    let mut link = XdpLink::open("near", Mode::Generic, &Settings::default()).expect("root may");
    for memory in link.allocate(64).expect("there is memory") {
        assert!(link.post(memory).is_ok());
    }
    let receiver = thread::spawn(move || {
        rank(Some(OURS), 97);
        let mut all = Vec::with_capacity(PACKETS);
        while all.len() < PACKETS {
            let mut waits = [PollFd::new(&link, PollFlags::IN)];
            let _ = poll(&mut waits, None);
            while let Some(received) = link.receive(now()).expect("it is up") {
                let now = now();
                let late = now.saturating_since(received.at);
                if sent_at(&received.memory.bytes()[..received.length]) > Instant::ZERO {
                    all.push((now, late.as_nanos()));
                }
                assert!(link.post(received.memory).is_ok());
            }
        }
        all
    });
    send_slowly(PACKETS);
    receiver.join().expect("it ends")
}

/// Keeps how late each packet is when its client is called, since it was at the hook.
struct Late(Arc<Mutex<Vec<Seen>>>);

impl Client<AnyMemory> for Late {
    fn receive(&mut self, packet: Buffer<AnyMemory, Filled>, _: &mut Context<'_>) {
        let (at, now) = (packet.arrived().map(|arrived| arrived.at), now());
        if let (Some(at), Ok(mut all)) = (at, self.0.try_lock()) {
            all.push((now, now.saturating_since(at).as_nanos()));
        }
        packet.emptied().give().ok();
    }
}

/// From the hook to a client's `receive`.
fn received() -> Vec<Seen> {
    let near = Interface::open("xdp:near", options()).expect("root may");
    let all = Arc::new(Mutex::new(Vec::with_capacity(PACKETS)));
    let client = near.register("udp dst port 2000", 64, Late(Arc::clone(&all)));
    client.expect("it is free").pool.give(64);
    send_slowly(PACKETS);
    drop(near);
    std::mem::take(&mut all.lock().expect("nobody panicked"))
}

/// The driver is where the client's thread is.
fn options() -> Options {
    Options {
        processor: Some(OURS),
        ..Options::default()
    }
}

fn flow(port: u16) -> Flow {
    Flow {
        is_tcp: false,
        own: ([10, 0, 0, 2], port).into(),
        far: None,
    }
}

const BUFFERS: FlowOptions = FlowOptions {
    buffers: 64,
    raises: None,
};

/// From the hook, and from when it was sent, to the thread of a client of a flow, of FIFO 80.
fn to_thread(options: Options, packets: usize, beside: impl FnOnce(&Interface)) -> [Vec<Seen>; 2] {
    let near = Interface::open("xdp:near", options).expect("root may");
    let queue = near.flow(flow(OWN), &BUFFERS).expect("it is free");
    let (tell, told) = channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            rank(Some(OURS), 80);
            while let Ok(packet) = queue.next(Some(now() + Span::from_millis(500))) {
                let now = now();
                let at = packet.arrived().map_or(now, |arrived| arrived.at);
                let since = |at: Instant| now.saturating_since(at).as_nanos();
                tell.send([(now, since(at)), (now, since(sent_at(&packet)))])
                    .ok();
            }
        });
        beside(&near);
        send_slowly(packets);
    });
    let all: Vec<[Seen; 2]> = told.iter().collect();
    [0, 1].map(|which| all.iter().map(|seen| seen[which]).collect())
}

fn early() -> Options {
    let early = EarlyOptions {
        flows: 2,
        buffers: 128,
        rest: Rest::ClientZero,
    };
    Options {
        early: Some(early),
        ..options()
    }
}

/// A flow of 1 kHz beside a flood from this processor, if from any.
fn isolated(from: Option<usize>) -> u64 {
    const SECONDS: usize = 6;
    let packets = SECONDS * 1_000;
    let (is_over, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    let began = Wall::now();
    let all = thread::scope(|scope| {
        let all = to_thread(early(), packets, |near| {
            let greedy = FlowOptions {
                buffers: 1,
                ..BUFFERS
            };
            // It stays registered until the interface is closed, and nobody takes its packets: behind the first one it has no buffer.
            std::mem::forget(near.flow(flow(FLOOD), &greedy).expect("it is free"));
            let (is_over, sent) = (&is_over, &sent);
            if let Some(processor) = from {
                scope.spawn(move || {
                    rank(Some(processor), 0);
                    flood(is_over, sent);
                });
            }
        });
        is_over.store(true, Ordering::Relaxed);
        all
    });
    let rate = sent.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64() / 1e6;
    let name = match from {
        None => "no flood".to_owned(),
        Some(processor) => format!("{rate:.2} M/s from {processor}"),
    };
    told(&format!("{name}: since the hook"), &all[0], packets);
    told(&format!("{name}: since it was sent"), &all[1], packets)
}

/// Gives each buffer again.
struct GivesAgain;

impl<M: Memory> Client<M> for GivesAgain {
    fn receive(&mut self, packet: Buffer<M, Filled>, _: &mut Context<'_>) {
        std::hint::black_box(packet.bytes());
        packet.emptied().give().ok();
    }
}

fn near() -> XdpLink {
    XdpLink::open("near", Mode::Generic, &Settings::default()).expect("root may")
}

/// What a received packet takes, in nanoseconds: the median of all batches.
fn batches(far: &mut PacketLink, mut receive: impl FnMut() -> usize) -> u64 {
    let mut memory = far.allocate(BATCH).expect("there is memory");
    for one in &mut memory {
        one[..60].copy_from_slice(&frame(OWN, Instant::ZERO));
    }
    let mut all = Vec::new();
    for _ in 0..BATCHES {
        while let Some(one) = memory.pop() {
            assert!(far.queue(one, 60, Left::default(), now()).is_ok());
        }
        far.flush(now()).expect("it is up");
        let (began, mut got) = (Wall::now(), 0);
        while got < BATCH {
            got += receive();
        }
        all.push(began.elapsed().as_nanos() as u64 / BATCH as u64);
        while memory.len() < BATCH {
            memory.extend(far.sent(now()));
        }
    }
    all.sort_unstable();
    all[all.len() / 2]
}

fn driven<L: Link>(far: &mut PacketLink, link: L) -> u64
where
    L::Memory: 'static,
{
    let limits = Limits {
        posted: 64,
        ..Limits::default()
    };
    let frames = Frames::new(None, 1);
    let mut driver = Driver::new(link, frames, limits, Host::default()).expect("there is memory");
    let filter = Filter::parse("udp dst port 2000", None).expect("it is right");
    let size = PoolSize::fixed(64);
    let client = driver.register(Interest::In(&filter), size, GivesAgain);
    client.expect("it is free").pool.give(64);
    batches(far, || {
        driver.poll(now(), &mut ()).expect("it is up").arrived
    })
}

fn added() {
    println!(
        "a received packet of 60 bytes, ns, median of {BATCHES} batches of {BATCH}, {ROUNDS} rounds:"
    );
    let mut far = PacketLink::open("far", &Settings::default()).expect("root may");
    let mut all = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        let mut link = near();
        for memory in link.allocate(64).expect("there is memory") {
            assert!(link.post(memory).is_ok());
        }
        all[0].push(batches(&mut far, || {
            let Some(received) = link.receive(now()).expect("it is up") else {
                return 0;
            };
            std::hint::black_box(received.memory.bytes());
            assert!(link.post(received.memory).is_ok());
            1
        }));
        drop(link);
        all[1].push(driven(&mut far, near()));
        all[2].push(driven(&mut far, AnyLink::Xdp(Box::new(near()))));
    }
    let names = [
        "bare ring",
        "driver, filter and client",
        "the same over any interface",
    ];
    for (name, mut all) in names.into_iter().zip(all) {
        all.sort_unstable();
        println!(
            "  {name:<44} {:>5} [{}, {}]",
            all[ROUNDS / 2],
            all[0],
            all[ROUNDS - 1]
        );
    }
}

fn main() {
    namespace::in_own(all).expect("root is needed, and `ip`");
}

fn all() {
    namespace::pair("near", "far");
    added();
    for processor in [0, 1] {
        thread::spawn(move || witness(processor));
    }
    println!("from the hook, {PACKETS} packets a millisecond apart, {ROUNDS} rounds in turn:");
    let mut all = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        all[0].extend(bare());
        all[1].extend(received());
        let [since_hook, _] = to_thread(options(), PACKETS, |_| ());
        all[2].extend(since_hook);
    }
    let names = ["to a bare poll", "to receive", "to the client's own thread"];
    for (name, all) in names.into_iter().zip(all) {
        told(name, &all, PACKETS * ROUNDS);
    }
    println!(
        "a flow of 1 kHz to its client's thread, beside a flood for a client without buffers:"
    );
    for _ in 0..2 {
        let alone = isolated(None);
        for processor in [0, 1] {
            let beside = isolated(Some(processor));
            println!(
                "    p99 since it was sent: {:.1} x",
                beside as f64 / alone.max(1) as f64
            );
        }
    }
}
