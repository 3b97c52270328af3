//! A run of the experiment: how packets find their threads, and when frames of video were shown.

use laxity_lab::bench::Runner;
use laxity_lab::bench::bodies::slots;
use laxity_model::nif::most::Costs;
use laxity_model::nif::registry::{Circuit, Circuits};
use laxity_model::nif::urgency::Stated;
use laxity_model::{
    Context, EventKind, HostError, Instant, InterruptLevel, Mark, Outside, Placement, PortId,
    Priority, ProcessorId, Program, Reservation, RunRecord, Service, Span, Usage,
};
use laxity_net::Driver;
use laxity_net::bodies::{Crew, Handler, Interrupt, Work};
use laxity_net::buffers::{Buffer, Filled};
use laxity_net::driver::{Host, Interest, Limits};
use laxity_net::emulated::{End, Faults, Wire};

use super::intervals::Intervals;
use super::segment::{
    FRAME_PACKETS, FRAME_PERIOD, Segment, Senders, WIRE_RATE, circuit, station_of,
};
use super::wire::failed;

const CPU: ProcessorId = ProcessorId(0);
/// Threads that take from the one queue.
pub(super) const POOL: usize = 4;
/// Empty buffers of each client, which are never too few.
pub(super) const BUFFERS: u32 = 256;
/// The priority of everybody, and of the threads of the video where it goes first.
pub(super) const ORDINARY: Priority = Priority::NORMAL;
pub(super) const FIRST: Priority = Priority::REAL_TIME;

/// Which way a packet takes to the thread that works on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// One client with one queue and a pool of threads, all of one priority.
    Late,
    /// One client with one queue, whose packets a software interrupt processes: BSD's way.
    Bsd,
    /// The same, and the software interrupt takes the video's packets first (§5).
    BsdFirst,
    /// A client with a queue and a thread for each connection, all of one priority.
    EarlyAlike,
    /// The same, and the video's thread has a higher priority.
    Early,
    /// All of one priority, and the video's thread has a reservation in slots besides.
    Slots,
    /// The video's thread has a reservation by `SCHED_DEADLINE`, and nothing else.
    Deadline,
    /// All of one priority, and the video's thread has a higher one from the logical arrival of a packet on: deadlines at arrival.
    Due,
    /// The kernel's own sockets, read by ordinary threads.
    Kernel,
    /// The same by FIFO threads, of which the video's goes first.
    KernelFifo,
}

impl Way {
    /// Those that the twin's machine has.
    pub const ALL: [Self; 7] = [
        Self::Late,
        Self::Bsd,
        Self::BsdFirst,
        Self::EarlyAlike,
        Self::Early,
        Self::Slots,
        Self::Due,
    ];

    /// By which it is named in the study's words.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Late => "late",
            Self::Bsd => "bsd",
            Self::BsdFirst => "bsd-first",
            Self::EarlyAlike => "early-alike",
            Self::Early => "early",
            Self::Slots => "slots",
            Self::Deadline => "deadline",
            Self::Due => "due",
            Self::Kernel => "kernel",
            Self::KernelFifo => "kernel-fifo",
        }
    }
}

/// What is tried.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// How packets find their threads.
    pub way: Way,
    /// Who sends.
    pub senders: Senders,
    /// What a packet takes of the processor, of whoever it is.
    pub packet: Service,
    /// What an interrupt takes, and each packet of it.
    pub interrupt: (Service, Service),
    /// What the video has of each such time, where it has a reservation.
    pub reserved: (Service, Span),
}

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// From each frame of video that was shown to the next.
    pub intervals: Intervals,
    /// Packets of others that were processed.
    pub packets: u64,
    /// Of the run so much was the processor at work, in parts per million.
    pub busy_ppm: u64,
}

/// A program in the making.
struct Making {
    program: Program,
    driver: Driver<End, Circuits>,
    setup: Setup,
    shown: Mark,
    processed: Mark,
    acknowledged: PortId,
}

type Packet = Buffer<Box<[u8]>, Filled>;

