//! The busy window: the jobs of one task, one after the other, from the instant that is worst for them until it closes.
//!
//! At time 0 all interfering tasks, and the task itself, release the jobs that arrived within their jitter, with a burst at its end, and go
//! on as early as they may; a less urgent job has just begun its longest region. Job k of the task (arrived at kT − J, or
//! max(0, k − b + 1)·T − J where b come at once) begins its last region's first tick before the least F with
//!
//! > sbf(F) ≥ B + (k+1) C − tail + Σ ⌈(F + Aⱼ)/Tⱼ⌉ Cⱼ, Aⱼ = Jⱼ + (bⱼ − 1)·Tⱼ
//!
//! and is complete after the least R with sbf(R) ≥ sbf(F) + tail. The window closes with the first job whose whole C is done before
//! the next is released.
//!
//! *Why this holds on any supply.* Let S(t) be what the supply gives from time 0 on, and D(F) the right side above. S grows by at most
//! one a tick and D never falls, so S(F*) = D(F*) at the least F* with S(F*) ≥ D(F*). As S ≥ sbf, F* ≤ F; and at R,
//! S(R) ≥ sbf(R) ≥ D(F) + tail ≥ S(F*) + tail: the job is complete. With S = sbf both are equalities, so the bound is reached
//! if the supply can give no more than sbf. It can do so after it has given the tick before time 0 in which the region that blocks
//! began: had it not given that tick, the window that begins there would have S(t − 1) in t, less than sbf(t) for some t.

use core::cmp::Ordering;

use super::requests::{HORIZON, Requests, requested};
use crate::analysis::supply::{SupplyBound, cycle_of};
use crate::analysis::{Budget, Overflow, Result, Task};
use crate::base::number::lcm;
use crate::{Service, Span};

/// How often, at most, the requests of all interfering tasks are summed up for one task.
pub(super) const MOST_PASSES: u64 = 1 << 18;

pub(super) const TOO_LONG: Overflow = Overflow("a busy window of more than 73 years");

/// The busy window of one task.
pub(super) struct Window<'a, S> {
    interferers: &'a [Requests],
    own: &'a Requests,
    /// What of each job is not preempted once it has begun.
    tail: u64,
    supply: &'a S,
    /// How the utilization of all of these compares with the supply's rate.
    load: Ordering,
    /// The blocking, and the cost of the jobs so far.
    own_demand: u64,
    /// Demand that the next job's first fixed point has at least.
    least_demand: u64,
    /// When the next job would arrive without a burst: so long after the first.
    since_first: u64,
    /// If the window never closes but repeats itself: jobs that arrive so long after the first need not be looked at.
    repeats: Option<u64>,
    /// How many more passes there may be.
    passes: u64,
    budget: &'a Budget,
}

/// When a job arrived: kT − J without a burst.
#[derive(Clone, Copy)]
pub(super) struct Arrival {
    /// max(0, k − b + 1)·T
    since_first: u64,
    /// J
    first_before: u64,
}

impl Arrival {
    /// From the arrival, and from the release (0 at the earliest), to an instant that is not before them.
    #[inline]
    pub(super) fn until(self, instant: u64) -> (Span, Span) {
        let from_arrival = instant + self.first_before - self.since_first;
        (
            Span::from_nanos(from_arrival),
            Span::from_nanos(from_arrival.min(instant)),
        )
    }

    /// When the job is released.
    pub(super) fn release(self) -> Span {
        Span::from_nanos(self.since_first.saturating_sub(self.first_before))
    }

    /// When the job is due if its deadline is this long after its arrival; zero if that is before the window begins.
    pub(super) fn due(self, deadline: Span) -> Span {
        let due = u128::from(self.since_first) + u128::from(deadline.as_nanos());
        let due = due.saturating_sub(u128::from(self.first_before));
        Span::from_nanos(u64::try_from(due).unwrap_or(u64::MAX))
    }
}

/// A job of the busy window.
#[derive(Clone, Copy)]
pub(super) struct Completed {
    /// When it is complete.
    pub(super) at: u64,
    /// No later job of the window takes longer.
    pub(super) last: bool,
    /// The demand when its whole cost is done.
    pub(super) demand: u64,
}

/// What became of a job.
pub(super) enum Outcome {
    Completed(Completed),
    /// It is not complete at the limit.
    Late,
    TooLong,
}

/// A solution of sbf(F) = D(F).
pub(super) enum Point {
    At { window: u64, demand: u64 },
    Late,
    TooLong,
}

