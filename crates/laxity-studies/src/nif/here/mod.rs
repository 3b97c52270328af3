//! Tables 3 and 4 once more, as a scenario that this machine runs too: the framework's clients at one end of a wire, senders at the other, and TCP at both.
//!
//! * [`shown`]: what is shown and claimed of it.

pub mod shown;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use laxity_devices::modem::CardClock;
use laxity_lab::bench::{Holes, Request, Runner, scene};
use laxity_lab::observe::FlowProbe;
use laxity_lab::report::Value;
use laxity_lab::runner::compose::RunSpec;
use laxity_lab::scenario::{
    Demultiplexing, Flow, NetworkClient, Placing, Resolved, ResolvedTask, ResolvedVariant, Start,
    Taking, TaskKind, Traffic,
};
use laxity_model::nif::urgency::Stated;
use laxity_model::{
    ActivityId, Disturbances, HostError, Instant, Placement, Priority, Program, RunRecord, Span,
};

use super::TEXT;
use super::intervals::Intervals;
use super::segment::FRAME_PERIOD;
use super::trial::{Way, busy_ppm};

static SCENES: LazyLock<Resolved> =
    LazyLock::new(|| scene::scenario(include_str!("../../../data/nif-scenes.toml")));

/// How packets find their threads.
pub const WAYS: [Way; 3] = [Way::Late, Way::EarlyAlike, Way::Early];
/// Further ways, beside all streams only.
pub const FURTHER: [Way; 7] = [
    Way::Bsd,
    Way::BsdFirst,
    Way::Slots,
    Way::Deadline,
    Way::Due,
    Way::Kernel,
    Way::KernelFifo,
];
/// Of them, what the twin's machine has not: `SCHED_DEADLINE`, and a kernel's sockets.
const HERE_ALONE: [Way; 3] = [Way::Deadline, Way::Kernel, Way::KernelFifo];
/// The client whose thread goes first, as the scenes name it.
const FIRST: &str = "urgent-viewer";
/// Intervals between frames of a run: in the twin and at full length, and otherwise on this machine. Of the further ways as many as these, and half as many.
const FULL: u64 = 300;
const QUICK: u64 = 100;
/// How often a run is made on this machine at full length, beside none of the streams and all.
const ROUNDS: u32 = 5;
/// The most streams.
pub const STREAMS: u64 = 3;

/// A run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// How packets find their threads.
    pub way: Way,
    /// So many send bulk data, [`STREAMS`] at the most.
    pub streams: u64,
    /// Intervals between frames that are looked at.
    pub intervals: u64,
    /// Which of the runs that are made alike.
    pub round: u32,
    /// Everything random follows from it and the round.
    pub seed: u64,
}

/// What was seen in it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// From each frame to the next, as they were shown.
    pub all: Intervals,
    /// The same without those of which a frame was under way, or worked on, while the machine stood still.
    pub undisturbed: Intervals,
    /// From each frame to the next, as they left their sender.
    pub left: Intervals,
    /// Packets of bulk data that a thread took.
    pub packets: u64,
    /// Of the run so much was the processor at work that all clients share, in parts per million.
    pub busy_ppm: u64,
}

impl Seen {
    /// Of the intervals so many are left out as disturbed, in parts per million; `None` of none.
    pub fn excused_ppm(&self) -> Option<u64> {
        let [all, left] = [&self.all, &self.undisturbed].map(|one| one.0.len() as u64);
        ((all - left) * 1_000_000).checked_div(all)
    }
}

/// What is run: in the twin each way beside each number of streams, from several seeds. On this machine in turn, beside none and all, at full length several times; and then beside the others, too, once.
pub(super) fn cases(request: &Request, live: bool) -> impl Iterator<Item = Case> + use<> {
    let (seed, is_full) = (request.seed, request.full || !live);
    let rounds = match (live, request.full) {
        (false, _) => super::runs(request),
        (true, false) => request.repeats.unwrap_or(1),
        (true, true) => request.repeats.unwrap_or(ROUNDS),
    };
    let intervals = if is_full { FULL } else { QUICK };
    let cells = (0..rounds).flat_map(|round| (0..=STREAMS).map(move |streams| (round, streams)));
    let wanted = cells.filter(move |(round, streams)| {
        matches!(*streams, 0 | STREAMS) || !live || (is_full && *round == 0)
    });
    let case = move |way, (round, streams), intervals| Case {
        way,
        streams,
        intervals,
        round,
        seed,
    };
    let own = wanted.flat_map(move |cell| WAYS.map(|way| case(way, cell, intervals)));
    let further = (0..rounds).flat_map(|round| FURTHER.map(|way| (way, (round, STREAMS))));
    let further = further.filter(move |(way, _)| live || !HERE_ALONE.contains(way));
    let intervals = match (live, is_full) {
        (false, _) => FULL,
        (true, true) => QUICK,
        (true, false) => QUICK / 2,
    };
    own.chain(further.map(move |(way, cell)| case(way, cell, intervals)))
}

