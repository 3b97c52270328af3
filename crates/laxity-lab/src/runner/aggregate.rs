//! From runs to results: each variant's repeats put together, judged, and compared with what the scenario expects.

use std::collections::BTreeMap;

use laxity_model::Span;
use laxity_model::verify::contract::{
    Evidence, Expectation, Outcome, RunFacts, as_expected, judge,
};

use super::RunDone;
use super::figures::{Component, components, worst};
use crate::evidence::results::{ContractResults, Disturbed, VariantResults, VerdictJson};
use crate::evidence::subjects::{ModemFigures, SubjectResults, label};
use crate::scenario::{ExpectedGrade, Loss, Outcome as ExpectedOutcome, Resolved, ResolvedVariant};

/// The results of one variant from all runs of the scenario; `None` if it was not run. `receivers` are those in each modem, by its name.
pub fn variant(
    resolved: &Resolved,
    index: usize,
    runs: &[RunDone],
    receivers: &BTreeMap<String, u32>,
) -> Option<VariantResults> {
    let of = |index: usize| {
        let own = runs.iter().filter(|run| run.planned.variant == index);
        own.collect::<Vec<_>>()
    };
    let variant = &resolved.variants[index];
    let made = of(index);
    let first = *made.first()?;
    let control = variant.control.map(of).unwrap_or_default();
    let components = components(&made, &control);
    let subjects = components.iter().filter_map(|component| {
        let name = &component.runs.first()?.probe.subject.name;
        let receivers = receivers.get(name).copied().unwrap_or(1);
        component.results(resolved.run.bytes, receivers)
    });
    let grades: Vec<_> = components.iter().flat_map(Component::grades).collect();
    let (grade, grade_reason) = worst(&grades);
    let steal = made.iter().map(|run| run.record.steal.map(Span::as_nanos));
    let mut results = VariantResults {
        name: variant.name.clone(),
        about: variant.about.clone(),
        grade,
        grade_reason,
        repeats: made.len() as u32,
        steal_ns: steal.sum(),
        disturbed: disturbed(&made),
        events_recorded: first.trace.as_ref().map_or(0, |t| t.events.len() as u64),
        events_lost: made.iter().map(|run| run.record.events_lost).sum(),
        subjects: subjects.collect(),
        contracts: Vec::new(),
        expected: Expectation::Any,
        surprises: Vec::new(),
        as_expected: false,
        verdict: VerdictJson {
            result: Outcome::Inconclusive,
            reasons: Vec::new(),
        },
    };
    judge_all(variant, &components, &mut results);
    Some(results)
}

fn disturbed(runs: &[&RunDone]) -> Disturbed {
    let all = runs.iter().flat_map(|run| &run.record.disturbances);
    Disturbed {
        count: all.clone().count() as u64,
        witness_wakeups: runs.iter().map(|run| run.record.witness_wakeups).sum(),
        total_ns: all.map(|d| d.to.saturating_since(d.from).as_nanos()).sum(),
        share_ppm: RunFacts::of(runs.iter().map(|run| &run.record)).disturbed_ppm,
    }
}

