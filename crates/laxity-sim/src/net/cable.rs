//! The wire between two cards, and all that both have: one state, so that they agree on the time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laxity_model::Instant;
use laxity_model::base::random::SplitMix64;
use laxity_model::nif::wire::{Faults, Flying, Framing, WHOLE, Way};

use super::card::{Card, Circuits, Shape};
use super::ring::{Packet, Ring, transfer};

/// What is between two cards.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Its rate, its delay, and what goes wrong.
    pub faults: Faults,
    /// What it carries around a frame.
    pub framing: Framing,
    /// Whether one frame at a time is on it, in either direction. Whoever waits longest is next, and of two who have waited as long, who
    /// did not have it last: there are no collisions.
    pub is_half_duplex: bool,
}

impl Line {
    /// 10 Mbit/s Ethernet on one cable.
    #[must_use]
    pub fn ethernet() -> Self {
        Self::new(10_000_000, Framing::Ethernet, true)
    }

    /// ATM cells at 155 Mbit/s, each way (Liao, Tan, Campbell 1996, §5). What SONET takes of that is not taken off.
    #[must_use]
    pub fn atm() -> Self {
        Self::new(155_000_000, Framing::Cells, false)
    }

    /// A wire without delay and without faults, of so many bits a second.
    #[must_use]
    pub fn new(rate: u64, framing: Framing, is_half_duplex: bool) -> Self {
        let faults = Faults {
            rate,
            ..Faults::default()
        };
        Self {
            faults,
            framing,
            is_half_duplex,
        }
    }
}

/// A frame that is in the card, or will be at `ready`.
#[derive(Debug)]
struct Fetched {
    ready: Instant,
    queue: usize,
    memory: Packet,
    length: usize,
}

/// A circuit's own memory.
#[derive(Debug)]
pub(super) struct Circuit {
    pub(super) client: u32,
    pub(super) queue: usize,
    pub(super) posted: VecDeque<Packet>,
}

/// One end.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) shape: Shape,
    pub(super) queues: Vec<Ring>,
    pub(super) circuits: BTreeMap<u64, Circuit>,
    pub(super) find: Circuits,
    /// Towards this side.
    way: Way,
    outgoing: VecDeque<Fetched>,
    fetched_at: Instant,
    stored_at: Instant,
}

#[derive(Debug)]
pub(super) struct State {
    line: Line,
    pub(super) is_up: bool,
    pub(super) downs: u64,
    pub(super) sides: [Side; 2],
    /// When each way is free; of a half duplex wire both are the same.
    free_at: [Instant; 2],
    last: usize,
}

/// A wire and its two cards.
#[derive(Clone, Debug)]
pub struct Cable(Arc<Mutex<State>>);

impl Cable {
    /// A wire that is up, and a card of this shape at each end; faults follow from the seed.
    #[must_use]
    pub fn new(line: Line, shapes: [Shape; 2], seed: u64) -> (Self, Card, Card) {
        let mut seeds = SplitMix64::new(seed);
        let sides = shapes.map(|shape| Side {
            queues: (0..shape.queues.max(1)).map(|_| Ring::default()).collect(),
            shape,
            circuits: BTreeMap::new(),
            find: |_| None,
            way: Way::new(seeds.draw()),
            outgoing: VecDeque::new(),
            fetched_at: Instant::ZERO,
            stored_at: Instant::ZERO,
        });
        let cable = Self(Arc::new(Mutex::new(State {
            line,
            is_up: true,
            downs: 0,
            sides,
            free_at: [Instant::ZERO; 2],
            last: 1,
        })));
        let (near, far) = (Card::new(cable.clone(), 0), Card::new(cable.clone(), 1));
        (cable, near, far)
    }

    /// All that is due by now has happened.
    pub(super) fn at(&self, now: Instant) -> MutexGuard<'_, State> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.advance(now);
        state
    }

    /// It goes down, and what is on it and waits for it is lost; memory comes back as sent.
    pub fn go_down(&self, now: Instant) {
        let mut state = self.at(now);
        if !state.is_up {
            return;
        }
        state.is_up = false;
        state.downs += 1;
        for side in &mut state.sides {
            side.way.clear();
            while let Some(Fetched { queue, memory, .. }) = side.outgoing.pop_front() {
                side.queues[queue].leave(now, memory);
            }
        }
    }

    /// It is up again.
    pub fn go_up(&self, now: Instant) {
        self.at(now).is_up = true;
    }
}

