//! The framework in virtual time: a card, its interrupt, a driver, clients and their threads.

use std::sync::{Arc, Mutex};

use laxity_model::executor::edf::Edf;
use laxity_model::nif::link::Link;
use laxity_model::nif::most::{Costs, Most};
use laxity_model::nif::qos::{AtArrival, LeastLaxity, Ranks, Terms};
use laxity_model::nif::registry::{Circuit, Circuits};
use laxity_model::nif::urgency::{Stated, Unit};
use laxity_model::policy::raise::Highest;
use laxity_model::{
    ActivityId, Context, EventKind, Host as _, Instant, InterruptLevel, Placement, Priority,
    ProcessorId, Program, RunRecord, SemaphoreId, Service, Span, Step,
};
use laxity_net::bodies::{Crew, Handler, Interrupt, Signalling, Through, Work};
use laxity_net::buffers::{Buffer, Filled, PoolSize};
use laxity_net::clients::due::{self, DueQueue};
use laxity_net::clients::group::{Seat, group};
use laxity_net::driver::{Driver, Host, Interest, Limits};
use laxity_sim::net::{Cable, Card, Line, Moderation, Queue as CardQueue, Shape, Transfers};
use laxity_sim::{Profile, Twin};

mod crews;

type Packet = Box<[u8]>;
type Delays = Arc<Mutex<Vec<(bool, Span)>>>;

const CPU: ProcessorId = ProcessorId(0);
const VIDEO: Circuit = Circuit {
    path: 0,
    channel: 1,
};
const BULK: Circuit = Circuit {
    path: 0,
    channel: 2,
};
const SHAPE: Shape = Shape {
    queues: 1,
    receive: 64,
    send: 64,
    mtu: 1_500,
    transfers: Transfers {
        begin: Span::from_micros(1),
        rate: 320_000_000,
    },
    moderation: Moderation {
        most: 1,
        longest: Span::ZERO,
    },
};
const WORK: Work = Work {
    packet: Service::from_micros(800),
    kilobyte: Service::from_micros(200),
    is_burnt: false,
};

#[derive(Clone, Copy, PartialEq, Debug)]
enum Arrangement {
    Late,
    Early {
        video: u8,
    },
    /// The video's thread has a higher priority from its packet's logical arrival on; or a software interrupt takes its packets first.
    Crew {
        is_raised: bool,
    },
    /// Each with its rate, and with a thread or a handler that is as urgent as its packets are, if it may be.
    Due {
        by: By,
    },
    /// On an executor that goes by deadlines, by what this says: the bulk has all of its packets to do within 12 ms, and the video one within 8.
    Said(Modules),
}

/// Who says how urgent those are who take packets.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Modules {
    AtArrival,
    LeastLaxity,
}

/// How whoever takes the packets is made urgent.
#[derive(Clone, Copy, PartialEq, Debug)]
enum By {
    /// Not at all.
    Nothing,
    Priority,
    Deadline,
}

fn thread(priority: u8) -> Placement {
    Placement::Thread(Priority::new(priority).expect("below 32"))
}

fn circuit_of(packet: &[u8]) -> Option<u64> {
    Circuit::of(packet).map(|circuit| circuit.channel.into())
}

/// A far end that costs nothing: every 20 ms eight packets of bulk, and one of video right behind them.
fn peer(mut link: CardQueue, doorbell: SemaphoreId) -> impl FnMut(&mut dyn Context) -> Step + Send {
    let mut rounds = 0;
    move |context: &mut dyn Context| {
        let now = context.now();
        while link.sent(now).is_some() {}
        for circuit in [BULK; 8].into_iter().chain([VIDEO]) {
            let mut memory = link.allocate(1).expect("there is memory").remove(0);
            memory[..Circuit::LENGTH].copy_from_slice(&circuit.header());
            link.send(memory, 1_024, now).expect("64 descriptors");
        }
        context.signal(doorbell);
        rounds += 1;
        Step::SleepUntil(Instant::from_millis(20 * rounds))
    }
}

fn deliver(
    delays: &Delays,
) -> impl FnMut(Buffer<Packet, Filled>, Instant, &mut dyn Context) + Send + use<> {
    let delays = Arc::clone(delays);
    move |packet, _, context| {
        let is_video = Circuit::of(packet.bytes()) == Some(VIDEO);
        let arrived = packet.arrived().expect("it came over the wire");
        let mut delays = delays.lock().expect("nobody panics");
        delays.push((is_video, context.now() - arrived.at));
        packet
            .emptied()
            .give()
            .unwrap_or_else(|_| panic!("its driver lives"));
    }
}

