//! Scenarios on this machine: one run after another, at the load that the scenario asks for.

use laxity::{LiveConfig, LiveHost, Watch};
use laxity_devices::pump::Standard;
use laxity_model::enforce::Witness;
use laxity_model::{Host, HostError, Priority, ProcessorId, Span};

use super::admit::{FurtherReceivers, ready, supply};
use super::commands;
use super::compose::{RunSpec, compose};
use super::conclude::Circumstances;
use super::schedule::{PlannedRun, schedule};
use super::{Made, Progress, RunError, load, not_run, run_one};
use crate::each_once::each_once;
use crate::scenario::kinds;
use crate::scenario::{LengthSpec, Placing, Resolved, ResolvedDevice, ResolvedVariant, Start};
use laxity::observe::observe;

/// Receivers in the two runs from which the load of one is told.
const CALIBRATION_RECEIVERS: [usize; 2] = [20, 70];
/// What it is called in messages.
const CALIBRATION: &str = "calibration";
/// How long each calibration run is.
const CALIBRATION_RUN: Span = Span::from_millis(700);
/// More receivers than this are not tried: the machine is too fast for the load asked for.
const MOST_RECEIVERS: usize = 2_000;

/// Makes all runs that Linux can make.
///
/// # Errors
///
/// The first that fails; whatever was changed is restored.
pub fn run(resolved: &Resolved, progress: &mut dyn Progress) -> Result<Made, RunError> {
    let planned = schedule(resolved, true)?;
    // From here on a signal ends the run in order, wherever it comes.
    let watch = Watch::begin();
    let mut host = host(resolved)?;
    let outlined = supply(&mut host, resolved)?;
    // How many receivers make up the load is not known yet, and nothing is started to find out before all variants are admitted.
    for run in planned.iter().filter(|run| run.repeat == 0) {
        let start = Start::OnHook;
        let run = PlannedRun { start, ..*run };
        let outline = ready(resolved, run, &FurtherReceivers::new(), &outlined)?;
        outline.require(&resolved.variants[run.variant])?;
    }
    progress.begin(planned.len());
    let further = calibrate_each(&mut host, resolved, progress)?;
    let mut runs = Vec::new();
    for planned in planned {
        if let Some(signal) = watch.caught() {
            return Err(RunError::Interrupted(signal));
        }
        progress.run(&resolved.variants[planned.variant].name, planned.repeat);
        // What others do on this machine may have changed since the run before.
        let supply = supply(&mut host, resolved)?;
        let ready = ready(resolved, planned, &further, &supply)?;
        runs.push(run_one(resolved, ready, |variant, admitted, length| {
            let _commands = commands::start(variant, host.config())?;
            host.run(admitted, length)
        })?);
    }
    progress.end();
    let receivers = further.into_iter();
    let receivers = receivers.map(|(name, further)| (name, further as u32 + 1));
    Ok(Made {
        runs,
        skipped: not_run(resolved, true),
        circumstances: Circumstances {
            host: host.describe(),
            live: true,
            receivers: receivers.collect(),
            notices: unwatched(resolved).into_iter().collect(),
        },
    })
}

/// The processors on which something is observed, in the scenario's order, each once.
fn observed_processors(resolved: &Resolved) -> Vec<ProcessorId> {
    let variants = resolved.variants.iter().filter(|variant| variant.live);
    let devices = variants.clone().flat_map(|variant| &variant.devices);
    let tasks = variants.flat_map(|variant| &variant.tasks);
    let tasks = tasks.filter(|task| task.kind.kind() == kinds::PERIODIC);
    let processors = devices.map(|device| device.processor);
    each_once(processors.chain(tasks.map(|task| task.processor)))
}

/// What the reader is to know of processors on which something is observed and no witness watches.
fn unwatched(resolved: &Resolved) -> Option<String> {
    let [watched, others @ ..] = &observed_processors(resolved)[..] else {
        return None;
    };
    let others: Vec<String> = others.iter().map(|other| other.0.to_string()).collect();
    (!others.is_empty()).then(|| {
        format!(
            "The witness watches processor {} only: where processor {} stands still, that counts as undisturbed",
            watched.0,
            others.join(" or ")
        )
    })
}

