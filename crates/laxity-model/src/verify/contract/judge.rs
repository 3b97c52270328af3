//! The verdict.
//!
//! The rules, in the order in which they decide:
//!
//! 1. An event was lost: **inconclusive**. What was measured may be wrong, in either direction.
//! 2. A required limit is violated in undisturbed evidence, or a grant that the contract [rests on](Contract::rests_on) is `unenforced`: **violated**. However much was disturbed
//!    besides, what was undisturbed is beyond doubt; and what is not enforced was not granted, whatever luck the run had.
//! 3. More than 1 % of the run was disturbed and a required limit does not hold of everything that was seen, disturbed or not; or a
//!    required limit has no undisturbed observation in one of its phases, or none in the control run it is compared with:
//!    **inconclusive**. (What holds of everything needs no excuse. A limit relative to a control never counts as such: a disturbed
//!    control is a wrong yardstick.) The same where nobody saw more than 1 % of it, or such a grant is `uncertain`, whatever holds of the rest; and where a
//!    value that nobody knows may have broken a required limit.
//! 4. Otherwise **met**.
//!
//! Where nobody sees whether the machine stands still, values convict nobody: what breaks a limit may be the machine's doing, and is **inconclusive**. So it is of
//! whom [that is said](Evidence::doubts), and of no other component.
//!
//! A halt of the machine between two wake-ups of the witness is seen by nobody. So a longest or shortest time that breaks an absolute bound by
//! less than that, once among all that was seen of a component, is not held against it: by rule 3 it leaves a verdict inconclusive, unless
//! [three runs or more](REPEATED) were made; nor is what breaks it no more often than looks for halts met one. Where more than 1 % of the run was disturbed, that
//! holds of a percentile, too, and of what is compared with a control. What a program does, it does again. A response time is judged all the same: what came too late is
//! counted as a miss, too, and a count has no such excuse.
//!
//! All reasons are given, not only those that decided. Disturbed evidence never convicts; where it alone exceeds a limit, a reason says so.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::{
    Absence, Bound, Cause, Contract, DISTURBED_LIMIT_PPM, Doubts, Finding, Limit, Observations,
    Observed, Phase, Phases, Quantity, Reason, RunFacts, Severity, Statistic, Subject, Subjects,
    Unit,
};
use crate::base::histogram::Histogram;
use crate::{Grade, Span};
use derive_more::Display;

/// In so many runs what was seen once is not what the program does,
pub const REPEATED: usize = 3;
/// if there are so many values; nor do fewer tell what is seldom. A transfer time is one value, and what it is.
const MANY: u64 = 50;

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
    /// What nobody knows of it.
    pub doubts: Doubts,
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
/// Absolute bounds are judged on all runs taken as one. A bound relative to a control is exceeded if it is in every run, by that
/// control run whose statistic is the largest: one bad run convicts nobody, and one good control neither. Were the runs alike, those of three would
/// all exceed those of five controls in one of 56 times (as many as there are ways to choose three of eight), and in fewer the larger the ratio is.
pub fn judge(contract: &Contract, all: &[Evidence], facts: &RunFacts) -> Verdict {
    let court = Court {
        contract,
        all,
        facts,
    };
    let mut found = Found::default();
    for limit in &contract.limits {
        court.judge_limit(limit, &mut found);
    }
    for subject in core::mem::take(&mut found.left_open) {
        found.tell(Reason {
            subject,
            cause: Cause::HaltsUnseen,
        });
    }
    let of_the_run = |cause| Reason {
        subject: None,
        cause,
    };
    if facts.events_lost > 0 {
        found.tell(of_the_run(Cause::EventsLost(facts.events_lost)));
    }
    if facts.is_disturbed() && !court.holds_of_everything(|_| true) {
        found.tell(of_the_run(Cause::Disturbed(facts.disturbed_ppm)));
    }
    court.judge_doubts(&mut found);
    if facts.unseen_ppm > DISTURBED_LIMIT_PPM {
        found.tell(of_the_run(Cause::Unseen(facts.unseen_ppm)));
    }
    court.judge_grades(&mut found);
    let Found {
        reasons, implied, ..
    } = found;
    let result = if facts.events_lost > 0 {
        Outcome::Inconclusive
    } else if implied.contains(&Outcome::Violated) {
        Outcome::Violated
    } else if implied.contains(&Outcome::Inconclusive) {
        Outcome::Inconclusive
    } else {
        Outcome::Met
    };
    Verdict { result, reasons }
}

/// What was found, and what that makes of the verdict.
#[derive(Default)]
struct Found {
    reasons: Vec<Reason>,
    implied: Vec<Outcome>,
    /// Of whom values break a limit, and nobody saw whether it was the machine's doing.
    left_open: Vec<Option<String>>,
}

