//! Verdicts: the rules of the judge one by one, and PC 99 on the numbers of the modem study.

mod crawls;
mod halts;
mod known;
mod looks;
mod phases;
mod seldom;
mod subjects;
mod windows;

use laxity_model::verify::contract::{
    Bound, Cause, Contract, Doubts, Evidence, Expectation, Finding, HaltsUnseen, Kind, Limit,
    Observations, Outcome, Phase, Phases, Quantity, RunFacts, Severity, Statistic, Subject,
    Subjects, Unjudged, Verdict, as_expected, judge as judge_all, pc99,
};
use laxity_model::{Disturbance, Grade, Instant, ProcessorId, RunRecord, Span};
use proptest::prelude::*;

const QUIET: RunFacts = RunFacts {
    events_lost: 0,
    disturbed_ppm: 0,
    unseen_ppm: 0,
    unseen: Span::ZERO,
};

/// Things that go missing.
const LOST: Quantity = Quantity::events("samples_lost");

/// A component of which everything can be seen.
const ANYTHING: Kind = Kind {
    name: "anything",
    quantities: &[
        Quantity::INTERRUPT_TIME,
        Quantity::DEFERRED_TIME,
        Quantity::INTERRUPT_PERIOD,
        Quantity::WAKEUP_LATENCY,
        Quantity::WAKEUP_GAP,
        Quantity::RESPONSE_TIME,
        Quantity::THREAD_PRIORITY,
        LOST,
    ],
};

/// One of which only response times can be seen.
const TASK: Kind = Kind {
    name: "task",
    quantities: &[Quantity::RESPONSE_TIME],
};

fn evidence(name: &str, kind: Kind, runs: &[Observations], control: &[Observations]) -> Evidence {
    Evidence {
        subject: Subject {
            name: name.into(),
            kind,
        },
        runs: runs.to_vec(),
        control: control.to_vec(),
        grades: Vec::new(),
        phases_over: Vec::new(),
        doubts: Doubts::default(),
    }
}

/// Judges the runs of a program with one component.
fn judge_runs(
    contract: &Contract,
    runs: &[Observations],
    control: &[Observations],
    facts: &RunFacts,
) -> Verdict {
    judge_all(contract, &[evidence("it", ANYTHING, runs, control)], facts)
}

/// Judges one run, with one control run or none.
fn judge(
    contract: &Contract,
    run: &Observations,
    control: Option<&Observations>,
    facts: &RunFacts,
) -> Verdict {
    let control = control.map_or(&[][..], std::slice::from_ref);
    judge_runs(contract, std::slice::from_ref(run), control, facts)
}

fn observe(values: &[(Quantity, &Phase, u64)]) -> Observations {
    let mut seen = Observations::new();
    for (quantity, phase, value) in values {
        seen.record(*quantity, phase, *value, false);
    }
    seen
}

fn contract(limit: Limit) -> Contract {
    Contract {
        name: "test".into(),
        subjects: Subjects::All,
        limits: vec![limit],
    }
}

fn gap_at_most(bound: u64) -> Contract {
    let bound = Bound::AtMost(bound);
    contract(Limit::new(Quantity::WAKEUP_GAP, Statistic::Maximum, bound))
}

fn texts(verdict: &Verdict) -> Vec<String> {
    verdict.reasons.iter().map(ToString::to_string).collect()
}

/// A connected modem as the study saw it, in milliseconds where not said otherwise: handler time, deferred time in µs.
fn modem(handler_us: u64, deferred_us: Option<u64>) -> Observations {
    let mut seen = Observations::new();
    let periods_us = [
        (Phase::ON_HOOK, 2_500),
        (Phase::DIALING, 12_500),
        (Phase::TRAINING, 11_250),
        (Phase::CONNECTED, 13_125),
    ];
    for (phase, period_us) in periods_us {
        seen.record(Quantity::INTERRUPT_PERIOD, &phase, period_us * 1_000, false);
        seen.record(Quantity::INTERRUPT_TIME, &phase, handler_us * 1_000, false);
        if let Some(deferred_us) = deferred_us {
            seen.record(Quantity::DEFERRED_TIME, &phase, deferred_us * 1_000, false);
        }
    }
    seen
}

