//! `SCHED_DEADLINE` as the kernel enforces it.

use super::{ExplicitDeadline, SupplyBound};
use crate::analysis::{Fraction, Overflow, Result};
use crate::{Reservation, Service, Span};

/// X every Y by `SCHED_DEADLINE`, on a kernel that looks at budgets only every so often.
///
/// # The model
///
/// Abeni and Buttazzo's constant bandwidth server ("Integrating multimedia applications in hard real-time systems", RTSS 1998) as
/// Linux has it, for a holder that is always runnable. A *round* begins at the last deadline, where X of budget and Y of deadline are
/// added until the budget is more than zero. The holder gets its budget by the deadline, and then overruns: it is stopped only when the
/// kernel notices, at the latest before a tick g has passed, so after an excess of e ≤ g − 1 ns (0 if g = 0). The excess is a debt of the
/// next round, which is therefore 1 + ⌊e/X⌋ periods long and gives (1 + ⌊e/X⌋)X − e; up to n = 1 + ⌊(g − 1)/X⌋ periods.
///
/// Assumed: every round's budget arrives by its deadline, as earliest deadline first ensures while nothing above disturbs it and the
/// admitted share fits (one processor, others' overruns apart; on several processors deadlines may be late by a bounded time); the
/// holder never blocks; the period is the deadline.
///
/// # The bound
///
/// The worst window begins behind the overrun of a round that was itself long, in debt for the one before: least budget, served at
/// once, longest excess. Nothing comes until that round's deadline; the next pays the excess back, is up to n periods long, and may be
/// served at its end. So among other holders the longest time without service is 2n(Y − X) + (g − 1), and in general, with sbf* that of
/// the [periodic resource](ExplicitDeadline::periodic) and E = g − 1: sbf(t) = max(0, sbf*(t − (n − 1)(Y − X)) − E). With g = 0 it is the periodic resource.
///
/// [`alone`](Self::alone), when no other holder of a deadline can keep it off a processor, each round is served at once: then sbf* is that of
/// the [continuous guarantee](ExplicitDeadline::continuous), except that the first tick of service comes after n(Y − X) + E already.
///
/// In the model both are exact. A machine's clock ticks at one phase, so not all of the model's courses occur on it, and it may give
/// more; of 936 small kernels (Y ≤ 8, g ≤ 12, all phases) the bound is reached in every window by 559, the longest gap by 728, and by the
/// others to 45 % at least. So the bound is sound, and [`SupplyBound::is_attained`] claims nothing for g > 1.
///
/// Cost: O(1).
///
/// ```
/// use laxity_model::analysis::supply::{KernelDeadline, SupplyBound};
/// use laxity_model::{Reservation, Service, Span};
///
/// let reservation = Reservation::new(Service::from_millis(2), Span::from_millis(8)).unwrap();
/// let exact = KernelDeadline::among_others(reservation, Span::ZERO).unwrap();
/// assert_eq!(exact.longest_gap(), Span::from_millis(12));
/// // HZ = 250, no high-resolution enforcement.
/// let coarse = KernelDeadline::alone(reservation, Span::from_millis(4)).unwrap();
/// assert_eq!(coarse.longest_gap(), Span::from_nanos(16_000_000 - 1));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct KernelDeadline {
    /// What it would be if the kernel looked at once.
    ideal: ExplicitDeadline,
    tick: Span,
    /// (n − 1)(Y − X).
    later: Span,
    /// The shortest window with any service.
    first: Span,
}

impl KernelDeadline {
    /// The reservation's budget, with other holders of deadlines, who may be served first, on a kernel that notices within `tick`
    /// that a budget is used up; zero: at once.
    pub fn among_others(reservation: Reservation, tick: Span) -> Result<Self> {
        let ideal = ExplicitDeadline::periodic(reservation);
        let supply = Self::new(ideal, tick)?;
        Ok(Self {
            first: supply.window_of_excess_and(1)?,
            ..supply
        })
    }

    /// The reservation's budget, if there are no more holders of deadlines than processors, so that whoever has a budget runs.
    pub fn alone(reservation: Reservation, tick: Span) -> Result<Self> {
        let supply = Self::new(ExplicitDeadline::continuous(reservation), tick)?;
        let first = reservation.longest_gap().checked_add(supply.later);
        let first = first.and_then(|gap| gap.checked_add(Span::from_nanos(supply.excess() + 1)));
        Ok(Self {
            first: first.ok_or(Overflow("the longest gap of a deadline reservation"))?,
            ..supply
        })
    }

    fn new(ideal: ExplicitDeadline, tick: Span) -> Result<Self> {
        let reservation = ideal.reservation();
        let mut supply = Self {
            ideal,
            tick,
            later: Span::ZERO,
            first: Span::ZERO,
        };
        let later = reservation.longest_gap();
        let later = later.checked_mul(supply.longest_round() - 1);
        supply.later = later.ok_or(Overflow("the rounds of a deadline reservation"))?;
        Ok(supply)
    }

    /// X and Y.
    pub const fn reservation(&self) -> Reservation {
        self.ideal.reservation()
    }

    /// g.
    pub const fn tick(&self) -> Span {
        self.tick
    }

    /// n: a round is at most this many periods long.
    pub const fn longest_round(&self) -> u64 {
        self.excess() / self.reservation().service().as_nanos() + 1
    }

    /// The longest time without service.
    pub const fn longest_gap(&self) -> Span {
        // A window with some service has a tick of it.
        Span::from_nanos(self.first.as_nanos() - 1)
    }

    /// E; whoever has all of a processor is never stopped, whatever it owes.
    const fn excess(&self) -> u64 {
        if self.reservation().longest_gap().is_zero() {
            0
        } else {
            self.tick.as_nanos().saturating_sub(1)
        }
    }

    /// The shortest window in which the ideal supply, later, gives this and the excess.
    fn window_of_excess_and(&self, service_ns: u64) -> Result<Span> {
        let overflow = Overflow("the window of a deadline reservation");
        let with_excess = service_ns.checked_add(self.excess()).ok_or(overflow)?;
        let window = self.ideal.window_for(Service::from_nanos(with_excess))?;
        window.checked_add(self.later).ok_or(overflow)
    }
}

impl SupplyBound for KernelDeadline {
    fn least_service(&self, window: Span) -> Service {
        if window < self.first {
            return Service::ZERO;
        }
        let ideal = self.ideal.least_service(window.saturating_sub(self.later));
        let sure = ideal.saturating_sub(Service::from_nanos(self.excess()));
        sure.max(Service::from_nanos(1))
    }

    fn window_for(&self, service: Service) -> Result<Span> {
        match service.as_nanos() {
            0 => Ok(Span::ZERO),
            1 => Ok(self.first),
            more => self.window_of_excess_and(more),
        }
    }

    fn rate(&self) -> Fraction {
        self.ideal.rate()
    }

    fn delay(&self) -> Span {
        // (n + 1)(Y − X), or n(Y − X) alone, and what the excess is worth at the rate.
        let reservation = self.reservation();
        let excess = u128::from(self.excess()) * u128::from(reservation.period().as_nanos());
        let excess = excess.div_ceil(u128::from(reservation.service().as_nanos()));
        let excess = u64::try_from(excess).unwrap_or(u64::MAX);
        let delay = self.ideal.delay().checked_add(self.later);
        let delay = delay.and_then(|delay| delay.checked_add(Span::from_nanos(excess)));
        delay.unwrap_or(Span::MAX)
    }

    fn is_attained(&self) -> bool {
        self.excess() == 0
    }
}
