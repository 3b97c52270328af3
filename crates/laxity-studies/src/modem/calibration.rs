//! Every constant of the twin's study that was charged, calibrated, assumed, or is a reading of an unclear sentence: what it is, why, and by
//! which rows it was chosen. The values are taken from where they are used, the words from the study's data; this is the list that the report
//! shows.

use std::sync::LazyLock;

use laxity::study::Profile;
use laxity_devices::card::Overheads;
use laxity_devices::modem::card::{RING_SAMPLES, Setting};
use laxity_devices::modem::{Costs, FarProfile, Hypothesis, Timing};
use laxity_devices::pump::LineConfig;
use laxity_lab::report::{Origin, Row, Value};
use laxity_model::Span;
use serde::Deserialize;

use super::TEXT;
use super::transfers::{CARD_FAST_PPB, TICK_HZ};

/// How a constant came to its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// Printed in the study, and put in.
    Charged,
    /// Chosen so that rows or figures of the study come out.
    Calibrated,
    /// Chosen for plausibility, before any row was looked at; or no row depends on it.
    Assumed,
    /// What we take an unclear sentence of the study to mean.
    Reading,
}

impl Kind {
    /// In a table.
    const fn name(self) -> &'static str {
        match self {
            Self::Charged => "charged",
            Self::Calibrated => "calibrated",
            Self::Assumed => "assumed",
            Self::Reading => "a reading",
        }
    }

    const fn origin(self) -> Origin {
        match self {
            Self::Charged => Origin::Charged,
            _ => Origin::Calibrated,
        }
    }
}

/// A constant.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
struct Constant {
    /// What it is.
    name: String,
    /// How it came to its value.
    kind: Kind,
    /// Why this value.
    reason: String,
    /// What it was chosen by: figures, and reservations of the tables as `3/16`; empty if by nothing that the twin is compared with.
    chosen_by: Vec<String>,
}

static REGISTER: LazyLock<Vec<Constant>> = LazyLock::new(|| TEXT.quoted("constants"));

/// Whether a constant was chosen by a reservation of the tables, named as there: `RES 3/16`. That its row then comes out proves nothing, and as one
/// driver and one clock make all tables, in none of them.
pub(super) fn took_part(place: &str) -> bool {
    let Some(reservation) = place.strip_prefix("RES ") else {
        return false;
    };
    let mut chosen_by = REGISTER.iter().flat_map(|constant| &constant.chosen_by);
    chosen_by.any(|row| row == reservation)
}

/// As rows of the report.
pub(super) fn rows() -> Vec<Row> {
    let row = |(constant, value): (&Constant, Value)| -> Row {
        constant.kind.origin().row([
            constant.name.as_str().into(),
            value,
            constant.kind.name().into(),
            constant.reason.as_str().into(),
            constant.chosen_by.join(", ").into(),
        ])
    };
    REGISTER.iter().zip(values()).map(row).collect()
}

/// What each of them is, in their order.
fn values() -> Vec<Value> {
    let mut all = of_device();
    all.extend(of_line());
    all.extend(of_host());
    all
}

fn of_device() -> Vec<Value> {
    let hypothesis = Hypothesis::STUDY;
    let (costs, unlogged) = (Costs::STUDY, Costs::UNLOGGED);
    vec![
        hypothesis.output_lead.into(),
        u64::from(hypothesis.pieces).into(),
        "abandons its block".into(),
        RING_SAMPLES.into(),
        format!("{:?} samples at 16 kHz", Setting::CONNECTED.blocks).into(),
        hypothesis.programming_pause.into(),
        costs.data.into(),
        unlogged.data.into(),
        costs.recognition.into(),
        Overheads::STUDY.interrupt.into(),
        Overheads::STUDY.deferred.into(),
        costs.abandoned.into(),
        costs.on_hook.into(),
        costs.dialing.into(),
    ]
}

/// Of the line and of the servers.
fn of_line() -> Vec<Value> {
    let (line, timing) = (LineConfig::default(), Timing::study());
    let decibels = |db: f64| format!("{db} dB").into();
    let handshake = FarProfile::near_handshake(&timing);
    let (pool, server) = (FarProfile::TOTAL_CONTROL, FarProfile::DATAFIRE);
    let rate = |profile: FarProfile| Value::BitRate(u64::from(profile.fastest_up_bit_s));
    let network = pool.network.into_iter();
    let mut all = vec![
        decibels(line.snr_down_db),
        decibels(line.snr_up_db),
        timing.before_training.into(),
        Span::from_millis(u64::from(handshake.lasting_ms)).into(),
        u64::from(handshake.attempts).into(),
        rate(pool),
        rate(server),
    ];
    all.extend(network.flat_map(|network| [network.delay.into(), network.jitter.into()]));
    all
}

fn of_host() -> Vec<Value> {
    let profile = Profile::WIN2000_PII450;
    let above = profile.threads_above.map(|above| u64::from(above.level()));
    let tick = match profile.handlers_lose_ticks {
        true => "wakes nobody",
        false => "waits for its end",
    };
    vec![
        TICK_HZ.into(),
        u64::from(CARD_FAST_PPB.unsigned_abs()).into(),
        profile.costs.context_switch.into(),
        profile.costs.clock_tick.into(),
        (profile.costs.interrupt_entry + profile.costs.interrupt_exit).into(),
        profile.bands.quantum.into(),
        u64::from(profile.bands.signal_boost).into(),
        tick.into(),
        above.map_or_else(|| "none".into(), Value::from),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modem::tables::{QuotedTable, TABLES};

    #[test]
    fn what_is_calibrated_says_by_what() {
        for constant in REGISTER.iter() {
            let says = !constant.chosen_by.is_empty();
            assert!(says || constant.kind != Kind::Calibrated, "{constant:?}");
            assert!(!(says && constant.kind == Kind::Charged), "{constant:?}");
        }
    }

    /// Words that name a reservation: `3/16`.
    fn reservations(text: &str) -> impl Iterator<Item = &str> {
        let number =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let words = text.split(|c: char| !c.is_ascii_digit() && c != '/' && c != '.');
        words
            .map(|word| word.trim_matches('.'))
            .filter(move |word| {
                let parts: Vec<&str> = word.split('/').collect();
                parts.len() == 2 && parts.into_iter().all(number)
            })
    }

    #[test]
    fn what_a_reason_names_is_counted_as_chosen_by() {
        for constant in REGISTER.iter() {
            for reservation in reservations(&constant.reason) {
                assert!(took_part(&format!("RES {reservation}")), "{constant:?}");
            }
        }
    }

    #[test]
    fn rows_that_a_constant_was_chosen_by_are_known_in_every_table() {
        let of_table = |table: &QuotedTable| -> Vec<String> {
            let names = table.rows.iter().map(|row| row.place.name().to_owned());
            names.filter(|name| took_part(name)).collect()
        };
        let [first, second, third] = [0, 1, 2].map(|table| of_table(&TABLES[table]));
        assert_eq!(first, ["RES 3/16"]);
        assert_eq!(second, first);
        let all = ["1/7", "2/13", "2/14", "3/16", "4/17", "7/20"];
        assert_eq!(third, all.map(|row| format!("RES {row}")));
        // No constant was chosen by a row that the study does not have.
        for constant in REGISTER.iter() {
            for chosen in constant
                .chosen_by
                .iter()
                .flat_map(|words| reservations(words))
            {
                assert!(third.contains(&format!("RES {chosen}")), "{constant:?}");
            }
        }
    }

    #[test]
    fn each_has_a_value() {
        assert_eq!(values().len(), REGISTER.len());
        assert_eq!(rows().len(), REGISTER.len());
    }
}
