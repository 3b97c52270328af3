//! Scenarios on this machine: one run after another, at the load that the scenario asks for.

use std::collections::BTreeMap;

use laxity::{LiveConfig, LiveHost, Watch};
use laxity_model::admission::Supply;
use laxity_model::enforce::{Witness, ranks};
use laxity_model::{Host, HostError, ProcessorId};

use super::admit::{FurtherReceivers, Ready, ready, ready_over, supply};
use super::again::{AT_MOST, MadeAgain};
use super::alone::Alone;
use super::commands::{self, CommandEnd};
use super::conclude::Circumstances;
use super::network::Wires;
use super::proposal::{self, Calls};
use super::schedule::{PlannedRun, schedule};
use super::speed::{Reference, Took};
use super::{Made, Progress, RunDone, RunError, not_run, run_one};
use crate::each_once::each_once;
use crate::scenario::kinds;
use crate::scenario::{Placing, Resolved, ResolvedDevice, Start};

/// What is measured between the runs, in messages.
pub(crate) const SPEED: &str = "speed of this machine";

/// Makes all runs that Linux can make, and [again](MadeAgain) those that the machine spoiled.
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
    let Prepared {
        settled,
        further,
        notices,
    } = prepare((&host, resolved), &planned, &outlined, progress)?;
    let receivers = further.iter();
    let receivers = receivers.map(|(name, further)| (name.clone(), *further as u32 + 1));
    let mut circumstances = Circumstances {
        host: host.describe(),
        live: true,
        supply: outlined,
        receivers: receivers.collect(),
        failed: BTreeMap::new(),
        made_again: MadeAgain::default(),
        notices,
    };
    let mut session = Session::begin((&settled, &further), host, watch)?;
    let mut runs = Vec::new();
    for planned in planned {
        runs.extend(session.one(planned, &mut circumstances.failed, progress)?);
    }
    for _ in 0..AT_MOST {
        let mut made_again = std::mem::take(&mut circumstances.made_again);
        let spoiled = made_again.next(&settled, &runs, &circumstances);
        circumstances.made_again = made_again;
        progress.begin(spoiled.len());
        for index in spoiled {
            let planned = runs[index].planned;
            if let Some(done) = session.one(planned, &mut circumstances.failed, progress)? {
                runs[index] = done;
            }
        }
    }
    progress.end();
    require_any(&settled, &runs, &circumstances.failed)?;
    Ok(Made {
        runs,
        skipped: not_run(resolved, true),
        circumstances,
        settled,
    })
}

/// What lasts from run to run on this machine.
struct Session<'a> {
    resolved: &'a Resolved,
    further: &'a FurtherReceivers,
    host: LiveHost,
    watch: Watch,
    reference: Result<Reference, HostError>,
    /// What the reference block took last.
    took: Took,
}

impl<'a> Session<'a> {
    fn begin(
        (resolved, further): (&'a Resolved, &'a FurtherReceivers),
        host: LiveHost,
        watch: Watch,
    ) -> Result<Self, RunError> {
        let first = watched(resolved).first().copied();
        let mut session = Self {
            reference: Reference::new(first.unwrap_or(ProcessorId(0))),
            took: Took::new(),
            resolved,
            further,
            host,
            watch,
        };
        session.took = session.measure()?;
        Ok(session)
    }

    fn measure(&mut self) -> Result<Took, RunError> {
        let reference = self.reference.as_mut().map_err(|error| error.clone());
        let processors = self.resolved.host.processors;
        let took = reference.and_then(|reference| reference.measure(&mut self.host, processors));
        took.map_err(|error| RunError::of(error, SPEED))
    }

    /// Makes one run; none of a variant of which one `failed`, as the others are told all the same, if there are any.
    fn one(
        &mut self,
        planned: PlannedRun,
        failed: &mut BTreeMap<usize, String>,
        progress: &mut dyn Progress,
    ) -> Result<Option<RunDone>, RunError> {
        if failed.contains_key(&planned.variant) {
            return Ok(None);
        }
        if let Some(signal) = self.watch.caught() {
            return Err(RunError::Interrupted(signal));
        }
        let resolved = self.resolved;
        progress.run(&resolved.variants[planned.variant].name, planned.repeat);
        // What others do on this machine may have changed since the run before.
        let supply = supply(&mut self.host, resolved)?;
        let variant = &resolved.variants[planned.variant];
        let wires = Wires::of(variant).map_err(|error| RunError::of(error, &variant.name))?;
        let (wires, fed) = wires.unzip();
        let ready = ready_over(resolved, planned, self.further, (&supply, wires))?;
        if let Some(fed) = fed {
            fed.feed(&mut self.host);
        }
        let done = match make(&mut self.host, resolved, ready) {
            Err(RunError::Failed { reason, .. }) => {
                failed.insert(planned.variant, reason);
                return Ok(None);
            }
            done => done?,
        };
        let after = self.measure()?;
        let before = std::mem::replace(&mut self.took, after.clone());
        Ok(Some(RunDone {
            speed: [before, after].concat(),
            ..done
        }))
    }
}

