//! Measures what switching costs: a dispatcher gives short slots to a thread that only reads the clock.

use std::sync::Arc;

use laxity_model::base::{number, ring};
use laxity_model::enforce::{Switching, Ticks, ranks, slots};
use laxity_model::policy::slots::{Slot, SlotTable};
use laxity_model::{ActivityId, HostError, Instant, Outside, ProcessorId, Span};
use rustix::system::uname;

use super::binding::SlotBinding;
use super::dispatcher::Told;
use super::doorbell::Doorbell;
use super::park::ParkSignal;
use super::{DispatcherStart, Pace, spawn};
use crate::os::clock;
use crate::os::proc;
use crate::os::sched::{self, Policy, Restore, SchedError, Tid};
use crate::os::signals;
use crate::run::port::Ports;
use crate::run::{self, Run};

/// How often there is a slot: in no step with the kernel's tick, so that some slots have one and some have none,
pub(crate) const CYCLE: Span = Span::from_micros(1_100);
/// and how long it is.
pub(crate) const LENGTH: Span = Span::from_micros(500);
const CYCLES: u64 = 100;
/// So many of the slots must have been seen whole for their medians to mean anything, and so many of them without a gap.
const ENOUGH: usize = CYCLES as usize * 3 / 4;
const ENOUGH_WHOLE: usize = CYCLES as usize / 4;
/// Several attempts may bring them together. Where fewer were seen in one, those that others spared may be unlike the rest.
const WORTH_KEEPING: usize = CYCLES as usize / 3;
const ATTEMPTS: usize = 10;
/// Readings further apart than this are the two sides of a gap; a clock reading costs a fortieth of it.
///
/// Some hypervisors take 2 to 4 µs of a virtual processor ten thousand times a second: hardly a slot is spared, and what nobody
/// can do anything about is the speed of that machine. So the shortest is taken with which enough of the slots are whole.
const GAPS: [Span; 3] = [
    Span::from_micros(2),
    Span::from_micros(4),
    Span::from_micros(8),
];
/// A switch that took longer was disturbed, and says nothing about the machine's costs.
const LONGEST: Span = Span::from_micros(100);
/// Handlers are not believed to take more of a slot than this: that was a disturbance.
const MOST_UNSEEN_PPM: u64 = 50_000;

/// The first kernel whose ticks lie at whole multiples of their distance on the monotonic clock.
const FIRST_WITH_ALIGNED_TICKS: (u32, u32) = (6, 4);

/// Measures on one processor, in about 0.1 s, what switching costs for a kind of confinement. Needs `SCHED_FIFO`.
///
/// Where others disturb the processor so much that edges are missing, it measures more, up to a second in all, and then fails:
/// slots begun by a wrong figure would not be what was granted. Everything the calling thread had is restored.
pub(crate) fn calibrate(cpu: usize, outside: Outside) -> Result<Switching, HostError> {
    let mut pools = GAPS.map(Pool::of);
    let every = distance_of_ticks();
    for _ in 0..ATTEMPTS {
        let pace = Pace::Followed {
            measured: Switching::default(),
            costs: slots::SUPPLY.costs(0),
            told: CYCLES as usize,
        };
        let observed = watch(cpu, outside, GAPS[0], pace)?;
        for pool in &mut pools {
            pool.add(&observed, every);
            if let Some(measured) = evaluate(&pool.seen, every) {
                return Ok(measured);
            }
        }
    }
    let [.., pool] = &pools;
    Err(HostError::Disturbed(format!(
        "processor {cpu} is disturbed: what it costs to give slots there cannot be measured; of {CYCLES} trial slots at a time {} at the most were seen to begin and end, {} in all, and {} of these passed without an interruption, where {ENOUGH_WHOLE} of {ENOUGH} must",
        pool.most,
        pool.seen.len(),
        pool.seen.iter().filter(|slot| slot.is_whole).count()
    )))
}

/// What several attempts saw together.
struct Pool {
    /// What is shorter is none.
    gap: Span,
    seen: Vec<Seen>,
    /// In the best of them.
    most: usize,
}

impl Pool {
    fn of(gap: Span) -> Self {
        Self {
            gap,
            seen: Vec::new(),
            most: 0,
        }
    }

    fn add(&mut self, observed: &Observed, every: Option<Span>) {
        let is_gap = |(from, to): &&(Instant, Instant)| *to - *from > self.gap;
        let gaps: Vec<_> = observed.gaps.iter().filter(is_gap).copied().collect();
        let before = self.seen.len();
        let seen = |told| Seen::of(told, &gaps, every);
        self.seen.extend(observed.told.iter().filter_map(seen));
        let found = self.seen.len() - before;
        self.most = self.most.max(found);
        if found < WORTH_KEEPING {
            self.seen.truncate(before);
        }
    }
}

/// What the holder of the slots saw.
pub(crate) struct Observed {
    /// The edge at which a slot began; one begins every [`CYCLE`].
    pub(crate) first_edge: Instant,
    /// The stretches in which the holder could not read the clock.
    pub(crate) gaps: Vec<(Instant, Instant)>,
    /// What the dispatcher saw.
    told: Vec<Told>,
}

