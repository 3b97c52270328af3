use std::process::ExitStatus;

use super::*;
use laxity_model::ProcessorId;
use laxity_model::verify::contract::{
    Bound, Contract, Doubts, Evidence, Outcome, RunFacts, Statistic, Subject, Subjects, Verdict,
    judge,
};

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn ms(ms: u64) -> Service {
    Service::from_millis(ms)
}

/// One that runs until the run's end, which is from 100 to 300 ms.
fn running() -> CommandEnd {
    CommandEnd {
        name: "it".to_owned(),
        expected: 0,
        limits: Vec::new(),
        start: at(100),
        how: Ok(End {
            by_itself: None,
            service: None,
            keeper_was_stopped: false,
        }),
        stood: None,
        received: None,
        grade: None,
        ran: Whereabouts::On(ProcessorId(1)),
        reservation: None,
    }
}

/// The same, which took so much.
fn took(service: Service) -> CommandEnd {
    CommandEnd {
        how: Ok(End {
            by_itself: None,
            service: Some(service),
            keeper_was_stopped: false,
        }),
        ..running()
    }
}

/// One that ended with this status, as the kernel has it, when the machine had stood still for so long.
fn ended(status: i32, stood: Option<Span>) -> CommandEnd {
    let by_itself = Ended {
        status: ExitStatus::from_raw(status),
        at: at(200),
    };
    CommandEnd {
        how: Ok(End {
            by_itself: Some(by_itself),
            service: None,
            keeper_was_stopped: false,
        }),
        stood,
        ..running()
    }
}

fn seen(end: &CommandEnd, all: &[Disturbance], quantity: Quantity) -> Observed {
    let mut seen = Observations::new();
    end.observe(&mut seen, [at(100), at(300)], all);
    seen.whole(quantity)
}

/// The same, with these limits.
fn within(limits: &[Limit], end: CommandEnd) -> CommandEnd {
    CommandEnd {
        limits: limits.to_vec(),
        ..end
    }
}

fn maximum(quantity: Quantity, bound: Bound) -> Limit {
    Limit::new(quantity, Statistic::Maximum, bound)
}

/// What a contract says of these limits, if these are all runs, and these its control's.
fn verdict<const N: usize>(
    limits: &[Limit],
    runs: [CommandEnd; N],
    control: &[CommandEnd],
) -> Verdict {
    let observed = |end: &CommandEnd, control: &[&CommandEnd]| {
        let mut seen = Observations::new();
        end.observe(&mut seen, [at(100), at(300)], &[]);
        end.observe_end(&mut seen, control);
        seen
    };
    let beside: Vec<&CommandEnd> = control.iter().collect();
    let runs = runs.map(|end| within(limits, end));
    let evidence = Evidence {
        subject: Subject {
            name: "it".to_owned(),
            kind: kinds::COMMAND,
        },
        runs: runs.iter().map(|end| observed(end, &beside)).collect(),
        control: control.iter().map(|end| observed(end, &[])).collect(),
        grades: Vec::new(),
        phases_over: Vec::new(),
        doubts: Doubts::default(),
    };
    let contract = Contract {
        name: "kept".to_owned(),
        subjects: Subjects::All,
        limits: limits.to_vec(),
    };
    judge(&contract, &[evidence], &RunFacts::default())
}

fn judged<const N: usize>(
    limits: &[Limit],
    runs: [CommandEnd; N],
    control: &[CommandEnd],
) -> Outcome {
    verdict(limits, runs, control).result
}

fn limited(quantity: Quantity, bound: Bound, end: CommandEnd) -> CommandEnd {
    let limits = vec![Limit::new(quantity, Statistic::Maximum, bound)];
    CommandEnd { limits, ..end }
}

/// A processor stood still from 110 to 111 ms.
fn stood(processor: u16) -> Disturbance {
    Disturbance {
        processor: ProcessorId(processor),
        from: at(110),
        to: at(111),
    }
}

/// With a reservation, which gave its first thread so much, in these stretches.
fn reserved(service: Service, stretches: Vec<Stretch>, end: CommandEnd) -> CommandEnd {
    let delivery = Delivery {
        service,
        ..Delivery::default()
    };
    let one_of_five = Reservation::new(ms(1), Span::from_millis(5));
    CommandEnd {
        received: Some(Ok((delivery, stretches))),
        reservation: Some(one_of_five.expect("it fits")),
        ..end
    }
}

