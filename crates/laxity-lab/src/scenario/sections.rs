//! The parts of a file that refer to nothing else: host, transfer and lengths; and what all parts have in common.

use std::ops::RangeInclusive;

use laxity_model::{ProcessorId, Reservation, Span};

use super::Declared;
use super::devices::Phases;
use super::keys::{Any, Form, Integers, Key, Other, Own, Table, Texts, Within, Without, Words};
use super::lengths::LengthSpec;
use super::profile::TwinProfile;
use super::quantities::{RESERVATION, SIZE, SPAN};
use super::reader::{Entry, Found, Section};
use super::types::HostSpec;

/// Everything of one kind that a file declares, in its order.
pub(super) type Names<T> = Vec<Declared<T>>;

/// From 1 µs, below which no timer goes, to an hour.
pub(super) const DURATIONS: RangeInclusive<Span> = Span::from_micros(1)..=Span::from_secs(3_600);
/// A run's length: up to a day.
const LENGTHS: RangeInclusive<Span> = Span::from_millis(1)..=Span::from_secs(86_400);
/// Processors are numbered from 0 to this less one: more no scenario and no set needs, and no machine that laxity was tried on has.
pub const MOST_PROCESSORS: u16 = 64;

pub(super) static TITLE: Key<String> = Key::new(
    "title",
    &Texts("a string", "A soft modem beside spinners"),
    Without::Means("the file's name"),
    "One line for the heads of tables and reports.",
);
pub(super) static SEED: Key<u64> = Key::new(
    "seed",
    &Integers(0, i64::MAX as u64),
    Without::Is("1"),
    "Of lines' noise, all payload, and everything random in the twin.",
);
/// Where there is nothing without a key.
pub(super) const NONE: Without = Without::Means("none");
static HOST: Key<Other> = Key::new("host", &Own("a table"), NONE, "The machine.");
static TRANSFER: Key<Other> = Key::new("transfer", &Own("a table"), NONE, "What modems fetch.");
static DEVICES: Key<Other> = Key::new(
    "devices",
    &Own("a table of names"),
    NONE,
    "The soft devices.",
);
static EXECUTORS: Key<Other> = Key::new(
    "executors",
    &Own("a table of names"),
    NONE,
    "Threads in which tasks take turns.",
);
static GROUPS: Key<Other> = Key::new(
    "groups",
    &Own("a table of names"),
    NONE,
    "Budgets that tasks of an executor have together.",
);
static TASKS: Key<Other> = Key::new(
    "tasks",
    &Own("a table of names"),
    NONE,
    "What runs beside the devices.",
);
static INTERFACES: Key<Other> = Key::new(
    "interfaces",
    &Own("a table of names"),
    NONE,
    "The network interfaces.",
);
static FLOWS: Key<Other> = Key::new(
    "flows",
    &Own("a table of names"),
    NONE,
    "What comes over them.",
);
static CLIENTS: Key<Other> = Key::new(
    "clients",
    &Own("a table of names"),
    NONE,
    "Who takes the packets of flows.",
);
static CONTRACTS: Key<Other> = Key::new(
    "contracts",
    &Own("a table of names"),
    Without::Means("those that are built in"),
    "What “on time” means.",
);
static DEFAULTS: Key<Other> = Key::new(
    "defaults",
    &Own("a table"),
    NONE,
    "What holds for every variant that says nothing else.",
);
static VARIANTS: Key<Other> = Key::new(
    "variants",
    &Own("a table of names"),
    Without::Refused("[variants.reserved]"),
    "What is compared, in this order.",
);
static QUICK: Key<Other> = Key::new("quick", &Own("a table"), NONE, "How long runs are.");
static FULL: Key<Other> = Key::new("full", &Own("a table"), NONE, "The same with `--full`.");

/// The keys of the file itself.
pub(super) static ROOT: Table = Table {
    heading: "The file",
    kind: None,
    about: "",
    keys: &[
        &TITLE,
        &SEED,
        &HOST,
        &TRANSFER,
        &DEVICES,
        &EXECUTORS,
        &GROUPS,
        &TASKS,
        &INTERFACES,
        &FLOWS,
        &CLIENTS,
        &CONTRACTS,
        &DEFAULTS,
        &VARIANTS,
        &QUICK,
        &FULL,
    ],
};

