//! What others' packets cost (§5, §6): how long a packet waits for its client behind those that came before it, and how long a periodic task takes beside them, with a client for each
//! and in BSD's way. Bursts of frames come over a wire, each with one more frame behind it whose wait is measured.

use laxity::net::filter::Filter;
use laxity::net::twin::{Line, Moderation, Shape, Transfers};
use laxity_lab::bench::{Request, Runner};
use laxity_lab::runner::network::End;
use laxity_model::nif::frames::Frames;
use laxity_model::nif::link::{Left, Link, LinkError, Memory};
use laxity_model::nif::most::Costs;
use laxity_model::nif::wire::Framing;
use laxity_model::{
    Body, Context, HostError, Instant, InterruptLevel, Mark, Placement, Priority, ProcessorId,
    Program, RunRecord, SemaphoreId, Service, Span, Step,
};
use laxity_net::bodies::{Crew, Handler, Interrupt, Work};
use laxity_net::buffers::{Buffer, Filled};
use laxity_net::driver::{Driver, Host, Interest, Limits};

use super::wire::{AtEnds, Signals, between, failed};

const CPU: ProcessorId = ProcessorId(0);
/// From burst to burst.
pub const BURST: Span = Span::from_millis(20);
/// Packets that come before the one that is measured.
pub const QUEUED: [u64; 3] = [0, 8, 64];
/// What each packet takes of whoever works on it.
pub const PACKET: Service = Service::from_micros(100);
/// The periodic task: what a job takes, and how often there is one.
pub const TASK: (Service, Span) = (Service::from_micros(500), Span::from_millis(5));
/// What an interrupt takes in the twin, and each packet of it.
pub const INTERRUPT: (Service, Service) = (Service::from_micros(10), Service::from_micros(2));
/// Bursts of a run: in the twin and at full length, and otherwise on this machine.
const BURSTS: [u64; 2] = [100, 50];
/// How often a run is made on this machine at full length.
const ROUNDS: u32 = 3;
/// Whoever takes the measured packets is above the task, and that above all others' threads.
const RANKS: [u8; 3] = [26, 24, 20];
/// Frames for experiments on a local network: others', and those whose wait is measured.
const TYPES: [u16; 2] = [0x88b5, 0x88b6];
/// Bytes of a frame.
const LENGTH: usize = 60;
/// More than ever wait.
const BUFFERS: u32 = 128;
/// Until there is room for another frame.
const LOOK: Span = Span::from_micros(20);
/// The twin's cards, which take hardly any time.
const CARD: Shape = Shape {
    queues: 1,
    receive: 256,
    send: 256,
    mtu: 1_500,
    transfers: Transfers {
        begin: Span::ZERO,
        rate: 8_000_000_000,
    },
    moderation: Moderation {
        most: 1,
        longest: Span::ZERO,
    },
};
/// Bits a second of the twin's wire.
const RATE: u64 = 1_000_000_000;

/// A run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// One protocol queue and a software interrupt, or a client and a thread for each.
    pub is_bsd: bool,
    /// So many packets come before the one that is measured, 127 at the most.
    pub queued: u64,
    /// How often.
    pub bursts: u64,
}

/// What was seen in it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// From each measured packet's arrival until somebody took it.
    pub waited: Vec<Span>,
    /// From burst to burst the longest that a job of the task took, from its release on.
    pub longest: Vec<Span>,
}

/// All that is run.
pub(super) fn cases(request: &Request, live: bool) -> impl Iterator<Item = Case> + use<> {
    let bursts = BURSTS[usize::from(live && !request.full)];
    let rounds = match (live, request.full) {
        (false, _) => 1,
        (true, false) => request.repeats.unwrap_or(1),
        (true, true) => request.repeats.unwrap_or(ROUNDS),
    };
    (0..rounds).flat_map(move |_| {
        QUEUED.into_iter().flat_map(move |queued| {
            [false, true].map(|is_bsd| Case {
                is_bsd,
                queued,
                bursts,
            })
        })
    })
}

