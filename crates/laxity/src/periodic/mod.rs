//! A periodic task: work that is released every so much time, and due at its deadline; on an executor, an upcall.

mod reader;

use laxity_model::executor::pacing::OnOverrun;
use laxity_model::program::Links;
use laxity_model::program::upcall::{Call, First, Timing, Upcall};
use laxity_model::request::Work;
use laxity_model::verify::contract::{Kind, Quantity, Subject};
use laxity_model::{
    Activity, ActivityId, Context, Mark, Placement, ProcessorId, Program, ReservationRequest,
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
        Quantity::JOB_OVERRUNS,
        Quantity::RELEASES_MISSED,
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
    /// When its jobs are released, of how many units each is, and what becomes of releases that come while one is at work.
    pub timing: Timing,
    /// From its release, when a job is due: no later than the next is released.
    pub deadline: Span,
    /// What a job takes at the most, all its units together. Admission charges it to those whom the task outranks.
    pub service: Service,
}

impl Periodic {
    /// Adds the task to a program; what it leaves behind tells what was seen of it.
    ///
    /// `work` does a quantum of a job, which is told how many units that are, and returns what it costs: [`Step::Charge`] for what it has really
    /// done, [`Step::Burn`] to keep the processor busy. A release that is missed altogether is skipped where nothing else is asked for, so that one
    /// long delay shows as one long gap (Jones, Saroiu §6.3).
    pub fn install(
        self,
        program: &mut Program,
        work: impl FnMut(&mut dyn Context, &mut Call) -> Step + Send + 'static,
    ) -> PeriodicProbe {
        self.install_linked(program, Links::default(), work)
    }

    /// The same for a task on an executor that has to do with others there. One that comes after another one is seen from the release of the first of its chain on, whose period and first release are its own: that is when
    /// its deadline and its response count from.
    pub fn install_linked(
        self,
        program: &mut Program,
        links: Links,
        work: impl FnMut(&mut dyn Context, &mut Call) -> Step + Send + 'static,
    ) -> PeriodicProbe {
        let runs = program.mark(&format!("{} runs", self.name));
        let ends = links.group.is_some();
        let ends = ends.then(|| program.mark(&format!("{} ends", self.name)));
        let (period, service) = (self.timing.period, self.service);
        let (is_successor, batch) = (links.after.is_some(), u64::from(self.timing.batch.get()));
        let unit = Service::from_nanos(service.as_nanos().div_ceil(batch));
        let upcall = Upcall::new(self.timing.clone(), runs, work);
        let upcall = upcall.linked(unit, &links, ends);
        let (first, on_overrun) = (self.timing.first.clone(), self.timing.on_overrun);
        let activity = program.push(Activity {
            name: self.name.clone(),
            processor: self.processor,
            placement: self.placement,
            reservation: self.reservation,
            body: Box::new(upcall),
        });
        program.link(activity, links);
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
        let together = Work {
            service: service + WAKE_UP + others.map_or(Service::ZERO, |others| others.service),
            period: others.map_or(period, |others| others.period.min(period)),
        };
        program.declare_work(thread, together);
        PeriodicProbe {
            subject: Subject {
                name: self.name,
                kind: KIND,
            },
            activity,
            thread,
            runs,
            ends,
            is_successor,
            first,
            period,
            on_overrun,
            may_stop: on_overrun.stops(),
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
    /// The event at the begin of each job: when it was due, or the first of its chain was, and when it ran, in nanoseconds.
    pub runs: Mark,
    /// The event at the end of each job where not every wait is one: of a task that has its service together with others.
    pub ends: Option<Mark>,
    /// Whether the end of another's job releases it.
    pub is_successor: bool,
    /// When the first job is released, of the first of its chain.
    pub first: First,
    /// From release to release.
    pub period: Span,
    /// What becomes of releases that come while a job is at work.
    pub on_overrun: OnOverrun,
    /// Whether it, or one that it comes after, is suspended or ends at an overrun: then there may be no other release of it.
    pub may_stop: bool,
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
