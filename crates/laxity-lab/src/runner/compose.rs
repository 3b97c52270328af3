//! From a variant of a scenario to a program that a host can run, and to where its evidence will be found.

use laxity_devices::modem::{Call, CallConfig, Timing};
use laxity_devices::pump::LineConfig;
use laxity_model::analysis::Task;
use laxity_model::executor::edf::Edf;
use laxity_model::executor::fcfs::Fcfs;
use laxity_model::verify::contract::{Kind, Subject};
use laxity_model::{
    ActivityId, ExecutorId, HostError, Placement, Priority, ProcessorId, Program, Scheduling,
    Service, Span, Step,
};

use super::tasks::{Spinner, rogue};
use super::work;
use crate::observe::{ModemProbe, Probe, Probes, Watched};
use crate::scenario::kinds;
use crate::scenario::{
    Executor, LengthSpec, PeriodicRank, Phases, Rank, ResolvedDevice, ResolvedTask,
    ResolvedVariant, Start, TaskKind, TurnPolicy,
};
use laxity::Periodic;

/// A call that is run ahead must have its transfer under way by then, in the call's own time.
const RUN_AHEAD_LIMIT: Span = Span::from_secs(60);

/// A file that no such call gets to the end of within minutes.
const ENDLESS_BYTES: u64 = 2_000_000;

/// How one run of a variant is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunSpec {
    /// What the line's noise and the file's bytes come from.
    pub seed: u64,
    /// TCP's maximum segment size in bytes.
    pub mss_bytes: u16,
    /// Receivers besides the first in each modem, as load.
    pub further_receivers: usize,
    /// Where the call begins.
    pub start: Start,
    /// Whether the transfer has no end: the run is over when its time is.
    pub gaps_only: bool,
}

/// Makes the program of one run, in which each device has a run of its own.
///
/// # Errors
///
/// [`HostError::Failed`] if a call that is to be run ahead never gets its transfer under way (the line is too bad).
pub fn compose(
    variant: &ResolvedVariant,
    processors: u16,
    length: &LengthSpec,
    spec: impl Fn(&ResolvedDevice) -> RunSpec,
) -> Result<(Program, Probes), HostError> {
    let mut program = Program::new(processors);
    let mut probes = Probes::default();
    let devices = &variant.devices;
    for device in devices {
        let mut spec = spec(device);
        // No two lines have the same noise, and none has another if the devices are declared in another order.
        let before = devices.iter().filter(|other| other.name < device.name);
        spec.seed = spec.seed.wrapping_add(before.count() as u64);
        let modem = modem(&mut program, device, length, spec, devices.len() == 1);
        probes.0.push(modem?);
    }
    for task in &variant.tasks {
        probes.0.push(task.install(&mut program));
    }
    Ok((program, probes))
}

/// The call of a device before it is handed to a host; these are its phases where it says nothing else.
fn call_config(device: &ResolvedDevice, phases: Phases, bytes: u64, spec: RunSpec) -> CallConfig {
    let phases = device.phases.or(phases);
    let timing = Timing::lasting(phases.on_hook, phases.dialing, phases.training);
    let usual = CallConfig::new(timing, spec.seed, bytes);
    CallConfig {
        line: LineConfig {
            seed: usual.line.seed,
            ..device.line.clone()
        },
        link: usual.link.with_mss(spec.mss_bytes),
        further_receivers: spec.further_receivers,
        far: device.far,
        ..usual
    }
}

