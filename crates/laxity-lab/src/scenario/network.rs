//! `[interfaces.*]`, `[flows.*]` and `[clients.*]`: a network interface, what comes over it, and who takes that.

use std::sync::Arc;

use laxity_model::nif::most::{Costs, Most};
use laxity_model::nif::wire::Faults;
use laxity_model::{Priority, Service, Span};

use super::keys::{Any, Integers, Key, Other, Own, Table, Texts, Within, Without, Words};
use super::kinds;
use super::placing::thread_of_own;
use super::quantities::{MOST, RATE, SERVICE, SHARE, SIZE, SPAN};
use super::reader::Section;
use super::sections::{DURATIONS, Names, PROCESSOR, chosen, distinct, named, processor};
use super::stated;
use super::types::{
    Demultiplexing, Flow, HostSpec, Interface, NetworkClient, ResolvedTask, TaskKind, Traffic,
};

/// The key of what an interrupt takes.
pub(crate) const INTERRUPT: &str = "interrupt";
/// What takes no longer than this may take nothing.
const SHORT: std::ops::RangeInclusive<Service> = Service::ZERO..=Service::from_secs(1);
/// From nothing to as long as any time of a scenario.
const DELAYS: std::ops::RangeInclusive<Span> = Span::ZERO..=*DURATIONS.end();

/// In bits a second, from 1 kbit/s to 1 Tbit/s.
const RATES: std::ops::RangeInclusive<u64> = 1_000..=1_000_000_000_000;

static RATE_KEY: Key<u64> = Key::new(
    "rate",
    &Within(&RATE, RATES),
    Without::Is("\"10 Mbit/s\""),
    "Of the wire, in the twin. On Linux it is a pair of interfaces, which takes no time.",
);
static DUPLEX: Key<bool> = Key::new(
    "duplex",
    &Words(&[("half", true), ("full", false)]),
    Without::Is("\"half\""),
    "Whether the twin's wire carries one frame at a time, in either direction, or one each way.",
);
static DELAY: Key<Span> = Key::new(
    "delay",
    &Within(&SPAN, DELAYS),
    Without::Is("\"0ms\""),
    "From when the last bit of a frame leaves until it arrives, in the twin.",
);
/// Of a million.
const SHARES: std::ops::RangeInclusive<u32> = 0..=1_000_000;

static LOSS: Key<u32> = Key::new(
    "loss",
    &Within(&SHARE, SHARES),
    Without::Is("\"0 %\""),
    "How many of the frames on the wire, each way, never arrive. Which ones follows from the run's seed. On Linux what goes wrong does so at the far end, before its interface.",
);
static DUPLICATION: Key<u32> = Key::new(
    "duplication",
    &Within(&SHARE, SHARES),
    Without::Is("\"0 %\""),
    "How many arrive twice.",
);
static REORDERING: Key<u32> = Key::new(
    "reordering",
    &Within(&SHARE, SHARES),
    Without::Is("\"0 %\""),
    "How many arrive later than others do, by `late_by`, and so behind what was sent after them.",
);
static LATE_BY: Key<Span> = Key::new(
    "late_by",
    &Within(&SPAN, DELAYS),
    Without::Is("\"1ms\""),
    "How much later; with `reordering`.",
);
static CORRUPTION: Key<u32> = Key::new(
    "corruption",
    &Within(&SHARE, SHARES),
    Without::Is("\"0 %\""),
    "How many arrive with one bit wrong. Whoever takes such a packet drops it for its checksum.",
);
static ENTERS: Key<Service> = Key::new(
    INTERRUPT,
    &Within(&SERVICE, SHORT),
    Without::Is("\"50us\""),
    "What an interrupt takes at the most: the twin charges it, and on Linux it takes what it takes. Where there is a `most`, admission counts so much. Without it, what `laxity calibrate` measured of packet sockets is taken on Linux, if that was measured, and in the twin where `--machine` names a file.",
);
static PACKET: Key<Service> = Key::new(
    "packet",
    &Within(&SERVICE, SHORT),
    Without::Is("\"50us\""),
    "The same of each packet of it, and of each frame that is sent. What was measured has so much for each byte, too.",
);
static MOST_KEY: Key<Most> = Key::new(
    "most",
    &Any(&MOST),
    Without::Means(
        "no end of them: neither its interrupts nor its clients are charged to anybody, and nothing below them has a bound",
    ),
    "How many packets its driver takes at the most, in any time of this length, arriving and sent together. What comes beyond waits in the interface, which has room for 256 on Linux and for as many in the twin (64 to 256), and is lost there if it has none. So its interrupts and the threads of its clients are charged.",
);
pub(super) static INTERFACE_KEYS: Table = Table {
    heading: "[interfaces.<name>]",
    kind: None,
    about: "A network interface. All flows begin at the other end of its wire. On Linux it is one of a pair of interfaces (veth) in a network namespace that is made for each run, and gone after it.",
    keys: &[
        &PROCESSOR,
        &RATE_KEY,
        &DUPLEX,
        &DELAY,
        &LOSS,
        &DUPLICATION,
        &REORDERING,
        &LATE_BY,
        &CORRUPTION,
        &ENTERS,
        &PACKET,
        &MOST_KEY,
    ],
};