impl Case {
    pub(super) fn name(&self) -> String {
        let way = TEXT.say(self.way.key(), &[]);
        let holes: Holes<'_> = &[("way", &way), ("streams", &self.streams)];
        TEXT.say("with-tcp", holes)
    }

    /// As many connections send bulk data as are to.
    fn variant(&self) -> Result<ResolvedVariant, HostError> {
        let scene = match self.way {
            Way::Bsd | Way::BsdFirst => Way::Late.key(),
            Way::Due | Way::Kernel => Way::EarlyAlike.key(),
            Way::KernelFifo => Way::Early.key(),
            way => way.key(),
        };
        let mut all = SCENES.variants.iter();
        let found = all.find(|variant| variant.name == scene);
        let no_scene = || HostError::BadProgram(format!("no scene {scene}"));
        let mut variant = found.ok_or_else(no_scene)?.clone();
        variant.tasks.retain_mut(|task| match &mut task.kind {
            TaskKind::Flow(flow) => sized(flow, self.streams),
            TaskKind::Client(client) => {
                let flows = &mut Arc::make_mut(client).flows;
                flows.retain_mut(|flow| sized(flow, self.streams));
                !flows.is_empty()
            }
            _ => true,
        });
        let tasks = variant.tasks.iter_mut();
        tasks.for_each(|task| arrange(self.way, task));
        Ok(variant)
    }
}

/// What of a way the file of scenes cannot say.
fn arrange(way: Way, task: &mut ResolvedTask) {
    let TaskKind::Client(client) = &mut task.kind else {
        return;
    };
    let client = Arc::make_mut(client);
    match way {
        Way::Bsd | Way::BsdFirst => {
            task.placing = Some(Placing::Deferred);
            client.demultiplexing = Demultiplexing::Late { threads: 1 };
            if way == Way::BsdFirst {
                client.taking = Taking::ByFlow;
            }
        }
        Way::Due => client.taking = due(client),
        Way::Kernel | Way::KernelFifo => {
            client.taking = Taking::FromKernel;
            if way == Way::Kernel {
                task.placing = Some(Placing::Thread(Priority::NORMAL));
            }
        }
        _ => {}
    }
}

/// What a client of one flow of video states, and how urgent its packets are then: as fast as it works on them, two frames at once, each until the next.
fn due(client: &NetworkClient) -> Taking {
    let traffic = client.flows.first().map(|flow| flow.traffic);
    let Some(Traffic::Video {
        packets, period, ..
    }) = traffic
    else {
        return Taking::default();
    };
    let each = client.packet.as_dedicated_span();
    let stated = Stated::new(1, each, 2 * u32::from(packets), period);
    stated.map_or(Taking::default(), |stated| {
        Taking::Due(stated, Priority::HIGHEST)
    })
}

/// Gives a flow of bulk data so many connections; whether anything of it is left.
fn sized(flow: &mut Arc<Flow>, streams: u64) -> bool {
    match &mut Arc::make_mut(flow).traffic {
        Traffic::Bulk { count, .. } => {
            *count = streams as u16;
            streams > 0
        }
        Traffic::Video { .. } => true,
    }
}

/// Runs a case.
///
/// # Errors
///
/// The host's: on this machine [`HostError::CannotRun`] where no interfaces may be made.
pub fn run(host: &mut Runner<'_>, case: &Case) -> Result<Seen, HostError> {
    let variant = case.variant()?;
    let twin = (!host.is_live()).then_some(SCENES.host.profile);
    let spec = RunSpec {
        seed: case.seed.wrapping_add(case.round.into()),
        mss_bytes: SCENES.mss_bytes,
        further_receivers: 0,
        start: Start::OnHook,
        gaps_only: true,
        clock: CardClock::default(),
    };
    // Of so many frames and one, the last has a period to be shown in.
    let length = FRAME_PERIOD * (case.intervals + 1);
    let mut inside = Vec::new();
    let scene = (&*SCENES, &variant, twin);
    let (record, probes) = scene::run(host, scene, spec, length, |program, _| {
        inside = of_the_machine(program);
    })?;
    let (video, bulk): (Vec<_>, Vec<_>) = probes.flows().partition(|flow| is_video(flow));
    let Some(video) = video.first() else {
        return Err(HostError::BadProgram("a scene without video".into()));
    };
    let taken = bulk.iter().map(|flow| record.marked(flow.marks.taken));
    let usage = inside.iter().filter_map(|id| record.usage.get(id.index()));
    Ok(Seen {
        packets: taken.map(|taken| taken.count() as u64).sum(),
        busy_ppm: busy_ppm(&record, usage),
        ..evenness(&record, video, case.intervals as usize)
    })
}

