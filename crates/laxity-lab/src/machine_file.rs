//! The machine file: what a machine costs, as `laxity calibrate` measured it, for a twin of that machine. TOML.
//!
//! [`render`] writes it, [`parse`] reads it and says file, line, column, cause and remedy of all that is wrong with it. What was written
//! is read back the same.
//!
//! ```toml
//! tick_hz = 250
//!
//! # What a tick takes from a thread that computes.
//! [tick]
//! samples = 987
//! disturbed = 2
//! medians = ["2.1us", "2.3us"]
//! quantiles = [
//!     ["0 %", "1.6us"],
//!     ["50 %", "2.2us"],
//!     ["100 %", "19.8us"],
//! ]
//! ```
//!
//! A figure without `samples`, `disturbed` and `medians` was not measured, but is what theory allows, or what somebody wrote. A file without `[udp_message]` or `[packets]` is of a version that did not measure that.

mod charge;
mod known;
mod packets;

pub use known::{Elsewhere, Known, Measured};

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use laxity::calibrate::{Calibration, Circumstances, Evidence};
use laxity_model::Span;
use laxity_model::enforce::machine::{Figure, Machine, Quantiles, QuantilesError};
use toml::Spanned;
use toml::de::DeValue;

use crate::plain;
use crate::scenario::Diagnostic;
use crate::scenario::diagnostic::Source;
use crate::scenario::quantities::SPAN;
use crate::scenario::reader::{Found, Section, describe, document, string};
use crate::scenario::units::{self, format_span};
use packets::{PACKETS, UDP_MESSAGE};

/// Of a larger file no more than this is read, and that is refused.
const LARGEST_FILE: usize = 1 << 16;
/// The version that is written and read.
const VERSION: u64 = 1;
/// What a cost may be: more would be no cost of a machine, but a mistake.
const COSTS: RangeInclusive<Span> = Span::ZERO..=Span::from_secs(1);
/// Any span that is merely told.
const SPANS: RangeInclusive<Span> = Span::ZERO..=Span::MAX;

/// Keys of the file itself, beside the figures' tables.
const KEYS: [&str; 8] = [
    "file_version",
    "description",
    "provenance",
    "tick_hz",
    "slot_lead",
    "circumstances",
    UDP_MESSAGE,
    PACKETS,
];
const CIRCUMSTANCES: [(&str, Field); 13] = [
    ("model", Field::Text(|c| &mut c.model)),
    ("processors", Field::Number(|c| &mut c.processors)),
    ("hypervisor", Field::Text(|c| &mut c.hypervisor)),
    ("kernel", Field::Text(|c| &mut c.kernel)),
    ("preemption", Field::Text(|c| &mut c.preemption)),
    ("clock_source", Field::Text(|c| &mut c.clock_source)),
    ("governor", Field::Text(|c| &mut c.governor)),
    ("processor", Field::Index(|c| &mut c.processor)),
    ("began", Field::Text(|c| &mut c.began)),
    ("took", Field::Span(|c| &mut c.took)),
    (
        "load_thousandths",
        Field::Number(|c| &mut c.load_thousandths),
    ),
    ("steal", Field::Known(|c| &mut c.steal)),
    ("strangers", Field::Number(|c| &mut c.strangers)),
];
/// Keys of a figure: how it was measured, if it was, and what it is.
const EVIDENCE: [&str; 3] = ["samples", "disturbed", "medians"];
const QUANTILES: &str = "quantiles";
const MEDIANS: &str = "[\"2.1us\", \"2.3us\"]";
const POINT: &str = "[\"50 %\", \"3.2us\"]";
const MEASURE_AGAIN: &str = "or measure again: laxity calibrate";

/// What a figure is, in a sentence.
pub const fn meaning(figure: Figure) -> &'static str {
    match figure {
        Figure::Tick => "What a tick takes from a thread that computes.",
        Figure::ContextSwitch => "From one real-time thread to another: the switch alone.",
        Figure::Wakeup => "From a timer's instant to the first instruction, on a busy processor.",
        Figure::WakeupIdle => "From a timer's instant to the first instruction, on an idle one.",
        Figure::Preemption => "The part of a wake-up that is taken from whoever computed.",
        Figure::Handover => "From a semaphore's signal to the waiter's first instruction.",
        Figure::Block => "Waiting for a semaphore, until the next thread runs, less the switch.",
        Figure::PolicyChange => "Giving another thread a policy.",
        Figure::Timer => "Sleeping until an instant, until the next thread runs, less the switch.",
        Figure::CacheReload => "Loading the working set again after another thread has run.",
        Figure::DeadlineOverrun => "By how much SCHED_DEADLINE lets a thread overrun its budget.",
        Figure::DeadlineReplenish => "From a new budget to the first instruction with it.",
        Figure::SlotBegin => "What the beginning of a time slot takes, the lead included.",
        Figure::SlotEdge => "What the end of a time slot takes.",
        Figure::SlotEntering => "From the decision for a slot to its holder's first instruction.",
        Figure::SlotLeaving => "From the timer for a slot's end to its holder's last instruction.",
        Figure::SlotCut => "The reverse, where a hypervisor takes the processor before the timer.",
    }
}

