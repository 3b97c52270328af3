//! What a real machine costs: the figures that a twin of it needs, as `laxity calibrate` measures them.

use alloc::string::String;
use alloc::vec::Vec;

use crate::Span;

/// A distribution of spans by its quantiles.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Quantiles {
    /// Parts per million of all values, and the span that so many do not exceed; both rising. Between two points values are spread
    /// evenly; nothing lies outside the first and the last.
    points: Vec<(u32, Span)>,
}

/// Why points are no distribution.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum QuantilesError {
    /// There is none.
    #[error("a distribution needs a quantile at least")]
    Empty,
    /// A share or a span falls.
    #[error("quantile {index} falls below the one before it")]
    Falls {
        /// Which.
        index: usize,
    },
    /// A share above one million.
    #[error("quantile {index} is beyond 1000000 parts per million")]
    Beyond {
        /// Which.
        index: usize,
    },
}

impl Quantiles {
    /// A distribution from its points: parts per million, rising, and spans, not falling.
    ///
    /// # Errors
    ///
    /// See [`QuantilesError`].
    pub fn new(points: Vec<(u32, Span)>) -> Result<Self, QuantilesError> {
        if points.is_empty() {
            return Err(QuantilesError::Empty);
        }
        for (index, pair) in points.windows(2).enumerate() {
            if pair[1].0 <= pair[0].0 || pair[1].1 < pair[0].1 {
                return Err(QuantilesError::Falls { index: index + 1 });
            }
        }
        match points.iter().position(|(ppm, _)| *ppm > 1_000_000) {
            Some(index) => Err(QuantilesError::Beyond { index }),
            None => Ok(Self { points }),
        }
    }

    /// Always the same span.
    #[must_use]
    pub fn constant(span: Span) -> Self {
        Self {
            points: [(0, span)].into(),
        }
    }

    /// The points.
    #[must_use]
    pub fn points(&self) -> &[(u32, Span)] {
        &self.points
    }

    /// The span that this share of all values does not exceed; zero if the distribution is empty. O(log n).
    #[must_use]
    pub fn at(&self, ppm: u32) -> Span {
        let after = self.points.partition_point(|(share, _)| *share < ppm);
        let Some((share, high)) = self.points.get(after).copied() else {
            return self.points.last().map_or(Span::ZERO, |(_, span)| *span);
        };
        let Some((below, low)) = after.checked_sub(1).map(|before| self.points[before]) else {
            return high;
        };
        let rise = u128::from((high - low).as_nanos());
        let part = rise * u128::from(ppm - below) / u128::from(share - below);
        low + Span::from_nanos(part as u64)
    }

    /// The median.
    #[must_use]
    pub fn median(&self) -> Span {
        self.at(500_000)
    }
}

/// A machine as it was measured. Every span is what is lost on the processor where it happens, unless it says otherwise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    /// Processor, kernel, hypervisor: for reports.
    pub description: String,
    /// When and how it was measured: for reports.
    pub provenance: String,
    /// How often a second the kernel's tick interrupts.
    pub tick_hz: u32,
    /// What a tick takes from a thread that computes.
    pub tick: Quantiles,
    /// From one real-time thread to another on the same processor.
    pub context_switch: Quantiles,
    /// From the instant a sleeping real-time thread asked for to its first instruction, on a processor that ordinary threads keep busy.
    pub wakeup: Quantiles,
    /// From a semaphore's signal to the first instruction of the real-time thread that waited, on the same processor.
    pub handover: Quantiles,
    /// The system call that gives another thread a policy.
    pub policy_change: Quantiles,
    /// The system call that sleeps until an instant, without the sleep.
    pub timer: Quantiles,
    /// What a thread loses after another one of some size has run: the time it takes to load its working set again.
    pub cache_reload: Quantiles,
    /// How much longer than its budget `SCHED_DEADLINE` lets a thread run.
    pub deadline_overrun: Quantiles,
    /// How early the dispatcher of time slots wakes, and how long before the edge it lets go.
    pub slot_lead: Span,
    /// What a slot's edge costs the dispatcher.
    pub slot_edge: Quantiles,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_read_between_their_points() {
        let us = Span::from_micros;
        let some = Quantiles::new([(0, us(10)), (500_000, us(20)), (1_000_000, us(120))].into());
        let some = some.unwrap();
        assert_eq!(some.at(0), us(10));
        assert_eq!(some.at(250_000), us(15));
        assert_eq!(some.median(), us(20));
        assert_eq!(some.at(990_000), us(118));
        assert_eq!(some.at(1_000_000), us(120));
        assert_eq!(Quantiles::constant(us(7)).at(123), us(7));
    }

    #[test]
    fn what_falls_is_refused() {
        let us = Span::from_micros;
        let falls = Quantiles::new([(0, us(10)), (500_000, us(9))].into());
        assert_eq!(falls, Err(QuantilesError::Falls { index: 1 }));
        assert_eq!(Quantiles::new(Vec::new()), Err(QuantilesError::Empty));
        let beyond = Quantiles::new([(1_000_001, us(1))].into());
        assert_eq!(beyond, Err(QuantilesError::Beyond { index: 0 }));
    }
}
