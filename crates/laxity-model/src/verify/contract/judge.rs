//! The verdict.
//!
//! The rules, in the order in which they decide:
//!
//! 1. An event was lost: **inconclusive**. What was measured may be wrong, in either direction.
//! 2. A required limit is violated in undisturbed evidence, or a grant is `unenforced`: **violated**. However much was disturbed
//!    besides, what was undisturbed is beyond doubt; and what is not enforced was not granted, whatever luck the run had.
//! 3. More than 1 % of the run was disturbed and a required limit does not hold of everything that was seen, disturbed or not; or a
//!    required limit has no undisturbed observation in one of its phases, or none in the control run it is compared with:
//!    **inconclusive**. (What holds of everything needs no excuse. A limit relative to a control never counts as such: a disturbed
//!    control is a wrong yardstick.)
//! 4. Otherwise **met**.
//!
//! All reasons are given, not only those that decided. Disturbed evidence never convicts; where it alone exceeds a limit, a reason says so.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use super::{
    Absence, Bound, Cause, Contract, Finding, Limit, Observations, Observed, Phase, Phases,
    Quantity, Reason, Severity, Statistic, Subject, Subjects,
};
use crate::base::histogram::Histogram;
use crate::{Grade, RunRecord, Span};
use derive_more::Display;

/// More than this share of a run disturbed, in parts per million, leaves a verdict inconclusive.
pub const DISTURBED_LIMIT_PPM: u32 = 10_000;

/// What a judgement must know of all runs together, besides what was measured.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RunFacts {
    /// Events that did not fit the ring.
    pub events_lost: u64,
    /// The share of the runs that was disturbed, in parts per million: of the witness's wake-ups, or of the time, whichever is more.
    pub disturbed_ppm: u32,
}

impl RunFacts {
    /// The facts of these runs.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a RunRecord>) -> Self {
        let (mut events_lost, mut late, mut wakeups) = (0, 0, 0);
        let (mut still, mut length) = (Span::ZERO, Span::ZERO);
        for record in records {
            events_lost += record.events_lost;
            late += record.disturbances.len() as u64;
            wakeups += record.witness_wakeups;
            let stretches = record.disturbances.iter();
            still += stretches
                .map(|still| still.to.saturating_since(still.from))
                .sum::<Span>();
            length += record.end.saturating_since(record.start);
        }
        let share = |part: u64, whole: u64| {
            let ppm = u128::from(part) * 1_000_000;
            // Without a witness nothing counts as disturbed.
            ppm.checked_div(whole.into()).unwrap_or(0)
        };
        let share = share(late, wakeups).max(share(still.as_nanos(), length.as_nanos()));
        Self {
            events_lost,
            disturbed_ppm: u32::try_from(share).unwrap_or(u32::MAX),
        }
    }
}

/// All that is known of one component.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Evidence {
    /// The component.
    pub subject: Subject,
    /// What was seen of it, by run.
    pub runs: Vec<Observations>,
    /// The same of the control runs, with which [`Bound::AtMostTimesControl`] compares.
    pub control: Vec<Observations>,
    /// The reservations that it was granted, and how firmly each is held.
    pub grades: Vec<(String, Grade)>,
}

/// Whether a contract was kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Display)]
#[display(rename_all = "lowercase")]
pub enum Outcome {
    /// It was.
    Met,
    /// It was not.
    Violated,
    /// The evidence does not tell.
    Inconclusive,
}

/// The judgement of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Met, violated or inconclusive.
    pub result: Outcome,
    /// Why, and what else is to be known: limits in the contract's order, then the facts of the run.
    pub reasons: Vec<Reason>,
}

