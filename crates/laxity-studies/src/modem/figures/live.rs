//! The runs of the figures on this machine: one after the other, the load calibrated to the study's share, the callback's in rounds.
//!
//! A dial-up is the study's with shorter phases; the callback is measured while data flows, 30,000 wake-ups in all, its variants by turns
//! so that none has a quieter time of the machine than another. Placements are emulations; what they are stands with the live host.

use std::collections::BTreeMap;

use laxity::{LiveConfig, LiveHost, Watch};
use laxity_model::enforce::Witness;
use laxity_model::{Host, HostError, Priority, Span};

use super::readings::Readings;
use super::scene::{Beside, Driver, PROCESSOR, Scene, length};
use laxity_lab::bench::Request;
use laxity_lab::runner::compose::{Composed, RunSpec, compose};
use laxity_lab::runner::conclude::machine;
use laxity_lab::runner::live::calibrate;
use laxity_lab::runner::{Progress, RunError, commands};
use laxity_lab::scenario::{
    HostSpec, Length, Phases, Placing, Profile, Resolved, ResolvedTask, ResolvedVariant, Start,
    TaskKind,
};

/// A dial-up in which nobody has to wait for 23 s.
const PHASES: Phases = Phases {
    on_hook: Span::from_secs(1),
    dialing: Span::from_secs(2),
    training: Span::from_millis(1_500),
};
/// Almost half of it with data.
const TRACE: Span = Span::from_secs(8);
/// All rounds of the callback together: 30,000 wake-ups (Jones, Saroiu §6.3.1).
const CALLBACKS: Span = Span::from_secs(30);
/// So many rounds unless asked otherwise.
const ROUNDS: u32 = 3;
/// Rounds of less than 3 s say little.
const MOST_ROUNDS: u32 = 10;
/// Of the disk search (§6.1).
const SEARCH_PRIORITY: u8 = 10;
/// The pause lets the shell be placed before its first child inherits its place. Every file is read again and again.
const SEARCH: &str =
    "sleep 0.3; while :; do find / -xdev -type f -exec grep -c laxity -- {} + 2>/dev/null; done";
/// TCP's maximum segment size, bytes; no figure depends on it.
const MSS_BYTES: u16 = 536;

/// What was measured here, and how.
pub(super) struct Made {
    /// By scene: one run of each dial-up, the rounds of each callback.
    pub(super) readings: BTreeMap<Scene, Vec<Readings>>,
    /// Name and value.
    pub(super) circumstances: Vec<(&'static str, String)>,
}

/// Makes these runs on this machine.
///
/// # Errors
///
/// The first that fails, or [`RunError::Interrupted`]; whatever was changed is restored.
pub(super) fn run(
    scenes: &[Scene],
    request: &Request,
    progress: &mut dyn Progress,
) -> Result<Made, RunError> {
    // From here on a signal ends the run in order, wherever it comes.
    let watch = Watch::begin();
    let mut bench = Bench::new(request, progress)?;
    let rounds = request.repeats.unwrap_or(ROUNDS).clamp(1, MOST_ROUNDS);
    let mut readings = BTreeMap::<Scene, Vec<Readings>>::new();
    let planned = schedule(scenes, rounds);
    progress.begin(planned.len());
    for (scene, round) in planned {
        if let Some(signal) = watch.caught() {
            return Err(RunError::Interrupted(signal));
        }
        progress.run(&format!("live: {}", scene.name()), round);
        let span = match scene.beside {
            Beside::Callback => CALLBACKS / u64::from(rounds),
            Beside::Spinner | Beside::DiskSearch => TRACE,
        };
        let made = bench.run(scene, request.seed + u64::from(round), span)?;
        readings.entry(scene).or_default().push(made);
    }
    let circumstances = bench.circumstances(&readings, rounds);
    Ok(Made {
        readings,
        circumstances,
    })
}

/// The dial-ups, and then the callback's variants by turns.
fn schedule(scenes: &[Scene], rounds: u32) -> Vec<(Scene, u32)> {
    let in_rounds = |scene: &&Scene| scene.beside == Beside::Callback;
    let dial_ups = scenes.iter().filter(|scene| !in_rounds(scene));
    let mut runs: Vec<(Scene, u32)> = dial_ups.map(|scene| (*scene, 0)).collect();
    for round in 0..rounds {
        runs.extend(scenes.iter().filter(in_rounds).map(|scene| (*scene, round)));
    }
    runs
}

/// The machine, and the load that was calibrated on it.
struct Bench {
    host: LiveHost,
    further_receivers: usize,
}

impl Bench {
    fn new(request: &Request, progress: &mut dyn Progress) -> Result<Self, RunError> {
        let cannot = |error: HostError| RunError::CannotRun(error.to_string());
        let mut config = LiveConfig::detect(1).map_err(cannot)?;
        config.witness = Some(Witness::new(PROCESSOR));
        let mut host = LiveHost::new(config);
        progress.prepare("calibrating the load");
        let resolved = calibration(request.seed);
        let device = resolved.variants.iter().find_map(|v| v.devices.first());
        let further_receivers = match device {
            Some(device) => calibrate(&mut host, &resolved, device)?,
            None => 0,
        };
        Ok(Self {
            host,
            further_receivers,
        })
    }

