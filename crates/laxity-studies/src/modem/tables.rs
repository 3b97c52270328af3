//! Tables 1 to 3, the study's transfers beside the twin's, and how much they depend on two constants that the study does not settle.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::LazyLock;

use laxity_devices::modem::{Costs, FarProfile};
use laxity_lab::bench::{Draft, Holes, Request};
use laxity_lab::report::{
    Attempts, Axis, Chart, Mark, Origin, Row as Cells, Series, Table, Times, Value, nanos,
};
use laxity_model::{Outside, Priority, Service, Span};
use serde::Deserialize;

use super::TEXT;
use super::transfers::{Attempt, Batch, HOST, Place, Setting, quanta, statistics, transfers};
use super::verdicts::{Judged, agreement, judge, servers};

/// Attempts that the study made for each row.
const ATTEMPTS: u32 = 10;
/// The study's file.
pub(super) const FILE_BYTES: u64 = 200_000;
/// A quarter of it shows whether a row gets through at all.
const SWEEP_BYTES: u64 = FILE_BYTES / 4;
/// So many transfers of a row are made again at other costs of a call.
const SWEPT: usize = 2;
/// What a reserved driver does outside its reservation in tables 1 and 2.
pub(super) const TIMESHARING: Outside = Outside::Timesharing(Priority::NORMAL);

/// A row as printed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    /// Where the driver was.
    pub(super) place: Place,
    /// Shortest, longest, mean, standard deviation in milliseconds, as printed; `None`: none succeeded.
    times_ms: Option<[u64; 4]>,
    #[serde(default)]
    succeeded: u32,
}

impl Row {
    /// What the study prints: the first row of table 1 has its shortest above its longest.
    pub(super) fn attempts(&self) -> Attempts {
        let times = self.times_ms.map(|times| {
            let [min, max, mean, deviation] = times.map(Span::from_millis);
            Times {
                min,
                max,
                mean,
                deviation,
            }
        });
        Attempts {
            made: ATTEMPTS,
            succeeded: self.succeeded,
            times,
        }
    }
}

/// A table as printed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuotedTable {
    pub(super) key: String,
    /// The name of the server that answers.
    far: String,
    /// Whether a reserved driver does nothing outside its reservation.
    pub(super) confined: bool,
    pub(super) rows: Vec<Row>,
}

/// Tables 1 to 3.
pub(super) static TABLES: LazyLock<Vec<QuotedTable>> = LazyLock::new(|| TEXT.quoted("tables"));

/// The study's table 3: which reservations serve a modem that has nothing besides.
pub(super) fn table_3() -> &'static QuotedTable {
    &TABLES[2]
}

/// What full speed was in the study: of the INT row of table 2, as which table 3 was made; but table 1 has its own.
pub(super) fn full_speed(table: &QuotedTable) -> Span {
    let of = |table: &QuotedTable| {
        let mut rows = table.rows.iter();
        let int = rows.find(|row| row.place == Place::interrupt());
        int.and_then(|row| row.attempts().times)
    };
    let times = of(table).or_else(|| of(&TABLES[1]));
    times.map_or(Span::ZERO, |times| times.mean)
}

impl QuotedTable {
    fn far(&self) -> FarProfile {
        match self.far == FarProfile::TOTAL_CONTROL.name {
            true => FarProfile::TOTAL_CONTROL,
            false => FarProfile::DATAFIRE,
        }
    }

    /// Its transfers, and those of one more place: INT is what full speed is measured by.
    fn batch(&self, request: &Request) -> Batch {
        let outside = match self.confined {
            true => Outside::Confined,
            false => TIMESHARING,
        };
        let setting = Setting {
            far: self.far(),
            ..Setting::study(FILE_BYTES, outside, request.seed)
        };
        let mut places: Vec<Place> = self.rows.iter().map(|row| row.place.clone()).collect();
        if !places.contains(&Place::interrupt()) {
            places.push(Place::interrupt());
        }
        let repeats = request.repeats.unwrap_or(ATTEMPTS).max(1);
        Batch {
            places,
            settings: setting
                .repeated(repeats)
                .into_iter()
                .map(Setting::drawn)
                .collect(),
        }
    }

    /// What the study does not settle, and the key of what shows it: beside table 1 threads of all priorities (it tried "different" ones, §6.1); of table 2
    /// the rows that live on what they get beside their reservation, over the spinner's quantum; of table 3 all, over the cost of a call.
    fn sweep(&self, request: &Request) -> Option<(&'static str, Batch)> {
        let quarter = Setting::study(SWEEP_BYTES, TIMESHARING, request.seed);
        let reserved = || {
            let places = self.rows.iter().map(|row| row.place.clone());
            places.filter(|place| place.reservation().is_some())
        };
        let of_quantum = |quantum| Setting {
            quantum,
            ..quarter.clone()
        };
        let (key, places, settings) = match self.key.as_str() {
            "table-1" => {
                let beside_equal = Setting {
                    spins_beside_equal: true,
                    ..quarter
                };
                ("priorities", Place::priorities(), vec![beside_equal])
            }
            "table-2" => {
                let settings = quanta().into_iter().map(of_quantum);
                ("quanta", reserved().collect(), settings.collect())
            }
            "table-3" => ("costs", reserved().collect(), self.at_other_costs(request)),
            _ => return None,
        };
        Some((key, Batch { places, settings }))
    }

