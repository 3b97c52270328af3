//! A thread's hold on its reservation: one interface to both enforcers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laxity_model::admission::DeadlineState;
use laxity_model::{ActivityId, Instant, Priority, Refused, Reservation, TimeConstraint};

use crate::enforce::deadline::{self, DeadlineError};
use crate::enforce::slots::{ChangeQueue, SlotBinding};
use crate::os::sched::{self, Policy, SchedError, Tid};
use crate::run::own::{Held, Ought, Own, Role, Standing};

/// A place in a slot table, and where to ask for another.
#[derive(Clone)]
pub(crate) struct Bound {
    pub(crate) binding: Arc<SlotBinding>,
    pub(crate) changes: Arc<ChangeQueue>,
    /// Its number in the table.
    pub(crate) owner: usize,
}

/// One of the kernel's reservations, as admission knows it.
#[derive(Clone)]
pub(crate) struct Booked {
    pub(crate) activity: ActivityId,
    pub(crate) all: Arc<Mutex<DeadlineState>>,
}

impl Booked {
    fn all(&self) -> MutexGuard<'_, DeadlineState> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reservation(&self) -> Option<Reservation> {
        self.all().held(self.activity)
    }

    /// Asks admission, then the kernel, for the calling thread; tells from when it surely holds.
    fn change(&self, asked: Reservation) -> Result<Result<Instant, Refused>, DeadlineError> {
        let before = match self.all().change(self.activity, asked) {
            Ok(before) => before,
            Err(refused) => return Ok(Err(refused)),
        };
        let changed = deadline::change(Tid::current(), before, asked);
        if changed.is_err() {
            self.all().undo(self.activity, before);
        }
        match changed {
            Ok(from) => Ok(Ok(from)),
            Err(DeadlineError::NoBandwidth { .. }) => Ok(Err(Refused::DeadlineBandwidth {
                needed_ppm: asked.share_ppm(),
            })),
            Err(error) => Err(error),
        }
    }
}

/// Who will enforce an activity's reservation, if it has one.
#[derive(Clone)]
pub(crate) enum Place {
    /// It has none.
    Free,
    /// The kernel.
    Deadline(Booked),
    /// The dispatcher of its processor.
    Slots(Bound),
    /// The dispatcher too, but of time constraints only.
    Guest(Bound),
}

impl Place {
    /// Whether the thread must be allowed on all processors: the kernel refuses `SCHED_DEADLINE` to a pinned thread.
    pub(crate) fn may_wander(&self) -> bool {
        matches!(self, Self::Deadline(_))
    }
}

/// The calling thread's reservation, held or not. All methods are for that thread only.
pub(crate) struct Holding {
    place: Place,
    /// What the thread has without a reservation.
    own_policy: Policy,
    cpu: usize,
    held: bool,
    /// What the thread is just now, for who looks at it from outside.
    standing: Arc<Standing>,
    /// When the last change of a reservation by `deadline` surely holds.
    changed_by: Instant,
}

impl Holding {
    pub(crate) fn new(place: Place, own_policy: Policy, cpu: usize) -> Self {
        Self {
            place,
            own_policy,
            cpu,
            held: false,
            standing: Arc::default(),
            changed_by: Instant::ZERO,
        }
    }

    /// The calling thread, as who looks at it from outside must know it; it may be raised to this.
    pub(crate) fn describe(&self, id: ActivityId, name: &str, highest: Option<Priority>) -> Own {
        let held = match &self.place {
            Place::Deadline(_) => Held::Deadline,
            Place::Slots(at) | Place::Guest(at) => {
                Held::OneOf(at.binding.policies(self.own_policy))
            }
            Place::Free => Held::OneOf(Vec::new()),
        };
        Own {
            tid: Tid::current(),
            who: format!("`{name}`"),
            role: Role::Activity(id),
            cpu: self.cpu,
            may_wander: self.place.may_wander(),
            ought: Ought::Placed {
                standing: Arc::clone(&self.standing),
                own: self.own_policy,
                highest,
                held,
            },
        }
    }

    /// Gives the thread what it has without a reservation.
    pub(crate) fn settle(&self) -> Result<(), SchedError> {
        sched::set_policy(Tid::current(), self.own_policy)?;
        self.standing.is_own();
        Ok(())
    }

    /// Begins what can be refused before the common start.
    pub(crate) fn prepare(&mut self) -> Result<(), DeadlineError> {
        match &self.place {
            Place::Deadline(_) => self.begin(),
            Place::Free | Place::Slots(_) | Place::Guest(_) => Ok(()),
        }
    }