/// Of three seconds, in which the first processor stood still from and to these milliseconds.
fn record(stretches: &[(u64, u64)], wakeups: u64) -> RunRecord {
    let at = Instant::from_millis;
    RunRecord {
        disturbances: stretches
            .iter()
            .map(|(from, to)| Disturbance {
                processor: ProcessorId(0),
                from: at(*from),
                to: at(*to),
            })
            .collect(),
        witness_wakeups: wakeups,
        ..RunRecord::empty(at(0), at(3_000))
    }
}

/// One long stretch is one late wake-up, and a third of the run all the same.
#[test]
fn what_was_disturbed_counts_by_time_and_by_wake_ups() {
    let share = |record| RunFacts::of([&record]).disturbed_ppm;
    assert_eq!(share(record(&[(1_000, 2_000)], 2_000)), 333_333);
    assert_eq!(
        share(record(&[(1_000, 1_001), (2_000, 2_001)], 20)),
        100_000
    );
    assert_eq!(share(record(&[], 0)), 0);
}

#[test]
fn pc99_is_violated_by_processing_in_the_handler() {
    let verdict = judge(&pc99(), &modem(3_312, None), None, &QUIET);
    assert_eq!(verdict.result, Outcome::Violated);
    let texts = texts(&verdict);
    let said = "interrupt time in phase connected: maximum 3.312ms exceeds 100us (33.1 times)";
    assert!(texts.iter().any(|text| text == said), "{texts:?}");
    assert!(as_expected(&verdict, Expectation::Violated));
    assert!(!as_expected(&verdict, Expectation::Met));
}

#[test]
fn pc99_is_violated_by_processing_in_a_deferred_call() {
    let verdict = judge(&pc99(), &modem(16, Some(1_840)), None, &QUIET);
    let phases: Vec<&Phase> = verdict
        .reasons
        .iter()
        .filter_map(|reason| match &reason.cause {
            Cause::Values {
                quantity: Quantity::DEFERRED_TIME,
                phase,
                finding: Finding::Exceeded { .. },
            } => phase.as_ref(),
            other => panic!("{other}"),
        })
        .collect();
    assert_eq!(verdict.result, Outcome::Violated);
    assert_eq!(phases.len(), 4);
}

#[test]
fn pc99_is_met_by_a_thread_and_only_advises_on_its_priority() {
    let mut seen = modem(16, Some(20));
    seen.record(Quantity::THREAD_PRIORITY, &Phase::CONNECTED, 24, false);
    let verdict = judge(&pc99(), &seen, None, &QUIET);
    assert_eq!(verdict.result, Outcome::Met);
    assert_eq!(
        texts(&verdict),
        ["advisory: thread priority in phase connected: minimum 24 is below 28"]
    );
}

#[test]
fn without_deferred_calls_pc99_holds_if_interrupts_were_seen() {
    assert_eq!(
        judge(&pc99(), &modem(16, None), None, &QUIET).result,
        Outcome::Met
    );
    let blind = judge(&pc99(), &Observations::new(), None, &QUIET);
    assert_eq!(blind.result, Outcome::Inconclusive);
    assert!(texts(&blind).contains(&"deferred time: nothing was observed".to_owned()));
}

#[test]
fn the_interrupt_period_binds_only_off_hook() {
    let mut seen = modem(16, None);
    seen.record(
        Quantity::INTERRUPT_PERIOD,
        &Phase::DIALING,
        2_999_999,
        false,
    );
    seen.record(
        Quantity::INTERRUPT_PERIOD,
        &Phase::CONNECTED,
        16_000_001,
        false,
    );
    let verdict = judge(&pc99(), &seen, None, &QUIET);
    let texts = texts(&verdict);
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(
        texts[0].starts_with("interrupt period in phase dialing: minimum 2.999ms is below 3ms")
    );
    assert!(texts[1].starts_with(
        "interrupt period in phase connected: maximum 16.000001ms exceeds 16.000000ms"
    ));
}

