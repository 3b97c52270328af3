//! Halts of the machine: whom they excuse, and those that are too short for its witness.

use laxity_model::request::Work;
use laxity_model::verify::contract::{Halts, Stood};
use laxity_model::{ActivityId, Disturbances, Reservation, Service, Usage, Whereabouts};

use super::*;

/// Judges the runs of one component, where halts met so large a share of the looks for them.
pub(super) fn judge_met(
    contract: &Contract,
    runs: &[Observations],
    control: &[Observations],
    (facts, looks_ppm): (&RunFacts, u32),
) -> Verdict {
    let mut it = evidence("it", ANYTHING, runs, control);
    it.doubts.looks_ppm = looks_ppm;
    judge_all(contract, &[it], facts)
}

/// This processor stood still.
pub(super) fn still(processor: u16, from: u64, to: u64) -> Disturbance {
    Disturbance {
        processor: ProcessorId(processor),
        from: Instant::from_nanos(from),
        to: Instant::from_nanos(to),
    }
}

#[test]
fn a_halt_that_several_saw_is_one_of_its_processor() {
    let seen = [
        still(0, 20, 90),
        still(1, 25, 95),
        still(0, 60, 70),
        still(0, 10, 30),
        still(0, 91, 99),
        still(0, 99, 100),
    ];
    let apart = [still(0, 10, 90), still(1, 25, 95), still(0, 91, 100)];
    assert_eq!(Disturbance::joined(seen), apart);
}

#[test]
fn a_halt_excuses_only_who_ran_there_or_may_have() {
    use Whereabouts::{Anywhere, On, Outside};
    let all = [On(ProcessorId(0)), On(ProcessorId(1)), Anywhere, Outside];
    let mut record = record(&[], 0);
    record.disturbances = vec![still(1, 10, 20)];
    record.usage = all
        .map(|ran| Usage {
            ran,
            ..Usage::default()
        })
        .to_vec();
    let excused = |ids: &[u16]| {
        let ids: Vec<ActivityId> = ids.iter().copied().map(ActivityId).collect();
        Disturbances::of(&record, &ids).overlap(Instant::from_nanos(15), Instant::from_nanos(30))
    };
    assert_eq!(
        [0, 1, 2, 3].map(|id| excused(&[id])),
        [false, true, true, false]
    );
    assert!(excused(&[0, 1]), "what two do together waits for both");
    assert!(!excused(&[0, 3]));
}

#[test]
fn what_bears_on_two_processors_is_in_order_and_apart() {
    let at = Instant::from_nanos;
    let all = [still(0, 10, 30), still(1, 20, 40), still(0, 60, 70)];
    let both = Disturbances::bearing_on(&all, [Whereabouts::Anywhere]);
    let within = |from, to| -> Vec<u64> {
        let each = both.within(at(from), at(to));
        each.map(Span::as_nanos).collect()
    };
    assert_eq!(within(0, 100), [30, 10]);
    assert_eq!(within(15, 65), [25, 5]);
    assert_eq!(within(41, 59), [0; 0]);
}

/// Halts of one processor are no larger a share because another stood still meanwhile, or at another time.
#[test]
fn the_disturbed_share_is_that_of_the_processor_that_stood_still_most() {
    let mut both = record(&[(1_000, 1_300)], 0);
    both.disturbances.push(Disturbance {
        processor: ProcessorId(1),
        from: Instant::from_millis(1_100),
        to: Instant::from_millis(2_000),
    });
    assert_eq!(RunFacts::of([&both]).disturbed_ppm, 300_000);
}

