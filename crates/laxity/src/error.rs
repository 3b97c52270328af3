//! Why a thread has no reservation.

use std::error::Error as _;
use std::fmt;

use laxity_linux::doctor::Diagnosis;
use laxity_linux::enforce::deadline::DeadlineError;
use laxity_model::{HostError, Reservation, ReservationError};

/// Why a thread has no reservation. Nothing of the thread was changed.
///
/// Its `Debug` form is for people too, with what it was caused by: a `main` that returns it prints the cause and the remedy.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The numbers are no reservation on any machine.
    #[error(transparent)]
    NoReservation(#[from] ReservationError),
    /// The calling thread holds a reservation already, which must be dropped first.
    #[error(
        "the calling thread already holds a reservation of {held}: that one is to be given back first"
    )]
    AlreadyReserved {
        /// What it holds.
        held: Reservation,
    },
    /// The kernel said no.
    #[error("{reservation} cannot be reserved: {diagnosis}")]
    Refused {
        /// What was asked for.
        reservation: Reservation,
        /// The one cause, and the remedy.
        diagnosis: Box<Diagnosis>,
        /// The call that failed, with its `errno`.
        source: DeadlineError,
    },
    /// A call failed that never should: one that only asks, or one that reported success without effect.
    #[error("{reservation} cannot be reserved")]
    Failed {
        /// What was asked for.
        reservation: Reservation,
        /// The call, and what came of it.
        source: DeadlineError,
    },
    /// Admission said no to slots, or they cannot be given here.
    #[error("{reservation} cannot be reserved: {source}")]
    Host {
        /// What was asked for.
        reservation: Reservation,
        /// What is missing, and what would fit.
        source: HostError,
    },
}

impl Error {
    /// The cause and the remedy, where the kernel said no.
    pub fn diagnosis(&self) -> Option<&Diagnosis> {
        match self {
            Self::Refused { diagnosis, .. } => Some(diagnosis),
            _ => None,
        }
    }

    /// The kernel's number for the failure, where it gave one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Refused { source, .. } | Self::Failed { source, .. } => source.call().errno(),
            _ => None,
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        let mut cause = self.source();
        while let Some(error) = cause {
            write!(f, "\n  caused by: {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
