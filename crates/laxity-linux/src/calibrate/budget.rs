//! How exactly the kernel enforces `SCHED_DEADLINE`: by how much it lets a thread overrun its budget, and when it gives a new one.
//!
//! A reserved thread computes all the time. Each gap in which it could not, after it had used its budget, is a throttling. What it used
//! beyond the budget it owes: the constant-bandwidth server gives whole budgets until it is out of debt, so the next one that it can
//! use is less by the debt (Linux, Documentation/scheduler/sched-deadline.rst, section 2).

use laxity_model::{Instant, Reservation, Service, Span};

use super::bench::{Bench, ORDINARY};
use super::samples::{Samples, paged_in};
use super::{DISTURBED, Result, clock};
use crate::doctor::rights::{self, Right};
use crate::enforce::deadline::{self, DeadlineError};
use crate::os::sched::Tid;

/// How long it is measured.
const LENGTH: Span = Span::from_secs(5);
/// Longer than all interrupts but a few; shorter gaps are no throttling.
const GAP: Span = Span::from_micros(20);
/// A budget counts as used when no more than this is left of it: the thread's own time is read a moment after the gap.
const SLACK: Service = Service::from_micros(20);
/// A new budget begins on another processor: longer than any other wake-up.
const LATEST: Span = Span::from_micros(500);

/// What was seen.
pub(super) struct Budgets {
    pub(super) overrun: Samples,
    pub(super) replenish: Samples,
}

/// The end of a stretch in which the thread could not run.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// By the clock that nothing steers.
    to: Instant,
    /// What the thread had received then.
    service: Service,
}

/// When it was reserved (by the same clock, read just after: replenishments seem early by what is left of the system call, a microsecond or
/// two), what it had received then, and what came after.
#[derive(Debug)]
struct Course {
    start: Instant,
    service: Service,
    gaps: Vec<Gap>,
}

/// Lets a reserved thread compute; `None` where `SCHED_DEADLINE` is not to be had.
pub(super) fn spent(bench: &Bench<'_>) -> Result<Option<Budgets>> {
    let tick = clock::tick();
    if rights::missing(Right::Deadline).is_some() {
        return Ok(None);
    }
    let Some(reservation) = reservation(tick) else {
        return Ok(None);
    };
    let periods = bench.count((LENGTH / reservation.period()) as usize);
    let length = reservation.period() * periods as u64;
    // An error: others hold the bandwidth, or the affinity may not be widened.
    let course = bench.alone(|| compute(bench, reservation, length))?;
    Ok(course
        .ok()
        .map(|course| evaluate(&course, reservation, tick)))
}

/// A budget longer than a tick, so that an overrun is less than another budget; in a period that meets ticks at every phase.
fn reservation(tick: Span) -> Option<Reservation> {
    let budget = Service::from_nanos(tick.as_nanos() / 4 * 5);
    let period = Span::from_nanos(tick.as_nanos() / 1_000 * 2_827);
    Reservation::new(budget, period).ok()
}

fn compute(
    bench: &Bench<'_>,
    reservation: Reservation,
    length: Span,
) -> Result<Course, DeadlineError> {
    let own = Tid::current();
    let mut gaps = paged_in(Gap {
        to: Instant::ZERO,
        service: Service::ZERO,
    });
    // It begins on the measured processor. The kernel moves it with nearly every new budget (177 of 178 seen on two processors), and the
    // processor it goes to must be told.
    deadline::reserve(own, reservation)?;
    let start = clock::unsteered();
    let service = clock::thread_service();
    let mut last = clock::now();
    let end = last + length;
    while last < end && !bench.interrupted() {
        let now = clock::now();
        if now.saturating_since(last) > GAP && gaps.len() < gaps.capacity() {
            gaps.push(Gap {
                to: clock::unsteered(),
                service: clock::thread_service(),
            });
        }
        last = now;
    }
    deadline::release(own, reservation, ORDINARY);
    Ok(Course {
        start,
        service,
        gaps,
    })
}

