//! What known work above takes from a supply.

use alloc::vec::Vec;

use super::{INEXACT, SupplyBound, SupplyError};
use crate::analysis::{Fraction, Overflow, Result, Task};
use crate::base::number::gcd;
use crate::{Service, Span};

/// After so many rounds of a fixed point, the bound from rate and delay is taken.
const MOST_ROUNDS: u32 = 1_000;

/// What is left of a supply under tasks that preempt whoever uses it: interrupts above a slot table, say.
///
/// α(t) = Σ ⌈(t + J + (b − 1)·T)/T⌉·C is the work that can be released above in a window of length t; sbf'(t) = max over u ≤ t of
/// max(0, sbf(u) − α(u)), which does not fall where α jumps. That is the residual service of preemptive fixed priorities as network
/// calculus has it (Bouillard, Jouhet, Thierry, "Service curves in network calculus: dos and don'ts", INRIA RR-7094, 2009), and holds for
/// *any* window, not only one at whose beginning nothing above is pending: take the last instant p before the window when nothing was.
/// Since then everything went to the work above, so what of it is still pending was released after p, and the window with what lies
/// before it from p on gets sbf − α of that longer length.
///
/// It holds as well if the work above has the whole processor and not only this supply, as interrupts above slots have. C must
/// include whatever each activation costs (entry, switching, cache); regions in which the user of the supply cannot be
/// preempted only help it. Not attained: the least of the supply and the most of the work need not meet.
///
/// Cost: `window_for` is a fixed point as in response-time analysis, `least_service` at most 64 of them. It begins where the rate says that
/// nothing earlier can do, so few rounds are usual even if the work leaves next to nothing. After 1,000 of them `window_for` answers by rate
/// and delay, which is sound but not least.
///
/// ```
/// use laxity_model::analysis::Task;
/// use laxity_model::analysis::supply::{ExplicitDeadline, Residual, SupplyBound};
/// use laxity_model::{Reservation, Service, Span};
///
/// let slots = ExplicitDeadline::continuous(Reservation::new(Service::from_millis(2), Span::from_millis(8)).unwrap());
/// let card = Task::new(Service::from_micros(16), Span::from_micros(12_500)).unwrap();
/// let left = Residual::new(slots, vec![card]).unwrap();
/// assert_eq!(left.least_service(Span::from_millis(8)), Service::from_micros(2_000 - 16));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Residual<S> {
    supply: S,
    above: Vec<Task>,
    rate: Fraction,
    /// Whether that is what is left, and not rounded down.
    is_exact: bool,
    delay: Span,
}

impl<S: SupplyBound> Residual<S> {
    /// What these tasks, whose deadlines and regions do not matter, leave of the supply; an error if it is nothing in the long run.
    pub fn new(supply: S, above: Vec<Task>) -> Result<Self, SupplyError> {
        let (rate, is_exact) = left(supply.rate(), &above).ok_or(SupplyError::NothingLeft)?;
        let delay = delay(&supply, &above, rate);
        Ok(Self {
            supply,
            above,
            rate,
            is_exact,
            delay,
        })
    }

    /// What it is taken from.
    pub const fn supply(&self) -> &S {
        &self.supply
    }

    /// α: the most work that can be released above in a window of this length, if that fits.
    fn taken(&self, window: Span) -> Option<Service> {
        self.above.iter().try_fold(Service::ZERO, |taken, task| {
            let reach = u128::from(window.as_nanos()).checked_add(task.ahead())?;
            let jobs = reach.div_ceil(u128::from(task.period().as_nanos()));
            let work = task.cost().checked_mul(u64::try_from(jobs).ok()?)?;
            taken.checked_add(work)
        })
    }

    /// The shortest window up to `limit` in which the supply gives this much service above α; `None` if there is none, or if finding
    /// it takes too long.
    fn least_window(&self, service: Service, limit: Span) -> Result<Option<Span>> {
        let overflow = Overflow("the work above a supply");
        let mut window = self
            .supply
            .window_for(service)?
            .max(self.no_earlier(service));
        if window > limit {
            return Ok(None);
        }
        for _ in 0..MOST_ROUNDS {
            let taken = self.taken(window).ok_or(overflow)?;
            let needed = service.checked_add(taken).ok_or(overflow)?;
            let next = self.supply.window_for(needed)?;
            if next > limit {
                return Ok(None);
            }
            if next <= window {
                return Ok(Some(window));
            }
            window = next;
        }
        Ok(None)
    }

