//! A network card: what it is made of, its circuits, and its queues as drivers see them.

use std::collections::VecDeque;

use laxity_model::nif::frame::HEADER;
use laxity_model::nif::link::{Facts, Link, LinkError, Losses, Medium, Received};
use laxity_model::nif::registry::ClientId;
use laxity_model::nif::wire::Framing;
use laxity_model::{Instant, Span};

use super::cable::{Cable, Circuit};
use super::ring::Packet;

/// How the card reads the circuit from a frame; `None`: it is on none.
pub type Circuits = fn(&[u8]) -> Option<u64>;

/// How fast a card moves frames between itself and memory, one after the other each way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Transfers {
    /// What each takes before its first byte.
    pub begin: Span,
    /// Bits a second; 0: the bytes take no time.
    pub rate: u64,
}

impl Transfers {
    /// How long a frame of so many bytes takes.
    pub(super) fn takes(&self, length: usize) -> Span {
        let bytes = Framing::Bare.takes(length, self.rate);
        self.begin.checked_add(bytes).unwrap_or(Span::MAX)
    }
}

/// When a queue raises its interrupt: as soon as so many packets and sent frames are done, or the first of them has been for so long. It
/// is masked as it is raised, until its driver has [unmasked](Queue::unmask) it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Moderation {
    /// So many; 0 is as 1: at once.
    pub most: u32,
    /// So long.
    pub longest: Span,
}

/// What a card is made of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    /// How many queues, each with rings and an interrupt of its own; 0 is as 1.
    pub queues: usize,
    /// Descriptors of each ring for receiving, and of each circuit's.
    pub receive: usize,
    /// Descriptors of each ring for sending.
    pub send: usize,
    /// The longest packet behind an Ethernet header, in bytes.
    pub mtu: usize,
    /// How fast it moves frames.
    pub transfers: Transfers,
    /// When it raises its interrupts.
    pub moderation: Moderation,
}

/// A circuit cannot be opened: it is open, there is no such queue, or it was given more memory than a ring has descriptors. The memory is in here.
#[derive(Debug)]
pub struct TakenError(pub Vec<Packet>);

/// A card at one end of a [`Cable`].
#[derive(Clone, Debug)]
pub struct Card {
    pub(super) cable: Cable,
    pub(super) side: usize,
}

impl Card {
    pub(super) const fn new(cable: Cable, side: usize) -> Self {
        Self { cable, side }
    }

    /// Has the card look for circuits, in this way.
    pub fn find_circuits(&self, find: Circuits, now: Instant) {
        self.cable.at(now).sides[self.side].find = find;
    }

    /// Opens a circuit for a client: what arrives for it goes into this memory and raises this queue's interrupt. For each packet that is
    /// [received](Link::receive) of it, what is [posted](Link::post) next is the circuit's, so that it never has more or less.
    ///
    /// # Errors
    ///
    /// [`TakenError`].
    pub fn open(
        &self,
        circuit: u64,
        client: u32,
        queue: usize,
        memory: Vec<Packet>,
        now: Instant,
    ) -> Result<(), TakenError> {
        let mut state = self.cable.at(now);
        let side = &mut state.sides[self.side];
        let fits = queue < side.queues.len() && memory.len() <= side.shape.receive;
        if !fits || side.circuits.contains_key(&circuit) {
            return Err(TakenError(memory));
        }
        let posted = VecDeque::from(memory);
        let opened = Circuit {
            client,
            queue,
            posted,
        };
        side.circuits.insert(circuit, opened);
        Ok(())
    }

    /// Closes a circuit, and gives back its memory that no packet is in; `None` if it is not open.
    #[must_use]
    pub fn close(&self, circuit: u64, now: Instant) -> Option<Vec<Packet>> {
        let mut state = self.cable.at(now);
        let closed = state.sides[self.side].circuits.remove(&circuit)?;
        Some(closed.posted.into())
    }

