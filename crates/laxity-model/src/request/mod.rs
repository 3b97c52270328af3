//! What may be asked for, and what is granted: reservations, time constraints, known work, and what is short where the answer is no.

mod constraint;
mod reservation;
mod shortage;
mod work;

pub use constraint::{Refused, TimeConstraint, TimeConstraintError};
pub use reservation::{
    Enforcer, Grade, Grant, Outranked, Outside, Reservation, ReservationError, ReservationRequest,
    Stranger, Strangers,
};
pub(crate) use shortage::Share;
pub use shortage::Shortage;
pub use work::{ONCE, Work};
