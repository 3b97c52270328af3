//! How much service there is at least: supply bound functions.
//!
//! Shin, Lee, "Periodic resource model for compositional real-time guarantees", RTSS 2003.

mod dedicated;

pub use dedicated::Dedicated;

use super::{Fraction, Overflow};
use crate::{Service, Span};

/// A lower bound on the service in any window of a given length, however the window lies.
///
/// What an implementation must keep (and `tests/supplies.rs` checks): sbf(0) = 0; sbf does not fall, and grows by at most one tick a
/// tick; `window_for` is its least inverse; sbf(t) ≥ rate · (t − delay) for all t.
pub trait SupplyBound {
    /// sbf(t): the least service in any window of this length.
    fn least_service(&self, window: Span) -> Service;

    /// The shortest window in which this much service is sure: the least t with sbf(t) ≥ `service`.
    fn window_for(&self, service: Service) -> Result<Span, Overflow>;

    /// The share of a processor in the long run; never more than one.
    fn rate(&self) -> Fraction;

    /// A window of this length, at most, may pass before the service comes at its rate.
    fn delay(&self) -> Span;

    /// Whether one and the same course of the supply can give no more than sbf in all windows that begin at one instant: then a test
    /// that is exact on a dedicated processor is exact here too.
    fn is_attained(&self) -> bool;
}

impl<S: SupplyBound + ?Sized> SupplyBound for &S {
    fn least_service(&self, window: Span) -> Service {
        (**self).least_service(window)
    }

    fn window_for(&self, service: Service) -> Result<Span, Overflow> {
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
