//! Admission: yes or no before anything runs. No names the resource that is short, how much of it is missing, and what would be
//! granted instead.
//!
//! * [`Supply`]: what a machine can enforce, told by its host.
//! * [`Demand`]: what a program asks for, and what is known of its other work.
//! * [`admit`]: which enforcer can meet which request here, why, and how well.

mod above;
mod admit;
pub mod changes;
mod deadline;
mod demand;
mod slots;
mod supply;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

pub use admit::admit;
pub use demand::{ActivityDemand, Demand, Work};
pub use supply::{DeadlineSupply, ProcessorSupply, SlotSupply, Supply};

use crate::policy::slots::{Change, SlotTable};
use crate::program::{Share, Shortage};
use crate::{
    ActivityId, Enforcer, Grade, ProcessorId, Reservation, ReservationRequest, Service, Span,
};

/// How literally an enforcer keeps *X in every window of length Y*.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Keeps {
    /// X/Y in the long run; a period may get less, and later ones more.
    LongRun,
    /// X in every period, early in one and late in the next perhaps.
    EveryPeriod,
    /// X in every window, wherever it begins, less at most this, which known work above the slots may take.
    EveryWindowLess(Service),
    /// X in every window, wherever it begins.
    EveryWindow,
}

impl fmt::Display for Keeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LongRun => f.write_str("in the long run"),
            Self::EveryPeriod => f.write_str("in every period"),
            Self::EveryWindowLess(service) => write!(f, "less {service} in every window"),
            Self::EveryWindow => f.write_str("in every window"),
        }
    }
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
    /// What else is to be known, each a sentence.
    pub notes: Vec<String>,
}

/// Why an enforcer cannot meet a request: the resource, and what of it is missing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Why {
    /// The enforcer does not work here at all; the text says why, and what would help.
    #[error("not available: {0}")]
    Unavailable(String),
    /// The machine has no such processor.
    #[error("there is no processor {0}")]
    NoSuchProcessor(ProcessorId),
    /// Interrupt handlers, deferred calls and things outside the machine hold no reservations.
    #[error("only a thread can hold a reservation")]
    NotAThread,
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
    #[error("deadline period: {period} is not within {shortest} to {longest}")]
    Period {
        /// What was asked for.
        period: Span,
        /// The least the kernel takes.
        shortest: Span,
        /// The most.
        longest: Span,
    },
    /// The service is less than what the kernel takes.
    #[error("deadline runtime: {service} asked for, at least {shortest} is possible, {} missing", shortest.saturating_sub(*service))]
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

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (activity, reservation)) in self.requests.iter().enumerate() {
            let separator = if i == 0 { "" } else { " and " };
            write!(f, "{separator}{reservation} for activity {activity}")?;
        }
        Ok(())
    }
}

/// No, from one enforcer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Denial {
    /// The resource, and what of it is missing.
    pub why: Why,
    /// The nearest requests that would be granted.
    pub nearest: Vec<Advice>,
}

impl From<Why> for Denial {
    fn from(why: Why) -> Self {
        Self {
            why,
            nearest: Vec::new(),
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)?;
        for (i, advice) in self.nearest.iter().enumerate() {
            let lead = if i == 0 { "; would fit: " } else { "; or " };
            write!(f, "{lead}{advice}")?;
        }
        Ok(())
    }
}

/// What became of one request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestAdmission {
    /// Whose request.
    pub activity: ActivityId,
    /// Its name.
    pub name: String,
    /// Where it runs.
    pub processor: ProcessorId,
    /// What was asked for, and of whom.
    pub request: ReservationRequest,
    /// What `deadline` would make of it.
    pub deadline: Result<Prediction, Denial>,
    /// What `slots` would make of it.
    pub slots: Result<Prediction, Denial>,
}

impl RequestAdmission {
    /// What an enforcer would make of it.
    pub const fn by(&self, enforcer: Enforcer) -> &Result<Prediction, Denial> {
        match enforcer {
            Enforcer::Deadline => &self.deadline,
            Enforcer::Slots => &self.slots,
        }
    }

    /// What the enforcer that was asked for makes of it.
    pub const fn asked(&self) -> &Result<Prediction, Denial> {
        self.by(self.request.enforcer)
    }
}

/// How one processor would be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessorAdmission {
    /// Which.
    pub processor: ProcessorId,
    /// Known work above the slots, reservations by deadline included, in parts per million.
    pub above_slots_ppm: u64,
    /// What slots and all work above them may take together; 0 where there can be no slots.
    pub max_share_ppm: u32,
    /// The table of the slot requests that were granted, if there were any.
    pub table: Option<SlotTable>,
    /// Whose slots they are: a slot's owner is an index into this list.
    pub owners: Vec<ActivityId>,
    /// Work above the slots whose amount is not known, by name: it is not charged, and delays what is below.
    pub uncharged: Vec<String>,
}

/// The answer to a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Admission {
    /// By processor.
    pub processors: Vec<ProcessorAdmission>,
    /// By activity, those that ask for a reservation.
    pub requests: Vec<RequestAdmission>,
}

impl Admission {
    /// Whether every request is granted by the enforcer it asked for.
    #[must_use]
    pub fn granted(&self) -> bool {
        self.refusals().next().is_none()
    }

    /// The requests that are not, with the reason.
    pub fn refusals(&self) -> impl Iterator<Item = (&RequestAdmission, &Denial)> {
        let denied = |request: &RequestAdmission| request.asked().is_err();
        self.requests
            .iter()
            .filter(move |r| denied(r))
            .filter_map(|request| {
                let denial = request.asked().as_ref().err()?;
                Some((request, denial))
            })
    }

    /// The refusals as sentences, activities by name; empty if all is granted.
    #[must_use]
    pub fn explain(&self) -> Vec<String> {
        let sentence = |(request, denial): (&RequestAdmission, &Denial)| {
            let mut text = format!(
                "`{}` ({} by {} on processor {}): {}",
                request.name,
                request.request.reservation,
                request.request.enforcer,
                request.processor,
                denial.why
            );
            for (i, advice) in denial.nearest.iter().enumerate() {
                let lead = if i == 0 { "; would fit: " } else { "; or " };
                text.push_str(lead);
                for (n, (activity, reservation)) in advice.requests.iter().enumerate() {
                    let separator = if n == 0 { "" } else { " and " };
                    let asker = self.requests.iter().find(|r| r.activity == *activity);
                    let name = asker.map_or("?", |asker| asker.name.as_str());
                    text.push_str(&format!("{separator}{reservation} for `{name}`"));
                }
            }
            text
        };
        self.refusals().map(sentence).collect()
    }
}
