//! A client whose packets are due (§5, where it is future work): it states rate, burst and delay, and each packet's deadline follows from when
//! it arrived. Who takes its packets is *critical* from a packet's logical arrival on; before, the packet is *workahead*, and whoever takes it
//! is no more urgent than work that may wait. So what comes early never delays what is current.
//!
//! Logical arrivals never go back, so the packet that came first is the most urgent one of its client: one queue is the order, and the activity is as
//! urgent as what it is at work on, or will take next. That is said by whoever makes it so:
//!
//! * at arrival, by the client's call, where the activity has nothing to do;
//! * when a packet is taken, by the activity itself, of that packet.
//!
//! A packet that arrives while another one is waiting or at work changes nothing, or it would hold up the one before it. So there is one who takes.
//!
//! In a program it is [declared](laxity_model::Program::declare_raise) how urgent the activity may become, and admission counts it so: a thread that is placed as for workahead, up to the priority of what is critical; what is on an
//! executor, due a client's delay after its release. What the activity is made is over when it waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use laxity_model::nif::link::Memory;
use laxity_model::nif::urgency::{Due, Stated, Urgency};
use laxity_model::policy::Rank;
use laxity_model::{ActivityId, EventKind, Instant, Priority};
use rtrb::{Consumer, Producer, RingBuffer};

use super::queue::{NoPacket, Putter, Queue, queue};
use crate::buffers::{Buffer, Filled, Sleeper};
use crate::client::{Client, Context, Effects, News};

/// What the rate and the burst that a client states are of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unit {
    /// Each packet is one.
    Packets,
    /// Each packet is its bytes.
    Bytes,
}

/// How whoever takes the packets is made as urgent as they are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ranks {
    /// A thread, with two priorities.
    Thread {
        /// For what is critical.
        critical: Priority,
        /// For what has come before its time.
        workahead: Priority,
    },
    /// A handler of an executor that goes by deadlines. What has come before its time is due at the end of time, behind whatever has a deadline.
    Handler,
}

impl Ranks {
    const fn critical(self, due: &Due) -> Rank {
        match self {
            Self::Thread { critical, .. } => Rank::Priority(critical),
            Self::Handler => Rank::Deadline(due.deadline),
        }
    }

    const fn workahead(self) -> Rank {
        match self {
            Self::Thread { workahead, .. } => Rank::Priority(workahead),
            Self::Handler => Rank::Deadline(Instant::MAX),
        }
    }
}

/// What a client states, and who takes its packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// Rate, burst and delay.
    pub stated: Stated,
    /// What these are of.
    pub unit: Unit,
    /// Who takes the packets, and nothing else.
    pub activity: ActivityId,
    /// How urgent that is.
    pub ranks: Ranks,
}

/// What both sides have.
struct Both {
    activity: ActivityId,
    ranks: Ranks,
    /// Packets that are waiting or at work.
    open: AtomicUsize,
}

impl Both {
    /// Makes the activity as urgent as this packet is, and arranges that it is more so when the packet's time comes.
    fn rank(&self, due: &Due, now: Instant, raise: &mut dyn FnMut(ActivityId, Rank, Instant)) {
        let critical = self.ranks.critical(due);
        match due.turns_critical(now) {
            // In this order: what is for now takes away what was arranged for a packet that is done.
            Some(at) => {
                raise(self.activity, self.ranks.workahead(), now);
                raise(self.activity, critical, at);
            }
            None => raise(self.activity, critical, now),
        }
    }
}

/// It says when each packet is due, and queues it.
pub struct DueClient<M: Memory> {
    putter: Putter<M>,
    dues: Producer<Due>,
    urgency: Urgency,
    unit: Unit,
    both: Arc<Both>,
}

/// The packets of a client, with what they are due; one takes them.
pub struct DueQueue<M: Memory> {
    packets: Queue<M>,
    dues: Consumer<Due>,
    both: Arc<Both>,
    /// Whether the packet that was taken last is still at work.
    is_at_work: bool,
}

