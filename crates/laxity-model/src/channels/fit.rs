//! Which rate and burst cover a flow that was recorded: the least of each for every one of the other.
//!
//! A linear bounded arrival process of a rate R and a burst B covers a flow if in no interval of length t, its ends with it, more than B + R × t of it arrive. For
//! each B there is a least such R, which is the largest (S − B) / t of all intervals, where S is what arrives in one. It falls as B grows, and is convex, since each
//! interval is a straight line of B; the pairs on it are all that need be considered: whatever else covers the flow has a larger rate or a larger burst.
//!
//! One pass finds, for a rate, the interval that asks for the largest burst, and with it that burst. The least rate for a burst is then found by Newton's method:
//! from the rate 0 on, each pass gives the interval that asks for the most, whose own least rate is the next to be tried. None of them is too large, each is
//! larger than the one before, and the one that stays is the answer, exactly. It takes few passes (a dozen, whatever the flow), of O(n) each.
//!
//! What is policed by such a pair ([`crate::nif::urgency::Urgency`]) is never in excess, and by the same burst and any smaller rate it is.

use alloc::vec::Vec;

use crate::nif::urgency::{Stated, StatedError, Urgency};
use crate::{Instant, Span};

/// What arrived at an instant: 1 where messages are counted, or their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Arrival {
    /// When.
    pub at: Instant,
    /// How much.
    pub amount: u32,
}

/// Why nothing can be fitted to a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FitError {
    /// Nothing arrived.
    #[error("nothing arrives in it")]
    Nothing,
    /// All that arrived is more than 2⁶³ − 1, or it took longer than so many nanoseconds.
    #[error("it is longer than 292 years, or more arrives in it than 63 bits count")]
    TooMuch,
}

/// So many messages or bytes in each period.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    amount: u64,
    /// More than zero.
    period: Span,
}

impl Rate {
    /// Nothing, ever.
    pub const NONE: Self = Self {
        amount: 0,
        period: Span::from_nanos(1),
    };

    /// So much in each period; `None` where that is zero.
    #[must_use]
    pub const fn new(amount: u64, period: Span) -> Option<Self> {
        if period.is_zero() {
            return None;
        }
        Some(Self { amount, period })
    }

    /// How much there is in each period.
    #[must_use]
    pub const fn amount(self) -> u64 {
        self.amount
    }

    /// The period: more than zero.
    #[must_use]
    pub const fn period(self) -> Span {
        self.period
    }

    /// The same rate in lowest terms.
    #[must_use]
    pub fn reduced(self) -> Self {
        let divisor = greatest_divisor(self.amount, self.period.as_nanos());
        Self {
            amount: self.amount / divisor,
            period: self.period / divisor,
        }
    }

    /// The least that a client can state which is no less: the same where the amount, in lowest terms, is of 32 bits.
    ///
    /// # Errors
    ///
    /// The burst is zero; or the rate is above 2³² − 1 in a nanosecond ([`StatedError::NoPeriod`]).
    pub fn stated(self, burst: u32, delay: Span) -> Result<Stated, StatedError> {
        let Self { amount, period } = self.reduced();
        let period = period.as_nanos();
        let (amount, period) = match u32::try_from(amount) {
            // A client states one at least: in all the time there is.
            Ok(0) => (1, u64::MAX),
            Ok(amount) => (amount, period),
            Err(_) => {
                let most = u128::from(u32::MAX) * u128::from(period) / u128::from(amount);
                // No more than the period, as the amount is more.
                (u32::MAX, most as u64)
            }
        };
        Stated::new(amount, Span::from_nanos(period), burst, delay)
    }
}

impl PartialEq for Rate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Rate {}

impl PartialOrd for Rate {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// By how fast they are, whatever their terms.
impl Ord for Rate {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        let beside = |one: &Self, period: Span| u128::from(one.amount) * nanos(period);
        beside(self, other.period).cmp(&beside(other, self.period))
    }
}

fn nanos(span: Span) -> u128 {
    span.as_nanos().into()
}

const fn greatest_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// A flow as it was recorded.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// In the order of their instants; one at least.
    arrivals: Vec<Arrival>,
    total: u64,
    lasts: Span,
}

/// What arrives between two arrivals, with both.
#[derive(Clone, Copy, Debug)]
struct Interval {
    amount: u64,
    lasts: Span,
}

impl Recorded {
    /// These arrivals, in whatever order. O(n log n).
    ///
    /// # Errors
    ///
    /// [`FitError`].
    pub fn new(mut arrivals: Vec<Arrival>) -> Result<Self, FitError> {
        arrivals.sort_by_key(|arrival| arrival.at);
        let [first, .., last] = arrivals.as_slice() else {
            let only = arrivals.first().ok_or(FitError::Nothing)?;
            return Ok(Self {
                total: only.amount.into(),
                lasts: Span::ZERO,
                arrivals,
            });
        };
        let lasts = last.at.saturating_since(first.at);
        let amounts = arrivals.iter().map(|arrival| u128::from(arrival.amount));
        let total: u128 = amounts.sum();
        let total = u64::try_from(total).map_err(|_| FitError::TooMuch)?;
        // So that whatever is multiplied here fits 127 bits.
        let fits = |number: u64| i64::try_from(number).is_ok();
        if !fits(total) || !fits(lasts.as_nanos()) {
            return Err(FitError::TooMuch);
        }
        Ok(Self {
            arrivals,
            total,
            lasts,
        })
    }

