//! A thread's hold on its reservation: one interface to both enforcers.

use std::sync::Arc;

use laxity_model::{HostError, Reservation};

use crate::deadline::{self, DeadlineError};
use crate::sched::{self, CpuSet, Policy, SchedError, Tid};
use crate::slots::Seat;

/// Who will enforce an activity's reservation, if it has one.
#[derive(Clone)]
pub(crate) enum Place {
    /// It has none.
    Free,
    /// The kernel.
    Deadline(Reservation),
    /// The dispatcher of its processor.
    Slots(Arc<Seat>),
}

impl Place {
    /// Whether the thread must be allowed on all processors: the kernel refuses `SCHED_DEADLINE` to a pinned thread.
    pub(crate) fn may_wander(&self) -> bool {
        matches!(self, Self::Deadline(_))
    }
}

/// Why a reservation did not begin, or a thread did not get its policy.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum HoldError {
    #[error(transparent)]
    Sched(#[from] SchedError),
    #[error(transparent)]
    Deadline(#[from] DeadlineError),
}

impl HoldError {
    /// Whether the kernel agreed, and somebody else decided otherwise at once.
    pub(crate) fn is_without_effect(&self) -> bool {
        let (Self::Sched(error) | Self::Deadline(DeadlineError::Sched(error))) = self else {
            return false;
        };
        matches!(error, SchedError::NoEffect { .. })
    }

    /// As the error of a run, naming the activity.
    pub(crate) fn about(&self, activity: &str) -> HostError {
        let text = format!("activity {activity}: {self}");
        match self {
            Self::Deadline(DeadlineError::NoBandwidth { .. }) => HostError::Refused(text),
            Self::Sched(error) | Self::Deadline(DeadlineError::Sched(error))
                if error.errno() == Some(libc::EPERM) =>
            {
                HostError::CannotRun(text)
            }
            _ => HostError::Failed(text),
        }
    }
}

/// The calling thread's reservation, held or not. All methods are for that thread only.
pub(crate) struct Holding {
    place: Place,
    /// What the thread has without a reservation.
    own_policy: Policy,
    cpu: usize,
    held: bool,
}

impl Holding {
    pub(crate) fn new(place: Place, own_policy: Policy, cpu: usize) -> Self {
        Self {
            place,
            own_policy,
            cpu,
            held: false,
        }
    }

    /// Begins what can be refused before the common start.
    pub(crate) fn prepare(&mut self) -> Result<(), HoldError> {
        match &self.place {
            Place::Deadline(_) => self.begin(),
            Place::Free | Place::Slots(_) => Ok(()),
        }
    }

    pub(crate) fn holds(&self) -> bool {
        self.held
    }

    /// Has the reservation enforced from now on.
    pub(crate) fn begin(&mut self) -> Result<(), HoldError> {
        if self.held {
            return Ok(());
        }
        match &self.place {
            Place::Free => return Ok(()),
            Place::Deadline(reservation) => deadline::reserve(Tid::current(), *reservation)?,
            Place::Slots(seat) => seat.sit(self.own_policy),
        }
        self.held = true;
        Ok(())
    }

    /// Gives it back; the thread is again what it was without.
    pub(crate) fn end(&mut self) {
        if !std::mem::take(&mut self.held) {
            return;
        }
        match &self.place {
            Place::Free => {}
            Place::Deadline(reservation) => {
                deadline::release(Tid::current(), *reservation, self.own_policy);
                // A failure leaves the thread on more processors than its activity names, which no promise rests on.
                let _ = sched::set_affinity(Tid::current(), &CpuSet::single(self.cpu));
            }
            Place::Slots(seat) => seat.stand_up(),
        }
    }

    /// The thread is about to wait of its own accord.
    pub(crate) fn enter_wait(&self) {
        if let (true, Place::Slots(seat)) = (self.held, &self.place) {
            seat.gate().enter_wait();
        }
    }

    /// It has waited; if it is confined and outside its slot, it waits on.
    pub(crate) fn leave_wait(&self) {
        if let (true, Place::Slots(seat)) = (self.held, &self.place) {
            seat.gate().leave_wait();
        }
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.end();
    }
}
