mod behind;
mod ends;

use super::*;
use laxity_model::executor::pacing::OnOverrun;
use laxity_model::verify::contract::Observations;
use laxity_model::{ActivityId, Mark, ProcessorId, RunRecord, Service, Usage};

const RUNS: Mark = Mark(0);

fn probe() -> PeriodicProbe {
    PeriodicProbe {
        subject: Subject {
            name: "task".into(),
            kind: crate::periodic::KIND,
        },
        thread: ActivityId(0),
        activity: ActivityId(0),
        runs: RUNS,
        ends: None,
        is_successor: false,
        first: First::AfterAPeriod,
        period: Span::from_millis(10),
        on_overrun: OnOverrun::SKIP,
        may_stop: false,
        deadline: Span::from_millis(10),
        service: Service::from_millis(2),
    }
}

fn event(at_ms: u64, kind: EventKind, args_ms: [u64; 2]) -> Event {
    Event {
        at: Instant::from_millis(at_ms),
        kind,
        processor: ProcessorId(0),
        activity: ActivityId(0),
        args: args_ms.map(|ms| Instant::from_millis(ms).as_nanos()),
    }
}

fn record(events: Vec<Event>, end_ms: u64) -> RunRecord {
    RunRecord {
        events,
        usage: vec![Usage::default()],
        ..RunRecord::empty(Instant::ZERO, Instant::from_millis(end_ms))
    }
}

/// The values of a quantity in milliseconds, sorted; times are exact to 1/128.
fn values(record: &RunRecord, quantity: Quantity) -> Vec<u64> {
    values_of(&probe(), record, quantity)
}

/// All that is seen of a record, read as this says.
fn seen(probe: &PeriodicProbe, record: &RunRecord, run: Run<'_>) -> Observations {
    let mut reader = Box::new(PeriodicReader::new(probe, run));
    for event in &record.events {
        reader.take(event, &Phase::RUN);
    }
    reader.finish(probe.subject.clone()).quantities
}

fn values_of(probe: &PeriodicProbe, record: &RunRecord, quantity: Quantity) -> Vec<u64> {
    let seen = seen(probe, record, Run::of(record)).whole(quantity);
    let scale = match quantity.unit() {
        laxity_model::verify::contract::Unit::Nanoseconds => 1_000_000.0,
        laxity_model::verify::contract::Unit::Count => 1.0,
    };
    let raw = seen.raw();
    let each = raw.buckets().flat_map(|bucket| {
        let value = (bucket.low as f64 / scale).round() as u64;
        std::iter::repeat_n(value, usize::try_from(bucket.count).unwrap())
    });
    each.collect()
}

use EventKind::{Block, Dispatch, Preempt, Wake};

#[test]
fn a_preempted_job_shows_its_gaps_and_its_response() {
    let events = vec![
        event(0, Dispatch, [0, 0]),
        event(0, Block, [0, 0]),
        event(10, Wake, [10, 0]),
        event(11, Dispatch, [0, 0]),
        event(11, EventKind::Mark(RUNS), [10, 11]),
        event(12, Preempt, [0, 0]),
        event(16, Dispatch, [0, 0]),
        event(17, Block, [0, 0]),
    ];
    let record = record(events, 20);
    assert_eq!(values(&record, Quantity::RESPONSE_TIME), [7]);
    assert_eq!(values(&record, Quantity::SERVICE_GAP), [0, 1, 4]);
    assert_eq!(values(&record, Quantity::DEADLINE_MISSES), [0]);
}

#[test]
fn releases_that_never_ran_have_missed_their_deadlines() {
    let late = vec![
        event(10, EventKind::Mark(RUNS), [10, 10]),
        event(45, Block, [0, 0]),
        event(50, EventKind::Mark(RUNS), [50, 50]),
        event(52, Block, [0, 0]),
    ];
    // Those at 10, 20, 30 and 40 ms were missed, that at 50 was not.
    let record = record(late, 60);
    assert_eq!(values(&record, Quantity::DEADLINE_MISSES), [0, 1, 1, 1, 1]);
}