static PROCESSORS: Key<u16> = Key::new(
    "processors",
    &Integers(1, MOST_PROCESSORS),
    Without::Is("1"),
    "How many processors the scenario uses, numbered from 0. Which of your machine's they are is found at run time.",
);
static TWIN: Key<TwinProfile> = Key::new(
    "twin",
    &Words(&[(
        TwinProfile::WIN2000_PII450.machine.name,
        TwinProfile::WIN2000_PII450,
    )]),
    Without::Is("\"win2000-pii450\""),
    "The machine that the twin is of: that of the study. Threads of one priority, such as `thread 20`, share a processor there by turns of 120ms. On Linux those of 16 to 31 are FIFO, and whoever has the processor keeps it until it waits; those below share it in the kernel's fair class.",
);
pub(super) static HOST_KEYS: Table = Table {
    heading: "[host]",
    kind: None,
    about: "The machine.",
    keys: &[&PROCESSORS, &TWIN],
};

/// `[host]`.
pub(super) fn host(root: &Section<'_>) -> HostSpec {
    let section = root.section(HOST.name, "[host]");
    let section = section.inspect(|section| section.keyed([&HOST_KEYS]));
    HostSpec {
        processors: PROCESSORS.of(section.as_ref()),
        profile: TWIN.of(section.as_ref()),
    }
}

// 536 is what TCP assumes of a path it does not know; 1460 fills an Ethernet frame.
static MSS: Key<u16> = Key::new(
    "mss",
    &Integers(536, 1_460),
    Without::Is("536"),
    "TCP's maximum segment size, in bytes.",
);
pub(super) static TRANSFER_KEYS: Table = Table {
    heading: "[transfer]",
    kind: None,
    about: "The file that modems fetch.",
    keys: &[&MSS],
};

/// `[transfer]`: TCP's maximum segment size.
pub(super) fn mss_bytes(root: &Section<'_>) -> u16 {
    let section = root.section(TRANSFER.name, "[transfer]");
    let section = section.inspect(|section| section.keyed([&TRANSFER_KEYS]));
    MSS.of(section.as_ref())
}

static REPEATS: Key<u32> = Key::new(
    "repeats",
    &Integers(1, 1_000),
    Without::Means("1; full 5"),
    "How often each variant is run, interleaved with the others.",
);
static BYTES: Key<u64> = Key::new(
    "bytes",
    &Sizes,
    Without::Means("4,000; full 200,000"),
    "The size of the file that modems fetch.",
);
static PHASES: Key<Phases> = Key::new(
    "phases",
    &Words(&[("short", Phases::SHORT), ("study", Phases::STUDY)]),
    Without::Means("`\"short\"`; full `\"study\"`"),
    "How long the parts of a modem's call before the connection last: 0.1, 1.5 and 1 s, or as in the study 2, 9 and 12 s.",
);
static LIMIT: Key<Span> = Key::new(
    "limit",
    &Within(&SPAN, LENGTHS),
    Without::Means("`\"5.2s\"`; full `\"400s\"`"),
    "A transfer that is not complete by then has failed: so long is a run with a modem at most.",
);
static IDLE: Key<Span> = Key::new(
    "idle",
    &Within(&SPAN, LENGTHS),
    Without::Means("`\"1.05s\"`; full `\"30s\"`"),
    "How long a run without a modem is, and each that repeats gaps.",
);
static AUTO: Key<Reservation> = Key::new(
    "auto",
    &Any(&RESERVATION),
    Without::Means("what laxity proposes"),
    "What is reserved at this length where a placement says `auto`.",
);
pub(super) static LENGTH_KEYS: Table = Table {
    heading: "[quick] and [full]",
    kind: None,
    about: "How long runs are, and how many: `[quick]` without `--full`, `[full]` with it.",
    keys: &[&REPEATS, &BYTES, &PHASES, &LIMIT, &IDLE, &AUTO],
};

/// `[quick]` or `[full]`.
pub(super) fn length(root: &Section<'_>, key: &str, default: LengthSpec) -> LengthSpec {
    let Some(section) = root.section(key, &format!("[{key}]")) else {
        return default;
    };
    section.keyed([&LENGTH_KEYS]);
    LengthSpec {
        repeats: section.optional(&REPEATS).unwrap_or(default.repeats),
        bytes: section.optional(&BYTES).unwrap_or(default.bytes),
        phases: section.optional(&PHASES).unwrap_or(default.phases),
        limit: section.optional(&LIMIT).unwrap_or(default.limit),
        idle: section.optional(&IDLE).unwrap_or(default.idle),
        auto: section.optional(&AUTO),
    }
}

/// `bytes = 200_000` or `bytes = "200 kB"`: as much as TCP's sequence numbers count.
struct Sizes;

impl Sizes {
    const RANGE: RangeInclusive<u64> = 1..=1 << 31;
}

