//! How fast TCP goes through a machine, message by message, to or from a peer that is never in the way (§4, tables 1 and 2).

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use laxity::net::twin::{Line, Moderation, Shape, Transfers};
use laxity_lab::bench::Runner;
use laxity_lab::runner::network::End;
use laxity_model::nif::frames::Frames;
use laxity_model::nif::link::{Link, Memory};
use laxity_model::nif::most::Costs;
use laxity_model::{
    Context, HostError, Instant, InterruptLevel, Placement, PortId, Priority, ProcessorId, Program,
    SemaphoreId, Service, Span, Step,
};
use laxity_net::bodies::{Handler, Interrupt, Work};
use laxity_net::buffers::Sleeper;
use laxity_net::driver::{Driver, Host, Limits};
use laxity_net::sockets::{TcpListener, TcpStream};
use laxity_net::stack::{Config, Count, Moved, Stack};

use super::wire::{AtEnds, Signals, between, failed};

const CPU: ProcessorId = ProcessorId(0);
/// Where the machine listens.
const PORT: u16 = 5_001;
/// The machine's two socket buffers, and the reference machine's.
pub const WINDOWS: (usize, usize) = (16 * 1_024, 32 * 1_024);
/// What is carried before this is not counted, nor in the first fourth of a shorter run.
pub(super) const WARM: Span = Span::from_secs(1);
/// How often the protocols look at their clock: a deferred call cannot wait for a time.
pub(super) const TICK: Span = Span::from_millis(10);
/// Both cards: an interrupt for each packet, and memory over a bus of 320 Mbit/s.
pub(super) const CARD: Shape = Shape {
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

/// Who works on the packets that arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocols {
    /// Threads of the client.
    Threads,
    /// A software interrupt: BSD's way.
    Interrupt,
}

/// What is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setup {
    /// Who works on packets.
    pub protocols: Protocols,
    /// Whether the machine sends, or receives.
    pub sends: bool,
    /// Bytes of each call.
    pub message: usize,
    /// What a call takes of the processor.
    pub call: Work,
    /// What a packet takes that arrives, and one that is sent.
    pub packets: (Work, Work),
    /// What an interrupt takes, and each packet of it.
    pub interrupt: (Service, Service),
}

impl Setup {
    fn of(&self, moved: Moved) -> Service {
        let (received, sent) = self.packets;
        let work = |each: Work, count: Count| {
            let packet = each.packet.checked_mul(count.packets);
            let packet = packet.unwrap_or(Service::MAX);
            Work { packet, ..each }.of(count.bytes as usize)
        };
        let (received, sent) = (work(received, moved.received), work(sent, moved.sent));
        received.checked_add(sent).unwrap_or(Service::MAX)
    }
}

/// The clock of both stacks: whoever works reads it first.
#[derive(Clone, Default)]
struct Time {
    now: Arc<AtomicU64>,
    /// When the first of them did.
    begin: Arc<OnceLock<Instant>>,
}

impl Time {
    fn is(&self, context: &dyn Context) -> Instant {
        let now = context.now();
        self.begin.get_or_init(|| now);
        self.now.fetch_max(now.as_nanos(), Ordering::Relaxed);
        now
    }
}

/// Bytes that were read at the end that receives, once it was warm. Marks would tell the same, but for those that a log has no room for.
#[derive(Clone)]
struct Carried {
    time: Time,
    warm: Span,
    bytes: Arc<AtomicU64>,
}

impl Carried {
    fn read(&self, count: usize, now: Instant) {
        let mut begin = self.time.begin.get().into_iter();
        if begin.any(|begin| now >= *begin + self.warm) {
            self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        }
    }
}

/// A machine with an interface, and nobody who works yet.
struct Machine<L: Link>
where
    L::Memory: 'static,
{
    driver: Driver<L, Frames>,
    stack: Stack<L::Memory>,
    unmask: Box<dyn FnMut(Instant) + Send>,
    raised: SemaphoreId,
    time: Time,
}

impl<L> Machine<L>
where
    L: Link + 'static,
    L::Memory: 'static,
{
    fn new(end: End<L>, last: u8, rings: Option<PortId>, time: &Time) -> Result<Self, HostError> {
        let key = Frames::new(None, 1);
        let driver = Driver::new(end.link, key, Limits::default(), Host::default());
        let mut driver = driver.map_err(failed)?;
        let config = Config {
            hardware: [2, 0, 0, 0, 0, last],
            addresses: vec![([10, 0, 0, last].into(), 24)],
            window: if last == 1 { WINDOWS.0 } else { WINDOWS.1 },
            per_poll: 1,
            seed: last.into(),
            rings,
            ..Config::default()
        };
        let clock = Arc::clone(&time.now);
        let clock = Arc::new(move || Instant::from_nanos(clock.load(Ordering::Relaxed)));
        let sleeper = Sleeper::portable(|| Instant::MAX);
        let stack = Stack::new(&mut driver, config, sleeper, clock).map_err(failed)?;
        Ok(Self {
            driver,
            stack,
            unmask: end.unmask,
            raised: end.raised,
            time: time.clone(),
        })
    }
}