/// Judges the runs of one program by a contract: each component that the contract is about by itself. See the module for the rules;
/// `facts` are those of all runs together.
///
/// Absolute bounds are judged on all runs taken as one. A bound relative to a control is judged on medians: the median over the runs
/// of each run's statistic against the median over the control runs, so that one bad run of either side decides nothing.
pub fn judge(contract: &Contract, all: &[Evidence], facts: &RunFacts) -> Verdict {
    let court = Court { contract, all };
    let mut reasons = Vec::new();
    for limit in &contract.limits {
        court.judge_limit(limit, &mut reasons);
    }
    let of_the_run = |cause| Reason {
        subject: None,
        cause,
    };
    if facts.events_lost > 0 {
        reasons.push(of_the_run(Cause::EventsLost(facts.events_lost)));
    }
    if facts.disturbed_ppm > DISTURBED_LIMIT_PPM && !court.holds_of_everything() {
        reasons.push(of_the_run(Cause::Disturbed(facts.disturbed_ppm)));
    }
    court.judge_grades(&mut reasons);
    let has = |outcome| {
        reasons
            .iter()
            .any(|reason| reason.implies() == Some(outcome))
    };
    let result = if facts.events_lost > 0 {
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

/// A contract before the evidence of all components.
struct Court<'a> {
    contract: &'a Contract,
    all: &'a [Evidence],
}

impl Court<'_> {
    /// The components that the contract is about.
    fn concerned(&self) -> impl Iterator<Item = &Evidence> + Clone {
        let subjects = &self.contract.subjects;
        let all = self.all.iter();
        all.filter(move |evidence| subjects.include(&evidence.subject))
    }

    /// Those of them that show the limit's quantity; if none does, those that show what may stand in for it.
    fn subjects_of(&self, limit: &Limit) -> Vec<&Evidence> {
        let showing = |quantity| {
            let concerned = self.concerned();
            concerned.filter(move |evidence| evidence.shows(quantity))
        };
        match limit.absence {
            Absence::HoldsIfSeen(witness) if showing(limit.quantity).next().is_none() => {
                showing(witness).collect()
            }
            _ => showing(limit.quantity).collect(),
        }
    }

    fn judge_limit(&self, limit: &Limit, reasons: &mut Vec<Reason>) {
        let subjects = self.subjects_of(limit);
        if subjects.is_empty() && limit.severity == Severity::Required {
            reasons.push(limit.found(None, None, Finding::NotObserved));
        }
        let is_named = subjects.len() > 1 || self.contract.subjects != Subjects::All;
        for evidence in subjects {
            for phase in evidence.phases_to_judge(limit) {
                let finding = evidence.judge_in_phase(limit, phase.as_ref());
                let subject = is_named.then(|| evidence.subject.name.clone());
                reasons.extend(finding.map(|finding| limit.found(subject, phase, finding)));
            }
        }
    }

    /// A reservation that is not enforced was not granted.
    fn judge_grades(&self, reasons: &mut Vec<Reason>) {
        let holders = self.concerned().filter(|holder| !holder.grades.is_empty());
        let is_named = holders.clone().count() > 1;
        for evidence in holders {
            for (holder, grade) in &evidence.grades {
                if let Grade::Unenforced { reason } = grade {
                    reasons.push(Reason {
                        subject: is_named.then(|| evidence.subject.name.clone()),
                        cause: Cause::Unenforced {
                            holder: holder.clone(),
                            reason: reason.clone(),
                        },
                    });
                }
            }
        }
    }

    /// Whether every required limit holds of all values, those included that overlap a disturbance.
    fn holds_of_everything(&self) -> bool {
        let limits = self.contract.limits.iter();
        let mut required = limits.filter(|limit| limit.severity == Severity::Required);
        required.all(|limit| {
            let subjects = self.subjects_of(limit);
            subjects.iter().all(|evidence| evidence.all_holds(limit))
        })
    }
}

impl Evidence {
    fn shows(&self, quantity: Quantity) -> bool {
        self.subject.kind.quantities.contains(&quantity)
    }

    /// The phases in which a limit is judged; `None` for the whole run.
    fn phases_to_judge(&self, limit: &Limit) -> Vec<Option<Phase>> {
        match &limit.phases {
            Phases::Whole => [None].into(),
            Phases::Only(phases) => phases.iter().cloned().map(Some).collect(),
            Phases::Each => {
                let mut seen = self.phases_of(limit.quantity);
                if let (true, Absence::HoldsIfSeen(witness)) = (seen.is_empty(), limit.absence) {
                    seen = self.phases_of(witness);
                }
                if seen.is_empty() { [None].into() } else { seen }
            }
        }
    }

