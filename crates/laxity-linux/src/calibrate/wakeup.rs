//! Wake-ups by a timer: how late, and what they take from the thread that computed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use laxity_model::{Instant, Span};

use super::bench::{Bench, ORDINARY, Worker};
use super::samples::Samples;
use super::{Result, clock};

/// From one wake-up to the next: no multiple of it is a tick soon, so that wake-ups meet ticks as often as chance has it.
const STEP: Span = Span::from_micros(1_037);
/// Wake-ups in one part, after which everything else gets its turn.
const PART: usize = 500;
const BUSY_SAMPLES: usize = 6_000;
const IDLE_SAMPLES: usize = 3_000;
/// Ordinary threads that compute: more than one, so that they also take turns.
const COMPUTING: usize = 2;

/// What was seen on a busy processor.
pub(super) struct Busy {
    /// From the instant asked for to the first instruction.
    pub(super) late: Samples,
    /// From the last instruction of the thread that computed to the first of the one that woke.
    pub(super) preemption: Samples,
    /// From the call that sleeps to the next instruction of a thread that computes.
    pub(super) falling_asleep: Samples,
}

/// What the threads tell each other, in nanoseconds.
#[derive(Default)]
struct Shared {
    /// The last reading of one that computes.
    last_ns: AtomicU64,
    /// When the other one went to sleep; 0 once somebody has seen that.
    asleep_ns: AtomicU64,
    done: AtomicBool,
}

/// What one thread saw: lateness and preemption, or falling asleep and nothing.
type Seen = (Samples, Samples);

/// A thread sleeps from instant to instant while ordinary threads compute.
pub(super) fn busy(bench: &Bench<'_>) -> Result<Busy> {
    let all = bench.count(BUSY_SAMPLES);
    let mut found = Busy {
        late: Samples::with_room(0),
        preemption: Samples::with_room(0),
        falling_asleep: Samples::with_room(0),
    };
    for first in (0..all).step_by(PART) {
        let count = PART.min(all - first);
        let shared = Shared::default();
        let sleeper = || {
            let seen = sleep(bench, &shared, count);
            shared.done.store(true, Ordering::Relaxed);
            seen
        };
        let mut workers = vec![Worker::new(bench.fifo(0), sleeper)];
        workers.extend((0..COMPUTING).map(|_| {
            let work = || (compute(&shared, count), Samples::with_room(0));
            Worker::new(ORDINARY, work)
        }));
        let mut seen = bench.together(workers)?.into_iter();
        if let Some((late, preemption)) = seen.next() {
            found.late.append(late);
            found.preemption.append(preemption);
        }
        seen.for_each(|(asleep, _)| found.falling_asleep.append(asleep));
    }
    let cost = clock::reading_cost();
    Ok(Busy {
        preemption: found.preemption.less(cost),
        falling_asleep: found.falling_asleep.less(cost),
        ..found
    })
}

/// A thread sleeps from instant to instant while nothing else runs, but for what others run here.
pub(super) fn idle(bench: &Bench<'_>) -> Result<Samples> {
    let all = bench.count(IDLE_SAMPLES);
    let mut late = Samples::with_room(0);
    for first in (0..all).step_by(PART) {
        let count = PART.min(all - first);
        late.append(bench.alone(|| sleep(bench, &Shared::default(), count).0)?);
    }
    Ok(late)
}

fn sleep(bench: &Bench<'_>, shared: &Shared, count: usize) -> Seen {
    let (mut late, mut preemption) = (Samples::with_room(count), Samples::with_room(count));
    let mut due = clock::now() + STEP;
    for _ in 0..count {
        if bench.interrupted() {
            break;
        }
        shared
            .asleep_ns
            .store(clock::now().as_nanos(), Ordering::Release);
        clock::sleep_until(due);
        let now = clock::now();
        let last = Instant::from_nanos(shared.last_ns.load(Ordering::Relaxed));
        late.push(now.saturating_since(due));
        // Where none has computed since it went to sleep, or nobody computes, there was nothing to take.
        if shared.asleep_ns.load(Ordering::Acquire) == 0 {
            preemption.push(now.saturating_since(last));
        }
        // Instants that passed while the machine stood still are over.
        let missed = now.saturating_since(due) / STEP;
        due += STEP * (missed + 1);
    }
    (late, preemption)
}

/// Reads the clock until all is over; how long after the other one went to sleep it was first read.
fn compute(shared: &Shared, count: usize) -> Samples {
    let mut samples = Samples::with_room(count);
    while !shared.done.load(Ordering::Relaxed) {
        // Looked at before the reading: a reading from before the other one ran would tell nothing.
        let asleep = shared.asleep_ns.load(Ordering::Acquire);
        let now = clock::now();
        let seen = |asleep| {
            shared
                .asleep_ns
                .compare_exchange(asleep, 0, Ordering::AcqRel, Ordering::Relaxed)
        };
        if asleep != 0 && seen(asleep).is_ok() {
            samples.push(now.saturating_since(Instant::from_nanos(asleep)));
        }
        shared.last_ns.store(now.as_nanos(), Ordering::Relaxed);
    }
    samples
}
