//! `placement`: where a device's driver, or a command, runs in a variant.

use std::collections::BTreeMap;

use laxity_model::analysis::devices::Open;
use laxity_model::{Enforcer, Outside, Priority, Reservation, ReservationRequest};
use toml::de::DeValue;

use super::keys::{Key, Other, Own, Priorities, Table, Without, Words};
use super::reader::{self, Found, Section, shortened};
use super::sections::Names;
use super::types::{ResolvedDevice, ResolvedTask, TaskKind};
use super::units::{self, Asked, UnitError};
use super::{Declared, Placing};

static PLACEMENT: Key<Other> = Key::new(
    "placement",
    &Own(
        "a string: \"interrupt\", \"deferred\", \"thread 24\", \"reserved 2ms/8ms\", \"reserved auto/8ms\" or \"absent\"; or a table with one for each name",
    ),
    Without::Refused("\"thread 24\""),
    "Where the device's driver works: in the interrupt handler, in a deferred call, in a thread of this priority, in a thread with a reservation; or \
        that it takes no part. What is `auto` of a reservation, laxity proposes by calls that it measures, beside the spinners and commands of its variants. A command's is its first thread's alone, by `deadline`: what that starts has none of it. Contracts may limit its `service_gap`, which is seen of no other command, and of no other thread: where the first had too little of what the command took (less than nine tenths of it, and all but two X) a gap may have been as long as the run, and a limit that it would break is left open. What else it started and waited all the time took nothing, and is missed by nobody. Where there are several devices, and for commands, each by its name, as such a string or as a table with the \
        keys of a placement.",
);
static ENFORCER: Key<Enforcer> = Key::new(
    "enforcer",
    &Words(&[("slots", Enforcer::Slots), ("deadline", Enforcer::Deadline)]),
    Without::Is("\"slots\""),
    "Who keeps a reservation: a table of time slots, or the kernel's `SCHED_DEADLINE`.",
);
static OUTSIDE: Key<bool> = Key::new(
    "outside",
    &Words(&[("timesharing", false), ("confined", true)]),
    Without::Means("`\"timesharing\"`; by `deadline` always `\"confined\"`"),
    "Beside its reservation it competes with all others, or does not run.",
);
static BESIDE: Key<Priority> = Key::new(
    "priority",
    &Priorities,
    Without::Is("8"),
    "As which it competes beside its reservation.",
);
// 24 is what the study's driver had until it asked (§5.4).
static BEFORE: Key<Priority> = Key::new(
    "before",
    &Priorities,
    Without::Is("24"),
    "Its priority until it has its reservation.",
);
static RESERVE_FROM: Key<bool> = Key::new(
    "reserve_from",
    &Words(&[("start", true), ("dialing", false)]),
    Without::Means("`\"dialing\"` for a modem, else `\"start\"`"),
    "From when on it is reserved: on hook a modem needs no reservation yet.",
);

/// The keys that say more of a placement, in a variant or in a placement's own table.
pub(super) static DETAILS: Table = Table {
    heading: "Placements",
    kind: None,
    about: "The keys that say more of a reservation: of a variant, of one of several placements in a variant, and of an executor.",
    keys: &[&ENFORCER, &OUTSIDE, &BESIDE, &BEFORE, &RESERVE_FROM],
};
pub(super) static PLACEMENT_KEYS: Table = Table {
    heading: "Placements",
    kind: None,
    about: "Where something works. In a variant, of a device or a command; of an executor.",
    keys: &[&PLACEMENT],
};

const EXAMPLES: &str =
    "write \"interrupt\", \"deferred\", \"thread 24\", \"reserved 2ms/8ms\" or \"absent\"";

/// What the string alone says.
#[derive(Clone, Copy)]
enum Word {
    Absent,
    Interrupt,
    Deferred,
    Thread(Priority),
    Reserved(Asked),
}

/// Where something is placed, and what of its reservation laxity is to propose.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Where; until laxity has proposed, with any reservation.
    pub(super) placing: Placing,
    /// What is left open.
    pub(super) open: Option<Open>,
}

/// What is placed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holder {
    /// A device that has a phase in which it needs no reservation yet.
    Dialing,
    /// Another device.
    Device,
    /// Something without interrupts.
    Command,
}