fn stretch(from_ms: u64, gap_ms: u64) -> Stretch {
    Stretch {
        from: at(from_ms),
        to: at(from_ms + 8),
        gap: Span::from_millis(gap_ms),
    }
}

#[test]
fn of_a_reservation_what_it_gave_in_the_run_is_judged_where_the_machine_did_not_stand_still() {
    let received = [
        stretch(2, 9),
        stretch(96, 6),
        stretch(104, 7),
        stretch(200, 5),
        stretch(301, 8),
    ];
    let end = CommandEnd {
        reservation: None,
        ..reserved(ms(40), received.to_vec(), running())
    };
    // What was seen where it does not run excuses nothing.
    let gaps = seen(&end, &[stood(0)], Quantity::SERVICE_GAP);
    assert_eq!(gaps.disturbed.count(), 0);
    let gaps = seen(&end, &[stood(1)], Quantity::SERVICE_GAP);
    let undisturbed = (gaps.undisturbed.count(), gaps.undisturbed.max());
    assert_eq!(undisturbed, (2, Some(6_000_000)));
    assert_eq!(gaps.disturbed.max(), Some(7_000_000));
    assert_eq!(end.figures().service_gap_unknown, None);
    let unseen = CommandEnd {
        received: Some(Err(Unknown("no account".to_owned()))),
        ..end
    };
    let why = unseen.figures().service_gap_unknown;
    assert_eq!(why.as_deref(), Some("no account"));
}

#[test]
fn what_its_first_thread_had_little_of_may_have_waited_all_the_time() {
    let gap = || vec![stretch(104, 3)];
    let possible = |end: &CommandEnd| seen(end, &[], Quantity::SERVICE_GAP).possible.max();
    let seen_by_all = Some((Span::from_millis(3) + UNCOUNTED).as_nanos());
    let all = reserved(ms(40), gap(), took(ms(42)));
    assert_eq!(possible(&all), seen_by_all);
    assert_eq!(all.notices().count(), 0);
    let told = "nobody saw 43ms of the 83ms of processor time that the kernel counted: the reservation is its first thread's alone";
    let not_known = "nobody knows how much of its processor time was its first thread's, which alone has the reservation";
    for (end, why) in [(took(ms(83)), told), (running(), not_known)] {
        let end = reserved(ms(40), gap(), end);
        assert_eq!(possible(&end), Some(200_000_000));
        assert_eq!(end.figures().service_gap_unknown.as_deref(), Some(why));
        let notices: Vec<String> = end.notices().collect();
        assert_eq!(notices, [format!("the command of `it`: {why}")]);
    }
    // Without a reservation there is nothing to compare with.
    assert_eq!(possible(&took(ms(83))), None);
}

#[test]
fn a_code_that_is_not_expected_is_not_judged_after_a_halt_unless_the_program_did_what_it_cannot() {
    let at_most_two = |end| limited(kinds::EXIT_CODE, Bound::AtMost(2), end);
    let halt = Some(Span::from_millis(12));
    // The status, whether a contract limits it, and whether it is judged after a halt; without one all are.
    let cases = [
        (0, false, true),
        (1 << 8, false, false),
        (1 << 8, true, true),
        (3 << 8, true, false),
        // SIGSEGV, by itself and as a shell says it; SIGKILL and SIGABRT may come of time.
        (11, false, true),
        (139 << 8, true, true),
        (9, true, false),
        (6, false, false),
    ];
    for (status, is_limited, is_judged) in cases {
        for (stood, is_judged) in [(None, true), (halt, is_judged)] {
            let end = ended(status, stood);
            let end = if is_limited { at_most_two(end) } else { end };
            let codes = seen(&end, &[], kinds::EXIT_CODE);
            let (judged, left) = (codes.undisturbed.count(), codes.disturbed.count());
            let expected = if is_judged { (1, 0) } else { (0, 1) };
            assert_eq!((judged, left), expected, "{status} after {stood:?}");
            assert_eq!(end.may_be_machines(), !is_judged);
        }
    }
    let why = "the command of `it` ended with exit code 3 100ms after the start; the machine stood still for 12ms before that, and may be why";
    let judged = at_most_two(ended(3 << 8, halt));
    let notices: Vec<String> = judged.notices().collect();
    assert_eq!(notices, [format!("{why}: not judged")]);
    assert_eq!(judged.failure(), None);
    let failed = ended(3 << 8, halt);
    assert_eq!(failed.failure().as_deref(), Some(why));
    assert_eq!(failed.notices().count(), 0);
    let without = ended(3 << 8, None).failure();
    assert_eq!(
        without.as_deref(),
        why.split_once(';').map(|(before, _)| before)
    );
}

