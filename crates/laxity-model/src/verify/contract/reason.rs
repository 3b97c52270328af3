//! Why a verdict is what it is.

use alloc::string::String;
use core::fmt;

use super::{Bound, Outcome, Phase, Quantity, Severity, Statistic, Unit};

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
    /// What the values of a quantity are, beside a limit.
    Values {
        /// Of what.
        quantity: Quantity,
        /// In which phase; `None`: in all the run.
        phase: Option<Phase>,
        /// What they are.
        finding: Finding,
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

/// What was found of the values of a quantity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Finding {
    /// A limit does not hold in undisturbed evidence.
    Exceeded {
        /// Which statistic.
        statistic: Statistic,
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
        /// Which statistic.
        statistic: Statistic,
        /// The statistic's value over the disturbed values.
        measured: u64,
    },
    /// Nothing undisturbed was seen that a required limit could be judged by.
    NotObserved,
    /// A limit compares with a control run, and there is none, or it has no such observation.
    NoControl,
}

impl Reason {
    /// What this reason alone would make of a verdict; `None` if it decides nothing.
    pub const fn implies(&self) -> Option<Outcome> {
        match &self.cause {
            Cause::Values { finding, .. } => finding.implies(),
            Cause::Unenforced { .. } => Some(Outcome::Violated),
            Cause::EventsLost(_) | Cause::Disturbed(_) => Some(Outcome::Inconclusive),
        }
    }
}

impl Finding {
    const fn implies(self) -> Option<Outcome> {
        match self {
            Self::Exceeded {
                severity: Severity::Required,
                ..
            } => Some(Outcome::Violated),
            Self::Exceeded { .. } | Self::DisturbedExceeded { .. } => None,
            Self::NotObserved | Self::NoControl => Some(Outcome::Inconclusive),
        }
    }

    /// What comes before the quantity.
    const fn lead(self) -> &'static str {
        match self {
            Self::Exceeded {
                severity: Severity::Advisory,
                ..
            } => "advisory: ",
            Self::DisturbedExceeded { .. } => "not judged: ",
            Self::Exceeded { .. } | Self::NotObserved | Self::NoControl => "",
        }
    }

    /// Writes it of values in this unit.
    fn write(self, unit: Unit, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exceeded {
                statistic,
                measured,
                bound,
                bound_value,
                ..
            } => {
                write!(f, "{statistic} {} ", unit.show(measured))?;
                write_breach(f, bound, measured, &unit.show(bound_value))
            }
            Self::DisturbedExceeded {
                statistic,
                measured,
            } => {
                let measured = unit.show(measured);
                write!(
                    f,
                    "{statistic} {measured} where the machine itself stood still"
                )
            }
            Self::NotObserved => f.write_str("nothing undisturbed was observed"),
            Self::NoControl => f.write_str("nothing undisturbed was observed in a control run"),
        }
    }
}

/// Writes how a measured value breaks a bound.
fn write_breach(
    f: &mut fmt::Formatter<'_>,
    bound: Bound,
    measured: u64,
    value: &impl fmt::Display,
) -> fmt::Result {
    match bound {
        Bound::AtLeast(_) => write!(f, "is below {value}"),
        Bound::AtMost(0) => f.write_str("where none is allowed"),
        Bound::AtMost(limit) => {
            let tenths = u128::from(measured) * 10 / u128::from(limit);
            write!(f, "exceeds {value} ({}.{} times)", tenths / 10, tenths % 10)
        }
        Bound::AtMostTimesControl { ratio_ppm } => {
            let (whole, thousandths) = (ratio_ppm / 1_000_000, ratio_ppm % 1_000_000 / 1_000);
            write!(
                f,
                "exceeds {value}, {whole}.{thousandths:03} times the control's"
            )
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
            Self::Values {
                quantity,
                phase,
                finding,
            } => {
                write!(f, "{}{quantity}", finding.lead())?;
                if let Some(phase) = phase {
                    write!(f, " in phase {phase}")?;
                }
                f.write_str(": ")?;
                finding.write(quantity.unit(), f)
            }
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
