//! The policies in the twin.

use laxity_model::adaptive::Policy;
use laxity_model::{Service, Span};

use super::trial::{Outcome, Way};
use super::{CONSTANT_FOR, STRETCH, twin_runs};

#[test]
fn loads_are_followed_and_what_is_constant_is_left_alone() {
    let runs = twin_runs(1, |key| key != "live").expect("the twin runs them");
    let best = &runs.steps[0].1;
    assert_eq!((best.late, best.lost), (0, 0));
    for (way, outcome) in &runs.steps {
        let Way::Adaptive(policy, _) = *way else {
            continue;
        };
        let up = outcome.settled(STRETCH, STRETCH * 2);
        let down = outcome.settled(STRETCH * 2, STRETCH * 3);
        println!("{policy:?}: up {up:?}, down {down:?}, {outcome:?}");
        assert!(up.after <= Span::from_secs(2), "{policy:?} {up:?}");
        if policy != Policy::InTime {
            assert!(!down.after.is_zero() && down.after <= Span::from_secs(2));
            assert_eq!((up.later_changes, down.later_changes), (0, 0));
            assert!(outcome.mean_share_ppm < best.mean_share_ppm);
        }
        assert_eq!(outcome.lost, 0, "{policy:?}");
    }
    for (way, outcome) in &runs.constant {
        let changes = outcome.most_changes(Span::ZERO, CONSTANT_FOR);
        let most = if matches!(way, Way::Adaptive(Policy::InTime, _)) {
            3
        } else {
            1
        };
        println!("{way:?}: {changes} in 10 s, {outcome:?}");
        assert!(changes <= most, "{way:?}: {changes} in 10 s");
        assert!(outcome.changes.len() <= 24, "{way:?}");
    }
    for (way, outcome) in &runs.admission {
        println!("{way:?}: {outcome:?}");
        assert!(outcome.other_ppm >= Some(990_000));
    }
}

#[test]
fn a_burst_of_changes_is_seen_whatever_the_average() {
    let at = |second| (Span::from_secs(second), Service::from_millis(1));
    let outcome = Outcome {
        changes: vec![at(5), at(50), at(51), at(59), at(60), at(90)],
        ..Outcome::default()
    };
    assert_eq!(outcome.most_changes(Span::ZERO, CONSTANT_FOR), 3);
    assert_eq!(outcome.most_changes(Span::ZERO, Span::from_secs(52)), 2);
    assert_eq!(outcome.most_changes(Span::from_secs(61), CONSTANT_FOR), 1);
}

#[test]
fn only_what_is_asked_for_is_run() {
    let runs = twin_runs(1, |key| key == "constant").expect("the twin runs it");
    assert!(runs.steps.is_empty() && runs.admission.is_empty());
    assert_eq!(runs.constant.len(), Policy::ALL.len());
}