#[test]
fn a_bound_is_kept_by_equality_and_broken_by_one_more() {
    for (value, result) in [(100, Outcome::Met), (101, Outcome::Violated)] {
        let seen = observe(&[(Quantity::WAKEUP_GAP, &Phase::RUN, value)]);
        assert_eq!(judge(&gap_at_most(100), &seen, None, &QUIET).result, result);
    }
}

#[test]
fn a_lost_event_leaves_everything_inconclusive() {
    let facts = RunFacts {
        events_lost: 1,
        ..QUIET
    };
    for value in [100, 101] {
        let seen = observe(&[(Quantity::WAKEUP_GAP, &Phase::RUN, value)]);
        let verdict = judge(&gap_at_most(100), &seen, None, &facts);
        assert_eq!(verdict.result, Outcome::Inconclusive);
        assert!(texts(&verdict).contains(&"1 event was lost".to_owned()));
    }
}

#[test]
fn a_limit_relative_to_a_control_is_never_beyond_disturbance() {
    let seen = observe(&[(Quantity::WAKEUP_GAP, &Phase::RUN, 100)]);
    let limit = Limit::new(
        Quantity::WAKEUP_GAP,
        Statistic::Maximum,
        Bound::AtMostTimesControl {
            ratio_ppm: 1_050_000,
        },
    );
    let facts = RunFacts {
        disturbed_ppm: 10_001,
        ..QUIET
    };
    let verdict = judge(&contract(limit), &seen, Some(&seen), &facts);
    assert_eq!(verdict.result, Outcome::Inconclusive);
}

#[test]
fn disturbed_evidence_is_mentioned_and_never_judged() {
    let mut seen = observe(&[(Quantity::WAKEUP_GAP, &Phase::RUN, 90)]);
    seen.record(Quantity::WAKEUP_GAP, &Phase::RUN, 20_000_000, true);
    let verdict = judge(&gap_at_most(100), &seen, None, &QUIET);
    assert_eq!(verdict.result, Outcome::Met);
    assert_eq!(
        texts(&verdict),
        ["not judged: wakeup gap: maximum 20ms where the machine itself stood still"]
    );
    // Only disturbed evidence is no evidence, and nothing at all is told apart from that.
    let mut only = Observations::new();
    for nothing in ["nothing was observed", "nothing undisturbed was observed"] {
        let verdict = judge(&gap_at_most(100), &only, None, &QUIET);
        assert_eq!(verdict.result, Outcome::Inconclusive);
        assert_eq!(texts(&verdict), [format!("wakeup gap: {nothing}")]);
        let bound = Bound::AtMostTimesControl { ratio_ppm: 1 };
        let limit = contract(Limit::new(Quantity::WAKEUP_GAP, Statistic::Maximum, bound));
        let compared = texts(&judge(&limit, &seen, Some(&only), &QUIET));
        assert_eq!(
            compared,
            [format!("wakeup gap: {nothing} in a control run")]
        );
        only.record(Quantity::WAKEUP_GAP, &Phase::RUN, 90, true);
    }
}

#[test]
fn an_unenforced_grant_is_a_violation_that_names_the_interfering_task() {
    let seen = observe(&[(Quantity::WAKEUP_GAP, &Phase::RUN, 1)]);
    let grade = Grade::Unenforced {
        reason: "`rogue` (SCHED_FIFO 90) is not below the slots".into(),
    };
    let mut holder = evidence("it", ANYTHING, &[seen], &[]);
    holder.grades = vec![("other".into(), Grade::Enforced), ("modem".into(), grade)];
    let verdict = judge_all(&gap_at_most(100), &[holder], &QUIET);
    assert_eq!(verdict.result, Outcome::Violated);
    assert_eq!(
        texts(&verdict),
        ["unenforced: the reservation of modem: `rogue` (SCHED_FIFO 90) is not below the slots"]
    );
}