#[test]
fn of_a_run_those_halts_count_that_began_before_it_ended_and_where_it_ran() {
    let mut record = RunRecord::empty(at(100), at(300));
    let ran = Whereabouts::On(ProcessorId(1));
    for (processor, halted) in [(0, None), (1, Some(Span::from_millis(1)))] {
        record.disturbances = vec![stood(processor)];
        assert_eq!(stood_still(&ended(0, None).how, ran, &record), halted);
        assert_eq!(stood_still(&running().how, ran, &record), halted);
    }
    record.disturbances[0].from = at(210);
    record.disturbances[0].to = at(212);
    assert_eq!(stood_still(&ended(0, None).how, ran, &record), None);
    let until_end = stood_still(&running().how, ran, &record);
    assert_eq!(until_end, Some(Span::from_millis(2)));
}

#[test]
fn a_limit_of_processor_time_convicts_where_it_is_broken_by_more_than_the_machine_stood_still() {
    let at_least = |least| Bound::AtLeast(ms(least).as_nanos());
    let at_most = |most| Bound::AtMost(ms(most).as_nanos());
    let cases = [
        (at_least(90), true),
        (at_least(102), false),
        (at_least(103), true),
        (at_most(110), true),
        (at_most(98), false),
        (at_most(97), true),
    ];
    for (bound, is_judged) in cases {
        for (halts, is_judged) in [(None, true), (Some(Span::from_millis(2)), is_judged)] {
            let end = limited(kinds::PROCESSOR_TIME, bound, took(ms(100)));
            let end = CommandEnd {
                stood: halts,
                ..end
            };
            let found = seen(&end, &[], kinds::PROCESSOR_TIME);
            let judged = found.disturbed.is_empty();
            assert_eq!(judged, is_judged, "{bound:?} after {halts:?}");
        }
    }
}

/// Runs that were undisturbed keep a limit that the one may have broken by a halt: that it may is what is known.
#[test]
fn what_a_halt_excuses_in_one_run_leaves_all_of_them_open() {
    let halt = Some(Span::from_millis(2));
    let none = [maximum(kinds::EXIT_CODE, Bound::AtMost(0))];
    let codes = |first, stood| {
        let rest = || ended(0, None);
        judged(&none, [ended(first, stood), rest(), rest()], &[])
    };
    assert_eq!(codes(1 << 8, halt), Outcome::Inconclusive);
    assert_eq!(codes(1 << 8, None), Outcome::Violated);
    assert_eq!(codes(0, halt), Outcome::Met);
    let found = verdict(&none, [ended(1 << 8, halt), ended(0, None)], &[]);
    let why = "not judged: exit code: maximum 1 where the machine itself stood still";
    let reasons = found.reasons.iter().map(ToString::to_string);
    assert_eq!(reasons.collect::<Vec<_>>(), [why]);

    let most = [maximum(
        kinds::PROCESSOR_TIME,
        Bound::AtMost(ms(98).as_nanos()),
    )];
    let took_first = |first| {
        let stood = CommandEnd {
            stood: halt,
            ..took(ms(first))
        };
        judged(&most, [took(ms(90)), stood, took(ms(90))], &[])
    };
    assert_eq!(took_first(98), Outcome::Met);
    assert_eq!(took_first(100), Outcome::Inconclusive);
    assert_eq!(took_first(101), Outcome::Violated);
}