/// An overrun is the job's that was at work, a missed release is nobody's; both are told of each.
#[test]
fn overruns_and_the_releases_that_they_cost_are_told_apart() {
    let late = vec![
        event(10, EventKind::Mark(RUNS), [10, 10]),
        event(20, Block, [0, 0]),
        event(20, EventKind::Mark(RUNS), [20, 20]),
        event(45, Block, [0, 0]),
        // Once late.
        event(45, EventKind::Mark(RUNS), [40, 45]),
        event(52, Block, [0, 0]),
    ];
    let record = record(late, 95);
    // That at 20 ms was at work at 30 and 40, and that at 40 at 50.
    assert_eq!(values(&record, Quantity::JOB_OVERRUNS), [0, 1, 1]);
    // That at 30 ms, and those at 50 to 80: that at 90 may still come.
    let missed = [0, 0, 0, 1, 1, 1, 1, 1];
    assert_eq!(values(&record, Quantity::RELEASES_MISSED), missed);
}

/// What is released a phase after the run began, and not a period, missed nothing before.
#[test]
fn a_first_release_is_where_it_was_asked_for() {
    let epoch = laxity_model::program::upcall::Epoch::default();
    for (first, missed) in [
        (First::After(epoch.clone(), Span::from_millis(42)), vec![]),
        (First::At(Instant::from_millis(2)), vec![2, 12, 22, 32]),
        (First::After(epoch, Span::from_millis(22)), vec![22, 32]),
        (First::AfterAPeriod, vec![10, 20, 30]),
    ] {
        let probe = PeriodicProbe { first, ..probe() };
        let events = vec![
            event(42, EventKind::Mark(RUNS), [42, 42]),
            event(43, Block, [0, 0]),
        ];
        let seen = values_of(&probe, &record(events, 45), Quantity::RELEASES_MISSED);
        let seen = seen.into_iter().sum::<u64>();
        // One of an unknown phase may have been the first itself.
        let sure = missed.iter().filter(|release| **release <= 42 - 20).count() as u64;
        assert_eq!(seen, sure, "{missed:?}");
    }
}

#[test]
fn a_job_that_the_end_finds_waiting_counts_as_far_as_it_got() {
    let events = vec![
        event(10, EventKind::Mark(RUNS), [10, 10]),
        event(12, Block, [0, 0]),
        event(20, Wake, [20, 0]),
    ];
    let record = record(events, 45);
    assert_eq!(values(&record, Quantity::RESPONSE_TIME), [2, 25]);
    assert_eq!(values(&record, Quantity::SERVICE_GAP), [10, 25]);
    // Those at 20 and 30 ms; that at 40 may still have met it.
    assert_eq!(values(&record, Quantity::DEADLINE_MISSES), [0, 1, 1]);
}

/// Nobody sees a thread wake that gets no processor, but for the host that looks on from outside.
#[test]
fn a_task_that_never_runs_again_waits_to_the_end() {
    let events = vec![
        event(10, Dispatch, [0, 0]),
        event(10, EventKind::Mark(RUNS), [10, 10]),
        event(12, Block, [0, 0]),
    ];
    let record = record(events, 55);
    assert_eq!(values(&record, Quantity::DEADLINE_MISSES), [0, 1, 1, 1]);
    assert_eq!(values(&record, Quantity::RESPONSE_TIME), [2, 35]);
    assert_eq!(values(&record, Quantity::WAKEUP_LATENCY), [0, 35]);
    assert_eq!(values(&record, Quantity::WAKEUP_GAP), [45]);
    assert_eq!(values(&record, Quantity::SERVICE_GAP), [10, 35]);
}

#[test]
fn a_job_that_ends_after_its_deadline_has_missed_it_before_the_next_release() {
    let events = vec![
        event(10, EventKind::Mark(RUNS), [10, 10]),
        event(13, Block, [0, 0]),
        event(20, EventKind::Mark(RUNS), [20, 21]),
        event(24, Block, [0, 0]),
        // It is at work at the end, and is due by 33.
        event(30, EventKind::Mark(RUNS), [30, 30]),
    ];
    let probe = PeriodicProbe {
        deadline: Span::from_millis(3),
        ..probe()
    };
    let misses = |end_ms| {
        let record = record(events.clone(), end_ms);
        values_of(&probe, &record, Quantity::DEADLINE_MISSES)
    };
    assert_eq!(misses(33), [0, 1]);
    assert_eq!(misses(34), [0, 1, 1]);
}