impl Found {
    fn tell(&mut self, reason: Reason) {
        self.tell_as(reason.implies(), reason);
    }

    /// Two limits of one quantity may find the same, which is one reason.
    fn tell_as(&mut self, implied: Option<Outcome>, reason: Reason) {
        if !self.reasons.contains(&reason) {
            self.implied.extend(implied);
            self.reasons.push(reason);
        }
    }

    /// What was found of the values of a component; `is_open`: nobody saw whether halts made them what they are.
    fn tell_values(&mut self, reason: Reason, is_open: bool) {
        let implied = reason.implies();
        if implied == Some(Outcome::Violated) && is_open {
            self.left_open.push(reason.subject.clone());
            self.tell_as(Some(Outcome::Inconclusive), reason);
        } else {
            self.tell_as(implied, reason);
        }
    }
}

/// A contract before the evidence of all components.
struct Court<'a> {
    contract: &'a Contract,
    all: &'a [Evidence],
    facts: &'a RunFacts,
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

    fn judge_limit(&self, limit: &Limit, found: &mut Found) {
        let subjects = self.subjects_of(limit);
        let unseen = subjects.is_empty() && limit.severity == Severity::Required;
        if unseen {
            found.tell(limit.found(None, None, Finding::NotObserved));
        }
        let is_named = subjects.len() > 1 || self.contract.subjects != Subjects::All;
        for evidence in subjects {
            for phase in evidence.phases_to_judge(limit) {
                if let Some(finding) = evidence.judge_in_phase(limit, phase.as_ref(), self.facts) {
                    let subject = is_named.then(|| evidence.subject.name.clone());
                    let is_open = evidence.doubts.halts_unseen.concern(limit.quantity);
                    found.tell_values(limit.found(subject, phase, finding), is_open);
                }
            }
        }
    }

    /// What somebody may have delayed, who was not found, is not known to be the machine's doing.
    fn judge_doubts(&self, found: &mut Found) {
        let limits = self.contract.limits.iter();
        let judged: Vec<&Evidence> = limits.flat_map(|limit| self.subjects_of(limit)).collect();
        let others = |one: &Evidence| judged.iter().any(|other| other.subject != one.subject);
        for evidence in &judged {
            let (held, subject) = (evidence.doubts.held, &evidence.subject);
            if held > 0 && !self.holds_of_everything(|one| one.subject == *subject) {
                let is_named = others(evidence) || self.contract.subjects != Subjects::All;
                found.tell(Reason {
                    subject: is_named.then(|| subject.name.clone()),
                    cause: Cause::Doubts(held),
                });
            }
        }
    }

    /// A reservation that is not enforced was not granted; of one of which that is uncertain nobody knows.
    fn judge_grades(&self, found: &mut Found) {
        let holders = self
            .all
            .iter()
            .filter(|holder| !holder.grades.is_empty() && self.contract.rests_on(&holder.subject));
        let is_named = holders.clone().count() > 1;
        for evidence in holders {
            for (holder, grade) in &evidence.grades {
                if *grade != Grade::Enforced {
                    found.tell(Reason {
                        subject: is_named.then(|| evidence.subject.name.clone()),
                        cause: Cause::Grade {
                            holder: holder.clone(),
                            grade: grade.clone(),
                        },
                    });
                }
            }
        }
    }

    /// Whether every required limit holds of all values of these, those included that overlap a disturbance.
    fn holds_of_everything(&self, of: impl Fn(&Evidence) -> bool) -> bool {
        let limits = self.contract.limits.iter();
        let mut required = limits.filter(|limit| limit.severity == Severity::Required);
        required.all(|limit| {
            let subjects = self.subjects_of(limit);
            let mut of_them = subjects.into_iter().filter(|evidence| of(evidence));
            of_them.all(|evidence| evidence.all_holds(limit))
        })
    }
}