/// Who may have been on any processor is excused by the halts of all: so much of the run is not judged.
#[test]
fn where_somebody_may_have_been_anywhere_the_disturbed_share_is_that_of_all_together() {
    let each = |ran: &[Whereabouts], wakeups| {
        let mut both = record(&[(1_000, 1_300)], wakeups);
        both.disturbances.push(Disturbance {
            processor: ProcessorId(1),
            from: Instant::from_millis(1_100),
            to: Instant::from_millis(1_600),
        });
        both.disturbances.push(Disturbance {
            processor: ProcessorId(1),
            from: Instant::from_millis(1_700),
            to: Instant::from_millis(1_710),
        });
        both.disturbances[1..].sort_by_key(|one| one.from);
        let usage = ran.iter().map(|ran| Usage {
            ran: *ran,
            ..Usage::default()
        });
        both.usage = usage.collect();
        both
    };
    let [on, anywhere] = [
        [Whereabouts::On(ProcessorId(0)), Whereabouts::Outside],
        [Whereabouts::On(ProcessorId(0)), Whereabouts::Anywhere],
    ];
    let ppm = |record: &RunRecord| RunFacts::of([record]).disturbed_ppm;
    assert_eq!(ppm(&each(&on, 0)), 170_000);
    assert_eq!(ppm(&each(&anywhere, 0)), 203_333);
    // By how often: twice of ten, of either alone or of both.
    assert_eq!(ppm(&each(&anywhere, 4)), 500_000);
    // Several runs, one after the other.
    let mut halts = Halts::of([&each(&on, 100)]);
    halts.merge(&Halts::of([&each(&anywhere, 100)]));
    let quiet = Halts::of([&record(&[], 1_000)]);
    halts.merge(&quiet);
    assert_eq!(halts.wakeups(), 1_200);
    assert_eq!(halts.ppm(), Some(135_555));
    let by_processor: Vec<_> = halts.by_processor().collect();
    let stood = |count, ms| Stood {
        count,
        total: Span::from_millis(ms),
    };
    let expected = [
        (ProcessorId(0), stood(2, 600)),
        (ProcessorId(1), stood(4, 1_020)),
    ];
    assert_eq!(by_processor, expected);
    // Commands, which are none of the program's activities.
    let mut beside = Halts::of([&each(&on, 0)]);
    beside.ran([Whereabouts::Anywhere]);
    assert_eq!(beside.ppm(), Some(203_333));
    assert_eq!(Halts::of([&record(&[], 0)]).ppm(), None, "nobody looked");
    assert_eq!(quiet.ppm(), Some(0));
}

#[test]
fn what_nobody_saw_of_a_run_leaves_its_verdict_open_from_one_percent_on() {
    let seen = observe(&[(Quantity::WAKEUP_GAP, &Phase::RUN, 50)]);
    let outcome = |unseen_ppm| {
        let facts = RunFacts {
            unseen_ppm,
            ..QUIET
        };
        judge(&gap_at_most(100), &seen, None, &facts).result
    };
    assert_eq!(outcome(10_000), Outcome::Met);
    assert_eq!(outcome(10_001), Outcome::Inconclusive);
}

#[test]
fn what_is_seen_once_of_fewer_than_fifty_times_is_held_against_it() {
    let facts = RunFacts {
        unseen: Span::from_nanos(1_000),
        ..QUIET
    };
    let outcome = |of: usize| {
        let mut seen = Observations::new();
        (1..of).for_each(|_| seen.record(Quantity::WAKEUP_GAP, &Phase::RUN, 90, false));
        seen.record(Quantity::WAKEUP_GAP, &Phase::RUN, 101, false);
        judge(&gap_at_most(100), &seen, None, &facts).result
    };
    assert_eq!(outcome(49), Outcome::Violated);
    assert_eq!(outcome(50), Outcome::Inconclusive);
}