impl Holder {
    fn of(device: &Declared<ResolvedDevice>) -> Self {
        match device.value.as_ref().is_none_or(ResolvedDevice::calls) {
            true => Self::Dialing,
            false => Self::Device,
        }
    }
}

/// What a variant places, by name; `None` for what is absent.
pub(super) type Placed = BTreeMap<String, Found<Option<Place>>>;

/// Reads a variant's placements. An error leaves the thing out of the result.
pub(super) fn placed(
    section: &Section<'_>,
    devices: &Names<ResolvedDevice>,
    tasks: &Names<ResolvedTask>,
) -> Placed {
    let mut placed = Placed::new();
    let Some(value) = section.value("placement") else {
        for key in details_in(section) {
            let cause = format!("`{key}` says more of a placement, and there is none");
            section.wrong(key, cause, EXAMPLES);
        }
        if !devices.is_empty() {
            section.missing("placement", "\"thread 24\" (or \"absent\" for a control)");
        }
        return placed;
    };
    if matches!(value.get_ref(), DeValue::Table(_)) {
        each(section, devices, tasks, &mut placed);
    } else {
        the_only(section, devices, &mut placed);
    }
    placed
}

/// `placement = "thread 24"`: of the only device.
fn the_only(section: &Section<'_>, devices: &Names<ResolvedDevice>, placed: &mut Placed) {
    let Some(text) = section.text("placement", "a string or a table", "thread 24") else {
        return;
    };
    let Some(word) = section.parsed(&text, word) else {
        return;
    };
    match (word.value, devices.as_slice()) {
        (_, [only]) => {
            let found = whole(section, Holder::of(only), &word);
            placed.extend(found.map(|found| (only.name.clone(), found)));
        }
        (Word::Absent, _) => {
            refuse_details(section);
            for device in devices {
                let place = text.place.clone();
                placed.insert(device.name.clone(), Found { value: None, place });
            }
        }
        (_, []) => section.findings.error(
            &text.place,
            "there is no device to place",
            "declare one, such as: [devices.modem] with kind = \"soft-modem\"",
        ),
        (_, [first, ..]) => section.findings.error(
            &text.place,
            "there are several devices, and `placement` names none",
            format!(
                "name each: placement = {{ {} = \"thread 24\" }}",
                first.name
            ),
        ),
    }
}

/// `[variants.x.placement]` with a line for each thing that takes part.
fn each(
    section: &Section<'_>,
    devices: &Names<ResolvedDevice>,
    tasks: &Names<ResolvedTask>,
    placed: &mut Placed,
) {
    let path = format!("`placement` of {}", section.path);
    let Some(table) = section.section("placement", &path) else {
        return;
    };
    for entry in table.entries() {
        let name = &entry.name;
        let Some(holder) = holder(&table, name, devices, tasks) else {
            continue;
        };
        let found = if matches!(entry.value.get_ref(), DeValue::Table(_)) {
            let own = table.child(&entry, &format!("the placement of `{}`", name.value));
            own.and_then(|own| own_table(&own, holder, None))
        } else {
            let text = table.text(name.value, "a string or a table", "thread 24");
            let word = text.and_then(|text| table.parsed(&text, word));
            word.and_then(|word| placing(section, holder, &word))
        };
        if let Some(found) = found {
            if holder == Holder::Command && is_by_slots(&table, name.value, &found) {
                continue;
            }
            placed.insert(name.value.to_owned(), found);
        }
    }
    if !placed.values().any(is_reserved) {
        refuse_details(section);
    }
    let all_read = placed.len() == table.entries().len();
    for device in devices {
        let place = section.place_of("placement");
        let name = &device.name;
        if all_read && !table.has(name) {
            let cause = format!("`{name}` is not placed, so it takes no part");
            let remedy = format!("place it, or write: {name} = \"absent\"");
            section.findings.note(&place, cause, remedy);
        }
        let absent = Found { value: None, place };
        placed.entry(name.clone()).or_insert(absent);
    }
}

