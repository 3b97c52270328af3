//! Every constant of the twin's study that was charged, calibrated, assumed, or is a reading of an unclear sentence: what it is, why, and by
//! which rows it was chosen. The values are taken from where they are used; this is the list that the report shows.

use laxity_devices::modem::card::{RING_SAMPLES, Setting};
use laxity_devices::modem::{Costs, FarProfile, Hypothesis, Timing};
use laxity_devices::pump::LineConfig;
use laxity_model::{Service, Span};
use laxity_sim::Profile;

use super::transfers::{CARD_FAST_PPB, TICK_HZ};
use laxity_lab::report::{Cell, Origin, Table, Value};

/// How a constant came to its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
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
    #[must_use]
    pub const fn name(self) -> &'static str {
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
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Constant {
    /// What it is.
    pub name: &'static str,
    /// Its value.
    pub value: Value,
    /// How it came to it.
    pub kind: Kind,
    /// Why this value.
    pub reason: &'static str,
    /// What it was chosen by: figures, and reservations of the tables as `3/16`; empty if by nothing that the twin is compared with.
    pub chosen_by: &'static [&'static str],
}

/// Whether a constant was chosen by a reservation of the tables, named as there: `RES 3/16`. That its row then comes out proves nothing, and as one
/// driver and one clock make all tables, in none of them.
#[must_use]
pub fn took_part(place: &str) -> bool {
    let Some(reservation) = place.strip_prefix("RES ") else {
        return false;
    };
    register()
        .iter()
        .any(|constant| constant.chosen_by.contains(&reservation))
}

/// All of them.
#[must_use]
pub fn register() -> Vec<Constant> {
    let mut all = device();
    all.extend(costs());
    all.extend(line());
    all.extend(far_ends());
    all.extend(host());
    all.extend(scheduler());
    all
}

/// As a table of the report.
#[must_use]
pub fn table() -> Table {
    let columns = ["constant", "value", "kind", "why", "chosen by"];
    let rows = register().into_iter().map(|constant| {
        let origin = constant.kind.origin();
        let words = |text: &str| {
            Some(Cell {
                value: Value::Text(text.into()),
                origin,
            })
        };
        let value = constant.value;
        vec![
            words(constant.name),
            Some(Cell { value, origin }),
            words(constant.kind.name()),
            words(constant.reason),
            words(&constant.chosen_by.join(", ")),
        ]
    });
    Table {
        caption: "every constant that was charged, calibrated, assumed or read".into(),
        columns: columns.map(String::from).into(),
        rows: rows.collect(),
    }
}

const fn constant(
    kind: Kind,
    name: &'static str,
    value: Value,
    reason: &'static str,
    chosen_by: &'static [&'static str],
) -> Constant {
    Constant {
        name,
        value,
        kind,
        reason,
        chosen_by,
    }
}

const fn cost(service: Service) -> Value {
    Value::Span(service.as_dedicated_span())
}

fn device() -> Vec<Constant> {
    use Kind::{Assumed, Calibrated, Charged, Reading};
    let hypothesis = Hypothesis::STUDY;
    vec![
        constant(
            Reading,
            "output lead",
            Value::Span(hypothesis.output_lead),
            "one nominal period of the interrupt: the study's line of equal gaps (§6.6), which sums up table 3; so no row of table 3 is independent of it. Any \
             lead from 12.0 to 12.8 ms gives the classes of all its rows",
            &["figure 17: the line of gaps"],
        ),
        constant(
            Calibrated,
            "pieces in which a call delivers its output",
            Value::Count(u64::from(hypothesis.pieces)),
            "that it delivers in pieces is needed: if all of it came at the end of a call, no lead would explain both 2/13 and 4/17. That they are eight is \
             assumed; with more, 2/14 would come nearer to full speed",
            &["2/13", "4/17"],
        ),
        constant(
            Reading,
            "a call that begins after the output ran dry",
            Value::Text("abandons its block".into()),
            "\"appears to sometimes not successfully process an old interrupt's work once a new one has occurred\" (§6.6)",
            &[],
        ),
        constant(
            Charged,
            "samples in a ring",
            Value::Count(RING_SAMPLES),
            "§4",
            &[],
        ),
        constant(
            Reading,
            "blocks while connected",
            Value::Text(format!("{:?} samples at 16 kHz", Setting::CONNECTED.blocks)),
            "13.125 and 11.25 ms (§6.2.1), two to one, average 12.5 ms",
            &[],
        ),
        constant(
            Assumed,
            "pause when the card is programmed anew",
            Value::Span(hypothesis.programming_pause),
            "figure 1 has six delayed interrupts",
            &[],
        ),
    ]
}

