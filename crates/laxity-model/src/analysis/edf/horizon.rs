//! How far a demand test must look.

use core::cmp::Ordering;

use super::set::{Load, Set, is_whole, window_for};
use crate::analysis::supply::{SupplyBound, cycle_of};
use crate::analysis::{Fraction, Result};
use crate::base::number::lcm;

/// Bits behind the point.
const POINT: u32 = 32;

/// A bound from utilizations that is longer than this many of the longest period is held against the busy window, which takes
/// longer to find.
const FAR: u64 = 256;

/// The sums that bound dbf(t) from above by a line, in units of 2⁻³².
struct Line {
    /// Σ U·(T + J − D), over those where it is positive, and Σ (b − 1)·C; high.
    excess: u128,
    /// The same over the others, without its sign; low.
    deficit: u128,
    /// What the rate of the supply exceeds Σ U by; low.
    gap: u128,
    /// From where the line bounds the demand if the deficit is used: the last D − J − T.
    from: u64,
}

/// If there is an overload at all, there is one no later than this; `None` where no such time was found. For a set that does not need more than
/// the rate of the supply, nor releases jobs that are late already.
///
/// Beyond the last D − J − T, dbf(t) ≤ U·t + Σ (U·(T + J − D) + (b − 1)·C), and sbf(t) ≥ r·(t − delay): with blocking B an overload has
/// t < (Σ (U·(T + J − D) + (b − 1)·C) + r·delay + B) / (r − U) (as Zhang, Burns 2009 on a dedicated processor without regions). Without
/// the negative terms the same holds for all t. Beyond the last D − J nothing blocks but who is never due. With U = r, or nearly, the busy window
/// bounds the search, and at last the hyperperiod.
pub(super) fn horizon<S: SupplyBound>(
    set: &Set<'_>,
    supply: &S,
    load: Load,
    ordering: Ordering,
) -> Result<Option<u64>> {
    let mut blocking = (set.beside, 0);
    let mut longest_period = 0;
    for item in &set.items {
        longest_period = item.period.get().max(longest_period);
        if item.blocking > set.beside {
            blocking = (item.blocking.max(blocking.0), item.due.max(blocking.1));
        }
    }
    let line = Line::new(set, supply.rate(), load);
    let lag = lag(supply);
    let free = line.bound(lag + (u128::from(set.beside) << POINT));
    let linear = if blocking.0 == set.beside {
        free
    } else {
        let after = free.map(|bound| bound.max(blocking.1));
        let under = line.bound(lag + (u128::from(blocking.0) << POINT));
        after.into_iter().chain(under).min()
    };
    if let Some(bound) = linear
        && bound / FAR <= longest_period
    {
        return Ok(Some(bound));
    }
    let busy = set.busy_window(supply, ordering)?;
    match linear.into_iter().chain(busy).min() {
        Some(bound) => Ok(Some(bound)),
        None => by_hyperperiod(set, supply),
    }
}

impl Line {
    fn new(set: &Set<'_>, rate: Fraction, load: Load) -> Self {
        let (mut excess, mut deficit, mut from) = (0_u128, 0_u128, 0);
        for item in &set.items {
            let (cost, period) = (u128::from(item.cost), item.period.get());
            let share = cost * u128::from(item.period.reciprocal());
            // Most that fits 64 bits of a burst's cost is beyond what a demand may be.
            let burst = cost.saturating_mul(u128::from(item.burst - 1));
            excess = excess.saturating_add(burst.min(u128::MAX >> (POINT + 8)) << POINT);
            if let Some(early) = period.checked_sub(item.due) {
                excess = excess.saturating_add((((share + cost) >> POINT) + 1) * u128::from(early));
            } else {
                let late = item.due - period;
                deficit += (share >> POINT) * u128::from(late);
                from = late.max(from);
            }
        }
        let rate = if is_whole(rate) {
            1 << POINT
        } else {
            (u128::from(rate.numerator()) << POINT) / u128::from(rate.denominator())
        };
        Self {
            excess,
            deficit,
            gap: rate.saturating_sub((load.most >> POINT) + 1),
            from,
        }
    }

    /// No overload is later than this, if there is anything to be blocked for and lag on top.
    fn bound(&self, more: u128) -> Option<u64> {
        let over = |sum: u128| match (sum, self.gap) {
            (0, _) => Some(0),
            (_, 0) => None,
            (sum, gap) => u64::try_from(sum / gap).ok(),
        };
        let sum = self.excess.saturating_add(more);
        let (all, net) = (over(sum), over(sum.saturating_sub(self.deficit)));
        all.into_iter()
            .chain(net.map(|net| net.max(self.from)))
            .min()
    }
}

/// rate · delay, in units of 2⁻³²; high.
fn lag<S: SupplyBound>(supply: &S) -> u128 {
    let (rate, delay) = (supply.rate(), u128::from(supply.delay().as_nanos()));
    if delay == 0 {
        return 0;
    }
    let lag = (u128::from(rate.numerator()) * delay).div_ceil(u128::from(rate.denominator()));
    // The rate is at most one, so this is at most the delay.
    lag.min(delay) << POINT
}

/// Where all have had a deadline and two ticks of service are sure, demand and supply repeat themselves: over a common multiple H of all periods and
/// of the supply's, dbf(t + H) ≤ dbf(t) + rate · H = dbf(t) + sbf(t + H) − sbf(t). So an overload there comes again, and is never the first.
fn by_hyperperiod<S: SupplyBound>(set: &Set<'_>, supply: &S) -> Result<Option<u64>> {
    let until = repeats_after(set, supply)?;
    Ok(until.filter(|until| set.demand_fits(*until).is_ok()))
}

/// A common multiple of all periods and of the supply's after all have had a deadline and two ticks of service are sure, where the set needs all of
/// the supply; `None` where there is none that fits.
pub(super) fn repeats_after<S: SupplyBound>(set: &Set<'_>, supply: &S) -> Result<Option<u64>> {
    let Some(cycle) = cycle_of(supply) else {
        return Ok(None);
    };
    let periods = set.items.iter().map(|item| item.period.get());
    let last = set.items.iter().map(|item| item.due).max().unwrap_or(0);
    let from = window_for(supply, 2)?.max(last);
    Ok(lcm(periods.chain([cycle])).and_then(|length| length.checked_add(from)))
}
