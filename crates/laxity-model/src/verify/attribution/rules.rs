//! What an activity may take: the rules of its class, and what it was declared to take.

use crate::{Priority, Service, Span};
use derive_more::Display;

/// The rules everybody has to keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// The most one call of an interrupt handler may take.
    pub handler: Service,
    /// The most one deferred call may take.
    pub deferred: Service,
    /// What the machine itself takes from a thread's job (switches, clock ticks) and a trace does not tell from the thread's own time:
    /// a declared budget counts as exceeded beyond budget and slack.
    pub slack: Span,
}

impl Rules {
    /// *PC 99 System Design Guide*, chapter 19, as quoted by Jones, Saroiu: interrupts are disabled for at most 100 µs (§6.2.2), and what a
    /// driver has queued in deferred calls takes at most 500 µs (§6.2.4). A driver queues one activity here. Long work belongs in
    /// threads (§6.2.5); how much of it, a thread must declare. The slack is ours: 60 µs.
    pub const PC99: Self = Self {
        handler: Service::from_micros(100),
        deferred: Service::from_micros(500),
        slack: Span::from_micros(60),
    };
}

impl Default for Rules {
    fn default() -> Self {
        Self::PC99
    }
}

/// How much an activity says it takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowance {
    /// The most one job takes: from a thread's wake-up to its next wait, or one call of a handler.
    pub per_job: Service,
    /// The least between two jobs; `None`: as often as it likes. One job may come early by up to this much (clock ticks make
    /// wake-ups uneven), as the logical arrival times of a linear bounded arrival process with bursts of two allow.
    pub apart: Option<Span>,
}

/// What is declared of an activity. What is not declared is judged by its class alone: a handler or deferred call by the [`Rules`]; a
/// thread may then hold the processor only while the victim has no claim on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Declared {
    /// Its budget. A handler or deferred call must keep the rules too, whatever it declares.
    pub allowance: Option<Allowance>,
    /// A thread's priority. A thread that ranks no higher than the victim breaks no rule by running: the victim asked for too low a rank.
    pub priority: Option<Priority>,
}

impl Declared {
    /// A thread of this priority that takes at most this in each job, and has a job at most so often.
    #[must_use]
    pub const fn thread(priority: Priority, per_job: Service, apart: Span) -> Self {
        Self {
            allowance: Some(Allowance {
                per_job,
                apart: Some(apart),
            }),
            priority: Some(priority),
        }
    }

    /// A thread of this priority without a budget.
    #[must_use]
    pub const fn rank(priority: Priority) -> Self {
        Self {
            allowance: None,
            priority: Some(priority),
        }
    }
}

/// A rule that was broken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Display)]
pub enum Rule {
    /// One call of an interrupt handler took more than the rules allow.
    #[display("keeps interrupts off too long")]
    LongHandler,
    /// One deferred call took more than the rules allow.
    #[display("deferred call too long")]
    LongDeferred,
    /// One job took more than declared.
    #[display("exceeds its declared budget")]
    Budget,
    /// Jobs came more often than declared.
    #[display("runs more often than declared")]
    Rate,
    /// A thread that declares no budget ran while the victim had the better claim.
    #[display("ran above the victim, nothing declared")]
    Undeclared,
    /// The machine itself stood still.
    #[display("the machine stood still")]
    Machine,
    /// Something that leaves no events took the processor.
    #[display("something that leaves no events")]
    Unseen,
}