    fn run(&mut self, scene: Scene, seed: u64, span: Span) -> Result<Readings, RunError> {
        let (phases, start) = match scene.beside {
            Beside::Callback => (Phases::SHORT, Start::Connected),
            Beside::Spinner | Beside::DiskSearch => (PHASES, Start::OnHook),
        };
        let mut variant = scene.variant(phases, start);
        if scene.beside == Beside::DiskSearch {
            variant.tasks.push(search());
        }
        let spec = RunSpec {
            seed,
            mss_bytes: MSS_BYTES,
            further_receivers: self.further_receivers,
            start,
            gaps_only: true,
        };
        let wrong = |error| RunError::of(error, &variant);
        let composed = compose(&variant, 1, &length(phases, span), spec).map_err(wrong)?;
        let Composed { program, probes } = composed;
        let commands = commands::start(&variant, self.host.config()).map_err(wrong)?;
        let record = self.host.admit_and_run(program, span).map_err(wrong)?;
        drop(commands);
        if record.events_lost > 0 {
            return Err(wrong(HostError::Failed(format!(
                "{} events did not fit the log",
                record.events_lost
            ))));
        }
        Ok(Readings::of(&record, &probes))
    }

    fn circumstances(
        &self,
        readings: &BTreeMap<Scene, Vec<Readings>>,
        rounds: u32,
    ) -> Vec<(&'static str, String)> {
        let runs = || readings.values().flatten();
        let steal: u64 = runs().map(|run| run.steal.as_nanos()).sum();
        let machine = machine(steal);
        let late = runs().filter_map(|run| run.disturbed_ppm).max();
        let frequency = machine.governor.unwrap_or_else(|| "not visible".into());
        vec![
            ("live host", self.host.describe()),
            (
                "processor",
                format!("{} × {}", machine.cpus, machine.cpu_model),
            ),
            (
                "hypervisor",
                machine.hypervisor.unwrap_or_else(|| "none".into()),
            ),
            ("frequency governor", frequency),
            ("clock source", machine.clock_source),
            (
                "receivers for 14.7 % of a processor",
                format!("{} (calibrated)", self.further_receivers + 1),
            ),
            ("rounds of the callback", rounds.to_string()),
            ("steal time", Span::from_nanos(machine.steal_ns).to_string()),
            (
                "witness late, worst run",
                late.map_or_else(|| "no witness".into(), |ppm| format!("{ppm} ppm")),
            ),
        ]
    }
}

/// A reading of every file on the root file system.
fn search() -> ResolvedTask {
    let priority = Priority::new(SEARCH_PRIORITY).unwrap_or(Priority::NORMAL);
    ResolvedTask {
        name: "disk search".into(),
        processor: PROCESSOR,
        kind: TaskKind::Command {
            argv: ["sh", "-c", SEARCH].map(String::from).into(),
        },
        placing: Some(Placing::Thread(priority)),
    }
}

/// What the load is calibrated with.
fn calibration(seed: u64) -> Resolved {
    let variant: ResolvedVariant =
        Scene::dial_up(Driver::Thread24).variant(Phases::SHORT, Start::Connected);
    Resolved {
        file: String::new(),
        title: "calibration".into(),
        seed,
        host: HostSpec {
            processors: 1,
            profile: Profile::default(),
        },
        length: Length::Full,
        run: length(Phases::SHORT, TRACE),
        mss_bytes: MSS_BYTES,
        variants: vec![variant],
    }
}
