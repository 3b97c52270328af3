//! The cases themselves, and many more.

use laxity_model::verify::attribution::Fault;

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
        let findings = &trial.verdict.findings;
        let nobody = |fault: &Fault| !matches!(fault, Fault::Culprits(_));
        assert!(
            trial.is_right(),
            "case {number}, {:?}: named {:?} {:?}, to blame {:?}; nobody's fault: {:?}",
            trial.case,
            trial.verdict.culprits,
            trial.verdict.others,
            trial.truth,
            findings.late.iter().find(|job| nobody(&job.fault))
        );
    }
}

/// Cases as they come, also with culprits that make hardly a difference: who is named was to blame, and who was to blame is named.
#[test]
fn many_cases_by_precision_and_recall() {
    let trials = sweep(7, cases()).expect("the twin runs them");
    let (mut named, mut to_blame, mut both, mut innocents, mut right) = (0, 0, 0, 0, 0);
    for trial in &trials {
        let (verdict, truth) = (&trial.verdict, &trial.truth);
        named += verdict.culprits.len() + usize::from(verdict.victim);
        to_blame += truth.culprits.len() + usize::from(truth.victim);
        let named_rightly = |culprit: &&usize| truth.culprits.contains(culprit);
        both += verdict.culprits.iter().filter(named_rightly).count();
        both += usize::from(verdict.victim && truth.victim);
        innocents += verdict.others.len();
        right += usize::from(trial.is_right());
        if trial.case.kind == Kind::Nothing {
            assert_eq!(verdict.findings.late, []);
        }
    }
    println!(
        "{} cases, {right} right: named {named}, to blame {to_blame}, both {both}, innocents {innocents}",
        trials.len()
    );
    assert_eq!(innocents, 0);
    // At least 95 % of either.
    assert!(both * 100 >= named * 95, "precision: {both} of {named}");
    assert!(both * 100 >= to_blame * 95, "recall: {both} of {to_blame}");
}
