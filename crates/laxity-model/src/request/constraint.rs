//! Time constraints: an amount of service between a start and a deadline, once.

use super::shortage::Share;
use crate::{Instant, Service, Span};
use derive_more::Display;

/// *`service` of processor time between `start` and `deadline`*, once, while runnable (Jones, Roşu, Roşu, "CPU Reservations and Time
/// Constraints", SOSP 1997, §3.2). Granted or refused at once; inside a reservation the holder's own slots count for it, and only
/// the rest comes from time that nobody has reserved.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Display)]
#[display("{service} within {}", *deadline - *start)]
pub struct TimeConstraint {
    start: Instant,
    deadline: Instant,
    service: Service,
}

/// Why three numbers are no time constraint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TimeConstraintError {
    /// The service is zero.
    #[error("the service of a time constraint must be more than zero")]
    NoService,
    /// The deadline is not after the start.
    #[error("the deadline of a time constraint must be after its start")]
    NoTime,
    /// More service than one processor has between start and deadline.
    #[error(
        "{} of service does not fit between start and deadline, which are {} apart",
        service.beside(between.as_full_service()), between.beside(service.as_dedicated_span())
    )]
    MoreThanAProcessor {
        /// What was asked for.
        service: Service,
        /// From start to deadline.
        between: Span,
    },
}

impl TimeConstraint {
    /// `service`, more than zero, between `start` and a later `deadline`, which one processor could give.
    pub fn new(
        start: Instant,
        deadline: Instant,
        service: Service,
    ) -> Result<Self, TimeConstraintError> {
        if service.is_zero() {
            return Err(TimeConstraintError::NoService);
        }
        if deadline <= start {
            return Err(TimeConstraintError::NoTime);
        }
        let between = deadline - start;
        if service.as_dedicated_span() > between {
            return Err(TimeConstraintError::MoreThanAProcessor { service, between });
        }
        Ok(Self {
            start,
            deadline,
            service,
        })
    }

    /// From when service counts.
    pub const fn start(self) -> Instant {
        self.start
    }

    /// By when it must be complete.
    pub const fn deadline(self) -> Instant {
        self.deadline
    }

    /// How much.
    pub const fn service(self) -> Service {
        self.service
    }
}

/// Why what an activity asked for while it runs was refused; nothing has changed then.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// It has asked for nothing yet.
    #[error("nothing was asked for yet")]
    NothingAsked,
    /// There is no slot table for everyone's reservations with this one.
    #[error("{0}")]
    Slots(super::Shortage),
    /// There are tables, but no instant at which one of those found could take the place of the old one without breaking a promise to
    /// another reservation or a time constraint.
    #[error(
        "no instant to change over: tables exist, but a change to any of those found within {within} would break a promise"
    )]
    NoModeChange {
        /// How far ahead was looked.
        within: Span,
    },
    /// There are tables, and perhaps an instant to change over to one: the search for it is bounded, and ended before it was through.
    #[error("no instant to change over was found in the time for the search, which is bounded")]
    SearchEnded,
    /// The kernel has not so much deadline bandwidth.
    #[error("deadline bandwidth: {} of a processor needed, more than is free", Share(*needed_ppm))]
    DeadlineBandwidth {
        /// The share of one processor, in parts per million, rounded up.
        needed_ppm: u64,
    },
    /// Time that nobody has reserved does not suffice between start and deadline, the holder's own slots counted.
    #[error(
        "time between start and deadline: {} needed, {} available, {} missing",
        needed.beside(*available), available.beside(*needed), needed.saturating_sub(*available)
    )]
    Time {
        /// The service asked for.
        needed: Service,
        /// What there is for it: its own slots, and what constraints granted before leave of unreserved time.
        available: Service,
    },
    /// The deadline is further away than this host plans ahead.
    #[error("the deadline is more than {at_most} ahead")]
    TooFarAhead {
        /// The most.
        at_most: Span,
    },
    /// The activity has a time constraint already.
    #[error("it has a time constraint already: end that one first")]
    HasConstraint,
    /// The reservation is not in force, so its slots are nobody's.
    #[error("its reservation is not in force")]
    NotInForce,
    /// The changes granted before are not all carried out yet.
    #[error("too many changes are still to be carried out")]
    Changing,
    /// Who carries out the table did not take the change in time, was asked by others at every attempt, or is gone, as at the end of a run.
    #[error("nobody took the change in time to carry it out")]
    NotAnswered,
}
