//! Timeliness contracts: what "on time" means for a program, stated as limits, so that it can be part of what "correct" means
//! (Jones, Saroiu §8.1: systematic verification of timing is the only viable way).
//!
//! * [`Contract`], [`Limit`]: what is promised, and by which components. [`pc99`] is built in.
//! * [`Subject`]: a component; [`Observations`]: what was seen of it, per quantity and phase, the undisturbed apart from the disturbed.
//! * [`in_windows`]: what is counted, in every window of a length: how much at least, or at most.
//! * [`judge`]: met, violated or inconclusive, with reasons.

use derive_more::Display;

mod evidence;
mod expect;
mod facts;
mod judge;
mod observe;
mod pc99;
mod quantity;
mod reason;
mod subject;
mod unfound;
mod windows;

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

pub use evidence::{Evidence, REPEATED};
pub use expect::{Expectation, as_expected};
pub use facts::{Doubts, Halts, HaltsUnseen, RunFacts, Stood, is_too_much, share_ppm};
pub use judge::{Claimed, Outcome, Verdict, judge, judge_claim};
pub use observe::{Observations, Observed};
pub use pc99::pc99;
pub use quantity::{Quantity, Unit};
pub use reason::{Cause, Finding, Reason, Unjudged};
pub use subject::{Kind, Subject, Subjects};
pub use unfound::{ADDED_UP, not_the_kernels};
pub use windows::{Counted, in_windows};

/// A stretch of a run in which the device is in one state, by name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Display)]
pub struct Phase(Cow<'static, str>);

impl Phase {
    /// Programs without phases have this one.
    pub const RUN: Self = Self(Cow::Borrowed("run"));
    /// The modem waits for a ring or for a command; blocks of 2.5 ms (Jones, Saroiu §6.2.1).
    pub const ON_HOOK: Self = Self(Cow::Borrowed("on-hook"));
    /// The modem dials and waits for the far end.
    pub const DIALING: Self = Self(Cow::Borrowed("dialing"));
    /// The two modems learn the line.
    pub const TRAINING: Self = Self(Cow::Borrowed("training"));
    /// Data flows.
    pub const CONNECTED: Self = Self(Cow::Borrowed("connected"));

    /// A phase of this name.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// A phase whose name is known at run time only.
    #[must_use]
    pub const fn named(name: String) -> Self {
        Self(Cow::Owned(name))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// What of many observed values is compared with a bound.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Statistic {
    /// The smallest.
    Minimum,
    /// The largest.
    Maximum,
    /// The percentile by nearest rank, in parts per million: 999,000 is p99.9. Within 1/128.
    Percentile(u32),
    /// The sum.
    Total,
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Minimum => f.write_str("minimum"),
            Self::Maximum => f.write_str("maximum"),
            Self::Total => f.write_str("total"),
            Self::Percentile(ppm) => {
                let (whole, mut rest) = (ppm / 10_000, ppm % 10_000);
                write!(f, "p{whole}")?;
                if rest > 0 {
                    f.write_str(".")?;
                }
                while rest > 0 {
                    write!(f, "{}", rest / 1_000)?;
                    rest = rest % 1_000 * 10;
                }
                Ok(())
            }
        }
    }
}

/// What a statistic must keep to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bound {
    /// No more than this, in the quantity's unit.
    AtMost(u64),
    /// No less than this, in the quantity's unit.
    AtLeast(u64),
    /// No more than this many millionths of the same statistic, in the same phases, of a control run: 1,050,000 is 1.05 ×.
    AtMostTimesControl {
        /// The factor, in parts per million.
        ratio_ppm: u32,
    },
}

/// The phases a limit is bound to.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Phases {
    /// The whole run, taken as one.
    #[default]
    Whole,
    /// Every phase that was observed, each judged by itself.
    Each,
    /// These phases, each judged by itself; of several, those that are not [over](Evidence::phases_over) where a run begins.
    Only(Vec<Phase>),
}

/// Whether a limit decides the verdict.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Severity {
    /// It does.
    #[default]
    Required,
    /// It is only mentioned.
    Advisory,
}

/// What it means that a limit's quantity was not seen at all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Absence {
    /// Nothing is known: the verdict is inconclusive.
    #[default]
    Inconclusive,
    /// The limit holds, provided that this other quantity was seen in the same phase: so there was somebody looking.
    HoldsIfSeen(Quantity),
}

/// One limit of a contract.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Limit {
    /// What is limited.
    pub quantity: Quantity,
    /// Which statistic of it.
    pub statistic: Statistic,
    /// To what.
    pub bound: Bound,
    /// When.
    pub phases: Phases,
    /// How seriously.
    pub severity: Severity,
    /// What it means if the quantity was never seen.
    pub absence: Absence,
}

impl Limit {
    /// A required limit over the whole run.
    #[must_use]
    pub const fn new(quantity: Quantity, statistic: Statistic, bound: Bound) -> Self {
        Self {
            quantity,
            statistic,
            bound,
            phases: Phases::Whole,
            severity: Severity::Required,
            absence: Absence::Inconclusive,
        }
    }

    /// The same limit in these phases.
    #[must_use]
    pub fn during(self, phases: Phases) -> Self {
        Self { phases, ..self }
    }

    /// The same limit, only mentioned.
    #[must_use]
    pub fn advisory(self) -> Self {
        Self {
            severity: Severity::Advisory,
            ..self
        }
    }

    /// The same limit, which holds where there was nothing to see although somebody looked.
    #[must_use]
    pub fn holds_unseen_with(self, witness: Quantity) -> Self {
        Self {
            absence: Absence::HoldsIfSeen(witness),
            ..self
        }
    }
}

/// What a program promises about its timing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Contract {
    /// Its name, for reports.
    pub name: String,
    /// Whom it is about; each of them is judged by itself.
    pub subjects: Subjects,
    /// All of which must hold.
    pub limits: Vec<Limit>,
}

impl Contract {
    /// Whether a reservation of this component is one that the contract rests on. One that names nobody rests on those of whom its limits are, or on
    /// everybody's where it has none.
    pub fn rests_on(&self, subject: &Subject) -> bool {
        let shows = |limit: &Limit| match limit.absence {
            Absence::HoldsIfSeen(witness) => {
                subject.kind.shows(limit.quantity) || subject.kind.shows(witness)
            }
            Absence::Inconclusive => subject.kind.shows(limit.quantity),
        };
        let is_limited = self.limits.is_empty() || self.limits.iter().any(shows);
        self.subjects.include(subject) && (self.subjects != Subjects::All || is_limited)
    }

    /// What it limits in windows of this component.
    pub fn windows_of(&self, subject: &Subject) -> impl Iterator<Item = Quantity> {
        let kind = subject.kind;
        let concerned = self.subjects.include(subject);
        let limited = self.limits.iter().map(|limit| limit.quantity);
        limited.filter(move |one| concerned && one.window().is_some() && kind.shows(*one))
    }
}