#[test]
fn a_halt_that_nobody_sees_is_held_against_nobody_and_excuses_little() {
    let facts = RunFacts {
        unseen: Span::from_nanos(1_000),
        ..QUIET
    };
    let run = |values: &[u64]| {
        let mut seen = Observations::new();
        for value in [&[90; 50], values].concat() {
            seen.record(Quantity::WAKEUP_GAP, &Phase::RUN, value, false);
        }
        seen
    };
    let judged_met = |runs: &[Observations], facts, looks_ppm| {
        let verdict = judge_met(&gap_at_most(100), runs, &[], (facts, looks_ppm));
        (verdict.result, texts(&verdict))
    };
    let judged = |runs: &[Observations], facts| judged_met(runs, facts, 0);
    // What three runs show once; two runs do not tell.
    let once = "wakeup gap: maximum 1.099us, once: a halt of the machine of less than 1us is seen by nobody";
    let told = vec![format!("not judged: {once}")];
    let runs = [run(&[1_099]), run(&[]), run(&[])];
    assert_eq!(judged(&runs, &facts), (Outcome::Met, told.clone()));
    assert_eq!(judged(&runs[..2], &facts), (Outcome::Inconclusive, told));
    // Twice, in whatever phase; too long to be unseen; of a few; where nobody stands still.
    let mut elsewhere = run(&[]);
    elsewhere.record(Quantity::WAKEUP_GAP, &Phase::CONNECTED, 101, false);
    for more in [run(&[101]), elsewhere, run(&[1_100])] {
        let runs = [run(&[1_099]), more, run(&[])];
        assert_eq!(judged(&runs, &facts).0, Outcome::Violated);
    }
    let few = observe(&[(Quantity::WAKEUP_GAP, &Phase::RUN, 101)]);
    let few = [few.clone(), few.clone(), observe(&[])];
    assert_eq!(judged(&few[1..], &facts).0, Outcome::Violated);
    assert_eq!(judged(&runs, &QUIET).0, Outcome::Violated);
    // As often as it was seen to stand still for longer, or by chance more often: 2.02 of 202 in the mean, and three times 1.42 more. Two tell nothing then, nor do six, of however many runs; seven do.
    let judged = |runs: &[Observations]| judged_met(runs, &facts, 10_000);
    let four = |values: &[u64]| [run(values), run(&[1_099]), run(&[]), run(&[])];
    let told = "not judged: wakeup gap: maximum 1.099us, 2 of 202 beyond the bound: a halt of the machine of less than 1us is seen by nobody, and longer ones were seen";
    let told = (Outcome::Inconclusive, vec![told.to_owned()]);
    assert_eq!(judged(&four(&[101])), told);
    assert_eq!(judged(&four(&[101; 5])).0, Outcome::Inconclusive);
    assert_eq!(judged(&four(&[101; 6])).0, Outcome::Violated);
    // Of what is counted as missed, too, there is one verdict.
    let mut late = Observations::new();
    for value in [&[90; 50], &[101][..]].concat() {
        late.record(Quantity::RESPONSE_TIME, &Phase::RUN, value, false);
    }
    let (longest, bound) = (Statistic::Maximum, Bound::AtMost(100));
    let in_time = contract(Limit::new(Quantity::RESPONSE_TIME, longest, bound));
    let verdict = judge_met(&in_time, &[late, run(&[]), run(&[])], &[], (&facts, 10_000));
    assert_eq!(verdict.result, Outcome::Violated);
}

/// Runs that never came to it are none that show it.
#[test]
fn a_run_that_shows_nothing_excuses_no_other() {
    let facts = RunFacts {
        unseen: Span::from_nanos(1_000),
        ..QUIET
    };
    let mut seen = Observations::new();
    for value in [&[90; 50], &[1_099][..]].concat() {
        seen.record(Quantity::WAKEUP_GAP, &Phase::RUN, value, false);
    }
    let runs = [seen, Observations::new(), Observations::new()];
    let verdict = judge_met(&gap_at_most(100), &runs, &[], (&facts, 0));
    assert_eq!(verdict.result, Outcome::Inconclusive);
}

/// A tenth of a percentile, and what is compared with a control, may be the halts' that nobody saw like a maximum, where they were as many.
#[test]
fn a_percentile_of_what_halts_met_as_often_is_held_against_nobody() {
    let run = |late: usize| {
        let mut seen = Observations::new();
        for value in [vec![90; 1_000 - late], vec![150; late]].concat() {
            seen.record(Quantity::WAKEUP_GAP, &Phase::RUN, value, false);
        }
        seen
    };
    let facts = |disturbed_ppm| RunFacts {
        unseen: Span::from_nanos(1_000),
        disturbed_ppm,
        ..QUIET
    };
    let to_control = Bound::AtMostTimesControl {
        ratio_ppm: 1_050_000,
    };
    for statistic in [Statistic::Percentile(990_000), Statistic::Maximum] {
        for bound in [Bound::AtMost(100), to_control] {
            let limit = contract(Limit::new(Quantity::WAKEUP_GAP, statistic, bound));
            let told = format!("{statistic} {bound:?}");
            for disturbed_ppm in [10_001, 10_000, 100] {
                let facts = facts(disturbed_ppm);
                let outcome = |looks_ppm| {
                    judge_met(&limit, &[run(20)], &[run(0)], (&facts, looks_ppm)).result
                };
                // 10.46 of 1,000 in the mean, and three times 3.23 more: 20.16; and 19.97.
                assert_eq!(outcome(10_460), Outcome::Inconclusive, "{told}");
                assert_eq!(outcome(10_300), Outcome::Violated, "{told}");
            }
        }
    }
}

