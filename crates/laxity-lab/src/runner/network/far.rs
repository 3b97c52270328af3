//! The far end of the wire: TCP/IP that costs nothing, and who sends.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use laxity_model::nif::frames::Frames;
use laxity_model::nif::link::{Link, LinkError, Memory};
use laxity_model::nif::registry::ClientId;
use laxity_model::nif::transmit::{FrameId, Next, Order, Outgoing};
use laxity_model::{Body, Context, HostError, Instant, SemaphoreId, Span, Step};
use laxity_net::buffers::Sleeper;
use laxity_net::driver::{Driver, DriverError};
use laxity_net::emulated::Again;
use laxity_net::sockets::{TcpStream, UdpSocket};
use laxity_net::stack::{Config, Stack};

use super::{End, FAR, Known, LOOK, NEAR, POSTED, SENT, driver, earliest, failed};
use crate::scenario::Traffic;
use crate::workload::Draws;

/// Each client sends a frame and lets the others go first, as if each had a machine of its own on the wire.
#[derive(Default)]
struct Turns(VecDeque<(ClientId, VecDeque<FrameId>)>);

impl Order for Turns {
    fn add(&mut self, frame: FrameId, outgoing: &Outgoing, _: Instant) {
        let mut all = self.0.iter_mut();
        match all.find(|(client, _)| *client == outgoing.client) {
            Some((_, own)) => own.push_back(frame),
            None => self.0.push_back((outgoing.client, [frame].into())),
        }
    }

    fn next(&mut self, _: Instant) -> Next {
        let Some((client, mut own)) = self.0.pop_front() else {
            return Next::Nothing;
        };
        let frame = own.pop_front();
        if !own.is_empty() {
            self.0.push_back((client, own));
        }
        frame.map_or(Next::Nothing, Next::Frame)
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

/// The clock of a stack whose body tells it the time.
#[derive(Clone, Debug, Default)]
pub(super) struct Time(Arc<AtomicU64>);

impl Time {
    pub(super) fn set(&self, now: Instant) {
        self.0.fetch_max(now.as_nanos(), Ordering::Relaxed);
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

/// TCP/IP at one end, with connections that have so much under way at most. It never blocks.
pub(super) fn stack<L>(
    driver: &mut Driver<L, Frames>,
    (last, window): (u8, usize),
    time: &Time,
    seed: u64,
) -> Result<Stack<L::Memory>, HostError>
where
    L: Link + 'static,
    L::Memory: 'static,
{
    let config = Config {
        hardware: [2, 0x77, 0, 0, 0, last],
        addresses: vec![([10, 77, 0, last].into(), 24)],
        window,
        seed: seed.wrapping_add(last.into()),
        ..Config::default()
    };
    let time = time.clone();
    let clock = Arc::new(move || time.now());
    let sleeper = Sleeper::portable(|| Instant::MAX);
    Stack::new(driver, config, sleeper, clock).map_err(failed)
}

/// What a connection has under way at most: the largest block of all flows.
pub(super) fn window(flows: &[Known]) -> usize {
    let blocks = flows.iter().filter_map(|known| match known.flow.traffic {
        Traffic::Bulk { block, .. } => Some(block as usize),
        Traffic::Video { .. } => None,
    });
    blocks.max().unwrap_or(0).max(2_048)
}

/// A flow's sender, or that of one of its connections.
enum Sender<M: Memory + 'static> {
    Video(Box<Video<M>>),
    Bulk(Bulk<M>),
}

/// Who sends frames of video.
struct Video<M: Memory + 'static> {
    socket: UdpSocket<M>,
    known: Known,
    /// From frame to frame.
    period: Span,
    jitter: Span,
    /// Of a frame.
    packets: u64,
    payload: Vec<u8>,
    /// How many packets have been sent.
    sent: u64,
    origin: Instant,
    /// When the frame leaves that is next, or is being sent.
    leaves: Instant,
    draws: Draws,
}

/// Who sends data in bulk.
struct Bulk<M: Memory + 'static> {
    stream: TcpStream<M>,
    block: usize,
    pause: Span,
    /// Of the block that is being written.
    left: usize,
    /// When there is the next, once that is written.
    next: Option<Instant>,
    /// Something has been taken.
    is_connected: bool,
    draws: Draws,
}

/// The far end as a body outside the machine.
pub(super) struct Far<L: Link>
where
    L::Memory: 'static,
{
    driver: Driver<L, Frames>,
    stack: Stack<L::Memory>,
    time: Time,
    end: (SemaphoreId, SemaphoreId, Box<dyn FnMut(Instant) + Send>),
    again: Option<Again>,
    flows: Vec<Known>,
    senders: Vec<Sender<L::Memory>>,
    seed: u64,
}

impl<L> Far<L>
where
    L: Link + 'static,
    L::Memory: 'static,
{
    pub(super) fn new(
        end: End<L>,
        doorbell: SemaphoreId,
        flows: &[Known],
        seed: u64,
    ) -> Result<Self, HostError> {
        let time = Time::default();
        let mut driver = driver(end.link, (256, POSTED), (Turns::default(), seed))?;
        let stack = stack(&mut driver, (1, window(flows)), &time, seed)?;
        Ok(Self {
            driver,
            stack,
            time,
            end: (end.raised, doorbell, end.unmask),
            again: end.again,
            flows: flows.to_vec(),
            senders: Vec::new(),
            seed,
        })
    }

    /// Everybody begins.
    fn begin(&mut self, now: Instant) -> std::io::Result<()> {
        for (number, known) in self.flows.iter().enumerate() {
            for connection in 0..known.flow.connections() {
                let draws = Draws::new(self.seed, (number << 8) as u64 + u64::from(connection));
                let sender = Sender::begin(&self.stack, known, connection, (now, draws))?;
                self.senders.push(sender);
            }
        }
        Ok(())
    }

    fn poll(&mut self, now: Instant) -> Result<Option<Instant>, DriverError> {
        loop {
            let polled = self.driver.poll(now, &mut ())?;
            if !polled.is_more {
                return Ok(polled.again);
            }
        }
    }

    /// Does what is to be done now. When to come again.
    fn go(&mut self, context: &mut dyn Context) -> Result<Option<Instant>, DriverError> {
        let now = context.now();
        let mut next = None;
        // Once more, for what the driver did in answer to what was asked of it.
        for _ in 0..2 {
            let again = self.poll(now)?;
            next = earliest([again, self.stack.poll(now)]);
            for sender in &mut self.senders {
                next = earliest([next, sender.go(now, context)]);
            }
        }
        Ok(earliest([next, self.poll(now)?]))
    }
}

impl<L> Body for Far<L>
where
    L: Link + Send + 'static,
    L::Memory: 'static,
    Driver<L, Frames>: Send,
{
    fn step(&mut self, context: &mut dyn Context) -> Step {
        let now = context.now();
        self.time.set(now);
        if self.senders.is_empty() && self.begin(now).is_err() {
            context.fail("no sender can begin");
            return Step::Finish;
        }
        let next = match self.go(context) {
            Ok(next) => next,
            Err(DriverError::Link(LinkError::Gone)) => return Step::Finish,
            Err(_) => {
                context.fail("the far end's driver cannot go on");
                return Step::Finish;
            }
        };
        let (raised, doorbell, unmask) = &mut self.end;
        unmask(now);
        context.signal(*doorbell);
        let again = self.again.as_ref().and_then(Again::at);
        match earliest([next, again]) {
            Some(next) => Step::WaitUntil(*raised, next),
            None => Step::Wait(*raised),
        }
    }
}

impl<M: Memory + 'static> Sender<M> {
    fn begin(
        stack: &Stack<M>,
        known: &Known,
        connection: u16,
        (now, mut draws): (Instant, Draws),
    ) -> std::io::Result<Self> {
        let to = known.port(connection);
        Ok(match known.flow.traffic {
            Traffic::Video {
                period,
                packets,
                bytes,
                jitter,
            } => {
                let socket = UdpSocket::bind(stack, (FAR, to).into())?;
                socket.set_nonblocking(true);
                let leaves = now + late(&mut draws, jitter);
                Self::Video(Box::new(Video {
                    socket,
                    known: known.clone(),
                    period,
                    jitter,
                    packets: packets.into(),
                    payload: vec![0; bytes.into()],
                    sent: 0,
                    origin: now,
                    leaves,
                    draws,
                }))
            }
            Traffic::Bulk { block, pause, .. } => Self::Bulk(Bulk {
                stream: TcpStream::start(stack, (NEAR, to).into())?,
                block: block as usize,
                pause,
                left: 0,
                next: Some(now + draws.exponential(pause)),
                is_connected: false,
                draws,
            }),
        })
    }

