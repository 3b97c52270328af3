//! `EarlyDemuxClient` (§3.2, §5): a client for one connection, with buffers, queue and threads of its own. Whose a packet is has been found out
//! before any thread looks at it, so that threads are as urgent as their connection, and no packet waits behind another's.

use laxity_model::ActivityId;
use laxity_model::nif::link::Memory;
use laxity_model::policy::Rank;

use super::queue::{Put, Putter, Queue, queue};
use crate::buffers::{Buffer, Filled, Sleeper};
use crate::client::{Client, Context, News};

/// It takes the packets of one connection, and queues them.
pub struct EarlyDemuxClient<M: Memory> {
    putter: Putter<M>,
    raises: Option<(ActivityId, Rank)>,
}

/// A client with this many buffers, or a pool that may [grow](crate::Driver::grow) to so many, and the queue that its threads take its packets from. When a packet finds the queue empty, the
/// activity that takes them is raised to this rank, from the packet's arrival on.
#[must_use]
pub fn client<M: Memory>(
    buffers: usize,
    raises: Option<(ActivityId, Rank)>,
    sleeper: &Sleeper,
) -> (EarlyDemuxClient<M>, Queue<M>) {
    let (putter, queue) = queue(buffers, sleeper);
    (EarlyDemuxClient { putter, raises }, queue)
}

impl<M: Memory> Client<M> for EarlyDemuxClient<M> {
    fn receive(&mut self, packet: Buffer<M, Filled>, context: &mut Context<'_>) {
        let at = packet.arrived().map_or(context.now(), |arrived| arrived.at);
        let put = self.putter.put(packet, context);
        if let (Put::First, Some((activity, rank))) = (put, self.raises) {
            context.raise(activity, rank, at);
        }
    }

    fn told(&mut self, news: News, _: &mut Context<'_>) {
        self.putter.told(news);
    }
}
