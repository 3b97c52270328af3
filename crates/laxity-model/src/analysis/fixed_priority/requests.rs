//! What tasks ask of a busy window, in plain numbers, and quickly.

use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::analysis::divisor::Divisor;
use crate::analysis::{Fraction, Overflow, Result, Task};

/// The longest busy window, execution time, period or jitter that is looked at, in nanoseconds: 73 years. Below it, no sum of
/// [`requested`] wraps.
pub(super) const HORIZON: u64 = 1 << 61;

/// A task as the busy windows of others see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requests {
    pub(super) cost: u64,
    period: Divisor,
    pub(super) jitter: u64,
}

impl Requests {
    fn new(task: &Task) -> Result<Self> {
        let (cost, period) = (task.cost().as_nanos(), task.period().as_nanos());
        let jitter = task.jitter().as_nanos();
        if cost.max(period).max(jitter) > HORIZON {
            return Err(Overflow(
                "an execution time, a period or a jitter of more than 73 years",
            ));
        }
        Ok(Self {
            cost,
            period: Divisor::new(period),
            jitter,
        })
    }

    /// The most jobs that are released at one instant: those that arrived within the jitter before.
    fn at_once(&self) -> u64 {
        if self.jitter < self.period() {
            1
        } else {
            self.jitter / self.period() + 1
        }
    }

    #[inline]
    pub(super) fn period(&self) -> u64 {
        self.period.get()
    }

    pub(super) fn utilization(&self) -> Fraction {
        Fraction::new(self.cost, self.period()).unwrap_or(Fraction::ONE)
    }
}

/// The same tasks in plain numbers. An error unless all of them together ask for little enough at one instant.
pub(super) fn requests_of<'a>(tasks: impl IntoIterator<Item = &'a Task>) -> Result<Vec<Requests>> {
    let tasks = tasks.into_iter();
    let mut all = Vec::with_capacity(tasks.size_hint().0);
    let mut backlog = 0_u64;
    for task in tasks {
        let requests = Requests::new(task)?;
        let most = requests.cost.checked_mul(requests.at_once() + 1);
        backlog = most
            .and_then(|most| backlog.checked_add(most))
            .filter(|backlog| *backlog <= HORIZON)
            .ok_or(Overflow(
                "service of more than 73 years, asked for at one instant,",
            ))?;
        all.push(requests);
    }
    Ok(all)
}

/// How the utilizations of these, together, compare with a rate. Exact.
pub(super) fn compare_load(requests: &[Requests], rate: Fraction) -> Ordering {
    // In units of 2⁻⁶⁴: C · ⌊(2⁶⁴ − 1)/T⌋ is too low by at most C.
    let high = requests.iter().fold(0_u128, |sum, row| {
        let term =
            u128::from(row.cost) * u128::from(row.period.reciprocal()) + u128::from(row.cost);
        sum.saturating_add(term)
    });
    let scaled = if rate.numerator() == rate.denominator() {
        1 << 64
    } else {
        (u128::from(rate.numerator()) << 64) / u128::from(rate.denominator())
    };
    if high < scaled {
        return Ordering::Less;
    }
    // The other way round: how the sum compares with the rate.
    rate.compare_sum(requests.iter().map(Requests::utilization))
}

/// What is asked for in a window.
pub(super) struct Requested {
    /// Σ ⌈(t + J)/T⌉ C.
    pub(super) service: u64,
    /// The longest window in which no more than that is asked for.
    pub(super) until: u64,
}

/// The service asked for in a window of this length, from 1 to [`HORIZON`], by tasks that are no more than one processor's load.
///
/// Nothing wraps: the sum is at most t·U + Σ C (J/T + 2), where t and the second term are at most [`HORIZON`], and U at most one.
#[inline]
pub(super) fn requested(requests: &[Requests], window: u64) -> Requested {
    let (mut service, mut until) = (0_u64, u64::MAX);
    for row in requests {
        // ⌈(t + J)/T⌉ = ⌊(t − 1 + J)/T⌋ + 1.
        let since = (window - 1).wrapping_add(row.jitter);
        let (before, rest) = row.period.divide(since);
        service = service.wrapping_add(before.wrapping_add(1).wrapping_mul(row.cost));
        // Until the next of its jobs is released.
        let left = row.period.get().wrapping_sub(rest);
        until = until.min(window.wrapping_add(left - 1));
    }
    Requested { service, until }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Service, Span};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn multiplying_by_the_reciprocal_divides_exactly(
            cost in 1_u64..1000,
            period in prop_oneof![1_u64..20, 1_u64..=HORIZON, Just(HORIZON)],
            jitter in prop_oneof![Just(0), 0_u64..50, 0_u64..=HORIZON / 2000],
            window in prop_oneof![1_u64..100, 1_u64..=HORIZON],
        ) {
            let task = Task::new(Service::from_nanos(cost), Span::from_nanos(period)).expect("a task");
            let row = Requests::new(&task.with_jitter(Span::from_nanos(jitter))).expect("fits");
            let jobs = (u128::from(window) + u128::from(jitter)).div_ceil(u128::from(period));
            prop_assume!(jobs * u128::from(cost) < 1 << 64);
            let asked = requested(&[row], window);
            prop_assert_eq!(u128::from(asked.service), jobs * u128::from(cost));
            prop_assert_eq!(u128::from(asked.until) + u128::from(jitter), jobs * u128::from(period));
        }
    }

    #[test]
    fn loads_are_compared_exactly() {
        let thirds = |cost| Task::new(Service::from_nanos(cost), Span::from_nanos(3_000_000_000));
        let load = |last| {
            let tasks = [thirds(1_000_000_000), thirds(1_000_000_000), thirds(last)];
            let tasks = tasks.map(|task| task.expect("a task"));
            compare_load(&requests_of(&tasks).expect("fits"), Fraction::ONE)
        };
        assert_eq!(load(999_999_999), Ordering::Less);
        assert_eq!(load(1_000_000_000), Ordering::Equal);
        assert_eq!(load(1_000_000_001), Ordering::Greater);
    }
}
