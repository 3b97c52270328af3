//! Why an upcall is not there, or does not do what was asked.

use std::{fmt, io};

use laxity_linux::host::alone::{FeedError, StartError};
use laxity_linux::host::coordinator::CoordinatorError;
use laxity_linux::host::hold::HoldError;
use laxity_linux::os::sched::{self, SchedError, Tid};
use laxity_model::HostError;
use laxity_model::program::upcalls::NotAdmitted;

use crate::doctor::Diagnosis;

/// Why an upcall is not there, or does not do what was asked. Nothing was changed.
///
/// Its `Debug` form is for people too: a `main` that returns it prints the cause and the remedy.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The executor's thread lacks a right: the one cause, and the remedy. [`Rank::Fair`](super::Rank::Fair) needs none.
    #[error("the executor cannot be real-time: {0}")]
    Lacks(Box<Diagnosis>),
    /// Its reservation was refused.
    #[error(transparent)]
    Hold(HoldError),
    /// The kernel said no to something else: a processor that is not there.
    #[error("the executor was not started: {0}{may}", may = elsewhere(.0))]
    Sched(SchedError),
    /// The executor was not started.
    #[error("the executor was not started: {0}")]
    NotStarted(String),
    /// Upcalls of several processes take turns in the rate-monotonic order, and in no other.
    #[error("upcalls of several processes take turns rate monotonic only: ask for Policy::Rmdp")]
    Order,
    /// A name has a NUL in it, which no program in C and no list of threads could tell.
    #[error("{0:?} is no name: there is a NUL in it")]
    Name(String),
    /// Whatever else there is, this can be no upcall.
    #[error("{name} cannot be an upcall: {why}")]
    NoUpcall {
        /// What it was to be called.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// No arrivals are to wait for each upcall, or more than there is room for.
    #[error("there is no room for events {0}: say from 1 to 4096")]
    Events(u32),
    /// The descriptor that is to release an upcall cannot be waited for: as a rule there are too many of them.
    #[error("its descriptor cannot be waited for: {}", io::Error::from_raw_os_error(*errno))]
    Descriptor {
        /// Why not, by the kernel's number.
        errno: i32,
    },
    /// A quantum of it would take longer than whoever guards the region lets a handler work without a look.
    #[error(
        "a quantum of it takes {quantum}, and one that takes turns with other processes is to take at most {longest}: {}",
        fitting(*units, *longest)
    )]
    Quantum {
        /// What was asked for.
        quantum: laxity_model::Service,
        /// The most that would fit, beside what is charged for a call.
        longest: laxity_model::Service,
        /// So many units of it would fit at once.
        units: u64,
    },
    /// Its seat among other processes was not given to it, or another executor has it.
    #[error("the seat among other processes was not given to this executor, or is taken")]
    NoSeat,
    /// There is no coordinator, or it says no, or it does not answer.
    #[error("{0}")]
    Coordinator(String),
    /// Somebody would be late.
    #[error("not admitted: {0}")]
    NotAdmitted(Box<NotAdmitted>),
    /// Its order is [by deadline](super::Policy::Edf): of a set that is admitted all are in time, and it is not known when each is over at the latest.
    #[error(
        "where the order is by deadline no upcall has a bound of its own: each is over by its deadline"
    )]
    NoBound,
    /// No group can have this budget of each such period: none, or more than all.
    #[error("{0} of every {1} is no budget")]
    NoBudget(laxity_model::Service, crate::Span),
    /// The upcall that is asked about, or the group or the one before it that it names, is of another executor, or is closed; or the one before it has ended.
    #[error(
        "the upcall, its group, or the one that it is to come after, is closed or of another executor, or that one has ended"
    )]
    NotHere,
    /// There are as many upcalls as an executor has room for.
    #[error("the executor has no room for another upcall")]
    Full,
    /// Time releases the upcall, or the end of another's call, and nothing that arrives does.
    #[error("the upcall is not released by arrivals: nothing can arrive for it")]
    NoArrivals,
    /// More commands wait than there is room for.
    #[error("as many wait already as there is room for; try again")]
    Busy,
    /// The caller is a handler of this executor, and would wait for itself.
    #[error("a handler cannot wait for its own executor")]
    Inside,
    /// A quantum has lasted so long that the executor has not answered: what was asked for is done when it does.
    #[error("the executor has not answered within {0}: a handler does not come back")]
    NoAnswer(crate::Span),
    /// The upcall has ended, or overran and was to end.
    #[error("the upcall has ended")]
    Ended,
    /// The handler panicked, or its making did; this is what it said.
    #[error("the handler panicked: {0}")]
    Panicked(String),
    /// The executor has ended.
    #[error("the executor has ended")]
    Over,
}

/// What can be said to anybody.
pub(super) fn named(name: &str) -> Result<(), Error> {
    match name.contains('\0') {
        true => Err(Error::Name(name.to_owned())),
        false => Ok(()),
    }
}

/// What would be admitted instead.
fn fitting(units: u64, longest: laxity_model::Service) -> String {
    match units {
        0 if longest.is_zero() => "none would fit, whatever it takes".to_owned(),
        0 => format!("quanta of one unit, of at most {longest}, would fit"),
        1 => "quanta of one unit would fit".to_owned(),
        units => format!("quanta of at most {units} units would fit"),
    }
}

/// Where a thread may run that was to run where nobody may.
fn elsewhere(error: &SchedError) -> String {
    let is_nowhere = matches!(error, SchedError::Os { call: "sched_setaffinity", errno, .. }
        if io::Error::from_raw_os_error(*errno).kind() == io::ErrorKind::InvalidInput);
    match sched::affinity(Tid::current()) {
        Ok(here) if is_nowhere => format!("; this thread may run on processors {here}"),
        _ => String::new(),
    }
}

impl Error {
    /// The cause and the remedy, where a right is missing.
    pub fn diagnosis(&self) -> Option<&Diagnosis> {
        match self {
            Self::Lacks(diagnosis) => Some(diagnosis),
            Self::Hold(HoldError::Refused { diagnosis, .. }) => Some(diagnosis),
            _ => None,
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl From<StartError> for Error {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Lacks(diagnosis) => Self::Lacks(Box::new(diagnosis)),
            StartError::Hold(error) => Self::Hold(error),
            StartError::Sched(error) => Self::Sched(error),
            StartError::NoSeat => Self::NoSeat,
            StartError::NotOnTerms { .. } | StartError::Uncounted(_) => {
                Self::NotStarted(error.to_string())
            }
            StartError::NoThread(error) => Self::NotStarted(error),
        }
    }
}

impl From<FeedError> for Error {
    fn from(error: FeedError) -> Self {
        match error {
            FeedError::Start(error) => error.into(),
            FeedError::Os(errno) => Self::Descriptor {
                errno: errno.raw_os_error(),
            },
        }
    }
}

impl From<CoordinatorError> for Error {
    fn from(error: CoordinatorError) -> Self {
        Self::Coordinator(error.to_string())
    }
}

impl From<HostError> for Error {
    fn from(error: HostError) -> Self {
        Self::NotStarted(error.to_string())
    }
}