/// Both ends: whose packets come, and who sends them.
struct Stage {
    case: Case,
    doorbell: SemaphoreId,
    taken: Mark,
    done: Mark,
}

impl AtEnds for Stage {
    fn build<L>(self, program: &mut Program, [near, far]: [End<L>; 2]) -> Result<(), HostError>
    where
        L: Link + Send + 'static,
        L::Memory: 'static,
    {
        let limits = Limits {
            posted: CARD.receive,
            ..Limits::default()
        };
        let key = Frames::new(None, 1);
        let driver = Driver::new(near.link, key, limits, Host::default());
        let mut driver = driver.map_err(failed)?;
        self.clients(program, &mut driver)?;
        let interrupt = Interrupt {
            raised: near.raised,
            doorbell: self.doorbell,
            unmask: near.unmask,
            costs: Costs {
                interrupt: INTERRUPT.0,
                packet: INTERRUPT.1,
                ..Costs::default()
            },
            most: None,
        };
        let level = Placement::Interrupt(InterruptLevel(1));
        program.add("interface", CPU, level, Handler::new(driver, interrupt));
        program.add("task", CPU, thread(RANKS[1]), task(self.done));
        let far = Far {
            link: far.link,
            doorbell: self.doorbell,
            memory: Vec::new(),
            queued: self.case.queued,
            begin: None,
            bursts: 0,
            left: 0,
        };
        program.add("senders", CPU, Placement::External, far);
        Ok(())
    }
}

impl Stage {
    fn clients<L>(
        &self,
        program: &mut Program,
        driver: &mut Driver<L, Frames>,
    ) -> Result<(), HostError>
    where
        L: Link + 'static,
        L::Memory: 'static,
    {
        let filter = |kind| Filter::parse(&format!("ether proto {kind}"), None);
        let [others, own] = TYPES.map(filter);
        let [others, own] = [others.map_err(failed)?, own.map_err(failed)?];
        let all: &[(&str, Interest<&Filter>, Placement)] = if self.case.is_bsd {
            &[("protocols", Interest::Default, Placement::Deferred)]
        } else {
            &[
                ("others", Interest::In(&others), thread(RANKS[2])),
                ("own", Interest::In(&own), thread(RANKS[0])),
            ]
        };
        for (name, interest, placement) in all {
            let crew = Crew {
                name,
                processor: CPU,
                threads: &[*placement],
                buffers: BUFFERS,
                work: Work {
                    packet: PACKET,
                    is_burnt: true,
                    ..Work::default()
                },
            };
            let made = crew.install(program, driver, *interest, || deliver(self.taken));
            made.map_err(failed)?;
        }
        Ok(())
    }
}

fn thread(priority: u8) -> Placement {
    Placement::Thread(Priority::new(priority).unwrap_or(Priority::HIGHEST))
}

/// What becomes of a packet: its wait is told, if it is one of those, and its buffer given again.
fn deliver<M: Memory + 'static>(
    taken: Mark,
) -> impl FnMut(Buffer<M, Filled>, Instant, &mut dyn Context) + Send + 'static {
    move |packet, since, context| {
        let is_own = packet.bytes().get(12..14) == Some(&TYPES[1].to_be_bytes());
        if let (true, Some(arrived)) = (is_own, packet.arrived()) {
            context.mark(taken, [since.saturating_since(arrived.at).as_nanos(), 0]);
        }
        // Where the client has ended there is nobody to give it to.
        packet.emptied().give().ok();
    }
}

/// A job every so often, and how long each took.
fn task(done: Mark) -> impl FnMut(&mut dyn Context) -> Step + Send {
    let (mut release, mut is_at_work) = (None, false);
    move |context| {
        let now = context.now();
        let at = *release.get_or_insert(now + TASK.1);
        if now < at {
            return Step::SleepUntil(at);
        }
        is_at_work = !is_at_work;
        if is_at_work {
            return Step::Burn(TASK.0);
        }
        let took = now.saturating_since(at);
        context.mark(done, [took.as_nanos(), 0]);
        // Releases that came meanwhile are nobody's.
        let next = at + TASK.1 * (took.as_nanos() / TASK.1.as_nanos() + 1);
        release = Some(next);
        Step::SleepUntil(next)
    }
}