/// Who is placed; reported if nobody can be.
fn holder(
    table: &Section<'_>,
    name: &Found<&str>,
    devices: &Names<ResolvedDevice>,
    tasks: &Names<ResolvedTask>,
) -> Option<Holder> {
    if let Some(device) = devices.iter().find(|device| device.name == name.value) {
        return Some(Holder::of(device));
    }
    let Some(task) = tasks.iter().find(|task| task.name == name.value) else {
        let declared = devices.iter().map(|d| d.name.as_str());
        table.findings.unknown("device", name, declared);
        return None;
    };
    match task.value.as_ref().map(|task| &task.kind) {
        Some(TaskKind::Command { .. }) => return Some(Holder::Command),
        Some(kind) => {
            let its = match kind {
                TaskKind::Periodic { .. } => "rank, or `reservation = \"X/Y\"`,",
                _ => "rank",
            };
            table.findings.error(
                &name.place,
                format!("a {} has no placement", kind.kind().name),
                format!(
                    "remove `{}` here; its {its} stands under [tasks.{0}]",
                    name.value
                ),
            );
        }
        None => {}
    }
    None
}

/// `modem = { placement = "reserved 2ms/8ms", enforcer = "slots" }`.
fn own_table(
    own: &Section<'_>,
    holder: Holder,
    besides: Option<&Table>,
) -> Option<Found<Option<Place>>> {
    own.keyed([&DETAILS, &PLACEMENT_KEYS].into_iter().chain(besides));
    own.find(&PLACEMENT);
    let text = own.text("placement", "a string", "thread 24")?;
    let word = own.parsed(&text, word)?;
    whole(own, holder, &word)
}

/// A word, and the keys of the same table that say more of it: they are for a reservation.
fn whole(own: &Section<'_>, holder: Holder, word: &Found<Word>) -> Option<Found<Option<Place>>> {
    let found = placing(own, holder, word)?;
    if !is_reserved(&found) {
        refuse_details(own);
    }
    Some(found)
}

/// The thread of what is no device; the table has these keys besides.
pub(super) fn thread_of_own(own: &Section<'_>, besides: &Table) -> Option<Placing> {
    let found = own_table(own, Holder::Command, Some(besides))?;
    if found.value.is_none() {
        let remedy = "write \"thread 24\" or \"reserved 2ms/8ms\"";
        own.wrong("placement", "what is declared here is never absent", remedy);
    }
    found.value.map(|place| place.placing)
}

fn is_reserved(found: &Found<Option<Place>>) -> bool {
    let request = found
        .value
        .as_ref()
        .and_then(|place| place.placing.request());
    request.is_some()
}

/// Whether a command asks for slots, which is reported: nobody but laxity's own process lets its threads be confined to them.
fn is_by_slots(table: &Section<'_>, name: &str, found: &Found<Option<Place>>) -> bool {
    let Some(placing) = found.value.as_ref().map(|place| place.placing) else {
        return false;
    };
    let request = placing.request();
    let is_by_slots = request.is_some_and(|request| request.enforcer == Enforcer::Slots);
    if is_by_slots {
        let cause = "`slots` confine threads of laxity's own process only, and a command is another; `laxity exec --enforcer slots` gives it some";
        let remedy = format!(
            "write: {name} = {{ placement = \"{}\", enforcer = \"deadline\" }}",
            show_placing(placing)
        );
        table.findings.error(&found.place, cause, remedy);
    }
    is_by_slots
}

/// A word and, for a reservation, the keys in `details` that say more of it.
fn placing(
    details: &Section<'_>,
    holder: Holder,
    word: &Found<Word>,
) -> Option<Found<Option<Place>>> {
    let placing = match word.value {
        Word::Absent => None,
        Word::Interrupt | Word::Deferred if holder == Holder::Command => {
            let cause = "only a device's driver runs in an interrupt handler or a deferred call";
            let remedy = "write \"thread 24\" or \"reserved 2ms/8ms\"";
            details.findings.error(&word.place, cause, remedy);
            return None;
        }
        Word::Interrupt => Some(Placing::Interrupt),
        Word::Deferred => Some(Placing::Deferred),
        Word::Thread(priority) => Some(Placing::Thread(priority)),
        Word::Reserved(Asked::Open(_)) if holder == Holder::Command => {
            let cause = "only a device's calls are measured, and `auto` is proposed by them";
            let remedy = "write what is to be reserved, such as \"reserved 2ms/8ms\"";
            details.findings.error(&word.place, cause, remedy);
            return None;
        }
        Word::Reserved(asked) => Some(reserved(details, holder, asked.for_now())),
    };
    let open = match word.value {
        Word::Reserved(asked) => asked.open(),
        _ => None,
    };
    let place = word.place.clone();
    let value = placing.map(|placing| Place { placing, open });
    Some(Found { value, place })
}

