//! Limits that name the phases in which they hold.

use super::*;

#[test]
fn a_phase_that_was_never_reached_is_inconclusive() {
    let limit = Limit::new(LOST, Statistic::Total, Bound::AtMost(0));
    let limit = limit.during(Phases::Only(vec![Phase::DIALING, Phase::CONNECTED]));
    let dialing = observe(&[(LOST, &Phase::DIALING, 0)]);
    let verdict = judge(&contract(limit.clone()), &dialing, None, &QUIET);
    assert_eq!(verdict.result, Outcome::Inconclusive);
    let unseen = Cause::Values {
        quantity: LOST,
        phase: Some(Phase::CONNECTED),
        finding: Finding::NotObserved(Unjudged::Nothing),
    };
    let causes = verdict.reasons.iter().map(|reason| &reason.cause);
    assert_eq!(causes.collect::<Vec<_>>(), [&unseen]);
    // A loss that was seen outweighs what was not.
    let lossy = observe(&[(LOST, &Phase::DIALING, 3)]);
    let verdict = judge(&contract(limit), &lossy, None, &QUIET);
    assert_eq!(verdict.result, Outcome::Violated);
    assert!(texts(&verdict)[0].ends_with("total 3 where none is allowed"));
}

/// What is over where a run begins is asked of nobody; what was to be seen and was not, of everybody.
#[test]
fn nothing_is_asked_of_phases_that_are_over_where_a_run_begins() {
    let limit = Limit::new(LOST, Statistic::Total, Bound::AtMost(0));
    let judged = |asked: &[Phase], over: &[Phase], seen: &[(Quantity, &Phase, u64)]| {
        let limit = limit.clone().during(Phases::Only(asked.to_vec()));
        let mut evidence = evidence("it", ANYTHING, &[observe(seen)], &[]);
        evidence.phases_over = over.to_vec();
        let verdict = judge_all(&contract(limit), &[evidence], &QUIET);
        (verdict.result, verdict.reasons.len())
    };
    let all = [Phase::DIALING, Phase::TRAINING, Phase::CONNECTED];
    let over = &all[..2];
    let connected = [(LOST, &Phase::CONNECTED, 0)];
    assert_eq!(judged(&all, over, &connected), (Outcome::Met, 0));
    assert_eq!(judged(&all, &[], &connected), (Outcome::Inconclusive, 2));
    assert_eq!(judged(&all, over, &[]), (Outcome::Inconclusive, 1));
    // It was there after all.
    let dialing = [connected[0], (LOST, &Phase::DIALING, 3)];
    assert_eq!(judged(&all, over, &dialing), (Outcome::Violated, 1));
    // Nothing else is asked: that is no limit that holds.
    assert_eq!(judged(over, over, &connected), (Outcome::Inconclusive, 2));
}
