//! How much service a device needs in each window of a reservation.

use super::Settings;
use crate::{Service, Span};

impl Settings {
    /// The least service in every window that gives jobs of this run time all they need in time, a multiple of the granularity, and [`most`](Self::most) if that
    /// does not suffice.
    ///
    /// With *X* in every window of *Y*, any time *d* = *nY* + *r* holds at least *nX* + max(0, *X* − (*Y* − *r*)) of service. So a
    /// job of *C*, due after *d*, is in time if *X* ≥ *C*/*n* or *X* ≥ (*C* + *Y* − *r*)/(*n* + 1); and the reservation keeps up with a job
    /// every *T* if *X*/*Y* ≥ *C*/*T*.
    pub fn needed(&self, run: Service) -> Service {
        let (window, period) = (self.window.as_nanos(), self.period.as_nanos().max(1));
        let deadline = self.deadline.as_nanos();
        let (whole, rest) = (deadline / window, deadline % window);
        let run = run.as_nanos();
        let by_rate = u128::from(run) * u128::from(window);
        let by_rate = by_rate.div_ceil(u128::from(period));
        let by_rate = u64::try_from(by_rate).unwrap_or(u64::MAX);
        let partly = (run.saturating_add(window - rest)).div_ceil(whole + 1);
        let by_deadline = match whole {
            0 => partly,
            _ => partly.min(run.div_ceil(whole)),
        };
        self.fit(Service::from_nanos(by_rate.max(by_deadline)))
    }

    /// Rounded up to the granularity, one grain at least and no more than the most.
    pub(super) fn fit(&self, service: Service) -> Service {
        let grain = self.granularity.as_nanos().max(1);
        let grains = service.as_nanos().div_ceil(grain).max(1);
        let fits = self.most.as_nanos().min(self.window.as_nanos());
        Service::from_nanos(grains.saturating_mul(grain).min(fits))
    }

    /// Rounded down to the granularity, one grain at least.
    pub(super) fn fit_below(&self, service: Service) -> Service {
        let grain = self.granularity.as_nanos().max(1);
        self.fit(Service::from_nanos(service.as_nanos() / grain * grain))
    }

    /// The longest run time for which this service suffices: what [`needed`](Self::needed) turns round, but for the granularity.
    pub fn capacity(&self, service: Service) -> Service {
        let (window, x) = (self.window.as_nanos(), service.as_nanos());
        let deadline = self.deadline.as_nanos();
        let (whole, rest) = (deadline / window, deadline % window);
        let in_time = whole
            .saturating_mul(x)
            .saturating_add(x.saturating_sub(window - rest));
        let by_rate = u128::from(x) * u128::from(self.period.as_nanos()) / u128::from(window);
        let by_rate = u64::try_from(by_rate).unwrap_or(u64::MAX);
        Service::from_nanos(in_time.min(by_rate))
    }
}

/// So many times the span.
pub(super) fn times(span: Span, factor: u32) -> Span {
    span.checked_mul(u64::from(factor)).unwrap_or(Span::MAX)
}