/// A modem, and the call that it is to make.
fn modem(
    program: &mut Program,
    device: &ResolvedDevice,
    length: &LengthSpec,
    spec: RunSpec,
    is_only: bool,
) -> Result<Probe, HostError> {
    let bytes = if spec.gaps_only {
        ENDLESS_BYTES
    } else {
        length.bytes
    };
    let mut config = call_config(device, length.phases, bytes, spec);
    if !is_only {
        // A call that is over ends the run, and the others are not to be cut short.
        config.linger = length.limit;
    } else if spec.start == Start::Connected {
        // A short transfer is over before there is much to see.
        config.linger = length.idle;
    }
    let mut call = Call::new(config);
    if spec.start == Start::Connected && !call.run_ahead(RUN_AHEAD_LIMIT) {
        let outcome = call.report().outcome().cloned();
        return Err(HostError::Failed(format!(
            "the line of `{}` carries no transfer even without a host: {outcome:?}",
            device.name
        )));
    }
    let first = program.activities.len();
    let installed = call.install(program, device.processor, device.placing);
    work::declare_modem(program, &installed, device);
    if !is_only {
        for activity in &mut program.activities[first..] {
            activity.name = format!("{}: {}", device.name, activity.name);
        }
    }
    let watched = Watched::Modem(ModemProbe {
        installed,
        placing: device.placing,
    });
    Ok(probe(program, first, &device.name, kinds::MODEM, watched))
}

/// The probe of a component whose activities are those from `first` on.
fn probe(program: &Program, first: usize, name: &str, kind: Kind, watched: Watched) -> Probe {
    let ids = (0..=u16::MAX).map(ActivityId).skip(first);
    Probe {
        subject: Subject {
            name: name.to_owned(),
            kind,
        },
        activities: ids.take(program.activities.len() - first).collect(),
        watched,
    }
}

impl ResolvedTask {
    fn install(&self, program: &mut Program) -> Probe {
        let (on, first) = (self.processor, program.activities.len());
        match &self.kind {
            TaskKind::Spinner { count, priority } => {
                for number in 1..=*count {
                    let name = format!("{} {number}", self.name);
                    program.add(&name, on, Placement::Thread(*priority), Spinner);
                }
            }
            TaskKind::Periodic {
                period,
                service,
                rank,
            } => return periodic(program, self, (*period, *service), rank),
            TaskKind::Rogue {
                burst,
                every,
                after,
                rank,
            } => {
                let placement = match rank {
                    Rank::Priority(priority) => Placement::Thread(*priority),
                    Rank::Foreign { fifo } => Placement::Linux(Scheduling::Fifo(*fifo)),
                };
                let body = rogue(*burst, *every, *after);
                program.add(&self.name, on, placement, body);
            }
            // It is no activity of the program: the runner starts it beside.
            TaskKind::Command { .. } => {}
        }
        let kind = self.kind.kind();
        probe(program, first, &self.name, kind, Watched::Nothing)
    }
}

/// A task that recurs: in a thread of its own, or by turns in an executor's.
fn periodic(
    program: &mut Program,
    task: &ResolvedTask,
    (period, service): (Span, Service),
    rank: &PeriodicRank,
) -> Probe {
    let (placement, reservation) = match rank {
        PeriodicRank::Priority(priority) => (Placement::Thread(*priority), None),
        PeriodicRank::Reserved(request) => (Placement::Thread(Priority::HIGHEST), Some(*request)),
        PeriodicRank::On(wanted) => {
            let executor = executor(program, wanted, task.processor);
            let task = Task::new(service, period).ok();
            (Placement::On { executor, task }, None)
        }
    };
    let first = program.activities.len();
    let declared = Periodic {
        name: task.name.clone(),
        processor: task.processor,
        placement,
        reservation,
        period,
        service,
    };
    let watched = declared.install(program, move |_| Step::Burn(service));
    let watched = Watched::Periodic(watched);
    probe(program, first, &task.name, kinds::PERIODIC, watched)
}

/// The executor in a program; declared when the first task is placed on it.
fn executor(program: &mut Program, wanted: &Executor, on: ProcessorId) -> ExecutorId {
    let is_wanted = |own: &ActivityId| program.activities[own.index()].name == wanted.name;
    if let Some(known) = program.executors().find(|(_, own)| is_wanted(own)) {
        return known.0;
    }
    let place = (on, Placement::Thread(wanted.priority));
    let (name, request) = (&wanted.name, wanted.request);
    match wanted.policy {
        TurnPolicy::FirstComeFirstServed => program.executor(name, place, request, Fcfs::new()),
        TurnPolicy::EarliestDeadlineFirst => program.executor(name, place, request, Edf::new()),
    }
}
