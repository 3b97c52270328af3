//! What takes part beside devices: tasks, and the executors on which they take turns.

use std::sync::Arc;

use laxity_model::enforce::ranks;
use laxity_model::program::upcall::Timing;
use laxity_model::verify::contract::Kind;
use laxity_model::{Priority, ProcessorId, ReservationRequest, Service, Span};

use super::network::{Flow, NetworkClient};
use crate::scenario::{Placing, kinds};

/// Something that runs beside the devices of a variant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolvedTask {
    /// Its name.
    pub name: String,
    /// Where it runs.
    pub processor: ProcessorId,
    /// What it is.
    pub kind: TaskKind,
    /// A command's or a client's placement; `None` for the other kinds.
    pub placing: Option<Placing>,
}

impl ResolvedTask {
    /// Whose thread it runs in: its own, or its executor's.
    pub(crate) fn holder(&self) -> &str {
        match &self.kind {
            TaskKind::Periodic {
                rank: PeriodicRank::On(executor),
                ..
            } => &executor.name,
            _ => &self.name,
        }
    }

    /// Whether it is a client or a flow of a network.
    pub(crate) const fn is_networked(&self) -> bool {
        matches!(self.kind, TaskKind::Client(_) | TaskKind::Flow(_))
    }

    /// Whether it is work without end or a program in ordinary threads, which outrank no device.
    pub(crate) fn is_ordinary(&self) -> bool {
        let priority = match (&self.kind, self.placing) {
            (TaskKind::Spinner { priority, .. }, _) => *priority,
            (TaskKind::Command { .. }, None) => Priority::NORMAL,
            (TaskKind::Command { .. } | TaskKind::Client(_), Some(Placing::Thread(priority))) => {
                priority
            }
            _ => return false,
        };
        ranks::of_thread(priority).real_time().is_none()
    }

    /// With whom it has to do, of those that recur.
    pub(crate) const fn links(&self) -> Option<&TaskLinks> {
        match &self.kind {
            TaskKind::Periodic { links, .. } => Some(links),
            _ => None,
        }
    }

    /// The task whose end releases it, if one does.
    pub(crate) fn after(&self) -> Option<&str> {
        self.links()?.after.as_deref()
    }

    /// What that thread reserves.
    pub(crate) fn request(&self) -> Option<ReservationRequest> {
        match &self.kind {
            TaskKind::Periodic { rank, .. } => rank.request(),
            _ => self.placing?.request(),
        }
    }
}

/// A thread in which tasks take turns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Executor {
    /// Its name.
    pub name: String,
    /// Who of those that are placed on it is next.
    pub policy: TurnPolicy,
    /// The priority of its thread; where that has a reservation, until it has it.
    pub priority: Priority,
    /// What its thread reserves.
    pub request: Option<ReservationRequest>,
}

/// Who is next on an executor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TurnPolicy {
    /// Who came first.
    FirstComeFirstServed,
    /// Whose deadline is earliest.
    EarliestDeadlineFirst,
    /// Who has the least time from release to deadline.
    RateMonotonic,
}

/// With what right a periodic task runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PeriodicRank {
    /// As a thread of this priority.
    Priority(Priority),
    /// In a reservation of its own, by `deadline`, from the start.
    Reserved(ReservationRequest),
    /// By turns, in an executor's thread.
    On(Executor),
}

impl PeriodicRank {
    /// What its thread, or that of its executor, reserves.
    pub(crate) const fn request(&self) -> Option<ReservationRequest> {
        match self {
            Self::Priority(_) => None,
            Self::Reserved(request) => Some(*request),
            Self::On(executor) => executor.request,
        }
    }
}

/// What a periodic task has to do with others of its executor.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskLinks {
    /// The task whose jobs release it when they are over. Its period and phase are those of the first of their chain, from whose release its deadline counts.
    pub after: Option<String>,
    /// With whom it has its service together.
    pub group: Option<TaskGroup>,
}

/// Tasks that have a budget together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskGroup {
    /// Its name.
    pub name: String,
    /// What they get of each period.
    pub budget: Service,
    /// From one budget to the next.
    pub period: Span,
}

/// What a task does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TaskKind {
    /// Threads that never stop.
    Spinner {
        /// How many, 1 to 1,000.
        count: u16,
        /// Of which priority.
        priority: Priority,
    },
    /// A thread released at every period: the co-thread whose gaps are judged.
    Periodic {
        /// When it is released, and how it is cut: its first release is its phase after the first task that has one began.
        timing: Timing<()>,
        /// From the release of a job to when it is due; no longer than the period.
        deadline: Span,
        /// What each job takes.
        service: Service,
        /// With what right.
        rank: PeriodicRank,
        /// With whom it has to do.
        links: TaskLinks,
    },
    /// A thread that now and then takes the processor for long.
    Rogue {
        /// For how long.
        burst: Service,
        /// How often; longer than the burst.
        every: Span,
        /// When the first time, after the start of the run.
        after: Span,
        /// With what right.
        rank: Rank,
    },
    /// A program of yours; live only.
    Command {
        /// The program and its arguments; not empty.
        argv: Vec<String>,
        /// The exit code with which it may end before the run does.
        exit: u8,
    },
    /// Threads that take the packets of flows.
    Client(Arc<NetworkClient>),
    /// What comes over an interface: it runs nowhere, and is observed.
    Flow(Arc<Flow>),
}

impl TaskKind {
    /// Whether its jobs are more than wake-ups: they take something, or are due before they are released again.
    pub(in crate::scenario) fn is_due(&self) -> bool {
        match self {
            Self::Periodic {
                timing,
                deadline,
                service,
                ..
            } => !service.is_zero() || *deadline < timing.period,
            _ => false,
        }
    }

    /// Whether it is only assumed to work without an end, as nobody says how much it works.
    pub(crate) const fn may_stop(&self) -> bool {
        matches!(self, Self::Command { .. } | Self::Client(_) | Self::Flow(_))
    }

    /// What is observed of such a task, and the word for it in a file.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Spinner { .. } => kinds::SPINNER,
            Self::Periodic { .. } => kinds::PERIODIC,
            Self::Rogue { .. } => kinds::ROGUE,
            Self::Command { .. } => kinds::COMMAND,
            Self::Client(_) => kinds::CLIENT,
            Self::Flow(flow) => flow.kind(),
        }
    }
}

/// What decides whom a rogue preempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rank {
    /// A thread of this priority, at its place among laxity's own.
    Priority(Priority),
    /// A thread to which somebody outside gave this `SCHED_FIFO` priority, 1 to 99; live only.
    Foreign {
        /// The `SCHED_FIFO` priority.
        fifo: u8,
    },
}
