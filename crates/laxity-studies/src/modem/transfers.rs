//! File transfers in the twin, with real samples: tables 1 to 3.

use laxity_devices::link::endpoint;
use laxity_devices::modem::{
    Call, CallConfig, CardClock, Costs, DriverPlacement, FarProfile, Hypothesis, Outcome, Timing,
};
use laxity_devices::pump::LineConfig;
use laxity_model::base::random::scrambled;
use laxity_model::{
    Enforcer, Host, Outside, Placement, Priority, ProcessorId, Program, Reservation,
    ReservationRequest, Service, Span,
};
use laxity_sim::{Profile, Recording, Twin};

use super::quoted_tables::{self, ATTEMPTS, QuotedTable};
use super::{Made, sensitivity, verdicts};
use laxity_lab::bench::{Request, pool};
use laxity_lab::report::{Attempts, Cell, Figure, Origin, Table, Times, Value};
use laxity_lab::runner::{Progress, RunError, tasks::Spinner};

/// The clock that drives the study's scheduler interrupts 1024 times a second (§6.3.1). We read its "milliseconds" as ticks of that clock: its
/// reservations are multiples of a millisecond "since they are driven off the periodic Windows 2000 clock" (§5.4).
pub(super) const TICK_HZ: u64 = 1_024;
/// By how much the card's crystal runs faster than the clock of the host: assumed, within what two such crystals differ by.
pub(super) const CARD_FAST_PPB: i32 = 50_000;
/// The priority of the modem's thread while it is on hook (§5.4).
const ON_HOOK_PRIORITY: u8 = 24;
/// A transfer that takes longer has failed; twice what the longest of the study took, with the call that precedes it.
pub(super) const LIMIT: Span = Span::from_secs(700);
/// The study's file.
pub(super) const FILE_BYTES: u64 = 200_000;

/// Where the driver is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    Interrupt,
    Deferred,
    /// In a thread of this priority.
    Thread(u8),
    /// With a reservation, in thousandths of the study's milliseconds.
    Reserved {
        amount: u64,
        period: u64,
    },
}

impl Place {
    /// As the study calls it.
    pub(super) fn name(self) -> String {
        let number = |thousandths: u64| match thousandths % 1_000 {
            0 => format!("{}", thousandths / 1_000),
            rest => {
                let decimals = format!("{rest:03}");
                format!("{}.{}", thousandths / 1_000, decimals.trim_end_matches('0'))
            }
        };
        match self {
            Self::Interrupt => "INT".into(),
            Self::Deferred => "DPC".into(),
            Self::Thread(priority) => format!("THR {priority}"),
            Self::Reserved { amount, period } => {
                format!("RES {}/{}", number(amount), number(period))
            }
        }
    }

    /// The reservation in real time.
    pub(super) fn reservation(self) -> Option<Reservation> {
        let Self::Reserved { amount, period } = self else {
            return None;
        };
        // A thousandth of a tick is 1,000,000 / 1,024 ns.
        let nanos = |thousandths: u64| thousandths * 1_000_000 / TICK_HZ;
        Reservation::new(
            Service::from_nanos(nanos(amount)),
            Span::from_nanos(nanos(period)),
        )
        .ok()
    }

    fn placement(self, outside: Outside) -> DriverPlacement {
        let priority = |level| Priority::new(level).unwrap_or(Priority::NORMAL);
        match (self, self.reservation()) {
            (Self::Interrupt, _) => DriverPlacement::Interrupt,
            (Self::Thread(level), _) => DriverPlacement::Thread(priority(level)),
            (Self::Reserved { .. }, Some(reservation)) => {
                let request = ReservationRequest {
                    reservation,
                    enforcer: Enforcer::Slots,
                    outside,
                    begins_at_start: false,
                };
                DriverPlacement::Reserved(request, priority(ON_HOOK_PRIORITY))
            }
            (Self::Deferred | Self::Reserved { .. }, _) => DriverPlacement::Deferred,
        }
    }
}

/// One transfer.
#[derive(Clone, Debug)]
pub(super) struct Transfer {
    pub place: Place,
    pub outside: Outside,
    pub far: FarProfile,
    pub timing: Timing,
    pub costs: Costs,
    pub profile: Profile,
    pub bytes: u64,
    pub fast_ppb: i32,
    pub seed: u64,
}

/// What became of it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Attempt {
    /// How long the file took, if it arrived whole.
    pub took: Option<Span>,
    /// Calls of the signal processing.
    pub calls: u64,
    /// Blocks whose call began too late to be of use.
    pub abandoned: u64,
    /// Output samples sent as garbage.
    pub underrun: u64,
    /// Input samples lost to overflow.
    pub overflown: u64,
    /// Retrainings, as the near end counts them.
    pub retrainings: u64,
    /// The longest time from an interrupt to its call, once training began.
    pub latest_begin: Span,
}

