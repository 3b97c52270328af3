//! The results of `run`, as a program reads them.
//!
//! Times are whole nanoseconds and their names say so. Histograms lose nothing: the counts of the buckets and the overflow add up to
//! `count`. The file has a version; a reader of version 1 may rely on every field here, and must pass over those it does not know.

use std::collections::BTreeMap;

use laxity_model::verify::contract::{Cause, Expectation, Finding, Outcome, Reason, Verdict};
use serde::{Deserialize, Serialize};

use super::flat;
use super::subjects::{
    CommandFigures, DeviceFigures, Figures, ModemFigures, PeriodicFigures, StreamFigures,
    SubjectResults, label,
};
use crate::scenario::kinds;

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
    /// Where each figure of variants and components comes from, by its name here (`processing_ns`); where that is not the same of all components that have it, by
    /// the component's name too (`player.processing_ns`).
    pub provenance: BTreeMap<String, Provenance>,
    /// What the reader should know first: that the twin stands in for the live host, and why.
    pub notices: Vec<String>,
    /// The variants that ran, in the scenario's order. In the file the figures of a variant's only modem, and of its only periodic task, are among
    /// the variant's own fields too.
    #[serde(serialize_with = "flat::variants")]
    pub variants: Vec<VariantResults>,
    /// Those that did not.
    pub skipped: Vec<Skipped>,
    /// The verdict over all variants: met if each came as expected, none if so and no contract judged any; the reasons name those that did not.
    pub verdict: SummaryJson,
    /// The exit code of the command, if all outputs can be written.
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
    /// The frequency governor; none where there is no frequency control, `unknown` where that cannot be read.
    pub governor: Option<String>,
    /// The kernel's clock source.
    pub clock_source: String,
    /// The hypervisor; none on bare metal, or where it does not show.
    pub hypervisor: Option<String>,
    /// Time taken by the hypervisor during the whole run, all processors together, as the kernel counts it; none where it was not read of every run.
    pub steal_ns: Option<u64>,
    /// How fast it was during the runs; none where that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<Speed>,
}

/// How fast a machine was: what a reference block took, a fixed piece of the modem's own signal processing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Speed {
    /// Its processor time: the median.
    pub reference_block_ns: u64,
    /// The shortest.
    pub shortest_ns: u64,
    /// The longest.
    pub longest_ns: u64,
    /// How often it was measured.
    pub blocks: u64,
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
    /// It was put in, and came out as it was.
    Charged {
        /// By whom.
        by: String,
    },
}

/// A variant that did not run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Skipped {
    /// The variant's name.
    pub name: String,
    /// Why not.
    pub reason: String,
    /// It was to run and failed, so that the run ends in error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_failed: bool,
}

/// What is not as a scenario expects, beside its contracts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Surprise {
    /// In words.
    pub what: String,
    /// It is not the machine's doing as far as anybody could see.
    pub is_certain: bool,
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
    /// Time taken by the hypervisor, as the kernel counts it; none in the twin, and where it was not read of every run.
    pub steal_ns: Option<u64>,
    /// How fast the machine was, measured before and after each run; none in the twin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<Speed>,
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
    /// What else it expects, in words: of samples, the transfer, the grade.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected_besides: Vec<String>,
    /// What of the conditions was not as declared, such as a command that failed: then nothing is judged, and the run ends in error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// Whether the machine may be why each of them failed, as it stood still meanwhile: then the run ends inconclusive.
    #[serde(skip)]
    pub failures_are_open: bool,
    /// What is not as the scenario expects, beside the contracts: samples, the transfer, the grade.
    pub surprises: Vec<String>,
    /// Of these, whether at least one is certain: not the machine's doing as far as anybody could see.
    #[serde(skip)]
    pub is_certain: bool,
    /// Whether everything came as the scenario expects.
    pub as_expected: bool,
    /// The judgement on all contracts of which the scenario expects something; on all where it expects nothing of any.
    pub verdict: SummaryJson,
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
        let several = self.each_device().count();
        let modems = self.modems();
        modems.map(move |(name, modem)| (label(name, several), modem))
    }

    /// The devices, each with its name for the begin of a sentence where there are several.
    pub(crate) fn each_device(&self) -> impl Iterator<Item = (String, &DeviceFigures)> {
        let devices = self.subjects.iter();
        let devices = devices.filter_map(|one| Some((&one.name, one.figures.device()?)));
        let several = devices.clone().count();
        devices.map(move |(name, device)| (label(name, several), device))
    }

    /// The devices that are only received or only played, with everything that was observed of them.
    pub fn streams(&self) -> impl Iterator<Item = (&SubjectResults, &StreamFigures)> + Clone {
        self.subjects.iter().filter_map(|subject| {
            let Figures::Stream(figures) = &subject.figures else {
                return None;
            };
            Some((subject, &**figures))
        })
    }

    /// The programs of the user's own, with everything that was observed of them.
    pub(crate) fn commands(
        &self,
    ) -> impl Iterator<Item = (&SubjectResults, &CommandFigures)> + Clone {
        self.subjects.iter().filter_map(|subject| {
            let Figures::Command(figures) = &subject.figures else {
                return None;
            };
            Some((subject, figures))
        })
    }

    /// What comes over networks.
    pub(crate) fn flows(&self) -> impl Iterator<Item = &SubjectResults> + Clone {
        let kinds = [kinds::VIDEO.name, kinds::BULK.name];
        let all = self.subjects.iter();
        all.filter(move |subject| kinds.contains(&subject.kind.as_str()))
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
    pub fn summarise(&mut self, surprises: Vec<Surprise>) {
        self.is_certain = surprises.iter().any(|one| one.is_certain);
        let surprises: Vec<String> = surprises.into_iter().map(|one| one.what).collect();
        let judged = self.contracts.iter();
        let judged = judged.filter(|contract| contract.expected != Expectation::Any);
        // Where nothing is expected of any contract, all are told.
        let nothing_expected = judged.clone().next().is_none();
        let told = self.contracts.iter();
        let told = told.filter(|c| nothing_expected || c.expected != Expectation::Any);
        let has = |outcome: &Outcome| told.clone().any(|one| one.verdict.result == *outcome);
        let mut worst = [Outcome::Violated, Outcome::Inconclusive].into_iter();
        let has_failed = !self.failures.is_empty();
        let result = (!self.contracts.is_empty()).then(|| {
            if has_failed {
                Outcome::Inconclusive
            } else {
                worst.find(has).unwrap_or(Outcome::Met)
            }
        });
        let wished = judged.clone().map(|contract| contract.expected);
        self.expected = wished.max_by_key(|e| *e as u8).unwrap_or(Expectation::Any);
        let reasons = self.contracts.iter().flat_map(|contract| {
            let reasons = contract.verdict.reasons.iter();
            reasons.map(move |reason| format!("{}: {reason}", contract.name))
        });
        let reasons = self
            .failures
            .iter()
            .chain(&surprises)
            .cloned()
            .chain(reasons);
        let reasons = reasons.collect();
        self.as_expected =
            !has_failed && surprises.is_empty() && self.contracts.iter().all(|c| c.as_expected);
        self.surprises = surprises;
        self.verdict = SummaryJson { result, reasons };
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

    /// Whether something failed, and not as the machine stood still.
    pub fn has_failed(&self) -> bool {
        !self.failures.is_empty() && !self.failures_are_open
    }

    /// Whether what is not as expected may all be the machine's doing.
    pub fn is_open(&self) -> bool {
        let mut contracts = self.contracts.iter().filter(|one| !one.as_expected);
        let is_open = |one: &ContractResults| one.verdict.result == Outcome::Inconclusive;
        !self.is_certain && contracts.all(is_open)
    }

    /// Everything that is not as expected, in words; empty if all is.
    pub fn unexpected(&self) -> impl Iterator<Item = String> + '_ {
        let is_judged = self.failures.is_empty();
        let contracts = self.contracts.iter();
        let contracts = contracts.filter(move |one| is_judged && !one.as_expected);
        let contracts = contracts.map(|contract| {
            let VerdictJson { result, reasons } = &contract.verdict;
            let why = self.of_each_subject(reasons);
            let (name, expected) = (&contract.name, contract.expected);
            format!("{name} was to be {expected} and is {result}: {why}")
        });
        let others = self.failures.iter().chain(&self.surprises);
        others.cloned().chain(contracts)
    }
}

