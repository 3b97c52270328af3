//! Scenarios on this machine: one run after another, at the load that the scenario asks for.

use laxity_linux::signals::Watch;
use laxity_linux::{LiveConfig, LiveHost, WitnessConfig};
use laxity_model::{Host, HostError, Priority, Span};

use super::commands;
use super::compose::{Composed, RunSpec, compose};
use super::schedule::{PlannedRun, schedule};
use super::{NotRun, Progress, RunDone, RunError, done, load, trace_names};
use crate::scenario::{LengthSpec, Placing, Resolved, ResolvedDevice, ResolvedVariant, Start};

/// Receivers in the two runs from which the load of one is told.
const CALIBRATION_RECEIVERS: [usize; 2] = [20, 70];
/// How long each calibration run is.
const CALIBRATION_RUN: Span = Span::from_millis(700);
/// More receivers than this are not tried: the machine is too fast for the load asked for.
const MOST_RECEIVERS: usize = 2_000;

/// The runs that were made, with what is to be known of how.
pub struct LiveRuns {
    /// By the schedule.
    pub runs: Vec<RunDone>,
    /// Variants that Linux, or this machine, cannot run.
    pub skipped: Vec<NotRun>,
    /// Receivers besides the first in each modem.
    pub further_receivers: usize,
    /// What the host calls itself.
    pub host: String,
}

/// Makes all runs that Linux can make.
///
/// # Errors
///
/// The first that fails; whatever was changed is restored.
pub fn run(resolved: &Resolved, progress: &mut dyn Progress) -> Result<LiveRuns, RunError> {
    let planned = schedule(resolved, |variant| variant.live, true);
    if planned.is_empty() {
        return Err(RunError::Nothing("Linux"));
    }
    // From here on a signal ends the run in order, wherever it comes.
    let watch = Watch::begin();
    let mut host = host(resolved)?;
    progress.begin(planned.len());
    let further_receivers = match resolved.variants.iter().find_map(|v| v.devices.first()) {
        Some(device) => {
            progress.prepare("calibrating the load");
            calibrate(&mut host, resolved, device)?
        }
        None => 0,
    };
    let mut runs = Vec::new();
    for planned in planned {
        if let Some(signal) = watch.caught() {
            return Err(RunError::Interrupted(signal));
        }
        progress.run(&resolved.variants[planned.variant].name, planned.repeat);
        runs.push(run_one(&mut host, resolved, planned, further_receivers)?);
    }
    progress.end();
    let skipped = resolved
        .variants
        .iter()
        .enumerate()
        .filter(|(_, variant)| !variant.live);
    let skipped = skipped.map(|(variant, _)| NotRun {
        variant,
        reason: "the scenario has it for the twin only".into(),
    });
    Ok(LiveRuns {
        runs,
        skipped: skipped.collect(),
        further_receivers,
        host: host.describe(),
    })
}

/// A host for the scenario: its processors in the order in which this process may use them, and a witness where the first modem works.
fn host(resolved: &Resolved) -> Result<LiveHost, RunError> {
    let cannot = |error: HostError| RunError::CannotRun(error.to_string());
    let mut config = LiveConfig::detect(resolved.host.processors).map_err(cannot)?;
    let watched = resolved
        .variants
        .iter()
        .find_map(|variant| variant.devices.first());
    config.witness = watched.map(|device| WitnessConfig::new(device.processor));
    Ok(LiveHost::new(config))
}

fn run_one(
    host: &mut LiveHost,
    resolved: &Resolved,
    planned: PlannedRun,
    further_receivers: usize,
) -> Result<RunDone, RunError> {
    let variant = &resolved.variants[planned.variant];
    let wrong = |error| RunError::of(error, variant);
    let spec = RunSpec {
        seed: resolved.seed + u64::from(planned.repeat),
        mss_bytes: resolved.mss_bytes,
        further_receivers,
        start: planned.start,
        gaps_only: planned.gaps_only,
    };
    let composed =
        compose(variant, resolved.host.processors, &resolved.run, spec).map_err(wrong)?;
    let names = trace_names(&composed);
    let Composed { program, probes } = composed;
    let commands = commands::start(variant, host.config()).map_err(wrong)?;
    let record = host.run(program, planned.length).map_err(wrong)?;
    drop(commands);
    Ok(done(planned, resolved, names, probes, record))
}

/// How many receivers besides the first make up the load that the device asks for, on this machine as it is now.
///
/// The driver runs in a real-time thread, nothing beside it but what the far end takes on another processor, once with few and
/// once with many receivers; the line through the two gives the count.
pub fn calibrate(
    host: &mut LiveHost,
    resolved: &Resolved,
    device: &ResolvedDevice,
) -> Result<usize, RunError> {
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
) -> Result<u64, RunError> {
    let priority = Priority::new(24).unwrap_or(Priority::HIGHEST);
    let variant = ResolvedVariant {
        name: "calibration".into(),
        about: String::new(),
        live: true,
        twin: false,
        devices: vec![ResolvedDevice {
            placing: Placing::Thread(priority),
            ..device.clone()
        }],
        tasks: Vec::new(),
        contracts: Vec::new(),
        expect: resolved.variants[0].expect,
        start: Start::Connected,
        control: None,
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
    let wrong = |error| RunError::of(error, &variant);
    let composed = compose(&variant, resolved.host.processors, &length, spec).map_err(wrong)?;
    let Composed { program, probes } = composed;
    let record = host.run(program, CALIBRATION_RUN).map_err(wrong)?;
    let seen = super::observe::observe(&record, &probes);
    let Some((service, span)) = seen.connected.filter(|(_, span)| !span.is_zero()) else {
        return Err(wrong(HostError::Failed(
            "the driver was never called".into(),
        )));
    };
    Ok(service.as_nanos() * 1_000_000 / span.as_nanos())
}
