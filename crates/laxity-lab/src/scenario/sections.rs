//! The parts of a file that refer to nothing else: host, transfer, lengths, devices and tasks.

use std::ops::RangeInclusive;

use laxity_model::{Enforcer, Outside, Priority, ProcessorId, ReservationRequest, Service, Span};

use super::Declared;
use super::reader::{
    Entry, FREQUENCY, Found, LEVEL, LOAD, OFFSET, RESERVATION, SERVICE, SPAN, Section,
};
use super::types::{
    Device, HostSpec, LengthSpec, Line, PhaseOverrides, Phases, Profile, Rank, Task, TaskKind,
    TransferSpec,
};
use super::units::{self, format_span};

/// Everything of one kind that a file declares, in its order.
pub(super) type Names<T> = Vec<Declared<T>>;

/// From 1 µs, below which no timer goes, to an hour.
const DURATIONS: RangeInclusive<Span> = Span::from_micros(1)..=Span::from_secs(3_600);
const SERVICES: RangeInclusive<Service> = Service::from_micros(1)..=Service::from_secs(3_600);
/// A run's length: up to a day.
const LENGTHS: RangeInclusive<Span> = Span::from_millis(1)..=Span::from_secs(86_400);
/// More processors than this no scenario here needs, and no machine it was tried on has.
const MOST_PROCESSORS: u64 = 64;

fn show_service(service: Service) -> String {
    format_span(service.as_dedicated_span())
}

/// `[host]`.
pub(super) fn host(root: &Section<'_>) -> HostSpec {
    let mut host = HostSpec {
        processors: 1,
        profile: Profile::default(),
    };
    let Some(section) = root.section("host", "[host]") else {
        return host;
    };
    section.allow(&["processors", "twin"]);
    if let Some(found) = section.integer("processors", &(1..=MOST_PROCESSORS)) {
        host.processors = found.value as u16;
    }
    let profile = Profile::Win2000PiiFourFifty;
    if let Some(found) = section.choice("twin", &[(profile.name(), profile)]) {
        host.profile = found.value;
    }
    host
}

/// `[transfer]`.
pub(super) fn transfer(root: &Section<'_>) -> TransferSpec {
    // 536 is what TCP assumes of a path it does not know; 1460 fills an Ethernet frame.
    let mut transfer = TransferSpec { mss_bytes: 536 };
    if let Some(section) = root.section("transfer", "[transfer]") {
        section.allow(&["mss"]);
        if let Some(found) = section.integer("mss", &(536..=1_460)) {
            transfer.mss_bytes = found.value as u16;
        }
    }
    transfer
}

/// `[quick]` or `[full]`.
pub(super) fn length(root: &Section<'_>, key: &str, default: LengthSpec) -> LengthSpec {
    let mut length = default;
    let Some(section) = root.section(key, &format!("[{key}]")) else {
        return length;
    };
    section.allow(&["repeats", "bytes", "phases", "limit", "idle"]);
    if let Some(found) = section.integer("repeats", &(1..=1_000)) {
        length.repeats = found.value as u32;
    }
    if let Some(found) = size(&section) {
        length.bytes = found;
    }
    let presets = [("short", Phases::SHORT), ("study", Phases::STUDY)];
    if let Some(found) = section.choice("phases", &presets) {
        length.phases = found.value;
    }
    if let Some(found) = section.quantity_in("limit", &SPAN, &LENGTHS, format_span) {
        length.limit = found.value;
    }
    if let Some(found) = section.quantity_in("idle", &SPAN, &LENGTHS, format_span) {
        length.idle = found.value;
    }
    length
}

/// `bytes = 200_000` or `bytes = "200 kB"`.
fn size(section: &Section<'_>) -> Option<u64> {
    /// As much as TCP's sequence numbers count.
    const LARGEST: u64 = 1 << 31;
    let value = section.value("bytes")?;
    if matches!(value.get_ref(), toml::de::DeValue::Integer(_)) {
        return Some(section.integer("bytes", &(1..=LARGEST))?.value);
    }
    let text = section.text("bytes", "a size", "8 kB")?;
    let found = section.parsed(&text, units::bytes)?;
    if (1..=LARGEST).contains(&found.value) {
        return Some(found.value);
    }
    let cause = match found.value {
        0 => "`bytes` must be more than zero".to_owned(),
        bytes => format!("`bytes` is out of range: {bytes} B"),
    };
    let remedy = format!("write 1 B to {LARGEST} B");
    section.findings.error(&found.place, cause, remedy);
    None
}

