//! What a calibration leaves for people: a table of a machine's costs, and in the page the distribution of each.

use laxity::calibrate::{Calibration, MESSAGE_BYTES, PacketCost};
use laxity_model::Span;
use laxity_model::enforce::machine::{Figure as Cost, Machine};

use super::cells::nanos;
use super::{Axis, Chart, Figure, Mark, Origin, Report, Row, Series, Table, Unit, value};
use crate::layout::fixed;
use crate::machine_file::meaning;
use crate::plain;

/// The shares that the table shows, in parts per million, with their names, and of how many samples at least they can be told.
const SHOWN: [(u32, &str, u64); 4] = [
    (10_000, "1 %", 100),
    (500_000, "median", 1),
    (990_000, "99 %", 100),
    (1_000_000, "most", 1),
];

/// The report of what was found.
#[must_use]
pub fn report(found: &Calibration) -> Report {
    let Calibration {
        machine,
        circumstances,
        ..
    } = found;
    let tick = match machine.tick_hz {
        0 => "none".to_owned(),
        hz => format!("{hz} Hz"),
    };
    let charts = Cost::ALL.iter().map(|cost| distribution(machine, *cost));
    let costs_figure = Figure {
        charts: charts.collect(),
        side_by_side: true,
        remarks: assumed(found).into_iter().chain(unknown(found)).collect(),
        ..Figure::of_table("costs", "What this machine costs", costs(found))
    };
    Report {
        title: machine.description.clone(),
        circumstances: vec![
            ("measured by", machine.provenance.clone()),
            (
                "load average",
                format!(
                    "{} threads wanted to run on {} processors when it began",
                    fixed(u64::from(circumstances.load_thousandths), 1_000, 2),
                    circumstances.processors
                ),
            ),
            (
                "steal time",
                value::known_nanos(circumstances.steal.map(Span::as_nanos)),
            ),
            ("tick", tick),
        ],
        figures: [costs_figure]
            .into_iter()
            .chain(messages(found))
            .chain(packets(found))
            .collect(),
        ..Report::default()
    }
}

/// A line a cost.
fn costs(found: &Calibration) -> Table {
    let shown = SHOWN.map(|(_, name, _)| name);
    let columns = ["cost"].into_iter().chain(shown);
    let columns = columns.chain(["medians from", "to", "samples", "disturbed"]);
    Table {
        caption: "Medians: the least and the greatest of eight consecutive parts of the samples"
            .into(),
        columns: columns.map(Into::into).collect(),
        rows: Cost::ALL.iter().map(|cost| line(found, *cost)).collect(),
    }
}

fn line(found: &Calibration, cost: Cost) -> Row {
    let Calibration {
        machine, evidence, ..
    } = found;
    let seen = evidence.get(&cost);
    let origin = match seen {
        Some(_) => Origin::Measured,
        None => Origin::Charged,
    };
    let mut row = vec![origin.cell(cost.name())];
    row.extend(SHOWN.map(|(ppm, _, samples)| {
        let is_told = seen.is_none_or(|seen| seen.samples >= samples);
        let value = is_told.then(|| machine.figure(cost).at(ppm));
        value.and_then(|value| origin.cell(value))
    }));
    row.extend(match seen {
        Some(seen) => [
            origin.cell(seen.medians.0),
            origin.cell(seen.medians.1),
            origin.cell(seen.samples),
            origin.cell(seen.disturbed),
        ],
        None => [const { None }; 4],
    });
    row
}

/// What a UDP message takes, a line a size, if that is known.
fn messages(found: &Calibration) -> Option<Figure> {
    let cost = found.udp_message.as_ref().ok()?;
    let row = |bytes: u32| {
        vec![
            Origin::Charged.cell(u64::from(bytes)),
            Origin::Measured.cell(cost.of(bytes)),
        ]
    };
    let table = Table {
        caption: "A quarter more than what was measured, the slowest twentieth left out".into(),
        columns: ["bytes", "sent and received over loopback"]
            .map(String::from)
            .into(),
        rows: MESSAGE_BYTES.into_iter().map(row).collect(),
    };
    let title = "What a UDP message takes";
    Some(Figure::of_table("udp_message", title, table))
}

