//! What is shown of a set.

use laxity_lab::report::{Origin, Row, Table, Value};

use super::load::Loaded;
use super::run::{Outcome, Seen, by_kind};
use super::serving::Variant;

/// A table with these headings.
fn table(caption: String, columns: &[&str], rows: Vec<Row>) -> Table {
    let columns = columns.iter().map(|&column| column.into()).collect();
    Table {
        caption,
        columns,
        rows,
    }
}

/// What was seen of a set, by variant: a row for each kind of device.
pub fn seen<'a>(
    caption: String,
    outcomes: impl Iterator<Item = (Variant, &'a Outcome)>,
    origin: Origin,
) -> Table {
    let rows = outcomes.flat_map(|(variant, outcome)| {
        let kinds = by_kind(&outcome.devices).into_iter();
        kinds.map(move |(devices, seen)| row(variant, devices, &seen, origin))
    });
    let columns = [
        "served",
        "device",
        "calls",
        "longest response",
        "samples lost",
        "samples underrun",
        "delivered",
        "frames lost",
        "retrained or hung up",
    ];
    table(caption, &columns, rows.collect())
}

fn row(variant: Variant, devices: usize, seen: &Seen, origin: Origin) -> Row {
    let device = match devices {
        1 => seen.kind.name(),
        _ => format!("{devices} × {}", seen.kind.name()),
    };
    let delivered = match (seen.frames_good, seen.octets) {
        (Some(frames), _) => format!("{frames} frames"),
        (None, octets) => format!("{} octets", octets.unwrap_or(0)),
    };
    origin.row([
        variant.name().into(),
        device.into(),
        seen.calls.into(),
        seen.longest_response.into(),
        seen.samples_lost.into(),
        seen.samples_underrun.into(),
        delivered.into(),
        seen.frames_lost.into(),
        seen.retrained.into(),
    ])
}

/// How devices are loaded on this machine.
#[must_use]
pub fn loads(loads: &[Loaded]) -> Table {
    let row = |load: &Loaded| {
        let mut row = Origin::Measured.row([load.kind.name().into()]);
        row.push(Origin::Calibrated.cell(load.further + 1));
        row.extend(Origin::Measured.row([Value::share(load.share_ppm), load.call_p99.into()]));
        row
    };
    let caption =
        "Loads here: the work is done so often that it takes the share it is said to take";
    let columns = ["device", "work done", "share", "99 in 100 calls within"];
    table(caption.into(), &columns, loads.iter().map(row).collect())
}
