//! Threads by priority: response times against theory, preemption, round robin, boosts.

mod common;

use common::*;
use laxity_model::policy::bands::BandsConfig;
use laxity_model::{
    ActivityId, Context, EventKind, Program, RunEnd, RunRecord, Service, Span, Step,
};
use laxity_sim::{Costs, Profile};

/// Rate-monotonic tasks (C, T), the first with the shortest period, as threads of priority 31 downwards.
fn rate_monotonic(tasks: &[(Service, Span)], length: Span) -> RunRecord {
    let mut program = Program::new(1);
    for (index, (work, period)) in tasks.iter().enumerate() {
        let done = program.mark("done");
        program.add(
            "task",
            CPU,
            thread(31 - index as u8),
            periodic(*period, *work, done),
        );
    }
    run(Profile::IDEAL, program, length.as_nanos() / 1_000_000)
}

/// The response times of an activity's jobs, in nanoseconds.
fn responses(record: &RunRecord, who: u16) -> Vec<u64> {
    let own = record
        .events
        .iter()
        .filter(|event| event.activity == ActivityId(who));
    own.filter(|event| matches!(event.kind, EventKind::Mark(_)))
        .map(|event| event.args[1])
        .collect()
}

/// The worst response time by the classic recurrence R = C + Σ ⌈R / T⌉ C over higher priorities.
fn worst_response(tasks: &[(Service, Span)], index: usize) -> u64 {
    let own = tasks[index].0.as_nanos();
    let mut response = own;
    loop {
        let higher = tasks[..index].iter();
        let interference: u64 = higher
            .map(|(work, period)| response.div_ceil(period.as_nanos()) * work.as_nanos())
            .sum();
        if own + interference == response {
            return response;
        }
        response = own + interference;
    }
}

#[test]
fn s10_has_the_worst_response_times_of_theory() {
    let tasks: Vec<_> = (1..=10)
        .map(|n| (work(800 * n), Span::from_millis(10 * n)))
        .collect();
    let record = rate_monotonic(&tasks, Span::from_secs(100));
    for index in 0..tasks.len() {
        let measured = responses(&record, index as u16).into_iter().max();
        assert_eq!(
            measured,
            Some(worst_response(&tasks, index)),
            "task {index}"
        );
    }
    assert_eq!(responses(&record, 0).len(), 10_000);
    assert_eq!(responses(&record, 0).into_iter().max(), Some(800_000));
}

/// A set that fills the processor to the last nanosecond, with periods no float holds: no deadline is missed, and none seems to be.
#[test]
fn a_full_processor_misses_no_deadline_by_rounding() {
    let third = Span::from_nanos(300_000);
    let tasks = [(work(100), third), (work(200), third)];
    let record = rate_monotonic(&tasks, Span::from_secs(1));
    for who in 0..2 {
        let responses = responses(&record, who);
        assert_eq!(
            responses.iter().filter(|r| **r > third.as_nanos()).count(),
            0
        );
        assert!(responses.len() >= 3_333);
    }
    assert_eq!(
        record.usage[0].service + record.usage[1].service,
        Service::from_secs(1)
    );
}

#[test]
fn a_waking_thread_preempts_lower_ones_only() {
    let mut program = Program::new(1);
    program.add(
        "middle",
        CPU,
        thread(20),
        script(&[Step::Charge(work(10_000))]),
    );
    let sleeper = |wake| [Step::SleepUntil(ms(wake)), Step::Charge(work(1_000))];
    program.add("higher", CPU, thread(21), script(&sleeper(2)));
    program.add("lower", CPU, thread(19), script(&sleeper(5)));
    let record = run(Profile::IDEAL, program, 100);
    assert_eq!(record.ended_by, RunEnd::AllFinished);
    assert_eq!(record.end, ms(12));
    assert_eq!(
        occurrences(&record, EventKind::Finish),
        [(3_000, 1), (11_000, 0), (12_000, 2)]
    );
    assert_eq!(occurrences(&record, EventKind::Preempt), [(2_000, 0)]);
    let switches: Vec<_> = record
        .usage
        .iter()
        .map(|usage| (usage.voluntary_switches, usage.involuntary_switches))
        .collect();
    // The lower one first runs at 11 ms, when nothing is left to wait for.
    assert_eq!(switches, [(0, 1), (1, 0), (0, 0)]);
}