impl Form<u64> for Sizes {
    fn read(&self, section: &Section<'_>, key: &str) -> Option<Found<u64>> {
        match section.value(key)?.get_ref() {
            toml::de::DeValue::Integer(_) => section.integer(key, &Self::RANGE),
            _ => section.quantity_in(key, &SIZE, &Self::RANGE),
        }
    }

    fn parse(&self, text: &str) -> Option<u64> {
        text.parse().ok().or((SIZE.parse)(text).ok())
    }

    fn describe(&self) -> String {
        "an integer of bytes, or a size such as \"200 kB\", up to 2 GiB".into()
    }
}

pub(super) static PROCESSOR: Key<u16> = Key::new(
    "processor",
    &Integers(0, u16::MAX),
    Without::Is("0"),
    "On which of the scenario's processors; below `processors` of [host].",
);

pub(super) fn processor(section: &Section<'_>, host: &HostSpec) -> ProcessorId {
    let Some(found) = section.find(&PROCESSOR) else {
        return ProcessorId(0);
    };
    if found.value >= host.processors {
        let remedy = match host.processors {
            1 => "write 0, or say under [host] how many there are: processors = 2".to_owned(),
            n => format!("write 0 to {}, or raise `processors` under [host]", n - 1),
        };
        let cause = format!("there is no processor {}", found.value);
        section.findings.error(&found.place, cause, remedy);
    }
    ProcessorId(found.value)
}

/// No scenario compares more; it keeps a hostile file from costing more than its size.
const MOST_NAMES: usize = 256;

/// Reads each entry of a table of names.
pub(super) fn named<'a, T>(
    root: &Section<'a>,
    kind: &str,
    read: impl Fn(&Section<'a>, &str) -> Option<T>,
) -> Names<T> {
    let Some(section) = root.section(kind, &format!("[{kind}]")) else {
        return Vec::new();
    };
    let read_entry = |entry: Entry<'a>| {
        let name = entry.name.value;
        let path = format!("[{kind}.{}]", super::reader::shortened(name));
        check_name(&section, &entry.name);
        let child = section.child(&entry, &path);
        Declared {
            name: name.to_owned(),
            place: entry.name.place.clone(),
            value: child.and_then(|child| read(&child, name)),
        }
    };
    let entries = section.entries();
    if let Some(beyond) = entries.get(MOST_NAMES) {
        let cause = format!("[{kind}] has {} entries", entries.len());
        let remedy = format!("write at most {MOST_NAMES}");
        section.findings.error(&beyond.name.place, cause, remedy);
    }
    let read = entries.into_iter().take(MOST_NAMES).map(read_entry);
    read.collect()
}

/// Names go into tables, file names and traces.
fn check_name(section: &Section<'_>, name: &Found<&str>) {
    const LONGEST: usize = 32;
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.value.is_empty() || name.value.len() > LONGEST || !name.value.chars().all(good) {
        let cause = format!("`{}` is no name", super::reader::shortened(name.value));
        let remedy = format!("write 1 to {LONGEST} letters, digits, `-` or `_`");
        section.findings.error(&name.place, cause, remedy);
    }
}

/// The places of those that are named, among all that there are; what is named twice counts once, and `twice` says what to do.
pub(super) fn chosen<'f, 't>(
    owner: &Section<'_>,
    (what, twice): (&str, &str),
    texts: &'f [Found<&'t str>],
    names: impl Iterator<Item = &'t str>,
) -> Vec<(usize, &'f Found<&'t str>)> {
    let names: Vec<&str> = names.collect();
    let mut chosen: Vec<(usize, &Found<&str>)> = Vec::new();
    for text in texts {
        match names.iter().position(|name| *name == text.value) {
            Some(index) if chosen.iter().any(|(known, _)| *known == index) => owner.findings.error(
                &text.place,
                format!("the {what} `{}` is named twice", text.value),
                twice,
            ),
            Some(index) => chosen.push((index, text)),
            None => owner.findings.unknown(what, text, names.iter().copied()),
        }
    }
    chosen
}

/// Whatever runs has a name of its own: that of no other kind.
pub(super) fn distinct<T, U>(
    root: &Section<'_>,
    (kind, known): (&str, &Names<T>),
    (own, names): (&str, &Names<U>),
) {
    for declared in names {
        if known.iter().any(|known| known.name == declared.name) {
            let cause = format!("`{}` is the name of {kind} already", declared.name);
            let remedy = format!("give the {own} a name of its own");
            root.findings.error(&declared.place, cause, remedy);
        }
    }
}