/// The keys that say more of a placement, as far as they are there.
fn details_in(section: &Section<'_>) -> impl Iterator<Item = &'static str> {
    let keys = DETAILS.keys.iter().map(|key| key.name());
    keys.filter(|key| section.has(key))
}

/// Reports the keys about a reservation where there is none.
fn refuse_details(details: &Section<'_>) {
    for key in details_in(details) {
        let cause = format!("`{key}` is for a reservation, and there is none");
        let remedy = "remove it, or write for example: placement = \"reserved 2ms/8ms\"";
        details.wrong(key, cause, remedy);
    }
}

fn reserved(details: &Section<'_>, holder: Holder, reservation: Reservation) -> Placing {
    let enforcer = details.take(&ENFORCER);
    let outside = outside(details, enforcer, details.take(&BESIDE));
    // Whatever has no on-hook phase is reserved from its start.
    let begins = details.find(&RESERVE_FROM);
    if let Some(found) = begins.as_ref().filter(|_| holder != Holder::Dialing)
        && !found.value
    {
        let cause = "only a modem dials: anything else is reserved from its start";
        details
            .findings
            .error(&found.place, cause, "remove `reserve_from`");
    }
    let request = ReservationRequest {
        reservation,
        enforcer,
        outside,
        begins_at_start: begins.map_or(holder != Holder::Dialing, |found| found.value),
    };
    Placing::Reserved(request, details.take(&BEFORE))
}

fn outside(details: &Section<'_>, enforcer: Enforcer, beside: Priority) -> Outside {
    let asked = details.find(&OUTSIDE);
    if let (Enforcer::Deadline, Some(asked)) = (enforcer, &asked) {
        confined_by_deadline(details, &asked.place, asked.value);
    }
    match enforcer == Enforcer::Deadline || asked.is_some_and(|asked| asked.value) {
        true => Outside::Confined,
        false => Outside::Timesharing(beside),
    }
}

fn confined_by_deadline(details: &Section<'_>, place: &reader::Place, is_confined: bool) {
    match is_confined {
        false => details.findings.error(
            place,
            "`deadline` gives nothing outside the reservation",
            "write: enforcer = \"slots\", or remove `outside`",
        ),
        true => details.findings.note(
            place,
            "a reservation by `deadline` is always confined",
            "`outside` may be left out here",
        ),
    }
}

fn word(text: &str) -> Result<Word, UnitError> {
    let text = text.trim();
    let (head, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim_start();
    match (head, rest.is_empty()) {
        ("absent", true) => Ok(Word::Absent),
        ("interrupt", true) => Ok(Word::Interrupt),
        ("deferred", true) => Ok(Word::Deferred),
        ("thread", _) => {
            let level = rest.parse().ok().and_then(Priority::new);
            level.map(Word::Thread).ok_or_else(|| {
                UnitError::new(
                    format!("`{}` names no thread priority", shortened(text)),
                    "write a priority from 0 to 31, such as \"thread 24\"",
                )
            })
        }
        ("reserved", false) => units::asked(rest).map(Word::Reserved),
        _ => Err(UnitError::new(
            format!("`{}` is no placement", shortened(text)),
            EXAMPLES,
        )),
    }
}

/// As a file has it: `interrupt`, `thread 24`, `reserved 2ms/8ms`.
pub(crate) fn show_placing(placing: Placing) -> String {
    match placing {
        Placing::Interrupt => "interrupt".into(),
        Placing::Deferred => "deferred".into(),
        Placing::Thread(priority) => format!("thread {priority}"),
        Placing::Reserved(request, _) => {
            format!(
                "reserved {}",
                units::format_reservation(request.reservation)
            )
        }
    }
}
