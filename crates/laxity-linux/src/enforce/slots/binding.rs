//! The binding of a thread to its slots: the thread binds and unbinds itself, the dispatcher lets it into its slots and out of them. A program of
//! others is bound by who holds for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use laxity_model::enforce::{Count, ranks};
use laxity_model::{ActivityId, Outside, Service};

use super::doorbell::Doorbell;
use super::park::Park;
use crate::os::clock;
use crate::os::futex;
use crate::os::sched::{Attributes, Policy, SchedError, Tid};
use crate::os::schedstat::Account;

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
    /// Who wishes to be bound. Locked before the wish by who has it and by the dispatcher after: never both at once.
    next: Mutex<Option<Occupant>>,
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
            next: Mutex::new(None),
        }
    }

    /// How a bound thread may be scheduled that has this policy otherwise.
    pub(crate) fn policies(&self, own: Policy) -> Vec<Policy> {
        let edges = Edges::of_current(own, self.outside);
        match self.outside {
            // It keeps its rank all the time.
            Outside::Confined => vec![edges.inside.policy()],
            _ => vec![edges.inside.policy(), edges.outside.policy()],
        }
    }

    pub(crate) fn park(&self) -> &Park {
        &self.park
    }

    /// Binds the calling thread; returns when the dispatcher knows.
    pub(crate) fn bind(&self, own: Policy) {
        let edges = Edges::of_current(own, self.outside);
        self.post(Occupant::Thread(edges));
        self.park.attach();
        self.wish(BOUND);
    }

    /// Binds a program; returns when the dispatcher knows.
    pub(crate) fn bind_program(&self, program: Arc<dyn Program>) {
        self.post(Occupant::Program(program));
        self.wish(BOUND);
    }

    /// Unbinds the program; afterwards the dispatcher does not touch it any more.
    pub(crate) fn unbind_program(&self) {
        self.wish(UNBOUND);
    }

    fn post(&self, occupant: Occupant) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(occupant);
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
            occupant: None,
            inside: false,
        }
    }
}

/// The threads of a program of others, that have slots together. Called by the dispatcher at the edges: nothing here may wait for long.
pub(crate) trait Program: Send + Sync {
    /// Its slot begins.
    fn enter(&self) -> Result<(), SchedError>;

    /// Its slot ends, or has not begun.
    fn leave(&self) -> Result<(), SchedError>;

    /// It has no slots any more: it is what it was before it had any.
    fn release(&self) -> Result<(), SchedError>;

    /// Processor time that it has received; `None` where that is not known.
    fn service(&self) -> Option<Service>;
}

/// Who is bound.
enum Occupant {
    Thread(Edges),
    Program(Arc<dyn Program>),
}

/// What to do to the thread at an edge, ready made.
struct Edges {
    tid: Tid,
    own: Attributes,
    inside: Attributes,
    outside: Attributes,
    /// `None` where the kernel does not count them.
    turns: Option<Account>,
}

impl Edges {
    /// Of the calling thread, which has this policy outside its reservation.
    fn of_current(own: Policy, outside: Outside) -> Self {
        let own = Attributes::new(own, own.is_real_time());
        Self {
            tid: Tid::current(),
            turns: Account::of_current(),
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
    /// Who is bound.
    occupant: Option<Occupant>,
    /// Its slot is now.
    inside: bool,
}

impl ServedBinding {
    pub(crate) fn activity(&self) -> ActivityId {
        self.binding.activity
    }

    pub(crate) fn is_bound(&self) -> bool {
        self.occupant.is_some()
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
            let next = self.binding.next.lock();
            self.occupant = next.unwrap_or_else(PoisonError::into_inner).take();
            // A confined thread keeps its rank all the time: that it is parked or not alone says when it runs.
            let ranked = match &self.occupant {
                Some(Occupant::Thread(edges)) if self.binding.outside == Outside::Confined => {
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

    /// The kernel's count of the holder; `None` while none is bound. How often a program was given the processor is not counted.
    pub(crate) fn count(&self) -> Option<Count> {
        let (service, turns) = match self.occupant.as_ref()? {
            Occupant::Thread(edges) => {
                let turns = edges
                    .turns
                    .as_ref()
                    .and_then(|account| Some(account.read().ok()?.turns));
                (clock::service_of(edges.tid)?, turns)
            }
            Occupant::Program(program) => (program.service()?, None),
        };
        Some(Count { service, turns })
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

    /// Gives who is bound what it has inside its slot, or outside it.
    fn place(&self) -> Result<(), SchedError> {
        match &self.occupant {
            None => return Ok(()),
            Some(Occupant::Thread(edges)) => self.place_thread(edges)?,
            Some(Occupant::Program(program)) if self.inside => program.enter()?,
            Some(Occupant::Program(program)) => program.leave()?,
        }
        self.check();
        Ok(())
    }

    fn place_thread(&self, edges: &Edges) -> Result<(), SchedError> {
        match (self.binding.outside, self.inside) {
            (Outside::Confined, true) => self.binding.park.unpark(),
            (Outside::Confined, false) => self.binding.park.park(edges.tid)?,
            (_, true) => edges.inside.apply_unchecked(edges.tid)?,
            (_, false) => edges.outside.apply_unchecked(edges.tid)?,
        }
        Ok(())
    }

    /// A thread is parked if and only if it is bound, confined and outside its slot.
    fn check(&self) {
        let is_thread = matches!(self.occupant, Some(Occupant::Thread(_)));
        let confined = self.binding.outside == Outside::Confined;
        let stands_still = is_thread && confined && !self.inside;
        debug_assert_eq!(self.binding.park.is_parked(), stands_still, "parked");
    }

    /// Who was bound is again what it was before.
    fn release(&mut self) -> Result<(), SchedError> {
        self.binding.park.unpark();
        let released = self.occupant.take();
        self.check();
        match released {
            Some(Occupant::Thread(edges)) => edges.own.apply(edges.tid),
            Some(Occupant::Program(program)) => program.release(),
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
