//! The parts of a file that refer to nothing else: host, transfer and lengths; and what all parts have in common.

use std::ops::RangeInclusive;

use laxity::study::Profile;
use laxity_model::{Priority, ProcessorId, Span};

use super::Declared;
use super::reader::{Entry, Found, SIZE, SPAN, Section};
use super::types::{HostSpec, LengthSpec, Phases};
use super::units::format_span;

/// Everything of one kind that a file declares, in its order.
pub(super) type Names<T> = Vec<Declared<T>>;

/// From 1 µs, below which no timer goes, to an hour.
pub(super) const DURATIONS: RangeInclusive<Span> = Span::from_micros(1)..=Span::from_secs(3_600);
/// A run's length: up to a day.
const LENGTHS: RangeInclusive<Span> = Span::from_millis(1)..=Span::from_secs(86_400);
/// More processors than this no scenario here needs, and no machine it was tried on has.
const MOST_PROCESSORS: u16 = 64;

/// `[host]`.
pub(super) fn host(root: &Section<'_>) -> HostSpec {
    let mut host = HostSpec {
        processors: 1,
        profile: Profile::WIN2000_PII450,
    };
    let Some(section) = root.section("host", "[host]") else {
        return host;
    };
    section.allow(&["processors", "twin"]);
    let processors = section.integer("processors", &(1..=MOST_PROCESSORS));
    set(&mut host.processors, processors);
    let twin = section.choice("twin", &[(host.profile.name, host.profile)]);
    set(&mut host.profile, twin);
    host
}

/// What was found, in place of what stands otherwise.
pub(super) fn set<T>(place: &mut T, found: Option<Found<T>>) {
    if let Some(found) = found {
        *place = found.value;
    }
}

/// `[transfer]`: TCP's maximum segment size.
pub(super) fn mss_bytes(root: &Section<'_>) -> u16 {
    // 536 is what TCP assumes of a path it does not know; 1460 fills an Ethernet frame.
    let found = root.section("transfer", "[transfer]").and_then(|section| {
        section.allow(&["mss"]);
        section.integer("mss", &(536..=1_460))
    });
    found.map_or(536, |found| found.value)
}

/// `[quick]` or `[full]`.
pub(super) fn length(root: &Section<'_>, key: &str, default: LengthSpec) -> LengthSpec {
    let mut length = default;
    let Some(section) = root.section(key, &format!("[{key}]")) else {
        return length;
    };
    section.allow(&["repeats", "bytes", "phases", "limit", "idle"]);
    let repeats = section.integer("repeats", &(1..=1_000));
    set(&mut length.repeats, repeats);
    set(&mut length.bytes, size(&section));
    let presets = [("short", Phases::SHORT), ("study", Phases::STUDY)];
    set(&mut length.phases, section.choice("phases", &presets));
    for (key, place) in [("limit", &mut length.limit), ("idle", &mut length.idle)] {
        let span = section.quantity_in(key, &SPAN, &LENGTHS, format_span);
        set(place, span);
    }
    length
}

/// `bytes = 200_000` or `bytes = "200 kB"`.
fn size(section: &Section<'_>) -> Option<Found<u64>> {
    /// As much as TCP's sequence numbers count.
    const SIZES: RangeInclusive<u64> = 1..=1 << 31;
    match section.value("bytes")?.get_ref() {
        toml::de::DeValue::Integer(_) => section.integer("bytes", &SIZES),
        _ => section.quantity_in("bytes", &SIZE, &SIZES, |bytes| format!("{bytes} B")),
    }
}

pub(super) fn processor(section: &Section<'_>, host: &HostSpec) -> ProcessorId {
    let Some(found) = section.integer("processor", &(0..=u16::MAX)) else {
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
    names: impl Iterator<Item = &'t str> + Clone,
) -> Vec<(usize, &'f Found<&'t str>)> {
    let mut chosen: Vec<(usize, &Found<&str>)> = Vec::new();
    for text in texts {
        match names.clone().position(|name| name == text.value) {
            Some(index) if chosen.iter().any(|(known, _)| *known == index) => owner.findings.error(
                &text.place,
                format!("the {what} `{}` is named twice", text.value),
                twice,
            ),
            Some(index) => chosen.push((index, text)),
            None => owner.findings.unknown(what, text, names.clone()),
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

/// A thread's priority, 0 to 31.
pub(super) fn priority(section: &Section<'_>, key: &str) -> Option<Priority> {
    let found = section.integer(key, &(0..=31))?;
    Priority::new(found.value)
}
