//! How much the tables depend on two constants that the study does not settle.

use laxity::study::Profile;
use laxity_devices::modem::{Costs, FarProfile, Timing};
use laxity_model::{Outside, Priority, Service, Span};

use super::quoted_tables::{self, Row};
use super::transfers::{Attempt, CARD_FAST_PPB, Place, Transfer, make_all, simulated, statistics};
use laxity_lab::bench::Request;
use laxity_lab::report::{Cell, Origin, Table, Value};
use laxity_lab::runner::{Progress, RunError};

/// A quarter of the study's file shows the class of a row.
const BYTES: u64 = 50_000;

/// What a call may cost: the study's average, what tables 1 to 3 are charged, and around it.
const COSTS: [Service; 7] = [
    Service::from_micros(1_700),
    Service::from_micros(1_760),
    Costs::UNLOGGED.data,
    Service::from_micros(1_779),
    Service::from_micros(1_790),
    Service::from_micros(1_810),
    Costs::STUDY.data,
];

/// The quanta of Windows 2000 with a clock of 15.6 ms: 2, 4 and 6 ticks; and the twin's.
const QUANTA_US: [u64; 4] = [31_250, 62_500, 93_750, 120_000];

fn transfer(place: Place, outside: Outside, seed: u64) -> Transfer {
    Transfer {
        place,
        outside,
        far: FarProfile::DATAFIRE,
        timing: Timing::study(),
        costs: Costs::UNLOGGED,
        profile: Profile::WIN2000_PII450,
        bytes: BYTES,
        fast_ppb: CARD_FAST_PPB,
        seed,
    }
}

/// Table 3's rows over the cost of a call.
pub(super) fn by_cost(request: &Request, progress: &mut dyn Progress) -> Result<Table, RunError> {
    let rows = quoted_tables::table_3().rows;
    let heading = |cost: &Service| format!("{cost} a call");
    let vary = |place, cost: &Service| Transfer {
        costs: Costs {
            data: *cost,
            ..Costs::UNLOGGED
        },
        ..transfer(place, Outside::Confined, request.seed)
    };
    let caption =
        "a quarter of the file, one transfer each: how long, by the cost of a call while connected";
    sweep(caption, &rows, &COSTS, heading, vary, request, progress)
}

/// The rows of table 2 that live on what they get beside their reservation, over the spinner's quantum.
pub(super) fn by_quantum(
    request: &Request,
    progress: &mut dyn Progress,
) -> Result<Table, RunError> {
    let mut rows = quoted_tables::table_2().rows;
    rows.retain(|row| matches!(row.place, Place::Reserved { .. }));
    let variants = QUANTA_US.map(Span::from_micros);
    let heading = |quantum: &Span| format!("quantum {quantum}");
    let vary = |place, quantum: &Span| {
        let mut profile = Profile::WIN2000_PII450;
        profile.bands.quantum = *quantum;
        let outside = Outside::Timesharing(Priority::NORMAL);
        Transfer {
            profile,
            ..transfer(place, outside, request.seed)
        }
    };
    let caption = "a quarter of the file, one transfer each: how long, by the quantum of the spinner beside the modem's thread";
    sweep(caption, &rows, &variants, heading, vary, request, progress)
}

fn sweep<V>(
    caption: &str,
    rows: &[Row],
    variants: &[V],
    heading: impl Fn(&V) -> String,
    vary: impl Fn(Place, &V) -> Transfer,
    request: &Request,
    progress: &mut dyn Progress,
) -> Result<Table, RunError> {
    let each = rows
        .iter()
        .flat_map(|row| variants.iter().map(move |v| (row, v)));
    let transfers: Vec<Transfer> = each.map(|(row, v)| vary(row.place, v)).collect();
    let attempts = make_all(&transfers, request, progress)?;
    let cells = rows.iter().zip(attempts.chunks(variants.len()));
    let cells = cells.map(|(row, attempts)| {
        let name = Cell {
            value: Value::Text(row.place.name()),
            origin: Origin::Quoted,
        };
        let times = attempts
            .iter()
            .map(|attempt| Some(simulated(time(attempt))));
        [Some(name)].into_iter().chain(times).collect()
    });
    let columns = ["row".to_owned()].into_iter();
    Ok(Table {
        caption: caption.into(),
        rows: cells.collect(),
        columns: columns.chain(variants.iter().map(heading)).collect(),
    })
}

fn time(attempt: &Attempt) -> Value {
    match statistics(&[*attempt]).times {
        Some(times) => Value::Span(times.mean),
        None => Value::Text("no".into()),
    }
}