static KIND: Key<bool> = Key::new(
    "kind",
    &Words(&[(kinds::VIDEO.name, true), (kinds::BULK.name, false)]),
    Without::Refused("\"video\""),
    "What it is.",
);
pub(super) static FLOW_KEYS: Table = Table {
    heading: "[flows.<name>]",
    kind: None,
    about: "What comes over an interface: it is what contracts are about, by its name or kind.",
    keys: &[&KIND],
};
static PERIOD: Key<Span> = Key::new(
    "period",
    &Within(&SPAN, DURATIONS),
    Without::Is("\"100ms\""),
    "From frame to frame.",
);
static PACKETS: Key<u16> = Key::new(
    "packets",
    &Integers(1, 16),
    Without::Is("3"),
    "Of how many packets a frame is.",
);
static BYTES: Key<u16> = Key::new(
    "bytes",
    &Integers(16, 1_472),
    Without::Is("1432"),
    "Of each of them, behind the UDP header.",
);
static JITTER: Key<Span> = Key::new(
    "jitter",
    &Within(&SPAN, DELAYS),
    Without::Is("\"0ms\""),
    "How long after its time a frame leaves at the most; less than the period.",
);
pub(super) static VIDEO_KEYS: Table = Table {
    heading: FLOW_KEYS.heading,
    kind: Some(kinds::VIDEO.name),
    about: "A frame every so often, in UDP: it is shown when the last of its packets has been worked on.",
    keys: &[&PERIOD, &PACKETS, &BYTES, &JITTER],
};
static COUNT: Key<u16> = Key::new(
    "count",
    &Integers(1, 16),
    Without::Is("1"),
    "How many connections.",
);
static BLOCK: Key<u64> = Key::new(
    "block",
    &Within(&SIZE, 2_048..=1 << 20),
    Without::Is("\"16 KiB\""),
    "The data that there is at once, which is also what a connection has under way at most.",
);
static PAUSE: Key<Span> = Key::new(
    "pause",
    &Within(&SPAN, DELAYS),
    Without::Is("\"250ms\""),
    "From when a block has been taken by its connection until there is the next, in the mean: what the sender's disk takes.",
);
pub(super) static BULK_KEYS: Table = Table {
    heading: FLOW_KEYS.heading,
    kind: Some(kinds::BULK.name),
    about: "Data that is sent in blocks, over TCP.",
    keys: &[&COUNT, &BLOCK, &PAUSE],
};

static INTERFACE: Key<String> = Key::new(
    "interface",
    &Texts("the name of an interface", "lan"),
    Without::Refused("\"lan\""),
    "The interface whose packets it takes.",
);
static FLOWS: Key<Other> = Key::new(
    "flows",
    &Own("a list of names"),
    Without::Refused("[\"video\"]"),
    "The flows whose packets these are.",
);
static DEMULTIPLEXING: Key<Demultiplexing> = Key::new(
    "demultiplexing",
    &Words(&[
        ("late", Demultiplexing::Late { threads: 0 }),
        ("early", Demultiplexing::Early),
    ]),
    Without::Is("\"early\""),
    "Whether each connection has a queue and a thread of its own, or all have one queue together.",
);
static THREADS: Key<u16> = Key::new(
    "threads",
    &Integers(1, 16),
    Without::Is("1"),
    "How many threads take from the queue; with `demultiplexing = \"late\"`.",
);
static WORK: Key<Service> = Key::new(
    "packet",
    &Within(&SERVICE, SHORT),
    Without::Is("\"1.95ms\""),
    "What its thread does for each packet, and on the way burns.",
);
static BUFFERS: Key<u32> = Key::new(
    "buffers",
    &Integers(1, 4_096),
    Without::Is("256"),
    "Empty buffers of each queue: a packet that finds none is lost.",
);
pub(super) static CLIENT_KEYS: Table = Table {
    heading: "[clients.<name>]",
    kind: None,
    about: "Who takes the packets of flows: its threads have a placement, with the keys that say more of a reservation. A client takes part in the variants that name it under `clients`.",
    keys: &[
        &INTERFACE,
        &FLOWS,
        &DEMULTIPLEXING,
        &THREADS,
        &WORK,
        &BUFFERS,
        &stated::RATE,
        &stated::BURST,
        &stated::DELAY,
        &stated::CRITICAL,
    ],
};