/// Budgets of `SCHED_DEADLINE` outrank who looks: halts that it cannot tell from them are as many as elsewhere.
#[test]
fn beside_budgets_what_halts_met_as_often_elsewhere_is_open_however_quiet_it_looked() {
    let run = |late: usize| {
        let mut seen = Observations::new();
        for value in [vec![1_000_000; 1_000 - late], vec![1_900_000; late]].concat() {
            seen.record(Quantity::WAKEUP_GAP, &Phase::RUN, value, false);
        }
        seen
    };
    let quiet = RunFacts {
        unseen: Span::from_micros(500),
        ..QUIET
    };
    let beside = quiet.clone().beside_budgets(Span::from_millis(16));
    let outcome = |statistic, runs: &[Observations], facts: &RunFacts, looks_ppm| {
        let bound = Bound::AtMost(1_100_000);
        let limit = contract(Limit::new(Quantity::WAKEUP_GAP, statistic, bound));
        judge_met(&limit, runs, &[], (facts, looks_ppm)).result
    };
    let tenth =
        |facts, looks_ppm| outcome(Statistic::Percentile(999_000), &[run(4)], facts, looks_ppm);
    // Late by more than lies between two looks, which is all that is unseen elsewhere.
    assert_eq!(tenth(&quiet, 4_000), Outcome::Violated);
    assert_eq!(tenth(&beside, 4_000), Outcome::Inconclusive);
    // One of 1,000 in the mean, and by chance as many as four; of 0.99 three.
    assert_eq!(tenth(&beside, 1_000), Outcome::Inconclusive);
    assert_eq!(tenth(&beside, 990), Outcome::Violated);
    // What three runs show once is not let pass, as a budget may do it as well.
    let thrice = [run(1), run(0), run(0)];
    let longest = outcome(Statistic::Maximum, &thrice, &beside, 0);
    assert_eq!(longest, Outcome::Inconclusive);
    // Where nothing hides.
    assert_eq!(QUIET.beside_budgets(Span::from_millis(16)), QUIET);
}

#[test]
fn where_nobody_looked_for_halts_values_convict_nobody() {
    let mut record = record(&[], 0);
    let unseen = |record: &RunRecord| Doubts::of([(record, [Whereabouts::Anywhere])]).halts_unseen;
    assert_eq!(unseen(&record), HaltsUnseen::None, "a twin");
    record.unwatched = true;
    assert_eq!(unseen(&record), HaltsUnseen::All);
}

/// A sum is of all values: that none of them is beyond its bound says nothing of it.
#[test]
fn a_sum_is_never_seldom_beyond_its_bound() {
    let mut seen = Observations::new();
    (0..60).for_each(|_| seen.record(Quantity::WAKEUP_GAP, &Phase::RUN, 2, false));
    let facts = RunFacts {
        unseen: Span::from_nanos(1_000),
        disturbed_ppm: 10_001,
        ..QUIET
    };
    let sum = Limit::new(Quantity::WAKEUP_GAP, Statistic::Total, Bound::AtMost(100));
    let verdict = judge_met(&contract(sum), &[seen], &[], (&facts, 10_000));
    assert_eq!(verdict.result, Outcome::Violated, "{:?}", texts(&verdict));
}

/// What every value of a phase breaks is no matter of how many values other phases have.
#[test]
fn what_a_phase_breaks_each_time_is_held_against_it() {
    let mut seen = Observations::new();
    let dialing = [(60, Phase::DIALING, 190), (10_000, Phase::CONNECTED, 90)];
    for (times, phase, value) in dialing {
        (0..times).for_each(|_| seen.record(Quantity::WAKEUP_GAP, &phase, value, false));
    }
    let facts = RunFacts {
        unseen: Span::from_nanos(1_000),
        disturbed_ppm: 10_001,
        ..QUIET
    };
    let (half, bound) = (Statistic::Percentile(500_000), Bound::AtMost(100));
    let limit = Limit {
        phases: Phases::Each,
        ..Limit::new(Quantity::WAKEUP_GAP, half, bound)
    };
    let verdict = judge_met(&contract(limit), &[seen], &[], (&facts, 10_000));
    assert_eq!(verdict.result, Outcome::Violated);
}

/// A halt of 0.15 ms excused whatever it fell into, a starvation of five seconds too.
#[test]
fn what_took_ten_times_as_long_as_the_halts_in_it_is_judged_without_them() {
    let halts = Disturbances::of_who_ran(
        &record(&[(10_000, 10_001)], 0),
        [Whereabouts::On(ProcessorId(0))],
    );
    let ms = Span::from_millis;
    let told = |lasted, from, to, held| {
        let span = [Instant::from_millis(from), Instant::from_millis(to)];
        halts.told_apart(ms(lasted), span, held)
    };
    assert_eq!(told(10, 9_995, 10_005, None), (ms(9), false));
    assert_eq!(told(9, 9_995, 10_004, None), (ms(9), true));
    assert_eq!(told(9, 10_002, 10_011, None), (ms(9), false));
    // Of who has 2 of 8 ms, such a halt delays what is done by 7 ms.
    let held = Reservation::new(Service::from_millis(2), ms(8)).ok();
    assert_eq!(told(69, 9_990, 10_059, held), (ms(69), true));
    assert_eq!(told(70, 9_990, 10_060, held), (ms(63), false));
}