/// Who sends: a burst, and the packet behind it.
struct Far<L: Link> {
    link: L,
    doorbell: SemaphoreId,
    memory: Vec<L::Memory>,
    queued: u64,
    begin: Option<Instant>,
    /// How many bursts have left, and how many frames of this one have not.
    bursts: u64,
    left: u64,
}

impl<L: Link> Far<L> {
    /// Hands over what goes.
    fn send(&mut self, now: Instant) -> Result<(), LinkError> {
        while let Some(memory) = self.link.sent(now) {
            self.memory.push(memory);
        }
        while self.left > 0 {
            let memory = match self.memory.pop() {
                Some(memory) => Some(memory),
                None => self.link.allocate(1)?.pop(),
            };
            let Some(mut memory) = memory else { break };
            let kind = TYPES[usize::from(self.left == 1)];
            let bytes = &mut memory.bytes_mut()[..LENGTH];
            bytes.fill(0);
            bytes[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
            bytes[12..14].copy_from_slice(&kind.to_be_bytes());
            match self.link.queue(memory, LENGTH, Left::default(), now) {
                Ok(()) => self.left -= 1,
                Err((memory, LinkError::Full)) => {
                    self.memory.push(memory);
                    break;
                }
                Err((_, error)) => return Err(error),
            }
        }
        self.link.flush(now)
    }
}

impl<L> Body for Far<L>
where
    L: Link + Send,
    L::Memory: Send,
{
    fn step(&mut self, context: &mut dyn Context) -> Step {
        let now = context.now();
        let begin = *self.begin.get_or_insert(now + BURST);
        let due = begin + BURST * self.bursts;
        if self.left == 0 {
            if now < due {
                return Step::SleepUntil(due);
            }
            self.left = self.queued + 1;
        }
        if self.send(now).is_err() {
            context.fail("the senders' interface cannot go on");
            return Step::Finish;
        }
        context.signal(self.doorbell);
        if self.left > 0 {
            return Step::SleepUntil(now + LOOK);
        }
        self.bursts += 1;
        Step::SleepUntil(begin + BURST * self.bursts)
    }
}

/// Runs a case.
///
/// # Errors
///
/// The host's: on this machine [`HostError::CannotRun`] where no interfaces may be made.
pub fn run(host: &mut Runner<'_>, case: Case) -> Result<Seen, HostError> {
    let mut program = Program::new(1);
    let signals = Signals::new(&mut program);
    let [taken, done] = ["packet taken", "job done"].map(|name| program.mark(name));
    let stage = Stage {
        case,
        doorbell: signals.doorbell,
        taken,
        done,
    };
    let line = Line::new(RATE, Framing::Ethernet, false);
    between(host, &mut program, (line, CARD), signals, stage)?;
    let record = host.run(program, BURST * (case.bursts + 1))?;
    let waited = record.marked(taken).map(|event| event.args[0]);
    Ok(Seen {
        waited: waited.map(Span::from_nanos).collect(),
        longest: longest(&record, done),
    })
}

/// The longest of each stretch of a burst's length.
fn longest(record: &RunRecord, done: Mark) -> Vec<Span> {
    let mut all: Vec<(u64, Span)> = Vec::new();
    for event in record.marked(done) {
        let after = event.at.saturating_since(record.start).as_nanos();
        let stretch = after / BURST.as_nanos();
        let took = Span::from_nanos(event.args[0]);
        match all.last_mut() {
            Some((last, longest)) if *last == stretch => *longest = took.max(*longest),
            _ => all.push((stretch, took)),
        }
    }
    // Before the first burst.
    all.retain(|(stretch, _)| *stretch > 0);
    all.into_iter().map(|(_, longest)| longest).collect()
}