/// All that a file says of networks.
pub(super) struct Networks {
    pub(super) flows: Names<Arc<Flow>>,
    pub(super) clients: Names<ResolvedTask>,
}

impl Networks {
    /// None of it has the name of something else.
    pub(super) fn distinct<T>(&self, root: &Section<'_>, known: (&str, &Names<T>)) {
        distinct(root, known, ("flow", &self.flows));
        distinct(root, known, ("client", &self.clients));
    }
}

/// `[interfaces.*]`, `[flows.*]` and `[clients.*]`.
pub(super) fn networks(root: &Section<'_>, host: &HostSpec) -> Networks {
    let interfaces = named(root, "interfaces", |section, name| {
        Some(Arc::new(interface(section, name, host)))
    });
    let flows = named(root, "flows", flow);
    let clients = named(root, "clients", |section, name| {
        client(section, name, &interfaces, &flows)
    });
    Networks { flows, clients }
}

fn interface(section: &Section<'_>, name: &str, host: &HostSpec) -> Interface {
    section.keyed([&INTERFACE_KEYS]);
    let keys = [ENTERS.name, PACKET.name].into_iter();
    Interface {
        name: name.to_owned(),
        processor: processor(section, host),
        is_half_duplex: section.take(&DUPLEX),
        wire: wire(section),
        costs: Costs {
            interrupt: section.take(&ENTERS),
            packet: section.take(&PACKET),
            byte_ps: 0,
        },
        unstated: keys.filter(|key| !section.has(key)).collect(),
        calibrated: None,
        most: section.optional(&MOST_KEY),
    }
}

fn wire(section: &Section<'_>) -> Faults {
    let late = section.take(&REORDERING);
    if section.has(LATE_BY.name) && !section.has(REORDERING.name) {
        let cause = "`late_by` is of frames that arrive later than others, and none does";
        let remedy = "remove it, or write how many do, such as: reordering = \"1 %\"";
        section.wrong(LATE_BY.name, cause, remedy);
    }
    Faults {
        rate: section.take(&RATE_KEY),
        delay: section.take(&DELAY),
        lost: section.take(&LOSS),
        doubled: section.take(&DUPLICATION),
        late,
        late_by: section.take(&LATE_BY),
        corrupted: section.take(&CORRUPTION),
    }
}

fn flow(section: &Section<'_>, name: &str) -> Option<Arc<Flow>> {
    let kind = section.find(&KIND).map(|found| found.value);
    let own = match kind {
        Some(true) => vec![&VIDEO_KEYS],
        Some(false) => vec![&BULK_KEYS],
        None => vec![&VIDEO_KEYS, &BULK_KEYS],
    };
    section.keyed([&FLOW_KEYS].into_iter().chain(own));
    let traffic = if kind? {
        video(section)
    } else {
        Traffic::Bulk {
            count: section.take(&COUNT),
            block: section.take(&BLOCK) as u32,
            pause: section.take(&PAUSE),
        }
    };
    let name = name.to_owned();
    Some(Arc::new(Flow { name, traffic }))
}

fn video(section: &Section<'_>) -> Traffic {
    let (period, jitter) = (section.take(&PERIOD), section.take(&JITTER));
    if jitter >= period {
        let cause = "a frame that is late by a period leaves after the next";
        section.wrong(JITTER.name, cause, "write a `jitter` below the `period`");
    }
    Traffic::Video {
        period,
        packets: section.take(&PACKETS),
        bytes: section.take(&BYTES),
        jitter,
    }
}

fn client(
    section: &Section<'_>,
    name: &str,
    interfaces: &Names<Arc<Interface>>,
    flows: &Names<Arc<Flow>>,
) -> Option<ResolvedTask> {
    let placing = thread_of_own(section, &CLIENT_KEYS);
    let (interface, flows) = (interface_of(section, interfaces), flows_of(section, flows));
    let (demultiplexing, packet) = (demultiplexing(section), section.take(&WORK));
    let buffers = section.take(&BUFFERS);
    let taking = stated::taking(section, demultiplexing, placing);
    // All that is wrong has been told.
    let client = NetworkClient {
        interface: interface?,
        flows: flows?,
        demultiplexing,
        taking,
        packet,
        buffers,
    };
    let placing = placing?;
    if placing.request().is_some() && client.threads() > 1 {
        let cause = format!(
            "a reservation is one thread's, and {} has {}",
            section.path,
            client.threads()
        );
        let remedy = "write a priority, such as placement = \"thread 24\", or let it have one connection or thread";
        section.wrong("placement", cause, remedy);
    }
    Some(ResolvedTask {
        name: name.to_owned(),
        processor: client.interface.processor,
        kind: TaskKind::Client(Arc::new(client)),
        placing: Some(placing),
    })
}