#[test]
fn jobs_are_counted_in_windows_when_they_end_from_the_first_release_on() {
    let jobs = [10, 20, 30, 70].map(|due| {
        let run = event(due, EventKind::Mark(RUNS), [due, due]);
        [run, event(due + 2, Block, [0, 0])]
    });
    let record = record(jobs.concat(), 80);
    let window = |quantity: Quantity| quantity.in_every(Span::from_millis(30)).unwrap();
    let windows = [Quantity::JOBS_DONE, Quantity::DEADLINE_MISSES].map(window);
    let run = Run {
        windows: &windows,
        ..Run::of(&record)
    };
    let probe = probe();
    let seen = seen(&probe, &record, run);
    let extremes = windows.map(|window| {
        let sums = seen.whole(window).undisturbed;
        sums.min().zip(sums.max())
    });
    // Nothing ends after 32 and before 72; those of 40, 50 and 60 never ran.
    assert_eq!(extremes, [Some((0, 3)), Some((0, 3))]);
}

#[test]
fn a_task_that_never_runs_misses_all_its_deadlines() {
    let record = record(Vec::new(), 45);
    assert_eq!(values(&record, Quantity::JOBS_DONE), [0]);
    assert_eq!(values(&record, Quantity::DEADLINE_MISSES), [1, 1, 1]);
    assert_eq!(values(&record, Quantity::RESPONSE_TIME), [35]);
    assert_eq!(values(&record, Quantity::WAKEUP_LATENCY), [35]);
    assert_eq!(values(&record, Quantity::SERVICE_GAP), [45]);
}

#[test]
fn a_short_standstill_excuses_only_the_job_in_whose_time_it_was() {
    let mut record = record(Vec::new(), 45);
    record.disturbances = vec![laxity_model::Disturbance {
        processor: ProcessorId(0),
        from: Instant::from_millis(24),
        to: Instant::from_millis(25),
    }];
    let probe = probe();
    let seen =
        Box::new(PeriodicReader::new(&probe, Run::of(&record))).finish(probe.subject.clone());
    let misses = seen.quantities.whole(Quantity::DEADLINE_MISSES);
    assert_eq!(
        (misses.undisturbed.count(), misses.disturbed.count()),
        (2, 1)
    );
    let response = seen.quantities.whole(Quantity::RESPONSE_TIME);
    assert_eq!(response.undisturbed.count(), 1);
}

/// How many deadlines were missed undisturbed and not where the job due at 10 ms ends then, the machine stood still for so long from 11 ms on, that
/// due at 50 ms is done at once, and that due at 60 ms keeps the one due at 70 ms from running.
fn misses_after_a_standstill(
    ended_ms: u64,
    stood_us: u64,
    reservation: Option<Reservation>,
) -> [u64; 2] {
    let jobs = [(10, ended_ms), (50, 52), (60, 75), (80, 82)].map(|(due, ended)| {
        let run = event(due, EventKind::Mark(RUNS), [due, due]);
        [run, event(ended, Block, [0, 0])]
    });
    let mut record = record(jobs.concat(), 85);
    let from = Instant::from_millis(11);
    record.disturbances = vec![laxity_model::Disturbance {
        processor: ProcessorId(0),
        from,
        to: from + Span::from_micros(stood_us),
    }];
    let probe = probe();
    let run = Run {
        reservation,
        ..Run::of(&record)
    };
    let seen = seen(&probe, &record, run);
    let misses = seen.whole(Quantity::DEADLINE_MISSES);
    [misses.undisturbed, misses.disturbed].map(|misses| u64::try_from(misses.sum()).unwrap())
}

#[test]
fn a_job_hands_down_the_lateness_of_a_standstill_and_no_more() {
    // Those at 60 and 70 ms are missed whatever was before: the one at 50 ms was in time.
    let misses = misses_after_a_standstill;
    // It would have been done by 26.1 ms, late, after 20 ms and before 30 and 40 ms.
    assert_eq!(misses(45, 18_900, None), [4, 2]);
    assert_eq!(
        misses(25, 8_900, None),
        [4, 2],
        "of 20 ms; 30 and 40 ms came later"
    );
    // By 44 ms: it was late of itself.
    assert_eq!(misses(45, 1_000, None), [6, 0]);
    // The same with 2 ms in every 8 ms: what it lost it may have had 7 ms later.
    let reservation = Reservation::new(Service::from_millis(2), Span::from_millis(8));
    assert_eq!(misses(45, 1_000, reservation.ok()), [5, 1]);
}

