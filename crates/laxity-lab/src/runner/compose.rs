//! From a variant of a scenario to a program that a host can run, and to where its evidence will be found.

use laxity_devices::link::endpoint;
use laxity_devices::modem::{
    Call, CallConfig, CardClock, Costs, DriverPlacement, FarProfile, Hypothesis, Installed, Timing,
};
use laxity_devices::pump::LineConfig;
use laxity_model::{Activity, ActivityId, HostError, Mark, Placement, Priority, Program, Span};

use super::tasks::{Periodic, Rogue, Spinner};
use super::work;
use crate::scenario::{
    LengthSpec, Placing, Rank, ResolvedDevice, ResolvedTask, ResolvedVariant, Start, TaskKind,
};

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

/// Where the evidence of a program's parts is to be found.
#[derive(Default)]
pub struct Probes {
    /// The modem, where there is one.
    pub modem: Option<Installed>,
    /// The modem's placement.
    pub placing: Option<Placing>,
    /// The periodic co-thread: its activity and the mark of its callbacks.
    pub cothread: Option<(ActivityId, Mark)>,
    /// The rogue.
    pub rogue: Option<ActivityId>,
}

/// A program with its probes.
pub struct Composed {
    /// What the host runs.
    pub program: Program,
    /// Where to look afterwards.
    pub probes: Probes,
}

/// Makes the program of one run.
///
/// # Errors
///
/// [`HostError::Failed`] if a call that is to be run ahead never gets its transfer under way (the line is too bad).
pub fn compose(
    variant: &ResolvedVariant,
    processors: u16,
    length: &LengthSpec,
    spec: RunSpec,
) -> Result<Composed, HostError> {
    let mut program = Program::new(processors);
    let mut probes = Probes::default();
    for device in &variant.devices {
        probes.modem = Some(install_modem(&mut program, device, length, spec)?);
        probes.placing = Some(device.placing);
    }
    for task in &variant.tasks {
        install_task(&mut program, task, &mut probes);
    }
    Ok(Composed { program, probes })
}

/// The call of a device before it is handed to a host.
#[must_use]
pub fn call_config(device: &ResolvedDevice, bytes: u64, spec: RunSpec) -> CallConfig {
    let phases = device.phases;
    let line = device.line;
    let thousandths = |value: u32| f64::from(value) / 1_000.0;
    let link = endpoint::Config {
        file_octets: bytes,
        seed: spec.seed,
        ..endpoint::Config::default()
    };
    CallConfig {
        timing: Timing::lasting(phases.on_hook, phases.dialing, phases.training),
        line: LineConfig {
            seed: spec.seed,
            snr_down_db: thousandths(line.snr_down_mdb),
            snr_up_db: thousandths(line.snr_up_mdb),
            clock_ppm: f64::from(line.clock_offset_ppb) / 1_000.0,
            carrier_offset_hz: f64::from(line.carrier_offset_mhz) / 1_000.0,
            ..LineConfig::default()
        },
        link: link.with_mss(spec.mss_bytes),
        further_receivers: spec.further_receivers,
        costs: Costs::STUDY,
        hypothesis: Hypothesis::default(),
        far: FarProfile::PLAIN,
        clock: CardClock::default(),
        linger: Span::ZERO,
    }
}

fn install_modem(
    program: &mut Program,
    device: &ResolvedDevice,
    length: &LengthSpec,
    spec: RunSpec,
) -> Result<Installed, HostError> {
    let bytes = if spec.gaps_only {
        ENDLESS_BYTES
    } else {
        length.bytes
    };
    let mut config = call_config(device, bytes, spec);
    if spec.start == Start::Connected {
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
    let modem = call.install(program, device.processor, driver_placement(device.placing));
    work::declare_modem(program, &modem, device);
    Ok(modem)
}

fn driver_placement(placing: Placing) -> DriverPlacement {
    match placing {
        Placing::Interrupt => DriverPlacement::Interrupt,
        Placing::Deferred => DriverPlacement::Deferred,
        Placing::Thread(priority) => DriverPlacement::Thread(priority),
        Placing::Reserved {
            request, before, ..
        } => DriverPlacement::Reserved(request, before),
    }
}

fn install_task(program: &mut Program, task: &ResolvedTask, probes: &mut Probes) {
    let on = task.processor;
    match &task.kind {
        TaskKind::Spinner { count, priority } => {
            for number in 1..=*count {
                let name = format!("{} {number}", task.name);
                program.add(&name, on, Placement::Thread(*priority), Spinner);
            }
        }
        TaskKind::Periodic {
            period,
            service,
            priority,
            reservation,
        } => {
            let mark = program.mark(&format!("{} runs", task.name));
            let body = Periodic::new(*period, *service, mark);
            let activity = Activity {
                name: task.name.clone(),
                processor: on,
                placement: Placement::Thread(*priority),
                reservation: *reservation,
                body: Box::new(body),
            };
            let id = program.push(activity);
            program.declare_work(id, work::periodic(*service, *period));
            probes.cothread = Some((id, mark));
        }
        TaskKind::Rogue {
            burst,
            every,
            after,
            rank,
        } => {
            let placement = match rank {
                Rank::Priority(priority) => Placement::Thread(*priority),
                Rank::Foreign { fifo } => Placement::Foreign { fifo: *fifo },
            };
            probes.rogue = Some(program.add(
                &task.name,
                on,
                placement,
                Rogue::new(*burst, *every, *after),
            ));
        }
        // Not an activity of the program: the runner starts it beside.
        TaskKind::Command { .. } => {}
    }
}

/// The thread priority at which a placement does long work; `None` where it is no thread.
#[must_use]
pub fn working_priority(placing: Placing) -> Option<Priority> {
    match placing {
        Placing::Interrupt | Placing::Deferred => None,
        Placing::Thread(priority) => Some(priority),
        Placing::Reserved { before, .. } => Some(before),
    }
}
