//! What tasks ask of a busy window, in plain numbers, and quickly.

use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::analysis::divisor::Divisor;
use crate::analysis::{Budget, Fraction, Overflow, Result, Task};

/// The longest busy window, execution time, period or jitter that is looked at, in nanoseconds: 73 years. Below it, no sum of
/// [`requested`] wraps.
pub(super) const HORIZON: u64 = 1 << 61;

/// A task as the busy windows of others see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requests {
    pub(super) cost: u64,
    period: Divisor,
    /// J + (b − 1)·T: a burst asks for what late jobs would ask for.
    pub(super) ahead: u64,
    /// (b − 1)·T of that.
    pub(super) burst: u64,
}

impl Requests {
    #[inline]
    fn new(task: &Task) -> Result<Self> {
        let (cost, period) = (task.cost().as_nanos(), task.period().as_nanos());
        let ahead = u64::try_from(task.ahead()).unwrap_or(u64::MAX);
        if cost.max(period).max(ahead) > HORIZON {
            return Err(Overflow(
                "an execution time, a period, a burst or a jitter of more than 73 years",
            ));
        }
        Ok(Self {
            cost,
            period: Divisor::new(period),
            ahead,
            burst: ahead - task.jitter().as_nanos(),
        })
    }

    /// The most jobs that are released at one instant: a burst, and those that arrived within the jitter before.
    fn at_once(&self) -> u64 {
        if self.ahead < self.period() {
            1
        } else {
            self.ahead / self.period() + 1
        }
    }

    #[inline]
    pub(super) fn period(&self) -> u64 {
        self.period.get()
    }

    /// C/T in units of 2⁻⁶⁴: C · ⌊(2⁶⁴ − 1)/T⌋ is too low by at most C.
    #[inline]
    fn load(&self) -> u128 {
        u128::from(self.cost) * u128::from(self.period.reciprocal()) + u128::from(self.cost)
    }

    pub(super) fn utilization(&self) -> Fraction {
        Fraction::new(self.cost, self.period()).unwrap_or(Fraction::ONE)
    }
}

/// Tasks in plain numbers, one after the other.
pub(super) struct Rows {
    rows: Vec<Requests>,
    /// What all of them ask for at one instant, and a job of each more.
    backlog: u64,
    /// Σ C/T in units of 2⁻⁶⁴, high by at most Σ C.
    load: u128,
}

impl Rows {
    pub(super) fn with_capacity(tasks: usize) -> Self {
        Self {
            rows: Vec::with_capacity(tasks),
            backlog: 0,
            load: 0,
        }
    }

    /// One more. An error unless all of them together ask for little enough at one instant.
    #[inline]
    pub(super) fn push(&mut self, task: &Task) -> Result<()> {
        let row = Requests::new(task)?;
        let most = row.cost.checked_mul(row.at_once() + 1);
        self.backlog = most
            .and_then(|most| self.backlog.checked_add(most))
            .filter(|backlog| *backlog <= HORIZON)
            .ok_or(Overflow(
                "service of more than 73 years, asked for at one instant,",
            ))?;
        self.load = self.load.saturating_add(row.load());
        self.rows.push(row);
        Ok(())
    }

    /// All of them.
    #[inline]
    pub(super) fn all(&self) -> &[Requests] {
        &self.rows
    }

    /// How the utilizations of all, together, compare with a rate. Exact.
    #[inline]
    pub(super) fn compare_load(&self, rate: Fraction) -> Ordering {
        compare(self.load, &self.rows, rate)
    }
}

/// The same tasks in plain numbers, and how their load compares with a rate. An error unless all of them together ask for little enough at
/// one instant.
#[inline]
pub(super) fn requests_of<'a>(
    tasks: impl IntoIterator<Item = &'a Task>,
    rate: Fraction,
) -> Result<(Vec<Requests>, Ordering)> {
    let all = rows_of(tasks)?;
    let load = all.compare_load(rate);
    Ok((all.rows, load))
}

/// The same, as one of several questions for which all together there is this budget; `None` where that is not enough.
pub(super) fn requests_within<'a>(
    tasks: impl IntoIterator<Item = &'a Task>,
    rate: Fraction,
    budget: &Budget,
) -> Result<Option<(Vec<Requests>, Ordering)>> {
    let all = rows_of(tasks)?;
    let utilizations = || all.rows.iter().map(Requests::utilization);
    let load = quickly(all.load, rate)
        .or_else(|| rate.compare_sum_quickly(utilizations()))
        .or_else(|| {
            let is_allowed = budget.allows_exact_sum(all.rows.len());
            is_allowed.then(|| rate.compare_sum(utilizations()))
        });
    Ok(load.map(|load| (all.rows, load)))
}

fn rows_of<'a>(tasks: impl IntoIterator<Item = &'a Task>) -> Result<Rows> {
    let tasks = tasks.into_iter();
    let mut all = Rows::with_capacity(tasks.size_hint().0);
    for task in tasks {
        all.push(task)?;
    }
    Ok(all)
}

/// How the utilizations of these, together, compare with a rate. Exact.
pub(super) fn compare_load(requests: &[Requests], rate: Fraction) -> Ordering {
    let load = requests
        .iter()
        .fold(0_u128, |sum, row| sum.saturating_add(row.load()));
    compare(load, requests, rate)
}

/// The same, if their loads come to this.
fn compare(load: u128, requests: &[Requests], rate: Fraction) -> Ordering {
    // The other way round: how the sum compares with the rate.
    quickly(load, rate)
        .unwrap_or_else(|| rate.compare_sum(requests.iter().map(Requests::utilization)))
}

/// That it is less, where loads that come to this tell that.
fn quickly(load: u128, rate: Fraction) -> Option<Ordering> {
    let scaled = if rate.numerator() == rate.denominator() {
        1 << 64
    } else {
        (u128::from(rate.numerator()) << 64) / u128::from(rate.denominator())
    };
    (load < scaled).then_some(Ordering::Less)
}

/// What is asked for in a window.
pub(super) struct Requested {
    /// Σ ⌈(t + A)/T⌉ C.
    pub(super) service: u64,
    /// The longest window in which no more than that is asked for.
    pub(super) until: u64,
}

/// The service asked for in a window of this length, from 1 to [`HORIZON`], by tasks that are no more than one processor's load.
///
/// Nothing wraps: the sum is at most t·U + Σ C (A/T + 2), where t and the second term are at most [`HORIZON`], and U at most one.
#[inline]
pub(super) fn requested(requests: &[Requests], window: u64) -> Requested {
    let (mut service, mut left) = (0_u64, u64::MAX);
    for row in requests {
        // ⌈(t + A)/T⌉, where A is J + (b − 1)·T, and how long until the next of its jobs is released.
        let (jobs, until_next) = row.period.divide_up(window.wrapping_add(row.ahead));
        service = service.wrapping_add(jobs.wrapping_mul(row.cost));
        left = left.min(until_next);
    }
    Requested {
        service,
        until: window.saturating_add(left),
    }
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
            requests_of(&tasks, Fraction::ONE).expect("fits").1
        };
        assert_eq!(load(999_999_999), Ordering::Less);
        assert_eq!(load(1_000_000_000), Ordering::Equal);
        assert_eq!(load(1_000_000_001), Ordering::Greater);
    }
}