/// What a call came to: so many bytes, or none now.
fn some(answer: io::Result<usize>) -> Result<usize, &'static str> {
    match answer {
        Ok(count) => Ok(count),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        Err(_) => Err("the connection has ended"),
    }
}

/// What of a message goes, or comes, now.
fn carry<M: Memory>(
    stream: &TcpStream<M>,
    sends: bool,
    message: &mut [u8],
) -> Result<usize, &'static str> {
    some(if sends {
        stream.send(message)
    } else {
        stream.receive(message)
    })
}

/// The reference machine, which takes no time: it connects, and sends or reads whatever goes.
fn reference<L>(
    machine: Machine<L>,
    sends: bool,
    (doorbell, carried): (SemaphoreId, Carried),
) -> impl FnMut(&mut dyn Context) -> Step + Send + 'static
where
    L: Link + Send + 'static,
    L::Memory: 'static,
{
    let Machine {
        mut driver,
        stack,
        mut unmask,
        raised,
        time,
    } = machine;
    let (mut stream, mut bytes) = (None, vec![0; WINDOWS.1]);
    move |context| {
        let now = time.is(context);
        let next = loop {
            let Ok(polled) = driver.poll(now, &mut ()) else {
                context.fail("the reference machine's driver cannot go on");
                return Step::Finish;
            };
            let waits = stack.poll(now);
            if stream.is_none() {
                stream = TcpStream::start(&stack, ([10, 0, 0, 1], PORT).into()).ok();
            }
            let Some(stream) = &stream else { continue };
            let before = stream.moved();
            let again = stream.poll(now);
            let count = carry(stream, sends, &mut bytes).unwrap_or(0);
            if !sends {
                carried.read(count, now);
            }
            let is_idle = polled.arrived + polled.sent + count == 0 && stream.moved() == before;
            if is_idle && !driver.is_asked() {
                break [waits, again].into_iter().flatten().min();
            }
        };
        unmask(now);
        context.signal(doorbell);
        match next {
            Some(next) => Step::WaitUntil(raised, next.max(now + Span::from_micros(1))),
            None => Step::Wait(raised),
        }
    }
}

/// The connection of the machine, for both who work on it.
struct Shared<M: Memory + 'static> {
    setup: Setup,
    time: Time,
    stream: Arc<OnceLock<TcpStream<M>>>,
    /// Signalled when the connection has got further, and when its driver has something to send.
    further: SemaphoreId,
    sends: SemaphoreId,
}

impl<M: Memory> Clone for Shared<M> {
    fn clone(&self) -> Self {
        Self {
            time: self.time.clone(),
            stream: Arc::clone(&self.stream),
            ..*self
        }
    }
}

impl<M: Memory> Shared<M> {
    /// What it was to do something with the stream, if any packets were worked on.
    fn worked(&self, before: Moved, context: &mut dyn Context) -> Option<Service> {
        let after = self.stream.get()?.moved();
        let moved = Moved {
            received: after.received.since(before.received),
            sent: after.sent.since(before.sent),
        };
        if moved.sent.packets > 0 {
            context.signal(self.sends);
        }
        (moved != Moved::default()).then(|| self.setup.of(moved))
    }
}

/// The machine's protocols: each packet that arrived is worked on, one after the other.
fn protocols<M: Memory>(
    shared: Shared<M>,
    (stack, listener): (Stack<M>, TcpListener<M>),
    rings: PortId,
) -> impl FnMut(&mut dyn Context) -> Step + Send {
    let mut has_worked = false;
    move |context| {
        let now = shared.time.is(context);
        if std::mem::take(&mut has_worked) {
            context.signal(shared.further);
        }
        stack.poll(now);
        let Some(stream) = shared.stream.get() else {
            if let Some(stream) = listener.try_accept() {
                stream.set_nodelay(false);
                // Nobody else sets it.
                shared.stream.set(stream).ok();
                context.signal(shared.further);
            }
            context.signal(shared.sends);
            return Step::Wait(rings);
        };
        let before = stream.moved();
        stream.poll(now);
        let Some(work) = shared.worked(before, context) else {
            return Step::Wait(rings);
        };
        has_worked = true;
        Step::Charge(work)
    }
}

