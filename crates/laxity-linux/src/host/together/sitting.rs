//! A seat, as the process has it that it was given to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

use laxity_model::program::together::{Act, Member, Others, Standing};
use laxity_model::{HostError, PortId, Span};

use super::{Region, Seat};
use crate::host::alone::StartError;
use crate::os::cpuset::CpuSet;
use crate::os::sched::{self, Policy, Tid};
use crate::os::{clock, fork, futex};
use crate::run::port::Ports;

/// Who watches looks far more often while somebody works; and where nobody does, when it is asked to.
const FRESH: Span = Span::from_millis(100);
/// So often at most it is asked, and so long after each time the answer is looked for.
const TIMES: u32 = 100;
const EACH: Duration = Duration::from_millis(1);

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
    /// Its executor's thread, by the kernel's number, once it has taken the seat; and whether that waits for its turn.
    thread: AtomicI32,
    waits: AtomicBool,
}

impl Place {
    /// By the terms that are said now.
    pub(crate) fn new(seat: Seat) -> Self {
        let _ = seat.region.terms();
        Self {
            seat,
            generation: fork::generation(),
            leaves: AtomicBool::new(false),
            thread: AtomicI32::new(0),
            waits: AtomicBool::new(false),
        }
    }

    /// Why what is promised in a guarded seat does not hold just now, as far as its own process can see; where somebody has written what its thread has not said, that one is woken and says it again.
    /// A millisecond where nobody has worked for a while, and a tenth of a second, but for the executor's own thread, where something is wrong.
    pub(crate) fn doubt(&self) -> Option<&'static str> {
        let region = self.region();
        let is_there = self.is_own() && !self.leaves.load(Ordering::SeqCst);
        if !is_there || region.terms().is_none() {
            return None;
        }
        if region.says_otherwise() {
            return Some(
                "the memory that processes share does not say any more what its guards count on: another process has written there, or they are others",
            );
        }
        let is_inside = self.thread.load(Ordering::SeqCst) == Tid::current().0;
        let times = if is_inside { 1 } else { TIMES };
        for _ in 0..times {
            if self.is_watched() && !self.is_silenced() {
                return None;
            }
            // Its word stays as it is: by that whoever begins to work knows that it is to be woken, though whoever asks here may be stopped at any time.
            futex::wake_among(region.guards()[1], 1);
            if !is_inside {
                thread::sleep(EACH);
            }
        }
        if !self.is_watched() {
            return Some(
                "whoever guards its seat does not look, as a coordinator that is stopped or has ended: another process whose handler does not come back would hold it up",
            );
        }
        let word = region.word(self.seat.number).filter(|_| self.is_silenced());
        word?.fetch_add(1, Ordering::SeqCst);
        wake(region, self.seat.number);
        Some(
            "its seat says that it does not wait for its turn, and it does: another process has written that, or it does not get its processor",
        )
    }

    fn is_watched(&self) -> bool {
        let (looked, now) = (self.region().looked(), clock::now());
        looked <= now && now.saturating_since(looked) <= FRESH
    }

    /// What others see of it is not that it waits, while it does. What was taken away its thread is told.
    fn is_silenced(&self) -> bool {
        let standing = self.region().standing(self.seat.number);
        let is_true = matches!(standing, Some(Standing::Waiting | Standing::Removed));
        self.waits.load(Ordering::SeqCst) && !is_true
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
        place.thread.store(own.0, Ordering::SeqCst);
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
                    self.place.waits.store(true, Ordering::SeqCst);
                    futex::wait_among(own, word, until);
                    self.place.waits.store(false, Ordering::SeqCst);
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

#[cfg(test)]
mod tests {
    use laxity_model::Service;
    use laxity_model::program::together::Terms;

    use super::*;

    #[test]
    fn who_writes_that_nobody_guards_is_no_end_of_doubt() {
        let region = Region::create().unwrap();
        let terms = Terms {
            priority: 90,
            processor: 0,
            longest: Service::from_micros(500),
            tolerance: Service::ZERO,
        };
        region.limit(terms);
        let place = Place::new(Seat {
            region: region.clone(),
            number: 0,
        });
        let unseen = place.doubt();
        assert!(unseen.is_some());
        // The longest quantum is behind the layout.
        rustix::io::pwrite(&region, &[0; 8], 8).unwrap();
        assert_eq!(region.terms(), Some(terms));
        let forged = place.doubt();
        assert!(
            forged.is_some_and(|why| why.contains("written")),
            "{forged:?}"
        );
        region.limit(terms);
        assert_eq!(place.doubt(), unseen);
    }
}