    fn all_holds(&self, limit: &Limit) -> bool {
        let bound_value = match limit.bound {
            Bound::AtMost(value) | Bound::AtLeast(value) => value,
            Bound::AtMostTimesControl { .. } => return false,
        };
        self.phases_to_judge(limit).iter().all(|phase| {
            let all = self.together(limit.quantity, phase.as_ref()).raw();
            // Where nothing was seen, other reasons say so.
            let value = limit.value_of(&all);
            value.is_none_or(|value| limit.holds(value, bound_value))
        })
    }

    /// The phases in which any run saw this, by name.
    fn phases_of(&self, quantity: Quantity) -> Vec<Option<Phase>> {
        let phases = self.runs.iter().flat_map(|run| run.phases(quantity));
        let phases: BTreeSet<&Phase> = phases.map(|(phase, _)| phase).collect();
        phases.into_iter().cloned().map(Some).collect()
    }

    fn judge_in_phase(&self, limit: &Limit, phase: Option<&Phase>) -> Option<Finding> {
        let statistic = limit.statistic;
        let required = limit.severity == Severity::Required;
        let observed = self.together(limit.quantity, phase);
        let judged = match limit.bound {
            Bound::AtMostTimesControl { .. } => median(&self.runs, limit, phase),
            Bound::AtMost(_) | Bound::AtLeast(_) => limit.value_of(&observed.undisturbed),
        };
        let Some(measured) = judged else {
            let decides = required && !self.holds_unseen(limit, &observed, phase);
            return decides.then_some(Finding::NotObserved);
        };
        let bound_value = match limit.bound {
            Bound::AtMost(value) | Bound::AtLeast(value) => value,
            Bound::AtMostTimesControl { ratio_ppm } => {
                let Some(value) = median(&self.control, limit, phase) else {
                    return required.then_some(Finding::NoControl);
                };
                let bound = u128::from(value) * u128::from(ratio_ppm) / 1_000_000;
                u64::try_from(bound).unwrap_or(u64::MAX)
            }
        };
        if !limit.holds(measured, bound_value) {
            return Some(Finding::Exceeded {
                statistic,
                measured,
                bound: limit.bound,
                bound_value,
                severity: limit.severity,
            });
        }
        let measured = limit.value_of(&observed.disturbed)?;
        (!limit.holds(measured, bound_value)).then_some(Finding::DisturbedExceeded {
            statistic,
            measured,
        })
    }

    /// Whether there was nothing to see although somebody looked.
    fn holds_unseen(&self, limit: &Limit, observed: &Observed, phase: Option<&Phase>) -> bool {
        match limit.absence {
            Absence::Inconclusive => false,
            Absence::HoldsIfSeen(witness) => {
                let looked = self.together(witness, phase);
                observed.disturbed.is_empty() && !looked.undisturbed.is_empty()
            }
        }
    }

    /// What all runs saw of a quantity in a phase, or in the whole of each.
    fn together(&self, quantity: Quantity, phase: Option<&Phase>) -> Observed {
        let mut all = Observed::default();
        for run in &self.runs {
            all.merge(&select(run, quantity, phase));
        }
        all
    }
}

impl Limit {
    fn found(&self, subject: Option<String>, phase: Option<Phase>, finding: Finding) -> Reason {
        let cause = Cause::Values {
            quantity: self.quantity,
            phase,
            finding,
        };
        Reason { subject, cause }
    }

    /// The limited statistic of these values; percentiles on the side that is worse for the limit (of a ratio, both sides are rounded
    /// up alike).
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

/// What one run saw of a quantity in a phase, or in the whole run.
fn select(run: &Observations, quantity: Quantity, phase: Option<&Phase>) -> Observed {
    match phase {
        Some(phase) => run.get(quantity, phase).cloned().unwrap_or_default(),
        None => run.whole(quantity),
    }
}

/// The median over the runs of the limited statistic, undisturbed; of an even number the upper of the middle two.
fn median(runs: &[Observations], limit: &Limit, phase: Option<&Phase>) -> Option<u64> {
    let seen = runs.iter().map(|run| select(run, limit.quantity, phase));
    let mut values: Vec<u64> = seen
        .filter_map(|o| limit.value_of(&o.undisturbed))
        .collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}
