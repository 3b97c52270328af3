//! `[tasks.*]` that recur: a job at every release, in a thread of its own or by turns on an executor.

use std::num::NonZeroU32;

use laxity_model::executor::pacing::OnOverrun;
use laxity_model::program::upcall::{First, Timing};
use laxity_model::{
    Enforcer, Outside, Priority, ProcessorId, Reservation, ReservationRequest, Service, Span,
};

use super::keys::{Any, Integers, Key, Other, Own, Priorities, Table, Within, Without, Words};
use super::kinds;
use super::links;
use super::quantities::{RESERVATION, SERVICE, SPAN};
use super::reader::{Found, Section};
use super::sections::{DURATIONS, NONE, Names};
use super::tasks::{Hosting, Scope, show_service};
use super::types::{PeriodicRank, TaskKind};

pub(super) static PERIOD: Key<Span> = Key::new(
    "period",
    &Within(&SPAN, DURATIONS),
    Without::Refused("\"1ms\""),
    "From release to release. A task with `after` has that of the first of its chain: there this is not required, and refused.",
);
static DEADLINE: Key<Span> = Key::new(
    "deadline",
    &Within(&SPAN, DURATIONS),
    Without::Means("as long as `period`"),
    "From its release, or with `after` from that of the first of its chain, when a job is due. No later than the next is released: a job that is at work then takes the place of that one, which has missed its deadline.",
);
static JOB: Key<Service> = Key::new(
    "service",
    &Within(&SERVICE, Service::ZERO..=Service::from_secs(3_600)),
    Without::Is("\"0ms\""),
    "What a job takes at most, and on the way burns; no more than the period is long.",
);
pub(super) static ON: Key<Other> = Key::new(
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
/// So many units a job may be cut into.
const MOST_UNITS: u32 = 1_000_000;
static BATCH: Key<u32> = Key::new(
    "batch",
    &Integers(1, MOST_UNITS),
    Without::Is("1"),
    "How many units a job is, all of one length; on an executor.",
);
static QUANTUM: Key<u32> = Key::new(
    "quantum",
    &Integers(1, MOST_UNITS),
    Without::Is("1"),
    "How many of them it does before it looks whether to yield to somebody more urgent; what is left then goes on in its turn. On an executor.",
);
pub(super) static PHASE: Key<Span> = Key::new(
    "phase",
    &Within(&SPAN, DURATIONS),
    Without::Means("a period after it begins itself"),
    "Its first release, after the first task with a `phase` began: those of one phase are released together.",
);
static ON_OVERRUN: Key<Option<OnOverrun>> = Key::new(
    "on_overrun",
    &Words(&[
        ("skip", Some(OnOverrun::SKIP)),
        ("catch-up", None),
        ("suspend", Some(OnOverrun::Suspend)),
        ("end", Some(OnOverrun::End)),
    ]),
    Without::Is("\"skip\""),
    "What becomes of releases that come while a job is still at work: none is made up for, the last of them are late, or there is no other ever.",
);
static LATE_AT_MOST: Key<u32> = Key::new(
    "late_at_most",
    &Integers(1, 1_000),
    Without::Is("1"),
    "With `on_overrun = \"catch-up\"`: how many jobs in a row are made up for late. All keep their releases on the grid.",
);
pub(super) static PERIODIC_KEYS: Table = Table {
    heading: "[tasks.<name>]",
    kind: Some(kinds::PERIODIC.name),
    about: "A job every so often, each with a deadline.",
    keys: &[
        &PERIOD,
        &DEADLINE,
        &JOB,
        &PHASE,
        &ON_OVERRUN,
        &LATE_AT_MOST,
        &ON,
        &links::AFTER,
        &links::GROUP,
        &BATCH,
        &QUANTUM,
        &HIGHEST_PRIORITY,
        &OWN_RESERVATION,
        &ENFORCER,
    ],
};

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
pub(super) fn periodic(
    section: &Section<'_>,
    scope: &Scope<'_>,
    processor: &mut ProcessorId,
) -> Option<TaskKind> {
    check_periodic_enforcer(section);
    let reservation = section.find(&OWN_RESERVATION);
    if reservation.is_some() && section.has("priority") {
        let cause = format!("{} has a reservation and a priority", section.path);
        let remedy = "remove one: a thread with a reservation by `deadline` has no priority";
        section.wrong("priority", cause, remedy);
    }
    let first = links::first(section, scope)?;
    let period = first.optional(&PERIOD)?;
    let jobs = Service::ZERO..=period.as_full_service();
    let service = section.quantity_in(JOB.name, &SERVICE, &jobs);
    let service = service.map_or(Service::ZERO, |found| found.value);
    if let Some(reservation) = &reservation {
        check_reserved_job(section, reservation, service);
    }
    let deadline = section.quantity_in(DEADLINE.name, &SPAN, &(*DURATIONS.start()..=period));
    let rank = if section.has("on") {
        let hosting = on(section, &scope.executors, service)?;
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
    let phase = first.optional(&PHASE);
    let timing = timing(section, (phase, period), service);
    let links = links::links(section, scope, (&rank, timing.longest(service)))?;
    Some(TaskKind::Periodic {
        timing,
        deadline: deadline.map_or(period, |found| found.value),
        service,
        rank,
        links,
    })
}

/// How a task is released and cut, and what becomes of releases that come while it is at work.
fn timing(
    section: &Section<'_>,
    (phase, period): (Option<Span>, Span),
    service: Service,
) -> Timing<()> {
    for key in [BATCH.name, QUANTUM.name] {
        if section.has(key) && !section.has(ON.name) {
            let cause = format!(
                "`{key}` is for tasks that take turns, and {} has a thread of its own",
                section.path
            );
            section.wrong(key, cause, "remove it, or put the task on an executor");
        }
    }
    let units = |key: &Key<u32>| NonZeroU32::new(section.take(key)).unwrap_or(NonZeroU32::MIN);
    let [batch, quantum] = [units(&BATCH), units(&QUANTUM)];
    if quantum > batch {
        let cause = format!("a quantum of {quantum} units is more than a job of {batch}");
        let remedy = "write a `quantum` of no more than the `batch`";
        section.wrong(QUANTUM.name, cause, remedy);
    }
    if u64::from(batch.get()) > service.as_nanos().max(1) {
        let cause = format!(
            "{batch} units of a job of {} take nothing",
            show_service(service)
        );
        let remedy = "write a longer `service`, or a smaller `batch`";
        section.wrong(BATCH.name, cause, remedy);
    }
    let on_overrun = section.take(&ON_OVERRUN);
    if section.has(LATE_AT_MOST.name) && on_overrun.is_some() {
        let cause = "`late_at_most` says how much is made up for, and nothing is";
        let remedy = "remove it, or write on_overrun = \"catch-up\"";
        section.wrong(LATE_AT_MOST.name, cause, remedy);
    }
    let at_most = section.take(&LATE_AT_MOST);
    Timing {
        first: phase.map_or(First::AfterAPeriod, |phase| First::After((), phase)),
        period,
        batch,
        quantum,
        on_overrun: on_overrun.unwrap_or(OnOverrun::CatchUp { at_most }),
        pauses: false,
    }
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
