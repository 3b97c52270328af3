//! Why a verdict is what it is.

use alloc::string::String;
use core::fmt;

use super::{Bound, Outcome, Phase, Quantity, Severity, Statistic};

/// Why a verdict is what it is, and because of whom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reason {
    /// The component, where the contract names one or is about several.
    pub subject: Option<String>,
    /// What was found.
    pub cause: Cause,
}

/// What was found of a component or of the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cause {
    /// A limit does not hold in undisturbed evidence.
    Exceeded {
        /// Of what.
        quantity: Quantity,
        /// Which statistic.
        statistic: Statistic,
        /// In which phase; `None`: the whole run.
        phase: Option<Phase>,
        /// The statistic's value; against a control, its median over the runs.
        measured: u64,
        /// The bound it broke; that of the control run is already multiplied out.
        bound: Bound,
        /// The bound as a value.
        bound_value: u64,
        /// Whether it decides.
        severity: Severity,
    },
    /// A limit holds in undisturbed evidence, but not in disturbed evidence. Decides nothing.
    DisturbedExceeded {
        /// Of what.
        quantity: Quantity,
        /// Which statistic.
        statistic: Statistic,
        /// In which phase; `None`: the whole run.
        phase: Option<Phase>,
        /// The statistic's value over the disturbed values.
        measured: u64,
    },
    /// Nothing undisturbed was seen that a required limit could be judged by.
    NotObserved {
        /// Of what.
        quantity: Quantity,
        /// In which phase; `None`: in all the run.
        phase: Option<Phase>,
    },
    /// A limit compares with a control run, and there is none, or it has no such observation.
    NoControl {
        /// Of what.
        quantity: Quantity,
        /// In which phase; `None`: in all the run.
        phase: Option<Phase>,
    },
    /// Events were lost.
    EventsLost(u64),
    /// Too much of the run was disturbed: the share in parts per million.
    Disturbed(u32),
    /// A grant was not enforced.
    Unenforced {
        /// Whose.
        holder: String,
        /// Why not.
        reason: String,
    },
}

impl Cause {
    const fn implies(&self) -> Option<Outcome> {
        match self {
            Self::Exceeded {
                severity: Severity::Required,
                ..
            }
            | Self::Unenforced { .. } => Some(Outcome::Violated),
            Self::Exceeded {
                severity: Severity::Advisory,
                ..
            }
            | Self::DisturbedExceeded { .. } => None,
            Self::NotObserved { .. }
            | Self::NoControl { .. }
            | Self::EventsLost(_)
            | Self::Disturbed(_) => Some(Outcome::Inconclusive),
        }
    }
}

/// Writes " in phase p" or nothing.
struct In<'a>(&'a Option<Phase>);

impl fmt::Display for In<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .as_ref()
            .map_or(Ok(()), |phase| write!(f, " in phase {phase}"))
    }
}

impl Reason {
    /// What this reason alone would make of a verdict; `None` if it decides nothing.
    #[must_use]
    pub const fn implies(&self) -> Option<Outcome> {
        self.cause.implies()
    }
}

/// Writes how a measured value breaks a bound.
struct Breach {
    quantity: Quantity,
    measured: u64,
    bound: Bound,
    bound_value: u64,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = self.quantity.unit().show(self.bound_value);
        match self.bound {
            Bound::AtLeast(_) => write!(f, "is below {bound}"),
            Bound::AtMost(0) => f.write_str("where none is allowed"),
            Bound::AtMost(limit) => {
                let tenths = u128::from(self.measured) * 10 / u128::from(limit);
                write!(f, "exceeds {bound} ({}.{} times)", tenths / 10, tenths % 10)
            }
            Bound::AtMostTimesControl { ratio_ppm } => {
                let (whole, thousandths) = (ratio_ppm / 1_000_000, ratio_ppm % 1_000_000 / 1_000);
                write!(
                    f,
                    "exceeds {bound}, {whole}.{thousandths:03} times the control's"
                )
            }
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(subject) = &self.subject {
            write!(f, "{subject}: ")?;
        }
        self.cause.fmt(f)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exceeded {
                quantity,
                statistic,
                phase,
                measured,
                bound,
                bound_value,
                severity,
            } => {
                let advisory = if *severity == Severity::Advisory {
                    "advisory: "
                } else {
                    ""
                };
                let breach = Breach {
                    quantity: *quantity,
                    measured: *measured,
                    bound: *bound,
                    bound_value: *bound_value,
                };
                let measured = quantity.unit().show(*measured);
                write!(
                    f,
                    "{advisory}{quantity}{}: {statistic} {measured} {breach}",
                    In(phase)
                )
            }
            Self::DisturbedExceeded {
                quantity,
                statistic,
                phase,
                measured,
            } => write!(
                f,
                "not judged: {quantity}{}: {statistic} {} where the machine itself stood still",
                In(phase),
                quantity.unit().show(*measured)
            ),
            Self::NotObserved { quantity, phase } => {
                write!(
                    f,
                    "{quantity}{}: nothing undisturbed was observed",
                    In(phase)
                )
            }
            Self::NoControl { quantity, phase } => write!(
                f,
                "{quantity}{}: nothing undisturbed was observed in a control run",
                In(phase)
            ),
            Self::EventsLost(1) => f.write_str("1 event was lost"),
            Self::EventsLost(count) => write!(f, "{count} events were lost"),
            Self::Disturbed(ppm) => {
                let (percent, hundredths) = (ppm / 10_000, ppm % 10_000 / 100);
                write!(
                    f,
                    "{percent}.{hundredths:02} % of the run was disturbed, 1 % is allowed"
                )
            }
            Self::Unenforced { holder, reason } => {
                write!(f, "unenforced: the reservation of {holder}: {reason}")
            }
        }
    }
}