/// Of who was not seen there is no gap that is known: many short ones of its first thread do not outvote the long one that it may have had.
#[test]
fn what_was_seen_of_the_first_thread_says_nothing_of_what_was_not() {
    let short = |used| {
        let gaps = (100..299).map(|from| stretch(from, 3));
        reserved(ms(40), gaps.collect(), took(ms(used)))
    };
    let most = Bound::AtMost(Span::from_millis(10).as_nanos());
    for statistic in [Statistic::Percentile(990_000), Statistic::Maximum] {
        let limits = [Limit::new(Quantity::SERVICE_GAP, statistic, most)];
        assert_eq!(judged(&limits, [short(42)], &[]), Outcome::Met);
        assert_eq!(judged(&limits, [short(83)], &[]), Outcome::Inconclusive);
    }
}

#[test]
fn an_exit_code_beside_a_control_is_left_open_where_it_is_larger_after_a_halt_and_else_judged() {
    let halt = Some(Span::from_millis(2));
    let same = Bound::AtMostTimesControl {
        ratio_ppm: 1_000_000,
    };
    let limits = [maximum(kinds::EXIT_CODE, same)];
    let control = [ended(0, None)];
    for (status, stood, expected) in [
        (0, halt, Outcome::Met),
        (1 << 8, halt, Outcome::Inconclusive),
        (1 << 8, None, Outcome::Violated),
        (11, halt, Outcome::Violated),
    ] {
        let found = judged(&limits, [ended(status, stood)], &control);
        assert_eq!(found, expected, "{status} after {stood:?}");
    }
    // Who has no control has nothing that it breaks.
    let found = judged(&limits, [ended(0, halt)], &[]);
    assert_eq!(found, Outcome::Inconclusive);
}

/// One that took so many milliseconds, where the machine stood still for so many.
fn took_beside([service, halts]: [u64; 2]) -> CommandEnd {
    CommandEnd {
        stood: Some(Span::from_millis(halts)).filter(|halts| !halts.is_zero()),
        ..took(ms(service))
    }
}

fn times_control(ratio_ppm: u32) -> Limit {
    let bound = Bound::AtMostTimesControl { ratio_ppm };
    maximum(kinds::PROCESSOR_TIME, bound)
}

/// What a halt took from either, or was counted as its own.
#[test]
fn processor_time_beside_a_control_convicts_where_halts_of_both_do_not_account_for_it() {
    // What it took, and for how long the machine stood; the same of its control.
    for (own, control, expected) in [
        ([104, 2], [100, 0], Outcome::Met),
        ([105, 0], [100, 0], Outcome::Violated),
        ([105, 2], [100, 0], Outcome::Inconclusive),
        ([106, 2], [100, 0], Outcome::Inconclusive),
        ([107, 2], [100, 0], Outcome::Violated),
        ([105, 0], [100, 1], Outcome::Inconclusive),
    ] {
        let limits = [times_control(1_040_000)];
        let found = judged(&limits, [took_beside(own)], &[took_beside(control)]);
        assert_eq!(found, expected, "{own:?} {control:?}");
    }
    // An absolute limit is excused by itself, and breaks by itself.
    for (most, ratio_ppm, expected) in [
        (104, 1_100_000, Outcome::Inconclusive),
        (102, 1_040_000, Outcome::Violated),
    ] {
        let most = Bound::AtMost(ms(most).as_nanos());
        let most = maximum(kinds::PROCESSOR_TIME, most);
        let limits = [most, times_control(ratio_ppm)];
        let found = judged(&limits, [took_beside([105, 2])], &[took(ms(100))]);
        assert_eq!(found, expected, "{limits:?}");
    }
    // One run that a halt excuses convicts nobody, and acquits nobody either.
    for (other, expected) in [(104, Outcome::Met), (105, Outcome::Violated)] {
        let runs = [took_beside([105, 2]), took(ms(other))];
        let found = judged(&[times_control(1_040_000)], runs, &[took(ms(100))]);
        assert_eq!(found, expected, "{other}");
    }
}

#[test]
fn a_signal_is_expected_by_the_code_that_a_shell_says_for_it() {
    for stood in [None, Some(Span::from_millis(2))] {
        let killed = |expected| CommandEnd {
            expected,
            ..ended(9, stood)
        };
        assert_eq!(killed(137).failure(), None, "{stood:?}");
        assert!(!killed(137).may_be_machines());
        assert!(killed(0).failure().is_some());
        assert_eq!(killed(0).may_be_machines(), stood.is_some());
    }
}
