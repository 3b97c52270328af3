//! What is known of a value in part: within what halts can account for, or up to where it had come.

use super::halts::judge_met;
use super::*;

/// What was seen, some with what halts may have moved it by, and what others had come to when the run was over.
fn known_in_part(
    seen: &[u64],
    shifted: &[[u64; 2]],
    unfinished: &[u64],
) -> impl Fn(Statistic, Bound) -> Outcome + use<> {
    let mut run = Observations::new();
    let gap = Quantity::WAKEUP_GAP;
    for value in seen {
        run.record(gap, &Phase::RUN, *value, false);
    }
    for [time, delayed] in shifted {
        let [time, delayed] = [*time, *delayed].map(Span::from_nanos);
        run.record_shifted(gap, &Phase::RUN, time, Some(delayed));
    }
    for least in unfinished {
        run.record_unfinished(gap, &Phase::RUN, *least);
    }
    move |statistic, bound| {
        let contract = contract(Limit::new(gap, statistic, bound));
        judge_met(&contract, &[run.clone()], &[], (&QUIET, 0)).result
    }
}

/// Broken is what is broken however the halts fell, and held against nobody what they can account for.
#[test]
fn a_halt_excuses_no_more_than_it_can_account_for() {
    use Bound::{AtLeast, AtMost};
    use Outcome::{Inconclusive, Met, Violated};
    use Statistic::{Maximum, Minimum, Percentile};
    let one = known_in_part(&[100; 99], &[[270, 20]], &[]);
    assert_eq!(one(Maximum, AtMost(249)), Violated);
    assert_eq!(one(Maximum, AtMost(250)), Met);
    assert_eq!(one(Minimum, AtLeast(100)), Met);
    let short = known_in_part(&[100; 99], &[[20, 20]], &[]);
    assert_eq!(short(Minimum, AtLeast(41)), Violated);
    assert_eq!(short(Minimum, AtLeast(40)), Met);
    assert_eq!(short(Maximum, AtMost(100)), Met);
    let mut run = Observations::new();
    let [lasted, delayed] = [270, 80].map(Span::from_nanos);
    run.record_time(Quantity::WAKEUP_GAP, &Phase::RUN, lasted, Some(delayed));
    let behind = |bound| judge_met(&gap_at_most(bound), &[run.clone()], &[], (&QUIET, 0)).result;
    assert_eq!([189, 190].map(behind), [Violated, Inconclusive]);
    // Of a percentile all that are not known are as good as they can have been.
    let many = [[150, 100]; 60];
    let few = known_in_part(&[100; 10], &[&many[..], &[[270, 20]]].concat(), &[]);
    assert_eq!(few(Percentile(900_000), AtMost(200)), Met);
    assert_eq!(few(Percentile(990_000), AtMost(200)), Violated);
}

#[test]
fn what_is_not_over_breaks_an_upper_bound_and_keeps_none() {
    use Bound::{AtLeast, AtMost};
    use Outcome::{Inconclusive, Met, Violated};
    use Statistic::{Maximum, Minimum, Percentile};
    let alone = known_in_part(&[], &[], &[500]);
    assert_eq!(alone(Maximum, AtMost(499)), Violated);
    assert_eq!(alone(Maximum, AtMost(500)), Inconclusive);
    assert_eq!(alone(Minimum, AtLeast(90)), Inconclusive);
    assert_eq!(alone(Percentile(500_000), AtLeast(90)), Inconclusive);
    let mut only = Observations::new();
    only.record_unfinished(Quantity::WAKEUP_GAP, &Phase::RUN, 500);
    let verdict = judge_met(&gap_at_most(500), &[only], &[], (&QUIET, 0));
    assert_eq!(texts(&verdict), ["wakeup gap: none was over"]);
    // It makes a percentile no better than those are that were over.
    let mut run = Observations::new();
    [1; 98].iter().chain(&[70, 90]).for_each(|value| {
        run.record(Quantity::WAKEUP_GAP, &Phase::RUN, *value, false);
    });
    (0..5).for_each(|_| run.record_unfinished(Quantity::WAKEUP_GAP, &Phase::RUN, 0));
    let limit = Limit::new(Quantity::WAKEUP_GAP, Percentile(990_000), AtMost(10));
    let verdict = judge_met(&contract(limit), &[run], &[], (&QUIET, 0));
    assert_eq!(
        texts(&verdict),
        ["wakeup gap: p99 70ns exceeds 10ns (7.0 times)"]
    );
    // Whether it is broken is not told by what is counted together with what keeps it.
    let near = known_in_part(&[100], &[], &[100_001; 200]);
    assert_eq!(near(Percentile(990_000), AtMost(100_000)), Inconclusive);
    assert_eq!(near(Percentile(990_000), AtMost(99_000)), Violated);
    let beside = known_in_part(&[100; 9], &[], &[5]);
    assert_eq!(beside(Minimum, AtLeast(100)), Met);
    assert_eq!(beside(Maximum, AtMost(100)), Met);
}

/// What is beyond the control's for certain breaks a limit that is relative to it, and what the control had come to counts for it.
#[test]
fn beside_a_control_counts_what_is_known_in_part() {
    let gap = Quantity::WAKEUP_GAP;
    let run = |seen: u64, unfinished: Option<u64>| {
        let mut run = Observations::new();
        run.record(gap, &Phase::RUN, seen, false);
        if let Some(least) = unfinished {
            run.record_unfinished(gap, &Phase::RUN, least);
        }
        run
    };
    let contract = contract(Limit::new(
        gap,
        Statistic::Maximum,
        Bound::AtMostTimesControl {
            ratio_ppm: 1_050_000,
        },
    ));
    let judged = |runs: &[Observations], control: Observations| {
        judge_met(&contract, runs, &[control], (&QUIET, 0)).result
    };
    let long = run(100, Some(400));
    assert_eq!(
        judged(std::slice::from_ref(&long), run(100, None)),
        Outcome::Violated
    );
    assert_eq!(
        judged(std::slice::from_ref(&long), run(100, Some(390))),
        Outcome::Met
    );
    let mut disturbed = Observations::new();
    let [time, delayed] = [100, 90].map(Span::from_nanos);
    disturbed.record_shifted(gap, &Phase::RUN, time, Some(delayed));
    disturbed.record_unfinished(gap, &Phase::RUN, 20_000);
    let no_yardstick = judged(&[run(50, None)], disturbed);
    assert_eq!(no_yardstick, Outcome::Inconclusive);
    let one_is_good = [long, run(100, None)];
    assert_eq!(judged(&one_is_good, run(100, None)), Outcome::Met);
}

/// What breaks a bound for certain counts with what is worse, and is then no single occasion of the machine.
#[test]
fn what_breaks_a_bound_for_certain_is_counted() {
    let gap = Quantity::WAKEUP_GAP;
    let facts = RunFacts {
        unseen: Span::from_nanos(1_000),
        ..QUIET
    };
    let judged = |certain: usize| {
        let mut first = Observations::new();
        first.record(gap, &Phase::RUN, 102, false);
        for _ in 0..certain {
            let [time, delayed] = [111, 10].map(Span::from_nanos);
            first.record_shifted(gap, &Phase::RUN, time, Some(delayed));
        }
        let mut others = Observations::new();
        (0..100).for_each(|_| others.record(gap, &Phase::RUN, 90, false));
        let runs = [first, others.clone(), others];
        judge_met(&gap_at_most(100), &runs, &[], (&facts, 0)).result
    };
    assert_eq!([0, 10].map(judged), [Outcome::Met, Outcome::Violated]);
}
