//! What runs on the sending host: a handler for each channel, the link's scheduler, which handlers and completion call, the null device and its interrupt (§§3, 4). All that is decided is the model's.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laxity_model::channels::handler::{Handler, Message, Next, Packet};
use laxity_model::channels::link::{Cause, Placement as Scheduled, Runs};
use laxity_model::channels::source::{Offered, Source};
use laxity_model::nif::registry::ClientId;
use laxity_model::nif::transmit::{self, Outgoing, Transmit};
use laxity_model::nif::urgency::Due;
use laxity_model::{Body, Context, Instant, PortId, Priority, SemaphoreId, Step};

use super::machine::{CACHE_MISS, CONTEXT_SWITCH, LINK_SCHEDULING, on_link};
use super::tally::{SENDERS, Tally};
use super::workload::{self, CHANNELS};

#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes(pub(super) u32);

impl Message for Bytes {
    fn bytes(&self) -> u32 {
        self.0
    }
}

/// A channel at its sender.
pub(super) struct Channel {
    pub(super) source: Source<Bytes>,
    pub(super) handler: Handler,
    /// What the handler waits for, and whether it does.
    pub(super) port: SemaphoreId,
    pub(super) waits: bool,
}

/// What handlers, interrupt and those who send share: one thing of one processor.
pub(super) struct Shared {
    pub(super) channels: Vec<Channel>,
    pub(super) transmit: Transmit,
    /// Of each frame of the link, whose packet it is.
    pub(super) frames: Vec<Option<(usize, Packet)>>,
    /// Whose handler has had the processor last.
    pub(super) last: Option<usize>,
    /// When the first packet is current of those that are early.
    pub(super) current_from: Instant,
    pub(super) tally: Tally,
}

pub(super) type Host = Arc<Mutex<Shared>>;

pub(super) fn lock(host: &Host) -> MutexGuard<'_, Shared> {
    host.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a program's bodies are told by.
#[derive(Clone, Copy)]
pub(super) struct Lines {
    /// A packet of so many bytes is handed to the device.
    pub(super) device: PortId,
    /// The device has sent it, or there is something to wait for anew.
    pub(super) interrupt: PortId,
}

/// What the interrupt is told.
const SENT: [u64; 2] = [1, 0];
const LOOK: [u64; 2] = [0, 0];

impl Shared {
    /// A message is offered to a channel's queue, for which its handler may wait.
    pub(super) fn offer(&mut self, channel: usize, bytes: u32, context: &mut dyn Context) {
        let packets = workload::packets(bytes);
        let source = &mut self.channels[channel].source;
        let offered = source.offer(context.now(), packets, Bytes(bytes), drop);
        let dropped = matches!(offered, Offered::Dropped(_)).then_some(packets.get());
        self.tally.offered(channel, bytes, dropped);
        if dropped.is_none() {
            self.wake(channel, context);
        }
    }

    fn wake(&mut self, channel: usize, context: &mut dyn Context) {
        let channel = &mut self.channels[channel];
        if std::mem::take(&mut channel.waits) {
            context.signal(channel.port);
        }
    }

    /// A packet is in its channel's queue. Tells who is to run the link's scheduler.
    fn queue(&mut self, channel: usize, packet: Packet, context: &mut dyn Context) -> Runs {
        let outgoing = Outgoing {
            client: ClientId(channel as u32),
            length: packet.bytes as usize,
            priority: Priority::NORMAL,
            due: packet.due.deadline,
        };
        let is_full = self.transmit.below() > 0;
        match self.transmit.offer(&outgoing, context.now()) {
            Some(frame) => self.frames[frame.index()] = Some((channel, packet)),
            None => context.fail("a channel has more packets than buffers"),
        }
        Scheduled::Call.runs(Cause::Queued, is_full)
    }

    /// Chooses a packet for the link, and hands it to the device; where all are early, it is to be asked again when the first is current.
    fn schedule(&mut self, lines: Lines, context: &mut dyn Context) {
        self.current_from = Instant::MAX;
        match self.transmit.next(context.now()) {
            Ok(transmit::Next::Frame(frame)) => {
                let bytes = self.frames[frame.index()].map_or(0, |(_, packet)| packet.bytes);
                context.put(lines.device, [bytes.into(), 0]);
            }
            Ok(transmit::Next::NotBefore(at)) => {
                self.current_from = at;
                context.put(lines.interrupt, LOOK);
            }
            Ok(transmit::Next::Nothing) => {}
            Err(_) => context.fail("the link's scheduler has lost track"),
        }
    }

    /// The packet on the link has left. Tells whether it was the last of the run.
    fn sent(&mut self, context: &mut dyn Context) -> bool {
        let frame = self.transmit.sent();
        let packet = frame.and_then(|frame| self.frames[frame.index()].take());
        let Some((channel, packet)) = packet else {
            context.fail("the device has sent what nobody gave it");
            return true;
        };
        if self.channels[channel].handler.left() {
            self.wake(channel, context);
        }
        self.tally.sent(channel, packet, context.now())
    }
}

