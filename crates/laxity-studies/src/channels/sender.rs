//! A run: the sending host as a program, organised in one way or another, and who offers it messages.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

use laxity_lab::bench::Runner;
use laxity_model::channels::handler::{Handler, Late, Limits, Looks};
use laxity_model::channels::link::LinkScheduler;
use laxity_model::channels::source::{self, Excess, Source};
use laxity_model::executor::multiclass_edf::MulticlassEdf;
use laxity_model::nif::transmit::Transmit;
use laxity_model::nif::urgency::Stated;
use laxity_model::policy::multiclass::{By, Early};
use laxity_model::{
    Body, Context, HostError, Instant, InterruptLevel, Placement, Priority, ProcessorId, Program,
    SemaphoreId, Span, Step,
};

use super::host::{Channel, Completion, Host, Lines, Shared, device, establish, lock};
use super::machine::{COSTS, OFFER, PACKET_BYTES, PACKETS};
use super::tally::{Counted, SENDERS, Tally};
use super::workload::{self, BEST_EFFORT, BEST_EFFORT_MESSAGES, CHANNELS, KILOBYTE};

const CPU: ProcessorId = ProcessorId(0);
/// Who offers messages of real time is above who offers best effort, and he above the handlers (§5.1).
const SENDING: Placement = Placement::Thread(Priority::HIGHEST);
const OTHERS: Placement = Placement::Thread(Priority::REAL_TIME);
const HANDLERS: Placement = Placement::Thread(Priority::NORMAL);
/// No run takes longer.
const LONGEST: Span = Span::from_secs(600);
/// Messages of best effort that may wait, unless another number is tried; and so many messages of packets.
pub const BEST_EFFORT_ROOM: u32 = 8;

/// How the host is organised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// As the paper proposes: handlers look after every P packets, and the processor rather idles than works on what is early.
    Proposed,
    /// The handler of best effort never looks, and so many of its messages may wait, and be packets (figure 7a).
    Unpreemptible(u32),
    /// Handlers of real time look between messages only, or where they drain their queues never, and go with what is early ahead of best effort (figure 7b).
    Ahead {
        /// Whether they go on until their queues are empty.
        drains: bool,
    },
    /// What comes too soon is current as it comes (§5.3).
    Unshaped,
}

/// What is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setup {
    /// How the host is organised.
    pub way: Way,
    /// What best effort offers, in KB/s; 0: nothing.
    pub best_effort: u64,
    /// What channel 0 offers of the rate that it states, in percent.
    pub violation: u64,
    /// How much is counted.
    pub counted: Counted,
    /// What is drawn.
    pub seed: u64,
}

impl Setup {
    fn early(&self) -> Early {
        match self.way {
            Way::Ahead { .. } => Early::BeforeBestEffort,
            _ => Early::Held {
                horizon: Span::ZERO,
            },
        }
    }

    /// When the handler of a channel looks.
    fn looks(&self, channel: usize) -> Looks {
        match (self.way, channel) {
            (Way::Unpreemptible(_), BEST_EFFORT)
            | (Way::Ahead { drains: true }, 0..BEST_EFFORT) => Looks::Never,
            (Way::Ahead { drains: false }, 0..BEST_EFFORT) => Looks::BetweenMessages,
            _ => Looks::After(PACKETS),
        }
    }

    /// What a channel states, packets of its message, how many messages may wait.
    fn limits(&self, channel: usize) -> Result<source::Limits, HostError> {
        let (stated, packets, room, excess) = match CHANNELS.get(channel) {
            Some(channel) => {
                let stated = channel.stated(self.way != Way::Unshaped)?;
                (stated, channel.packets(), channel.burst, Excess::Shape)
            }
            None => {
                let room = match self.way {
                    Way::Unpreemptible(messages) => messages,
                    _ => BEST_EFFORT_ROOM,
                };
                let packets = workload::packets(BEST_EFFORT_MESSAGES.0);
                (Stated::ANYTHING, packets, room, Excess::DropNewest)
            }
        };
        Ok(source::Limits {
            stated,
            packets,
            room: NonZeroU32::new(room).unwrap_or(NonZeroU32::MIN),
            excess,
        })
    }

