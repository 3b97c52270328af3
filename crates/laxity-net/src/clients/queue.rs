//! A queue of packets from a client's call to the threads that take them. Who puts waits for nobody: only takers share a lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use laxity_model::Instant;
use laxity_model::base::bell::Bell;
use laxity_model::nif::link::Memory;
use rtrb::{Consumer, Producer, RingBuffer};

use crate::buffers::{Buffer, Filled, Sleeper};
use crate::client::{Context, News};
use crate::lock;

/// What both sides have.
struct Common {
    arrived: Bell,
    is_over: AtomicBool,
    sleeper: Sleeper,
}

/// The client's side.
pub(super) struct Putter<M: Memory> {
    packets: Producer<Buffer<M, Filled>>,
    common: Arc<Common>,
}

/// The threads' side: as many as there are handles.
pub struct Queue<M: Memory> {
    packets: Arc<Mutex<Consumer<Buffer<M, Filled>>>>,
    common: Arc<Common>,
}

impl<M: Memory> Clone for Queue<M> {
    fn clone(&self) -> Self {
        Self {
            packets: Arc::clone(&self.packets),
            common: Arc::clone(&self.common),
        }
    }
}

/// Why no packet comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoPacket {
    /// Time is up.
    #[error("no packet has arrived in time")]
    TimeUp,
    /// The client has ended, and all that arrived has been taken.
    #[error("no packet will arrive any more")]
    Over,
}

/// A queue for as many packets as its client may have buffers: what comes beyond that is refused.
pub(super) fn queue<M: Memory>(most: usize, sleeper: &Sleeper) -> (Putter<M>, Queue<M>) {
    let (producer, consumer) = RingBuffer::new(most);
    let common = Arc::new(Common {
        arrived: Bell::default(),
        is_over: AtomicBool::new(false),
        sleeper: sleeper.clone(),
    });
    let putter = Putter {
        packets: producer,
        common: Arc::clone(&common),
    };
    let packets = Arc::new(Mutex::new(consumer));
    (putter, Queue { packets, common })
}

impl<M: Memory> Putter<M> {
    /// Queues a packet, and tells how many wait with it; one that finds no room goes home, and is [refused](Context::refuse).
    pub(super) fn put(
        &mut self,
        packet: Buffer<M, Filled>,
        context: &mut Context<'_>,
    ) -> Option<u32> {
        let waiting = self.packets.buffer().capacity() - self.packets.slots();
        if self.packets.push(packet).is_err() {
            context.refuse();
            return None;
        }
        self.common.arrived.ring(&self.common.sleeper);
        Some(u32::try_from(waiting + 1).unwrap_or(u32::MAX))
    }

    /// Whether one more would be queued.
    pub(super) fn has_room(&self) -> bool {
        self.packets.slots() > 0
    }

    pub(super) fn told(&self, news: News) {
        if news == News::Gone {
            self.end();
        }
    }

    fn end(&self) {
        self.common.is_over.store(true, Ordering::SeqCst);
        self.common.arrived.ring(&self.common.sleeper);
    }
}

impl<M: Memory> Drop for Putter<M> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<M: Memory> Queue<M> {
    /// The packet that waits for the longest time; `None` if there is none now.
    ///
    /// # Errors
    ///
    /// [`NoPacket::Over`].
    pub fn try_next(&self) -> Result<Option<Buffer<M, Filled>>, NoPacket> {
        // In this order: what was put before it was over is seen.
        let is_over = self.common.is_over.load(Ordering::SeqCst);
        let mut packets = lock(&self.packets);
        match packets.pop() {
            Ok(packet) => Ok(Some(packet)),
            Err(_) if is_over => Err(NoPacket::Over),
            Err(_) => Ok(None),
        }
    }

    /// Whether none waits now.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let packets = lock(&self.packets);
        packets.is_empty()
    }

    /// Looks at each that waits now, in their order, and takes none.
    pub fn look(&self, look: impl FnMut(&Buffer<M, Filled>)) {
        let mut packets = lock(&self.packets);
        let waiting = packets.slots();
        if let Ok(chunk) = packets.read_chunk(waiting) {
            let (first, second) = chunk.as_slices();
            first.iter().chain(second).for_each(look);
        }
    }

    /// [The packet](Self::try_next) that waits for the longest time, waiting for one, no longer than until then.
    ///
    /// # Errors
    ///
    /// [`NoPacket`].
    pub fn next(&self, until: Option<Instant>) -> Result<Buffer<M, Filled>, NoPacket> {
        let Common {
            arrived, sleeper, ..
        } = &*self.common;
        let next = arrived.wait_for(sleeper, until, || self.try_next().transpose());
        next.unwrap_or(Err(NoPacket::TimeUp))
    }
}
