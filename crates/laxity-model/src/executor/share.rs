//! A budget that several handlers have together: so much service a period, and what is over waits for the next.

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::pacing::Epoch;
use crate::{Instant, Service, Span};

/// So much service a period for several handlers of an executor together: it is there at the begin of each period of its own grid, for whoever asks first until the period's end, and
/// not kept for the next. A quantum begins only where all that is declared for it is left, so that handlers that keep to what they declared never have more than the budget in a period; who takes more leaves a debt.
/// So who always has work gets what is less than a quantum short of the budget: of one that is a whole number of quanta, each of which takes a little more than is declared, one quantum less.
///
/// To others it is a *deferrable server*: Strosnider, Lehoczky, Sha, "The Deferrable Server Algorithm for Enhanced Aperiodic Responsiveness in Hard Real-Time Environments", IEEE Trans. Computers 44, 1995.
///
/// The executor alone writes it, and anybody reads.
#[derive(Debug)]
pub struct Share {
    budget: Service,
    period: Span,
    begins: Epoch,
    /// Of the period of this number so much is left, in nanoseconds; less than nothing is a debt.
    number: AtomicU64,
    left_ns: AtomicI64,
    used_ns: AtomicU64,
    waits: AtomicU64,
}

/// What a share has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ShareCounts {
    /// What its handlers took, on the clock.
    pub used: Span,
    /// How often a quantum waited for the next period.
    pub waits: u64,
}

impl Share {
    /// So much every period, the first of which begins then; `None` where the budget is zero, or more than the period.
    #[must_use]
    pub fn new(budget: Service, period: Span, begins: impl Into<Epoch>) -> Option<Self> {
        let fits = budget > Service::ZERO && budget.as_dedicated_span() <= period;
        let budget_ns = i64::try_from(budget.as_nanos()).ok()?;
        fits.then_some(Self {
            budget,
            period,
            begins: begins.into(),
            number: AtomicU64::new(0),
            left_ns: AtomicI64::new(budget_ns),
            used_ns: AtomicU64::new(0),
            waits: AtomicU64::new(0),
        })
    }

    /// So much a period.
    pub const fn budget(&self) -> Service {
        self.budget
    }

    /// From one replenishment to the next.
    pub const fn period(&self) -> Span {
        self.period
    }

    /// What it has done. No lock, and no system call.
    pub fn counts(&self) -> ShareCounts {
        ShareCounts {
            used: Span::from_nanos(self.used_ns.load(Ordering::Relaxed)),
            waits: self.waits.load(Ordering::Relaxed),
        }
    }

    /// Whether a quantum for which so much is declared may begin now.
    ///
    /// # Errors
    ///
    /// When it may.
    pub(crate) fn admits(&self, declared: Service, now: Instant) -> Result<(), Instant> {
        let left = self.replenish(now);
        // More than a budget is never there.
        let needed = declared.min(self.budget).as_nanos() as i64;
        if left >= needed {
            return Ok(());
        }
        let lack = needed.saturating_sub(left) as u64;
        let periods = lack.div_ceil(self.budget.as_nanos());
        let number = self.number.load(Ordering::Relaxed).saturating_add(periods);
        let waits = self.waits.load(Ordering::Relaxed).wrapping_add(1);
        self.waits.store(waits, Ordering::Relaxed);
        let since = Span::from_nanos(self.period.as_nanos().saturating_mul(number));
        let begins = self.begins.or_now(now);
        Err(begins.checked_add(since).unwrap_or(Instant::MAX))
    }

    /// A quantum that is over now took so much.
    pub(crate) fn charge(&self, took: Span, now: Instant) {
        // In this order: what lies across two periods is the second's, so that none ever has more than its budget. What ends with one lies in that.
        let left = self.replenish(now.saturating_sub(Span::from_nanos(1)));
        let took = took.as_nanos();
        let left = left.saturating_sub(i64::try_from(took).unwrap_or(i64::MAX));
        self.left_ns.store(left, Ordering::Relaxed);
        let used = self.used_ns.load(Ordering::Relaxed).wrapping_add(took);
        self.used_ns.store(used, Ordering::Relaxed);
    }

    /// What is left now, in nanoseconds.
    fn replenish(&self, now: Instant) -> i64 {
        let since = now.saturating_since(self.begins.or_now(now)).as_nanos();
        let number = since / self.period.as_nanos();
        let (before, left) = (
            self.number.load(Ordering::Relaxed),
            self.left_ns.load(Ordering::Relaxed),
        );
        if number <= before {
            return left;
        }
        let budget = self.budget.as_nanos() as i64;
        let periods = i64::try_from(number - before).unwrap_or(i64::MAX);
        let left = left
            .saturating_add(budget.saturating_mul(periods))
            .min(budget);
        self.number.store(number, Ordering::Relaxed);
        self.left_ns.store(left, Ordering::Relaxed);
        left
    }
}
