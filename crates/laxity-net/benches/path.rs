//! What the framework adds to each packet over an interface, and what a poll costs that finds nothing to do.
//!
//! `cargo bench -p laxity-net --bench path`. A wire that takes no time, both ends in one thread. *Bare* sends and receives with its two ends; a
//! row further the receiving end has a driver, whose client gives each buffer again. All contenders in turn in every round, median
//! of 101 rounds: on a shared machine the differences of one run can be trusted, the nanoseconds less.

use std::hint::black_box;
use std::time::Instant as Wall;

use laxity_model::Instant;
use laxity_model::base::number::median;
use laxity_model::nif::link::{Link, Memory};
use laxity_model::nif::registry::{Circuit, Circuits};
use laxity_net::buffers::{Buffer, Filled, PoolSize, Sending};
use laxity_net::client::{Client, Context, Loan, Peek};
use laxity_net::driver::{Driver, Host, Interest, Limits};
use laxity_net::emulated::{End, Faults, Null, Wire};

type Bytes = Box<[u8]>;

const ROUNDS: usize = 101;
const BATCH: usize = 32;
const BATCHES: u32 = 64;
const NOW: Instant = Instant::ZERO;
const CIRCUIT: Circuit = Circuit {
    path: 0,
    channel: 1,
};

/// Its work is over at once, and its buffer is given again.
struct GivesAgain;

impl<M: Memory> Client<M> for GivesAgain {
    fn receive(&mut self, packet: Buffer<M, Filled>, _: &mut Context<'_>) {
        black_box(packet.bytes());
        packet.emptied().give().ok();
    }
}

struct Looks;

impl Peek for Looks {
    fn look(&mut self, packet: Loan<'_>, _: &mut Context<'_>) {
        black_box(packet.bytes);
    }
}

/// A sending end without a driver.
struct Source {
    end: End,
    memories: Vec<Bytes>,
    length: usize,
}

impl Source {
    fn new(mut end: End, length: usize) -> Self {
        let mut memories = end.allocate(BATCH).expect("memory");
        for memory in &mut memories {
            memory[..4].copy_from_slice(&CIRCUIT.header());
        }
        Self {
            end,
            memories,
            length,
        }
    }

    fn send_batch(&mut self) {
        for memory in self.memories.drain(..) {
            assert!(self.end.send(memory, self.length, NOW).is_ok());
        }
        while let Some(memory) = self.end.sent(NOW) {
            self.memories.push(memory);
        }
    }
}

/// What one batch costs.
type Contender = Box<dyn FnMut()>;

fn bare(length: usize) -> Contender {
    let (_wire, near, mut far) = Wire::new(Faults::default(), 1);
    let mut source = Source::new(near, length);
    for memory in far.allocate(2 * BATCH).expect("memory") {
        assert!(far.post(memory).is_ok());
    }
    Box::new(move || {
        source.send_batch();
        for _ in 0..BATCH {
            let packet = far.receive(NOW).expect("up").expect("sent");
            black_box(&packet.memory[..packet.length]);
            assert!(far.post(packet.memory).is_ok());
        }
        assert!(far.receive(NOW).expect("up").is_none());
    })
}

fn limits(clients: u32) -> Limits {
    Limits {
        clients,
        posted: 2 * BATCH,
        per_poll: 2 * BATCH,
        ..Limits::default()
    }
}

/// Behind a driver that a client registers with.
fn driven(length: usize, register: impl FnOnce(&mut Driver<End, Circuits>)) -> Contender {
    let (_wire, near, far) = Wire::new(Faults::default(), 1);
    let mut source = Source::new(near, length);
    let mut driver =
        Driver::new(far, Circuits::default(), limits(4), Host::default()).expect("memory");
    register(&mut driver);
    Box::new(move || {
        source.send_batch();
        let polled = driver.poll(NOW, &mut ()).expect("up");
        assert_eq!(polled.arrived, BATCH);
    })
}

fn swapping(length: usize) -> Contender {
    driven(length, |driver| {
        let size = PoolSize::fixed(64);
        let client = driver.register(Interest::In(&CIRCUIT), size, GivesAgain);
        client.expect("free").pool.give(64);
    })
}