impl Making {
    /// What is done with a packet that has been processed: a frame whose last packet it is is shown, a sender hears of it, and the buffer is given again.
    fn done(
        &self,
    ) -> impl FnMut(Packet, Instant, &mut dyn Context) + Clone + Send + 'static + use<> {
        let (shown, processed, acknowledged) = (self.shown, self.processed, self.acknowledged);
        move |packet, _, context| {
            let Some((station, number)) = station_of(packet.bytes()) else {
                return context.fail("a packet of nobody");
            };
            if station > 0 {
                context.mark(processed, [station, number]);
            } else if number % FRAME_PACKETS == FRAME_PACKETS - 1 {
                context.mark(shown, [number / FRAME_PACKETS, 0]);
            }
            context.put(acknowledged, [station, 0]);
            // Where the client has ended there is nobody to give it to.
            packet.emptied().give().ok();
        }
    }

    fn crew<'a>(&self, name: &'a str, threads: &'a [Placement]) -> Crew<'a> {
        let work = Work {
            packet: self.setup.packet,
            ..Work::default()
        };
        Crew {
            name,
            processor: CPU,
            threads,
            buffers: BUFFERS,
            work,
        }
    }

    /// All clients, with their threads.
    fn install(&mut self) -> Result<(), HostError> {
        let ordinary = Placement::Thread(ORDINARY);
        match self.setup.way {
            Way::Late => self.late(&[Interest::Default], &[ordinary; POOL]),
            Way::Bsd => self.late(&[Interest::Default], &[Placement::Deferred]),
            Way::BsdFirst => {
                let video = circuit(0);
                let both = [Interest::In(&video), Interest::Default];
                self.late(&both, &[Placement::Deferred])
            }
            _ => self.early(),
        }
    }

    /// One client for all, or one for each of these interests, with the same threads.
    fn late(
        &mut self,
        interests: &[Interest<&Circuit>],
        takers: &[Placement],
    ) -> Result<(), HostError> {
        let (crew, done) = (self.crew("protocols", takers), self.done());
        let (program, driver) = (&mut self.program, &mut self.driver);
        let interests = interests.iter().copied();
        let made = crew.install_in_order(program, driver, interests, || done.clone());
        made.map(drop).map_err(failed)
    }

    /// A client for each connection, of which the video is the first.
    fn early(&mut self) -> Result<(), HostError> {
        let way = self.setup.way;
        for station in 0..=self.setup.senders.streams {
            let name = match station {
                0 => "video".to_owned(),
                _ => format!("stream {station}"),
            };
            let is_video = |of: Way| station == 0 && way == of;
            let own = if is_video(Way::Early) {
                FIRST
            } else {
                ORDINARY
            };
            let threads = [Placement::Thread(own)];
            let (crew, done) = (self.crew(&name, &threads), self.done());
            let deliver = || done.clone();
            let (program, driver) = (&mut self.program, &mut self.driver);
            let circuit = circuit(station);
            let interest = Interest::In(&circuit);
            let made = if is_video(Way::Due) {
                let each = self.setup.packet.as_dedicated_span();
                let stated = Stated::new(1, each, 2 * FRAME_PACKETS as u32, FRAME_PERIOD);
                let due = (stated.map_err(failed)?, FIRST);
                crew.install_due(program, driver, interest, due, deliver)
            } else {
                crew.install_in_order(program, driver, [interest], deliver)
            };
            let (threads, _) = made.map_err(failed)?;
            if let (true, [thread, ..]) = (is_video(Way::Slots), &threads[..]) {
                let (service, period) = self.setup.reserved;
                let reservation = Reservation::new(service, period).map_err(failed)?;
                let request = slots(reservation, Outside::AsPlaced);
                self.program.activities[thread.index()].reservation = Some(request);
            }
        }
        Ok(())
    }
}

/// Of a run these had so much of a processor, in parts per million.
pub(super) fn busy_ppm<'a>(record: &RunRecord, who: impl Iterator<Item = &'a Usage>) -> u64 {
    let worked: u64 = who.map(|usage| usage.service.as_nanos()).sum();
    let ran = (record.end - record.start).as_nanos().max(1);
    (u128::from(worked) * 1_000_000 / u128::from(ran)) as u64
}

/// Runs a setup.
///
/// # Errors
///
/// The host's.
pub fn run(host: &mut Runner<'_>, setup: Setup, length: Span) -> Result<Outcome, HostError> {
    let mut program = Program::new(1);
    let (shown, processed) = (
        program.mark("frame shown"),
        program.mark("packet processed"),
    );
    let (line, acknowledged) = (program.semaphore(0), program.port(1_024));
    let faults = Faults {
        rate: WIRE_RATE,
        ..Faults::default()
    };
    let (_, near, far) = Wire::new(faults, setup.senders.seed);
    let driver = Driver::new(far, Circuits::default(), Limits::default(), Host::default());
    let mut making = Making {
        program,
        driver: driver.map_err(failed)?,
        setup,
        shown,
        processed,
        acknowledged,
    };
    making.install()?;
    let Making {
        mut program,
        driver,
        ..
    } = making;
    let (enters, packet) = setup.interrupt;
    // A wire's end needs no word that it may interrupt again, or that there is something to send.
    let interface = Interrupt {
        raised: line,
        doorbell: program.semaphore(0),
        unmask: Box::new(|_| {}),
        costs: Costs {
            interrupt: enters,
            packet,
            ..Costs::default()
        },
        most: None,
    };
    let level = Placement::Interrupt(InterruptLevel(1));
    program.add("interface", CPU, level, Handler::new(driver, interface));
    let segment = Segment::new(near, line, acknowledged, setup.senders);
    program.add("segment", CPU, Placement::External, segment);
    let record = host.run(program, length)?;
    let marks = |mark| {
        let events = record.events.iter();
        events.filter(move |event| event.kind == EventKind::Mark(mark))
    };
    let at: Vec<Instant> = marks(shown).map(|event| event.at).collect();
    Ok(Outcome {
        intervals: Intervals::between(&at),
        packets: marks(processed).count() as u64,
        busy_ppm: busy_ppm(&record, record.usage.iter()),
    })
}
