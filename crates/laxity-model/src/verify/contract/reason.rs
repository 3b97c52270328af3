//! Why a verdict is what it is.

use alloc::format;
use alloc::string::String;
use core::fmt;

use super::{Bound, Outcome, Phase, Quantity, Severity, Statistic};
use crate::{Grade, Span};

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
    /// Somebody may have held the processor, so many times, and was not found: what that excuses is left open.
    Doubts(u64),
    /// Nobody saw too much of the run: the share in parts per million.
    Unseen(u32),
    /// Values break a limit, and nobody saw whether the machine stood still.
    HaltsUnseen,
    /// Values break a limit by work that took longer than was foreseen, and nothing that was promised was missing.
    Outgrown,
    /// A grant was not enforced, or that cannot be told.
    Grade {
        /// Whose.
        holder: String,
        /// What it was worth.
        grade: Grade,
    },
}

/// What was found of the values of a quantity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Finding {
    /// A limit does not hold in undisturbed evidence.
    Exceeded {
        /// Which statistic.
        statistic: Statistic,
        /// The statistic's value; against a control, the least of the runs'.
        measured: u64,
        /// The bound it broke.
        bound: Bound,
        /// The bound as a value; that of the largest of the control runs, multiplied out.
        bound_value: u64,
        /// Whether it decides.
        severity: Severity,
    },
    /// A limit holds in undisturbed evidence, but not in disturbed evidence.
    DisturbedExceeded {
        /// Which statistic.
        statistic: Statistic,
        /// The statistic's value over the disturbed values.
        measured: u64,
        /// Whether it leaves the verdict inconclusive: it does where this may be what would have been seen undisturbed, too.
        decides: bool,
    },
    /// A limit holds of what is known, and may not hold of what nobody knows.
    MayExceed {
        /// Which statistic.
        statistic: Statistic,
        /// What the statistic may be at worst.
        measured: u64,
        /// Whether it leaves the verdict inconclusive.
        decides: bool,
    },
    /// A limit does not hold of a single time, or of no more than halts of the machine account for, by no more than that may have stood still unseen.
    Seldom {
        /// Which statistic.
        statistic: Statistic,
        /// The statistic's value.
        measured: u64,
        /// So many values break it,
        times: u64,
        /// of so many,
        of: u64,
        /// all in one run of several, or the only one.
        is_once: bool,
        /// Who looks for halts of the machine does not see those that are shorter.
        unseen: Span,
        /// Whether it leaves the verdict inconclusive.
        decides: bool,
    },
    /// A percentile is counted together with values on the other side of the bound.
    Straddled {
        /// Which statistic.
        statistic: Statistic,
        /// It is no less than this,
        least: u64,
        /// and no more than this.
        most: u64,
        /// Whether it leaves the verdict inconclusive.
        decides: bool,
    },
    /// Nothing undisturbed was seen that a required limit could be judged by.
    NotObserved(Unjudged),
    /// A limit compares with a control run, and there is none, or it has no such observation.
    NoControl(Unjudged),
}

/// What there is where nothing can be judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unjudged {
    /// Nothing at all.
    Nothing,
    /// What was disturbed.
    Disturbed,
    /// What was not over.
    Unfinished,
    /// What nobody knows.
    Unknown,
}

impl Reason {
    /// A cause that is no component's.
    pub(super) const fn of_the_run(cause: Cause) -> Self {
        Self {
            subject: None,
            cause,
        }
    }

    /// What this reason alone would make of a verdict; `None` if it decides nothing.
    pub const fn implies(&self) -> Option<Outcome> {
        match &self.cause {
            Cause::Values { finding, .. } => finding.implies(),
            Cause::Grade { grade, .. } => match grade {
                Grade::Enforced => None,
                Grade::Uncertain { .. } => Some(Outcome::Inconclusive),
                Grade::Unenforced { .. } => Some(Outcome::Violated),
            },
            Cause::EventsLost(_)
            | Cause::Disturbed(_)
            | Cause::Doubts(_)
            | Cause::Unseen(_)
            | Cause::HaltsUnseen
            | Cause::Outgrown => Some(Outcome::Inconclusive),
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
            Self::Exceeded { .. } => None,
            Self::DisturbedExceeded { decides, .. }
            | Self::Seldom { decides, .. }
            | Self::MayExceed { decides, .. }
            | Self::Straddled { decides, .. }
                if !decides =>
            {
                None
            }
            Self::DisturbedExceeded { .. }
            | Self::Seldom { .. }
            | Self::MayExceed { .. }
            | Self::Straddled { .. }
            | Self::NotObserved(_)
            | Self::NoControl(_) => Some(Outcome::Inconclusive),
        }
    }