/// Its drivers and threads, and not what stands for the world around it.
fn of_the_machine(program: &Program) -> Vec<ActivityId> {
    let all = (0..=u16::MAX).map(ActivityId).zip(&program.activities);
    let inside = all.filter(|(_, activity)| activity.placement != Placement::External);
    inside.map(|(id, _)| id).collect()
}

const fn is_video(flow: &FlowProbe) -> bool {
    matches!(flow.traffic, Traffic::Video { .. })
}

/// How evenly the first frames were shown, and left.
fn evenness(record: &RunRecord, video: &FlowProbe, intervals: usize) -> Seen {
    let halts = Disturbances::of(record, &video.holders);
    let left = video.left(record);
    let shown = video.shown(record);
    let first = |all: &[(u64, Instant)]| -> Vec<Instant> {
        all.iter().take(intervals + 1).map(|(_, at)| *at).collect()
    };
    let is_disturbed = |(frame, at): &(u64, Instant)| {
        let mut left = left.iter();
        let left = left.find(|(number, _)| number == frame);
        left.is_none_or(|(_, left)| halts.overlap(*left, *at))
    };
    let disturbed: Vec<bool> = shown.iter().map(is_disturbed).collect();
    let all = Intervals::between(&first(&shown));
    let both = all.0.iter().zip(disturbed.windows(2));
    let undisturbed = both.filter(|(_, disturbed)| !disturbed.contains(&true));
    let undisturbed: Vec<Span> = undisturbed.map(|(interval, _)| *interval).collect();
    Seen {
        undisturbed: Intervals(undisturbed),
        all,
        left: Intervals::between(&first(&left)),
        ..Seen::default()
    }
}

/// What was put in, by the names that the study's words have for it. Of what several clients have alike, any one's.
pub(super) fn values() -> BTreeMap<&'static str, Value> {
    let mut all = BTreeMap::new();
    let tasks = SCENES.variants.iter().flat_map(|variant| &variant.tasks);
    for task in tasks {
        match &task.kind {
            TaskKind::Client(client) => all.extend(of_a_client(client)),
            TaskKind::Flow(flow) => match flow.traffic {
                Traffic::Bulk { pause, block, .. } => all.extend([
                    ("tcp-pause", pause.into()),
                    ("tcp-block", u64::from(block).into()),
                ]),
                Traffic::Video { jitter, .. } => {
                    all.insert("tcp-jitter", jitter.into());
                }
            },
            _ => {}
        }
        if let Some(Placing::Thread(priority)) = task.placing {
            let level = u64::from(priority.level());
            let name = match task.name.as_str() {
                FIRST => "tcp-first",
                _ => "tcp-ordinary",
            };
            all.insert(name, level.into());
        }
        let request = task.placing.and_then(|placing| placing.request());
        if let Some(reserved) = request.map(|request| request.reservation) {
            all.extend([
                (
                    "tcp-reserved",
                    reserved.service().as_dedicated_span().into(),
                ),
                ("tcp-reserved-period", reserved.period().into()),
            ]);
        }
    }
    all
}

/// The same of a client and its interface.
fn of_a_client(client: &NetworkClient) -> impl Iterator<Item = (&'static str, Value)> + use<> {
    let interface = &client.interface;
    let costs = interface.costs;
    let [packet, interrupt, each] = [client.packet, costs.interrupt, costs.packet]
        .map(|service| Value::from(service.as_dedicated_span()));
    let threads = match client.demultiplexing {
        Demultiplexing::Late { threads } => Some(("tcp-pool", u64::from(threads).into())),
        Demultiplexing::Early => None,
    };
    let all = [
        ("tcp-packet", packet),
        ("tcp-interrupt", interrupt),
        ("tcp-interrupt-packet", each),
        ("tcp-rate", Value::BitRate(interface.wire.rate)),
        ("tcp-buffers", u64::from(client.buffers).into()),
    ];
    all.into_iter().chain(threads)
}
