//! How many packets a second of real time go through wire, ring, interrupt, demultiplexer and thread in virtual time.
//!
//! `cargo bench -p laxity-net --bench twin`. A far end that costs nothing sends 64 bytes, 32 packets every 100 µs, whose interrupts are
//! moderated; each is swapped into its client's buffer, and taken by its thread. Median and best of 9 runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant as Wall;

use laxity_model::base::number::median;
use laxity_model::nif::link::Link;
use laxity_model::nif::most::Costs;
use laxity_model::nif::registry::{Circuit, Circuits};
use laxity_model::nif::wire::Framing;
use laxity_model::{
    Context, Host as _, Instant, InterruptLevel, Placement, Priority, ProcessorId, Program,
    SemaphoreId, Service, Span, Step,
};
use laxity_net::bodies::{Handler, Interrupt, Shepherd, Signalling, Work};
use laxity_net::buffers::PoolSize;
use laxity_net::clients::early;
use laxity_net::driver::{Driver, Host, Interest, Limits};
use laxity_sim::net::{Cable, Card, Line, Moderation, Queue, Shape, Transfers};
use laxity_sim::{Profile, Twin};

const BATCH: u64 = 32;
const BATCHES: u64 = 10_000;
const CIRCUIT: Circuit = Circuit {
    path: 0,
    channel: 1,
};
const CPU: ProcessorId = ProcessorId(0);
const SHAPE: Shape = Shape {
    queues: 1,
    receive: 128,
    send: 128,
    mtu: 1_500,
    transfers: Transfers {
        begin: Span::ZERO,
        rate: 0,
    },
    moderation: Moderation {
        most: 32,
        longest: Span::from_micros(50),
    },
};

fn peer(mut link: Queue, doorbell: SemaphoreId) -> impl FnMut(&mut dyn Context) -> Step + Send {
    let mut memories = link.allocate(64).expect("memory");
    for memory in &mut memories {
        memory[..Circuit::LENGTH].copy_from_slice(&CIRCUIT.header());
    }
    let mut batches = 0;
    move |context: &mut dyn Context| {
        let now = context.now();
        memories.extend(std::iter::from_fn(|| link.sent(now)));
        if batches == BATCHES {
            return Step::Finish;
        }
        for _ in 0..BATCH {
            let memory = memories.pop().expect("all have left");
            assert!(link.send(memory, 64, now).is_ok());
        }
        context.signal(doorbell);
        batches += 1;
        Step::SleepUntil(Instant::from_micros(100 * batches))
    }
}

/// The driver with its client, and the client's thread.
fn receiver(program: &mut Program, far: &Card, rung: [SemaphoreId; 2], taken: &Arc<AtomicU64>) {
    let [doorbell, raised] = rung;
    let own = far.queue(0).expect("a queue");
    let unmasks = own.clone();
    let limits = Limits::default();
    let driver = Driver::new(own, Circuits::default(), limits, Host::default());
    let mut driver = driver.expect("memory");
    let arrived = program.semaphore(0);
    let (client, queue) = early::client(128, None, &Host::default().sleeper);
    let client = Signalling::new(client, arrived, 1);
    let size = PoolSize::fixed(128);
    let registered = driver.register(Interest::In(&CIRCUIT), size, client);
    registered.expect("free").pool.give(128);
    let taken = Arc::clone(taken);
    let work = Work {
        packet: Service::from_nanos(1_000),
        kilobyte: Service::ZERO,
        is_burnt: false,
    };
    let body = Shepherd::new(queue, arrived, work, move |packet, _, _| {
        taken.fetch_add(1, Ordering::Relaxed);
        packet.emptied().give().ok();
    });
    let thread = Placement::Thread(Priority::new(8).expect("below 32"));
    program.add("shepherd", CPU, thread, body);
    let interrupt = Interrupt {
        raised,
        doorbell,
        unmask: Box::new(move |now| unmasks.unmask(now)),
        costs: Costs {
            interrupt: Service::from_micros(1),
            packet: Service::from_nanos(500),
            ..Costs::default()
        },
        most: None,
    };
    let level = Placement::Interrupt(InterruptLevel(5));
    program.add("driver", CPU, level, Handler::new(driver, interrupt));
}

/// Nanoseconds of one run.
fn run() -> u64 {
    let line = Line::new(1_000_000_000, Framing::Bare, false);
    let (cable, near, far) = Cable::new(line, [SHAPE; 2], 1);
    let mut program = Program::new(1);
    let rung = [(); 2].map(|()| program.semaphore(0));
    let hardware = cable.hardware(rung[0], [vec![], vec![rung[1]]]);
    program.add("hardware", CPU, Placement::External, hardware);
    let link = near.queue(0).expect("a queue");
    program.add("peer", CPU, Placement::External, peer(link, rung[0]));
    let taken = Arc::default();
    receiver(&mut program, &far, rung, &taken);
    let length = Span::from_micros(100 * (BATCHES + 10));
    let began = Wall::now();
    let ran = Twin::new(Profile::IDEAL).admit_and_run(program, length);
    let nanos = began.elapsed().as_nanos() as u64;
    ran.expect("the program is right");
    assert_eq!(taken.load(Ordering::Relaxed), BATCH * BATCHES);
    nanos
}

fn main() {
    let times: Vec<u64> = (0..9).map(|_| run()).collect();
    let rate = |nanos: u64| (BATCH * BATCHES) as f64 * 1e3 / nanos as f64;
    let best = times.iter().copied().min().unwrap_or(1);
    let middle = median(times.into_iter()).unwrap_or(1);
    let (middle, best) = (rate(middle), rate(best));
    println!("{middle:.2} million packets a second, at best {best:.2}");
}
