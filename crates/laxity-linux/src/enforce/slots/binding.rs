//! The binding of a thread to its slots: the thread binds and unbinds itself, the dispatcher lets it into its slots and out of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use laxity_model::enforce::ranks;
use laxity_model::{ActivityId, Outside, Service};

use super::doorbell::Doorbell;
use super::park::Park;
use crate::os::clock;
use crate::os::futex;
use crate::os::sched::{Attributes, Policy, SchedError, Tid};

const UNBOUND: u32 = 0;
const BOUND: u32 = 1;
/// The dispatcher is gone: wishes are not answered any more.
const UNSERVED: u32 = 2;

/// The binding of one owner of slots. What it has reserved is known to its change queue alone, where it may change.
pub(crate) struct SlotBinding {
    pub(crate) activity: ActivityId,
    outside: Outside,
    park: Park,
    doorbell: Arc<Doorbell>,
    /// What the thread wants: [`UNBOUND`] or [`BOUND`].
    wish: AtomicU32,
    /// What the dispatcher has made of it: [`UNBOUND`], [`BOUND`] or [`UNSERVED`].
    state: AtomicU32,
    /// Of the thread that wishes to be bound. Locked by it before it wishes and by the dispatcher after: never both at once.
    edges: Mutex<Option<Edges>>,
}

impl SlotBinding {
    pub(crate) fn new(activity: ActivityId, outside: Outside, doorbell: Arc<Doorbell>) -> Self {
        Self {
            activity,
            outside,
            park: Park::default(),
            doorbell,
            wish: AtomicU32::new(UNBOUND),
            state: AtomicU32::new(UNBOUND),
            edges: Mutex::new(None),
        }
    }

    pub(crate) fn park(&self) -> &Park {
        &self.park
    }

    /// Binds the calling thread; returns when the dispatcher knows.
    pub(crate) fn bind(&self, own: Policy) {
        let edges = Edges::of_current(own, self.outside);
        *self.edges.lock().unwrap_or_else(PoisonError::into_inner) = Some(edges);
        self.park.attach();
        self.wish(BOUND);
    }

    /// Unbinds the calling thread; afterwards the dispatcher does not touch it any more.
    pub(crate) fn unbind(&self) {
        self.wish(UNBOUND);
        Park::detach();
    }

    fn wish(&self, wish: u32) {
        self.wish.store(wish, Ordering::SeqCst);
        self.doorbell.ring();
        loop {
            let state = self.state.load(Ordering::SeqCst);
            if state == wish || state == UNSERVED {
                return;
            }
            futex::wait(&self.state, state, None);
        }
    }

    /// The dispatcher's side of the binding.
    pub(crate) fn serve(self: Arc<Self>) -> ServedBinding {
        ServedBinding {
            binding: self,
            edges: None,
            inside: false,
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

impl Edges {
    /// Of the calling thread, which has this policy outside its reservation.
    fn of_current(own: Policy, outside: Outside) -> Self {
        let own = Attributes::new(own, own.is_real_time());
        Self {
            tid: Tid::current(),
            own,
            inside: Attributes::new(Policy::Fifo(ranks::OCCUPANT), true),
            outside: match outside {
                Outside::Timesharing(priority) => {
                    Attributes::new(ranks::of_thread(priority).into(), true)
                }
                Outside::AsPlaced | Outside::Confined => own,
            },
        }
    }
}

/// A binding as its dispatcher sees it. Its slots come and go whether or not a thread is bound.
pub(crate) struct ServedBinding {
    binding: Arc<SlotBinding>,
    /// A thread is bound.
    edges: Option<Edges>,
    /// Its slot is now.
    inside: bool,
}

impl ServedBinding {
    pub(crate) fn activity(&self) -> ActivityId {
        self.binding.activity
    }

    pub(crate) fn is_bound(&self) -> bool {
        self.edges.is_some()
    }

    /// Whether the thread has what it wishes.
    pub(crate) fn wish_is_met(&self) -> bool {
        (self.binding.wish.load(Ordering::SeqCst) == BOUND) == self.is_bound()
    }

    /// Whether its slot is now.
    pub(crate) fn is_inside(&self) -> bool {
        self.inside
    }

    /// Grants the thread's wish.
    pub(crate) fn answer(&mut self) -> Result<(), SchedError> {
        let wish = self.binding.wish.load(Ordering::SeqCst);
        let done = if wish == BOUND {
            let edges = self.binding.edges.lock();
            self.edges = edges.unwrap_or_else(PoisonError::into_inner).take();
            // A confined thread keeps its rank all the time: that it is parked or not alone says when it runs.
            let ranked = match &self.edges {
                Some(edges) if self.binding.outside == Outside::Confined => {
                    edges.inside.apply(edges.tid)
                }
                _ => Ok(()),
            };
            ranked.and_then(|()| self.place())
        } else {
            self.release()
        };
        self.binding.state.store(wish, Ordering::SeqCst);
        futex::wake_all(&self.binding.state);
        done
    }

    /// Processor time that the holder has received; `None` while none is bound.
    pub(crate) fn service(&self) -> Option<Service> {
        clock::service_of(self.edges.as_ref()?.tid)
    }

    /// Its slot begins.
    pub(crate) fn enter(&mut self) -> Result<(), SchedError> {
        debug_assert!(!self.inside, "a slot is entered once");
        self.inside = true;
        self.place()
    }

    /// Its slot ends.
    pub(crate) fn leave(&mut self) -> Result<(), SchedError> {
        debug_assert!(self.inside, "only a slot that was entered is left");
        self.inside = false;
        self.place()
    }

    /// Gives a bound thread what it has inside its slot, or outside it.
    fn place(&self) -> Result<(), SchedError> {
        let Some(edges) = &self.edges else {
            return Ok(());
        };
        match (self.binding.outside, self.inside) {
            (Outside::Confined, true) => self.binding.park.unpark(),
            (Outside::Confined, false) => self.binding.park.park(edges.tid)?,
            (_, true) => edges.inside.apply_unchecked(edges.tid)?,
            (_, false) => edges.outside.apply_unchecked(edges.tid)?,
        }
        self.check();
        Ok(())
    }

    /// A thread is parked if and only if it is bound, confined and outside its slot.
    fn check(&self) {
        let confined = self.binding.outside == Outside::Confined;
        let stands_still = self.edges.is_some() && confined && !self.inside;
        debug_assert_eq!(self.binding.park.is_parked(), stands_still, "parked");
    }

    /// The thread is again what it was before it was bound.
    fn release(&mut self) -> Result<(), SchedError> {
        self.binding.park.unpark();
        let released = self.edges.take();
        self.check();
        match released {
            Some(edges) => edges.own.apply(edges.tid),
            None => Ok(()),
        }
    }

    /// The dispatcher goes: the thread is let loose, and nobody waits for an answer any more.
    pub(crate) fn abandon(&mut self) {
        // The run is over; a thread that cannot be given its policy back is about to end anyway.
        let _ = self.release();
        self.binding.state.store(UNSERVED, Ordering::SeqCst);
        futex::wake_all(&self.binding.state);
    }
}
