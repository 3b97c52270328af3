//! What the work on a PDU takes, by its size.

use super::Unmappable;
use crate::Service;

/// What the work on a PDU takes: so much each, and so much for each byte. Measured, not guessed: that is what [`Cost::of_samples`] is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cost {
    /// Whatever it carries.
    pub each: Service,
    /// For each byte, in picoseconds.
    pub byte_ps: u64,
}

impl Cost {
    /// What a PDU of so many bytes takes, rounded up.
    #[must_use]
    pub fn of(&self, bytes: u32) -> Service {
        let bytes = u128::from(bytes) * u128::from(self.byte_ps);
        let nanos = bytes.div_ceil(1_000) + u128::from(self.each.as_nanos());
        Service::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The most bytes that a PDU may carry to take no longer than this; `None` if not even one without any does.
    pub(super) fn most_bytes(&self, service: Service) -> Option<u64> {
        let left = service.as_nanos().checked_sub(self.each.as_nanos())?;
        Some(match self.byte_ps {
            0 => u64::MAX,
            each => u64::try_from(u128::from(left) * 1_000 / u128::from(each)).unwrap_or(u64::MAX),
        })
    }

    /// A cost that no sample exceeds: the slope is that of least squares, rounded up and never less than nothing, and the rest is raised until all samples are covered. Each is the size of a PDU in bytes with what the work on it took.
    ///
    /// # Errors
    ///
    /// [`Unmappable::TooFewSizes`].
    pub fn of_samples(samples: &[(u32, Service)]) -> Result<Self, Unmappable> {
        let count = samples.len() as i128;
        let sum = |of: fn(i128, i128) -> i128| {
            let pairs = samples.iter();
            let pairs =
                pairs.map(|(bytes, took)| (i128::from(*bytes), i128::from(took.as_nanos())));
            pairs.map(|(x, y)| of(x, y)).sum::<i128>()
        };
        let (x, y) = (sum(|x, _| x), sum(|_, y| y));
        let spread = count * sum(|x, _| x * x) - x * x;
        if spread == 0 {
            return Err(Unmappable::TooFewSizes);
        }
        let common = count * sum(|x, y| x * y) - x * y;
        let slope = (common.max(0) * 1_000 + spread - 1) / spread;
        let bytes = Self {
            each: Service::ZERO,
            byte_ps: u64::try_from(slope).unwrap_or(u64::MAX),
        };
        let rest = samples.iter();
        let rest = rest.map(|(size, took)| took.saturating_sub(bytes.of(*size)));
        Ok(Self {
            each: rest.max().unwrap_or(Service::ZERO),
            ..bytes
        })
    }
}
