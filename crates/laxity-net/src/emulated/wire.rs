//! A wire between two interfaces, with faults that follow from a seed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use laxity_model::Instant;
use laxity_model::base::random::SplitMix64;
use laxity_model::nif::link::{Facts, Link, LinkError, Losses, Memory, Received};
use laxity_model::nif::registry::ClientId;
use laxity_model::nif::wire::{Faults, Flying, WHOLE, Way};

use super::leaving::{Leaving, allocate, facts};
use crate::lock;

#[derive(Debug)]
struct Shared {
    faults: Faults,
    is_up: bool,
    is_gone: bool,
    /// How often it went down.
    downs: u64,
    ways: [Way; 2],
}

/// What its owner does to a wire while others send over it.
///
/// ```
/// use laxity_model::Instant;
/// use laxity_model::nif::link::{Link, LinkError};
/// use laxity_net::emulated::{Faults, Wire};
///
/// let now = Instant::ZERO;
/// let (wire, mut near, mut far) = Wire::new(Faults::default(), 7);
/// let memory = far.allocate(1)?.remove(0);
/// far.post(memory).expect("it takes any number");
/// let mut send = || near.allocate(1).and_then(|mut all| near.send(all.remove(0), 60, now).map_err(|(_, why)| why));
/// wire.set_faults(Faults { lost: 1_000_000, ..Faults::default() });
/// send()?;
/// assert!(far.receive(now)?.is_none());
/// wire.set_faults(Faults::default());
/// wire.go_down();
/// assert_eq!((send(), far.receive(now).err()), (Err(LinkError::Down), Some(LinkError::Down)));
/// wire.go_up();
/// send()?;
/// assert!(far.receive(now)?.is_some());
/// # Ok::<(), LinkError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Wire(Arc<Mutex<Shared>>);

impl Wire {
    /// A wire that carries frames of up to 1500 bytes behind their header, and its two ends.
    #[must_use]
    pub fn new(faults: Faults, seed: u64) -> (Self, End, End) {
        let mut seeds = SplitMix64::new(seed);
        let wire = Self(Arc::new(Mutex::new(Shared {
            faults,
            is_up: true,
            is_gone: false,
            downs: 0,
            ways: [(); 2].map(|()| Way::new(seeds.draw())),
        })));
        let end = |side| End::new(wire.clone(), side, faults.rate);
        let (near, far) = (end(0), end(1));
        (wire, near, far)
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        lock(&self.0)
    }

    /// What it does to frames from now on; its rate stays.
    pub fn set_faults(&self, faults: Faults) {
        self.lock().faults = faults;
    }

    /// It goes down, and what is on it is lost.
    pub fn go_down(&self) {
        let mut shared = self.lock();
        if shared.is_up {
            shared.is_up = false;
            shared.downs += 1;
        }
        shared.ways.iter_mut().for_each(Way::clear);
    }

    /// It is up again.
    pub fn go_up(&self) {
        self.lock().is_up = true;
    }

    /// Both ends are deleted.
    pub fn delete(&self) {
        self.lock().is_gone = true;
    }
}

/// One end of a wire.
#[derive(Debug)]
pub struct End {
    wire: Wire,
    side: usize,
    facts: Facts,
    leaving: Leaving,
    posted: VecDeque<Box<[u8]>>,
    /// Of how many times that the wire went down this end has told.
    told: u64,
    losses: Losses,
    /// The last look found a packet, and no memory for it.
    has_discarded: bool,
}

impl End {
    fn new(wire: Wire, side: u8, rate: u64) -> Self {
        let facts = Facts {
            copies: true,
            ..facts("emulated", side, 1500)
        };
        Self {
            wire,
            side: side.into(),
            leaving: Leaving::new(rate, &facts),
            facts,
            posted: VecDeque::new(),
            told: 0,
            losses: Losses::default(),
            has_discarded: false,
        }
    }
}

/// The packet that has landed next, and whether it is lost, as there is no memory for it.
pub(super) fn land<M: Memory>(
    way: &mut Way,
    posted: &mut VecDeque<M>,
    losses: &mut Losses,
    now: Instant,
) -> (Option<Received<M>>, bool) {
    let Some(flying) = way.land(now) else {
        return (None, false);
    };
    let Flying {
        at,
        bytes,
        told: (stamp, left),
        ..
    } = flying;
    let length = bytes.len();
    let room = posted.front().map(|memory| memory.bytes().len());
    let memory = match room.map(|room| room >= length) {
        None => {
            losses.no_room += 1;
            None
        }
        Some(false) => {
            losses.too_long += 1;
            None
        }
        Some(true) => posted.pop_front(),
    };
    let received = memory.map(|mut memory| {
        memory.bytes_mut()[..length].copy_from_slice(&bytes);
        Received {
            memory,
            length,
            at,
            stamp,
            left,
            early: None,
        }
    });
    way.reuse(bytes);
    let is_lost = received.is_none();
    (received, is_lost)
}

impl Link for End {
    type Memory = Box<[u8]>;

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn allocate(&mut self, packets: usize) -> Result<Vec<Box<[u8]>>, LinkError> {
        if self.wire.lock().is_gone {
            return Err(LinkError::Gone);
        }
        Ok(allocate(packets, self.facts.mtu))
    }

    fn post(&mut self, memory: Box<[u8]>) -> Result<(), Box<[u8]>> {
        self.posted.push_back(memory);
        Ok(())
    }

    fn receive(&mut self, now: Instant) -> Result<Option<Received<Box<[u8]>>>, LinkError> {
        self.has_discarded = false;
        let mut shared = self.wire.lock();
        if shared.is_gone {
            return Err(LinkError::Gone);
        }
        if self.told < shared.downs {
            self.told = shared.downs;
            return Err(LinkError::Down);
        }
        let way = &mut shared.ways[self.side];
        let received;
        (received, self.has_discarded) = land(way, &mut self.posted, &mut self.losses, now);
        Ok(received)
    }

    fn has_discarded(&self) -> bool {
        self.has_discarded
    }

    fn send(
        &mut self,
        memory: Box<[u8]>,
        length: usize,
        now: Instant,
    ) -> Result<(), (Box<[u8]>, LinkError)> {
        let mut shared = self.wire.lock();
        let check = if shared.is_gone {
            Err(LinkError::Gone)
        } else if !shared.is_up {
            Err(LinkError::Down)
        } else {
            self.leaving.check(length, &self.facts)
        };
        if let Err(error) = check {
            return Err((memory, error));
        }
        let leaves = self.leaving.leaves(length, now);
        let Shared { faults, ways, .. } = &mut *shared;
        ways[1 - self.side].fly(&memory[..length], leaves, WHOLE, faults);
        self.leaving.depart(memory, leaves);
        Ok(())
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

    fn sent(&mut self, now: Instant) -> Option<Box<[u8]>> {
        let shared = self.wire.lock();
        if shared.is_up || shared.is_gone {
            self.leaving.departed(now)
        } else {
            self.leaving.drop_first()
        }
    }

    fn reclaim(&mut self) -> Option<Box<[u8]>> {
        self.leaving
            .drop_first()
            .or_else(|| self.posted.pop_front())
    }

    fn losses(&self) -> Losses {
        self.losses
    }
}
