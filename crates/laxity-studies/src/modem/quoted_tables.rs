//! Tables 1 to 3 of the study, as printed (Jones, Saroiu §6.5, §6.6).

use laxity_devices::modem::FarProfile;
use laxity_model::{Outside, Priority, Span};

use super::transfers::Place;
use laxity_lab::report::{Attempts, Times};

/// Attempts that the study made for each row.
pub(super) const ATTEMPTS: u32 = 10;

/// A row as printed.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// Where the driver was.
    pub place: Place,
    /// Shortest, longest, mean, standard deviation in milliseconds, as printed; `None`: none succeeded.
    times_ms: Option<[u64; 4]>,
    succeeded: u32,
}

/// A table as printed.
pub(super) struct QuotedTable {
    pub key: &'static str,
    pub title: &'static str,
    pub about: &'static str,
    pub far: FarProfile,
    /// What a reserved driver does outside its reservation.
    pub outside: Outside,
    pub rows: Vec<Row>,
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

const fn row(place: Place, times_ms: [u64; 4], succeeded: u32) -> Row {
    Row {
        place,
        times_ms: Some(times_ms),
        succeeded,
    }
}

const fn none(place: Place) -> Row {
    Row {
        place,
        times_ms: None,
        succeeded: 0,
    }
}

const TIMESHARING: Outside = Outside::Timesharing(Priority::NORMAL);

const fn reserved(amount: u64, period: u64) -> Place {
    Place::Reserved {
        amount: 1_000 * amount,
        period: 1_000 * period,
    }
}

const THR_24: Place = Place::Thread(24);
const THR_8: Place = Place::Thread(8);

/// Table 1.
pub(super) fn table_1() -> QuotedTable {
    QuotedTable {
        key: "table-1",
        title: "Table 1: transfers of 200,000 bytes through a network",
        about: "Seconds, of ten attempts each. A spinner of priority 8 runs beside the modem in all rows but THR 8. Outside its \
                reservation the modem's thread shares the processor at priority 8.",
        far: FarProfile::TOTAL_CONTROL,
        outside: TIMESHARING,
        rows: vec![
            row(Place::Interrupt, [37_914, 37_258, 37_222, 19], 10),
            row(Place::Deferred, [37_151, 37_303, 37_229, 51], 10),
            row(THR_8, [59_899, 60_658, 60_219, 228], 10),
            row(THR_24, [37_147, 40_648, 37_560, 1_086], 10),
            row(reserved(2, 16), [156_632, 240_932, 204_146, 35_447], 10),
            row(reserved(3, 16), [37_864, 122_042, 76_840, 30_775], 10),
            row(reserved(1, 8), [43_741, 83_336, 56_237, 10_730], 9),
            row(reserved(2, 8), [37_086, 37_242, 37_175, 53], 10),
            row(reserved(1, 4), [37_118, 38_823, 37_354, 518], 10),
        ],
    }
}

/// Table 2.
pub(super) fn table_2() -> QuotedTable {
    QuotedTable {
        key: "table-2",
        title: "Table 2: transfers of 200,000 bytes from the server itself",
        about: "As table 1, with the file on the server that answers the call.",
        far: FarProfile::DATAFIRE,
        outside: TIMESHARING,
        rows: vec![
            row(Place::Interrupt, [36_334, 36_398, 36_367, 29], 10),
            row(Place::Deferred, [36_272, 36_447, 36_396, 48], 10),
            row(THR_8, [36_533, 37_000, 36_716, 152], 10),
            row(THR_24, [36_319, 36_475, 36_384, 56], 10),
            row(reserved(2, 16), [329_485, 363_891, 346_688, 24_329], 2),
            row(reserved(3, 16), [94_615, 174_070, 103_789, 24_735], 10),
            none(reserved(1, 8)),
            row(reserved(2, 8), [36_319, 36_444, 36_378, 38], 10),
            row(reserved(1, 4), [36_303, 36_425, 36_345, 36], 10),
        ],
    }
}

/// Table 3.
pub(super) fn table_3() -> QuotedTable {
    QuotedTable {
        key: "table-3",
        title: "Table 3: transfers with a reservation and nothing besides",
        about: "As table 2, but outside its reservation the modem's thread does not run.",
        far: FarProfile::DATAFIRE,
        outside: Outside::Confined,
        rows: vec![
            row(reserved(1, 7), [36_333, 36_724, 36_426, 112], 10),
            none(reserved(1, 8)),
            row(reserved(2, 13), [36_288, 36_975, 36_547, 232], 10),
            row(reserved(2, 14), [38_631, 91_713, 65_172, 37_535], 2),
            none(reserved(2, 15)),
            row(reserved(3, 15), [36_275, 36_586, 36_387, 108], 10),
            row(reserved(3, 16), [97_289, 180_415, 110_523, 26_408], 9),
            none(reserved(3, 17)),
            row(reserved(4, 16), [36_255, 37_116, 36_415, 256], 10),
            none(reserved(4, 17)),
            none(reserved(7, 20)),
            row(reserved(8, 20), [36_347, 36_476, 36_394, 39], 10),
        ],
    }
}
