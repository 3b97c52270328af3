//! What a body sees of the live host.

use std::sync::Arc;

use laxity_model::base::ring::Producer;
use laxity_model::{
    ActivityId, Context, Event, EventKind, HostError, Instant, Mark, ProcessorId, Refused,
    SemaphoreId, Service,
};

use super::run::Run;
use crate::os::clock;

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
    /// What became of what it asked for last.
    pub(crate) answer: Result<Instant, Refused>,
    /// How many names for marks the program has.
    pub(crate) marks: usize,
    /// Whether it runs on the program's processors.
    pub(crate) counts: bool,
    /// What its thread had received before the activity began.
    pub(crate) service_before: Service,
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
        if usize::from(mark.0) < self.marks {
            self.log.now(EventKind::Mark(mark), args);
        } else {
            let text = format!("mark {} has no name", mark.0);
            self.run.fail(HostError::BadProgram(text));
        }
    }

    fn timed_out(&self) -> bool {
        self.timed_out
    }

    fn answer(&self) -> Result<Instant, Refused> {
        self.answer
    }

    fn service(&self) -> Service {
        if self.counts {
            clock::thread_service().saturating_sub(self.service_before)
        } else {
            Service::ZERO
        }
    }
}
