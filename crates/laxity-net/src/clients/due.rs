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
//! A packet that arrives while another one is waiting or at work makes it no less urgent, or it would hold up the one before it. So there is one who takes.
//!
//! How urgent that is a [module](laxity_model::nif::qos) says, to which both report: each client for itself as above ([`AtArrival`]), or several beside each other.
//!
//! In a program it is [declared](laxity_model::Program::declare_raise) how urgent the activity may become, and admission counts it so: a thread that is placed as for workahead, up to the priority of what is critical; what is on an
//! executor, due a client's delay after its release. What the activity is made is over when it waits.

use laxity_model::nif::link::Memory;
use laxity_model::nif::qos::{AtArrival, Terms};
use laxity_model::nif::urgency::{Due, Unit, Urgency};
use laxity_model::{EventKind, Instant};

use super::group::{Seat, group};
use super::queue::{NoPacket, Putter, Queue, queue};
use crate::buffers::{Buffer, Filled, Sleeper};
use crate::client::{Client, Context, Effects, News};

/// It says when each packet is due, and queues it.
pub struct DueClient<M: Memory> {
    putter: Putter<M>,
    urgency: Urgency,
    seat: Seat,
}

/// The packets of a client, with what they are due; one takes them.
pub struct DueQueue<M: Memory> {
    packets: Queue<M>,
    seat: Seat,
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

/// A client with this many buffers, and the queue that one activity takes its packets from. It is for itself: as urgent as its own packets are.
#[must_use]
pub fn client<M: Memory>(
    buffers: usize,
    terms: Terms,
    sleeper: &Sleeper,
) -> (DueClient<M>, DueQueue<M>) {
    let mut seats = group(AtArrival, &[terms]);
    client_in(buffers, seats.remove(0), sleeper)
}

/// The same of a client that has this seat in a [group](super::group).
#[must_use]
pub fn client_in<M: Memory>(
    buffers: usize,
    seat: Seat,
    sleeper: &Sleeper,
) -> (DueClient<M>, DueQueue<M>) {
    let (putter, packets) = queue(buffers, sleeper);
    let queue = DueQueue {
        packets,
        seat: seat.again(),
        is_at_work: false,
    };
    let client = DueClient {
        putter,
        urgency: Urgency::new(seat.terms().stated),
        seat,
    };
    (client, queue)
}

impl<M: Memory> Client<M> for DueClient<M> {
    fn receive(&mut self, mut packet: Buffer<M, Filled>, context: &mut Context<'_>) {
        let now = context.now();
        let at = packet.arrived().map_or(now, |arrived| arrived.at);
        let count = match self.seat.terms().unit {
            Unit::Packets => 1,
            Unit::Bytes => u32::try_from(packet.bytes().len()).unwrap_or(u32::MAX),
        };
        // One that finds no room has come all the same, and counts against what was promised.
        let due = self.urgency.arrived(at, count);
        if !self.putter.has_room() {
            return context.refuse();
        }
        packet.set_due(due);
        let raise = &mut |activity, rank, at| context.raise(activity, rank, at);
        self.seat.arrived(due.logical, now, raise);
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

    /// The packets themselves, to look at.
    pub(crate) fn packets(&self) -> Queue<M> {
        self.packets.clone()
    }

    fn done(&mut self) {
        if std::mem::take(&mut self.is_at_work) {
            self.seat.done();
        }
    }

    fn taken(
        &mut self,
        packet: Buffer<M, Filled>,
        now: Instant,
        effects: &mut dyn Effects,
    ) -> Option<Taken<M>> {
        let due = packet.due()?;
        self.is_at_work = true;
        effects.record(EventKind::Deliver, packet.as_delivered(now));
        let raise = &mut |activity, rank, at| effects.raise(activity, rank, at);
        self.seat.taken(due.logical, now, raise);
        Some(Taken { packet, due })
    }
}
