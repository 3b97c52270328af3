//! Every constant of the experiments that was charged, calibrated or assumed, or is a reading of an unclear sentence, as the report lists them. The values are taken from
//! where they are used, the words from the study's data.

use std::sync::LazyLock;

use laxity_lab::report::{Row, Value};
use laxity_lab::runner::RunError;
use laxity_model::{Service, Span};

use super::trial::Serving;
use super::udp::transfer;
use super::{
    BATCH, GRAIN_PPM, LENGTH, LIVE_DELAYED, LIVE_LENGTH, LIVE_STEP, PERCENT_PPM, PERIODS_MS, SETS,
    SWITCH_1995, activities, deadlines, delayed, many, processes, shorter, shown, simulation, udp,
};
use crate::register::{self, Constant};

pub(super) static REGISTER: LazyLock<Vec<Constant>> =
    LazyLock::new(|| super::TEXT.quoted("constants"));

/// As rows of the report.
///
/// # Errors
///
/// [`RunError::CannotRun`] if a constant's value has no such key, or a value has no constant.
pub(super) fn rows() -> Result<Vec<Row>, RunError> {
    let all = of_paper().into_iter().chain(of_claims());
    let all = all.chain(of_udp());
    register::rows(&REGISTER, all.collect())
}

/// Of what is run.
fn of_paper() -> Vec<(&'static str, Value)> {
    let lengths = [simulation::LENGTH, many::LENGTH, shorter::LENGTH];
    let lengths_here = [LIVE_LENGTH, LIVE_STEP, LIVE_DELAYED];
    let streams = simulation::STREAMS.map(|(period, batch, count)| {
        format!("{count} of {batch} in {}", Span::from_micros(period))
    });
    vec![
        ("periods", format!("{} ms", of(PERIODS_MS)).into()),
        ("length", LENGTH.into()),
        ("switch", SWITCH_1995.into()),
        ("load", Value::share(many::UTILIZATION_PPM)),
        ("load-here", Value::share(many::HERE_PPM)),
        ("batch", u64::from(BATCH.get()).into()),
        ("shares", "as much of the processor".into()),
        ("first", "drawn by the millisecond".into()),
        ("sets", u64::from(SETS).into()),
        ("quantum", "half a batch, or all".into()),
        ("streams", streams.join("; ").into()),
        ("counted", Value::share(simulation::COUNTED_PPM)),
        ("load-of-one", Value::share(activities::UTILIZATION_PPM)),
        ("guard", processes::LONGEST.into()),
        (
            "pairs",
            of([activities::TWIN_PAIRS, activities::PAIRS]).into(),
        ),
        ("swept", of(deadlines::SWEPT).into()),
        ("swept-here", of(deadlines::SWEPT_HERE).into()),
        ("swept-loaded", of(deadlines::SWEPT_LOADED).into()),
        ("saved-loads", of(many::LOADS).into()),
        ("divisors", of(shorter::IN_1995).into()),
        ("divisors-here", of(shorter::HERE).into()),
        ("delayed-divisors", of(delayed::DIVISORS).into()),
        ("delayed-loads", of(delayed::LOADS).into()),
        ("lengths", of(lengths).into()),
        ("lengths-here", of(lengths_here).into()),
    ]
}

/// Of experiment 3, which is a command of its own.
fn of_udp() -> Vec<(&'static str, Value)> {
    vec![
        ("udp-periods", of(transfer::PERIODS).into()),
        ("udp-buffer", (transfer::BUFFER as u64).into()),
        ("udp-sizes", of(udp::SIZES).into()),
        ("udp-batch", u64::from(transfer::BATCH.get()).into()),
        ("udp-quantum", u64::from(transfer::QUANTUM.get()).into()),
        ("udp-spinners", (transfer::SPINNERS as u64).into()),
        ("udp-length", udp::LENGTH.into()),
        ("udp-kept", Value::share(udp::KEPT * PERCENT_PPM)),
    ]
}

/// Several, in words.
fn of<const N: usize>(all: [impl ToString; N]) -> String {
    all.map(|one| one.to_string()).join(", ")
}

/// Of what is claimed: so much is enough, or the same.
fn of_claims() -> Vec<(&'static str, Value)> {
    let percent = |percent: u64| Value::share(percent * PERCENT_PPM);
    let thousandths = |of: u64| Value::share(of * 1_000);
    let [drawn, together] = activities::SWITCHES;
    let million = Service::from_nanos(1_000_000);
    let reserved = Serving::reserved(million).saturating_sub(million);
    vec![
        ("grain", Value::share(GRAIN_PPM)),
        ("almost", Value::share(simulation::ALMOST_PPM)),
        ("preempted", percent(simulation::FEWER)),
        ("safe", percent(deadlines::SAFE)),
        ("with-room", percent(deadlines::FULL)),
        ("less", deadlines::LESS.into()),
        ("fewer", percent(many::FEWER)),
        ("as-much", percent(shown::AS_MUCH)),
        ("switches-drawn", thousandths(drawn)),
        ("switches-together", thousandths(together)),
        ("alike", percent(100 / activities::ALIKE)),
        ("after", activities::AFTER.into()),
        ("little", Value::share(shorter::LITTLE_PPM)),
        ("gained", percent(shorter::GAINED)),
        ("noise", Value::share(shorter::NOISE_HERE_PPM)),
        ("missed-here", Value::share(shorter::MISSED_HERE_PPM)),
        ("reserved", Value::share(reserved.as_nanos())),
    ]
}
