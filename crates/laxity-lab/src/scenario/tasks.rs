//! `[tasks.*]` and `[executors.*]`: what runs beside the devices.

use std::ops::RangeInclusive;

use laxity_model::{
    Enforcer, Outside, Priority, ProcessorId, Reservation, ReservationRequest, Service, Span,
};

use super::keys::{Any, Integers, Key, Other, Own, Priorities, Table, Within, Without, Words};
use super::kinds;
use super::placing::thread_of_own;
use super::quantities::{RESERVATION, SERVICE, SPAN};
use super::reader::{Found, Section};
use super::sections::{DURATIONS, NONE, Names, PROCESSOR, named, processor};
use super::types::{Executor, HostSpec, PeriodicRank, Rank, ResolvedTask, TaskKind, TurnPolicy};
use super::units::format_span;

const SERVICES: RangeInclusive<Service> = Service::from_micros(1)..=Service::from_secs(3_600);

fn show_service(service: Service) -> String {
    (SERVICE.show)(service)
}

/// A kind of tasks, as a file has it.
struct Known {
    name: &'static str,
    keys: &'static Table,
    read: fn(&Section<'_>, &Names<Hosting>, &mut ProcessorId) -> Option<TaskKind>,
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

static PERIOD: Key<Span> = Key::new(
    "period",
    &Within(&SPAN, DURATIONS),
    Without::Refused("\"1ms\""),
    "From release to release.",
);
static DEADLINE: Key<Span> = Key::new(
    "deadline",
    &Within(&SPAN, DURATIONS),
    Without::Means("as long as `period`"),
    "From its release, when a job is due. No later than the next is released: a job that is at work then takes the place of that one, which has missed its deadline.",
);
static JOB: Key<Service> = Key::new(
    "service",
    &Within(&SERVICE, Service::ZERO..=Service::from_secs(3_600)),
    Without::Is("\"0ms\""),
    "What a job takes at most, and on the way burns; no more than the period is long.",
);
static ON: Key<Other> = Key::new(
    "on",
    &Own("the name of an executor"),
    Without::Means("a thread of its own"),
    "The executor on which it takes turns with others.",
);
static HIGHEST_PRIORITY: Key<Priority> =
    Key::new("priority", &Priorities, Without::Is("31"), "Of its thread.");
static OWN_RESERVATION: Key<Reservation> = Key::new(
    "reservation",
    &Any(&RESERVATION),
    NONE,
    "A reservation of its own, by the kernel's `SCHED_DEADLINE`, in place of a priority.",
);
static ENFORCER: Key<Other> = Key::new(
    "enforcer",
    &Own("`deadline`"),
    Without::Is("\"deadline\""),
    "Who keeps that reservation: only the kernel does. `slots` is refused: in a table of them a task would wait for its slot at every release.",
);
static PERIODIC_KEYS: Table = Table {
    heading: "[tasks.<name>]",
    kind: Some(kinds::PERIODIC.name),
    about: "A job every so often, each with a deadline.",
    keys: &[
        &PERIOD,
        &DEADLINE,
        &JOB,
        &ON,
        &HIGHEST_PRIORITY,
        &OWN_RESERVATION,
        &ENFORCER,
    ],
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
    "The code with which it may end before the run does. With any other, nothing is judged, unless a contract limits its `exit_code`: then that is.",
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

/// `[tasks.*]`.
pub(super) fn tasks(
    root: &Section<'_>,
    host: &HostSpec,
    executors: &Names<Hosting>,
) -> Names<ResolvedTask> {
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
            kind: (kind.read)(section, executors, &mut processor)?,
            processor,
            placing: None,
        })
    })
}

/// An executor, and where it is.
pub(super) struct Hosting {
    executor: Executor,
    processor: ProcessorId,
}