/// Keeps the server's account of the budget beside the thread's own time.
fn evaluate(course: &Course, reservation: Reservation, tick: Span) -> Budgets {
    let whole = reservation.service();
    let period = reservation.period();
    let room = course.gaps.len();
    // Nobody lets it run for longer than a tick after its budget.
    let longest = tick + DISTURBED;
    let mut found = Budgets {
        overrun: Samples::bounded(room, longest),
        replenish: Samples::bounded(room, LATEST),
    };
    let (mut budget, mut before) = (whole, course.service);
    for gap in &course.gaps {
        let used = gap.service.saturating_sub(before);
        before = gap.service;
        if used + SLACK < budget {
            // Something else took the processor for a moment.
            budget = budget.saturating_sub(used);
            continue;
        }
        let mut over = used.saturating_sub(budget);
        // It was throttled and replenished so quickly that no gap was seen.
        while over.as_dedicated_span() > longest && over >= whole {
            over = over.saturating_sub(whole);
        }
        found.overrun.push(over.as_dedicated_span());
        let owed = Service::from_nanos(over.as_nanos() % whole.as_nanos());
        budget = whole.saturating_sub(owed);
        let since = gap.to.saturating_since(course.start).as_nanos();
        found
            .replenish
            .push(Span::from_nanos(since % period.as_nanos()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Span = Span::from_millis(4);

    /// A constant-bandwidth server that looks at a thread's budget at its ticks only.
    fn served(reservation: Reservation, late: Span, length: Span) -> (Course, Vec<Span>) {
        let (whole, period) = (
            reservation.service().as_nanos() as i64,
            reservation.period().as_nanos(),
        );
        // Not at a tick.
        let start = 1_234_567;
        let (mut now, mut deadline) = (start, start + period);
        let (mut budget, mut service) = (whole, 500_000);
        let (mut gaps, mut overruns) = (Vec::new(), Vec::new());
        while now < start + length.as_nanos() {
            let used_up = now + budget as u64;
            let looked = used_up.div_ceil(TICK.as_nanos()) * TICK.as_nanos();
            service += looked - now;
            overruns.push(Span::from_nanos(looked - used_up));
            budget -= (looked - now) as i64;
            now = deadline.max(looked) + late.as_nanos();
            while budget <= 0 {
                budget += whole;
                deadline += period;
            }
            gaps.push(Gap {
                to: Instant::from_nanos(now),
                service: Service::from_nanos(service),
            });
        }
        let course = Course {
            start: Instant::from_nanos(start),
            service: Service::from_micros(500),
            gaps,
        };
        (course, overruns)
    }

    #[test]
    fn the_account_finds_the_overruns_of_a_server_that_looks_at_ticks() {
        let reservation = reservation(TICK).unwrap();
        let late = Span::from_micros(7);
        let (course, mut overruns) = served(reservation, late, Span::from_secs(3));
        let found = evaluate(&course, reservation, TICK);
        assert_eq!(found.overrun.len(), overruns.len() as u64);
        let (quantiles, evidence) = found.overrun.finish().unwrap();
        assert_eq!(evidence.disturbed, 0);
        let expected = laxity_model::enforce::machine::Quantiles::of(&mut overruns).unwrap();
        assert_eq!(quantiles, expected);
        // Ticks are met at every phase.
        assert!(quantiles.at(10_000) < TICK / 10 && quantiles.at(990_000) > TICK / 10 * 9);
        let (replenish, _) = found.replenish.finish().unwrap();
        assert_eq!(replenish.median(), late);
    }

    #[test]
    fn a_moment_of_something_else_is_no_throttling() {
        let reservation = reservation(TICK).unwrap();
        let (mut course, _) = served(reservation, Span::ZERO, Span::from_millis(200));
        let whole = evaluate(&course, reservation, TICK).overrun.len();
        let between = Gap {
            to: course.start + Span::from_millis(1),
            service: course.service + Service::from_millis(1),
        };
        course.gaps.insert(0, between);
        assert_eq!(evaluate(&course, reservation, TICK).overrun.len(), whole);
    }
}
