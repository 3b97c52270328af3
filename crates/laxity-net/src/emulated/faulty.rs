//! What goes wrong on a wire, in front of an interface that is there: frames are lost, doubled, late or wrong both ways, as on an emulated wire.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use laxity_model::base::random::SplitMix64;
use laxity_model::nif::frame::HEADER;
use laxity_model::nif::link::{Facts, Link, LinkError, Losses, Memory, Received};
use laxity_model::nif::registry::ClientId;
use laxity_model::nif::wire::{Faults, WHOLE, Way};
use laxity_model::{Instant, Span};

use super::wire::land;

/// Of what has arrived so much is taken with one look.
const PER_LOOK: usize = 64;
/// Until the next look where the interface takes no more frames.
const NO_ROOM: Span = Span::from_micros(100);

/// An interface behind such a wire. Each packet is copied twice on its way, so it is for an end that nobody measures; who polls its driver does so
/// again [when it says](Self::again), for what is late.
#[derive(Debug)]
pub struct Faulty<L: Link> {
    link: L,
    faults: Faults,
    inward: Way,
    outward: Way,
    /// What its driver has posted, and has sent.
    posted: VecDeque<L::Memory>,
    done: VecDeque<L::Memory>,
    /// Memory of its own that frames leave from.
    own: Vec<L::Memory>,
    /// Frames that the interface has.
    below: usize,
    losses: Losses,
    unsent: u64,
    /// The last look found a packet, and no memory for it.
    has_discarded: bool,
    again: Again,
}

/// When such an interface has something to do, though nothing arrives.
#[derive(Clone, Debug)]
pub struct Again(Arc<AtomicU64>);

impl Again {
    /// Then; `None`: not before something arrives or is sent.
    #[must_use]
    pub fn at(&self) -> Option<Instant> {
        let at = Instant::from_nanos(self.0.load(Ordering::Relaxed));
        (at < Instant::MAX).then_some(at)
    }
}

impl<L: Link> Faulty<L> {
    /// Has these faults happen to what this interface carries, each way alike, as follows from the seed. It needs memory of the interface's for so many packets each way.
    ///
    /// # Errors
    ///
    /// [`LinkError`]: the interface has not so much memory.
    pub fn new(mut link: L, faults: Faults, seed: u64, packets: usize) -> Result<Self, LinkError> {
        let mut seeds = SplitMix64::new(seed);
        let mut own = link.allocate(packets)?;
        own.extend(link.allocate(packets)?);
        for memory in own.drain(packets..) {
            // What it takes no more of it does without.
            link.post(memory).ok();
        }
        Ok(Self {
            link,
            faults,
            inward: Way::new(seeds.draw()),
            outward: Way::new(seeds.draw()),
            posted: VecDeque::new(),
            done: VecDeque::new(),
            own,
            below: 0,
            losses: Losses::default(),
            unsent: 0,
            has_discarded: false,
            again: Again(Arc::new(AtomicU64::new(Instant::MAX.as_nanos()))),
        })
    }

    /// How many frames the interface refused or threw away when they had come as far as it. Each was told as sent, as it would be over a wire that is cut behind.
    pub const fn unsent(&self) -> u64 {
        self.unsent
    }

    /// Tells when it is to be looked at again.
    pub fn again(&self) -> Again {
        self.again.clone()
    }

    /// Sends what has come as far, and tells when the next is to be looked at.
    fn send_landed(&mut self, now: Instant) {
        while let Some(memory) = self.link.sent(now) {
            self.below = self.below.saturating_sub(1);
            self.unsent += u64::from(self.link.has_thrown_away());
            self.own.push(memory);
        }
        let mut next = self.inward.next();
        while let Some(at) = self.outward.next() {
            let is_due = at <= now;
            let has_room = self.below < self.link.facts().reach && !self.own.is_empty();
            if !(is_due && has_room) {
                let at = if is_due { now + NO_ROOM } else { at };
                next = next.into_iter().chain([at]).min();
                break;
            }
            let (Some(flying), Some(mut memory)) = (self.outward.land(now), self.own.pop()) else {
                break;
            };
            let length = flying.bytes.len();
            memory.bytes_mut()[..length].copy_from_slice(&flying.bytes);
            self.outward.reuse(flying.bytes);
            match self.link.queue(memory, length, flying.told.1, now) {
                Ok(()) => self.below += 1,
                Err((memory, _)) => {
                    self.unsent += 1;
                    self.own.push(memory);
                }
            }
        }
        let next = next.map_or(Instant::MAX, |next| next.max(now));
        self.again.0.store(next.as_nanos(), Ordering::Relaxed);
    }
}

impl<L: Link> Link for Faulty<L> {
    type Memory = L::Memory;

    fn facts(&self) -> &Facts {
        self.link.facts()
    }

    fn allocate(&mut self, packets: usize) -> Result<Vec<L::Memory>, LinkError> {
        self.link.allocate(packets)
    }

    fn post(&mut self, memory: L::Memory) -> Result<(), L::Memory> {
        self.posted.push_back(memory);
        Ok(())
    }

    fn receive(&mut self, now: Instant) -> Result<Option<Received<L::Memory>>, LinkError> {
        for _ in 0..PER_LOOK {
            let packet = match self.link.receive(now)? {
                Some(packet) => packet,
                None if self.link.has_discarded() => continue,
                None => break,
            };
            let bytes = &packet.memory.bytes()[..packet.length];
            let told = (packet.stamp, packet.left);
            self.inward.fly(bytes, packet.at, told, &self.faults);
            // Whose it is the driver finds again: a fault may have changed that. It was posted there before.
            if let Err(memory) = self.link.post(packet.memory) {
                self.own.push(memory);
            }
        }
        let landed;
        (landed, self.has_discarded) =
            land(&mut self.inward, &mut self.posted, &mut self.losses, now);
        self.send_landed(now);
        Ok(landed)
    }

    fn has_discarded(&self) -> bool {
        self.has_discarded
    }

    fn send(
        &mut self,
        memory: L::Memory,
        length: usize,
        now: Instant,
    ) -> Result<(), (L::Memory, LinkError)> {
        let most = self.facts().mtu + HEADER;
        if length > most {
            return Err((memory, LinkError::TooLong(length, most)));
        }
        if self.done.len() >= self.facts().reach {
            return Err((memory, LinkError::Full));
        }
        self.outward
            .fly(&memory.bytes()[..length], now, WHOLE, &self.faults);
        self.done.push_back(memory);
        Ok(())
    }

    fn flush(&mut self, now: Instant) -> Result<(), LinkError> {
        self.send_landed(now);
        self.link.flush(now)
    }

    fn is_silent(&self) -> bool {
        true
    }

    /// What it is told as sent is on the wire.
    fn has_thrown_away(&self) -> bool {
        false
    }

    fn ended(&mut self, client: ClientId) {
        self.link.ended(client);
    }

    fn sent(&mut self, now: Instant) -> Option<L::Memory> {
        if self.outward.next().is_some_and(|at| at <= now) {
            self.send_landed(now);
            // That it is down is told where something is received.
            self.link.flush(now).ok();
        }
        self.done.pop_front()
    }

    fn reclaim(&mut self) -> Option<L::Memory> {
        self.done.pop_front().or_else(|| self.posted.pop_front())
    }

    fn losses(&self) -> Losses {
        let below = self.link.losses();
        Losses {
            no_room: self.losses.no_room + below.no_room,
            too_long: self.losses.too_long + below.too_long,
            is_partial: below.is_partial,
        }
    }
}
