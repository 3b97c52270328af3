//! Every constant of the twin's study that was charged, calibrated, assumed, or is a reading of an unclear sentence: what it is, why, and by
//! which rows it was chosen. The values are taken from where they are used, the words from the study's data; this is the list that the report
//! shows.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use laxity_devices::card::Overheads;
use laxity_devices::link::{ACK_DELAY, WINDOW_OCTETS, endpoint, lapm, ppp};
use laxity_devices::modem::card::{RING_SAMPLES, Setting};
use laxity_devices::modem::{
    ANSWER_GRACE, Costs, DIAL_TONE, DIAL_TONE_LIMIT, FAR_DELAY, FarProfile, Hypothesis, TRAINING,
    TRAINING_LIMIT, Timing,
};
use laxity_devices::pump::{
    AGREED_POWER, LineConfig, RANDOM_ERROR, SUSPICIOUS_WINDOWS, TWO_LEVEL_RUN,
};
use laxity_lab::report::{Row, Value};
use laxity_lab::runner::RunError;
use laxity_lab::scenario::TwinProfile;
use laxity_model::policy::bands::{BandsConfig, Starvation};
use laxity_model::{Outside, Span};

use super::TEXT;
use super::figures::disk;
use super::map;
use super::tables::{FILE_BYTES, TIMESHARING};
use super::transfers::{HOST, LIMIT, ON_HOOK_PRIORITY, PATIENCE, Setting as Transferred, quanta};
use crate::register::{self, Constant};

static REGISTER: LazyLock<Vec<Constant>> = LazyLock::new(|| TEXT.quoted("constants"));

/// Ends the name of a reservation where a constant was chosen by what it has beside a spinner, in tables 1 and 2.
const BESIDE: &str = " beside a spinner";

/// Whether a constant was chosen by a reservation of the tables, named as there: `RES 3/16`. That its row then comes out proves nothing, and as one
/// driver and one clock make all tables, in none of them; but a spinner takes nothing from who is `confined` to a reservation.
pub(super) fn took_part(place: &str, confined: bool) -> bool {
    let Some(reservation) = place.strip_prefix("RES ") else {
        return false;
    };
    let mut chosen_by = REGISTER.iter().flat_map(|constant| &constant.chosen_by);
    chosen_by.any(|row| match row.strip_suffix(BESIDE) {
        Some(row) => !confined && row == reservation,
        None => row == reservation,
    })
}

/// As rows of the report.
///
/// # Errors
///
/// [`RunError::CannotRun`] if a constant's value has no such key, or a value has no constant.
pub(super) fn rows() -> Result<Vec<Row>, RunError> {
    rows_of(&REGISTER)
}

fn rows_of(register: &[Constant]) -> Result<Vec<Row>, RunError> {
    register::rows(register, values())
}

/// What each of them is, by its key.
fn values() -> BTreeMap<&'static str, Value> {
    let all = of_device().into_iter();
    let all = all.chain(of_line()).chain(of_retraining());
    let all = all.chain(of_transfers()).chain(of_call());
    let all = all.chain(of_scheduler(HOST.machine.bands));
    all.chain(of_host()).collect()
}

fn of_device() -> Vec<(&'static str, Value)> {
    let hypothesis = Hypothesis::STUDY;
    let (costs, unlogged) = (Costs::STUDY, HOST.costs);
    let blocks = Setting::CONNECTED.blocks;
    vec![
        ("output-lead", hypothesis.output_lead.into()),
        ("pieces", u64::from(hypothesis.pieces).into()),
        ("dry", "abandons its block".into()),
        ("ring", RING_SAMPLES.into()),
        ("blocks", format!("{blocks:?} samples at 16 kHz").into()),
        ("programming-pause", hypothesis.programming_pause.into()),
        ("call-logged", costs.data.into()),
        ("call-unlogged", unlogged.data.into()),
        ("recognition", costs.recognition.into()),
        ("interrupt", Overheads::STUDY.interrupt.into()),
        ("deferred", Overheads::STUDY.deferred.into()),
        ("abandoned", costs.abandoned.into()),
        ("on-hook", costs.on_hook.into()),
        ("dialing", costs.dialing.into()),
    ]
}