/// The host's half of a run: its card, its driver, and what its threads found.
struct Receiving {
    program: Program,
    far: Card,
    driver: Driver<CardQueue, Circuits>,
    found: Delays,
}

impl Receiving {
    /// A client of these buffers, and its threads.
    fn client(
        &mut self,
        interest: Interest<&Circuit>,
        (buffers, threads): (u32, &[Placement]),
    ) -> u32 {
        let crew = Crew {
            name: "shepherd",
            processor: CPU,
            threads,
            buffers,
            work: WORK,
        };
        let deliver = || deliver(&self.found);
        let installed = crew.install(&mut self.program, &mut self.driver, interest, deliver);
        installed.expect("nobody has it").0.0
    }

    /// One client, whose two threads take from one queue.
    fn late(&mut self) {
        self.client(Interest::Default, (32, &[thread(8); 2]));
    }

    /// A client and a thread for a circuit, of which the card has memory.
    fn early(&mut self, circuit: Circuit, priority: u8, memory: Vec<Packet>) {
        let client = self.client(Interest::In(&circuit), (16, &[thread(priority)]));
        let channel = circuit.channel.into();
        let opened = self.far.open(channel, client, 0, memory, Instant::ZERO);
        opened.expect("it is closed");
    }

    /// Both clients, and who takes their packets.
    fn both_due(&mut self, by: By) {
        let place = match by {
            By::Deadline => self.executor(),
            By::Nothing | By::Priority => thread(8),
        };
        self.due(BULK, 2, (by, place));
        self.due(VIDEO, 20, (by, place));
    }

    /// A client of one packet every so many milliseconds, eight of them at once, each due 4 ms after its time; and who takes its packets there.
    fn due(&mut self, circuit: Circuit, every_ms: u64, (by, place): (By, Placement)) {
        let level = |priority| Priority::new(priority).expect("below 32");
        let ranks = match by {
            By::Deadline => Ranks::Handler,
            By::Priority => Ranks::Thread {
                critical: level(20),
                workahead: level(8),
            },
            By::Nothing => Ranks::Thread {
                critical: level(8),
                workahead: level(8),
            },
        };
        let delay = Span::from_millis(4);
        let stated = Stated::new(1, Span::from_millis(every_ms), 8, delay);
        let terms = self.terms(0, stated.expect("it is a rate"), ranks);
        let mut seats = group(AtArrival, &[terms]);
        self.sit(circuit, (terms, seats.remove(0)), (place, delay));
    }

    fn executor(&mut self) -> Placement {
        let at = (CPU, thread(8));
        let executor = self.program.executor("executor", at, None, Edf::new());
        let task = None;
        Placement::On { executor, task }
    }

    /// Both clients, all of whose packets are in their time, in one group.
    fn said(&mut self, by: Modules, place: Placement) {
        let delays = [12, 8].map(Span::from_millis);
        let stated = delays.map(|delay| Stated::new(1_000, Span::from_millis(1), 8, delay));
        let terms = [0, 1].map(|number| {
            let stated = stated[number].expect("it is a rate");
            self.terms(number, stated, Ranks::Handler)
        });
        let seats = match by {
            Modules::AtArrival => group(AtArrival, &terms),
            Modules::LeastLaxity => group(LeastLaxity, &terms),
        };
        for (number, seat) in seats.into_iter().enumerate() {
            let circuit = [BULK, VIDEO][number];
            // Earlier than work of eight packets makes it.
            self.sit(
                circuit,
                (terms[number], seat),
                (place, Span::from_millis(1)),
            );
        }
    }

    /// Of the client that comes after so many others.
    fn terms(&self, others: usize, stated: Stated, ranks: Ranks) -> Terms {
        Terms {
            stated,
            unit: Unit::Packets,
            packet: Service::from_millis(1),
            activity: ActivityId((self.program.activities.len() + others) as u16),
            ranks,
        }
    }

    /// A client of these terms, and who takes its packets there, who may be due so soon.
    fn sit(
        &mut self,
        circuit: Circuit,
        (terms, seat): (Terms, Seat),
        (place, soon): (Placement, Span),
    ) {
        let arrived = self.program.semaphore(0);
        let (client, queue) = due::client_in(16, seat, &Host::default().sleeper);
        let client = Signalling::new(client, arrived, 1);
        let size = PoolSize::fixed(16);
        let registered = self.driver.register(Interest::In(&circuit), size, client);
        registered.expect("nobody has it").pool.give(16);
        let body = taker(queue, arrived, &self.found);
        assert_eq!(self.program.add("taker", CPU, place, body), terms.activity);
        let highest = match terms.ranks {
            Ranks::Thread { critical, .. } => Highest::Priority(critical),
            Ranks::Handler => Highest::Deadline(soon),
        };
        self.program.declare_raise(terms.activity, highest);
    }
}

