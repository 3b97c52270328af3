//! From a variant of a scenario to a program that a host can run, and to where its evidence will be found.

use laxity_devices::card::CardClock;
use laxity_model::executor::edf::Edf;
use laxity_model::executor::fcfs::Fcfs;
use laxity_model::executor::pacing::OnOverrun;
use laxity_model::executor::rmdp::Rmdp;
use laxity_model::program::upcall::{First, Timing};
use laxity_model::program::{Group, Links};
use laxity_model::verify::contract::{Kind, Subject};
use laxity_model::{
    ActivityId, Context, ExecutorId, HostError, Instant, Placement, PortId, Priority, ProcessorId,
    Program, Scheduling, Service, Span, Step,
};

use super::network::{self, Wires};
use super::tasks::{Spinner, rogue};
use super::work;
use crate::observe::{DeviceProbe, Probe, Probes, Watched};
use crate::scenario::devices::{Site, Transfer};
use crate::scenario::kinds;
use crate::scenario::{
    Executor, LengthSpec, Pace, PeriodicRank, Rank, ResolvedDevice, ResolvedTask, ResolvedVariant,
    Start, TaskKind, TaskLinks, TurnPolicy, TwinProfile,
};
use laxity::{Periodic, PeriodicProbe};

/// A file that no such call gets to the end of within minutes.
pub(super) const ENDLESS_BYTES: u64 = 2_000_000;

/// How one run of a variant is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunSpec {
    /// What the line's noise and the file's bytes come from.
    pub seed: u64,
    /// TCP's maximum segment size in bytes.
    pub mss_bytes: u16,
    /// How often a device's work is repeated, as load.
    pub further_receivers: usize,
    /// Where the call begins.
    pub start: Start,
    /// Whether the transfer has no end: the run is over when its time is.
    pub gaps_only: bool,
    /// How the card's clock stands to the host's.
    pub clock: CardClock,
}

/// For what a program is made, besides its devices.
#[derive(Default)]
pub struct Around {
    /// The twin of this profile, or Linux.
    pub twin: Option<TwinProfile>,
    /// What a network's traffic comes from.
    pub seed: u64,
    /// The interfaces of this machine that its network is on; without them it is on the cards of a twin.
    pub wires: Option<Wires>,
}

/// Makes the program of one run, in which each device has a run of its own, and its network.
///
/// # Errors
///
/// [`HostError::Failed`] if a call that is to be run ahead never gets its transfer under way (the line is too bad).
pub fn compose(
    variant: &ResolvedVariant,
    processors: u16,
    length: &LengthSpec,
    Around { twin, seed, wires }: Around,
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
        let spec = (spec, twin);
        let installed = self::device(&mut program, device, length, spec, devices.len() == 1);
        probes.0.push(installed?);
    }
    let links = Linking::of(&mut program, &variant.tasks);
    let (networked, tasks): (Vec<_>, Vec<_>) =
        variant.tasks.iter().partition(|task| task.is_networked());
    for task in tasks {
        probes.0.push(task.install(&mut program, &links));
    }
    let of_network = network::install(&mut program, &networked, (seed, wires));
    probes.0.extend(of_network?);
    if program.activities.is_empty() && variant.commands().next().is_some() {
        lasts(&mut program);
    }
    if let Some(twin) = twin {
        let activities = program.activities.iter_mut();
        let requests = activities.filter_map(|activity| activity.reservation.as_mut());
        requests.for_each(|request| request.reservation = twin.reserved(request.reservation));
    }
    Ok((program, probes))
}

/// A program is over when nobody in it is left: beside commands alone somebody must be, for as long as the run is.
fn lasts(program: &mut Program) {
    let to_the_end = |_: &mut dyn Context| Step::SleepUntil(Instant::MAX);
    program.add("run", ProcessorId(0), Placement::External, to_the_end);
}

/// A device, and the call that it is to make.
fn device(
    program: &mut Program,
    device: &ResolvedDevice,
    length: &LengthSpec,
    (spec, twin): (RunSpec, Option<TwinProfile>),
    is_only: bool,
) -> Result<Probe, HostError> {
    let bytes = if spec.gaps_only {
        ENDLESS_BYTES
    } else {
        length.bytes
    };
    let linger = match (is_only, spec.start) {
        // A call that is over ends the run, and the others are not to be cut short.
        (false, _) => length.limit,
        // A short transfer is over before there is much to see.
        (true, Start::Connected) => length.idle,
        (true, Start::OnHook) => Span::ZERO,
    };
    let site = Site {
        processor: device.processor,
        placing: device.placing,
        seed: spec.seed,
        work: device.work(twin),
        further: spec.further_receivers,
        clock: twin.map_or(spec.clock, |twin| twin.card_clock(spec.seed)),
        transfer: Transfer {
            phases: length.phases,
            bytes,
            mss_bytes: spec.mss_bytes,
            start: spec.start,
            linger,
        },
    };
    let (first, first_mark) = (program.activities.len(), program.marks.len());
    let installed = device.device.install(program, &site);
    let installed = installed.map_err(|error| match error {
        HostError::Failed(why) => HostError::Failed(format!("`{}`: {why}", device.name)),
        other => other,
    })?;
    work::declare(program, &installed, device, (twin, spec.start));
    if !is_only {
        let activities = program.activities[first..].iter_mut();
        let activities = activities.map(|activity| &mut activity.name);
        let marks = program.marks[first_mark..].iter_mut();
        for name in activities.chain(marks) {
            *name = format!("{}: {name}", device.name);
        }
    }
    let kind = device.device.kind();
    let watched = Watched::Device(DeviceProbe {
        installed,
        placing: device.placing,
        kind,
    });
    Ok(probe(program, first, &device.name, kind, watched))
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
    fn install(&self, program: &mut Program, linking: &Linking) -> Probe {
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
                deadline,
                service,
                pace,
                rank,
                links,
            } => {
                let timing = pace.timing(*period, program);
                // Its place among others is that of its group.
                let among = links.group.as_ref().map_or(*deadline, |group| group.period);
                let what = (timing, [*deadline, among], *service);
                let links = linking.links(&self.name, links);
                let may_stop = linking.may_stop(&self.name);
                return periodic(program, self, what, (rank, links), may_stop);
            }
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
            // Those of a network are installed together.
            TaskKind::Client(_) | TaskKind::Flow(_) => {}
        }
        let kind = self.kind.kind();
        probe(program, first, &self.name, kind, Watched::Nothing)
    }
}

