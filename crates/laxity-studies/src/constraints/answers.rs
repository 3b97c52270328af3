//! What is asked of one processor, one thing after the other, and what the answers are.

use laxity_lab::report::{Origin, Row};
use laxity_model::admission::changes::AdmissionState;
use laxity_model::policy::slots::{PlanCosts, plan};
use laxity_model::{Instant, Refused, Reservation, Service, Span, TimeConstraint};

use super::burst::every;

/// Costs of a switch as on a live machine.
const COSTS: PlanCosts = PlanCosts {
    per_slot: Service::from_micros(50),
    max_share_ppm: 940_000,
    other_ppm: 0,
    granularity: Span::from_micros(50),
};

fn held(service_us: u64, period_us: u64) -> Reservation {
    every((
        Service::from_micros(service_us),
        Span::from_micros(period_us),
    ))
}

/// A modem that holds 2 ms in 8, a player with 1 ms in 10, and a compressor without a reservation: what they ask for, and what they are told.
///
/// # Panics
///
/// If what is asked for is no time constraint: those of this experiment are.
pub fn answers() -> Vec<Row> {
    let reserved = vec![held(2_000, 8_000), held(1_000, 10_000)];
    let table = plan(&reserved, &COSTS).expect("three tenths of a processor");
    let begun = (table, Instant::ZERO);
    let mut admission = AdmissionState::new((reserved, 1), begun, COSTS, Span::from_micros(500));
    let (modem, player, compressor) = ((0, "modem"), (1, "player"), (2, "compressor"));
    let mut rows = Vec::new();
    for ((who, name), from, ms, work_us) in [
        (modem, 0, 6, 3_465),
        (compressor, 0, 20, 18_000),
        (compressor, 0, 20, 9_000),
        (compressor, 30, 20, 5_000),
        (player, 2, 10, 6_000),
        (player, 900, 1_000, 10_000),
    ] {
        let now = Instant::from_millis(100);
        let start = now + Span::from_millis(from);
        let (deadline, work) = (start + Span::from_millis(ms), Service::from_micros(work_us));
        let asked = TimeConstraint::new(start, deadline, work).expect("a time constraint");
        let within = match from {
            0 => "now".to_owned(),
            _ => format!("in {from} ms"),
        };
        let what = format!("{name}: {asked}, from {within} on");
        rows.push(row(what, admission.constrain(who, asked, now)));
    }
    let now = Instant::from_millis(200);
    for (asked, what) in [
        (held(7_500, 8_000), "modem: 7.5 ms in 8"),
        (held(3_000, 8_000), "modem: 3 ms in 8 instead of 2"),
        (held(100, 2_500), "modem: 0.1 ms in 2.5"),
    ] {
        let proposal = admission.propose(modem.0, asked);
        let answer = proposal.and_then(|proposal| admission.change(proposal, now));
        rows.push(row(what.into(), answer));
    }
    rows
}

/// Who asked for what, and from when it holds, or why not.
fn row(asked: String, answer: Result<Instant, Refused>) -> Row {
    let answer = match answer {
        Ok(from) => format!("granted, from {} on", from.since_epoch()),
        Err(why) => format!("refused: {why}"),
    };
    vec![Origin::Charged.cell(asked), Origin::Predicted.cell(answer)]
}