/// Gives slots for 0.1 s to a thread that notes all gaps longer than this between its clock readings.
pub(crate) fn watch(
    cpu: usize,
    outside: Outside,
    gap: Span,
    pace: Pace,
) -> Result<Observed, HostError> {
    let failed = |error| HostError::Failed(format!("calibration: {error}"));
    let _restore = Restore::of(Tid::current()).map_err(failed)?;
    let _park = ParkSignal::install();
    // The threads inherit this rank until they have their own; and the processor, as it outranks the slots of others on theirs.
    let cannot = |error: SchedError| HostError::CannotRun(error.to_string());
    sched::set_policy_inherited(Tid::current(), Policy::Fifo(ranks::WITNESS)).map_err(cannot)?;
    sched::pin(cpu).map_err(cannot)?;

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
        pace,
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
    let dispatched = run::join(dispatcher);
    match (run.failure(), gaps?.zip(dispatched)) {
        (None, Some((gaps, dispatched))) => Ok(Observed {
            first_edge,
            gaps,
            told: dispatched.told,
        }),
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
    let mut gaps = Vec::with_capacity(16 * CYCLES as usize);
    let set = sched::pin(cpu);
    let Some(origin) = run.wait_for_start() else {
        return gaps;
    };
    if set.is_err() || !run.sleep_until(origin) {
        return gaps;
    }
    // It has the dispatcher make it ordinary, and is above it until then: an ordinary thread may have no turn for long to ask.
    binding.bind(Policy::Other { nice: 0 });
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

/// A slot as both saw it; in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Seen {
    entering: i64,
    resuming: i64,
    leaving: i64,
    waking: i64,
    /// What the kernel counted as the holder's and was not its own.
    unseen: i64,
    /// What it counted as nobody's, where nobody came in between.
    nobodys: i64,
    own: i64,
    turns: i64,
    /// What a tick took that came into it.
    tick: Option<i64>,
    /// Nothing came in between.
    is_whole: bool,
}

impl Seen {
    /// `None` unless its holder saw it begin and end.
    fn of(told: &Told, gaps: &[(Instant, Instant)], every: Option<Span>) -> Option<Self> {
        let first = gaps.partition_point(|(_, to)| *to <= told.decided);
        let last = gaps.partition_point(|(_, to)| *to <= told.due);
        let (stood, entered) = *gaps.get(first)?;
        let (left, _) = *gaps.get(last)?;
        let is_near =
            |at: Instant, edge: Instant| since(at, edge).unsigned_abs() <= LONGEST.as_nanos();
        if stood > told.decided
            || last == first
            || !is_near(entered, told.decided)
            || !is_near(left, told.due)
        {
            return None;
        }
        let between: Span = gaps[first + 1..last]
            .iter()
            .map(|(from, to)| *to - *from)
            .sum();
        // The last reading before it may be just after it, where the timer is late.
        let has_tick = |(from, to): &&(Instant, Instant)| {
            let number = |at: Instant, every| at.since_epoch() / every;
            every.is_some_and(|every| {
                number(from.saturating_sub(GAPS[0]), every) != number(*to, every)
            })
        };
        let tick = gaps[first + 1..last].iter().find(has_tick);
        let own = since(left, entered) - between.as_nanos() as i64;
        let counted = told.own.as_nanos() as i64 + told.received.as_nanos() as i64;
        Some(Self {
            entering: since(entered, told.decided),
            resuming: since(entered, told.done),
            leaving: since(left, told.due),
            waking: since(told.woke, told.due),
            unseen: told.received.as_nanos() as i64 - own,
            nobodys: since(told.looked, told.decided) - counted,
            own,
            turns: i64::try_from(told.turns).unwrap_or(i64::MAX),
            tick: tick.map(|(from, to)| since(*to, *from)),
            is_whole: between.is_zero() && told.turns <= 1,
        })
    }
}

/// So many nanoseconds after, negative before.
fn since(at: Instant, other: Instant) -> i64 {
    at.as_nanos() as i64 - other.as_nanos() as i64
}

/// What switches cost; `None` if too few slots could be measured.
fn evaluate(seen: &[Seen], every: Option<Span>) -> Option<Switching> {
    let whole: Vec<Seen> = seen.iter().filter(|slot| slot.is_whole).copied().collect();
    if seen.len() < ENOUGH || whole.len() < ENOUGH_WHOLE {
        return None;
    }
    let positive = |ns: i64| Span::from_nanos(ns.max(0).unsigned_abs());
    let each = median(whole.iter().map(|slot| slot.unseen)).max(0);
    // A median of them would be nothing, as most slots are spared.
    let handlers = seen.iter().map(|slot| {
        let known = each
            .saturating_mul(slot.turns)
            .saturating_add(slot.tick.unwrap_or(0));
        let more = slot.unseen.saturating_sub(known);
        more.clamp(0, LONGEST.as_nanos() as i64).unsigned_abs()
    });
    let own: u64 = seen.iter().map(|slot| slot.own.max(0).unsigned_abs()).sum();
    let unseen_ppm = handlers.sum::<u64>() * 1_000_000 / own.max(1);
    Some(Switching {
        lead: slots::EARLY,
        entering: positive(median(seen.iter().map(|slot| slot.entering))),
        resuming: positive(median(seen.iter().map(|slot| slot.resuming))),
        leaving_ns: median(seen.iter().map(|slot| slot.leaving)),
        waking: positive(median(seen.iter().map(|slot| slot.waking))),
        unseen_each: positive(each),
        unseen_ppm: unseen_ppm.min(MOST_UNSEEN_PPM) as u32,
        ticks: every.map(|every| Ticks {
            first: Instant::ZERO,
            every,
            each: positive(median(seen.iter().filter_map(|slot| slot.tick))),
        }),
        nobodys: positive(median(whole.iter().map(|slot| slot.nobodys))),
    })
}

/// How far the kernel's ticks are apart, if it is known when they come.
fn distance_of_ticks() -> Option<Span> {
    let version = proc::kernel_version(&uname().release().to_string_lossy())?;
    (version >= FIRST_WITH_ALIGNED_TICKS).then(clock::tick)
}

/// The median; zero of no ticks, where none fell into a slot.
fn median(all: impl Iterator<Item = i64>) -> i64 {
    number::median(all).unwrap_or(0)
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

#[cfg(test)]
mod tests;
