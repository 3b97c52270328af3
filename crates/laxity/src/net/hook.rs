//! Clients that are found at an interface's hook, before a packet is queued anywhere.
//!
//! A client has a credit there for each buffer that it gave to the driver, and the interface has memory posted for each credit: so its packets find both, and a packet without a credit is dropped where that costs least.
//! The program knows clients by numbers of its own. One that is given up is nobody's for a while: of the packets that were on their way then, none is another's.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laxity_linux::net::xdp::early::{Early, Flow};
use laxity_model::nif::registry::ClientId;
use laxity_model::{Instant, Span};

use super::error::Error;
use super::options::EarlyOptions;

/// A number is nobody's for so long. A packet is between the hook and the driver for as long as the driver's thread is kept from its processor, at the most.
const RESTS: Span = Span::from_secs(1);
/// No client.
const NOBODY: u32 = u32::MAX;

/// Who is found at the hook of an interface.
#[derive(Debug)]
pub(super) struct Hook {
    early: Arc<Early>,
    /// The driver's name of each of the program's clients.
    clients: Box<[AtomicU32]>,
    unused: Mutex<Unused>,
}

#[derive(Debug)]
struct Unused {
    /// Numbers, those that were given up first before others, and from when on they may be used.
    numbers: VecDeque<(Instant, u32)>,
    flows: u32,
    buffers: u32,
}

/// How many numbers of clients the program has: that of what is of no flow, and so many that all flows can be given up at once and others begin.
pub(super) const fn numbers(options: &EarlyOptions) -> u32 {
    options.flows.saturating_mul(2).saturating_add(1)
}

/// A flow that is found at the hook: what its client gives is told there, too.
#[derive(Debug)]
pub(super) struct Steered {
    hook: Arc<Hook>,
    flow: Flow,
    number: u32,
    buffers: u32,
}

impl Hook {
    /// As the interface was opened.
    pub(super) fn new(early: Arc<Early>, options: &EarlyOptions) -> Arc<Self> {
        Arc::new(Self {
            early,
            clients: (0..numbers(options))
                .map(|_| AtomicU32::new(NOBODY))
                .collect(),
            unused: Mutex::new(Unused {
                numbers: (1..numbers(options))
                    .map(|number| (Instant::ZERO, number))
                    .collect(),
                flows: options.flows,
                buffers: options.buffers,
            }),
        })
    }

    /// Whose a packet is that the program found to be of this number's client. What is of no flow is still to be found out.
    #[inline]
    pub(super) fn client_of(&self, number: u32) -> Option<u32> {
        let client = self.clients.get(number as usize)?.load(Ordering::Relaxed);
        (client != NOBODY).then_some(client)
    }

    /// Memory is posted for so many packets that are of no flow.
    pub(super) fn open_rest(&self, posted: u32) {
        self.early.give(0, posted);
    }

    /// It is again for one of those.
    #[inline]
    pub(super) fn give_rest(&self) {
        self.early.give(0, 1);
    }

    fn unused(&self) -> MutexGuard<'_, Unused> {
        self.unused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on packets of this flow are this client's, which has given so many buffers. What came before is found by the driver, and comes first.
    pub(super) fn steer(
        self: &Arc<Self>,
        flow: Flow,
        client: ClientId,
        buffers: u32,
        now: Instant,
    ) -> Result<Steered, Error> {
        let mut unused = self.unused();
        let rested = unused.numbers.front().filter(|(from, _)| *from <= now);
        let is_room = unused.flows > 0 && unused.buffers >= buffers;
        let Some((_, number)) = rested.copied().filter(|_| is_room) else {
            return Err(Error::TooManyFlows);
        };
        unused.numbers.pop_front();
        unused.flows -= 1;
        unused.buffers -= buffers;
        drop(unused);
        self.clients[number as usize].store(client.0, Ordering::Relaxed);
        self.early.give(number, buffers);
        let steered = Steered {
            hook: Arc::clone(self),
            flow,
            number,
            buffers,
        };
        match self.early.steer(&flow, number, 0) {
            Ok(()) => Ok(steered),
            Err(errno) => {
                steered.end(now);
                Err(Error::Hook(io::Error::from(errno)))
            }
        }
    }
}

impl Steered {
    /// Its client has given a buffer again. No more credits than buffers: one that was spent on a packet that the driver found had cost none.
    pub(super) fn gave(&self) {
        if self.hook.early.credits(self.number) < self.buffers {
            self.hook.early.give(self.number, 1);
        }
    }

    /// Packets that were dropped at the hook for want of a buffer.
    pub(super) fn dropped(&self) -> u64 {
        self.hook.early.dropped(self.number)
    }

    /// The flow is nobody's any more.
    pub(super) fn end(&self, now: Instant) {
        // It is only not there where it could not be entered.
        let _ = self.hook.early.forget(&self.flow);
        self.hook.early.take_back(self.number);
        self.hook.clients[self.number as usize].store(NOBODY, Ordering::Relaxed);
        let mut unused = self.hook.unused();
        unused.flows += 1;
        unused.buffers += self.buffers;
        let from = now.checked_add(RESTS).unwrap_or(Instant::MAX);
        unused.numbers.push_back((from, self.number));
    }
}