    /// What the thread is granted, in force or not.
    pub(crate) fn reservation(&self) -> Option<Reservation> {
        match &self.place {
            Place::Free | Place::Guest(_) => None,
            Place::Deadline(booked) => booked.reservation(),
            Place::Slots(at) => at.changes.held(at.owner),
        }
    }

    pub(crate) fn holds(&self) -> bool {
        self.held
    }

    /// Has the reservation enforced from now on.
    pub(crate) fn begin(&mut self) -> Result<(), DeadlineError> {
        if self.held {
            return Ok(());
        }
        if matches!(self.place, Place::Free | Place::Guest(_)) {
            return Ok(());
        }
        self.standing.changes();
        match &self.place {
            Place::Free | Place::Guest(_) => {}
            Place::Deadline(booked) => {
                if let Some(reservation) = booked.reservation() {
                    deadline::reserve(Tid::current(), reservation)?;
                    self.standing.is_reserved(reservation);
                }
            }
            Place::Slots(at) => {
                at.binding.bind(self.own_policy);
                self.standing.is_held();
            }
        }
        self.held = true;
        Ok(())
    }

    /// Gives it back; the thread is again what it was without.
    pub(crate) fn end(&mut self) {
        if !std::mem::take(&mut self.held) {
            return;
        }
        self.standing.changes();
        match &self.place {
            Place::Free => {}
            Place::Deadline(booked) => {
                if let Some(reservation) = booked.reservation() {
                    deadline::release(Tid::current(), reservation, self.own_policy);
                }
                // A failure leaves the thread on more processors than its activity names, which no promise rests on.
                let _ = sched::pin(self.cpu);
            }
            Place::Slots(at) | Place::Guest(at) => at.binding.unbind(),
        }
        self.standing.is_own();
    }

    /// Asks for another reservation in place of the thread's own; begun or not, by `deadline` only once begun.
    pub(crate) fn change(
        &mut self,
        asked: Reservation,
    ) -> Result<Result<Instant, Refused>, DeadlineError> {
        match &mut self.place {
            Place::Free | Place::Guest(_) => Ok(Err(Refused::NotInForce)),
            Place::Slots(at) => Ok(at.changes.change(at.owner, asked)),
            Place::Deadline(_) if !self.held => Ok(Err(Refused::NotInForce)),
            Place::Deadline(booked) => {
                self.standing.changes();
                let changed = booked.change(asked);
                // Refused, it is the one from before.
                if let Some(reservation) = booked.reservation() {
                    self.standing.is_reserved(reservation);
                }
                Ok(changed?.map(|from| {
                    // Until then the deadline under way may be one of the reservation before the last.
                    self.changed_by = self.changed_by.max(from);
                    self.changed_by
                }))
            }
        }
    }

    /// Whether the thread has a place where it may ask for time constraints at all.
    pub(crate) fn may_be_constrained(&self) -> bool {
        matches!(self.place, Place::Slots(_) | Place::Guest(_))
    }

    /// Asks for a time constraint.
    pub(crate) fn constrain(&mut self, asked: TimeConstraint) -> Result<Instant, Refused> {
        match &self.place {
            Place::Slots(at) if self.held => at.changes.constrain(at.owner, asked),
            Place::Guest(at) => {
                // Bound before it asks: it may not run again before the first of what it is granted has come.
                let was_bound = std::mem::replace(&mut self.held, true);
                if !was_bound {
                    self.standing.changes();
                    at.binding.bind(self.own_policy);
                    self.standing.is_held();
                }
                let answer = at.changes.constrain(at.owner, asked);
                if answer.is_err() && !was_bound {
                    self.end();
                }
                answer
            }
            Place::Free | Place::Deadline(_) | Place::Slots(_) => Err(Refused::NotInForce),
        }
    }

    /// Gives back what is left of the thread's time constraint; its deadline, if there was one that is not past.
    pub(crate) fn release_constraint(&mut self) -> Option<Instant> {
        match &self.place {
            Place::Slots(at) => at.changes.release(at.owner),
            Place::Guest(at) => {
                let released = at.changes.release(at.owner);
                if std::mem::take(&mut self.held) {
                    self.standing.changes();
                    at.binding.unbind();
                    self.standing.is_own();
                }
                released
            }
            Place::Free | Place::Deadline(_) => None,
        }
    }

    /// The thread is about to wait of its own accord.
    pub(crate) fn enter_wait(&self) {
        if let (true, Place::Slots(at)) = (self.held, &self.place) {
            at.binding.park().enter_wait();
        }
    }

    /// It has waited; if it is confined and outside its slot, it waits on.
    pub(crate) fn leave_wait(&self) {
        if let (true, Place::Slots(at)) = (self.held, &self.place) {
            at.binding.park().leave_wait();
        }
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.end();
        // Its number may be somebody else's soon.
        self.standing.changes();
    }
}
