//! Every constant of the twin's study that was charged, calibrated, assumed, or is a reading of an unclear sentence: what it is, why, and by
//! which rows it was chosen. The values are taken from where they are used, the words from the study's data; this is the list that the report
//! shows.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use laxity_devices::card::Overheads;
use laxity_devices::link::{
    ACK_DELAY, DIGIT_WINDOWS, PAUSE_WINDOWS, RETRANSMISSION, TONE_SHARE, WINDOW_OCTETS, congestion,
    endpoint, lapm, ppp,
};
use laxity_devices::modem::card::{RING_SAMPLES, Setting};
use laxity_devices::modem::needs::BLOCK_PERIOD;
use laxity_devices::modem::{
    ANSWER_GRACE, Costs, DIAL_TONE, DIAL_TONE_LIMIT, FAR_DELAY, FarProfile, Hypothesis, PIECES_HZ,
    TRAINING, TRAINING_LIMIT, Timing,
};
use laxity_devices::pump::{
    AGREED_POWER, LineConfig, RANDOM_ERROR, SUSPICIOUS_WINDOWS, TWO_LEVEL_RUN,
};
use laxity_lab::report::{Row, Value};
use laxity_lab::runner::RunError;
use laxity_lab::scenario::TwinProfile;
use laxity_model::analysis::Fraction;
use laxity_model::policy::bands::{BandsConfig, Starvation};
use laxity_model::{Outside, Reservation, Service, Span};

use super::TEXT;
use super::figures::disk;
use super::map;
use super::tables::{FILE_BYTES, TIMESHARING};
use super::transfers::{
    HOST, LIMIT, ON_HOOK_PRIORITY, PATIENCE, Place, Setting as Transferred, quanta,
};
use crate::register::{self, Constant};

static REGISTER: LazyLock<Vec<Constant>> = LazyLock::new(|| TEXT.quoted("constants"));

/// Ends the name of a reservation where a constant was chosen by what it has beside a spinner, in tables 1 and 2.
const BESIDE: &str = " beside a spinner";

/// Stands where a constant was chosen by the line that the study drew through its table 3.
const LINE_OF_GAPS: &str = "figure 17: the line of gaps";

/// Why it proves nothing that a row of the tables or a point of figure 17 comes true.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DecidedBy {
    /// A constant was chosen by it.
    Itself,
    /// The output's lead decides, which was chosen by the line of gaps that the study drew through its rows.
    TheLine,
    /// It has less than its calls take at any cost that is put in, so that no lead helps.
    TheShare,
}

impl DecidedBy {
    /// Of a place of the driver, `confined` to its reservation or not; `None`: nothing that was put in decides. Of whoever has
    /// enough nothing but the gap does.
    pub(super) fn of(place: &Place, confined: bool) -> Option<Self> {
        if chose(place, confined) {
            return Some(Self::Itself);
        }
        let reservation = place.reservation().filter(|_| confined)?;
        let is_lead_chosen = || chosen_by().any(|of| of == LINE_OF_GAPS);
        match has_enough(reservation) {
            false => Some(Self::TheShare),
            true => is_lead_chosen().then_some(Self::TheLine),
        }
    }

    /// Whether a constant was chosen by it, or by the line through it.
    pub(super) const fn is_chosen(self) -> bool {
        matches!(self, Self::Itself | Self::TheLine)
    }

    /// In a verdict.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Itself => "a constant was chosen by this reservation",
            Self::TheLine => {
                "the output's lead decides it, and was chosen by the line of gaps that the study drew through its rows"
            }
            Self::TheShare => {
                "its share is less than what calls take, as charged and as calibrated, and then no lead helps"
            }
        }
    }
}

/// Whether a constant was chosen by a reservation of the tables, named as there: `RES 3/16`. As one driver and one clock make all tables, it counts in all of
/// them; but a spinner takes nothing from who is `confined`.
fn chose(place: &Place, confined: bool) -> bool {
    let Some(reservation) = place.name().strip_prefix("RES ") else {
        return false;
    };
    chosen_by().any(|row| match row.strip_suffix(BESIDE) {
        Some(row) => !confined && row == reservation,
        None => row == reservation,
    })
}

fn chosen_by() -> impl Iterator<Item = &'static str> {
    let all = REGISTER.iter().flat_map(|constant| &constant.chosen_by);
    all.map(String::as_str)
}

/// Whether a reservation's share is what calls take at the cost of the twin's transfers, which is less than the study's: who has less has too little of either.
fn has_enough(reservation: Reservation) -> bool {
    let share = |service: Service, of: Span| Fraction::new(service.as_nanos(), of.as_nanos());
    share(reservation.service(), reservation.period()) >= share(HOST.costs.data, BLOCK_PERIOD)
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
        ("far-pieces", PIECES_HZ.into()),
        ("limit", LIMIT.into()),
        (
            "patience",
            format!("{} to {}", PATIENCE[0], PATIENCE[1]).into(),
        ),
        ("up-pool", rate(pool)),
        ("up-server", rate(server)),
    ];
    all.extend(of_protocols());
    all.extend(of_link());
    if let Some(network) = pool.network {
        all.push(("network-delay", network.delay.into()));
        all.push(("network-jitter", network.jitter.into()));
    }
    all
}

/// How long whoever dials waits for what does not come, how often it asks, and by what it knows a tone.
fn of_protocols() -> [(&'static str, Value); 9] {
    let tones = format!("{TONE_SHARE}; {DIGIT_WINDOWS} and {PAUSE_WINDOWS} windows");
    [
        ("dial-tone", DIAL_TONE_LIMIT.into()),
        ("dial-tone-heard", DIAL_TONE.into()),
        ("tones", tones.into()),
        ("training", TRAINING.into()),
        ("answer-grace", ANSWER_GRACE.into()),
        ("training-limit", TRAINING_LIMIT.into()),
        ("ack-delay", ACK_DELAY.into()),
        ("ppp-restart", ppp::RESTART.into()),
        ("ppp-attempts", u64::from(ppp::MAX_CONFIGURE).into()),
    ]
}

/// Of error correction, PPP and TCP.
fn of_link() -> [(&'static str, Value); 8] {
    let link = endpoint::Config::default();
    let [first, most] = RETRANSMISSION;
    [
        ("lapm", of_error_correction(link.lapm).into()),
        ("send-octets", (link.send_octets() as u64).into()),
        ("mru", u64::from(link.mtu).into()),
        ("mss", u64::from(link.mss()).into()),
        ("tcp-window", (WINDOW_OCTETS as u64).into()),
        ("tcp-timeout", format!("{first} to {most}").into()),
        ("tcp-congestion", congestion().into()),
        ("low-water", endpoint::LOW_WATER.into()),
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
fn of_error_correction(config: lapm::Config) -> String {
    let lapm::Config {
        window,
        max_octets,
        retries,
        round_trip,
        processing,
        inactivity,
        // It has a row of its own, with what the link makes of it.
        send_octets: _,
    } = config;
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
mod tests;
