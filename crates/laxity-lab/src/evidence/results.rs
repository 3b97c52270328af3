//! The results of `run`, as a program reads them.
//!
//! Times are whole nanoseconds and their names say so. Histograms lose nothing: the counts of the buckets and the overflow add up to
//! `count`. The file has a version; a reader of version 1 may rely on every field here, and must pass over those it does not know.

use std::collections::BTreeMap;

use laxity_model::verify::contract::{Expectation, Outcome, Reason, Verdict};
use serde::{Deserialize, Serialize};

use super::flat;
use super::subjects::{Figures, ModemFigures, PeriodicFigures, SubjectResults, label};

/// The version of the file that this program writes.
pub const FILE_VERSION: u32 = 1;

/// Everything that a run of a scenario gave.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunResults {
    /// [`FILE_VERSION`] at the time of writing.
    pub file_version: u32,
    /// The version of laxity that ran it.
    pub laxity_version: String,
    /// The scenario's name.
    pub scenario: String,
    /// The scenario's file, as it was named.
    pub file: String,
    /// The contracts that variants were judged by, by name.
    pub contract: String,
    /// What ran it: `linux 6.18.44`, `twin win2000-pii450`.
    pub host: String,
    /// The seed of everything that is drawn at random.
    pub seed: u64,
    /// The machine it really ran on; none for a run in the twin.
    pub machine: Option<Machine>,
    /// Where each figure comes from, by its name here (`processing_ns`).
    pub provenance: BTreeMap<String, Provenance>,
    /// What the reader should know first: that the twin stands in for the live host, and why.
    pub notices: Vec<String>,
    /// The variants that ran, in the scenario's order. In the file the figures of a variant's only modem, and of its only periodic task, are among
    /// the variant's own fields too.
    #[serde(serialize_with = "flat::variants")]
    pub variants: Vec<VariantResults>,
    /// Those that did not.
    pub skipped: Vec<Skipped>,
    /// The verdict over all variants: met if each came as expected; the reasons name those that did not.
    pub verdict: VerdictJson,
    /// The exit code of the command.
    pub exit_code: u8,
}

/// A machine, as far as its timing depends on it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    /// The kernel's release.
    pub kernel: String,
    /// The processor's model.
    pub cpu_model: String,
    /// How many processors are online.
    pub cpus: u32,
    /// The frequency governor; none where there is no frequency control.
    pub governor: Option<String>,
    /// The kernel's clock source.
    pub clock_source: String,
    /// The hypervisor; none on bare metal, or where it does not show.
    pub hypervisor: Option<String>,
    /// Time taken by the hypervisor during the whole run, all processors together, as the kernel counts it.
    pub steal_ns: u64,
}

/// Where a figure comes from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Provenance {
    /// It was measured.
    Measured {
        /// On which machine or with which clock.
        on: String,
    },
    /// The twin computed it.
    Simulated {
        /// By which profile.
        profile: String,
    },
    /// It was set so that something else comes out right; never counts as reproduced.
    Calibrated {
        /// To what.
        to: String,
    },
    /// Somebody else measured it.
    Quoted {
        /// Authors, title, table.
        source: String,
    },
}

/// A variant that did not run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Skipped {
    /// The variant's name.
    pub name: String,
    /// Why not.
    pub reason: String,
}

/// What one variant gave, all its repeats together.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct VariantResults {
    /// Its name.
    pub name: String,
    /// One line about it; may be empty.
    pub about: String,
    /// Whether all reservations were enforced: `enforced`, `unenforced`; none without a reservation.
    pub grade: Option<String>,
    /// Why it was not.
    pub grade_reason: Option<String>,
    /// How many times it ran.
    pub repeats: u32,
    /// Time taken by the hypervisor, as the kernel counts it; none in the twin.
    pub steal_ns: Option<u64>,
    /// When the machine itself stood still.
    pub disturbed: Disturbed,
    /// Events in the trace.
    pub events_recorded: u64,
    /// Events that did not fit the ring.
    pub events_lost: u64,
    /// What was seen of each component, in the order of the scenario: devices, then tasks.
    pub subjects: Vec<SubjectResults>,
    /// Each contract it was judged by.
    pub contracts: Vec<ContractResults>,
    /// What the scenario expects: of all contracts together, leaving out those of which it expects nothing.
    #[serde(with = "ExpectationJson")]
    pub expected: Expectation,
    /// What is not as the scenario expects, beside the contracts: samples, the transfer, the grade.
    pub surprises: Vec<String>,
    /// Whether everything came as the scenario expects.
    pub as_expected: bool,
    /// The judgement on all contracts of which the scenario expects something; on all where it expects nothing of any. Met if there
    /// is no contract.
    pub verdict: VerdictJson,
}

/// The judgement by one contract.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ContractResults {
    /// Its name.
    pub name: String,
    /// What the scenario expects.
    #[serde(with = "ExpectationJson")]
    pub expected: Expectation,
    /// Whether it came so.
    pub as_expected: bool,
    /// The judgement.
    pub verdict: VerdictJson,
}

impl VariantResults {
    /// The modems, with their names.
    pub fn modems(&self) -> impl Iterator<Item = (&str, &ModemFigures)> + Clone {
        self.subjects.iter().filter_map(|subject| {
            let Figures::SoftModem(figures) = &subject.figures else {
                return None;
            };
            Some((subject.name.as_str(), &**figures))
        })
    }

