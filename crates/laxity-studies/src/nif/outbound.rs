//! Video that is sent beside bulk data which is always there (§2.2): first come, first served, and by priority. Over an emulated wire of 10 Mbit/s, on this machine too, as a pair of interfaces takes no time.

use laxity_lab::bench::{Request, Runner};
use laxity_model::nif::link::{Link, LinkError, Memory};
use laxity_model::nif::most::Costs;
use laxity_model::nif::registry::{Circuit, Circuits};
use laxity_model::nif::transmit::{ByPriority, FirstCome, Order};
use laxity_model::nif::wire::Framing;
use laxity_model::{
    Context, HostError, Instant, InterruptLevel, Mark, Placement, Priority, ProcessorId, Program,
    SemaphoreId, Span, Step,
};
use laxity_net::bodies::{Handler, Interrupt};
use laxity_net::buffers::{Buffer, Filled, Pool, PoolSize, Sending};
use laxity_net::client::{self, Client};
use laxity_net::driver::{Driver, Host, Interest, Limits};
use laxity_net::emulated::{End, Faults, Wire};

use super::behind::INTERRUPT;
use super::segment::{FRAME_PACKETS, PACKET_BYTES, WIRE_RATE};
use super::wire::failed;

const CPU: ProcessorId = ProcessorId(0);
/// From frame to frame of video.
pub const PERIOD: Span = Span::from_millis(20);
/// Packets of bulk data that wait or are below, always.
pub const BACKLOG: u32 = 32;
/// Frames that are below the driver, out of reach of a more urgent one.
pub const REACH: usize = 2;
/// Frames of video of a run.
const FRAMES: [u64; 2] = [150, 75];
const ROUNDS: u32 = 3;
/// How often somebody looks what has left the wire.
const LOOK: Span = Span::from_micros(100);
type Packet = Box<[u8]>;

/// A run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// Whether the video's packets leave first, or in their turn.
    pub by_priority: bool,
    /// Frames of video.
    pub frames: u64,
}

/// What was seen in it: from when each frame of video was handed over until the last of its packets was through the wire.
pub type Seen = Vec<Span>;

/// All that is run.
pub(super) fn cases(request: &Request, live: bool) -> impl Iterator<Item = Case> + use<> {
    let frames = FRAMES[usize::from(live && !request.full)];
    let rounds = match (live, request.full) {
        (false, _) => 1,
        (true, false) => request.repeats.unwrap_or(1),
        (true, true) => request.repeats.unwrap_or(ROUNDS),
    };
    (0..rounds).flat_map(move |_| {
        [false, true].map(|by_priority| Case {
            by_priority,
            frames,
        })
    })
}

/// How long the wire takes for the packets that may be below, one that is being handed over, and those of a frame: no frame that goes first takes longer, but for what software takes.
pub(super) fn bound() -> Span {
    let each = Framing::Bare.takes(PACKET_BYTES, WIRE_RATE);
    each * (REACH as u64 + 1 + FRAME_PACKETS)
}

/// A client that sends, and has told that there is room again.
struct Sends(SemaphoreId);