#[test]
fn equals_share_the_processor_a_quantum_each() {
    let mut program = Program::new(1);
    for _ in 0..3 {
        program.add("spinner", CPU, thread(8), spinner());
    }
    let record = run(Profile::IDEAL, program, 600);
    let shares: Vec<_> = record.usage.iter().map(|usage| usage.service).collect();
    assert_eq!(shares, [Service::from_millis(200); 3]);
    let turns: Vec<_> = occurrences(&record, EventKind::Dispatch)
        .into_iter()
        .take(4)
        .collect();
    assert_eq!(turns, [(0, 0), (20_000, 1), (40_000, 2), (60_000, 0)]);
}

#[test]
fn yielding_passes_the_processor_to_equals_and_is_voluntary() {
    let mut program = Program::new(1);
    let polite = [
        Step::Charge(work(100)),
        Step::Yield,
        Step::Charge(work(100)),
    ];
    program.add("first", CPU, thread(8), script(&polite));
    program.add("second", CPU, thread(8), script(&polite));
    let record = run(Profile::IDEAL, program, 10);
    let turns = occurrences(&record, EventKind::Dispatch);
    assert_eq!(turns, [(0, 0), (100, 1), (200, 0), (300, 1)]);
    assert_eq!(record.usage[0].voluntary_switches, 1);
    assert_eq!(record.usage[0].involuntary_switches, 0);
}

/// When a thread of priority 8, which waits since before a spinner of its priority began, has done 0.1 ms of work after its wake-up at 5 ms.
fn woken_beside_a_spinner(bands: BandsConfig, by_signal: bool) -> Option<u64> {
    let mut program = Program::new(1);
    let semaphore = program.semaphore(0);
    let wait = match by_signal {
        true => Step::Wait(semaphore),
        false => Step::SleepUntil(ms(5)),
    };
    let waiter = program.add(
        "waiter",
        CPU,
        thread(8),
        script(&[wait, Step::Charge(work(100))]),
    );
    program.add("spinner", CPU, thread(8), spinner());
    let mut slept = false;
    program.add(
        "waker",
        CPU,
        thread(24),
        move |context: &mut dyn Context| {
            if slept {
                context.signal(semaphore);
                return Step::Finish;
            }
            slept = true;
            Step::SleepUntil(ms(5))
        },
    );
    let record = run(
        Profile {
            bands,
            ..Profile::IDEAL
        },
        program,
        100,
    );
    let finished = occurrences(&record, EventKind::Finish);
    let own = finished.into_iter().find(|(_, who)| *who == waiter.0);
    own.map(|(at, _)| at)
}

#[test]
fn a_signal_boosts_past_an_equal_and_a_timer_does_not() {
    // Without a boost the spinner's quantum has to end first.
    let late = Some(20_100);
    assert_eq!(
        woken_beside_a_spinner(BandsConfig::WINDOWS_2000, true),
        Some(5_100)
    );
    assert_eq!(
        woken_beside_a_spinner(BandsConfig::WINDOWS_2000, false),
        late
    );
    assert_eq!(woken_beside_a_spinner(BandsConfig::PLAIN, true), late);
}

#[test]
fn a_switch_is_paid_for_by_nobody_in_particular() {
    let costs = Costs {
        context_switch: Span::from_micros(10),
        ..Costs::NONE
    };
    let profile = Profile {
        costs,
        ..Profile::IDEAL
    };
    let mut program = Program::new(1);
    program.add("one", CPU, thread(9), script(&[Step::Charge(work(100))]));
    program.add("two", CPU, thread(8), script(&[Step::Charge(work(100))]));
    let record = run(profile, program, 10);
    assert_eq!(
        occurrences(&record, EventKind::Finish),
        [(110, 0), (220, 1)]
    );
    assert_eq!(record.usage[0].service, work(100));
}

#[test]
fn processors_do_not_hinder_each_other_and_signals_cross_them() {
    let mut program = Program::new(2);
    let semaphore = program.semaphore(0);
    let sends = times(3, Step::Charge(work(1_000)), move |c| c.signal(semaphore));
    program.add("sender", CPU, thread(8), sends);
    let mark = program.mark("received");
    let other = laxity_model::ProcessorId(1);
    let receives = times(3, Step::Wait(semaphore), move |c| c.mark(mark, [0; 2]));
    program.add("receiver", other, thread(8), receives);
    let record = run(Profile::IDEAL, program, 10);
    let marks = occurrences(&record, EventKind::Mark(mark));
    assert_eq!(marks, [(1_000, 1), (2_000, 1), (3_000, 1)]);
    assert_eq!(record.ended_by, RunEnd::AllFinished);
}
