//! Cells and tables of these experiments.

use laxity_model::{Reservation, Span};

use super::live::Loaded;
use super::run::{Seen, by_kind};
use laxity_lab::report::{Cell, Origin, Table, Value};

/// Words, without a source of their own.
#[must_use]
pub fn text(words: impl Into<String>, origin: Origin) -> Option<Cell> {
    Some(Cell {
        value: Value::Text(words.into()),
        origin,
    })
}

/// A count.
#[must_use]
pub fn count(count: u64, origin: Origin) -> Option<Cell> {
    Some(Cell {
        value: Value::Count(count),
        origin,
    })
}

/// A span.
#[must_use]
pub fn span(span: Span, origin: Origin) -> Option<Cell> {
    Some(Cell {
        value: Value::Span(span),
        origin,
    })
}

/// A share, in parts per million.
#[must_use]
pub fn share(ppm: u64, origin: Origin) -> Option<Cell> {
    Some(Cell {
        value: Value::Share(u32::try_from(ppm).unwrap_or(u32::MAX)),
        origin,
    })
}

/// A reservation, X of every Y.
#[must_use]
pub fn reservation(reservation: Option<Reservation>) -> Option<Cell> {
    text(reservation?.to_string(), Origin::Predicted)
}

/// The headings of what `seen_row` fills.
pub const SEEN_COLUMNS: [&str; 8] = [
    "device",
    "calls",
    "longest response",
    "samples lost",
    "samples underrun",
    "delivered",
    "frames lost",
    "retrained or hung up",
];

/// A table of what was seen, with one column before the others.
#[must_use]
pub fn seen_table(caption: String, first: &str, rows: Vec<Vec<Option<Cell>>>) -> Table {
    let columns = std::iter::once(first).chain(SEEN_COLUMNS);
    Table {
        caption,
        columns: columns.map(str::to_owned).collect(),
        rows,
    }
}

/// What was seen of a run: a row for each kind of device.
#[must_use]
pub fn seen_rows(name: &str, seen: &[Seen], origin: Origin) -> Vec<Vec<Option<Cell>>> {
    let kinds = by_kind(seen).into_iter();
    kinds
        .map(|(devices, seen)| seen_row(name, devices, &seen, origin))
        .collect()
}

fn seen_row(name: &str, devices: usize, seen: &Seen, origin: Origin) -> Vec<Option<Cell>> {
    let device = match devices {
        1 => seen.kind.name(),
        _ => format!("{devices} × {}", seen.kind.name()),
    };
    let delivered = match (seen.frames_good, seen.octets) {
        (Some(frames), _) => format!("{frames} frames"),
        (None, octets) => format!("{} octets", octets.unwrap_or(0)),
    };
    vec![
        text(name, origin),
        text(device, origin),
        count(seen.calls, origin),
        span(seen.longest_response, origin),
        count(seen.samples_lost, origin),
        count(seen.samples_underrun, origin),
        text(delivered, origin),
        count(seen.frames_lost, origin),
        count(seen.retrained, origin),
    ]
}

/// How devices are loaded on this machine.
#[must_use]
pub fn loads(loads: &[Loaded]) -> Table {
    let columns = ["device", "work done", "share", "99 in 100 calls within"];
    let row = |load: &Loaded| {
        vec![
            text(load.kind.name(), Origin::Measured),
            count(load.further as u64 + 1, Origin::Calibrated),
            share(load.share_ppm, Origin::Measured),
            span(load.call_p99, Origin::Measured),
        ]
    };
    Table {
        caption: "Loads here: the work is done so often that it takes the share it is said to take"
            .into(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: loads.iter().map(row).collect(),
    }
}