/// Where the file is unless told otherwise: `laxity/machine.toml` in `$XDG_CONFIG_HOME`, or in `~/.config`. `None` without either.
pub fn default_path() -> Option<PathBuf> {
    Some(configuration()?.join("machine.toml"))
}

/// Where a user's files of laxity are.
pub(crate) fn configuration() -> Option<PathBuf> {
    let absolute = |name| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let directory = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
    Some(directory?.join("laxity"))
}

/// Reads the text of a machine file. `file` is only named in messages. Never panics, whatever the text.
///
/// # Errors
///
/// All that is wrong, in the order of the file: the syntax first, and only if that is right, the meaning.
pub fn parse(text: &str, file: &str) -> Result<Calibration, Vec<Diagnostic>> {
    let source = Source { file, text };
    if text.len() > LARGEST_FILE {
        let cause = "the file is too large for a machine file";
        let remedy = format!("a machine file has at most {LARGEST_FILE} bytes");
        return Err(vec![*source.error(0..0, cause, remedy)]);
    }
    let place = |error: &toml::de::Error| error.span().unwrap_or(0..0);
    let not_toml = |errors: &[toml::de::Error]| {
        let first = errors.iter().min_by_key(|error| place(error).start);
        let wrong = first.map(|error| {
            let cause = format!("not TOML: {}", error.message());
            let remedy = format!("write `key = value`, spans in quotes, {MEASURE_AGAIN}");
            *source.error(place(error), cause, remedy)
        });
        wrong.into_iter().collect()
    };
    document(source, not_toml, whole).map(|(calibration, _)| calibration)
}

/// The whole file; `None` only where an error has been found.
fn whole(root: &Section<'_>) -> Option<Calibration> {
    let names = Figure::ALL.map(Figure::name);
    let keys: Vec<&str> = KEYS.into_iter().chain(names).collect();
    root.allow(&keys);
    let version = required(root, "file_version", "1", |key| {
        root.integer(key, &(VERSION..=VERSION))
    });
    let description = text(root, "description");
    let provenance = text(root, "provenance");
    let tick_hz = required(root, "tick_hz", "250", |key| {
        root.integer(key, &(0..=10_000_u32))
    });
    let slot_lead = span(root, "slot_lead", &COSTS);
    let circumstances = circumstances(root);
    let (udp_message, packets) = (packets::udp_message(root), packets::packets(root));
    let mut evidence = BTreeMap::new();
    let figures = Figure::ALL.map(|figure| {
        let (quantiles, seen) = self::figure(root, figure)?;
        evidence.extend(seen.map(|seen| (figure, seen)));
        Some((figure, quantiles))
    });
    // All is read before what is missing ends it.
    let figures: Vec<_> = figures.into_iter().collect::<Option<_>>()?;
    version?;
    let mut machine = Machine::without_costs(tick_hz?);
    machine.description = description?;
    machine.provenance = provenance?;
    machine.slot_lead = slot_lead?;
    Some(Calibration {
        machine: machine.with(figures),
        evidence,
        udp_message: udp_message?,
        packets: packets?,
        circumstances: circumstances?,
    })
}

/// The value of a key that must be there.
fn required<T>(
    section: &Section<'_>,
    key: &str,
    example: &str,
    read: impl FnOnce(&str) -> Option<Found<T>>,
) -> Option<T> {
    section.require(key, example);
    read(key).map(|found| found.value)
}

fn text(section: &Section<'_>, key: &str) -> Option<String> {
    let found = required(section, key, "\"…\"", |key| {
        section.text(key, "a string", "…")
    })?;
    Some(found.to_owned())
}

fn span(section: &Section<'_>, key: &str, range: &RangeInclusive<Span>) -> Option<Span> {
    required(section, key, "\"3.2us\"", |key| {
        // Zero is a span like any other here.
        let found = section.quantity(key, &SPAN)?;
        in_range(section, &found, range).then_some(found)
    })
}

