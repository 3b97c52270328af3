use laxity_lab::bench::{Made, judge};

use super::super::{Nif, Run, Seen};
use super::*;
use crate::disturbed;

/// What is told of the stack as a client where it carries this of BSD's way in each of three rounds, in percent, and others had so much of the processors.
fn told(percents: [u64; 3], others_ppm: impl Into<Option<u64>>) -> (Option<bool>, Verdict) {
    let others_ppm = others_ppm.into();
    let request = Request::default();
    let mut made = Made::nothing(&request);
    let cases: Vec<Case> = Case::here(&request).collect();
    let a_round = cases.len() / percents.len();
    for (place, case) in cases.into_iter().enumerate() {
        let rate = match case.platform.key {
            CLIENT => percents[place / a_round] * 1_000,
            _ => 100_000,
        };
        let seen = Seen::Throughput(rate, others_ppm);
        made.live.push((Run::Throughput(case), seen));
        made.said.push(disturbed(0));
    }
    let report = judge(&Nif, &made).expect("it is judged");
    let mut checks = report.checks.iter();
    let check = checks.find(|check| check.claim.contains("on this machine, as a client"));
    let figure = report
        .figures
        .iter()
        .find(|figure| figure.key == "throughput");
    let row = figure.and_then(|figure| figure.compared.first());
    (
        check.expect("it is claimed").held,
        row.expect("it is drawn").live_verdict.clone(),
    )
}

#[test]
fn what_hangs_on_a_round_or_on_others_stays_open() {
    assert!(matches!(
        told([90, 95, 120], 0),
        (Some(true), Verdict::Agrees(_))
    ));
    assert!(matches!(
        told([67, 70, 73], 0),
        (Some(false), Verdict::Disagrees(_))
    ));
    let open = [
        told([80, 89, 90], 0),
        told([67, 70, 73], others::LIMIT_PPM + 1),
        told([95, 95, 95], others::LIMIT_PPM + 1),
        told([95, 95, 95], None),
    ];
    for told in open {
        assert!(matches!(told, (None, Verdict::Inconclusive(_))), "{told:?}");
    }
}