/// A host for the scenario: its processors in the order in which this process may use them, and a witness where the first modem works,
/// or else the first periodic task.
pub(crate) fn host(resolved: &Resolved) -> Result<LiveHost, RunError> {
    let watched = observed_processors(resolved).first().copied();
    watched_host(resolved.host.processors, watched)
}

/// A host of so many processors, one of which a witness may watch.
pub(crate) fn watched_host(
    processors: u16,
    watched: Option<ProcessorId>,
) -> Result<LiveHost, RunError> {
    let config = LiveConfig::detect(processors);
    let mut config = config.map_err(|error| RunError::CannotRun(error.to_string()))?;
    config.witness = watched.map(Witness::new);
    Ok(LiveHost::new(config))
}

/// How many receivers besides the first make up the load of each device, by its name.
fn calibrate_each(
    host: &mut LiveHost,
    resolved: &Resolved,
    progress: &mut dyn Progress,
) -> Result<FurtherReceivers, RunError> {
    let mut further = FurtherReceivers::new();
    for device in resolved.variants.iter().flat_map(|v| &v.devices) {
        // A modem of another standard has no receivers besides its own.
        if further.contains_key(&device.name) || device.far.standard != Standard::Study {
            continue;
        }
        progress.prepare("calibrating the load");
        let receivers = calibrate(host, resolved, device);
        let receivers = receivers.map_err(|error| RunError::of(error, CALIBRATION))?;
        further.insert(device.name.clone(), receivers);
    }
    Ok(further)
}

/// How many receivers besides the first make up the load that the device asks for, on this machine as it is now.
///
/// The driver runs in a real-time thread, nothing beside it but what the far end takes on another processor, once with few and
/// once with many receivers; the line through the two gives the count.
///
/// # Errors
///
/// The host's.
pub fn calibrate(
    host: &mut LiveHost,
    resolved: &Resolved,
    device: &ResolvedDevice,
) -> Result<usize, HostError> {
    let mut shares_ppm = [0; 2];
    for (share, receivers) in shares_ppm.iter_mut().zip(CALIBRATION_RECEIVERS) {
        *share = measure_share(host, resolved, device, receivers)?;
    }
    let [few, many] = [0, 1].map(|run| (CALIBRATION_RECEIVERS[run], shares_ppm[run]));
    let wanted = u64::from(device.load.share.ppm);
    Ok(load::repeats(wanted, [few, many], MOST_RECEIVERS))
}

/// The share of a processor, in parts per million, that a connected driver with so many further receivers takes.
fn measure_share(
    host: &mut LiveHost,
    resolved: &Resolved,
    device: &ResolvedDevice,
    further_receivers: usize,
) -> Result<u64, HostError> {
    let priority = Priority::new(24).unwrap_or(Priority::HIGHEST);
    let variant = ResolvedVariant {
        devices: vec![ResolvedDevice {
            placing: Placing::Thread(priority),
            ..device.clone()
        }],
        tasks: Vec::new(),
        ..resolved.variants[0].clone()
    };
    let spec = RunSpec {
        seed: resolved.seed,
        mss_bytes: resolved.mss_bytes,
        further_receivers,
        start: Start::Connected,
        gaps_only: true,
    };
    let length = LengthSpec {
        idle: CALIBRATION_RUN,
        ..resolved.run
    };
    let (program, probes) = compose(&variant, resolved.host.processors, &length, |_| spec)?;
    let record = host.admit_and_run(program, CALIBRATION_RUN)?;
    let seen = observe(&record, &probes.0);
    let connected = seen.first().and_then(|modem| modem.connected);
    let Some((service, span)) = connected.filter(|(_, span)| !span.is_zero()) else {
        return Err(HostError::Failed("the driver was never called".into()));
    };
    Ok(service.as_nanos() * 1_000_000 / span.as_nanos())
}