impl Side {
    /// The card begins to fetch a frame.
    pub(super) fn fetch(&mut self, queue: usize, memory: Packet, length: usize, now: Instant) {
        let takes = self.shape.transfers.takes(length);
        let ready = transfer(&mut self.fetched_at, now, takes);
        self.queues[queue].waiting += 1;
        self.outgoing.push_back(Fetched {
            ready,
            queue,
            memory,
            length,
        });
    }

    /// Memory of a frame of this queue that has not been put onto the wire, which it then never is.
    pub(super) fn withdraw(&mut self, queue: usize) -> Option<Packet> {
        let place = self
            .outgoing
            .iter()
            .position(|frame| frame.queue == queue)?;
        self.queues[queue].waiting -= 1;
        self.outgoing.remove(place).map(|frame| frame.memory)
    }

    /// A frame lands: it goes to the memory of its circuit, or of the first queue, or is lost.
    fn land(&mut self, flying: Flying) {
        let Flying { at, bytes, .. } = flying;
        let key = (self.find)(&bytes);
        let circuit = key.and_then(|key| Some((key, self.circuits.get_mut(&key)?)));
        let (queue, owner) = match &circuit {
            Some((key, circuit)) => (circuit.queue, (Some(*key), Some(circuit.client))),
            None => (0, (None, None)),
        };
        let ring = &mut self.queues[queue];
        let posted = circuit.map_or(&mut ring.posted, |(_, circuit)| &mut circuit.posted);
        match posted.front().map(|memory| memory.len() >= bytes.len()) {
            None => ring.losses.no_room += 1,
            Some(false) => ring.losses.too_long += 1,
            Some(true) => {
                let takes = self.shape.transfers.takes(bytes.len());
                let done = transfer(&mut self.stored_at, at, takes);
                if let Some(memory) = posted.pop_front() {
                    ring.store(&bytes, memory, (at, done), owner);
                }
            }
        }
        self.way.reuse(bytes);
    }
}

impl State {
    /// Which side has the wire next, and from when.
    fn starts(&self) -> Option<(Instant, usize)> {
        let start = |side: usize| {
            let first = self.sides[side].outgoing.front()?;
            let way = if self.line.is_half_duplex { 0 } else { side };
            let at = first.ready.max(self.free_at[way]);
            Some((at, first.ready, side == self.last, side))
        };
        let next = [start(0), start(1)].into_iter().flatten().min()?;
        Some((next.0, next.3))
    }

    /// When something happens next that its own state tells.
    pub(super) fn next(&self) -> Option<Instant> {
        let lands = self.sides.iter().filter_map(|side| side.way.next()).min();
        let starts = self.starts().map(|(at, _)| at);
        lands.into_iter().chain(starts).min()
    }

    fn advance(&mut self, now: Instant) {
        while let Some((at, side)) = self.starts().filter(|(at, _)| *at <= now) {
            self.put_onto_the_wire(side, at);
        }
        for side in &mut self.sides {
            while let Some(flying) = side.way.land(now) {
                side.land(flying);
            }
        }
    }

    fn put_onto_the_wire(&mut self, side: usize, at: Instant) {
        let Some(frame) = self.sides[side].outgoing.pop_front() else {
            return;
        };
        let Fetched {
            queue,
            memory,
            length,
            ..
        } = frame;
        let Line {
            faults, framing, ..
        } = self.line;
        let way = if self.line.is_half_duplex { 0 } else { side };
        let takes = framing.takes(length, faults.rate);
        let leaves = transfer(&mut self.free_at[way], at, takes);
        self.last = side;
        self.sides[1 - side]
            .way
            .fly(&memory[..length], leaves, WHOLE, &faults);
        self.sides[side].queues[queue].leave(leaves, memory);
    }
}
