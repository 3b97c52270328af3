//! The verdict.
//!
//! The rules, in the order in which they decide:
//!
//! 1. An event was lost: **inconclusive**. What was measured may be wrong, in either direction.
//! 2. A required limit is violated in undisturbed evidence, or a grant is `unenforced`: **violated**. However much was disturbed
//!    besides, what was undisturbed is beyond doubt; and what is not enforced was not granted, whatever luck the run had.
//! 3. More than 1 % of the run was disturbed, or a required limit has no undisturbed observation in one of its phases, or none in
//!    the control run it is compared with: **inconclusive**.
//! 4. Otherwise **met**.
//!
//! All reasons are given, not only those that decided. Disturbed evidence never decides; where it alone exceeds a limit, a reason says so.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::{
    Absence, Bound, Contract, Limit, Observations, Observed, Phase, Phases, Quantity, Reason,
    Severity, Statistic,
};
use crate::Grade;
use crate::histogram::Histogram;

/// More than this share of a run disturbed, in parts per million, leaves a verdict inconclusive.
pub const DISTURBED_LIMIT_PPM: u32 = 10_000;

/// What a judgement must know of a run besides what was measured.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RunFacts {
    /// Events that did not fit the ring.
    pub events_lost: u64,
    /// The share of the witness's wake-ups that were late, in parts per million.
    pub disturbed_ppm: u32,
    /// Who holds a reservation, and how firmly.
    pub grades: Vec<(String, Grade)>,
}

/// Whether a contract was kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// It was.
    Met,
    /// It was not.
    Violated,
    /// The evidence does not tell.
    Inconclusive,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Met => "met",
            Self::Violated => "violated",
            Self::Inconclusive => "inconclusive",
        })
    }
}

/// The judgement of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Met, violated or inconclusive.
    pub result: Outcome,
    /// Why, and what else is to be known: limits in the contract's order, then the facts of the run.
    pub reasons: Vec<Reason>,
}

/// Judges a run by a contract; `control` is the run that [`Bound::AtMostTimesControl`] compares with. See the module for the rules.
#[must_use]
pub fn judge(
    contract: &Contract,
    observations: &Observations,
    control: Option<&Observations>,
    run: &RunFacts,
) -> Verdict {
    let evidence = Evidence {
        observations,
        control,
    };
    let mut reasons = Vec::new();
    for limit in &contract.limits {
        evidence.judge_limit(limit, &mut reasons);
    }
    if run.events_lost > 0 {
        reasons.push(Reason::EventsLost(run.events_lost));
    }
    if run.disturbed_ppm > DISTURBED_LIMIT_PPM {
        reasons.push(Reason::Disturbed(run.disturbed_ppm));
    }
    for (holder, grade) in &run.grades {
        if let Grade::Unenforced { reason } = grade {
            reasons.push(Reason::Unenforced {
                holder: holder.clone(),
                reason: reason.clone(),
            });
        }
    }
    let has = |outcome| {
        reasons
            .iter()
            .any(|reason| reason.implies() == Some(outcome))
    };
    let result = if run.events_lost > 0 {
        Outcome::Inconclusive
    } else if has(Outcome::Violated) {
        Outcome::Violated
    } else if has(Outcome::Inconclusive) {
        Outcome::Inconclusive
    } else {
        Outcome::Met
    };
    Verdict { result, reasons }
}

/// What limits are judged by.
struct Evidence<'a> {
    observations: &'a Observations,
    control: Option<&'a Observations>,
}

impl Evidence<'_> {
    fn judge_limit(&self, limit: &Limit, reasons: &mut Vec<Reason>) {
        let phases: Vec<Option<Phase>> = match &limit.phases {
            Phases::Whole => [None].into(),
            Phases::Only(phases) => phases.iter().cloned().map(Some).collect(),
            Phases::Each => {
                let mut seen: Vec<_> = self.phases_of(limit.quantity);
                if let (true, Absence::HoldsIfSeen(witness)) = (seen.is_empty(), limit.absence) {
                    seen = self.phases_of(witness);
                }
                if seen.is_empty() { [None].into() } else { seen }
            }
        };
        for phase in phases {
            reasons.extend(self.judge_in_phase(limit, phase));
        }
    }

    fn phases_of(&self, quantity: Quantity) -> Vec<Option<Phase>> {
        let phases = self.observations.phases(quantity);
        phases.map(|(phase, _)| Some(phase.clone())).collect()
    }

    fn judge_in_phase(&self, limit: &Limit, phase: Option<Phase>) -> Option<Reason> {
        let (quantity, statistic) = (limit.quantity, limit.statistic);
        let observed = select(self.observations, quantity, phase.as_ref());
        let Some(measured) = limit.value_of(&observed.undisturbed) else {
            let looked = match limit.absence {
                Absence::Inconclusive => false,
                Absence::HoldsIfSeen(witness) => {
                    observed.disturbed.is_empty()
                        && !select(self.observations, witness, phase.as_ref())
                            .undisturbed
                            .is_empty()
                }
            };
            let decides = limit.severity == Severity::Required && !looked;
            return decides.then_some(Reason::NotObserved { quantity, phase });
        };
        let bound_value = match limit.bound {
            Bound::AtMost(value) | Bound::AtLeast(value) => value,
            Bound::AtMostTimesControl { ratio_ppm } => {
                let control = self
                    .control
                    .map(|control| select(control, quantity, phase.as_ref()));
                let Some(value) = control.and_then(|c| limit.value_of(&c.undisturbed)) else {
                    let decides = limit.severity == Severity::Required;
                    return decides.then_some(Reason::NoControl { quantity, phase });
                };
                let bound = u128::from(value) * u128::from(ratio_ppm) / 1_000_000;
                u64::try_from(bound).unwrap_or(u64::MAX)
            }
        };
        if !limit.holds(measured, bound_value) {
            return Some(Reason::Exceeded {
                quantity,
                statistic,
                phase,
                measured,
                bound: limit.bound,
                bound_value,
                severity: limit.severity,
            });
        }
        let measured = limit.value_of(&observed.disturbed)?;
        (!limit.holds(measured, bound_value)).then_some(Reason::DisturbedExceeded {
            quantity,
            statistic,
            phase,
            measured,
        })
    }
}

impl Limit {
    /// The limited statistic of these values; percentiles on the side that is worse for the limit.
    fn value_of(&self, values: &Histogram) -> Option<u64> {
        match self.statistic {
            Statistic::Minimum => values.min(),
            Statistic::Maximum => values.max(),
            Statistic::Total => {
                let sum = u64::try_from(values.sum()).unwrap_or(u64::MAX);
                (!values.is_empty()).then_some(sum)
            }
            Statistic::Percentile(ppm) => {
                let (low, high) = values.percentile_bounds(ppm)?;
                Some(match self.bound {
                    Bound::AtLeast(_) => low,
                    Bound::AtMost(_) | Bound::AtMostTimesControl { .. } => high,
                })
            }
        }
    }

    const fn holds(&self, measured: u64, bound_value: u64) -> bool {
        match self.bound {
            Bound::AtLeast(_) => measured >= bound_value,
            Bound::AtMost(_) | Bound::AtMostTimesControl { .. } => measured <= bound_value,
        }
    }
}

/// What was seen of a quantity in a phase, or in the whole run.
fn select(seen: &Observations, quantity: Quantity, phase: Option<&Phase>) -> Observed {
    match phase {
        Some(phase) => seen.get(quantity, phase).cloned().unwrap_or_default(),
        None => seen.whole(quantity),
    }
}