/// What packets take of a driver, a line a way to an interface, of those that could be measured.
fn packets(found: &Calibration) -> Option<Figure> {
    let known = found.packets.iter();
    let known = known.filter_map(|(way, cost)| Some((way, cost.as_ref().ok()?)));
    let row = |(way, cost): (&&str, &PacketCost)| {
        let mut row = vec![Origin::Charged.cell(*way), Origin::Measured.cell(cost.wake)];
        for way in [cost.receive, cost.send] {
            row.extend([64, 1_514].map(|bytes| Origin::Measured.cell(way.of(bytes))));
        }
        row
    };
    let table = Table {
        caption: "A quarter more than what was measured, the slowest twentieth left out".into(),
        columns: [
            "interface",
            "a look",
            "received: 64 bytes",
            "1514 bytes",
            "sent: 64 bytes",
            "1514 bytes",
        ]
        .map(String::from)
        .into(),
        rows: known.map(row).collect(),
    };
    let title = "What packets take of a driver";
    (!table.rows.is_empty()).then(|| Figure::of_table("packets", title, table))
}

/// Why what messages and packets take is not known, where it is not.
fn unknown(found: &Calibration) -> Vec<String> {
    let message = found.udp_message.as_ref().err();
    let message =
        message.map(|why| format!("What a UDP message takes is not known: {}", plain(why)));
    let packets = found.packets.iter().filter_map(|(way, cost)| {
        let why = plain(cost.as_ref().err()?);
        Some(format!("What packets take by `{way}` is not known: {why}"))
    });
    message.into_iter().chain(packets).collect()
}

/// Which costs were not measured, if any.
fn assumed(found: &Calibration) -> Option<String> {
    let assumed = Cost::ALL
        .iter()
        .filter(|cost| !found.evidence.contains_key(cost));
    let assumed = assumed
        .map(|cost| cost.name())
        .collect::<Vec<_>>()
        .join(", ");
    let any = !assumed.is_empty();
    any.then(|| format!("Not measured, but what theory allows here: {assumed}"))
}

/// How many samples took at most so long.
fn distribution(machine: &Machine, cost: Cost) -> Chart {
    let points = machine.figure(cost).points().iter();
    let points = points.map(|(ppm, span)| (nanos(*span), i64::from(*ppm)));
    let series = Series::new("", Mark::Line, points.collect());
    let y = Axis {
        range: Some((0, 1_000_000)),
        ..Axis::new("", Unit::PartsPerMillion)
    };
    let caption = format!("{}: {}", cost.name(), meaning(cost));
    Chart::new(caption, (Axis::time("at most"), y), vec![series])
}

#[cfg(test)]
mod tests {
    use laxity_model::Service;
    use laxity_model::program::upcalls::qos;

    use super::super::Value;
    use super::*;
    use crate::machine_file;

    /// What was measured of a machine.
    const MACHINE: &str = include_str!("../../../../docs/results/epyc-2-processors/machine.toml");

    #[test]
    fn what_a_message_takes_is_told_or_why_it_is_not_known() {
        let mut found = machine_file::parse(MACHINE, "machine.toml").unwrap();
        let why = unknown(&found);
        assert!(why[0].contains("did not measure it"), "{why:?}");
        assert_eq!((messages(&found), packets(&found)), (None, None));
        let cost = qos::Cost {
            each: Service::from_micros(5),
            byte_ps: 1_000,
        };
        found.udp_message = Ok(cost);
        found.packets.insert("xdp", Err("no right".to_owned()));
        let why = "What packets take by `xdp` is not known: no right";
        assert_eq!(
            (unknown(&found), packets(&found)),
            (vec![why.to_owned()], None)
        );
        let packet = PacketCost {
            wake: Service::from_micros(2),
            receive: cost,
            send: cost,
        };
        found.packets.insert("xdp", Ok(packet));
        assert_eq!(packets(&found).unwrap().tables[0].rows.len(), 1);
        assert_eq!(unknown(&found), Vec::<String>::new());
        let told = messages(&found).unwrap();
        let took = |row: &Row| row[1].as_ref().map(|cell| cell.value.clone());
        let took: Vec<_> = told.tables[0].rows.iter().filter_map(took).collect();
        assert_eq!(took, MESSAGE_BYTES.map(|bytes| Value::from(cost.of(bytes))));
    }

    #[test]
    fn the_99th_of_a_hundred_is_not_claimed_of_fewer() {
        let mut found = machine_file::parse(MACHINE, "machine.toml").unwrap();
        let mut shown = |samples| {
            found.evidence.get_mut(&Cost::Tick).unwrap().samples = samples;
            let line = line(&found, Cost::Tick);
            let shown = SHOWN.iter().zip(&line[1..]);
            let shown = shown.filter(|(_, cell)| cell.is_some());
            shown.map(|((_, name, _), _)| *name).collect::<Vec<_>>()
        };
        assert_eq!(shown(100), ["1 %", "median", "99 %", "most"]);
        assert_eq!(shown(99), ["median", "most"]);
    }
}