/// The processor a thing runs on; the first if it says nothing.
fn processor(section: &Section<'_>, host: &HostSpec) -> ProcessorId {
    let Some(found) = section.integer("processor", &(0..=u64::from(u16::MAX))) else {
        return ProcessorId(0);
    };
    if found.value >= u64::from(host.processors) {
        let remedy = match host.processors {
            1 => "write 0, or say under [host] how many there are: processors = 2".to_owned(),
            n => format!("write 0 to {}, or raise `processors` under [host]", n - 1),
        };
        let cause = format!("there is no processor {}", found.value);
        section.findings.error(&found.place, cause, remedy);
    }
    ProcessorId(found.value as u16)
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
    entries
        .into_iter()
        .take(MOST_NAMES)
        .map(read_entry)
        .collect()
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

/// Devices and tasks are placed by name in one table, so no two may share one.
pub(super) fn distinct(root: &Section<'_>, devices: &Names<Device>, tasks: &Names<Task>) {
    for task in tasks {
        if devices.iter().any(|device| device.name == task.name) {
            root.findings.error(
                &task.place,
                format!("`{}` is the name of a device already", task.name),
                "give the task a name of its own",
            );
        }
    }
}

/// `[devices.*]`.
pub(super) fn devices(
    root: &Section<'_>,
    host: &HostSpec,
    lengths: &[(&str, &LengthSpec)],
) -> Names<Device> {
    named(root, "devices", |section, name| {
        section.allow(&["kind", "processor", "load", "line", "phases"]);
        let Some(()) = section
            .choice("kind", &[("soft-modem", ())])
            .map(|f| f.value)
        else {
            if !section.has("kind") {
                section.missing("kind", "\"soft-modem\"");
            }
            return None;
        };
        let phases = phases(section);
        for (name, length) in lengths {
            check_limit(root, section, name, length, phases);
        }
        Some(Device {
            name: name.to_owned(),
            processor: processor(section, host),
            load: load(section),
            line: line(section),
            phases,
        })
    })
}

/// Whether a run is long enough to reach the connection.
fn check_limit(
    root: &Section<'_>,
    section: &Section<'_>,
    name: &str,
    length: &LengthSpec,
    overrides: PhaseOverrides,
) {
    let phases = length.phases.overridden_by(overrides);
    let before = phases.on_hook + phases.dialing + phases.training;
    if before < length.limit {
        return;
    }
    let own = root.section(name, "");
    let place = own
        .filter(|own| own.has("limit"))
        .map_or_else(|| section.place_of("phases"), |own| own.place_of("limit"));
    let cause = format!(
        "a {name} run is over after {}, and {} connects after {} only",
        format_span(length.limit),
        section.path,
        format_span(before)
    );
    let remedy = format!("write a longer `limit` under [{name}], or shorter phases");
    root.findings.error(&place, cause, remedy);
}

fn load(section: &Section<'_>) -> units::Load {
    // 14.7 % of a 450 MHz Pentium II (§6.2.3).
    let study = units::Load {
        share: units::Share::from_ppm(147_000),
        tolerance: units::Share::from_ppm(7_000),
    };
    let Some(found) = section.quantity("load", &LOAD) else {
        return study;
    };
    if found.value.share.ppm == 0 {
        let cause = "`load` must be more than zero";
        section
            .findings
            .error(&found.place, cause, "write for example: load = \"14.7 %\"");
    }
    found.value
}

fn phases(section: &Section<'_>) -> PhaseOverrides {
    let Some(section) = section.section("phases", &format!("`phases` of {}", section.path)) else {
        return PhaseOverrides::default();
    };
    section.allow(&["on_hook", "dialing", "training"]);
    let span = |key| {
        let found = section.quantity_in(key, &SPAN, &DURATIONS, format_span);
        found.map(|found| found.value)
    };
    PhaseOverrides {
        on_hook: span("on_hook"),
        dialing: span("dialing"),
        training: span("training"),
    }
}

fn line(section: &Section<'_>) -> Line {
    let mut line = Line::default();
    let Some(section) = section.section("line", &format!("`line` of {}", section.path)) else {
        return line;
    };
    section.allow(&["snr_down", "snr_up", "clock_offset", "carrier_offset"]);
    let level = |key| {
        let show = |mdb: u64| format!("\"{} dB\"", mdb / 1_000);
        let found = section.quantity_in(key, &LEVEL, &(1_000..=120_000), show);
        found.map(|found| found.value as u32)
    };
    line.snr_down_mdb = level("snr_down").unwrap_or(line.snr_down_mdb);
    line.snr_up_mdb = level("snr_up").unwrap_or(line.snr_up_mdb);
    let ppm = |ppb: i64| format!("\"{} ppm\"", ppb / 1_000);
    if let Some(found) = section.quantity_in("clock_offset", &OFFSET, &(-500_000..=500_000), ppm) {
        line.clock_offset_ppb = found.value as i32;
    }
    let hertz = |mhz: i64| format!("\"{} Hz\"", mhz / 1_000);
    if let Some(found) =
        section.quantity_in("carrier_offset", &FREQUENCY, &(-10_000..=10_000), hertz)
    {
        line.carrier_offset_mhz = found.value as i32;
    }
    line
}

const TASK_KINDS: &[(&str, Kind)] = &[
    ("spinner", Kind::Spinner),
    ("periodic", Kind::Periodic),
    ("rogue", Kind::Rogue),
    ("command", Kind::Command),
];

/// The keys of all kinds together.
const TASK_KEYS: &[&str] = &[
    "kind",
    "processor",
    "count",
    "priority",
    "period",
    "service",
    "reservation",
    "enforcer",
    "burst",
    "every",
    "after",
    "fifo",
    "argv",
];

#[derive(Clone, Copy)]
enum Kind {
    Spinner,
    Periodic,
    Rogue,
    Command,
}

/// `[tasks.*]`.
pub(super) fn tasks(root: &Section<'_>, host: &HostSpec) -> Names<Task> {
    named(root, "tasks", |section, name| {
        let Some(kind) = section.choice("kind", TASK_KINDS) else {
            if !section.has("kind") {
                section.allow(TASK_KEYS);
                section.missing("kind", "\"spinner\"");
            }
            return None;
        };
        let kind = match kind.value {
            Kind::Spinner => Some(spinner(section)),
            Kind::Periodic => periodic(section),
            Kind::Rogue => rogue(section),
            Kind::Command => command(section),
        };
        let processor = processor(section, host);
        Some(Task {
            name: name.to_owned(),
            processor,
            kind: kind?,
        })
    })
}

/// A thread's priority, 0 to 31.
pub(super) fn priority(section: &Section<'_>, key: &str, default: Priority) -> Priority {
    let found = section.integer(key, &(0..=31));
    found
        .and_then(|found| Priority::new(found.value as u8))
        .unwrap_or(default)
}

fn spinner(section: &Section<'_>) -> TaskKind {
    section.allow(&["kind", "processor", "count", "priority"]);
    let count = section.integer("count", &(1..=1_000));
    TaskKind::Spinner {
        count: count.map_or(1, |found| found.value as u16),
        priority: priority(section, "priority", Priority::NORMAL),
    }
}

/// A slot table has its own phase: a thread released in between would wait for its slot, up to Y − X, and its gaps would measure that.
fn check_periodic_enforcer(section: &Section<'_>) {
    let enforcers = [("deadline", Enforcer::Deadline), ("slots", Enforcer::Slots)];
    let Some(found) = section.choice("enforcer", &enforcers) else {
        return;
    };
    if !section.has("reservation") {
        section.findings.error(
            &found.place,
            "`enforcer` is for a reservation, and there is none",
            "add a line such as: reservation = \"0.1ms/1ms\"",
        );
    } else if found.value == Enforcer::Slots {
        section.findings.error(
            &found.place,
            "a periodic task would wait for its slot at every release",
            "write enforcer = \"deadline\", or leave it out",
        );
    }
}

fn periodic(section: &Section<'_>) -> Option<TaskKind> {
    section.allow(&[
        "kind",
        "processor",
        "period",
        "service",
        "priority",
        "reservation",
        "enforcer",
    ]);
    check_periodic_enforcer(section);
    if !section.has("period") {
        section.missing("period", "\"1ms\"");
    }
    let reservation = section.quantity("reservation", &RESERVATION);
    if reservation.is_some() && section.has("priority") {
        section.findings.error(
            &section.place_of("priority"),
            format!("{} has a reservation and a priority", section.path),
            "remove one: a thread with a reservation by `deadline` has no priority",
        );
    }
    let period = section.quantity_in("period", &SPAN, &DURATIONS, format_span)?;
    let longest = Service::from_nanos(period.value.as_nanos());
    let jobs = Service::ZERO..=longest;
    let service = section.quantity_in("service", &SERVICE, &jobs, show_service);
    let service = service.map_or(Service::ZERO, |found| found.value);
    if let Some(reservation) = &reservation {
        check_reserved_job(
            section,
            reservation.value.service(),
            service,
            &reservation.place,
        );
    }
    Some(TaskKind::Periodic {
        period: period.value,
        service,
        priority: priority(section, "priority", Priority::HIGHEST),
        reservation: reservation.map(|found| ReservationRequest {
            reservation: found.value,
            enforcer: Enforcer::Deadline,
            outside: Outside::Confined,
            begins_at_start: true,
        }),
    })
}

/// A job that does not fit its reservation is throttled at every release.
fn check_reserved_job(
    section: &Section<'_>,
    reserved: Service,
    job: Service,
    place: &super::reader::Place,
) {
    if job > reserved {
        let (job, reserved) = (show_service(job), show_service(reserved));
        section.findings.error(
            place,
            format!(
                "a job of {} takes {job}, and only {reserved} is reserved",
                section.path
            ),
            "reserve at least the `service` of a job",
        );
    }
}

fn rogue(section: &Section<'_>) -> Option<TaskKind> {
    section.allow(&[
        "kind",
        "processor",
        "burst",
        "every",
        "after",
        "priority",
        "fifo",
    ]);
    for (key, example) in [("burst", "\"100ms\""), ("every", "\"400ms\"")] {
        if !section.has(key) {
            section.missing(key, example);
        }
    }
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
            section.findings.error(
                &section.place_of("fifo"),
                format!("{} has `priority` and `fifo`", section.path),
                "keep `priority` (0 to 31, at its place among laxity's threads) or `fifo` (1 to 99, as somebody outside would set it)",
            );
            None
        }
        (true, false) => {
            let level = section.integer("priority", &(0..=31))?.value as u8;
            Priority::new(level).map(Rank::Priority)
        }
        (false, true) => {
            let fifo = section.integer("fifo", &(1..=99))?.value as u8;
            Some(Rank::Foreign { fifo })
        }
    }
}

fn command(section: &Section<'_>) -> Option<TaskKind> {
    section.allow(&["kind", "processor", "argv"]);
    let example = "[\"sox\", \"in.wav\", \"-d\"]";
    if !section.has("argv") {
        section.missing("argv", example);
    }
    let argv = section.texts("argv", example)?;
    let empty = argv.first().is_none_or(|program| program.value.is_empty());
    if empty || argv.iter().any(|argument| argument.value.contains('\0')) {
        section.findings.error(
            &section.place_of("argv"),
            "`argv` names no program that could be started",
            format!("write the program and its arguments, such as: argv = {example}"),
        );
    }
    Some(TaskKind::Command {
        argv: argv
            .iter()
            .map(|argument| argument.value.to_owned())
            .collect(),
    })
}
