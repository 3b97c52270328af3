//! The results of `run`, as a program reads them.
//!
//! Times are whole nanoseconds and their names say so. Histograms lose nothing: the counts of the buckets and the overflow add up to
//! `count`. The file has a version; a reader of version 1 may rely on every field here, and must pass over those it does not know.

use std::collections::BTreeMap;

use laxity_model::Grade;
use laxity_model::base::histogram::Histogram;
use laxity_model::verify::contract::{Expectation, Outcome, Reason, Verdict};
use serde::{Deserialize, Serialize};

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
    /// The variants that ran, in the scenario's order.
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
    /// Where the device's processing ran: `interrupt`, `thread 24`, `reserved 2ms/8ms`.
    pub placement: String,
    /// Who enforced the reservation: `slots`, `deadline`; none without one.
    pub enforcer: Option<String>,
    /// Whether it was enforced: `enforced`, `unenforced`; none without a reservation.
    pub grade: Option<String>,
    /// Why it was not.
    pub grade_reason: Option<String>,
    /// How many times it ran.
    pub repeats: u32,
    /// How many receivers demodulated the samples, to make up the load asked for.
    pub receivers: u32,
    /// Bits in which a receiver differed from the first one, over all repeats.
    pub receiver_bit_errors: u64,
    /// The file that was fetched.
    pub transfer: Transfer,
    /// Samples that came in and were overwritten before they were read.
    pub samples_lost: u64,
    /// Samples that were due to go out and were not there.
    pub samples_underrun: u64,
    /// Of those lost or underrun, how many not while the machine itself stood still: these are judged.
    pub samples_lost_undisturbed: u64,
    /// Samples that the far end had not delivered when their time came: the emulation's own failure, which makes the run worthless.
    pub samples_undelivered: u64,
    /// The most samples that waited after processing.
    pub samples_pending_max: u64,
    /// Samples that waited after processing, at each interrupt.
    pub samples_pending: HistogramJson,
    /// Time from the begin of a service call to its end.
    pub processing_ns: HistogramJson,
    /// The part of one processor that the device's processing took, 0 to 1.
    pub cpu_share: f64,
    /// Time between wake-ups of the periodic co-thread.
    pub cothread_gap_ns: Option<GapJson>,
    /// The same without the device.
    pub control_gap_ns: Option<GapJson>,
    /// Both, repeat by repeat.
    pub gap_repeats: Vec<GapRepeat>,
    /// Whatever else was observed, by the quantity's name with its unit.
    pub quantities: BTreeMap<String, HistogramJson>,
    /// Context switches of the device's thread.
    pub context_switches: u64,
    /// Those of them that were not its own will.
    pub context_switches_involuntary: u64,
    /// Page faults of what ran reserved or in real time.
    pub page_faults: u64,
    /// Time taken by the hypervisor, as the kernel counts it; none in the twin.
    pub steal_ns: Option<u64>,
    /// When the machine itself stood still.
    pub disturbed: Disturbed,
    /// What the device did, and when.
    pub phases: Vec<PhaseTime>,
    /// Events in the trace.
    pub events_recorded: u64,
    /// Events that did not fit the ring.
    pub events_lost: u64,
    /// Each contract it was judged by.
    pub contracts: Vec<ContractResults>,
    /// What the scenario expects: of all contracts together, leaving out those of which it expects nothing.
    #[serde(with = "ExpectationJson")]
    pub expected: Expectation,
    /// What is not as the scenario expects, beside the contracts: samples, the transfer, the grade.
    pub surprises: Vec<String>,
    /// Whether everything came as the scenario expects.
    pub as_expected: bool,
    /// The judgement on all contracts of which the scenario expects something.
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
    /// Fills in the grade of what was granted.
    pub fn set_grade(&mut self, grade: &Grade) {
        self.grade = Some(grade.to_string());
        self.grade_reason = match grade {
            Grade::Enforced => None,
            Grade::Unenforced { reason } => Some(reason.clone()),
        };
    }

    /// Sums the contracts and the `surprises` up: what was expected, what came, and whether that is the same.
    pub fn summarise(&mut self, surprises: Vec<String>) {
        let judged = self
            .contracts
            .iter()
            .filter(|contract| contract.expected != Expectation::Any);
        let has = |outcome| {
            judged
                .clone()
                .any(|contract| contract.verdict.result == outcome)
        };
        let result = if has(Outcome::Violated) {
            Outcome::Violated
        } else if has(Outcome::Inconclusive) {
            Outcome::Inconclusive
        } else {
            Outcome::Met
        };
        let wished = judged.clone().map(|contract| contract.expected);
        self.expected = wished.max_by_key(|e| *e as u8).unwrap_or(Expectation::Any);
        let reasons = self.contracts.iter().flat_map(|contract| {
            contract
                .verdict
                .reasons
                .iter()
                .map(move |reason| format!("{}: {reason}", contract.name))
        });
        let reasons = surprises.iter().cloned().chain(reasons).collect();
        self.as_expected = surprises.is_empty() && self.contracts.iter().all(|c| c.as_expected);
        self.surprises = surprises;
        self.verdict = VerdictJson { result, reasons };
    }

    /// Everything that is not as expected, in words; empty if all is.
    pub fn unexpected(&self) -> impl Iterator<Item = String> + '_ {
        let contracts = self
            .contracts
            .iter()
            .filter(|contract| !contract.as_expected);
        let contracts = contracts.map(|contract| {
            let why = contract
                .verdict
                .reasons
                .first()
                .map_or("no reason", String::as_str);
            let (name, result) = (&contract.name, contract.verdict.result);
            format!(
                "{name} was to be {} and is {result}: {why}",
                contract.expected
            )
        });
        self.surprises.iter().cloned().chain(contracts)
    }

    /// The co-thread's gap against its control, in millionths: p99, p99.9 and undisturbed maximum, each the median of the repeats
    /// divided by the median of the controls. None without repeats.
    #[must_use]
    pub fn gap_ratios_ppm(&self) -> Option<[u64; 3]> {
        let figures: [fn(&GapFigures) -> u64; 3] =
            [|g| g.p99_ns, |g| g.p999_ns, |g| g.undisturbed_max_ns];
        let mut ratios = [0; 3];
        for (ratio, figure) in ratios.iter_mut().zip(figures) {
            let with = median(self.gap_repeats.iter().map(|r| figure(&r.variant)))?;
            let without = median(self.gap_repeats.iter().map(|r| figure(&r.control)))?;
            let millionths = (u128::from(with) * 1_000_000).checked_div(u128::from(without))?;
            *ratio = u64::try_from(millionths).ok()?;
        }
        Some(ratios)
    }
}