    /// All that arrived.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// From the first arrival to the last.
    #[must_use]
    pub const fn lasts(&self) -> Span {
        self.lasts
    }

    /// The mean rate: what arrived behind the first arrival, in the time that the flow lasts; `None` where that is no time.
    #[must_use]
    pub fn mean(&self) -> Option<Rate> {
        let first = self.arrivals.first()?;
        Rate::new(self.total - u64::from(first.amount), self.lasts)
    }

    /// The least burst with which there is a rate that covers the flow: the most that arrives at one instant. O(n).
    #[must_use]
    pub fn least_burst(&self) -> u64 {
        let mut most = 0;
        for together in self.arrivals.chunk_by(|one, other| one.at == other.at) {
            let amounts = together.iter().map(|arrival| u64::from(arrival.amount));
            most = most.max(amounts.sum());
        }
        most
    }

    /// The least burst that covers the flow at this rate, rounded up. O(n).
    #[must_use]
    pub fn burst(&self, rate: Rate) -> u64 {
        let worst = self.worst(rate);
        let covered = u128::from(rate.amount) * nanos(worst.lasts) / nanos(rate.period);
        // No interval asks for less than nothing, or for more than all.
        u128::from(worst.amount).saturating_sub(covered) as u64
    }

    /// The least rate that covers the flow with this burst; `None` where none does. [`Rate::NONE`] where the burst is all of it. A few passes of O(n).
    #[must_use]
    pub fn rate(&self, burst: u64) -> Option<Rate> {
        self.passes(burst).last()?
    }

    /// What is tried for a burst, one pass each, and the answer last.
    fn passes(&self, burst: u64) -> impl Iterator<Item = Option<Rate>> {
        let mut next = Some(Rate::NONE);
        let mut is_impossible = self.least_burst() > burst;
        core::iter::from_fn(move || {
            if core::mem::take(&mut is_impossible) {
                next = None;
                return Some(None);
            }
            let rate = next.take()?;
            let worst = self.worst(rate);
            let asked = u128::from(worst.amount.saturating_sub(burst)) * nanos(rate.period);
            if asked > u128::from(rate.amount) * nanos(worst.lasts) {
                next = Some(Rate {
                    amount: worst.amount - burst,
                    // At no instant more arrives than the burst is.
                    period: worst.lasts,
                });
            }
            Some(Some(rate))
        })
    }

    /// How long before its time a message comes at the most, policed by that: its logical arrival less its arrival. O(n).
    #[must_use]
    pub fn earliness(&self, stated: Stated) -> Span {
        let mut urgency = Urgency::new(stated);
        let early = self.arrivals.iter().map(|arrival| {
            let logical = urgency.arrived(arrival.at, arrival.amount).logical;
            logical.saturating_since(arrival.at)
        });
        early.max().unwrap_or(Span::ZERO)
    }

    /// The interval that asks for the largest burst at this rate: in which what arrives less what the rate covers is the most. O(n).
    fn worst(&self, rate: Rate) -> Interval {
        let (amount, period) = (i128::from(rate.amount), nanos(rate.period) as i128);
        let mut most = i128::MIN;
        let mut worst = Interval {
            amount: 0,
            lasts: Span::ZERO,
        };
        // The interval up to the arrival before that asks for the most, and what it asks for, in parts of one: as many as are in the period.
        let (mut begins, mut arrived, mut asked) = (Instant::from_nanos(0), 0, 0);
        let mut before = begins;
        for arrival in &self.arrivals {
            let gap = arrival.at.saturating_since(before).as_nanos();
            // Below zero whatever it was, where that is more than 127 bits.
            asked -= amount.saturating_mul(gap.into());
            if asked <= 0 {
                (begins, arrived, asked) = (arrival.at, 0, 0);
            }
            arrived += u64::from(arrival.amount);
            asked += i128::from(arrival.amount) * period;
            before = arrival.at;
            if asked > most {
                most = asked;
                worst = Interval {
                    amount: arrived,
                    lasts: arrival.at.saturating_since(begins),
                };
            }
        }
        worst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A burst of a hundred in each of a hundred seconds, with all other intervals between: whatever the burst, few passes are enough.
    #[test]
    fn few_passes_find_a_rate() {
        let mut arrivals = Vec::new();
        for second in 0..100_u64 {
            for place in 0..100_u64 {
                let at = second * 1_000_000_000 + place * place * 1_000 + second * place;
                arrivals.push(Arrival {
                    at: Instant::from_nanos(at),
                    amount: 1,
                });
            }
        }
        let recorded = Recorded::new(arrivals).unwrap();
        for burst in (1..=10_000).step_by(97) {
            let passes = recorded.passes(burst).count();
            assert!(passes <= 12, "{passes} passes for {burst}");
        }
    }
}