/// Takes one packet after the other, as urgent as it is, and lets others go first in between.
fn taker(
    mut queue: DueQueue<Packet>,
    arrived: SemaphoreId,
    delays: &Delays,
) -> impl FnMut(&mut dyn Context) -> Step + Send + use<> {
    let mut deliver = deliver(delays);
    let (mut taken, mut done) = (None, None);
    move |context| {
        if let Some(done) = done.take() {
            deliver(done, context.now(), context);
        }
        let now = context.now();
        let packet = match taken.take() {
            Some(packet) => packet,
            None => match queue.try_next(now, &mut Through(context)) {
                Ok(Some(taken)) => taken.packet,
                Ok(None) => return Step::Wait(arrived),
                Err(_) => return Step::Finish,
            },
        };
        if context.should_yield() {
            taken = Some(packet);
            return Step::Yield;
        }
        let work = WORK.of(packet.bytes().len());
        done = Some(packet);
        Step::Charge(work)
    }
}

/// Arrival to delivery of each packet of a second, and whether it was video.
fn ran(arrangement: Arrangement) -> (Vec<(bool, Span)>, RunRecord) {
    ran_within(arrangement, None)
}

/// The same, of a driver that takes no more than so much.
fn ran_within(arrangement: Arrangement, most: Option<Most>) -> (Vec<(bool, Span)>, RunRecord) {
    let (cable, near, far) = Cable::new(Line::atm(), [SHAPE; 2], 3);
    let mut program = Program::new(1);
    let [doorbell, raised] = [(); 2].map(|()| program.semaphore(0));
    let hardware = cable.hardware(doorbell, [vec![], vec![raised]]);
    program.add("hardware", CPU, Placement::External, hardware);
    let link = near.queue(0).expect("a card has a queue");
    program.add("peer", CPU, Placement::External, peer(link, doorbell));

    let mut own = far.queue(0).expect("a card has a queue");
    let unmasks = own.clone();
    let mut memory = [(); 2].map(|()| own.allocate(16).expect("there is memory"));
    let driver = Driver::new(own, Circuits::default(), Limits::default(), Host::default());
    let mut host = Receiving {
        program,
        far,
        driver: driver.expect("there is memory"),
        found: Delays::default(),
    };
    match arrangement {
        Arrangement::Late => host.late(),
        Arrangement::Crew { is_raised } => host.crewed(is_raised),
        Arrangement::Early { video } => {
            host.far.find_circuits(circuit_of, Instant::ZERO);
            host.early(BULK, 8, std::mem::take(&mut memory[0]));
            host.early(VIDEO, video, std::mem::take(&mut memory[1]));
        }
        Arrangement::Said(by) => {
            let place = host.executor();
            host.said(by, place);
        }
        Arrangement::Due { by } => host.both_due(by),
    }
    let interrupt = Interrupt {
        raised,
        doorbell,
        unmask: Box::new(move |now| unmasks.unmask(now)),
        costs: Costs {
            interrupt: Service::from_micros(10),
            packet: Service::from_micros(5),
            ..Costs::default()
        },
        most,
    };
    let Receiving {
        mut program,
        driver,
        found,
        ..
    } = host;
    let handler = Placement::Interrupt(InterruptLevel(5));
    program.add("driver", CPU, handler, Handler::new(driver, interrupt));
    let ran = Twin::new(Profile::IDEAL).admit_and_run(program, Span::from_secs(1));
    let record = ran.expect("the program is right");
    let found = found.lock().expect("nobody panics");
    (found.clone(), record)
}

fn delays(arrangement: Arrangement) -> Vec<(bool, Span)> {
    ran(arrangement).0
}

/// Each packet arrives, is received by its client at interrupt level, and is delivered to who takes it.
#[test]
fn a_packets_way_stands_in_the_record_of_the_run() {
    for arrangement in [
        Arrangement::Late,
        Arrangement::Early { video: 20 },
        Arrangement::Crew { is_raised: false },
        Arrangement::Crew { is_raised: true },
        Arrangement::Due { by: By::Priority },
    ] {
        let (found, record) = ran(arrangement);
        let of = |kind| {
            let events = record.events.iter();
            let mut of: Vec<_> = events.filter(|event| event.kind == kind).collect();
            of.sort_by_key(|event| event.args[0]);
            of
        };
        let [arrived, received, delivered] =
            [EventKind::Arrive, EventKind::Receive, EventKind::Deliver].map(of);
        let count = found.len();
        assert_eq!(
            (arrived.len(), received.len(), delivered.len()),
            (count, count, count)
        );
        for (arrived, delivered) in arrived.iter().zip(&delivered) {
            assert_eq!(arrived.args[0], delivered.args[0], "the same packets");
            assert!(arrived.at <= delivered.at);
        }
    }
}

