//! `LateDemuxClient` (§3.2): one client for a whole protocol stack, usually the default, with one queue and a pool of threads that find
//! out whose each packet is.

use laxity_model::nif::link::Memory;

use super::queue::{Putter, Queue, queue};
use crate::buffers::{Buffer, Filled, Sleeper};
use crate::client::{Client, Context, News};

/// It takes what nobody else registered for, and queues it.
pub struct LateDemuxClient<M: Memory>(Putter<M>);

/// A client with this many buffers, or a pool that may [grow](crate::Driver::grow) to so many, and the queue that any number of threads take its packets from, first come, first served.
#[must_use]
pub fn client<M: Memory>(buffers: usize, sleeper: &Sleeper) -> (LateDemuxClient<M>, Queue<M>) {
    let (putter, queue) = queue(buffers, sleeper);
    (LateDemuxClient(putter), queue)
}

impl<M: Memory> Client<M> for LateDemuxClient<M> {
    fn receive(&mut self, packet: Buffer<M, Filled>, context: &mut Context<'_>) {
        self.0.put(packet, context);
    }

    fn told(&mut self, news: News, _: &mut Context<'_>) {
        self.0.told(news);
    }
}
