//! Switches between two real-time threads on one processor: by yielding, by waiting, and by a signal to one of higher rank.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;

use laxity_model::{Instant, Span};

use super::bench::{Bench, Worker};
use super::samples::Samples;
use super::{Result, clock};
use crate::run::semaphore::{Semaphore, Taken};

/// The samples are taken in so many parts, as the machine differs from moment to moment.
const PARTS: usize = 10;
/// Samples of each kind in all.
const SAMPLES: usize = 40_000;

/// Who read the clock last, and when.
#[derive(Default)]
struct Last {
    who: AtomicU32,
    at_ns: AtomicU64,
}

impl Last {
    fn note(&self, who: u32) {
        self.who.store(who, Ordering::Relaxed);
        self.at_ns.store(clock::now().as_nanos(), Ordering::Relaxed);
    }
}

/// The switch alone: from a thread that yields to the other of the same rank, less what yielding costs without another.
pub(super) fn switches(bench: &Bench<'_>) -> Result<Samples> {
    let without = bench.in_parts(SAMPLES, PARTS, |each| {
        let last = Last::default();
        Ok(vec![bench.alone(|| yielding(&last, 1, each).0)?])
    })?;
    let with = bench.in_parts(SAMPLES, PARTS, |each| {
        let last = Last::default();
        let last = &last;
        let one = |who| Worker::new(bench.fifo(0), move || yielding(last, who, each / 2).1);
        bench.together(vec![one(1), one(2)])
    })?;
    Ok(with.less(without.median()))
}

/// Yields so often; how long until this thread ran again where it was the same, and until it ran where another had yielded last.
fn yielding(last: &Last, who: u32, rounds: usize) -> (Samples, Samples) {
    let (mut alone, mut switched) = (Samples::with_room(rounds), Samples::with_room(rounds));
    for _ in 0..rounds {
        last.note(who);
        thread::yield_now();
        let now = clock::now().as_nanos();
        let took = now.saturating_sub(last.at_ns.load(Ordering::Relaxed));
        let samples = if last.who.load(Ordering::Relaxed) == who {
            &mut alone
        } else {
            &mut switched
        };
        samples.push(Span::from_nanos(took));
    }
    (alone, switched)
}

/// Two threads of the same rank hand a semaphore to and fro: from the call in which one waits to the first instruction of the other.
pub(super) fn blocking(bench: &Bench<'_>) -> Result<Samples> {
    let samples = bench.in_parts(SAMPLES, PARTS, |each| {
        let semaphores = [Semaphore::new(0), Semaphore::new(1)];
        let last = Last::default();
        let one = |who: usize| {
            let (own, other, last) = (&semaphores[who], &semaphores[1 - who], &last);
            let pass = move || passing(last, who as u32, own, other, each / 2);
            Worker::new(bench.fifo(0), pass)
        };
        bench.together(vec![one(0), one(1)])
    })?;
    Ok(samples.less(clock::reading_cost()))
}

/// Takes its own semaphore and signals the other so often; how long each wait took since the other thread's call.
fn passing(last: &Last, who: u32, own: &Semaphore, other: &Semaphore, rounds: usize) -> Samples {
    let mut samples = Samples::with_room(rounds);
    for _ in 0..rounds {
        last.note(who);
        let taken = own.take(None);
        let now = clock::now();
        let from = last.at_ns.load(Ordering::Relaxed);
        if taken != Taken::One {
            break;
        }
        if last.who.load(Ordering::Relaxed) != who {
            samples.push(now.saturating_since(Instant::from_nanos(from)));
        }
        other.signal(now);
    }
    samples
}

/// A thread signals a semaphore that one of higher rank waits for: from the signal to that one's first instruction.
pub(super) fn handover(bench: &Bench<'_>) -> Result<Samples> {
    let samples = bench.in_parts(SAMPLES, PARTS, |each| {
        let semaphore = Semaphore::new(0);
        let waiter = || {
            let mut samples = Samples::with_room(each);
            while semaphore.take(None) == Taken::One {
                let now = clock::now();
                samples.push(now.saturating_since(semaphore.last_signal()));
            }
            samples
        };
        let signaller = || {
            for _ in 0..each {
                semaphore.signal(clock::now());
            }
            semaphore.close();
            Samples::with_room(0)
        };
        bench.together(vec![
            Worker::new(bench.fifo(0), waiter),
            Worker::new(bench.fifo(1), signaller),
        ])
    })?;
    Ok(samples.less(clock::reading_cost()))
}