/// So many ends of jobs wait for who comes after them, and as many more as it makes up for late.
const ENDS_WAIT: u32 = 16;

/// What of a program links its tasks, by their names and those of their groups.
struct Linking {
    /// Where those are released that come after another one, and after whom.
    ports: Vec<(String, String, PortId)>,
    groups: Vec<Group>,
    /// Those that are suspended or end at an overrun.
    stop: Vec<String>,
}

impl Linking {
    fn of(program: &mut Program, tasks: &[ResolvedTask]) -> Self {
        let mut ports = Vec::new();
        let mut groups: Vec<Group> = Vec::new();
        let mut stop = Vec::new();
        for task in tasks {
            let TaskKind::Periodic { pace, links, .. } = &task.kind else {
                continue;
            };
            stop.extend(pace.on_overrun.stops().then(|| task.name.clone()));
            if let Some(before) = &links.after {
                let late = match pace.on_overrun {
                    OnOverrun::CatchUp { at_most } => at_most,
                    _ => 0,
                };
                let port = program.port(ENDS_WAIT + late);
                ports.push((task.name.clone(), before.clone(), port));
            }
            if let Some(wanted) = &links.group
                && groups.iter().all(|group| group.name != wanted.name)
            {
                groups.extend(program.group(&wanted.name, wanted.budget, wanted.period));
            }
        }
        Self {
            ports,
            groups,
            stop,
        }
    }

    /// Whether it, or one of those that it comes after, is suspended or ends at an overrun.
    fn may_stop(&self, name: &str) -> bool {
        let mut ports = self.ports.iter();
        let own = ports.find(|(own, ..)| own == name);
        self.stop.iter().any(|one| one == name)
            || own.is_some_and(|(_, before, _)| self.may_stop(before))
    }

    fn links(&self, name: &str, wanted: &TaskLinks) -> Links {
        let ports = self.ports.iter();
        let own = ports.clone().find(|(own, ..)| own == name);
        let before = ports.filter(|(_, before, _)| before == name);
        let group = wanted.group.as_ref();
        let mut groups = self.groups.iter();
        Links {
            after: own.map(|(.., port)| *port),
            before: before.map(|(.., port)| *port).collect(),
            group: group.and_then(|wanted| groups.find(|one| one.name == wanted.name).cloned()),
        }
    }
}

impl Pace {
    fn timing(&self, period: Span, program: &Program) -> Timing {
        let epoch = || program.epoch.clone();
        Timing {
            first: self
                .phase
                .map_or(First::AfterAPeriod, |phase| First::After(epoch(), phase)),
            period,
            batch: self.batch,
            quantum: self.quantum,
            on_overrun: self.on_overrun,
            pauses: false,
        }
    }
}

/// A task that recurs: in a thread of its own, or by turns in an executor's.
fn periodic(
    program: &mut Program,
    task: &ResolvedTask,
    (timing, [deadline, among], service): (Timing, [Span; 2], Service),
    (rank, links): (&PeriodicRank, Links),
    may_stop: bool,
) -> Probe {
    let (placement, reservation) = match rank {
        PeriodicRank::Priority(priority) => (Placement::Thread(*priority), None),
        PeriodicRank::Reserved(request) => (Placement::Thread(Priority::HIGHEST), Some(*request)),
        PeriodicRank::On(wanted) => {
            let executor = executor(program, wanted, task.processor);
            let task = timing.task(service, among).ok();
            (Placement::On { executor, task }, None)
        }
    };
    let first = program.activities.len();
    let declared = Periodic {
        name: task.name.clone(),
        processor: task.processor,
        placement,
        reservation,
        timing: timing.clone(),
        deadline,
        service,
    };
    let watched = declared.install_linked(program, links, move |_, call| {
        Step::Burn(timing.share(service, call.done(), call.now()))
    });
    let watched = Watched::Periodic(PeriodicProbe {
        may_stop,
        ..watched
    });
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
        TurnPolicy::RateMonotonic => program.executor(name, place, request, Rmdp::new()),
    }
}