/// What a handler was at when it was called last.
enum At {
    /// Nothing.
    Rest,
    /// It waited for a part to become current.
    Held(Due),
    /// It has made a packet.
    Made(Packet),
    /// It has chosen a packet for the link.
    Scheduled,
}

/// A channel's handler, on the executor.
pub(super) struct Handling {
    host: Host,
    lines: Lines,
    channel: usize,
    at: At,
}

impl Body for Handling {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        let shared = self.host.clone();
        let mut shared = lock(&shared);
        match std::mem::replace(&mut self.at, At::Rest) {
            At::Rest => {}
            At::Held(due) => context.inherit(due.logical, due.deadline),
            At::Made(packet) => {
                if shared.queue(self.channel, packet, context) == Runs::Caller {
                    self.at = At::Scheduled;
                    return Step::Burn(LINK_SCHEDULING);
                }
            }
            At::Scheduled => shared.schedule(self.lines, context),
        }
        self.go_on(&mut shared, context)
    }
}

impl Handling {
    fn go_on(&mut self, shared: &mut Shared, context: &mut dyn Context) -> Step {
        loop {
            let Channel {
                source,
                handler,
                port,
                waits,
            } = &mut shared.channels[self.channel];
            match handler.next(source, context.now()) {
                Next::Idle | Next::Blocked => {
                    *waits = true;
                    return Step::Wait(*port);
                }
                Next::Inherits { due, from } if from > context.now() => {
                    self.at = At::Held(due);
                    return Step::SleepUntil(from);
                }
                Next::Inherits { due, .. } => {
                    context.inherit(due.logical, due.deadline);
                    if context.should_yield() {
                        return Step::Yield;
                    }
                }
                Next::Look if context.should_yield() => return Step::Yield,
                Next::Look | Next::Discards(_) => {}
                Next::Packet(packet, work) => {
                    self.at = At::Made(packet);
                    let is_other = shared.last.replace(self.channel) != Some(self.channel);
                    return Step::Burn(if is_other {
                        work + CONTEXT_SWITCH + CACHE_MISS
                    } else {
                        work
                    });
                }
            }
        }
    }
}

/// The device's interrupt: a packet has left, and the link's scheduler is called; or one that was early is current.
pub(super) struct Completion {
    pub(super) host: Host,
    pub(super) lines: Lines,
    /// It has chosen a packet for the link.
    pub(super) is_scheduled: bool,
}

impl Body for Completion {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        let mut shared = lock(&self.host);
        if std::mem::take(&mut self.is_scheduled) {
            shared.schedule(self.lines, context);
        } else {
            let is_sent = context.arrival().is_some_and(|one| one.payload == SENT);
            if is_sent && shared.sent(context) {
                return Step::EndRun;
            }
            let is_current = shared.current_from <= context.now();
            let cause = match (is_sent, is_current) {
                (true, _) => Some(Cause::Completed),
                (false, true) => Some(Cause::Current),
                (false, false) => None,
            };
            let is_full = shared.transmit.below() > 0;
            let waits = shared.transmit.waiting() > 0;
            let runs = cause.map(|cause| Scheduled::Call.runs(cause, is_full));
            if waits && runs == Some(Runs::Caller) {
                self.is_scheduled = true;
                return Step::Burn(LINK_SCHEDULING);
            }
        }
        match shared.current_from {
            Instant::MAX => Step::Wait(self.lines.interrupt),
            at => Step::WaitUntil(self.lines.interrupt, at),
        }
    }
}

/// The null device: it takes the time of a packet, and then interrupts (§4.3).
pub(super) fn device(lines: Lines) -> impl Body {
    let mut is_sending = false;
    move |context: &mut dyn Context| {
        if is_sending {
            context.put(lines.interrupt, SENT);
        }
        is_sending = !is_sending;
        if is_sending {
            match context.arrival() {
                Some(packet) => {
                    return Step::SleepUntil(context.now() + on_link(packet.payload[0]));
                }
                None => is_sending = false,
            }
        }
        Step::Wait(lines.device)
    }
}

/// Makes the channels' handlers, each due within its channel's time, and is done.
pub(super) fn establish(host: Host, lines: Lines) -> impl Body {
    move |context: &mut dyn Context| {
        for channel in 0..SENDERS {
            let handling = Handling {
                host: host.clone(),
                lines,
                channel,
                at: At::Rest,
            };
            let delay = CHANNELS.get(channel).map(|channel| channel.delay);
            if context.make_handler(delay, Box::new(handling)).is_err() {
                context.fail("the executor has no room for the channels");
            }
        }
        Step::Finish
    }
}