fn in_range(section: &Section<'_>, found: &Found<Span>, range: &RangeInclusive<Span>) -> bool {
    let fits = range.contains(&found.value);
    if !fits {
        let cause = format!("{} is no cost of a machine", format_span(found.value));
        let remedy = format!(
            "write at most {}, {MEASURE_AGAIN}",
            format_span(*range.end())
        );
        section.findings.error(&found.place, cause, remedy);
    }
    fits
}

/// A table that must be there.
fn table<'a>(root: &Section<'a>, name: &str) -> Option<Section<'a>> {
    let path = format!("[{name}]");
    if !root.has(name) {
        let cause = format!("the file lacks the table {path}");
        let remedy = format!("add {path} with its keys below it, {MEASURE_AGAIN}");
        root.findings.error(&root.place, cause, remedy);
    }
    root.section(name, &path)
}

fn circumstances(root: &Section<'_>) -> Option<Circumstances> {
    let section = table(root, "circumstances")?;
    section.allow(&CIRCUMSTANCES.map(|(key, _)| key));
    let mut all = Circumstances::default();
    // All are read before the first that is missing ends it, so that all findings are told.
    let read = CIRCUMSTANCES.map(|(key, field)| field.read(&section, key, &mut all));
    read.into_iter().collect::<Option<()>>()?;
    Some(all)
}

/// One of the circumstances, by its type.
#[derive(Clone, Copy)]
enum Field {
    Text(fn(&mut Circumstances) -> &mut String),
    Number(fn(&mut Circumstances) -> &mut u32),
    Index(fn(&mut Circumstances) -> &mut usize),
    Span(fn(&mut Circumstances) -> &mut Span),
    /// Empty where it could not be read.
    Known(fn(&mut Circumstances) -> &mut Option<Span>),
}

impl Field {
    /// Reads it; `None` only where an error has been found.
    fn read(self, section: &Section<'_>, key: &str, into: &mut Circumstances) -> Option<()> {
        match self {
            Self::Text(of) => *of(into) = text(section, key)?,
            Self::Number(of) => *of(into) = number(section, key, "0")?,
            Self::Index(of) => *of(into) = number(section, key, "0")? as usize,
            Self::Span(of) => *of(into) = span(section, key, &SPANS)?,
            Self::Known(of) => {
                let text = section.value(key).and_then(string);
                *of(into) = match text.is_some_and(|text| text.value.is_empty()) {
                    true => None,
                    false => Some(span(section, key, &SPANS)?),
                };
            }
        }
        Some(())
    }

    /// As the file has it.
    fn written(self, of: &mut Circumstances) -> String {
        match self {
            Self::Text(field) => quoted(field(of)),
            Self::Number(field) => field(of).to_string(),
            Self::Index(field) => field(of).to_string(),
            Self::Span(field) => quoted(&format_span(*field(of))),
            Self::Known(field) => quoted(&field(of).map(format_span).unwrap_or_default()),
        }
    }
}

fn number(section: &Section<'_>, key: &str, example: &str) -> Option<u32> {
    required(section, key, example, |key| {
        section.integer(key, &(0..=u32::MAX))
    })
}

/// One figure, and how it was measured, if it was.
fn figure(root: &Section<'_>, figure: Figure) -> Option<(Quantiles, Option<Evidence>)> {
    let section = table(root, figure.name())?;
    let [samples, disturbed, medians] = EVIDENCE;
    section.allow(&[samples, disturbed, medians, QUANTILES]);
    let measured = EVIDENCE.iter().any(|key| section.has(key));
    // All is read before what is wrong ends it.
    let evidence = measured.then(|| evidence(&section));
    let quantiles = quantiles(&section)?;
    match evidence {
        Some(evidence) => Some((quantiles, Some(evidence?))),
        None => Some((quantiles, None)),
    }
}

fn evidence(section: &Section<'_>) -> Option<Evidence> {
    let [samples, disturbed, medians] = EVIDENCE;
    let [samples, disturbed] = [samples, disturbed].map(|key| number(section, key, "1000"));
    Some(Evidence {
        medians: self::medians(section, medians)?,
        samples: samples?.into(),
        disturbed: disturbed?.into(),
    })
}

fn medians(section: &Section<'_>, key: &str) -> Option<(Span, Span)> {
    section.require(key, MEDIANS);
    let value = section.value(key)?;
    if let Some(texts) = pair(value) {
        let [least, most] = texts.map(|text| cost(section, &text));
        let (least, most) = (least?, most?);
        if least <= most {
            return Some((least, most));
        }
    }
    let cause = "`medians` must be two spans, the lesser one first";
    let remedy = format!("write for example: medians = {MEDIANS}");
    section.findings.error(&value.span(), cause, remedy);
    None
}

