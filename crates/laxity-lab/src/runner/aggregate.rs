//! From runs to results: each variant's repeats put together, judged, and compared with what the scenario expects.

mod halts;

use laxity_model::verify::contract::{
    Cause, Doubts, Evidence, Expectation, HaltsUnseen, Outcome, Quantity, RunFacts, Verdict,
    as_expected, judge,
};

use super::RunDone;
use super::cause::{Held, outgrew_usual};
use super::commands::CommandEnd;
use super::conclude::{Circumstances, steal_ns};
use super::figures::{Component, Told, components, worst};
use super::longest::{longest_call, proposed};
use super::{unmet, unseen};
use halts::{disturbed, halts};

use crate::each_once::each_once;
use crate::evidence::results::{
    ContractResults, Speed, SummaryJson, Surprise, VariantResults, VerdictJson,
};
use crate::evidence::subjects::{
    DeviceFigures, Figures, ModemFigures, Proposed, SubjectResults, label,
};
use crate::scenario::kinds::LOSSES;
use crate::scenario::{
    Chosen, Expectations, ExpectedGrade, Loss, Outcome as ExpectedOutcome, Resolved,
    ResolvedDevice, ResolvedVariant,
};

/// The results of one variant from all runs of the scenario; `None` if it was not run. how they were made says the rest.
pub fn variant(
    resolved: &Resolved,
    index: usize,
    runs: &[RunDone],
    circumstances: &Circumstances,
) -> Option<VariantResults> {
    let variant = &resolved.variants[index];
    let made = runs_of(runs, index);
    let first = *made.first()?;
    let control = yardstick(resolved, variant.control, runs, circumstances);
    let twin = (!circumstances.live).then_some(resolved.host.profile);
    let components = components(&made, control.as_deref().unwrap_or_default());
    let subjects = components.iter().filter_map(|component| {
        let name = &component.runs.first()?.probe.subject.name;
        let receivers = circumstances.receivers.get(name).copied().unwrap_or(1);
        let device = variant.devices.iter().find(|device| device.name == *name);
        let told = device.map(|device| {
            let of = (index, &circumstances.supply);
            let proposed = proposed(resolved, of, device, longest_call(runs, name));
            let held = Held::of(variant, device, (twin, circumstances.tick()));
            told(component, proposed, held)
        });
        component.results(resolved.run.bytes, receivers, told.unwrap_or_default())
    });
    let grades: Vec<_> = components.iter().flat_map(Component::grades).collect();
    let (grade, grade_reason) = worst(&grades);
    let halts = halts(&made);
    let overlooked = unseen::overlooked(variant, circumstances.tick());
    let facts = RunFacts::of_halts(&halts).beside_budgets(overlooked);
    let doubts = Vec::from_iter(components.iter().map(|one| Doubts {
        outgrown: outgrown(variant, one, circumstances),
        ..unseen::doubts(resolved, index, one, runs, circumstances.tick())
    }));
    let mut results = VariantResults {
        name: variant.name.clone(),
        about: variant.about.clone(),
        grade,
        grade_reason,
        repeats: made.len() as u32,
        steal_ns: steal_ns(made.iter().map(|run| run.record.steal)),
        disturbed: disturbed(&made, &halts),
        events_recorded: first.trace.as_ref().map_or(0, |t| t.events.len() as u64),
        events_lost: facts.events_lost,
        subjects: subjects.collect(),
        contracts: Vec::new(),
        expected: Expectation::Any,
        speed: Speed::of(made.iter().flat_map(|run| run.speed.iter().copied())),
        expected_besides: variant.expected_besides(),
        failures: failures(index, &made, circumstances),
        failures_are_open: failures_are_open(index, &made, circumstances),
        surprises: Vec::new(),
        is_certain: false,
        as_expected: false,
        verdict: SummaryJson::default(),
    };
    judge_all(
        (variant, unmet::loads(variant, circumstances, &results)),
        (&components, &doubts),
        (&facts, control.err().as_deref()),
        &mut results,
    );
    results
        .verdict
        .reasons
        .extend(notices((resolved, index), &made, circumstances));
    Some(results)
}

/// What is told of a device besides what was seen of it, which had so much.
fn told(component: &Component<'_>, proposed: Option<Proposed>, held: Option<Held>) -> Told {
    Told {
        proposed,
        lost_because: held.and_then(|held| held.causes(component.losses(), &component.grades())),
    }
}