impl Client<Packet> for Sends {
    fn receive(&mut self, _: Buffer<Packet, Filled>, _: &mut client::Context<'_>) {}

    fn sent(&mut self, _: u64, _: Result<(), LinkError>, context: &mut client::Context<'_>) {
        context.signal(self.0);
    }
}

/// Sends a packet of a kind with this in it, if a buffer is free; whether one was.
fn send(pool: &Pool<Packet>, video: Option<(u64, Instant)>) -> bool {
    let Ok(mut empty) = pool.take() else {
        return false;
    };
    let (priority, (number, at)) = match video {
        Some(packet) => (Priority::REAL_TIME, packet),
        None => (Priority::NORMAL, (u64::MAX, Instant::ZERO)),
    };
    let circuit = Circuit {
        path: 0,
        channel: 32,
    };
    let space = empty.space();
    space[..4].copy_from_slice(&circuit.header());
    space[4..12].copy_from_slice(&number.to_be_bytes());
    space[12..20].copy_from_slice(&at.as_nanos().to_be_bytes());
    let sending = Sending {
        priority,
        ..Sending::default()
    };
    let filled = empty.filled(PACKET_BYTES);
    filled.is_ok_and(|filled| filled.send(sending).is_ok())
}

/// Has as much waiting as there are buffers.
fn bulk(
    pool: Pool<Packet>,
    (room, raised): (SemaphoreId, SemaphoreId),
) -> impl FnMut(&mut dyn Context) -> Step + Send {
    move |context| {
        let mut is_any = false;
        while send(&pool, None) {
            is_any = true;
        }
        if is_any {
            context.signal(raised);
        }
        Step::Wait(room)
    }
}

/// Hands over a frame every so often, all its packets at once.
fn video(pool: Pool<Packet>, raised: SemaphoreId) -> impl FnMut(&mut dyn Context) -> Step + Send {
    let (mut begin, mut frames) = (None, 0);
    move |context| {
        let now = context.now();
        let begin = *begin.get_or_insert(now);
        let due = begin + PERIOD * (frames + 1);
        if now < due {
            return Step::SleepUntil(due);
        }
        for packet in 0..FRAME_PACKETS {
            if !send(&pool, Some((frames * FRAME_PACKETS + packet, now))) {
                context.fail("a frame of video has no buffer");
                return Step::Finish;
            }
        }
        context.signal(raised);
        frames += 1;
        Step::SleepUntil(begin + PERIOD * (frames + 1))
    }
}

/// What is at the other end of the wire: it tells what has come, and the driver that its frames have left.
fn arrivals(
    mut far: End,
    raised: SemaphoreId,
    arrived: Mark,
) -> impl FnMut(&mut dyn Context) -> Step + Send {
    let mut is_ready = false;
    move |context| {
        let now = context.now();
        if !std::mem::replace(&mut is_ready, true) {
            let memory = far.allocate(2 * BACKLOG as usize).into_iter().flatten();
            memory.for_each(|memory| drop(far.post(memory)));
        }
        let mut is_any = false;
        while let Ok(Some(packet)) = far.receive(now) {
            is_any = true;
            let number = |at: usize| {
                let bytes = packet.memory.bytes().get(at..at + 8)?;
                bytes.try_into().ok().map(u64::from_be_bytes)
            };
            if let (Some(number), Some(since)) = (number(4), number(12))
                && number % FRAME_PACKETS == FRAME_PACKETS - 1
                && number < u64::MAX
            {
                let took = packet.at.saturating_since(Instant::from_nanos(since));
                context.mark(arrived, [took.as_nanos(), number / FRAME_PACKETS]);
            }
            far.post(packet.memory).ok();
        }
        if is_any {
            context.signal(raised);
        }
        Step::SleepUntil(now + LOOK)
    }
}

/// Runs a case.
///
/// # Errors
///
/// The host's.
pub fn run(host: &mut Runner<'_>, case: Case) -> Result<Seen, HostError> {
    let mut program = Program::new(1);
    let arrived = program.mark("frame arrived");
    let [raised, doorbell, room, told] = [(); 4].map(|()| program.semaphore(0));
    let faults = Faults {
        rate: WIRE_RATE,
        ..Faults::default()
    };
    let (_, near, far) = Wire::new(faults, 1);
    let limits = Limits {
        reach: REACH,
        ..Limits::default()
    };
    let order: Box<dyn Order> = match case.by_priority {
        true => Box::new(ByPriority::new(limits.queue)),
        false => Box::new(FirstCome::new(limits.queue)),
    };
    let driver = Driver::with_order(near, Circuits::default(), limits, Host::default(), order);
    let mut driver = driver.map_err(failed)?;
    let mut pool = |buffers, told| {
        let size = PoolSize::fixed(buffers);
        let registered = driver.register(Interest::Nothing, size, Sends(told));
        registered.map(|registered| registered.pool).map_err(failed)
    };
    let (own, others) = (pool(BACKLOG, told)?, pool(BACKLOG, room)?);
    let interrupt = Interrupt {
        raised,
        doorbell,
        unmask: Box::new(|_| {}),
        costs: Costs {
            interrupt: INTERRUPT.0,
            packet: INTERRUPT.1,
            ..Costs::default()
        },
        most: None,
    };
    let level = Placement::Interrupt(InterruptLevel(1));
    program.add("interface", CPU, level, Handler::new(driver, interrupt));
    let [first, ordinary] = [24, 20]
        .map(|priority| Placement::Thread(Priority::new(priority).unwrap_or(Priority::HIGHEST)));
    program.add("video", CPU, first, video(own, raised));
    program.add("bulk", CPU, ordinary, bulk(others, (room, raised)));
    let body = arrivals(far, raised, arrived);
    program.add("other end", CPU, Placement::External, body);
    // What is handed over last is under way.
    let record = host.run(program, PERIOD * (case.frames + 4))?;
    let took = record.marked(arrived).map(|event| event.args[0]);
    let frames = usize::try_from(case.frames).unwrap_or(usize::MAX);
    Ok(took.take(frames).map(Span::from_nanos).collect())
}
