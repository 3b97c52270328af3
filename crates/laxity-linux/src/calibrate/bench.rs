//! Where it is measured: threads on one processor that begin together, and pauses in which everything else gets its turn.

use std::panic;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, ScopedJoinHandle};

use laxity_model::Span;

use super::samples::Samples;
use super::{CalibrateError, Result, Settings};
use crate::os::clock;
use crate::os::cpuset::CpuSet;
use crate::os::futex;
use crate::os::sched::{self, Policy, SchedError, Tid};
use crate::os::signals::{self, Watch};

/// Between measurements, none of which takes more than a quarter of a second of the processor. Together they stay below the share at
/// which the kernel's server for ordinary threads steps in.
const PAUSE: Span = Span::from_millis(40);

/// No figure has fewer samples, undisturbed.
const LEAST: usize = 60;

/// What a thread of a measurement does, and under which policy.
pub(super) struct Worker<'w, T> {
    policy: Policy,
    work: Box<dyn FnOnce() -> T + Send + 'w>,
}

impl<'w, T> Worker<'w, T> {
    pub(super) fn new(policy: Policy, work: impl FnOnce() -> T + Send + 'w) -> Self {
        let work = Box::new(work);
        Self { policy, work }
    }
}

/// The policy of threads that only compute.
pub(super) const ORDINARY: Policy = Policy::Other { nice: 0 };

/// The processor and the rank at which it is measured.
pub(super) struct Bench<'a> {
    settings: &'a Settings,
    watch: &'a Watch,
}

const SHUT: u32 = 0;
const OPEN: u32 = 1;
const CALLED_OFF: u32 = 2;

impl<'a> Bench<'a> {
    pub(super) fn new(settings: &'a Settings, watch: &'a Watch) -> Self {
        Self { settings, watch }
    }

    pub(super) fn cpu(&self) -> usize {
        self.settings.processor
    }

    /// The rank of what is measured, and those `below` it.
    pub(super) fn fifo(&self, below: u8) -> Policy {
        Policy::Fifo(self.settings.priority - below)
    }

    /// So many samples, or the part of them that is wanted; at least so many that they make a distribution.
    pub(super) fn count(&self, all: usize) -> usize {
        (all / self.settings.part).max(LEAST)
    }

    /// In how many parts they are taken, and how many are in each: the machine differs from moment to moment.
    pub(super) fn parts(&self, samples: usize, parts: usize) -> (usize, usize) {
        let parts = (parts / self.settings.part).max(2);
        (parts, self.count(samples).div_ceil(parts))
    }

    /// So many samples in parts: what the threads saw that measure so many of them each time.
    pub(super) fn in_parts(
        &self,
        samples: usize,
        parts: usize,
        mut measure: impl FnMut(usize) -> Result<Vec<Samples>>,
    ) -> Result<Samples> {
        let (parts, each) = self.parts(samples, parts);
        let mut all = Samples::with_room(0);
        for _ in 0..parts {
            measure(each)?.into_iter().for_each(|seen| all.append(seen));
        }
        Ok(all)
    }

    /// Whether a signal has come. A load: cheap enough for every sample.
    pub(super) fn interrupted(&self) -> bool {
        self.watch.caught().is_some()
    }

    /// Fails if a signal has come.
    pub(super) fn go_on(&self) -> Result {
        match self.watch.caught() {
            Some(signal) => Err(CalibrateError::Interrupted(signal)),
            None => Ok(()),
        }
    }

    /// One thread's work at the measured rank.
    pub(super) fn alone<'w, T: Send>(&self, work: impl FnOnce() -> T + Send + 'w) -> Result<T> {
        let mut results = self.together(vec![Worker::new(self.fifo(0), work)])?;
        // As many results as there were workers.
        results
            .pop()
            .ok_or_else(|| CalibrateError::Thread("it has no result".to_owned()))
    }

    /// Several threads with their policies, all on the measured processor; their results in order. A pause comes first. None begins its work
    /// before all are ready; then those of higher rank go first.
    pub(super) fn together<'w, T: Send>(&self, workers: Vec<Worker<'w, T>>) -> Result<Vec<T>> {
        self.pause();
        self.go_on()?;
        let entry = Entry::default();
        let count = workers.len() as u32;
        let outcomes = thread::scope(|scope| {
            let mut started = Vec::new();
            let mut refused = None;
            for worker in workers {
                let (entry, cpu) = (&entry, self.cpu());
                let builder = thread::Builder::new().name("calibration".to_owned());
                match builder.spawn_scoped(scope, move || entry.enter(worker, cpu)) {
                    Ok(thread) => started.push(thread),
                    Err(error) => refused = Some(error),
                }
            }
            entry.decide(count, refused.is_some());
            let outcomes: Vec<_> = started.into_iter().map(ScopedJoinHandle::join).collect();
            match refused {
                Some(error) => Err(CalibrateError::Thread(error.to_string())),
                None => Ok(outcomes),
            }
        })?;
        let mut results = Vec::new();
        for outcome in outcomes {
            let outcome = outcome.unwrap_or_else(|payload| panic::resume_unwind(payload));
            results.extend(outcome?);
        }
        self.go_on()?;
        Ok(results)
    }

    /// Lets everything else run; a signal ends it at once.
    pub(super) fn pause(&self) {
        let until = clock::now() + PAUSE;
        while clock::now() < until && !self.interrupted() {
            signals::wait(signals::doorbell(), Some(until));
        }
    }
}

/// Where the threads of a measurement wait for each other.
#[derive(Default)]
struct Entry {
    ready: AtomicU32,
    failed: AtomicBool,
    /// [`SHUT`], [`OPEN`] or [`CALLED_OFF`].
    state: AtomicU32,
}

impl Entry {
    /// One thread: its policy first, so that it cannot starve on the processor it goes to; then its work, when all are ready. No result if it
    /// was called off.
    fn enter<T>(&self, worker: Worker<'_, T>, cpu: usize) -> Result<Option<T>, SchedError> {
        let own = Tid::current();
        clock::use_exact_timers();
        let prepared = sched::set_policy(own, worker.policy)
            .and_then(|()| sched::set_affinity(own, &CpuSet::single(cpu)));
        self.failed.fetch_or(prepared.is_err(), Ordering::SeqCst);
        self.ready.fetch_add(1, Ordering::SeqCst);
        futex::wake_all(&self.ready);
        while self.state.load(Ordering::SeqCst) == SHUT {
            futex::wait(&self.state, SHUT, None);
        }
        let goes = self.state.load(Ordering::SeqCst) == OPEN;
        prepared.map(|()| goes.then(worker.work))
    }

    /// Waits until so many are ready, and opens; or calls all off, if that will never be, or one of them failed.
    fn decide(&self, count: u32, hopeless: bool) {
        let mut ready = self.ready.load(Ordering::SeqCst);
        while !hopeless && ready < count {
            futex::wait(&self.ready, ready, None);
            ready = self.ready.load(Ordering::SeqCst);
        }
        let off = hopeless || self.failed.load(Ordering::SeqCst);
        let state = if off { CALLED_OFF } else { OPEN };
        self.state.store(state, Ordering::SeqCst);
        futex::wake_all(&self.state);
    }
}