/// `[executors.*]`.
pub(super) fn executors(root: &Section<'_>, host: &HostSpec) -> Names<Hosting> {
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

/// A slot table has its own phase: a thread released in between would wait for its slot, up to Y − X, and its gaps would measure that.
fn check_periodic_enforcer(section: &Section<'_>) {
    // Read like all others, so that it is told what is wrong with those.
    let words = [("deadline", Enforcer::Deadline), ("slots", Enforcer::Slots)];
    let Some(found) = section.choice(ENFORCER.name, &words) else {
        return;
    };
    if !section.has("reservation") {
        let cause = "`enforcer` is for a reservation, and there is none";
        let remedy = "add a line such as: reservation = \"0.1ms/1ms\"";
        section.findings.error(&found.place, cause, remedy);
    } else if found.value == Enforcer::Slots {
        let cause = "a periodic task would wait for its slot at every release";
        let remedy = "write enforcer = \"deadline\", or leave it out";
        section.findings.error(&found.place, cause, remedy);
    }
}

/// Where a task is on an executor, `processor` becomes that of the executor.
fn periodic(
    section: &Section<'_>,
    executors: &Names<Hosting>,
    processor: &mut ProcessorId,
) -> Option<TaskKind> {
    check_periodic_enforcer(section);
    let reservation = section.find(&OWN_RESERVATION);
    if reservation.is_some() && section.has("priority") {
        let cause = format!("{} has a reservation and a priority", section.path);
        let remedy = "remove one: a thread with a reservation by `deadline` has no priority";
        section.wrong("priority", cause, remedy);
    }
    let period = section.optional(&PERIOD)?;
    let jobs = Service::ZERO..=period.as_full_service();
    let service = section.quantity_in(JOB.name, &SERVICE, &jobs);
    let service = service.map_or(Service::ZERO, |found| found.value);
    if let Some(reservation) = &reservation {
        check_reserved_job(section, reservation, service);
    }
    let deadline = section.quantity_in(DEADLINE.name, &SPAN, &(*DURATIONS.start()..=period));
    let rank = if section.has("on") {
        let hosting = on(section, executors, service)?;
        *processor = hosting.processor;
        PeriodicRank::On(hosting.executor.clone())
    } else if let Some(found) = reservation {
        PeriodicRank::Reserved(ReservationRequest {
            reservation: found.value,
            enforcer: Enforcer::Deadline,
            outside: Outside::Confined,
            begins_at_start: true,
        })
    } else {
        PeriodicRank::Priority(section.take(&HIGHEST_PRIORITY))
    };
    Some(TaskKind::Periodic {
        period,
        deadline: deadline.map_or(period, |found| found.value),
        service,
        rank,
    })
}

/// The executor that a task names; all else about its thread is said there.
fn on<'e>(
    section: &Section<'_>,
    executors: &'e Names<Hosting>,
    service: Service,
) -> Option<&'e Hosting> {
    for key in ["priority", "reservation", "processor"] {
        if section.has(key) {
            let cause = format!(
                "`{key}` is said by the executor that {} is on",
                section.path
            );
            section.wrong(key, cause, "remove it here");
        }
    }
    if service.is_zero() {
        let cause = format!(
            "{} is on an executor, and its jobs take nothing",
            section.path
        );
        let remedy = "write what a job takes, such as: service = \"0.5ms\"";
        section.wrong("service", cause, remedy);
    }
    let name = section.text("on", "the name of an executor", "shared")?;
    let mut all = executors.iter();
    let Some(declared) = all.find(|declared| declared.name == name.value) else {
        let names = executors.iter().map(|declared| declared.name.as_str());
        section.findings.unknown("executor", &name, names);
        return None;
    };
    declared.value.as_ref()
}

/// A job that does not fit its reservation is throttled at every release.
fn check_reserved_job(section: &Section<'_>, reserved: &Found<Reservation>, job: Service) {
    let own = reserved.value.service();
    if job > own {
        let (job, own) = (show_service(job), show_service(own));
        section.findings.error(
            &reserved.place,
            format!(
                "a job of {} takes {job}, and only {own} is reserved",
                section.path
            ),
            "reserve at least the `service` of a job",
        );
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
