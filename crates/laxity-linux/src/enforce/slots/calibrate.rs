//! Measures what switching costs: a dispatcher without compensation gives short slots to a thread that only reads the clock.

use std::sync::Arc;

use laxity_model::base::ring;
use laxity_model::enforce::{ranks, slots};
use laxity_model::policy::slots::{Slot, SlotTable};
use laxity_model::{ActivityId, HostError, Instant, Outside, ProcessorId, Span};

use super::binding::SlotBinding;
use super::doorbell::Doorbell;
use super::park::ParkSignal;
use super::{DispatcherStart, Timing, spawn};
use crate::os::clock;
use crate::os::sched::{self, Policy, Restore, Tid};
use crate::os::signals;
use crate::run::port::Ports;
use crate::run::{self, Run};

/// How often there is a slot,
pub(crate) const CYCLE: Span = Span::from_millis(1);
/// and how long it is.
pub(crate) const LENGTH: Span = Span::from_micros(300);
const CYCLES: u64 = 100;
/// So many of the edges must be there for their quartiles to mean anything.
const ENOUGH: usize = CYCLES as usize * 3 / 4;
const ATTEMPTS: usize = 10;
/// Readings further apart than this are the two sides of a gap; a clock reading costs a hundredth of it.
const GAP: Span = Span::from_micros(20);
/// A switch that took longer was disturbed, and says nothing about the machine's costs.
const LONGEST: Span = Span::from_micros(100);

/// Measures on one processor, in about 0.1 s, what switching costs for a kind of confinement: of beginnings the upper quartile, of ends the
/// median. Needs `SCHED_FIFO`.
///
/// Where others disturb the processor so much that edges are missing, it measures again, up to a second in all, and then fails:
/// slots begun by a wrong figure would not be what was granted. Everything the calling thread had is restored.
pub(crate) fn calibrate(cpu: usize, outside: Outside) -> Result<Timing, HostError> {
    let mut most = 0;
    for _ in 0..ATTEMPTS {
        let observed = watch(cpu, outside, GAP)?;
        let (timing, edges) = evaluate(observed.first_edge, &observed.gaps);
        if edges >= ENOUGH {
            return Ok(timing);
        }
        most = most.max(edges);
    }
    Err(HostError::Failed(format!(
        "calibration: processor {cpu} is disturbed, {most} of {CYCLES} edges could be measured"
    )))
}

/// What the holder of the slots saw.
pub(crate) struct Observed {
    /// The edge at which a slot began; one begins every [`CYCLE`].
    pub(crate) first_edge: Instant,
    /// The stretches in which the holder could not read the clock.
    pub(crate) gaps: Vec<(Instant, Instant)>,
}

/// Gives slots for 0.1 s to a thread that notes all gaps longer than this between its clock readings.
pub(crate) fn watch(cpu: usize, outside: Outside, gap: Span) -> Result<Observed, HostError> {
    let failed = |error| HostError::Failed(format!("calibration: {error}"));
    let _restore = Restore::of(Tid::current()).map_err(failed)?;
    let _park = ParkSignal::install();
    // The threads inherit this rank until they have their own.
    sched::set_policy_inherited(Tid::current(), Policy::Fifo(ranks::WITNESS))
        .map_err(|error| HostError::CannotRun(error.to_string()))?;

    let run = Arc::new(Run::new(1, 1, Ports::default()));
    let doorbell = Arc::new(Doorbell::default());
    let binding = Arc::new(SlotBinding::new(
        ActivityId(0),
        outside,
        Arc::clone(&doorbell),
    ));
    let table = table()?;
    let (ring, _) = ring::channel(16);
    let start = DispatcherStart {
        cpu,
        processor: ProcessorId(0),
        table: table.clone(),
        changes: None,
        bindings: vec![Arc::clone(&binding)],
        doorbell,
        timing: Timing::default(),
        makes_up: false,
        witness: None,
        ring,
    };
    let dispatcher = spawn(start, Arc::clone(&run))?;
    let observer = run::spawn("calibration".to_owned(), Arc::clone(&run), move |run| {
        Ok(observe(cpu, gap, run, &binding))
    });
    while run.ready() < 2 && run.failure().is_none() && observer.is_ok() {
        signals::wait(
            signals::doorbell(),
            Some(clock::now() + Span::from_millis(1)),
        );
    }
    let origin = clock::now() + Span::from_millis(2);
    let first_edge = slots::origin(origin, &table) + CYCLE;
    run.begin(origin);
    run.sleep_until(origin + CYCLE * CYCLES);
    run.finish();
    let gaps = observer.map(run::join);
    run::join(dispatcher);
    match (run.failure(), gaps?) {
        (None, Some(gaps)) => Ok(Observed { first_edge, gaps }),
        (error, _) => Err(error.unwrap_or(HostError::Failed("calibration".to_owned()))),
    }
}

