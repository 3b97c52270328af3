//! Multi-class earliest deadline first: handlers of real-time channels that are current by deadline, behind them best effort, first come, first served, and those that are early by logical arrival.
//!
//! Mehra, Indiresan, Shin, "Structuring Communication Software for Quality-of-Service Guarantees" (RTSS 1996), §§3.1, 4.2 and table 2. The classes are those of links too, [`crate::policy::three_classes`]: by what is chosen there, the processor
//! stays idle while there is nothing but what is early, or it works ahead, for which the paper has proxies that compete for early handlers. Handlers are preempted where they look (§3.1).

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::edf::ByDeadline;
use super::in_order::{Order, analysed};
use super::rmdp::ByRate;
use super::{ExecutorPolicy, HANDLERS, Job, Unschedulable};
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Preemption, Task};
use crate::policy::three_classes::{By, Claim, Classes, Early, Next};
use crate::policy::{Decision, Policy, Rank};
use crate::{Instant, Span};

/// The released jobs of an executor, in three classes. A job that is never due is best effort; one whose handler has [inherited](super::Handlers::inherit) a logical arrival that is to come is early until then. Who yields goes behind his
/// equals.
///
/// By [priority](By::Priority) a current job goes by the time from its logical arrival to its deadline, the least first, which is its channel's priority.
#[derive(Clone, Debug)]
pub struct MulticlassEdf {
    early: Early,
    by: By,
    classes: Classes,
    jobs: Box<[Option<Job>]>,
    /// When it was asked last.
    now: Instant,
}

/// The place of a job among others at one instant, the least first: its class, and what counts there.
type Place = (u8, u64);

impl MulticlassEdf {
    /// With nobody released, and room for as many handlers as an executor of a program has.
    #[must_use]
    pub fn new(early: Early, by: By) -> Self {
        Self::with_room(HANDLERS, early, by)
    }

    /// With nobody released, and room for so many handlers.
    #[must_use]
    pub fn with_room(handlers: usize, early: Early, by: By) -> Self {
        Self {
            early,
            by,
            classes: Classes::new(handlers, early, by),
            jobs: vec![None; handlers].into(),
            now: Instant::ZERO,
        }
    }

    /// Its place among current ones.
    fn rank(&self, job: &Job) -> u64 {
        match self.by {
            By::Deadline => job.deadline.as_nanos(),
            By::Priority => job.deadline.saturating_since(job.logical).as_nanos(),
        }
    }

    fn place(&self, job: &Job, at: Instant) -> Place {
        if job.deadline == Instant::MAX {
            return (2, 0);
        }
        let (horizon, class) = match self.early {
            Early::Held { horizon } => (horizon, 3),
            Early::Last => (Span::ZERO, 3),
            Early::BeforeBestEffort => (Span::ZERO, 1),
        };
        match job.logical.saturating_sub(horizon) {
            from if from <= at => (0, self.rank(job)),
            from => (class, from.as_nanos()),
        }
    }

    /// Whether a job may run that is not current.
    fn is_ahead(&self) -> bool {
        let never = Early::Held {
            horizon: Span::ZERO,
        };
        self.early != never
    }

    /// The tasks by which these are admitted. Who works ahead may be in its longest region when any other is released, also one that is due later: as if it were somebody's who is due last of all. And who has a fixed priority has it
    /// from the horizon on, as one whose jobs arrive so much earlier, and may be released so much later.
    fn admitted(&self, tasks: &[Task]) -> Vec<Task> {
        let horizon = match (self.early, self.by) {
            (Early::Held { horizon }, By::Priority) => horizon,
            _ => Span::ZERO,
        };
        let earlier = |task: &Task| {
            let later = task.deadline().checked_add(horizon).unwrap_or(Span::MAX);
            let jitter = task.jitter().checked_add(horizon).unwrap_or(Span::MAX);
            let task = analysed(task).with_jitter(jitter);
            task.with_deadline(later).unwrap_or(task)
        };
        let mut all: Vec<Task> = tasks.iter().map(earlier).collect();
        let longest = all.iter().map(Task::longest_region).max();
        let last = all.iter().map(Task::deadline).max();
        if let Some((longest, last)) = longest.zip(last).filter(|_| self.is_ahead()) {
            let ahead = Task::new(longest, last.max(LAST))
                .and_then(|task| task.with_preemption(Preemption::Never));
            all.extend(ahead);
        }
        all
    }
}

/// Later than anything of an executor is due: more than three hours.
const LAST: Span = Span::from_secs(12_000);

impl Policy for MulticlassEdf {
    type Entry = Job;

    fn enter(&mut self, who: u32, job: Job, now: Instant) {
        self.jobs[who as usize] = Some(job);
        let claim = match job.deadline {
            Instant::MAX => Claim::BestEffort,
            deadline => Claim::RealTime {
                logical: job.logical,
                deadline,
            },
        };
        if self.by == By::Priority {
            self.classes.rank(who, self.rank(&job));
        }
        self.classes.enter(who, claim, now);
    }

    fn leave(&mut self, who: u32, _: Instant) {
        self.jobs[who as usize] = None;
        self.classes.leave(who);
    }

    fn yield_now(&mut self, who: u32, now: Instant) {
        if let Some(job) = self.jobs[who as usize] {
            self.leave(who, now);
            self.enter(who, job, now);
        }
    }

    fn pause(&mut self, _: Instant) {}

    /// Who is raised is current, and behind who is due then already.
    fn raise(&mut self, who: u32, rank: Rank, at: Instant) {
        if let (By::Deadline, Rank::Deadline(deadline)) = (self.by, rank)
            && let Some(job) = self.jobs[who as usize]
        {
            let raised = Job {
                deadline,
                logical: job.logical.min(at),
                ..job
            };
            self.leave(who, at);
            self.enter(who, raised, at);
        }
    }

    fn decide(&mut self, now: Instant) -> Decision {
        self.now = now;
        let (who, until) = match self.classes.next(now) {
            Next::Goes(who) => (Some(who), self.classes.turns_current()),
            Next::NotBefore(at) => (None, at),
            Next::Nobody => (None, Instant::MAX),
        };
        Decision { who, until }
    }
}

impl ExecutorPolicy for MulticlassEdf {
    /// As both are when it was asked last, or when the one that is coming will have come.
    fn precedes(&self, coming: &Job, running: &Job) -> bool {
        let at = self.now.max(coming.release);
        self.place(coming, at) < self.place(running, at)
    }

    fn goes_by_deadlines(&self) -> bool {
        self.by == By::Deadline
    }

    /// As earliest deadline first does, or, by priority, as deadline monotonic does, of tasks that are due within a time of their logical arrivals. Best effort is no task: what it does without a look has to be within the regions of one.
    fn admit(&self, tasks: &[Task], supply: &dyn SupplyBound) -> Result<(), Unschedulable> {
        let all = self.admitted(tasks);
        let admitted = match self.by {
            By::Deadline => <ByDeadline as Order>::admit(&all, supply),
            By::Priority => ByRate::admit(&all, supply),
        };
        admitted.map_err(|refused| Unschedulable {
            bottleneck: refused.bottleneck.filter(|place| *place < tasks.len()),
            ..refused
        })
    }
}
