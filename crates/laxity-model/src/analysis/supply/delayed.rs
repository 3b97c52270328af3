//! What comes late of a supply.

use super::SupplyBound;
use crate::analysis::{Fraction, Overflow, Result};
use crate::{Service, Span};

/// A supply any piece of which may come up to so much later than it should: slots whose edges are late, say.
///
/// All that was to be given in a window from its beginning until J before its end is given in the window: sbf'(t) = sbf(t − J). Attained only
/// if nothing is late: nobody says that all is late at once.
///
/// ```
/// use laxity_model::analysis::supply::{Delayed, ExplicitDeadline, SupplyBound};
/// use laxity_model::{Reservation, Service, Span};
///
/// let slots = ExplicitDeadline::continuous(Reservation::new(Service::from_millis(2), Span::from_millis(8)).unwrap());
/// let late = Delayed::new(slots, Span::from_micros(200));
/// assert_eq!(late.least_service(Span::from_millis(8)), Service::from_micros(1_800));
/// assert_eq!(late.window_for(Service::from_millis(2)), Ok(Span::from_micros(8_200)));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delayed<S> {
    supply: S,
    late: Span,
}

impl<S: SupplyBound> Delayed<S> {
    /// The supply, whose service may come so late.
    pub const fn new(supply: S, late: Span) -> Self {
        Self { supply, late }
    }
}

impl<S: SupplyBound> SupplyBound for Delayed<S> {
    fn least_service(&self, window: Span) -> Service {
        self.supply.least_service(window.saturating_sub(self.late))
    }

    fn window_for(&self, service: Service) -> Result<Span> {
        if service.is_zero() {
            return Ok(Span::ZERO);
        }
        let window = self.supply.window_for(service)?.checked_add(self.late);
        window.ok_or(Overflow("the window of a late supply"))
    }

    fn rate(&self) -> Fraction {
        self.supply.rate()
    }

    fn delay(&self) -> Span {
        let delay = self.supply.delay().checked_add(self.late);
        delay.unwrap_or(Span::MAX)
    }

    fn is_attained(&self) -> bool {
        self.late.is_zero() && self.supply.is_attained()
    }
}