impl Transfer {
    /// Makes it, from the first moment on hook to the last byte.
    pub(super) fn make(&self) -> Result<Attempt, RunError> {
        let link = endpoint::Config {
            file_octets: self.bytes,
            seed: self.seed,
            ..endpoint::Config::default()
        };
        let call = Call::new(CallConfig {
            timing: self.timing.clone(),
            line: LineConfig {
                seed: self.seed,
                ..LineConfig::default()
            },
            link,
            further_receivers: 0,
            costs: self.costs,
            hypothesis: Hypothesis::STUDY,
            far: self.far,
            clock: CardClock {
                begins_after: Span::from_nanos(scrambled(self.seed) % 1_000_000_000),
                fast_ppb: self.fast_ppb,
            },
            linger: Span::ZERO,
        });
        let mut program = Program::new(1);
        let placement = self.place.placement(self.outside);
        let installed = call.install(&mut program, ProcessorId(0), placement);
        if self.place != Place::Thread(8) {
            let normal = Placement::Thread(Priority::NORMAL);
            program.add("spinner", ProcessorId(0), normal, Spinner);
        }
        let mut twin = Twin::new(self.profile).recording(Recording::NONE);
        twin.admit_and_run(program, LIMIT)
            .map_err(|error| RunError::Failed {
                variant: self.place.name(),
                reason: error.to_string(),
            })?;
        let report = installed.report;
        let took = match report.outcome() {
            Some(Outcome::Done {
                duration,
                checksum_ok: true,
            }) => Some(*duration),
            _ => None,
        };
        Ok(Attempt {
            took,
            calls: report.calls.get(),
            abandoned: report.blocks_abandoned.get(),
            underrun: report.samples_underrun.get(),
            overflown: report.samples_lost.get(),
            retrainings: report.retrainings.get(),
            latest_begin: Span::from_nanos(report.begin_latest_ns.get()),
        })
    }
}

/// Makes all of them, on as many threads as asked for. The order of the results is that of the transfers, whatever the threads.
pub(super) fn make_all(
    transfers: &[Transfer],
    request: &Request,
    progress: &mut dyn Progress,
) -> Result<Vec<Attempt>, RunError> {
    let name = |transfer: &Transfer| transfer.place.name();
    pool::map(transfers, request.threads, name, Transfer::make, progress)
}

/// Table 1, redone.
///
/// # Errors
///
/// [`RunError`] if the twin cannot run a transfer, which is a bug.
pub fn table_1(request: &Request, progress: &mut dyn Progress) -> Result<Made, RunError> {
    table(&quoted_tables::table_1(), request, progress)
}

/// Table 2, redone.
///
/// # Errors
///
/// As [`table_1`].
pub fn table_2(request: &Request, progress: &mut dyn Progress) -> Result<Made, RunError> {
    table(&quoted_tables::table_2(), request, progress)
}

/// Table 3, redone.
///
/// # Errors
///
/// As [`table_1`].
pub fn table_3(request: &Request, progress: &mut dyn Progress) -> Result<Made, RunError> {
    table(&quoted_tables::table_3(), request, progress)
}

fn table(
    quoted: &QuotedTable,
    request: &Request,
    progress: &mut dyn Progress,
) -> Result<Made, RunError> {
    let repeats = request.repeats.unwrap_or(ATTEMPTS).max(1);
    // INT is what full speed is measured by: tables 1 and 2 begin with it, table 3 has none.
    let has_int = quoted.rows.iter().any(|row| row.place == Place::Interrupt);
    let extra = (!has_int).then_some(Place::Interrupt);
    let transfers = planned(quoted, extra, repeats, request.seed);
    let attempts = make_all(&transfers, request, progress)?;
    let by_row: Vec<&[Attempt]> = attempts.chunks(repeats as usize).collect();
    let undisturbed = match extra {
        Some(_) => by_row.last(),
        None => by_row.first(),
    };
    let judged = verdicts::judge(quoted, &by_row, undisturbed.copied().unwrap_or_default());
    let mut tables = vec![account(quoted, &by_row)];
    match quoted.key {
        "table-2" => tables.push(sensitivity::by_quantum(request, progress)?),
        "table-3" => tables.push(sensitivity::by_cost(request, progress)?),
        _ => {}
    }
    let each = match repeats {
        1 => "one transfer".to_owned(),
        many => format!("{many} transfers"),
    };
    let about = format!(
        "{} The twin: {each} a row, each a whole call from on hook to the last byte, to a {} that agrees to {} bit/s \
         upstream.",
        quoted.about, quoted.far.name, quoted.far.fastest_up_bit_s
    );
    let figure = Figure {
        key: quoted.key.into(),
        title: quoted.title.into(),
        about,
        tables,
        remarks: verdicts::remarks(quoted),
        compared: judged.compared(),
        ..Figure::default()
    };
    Ok(Made {
        checks: vec![judged.check(&quoted.key.replace('-', " "))],
        figure,
    })
}