fn copying(length: usize) -> Contender {
    driven(length, |driver| {
        let own: Vec<Bytes> = (0..64).map(|_| vec![0; 1514].into()).collect();
        let size = PoolSize::fixed(0);
        let client = driver.register_own(Interest::In(&CIRCUIT), own, size, GivesAgain);
        client.expect("free").own.give(64);
    })
}

fn peeking(length: usize) -> Contender {
    driven(length, |driver| {
        let client = driver.register_peek(Interest::In(&CIRCUIT), PoolSize::fixed(0), Looks);
        client.expect("free");
    })
}

fn unwanted(length: usize) -> Contender {
    driven(length, |_| ())
}

/// Sending to a device that takes no time, without a driver.
fn bare_send() -> Contender {
    let mut link = Null::new(0);
    let mut memories = link.allocate(BATCH).expect("memory");
    Box::new(move || {
        for memory in memories.drain(..) {
            assert!(link.send(memory, 64, NOW).is_ok());
        }
        while let Some(memory) = link.sent(NOW) {
            memories.push(memory);
        }
    })
}

/// The same through a driver: taken from a pool, queued, ordered, told, and home again.
fn driven_send() -> Contender {
    let limits = Limits {
        reach: BATCH,
        ..limits(4)
    };
    let mut driver =
        Driver::new(Null::new(0), Circuits::default(), limits, Host::default()).expect("memory");
    let size = PoolSize::fixed(64);
    let client = driver.register(Interest::Nothing, size, GivesAgain);
    let pool = client.expect("free").pool;
    Box::new(move || {
        for _ in 0..BATCH {
            let filled = pool
                .take()
                .and_then(|empty| empty.filled(64).map_err(|b| b.why));
            assert!(filled.expect("free").send(Sending::default()).is_ok());
        }
        driver.poll(NOW, &mut ()).expect("up");
        driver.poll(NOW, &mut ()).expect("up");
    })
}

/// Polls that find nothing, of a driver with so many clients.
fn idle(clients: u32) -> Contender {
    let (_wire, end, _) = Wire::new(Faults::default(), 1);
    let mut driver =
        Driver::new(end, Circuits::default(), limits(clients), Host::default()).expect("memory");
    for number in 0..clients {
        let circuit = Circuit {
            path: (number >> 16) as u8,
            channel: number as u16,
        };
        let client = driver.register(Interest::In(&circuit), PoolSize::fixed(1), GivesAgain);
        client.expect("free").pool.give(1);
    }
    Box::new(move || {
        for _ in 0..BATCH {
            black_box(driver.poll(NOW, &mut ()).expect("up"));
        }
    })
}

fn main() {
    let mut contenders: Vec<(String, Contender)> = Vec::new();
    for length in [64, 1514] {
        let row = |name: &str| format!("{name}, {length} bytes");
        contenders.push((row("receive: bare"), bare(length)));
        contenders.push((row("receive: swapped"), swapping(length)));
        contenders.push((row("receive: copied"), copying(length)));
        contenders.push((row("receive: peeked"), peeking(length)));
        contenders.push((row("receive: nobody's"), unwanted(length)));
    }
    contenders.push(("send: bare, 64 bytes".into(), bare_send()));
    contenders.push(("send: driver, 64 bytes".into(), driven_send()));
    for clients in [1, 10_000] {
        contenders.push((format!("poll, {clients} idle clients"), idle(clients)));
    }
    let mut times: Vec<Vec<u128>> = contenders.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for ((_, batch), times) in contenders.iter_mut().zip(&mut times) {
            let began = Wall::now();
            for _ in 0..BATCHES {
                batch();
            }
            times.push(began.elapsed().as_nanos());
        }
    }
    let each = u128::from(BATCHES) * BATCH as u128;
    for ((name, _), times) in contenders.iter().zip(times) {
        let middle = median(times.into_iter()).unwrap_or(0);
        println!("{name:32} {:6.1} ns", middle as f64 / each as f64);
    }
}