/// Processors of the machine standing still, as the witness saw it, and dispatchers.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Disturbed {
    /// How often one did.
    pub count: u64,
    /// All wake-ups of the witness; 0 without a witness.
    pub witness_wakeups: u64,
    /// How long they did together.
    pub total_ns: u64,
    /// For how long of that the one that crawled most did: was far slower than usual, and went on.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub crawled_ns: u64,
    /// The share of the runs, in parts per million: of the witness's wake-ups, or of the time, whichever is more; of the processor that was disturbed
    /// most, or of all together where somebody may have run on any of them.
    pub share_ppm: u32,
    /// Which did, by the program's number, where it was another than the first: a halt excuses nobody on another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_processor: Vec<DisturbedProcessor>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_nothing(nanos: &u64) -> bool {
    *nanos == 0
}

/// One processor standing still.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DisturbedProcessor {
    /// The program's number of it.
    pub processor: u16,
    /// How often it did.
    pub count: u64,
    /// For how long together.
    pub total_ns: u64,
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

impl VerdictJson {
    /// Those reasons first that decided; a control that is missing with why, where that is known.
    pub(crate) fn of(verdict: &Verdict, no_control: Option<&str>) -> Self {
        let decided = |reason: &&Reason| reason.implies() == Some(verdict.result);
        let (first, others): (Vec<_>, Vec<_>) = verdict.reasons.iter().partition(decided);
        let told = |reason: &Reason| match (&reason.cause, no_control) {
            (
                Cause::Values {
                    finding: Finding::NoControl(_),
                    ..
                },
                Some(why),
            ) => format!("{reason}: {why}"),
            _ => reason.to_string(),
        };
        let reasons = first.into_iter().chain(others).map(told);
        Self {
            result: verdict.result,
            reasons: reasons.collect(),
        }
    }
}

/// What several verdicts come to, with the reasons in words.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SummaryJson {
    /// Met, violated or inconclusive; none where no contract judged anything.
    #[serde(with = "judged")]
    pub result: Option<Outcome>,
    /// Why.
    pub reasons: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Outcome", rename_all = "lowercase")]
enum OutcomeJson {
    Met,
    Violated,
    Inconclusive,
}

/// An outcome, or `null` where nothing was judged.
mod judged {
    use super::{Deserialize, Outcome, OutcomeJson, Serialize};

    #[derive(Serialize, Deserialize)]
    struct Judged(#[serde(with = "OutcomeJson")] Outcome);

    pub(super) fn serialize<S: serde::Serializer>(
        result: &Option<Outcome>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        result.map(Judged).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Outcome>, D::Error> {
        let judged = Option::<Judged>::deserialize(deserializer)?;
        Ok(judged.map(|judged| judged.0))
    }
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