/// What was seen only where the machine stood still was seen: the limit does not hold for want of anything to see.
#[test]
fn nothing_is_held_unseen_that_a_disturbance_showed() {
    let limit = Limit::new(
        Quantity::DEFERRED_TIME,
        Statistic::Maximum,
        Bound::AtMost(100),
    );
    let limit = limit.holds_unseen_with(Quantity::INTERRUPT_TIME);
    let mut seen = observe(&[(Quantity::INTERRUPT_TIME, &Phase::RUN, 1)]);
    let contract = contract(limit);
    let judged = |seen: &Observations| judge(&contract, seen, None, &QUIET).result;
    assert_eq!(judged(&seen), Outcome::Met);
    seen.record(Quantity::DEFERRED_TIME, &Phase::RUN, 90, true);
    assert_eq!(judged(&seen), Outcome::Inconclusive);
}

#[test]
fn a_ratio_needs_a_control_and_is_multiplied_out() {
    let bound = Bound::AtMostTimesControl {
        ratio_ppm: 1_050_000,
    };
    let limit = contract(Limit::new(Quantity::WAKEUP_GAP, Statistic::Maximum, bound));
    let control = observe(&[(Quantity::WAKEUP_GAP, &Phase::RUN, 1_000_000)]);
    // The control has no modem, so its phases differ; over the whole run that does not matter.
    let with = |value| observe(&[(Quantity::WAKEUP_GAP, &Phase::CONNECTED, value)]);
    let judged = |value| judge(&limit, &with(value), Some(&control), &QUIET);
    assert_eq!(judged(1_050_000).result, Outcome::Met);
    let broken = judged(1_050_001);
    assert_eq!(broken.result, Outcome::Violated);
    assert_eq!(
        texts(&broken),
        ["wakeup gap: maximum 1.050001ms exceeds 1.050000ms, 1.050 times the control's"]
    );
    assert_eq!(
        judge(&limit, &with(1), None, &QUIET).result,
        Outcome::Inconclusive
    );
}

#[test]
fn a_ratio_is_broken_in_every_run_and_an_absolute_bound_in_any() {
    let runs = |maxima: &[u64]| -> Vec<Observations> {
        let run = |value: &u64| observe(&[(Quantity::WAKEUP_GAP, &Phase::RUN, *value)]);
        maxima.iter().map(run).collect()
    };
    let bound = Bound::AtMostTimesControl {
        ratio_ppm: 1_100_000,
    };
    let ratio = contract(Limit::new(Quantity::WAKEUP_GAP, Statistic::Maximum, bound));
    let control = runs(&[100, 90, 110, 95, 105]);
    for (maxima, result) in [
        ([9_000, 9_000, 121], Outcome::Met),
        ([9_000, 122, 9_000], Outcome::Violated),
    ] {
        let verdict = judge_runs(&ratio, &runs(&maxima), &control, &QUIET);
        assert_eq!(verdict.result, result, "{maxima:?}");
    }
    let broken = judge_runs(&ratio, &runs(&[130, 122]), &control, &QUIET);
    assert_eq!(
        texts(&broken),
        ["wakeup gap: maximum 122ns exceeds 121ns, 1.100 times the control's"]
    );
    let absolute = judge_runs(&gap_at_most(100), &runs(&[1, 1, 101]), &[], &QUIET);
    assert_eq!(absolute.result, Outcome::Violated);
    let none = judge_runs(&gap_at_most(100), &[], &[], &QUIET);
    assert_eq!(none.result, Outcome::Inconclusive);
}

#[test]
fn advisory_limits_decide_nothing() {
    let limit = Limit::new(Quantity::WAKEUP_GAP, Statistic::Maximum, Bound::AtMost(1)).advisory();
    assert_eq!(limit.severity, Severity::Advisory);
    let limit = contract(limit);
    let seen = observe(&[(Quantity::WAKEUP_GAP, &Phase::RUN, 2)]);
    assert_eq!(judge(&limit, &seen, None, &QUIET).result, Outcome::Met);
    assert_eq!(
        judge(&limit, &Observations::new(), None, &QUIET).result,
        Outcome::Met
    );
}