/// What convicts nobody of a component, a device or none, where all that it lost was in calls longer than those that laxity proposed its reservation for, or without
/// one than are usual, and had the processor for them. In a twin calls are as long as was foreseen.
fn outgrown(
    variant: &ResolvedVariant,
    component: &Component<'_>,
    circumstances: &Circumstances,
) -> &'static [Quantity] {
    let is_outgrown = |device: &ResolvedDevice| {
        let held = Held::of(variant, device, (None, circumstances.tick()));
        match (device.placing.request(), device.chosen, held) {
            (None, ..) => {
                let usual = device.load.work(device.device.period());
                outgrew_usual(component.losses(), usual)
            }
            (_, Chosen::Proposed(proposal), Some(held)) => {
                held.is_outgrown(component.losses(), |phase| proposal.planned(phase))
            }
            _ => false,
        }
    };
    let name = component.runs.first().map(|seen| &seen.probe.subject.name);
    let device = variant.devices.iter().find(|one| Some(&one.name) == name);
    match device {
        Some(device) if circumstances.live && is_outgrown(device) => LOSSES,
        _ => &[],
    }
}

/// What is told besides, each once: that runs were made again first, also those of its control.
fn notices(
    (resolved, index): (&Resolved, usize),
    runs: &[&RunDone],
    circumstances: &Circumstances,
) -> Vec<String> {
    let told = runs.iter().flat_map(|run| &run.record.notices);
    let again = circumstances.made_again.notice(resolved, index);
    again.into_iter().chain(each_once(told.cloned())).collect()
}

/// Those of a variant.
fn runs_of(runs: &[RunDone], index: usize) -> Vec<&RunDone> {
    let own = runs.iter().filter(|run| run.planned.variant == index);
    own.collect()
}

fn events_lost(runs: &[&RunDone]) -> u64 {
    runs.iter().map(|run| run.record.events_lost).sum()
}

/// Why these runs of a variant are not those that were declared; empty if they are.
fn failures(index: usize, runs: &[&RunDone], circumstances: &Circumstances) -> Vec<String> {
    let commands = runs.iter().flat_map(|run| &run.commands);
    let failures = commands.filter_map(CommandEnd::failure);
    let failed = circumstances.failed.get(&index).cloned();
    failures.chain(failed).collect()
}

/// Whether there are any, and all may be the machine's doing.
fn failures_are_open(index: usize, runs: &[&RunDone], circumstances: &Circumstances) -> bool {
    let commands = runs.iter().flat_map(|run| &run.commands);
    let failed = commands.filter(|end| end.failure().is_some());
    let all_open = failed.map(CommandEnd::may_be_machines).min();
    !circumstances.failed.contains_key(&index) && all_open == Some(true)
}

/// The runs of a control, or why nothing can be compared with them: by what cannot be judged itself nobody else is.
fn yardstick<'a>(
    resolved: &Resolved,
    control: Option<usize>,
    runs: &'a [RunDone],
    circumstances: &Circumstances,
) -> Result<Vec<&'a RunDone>, String> {
    let Some(index) = control else {
        return Ok(Vec::new());
    };
    let control = runs_of(runs, index);
    let lost = events_lost(&control);
    let lost = (lost > 0).then(|| Cause::EventsLost(lost).to_string());
    let mut reasons = failures(index, &control, circumstances).into_iter();
    match reasons.next().or(lost) {
        Some(why) => {
            let name = &resolved.variants[index].name;
            Err(format!("`{name}` is not judged itself, {why}"))
        }
        None => Ok(control),
    }
}

