//! How much service there is at least: supply bound functions.
//!
//! Shin, Lee, "Periodic resource model for compositional real-time guarantees", RTSS 2003.
//!
//! | supply | what it promises | its longest time without service |
//! |---|---|---|
//! | [`Dedicated`] | all of a processor | 0 |
//! | [`ExplicitDeadline::continuous`] | X in every window of length Y (slots) | Y − X |
//! | [`ExplicitDeadline`] | X in every period Y, by Δ after its beginning | Y + Δ − 2X |
//! | [`ExplicitDeadline::periodic`] | X in every period Y (`SCHED_DEADLINE` in theory) | 2(Y − X) |
//! | [`BoundedDelay`] | a rate, after a delay | the delay, and a tick of service at the rate |
//! | [`TableSupply`] | what a slot table really gives to one owner | that of the table |
//! | [`KernelDeadline`] | `SCHED_DEADLINE` as a kernel with a tick enforces it | see there |
//! | [`Residual`] | what known work above leaves of a supply | |
//! | [`Delayed`] | a supply, some time late | that of the supply, and so much |
//!
//! All of them repeat themselves: with a rate of n/d, as the fraction stands, n more of service take d more of window, for all but the
//! very first tick of service. (A [`Residual`] whose cycle is 2⁶² ns or longer may round its rate down instead.)

mod bounded_delay;
mod dedicated;
mod delayed;
mod kernel_deadline;
mod least;
mod periodic;
mod residual;
mod table;

pub use bounded_delay::BoundedDelay;
pub use dedicated::Dedicated;
pub use delayed::Delayed;
pub use kernel_deadline::KernelDeadline;
pub use least::least_reservation;
pub use periodic::ExplicitDeadline;
pub use residual::Residual;
pub use table::TableSupply;

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{Fraction, Overflow, Result, Task};
use crate::{Enforcer, Reservation, Service, Span};

/// A lower bound on the service in any window of a given length, however the window lies.
///
/// What an implementation must keep (and `tests/it/supplies` checks): sbf(0) = 0; sbf does not fall, and grows by at most one tick a
/// tick; `window_for` is its least inverse; sbf(t) ≥ rate · (t − delay) for all t; and it repeats itself: with a rate of n/d, as the
/// fraction stands, `window_for(c + n)` is d more than `window_for(c)` for all c from two ticks on.
///
/// A task that begins a region with the last tick of service before the supply pauses is not one tick into it when the supply comes
/// back: where the next job is chosen in that very instant, a region blocks for its whole length.
pub trait SupplyBound {
    /// sbf(t): the least service in any window of this length.
    fn least_service(&self, window: Span) -> Service;

    /// The shortest window in which this much service is sure: the least t with sbf(t) ≥ `service`.
    fn window_for(&self, service: Service) -> Result<Span>;

    /// The share of a processor in the long run; never more than one.
    fn rate(&self) -> Fraction;

    /// A window of this length, at most, may pass before the service comes at its rate.
    fn delay(&self) -> Span;

    /// Whether one and the same course of the supply can give no more than sbf in all windows that begin at one instant: then a test
    /// that is exact on a dedicated processor is exact here too.
    fn is_attained(&self) -> bool;
}

/// Rates of such a denominator may have been rounded.
const INEXACT: u64 = 1 << 62;

/// After how much of window a supply repeats itself, if its rate tells that.
pub(crate) fn cycle_of<S: SupplyBound + ?Sized>(supply: &S) -> Option<u64> {
    Some(supply.rate().denominator()).filter(|cycle| *cycle < INEXACT)
}

/// What points to a supply is one.
macro_rules! through {
    ($pointer:ty) => {
        impl<S: SupplyBound + ?Sized> SupplyBound for $pointer {
            fn least_service(&self, window: Span) -> Service {
                (**self).least_service(window)
            }

            fn window_for(&self, service: Service) -> Result<Span> {
                (**self).window_for(service)
            }

            fn rate(&self) -> Fraction {
                (**self).rate()
            }

            fn delay(&self) -> Span {
                (**self).delay()
            }

            fn is_attained(&self) -> bool {
                (**self).is_attained()
            }
        }
    };
}

through!(&S);
through!(Box<S>);

/// What a reservation is sure to give: by slots, what this work above them leaves; by deadline, beside other holders, on a kernel that notices within `tick` that a budget is used up
/// (zero: at once).
///
/// # Errors
///
/// [`SupplyError::NothingLeft`], or a number does not fit.
pub fn reserved(
    (reservation, enforcer): (Reservation, Enforcer),
    tick: Span,
    above: Vec<Task>,
) -> Result<Box<dyn SupplyBound + Send + Sync>, SupplyError> {
    Ok(match enforcer {
        Enforcer::Slots => {
            let slots = ExplicitDeadline::continuous(reservation);
            Box::new(Residual::new(slots, above)?)
        }
        Enforcer::Deadline => Box::new(KernelDeadline::among_others(reservation, tick)?),
    })
}

/// Why numbers are no supply.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SupplyError {
    /// The service of a period does not fit before its deadline, or the deadline lies behind the period.
    #[error(
        "a deadline of {} is not within {} (the service) to {} (the period)",
        deadline.beside(*period).and(service.as_nanos()),
        service.beside(deadline.as_full_service()),
        period.beside(*deadline)
    )]
    Deadline {
        /// X.
        service: Service,
        /// Y.
        period: Span,
        /// Δ.
        deadline: Span,
    },
    /// A rate of nothing, or of more than a processor.
    #[error("a rate of {0} is not more than 0 and at most 1")]
    Rate(Fraction),
    /// The table has no slot of this owner.
    #[error("the table has no slot of owner {0}")]
    NoSlot(usize),
    /// The work above takes all that there is in the long run.
    #[error("the work above leaves nothing in the long run")]
    NothingLeft,
    /// A number does not fit.
    #[error(transparent)]
    Overflow(#[from] Overflow),
}