fn longest(delays: &[(bool, Span)], of_video: bool) -> Span {
    let of = delays.iter().filter(|(is_video, _)| *is_video == of_video);
    of.map(|(_, delay)| *delay).max().expect("some came")
}

/// Nine packets of 1 ms each are there at once, the video's last (§5, tables 3 and 4).
#[test]
fn only_early_demultiplexing_with_priorities_has_video_wait_for_nobodys_packets() {
    let ms = Span::from_millis;
    let late = delays(Arrangement::Late);
    let first = delays(Arrangement::Early { video: 20 });
    for delays in [&late, &first] {
        assert_eq!(delays.len(), 450, "none is lost");
    }
    // Behind the bulk; the interrupts of nine packets and what had been done when the video arrived are less than 1 ms.
    assert!(longest(&late, true) > ms(8), "{}", longest(&late, true));
    // Its own millisecond, and its own interrupt.
    assert!(
        longest(&first, true) < ms(1) + Span::from_micros(100),
        "{}",
        longest(&first, true)
    );
    assert!(longest(&first, false) > ms(8), "the bulk waits for itself");
}

/// Of eight packets of bulk that are there at once seven have come before their time: the video's, which is in its time, waits for the first of them, and the interrupts of nine.
#[test]
fn workahead_does_not_delay_what_is_current_by_priority_or_by_deadline() {
    let ms = Span::from_millis;
    let unaware = delays(Arrangement::Due { by: By::Nothing });
    assert!(longest(&unaware, true) > ms(8), "{unaware:?}");
    for by in [By::Priority, By::Deadline] {
        let due = delays(Arrangement::Due { by });
        assert_eq!(due.len(), 450, "none is lost");
        let video = longest(&due, true);
        assert!(video < ms(3), "{by:?}: {video}");
        // The last one's time is 14 ms after the first's.
        let bulk = longest(&due, false);
        assert!(bulk < ms(14 + 4), "{by:?}: {bulk}");
    }
}

/// By deadlines the video goes first. By who has least to spare it waits until what is left of the bulk may wait as long as it, and both are in time.
#[test]
fn a_module_that_looks_at_backlogs_has_another_go_first() {
    let ms = Span::from_millis;
    let [at_arrival, least] =
        [Modules::AtArrival, Modules::LeastLaxity].map(|by| delays(Arrangement::Said(by)));
    for delays in [&at_arrival, &least] {
        assert_eq!(delays.len(), 450, "none is lost");
        assert!(longest(delays, false) < ms(10), "{delays:?}");
    }
    let [sooner, later] = [at_arrival, least].map(|delays| longest(&delays, true));
    assert!(sooner < ms(3), "{sooner}");
    assert!(later > ms(4) && later < ms(6), "{later}");
}

/// The control: whose a packet is, known early, is of no use to threads that are served first come, first served.
#[test]
fn early_demultiplexing_at_one_priority_gains_nothing() {
    let early = delays(Arrangement::Early { video: 8 });
    let late = delays(Arrangement::Late);
    assert!(early == late, "{:?} {:?}", &early[..9], &late[..9]);
}

/// Nine packets come at once, and no more than two of them are taken in any 3 ms: the others wait in the card, and none is lost.
#[test]
fn a_driver_takes_no_more_than_it_may_in_any_time() {
    let every = Span::from_millis(3);
    let bounded = Arrangement::Early { video: 20 };
    let (found, record) = ran_within(bounded, Most::new(2, every));
    let events = record.events.iter();
    let taken = events.filter(|event| event.kind == EventKind::Arrive);
    let taken: Vec<Instant> = taken.map(|event| event.at).collect();
    assert_eq!(found.len(), taken.len());
    let closest = taken.windows(3).map(|three| three[2] - three[0]).min();
    assert_eq!(closest, Some(every));
    // Nine need five such times, or more, as a look that finds nothing counts, too.
    let last = longest(&found, true);
    assert!(
        last > Span::from_millis(12) && last < Span::from_millis(20),
        "{last}"
    );
}

#[test]
fn equal_runs_of_the_framework_are_equal() {
    let first = Arrangement::Early { video: 20 };
    assert!(delays(first) == delays(first));
    assert!(delays(first) != delays(Arrangement::Late));
}