/// The transfers of a table, row by row, and then those of one more place.
fn planned(quoted: &QuotedTable, extra: Option<Place>, repeats: u32, seed: u64) -> Vec<Transfer> {
    let transfer = |place, repeat: u32| Transfer {
        place,
        outside: quoted.outside,
        far: quoted.far,
        timing: Timing::study(),
        costs: Costs::UNLOGGED,
        profile: Profile::WIN2000_PII450,
        bytes: FILE_BYTES,
        fast_ppb: CARD_FAST_PPB,
        seed: seed.wrapping_mul(1_000) + u64::from(repeat),
    };
    let places = quoted.rows.iter().map(|row| row.place).chain(extra);
    places
        .flat_map(|place| (0..repeats).map(move |repeat| (place, repeat)))
        .map(|(place, repeat)| transfer(place, repeat))
        .collect()
}

/// Why each row came out as it did: what was late, on average of its transfers.
fn account(quoted: &QuotedTable, by_row: &[&[Attempt]]) -> Table {
    let columns = [
        "row",
        "blocks",
        "begun too late",
        "samples sent as garbage",
        "samples overflown",
        "retrainings",
    ];
    let rows = quoted.rows.iter().zip(by_row).map(|(row, attempts)| {
        let mean = |count: fn(&Attempt) -> u64| {
            let sum: u64 = attempts.iter().map(count).sum();
            let value = Value::Count(sum / attempts.len() as u64);
            Some(simulated(value))
        };
        vec![
            Some(Cell {
                value: Value::Text(row.place.name()),
                origin: Origin::Quoted,
            }),
            mean(|a| a.calls),
            mean(|a| a.abandoned),
            mean(|a| a.underrun),
            mean(|a| a.overflown),
            mean(|a| a.retrainings),
        ]
    });
    Table {
        caption: "what was late in the twin, mean of a row's transfers".into(),
        columns: columns.map(String::from).into(),
        rows: rows.collect(),
    }
}

pub(super) fn simulated(value: Value) -> Cell {
    Cell {
        value,
        origin: Origin::Simulated,
    }
}

/// The statistics that the study prints.
pub(super) fn statistics(attempts: &[Attempt]) -> Attempts {
    let times: Vec<u64> = attempts
        .iter()
        .filter_map(|attempt| attempt.took)
        .map(Span::as_nanos)
        .collect();
    Attempts {
        made: attempts.len() as u32,
        succeeded: times.len() as u32,
        times: times_of(&times),
    }
}

fn times_of(times: &[u64]) -> Option<Times> {
    let (min, max) = (times.iter().min()?, times.iter().max()?);
    let count = times.len() as u128;
    let sum: u128 = times.iter().map(|t| u128::from(*t)).sum();
    let mean = (sum + count / 2) / count;
    let squares: u128 = times
        .iter()
        .map(|t| u128::from(*t).abs_diff(mean).pow(2))
        .sum();
    let deviation = match count {
        1 => 0,
        _ => (squares / (count - 1)).isqrt(),
    };
    Some(Times {
        min: Span::from_nanos(*min),
        max: Span::from_nanos(*max),
        mean: Span::from_nanos(mean as u64),
        deviation: Span::from_nanos(deviation as u64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_those_of_a_sample() {
        let took = |ms| Attempt {
            took: Some(Span::from_millis(ms)),
            ..Attempt::default()
        };
        let attempts = statistics(&[took(2), Attempt::default(), took(4), took(9)]);
        assert_eq!((attempts.made, attempts.succeeded), (4, 3));
        let times = attempts.times.unwrap();
        assert_eq!(times.mean, Span::from_millis(5));
        // Squares of 3, 1 and 4: 26, halved.
        assert_eq!(times.deviation.as_nanos(), 3_605_551);
        assert_eq!(statistics(&[Attempt::default()]).times, None);
    }

    #[test]
    fn reservations_are_in_ticks() {
        let place = Place::Reserved {
            amount: 500,
            period: 16_000,
        };
        assert_eq!(place.name(), "RES 0.5/16");
        let reservation = place.reservation().unwrap();
        assert_eq!(reservation.period(), Span::from_nanos(15_625_000));
        assert_eq!(reservation.service(), Service::from_nanos(488_281));
    }
}
