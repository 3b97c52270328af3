//! The cases themselves, and many more.

use super::case::Kind;
use super::{sweep, twenty};

fn cases() -> u64 {
    let cases = std::env::var("LAXITY_CASES").ok();
    cases.map_or(56, |cases| cases.parse().expect("LAXITY_CASES is a number"))
}

#[test]
fn twenty_of_twenty() {
    for (number, drawn) in (1..).zip(twenty(1).expect("the twin runs them")) {
        let trial = &drawn.trial;
        let unexplained = trial.verdict.findings.late.iter().filter(|job| {
            !matches!(job.fault, laxity_model::attribution::Fault::Culprits(_))
        });
        let unexplained: Vec<_> = unexplained.take(3).collect();
        assert!(
            trial.is_right(),
            "case {number}, {:?}: named {:?} {:?}, to blame {:?}; {unexplained:#?}",
            trial.case,
            trial.verdict.culprits,
            trial.verdict.others,
            trial.truth
        );
    }
}

/// Cases as they come, also with culprits that make hardly a difference: who is named was to blame, and who was to blame is named.
#[test]
fn many_cases_by_precision_and_recall() {
    let trials = sweep(7, cases()).expect("the twin runs them");
    let (mut named, mut to_blame, mut both, mut innocents) = (0, 0, 0, 0);
    for trial in &trials {
        let (verdict, truth) = (&trial.verdict, &trial.truth);
        named += verdict.culprits.len() + usize::from(verdict.victim);
        to_blame += truth.culprits.len() + usize::from(truth.victim);
        let hits = verdict
            .culprits
            .iter()
            .filter(|culprit| truth.culprits.contains(culprit));
        both += hits.count() + usize::from(verdict.victim && truth.victim);
        innocents += verdict.others.len();
        if !trial.is_right() {
            println!("{:?} {:?}: {:?}", trial.case.kind, trial.case.served, truth);
            println!("  named {:?} {:?}", verdict.culprits, verdict.others);
            println!(
                "  too little {}, unexplained {}",
                verdict.too_little, verdict.unexplained
            );
        }
        if trial.case.kind == Kind::Nothing {
            assert_eq!(verdict.findings.late, []);
        }
    }
    println!(
        "{} cases: named {named}, to blame {to_blame}, both {both}, innocents {innocents}",
        trials.len()
    );
    assert_eq!(innocents, 0);
    // At least 95 % of either.
    assert!(both * 100 >= named * 95, "precision: {both} of {named}");
    assert!(both * 100 >= to_blame * 95, "recall: {both} of {to_blame}");
}