fn costs() -> Vec<Constant> {
    use Kind::{Assumed, Calibrated, Charged, Reading};
    let (costs, unlogged) = (Costs::STUDY, Costs::UNLOGGED);
    vec![
        constant(
            Charged,
            "a call while connected, figures 1 to 16",
            cost(costs.data),
            "the average of §6.6; elapsed time, on a kernel that logs",
            &[],
        ),
        constant(
            Calibrated,
            "a call while connected, tables 1 to 3 and figure 17",
            cost(unlogged.data),
            "nothing is logged while transfers are timed; 62 µs less are 113 events of 549 ns; 10 MB a minute are 2083 octets a call, 18 or 19 an event",
            &["1/7", "2/14"],
        ),
        constant(
            Charged,
            "the call that recognises the answer",
            cost(costs.recognition),
            "the repeatable worst case while connecting (§6.2.2)",
            &[],
        ),
        constant(
            Charged,
            "the interrupt handler",
            cost(costs.interrupt),
            "the average of §6.2.4",
            &[],
        ),
        constant(
            Assumed,
            "the deferred call that wakes the thread",
            cost(costs.deferred),
            "like the handler",
            &[],
        ),
        constant(
            Assumed,
            "a call that abandons its block",
            cost(costs.abandoned),
            "it looks at the card and returns",
            &[],
        ),
        constant(
            Reading,
            "a call on hook",
            cost(costs.on_hook),
            "within the 0.1 ms in 2.5 that §5.4 would reserve",
            &[],
        ),
        constant(
            Assumed,
            "a call while dialing",
            cost(costs.dialing),
            "a quarter of the data mode; tones are less work",
            &[],
        ),
    ]
}

fn line() -> Vec<Constant> {
    use Kind::{Assumed, Calibrated, Reading};
    let (line, timing) = (LineConfig::default(), Timing::study());
    let decibels = |db: f64| Value::Text(format!("{db} dB"));
    let handshake = FarProfile::near_handshake(&timing);
    vec![
        constant(
            Assumed,
            "signal to noise, downstream",
            decibels(line.snr_down_db),
            "enough for the 50.6 kbit/s that were agreed on",
            &[],
        ),
        constant(
            Assumed,
            "signal to noise, upstream",
            decibels(line.snr_up_db),
            "enough for the 31.2 kbit/s that were agreed on",
            &[],
        ),
        constant(
            Reading,
            "silence before a training",
            Value::Span(timing.before_training),
            "from dialing to data are 12 s (figure 1); a retraining takes as long as a training",
            &[],
        ),
        constant(
            Calibrated,
            "data must last so long for a training to count",
            Value::Span(Span::from_millis(u64::from(handshake.lasting_ms))),
            "a server that hangs up on a line that keeps retraining (§6.5.2: \"disconnected so frequently\")",
            &["4/17", "7/20"],
        ),
        constant(
            Assumed,
            "trainings in a row that may fail",
            Value::Count(u64::from(handshake.attempts)),
            "then the call is over",
            &[],
        ),
    ]
}

fn far_ends() -> Vec<Constant> {
    use Kind::{Assumed, Charged};
    let (pool, server) = (FarProfile::TOTAL_CONTROL, FarProfile::DATAFIRE);
    let rate = |profile: FarProfile| Value::BitRate(u64::from(profile.fastest_up_bit_s));
    let mut all = vec![
        constant(Charged, "upstream of the pool", rate(pool), "§3.1", &[]),
        constant(
            Charged,
            "upstream of the dedicated server",
            rate(server),
            "§3.1",
            &[],
        ),
    ];
    if let Some(network) = pool.network {
        let reason = "a switched network of 100 Mbit/s (§3.1)";
        let (delay, jitter) = (Value::Span(network.delay), Value::Span(network.jitter));
        all.extend([
            constant(Assumed, "the network's delay", delay, reason, &[]),
            constant(Assumed, "the network's jitter", jitter, reason, &[]),
        ]);
    }
    all
}