/// Makes one run with its commands.
fn make(host: &mut LiveHost, resolved: &Resolved, ready: Ready) -> Result<RunDone, RunError> {
    run_one(resolved, ready, |variant, admitted, length| {
        let commands = commands::start(variant, host.config())?;
        host.run_beside(commands.beside());
        let mut record = host.run(admitted, length)?;
        let ends = commands.end(&record);
        let notices = ends.iter().flat_map(CommandEnd::notices);
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

/// Where a witness watches: where the devices work, the periodic tasks, the commands, and who takes flows, in this order, each once.
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
            .chain(tasks(kinds::COMMAND))
            .chain(tasks(kinds::VIDEO))
            .chain(tasks(kinds::BULK)),
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

/// What is known before the first run.
struct Prepared {
    /// The scenario with what is proposed.
    settled: Resolved,
    further: FurtherReceivers,
    /// Whose load is another than was asked for.
    notices: Vec<String>,
}

/// What is known only of this machine: how many receivers make up each load, and what is proposed where the scenario leaves that open.
fn prepare(
    (host, resolved): (&LiveHost, &Resolved),
    planned: &[PlannedRun],
    supply: &Supply,
    progress: &mut dyn Progress,
) -> Result<Prepared, RunError> {
    // Nothing is started to find out before all variants are admitted.
    let outline = proposal::settled(resolved, supply, true, |_| None)?.whole()?;
    require(host, &outline, planned, supply)?;
    progress.begin(planned.len());
    let mut notices = Vec::new();
    let (further, calls) = measure_each(resolved, &mut notices, progress)?;
    let settled = proposal::settled(resolved, supply, true, |device| {
        calls.get(&device.name).copied()
    })?;
    let settled = settled.whole()?;
    require(host, &settled, planned, supply)?;
    Ok(Prepared {
        settled,
        further,
        notices,
    })
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
/// proposed. What the reader should know of them is left in `notices`.
fn measure_each(
    resolved: &Resolved,
    notices: &mut Vec<String>,
    progress: &mut dyn Progress,
) -> Result<(FurtherReceivers, BTreeMap<String, Calls>), RunError> {
    let (mut further, mut calls) = (FurtherReceivers::new(), BTreeMap::new());
    let variants = resolved.variants.iter().filter(|variant| variant.live);
    for device in variants.flat_map(|variant| &variant.devices) {
        if further.contains_key(&device.name) || device.device.fewest_repeats().is_none() {
            continue;
        }
        progress.prepare(&format!("calibrating the load of {}", device.name));
        let found = Alone::live(resolved, device)?.calibrate()?;
        let beyond = found.beyond(&device.load);
        let beyond = beyond.map(|beyond| of_device(device, &beyond));
        if let Some(beyond) = beyond.clone().filter(|_| is_above_slots(resolved, device)) {
            // Slots below it are charged what it is said to take.
            return Err(RunError::CannotRun(beyond));
        }
        notices.extend(beyond);
        further.insert(device.name.clone(), found.repeats);
    }
    for device in proposal::to_measure(resolved, true) {
        let measured = format!(
            "measuring calls of {}, to propose a reservation",
            device.name
        );
        progress.prepare(&measured);
        let receivers = further.get(&device.name).copied().unwrap_or(0);
        let measured = Alone::live(resolved, device)?.calls(receivers)?;
        calls.insert(device.name.clone(), measured);
    }
    Ok((further, calls))
}

/// How many receivers besides the first make up the load that the device asks for, on this machine as it is now, and nothing else; see
/// [`Alone::calibrate`].
///
/// # Errors
///
/// Those of [`Alone`]; [`RunError::CannotRun`] where it takes more than that without any.
pub fn calibrate(resolved: &Resolved, device: &ResolvedDevice) -> Result<usize, RunError> {
    let found = Alone::live(resolved, device)?.calibrate()?;
    match found.beyond(&device.load) {
        None => Ok(found.repeats),
        Some(beyond) => Err(RunError::CannotRun(of_device(device, &beyond))),
    }
}

/// Whether a device's work is done above all slots in one of the live variants that it is in.
fn is_above_slots(resolved: &Resolved, device: &ResolvedDevice) -> bool {
    let variants = resolved.variants.iter().filter(|variant| variant.live);
    let mut all = variants.flat_map(|variant| &variant.devices);
    all.any(|one| {
        let is_above = match one.placing {
            Placing::Interrupt | Placing::Deferred => true,
            Placing::Thread(priority) => ranks::of_thread(priority).outranks_slots(),
            Placing::Reserved(..) => false,
        };
        one.name == device.name && is_above
    })
}

fn of_device(device: &ResolvedDevice, said: &str) -> String {
    format!("the load of `{}`: {said}", device.name)
}