    /// The first of the transfers of a row, cost by cost, where a call does not cost what the table charges.
    fn at_other_costs(&self, request: &Request) -> Vec<Setting> {
        let own = self.batch(request).settings;
        let at = |data: Service| {
            own.iter().take(SWEPT).map(move |setting| Setting {
                costs: Costs {
                    data,
                    ..setting.costs
                },
                ..setting.clone()
            })
        };
        let others = costs().into_iter().filter(|cost| *cost != HOST.costs.data);
        others.flat_map(at).collect()
    }
}

/// What a call may cost, the least first.
fn costs() -> Vec<Service> {
    let all = TEXT.quoted::<Vec<u64>>("costs_us").into_iter();
    all.map(Service::from_micros).collect()
}

fn wanted(request: &Request) -> impl Iterator<Item = &'static QuotedTable> {
    TABLES.iter().filter(|table| request.wants(&table.key))
}

/// The transfers of the tables that are asked for.
pub(super) fn batches(request: &Request) -> Vec<Batch> {
    let of = |table: &QuotedTable| {
        let sweep = table.sweep(request).map(|(_, sweep)| sweep);
        [table.batch(request)].into_iter().chain(sweep)
    };
    wanted(request).flat_map(of).collect()
}

/// Draws the tables that are asked for, from what became of their transfers. Returns the rows that are not at full speed in the study and that what was
/// put in, or chosen by them, leaves open, and how those came out that did not come true.
pub(super) fn draw(
    request: &Request,
    attempts: &mut &[Attempt],
    draft: &mut Draft<'_>,
) -> Vec<(String, Option<String>)> {
    let mut degraded = Vec::new();
    let mut by_table = BTreeMap::new();
    for table in wanted(request) {
        let batch = table.batch(request);
        let by_place = batch.taken(attempts);
        let int = batch
            .places
            .iter()
            .position(|place| *place == Place::interrupt());
        let undisturbed = int.map_or(&[][..], |int| by_place[int]);
        let judged = judge(table, &by_place, undisturbed);
        if let Some(figure) = draft.figure(&table.key) {
            figure.compared = judged.iter().map(Judged::compared).collect();
            figure
                .compared
                .extend(judged.iter().filter_map(Judged::deviation));
            figure.charts.push(means(&judged));
            let far = table.far();
            let holes: Holes<'_> = &[
                ("each", &transfers(batch.settings.len() as u32, "")),
                ("far", &far.name),
                ("rate", &far.fastest_up_bit_s),
            ];
            figure.about += &format!(" {}", TEXT.say("twin-of-table", holes));
        }
        let late = table.rows.iter().zip(&by_place);
        let late = late.map(|(row, attempts)| late_of(&row.place, attempts));
        draft.table(&table.key, "late", &[], late);
        if let Some((key, sweep)) = table.sweep(request) {
            let (columns, rows) = swept(key, &sweep, &sweep.taken(attempts), &judged);
            if let Some(figure) = draft.figure(&table.key) {
                figure.tables.push(Table {
                    caption: TEXT.say(key, &[]),
                    columns,
                    rows,
                });
            }
        }
        let (held, seen) = agreement(&judged, table.confined);
        let name = table.key.replace('-', " ");
        let of_table = judged.iter().filter_map(Judged::degraded);
        degraded.extend(of_table.map(|(row, missed)| (format!("{row} of {name}"), missed)));
        let claim = if table.confined {
            "classes"
        } else {
            "full-speed"
        };
        draft.claim(claim, held, &[("table", &name), ("seen", &seen)]);
        by_table.insert(table.key.as_str(), judged);
    }
    show_servers(&by_table, draft);
    degraded
}

/// What tells the study's two servers apart, in the table of the second.
fn show_servers(by_table: &BTreeMap<&str, Vec<Judged<'_>>>, draft: &mut Draft<'_>) {
    if let (Some(pool), Some(server), Some(figure)) = (
        by_table.get("table-1"),
        by_table.get("table-2"),
        draft.figure("table-2"),
    ) {
        figure.compared.extend(servers(pool, server));
    }
}

