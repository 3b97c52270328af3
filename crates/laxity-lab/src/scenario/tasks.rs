//! `[tasks.*]` and `[executors.*]`: what runs beside the devices.

use std::ops::RangeInclusive;

use laxity_model::{Priority, ProcessorId, Service, Span};

use super::keys::{Integers, Key, Other, Own, Priorities, Table, Within, Without, Words};
use super::kinds;
use super::links;
use super::periodic::{PERIODIC_KEYS, periodic};
use super::placing::thread_of_own;
use super::quantities::{SERVICE, SPAN};
use super::reader::Section;
use super::sections::{DURATIONS, Names, PROCESSOR, named, processor};
use super::types::{Executor, HostSpec, Rank, ResolvedTask, TaskGroup, TaskKind, TurnPolicy};
use super::units::format_span;

pub(super) const SERVICES: RangeInclusive<Service> =
    Service::from_micros(1)..=Service::from_secs(3_600);

pub(super) fn show_service(service: Service) -> String {
    (SERVICE.show)(service)
}

/// A kind of tasks, as a file has it.
struct Known {
    name: &'static str,
    keys: &'static Table,
    read: fn(&Section<'_>, &Scope<'_>, &mut ProcessorId) -> Option<TaskKind>,
}

const SPINNER: Known = Known {
    name: kinds::SPINNER.name,
    keys: &SPINNER_KEYS,
    read: |section, _, _| Some(spinner(section)),
};
const PERIODIC: Known = Known {
    name: kinds::PERIODIC.name,
    keys: &PERIODIC_KEYS,
    read: periodic,
};
const ROGUE: Known = Known {
    name: kinds::ROGUE.name,
    keys: &ROGUE_KEYS,
    read: |section, _, _| rogue(section),
};
const COMMAND: Known = Known {
    name: kinds::COMMAND.name,
    keys: &COMMAND_KEYS,
    read: |section, _, _| command(section),
};

static KIND: Key<&Known> = Key::new(
    "kind",
    &Words(&[
        (SPINNER.name, &SPINNER),
        (PERIODIC.name, &PERIODIC),
        (ROGUE.name, &ROGUE),
        (COMMAND.name, &COMMAND),
    ]),
    Without::Refused("\"spinner\""),
    "What it is.",
);
static COMMON: Table = Table {
    heading: "[tasks.<name>]",
    kind: None,
    about: "What runs beside the devices, or by itself.",
    keys: &[&KIND, &PROCESSOR],
};

static COUNT: Key<u16> = Key::new(
    "count",
    &Integers(1, 1_000),
    Without::Is("1"),
    "How many threads.",
);
static NORMAL_PRIORITY: Key<Priority> =
    Key::new("priority", &Priorities, Without::Is("8"), "Of each thread.");
static SPINNER_KEYS: Table = Table {
    heading: "[tasks.<name>]",
    kind: Some(kinds::SPINNER.name),
    about: "Threads that never stop.",
    keys: &[&COUNT, &NORMAL_PRIORITY],
};

static BURST: Key<Service> = Key::new(
    "burst",
    &Within(&SERVICE, SERVICES),
    Without::Refused("\"100ms\""),
    "For how long it takes the processor.",
);
static EVERY: Key<Span> = Key::new(
    "every",
    &Within(&SPAN, DURATIONS),
    Without::Refused("\"400ms\""),
    "How often; longer than `burst`.",
);
static AFTER: Key<Span> = Key::new(
    "after",
    &Within(&SPAN, DURATIONS),
    Without::Means("as long as `every`"),
    "When the first time, after the start of the run.",
);
static RANK: Key<Priority> = Key::new(
    "priority",
    &Priorities,
    Without::Means("`fifo` says it"),
    "Of its thread, at its place among laxity's own.",
);
static FIFO: Key<u8> = Key::new(
    "fifo",
    &Integers(1, 99),
    Without::Means("`priority` says it"),
    "The `SCHED_FIFO` priority that somebody outside gave it. Linux only.",
);
static ROGUE_KEYS: Table = Table {
    heading: "[tasks.<name>]",
    kind: Some(kinds::ROGUE.name),
    about: "A thread that now and then takes the processor for long: somebody else's bug.",
    keys: &[&BURST, &EVERY, &AFTER, &RANK, &FIFO],
};

static ARGV: Key<Other> = Key::new(
    "argv",
    &Own("a list of strings"),
    Without::Refused("[\"sox\", \"in.wav\", \"-d\"]"),
    "The program and its arguments.",
);
static EXIT: Key<u8> = Key::new(
    "exit",
    &Integers(0, 255),
    Without::Is("0"),
    "The code with which it may end before the run does, as a shell says it: 128 and more for a signal. With any other, nothing of its variant is judged, and the run ends with exit code 1, or 5 where the machine stood still before, unless a contract limits its `exit_code`: then that is judged.",
);
static COMMAND_KEYS: Table = Table {
    heading: "[tasks.<name>]",
    kind: Some(kinds::COMMAND.name),
    about: "A program of yours. Linux only. It is placed in each variant by its name, as devices are.",
    keys: &[&ARGV, &EXIT],
};