/// A packet, and what is due.
pub struct Taken<M: Memory> {
    /// The packet.
    pub packet: Buffer<M, Filled>,
    /// When it turns critical, by when it has to be processed, and whether the sender keeps its promise with it.
    pub due: Due,
}

/// A client with this many buffers, and the queue that one activity takes its packets from.
#[must_use]
pub fn client<M: Memory>(
    buffers: usize,
    terms: Terms,
    sleeper: &Sleeper,
) -> (DueClient<M>, DueQueue<M>) {
    let (putter, packets) = queue(buffers, sleeper);
    let (producer, consumer) = RingBuffer::new(buffers);
    let both = Arc::new(Both {
        activity: terms.activity,
        ranks: terms.ranks,
        open: AtomicUsize::new(0),
    });
    let client = DueClient {
        putter,
        dues: producer,
        urgency: Urgency::new(terms.stated),
        unit: terms.unit,
        both: Arc::clone(&both),
    };
    let queue = DueQueue {
        packets,
        dues: consumer,
        both,
        is_at_work: false,
    };
    (client, queue)
}

impl<M: Memory> Client<M> for DueClient<M> {
    fn receive(&mut self, packet: Buffer<M, Filled>, context: &mut Context<'_>) {
        let now = context.now();
        let at = packet.arrived().map_or(now, |arrived| arrived.at);
        let count = match self.unit {
            Unit::Packets => 1,
            Unit::Bytes => u32::try_from(packet.bytes().len()).unwrap_or(u32::MAX),
        };
        // One that finds no room has come all the same, and counts against what was promised.
        let due = self.urgency.arrived(at, count);
        // There are no fewer of these than packets that wait.
        if self.dues.push(due).is_err() {
            return context.refuse();
        }
        // Before it can be taken: who takes it has the last word.
        if self.both.open.fetch_add(1, Ordering::SeqCst) == 0 {
            self.both.rank(&due, now, &mut |activity, rank, at| {
                context.raise(activity, rank, at);
            });
        }
        self.putter.put(packet, context);
    }

    fn told(&mut self, news: News, _: &mut Context<'_>) {
        self.putter.told(news);
    }
}

impl<M: Memory> DueQueue<M> {
    /// The packet taken before is done. The next one, and the activity is as urgent as that from now on; `None` if there is none now.
    ///
    /// # Errors
    ///
    /// [`NoPacket::Over`].
    pub fn try_next(
        &mut self,
        now: Instant,
        effects: &mut dyn Effects,
    ) -> Result<Option<Taken<M>>, NoPacket> {
        self.done();
        let packet = self.packets.try_next()?;
        Ok(packet.and_then(|packet| self.taken(packet, now, effects)))
    }

    /// The same, waiting for one, no longer than until then. `clock` tells the time when that is over.
    ///
    /// # Errors
    ///
    /// [`NoPacket`].
    pub fn next(
        &mut self,
        until: Option<Instant>,
        clock: impl FnOnce() -> Instant,
        effects: &mut dyn Effects,
    ) -> Result<Taken<M>, NoPacket> {
        self.done();
        let packet = self.packets.next(until)?;
        let taken = self.taken(packet, clock(), effects);
        taken.ok_or(NoPacket::Over)
    }

    fn done(&mut self) {
        if std::mem::take(&mut self.is_at_work) {
            self.both.open.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn taken(
        &mut self,
        packet: Buffer<M, Filled>,
        now: Instant,
        effects: &mut dyn Effects,
    ) -> Option<Taken<M>> {
        // It was pushed before its packet was.
        let due = self.dues.pop().ok()?;
        self.is_at_work = true;
        effects.record(EventKind::Deliver, packet.as_delivered(now));
        self.both.rank(&due, now, &mut |activity, rank, at| {
            effects.raise(activity, rank, at);
        });
        Some(Taken { packet, due })
    }
}