/// Judges a variant by each of its contracts, and compares all with what is expected of it.
fn judge_all(
    variant: &ResolvedVariant,
    components: &[Component<'_>],
    results: &mut VariantResults,
) {
    let evidence = components.iter().filter_map(|component| {
        Some(Evidence {
            subject: component.runs.first()?.probe.subject.clone(),
            runs: Component::observations(&component.runs),
            control: Component::observations(&component.control),
            grades: component.grades(),
        })
    });
    let evidence: Vec<Evidence> = evidence.collect();
    let facts = RunFacts {
        events_lost: results.events_lost,
        disturbed_ppm: results.disturbed.share_ppm,
    };
    for (contract, expected) in &variant.contracts {
        let verdict = judge(contract, &evidence, &facts);
        results.contracts.push(ContractResults {
            name: contract.name.clone(),
            expected: *expected,
            as_expected: as_expected(&verdict, *expected),
            verdict: VerdictJson::from(&verdict),
        });
    }
    let surprises = surprises(variant, results);
    results.summarise(surprises);
    let notes: Vec<String> = results.each_modem()
        .filter_map(|(whose, modem)| {
            let lost = modem.lost();
            let disturbed = lost.saturating_sub(modem.samples_lost_undisturbed);
            (disturbed > 0).then(|| {
                format!(
                    "{whose}{disturbed} of {lost} samples were lost or underrun where the machine itself stood still: not judged"
                )
            })
        })
        .collect();
    results.verdict.reasons.extend(notes);
}

/// What differs from the scenario's other expectations.
fn surprises(variant: &ResolvedVariant, results: &VariantResults) -> Vec<String> {
    let mut surprises = Vec::new();
    for (whose, modem) in results.each_modem() {
        if modem.samples_undelivered > 0 {
            surprises.push(format!(
                "{whose}the far end came too late for {} samples",
                modem.samples_undelivered
            ));
        }
    }
    if !variant.devices.is_empty() {
        losses(variant.expect.lost, results, &mut surprises);
        transfers(variant.expect.transfer, results, &mut surprises);
    }
    if let Some(expected) = variant.expect.grade {
        grades(expected, variant, results, &mut surprises);
    }
    surprises
}

/// That nothing is lost is expected of every modem, that something is of one at least.
fn losses(expected: Loss, results: &VariantResults, surprises: &mut Vec<String>) {
    match expected {
        Loss::None => {
            for (whose, modem) in results.each_modem() {
                let lost = modem.samples_lost_undisturbed;
                if lost > 0 {
                    surprises.push(format!(
                        "{whose}{lost} samples were lost or underrun while nothing disturbed, none was to be"
                    ));
                }
            }
        }
        Loss::Some
            if results
                .each_modem()
                .all(|(_, modem)| modem.samples_lost_undisturbed == 0) =>
        {
            surprises.push("no sample was lost or underrun, some were to be".into());
        }
        Loss::Some | Loss::Any => {}
    }
}

/// That the file arrives is expected of every modem, that it does not of one at least.
fn transfers(expected: ExpectedOutcome, results: &VariantResults, surprises: &mut Vec<String>) {
    let complete = |modem: &ModemFigures| modem.transfer.completed && modem.transfer.checksum_ok;
    match expected {
        ExpectedOutcome::Complete => {
            for (whose, modem) in results.each_modem() {
                if !complete(modem) {
                    let why = modem.transfer.failure.as_deref();
                    let why = why.unwrap_or("wrong checksum");
                    surprises.push(format!("{whose}the transfer was to complete: {why}"));
                }
            }
        }
        ExpectedOutcome::Fails if results.each_modem().all(|(_, modem)| complete(modem)) => {
            surprises.push("the transfer was to fail, and completed".into());
        }
        ExpectedOutcome::Fails | ExpectedOutcome::Any => {}
    }
}

fn grades(
    expected: ExpectedGrade,
    variant: &ResolvedVariant,
    results: &VariantResults,
    surprises: &mut Vec<String>,
) {
    match (expected, results.grade.as_deref()) {
        (ExpectedGrade::Enforced, Some("unenforced")) => {
            let why = results.grade_reason.clone().unwrap_or_default();
            surprises.push(format!("the reservation is not enforced: {why}"));
        }
        (ExpectedGrade::Unenforced, Some("enforced")) => {
            surprises.push("the reservation was to be unenforced, and is enforced".into());
        }
        _ => {}
    }
    let mut reserved = variant.devices.iter();
    let reserved = reserved.by_ref().filter(|d| d.placing.request().is_some());
    let ungranted = |subject: &&SubjectResults| subject.grade.is_none();
    for device in reserved {
        let mut subjects = results.subjects.iter().filter(ungranted);
        if subjects.any(|subject| subject.name == device.name) {
            let whose = label(&device.name, variant.devices.len());
            surprises.push(format!(
                "{whose}the reservation was never granted: the modem did not get so far"
            ));
        }
    }
}
