//! A seat, as the process has it that it was given to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use laxity_model::program::together::{Act, Member, Others};
use laxity_model::{HostError, PortId, Span};

use super::{Region, Seat};
use crate::host::alone::StartError;
use crate::os::cpuset::CpuSet;
use crate::os::sched::{self, Policy, Tid};
use crate::os::{clock, fork, futex};
use crate::run::port::Ports;

/// Wakes the thread of a seat.
pub(super) fn wake(region: &Region, seat: u16) {
    if let Some(word) = region.word(seat) {
        futex::wake_among(word, 1);
    }
}

/// Work has begun where the baton rested.
pub(super) fn wake_guards(region: &Region) {
    for (word, is_asleep) in region.guards().into_iter().zip(region.begun()) {
        if is_asleep {
            futex::wake_among(word, 1);
        }
    }
}

/// A seat, for all threads of its process.
#[derive(Debug)]
pub(crate) struct Place {
    seat: Seat,
    /// What has been forked from the process has no executor.
    generation: u32,
    leaves: AtomicBool,
}

impl Place {
    pub(crate) fn new(seat: Seat) -> Self {
        Self {
            seat,
            generation: fork::generation(),
            leaves: AtomicBool::new(false),
        }
    }

    fn region(&self) -> &Region {
        &self.seat.region
    }

    /// Whether the caller is in the process that has the seat.
    pub(super) fn is_own(&self) -> bool {
        fork::generation() == self.generation
    }

    /// Something has been put into a port of its executor, which is called where a handler waits there. Else it has nothing to do for that yet, and whoever is at work would let it go first for nothing.
    pub(crate) fn call(&self, ports: &Ports, port: PortId) {
        let is_called = ports.is_awaited(port) && self.is_own();
        if is_called && self.region().call(self.seat.number, clock::now()) {
            wake(self.region(), self.seat.number);
            wake_guards(self.region());
        }
    }

    /// Its executor ends, and waits for no turn to do so.
    pub(crate) fn leave(&self) {
        self.leaves.store(true, Ordering::SeqCst);
        if self.is_own()
            && let Some(word) = self.region().word(self.seat.number)
        {
            word.fetch_add(1, Ordering::SeqCst);
            wake(self.region(), self.seat.number);
        }
    }
}

/// The executor's thread in its seat, until this is dropped.
pub(crate) struct Sitting {
    member: Member<Region>,
    place: Arc<Place>,
    /// It loses nothing but its turn where it yields: one with a budget of the kernel would lose what is left of it.
    may_yield: bool,
}

impl Sitting {
    /// The calling thread takes the seat.
    ///
    /// # Errors
    ///
    /// It was not given to anybody who has not taken it; or the thread is not as [whoever guards](super::guard) the region counts on.
    pub(crate) fn begin(place: &Arc<Place>) -> Result<Self, StartError> {
        let own = Tid::current();
        let region = place.seat.region.clone();
        let (policy, on) = (sched::policy(own)?, sched::affinity(own)?);
        if let Some(terms) = region.terms() {
            let is_at = matches!(policy, Policy::Fifo(own) if u32::from(own) == terms.priority);
            if !is_at || on != CpuSet::single(terms.processor as usize) {
                return Err(StartError::NotOnTerms { terms, policy, on });
            }
        }
        let member = Member::sit(region, place.seat.number, own.0.cast_unsigned());
        Ok(Self {
            member: member.ok_or(StartError::NoSeat)?,
            may_yield: !matches!(policy, Policy::Deadline(_)),
            place: Arc::clone(place),
        })
    }

    /// Waits until it is this executor's turn, or it is to end: `is_closed`.
    pub(crate) fn wait(&mut self, is_closed: impl Fn() -> bool) -> Result<(), HostError> {
        let region = self.place.seat.region.clone();
        let Some(own) = region.word(self.place.seat.number) else {
            return Err(HostError::Failed("there is no such seat".to_owned()));
        };
        loop {
            if self.place.leaves.load(Ordering::SeqCst) {
                self.member.leaves();
                // It has no turn any more, and nobody watches what it drops.
                let own = Tid::current();
                if let Ok(Policy::Fifo(_)) = sched::policy(own) {
                    let _ = sched::set_policy(own, Policy::Other { nice: 0 });
                }
            }
            match self.member.wait(clock::now()) {
                _ if is_closed() => return Ok(()),
                Act::Go => return Ok(()),
                Act::Took => {
                    wake_guards(&region);
                    return Ok(());
                }
                Act::Wake(other) => wake(&region, other),
                Act::Sleep { word, until } => {
                    let until = (until != laxity_model::Instant::MAX).then_some(until);
                    futex::wait_among(own, word, until);
                }
                Act::Removed => {
                    let why = "its seat was taken away: a handler did not come back";
                    return Err(HostError::Failed(why.to_owned()));
                }
            }
        }
    }

    /// A quantum is over: who was interrupted and can go on does, where somebody was.
    pub(crate) fn give_way(&self) {
        if self.may_yield && self.member.gives_way() {
            thread::yield_now();
        }
    }

    /// As whoever guards the region has seen it.
    pub(crate) fn stood(&self) -> Span {
        self.place.region().stood()
    }

    /// Nobody, where a handler's child looks for a yield.
    pub(crate) fn others(&mut self) -> Option<&mut dyn Others> {
        match self.place.is_own() {
            true => Some(&mut self.member),
            false => None,
        }
    }
}

impl Drop for Sitting {
    fn drop(&mut self) {
        if let Some(next) = self.member.leave(clock::now()) {
            wake(self.place.region(), next);
        }
    }
}
