//! Interfaces whose memory is counted, and clients that keep what they get.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use laxity_model::Instant;
use laxity_model::nif::link::{Facts, Left, Link, LinkError, Losses, Memory, Received, Stamp};
use laxity_model::nif::registry::{Circuit, Circuits, ClientId};
use laxity_net::buffers::{Buffer, Filled, Pool};
use laxity_net::client::{Client, Context, Loan, News, Peek};
use laxity_net::driver::{Driver, Host, Limits};
use laxity_net::emulated::{End, Faults, Wire};

/// Memory of an interface, of which is known how much there is.
pub(crate) struct Counted {
    bytes: Box<[u8]>,
    alive: Arc<AtomicUsize>,
}

impl Memory for Counted {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

/// An end of a wire with such memory.
pub(crate) struct CountedEnd {
    end: End,
    pub(crate) facts: Facts,
    /// Memory that the end has, without its bytes.
    inside: Vec<Counted>,
    pub(crate) alive: Arc<AtomicUsize>,
    /// What arrives has a checksum that its sender only began.
    pub(crate) is_begun: Arc<AtomicBool>,
    /// Who says when it arrived.
    pub(crate) stamp: Stamp,
}

impl CountedEnd {
    pub(crate) fn new(end: End) -> Self {
        Self {
            facts: end.facts().clone(),
            end,
            inside: Vec::new(),
            alive: Arc::default(),
            is_begun: Arc::default(),
            stamp: Stamp::Wire,
        }
    }

    fn enter(&mut self, mut memory: Counted) -> Box<[u8]> {
        let bytes = std::mem::take(&mut memory.bytes);
        self.inside.push(memory);
        bytes
    }

    fn leave(&mut self, bytes: Box<[u8]>) -> Counted {
        let mut memory = self.inside.pop().expect("no more leaves than has entered");
        memory.bytes = bytes;
        memory
    }
}

impl Link for CountedEnd {
    type Memory = Counted;

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn allocate(&mut self, packets: usize) -> Result<Vec<Counted>, LinkError> {
        let all = self.end.allocate(packets)?.into_iter();
        self.alive.fetch_add(packets, Ordering::SeqCst);
        let alive = &self.alive;
        Ok(all
            .map(|bytes| Counted {
                bytes,
                alive: Arc::clone(alive),
            })
            .collect())
    }

    fn post(&mut self, memory: Counted) -> Result<(), Counted> {
        let bytes = self.enter(memory);
        self.end.post(bytes).map_err(|bytes| self.leave(bytes))
    }

    fn receive(&mut self, now: Instant) -> Result<Option<Received<Counted>>, LinkError> {
        let received = self.end.receive(now)?;
        Ok(received.map(|packet| Received {
            memory: self.leave(packet.memory),
            length: packet.length,
            at: packet.at,
            stamp: self.stamp,
            early: packet.early,
            left: Left {
                checksum: self.is_begun.load(Ordering::SeqCst),
                ..packet.left
            },
        }))
    }

    fn send(
        &mut self,
        memory: Counted,
        length: usize,
        now: Instant,
    ) -> Result<(), (Counted, LinkError)> {
        let bytes = self.enter(memory);
        let sent = self.end.send(bytes, length, now);
        sent.map_err(|(bytes, error)| (self.leave(bytes), error))
    }

    fn has_discarded(&self) -> bool {
        self.end.has_discarded()
    }

    fn flush(&mut self, now: Instant) -> Result<(), LinkError> {
        self.end.flush(now)
    }

    fn is_silent(&self) -> bool {
        self.end.is_silent()
    }

    fn has_thrown_away(&self) -> bool {
        self.end.has_thrown_away()
    }

    fn ended(&mut self, client: ClientId) {
        self.end.ended(client);
    }

    fn sent(&mut self, now: Instant) -> Option<Counted> {
        self.end.sent(now).map(|bytes| self.leave(bytes))
    }

    fn reclaim(&mut self) -> Option<Counted> {
        self.end.reclaim().map(|bytes| self.leave(bytes))
    }