    /// A queue; `None` if there is none of this number, which begin at 0. What is on no circuit arrives at the first.
    #[must_use]
    pub fn queue(&self, number: usize) -> Option<Queue> {
        let state = self.cable.at(Instant::ZERO);
        let Shape { send, mtu, .. } = state.sides[self.side].shape;
        (number < state.sides[self.side].queues.len()).then(|| Queue {
            card: self.clone(),
            number,
            facts: Facts {
                name: format!("card:{}.{number}", self.side),
                // Administered locally.
                address: [2, 0, 0, 0, 1, self.side as u8],
                mtu,
                reach: send.max(1),
                is_shared_with_kernel: false,
                medium: Medium::Ethernet,
                gathers: false,
                copies: false,
            },
        })
    }
}

/// One queue of a card, as its driver has it.
#[derive(Clone, Debug)]
pub struct Queue {
    card: Card,
    number: usize,
    facts: Facts,
}

impl Queue {
    /// Its interrupt may be raised again; the [doorbell](Cable::hardware) must be rung for that.
    pub fn unmask(&self, now: Instant) {
        let mut state = self.card.cable.at(now);
        state.sides[self.card.side].queues[self.number].is_masked = false;
    }
}

impl Link for Queue {
    type Memory = Packet;

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn allocate(&mut self, packets: usize) -> Result<Vec<Packet>, LinkError> {
        let one = |_| vec![0; self.facts.mtu + HEADER].into_boxed_slice();
        Ok((0..packets).map(one).collect())
    }

    fn post(&mut self, memory: Packet) -> Result<(), Packet> {
        // Time goes on with whoever knows it.
        let mut state = self.card.cable.at(Instant::ZERO);
        let side = &mut state.sides[self.card.side];
        let ring = &mut side.queues[self.number];
        let owner = ring.owed.pop_front().flatten();
        let posted = match owner.and_then(|circuit| side.circuits.get_mut(&circuit)) {
            Some(circuit) => &mut circuit.posted,
            None => &mut ring.posted,
        };
        if posted.len() >= side.shape.receive {
            return Err(memory);
        }
        posted.push_back(memory);
        Ok(())
    }

    fn receive(&mut self, now: Instant) -> Result<Option<Received<Packet>>, LinkError> {
        let mut state = self.card.cable.at(now);
        let downs = state.downs;
        let ring = &mut state.sides[self.card.side].queues[self.number];
        if ring.told < downs {
            ring.told = downs;
            return Err(LinkError::Down);
        }
        Ok(ring.take(now))
    }

    fn send(
        &mut self,
        memory: Packet,
        length: usize,
        now: Instant,
    ) -> Result<(), (Packet, LinkError)> {
        let mut state = self.card.cable.at(now);
        let is_up = state.is_up;
        let side = &mut state.sides[self.card.side];
        let most = (self.facts.mtu + HEADER).min(memory.len());
        let error = if !is_up {
            LinkError::Down
        } else if length < HEADER {
            LinkError::TooShort(length)
        } else if length > most {
            LinkError::TooLong(length, most)
        } else if side.queues[self.number].below() >= self.facts.reach {
            LinkError::Full
        } else {
            side.fetch(self.number, memory, length, now);
            return Ok(());
        };
        Err((memory, error))
    }

    fn has_discarded(&self) -> bool {
        false
    }

    fn flush(&mut self, _: Instant) -> Result<(), LinkError> {
        Ok(())
    }

    fn is_silent(&self) -> bool {
        false
    }

    fn has_thrown_away(&self) -> bool {
        false
    }

    fn ended(&mut self, _: ClientId) {}

    fn sent(&mut self, now: Instant) -> Option<Packet> {
        let mut state = self.card.cable.at(now);
        state.sides[self.card.side].queues[self.number].sent(now)
    }

    fn reclaim(&mut self) -> Option<Packet> {
        let mut state = self.card.cable.at(Instant::ZERO);
        let side = &mut state.sides[self.card.side];
        side.withdraw(self.number)
            .or_else(|| side.queues[self.number].reclaim())
    }

    fn losses(&self) -> Losses {
        self.card.cable.at(Instant::ZERO).sides[self.card.side].queues[self.number].losses
    }
}
