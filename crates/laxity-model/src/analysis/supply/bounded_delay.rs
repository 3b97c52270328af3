//! A rate after a delay.

use super::{SupplyBound, SupplyError};
use crate::analysis::{Fraction, Overflow, Result};
use crate::{Service, Span};

/// A share α of a processor, never more than Δ late: the bounded-delay resource model (α, Δ) of Mok, Feng, Chen, "Resource partition
/// for real-time systems", RTAS 2001.
///
/// sbf(t) = ⌊α(t − Δ)⌋ for t ≥ Δ: rounded down to whole ticks, so a supply that is continuous in the model gives no less. Exact for
/// the model in ticks, attained, O(1). [`SupplyBound::delay`] is Δ and what the rounding takes, less than 1/α + 1.
///
/// ```
/// use laxity_model::analysis::Fraction;
/// use laxity_model::analysis::supply::{BoundedDelay, SupplyBound};
/// use laxity_model::{Service, Span};
///
/// let third = Fraction::new(1, 3).unwrap();
/// let supply = BoundedDelay::new(third, Span::from_millis(5)).unwrap();
/// assert_eq!(supply.least_service(Span::from_millis(11)), Service::from_millis(2));
/// assert_eq!(supply.window_for(Service::from_millis(2)), Ok(Span::from_millis(11)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BoundedDelay {
    rate: Fraction,
    delay: Span,
}

impl BoundedDelay {
    /// This share of a processor, more than 0 and at most 1, after this delay.
    pub fn new(rate: Fraction, delay: Span) -> Result<Self, SupplyError> {
        if rate.numerator() == 0 || rate.numerator() > rate.denominator() {
            return Err(SupplyError::Rate(rate));
        }
        Ok(Self {
            rate: rate.reduced(),
            delay,
        })
    }
}

impl SupplyBound for BoundedDelay {
    #[inline]
    fn least_service(&self, window: Span) -> Service {
        let late = u128::from(window.saturating_sub(self.delay).as_nanos());
        let scaled = late * u128::from(self.rate.numerator());
        // At most `late`, for the rate is at most one.
        let service = scaled / u128::from(self.rate.denominator());
        Service::from_nanos(u64::try_from(service).unwrap_or(u64::MAX))
    }

    #[inline]
    fn window_for(&self, service: Service) -> Result<Span> {
        if service.is_zero() {
            return Ok(Span::ZERO);
        }
        let scaled = u128::from(service.as_nanos()) * u128::from(self.rate.denominator());
        let at_rate = scaled.div_ceil(u128::from(self.rate.numerator()));
        let at_rate = u64::try_from(at_rate).ok().map(Span::from_nanos);
        at_rate
            .and_then(|span| span.checked_add(self.delay))
            .ok_or(Overflow("the window of a bounded-delay supply"))
    }

    #[inline]
    fn rate(&self) -> Fraction {
        self.rate
    }

    fn delay(&self) -> Span {
        // Rounding takes at most (d − 1)/d of a tick, which come at n/d a tick.
        let rounding = (self.rate.denominator() - 1).div_ceil(self.rate.numerator());
        let delay = self.delay.checked_add(Span::from_nanos(rounding));
        delay.unwrap_or(Span::MAX)
    }

    #[inline]
    fn is_attained(&self) -> bool {
        true
    }
}