static POLICY: Key<TurnPolicy> = Key::new(
    "policy",
    &Words(&[
        ("fcfs", TurnPolicy::FirstComeFirstServed),
        ("edf", TurnPolicy::EarliestDeadlineFirst),
        ("rmdp", TurnPolicy::RateMonotonic),
    ]),
    Without::Refused("\"edf\""),
    "Who of those that are placed on it is next: who came first, whose deadline is earliest, or who has the least time for each job, and so comes most often.",
);
pub(super) static EXECUTOR_KEYS: Table = Table {
    heading: "[executors.<name>]",
    kind: None,
    about: "A thread in which tasks take turns. It is placed here as devices are in a variant: in a thread or a reservation.",
    keys: &[&POLICY, &PROCESSOR],
};

/// All tables of keys of tasks, for the reference.
pub(super) static TABLES: [&Table; 5] = [
    &COMMON,
    SPINNER.keys,
    PERIODIC.keys,
    ROGUE.keys,
    COMMAND.keys,
];

/// What a task may name.
pub(super) struct Scope<'a> {
    pub(super) executors: Names<Hosting>,
    pub(super) groups: Names<TaskGroup>,
    /// The other tasks, as the file has them.
    pub(super) tasks: Option<Section<'a>>,
}

impl<'a> Scope<'a> {
    pub(super) fn of(root: &Section<'a>, host: &HostSpec) -> Self {
        Self {
            executors: executors(root, host),
            groups: links::groups(root),
            tasks: root.section("tasks", "[tasks]"),
        }
    }
}

/// `[tasks.*]`.
pub(super) fn tasks(root: &Section<'_>, host: &HostSpec, scope: &Scope<'_>) -> Names<ResolvedTask> {
    named(root, "tasks", |section, name| {
        let kind = section
            .value(KIND.name)
            .and_then(|_| section.optional(&KIND));
        if kind.is_some() || !section.has(KIND.name) {
            let all = [&SPINNER, &PERIODIC, &ROGUE, &COMMAND].into_iter();
            let is_known = |known: &&Known| kind.is_none_or(|kind| kind.name == known.name);
            let own = all.filter(is_known).map(|known| known.keys);
            section.keyed([&COMMON].into_iter().chain(own));
        }
        let Some(kind) = kind else {
            section.find(&KIND);
            return None;
        };
        let mut processor = processor(section, host);
        Some(ResolvedTask {
            name: name.to_owned(),
            kind: (kind.read)(section, scope, &mut processor)?,
            processor,
            placing: None,
        })
    })
}

/// An executor, and where it is.
pub(super) struct Hosting {
    pub(super) executor: Executor,
    pub(super) processor: ProcessorId,
}

/// `[executors.*]`.
fn executors(root: &Section<'_>, host: &HostSpec) -> Names<Hosting> {
    named(root, "executors", |section, name| {
        let placing = thread_of_own(section, &EXECUTOR_KEYS);
        let policy = section.optional(&POLICY);
        let processor = processor(section, host);
        let executor = Executor {
            name: name.to_owned(),
            policy: policy?,
            priority: placing?.priority()?,
            request: placing?.request(),
        };
        Some(Hosting {
            executor,
            processor,
        })
    })
}

fn spinner(section: &Section<'_>) -> TaskKind {
    TaskKind::Spinner {
        count: section.take(&COUNT),
        priority: section.take(&NORMAL_PRIORITY),
    }
}

fn rogue(section: &Section<'_>) -> Option<TaskKind> {
    let rank = rank(section);
    let (burst, every) = (section.find(&BURST), section.optional(&EVERY));
    let after = section.optional(&AFTER);
    let (burst, every) = (burst?, every?);
    if burst.value.as_dedicated_span() >= every {
        section.findings.error(
            &burst.place,
            format!(
                "a burst of {} does not fit in every {}",
                show_service(burst.value),
                format_span(every)
            ),
            "write a `burst` shorter than `every`, or a spinner if it is never to stop",
        );
    }
    Some(TaskKind::Rogue {
        burst: burst.value,
        every,
        after: after.unwrap_or(every),
        rank: rank?,
    })
}

fn rank(section: &Section<'_>) -> Option<Rank> {
    match (section.has("priority"), section.has("fifo")) {
        (false, false) => {
            section.missing("priority", "26");
            None
        }
        (true, true) => {
            section.wrong(
                "fifo",
                format!("{} has `priority` and `fifo`", section.path),
                "keep `priority` (0 to 31, at its place among laxity's threads) or `fifo` (1 to 99, as somebody outside would set it)",
            );
            None
        }
        (true, false) => section.optional(&RANK).map(Rank::Priority),
        (false, true) => {
            let fifo = section.optional(&FIFO)?;
            Some(Rank::Foreign { fifo })
        }
    }
}

fn command(section: &Section<'_>) -> Option<TaskKind> {
    let example = "[\"sox\", \"in.wav\", \"-d\"]";
    section.find(&ARGV);
    let argv = section.texts("argv", example)?;
    let empty = argv.first().is_none_or(|program| program.value.is_empty());
    if empty || argv.iter().any(|argument| argument.value.contains('\0')) {
        let cause = "`argv` names no program that could be started";
        let remedy = format!("write the program and its arguments, such as: argv = {example}");
        section.wrong("argv", cause, remedy);
    }
    let argv = argv.iter().map(|argument| argument.value.to_owned());
    Some(TaskKind::Command {
        argv: argv.collect(),
        exit: section.take(&EXIT),
    })
}
