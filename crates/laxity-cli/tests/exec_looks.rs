//! When `laxity exec` looks at the program, and at who could take from it. Needs the rights to schedule.

mod common;

use common::{Bench, json, said};
use laxity_linux::doctor::rights::{self, Right};

/// The looks at a program are a period apart; those who could take from it are looked for all the time.
#[test]
fn over_a_long_period_nobody_is_blind() {
    let Some(_live) = rights::require(&[Right::RealTime]) else {
        return;
    };
    let bench = Bench::new();
    let options = ["exec", "--reserve=100ms/1s", "--json=r.json", "--"];
    let spin = "while :; do :; done";
    let program = ["timeout", "3.5", "sh", "-c", spin];
    let output = bench.run(&[&options[..], &program].concat());
    let told = said(&output);
    let received = json(&bench, "r.json");
    let reason = received["grade_reason"].as_str().unwrap_or_default();
    // What the machine itself does is told in other words, or as a standstill of less than a period.
    let blind = reason.strip_prefix("nobody looked for ");
    let blind = blind.and_then(|rest| rest.split_once("ms").map(|(ms, _)| ms.parse::<f64>()));
    assert!(
        blind.is_none_or(|ms| ms.is_ok_and(|ms| ms < 750.0)),
        "{told}"
    );
    let figure = |name: &str| received["received"][name].as_u64().unwrap();
    let counted = ["periods", "periods_disturbed", "periods_unseen"].map(figure);
    assert!(counted.iter().sum::<u64>() >= 2, "{told}");
}