#[test]
fn a_halt_excuses_no_miss_that_it_did_not_cause() {
    let probe = PeriodicProbe {
        period: Span::from_millis(100),
        deadline: Span::from_millis(20),
        ..probe()
    };
    // When the job due at 100 ms ends, if it does; from when, and for how long, the machine stood still; and whether its miss is judged.
    let table = [
        (Some(190), 101, 150, true),
        (Some(121), 101, 1_500, false),
        (Some(121), 120, 500, true),
        (Some(122), 99, 2_000, false),
        (Some(130), 125, 10_000, true),
        (None, 101, 150, true),
        (None, 110, 60_000, true),
        (None, 110, 70_000, false),
    ];
    for (ended, halt, stood_us, is_judged) in table {
        let mut events = vec![event(100, EventKind::Mark(RUNS), [100, 100])];
        events.extend(ended.map(|ended| event(ended, Block, [0, 0])));
        let mut record = record(events, 190);
        let from = Instant::from_millis(halt);
        record.disturbances = vec![laxity_model::Disturbance {
            processor: ProcessorId(0),
            from,
            to: from + Span::from_micros(stood_us),
        }];
        let mut reader = Box::new(PeriodicReader::new(&probe, Run::of(&record)));
        for event in &record.events {
            reader.take(event, &Phase::RUN);
        }
        let seen = reader.finish(probe.subject.clone()).quantities;
        let misses = seen.whole(Quantity::DEADLINE_MISSES);
        let misses = [misses.undisturbed, misses.disturbed].map(|misses| misses.sum());
        assert_eq!(misses[0] == 1, is_judged, "{ended:?} {halt} {stood_us}");
        assert_eq!(misses[0] + misses[1], 1, "{ended:?} {halt} {stood_us}");
    }
}

#[test]
fn windows_over_releases_that_a_standstill_excuses_are_not_judged() {
    let jobs = [(10, 45), (50, 52), (60, 62), (70, 72), (80, 82)].map(|(due, ended)| {
        let run = event(due, EventKind::Mark(RUNS), [due, due]);
        [run, event(ended, Block, [0, 0])]
    });
    let mut record = record(jobs.concat(), 90);
    record.disturbances = vec![laxity_model::Disturbance {
        processor: ProcessorId(0),
        from: Instant::from_millis(11),
        to: Instant::from_micros(29_900),
    }];
    let done = Quantity::JOBS_DONE.in_every(Span::from_millis(20)).unwrap();
    let run = Run {
        windows: &[done],
        ..Run::of(&record)
    };
    let probe = probe();
    let mut reader = Box::new(PeriodicReader::new(&probe, run));
    for event in &record.events {
        reader.take(event, &Phase::RUN);
    }
    let seen = reader.finish(probe.subject.clone()).quantities.whole(done);
    // Nothing was done from 30 to 45 ms, as those due at 20, 30 and 40 ms never ran.
    assert_eq!(seen.undisturbed.min(), Some(2));
    assert_eq!(seen.disturbed.min(), Some(0));
}

#[test]
fn what_passed_before_a_task_first_ran_was_missed() {
    // It first ran at 37 ms, and its first job was due at 47.
    let events = vec![
        event(47, EventKind::Mark(RUNS), [47, 47]),
        event(49, Block, [0, 0]),
    ];
    let record = record(events, 50);
    // Those that were to be done by 20 and by 30 ms.
    assert_eq!(values(&record, Quantity::DEADLINE_MISSES), [0, 1, 1]);
}

#[test]
fn where_preemptions_leave_no_event_a_job_counts_as_one_gap() {
    let events = vec![
        event(10, Wake, [10, 0]),
        event(10, Dispatch, [0, 0]),
        event(10, EventKind::Mark(RUNS), [10, 10]),
        event(17, Block, [0, 0]),
    ];
    let mut record = record(events, 20);
    record.usage[0].involuntary_switches = 2;
    assert_eq!(values(&record, Quantity::SERVICE_GAP), [5]);
}

/// That it yields to others on its executor tells nothing of who took the thread's processor.
#[test]
fn on_an_executor_preemptions_of_the_task_are_not_those_of_its_thread() {
    let events = vec![
        event(10, Wake, [10, 0]),
        event(10, Dispatch, [0, 0]),
        event(10, EventKind::Mark(RUNS), [10, 10]),
        event(12, Preempt, [0, 0]),
        event(13, Dispatch, [0, 0]),
        event(17, Block, [0, 0]),
    ];
    let mut record = record(events, 20);
    record.usage.push(Usage {
        involuntary_switches: 2,
        ..Usage::default()
    });
    let on_executor = PeriodicProbe {
        thread: ActivityId(1),
        ..probe()
    };
    let gaps = values_of(&on_executor, &record, Quantity::SERVICE_GAP);
    assert_eq!(gaps, [5]);
}
