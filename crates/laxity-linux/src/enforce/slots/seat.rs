//! A thread's place in a slot table: the thread sits down and stands up, the dispatcher lets it in and out.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use laxity_model::{ActivityId, Outside, Reservation, Service};

use super::gate::Gate;
use crate::host::map;
use crate::os::clock;
use crate::os::futex;
use crate::os::sched::{Attributes, Policy, SchedError, Tid};

const EMPTY: u32 = 0;
const TAKEN: u32 = 1;
/// The dispatcher is gone: wishes are not answered any more.
const UNATTENDED: u32 = 2;

/// Wakes a dispatcher before its next edge.
#[derive(Debug, Default)]
pub(crate) struct Bell(AtomicU32);

impl Bell {
    pub(crate) fn number(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn ring(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        futex::wake_all(&self.0);
    }

    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.0
    }
}

/// The place of one reservation.
pub(crate) struct Seat {
    pub(crate) activity: ActivityId,
    /// `None`: the seat is for time constraints only.
    pub(crate) reservation: Option<Reservation>,
    outside: Outside,
    gate: Gate,
    bell: Arc<Bell>,
    /// What the thread wants: [`EMPTY`] or [`TAKEN`].
    wish: AtomicU32,
    /// What the dispatcher has made of it: [`EMPTY`], [`TAKEN`] or [`UNATTENDED`].
    state: AtomicU32,
    tid: AtomicI32,
    /// The policy outside the reservation. Locked by the thread before it wishes and by the dispatcher after: never both at once.
    own: Mutex<Policy>,
}

impl Seat {
    pub(crate) fn new(
        activity: ActivityId,
        reservation: impl Into<Option<Reservation>>,
        outside: Outside,
        bell: Arc<Bell>,
    ) -> Self {
        Self {
            activity,
            reservation: reservation.into(),
            outside,
            gate: Gate::default(),
            bell,
            wish: AtomicU32::new(EMPTY),
            state: AtomicU32::new(EMPTY),
            tid: AtomicI32::new(0),
            own: Mutex::new(Policy::Other { nice: 0 }),
        }
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The calling thread takes the seat; returns when the dispatcher knows.
    pub(crate) fn sit(&self, own: Policy) {
        *self.own.lock().unwrap_or_else(PoisonError::into_inner) = own;
        self.tid.store(Tid::current().0, Ordering::SeqCst);
        self.gate.attach();
        self.wish(TAKEN);
    }

    /// The calling thread gives the seat up; afterwards the dispatcher does not touch it any more.
    pub(crate) fn stand_up(&self) {
        self.wish(EMPTY);
        Gate::detach();
    }

    fn wish(&self, wish: u32) {
        self.wish.store(wish, Ordering::SeqCst);
        self.bell.ring();
        loop {
            let state = self.state.load(Ordering::SeqCst);
            if state == wish || state == UNATTENDED {
                return;
            }
            futex::wait(&self.state, state, None);
        }
    }

    /// The dispatcher's side of the seat.
    pub(crate) fn attend(self: Arc<Self>) -> Attended {
        Attended {
            seat: self,
            edges: None,
        }
    }
}

/// What to do to the thread at an edge, ready made.
struct Edges {
    tid: Tid,
    own: Attributes,
    inside: Attributes,
    outside: Attributes,
}

/// A seat as its dispatcher sees it.
pub(crate) struct Attended {
    seat: Arc<Seat>,
    /// Somebody sits there.
    edges: Option<Edges>,
}

impl Attended {
    pub(crate) fn activity(&self) -> ActivityId {
        self.seat.activity
    }

    /// What is reserved there; `None` for a seat that is for time constraints only.
    pub(crate) fn reservation(&self) -> Option<Reservation> {
        self.seat.reservation
    }

    pub(crate) fn is_taken(&self) -> bool {
        self.edges.is_some()
    }

    /// Whether the thread has what it wishes.
    pub(crate) fn wish_is_met(&self) -> bool {
        (self.seat.wish.load(Ordering::SeqCst) == TAKEN) == self.is_taken()
    }

    /// Grants the thread's wish; `in_slot`: its slot is now.
    pub(crate) fn answer(&mut self, in_slot: bool) -> Result<(), SchedError> {
        let wish = self.seat.wish.load(Ordering::SeqCst);
        let done = if wish == TAKEN {
            let own = *self.seat.own.lock().unwrap_or_else(PoisonError::into_inner);
            let edges = Edges {
                tid: Tid(self.seat.tid.load(Ordering::SeqCst)),
                own: Attributes::new(own, own.is_real_time()),
                outside: match self.seat.outside {
                    Outside::Timesharing(priority) => Attributes::new(map::thread(priority), true),
                    Outside::Confined => Attributes::new(own, own.is_real_time()),
                },
                inside: Attributes::new(Policy::Fifo(map::OCCUPANT), true),
            };
            // A confined thread keeps its rank all the time: its gate alone says when it runs.
            let first = if self.seat.outside == Outside::Confined {
                edges.inside.apply(edges.tid)
            } else {
                Ok(())
            };
            self.edges = Some(edges);
            first.and_then(|()| if in_slot { self.enter() } else { self.leave() })
        } else {
            self.release()
        };
        self.seat.state.store(wish, Ordering::SeqCst);
        futex::wake_all(&self.seat.state);
        done
    }

    /// Processor time that the holder has received; `None` while nobody sits there.
    pub(crate) fn service(&self) -> Option<Service> {
        clock::service_of(self.edges.as_ref()?.tid)
    }

    /// Its slot begins.
    pub(crate) fn enter(&self) -> Result<(), SchedError> {
        let Some(edges) = &self.edges else {
            return Ok(());
        };
        match self.seat.outside {
            Outside::Confined => {
                self.seat.gate.open();
                Ok(())
            }
            Outside::Timesharing(_) => edges.inside.apply_unchecked(edges.tid),
        }
    }

    /// Its slot ends.
    pub(crate) fn leave(&self) -> Result<(), SchedError> {
        let Some(edges) = &self.edges else {
            return Ok(());
        };
        match self.seat.outside {
            Outside::Confined => self.seat.gate.close(edges.tid),
            Outside::Timesharing(_) => edges.outside.apply_unchecked(edges.tid),
        }
    }

    /// The thread is again what it was without a seat.
    fn release(&mut self) -> Result<(), SchedError> {
        self.seat.gate.open();
        match self.edges.take() {
            Some(edges) => edges.own.apply(edges.tid),
            None => Ok(()),
        }
    }

    /// The dispatcher goes: the thread is let loose, and nobody waits for an answer any more.
    pub(crate) fn abandon(&mut self) {
        // The run is over; a thread that cannot be given its policy back is about to end anyway.
        let _ = self.release();
        self.seat.state.store(UNATTENDED, Ordering::SeqCst);
        futex::wake_all(&self.seat.state);
    }
}
