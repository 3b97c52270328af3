//! Admission: yes or no before anything runs. No names the resource that is short, how much of it is missing, and what would be
//! granted instead.
//!
//! * [`Supply`]: what a machine can enforce, told by its host.
//! * [`admit`]: whether a program is right, which enforcer can meet which of its requests there, why, and how well.
//! * [`Admitted`]: a program of which all is granted, with its slot tables; the only thing that hosts run.
//! * [`changes`]: the same once it runs.

mod above;
mod admitted;
mod assess;
pub mod changes;
mod check;
mod deadline;
mod executors;
mod slots;
mod supply;

use alloc::string::String;
use alloc::vec::Vec;

pub use admitted::{Admission, Admitted, Launch, Rejected, SlotPlan, admit, refused_with};
use assess::assess;
pub use deadline::DeadlineState;
pub use executors::ExecutorAdmission;
pub use supply::{DeadlineSupply, Driver, ProcessorSupply, SlotSupply, Supply};

use crate::policy::slots::Change;
use crate::request::{Share, Shortage};
use crate::{ActivityId, Grade, Reservation, Service, Span};
use derive_more::Display;

/// How literally an enforcer keeps *X in every window of length Y*.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Display)]
pub enum Keeps {
    /// Nothing for certain: known work above the slots may take as much as they give.
    #[display("less what runs above, which may be all of it")]
    Nothing,
    /// X/Y in the long run; a period may get less, and later ones more.
    #[display("in the long run")]
    LongRun,
    /// X in every period, early in one and late in the next perhaps.
    #[display("in every period")]
    EveryPeriod,
    /// X in every window, wherever it begins, less at most this, which known work above the slots may take.
    #[display("less {_0} in every window")]
    EveryWindowLess(Service),
    /// X in every window, wherever it begins.
    #[display("in every window")]
    EveryWindow,
}

/// What an enforcer will make of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Prediction {
    /// The longest time without service that the reservation promises to a holder that never blocks: Y − X.
    pub promised_gap: Span,
    /// The longest that this enforcer's own theory allows: that of the table for slots (≤ Y − X), 2(Y − X) for `SCHED_DEADLINE`.
    pub theory_gap: Span,
    /// The longest to expect on this machine, its tick or its dispatcher's jitter included.
    pub longest_gap: Span,
    /// How literally X is kept.
    pub keeps: Keeps,
    /// How firm the grant will be.
    pub grade: Grade,
    /// The same but for those of others who rank above now: what they do, and who comes, is seen while it is held.
    pub apart: Grade,
    /// What else is to be known, each a sentence.
    pub notes: Vec<String>,
}

/// Why an enforcer cannot meet a request: the resource, and what of it is missing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Why {
    /// The enforcer does not work here at all; the text says why, and what would help.
    #[error("not available: {0}")]
    Unavailable(String),
    /// The kernel would not admit so much.
    #[error(
        "deadline bandwidth: {} needed, {} free, {} missing",
        Share(*needed_ppm), Share(free_ppm / 100 * 100), Share(needed_ppm.saturating_sub(*free_ppm))
    )]
    DeadlineBandwidth {
        /// The request's share of one processor, in parts per million, rounded up.
        needed_ppm: u64,
        /// What is left by those before it, in parts per million of one processor, rounded down.
        free_ppm: u64,
    },
    /// The period is outside what the kernel takes.
    #[error(
        "deadline period: {} is not within {} to {}",
        period.beside(*shortest).and(longest.as_nanos()), shortest.beside(*period), longest.beside(*period)
    )]
    Period {
        /// What was asked for.
        period: Span,
        /// The least the kernel takes.
        shortest: Span,
        /// The most.
        longest: Span,
    },
    /// The service is less than what the kernel takes.
    #[error(
        "deadline runtime: {} asked for, at least {} is possible, {} missing",
        service.beside(*shortest), shortest.beside(*service), shortest.saturating_sub(*service)
    )]
    Runtime {
        /// What was asked for.
        service: Service,
        /// The least the kernel takes.
        shortest: Service,
    },
    /// No slot table.
    #[error("{0}")]
    Slots(Shortage),
}

/// A change after which the request is granted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Advice {
    /// What kind of change.
    pub change: Change,
    /// Who would have to ask for what; everyone else as before.
    pub requests: Vec<(ActivityId, Reservation)>,
}

/// No, from one enforcer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Denial {
    /// The resource, and what of it is missing.
    pub why: Why,
    /// The nearest requests that would be granted.
    pub nearest: Vec<Advice>,
    /// Whether the search for them took as many steps as it may: there may be more, and nearer ones.
    pub is_cut_short: bool,
}

impl From<Why> for Denial {
    fn from(why: Why) -> Self {
        Self {
            why,
            nearest: Vec::new(),
            is_cut_short: false,
        }
    }
}

/// What became of one request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestAdmission {
    /// Whose request; the program has it.
    pub activity: ActivityId,
    /// What the enforcer that was asked for makes of it.
    pub asked: Result<Prediction, Denial>,
    /// What the other one would make of it.
    pub other: Result<Prediction, Denial>,
}
