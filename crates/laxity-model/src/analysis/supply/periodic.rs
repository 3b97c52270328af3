//! X in every period of Y: how late in the period it may come makes the difference.

use super::{SupplyBound, SupplyError};
use crate::analysis::{Fraction, Overflow, Result};
use crate::{Reservation, Service, Span};

/// X of service in every period of length Y, complete at the latest Δ after the period's beginning: the explicit deadline periodic
/// resource model Ω = (Π, Θ, Δ) of Easwaran, Anand, Lee, "Compositional analysis framework using EDP resource models", RTSS 2007.
///
/// The least service is that of windows that begin when one period's service is complete as early as possible, X after its beginning,
/// while all later periods are served as late as possible: nothing for Y + Δ − 2X, then X every Y in one piece. With
/// k = ⌊(t − (Δ − X))/Y⌋ for t ≥ Δ − X, sbf(t) = kX + max(0, t − (Y + Δ − 2X) − kY). Exact, attained, O(1).
///
/// ```
/// use laxity_model::analysis::supply::{ExplicitDeadline, SupplyBound};
/// use laxity_model::{Reservation, Service, Span};
///
/// let reservation = Reservation::new(Service::from_millis(2), Span::from_millis(8)).unwrap();
/// let early = ExplicitDeadline::new(reservation, Span::from_millis(3)).unwrap();
/// // 2 ms at the latest by 3 ms in each period of 8: 7 ms may pass without any.
/// assert_eq!(early.least_service(Span::from_millis(7)), Service::ZERO);
/// assert_eq!(early.least_service(Span::from_millis(9)), Service::from_millis(2));
/// assert_eq!(early.window_for(Service::from_millis(4)), Ok(Span::from_millis(17)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ExplicitDeadline {
    reservation: Reservation,
    deadline: Span,
}

impl ExplicitDeadline {
    /// The reservation's service in every period, `deadline` after the period's beginning at the latest: from X to Y.
    pub fn new(reservation: Reservation, deadline: Span) -> Result<Self, SupplyError> {
        let (service, period) = (reservation.service(), reservation.period());
        if deadline < service.as_dedicated_span() || deadline > period {
            return Err(SupplyError::Deadline {
                service,
                period,
                deadline,
            });
        }
        Ok(Self {
            reservation,
            deadline,
        })
    }

    /// X of service in every period of length Y, anywhere in it: the periodic resource model Γ = (Π, Θ) of Shin, Lee, "Periodic
    /// resource model for compositional real-time guarantees", RTSS 2003, equation 4.
    ///
    /// What a server that is replenished every Y gives, a constant bandwidth server among others whose deadlines are all met: early in
    /// one period and late in the next, so nothing for 2(Y − X). Here Δ = Y. Exact, attained, O(1).
    ///
    /// ```
    /// use laxity_model::analysis::supply::{ExplicitDeadline, SupplyBound};
    /// use laxity_model::{Reservation, Service, Span};
    ///
    /// let reservation = Reservation::new(Service::from_millis(2), Span::from_millis(8)).unwrap();
    /// let supply = ExplicitDeadline::periodic(reservation);
    /// assert_eq!(supply.least_service(Span::from_millis(12)), Service::ZERO);
    /// assert_eq!(supply.window_for(Service::from_millis(2)), Ok(Span::from_millis(14)));
    /// ```
    #[must_use]
    pub const fn periodic(reservation: Reservation) -> Self {
        let deadline = reservation.period();
        Self {
            reservation,
            deadline,
        }
    }

    /// X of service in **every** window of length Y: a continuously guaranteed reservation (Jones, Rosu, Rosu, "CPU Reservations and
    /// Time Constraints", SOSP 1997; Jones, Saroiu §5.4), which is what a [`Reservation`] promises and slots keep.
    ///
    /// A window of kY + r holds k windows of Y, apart, and of one more all but Y − r: sbf(kY + r) = kX + max(0, r − (Y − X)). A slot of
    /// X every Y gives no more, so here Δ = X. Exact, attained, O(1).
    ///
    /// ```
    /// use laxity_model::analysis::supply::{ExplicitDeadline, SupplyBound};
    /// use laxity_model::{Reservation, Service, Span};
    ///
    /// let reservation = Reservation::new(Service::from_millis(2), Span::from_millis(8)).unwrap();
    /// let supply = ExplicitDeadline::continuous(reservation);
    /// assert_eq!(supply.least_service(Span::from_millis(6)), Service::ZERO);
    /// assert_eq!(supply.least_service(Span::from_millis(8)), Service::from_millis(2));
    /// ```
    #[must_use]
    pub const fn continuous(reservation: Reservation) -> Self {
        let deadline = reservation.service().as_dedicated_span();
        Self {
            reservation,
            deadline,
        }
    }

    /// X and Y.
    pub const fn reservation(&self) -> Reservation {
        self.reservation
    }

    /// Δ.
    pub const fn deadline(&self) -> Span {
        self.deadline
    }

    /// Δ − X: by how much a period's service may come late.
    const fn slack(&self) -> u64 {
        self.deadline.as_nanos() - self.reservation.service().as_nanos()
    }
}

impl SupplyBound for ExplicitDeadline {
    #[inline]
    fn least_service(&self, window: Span) -> Service {
        let Some(late) = window.as_nanos().checked_sub(self.slack()) else {
            return Service::ZERO;
        };
        let (service, period) = (
            self.reservation.service().as_nanos(),
            self.reservation.period().as_nanos(),
        );
        let begun = (late % period).saturating_sub(period - service);
        Service::from_nanos(late / period * service + begun)
    }

    #[inline]
    fn window_for(&self, service: Service) -> Result<Span> {
        let Some(before) = service.as_nanos().checked_sub(1) else {
            return Ok(Span::ZERO);
        };
        // Full periods, and then as many ticks of one as are left.
        let whole = before / self.reservation.service().as_nanos();
        let gaps = self.reservation.longest_gap().checked_mul(whole);
        gaps.and_then(|gaps| gaps.checked_add(self.reservation.longest_gap()))
            .and_then(|gaps| gaps.checked_add(Span::from_nanos(self.slack())))
            .and_then(|gaps| gaps.checked_add(service.as_dedicated_span()))
            .ok_or(Overflow("the window of a periodic supply"))
    }

    #[inline]
    fn rate(&self) -> Fraction {
        Fraction::of(self.reservation.service(), self.reservation.period())
    }

    #[inline]
    fn delay(&self) -> Span {
        let gap = self.reservation.longest_gap();
        gap.checked_add(Span::from_nanos(self.slack()))
            .unwrap_or(Span::MAX)
    }

    #[inline]
    fn is_attained(&self) -> bool {
        true
    }
}
