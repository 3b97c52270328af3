//! Tables 1 to 3, the study's transfers beside the twin's, and how much they depend on two constants that the study does not settle.

use std::fmt::Display;
use std::sync::LazyLock;

use laxity_devices::modem::FarProfile;
use laxity_lab::bench::{Draft, Holes, Request};
use laxity_lab::report::{Attempts, Origin, Row as Cells, Table, Times};
use laxity_model::{Outside, Priority, Service, Span};
use serde::Deserialize;

use super::TEXT;
use super::transfers::{Attempt, Batch, Place, Setting, transfers};
use super::verdicts::{Judged, agreement, judge};

/// Attempts that the study made for each row.
const ATTEMPTS: u32 = 10;
/// The study's file.
const FILE_BYTES: u64 = 200_000;
/// A quarter of it shows the class of a row.
const SWEEP_BYTES: u64 = FILE_BYTES / 4;
const TIMESHARING: Outside = Outside::Timesharing(Priority::NORMAL);

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
    key: String,
    /// The name of the server that answers.
    far: String,
    /// Whether a reserved driver does nothing outside its reservation.
    confined: bool,
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
            settings: setting.repeated(repeats),
        }
    }

    /// Its rows over what the study does not settle, and the key of what shows them: of table 2 those that live on what they get beside their
    /// reservation, over the spinner's quantum; of table 3 all, over the cost of a call.
    fn sweep(&self, request: &Request) -> Option<(&'static str, Batch)> {
        let (key, outside) = match self.key.as_str() {
            "table-2" => ("quanta", TIMESHARING),
            "table-3" => ("costs", Outside::Confined),
            _ => return None,
        };
        let varied = |us| {
            let mut setting = Setting::study(SWEEP_BYTES, outside, request.seed);
            match key {
                "quanta" => setting.quantum = Span::from_micros(us),
                _ => setting.costs.data = Service::from_micros(us),
            }
            setting
        };
        let values = TEXT.quoted::<Vec<u64>>(&format!("{key}_us")).into_iter();
        let places = self.rows.iter().map(|row| row.place.clone());
        let reserved = places.filter(|place| place.reservation().is_some());
        let batch = Batch {
            places: reserved.collect(),
            settings: values.map(varied).collect(),
        };
        Some((key, batch))
    }
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

/// Draws the tables that are asked for, from what became of their transfers.
pub(super) fn draw(request: &Request, attempts: &mut &[Attempt], draft: &mut Draft<'_>) {
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
            let rows = sweep.places.iter().zip(sweep.taken(attempts));
            let rows = rows.map(|(place, attempts)| times(place, attempts));
            if let Some(figure) = draft.figure(&table.key) {
                figure.tables.push(Table {
                    caption: TEXT.say(key, &[]),
                    columns: headings(key, &sweep.settings),
                    rows: rows.collect(),
                });
            }
        }
        let (held, seen) = agreement(&judged);
        let name = table.key.replace('-', " ");
        draft.claim("classes", held, &[("table", &name), ("seen", &seen)]);
    }
}

/// Why a row came out as it did: what was late, on average of its transfers.
fn late_of(place: &Place, attempts: &[Attempt]) -> Cells {
    let mean = |count: fn(&Attempt) -> u64| {
        let sum: u64 = attempts.iter().map(count).sum();
        Origin::Simulated.cell(sum.checked_div(attempts.len() as u64)?)
    };
    vec![
        Origin::Quoted.cell(place.name()),
        mean(|a| a.calls),
        mean(|a| a.abandoned),
        mean(|a| a.underrun),
        mean(|a| a.overflown),
        mean(|a| a.retrainings),
    ]
}

/// What is varied in each column of a sweep.
fn headings(key: &str, settings: &[Setting]) -> Vec<String> {
    let heading = |setting: &Setting| {
        let value: &dyn Display = match key {
            "quanta" => &setting.quantum,
            _ => &setting.costs.data,
        };
        TEXT.say(&format!("{key}-column"), &[("value", value)])
    };
    let varied = settings.iter().map(heading);
    std::iter::once("row".to_owned()).chain(varied).collect()
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
    use super::*;
    use laxity_devices::modem::Costs;

    #[test]
    fn the_costs_that_are_charged_are_among_those_that_are_tried() {
        let costs: Vec<u64> = TEXT.quoted("costs_us");
        for charged in [Costs::STUDY, Costs::UNLOGGED] {
            assert!(costs.contains(&charged.data.as_micros()));
        }
    }

    #[test]
    fn each_server_is_known() {
        assert!(TABLES.iter().all(|table| table.far == table.far().name));
        assert_eq!(full_speed(table_3()), Span::from_millis(36_367));
    }
}