    fn channel(&self, channel: usize, port: SemaphoreId) -> Result<Channel, HostError> {
        let limits = self.limits(channel)?;
        let handler = Limits {
            packet_bytes: PACKET_BYTES,
            packets: limits.packets,
            room: limits.packets.saturating_mul(limits.room),
            looks: self.looks(channel),
            early: self.early(),
            late: Late::Deliver,
            costs: COSTS,
        };
        Ok(Channel {
            source: Source::new(limits),
            handler: Handler::new(handler, limits.room),
            port,
            waits: false,
        })
    }

    /// The host, and what its bodies are told by.
    fn host(&self, program: &mut Program) -> Result<(Host, Lines), HostError> {
        let channels = (0..SENDERS).map(|channel| self.channel(channel, program.semaphore(0)));
        let channels: Vec<Channel> = channels.collect::<Result<_, _>>()?;
        let mut packets = 0;
        for channel in 0..SENDERS {
            let limits = self.limits(channel)?;
            packets += limits.packets.get() * limits.room.get();
        }
        let held = Early::Held {
            horizon: Span::ZERO,
        };
        let mut order = LinkScheduler::new(SENDERS, packets, held, By::Deadline);
        for (number, channel) in (0..).zip(&CHANNELS) {
            order.delay(number, channel.delay);
        }
        let shared = Shared {
            channels,
            transmit: Transmit::new(Box::new(order), packets, 1),
            frames: vec![None; packets as usize],
            last: None,
            current_from: Instant::MAX,
            tally: Tally::new(self.counted),
        };
        let lines = Lines {
            device: program.port(1),
            interrupt: program.port(4),
        };
        Ok((Arc::new(Mutex::new(shared)), lines))
    }

    /// Who offers messages of a channel; `None` if nobody does.
    fn generator(&self, host: &Host, channel: usize) -> Option<impl Body + use<>> {
        let (bytes, period, burst) = match CHANNELS.get(channel) {
            Some(stated) => {
                let percent = if channel == 0 { self.violation } else { 100 };
                let period = stated.period.as_nanos() * 100 / percent.max(1);
                (stated.bytes, Span::from_nanos(period), stated.burst)
            }
            None => {
                let (bytes, burst) = BEST_EFFORT_MESSAGES;
                let rate = self.best_effort * u64::from(KILOBYTE);
                let period = (u64::from(bytes) * 1_000_000_000).checked_div(rate)?;
                (bytes, Span::from_nanos(period), burst)
            }
        };
        let mut sender = workload::Sender::new(period, burst, (self.seed, channel));
        let (host, mut offers) = (host.clone(), 0);
        Some(move |context: &mut dyn Context| {
            if std::mem::take(&mut offers) == 0 && context.now() >= sender.next() {
                offers = sender.take();
                let mut host = lock(&host);
                for _ in 0..offers {
                    host.offer(channel, bytes, context);
                }
                return Step::Burn(OFFER * u64::from(offers));
            }
            Step::SleepUntil(sender.next())
        })
    }
}

/// Runs a setup.
///
/// # Errors
///
/// The host's.
pub fn run(host: &mut Runner<'_>, setup: Setup) -> Result<Tally, HostError> {
    let mut program = Program::new(1);
    let (shared, lines) = setup.host(&mut program)?;
    let policy = MulticlassEdf::new(setup.early(), By::Deadline);
    let executor = program.executor("handlers", (CPU, HANDLERS), None, policy);
    let on = Placement::On {
        executor,
        task: None,
    };
    program.add("channels", CPU, on, establish(shared.clone(), lines));
    let completion = Completion {
        host: shared.clone(),
        lines,
        is_scheduled: false,
    };
    let level = Placement::Interrupt(InterruptLevel(1));
    program.add("completion", CPU, level, completion);
    program.add("device", CPU, Placement::External, device(lines));
    for channel in 0..SENDERS {
        let thread = if channel == BEST_EFFORT {
            OTHERS
        } else {
            SENDING
        };
        if let Some(generator) = setup.generator(&shared, channel) {
            program.add(&format!("sender {channel}"), CPU, thread, generator);
        }
    }
    host.run(program, LONGEST)?;
    let tally = lock(&shared).tally.clone();
    match tally.length() {
        Some(_) => Ok(tally),
        None => Err(HostError::Failed("too few packets left in time".into())),
    }
}