/// A gap, and one where the machine stood still.
fn disturbed_gap(value: u64, disturbed: u64) -> Observations {
    let mut seen = observe(&[(Quantity::WAKEUP_GAP, &Phase::RUN, value)]);
    seen.record(Quantity::WAKEUP_GAP, &Phase::RUN, disturbed, true);
    seen
}

#[test]
fn too_much_disturbance_hides_success_but_not_failure() {
    let facts = |disturbed_ppm| RunFacts {
        disturbed_ppm,
        ..QUIET
    };
    for (value, disturbed_value, disturbed_ppm, result) in [
        (100, 101, 10_000, Outcome::Met),
        (100, 101, 10_001, Outcome::Inconclusive),
        (101, 101, 10_001, Outcome::Violated),
        // What holds of everything needs no excuse.
        (100, 100, 10_001, Outcome::Met),
    ] {
        let seen = disturbed_gap(value, disturbed_value);
        let verdict = judge(&gap_at_most(100), &seen, None, &facts(disturbed_ppm));
        assert_eq!(
            verdict.result, result,
            "{value} and {disturbed_value} at {disturbed_ppm} ppm"
        );
    }
}

/// A hold that nobody was found for may have been a stranger's: what it excuses is left open, what holds all the same is not, and what breaks without it
/// is broken.
#[test]
fn what_somebody_may_have_delayed_is_neither_met_nor_violated() {
    for (value, disturbed_value, doubts, result) in [
        (100, 101, 0, Outcome::Met),
        (100, 101, 1, Outcome::Inconclusive),
        (101, 101, 1, Outcome::Violated),
        (100, 100, 1, Outcome::Met),
    ] {
        let mut it = evidence(
            "it",
            ANYTHING,
            &[disturbed_gap(value, disturbed_value)],
            &[],
        );
        it.doubts.held = doubts;
        let verdict = judge_all(&gap_at_most(100), &[it], &QUIET);
        assert_eq!(
            verdict.result, result,
            "{value}, {disturbed_value}, {doubts}"
        );
        let told = texts(&verdict);
        let told = told
            .iter()
            .any(|text| text.starts_with("a processor was held once, and nobody"));
        assert_eq!(told, doubts > 0 && disturbed_value > 100);
    }
}

/// Of a few values the percentiles are the largest of them: one line says so. And two limits of what nobody saw find one thing.
#[test]
fn what_several_limits_find_alike_is_told_once() {
    let limit = |statistic| Limit::new(Quantity::WAKEUP_GAP, statistic, Bound::AtMost(100));
    let percentile = Statistic::Percentile(990_000);
    let all = Contract {
        limits: vec![limit(percentile), limit(Statistic::Maximum)],
        ..contract(limit(percentile))
    };
    let mut seen = observe(&[(Quantity::WAKEUP_GAP, &Phase::RUN, 90)]);
    seen.record(Quantity::WAKEUP_GAP, &Phase::RUN, 20_000_000, true);
    assert_eq!(
        texts(&judge(&all, &seen, None, &QUIET)),
        ["not judged: wakeup gap: maximum 20ms where the machine itself stood still"]
    );
    let told = texts(&judge(&pc99(), &Observations::new(), None, &QUIET));
    let mut once = told.clone();
    once.dedup();
    assert_eq!(told, once);
}

/// By what that takes, and not by how many do it.
#[test]
fn of_those_who_work_together_who_waits_for_longest_is_judged_by() {
    let works = |all: &[(u64, u64)]| Usage {
        above: all
            .iter()
            .map(|(service_ms, period_ms)| Work {
                service: Service::from_millis(*service_ms),
                period: Span::from_millis(*period_ms),
            })
            .collect(),
        ..Usage::default()
    };
    let mut record = record(&[(10, 12)], 0);
    record.usage = vec![works(&[(1, 100), (1, 100)]), works(&[(5, 10)]), works(&[])];
    let ids = [0, 1, 2].map(ActivityId);
    let all = Disturbances::of(&record, &ids);
    let span = [0, 50].map(Instant::from_millis);
    assert_eq!(all.delayed(span, None), Some(Span::from_millis(7)));
}

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
    let beside = known_in_part(&[100; 9], &[], &[5]);
    assert_eq!(beside(Minimum, AtLeast(100)), Met);
    assert_eq!(beside(Maximum, AtMost(100)), Met);
}