/// The machine's program: a message after the other. A message that goes in parts is one call.
fn application<M: Memory>(
    shared: Shared<M>,
    read: Carried,
) -> impl FnMut(&mut dyn Context) -> Step + Send {
    let Setup {
        sends,
        message,
        call,
        ..
    } = shared.setup;
    let mut bytes = vec![0; message];
    let mut left = 0;
    move |context| {
        let now = shared.time.is(context);
        let Some(stream) = shared.stream.get() else {
            return Step::Wait(shared.further);
        };
        if sends && left == 0 {
            left = message;
            return Step::Charge(call.of(message));
        }
        let before = stream.moved();
        let most = if sends { left } else { message };
        let carried = match carry(stream, sends, &mut bytes[..most]) {
            Ok(carried) => carried,
            Err(why) => {
                context.fail(why);
                return Step::Finish;
            }
        };
        left = left.saturating_sub(carried);
        let mut work = shared.worked(before, context);
        if !sends && carried > 0 {
            read.read(carried, now);
            let packets = work.unwrap_or(Service::ZERO);
            work = call.of(carried).checked_add(packets);
        }
        match work {
            Some(work) => Step::Charge(work),
            None if carried > 0 => Step::Charge(Service::ZERO),
            None => Step::Wait(shared.further),
        }
    }
}

/// Runs a setup, and tells how many bytes a second were read at the end that receives: in the twin over cards, on this machine over two interfaces.
///
/// # Errors
///
/// The host's.
pub fn run(host: &mut Runner<'_>, setup: Setup, length: Span) -> Result<u64, HostError> {
    let mut program = Program::new(1);
    let carried = Carried {
        time: Time::default(),
        warm: WARM.min(length / 4),
        bytes: Arc::default(),
    };
    let rings = program.port(1_024);
    let signals = Signals::new(&mut program);
    let both = Both {
        setup,
        doorbell: signals.doorbell,
        rings,
        carried: carried.clone(),
    };
    let cable = (Line::ethernet(), CARD);
    between(host, &mut program, cable, signals, both)?;
    let record = host.run(program, length)?;
    let bytes = carried.bytes.load(Ordering::Relaxed);
    let counted = record.end.saturating_since(record.start + carried.warm);
    let nanos = counted.as_nanos().max(1);
    Ok((u128::from(bytes) * 1_000_000_000 / u128::from(nanos)) as u64)
}

/// Both machines.
struct Both {
    setup: Setup,
    doorbell: SemaphoreId,
    rings: PortId,
    carried: Carried,
}

impl AtEnds for Both {
    fn build<L>(self, program: &mut Program, [near, far]: [End<L>; 2]) -> Result<(), HostError>
    where
        L: Link + Send + 'static,
        L::Memory: 'static,
    {
        let Self {
            setup,
            doorbell,
            rings,
            carried,
        } = self;
        let machine = Machine::new(near, 1, Some(rings), &carried.time)?;
        let peer = Machine::new(far, 2, None, &carried.time)?;
        let body = reference(peer, !setup.sends, (doorbell, carried.clone()));
        program.add("reference", CPU, Placement::External, body);
        let Machine {
            driver,
            stack,
            unmask,
            raised,
            time,
        } = machine;
        let interface = Interrupt {
            raised,
            doorbell,
            unmask,
            costs: Costs {
                interrupt: setup.interrupt.0,
                packet: setup.interrupt.1,
                ..Costs::default()
            },
            most: None,
        };
        let level = Placement::Interrupt(InterruptLevel(1));
        program.add("interface", CPU, level, Handler::new(driver, interface));
        let shared = Shared {
            setup,
            time,
            stream: Arc::default(),
            further: program.semaphore(0),
            sends: raised,
        };
        let listener = TcpListener::bind(&stack, PORT, 1).map_err(failed)?;
        let placement = match setup.protocols {
            Protocols::Threads => Placement::Thread(Priority::NORMAL),
            Protocols::Interrupt => Placement::Deferred,
        };
        let clock = move |context: &mut dyn Context| {
            context.put(rings, [0; 2]);
            Step::SleepUntil(context.now() + TICK)
        };
        program.add("clock", CPU, level, clock);
        let body = protocols(shared.clone(), (stack, listener), rings);
        program.add("protocols", CPU, placement, body);
        let ordinary = Placement::Thread(Priority::NORMAL);
        program.add("ttcp", CPU, ordinary, application(shared, carried));
        Ok(())
    }
}
