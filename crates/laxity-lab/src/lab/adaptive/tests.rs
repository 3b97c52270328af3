//! The policies in the twin.

use laxity_model::Span;
use laxity_model::adaptive::Policy;

use super::trial::Way;
use super::{STRETCH, twin_runs};

#[test]
fn loads_are_followed_and_what_is_constant_is_left_alone() {
    let runs = twin_runs(1).expect("the twin runs them");
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
    for (way, outcome) in &runs.admission {
        println!("{way:?}: {outcome:?}");
        assert!(outcome.other_ppm >= Some(990_000));
    }
}