/// Values up to 1/128 apart are counted together. Where a bound lies between them nobody is convicted by what another of them was, nor acquitted.
#[test]
fn a_percentile_counted_with_values_beyond_the_bound_is_left_open() {
    let values = [2_509_812, 2_511_000, 2_515_000, 2_600_000];
    let values = values.map(|value| (Quantity::RESPONSE_TIME, &Phase::RUN, value));
    let half = Statistic::Percentile(500_000);
    let result = |bound| {
        let limit = Limit::new(Quantity::RESPONSE_TIME, half, bound);
        judge(&contract(limit), &observe(&values), None, &QUIET)
    };
    let open = result(Bound::AtMost(2_512_000));
    assert_eq!(open.result, Outcome::Inconclusive);
    let said = "not judged: response time: p50 is between 2.509ms and 2.523ms, as the bound is: values so near are counted together";
    assert_eq!(texts(&open), [said]);
    for (bound, expected) in [
        (Bound::AtMost(2_523_135), Outcome::Met),
        (Bound::AtMost(2_509_000), Outcome::Violated),
        (Bound::AtLeast(2_509_812), Outcome::Met),
        (Bound::AtLeast(2_512_000), Outcome::Inconclusive),
        (Bound::AtLeast(2_524_000), Outcome::Violated),
    ] {
        assert_eq!(result(bound).result, expected, "{bound:?}");
    }
}

#[test]
fn percentiles_print_as_people_say_them() {
    let said = |ppm| Statistic::Percentile(ppm).to_string();
    assert_eq!(said(500_000), "p50");
    assert_eq!(said(999_000), "p99.9");
    assert_eq!(said(999_990), "p99.999");
    assert_eq!(said(50), "p0.005");
}

proptest! {
    /// The verdict of one required limit, against the rules written out over the plain list.
    #[test]
    fn the_judge_agrees_with_the_rules(
        values in prop::collection::vec((0_u64..200, any::<bool>()), 0..20),
        bound in 0_u64..200,
        at_least in any::<bool>(),
        events_lost in prop_oneof![4 => Just(0_u64), 1 => Just(7)],
        disturbed_ppm in prop_oneof![Just(0_u32), Just(10_000), Just(10_001)],
        grade in prop_oneof![4 => Just("enforced"), 1 => Just("uncertain"), 1 => Just("unenforced")],
    ) {
        let mut seen = Observations::new();
        for (value, disturbed) in &values {
            seen.record(Quantity::RESPONSE_TIME, &Phase::RUN, *value, *disturbed);
        }
        let (statistic, limit) = if at_least {
            (Statistic::Minimum, Bound::AtLeast(bound))
        } else {
            (Statistic::Maximum, Bound::AtMost(bound))
        };
        let reason = String::from("x");
        let (grade, unenforced, uncertain) = match grade {
            "unenforced" => (Grade::Unenforced { reason }, true, false),
            "uncertain" => (Grade::Uncertain { reason }, false, true),
            _ => (Grade::Enforced, false, false),
        };
        let facts = RunFacts { events_lost, disturbed_ppm, ..QUIET };
        let mut it = evidence("it", ANYTHING, &[seen], &[]);
        it.grades = vec![("a".into(), grade)];
        let verdict = judge_all(&contract(Limit::new(Quantity::RESPONSE_TIME, statistic, limit)), &[it], &facts);

        let judged: Vec<u64> = values.iter().filter(|(_, disturbed)| !disturbed).map(|(v, _)| *v).collect();
        let breaks = |v: u64| if at_least { v < bound } else { v > bound };
        let broken = judged.iter().any(|v| breaks(*v));
        let expected = if events_lost > 0 {
            Outcome::Inconclusive
        } else if broken || unenforced {
            Outcome::Violated
        } else if uncertain || judged.is_empty() || (disturbed_ppm > 10_000 && values.iter().any(|(v, _)| breaks(*v))) {
            Outcome::Inconclusive
        } else {
            Outcome::Met
        };
        prop_assert_eq!(verdict.result, expected);
        // Whatever is not met says why.
        prop_assert!(verdict.result == Outcome::Met || verdict.reasons.iter().any(|r| r.implies().is_some()));
    }
}
