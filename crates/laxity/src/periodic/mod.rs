//! A periodic task: work that is released every so much time, and due at its deadline.

mod reader;

use laxity_model::program::upcall::{Timing, Upcall};
use laxity_model::request::Work;
use laxity_model::verify::contract::{Kind, Quantity, Subject};
use laxity_model::{
    Activity, ActivityId, Body, Context, Mark, Placement, ProcessorId, Program, ReservationRequest,
    Service, Span, Step,
};

use self::reader::PeriodicReader;
use crate::observe::{Probe, Reader, Run};

/// What can be seen of periodic tasks, and limited by a contract.
pub const KIND: Kind = Kind {
    name: "periodic",
    quantities: &[
        Quantity::WAKEUP_LATENCY,
        Quantity::WAKEUP_GAP,
        Quantity::RESPONSE_TIME,
        Quantity::SERVICE_GAP,
        Quantity::DEADLINE_MISSES,
        Quantity::JOBS_DONE,
    ],
};

/// What waking takes besides a job's work.
const WAKE_UP: Service = Service::from_micros(10);

/// A periodic task as it is declared.
#[derive(Clone, Debug)]
pub struct Periodic {
    /// Its name in tables, verdicts and traces.
    pub name: String,
    /// Where it runs.
    pub processor: ProcessorId,
    /// How it runs.
    pub placement: Placement,
    /// The reservation that it asks for.
    pub reservation: Option<ReservationRequest>,
    /// From release to release; more than zero.
    pub period: Span,
    /// From its release, when a job is due: no later than the next is released, since a job that is at work then takes the place of that one.
    pub deadline: Span,
    /// What a job takes at the most. Admission charges it to those whom the task outranks.
    pub service: Service,
}

impl Periodic {
    /// Adds the task to a program; what it leaves behind tells what was seen of it.
    ///
    /// `job` does the work of one job and returns what it costs: [`Step::Charge`] for what it has really done, [`Step::Burn`] to keep the
    /// processor busy. Releases lie on a grid from the first step on. A release that is missed altogether is skipped, not made up for,
    /// so that one long delay shows as one long gap (Jones, Saroiu §6.3).
    pub fn install(
        self,
        program: &mut Program,
        job: impl FnMut(&mut dyn Context) -> Step + Send + 'static,
    ) -> PeriodicProbe {
        let runs = program.mark(&format!("{} runs", self.name));
        let (period, service) = (self.period, self.service);
        let activity = program.push(Activity {
            name: self.name.clone(),
            processor: self.processor,
            placement: self.placement,
            reservation: self.reservation,
            body: Box::new(body(period, runs, job)),
        });
        let thread = match self.placement {
            Placement::On { executor, .. } => {
                let mut executors = program.executors();
                let host = executors.find(|(known, _)| *known == executor);
                host.map_or(activity, |(_, own)| own)
            }
            _ => activity,
        };
        // Those that take turns in a thread are its work together, all of it as often as the shortest period.
        let known = program.work.iter().find(|(known, _)| *known == thread);
        let others = known.map(|(_, work)| *work);
        let work = Work {
            service: service + WAKE_UP + others.map_or(Service::ZERO, |others| others.service),
            period: others.map_or(period, |others| others.period.min(period)),
        };
        program.declare_work(thread, work);
        PeriodicProbe {
            subject: Subject {
                name: self.name,
                kind: KIND,
            },
            activity,
            thread,
            runs,
            period,
            deadline: self.deadline,
            service,
        }
    }
}

/// Where the evidence of a periodic task is to be found in the record of a run.
#[derive(Clone, Debug)]
pub struct PeriodicProbe {
    /// The task.
    pub subject: Subject,
    /// What does its jobs.
    pub activity: ActivityId,
    /// The thread in which it does them: its own, or its executor's.
    pub thread: ActivityId,
    /// The event at the begin of each job: when it was due and when it ran, in nanoseconds.
    pub runs: Mark,
    /// From release to release.
    pub period: Span,
    /// From the release of a job to when it is due.
    pub deadline: Span,
    /// What a job takes.
    pub service: Service,
}

impl Probe for PeriodicProbe {
    fn subject(&self) -> &Subject {
        &self.subject
    }

    fn activities(&self) -> &[ActivityId] {
        std::slice::from_ref(&self.activity)
    }

    fn holders(&self) -> &[ActivityId] {
        std::slice::from_ref(&self.thread)
    }

    fn reader<'a>(&'a self, run: Run<'a>) -> Option<Box<dyn Reader + 'a>> {
        Some(Box::new(PeriodicReader::new(self, run)))
    }
}

/// A body that has a job every `period` (more than zero), as [`Periodic::install`] says, and leaves `runs` at the begin of each, with when
/// it was due and when it ran.
pub fn body(
    period: Span,
    runs: Mark,
    mut job: impl FnMut(&mut dyn Context) -> Step + Send + 'static,
) -> impl Body {
    Upcall::new(Timing::each(period), runs, move |context, _| job(context))
}