    /// The modems, each with its name for the begin of a sentence where there are several.
    pub(crate) fn each_modem(&self) -> impl Iterator<Item = (String, &ModemFigures)> {
        let several = self.modems().count();
        let modems = self.modems();
        modems.map(move |(name, modem)| (label(name, several), modem))
    }

    /// The periodic tasks, with their names.
    pub fn periodic(&self) -> impl Iterator<Item = (&str, &PeriodicFigures)> + Clone {
        let tasks = self.tasks();
        tasks.map(|(subject, figures)| (subject.name.as_str(), figures))
    }

    /// The periodic tasks, with everything that was observed of them.
    pub(crate) fn tasks(
        &self,
    ) -> impl Iterator<Item = (&SubjectResults, &PeriodicFigures)> + Clone {
        self.subjects.iter().filter_map(|subject| {
            let Figures::Periodic(figures) = &subject.figures else {
                return None;
            };
            Some((subject, &**figures))
        })
    }

    /// Sums the contracts and the `surprises` up: what was expected, what came, and whether that is the same.
    pub fn summarise(&mut self, surprises: Vec<String>) {
        let judged = self.contracts.iter();
        let judged = judged.filter(|contract| contract.expected != Expectation::Any);
        // Where nothing is expected of any contract, all are told.
        let nothing_expected = judged.clone().next().is_none();
        let told = self.contracts.iter();
        let told = told.filter(|c| nothing_expected || c.expected != Expectation::Any);
        let has = |outcome: &Outcome| told.clone().any(|one| one.verdict.result == *outcome);
        let mut worst = [Outcome::Violated, Outcome::Inconclusive].into_iter();
        let result = worst.find(has).unwrap_or(Outcome::Met);
        let wished = judged.clone().map(|contract| contract.expected);
        self.expected = wished.max_by_key(|e| *e as u8).unwrap_or(Expectation::Any);
        let reasons = self.contracts.iter().flat_map(|contract| {
            let reasons = contract.verdict.reasons.iter();
            reasons.map(move |reason| format!("{}: {reason}", contract.name))
        });
        let reasons = surprises.iter().cloned().chain(reasons).collect();
        self.as_expected = surprises.is_empty() && self.contracts.iter().all(|c| c.as_expected);
        self.surprises = surprises;
        self.verdict = VerdictJson { result, reasons };
    }

    /// The first of these reasons of every component that they are about.
    fn of_each_subject(&self, reasons: &[String]) -> String {
        let about = |reason: &str| {
            let (name, _) = reason.split_once(": ")?;
            self.subjects.iter().position(|s| s.name == name)
        };
        let first = reasons.iter().enumerate().filter(|(index, reason)| {
            let mut earlier = reasons.iter().take(*index);
            earlier.all(|earlier| about(earlier) != about(reason))
        });
        let first: Vec<&str> = first.map(|(_, reason)| reason.as_str()).collect();
        match first[..] {
            [] => "no reason".to_owned(),
            _ => first.join(" and "),
        }
    }

    /// Everything that is not as expected, in words; empty if all is.
    pub fn unexpected(&self) -> impl Iterator<Item = String> + '_ {
        let contracts = self.contracts.iter().filter(|one| !one.as_expected);
        let contracts = contracts.map(|contract| {
            let VerdictJson { result, reasons } = &contract.verdict;
            let why = self.of_each_subject(reasons);
            let (name, expected) = (&contract.name, contract.expected);
            format!("{name} was to be {expected} and is {result}: {why}")
        });
        self.surprises.iter().cloned().chain(contracts)
    }
}

/// The machine itself standing still, as the witness saw it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Disturbed {
    /// Late wake-ups of the witness.
    pub count: u64,
    /// All its wake-ups; 0 without a witness.
    pub witness_wakeups: u64,
    /// How late they were together.
    pub total_ns: u64,
    /// The late ones among all, in parts per million.
    pub share_ppm: u32,
}

/// A verdict, with its reasons in words.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct VerdictJson {
    /// Met, violated or inconclusive.
    #[serde(with = "OutcomeJson")]
    pub result: Outcome,
    /// Why.
    pub reasons: Vec<String>,
}

impl From<&Verdict> for VerdictJson {
    /// Those reasons first that decided.
    fn from(verdict: &Verdict) -> Self {
        let decided = |reason: &&Reason| reason.implies() == Some(verdict.result);
        let (first, others): (Vec<_>, Vec<_>) = verdict.reasons.iter().partition(decided);
        let reasons = first.into_iter().chain(others).map(ToString::to_string);
        Self {
            result: verdict.result,
            reasons: reasons.collect(),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Outcome", rename_all = "lowercase")]
enum OutcomeJson {
    Met,
    Violated,
    Inconclusive,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Expectation", rename_all = "lowercase")]
enum ExpectationJson {
    Met,
    Violated,
    Inconclusive,
    Any,
}

impl RunResults {
    /// What became of one variant, by its name.
    pub fn variant(&self, name: &str) -> Option<&VariantResults> {
        self.variants.iter().find(|variant| variant.name == name)
    }

    /// As a file's bytes, ending in a newline.
    ///
    /// # Panics
    ///
    /// Never: plain numbers and strings are always JSON.
    pub fn to_json(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(self).expect("numbers and strings");
        bytes.push(b'\n');
        bytes
    }
}
