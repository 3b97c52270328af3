//! A tap that records packets for another thread, and is never in the way: it copies each into memory that it was given before, and counts what it has none for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use laxity_linux::host::alone::Futex;
use laxity_model::Instant;
use laxity_model::base::bell::Bell;
use laxity_model::nif::exchange::Outcome;
use laxity_model::nif::registry::ClientId;
use laxity_net::buffers::Arrived;
use laxity_net::client::{Context, Direction, Loan, News, Peek};
use laxity_net::clients::NoPacket;
use rtrb::{Consumer, Producer, RingBuffer};

/// A packet that was seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Captured {
    /// When it arrived, or was handed to the interface.
    pub at: Instant,
    /// How it arrived; `None` of one that was sent.
    pub arrived: Option<Arrived>,
    /// Its bytes, as many as were to be kept.
    pub bytes: Vec<u8>,
    /// How many it has.
    pub length: usize,
    /// Whose it is, if it arrived and is anybody's.
    pub whose: Option<ClientId>,
    /// What became of it, if it arrived.
    pub outcome: Option<Outcome>,
}

#[derive(Default)]
struct Common {
    recorded: Bell,
    missed: AtomicU64,
    is_over: AtomicBool,
}

/// The tap.
pub struct Recorder {
    empty: Consumer<Vec<u8>>,
    full: Producer<Captured>,
    /// Seen, and nobody knows yet what becomes of it.
    begun: Option<Captured>,
    common: Arc<Common>,
}

/// What it records, for one thread.
pub struct Recording {
    empty: Producer<Vec<u8>>,
    full: Consumer<Captured>,
    common: Arc<Common>,
}

/// A tap, and what it records: of each packet so many bytes, and as many packets as wait at the most.
#[must_use]
pub fn recorder(packets: usize, bytes: usize) -> (Recorder, Recording) {
    let (mut give, empty) = RingBuffer::new(packets);
    let (full, take) = RingBuffer::new(packets);
    for _ in 0..packets {
        // There is room for as many.
        let _ = give.push(Vec::with_capacity(bytes));
    }
    let common = Arc::<Common>::default();
    let recorder = Recorder {
        empty,
        full,
        begun: None,
        common: Arc::clone(&common),
    };
    let recording = Recording {
        empty: give,
        full: take,
        common,
    };
    (recorder, recording)
}

impl Recorder {
    fn record(&mut self, captured: Captured) {
        // There are no more than there is room for.
        let _ = self.full.push(captured);
        self.common.recorded.ring(&Futex);
    }

    fn end(&self) {
        self.common.is_over.store(true, Ordering::SeqCst);
        self.common.recorded.ring(&Futex);
    }
}

impl Peek for Recorder {
    fn look(&mut self, packet: Loan<'_>, context: &mut Context<'_>) {
        if self.common.is_over.load(Ordering::SeqCst) {
            return;
        }
        let Ok(mut bytes) = self.empty.pop() else {
            self.common.missed.fetch_add(1, Ordering::Relaxed);
            return;
        };
        bytes.clear();
        let length = packet.bytes.len();
        bytes.extend_from_slice(&packet.bytes[..length.min(bytes.capacity())]);
        let captured = Captured {
            at: packet.arrived.map_or(context.now(), |arrived| arrived.at),
            arrived: packet.arrived,
            bytes,
            length,
            whose: None,
            outcome: None,
        };
        match packet.direction {
            Direction::In => self.begun = Some(captured),
            Direction::Out => self.record(captured),
        }
    }

    fn became(&mut self, whose: Option<ClientId>, outcome: Outcome) {
        if let Some(captured) = self.begun.take() {
            self.record(Captured {
                whose,
                outcome: Some(outcome),
                ..captured
            });
        }
    }

    fn told(&mut self, news: News, _: &mut Context<'_>) {
        if news == News::Gone {
            self.end();
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.end();
    }
}

impl Recording {
    /// The packet that was recorded first of those that were not taken yet, waiting for one, no longer than until then.
    ///
    /// # Errors
    ///
    /// [`NoPacket`].
    pub fn next(&mut self, until: Option<Instant>) -> Result<Captured, NoPacket> {
        let Self { full, common, .. } = self;
        let next = common.recorded.wait_for(&Futex, until, || {
            // In this order: what was recorded before it was over is seen.
            let is_over = common.is_over.load(Ordering::SeqCst);
            match full.pop() {
                Ok(captured) => Some(Ok(captured)),
                Err(_) => is_over.then_some(Err(NoPacket::Over)),
            }
        });
        next.unwrap_or(Err(NoPacket::TimeUp))
    }

    /// Its memory may be used for another.
    pub fn done(&mut self, captured: Captured) {
        // There are no more than there is room for; where it came from elsewhere, it is dropped.
        let _ = self.empty.push(captured.bytes);
    }

    /// Nothing more is recorded; what is comes as before, and then [`NoPacket::Over`].
    pub fn stop(&self) {
        self.common.is_over.store(true, Ordering::SeqCst);
    }

    /// How many packets were not recorded since too many waited.
    pub fn missed(&self) -> u64 {
        self.common.missed.load(Ordering::Relaxed)
    }
}
