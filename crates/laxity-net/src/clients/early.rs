//! `EarlyDemuxClient` (§3.2, §5): a client for one connection, with buffers, queue and threads of its own. Whose a packet is has been found out
//! before any thread looks at it, so that threads are as urgent as their connection, and no packet waits behind another's.

use laxity_model::nif::link::Memory;
use laxity_model::nif::qos::{AtArrival, Ranks, Terms};
use laxity_model::nif::urgency::{Stated, Unit};
use laxity_model::{ActivityId, Priority, Service};

use super::group::{Seat, group};
use super::queue::{Putter, Queue, queue};
use crate::buffers::{Buffer, Filled, Sleeper};
use crate::client::{Client, Context, News};

/// It takes the packets of one connection, and queues them.
pub struct EarlyDemuxClient<M: Memory> {
    putter: Putter<M>,
    seat: Option<Seat>,
}

/// A client with this many buffers, or a pool that may [grow](crate::Driver::grow) to so many, and the queue that its threads take its packets from. When a packet finds the queue empty, the
/// activity that takes them is raised to this priority, from the packet's arrival on.
#[must_use]
pub fn client<M: Memory>(
    buffers: usize,
    raises: Option<(ActivityId, Priority)>,
    sleeper: &Sleeper,
) -> (EarlyDemuxClient<M>, Queue<M>) {
    let seat = raises.map(|(activity, priority)| {
        let terms = Terms {
            stated: Stated::ANYTHING,
            unit: Unit::Packets,
            packet: Service::ZERO,
            activity,
            ranks: Ranks::Thread {
                critical: priority,
                workahead: priority,
            },
        };
        group(AtArrival, &[terms]).remove(0)
    });
    let (putter, queue) = queue(buffers, sleeper);
    (EarlyDemuxClient { putter, seat }, queue)
}

impl<M: Memory> Client<M> for EarlyDemuxClient<M> {
    fn receive(&mut self, packet: Buffer<M, Filled>, context: &mut Context<'_>) {
        let now = context.now();
        let at = packet.arrived().map_or(now, |arrived| arrived.at);
        let number = self.putter.put(packet, context);
        if let (Some(seat), Some(number)) = (&self.seat, number) {
            let raise = &mut |activity, rank, at| context.raise(activity, rank, at);
            seat.arrived_as(number, at, now, raise);
        }
    }

    fn told(&mut self, news: News, _: &mut Context<'_>) {
        self.putter.told(news);
    }
}