impl<'a, S: SupplyBound> Window<'a, S> {
    /// `least_demand`: what the first job's fixed point has of demand at least, if something is known; else zero.
    ///
    /// The task is the last of `requests`, the others are its interferers. These must not be more than the supply's rate; `load` is that of all.
    #[inline]
    pub(super) fn new(
        requests: &'a [Requests],
        (blocking, tail): (Service, Service),
        (supply, load): (&'a S, Ordering),
        least_demand: u64,
        budget: &'a Budget,
    ) -> Self {
        let (interferers, own) = requests.split_at(requests.len() - 1);
        Self {
            interferers,
            own: &own[0],
            tail: tail.as_nanos(),
            supply,
            load,
            own_demand: blocking.as_nanos(),
            least_demand,
            since_first: 0,
            repeats: None,
            passes: MOST_PASSES,
            budget,
        }
    }

    /// When the next job arrives.
    #[inline]
    pub(super) fn arrival(&self) -> Arrival {
        Arrival {
            since_first: self.since_first.saturating_sub(self.own.burst),
            first_before: self.own.ahead - self.own.burst,
        }
    }

    /// The next job, looked at no further than to the limit.
    #[inline]
    pub(super) fn next_job(&mut self, limit: u64) -> Result<Outcome> {
        self.own_demand = self
            .own_demand
            .checked_add(self.own.cost)
            .filter(|demand| *demand <= HORIZON)
            .ok_or(TOO_LONG)?;
        let begun = self.own_demand - self.tail;
        let least = self.least_demand.max(begun);
        let (window, demand) = match self.fixed_point(begun, least, limit)? {
            Point::At { window, demand } => (window, demand),
            Point::Late => return Ok(Outcome::Late),
            Point::TooLong => return Ok(Outcome::TooLong),
        };
        let mut done = Completed {
            at: window,
            last: false,
            demand,
        };
        let mut whole = window;
        if self.tail > 0 {
            let least = demand + self.tail;
            done.at = window_for(self.supply, least)?;
            match self.fixed_point(self.own_demand, least, u64::MAX)? {
                Point::At { window, demand } => {
                    whole = window;
                    done.demand = demand;
                }
                Point::Late | Point::TooLong => return Ok(Outcome::TooLong),
            }
        }
        self.least_demand = done.demand + (self.own.cost - self.tail);
        // No overflow: a job is looked at only if it was released within the window so far.
        let next = self.since_first + self.own.period();
        done.last = whole + self.own.ahead <= next;
        if self.load.is_eq() && !done.last {
            if self.since_first == 0 {
                self.repeats = repeats_after(self.supply, self.interferers, self.own);
            }
            done.last = self.repeats.is_some_and(|end| next > end);
        }
        self.since_first = next;
        Ok(Outcome::Completed(done))
    }

    /// How long the window is, if the task can be preempted anywhere; `None` where it never closes, or that is not found.
    pub(super) fn length(mut self) -> Result<Option<Span>> {
        while let Outcome::Completed(job) = self.next_job(u64::MAX)? {
            let closes = job.at + self.own.ahead <= self.since_first;
            if closes || job.last {
                return Ok(closes.then(|| Span::from_nanos(job.at)));
            }
        }
        Ok(None)
    }

    /// The least F with sbf(F) ≥ `own` + what the interferers ask for in F, if D(F) ≥ `least` is known.
    #[inline(always)]
    pub(super) fn fixed_point(&mut self, own: u64, least: u64, limit: u64) -> Result<Point> {
        let mut window = window_for(self.supply, least)?;
        loop {
            if window > limit {
                return Ok(Point::Late);
            }
            // Each job takes one at least, so this also ends windows of too many jobs.
            if self.passes == 0 || !self.budget.allows_pass(self.interferers.len()) {
                return Ok(Point::TooLong);
            }
            self.passes -= 1;
            let asked = requested(self.interferers, window);
            let demand = own + asked.service;
            window = window_for(self.supply, demand)?;
            if window <= asked.until {
                return Ok(if window > limit {
                    Point::Late
                } else {
                    Point::At { window, demand }
                });
            }
        }
    }
}

/// In a window that never closes, where the load is exactly the supply's rate, no job that arrives later than this after the first need be
/// looked at. (Apart from the window, which else would have to have an address.)
///
/// With H of [`repetition`], D(F + H) for the job H/T later is D(F) + H · rate, and as from two ticks of service on the supply repeats
/// itself too, the job is complete H later: it takes as long as the one before it. That one begins after 0 there: of a
/// supply that gives no more than its rate, F · C/T ≥ (k + 1 + H/T) C − tail is left by the interferers, so F ≥ H + kT. From the third
/// job on there are two ticks.
#[cold]
fn repeats_after(
    supply: &impl SupplyBound,
    interferers: &[Requests],
    own: &Requests,
) -> Option<u64> {
    let periods = interferers.iter().chain([own]).map(Requests::period);
    let length = repetition(supply, periods)?;
    length.checked_add(own.ahead)?.checked_add(own.period())
}

/// The shortest window in which this much service is sure, if it is one that may be looked at.
#[inline]
pub(super) fn window_for(supply: &impl SupplyBound, demand: u64) -> Result<u64> {
    let window = supply.window_for(Service::from_nanos(demand))?.as_nanos();
    if window > HORIZON {
        return Err(TOO_LONG);
    }
    Ok(window)
}

/// After how much of window tasks of these periods that need exactly the supply's rate repeat themselves together with it: a common multiple of all
/// periods and the supply's cycle, if that is known and fits.
pub(super) fn repetition(
    supply: &impl SupplyBound,
    periods: impl Iterator<Item = u64>,
) -> Option<u64> {
    lcm(periods.chain([cycle_of(supply)?]))
}

/// The most service for which a job of one of these can block more urgent ones.
pub(super) fn blocking_by<'a>(tasks: impl IntoIterator<Item = &'a Task>) -> Service {
    let blocking = tasks.into_iter().map(Task::blocking);
    blocking.max().unwrap_or(Service::ZERO)
}