/// Slide 25: the mean of each row, by its place in the table.
fn means(judged: &[Judged<'_>]) -> Chart {
    let series = |name: &str, mark, of: fn(&Judged<'_>) -> Attempts| {
        let means = (1..).zip(judged).filter_map(|(place, row)| {
            let times = of(row).times?;
            Some((place, nanos(times.mean)))
        });
        Series::new(name, mark, means.collect())
    };
    let series = vec![
        series("the study", Mark::Ring, |row| row.paper),
        series("the twin", Mark::Filled, |row| row.twin),
    ];
    let axes = (
        Axis::count("row of the table"),
        Axis::time("mean of the transfers"),
    );
    Chart::new("means by row, from the first to the last", axes, series)
}

/// Why a row came out as it did: what was late, in all of its transfers. A mean would be a fraction of what few of them have, as retrainings.
fn late_of(place: &Place, attempts: &[Attempt]) -> Cells {
    let sum = |count: fn(&Attempt) -> u64| {
        let of_all = (!attempts.is_empty()).then(|| attempts.iter().map(count).sum::<u64>());
        Origin::Simulated.cell(of_all?)
    };
    vec![
        Origin::Quoted.cell(place.name()),
        sum(|a| a.calls),
        sum(|a| a.abandoned),
        sum(|a| a.underrun),
        sum(|a| a.overflown),
        sum(|a| a.retrainings),
    ]
}

/// The columns and rows of a sweep.
fn swept(
    key: &str,
    sweep: &Batch,
    seen: &[&[Attempt]],
    judged: &[Judged<'_>],
) -> (Vec<String>, Vec<Cells>) {
    let columns = match key {
        "costs" => headings(key, &costs()),
        "quanta" => headings(key, &quanta()),
        _ => headings(key, &[""]),
    };
    let rows = sweep.places.iter().zip(seen);
    let rows = rows.map(|(place, attempts)| match key {
        "costs" => by_cost(place, attempts, judged),
        _ => times(place, attempts),
    });
    (columns, rows.collect())
}

/// What is varied in each column of a sweep.
fn headings(key: &str, values: &[impl Display]) -> Vec<String> {
    let key = format!("{key}-column");
    let varied = values
        .iter()
        .map(|value| TEXT.say(&key, &[("value", value)]));
    std::iter::once("row".to_owned()).chain(varied).collect()
}

/// What became of a row's first transfers, by the cost of a call. At the cost that the table charges nothing is tried again: there stands the row itself.
fn by_cost(place: &Place, others: &[Attempt], judged: &[Judged<'_>]) -> Cells {
    let costs = costs();
    let each = others.len() / (costs.len() - 1);
    let mut others = others.chunks(each.max(1));
    let row = || {
        let mut rows = judged.iter().map(Judged::compared);
        rows.find(|row| row.quantity == place.name())?.twin
    };
    let cells = costs.into_iter().map(|cost| match cost == HOST.costs.data {
        true => row(),
        false => Origin::Simulated.cell(Value::Attempts(statistics(others.next()?))),
    });
    [Origin::Quoted.cell(place.name())]
        .into_iter()
        .chain(cells)
        .collect()
}

/// How long each transfer from a place took.
fn times(place: &Place, attempts: &[Attempt]) -> Cells {
    let took = attempts.iter().map(|attempt| match attempt.took {
        Some(took) => Origin::Simulated.cell(took),
        None => Origin::Simulated.cell("no"),
    });
    [Origin::Quoted.cell(place.name())]
        .into_iter()
        .chain(took)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::judged_as;
    use super::*;

    #[test]
    fn the_costs_that_are_charged_are_among_those_that_are_tried() {
        for charged in [Costs::STUDY, Costs::UNLOGGED] {
            assert!(costs().contains(&charged.data));
        }
    }

    /// One retraining in three transfers is not none.
    #[test]
    fn what_was_late_in_one_transfer_of_several_is_told() {
        let attempts = [0, 1, 0].map(|retrainings| Attempt {
            retrainings,
            ..Attempt::default()
        });
        let late = late_of(&table_3().rows[0].place, &attempts);
        assert_eq!(late.last(), Some(&Origin::Simulated.cell(1_u64)));
    }

    /// One table cannot say of a row what another denies.
    #[test]
    fn at_the_cost_that_is_charged_the_table_of_costs_has_the_rows_themselves() {
        let request = Request {
            figures: vec!["table-3".into()],
            repeats: Some(3),
            ..Request::default()
        };
        // Each takes another time.
        let report = judged_as(&request, |number| Attempt {
            took: Some(Span::from_secs(36) + Span::from_millis(number)),
            ..Attempt::default()
        });
        let figure = &report.figures[0];
        let mut tables = figure.tables.iter();
        let table = tables.find(|table| table.caption == TEXT.say("costs", &[]));
        let table = table.expect("a table of costs");
        let charged = headings("costs", &[HOST.costs.data]).remove(1);
        let mut columns = table.columns.iter();
        let charged = columns.position(|column| *column == charged);
        let charged = charged.expect("it is tried");
        assert_eq!(table.rows.len(), table_3().rows.len());
        for (row, compared) in table.rows.iter().zip(&figure.compared) {
            assert_eq!(row[charged], compared.twin, "{}", compared.quantity);
            assert!(row.iter().all(Option::is_some), "{row:?}");
        }
    }

    #[test]
    fn each_server_is_known() {
        assert!(TABLES.iter().all(|table| table.far == table.far().name));
        assert_eq!(full_speed(table_3()), Span::from_millis(36_367));
    }
}