fn quantiles(section: &Section<'_>) -> Option<Quantiles> {
    let example = format!("[{POINT}]");
    section.require(QUANTILES, &example);
    let items = section.items(QUANTILES, ("a list", &example), |item| {
        Some((item.span(), point(section, item)))
    });
    let (places, points): (Vec<_>, Vec<_>) = items?.into_iter().unzip();
    let points: Option<Vec<_>> = points.into_iter().collect();
    let error = match Quantiles::new(points?) {
        Ok(quantiles) => return Some(quantiles),
        Err(error) => error,
    };
    let place = match error {
        QuantilesError::Empty => None,
        QuantilesError::Falls { index } | QuantilesError::Beyond { index } => places.get(index),
    };
    let place = place.cloned();
    let place = place.unwrap_or_else(|| section.place_of(QUANTILES));
    let remedy = format!(
        "write the points in order, shares rising and spans not falling, such as {POINT}, {MEASURE_AGAIN}"
    );
    section.findings.error(&place, error.to_string(), remedy);
    None
}

/// A share and the span that so many do not exceed.
fn point(section: &Section<'_>, item: &Spanned<DeValue<'_>>) -> Option<(u32, Span)> {
    let Some([share, span]) = pair(item) else {
        let found = describe(item.get_ref());
        let cause = format!("a point must be a share and a span, both in quotes, found {found}");
        let remedy = format!("write for example: {POINT}");
        section.findings.error(&item.span(), cause, remedy);
        return None;
    };
    let share = section.parsed(&share, units::share);
    let span = cost(section, &span)?;
    Some((share?.value.ppm, span))
}

fn cost(section: &Section<'_>, text: &Found<&str>) -> Option<Span> {
    let found = section.parsed(text, units::span)?;
    in_range(section, &found, &COSTS).then_some(found.value)
}

/// Two texts in a list.
fn pair<'t>(item: &'t Spanned<DeValue<'_>>) -> Option<[Found<&'t str>; 2]> {
    let texts = item.get_ref().as_array()?.iter().map(string);
    let texts: Vec<_> = texts.collect::<Option<_>>()?;
    texts.try_into().ok()
}

fn quoted(text: &str) -> String {
    toml::Value::from(&*plain(text)).to_string()
}

/// The text of a machine file; [`parse`] reads it back the same.
pub fn render(calibration: &Calibration) -> String {
    let Calibration {
        machine,
        evidence,
        udp_message,
        packets,
        circumstances,
    } = calibration;
    let mut text = String::from(
        "# What this machine costs, measured by `laxity calibrate`, for a twin of it.\n\
         # Of a figure's samples, so many do not exceed the span beside the share. What took more than 100us (of new\n\
         # budgets 500us) shows that the machine itself stood still: `disturbed` counts that, and it is left out. `medians`: the\n\
         # least and the greatest of eight parts of the samples, one after the other; near each other if the machine was steady.\n",
    );
    // Writing to a String cannot fail.
    let _ = writeln!(text, "file_version = {VERSION}");
    let _ = writeln!(text, "description = {}", quoted(&machine.description));
    let _ = writeln!(text, "provenance = {}", quoted(&machine.provenance));
    let _ = writeln!(text, "tick_hz = {}", machine.tick_hz);
    let _ = writeln!(
        text,
        "# How early the dispatcher of time slots wakes before a slot."
    );
    let _ = writeln!(text, "slot_lead = \"{}\"", format_span(machine.slot_lead));
    let _ = writeln!(text, "\n[circumstances]");
    let mut circumstances = circumstances.clone();
    for (key, field) in CIRCUMSTANCES {
        let _ = writeln!(text, "{key} = {}", field.written(&mut circumstances));
    }
    for figure in Figure::ALL {
        let _ = writeln!(text, "\n# {}\n[{}]", meaning(figure), figure.name());
        if let Some(seen) = evidence.get(&figure) {
            let (least, most) = seen.medians;
            let _ = writeln!(text, "samples = {}", seen.samples);
            let _ = writeln!(text, "disturbed = {}", seen.disturbed);
            let (least, most) = (format_span(least), format_span(most));
            let _ = writeln!(text, "medians = [\"{least}\", \"{most}\"]");
        }
        text.push_str("quantiles = [\n");
        for (ppm, span) in machine.figure(figure).points() {
            let share = units::Share { ppm: *ppm };
            let _ = writeln!(text, "    [\"{share}\", \"{}\"],", format_span(*span));
        }
        text.push_str("]\n");
    }
    text.push_str(&packets::rendered_message(udp_message));
    text.push_str(&packets::rendered_packets(packets));
    text
}

#[cfg(test)]
mod tests;