    /// What comes before the quantity.
    const fn lead(self) -> &'static str {
        match self {
            Self::Exceeded {
                severity: Severity::Advisory,
                ..
            } => "advisory: ",
            Self::DisturbedExceeded { .. }
            | Self::MayExceed { .. }
            | Self::Seldom { .. }
            | Self::Straddled { .. } => "not judged: ",
            Self::Exceeded { .. } | Self::NotObserved(_) | Self::NoControl(_) => "",
        }
    }

    /// Writes it of values of this quantity.
    fn write(self, quantity: Quantity, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = quantity.unit();
        match self {
            Self::Exceeded {
                statistic,
                measured,
                bound,
                bound_value,
                ..
            } => {
                let shown = unit.show_beside(measured, bound_value);
                let value = unit.show_beside(bound_value, measured);
                write!(f, "{statistic} {shown} ")?;
                write_breach(f, (quantity, bound), measured, &value)
            }
            Self::DisturbedExceeded {
                statistic,
                measured,
                ..
            } => {
                write!(f, "{statistic} {}", unit.show(measured))?;
                f.write_str(" where the machine itself stood still")
            }
            Self::MayExceed {
                statistic,
                measured,
                ..
            } => {
                write!(f, "{statistic} may have been {}", unit.show(measured))?;
                f.write_str(": it was not seen as closely as that")
            }
            Self::Seldom {
                statistic,
                measured,
                times,
                of,
                is_once,
                unseen,
                ..
            } => {
                write!(f, "{statistic} {}, ", unit.show(measured))?;
                write_seldom(f, (times, of), is_once, unseen)
            }
            Self::Straddled {
                statistic,
                least,
                most,
                ..
            } => {
                let (low, high) = (unit.show_beside(least, most), unit.show_beside(most, least));
                write!(
                    f,
                    "{statistic} is between {low} and {high}, as the bound is: values so near are counted together"
                )
            }
            Self::NotObserved(what) => f.write_str(nothing(quantity, what)),
            Self::NoControl(what) => write!(f, "{} in a control run", nothing(quantity, what)),
        }
    }
}

/// Why nothing of this can be judged.
const fn nothing(quantity: Quantity, what: Unjudged) -> &'static str {
    match (what, quantity.window()) {
        (Unjudged::Disturbed, _) => "nothing undisturbed was observed",
        (Unjudged::Unfinished, _) => "none was over",
        (Unjudged::Unknown, _) => "nobody knows of any",
        (Unjudged::Nothing, None) => "nothing was observed",
        (Unjudged::Nothing, Some(_)) => "less time than that was observed",
    }
}

/// A share in parts per million, of which a hundredth is allowed.
struct Share(u32);

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (percent, rest) = (self.0 / 10_000, self.0 % 10_000);
        // A hair more than is allowed looks like it otherwise.
        let (rest, digits) = if percent == 1 && rest < 100 {
            (rest, 4)
        } else {
            (rest / 100, 2)
        };
        write!(f, "{percent}.{rest:0digits$} %")
    }
}

/// Writes how often a bound is broken, and why that convicts nobody.
fn write_seldom(
    f: &mut fmt::Formatter<'_>,
    (times, of): (u64, u64),
    is_once: bool,
    unseen: Span,
) -> fmt::Result {
    let (often, longer) = match (times, is_once) {
        (1, _) => (String::from("once"), ""),
        (_, true) => (
            format!("{times} of {of} beyond the bound, in one run"),
            ", and they come close together",
        ),
        (_, false) => (
            format!("{times} of {of} beyond the bound"),
            ", and longer ones were seen",
        ),
    };
    write!(
        f,
        "{often}: a halt of the machine of less than {unseen} is seen by nobody{longer}"
    )
}

/// How many times a limit that is, rounded down, with as many decimals as tell it from the limit itself, up to six: `3.8`, `1.02`.
fn times(measured: u64, limit: u64) -> String {
    let (measured, limit) = (u128::from(measured), u128::from(limit));
    let scaled = |decimals: u32| measured * 10_u128.pow(decimals) / limit;
    let is_told = |decimals: &u32| scaled(*decimals) != 10_u128.pow(*decimals);
    let decimals = (1..6).find(is_told).unwrap_or(6);
    let (one, scaled) = (10_u128.pow(decimals), scaled(decimals));
    let width = decimals as usize;
    format!("{}.{:0width$}", scaled / one, scaled % one)
}

/// Writes how a measured value breaks a bound.
fn write_breach(
    f: &mut fmt::Formatter<'_>,
    (quantity, bound): (Quantity, Bound),
    measured: u64,
    value: &impl fmt::Display,
) -> fmt::Result {
    match bound {
        Bound::AtLeast(_) => write!(f, "is below {value}"),
        Bound::AtMost(0) if quantity.adds_up() => f.write_str("where none is allowed"),
        Bound::AtMost(0) => write!(f, "is above {value}"),
        Bound::AtMost(limit) => write!(f, "exceeds {value} ({} times)", times(measured, limit)),
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
                finding.write(*quantity, f)
            }
            Self::EventsLost(1) => f.write_str("1 event was lost"),
            Self::EventsLost(count) => write!(f, "{count} events were lost"),
            Self::Disturbed(ppm) => {
                let share = Share(*ppm);
                write!(f, "{share} of the run was disturbed, 1 % is allowed")
            }
            Self::Doubts(times) => {
                let times = match times {
                    1 => String::from("once"),
                    times => format!("{times} times"),
                };
                write!(
                    f,
                    "a processor was held {times}, and nobody was found who could: what that delayed is not known to be the machine's doing"
                )
            }
            Self::Unseen(ppm) => {
                let share = Share(*ppm);
                write!(f, "nobody saw {share} of the run, 1 % is allowed")
            }
            Self::HaltsUnseen => f.write_str(
                "nobody saw whether the machine stood still, so it may be what broke the limit",
            ),
            Self::Outgrown => f.write_str(
                "calls took longer than was foreseen, and nothing that was promised was missing",
            ),
            Self::Grade { holder, grade } => {
                let reason = grade.reason().unwrap_or("nothing is known against it");
                write!(f, "{grade}: the reservation of {holder}: {reason}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::times;

    #[test]
    fn what_exceeds_a_limit_by_little_is_not_told_as_the_limit() {
        for (measured, limit, told) in [
            (3_312_000, 100_000, "33.1"),
            (1_946_000, 500_000, "3.8"),
            (2_041_000, 2_000_000, "1.02"),
            (1_000_001, 1_000_000, "1.000001"),
        ] {
            assert_eq!(times(measured, limit), told);
        }
    }
}