impl Evidence {
    fn shows(&self, quantity: Quantity) -> bool {
        self.subject.kind.shows(quantity)
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

    fn judge_in_phase(
        &self,
        limit: &Limit,
        phase: Option<&Phase>,
        facts: &RunFacts,
    ) -> Option<Finding> {
        let statistic = limit.statistic;
        let required = limit.severity == Severity::Required;
        let observed = self.together(limit.quantity, phase);
        let judged = match limit.bound {
            Bound::AtMostTimesControl { .. } => each(&self.runs, limit, phase).min(),
            Bound::AtMost(_) | Bound::AtLeast(_) => limit.value_of(&observed.undisturbed),
        };
        let Some(measured) = judged else {
            let decides = required && !self.holds_unseen(limit, &observed, phase);
            return decides.then_some(Finding::NotObserved);
        };
        let bound_value = match limit.bound {
            Bound::AtMost(value) | Bound::AtLeast(value) => value,
            Bound::AtMostTimesControl { ratio_ppm } => {
                let Some(largest) = each(&self.control, limit, phase).max() else {
                    return required.then_some(Finding::NoControl);
                };
                let bound = u128::from(largest) * u128::from(ratio_ppm) / 1_000_000;
                u64::try_from(bound).unwrap_or(u64::MAX)
            }
        };
        let broken_by = Span::from_nanos(measured.abs_diff(bound_value));
        if !limit.holds(measured, bound_value) {
            if broken_by < facts.unseen
                && let Some((times, of)) = self.seldom_broken(limit, (bound_value, phase), facts)
            {
                return Some(Finding::Seldom {
                    statistic,
                    measured,
                    times,
                    of,
                    unseen: facts.unseen,
                    decides: required && (times > 1 || self.runs.len() < REPEATED),
                });
            }
            return Some(Finding::Exceeded {
                statistic,
                measured,
                bound: limit.bound,
                bound_value,
                severity: limit.severity,
            });
        }
        beside(limit, &observed, bound_value)
    }

    /// How many of how many break a bound, if that is no larger a share than that of the looks for halts of the machine that met one: so many of the
    /// values, too, one met that nobody saw. Or if it is one of many, and the bound is absolute. Of longest and shortest times all phases count, and of
    /// others the judged one, where too much was disturbed to tell whether they hold.
    fn seldom_broken(
        &self,
        limit: &Limit,
        (bound, phase): (u64, Option<&Phase>),
        facts: &RunFacts,
    ) -> Option<(u64, u64)> {
        let is_extreme = matches!(
            (limit.statistic, limit.bound),
            (Statistic::Maximum, Bound::AtMost(_)) | (Statistic::Minimum, Bound::AtLeast(_))
        );
        let is_counted = limit.quantity == Quantity::RESPONSE_TIME;
        let is_time = limit.quantity.unit() == Unit::Nanoseconds && !is_counted;
        let is_told = is_extreme || facts.is_disturbed();
        if !is_time || !is_told || limit.statistic == Statistic::Total {
            return None;
        }
        let phases = match is_extreme {
            true => self.phases_to_judge(limit),
            false => vec![phase.cloned()],
        };
        let (mut all, mut broken) = (0, 0);
        for phase in phases {
            let seen = self.together(limit.quantity, phase.as_ref()).undisturbed;
            all += seen.count();
            let buckets = seen.buckets();
            // Of values that are counted together with some that keep the bound, all count.
            let beyond =
                buckets.filter(|b| !limit.holds(b.low, bound) || !limit.holds(b.high, bound));
            broken += beyond.map(|bucket| bucket.count).sum::<u64>();
        }
        let met_halts = u128::from(all) * u128::from(facts.looks_ppm) / 1_000_000;
        let is_seldom = (is_extreme && broken == 1) || u128::from(broken) <= met_halts;
        (all >= MANY && is_seldom).then_some((broken, all))
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

/// What is to be known beside values that hold: that others may not, or would not.
fn beside(limit: &Limit, observed: &Observed, bound_value: u64) -> Option<Finding> {
    let statistic = limit.statistic;
    let breaks = |measured: &u64| !limit.holds(*measured, bound_value);
    if let Some(measured) = limit.value_of(&observed.possible).filter(breaks) {
        return Some(Finding::MayExceed {
            statistic,
            measured,
            decides: limit.severity == Severity::Required,
        });
    }
    let measured = limit.value_of(&observed.disturbed).filter(breaks)?;
    // Of so few values that their percentile is the largest of them, it is told as what it is.
    let is_largest = observed.disturbed.max() == Some(measured);
    let statistic = match statistic {
        Statistic::Percentile(_) if is_largest => Statistic::Maximum,
        other => other,
    };
    Some(Finding::DisturbedExceeded {
        statistic,
        measured,
    })
}

/// What one run saw of a quantity in a phase, or in the whole run.
fn select(run: &Observations, quantity: Quantity, phase: Option<&Phase>) -> Observed {
    match phase {
        Some(phase) => run.get(quantity, phase).cloned().unwrap_or_default(),
        None => run.whole(quantity),
    }
}

/// The limited statistic of each run that has one, undisturbed.
fn each(runs: &[Observations], limit: &Limit, phase: Option<&Phase>) -> impl Iterator<Item = u64> {
    let seen = runs
        .iter()
        .map(move |run| select(run, limit.quantity, phase));
    seen.filter_map(move |observed| limit.value_of(&observed.undisturbed))
}