/// The median; the lower one of an even number.
fn median(values: impl Iterator<Item = u64>) -> Option<u64> {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    let middle = values.len().checked_sub(1)? / 2;
    values.get(middle).copied()
}

/// The transfer of a file through the device.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Transfer {
    /// Whether all of it arrived, in every repeat.
    pub completed: bool,
    /// Whether what arrived is what was sent.
    pub checksum_ok: bool,
    /// Its length.
    pub bytes: u64,
    /// How long it took, from request to last byte: the median of the repeats; none if it did not complete.
    pub duration_ns: Option<u64>,
    /// Why it did not complete; none if it did.
    pub failure: Option<String>,
    /// What the modems agreed on downstream, in bit/s; 0 before they did.
    pub rate_down_bit_s: u64,
    /// What they agreed on upstream, in bit/s.
    pub rate_up_bit_s: u64,
    /// Frames that the link sent again.
    pub retransmissions: u64,
    /// Times the modems learnt the line again.
    pub retrainings: u64,
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

/// A phase of the device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PhaseTime {
    /// Its name: `training`.
    pub name: String,
    /// When it began, after the start of the run.
    pub start_ns: u64,
    /// How long it was.
    pub duration_ns: u64,
}

/// Gaps between wake-ups.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GapJson {
    /// All of them.
    #[serde(flatten)]
    pub all: HistogramJson,
    /// The largest that no disturbance overlaps.
    pub undisturbed_max: Option<u64>,
}

/// The gaps of one repeat, and of the control run beside it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GapRepeat {
    /// With the device.
    pub variant: GapFigures,
    /// Without.
    pub control: GapFigures,
}

/// The figures that gaps are judged by.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GapFigures {
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The 99.9th percentile.
    pub p999_ns: u64,
    /// The largest that no disturbance overlaps.
    pub undisturbed_max_ns: u64,
    /// The largest of all.
    pub max_ns: u64,
}

/// A histogram.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct HistogramJson {
    /// The values' unit: `ns`, `samples`, `count`.
    pub unit: String,
    /// How many values there are.
    pub count: u64,
    /// The smallest; like all that follow, none if there are no values.
    pub min: Option<u64>,
    /// The largest.
    pub max: Option<u64>,
    /// The mean, rounded down.
    pub mean: Option<u64>,
    /// The median, by nearest rank.
    pub p50: Option<u64>,
    /// The 90th percentile.
    pub p90: Option<u64>,
    /// The 99th percentile.
    pub p99: Option<u64>,
    /// The 99.9th percentile.
    pub p999: Option<u64>,
    /// Values too large for any bucket.
    pub overflow: u64,
    /// Smallest value and count of each bucket that holds any, ascending.
    pub buckets: Vec<(u64, u64)>,
}

impl HistogramJson {
    /// A histogram of values in this unit.
    #[must_use]
    pub fn new(unit: &str, histogram: &Histogram) -> Self {
        Self {
            unit: unit.into(),
            count: histogram.count(),
            min: histogram.min(),
            max: histogram.max(),
            mean: histogram.mean(),
            p50: histogram.percentile(500_000),
            p90: histogram.percentile(900_000),
            p99: histogram.percentile(990_000),
            p999: histogram.percentile(999_000),
            // A log-linear histogram has a bucket for every value.
            overflow: 0,
            buckets: histogram.buckets().map(|b| (b.low, b.count)).collect(),
        }
    }
}

impl GapJson {
    /// All gaps in nanoseconds, and the largest undisturbed one.
    #[must_use]
    pub fn new(gaps: &Histogram, undisturbed_max_ns: Option<u64>) -> Self {
        Self {
            all: HistogramJson::new("ns", gaps),
            undisturbed_max: undisturbed_max_ns,
        }
    }
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
    /// As a file's bytes, ending in a newline.
    ///
    /// # Panics
    ///
    /// Never: plain numbers and strings are always JSON.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(self).expect("numbers and strings");
        bytes.push(b'\n');
        bytes
    }
}
