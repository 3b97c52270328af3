//! `[tasks.*]` and `[executors.*]`: what runs beside the devices.

use std::ops::RangeInclusive;

use crate::each_once::each_once;
use laxity_model::{
    Enforcer, Outside, Priority, ProcessorId, Reservation, ReservationRequest, Service,
};

use super::kinds;
use super::placing::thread_of_own;
use super::reader::{Found, RESERVATION, SERVICE, SPAN, Section};
use super::sections::{DURATIONS, Names, named, priority, processor};
use super::types::{Executor, HostSpec, PeriodicRank, Rank, ResolvedTask, TaskKind, TurnPolicy};
use super::units::format_span;

const SERVICES: RangeInclusive<Service> = Service::from_micros(1)..=Service::from_secs(3_600);

fn show_service(service: Service) -> String {
    format_span(service.as_dedicated_span())
}

/// A kind of tasks, as a file has it.
struct Kind {
    name: &'static str,
    /// Its keys, besides those of all kinds.
    keys: &'static [&'static str],
    read: fn(&Section<'_>, &Names<Hosting>, &mut ProcessorId) -> Option<TaskKind>,
}

const KINDS: [Kind; 4] = [
    Kind {
        name: kinds::SPINNER.name,
        keys: &["count", "priority"],
        read: |section, _, _| Some(spinner(section)),
    },
    Kind {
        name: kinds::PERIODIC.name,
        keys: &[
            "period",
            "service",
            "on",
            "priority",
            "reservation",
            "enforcer",
        ],
        read: periodic,
    },
    Kind {
        name: kinds::ROGUE.name,
        keys: &["burst", "every", "after", "priority", "fifo"],
        read: |section, _, _| rogue(section),
    },
    Kind {
        name: kinds::COMMAND.name,
        keys: &["argv"],
        read: |section, _, _| command(section),
    },
];

/// `[tasks.*]`.
pub(super) fn tasks(
    root: &Section<'_>,
    host: &HostSpec,
    executors: &Names<Hosting>,
) -> Names<ResolvedTask> {
    let words = KINDS.each_ref().map(|kind| (kind.name, kind));
    named(root, "tasks", |section, name| {
        let kind = section.choice("kind", &words).map(|found| found.value);
        if kind.is_some() || !section.has("kind") {
            let is_known = |known: &&Kind| kind.is_none_or(|kind| kind.name == known.name);
            let known = KINDS.iter().filter(is_known);
            let keys = ["kind", "processor"].iter();
            let keys = keys.chain(known.flat_map(|known| known.keys)).copied();
            section.allow(&each_once(keys));
        }
        section.require("kind", "\"spinner\"");
        let kind = kind?;
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
    let policies = [
        ("fcfs", TurnPolicy::FirstComeFirstServed),
        ("edf", TurnPolicy::EarliestDeadlineFirst),
    ];
    named(root, "executors", |section, name| {
        let placing = thread_of_own(section, ["policy", "processor"]);
        section.require("policy", "\"edf\"");
        let policy = section.choice("policy", &policies);
        let processor = processor(section, host);
        let executor = Executor {
            name: name.to_owned(),
            policy: policy?.value,
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
    let count = section.integer("count", &(1..=1_000));
    TaskKind::Spinner {
        count: count.map_or(1, |found| found.value),
        priority: priority(section, "priority").unwrap_or(Priority::NORMAL),
    }
}

/// A slot table has its own phase: a thread released in between would wait for its slot, up to Y − X, and its gaps would measure that.
fn check_periodic_enforcer(section: &Section<'_>) {
    let enforcers = [("deadline", Enforcer::Deadline), ("slots", Enforcer::Slots)];
    let Some(found) = section.choice("enforcer", &enforcers) else {
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
    section.require("period", "\"1ms\"");
    let reservation = section.quantity("reservation", &RESERVATION);
    if reservation.is_some() && section.has("priority") {
        let cause = format!("{} has a reservation and a priority", section.path);
        let remedy = "remove one: a thread with a reservation by `deadline` has no priority";
        section.wrong("priority", cause, remedy);
    }
    let period = section.quantity_in("period", &SPAN, &DURATIONS, format_span)?;
    let period = period.value;
    let jobs = Service::ZERO..=period.as_full_service();
    let service = section.quantity_in("service", &SERVICE, &jobs, show_service);
    let service = service.map_or(Service::ZERO, |found| found.value);
    if let Some(reservation) = &reservation {
        check_reserved_job(section, reservation, service);
    }
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
        PeriodicRank::Priority(priority(section, "priority").unwrap_or(Priority::HIGHEST))
    };
    Some(TaskKind::Periodic {
        period,
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
    section.require("burst", "\"100ms\"");
    section.require("every", "\"400ms\"");
    let rank = rank(section);
    let burst = section.quantity_in("burst", &SERVICE, &SERVICES, show_service);
    let every = section.quantity_in("every", &SPAN, &DURATIONS, format_span);
    let after = section.quantity_in("after", &SPAN, &DURATIONS, format_span);
    let (burst, every) = (burst?, every?);
    if burst.value.as_dedicated_span() >= every.value {
        section.findings.error(
            &burst.place,
            format!(
                "a burst of {} does not fit in every {}",
                show_service(burst.value),
                format_span(every.value)
            ),
            "write a `burst` shorter than `every`, or a spinner if it is never to stop",
        );
    }
    Some(TaskKind::Rogue {
        burst: burst.value,
        every: every.value,
        after: after.map_or(every.value, |found| found.value),
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
        (true, false) => priority(section, "priority").map(Rank::Priority),
        (false, true) => {
            let fifo = section.integer("fifo", &(1..=99))?.value;
            Some(Rank::Foreign { fifo })
        }
    }
}

fn command(section: &Section<'_>) -> Option<TaskKind> {
    let example = "[\"sox\", \"in.wav\", \"-d\"]";
    section.require("argv", example);
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
    })
}