/// One slot in each cycle.
fn table() -> Result<SlotTable, HostError> {
    let slot = Slot {
        start: Span::ZERO,
        length: LENGTH,
        owner: 0,
    };
    SlotTable::new(CYCLE, vec![slot])
        .ok_or_else(|| HostError::Failed("calibration: no table".to_owned()))
}

/// Reads the clock until the run ends; returns the stretches in which it could not.
fn observe(cpu: usize, gap: Span, run: &Run, binding: &SlotBinding) -> Vec<(Instant, Instant)> {
    let mut gaps = Vec::with_capacity(4 * CYCLES as usize);
    let own = Tid::current();
    let set = sched::pin(cpu);
    let ordinary = Policy::Other { nice: 0 };
    let Some(origin) = run.wait_for_start() else {
        return gaps;
    };
    if set.is_err() || sched::set_policy(own, ordinary).is_err() || !run.sleep_until(origin) {
        return gaps;
    }
    binding.bind(ordinary);
    let mut last = clock::now();
    while !run.ended() {
        let now = clock::now();
        if now.saturating_since(last) > gap && gaps.len() < gaps.capacity() {
            gaps.push((last, now));
        }
        last = now;
    }
    binding.unbind();
    gaps
}

/// What switches cost, and how many slots were begun and ended at least that could be measured.
fn evaluate(origin: Instant, gaps: &[(Instant, Instant)]) -> (Timing, usize) {
    let mut entering = Vec::new();
    let mut leaving = Vec::new();
    for (from, to) in gaps {
        entering.extend(delay_ns(*to, origin));
        leaving.extend(delay_ns(*from, origin + LENGTH));
    }
    let left_ns = quartile(&mut leaving, 2);
    // A hypervisor may raise the timer early and wait for its instant itself. What the slot loses so is given at its beginning.
    // The upper quartile: a slot that begins a microsecond early harms nobody, one that begins late breaks its promise.
    let entered_ns = quartile(&mut entering, 3) - left_ns.min(0);
    let timing = Timing {
        entering: Span::from_nanos(entered_ns.max(0).unsigned_abs()),
        leaving: Span::from_nanos(left_ns.max(0).unsigned_abs()),
    };
    (timing, entering.len().min(leaving.len()))
}

/// How long after the nearest edge of the cycle this was, negative before it; `None` if it has nothing to do with that edge.
pub(crate) fn delay_ns(at: Instant, first_edge: Instant) -> Option<i64> {
    let cycle = CYCLE.as_nanos() as i64;
    let after = (at.as_nanos() as i64 - first_edge.as_nanos() as i64).rem_euclid(cycle);
    let delay = if after > cycle / 2 {
        after - cycle
    } else {
        after
    };
    (delay.unsigned_abs() <= LONGEST.as_nanos()).then_some(delay)
}

/// The second quartile is the median.
fn quartile(delays: &mut [i64], number: usize) -> i64 {
    delays.sort_unstable();
    delays.get(delays.len() * number / 4).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_count_from_their_own_edge() {
        let origin = Instant::from_millis(5);
        let us = Span::from_micros;
        let gaps = [
            (origin + LENGTH + us(3), origin + CYCLE + us(9)),
            (origin + CYCLE + LENGTH + us(5), origin + CYCLE * 2 + us(11)),
            // A disturbance in the middle of a slot is neither edge.
            (origin + CYCLE * 2 + us(120), origin + CYCLE * 2 + us(170)),
        ];
        let (timing, edges) = evaluate(origin, &gaps);
        assert_eq!(edges, 2);
        assert_eq!((timing.entering, timing.leaving), (us(11), us(5)));
    }

    #[test]
    fn what_an_early_timer_takes_is_given_back_at_the_beginning() {
        let origin = Instant::from_millis(5);
        let us = Span::from_micros;
        let gap = (origin + LENGTH - us(2), origin + CYCLE + us(9));
        let (found, _) = evaluate(origin, &[gap]);
        assert_eq!((found.entering, found.leaving), (us(11), Span::ZERO));
    }
}