fn interface_of(section: &Section<'_>, all: &Names<Arc<Interface>>) -> Option<Arc<Interface>> {
    let named = section.find(&INTERFACE)?;
    let Some(found) = all.iter().find(|declared| declared.name == named.value) else {
        let place = named.place;
        let named = super::reader::Found {
            value: &*named.value,
            place,
        };
        let names = all.iter().map(|declared| declared.name.as_str());
        section.findings.unknown("interface", &named, names);
        return None;
    };
    found.value.clone()
}

fn flows_of(section: &Section<'_>, all: &Names<Arc<Flow>>) -> Option<Vec<Arc<Flow>>> {
    section.find(&FLOWS);
    let texts = section.texts(FLOWS.name, "[\"video\"]")?;
    if texts.is_empty() {
        let cause = format!("{} takes the packets of no flow", section.path);
        section.wrong(FLOWS.name, cause, "name one, such as: flows = [\"video\"]");
    }
    let names = all.iter().map(|declared| declared.name.as_str());
    let named = chosen(section, ("flow", "name it once"), &texts, names);
    named
        .iter()
        .map(|(index, _)| all[*index].value.clone())
        .collect()
}

fn demultiplexing(section: &Section<'_>) -> Demultiplexing {
    let early = section.take(&DEMULTIPLEXING) == Demultiplexing::Early;
    if early && section.has(THREADS.name) {
        let cause = "`threads` take from one queue, and here each connection has its own";
        let remedy = "remove it, or write demultiplexing = \"late\"";
        section.wrong(THREADS.name, cause, remedy);
    }
    let threads = section.take(&THREADS);
    if early {
        Demultiplexing::Early
    } else {
        Demultiplexing::Late { threads }
    }
}

/// What takes part in a variant: its clients, and behind them their flows, each once.
pub(super) fn taking_part(
    section: &Section<'_>,
    networks: &Networks,
    named: &[usize],
) -> Vec<ResolvedTask> {
    let clients = named
        .iter()
        .filter_map(|index| networks.clients[*index].value.as_ref());
    let mut all: Vec<ResolvedTask> = clients.clone().cloned().collect();
    let mut interface: Option<&Arc<Interface>> = None;
    for task in clients {
        let TaskKind::Client(client) = &task.kind else {
            continue;
        };
        let first = *interface.get_or_insert(&client.interface);
        if first.name != client.interface.name {
            let cause = format!(
                "the clients of {} are on two interfaces, `{}` and `{}`",
                section.path, first.name, client.interface.name
            );
            section.wrong(CLIENTS_KEY, cause, "name clients of one interface");
        }
        for flow in &client.flows {
            if all.iter().any(|task| task.name == flow.name) {
                let cause = format!("the packets of `{}` have two clients here", flow.name);
                section.wrong(CLIENTS_KEY, cause, "name one of the two clients");
                continue;
            }
            all.push(ResolvedTask {
                name: flow.name.clone(),
                processor: client.interface.processor,
                kind: TaskKind::Flow(Arc::clone(flow)),
                placing: None,
            });
        }
    }
    all
}

/// The key of a variant that names its clients.
pub(super) const CLIENTS_KEY: &str = "clients";

/// Of the threads that do what is no client's: at the timers of protocols, and with packets of no flow. The least urgent client's whose flows have protocols, or else of all.
pub(crate) fn of_protocols<'a>(
    clients: impl Iterator<Item = (&'a ResolvedTask, &'a NetworkClient)>,
) -> Priority {
    let has_protocols = |client: &NetworkClient| {
        let mut flows = client.flows.iter();
        flows.any(|flow| matches!(flow.traffic, Traffic::Bulk { .. }))
    };
    let ranked = clients.map(|(task, client)| (!has_protocols(client), priority(task)));
    ranked.min().map_or(Priority::NORMAL, |(_, least)| least)
}

/// Of a task's threads at their most urgent.
pub(crate) fn highest(task: &ResolvedTask) -> Priority {
    let due = match &task.kind {
        TaskKind::Client(client) => client.due(),
        _ => None,
    };
    due.map_or_else(|| priority(task), |(_, critical)| critical)
}

/// Of its threads as it is placed.
pub(crate) fn priority(task: &ResolvedTask) -> Priority {
    let placing = task.placing.and_then(|placing| placing.priority());
    placing.unwrap_or(Priority::NORMAL)
}
