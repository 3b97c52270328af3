//! What every host must do alike, as programs that both run: the conformance suite.
//!
//! A [`Case`] builds a program of the model's own steps, has a host run it, and judges the record: by the order of the program's marks, by
//! counts, and by service received. It never looks at a clock of its own. Where hosts may differ, [`Tolerance`] says by how much.
//!
//! # What is common, and what is not
//!
//! * *Real-time priorities* (16 to 31) order threads strictly. Among equals the one that became ready first runs until it blocks, yields or
//!   finishes; one that was preempted resumes before its equals. A host may also divide long work of equals into quanta of at least 20 ms (the
//!   twin does, `SCHED_FIFO` does not), so no case lets equals work that long.
//! * *Ordinary priorities* are only asked to share alike among equals: Linux shares where the study's host preempts.
//! * *Interrupt handlers* of one level do not interrupt each other; whether higher levels interrupt lower ones is the twin's own (live, all
//!   handlers have one rank).
//! * *Deferred calls* keep every count; how many calls serve several signals is the host's own.
//! * *`Preempt`* is recorded by the twin only.
//!
//! Hosts use it in their tests.

mod above;
mod admission;
mod classes;
mod commands;
mod deadline;
mod endings;
mod executors;
mod ghosts;
mod interrupts;
pub mod links;
mod mapped;
mod meter;
mod mistakes;
mod modules;
mod order;
mod ports;
mod raises;
mod records;
mod requests;
mod reservations;
mod semaphores;
mod service;
mod stage;
pub mod streams;
mod suite;
mod threads;
mod timers;
mod upcalls;

use laxity_model::{Host, HostError, Service, Span};

pub use ghosts::{GHOSTS, Ghost, notices};

/// By how much a host may differ from the ideal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tolerance {
    /// How many processors programs may be written for; cases that need more are left out.
    pub processors: u16,
    /// How late something may be that must happen "soon": the end of a run after a body wanted it. Never used to tell an order.
    pub lateness: Span,
    /// How far service may be off what was asked, in parts per million of it.
    pub service_ppm: u64,
    /// And for every measurement of it, by this much on top.
    pub service_each: Service,
    /// The share of undisturbed periods in which a reservation must be kept, and of service in its slots, in parts per million.
    pub kept_ppm: u64,
    /// What a reservation's holder must receive of its service over all undisturbed periods together, in parts per million: slots that are
    /// short or left out now and then show here, though each may be excused by [`Self::kept_ppm`].
    pub service_kept_ppm: u64,
    /// How much more than it had for itself the host may count as a holder's, in parts per million: interrupt handlers, and the way in and out
    /// each time that it is given the processor. What a holder is owed is what it has for itself.
    pub unseen_ppm: u64,
    /// Whether the host prolongs slots by what others above took from them.
    pub makes_up: bool,
    /// The share of periods that the machine may disturb, in parts per million; they are judged by nothing else.
    pub disturbed_ppm: u64,
}

impl Tolerance {
    /// Nothing may differ: a machine that costs nothing, is never late, and is never disturbed.
    pub const NONE: Self = Self {
        processors: u16::MAX,
        lateness: Span::ZERO,
        service_ppm: 0,
        service_each: Service::ZERO,
        kept_ppm: 1_000_000,
        service_kept_ppm: 1_000_000,
        unseen_ppm: 0,
        makes_up: false,
        disturbed_ppm: 0,
    };

    /// How far so much service may be off.
    fn slack(&self, service: Service) -> Service {
        let share = u128::from(service.as_nanos()) * u128::from(self.service_ppm) / 1_000_000;
        self.service_each + Service::from_nanos(share as u64)
    }

    /// What may be counted as a holder's beyond what it is owed of so much.
    fn unseen(&self, service: Service) -> Service {
        let share = u128::from(service.as_nanos()) * u128::from(self.unseen_ppm) / 1_000_000;
        Service::from_nanos(share as u64)
    }

    /// Whether `good` of `all` are enough where [`Self::kept_ppm`] is asked for.
    fn is_kept(&self, good: usize, all: usize) -> bool {
        good as u128 * 1_000_000 >= all as u128 * u128::from(self.kept_ppm)
    }
}

/// Why a host does not conform.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Failure {
    /// It did not run a program that it must run.
    #[error("the host refused: {0}")]
    Host(#[from] HostError),
    /// It ran it otherwise: in another order, another number of times.
    #[error("{0}")]
    Wrong(String),
    /// It gave another amount of service or of time; or something came before something else, or more often, that only instants keep apart. A machine that
    /// stands still does that, too.
    #[error("{0}")]
    Untimely(String),
    /// Somebody outside the program outranks what the host granted, and it says so: nothing was promised.
    #[error("the host could not enforce what it granted: {0}")]
    Unenforced(String),
    /// Nobody was found who outranks what the host granted, and it says that somebody may: nobody knows.
    #[error("whether the host enforced what it granted is uncertain: {0}")]
    Uncertain(String),
    /// The machine was disturbed too much to tell.
    #[error("{disturbed} of {periods} periods were disturbed from outside")]
    Disturbed {
        /// Periods that overlap a disturbance.
        disturbed: usize,
        /// All that were observed.
        periods: usize,
    },
}

/// Nothing, or something that was looked for, or how the host differs.
pub type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// One thing that every host must do.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name, unique in the suite.
    pub name: &'static str,
    /// How many processors it needs.
    pub processors: u16,
    /// Runs it; an error says how the host differs.
    pub run: Run,
}

/// Has a host run what a case is about, and judges the record.
type Run = fn(&mut dyn Host, &Tolerance) -> Result;

/// A case without its program.
struct Named {
    name: &'static str,
    processors: u16,
}

/// A case for one processor.
const fn case(name: &'static str) -> Named {
    Named {
        name,
        processors: 1,
    }
}

impl Named {
    /// For so many processors.
    const fn on(self, processors: u16) -> Self {
        Self { processors, ..self }
    }

    const fn by(self, run: Run) -> Case {
        let Self { name, processors } = self;
        Case {
            name,
            processors,
            run,
        }
    }
}

/// All cases that a host with so many processors can run.
pub fn cases(processors: u16) -> Vec<Case> {
    let all = suite::CASES.iter();
    let possible = all.filter(|case| case.processors <= processors);
    possible.copied().collect()
}

/// Returns from a case with what is wrong, unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err($crate::Failure::Wrong(format!($($text)+)));
        }
    };
}
use ensure;

/// The same of what a machine that stands still may break.
macro_rules! ensure_in_time {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err($crate::Failure::Untimely(format!($($text)+)));
        }
    };
}
use ensure_in_time;
