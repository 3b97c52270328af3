//! Scenarios on this machine: one run after another, at the load that the scenario asks for.

use std::collections::BTreeMap;

use laxity::{LiveConfig, LiveHost, Watch};
use laxity_model::admission::Supply;
use laxity_model::enforce::Witness;
use laxity_model::{Host, ProcessorId};

use super::admit::{FurtherReceivers, Ready, ready, supply};
use super::alone::Alone;
use super::commands::{self, CommandEnd};
use super::conclude::Circumstances;
use super::proposal::{self, Calls};
use super::schedule::{PlannedRun, schedule};
use super::speed::Reference;
use super::{Made, Progress, RunDone, RunError, not_run, run_one};
use crate::each_once::each_once;
use crate::scenario::kinds;
use crate::scenario::{Resolved, ResolvedDevice, Start};

/// What is measured between the runs, in messages.
pub(crate) const SPEED: &str = "speed of this machine";

/// Makes all runs that Linux can make.
///
/// # Errors
///
/// The first that fails; whatever was changed is restored.
pub fn run(resolved: &Resolved, progress: &mut dyn Progress) -> Result<Made, RunError> {
    let planned = schedule(resolved, true)?;
    commands::look_for_all(resolved.variants.iter().filter(|variant| variant.live))?;
    // From here on a signal ends the run in order, wherever it comes.
    let watch = Watch::begin();
    let mut host = host(resolved)?;
    let outlined = supply(&mut host, resolved)?;
    let (settled, further) = prepare((&host, resolved), &planned, &outlined, progress)?;
    let resolved = &settled;
    let mut reference =
        Reference::new(watched(resolved).first().copied().unwrap_or(ProcessorId(0)));
    let processors = resolved.host.processors;
    let mut took = |host: &mut LiveHost| {
        let reference = reference.as_mut().map_err(|error| error.clone());
        let took = reference.and_then(|reference| reference.measure(host, processors));
        took.map_err(|error| RunError::of(error, SPEED))
    };
    let mut before = took(&mut host)?;
    let (mut runs, mut failed) = (Vec::new(), BTreeMap::new());
    for planned in planned {
        if failed.contains_key(&planned.variant) {
            continue;
        }
        if let Some(signal) = watch.caught() {
            return Err(RunError::Interrupted(signal));
        }
        progress.run(&resolved.variants[planned.variant].name, planned.repeat);
        // What others do on this machine may have changed since the run before.
        let supply = supply(&mut host, resolved)?;
        let ready = ready(resolved, planned, &further, &supply)?;
        let done = match make(&mut host, resolved, ready) {
            // The others are told all the same, if there are any.
            Err(RunError::Failed { reason, .. }) => {
                failed.insert(planned.variant, reason);
                continue;
            }
            done => done?,
        };
        let after = took(&mut host)?;
        runs.push(RunDone {
            speed: [before, after.clone()].concat(),
            ..done
        });
        before = after;
    }
    progress.end();
    require_any(resolved, &runs, &failed)?;
    let receivers = further.into_iter();
    let receivers = receivers.map(|(name, further)| (name, further as u32 + 1));
    Ok(Made {
        runs,
        skipped: not_run(resolved, true),
        circumstances: Circumstances {
            host: host.describe(),
            live: true,
            tick: proposal::tick(&outlined),
            receivers: receivers.collect(),
            failed,
            notices: Vec::new(),
        },
        settled,
    })
}

/// Makes one run with its commands.
fn make(host: &mut LiveHost, resolved: &Resolved, ready: Ready) -> Result<RunDone, RunError> {
    run_one(resolved, ready, |variant, admitted, length| {
        let commands = commands::start(variant, host.config())?;
        host.run_beside(commands.beside());
        let mut record = host.run(admitted, length)?;
        let ends = commands.end(record.start);
        let notices = ends.iter().filter_map(CommandEnd::notice);
        record.notices.extend(notices);
        Ok((record, ends))
    })
}

/// Where every run failed, that is all there is to tell.
fn require_any(
    resolved: &Resolved,
    runs: &[RunDone],
    failed: &BTreeMap<usize, String>,
) -> Result<(), RunError> {
    match failed.first_key_value() {
        Some((variant, reason)) if runs.is_empty() => Err(RunError::Failed {
            variant: resolved.variants[*variant].name.clone(),
            reason: reason.clone(),
        }),
        _ => Ok(()),
    }
}

