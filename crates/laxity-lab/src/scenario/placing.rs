//! `placement`: where a device's driver, or a command, runs in a variant.

use std::collections::BTreeMap;

use laxity_model::{Enforcer, Outside, Priority, Reservation, ReservationRequest};
use toml::de::DeValue;

use super::Placing;
use super::reader::{Found, Place, Section, shortened};
use super::sections::{Names, priority};
use super::types::{ResolvedDevice, ResolvedTask, TaskKind};
use super::units::{self, UnitError};

/// The keys that say more of a placement, in a variant or in a placement's own table.
pub(super) const DETAIL_KEYS: [&str; 5] =
    ["enforcer", "outside", "priority", "before", "reserve_from"];

const EXAMPLES: &str =
    "write \"interrupt\", \"deferred\", \"thread 24\", \"reserved 2ms/8ms\" or \"absent\"";

/// What the string alone says.
#[derive(Clone, Copy)]
enum Word {
    Absent,
    Interrupt,
    Deferred,
    Thread(Priority),
    Reserved(Reservation),
}

/// Whether something is a device or a command: only a device has interrupts and an on-hook phase.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holder {
    Device,
    Command,
}

/// What a variant places, by name; `None` for what is absent.
pub(super) type Placed = BTreeMap<String, Found<Option<Placing>>>;

/// Reads a variant's placements. An error leaves the thing out of the result.
pub(super) fn placed(
    section: &Section<'_>,
    devices: &Names<ResolvedDevice>,
    tasks: &Names<ResolvedTask>,
) -> Placed {
    let mut placed = Placed::new();
    let Some(value) = section.value("placement") else {
        for key in DETAIL_KEYS.into_iter().filter(|key| section.has(key)) {
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
            let found = whole(section, Holder::Device, &word);
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
            own.and_then(|own| own_table(&own, holder, &[]))
        } else {
            let text = table.text(name.value, "a string or a table", "thread 24");
            let word = text.and_then(|text| table.parsed(&text, word));
            word.and_then(|word| placing(section, holder, &word))
        };
        if let Some(found) = found {
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
    if devices.iter().any(|device| device.name == name.value) {
        return Some(Holder::Device);
    }
    let Some(task) = tasks.iter().find(|task| task.name == name.value) else {
        let declared = devices.iter().map(|d| d.name.as_str());
        table.findings.unknown("device", name, declared);
        return None;
    };
    match task.value.as_ref().map(|task| &task.kind) {
        Some(TaskKind::Command { .. }) => return Some(Holder::Command),
        Some(kind) => table.findings.error(
            &name.place,
            format!("a {} has no placement", kind.kind().name),
            format!(
                "remove `{}` here; its rank stands under [tasks.{0}]",
                name.value
            ),
        ),
        None => {}
    }
    None
}

/// `modem = { placement = "reserved 2ms/8ms", enforcer = "slots" }`.
fn own_table(
    own: &Section<'_>,
    holder: Holder,
    besides: &[&str],
) -> Option<Found<Option<Placing>>> {
    let keys = DETAIL_KEYS.iter().chain(&["placement"]).chain(besides);
    own.allow(&keys.copied().collect::<Vec<_>>());
    own.require("placement", "\"thread 24\"");
    let text = own.text("placement", "a string", "thread 24")?;
    let word = own.parsed(&text, word)?;
    whole(own, holder, &word)
}

/// A word, and the keys of the same table that say more of it: they are for a reservation.
fn whole(own: &Section<'_>, holder: Holder, word: &Found<Word>) -> Option<Found<Option<Placing>>> {
    let found = placing(own, holder, word)?;
    if !is_reserved(&found) {
        refuse_details(own);
    }
    Some(found)
}

/// The thread of what is no device; the table has these keys besides.
pub(super) fn thread_of_own(own: &Section<'_>, besides: [&str; 2]) -> Option<Placing> {
    let found = own_table(own, Holder::Command, &besides)?;
    if found.value.is_none() {
        let remedy = "write \"thread 24\" or \"reserved 2ms/8ms\"";
        own.wrong("placement", "what is declared here is never absent", remedy);
    }
    found.value
}

fn is_reserved(found: &Found<Option<Placing>>) -> bool {
    let request = found.value.as_ref().and_then(Placing::request);
    request.is_some()
}

/// A word and, for a reservation, the keys in `details` that say more of it.
fn placing(
    details: &Section<'_>,
    holder: Holder,
    word: &Found<Word>,
) -> Option<Found<Option<Placing>>> {
    let value = match word.value {
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
        Word::Reserved(reservation) => Some(reserved(details, holder, reservation)),
    };
    let place = word.place.clone();
    Some(Found { value, place })
}

/// Reports the keys about a reservation where there is none.
fn refuse_details(details: &Section<'_>) {
    for key in DETAIL_KEYS.into_iter().filter(|key| details.has(key)) {
        let cause = format!("`{key}` is for a reservation, and there is none");
        let remedy = "remove it, or write for example: placement = \"reserved 2ms/8ms\"";
        details.wrong(key, cause, remedy);
    }
}

fn reserved(details: &Section<'_>, holder: Holder, reservation: Reservation) -> Placing {
    let enforcers = [("slots", Enforcer::Slots), ("deadline", Enforcer::Deadline)];
    let enforcer = details.choice("enforcer", &enforcers);
    let enforcer = enforcer.map_or(Enforcer::Slots, |found| found.value);
    let beside = priority(details, "priority").unwrap_or(Priority::NORMAL);
    let outside = outside(details, enforcer, beside);
    // A command has no on-hook phase, and nothing to ask with.
    let default = holder == Holder::Command;
    let moments = [("start", true), ("dialing", false)];
    let begins = details.choice("reserve_from", &moments);
    if let (Some(found), Holder::Command) = (&begins, holder)
        && !found.value
    {
        let cause = "only a modem dials: anything else is reserved from its start";
        details
            .findings
            .error(&found.place, cause, "remove `reserve_from`");
    }
    // 24 is what the study's driver had until it asked (§5.4).
    let on_hook = Priority::new(24).unwrap_or(Priority::HIGHEST);
    let request = ReservationRequest {
        reservation,
        enforcer,
        outside,
        begins_at_start: begins.map_or(default, |found| found.value),
    };
    Placing::Reserved(request, priority(details, "before").unwrap_or(on_hook))
}

fn outside(details: &Section<'_>, enforcer: Enforcer, beside: Priority) -> Outside {
    let words = [
        ("timesharing", Outside::Timesharing(beside)),
        ("confined", Outside::Confined),
    ];
    let found = details.choice("outside", &words);
    match (enforcer, found) {
        (Enforcer::Slots, found) => found.map_or(Outside::Timesharing(beside), |found| found.value),
        (Enforcer::Deadline, None) => Outside::Confined,
        (Enforcer::Deadline, Some(found)) => {
            confined_by_deadline(details, &found.place, found.value);
            Outside::Confined
        }
    }
}

fn confined_by_deadline(details: &Section<'_>, place: &Place, asked: Outside) {
    match asked {
        Outside::AsPlaced | Outside::Timesharing(_) => details.findings.error(
            place,
            "`deadline` gives nothing outside the reservation",
            "write: enforcer = \"slots\", or remove `outside`",
        ),
        Outside::Confined => details.findings.note(
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
        ("reserved", false) => units::reservation(rest).map(Word::Reserved),
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