fn host() -> Vec<Constant> {
    use Kind::{Assumed, Calibrated, Reading};
    let profile = Profile::WIN2000_PII450;
    vec![
        constant(
            Reading,
            "ticks a second, which the study's scheduler counts as milliseconds",
            Value::Count(TICK_HZ),
            "reservations are multiples of a millisecond because they are driven off the clock (§5.4), which ticks at 1024 Hz (§6.3.1)",
            &["3/16", "4/17", "7/20"],
        ),
        constant(
            Calibrated,
            "the card's crystal is faster than the host's by, parts per billion",
            Value::Count(u64::from(CARD_FAST_PPB.unsigned_abs())),
            "what two crystals may differ by; from 30 to 75 ppm 3/16 is slow, as in the study",
            &["3/16"],
        ),
        constant(
            Assumed,
            "a thread switch",
            Value::Span(profile.costs.context_switch),
            "of the order that such a machine allows",
            &[],
        ),
        constant(
            Assumed,
            "a clock tick",
            Value::Span(profile.costs.clock_tick),
            "of the order that such a machine allows",
            &[],
        ),
        constant(
            Assumed,
            "into and out of an interrupt",
            Value::Span(profile.costs.interrupt_entry + profile.costs.interrupt_exit),
            "of the order that such a machine allows",
            &[],
        ),
    ]
}

fn scheduler() -> Vec<Constant> {
    use Kind::Calibrated;
    let profile = Profile::WIN2000_PII450;
    vec![
        constant(
            Calibrated,
            "quantum of priority 8",
            Value::Span(profile.bands.quantum),
            "512 samples must pile up beside a spinner",
            &["figure 7"],
        ),
        constant(
            Calibrated,
            "by how much a signal lifts a thread",
            Value::Count(u64::from(profile.bands.signal_boost)),
            "the modem's thread must not pass its equal",
            &["figure 7"],
        ),
        constant(
            Calibrated,
            "a tick that comes while a handler runs",
            Value::Text(
                if profile.handlers_lose_ticks {
                    "wakes nobody"
                } else {
                    "waits for its end"
                }
                .into(),
            ),
            "so that the longest gap beside INT is a tick longer than beside DPC",
            &["figure 11"],
        ),
        constant(
            Calibrated,
            "threads that rank above a reservation, from priority",
            profile
                .threads_above
                .map_or(Value::Text("none".into()), |above| {
                    Value::Count(u64::from(above.level()))
                }),
            "the callback of priority 31 is as punctual beside a reservation as without a modem",
            &["figure 16"],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modem::quoted_tables;

    #[test]
    fn what_is_calibrated_says_by_what() {
        for constant in register() {
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
        for constant in register() {
            for reservation in reservations(constant.reason) {
                assert!(took_part(&format!("RES {reservation}")), "{constant:?}");
            }
        }
    }

    #[test]
    fn rows_that_a_constant_was_chosen_by_are_known_in_every_table() {
        let tables = [
            quoted_tables::table_1(),
            quoted_tables::table_2(),
            quoted_tables::table_3(),
        ];
        let of_table = |table: &quoted_tables::QuotedTable| -> Vec<String> {
            let names = table.rows.iter().map(|row| row.place.name());
            names.filter(|name| took_part(name)).collect()
        };
        let [first, second, third] = tables.each_ref().map(of_table);
        assert_eq!(first, ["RES 3/16"]);
        assert_eq!(second, first);
        let all = ["1/7", "2/13", "2/14", "3/16", "4/17", "7/20"];
        assert_eq!(third, all.map(|row| format!("RES {row}")));
        // And no constant was chosen by a row that the study does not have.
        for constant in register() {
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
    fn the_table_has_a_row_for_each() {
        let table = table();
        assert_eq!(table.rows.len(), register().len());
        assert!(
            table
                .rows
                .iter()
                .all(|row| row.len() == table.columns.len())
        );
    }
}
