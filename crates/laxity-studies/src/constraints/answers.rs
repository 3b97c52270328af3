//! What is asked of one processor, one thing after the other, and what the answers are.

use laxity_model::admission::changes::AdmissionState;
use laxity_model::policy::slots::{PlanCosts, plan};
use laxity_model::{Instant, Refused, Reservation, Service, Span, TimeConstraint};

use super::burst::every;

/// A question and its answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answered {
    /// Who asked for what.
    pub asked: String,
    /// From when it holds, or why not.
    pub answer: Result<Instant, Refused>,
}

/// Costs of a switch as on a live machine.
pub const COSTS: PlanCosts = PlanCosts {
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
#[must_use]
pub fn answers() -> Vec<Answered> {
    let reserved = vec![held(2_000, 8_000), held(1_000, 10_000)];
    let table = plan(&reserved, &COSTS).expect("three tenths of a processor");
    let begun = (table, Instant::ZERO);
    let mut admission = AdmissionState::new((reserved, 1), begun, COSTS, Span::from_micros(500));
    let (modem, player, compressor) = (0, 1, 2);
    let mut told = Vec::new();
    let mut constrain =
        |admission: &mut AdmissionState, name: &str, who, [from, ms, work_us]: [u64; 3]| {
            let now = Instant::from_millis(100);
            let start = now + Span::from_millis(from);
            let work = Service::from_micros(work_us);
            let asked = TimeConstraint::new(start, start + Span::from_millis(ms), work)
                .expect("a constraint of this experiment");
            let within = if from == 0 {
                "now".to_owned()
            } else {
                format!("in {from} ms")
            };
            told.push(Answered {
                asked: format!("{name}: {asked}, from {within} on"),
                answer: admission.constrain(who, asked, now),
            });
        };
    constrain(&mut admission, "modem", modem, [0, 6, 3_465]);
    constrain(&mut admission, "compressor", compressor, [0, 20, 18_000]);
    constrain(&mut admission, "compressor", compressor, [0, 20, 9_000]);
    constrain(&mut admission, "compressor", compressor, [30, 20, 5_000]);
    constrain(&mut admission, "player", player, [2, 10, 6_000]);
    constrain(&mut admission, "player", player, [900, 1_000, 10_000]);
    let now = Instant::from_millis(200);
    for (asked, what) in [
        (held(7_500, 8_000), "modem: 7.5 ms in 8"),
        (held(3_000, 8_000), "modem: 3 ms in 8 instead of 2"),
        (held(100, 2_500), "modem: 0.1 ms in 2.5"),
    ] {
        let proposal = admission.propose(modem, asked);
        told.push(Answered {
            asked: what.into(),
            answer: proposal.and_then(|proposal| admission.change(proposal, now)),
        });
    }
    told
}
