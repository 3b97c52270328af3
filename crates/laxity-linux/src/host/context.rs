//! What a body sees of the live host.

use std::sync::Arc;

use laxity_model::base::port::Arrival;
use laxity_model::base::ring::Producer;
use laxity_model::policy::Rank;
use laxity_model::{
    Activity, ActivityId, Context, Event, EventKind, HostError, Instant, Placement, PortId,
    ProcessorId, Refused, SemaphoreId, Service,
};

use crate::os::clock;
use crate::run::Run;
use crate::run::raises::Failed;
use crate::run::semaphore::Taken;

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

    /// An event of another activity on the same processor.
    fn of(&mut self, activity: ActivityId, kind: EventKind, args: [u64; 2]) {
        let own = std::mem::replace(&mut self.activity, activity);
        self.now(kind, args);
        self.activity = own;
    }
}

/// The [`Context`] of one activity's thread.
pub(crate) struct LiveContext {
    pub(crate) run: Arc<Run>,
    pub(crate) log: Log,
    pub(crate) timed_out: bool,
    /// What its last wait for a port took.
    pub(crate) arrival: Option<Arrival>,
    /// What became of what it asked for last.
    pub(crate) answer: Result<Instant, Refused>,
    /// How many names for marks the program has.
    pub(crate) marks: usize,
    /// Whether it runs on the program's processors.
    pub(crate) counts: bool,
    /// What its thread had received before the activity began.
    pub(crate) service_before: Service,
}

impl LiveContext {
    /// The program is wrong, and the run over.
    pub(crate) fn mistake(&self, what: String) {
        self.run.fail(HostError::BadProgram(what));
    }

    /// The activity is about to begin, on the calling thread.
    pub(crate) fn new(run: Arc<Run>, log: Log, marks: usize, activity: &Activity) -> Self {
        Self {
            run,
            log,
            timed_out: false,
            arrival: None,
            answer: Err(Refused::NothingAsked),
            marks,
            counts: activity.placement != Placement::External,
            service_before: clock::thread_service(),
        }
    }
}

impl Context for LiveContext {
    fn now(&self) -> Instant {
        clock::now()
    }

    fn put(&mut self, port: PortId, payload: [u64; 2]) -> bool {
        let at = clock::now();
        // Recorded first: whoever is woken may run before we do again.
        self.log.at(at, EventKind::Signal, [port.0.into(), 0]);
        let room = self.run.ports.put(port, Arrival { at, payload });
        room.unwrap_or_else(|| {
            self.mistake(format!("port {port} does not exist"));
            false
        })
    }

    fn take(&mut self, port: PortId) -> Option<Arrival> {
        let Some(found) = self.run.ports.get(port) else {
            self.mistake(format!("port {port} does not exist"));
            return None;
        };
        let taken = found.permits.try_take() == Some(Taken::One);
        taken.then(|| found.arrival(false))
    }

    fn arrival(&self) -> Option<Arrival> {
        self.arrival
    }

    fn ring(&mut self, port: PortId, doorbell: SemaphoreId) -> bool {
        let is_fed = self.run.ports.ring(port, doorbell);
        if is_fed.is_none() {
            self.mistake(format!("port {port} or doorbell {doorbell} does not exist"));
        }
        is_fed.unwrap_or(false)
    }

    fn raise(&mut self, activity: ActivityId, rank: Rank, at: Instant) {
        match self.run.raises.raise(activity, rank, at) {
            Ok(None) => {}
            Ok(Some((port, payload))) => {
                self.put(port, payload);
            }
            Err(Failed::Refused(why)) => {
                self.mistake(format!("an activity raises activity {activity}, {why}"));
            }
            Err(Failed::Kernel(error)) => {
                let what = format!("activity {activity} is not raised: {error}");
                self.run.fail(HostError::Failed(what));
            }
        }
    }

    fn record(&mut self, kind: EventKind, args: [u64; 2]) {
        self.record_of(self.log.activity, kind, args);
    }

    fn record_of(&mut self, hosted: ActivityId, kind: EventKind, args: [u64; 2]) {
        match kind {
            EventKind::Mark(mark) if usize::from(mark.0) >= self.marks => {
                self.mistake(format!("mark {} has no name", mark.0));
            }
            _ if !self.run.has(hosted) => {
                self.mistake(format!("activity {hosted} does not exist"));
            }
            _ => self.log.of(hosted, kind, args),
        }
    }

    fn fail(&mut self, what: &'static str) {
        self.mistake(what.to_owned());
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