/// Where a witness watches: where the devices work, the periodic tasks, and the commands, in this order, each once.
fn watched(resolved: &Resolved) -> Vec<ProcessorId> {
    let variants = resolved.variants.iter().filter(|variant| variant.live);
    let devices = variants.clone().flat_map(|variant| &variant.devices);
    let devices = devices.map(|device| device.processor);
    let tasks = |kind| {
        let all = variants.clone().flat_map(|variant| &variant.tasks);
        let all = all.filter(move |task| task.kind.kind() == kind);
        all.map(|task| task.processor)
    };
    each_once(
        devices
            .chain(tasks(kinds::PERIODIC))
            .chain(tasks(kinds::COMMAND)),
    )
}

/// A host for the scenario: its processors in the order in which this process may use them, and a witness where something is to be judged.
pub(crate) fn host(resolved: &Resolved) -> Result<LiveHost, RunError> {
    watched_host(resolved.host.processors, &watched(resolved))
}

/// A host of so many processors, which witnesses watch there.
pub(crate) fn watched_host(processors: u16, watched: &[ProcessorId]) -> Result<LiveHost, RunError> {
    let config = LiveConfig::detect(processors);
    let mut config = config.map_err(|error| RunError::CannotRun(error.to_string()))?;
    let witnesses = watched.iter().copied().map(Witness::of_experiment);
    config.witnesses = witnesses.collect();
    Ok(LiveHost::new(config))
}

/// What is known only of this machine: how many receivers make up each load, and what is proposed where the scenario leaves that open.
fn prepare(
    (host, resolved): (&LiveHost, &Resolved),
    planned: &[PlannedRun],
    supply: &Supply,
    progress: &mut dyn Progress,
) -> Result<(Resolved, FurtherReceivers), RunError> {
    // Nothing is started to find out before all variants are admitted.
    let outline = proposal::settled(resolved, supply, true, |_| None)?.whole()?;
    require(host, &outline, planned, supply)?;
    progress.begin(planned.len());
    let (further, calls) = measure_each(resolved, progress)?;
    let settled = proposal::settled(resolved, supply, true, |device| {
        calls.get(&device.name).copied()
    })?;
    let settled = settled.whole()?;
    require(host, &settled, planned, supply)?;
    Ok((settled, further))
}

/// Requires that each variant is admitted and has memory enough, before anything of it is started.
fn require(
    host: &LiveHost,
    resolved: &Resolved,
    planned: &[PlannedRun],
    supply: &Supply,
) -> Result<(), RunError> {
    for run in planned.iter().filter(|run| run.repeat == 0) {
        let start = Start::OnHook;
        let run = PlannedRun { start, ..*run };
        let outline = ready(resolved, run, &FurtherReceivers::new(), supply)?;
        let variant = &resolved.variants[run.variant];
        outline.require(variant)?;
        let room = host.has_memory_for(&outline.admission().program);
        room.map_err(|error| RunError::of(error, &variant.name))?;
    }
    Ok(())
}

/// How many receivers besides the first make up the load of each device, by its name; and the calls of those to which something is to be
/// proposed.
fn measure_each(
    resolved: &Resolved,
    progress: &mut dyn Progress,
) -> Result<(FurtherReceivers, BTreeMap<String, Calls>), RunError> {
    let (mut further, mut calls) = (FurtherReceivers::new(), BTreeMap::new());
    let variants = resolved.variants.iter().filter(|variant| variant.live);
    for device in variants.flat_map(|variant| &variant.devices) {
        if further.contains_key(&device.name) || device.device.fewest_repeats().is_none() {
            continue;
        }
        progress.prepare("calibrating the load");
        further.insert(device.name.clone(), calibrate(resolved, device)?);
    }
    for device in proposal::to_measure(resolved, true) {
        progress.prepare("measuring calls, to propose a reservation");
        let receivers = further.get(&device.name).copied().unwrap_or(0);
        let measured = Alone::live(resolved, device)?.calls(receivers)?;
        calls.insert(device.name.clone(), measured);
    }
    Ok((further, calls))
}

/// How many receivers besides the first make up the load that the device asks for, on this machine as it is now; see [`Alone::calibrate`].
///
/// # Errors
///
/// Those of [`Alone`].
pub fn calibrate(resolved: &Resolved, device: &ResolvedDevice) -> Result<usize, RunError> {
    let found = Alone::live(resolved, device)?.calibrate()?;
    Ok(found.repeats)
}
