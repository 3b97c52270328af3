//! What a body sees of the live host.

use std::sync::Arc;

use laxity_model::ring::Producer;
use laxity_model::{
    ActivityId, Context, Event, EventKind, HostError, Instant, Mark, ProcessorId, SemaphoreId,
};

use super::run::Run;
use crate::clock;

/// Writes an activity's events to its ring.
pub(crate) struct Log {
    pub(crate) ring: Producer,
    pub(crate) processor: ProcessorId,
    pub(crate) activity: ActivityId,
}

impl Log {
    pub(crate) fn at(&mut self, at: Instant, kind: EventKind, args: [u64; 2]) {
        self.ring.push(Event {
            at,
            kind,
            processor: self.processor,
            activity: self.activity,
            args,
        });
    }

    pub(crate) fn now(&mut self, kind: EventKind, args: [u64; 2]) {
        self.at(clock::now(), kind, args);
    }
}

/// The [`Context`] of one activity's thread.
pub(crate) struct LiveContext {
    pub(crate) run: Arc<Run>,
    pub(crate) log: Log,
    pub(crate) timed_out: bool,
}

impl Context for LiveContext {
    fn now(&self) -> Instant {
        clock::now()
    }

    fn signal(&mut self, semaphore: SemaphoreId) {
        let now = clock::now();
        self.log
            .at(now, EventKind::Signal, [u64::from(semaphore.0), 0]);
        match self.run.semaphore(semaphore) {
            Some(found) => found.signal(now),
            None => self.run.fail(HostError::BadProgram(format!(
                "semaphore {semaphore} does not exist"
            ))),
        }
    }

    fn mark(&mut self, mark: Mark, args: [u64; 2]) {
        self.log.now(EventKind::Mark(mark), args);
    }

    fn timed_out(&self) -> bool {
        self.timed_out
    }
}