/// Of the line and of the servers.
fn of_line() -> Vec<(&'static str, Value)> {
    let (line, timing) = (LineConfig::default(), Timing::study());
    let decibels = |db: f64| format!("{db} dB").into();
    let handshake = FarProfile::near_handshake(&timing);
    let (pool, server) = (FarProfile::TOTAL_CONTROL, FarProfile::DATAFIRE);
    let rate = |profile: FarProfile| Value::BitRate(u64::from(profile.fastest_up_bit_s));
    let mut all = vec![
        ("snr-down", decibels(line.snr_down_db)),
        ("snr-up", decibels(line.snr_up_db)),
        ("training-attempts", u64::from(handshake.attempts).into()),
        (
            "attempt",
            Span::from_millis(u64::from(handshake.attempt_ms)).into(),
        ),
        ("delay", format!("{} ms", line.delay_ms).into()),
        (
            "distortion",
            format!("{} ms", line.delay_distortion_ms).into(),
        ),
        ("highpass", format!("{} Hz", line.highpass_hz).into()),
        ("line-clock", format!("{} ppm", line.clock_ppm).into()),
        ("loss", decibels(line.loss_db)),
        ("codec", decibels(line.codec_db)),
        ("carrier", format!("{} Hz", line.carrier_offset_hz).into()),
        ("far-delay", FAR_DELAY.into()),
        ("mss", u64::from(endpoint::Config::default().mss()).into()),
        ("tcp-window", (WINDOW_OCTETS as u64).into()),
        ("limit", LIMIT.into()),
        (
            "patience",
            format!("{} to {}", PATIENCE[0], PATIENCE[1]).into(),
        ),
        ("up-pool", rate(pool)),
        ("up-server", rate(server)),
    ];
    all.extend(of_protocols());
    if let Some(network) = pool.network {
        all.push(("network-delay", network.delay.into()));
        all.push(("network-jitter", network.jitter.into()));
    }
    all
}