    /// Sends what is due and may go. When to come again.
    fn go(&mut self, now: Instant, context: &mut dyn Context) -> Option<Instant> {
        match self {
            Self::Video(video) => video.go(now, context),
            Self::Bulk(bulk) => bulk.go(now),
        }
    }
}

/// How long after its time a frame leaves.
fn late(draws: &mut Draws, jitter: Span) -> Span {
    Span::from_nanos(draws.between(0, jitter.as_nanos()))
}

impl<M: Memory + 'static> Video<M> {
    fn go(&mut self, now: Instant, context: &mut dyn Context) -> Option<Instant> {
        while self.leaves <= now {
            self.payload[..8].copy_from_slice(&self.sent.to_be_bytes());
            let to = (NEAR, self.known.port).into();
            match self.socket.send_to(&self.payload, to) {
                Ok(_) => {}
                // Its client is not registered yet, or all of its buffers are under way.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return earliest([Some(now + LOOK), self.socket.poll(now)]);
                }
                Err(_) => {
                    context.fail("a packet of video cannot be sent");
                    return None;
                }
            }
            context.put(self.known.records, [SENT | self.sent, 0]);
            self.sent += 1;
            if self.sent.is_multiple_of(self.packets) {
                let frame = self.sent / self.packets;
                let time = self.origin + self.period * frame;
                self.leaves = time + late(&mut self.draws, self.jitter);
            }
        }
        earliest([Some(self.leaves), self.socket.poll(now)])
    }
}

impl<M: Memory + 'static> Bulk<M> {
    fn go(&mut self, now: Instant) -> Option<Instant> {
        if self.next.is_some_and(|next| next <= now) {
            (self.next, self.left) = (None, self.block);
        }
        while self.left > 0 {
            match self.stream.send(&[0; 4_096][..self.left.min(4_096)]) {
                Ok(count) => {
                    self.left -= count;
                    self.is_connected = true;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    // Nobody tells that it is connected; that there is room an acknowledgement does.
                    let look = (!self.is_connected).then(|| now + LOOK);
                    return earliest([look, self.stream.poll(now)]);
                }
                // It has ended: nothing comes any more, which the flow's own quantities tell.
                Err(_) => return None,
            }
        }
        let pause = self.pause;
        let draws = &mut self.draws;
        let next = *self
            .next
            .get_or_insert_with(|| now + draws.exponential(pause));
        earliest([Some(next), self.stream.poll(now)])
    }
}