    /// A window before which this much service cannot be left.
    ///
    /// A supply of rate n/d repeats itself: after its second tick n more of service take d more of window. So it gives at most n + 1
    /// ticks more than at its rate, sbf(t) ≤ t·n/d + n + 1, while the work above takes α(t) ≥ Σ t·C/T.
    fn no_earlier(&self, service: Service) -> Span {
        let ahead = u128::from(self.supply.rate().numerator()) + 1;
        let Some(late) = u128::from(service.as_nanos()).checked_sub(ahead) else {
            return Span::ZERO;
        };
        if !self.is_exact {
            return Span::ZERO;
        }
        let (n, d) = wide(self.rate);
        Span::from_nanos(u64::try_from(late * d / n).unwrap_or(u64::MAX))
    }

    /// delay + service / rate.
    fn window_at_rate(&self, service: Service) -> Option<Span> {
        let scaled = u128::from(service.as_nanos()) * u128::from(self.rate.denominator());
        let span = scaled.div_ceil(u128::from(self.rate.numerator()));
        let span = u64::try_from(span).ok().map(Span::from_nanos)?;
        self.delay.checked_add(span)
    }
}

impl<S: SupplyBound> SupplyBound for Residual<S> {
    fn least_service(&self, window: Span) -> Service {
        let is_sure = |service: u64| {
            let service = Service::from_nanos(service);
            matches!(self.least_window(service, window), Ok(Some(_)))
        };
        let most = self.supply.least_service(window);
        let taken = self.taken(window).unwrap_or(Service::MAX);
        let mut sure = most.saturating_sub(taken).as_nanos();
        let mut most = most.as_nanos();
        while sure < most {
            let middle = sure + (most - sure).div_ceil(2);
            if is_sure(middle) {
                sure = middle;
            } else {
                most = middle - 1;
            }
        }
        Service::from_nanos(sure)
    }

    fn window_for(&self, service: Service) -> Result<Span> {
        if service.is_zero() {
            return Ok(Span::ZERO);
        }
        match self.least_window(service, Span::MAX)? {
            Some(window) => Ok(window),
            None => self
                .window_at_rate(service)
                .ok_or(Overflow("the window of a residual supply")),
        }
    }

    /// What is left in the long run; exact, over the cycle of supply and work, if that fits 64 bits; or else less by at most
    /// some 10⁻¹⁸.
    fn rate(&self) -> Fraction {
        self.rate
    }

    fn delay(&self) -> Span {
        self.delay
    }

    fn is_attained(&self) -> bool {
        self.above.is_empty() && self.supply.is_attained()
    }
}

/// The rate without the work above, over the cycle that they have in common, and whether it is exact; `None` if that is nothing.
fn left(rate: Fraction, above: &[Task]) -> Option<(Fraction, bool)> {
    let repeats = rate.denominator() < INEXACT;
    above
        .iter()
        .try_fold((rate, repeats), |(rate, is_exact), task| {
            let (n, d) = wide(rate);
            let (cost, period) = (
                u128::from(task.cost().as_nanos()),
                u128::from(task.period().as_nanos()),
            );
            let common = u128::from(gcd(rate.denominator(), task.period().as_nanos()));
            // Each product below 2¹²⁸.
            let (supplied, taken) = (n * (period / common), cost * (d / common));
            let denominator = d * (period / common);
            let fits = is_exact && u64::try_from(denominator).is_ok();
            Some((narrow(supplied.checked_sub(taken)?, denominator)?, fits))
        })
}

/// When the supply less the work above comes at its rate: sbf(t) − α(t) ≥ ρ(t − delay) − Σ(t + J + b·T − 1)·C/T.
fn delay<S: SupplyBound>(supply: &S, above: &[Task], rate: Fraction) -> Span {
    let (n, d) = wide(supply.rate());
    let lost = (u128::from(supply.delay().as_nanos()) * n).div_ceil(d);
    let lost = above.iter().try_fold(lost, |lost, task| {
        let period = u128::from(task.period().as_nanos());
        let ahead = task.ahead().checked_add(period - 1)?;
        let work = ahead.checked_mul(u128::from(task.cost().as_nanos()))?;
        lost.checked_add(work.div_ceil(period))
    });
    let (n, d) = wide(rate);
    let delay = lost.and_then(|lost| lost.checked_mul(d));
    let delay = delay.and_then(|scaled| u64::try_from(scaled.div_ceil(n)).ok());
    delay.map_or(Span::MAX, Span::from_nanos)
}

fn wide(fraction: Fraction) -> (u128, u128) {
    (
        u128::from(fraction.numerator()),
        u128::from(fraction.denominator()),
    )
}

/// The fraction in 64 bits, as it is if it fits, or else rounded down to a denominator of 62 bits or more; `None` if it is then zero.
fn narrow(mut n: u128, mut d: u128) -> Option<Fraction> {
    if u64::try_from(d).is_err() {
        let excess = u128::BITS - d.leading_zeros() - (u64::BITS - 1);
        n >>= excess;
        d = (d >> excess) + 1;
    }
    let (n, d) = (u64::try_from(n).ok()?, u64::try_from(d).ok()?);
    (n > 0).then(|| Fraction::new(n, d))?
}