/// How long whoever dials waits for what does not come, and how often it asks.
fn of_protocols() -> [(&'static str, Value); 9] {
    [
        ("dial-tone", DIAL_TONE_LIMIT.into()),
        ("dial-tone-heard", DIAL_TONE.into()),
        ("training", TRAINING.into()),
        ("lapm", of_error_correction().into()),
        ("answer-grace", ANSWER_GRACE.into()),
        ("training-limit", TRAINING_LIMIT.into()),
        ("ack-delay", ACK_DELAY.into()),
        ("ppp-restart", ppp::RESTART.into()),
        ("ppp-attempts", u64::from(ppp::MAX_CONFIGURE).into()),
    ]
}

/// Of the study's transfers: with each field of a setting, so that none is left out.
fn of_transfers() -> [(&'static str, Value); 4] {
    let Transferred {
        outside,
        bytes,
        spins_beside_equal,
        // Each of these has its own rows, and the last two are drawn for each transfer.
        far: _,
        timing: _,
        costs: _,
        quantum: _,
        fast_ppb: _,
        into_quantum: _,
        seed: _,
    } = Transferred::study(FILE_BYTES, TIMESHARING, 0);
    let outside = match outside {
        Outside::Timesharing(priority) => u64::from(priority.level()).into(),
        Outside::AsPlaced | Outside::Confined => Value::from("none"),
    };
    let spins = if spins_beside_equal { "yes" } else { "no" };
    [
        ("priority-outside", outside),
        ("priority-on-hook", u64::from(ON_HOOK_PRIORITY).into()),
        ("bytes", bytes.into()),
        ("beside-equal", spins.into()),
    ]
}

/// How the study's call goes, with each field of its timing, and in one line the hurried one of figure 17.
fn of_call() -> [(&'static str, Value); 7] {
    let digits = |number: &str, digit: Span| format!("{} of {digit}", number.len());
    let Timing {
        on_hook,
        number,
        digit,
        ringing,
        answer_tone,
        before_training,
        training_lasts,
    } = Timing::study();
    let hurried = Timing::short();
    let in_haste = [
        hurried.ringing,
        hurried.answer_tone,
        hurried.before_training,
    ];
    let in_haste = format!(
        "{}; {}; {}",
        hurried.on_hook,
        digits(hurried.number, hurried.digit),
        listed(&in_haste)
    );
    [
        ("on-hook-lasts", on_hook.into()),
        ("digits", digits(number, digit).into()),
        ("ringing", ringing.into()),
        ("answer-tone", answer_tone.into()),
        ("before-training", before_training.into()),
        ("training-lasts", training_lasts.into()),
        ("hurried", in_haste.into()),
    ]
}

/// Of the scheduler of the study's host, with each of its fields.
fn of_scheduler(bands: BandsConfig) -> Vec<(&'static str, Value)> {
    let BandsConfig {
        quantum,
        signal_boost,
        timer_boost,
        starvation,
    } = bands;
    let mut all = vec![
        ("quantum", quantum.into()),
        ("boost", u64::from(signal_boost).into()),
        ("timer-boost", u64::from(timer_boost).into()),
    ];
    if let Some(Starvation {
        scan_every,
        after,
        quanta,
    }) = starvation
    {
        all.push(("starvation-scan", scan_every.into()));
        all.push(("starvation-after", after.into()));
        all.push(("starvation-quanta", u64::from(quanta).into()));
    }
    all
}

/// The parameters of the error correction, by their names in V.42.
fn of_error_correction() -> String {
    let lapm::Config {
        window,
        max_octets,
        retries,
        round_trip,
        processing,
        inactivity,
        ..
    } = lapm::Config::default();
    let beside = round_trip + processing;
    format!(
        "k {window}, N401 {max_octets}, N400 {retries}, T401 the frames' own time and {beside}, T403 {inactivity}"
    )
}

/// When a modem trains again.
fn of_retraining() -> [(&'static str, Value); 4] {
    let (least, most) = (AGREED_POWER.start, AGREED_POWER.end);
    [
        ("retrain-error", RANDOM_ERROR.to_string().into()),
        ("retrain-power", format!("{least} to {most}").into()),
        ("retrain-windows", SUSPICIOUS_WINDOWS.to_string().into()),
        ("retrain-run", u64::from(TWO_LEVEL_RUN).into()),
    ]
}

fn of_host() -> Vec<(&'static str, Value)> {
    let profile = HOST.machine;
    let above = profile.threads_above.map(|above| u64::from(above.level()));
    let costs = profile.costs;
    let entry = costs.interrupt_entry + costs.interrupt_exit;
    let range = |(least, most): (u64, u64)| {
        let ends = [least, most].map(Span::from_micros);
        format!("{} to {}", ends[0], ends[1]).into()
    };
    vec![
        ("disk-request", range(disk::DISK_US)),
        ("disk-search", range(disk::SEARCH_US)),
        ("disk-handler", range(disk::HANDLER_US)),
        ("disk-deferred", range(disk::DEFERRED_US)),
        ("ticks", u64::from(profile.tick_hz.unwrap_or(0)).into()),
        (
            "crystal",
            u64::from(HOST.card_fast_ppb.unsigned_abs()).into(),
        ),
        (
            "crystal-swept",
            u64::from(map::SWEEP_PPB.unsigned_abs()).into(),
        ),
        ("bytes-swept", map::BYTES.into()),
        (
            "begins",
            format!("none to {}", TwinProfile::LATEST_BEGIN).into(),
        ),
        ("switch", costs.context_switch.into()),
        ("tick", costs.clock_tick.into()),
        ("interrupt-entry", entry.into()),
        ("deferred-dispatch", costs.deferred_dispatch.into()),
        ("quanta", listed(&quanta()).into()),
        ("into-quantum", "none of it to all".into()),
        (
            "above-reservations",
            above.map_or_else(|| "none".into(), Value::from),
        ),
    ]
}

fn listed(spans: &[Span]) -> String {
    let words: Vec<String> = spans.iter().map(ToString::to_string).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modem::tables::{QuotedTable, TABLES};
    use crate::register::Kind;

    #[test]
    fn what_is_calibrated_says_by_what() {
        for constant in REGISTER.iter() {
            let says = !constant.chosen_by.is_empty();
            assert!(says || constant.kind != Kind::Calibrated, "{constant:?}");
            let is_chosen = [Kind::Calibrated, Kind::Reading].contains(&constant.kind);
            assert!(!says || is_chosen, "{constant:?}");
        }
    }

    /// What spans a range around a constant was chosen by all that chose it.
    #[test]
    fn what_follows_from_a_calibrated_constant_is_calibrated_by_the_same_rows() {
        let of = |value: &str| {
            let mut all = REGISTER.iter();
            all.find(|constant| constant.value == value)
                .expect("it is listed")
        };
        let [lasting, drawn] = ["training-lasts", "patience"].map(of);
        assert_eq!([lasting.kind, drawn.kind], [Kind::Calibrated; 2]);
        let is_said = |row: &String| drawn.chosen_by.contains(row);
        assert!(lasting.chosen_by.iter().all(is_said), "{drawn:?}");
    }

    /// How slow a row is that retrains, and whether it gets through at all.
    #[test]
    fn what_decides_how_slow_a_degraded_row_is_is_listed() {
        let listed: Vec<&str> = REGISTER.iter().map(|of| of.value.as_str()).collect();
        let retraining = ["error", "power", "windows", "run"].map(|of| format!("retrain-{of}"));
        assert!(retraining.iter().all(|key| listed.contains(&key.as_str())));
        for key in [
            "lapm",
            "training",
            "dial-tone-heard",
            "digits",
            "ringing",
            "answer-tone",
            "begins",
            "crystal-swept",
            "bytes-swept",
            "hurried",
            "priority-outside",
            "starvation-after",
            "timer-boost",
        ] {
            assert!(listed.contains(&key), "{key}");
        }
        // No second copy of a number: what is shown is what the link is given.
        let beside = Span::from_millis(250);
        let lapm = format!(
            "k 15, N401 128, N400 12, T401 the frames' own time and {beside}, T403 {}",
            Span::from_secs(5)
        );
        assert_eq!(of_error_correction(), lapm);
    }

    #[test]
    fn what_the_stress_run_the_line_and_the_queue_of_calls_assume_is_listed() {
        let listed: Vec<&str> = REGISTER.iter().map(|of| of.value.as_str()).collect();
        let disk = [
            "disk-request",
            "disk-search",
            "disk-handler",
            "disk-deferred",
        ];
        let line = [
            "distortion",
            "highpass",
            "line-clock",
            "deferred-dispatch",
            "far-delay",
            "tcp-window",
        ];
        for key in disk.into_iter().chain(line) {
            assert!(listed.contains(&key), "{key}");
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
                assert!(
                    took_part(&format!("RES {reservation}"), false),
                    "{constant:?}"
                );
            }
            for (at, _) in constant.reason.match_indices("figure ") {
                let digits = |c: &char| c.is_ascii_digit();
                let number: String = constant.reason[at + 7..]
                    .chars()
                    .take_while(digits)
                    .collect();
                let figure = format!("figure {number}");
                let says = |row: &String| row.split(':').next() == Some(&figure);
                assert!(constant.chosen_by.iter().any(says), "{constant:?}");
            }
        }
    }

    #[test]
    fn rows_that_a_constant_was_chosen_by_are_known_in_every_table() {
        let of_table = |table: &QuotedTable| -> Vec<String> {
            let names = table.rows.iter().map(|row| row.place.name().to_owned());
            names
                .filter(|name| took_part(name, table.confined))
                .collect()
        };
        let [first, second, third] = [0, 1, 2].map(|table| of_table(&TABLES[table]));
        assert_eq!(first, ["RES 2/16", "RES 3/16", "RES 1/8"]);
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
                let chosen = format!("RES {chosen}");
                assert!(
                    third.contains(&chosen) || first.contains(&chosen),
                    "{constant:?}"
                );
            }
        }
    }

    #[test]
    fn a_constant_keeps_its_value_wherever_it_stands() {
        let rows = rows().expect("each has a value");
        let mut swapped = REGISTER.clone();
        swapped.reverse();
        let mut again = rows_of(&swapped).expect("each has a value");
        again.reverse();
        assert_eq!(rows, again);
    }

    #[test]
    fn a_value_that_is_none_is_not_shown() {
        let mut register = REGISTER.clone();
        let left_out = register.pop().expect("there are constants");
        let error = rows_of(&register).expect_err("a value is left").to_string();
        assert!(error.contains(&left_out.value), "{error}");
        register.push(Constant {
            value: "no-such".into(),
            ..left_out
        });
        assert!(rows_of(&register).is_err());
        register.pop();
        register.push(register[0].clone());
        assert!(rows_of(&register).is_err(), "one value twice");
    }
}
