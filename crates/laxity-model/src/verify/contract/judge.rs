//! The verdict.
//!
//! The rules, in the order in which they decide:
//!
//! 1. An event was lost: **inconclusive**. What was measured may be wrong, in either direction.
//! 2. A required limit is violated in undisturbed evidence, or a grant that the contract [rests on](Contract::rests_on) is `unenforced`: **violated**. However much was disturbed
//!    besides, what was undisturbed is beyond doubt; and what is not enforced was not granted, whatever luck the run had.
//! 3. More than 1 % of the run was disturbed and a required limit does not hold of everything that was seen, disturbed or not; or a
//!    required limit has no undisturbed observation in one of its phases that a run [can have](Evidence::phases_over), or none in the control run it is compared with:
//!    **inconclusive**. (What holds of everything needs no excuse. A limit relative to a control never counts as such: a disturbed
//!    control is a wrong yardstick.) The same where nobody saw more than 1 % of it, or such a grant is `uncertain`, whatever holds of the rest; and where a
//!    value that nobody knows may have broken a required limit.
//! 4. Otherwise **met**.
//!
//! Where nobody sees whether the machine stands still, values convict nobody: what breaks a limit may be the machine's doing, and is **inconclusive**. So is what came of work
//! that took longer than was foreseen, where nothing that was promised was missing. Either is so of whom [that is said](Evidence::doubts), and of no other component.
//!
//! A halt of the machine between two wake-ups of the witness is seen by nobody. So a longest or shortest time that breaks an absolute bound by
//! less than that, once among all that was seen of a component, is not held against it: by rule 3 it leaves a verdict inconclusive, unless
//! [three runs or more](super::REPEATED) were made, of which then one may show it more often, for halts come close together: a hundredth of the times of all runs; nor is what breaks any bound of a time no more often than, by how many looks for halts met
//! one, so many of the values may have met one that nobody saw: as large a share in the mean, and by chance three standard deviations more. Of a longest or shortest time a hundredth is let pass where any look met one: a look is over sooner than what is looked after, and touches less memory. What a program does, it does again. A response time is judged all the same: what came too late is
//! counted as a miss, too, and a count has no such excuse.
//!
//! All reasons are given, not only those that decided. Disturbed evidence convicts only of what the halts in it cannot account for, however they fell ([`Observed::between`](super::Observed::between)), and what was not over at the end of what it had come to by then; where disturbed
//! evidence alone exceeds a limit otherwise, a reason says so.

use alloc::string::String;
use alloc::vec::Vec;

use super::{
    Absence, Cause, Contract, Doubts, Evidence, Finding, HaltsUnseen, Limit, Reason, RunFacts,
    Severity, Subjects, Unjudged,
};
use crate::Grade;
use derive_more::Display;

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
    for reason in core::mem::take(&mut found.left_open) {
        found.tell(reason);
    }
    for reason in facts.reasons(court.holds_of_everything(|_| true)) {
        found.tell(reason);
    }
    court.judge_doubts(&mut found);
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

/// What was seen of something that an experiment claims.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claimed {
    /// Whether it is so, by what nothing disturbed.
    pub holds: bool,
    /// Whether nothing that was disturbed could make it otherwise: as a rule because it was broken while the machine went on.
    pub is_certain: bool,
}

/// Judges a claim of an experiment about runs in which these reservations were granted, by the rules of [`judge`]: rule 2 is for what is broken for certain, and
/// rule 3 for everything else that is not certain. Two things are otherwise, for what is claimed is what comes of a promise that is kept, and not that one is.
/// Where a grant was `unenforced` nothing was promised, and where nobody looked for halts of the machine nobody knows: there it is neither kept nor broken.
///
/// ```
/// use laxity_model::Grade;
/// use laxity_model::verify::contract::{Claimed, Doubts, Outcome, RunFacts, judge_claim};
///
/// let broken = Claimed { holds: false, is_certain: true };
/// let of = |grade| {
///     let granted = [("2ms/8ms by slots".into(), grade)];
///     judge_claim(broken, &granted, Doubts::default(), &RunFacts::default()).result
/// };
/// assert_eq!(of(Grade::Enforced), Outcome::Violated);
/// assert_eq!(of(Grade::Unenforced { reason: "processor 0 was held".into() }), Outcome::Inconclusive);
/// ```
pub fn judge_claim(
    claimed: Claimed,
    grades: &[(String, Grade)],
    doubts: Doubts,
    facts: &RunFacts,
) -> Verdict {
    let is_blind = doubts.halts_unseen != HaltsUnseen::None;
    let is_certain = claimed.is_certain && !is_blind;
    let blind = is_blind.then_some(Cause::HaltsUnseen);
    let held = (doubts.held > 0 && !is_certain).then_some(Cause::Doubts(doubts.held));
    let of_them = blind.into_iter().chain(held).chain(of_grades(grades));
    let reasons = facts.reasons(is_certain);
    let reasons: Vec<Reason> = reasons.chain(of_them.map(Reason::of_the_run)).collect();
    let breaks = |reason: &Reason| reason.implies() == Some(Outcome::Violated);
    let was_promised = facts.events_lost == 0 && !reasons.iter().any(breaks);
    let result = match claimed.holds {
        false if is_certain && was_promised => Outcome::Violated,
        _ if !reasons.is_empty() => Outcome::Inconclusive,
        true => Outcome::Met,
        false => Outcome::Violated,
    };
    Verdict { result, reasons }
}

/// Of each grant that is not enforced what it is worth.
fn of_grades(grades: &[(String, Grade)]) -> impl Iterator<Item = Cause> + '_ {
    let unkept = grades.iter().filter(|(_, grade)| *grade != Grade::Enforced);
    unkept.map(|(holder, grade)| Cause::Grade {
        holder: holder.clone(),
        grade: grade.clone(),
    })
}

/// What was found, and what that makes of the verdict.
#[derive(Default)]
struct Found {
    reasons: Vec<Reason>,
    implied: Vec<Outcome>,
    /// Of whom values break a limit, and why that convicts nobody.
    left_open: Vec<Reason>,
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

    /// What was found of the values of a component; `open`: why these convict nobody.
    fn tell_values(&mut self, reason: Reason, open: Option<Cause>) {
        let implied = reason.implies();
        if let (Some(Outcome::Violated), Some(cause)) = (implied, open) {
            let subject = reason.subject.clone();
            self.left_open.push(Reason { subject, cause });
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
            let nothing = Finding::NotObserved(Unjudged::Nothing);
            found.tell(limit.found(None, None, nothing));
        }
        let is_named = subjects.len() > 1 || self.contract.subjects != Subjects::All;
        for evidence in subjects {
            for phase in evidence.phases_to_judge(limit) {
                if let Some(finding) = evidence.judge_in_phase(limit, phase.as_ref(), self.facts) {
                    let subject = is_named.then(|| evidence.subject.name.clone());
                    let open = evidence.doubts.left_open(limit.quantity);
                    found.tell_values(limit.found(subject, phase, finding), open);
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
            for cause in of_grades(&evidence.grades) {
                found.tell(Reason {
                    subject: is_named.then(|| evidence.subject.name.clone()),
                    cause,
                });
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