    fn losses(&self) -> Losses {
        self.end.losses()
    }
}

/// A client's own kind of memory, smaller than any interface's.
pub(crate) struct Own(pub(crate) [u8; Self::ROOM]);

impl Own {
    pub(crate) const ROOM: usize = 256;
}

impl Memory for Own {
    fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// What a client did, for whoever looks from outside.
pub(crate) struct Seen<M: Memory> {
    /// What it got and still has.
    pub(crate) packets: Vec<Buffer<M, Filled>>,
    /// Everything it got or looked at.
    pub(crate) bytes: Vec<Vec<u8>>,
    pub(crate) news: Vec<News>,
    pub(crate) sent: Vec<(u64, Result<(), LinkError>)>,
}

/// A client that keeps everything, and may panic at the next call.
pub(crate) struct Keeper<M: Memory> {
    pub(crate) seen: Arc<Mutex<Seen<M>>>,
    pub(crate) panics: Arc<AtomicBool>,
}

impl<M: Memory> Clone for Keeper<M> {
    fn clone(&self) -> Self {
        Self {
            seen: Arc::clone(&self.seen),
            panics: Arc::clone(&self.panics),
        }
    }
}

impl<M: Memory> Default for Keeper<M> {
    fn default() -> Self {
        Self {
            seen: Arc::new(Mutex::new(Seen {
                packets: Vec::new(),
                bytes: Vec::new(),
                news: Vec::new(),
                sent: Vec::new(),
            })),
            panics: Arc::default(),
        }
    }
}

impl<M: Memory> Keeper<M> {
    fn panic_if_told(&self) {
        if self.panics.swap(false, Ordering::SeqCst) {
            // Without a message for each.
            std::panic::resume_unwind(Box::new(()));
        }
    }

    /// What it has been told since.
    pub(crate) fn news(&self) -> Vec<News> {
        std::mem::take(&mut self.seen.lock().unwrap().news)
    }

    /// What it has got or looked at since.
    pub(crate) fn bytes(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.seen.lock().unwrap().bytes)
    }

    /// What it was told of its frames since.
    pub(crate) fn sent(&self) -> Vec<(u64, Result<(), LinkError>)> {
        std::mem::take(&mut self.seen.lock().unwrap().sent)
    }

    /// A packet that it has.
    pub(crate) fn pop(&self) -> Option<Buffer<M, Filled>> {
        self.seen.lock().unwrap().packets.pop()
    }
}

impl<M: Memory> Client<M> for Keeper<M> {
    fn receive(&mut self, packet: Buffer<M, Filled>, _: &mut Context<'_>) {
        self.panic_if_told();
        let mut seen = self.seen.lock().unwrap();
        seen.bytes.push(packet.bytes().to_vec());
        seen.packets.push(packet);
    }

    fn sent(&mut self, tag: u64, outcome: Result<(), LinkError>, _: &mut Context<'_>) {
        self.panic_if_told();
        self.seen.lock().unwrap().sent.push((tag, outcome));
    }

    fn told(&mut self, news: News, _: &mut Context<'_>) {
        self.panic_if_told();
        self.seen.lock().unwrap().news.push(news);
    }
}

impl Peek for Keeper<Own> {
    fn look(&mut self, packet: Loan<'_>, _: &mut Context<'_>) {
        self.panic_if_told();
        self.seen.lock().unwrap().bytes.push(packet.bytes.to_vec());
    }

    fn told(&mut self, news: News, _: &mut Context<'_>) {
        self.seen.lock().unwrap().news.push(news);
    }
}

/// A driver over a wire.
pub(crate) type Near = Driver<CountedEnd, Circuits>;

/// Two drivers, a wire between them.
pub(crate) struct Pair {
    pub(crate) wire: Wire,
    pub(crate) near: Near,
    pub(crate) far: Near,
    /// How much memory there is of the far end's kind.
    pub(crate) alive: Arc<AtomicUsize>,
}

pub(crate) fn pair(faults: Faults, limits: Limits) -> Pair {
    let (wire, near, far) = Wire::new(faults, 7);
    let far = CountedEnd::new(far);
    let alive = Arc::clone(&far.alive);
    let driver = |end| Driver::new(end, Circuits::default(), limits, Host::default()).unwrap();
    Pair {
        wire,
        near: driver(CountedEnd::new(near)),
        far: driver(far),
        alive,
    }
}

pub(crate) const fn circuit(channel: u16) -> Circuit {
    Circuit { path: 0, channel }
}

/// A packet of a circuit, of this length at least, filled with a byte.
pub(crate) fn packet(channel: u16, fill: u8, length: usize) -> Vec<u8> {
    let mut packet = circuit(channel).header().to_vec();
    packet.resize(length.max(packet.len()), fill);
    packet
}

/// Sends bytes, and fails if no buffer is free.
pub(crate) fn send<M: Memory>(pool: &Pool<M>, bytes: &[u8]) {
    let filled = pool.take().unwrap().fill(bytes).unwrap();
    filled.send(Default::default()).unwrap();
}
