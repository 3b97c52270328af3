//! Small runs, every event of them, as they were once read and found right; and equal runs, equal bytes.

mod common;

use common::*;
use laxity_model::{
    Context, EventKind, Instant, InterruptLevel, Outside, Placement, Program, Reservation,
    RunRecord, Service, Span, Step, TimeConstraint,
};
use laxity_sim::{Profile, Recording, Twin};

/// A device whose interrupt queues a deferred call, which wakes a thread, beside a spinner and a reserved thread: everything once.
fn everything() -> Program {
    let mut program = Program::new(1);
    let (line, job) = (program.semaphore(0), program.semaphore(0));
    let done = program.mark("done");
    let mut next = Instant::ZERO;
    let device = move |context: &mut dyn Context| {
        if !next.is_zero() {
            context.signal(line);
        }
        next += Span::from_millis(3);
        Step::SleepUntil(next)
    };
    let level = Placement::Interrupt(InterruptLevel(4));
    program.add("device", CPU, level, device);
    let mut armed = false;
    let deferred = move |context: &mut dyn Context| {
        if armed {
            context.signal(job);
        }
        armed = true;
        Step::Wait(line)
    };
    program.add("deferred", CPU, Placement::Deferred, deferred);
    let mut state = 0;
    let driver = move |context: &mut dyn Context| {
        state += 1;
        match state {
            1 => Step::Wait(job),
            2 => Step::Charge(work(900)),
            _ => {
                context.mark(done, [context.now().as_nanos(), state]);
                state = 1;
                Step::Wait(job)
            }
        }
    };
    program.add("driver", CPU, thread(24), driver);
    let one_of_five = Reservation::new(Service::from_millis(1), Span::from_millis(5));
    let one_of_five = one_of_five.expect("possible sums");
    let steps = [Step::Charge(work(1_500)), Step::EndReservation];
    program.push(reserved(9, one_of_five, Outside::Confined, script(&steps)));
    program.add("spinner", CPU, thread(8), spinner());
    program
}

#[test]
fn everything_once_on_the_study_s_host() {
    let record = run(Profile::WIN2000_PII450, everything(), 10);
    insta::assert_snapshot!("everything_win2000", table(&record));
}

#[test]
fn everything_once_on_an_ideal_machine() {
    let record = run(Profile::IDEAL, everything(), 10);
    insta::assert_snapshot!("everything_ideal", table(&record));
}

/// A holder that asks for another reservation and for time constraints, beside another holder and a spinner.
fn requests() -> Program {
    let mut program = Program::new(1);
    let every = |service_us, period_ms| {
        let (service, period) = (work(service_us), Span::from_millis(period_ms));
        Reservation::new(service, period).expect("possible sums")
    };
    let constraint = |from_ms, service_us| {
        let start = Instant::from_millis(from_ms);
        TimeConstraint::new(start, start + Span::from_millis(4), work(service_us))
            .expect("possible times")
    };
    let steps = [
        Step::ChangeReservation(every(4_000, 5)),
        Step::ChangeReservation(every(2_000, 8)),
        Step::BeginConstraint(constraint(11, 3_900)),
        Step::BeginConstraint(constraint(11, 2_500)),
        Step::Burn(work(6_000)),
        Step::EndConstraint,
        Step::Finish,
    ];
    let asking = script(&steps);
    program.push(reserved(9, every(1_000, 5), Outside::Confined, asking));
    let other = script(&[Step::Burn(work(100_000))]);
    program.push(reserved(8, every(1_500, 6), Outside::Confined, other));
    program.add("spinner", CPU, thread(8), spinner());
    program
}

#[test]
fn a_change_and_a_time_constraint_on_an_ideal_machine() {
    let record = run(Profile::IDEAL, requests(), 30);
    insta::assert_snapshot!("requests_ideal", table(&record));
}

#[test]
fn every_kind_that_a_twin_records_is_in_the_golden_runs() {
    let records = [
        run(Profile::IDEAL, everything(), 10),
        run(Profile::IDEAL, requests(), 30),
    ];
    let events = records.iter().flat_map(|record| &record.events);
    let seen = |kind| events.clone().any(|event| event.kind == kind);
    let kinds = (0..).map_while(EventKind::from_code);
    let unseen: Vec<_> = kinds.filter(|kind| !seen(*kind)).collect();
    // Only a live host has a witness that can be disturbed, or held up; packets are recorded by a driver, and no program here is one.
    assert_eq!(
        unseen,
        [
            EventKind::Disturbed,
            EventKind::Held,
            EventKind::Stopped,
            EventKind::Crawled,
            EventKind::Arrive,
            EventKind::NoBuffer,
            EventKind::Receive,
            EventKind::Deliver,
            EventKind::Transmit,
            EventKind::Complete,
        ]
    );
}

#[test]
fn equal_programs_give_equal_records_on_any_number_of_threads() {
    let alone = run(Profile::WIN2000_PII450, everything(), 5_000);
    let again: Vec<RunRecord> = std::thread::scope(|scope| {
        let run = || run(Profile::WIN2000_PII450, everything(), 5_000);
        let runs: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        runs.into_iter().filter_map(|run| run.join().ok()).collect()
    });
    assert_eq!(again.len(), 4);
    let words = |record: &RunRecord| -> Vec<[u64; 4]> {
        record.events.iter().map(|event| event.to_words()).collect()
    };
    for record in again {
        assert_eq!(words(&record), words(&alone));
        assert_eq!(record, alone);
    }
}

#[test]
fn what_is_recorded_does_not_change_what_happens() {
    let usage = |recording| {
        let mut twin = Twin::new(Profile::WIN2000_PII450).recording(recording);
        let record = laxity_model::Host::admit_and_run(&mut twin, everything(), Span::from_secs(1));
        let record = record.expect("the program is right");
        (record.usage, record.events.len() as u64, record.events_lost)
    };
    let (all, events, lost) = usage(Recording::ALL);
    let (none, no_events, _) = usage(Recording::NONE);
    let (some, hundred, rest) = usage(Recording::ALL.at_most(100));
    assert_eq!(all, none);
    assert_eq!(all, some);
    assert_eq!((lost, no_events, hundred, rest), (0, 0, 100, events - 100));
    let in_order = run(Profile::IDEAL, everything(), 1_000).events;
    assert!(in_order.is_sorted_by_key(|event| event.at));
}