/// Judges a variant by each of its contracts, and compares all with what is expected of it; `no_control` says why there is none that could be
/// compared with.
fn judge_all(
    (variant, unmet): (&ResolvedVariant, Vec<String>),
    (components, doubts): (&[Component<'_>], &[Doubts]),
    (facts, no_control): (&RunFacts, Option<&str>),
    results: &mut VariantResults,
) {
    let evidence = components.iter().zip(doubts);
    let evidence = evidence.filter_map(|(component, doubts)| {
        let [runs, control] = component.observations();
        Some(Evidence {
            subject: component.runs.first()?.probe.subject.clone(),
            runs,
            control,
            grades: component.grades(),
            phases_over: variant.start.phases_over().to_vec(),
            doubts: *doubts,
        })
    });
    let evidence: Vec<Evidence> = evidence.collect();
    for (contract, expected) in &variant.contracts {
        let verdict = if results.failures.is_empty() {
            judge(contract, &evidence, facts)
        } else {
            // What was seen is of another run than the one that was declared.
            Verdict {
                result: Outcome::Inconclusive,
                reasons: Vec::new(),
            }
        };
        results.contracts.push(ContractResults {
            name: contract.name.clone(),
            expected: *expected,
            as_expected: as_expected(&verdict, *expected),
            verdict: VerdictJson::of(&verdict, no_control),
        });
    }
    let surprises = surprises(variant, doubts, results);
    results.summarise(surprises);
    let late = undelivered(results).filter(|_| asks_nothing(variant));
    let notes: Vec<String> = results.each_device()
        .flat_map(|(whose, device)| {
            let lost = device.lost();
            let disturbed = lost.saturating_sub(device.samples_lost_undisturbed);
            let excused = (disturbed > 0).then(|| {
                format!(
                    "{whose}{disturbed} of {lost} samples were lost or underrun where the machine itself stood still: not judged"
                )
            });
            // Where none was to be lost, what was not expected says why.
            let why = device.lost_because.as_ref().filter(|_| variant.expect.lost != Loss::None);
            let why = why.map(|why| format!("{whose}lost or underrun: {why}"));
            [why, excused].into_iter().flatten()
        })
        .chain(late)
        .chain(unmet)
        .collect();
    results.verdict.reasons.extend(notes);
}

/// What differs from the scenario's other expectations.
fn surprises(
    variant: &ResolvedVariant,
    doubts: &[Doubts],
    results: &VariantResults,
) -> Vec<Surprise> {
    let mut surprises = Vec::new();
    if !asks_nothing(variant) {
        let is_certain = false;
        surprises.extend(undelivered(results).map(|what| Surprise { what, is_certain }));
    }
    let subjects = results.subjects.iter().zip(doubts);
    if !variant.devices.is_empty() {
        let doubts = subjects.clone();
        let doubts = doubts.filter(|(subject, _)| subject.figures.device().is_some());
        let doubts = doubts.map(|(_, doubts)| *doubts);
        let devices: Vec<_> = results.each_device().zip(doubts).collect();
        losses(variant.expect.lost, &devices, &mut surprises);
    }
    if variant.devices.iter().any(ResolvedDevice::calls) {
        let is_modem = |figures: &Figures| matches!(figures, Figures::SoftModem(_));
        let doubts = subjects.filter(|(subject, _)| is_modem(&subject.figures));
        let doubts = doubts.map(|(_, doubts)| *doubts);
        let modems: Vec<_> = results.each_modem().zip(doubts).collect();
        transfers(variant.expect.transfer, &modems, &mut surprises);
    }
    surprises = as_far_as_seen(surprises, &variant.expect, results.events_lost);
    if let Some(expected) = variant.expect.grade {
        grades(expected, variant, results, &mut surprises);
    }
    surprises
}

/// What was not expected, if so many events were lost: then what was seen may be wrong, in either direction.
fn as_far_as_seen(
    mut surprises: Vec<Surprise>,
    expected: &Expectations,
    events_lost: u64,
) -> Vec<Surprise> {
    let is_asked = expected.lost != Loss::Any || expected.transfer != ExpectedOutcome::Any;
    if events_lost > 0 && is_asked {
        for surprise in &mut surprises {
            surprise.is_certain = false;
        }
        surprises.push(Surprise {
            what: Cause::EventsLost(events_lost).to_string(),
            is_certain: false,
        });
    }
    surprises
}

/// Whether nothing is to go well here, so that nothing is in doubt where the far end came too late.
fn asks_nothing(variant: &ResolvedVariant) -> bool {
    let expected = &variant.expect;
    variant.contracts.is_empty()
        && expected.lost != Loss::None
        && expected.transfer != ExpectedOutcome::Complete
}

/// What the far end failed to deliver in time: the emulation's own failure.
fn undelivered(results: &VariantResults) -> impl Iterator<Item = String> + '_ {
    results.each_modem().filter_map(|(whose, modem)| {
        let late = modem.samples_undelivered;
        (late > 0).then(|| format!("{whose}the far end came too late for {late} samples"))
    })
}

/// What is not as expected of a device, unless nobody saw whether it was the machine's doing, or its calls outgrew what was foreseen: what was promised is the
/// reservation, which was kept; how long calls would be was measured before.
fn of_device((what, is_certain): (String, bool), doubts: Doubts) -> Surprise {
    let open = match doubts.halts_unseen {
        HaltsUnseen::None if doubts.outgrown.is_empty() => return Surprise { what, is_certain },
        HaltsUnseen::None => format!("; {}", Cause::Outgrown),
        HaltsUnseen::Of(_) | HaltsUnseen::All => unseen::TOLD.to_owned(),
    };
    Surprise {
        what: what + &open,
        is_certain: false,
    }
}

fn certain(what: impl Into<String>) -> Surprise {
    Surprise {
        what: what.into(),
        is_certain: true,
    }
}

/// That nothing is lost is expected of every device, that something is of one at least. What was lost while the machine stood still tells neither
/// where some of the halts that bear on a device may have been somebody's doing.
fn losses(
    expected: Loss,
    devices: &[((String, &DeviceFigures), Doubts)],
    surprises: &mut Vec<Surprise>,
) {
    match expected {
        Loss::None => {
            for ((whose, device), doubts) in devices {
                let held = doubts.held;
                let lost = device.samples_lost_undisturbed;
                if lost > 0 {
                    let why = device.lost_because.as_ref();
                    let why = why.map_or_else(String::new, |why| format!(": {why}"));
                    let what = format!(
                        "{whose}{lost} samples were lost or underrun while nothing disturbed, none was to be{why}"
                    );
                    surprises.push(of_device((what, true), *doubts));
                } else if held > 0 && device.lost() > 0 {
                    let lost = device.lost();
                    surprises.push(Surprise {
                        what: format!("{whose}{lost} samples were lost or underrun while somebody, or the machine, held the processor {held} times, and nobody was found"),
                        is_certain: false,
                    });
                }
            }
        }
        Loss::Some
            if devices
                .iter()
                .all(|((_, device), _)| device.samples_lost_undisturbed == 0) =>
        {
            surprises.push(Surprise {
                what: "no sample was lost or underrun while nothing disturbed, some were to be"
                    .to_owned(),
                is_certain: devices.iter().all(|((_, device), _)| device.lost() == 0),
            });
        }
        Loss::Some | Loss::Any => {}
    }
}

/// That the file arrives is expected of every modem, that it does not of one at least.
fn transfers(
    expected: ExpectedOutcome,
    modems: &[((String, &ModemFigures), Doubts)],
    surprises: &mut Vec<Surprise>,
) {
    let complete = |modem: &ModemFigures| modem.transfer.completed && modem.transfer.checksum_ok;
    match expected {
        ExpectedOutcome::Complete => {
            for ((whose, modem), doubts) in modems {
                if !complete(modem) {
                    let why = modem.transfer.failure.as_deref();
                    let why = why.unwrap_or("wrong checksum");
                    let is_certain = !is_excused(modem);
                    let device = &modem.device;
                    let excused = device
                        .lost()
                        .saturating_sub(device.samples_lost_undisturbed);
                    let after = match excused {
                        0 => String::new(),
                        lost => format!(
                            ", after {lost} samples were lost where the machine stood still"
                        ),
                    };
                    let what = format!("{whose}the transfer was to complete: {why}{after}");
                    surprises.push(of_device((what, is_certain), *doubts));
                }
            }
        }
        ExpectedOutcome::Fails if modems.iter().all(|((_, modem), _)| complete(modem)) => {
            surprises.push(certain("the transfer was to fail, and completed"));
        }
        ExpectedOutcome::Fails | ExpectedOutcome::Any => {}
    }
}

/// Whether the modem may have failed for what is not its own: the machine stood still, or the far end, which is emulated on another processor, came too
/// late; and nothing was lost besides.
const fn is_excused(modem: &ModemFigures) -> bool {
    let lost = &modem.device;
    lost.samples_lost_undisturbed == 0 && (lost.lost() > 0 || modem.samples_undelivered > 0)
}

fn grades(
    expected: ExpectedGrade,
    variant: &ResolvedVariant,
    results: &VariantResults,
    surprises: &mut Vec<Surprise>,
) {
    match (expected, results.grade.as_deref()) {
        (ExpectedGrade::Enforced, Some("unenforced")) => {
            let why = results.grade_reason.clone().unwrap_or_default();
            surprises.push(certain(format!("the reservation is not enforced: {why}")));
        }
        (ExpectedGrade::Unenforced, Some("enforced")) => {
            let what = "the reservation was to be unenforced, and is enforced";
            surprises.push(certain(what));
        }
        (_, Some("uncertain")) => {
            let why = results.grade_reason.clone().unwrap_or_default();
            surprises.push(Surprise {
                what: format!("whether the reservation is enforced cannot be told: {why}"),
                is_certain: false,
            });
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
            surprises.push(certain(format!(
                "{whose}the reservation was never granted: its holder did not get so far"
            )));
        }
    }
}

#[cfg(test)]
mod tests;
