//! Whose fault: verdicts on the traces of a small machine that is simple enough to be obviously right, and whose calls can be cut short to
//! see what really would have happened.

mod machine;
mod random;
mod reserved;

use laxity_model::verify::attribution::{
    Allowance, Declared, Fault, Findings, Holder, Jobs, Question, Rule, Rules, Victim, attribute,
};
use laxity_model::{
    ActivityId, Event, EventKind, Instant, Mark, Priority, ProcessorId, Reservation, Service, Span,
};
use proptest::prelude::*;

use machine::{BEGIN, Call, Class, END, Machine, VICTIM};

const DEADLINE_US: u64 = 10_000;
const WORK_US: u64 = 2_000;

fn victim() -> Victim {
    Victim {
        activity: ActivityId(VICTIM),
        device: None,
        jobs: Jobs::Marks {
            begin: BEGIN,
            release: 0,
            end: END,
            service: None,
        },
        deadline: Span::from_micros(DEADLINE_US),
        work: Service::from_micros(WORK_US),
    }
}

fn findings(calls: &[Call], declared: &[Declared]) -> Findings {
    let question = Question {
        victim: victim(),
        declared,
        rules: Rules {
            slack: Span::ZERO,
            ..Rules::PC99
        },
    };
    attribute(&Machine::run(calls), &question)
}

/// What is found in a trace of the victim, by the usual rules, if nobody declares anything.
fn asked_of(events: &[Event]) -> Findings {
    let question = Question {
        victim: victim(),
        declared: &[],
        rules: Rules::PC99,
    };
    attribute(events, &question)
}

fn call(class: Class, who: u16, at: u64, work: u64) -> Call {
    Call {
        class,
        who,
        at,
        work,
    }
}

/// A job every 10 ms, 2 ms each.
fn jobs(count: u64) -> Vec<Call> {
    (1..=count)
        .map(|n| call(Class::Victim, VICTIM, n * DEADLINE_US, WORK_US))
        .collect()
}

fn names(findings: &Findings) -> Vec<Holder> {
    findings.named.iter().map(|named| named.who).collect()
}

fn handler(who: u16) -> Holder {
    Holder::Handler(ActivityId(who))
}

fn deferred(who: u16) -> Holder {
    Holder::Deferred(ActivityId(who))
}

fn thread(who: u16) -> Holder {
    Holder::Thread(ActivityId(who))
}

#[test]
fn nobody_is_blamed_where_nothing_is_late() {
    let mut calls = jobs(5);
    calls.push(call(Class::Handler, 1, 21_000, 7_000));
    let findings = findings(&calls, &[]);
    assert_eq!((findings.jobs, findings.late.len()), (5, 0));
    assert_eq!(findings.named, []);
    // The rule was broken all the same, and is told.
    let breach = findings.breaches[0];
    assert_eq!(
        (breach.who, breach.rule, breach.times),
        (handler(1), Rule::LongHandler, 1)
    );
    assert_eq!(breach.longest, Span::from_millis(7));
}

#[test]
fn a_handler_that_keeps_interrupts_off_is_named_for_every_job_it_delays() {
    let mut calls = jobs(10);
    calls.push(call(Class::Handler, 1, 20_500, 40_000));
    // Two that keep the rules, among them one that runs just then.
    calls.extend((0..100).map(|n| call(Class::Handler, 2, n * 1_000, 50)));
    calls.push(call(Class::Deferred, 3, 62_000, 500));
    let findings = findings(&calls, &[]);
    assert_eq!(names(&findings), [handler(1)]);
    assert!(findings.late.len() >= 4, "{:?}", findings.late.len());
    let first = &findings.late[0];
    assert_eq!(first.release, Instant::from_millis(20));
    let Fault::InterferingTasks(interfering) = &first.fault else {
        panic!("{:?}", first.fault);
    };
    assert!(interfering[0].suffices && interfering[0].needed);
    assert_eq!(interfering[0].excess, Span::from_micros(39_900));
    // Lateness is handed on: the job of 60 ms was released when the handler had almost gone.
    let last = findings.late.last().expect("some are late");
    assert_eq!(last.chain_from, Instant::from_millis(20));
}

#[test]
fn two_are_both_named_if_both_are_needed_and_if_each_suffices() {
    // 2 ms of the job and 5 ms of one leave it in time; 9 ms of one do not.
    for (each, suffices) in [(5_000, true), (9_000, false), (20_000, false)] {
        let mut calls = jobs(1);
        calls.push(call(Class::Deferred, 1, 10_100, each));
        calls.push(call(Class::Deferred, 2, 10_200, each));
        let findings = findings(&calls, &[]);
        let mut named = names(&findings);
        named.sort();
        assert_eq!(named, [deferred(1), deferred(2)], "{each}");
        let Fault::InterferingTasks(interfering) = &findings.late[0].fault else {
            panic!("{:?}", findings.late[0]);
        };
        for task in interfering {
            assert_eq!(
                (task.suffices, task.needed),
                (suffices, !suffices),
                "{each}"
            );
        }
    }
}

#[test]
fn a_thread_above_is_an_interfering_task_if_it_declared_nothing_or_less() {
    let mut calls = jobs(4);
    calls.push(call(Class::Above, 1, 20_500, 15_000));
    let everything_declared = |per_job| {
        let allowance = Allowance {
            per_job: Service::from_micros(per_job),
            apart: None,
        };
        [
            Declared::default(),
            Declared {
                allowance: Some(allowance),
                priority: None,
            },
        ]
    };
    let undeclared = findings(&calls, &[]);
    assert_eq!(names(&undeclared), [thread(1)]);
    assert_eq!(undeclared.named[0].rule, Rule::Undeclared);
    let overrun = findings(&calls, &everything_declared(1_000));
    assert_eq!(overrun.named[0].rule, Rule::Budget);
    // What it declared was granted: too much was.
    let kept = findings(&calls, &everything_declared(15_000));
    assert_eq!(kept.named, []);
    assert!(kept.late.iter().all(|job| job.fault == Fault::Overload));
}

/// The same trace as a live host has it: no event tells of preemption, and a thread tells that it woke once it runs.
fn as_live(events: &[Event]) -> Vec<Event> {
    let mut live: Vec<Event> = events.to_vec();
    for (place, wake) in events.iter().enumerate() {
        let mut later = events[place..].iter();
        let runs = later
            .find(|event| event.activity == wake.activity && event.kind == EventKind::Dispatch);
        if let (EventKind::Wake, Some(runs)) = (wake.kind, runs) {
            live[place].at = runs.at;
            live[place].args[1] = wake.at.as_nanos();
        }
    }
    live.retain(|event| event.kind != EventKind::Preempt);
    live.sort_by_key(|event| (event.at, event.kind != EventKind::Wake));
    live
}

#[test]
fn a_thread_above_is_named_too_where_the_victim_tells_only_later_that_it_was_ready() {
    let mut calls = jobs(4);
    calls.push(call(Class::Above, 1, 26_000, 15_000));
    let seen = Machine::run(&calls);
    for events in [as_live(&seen), seen] {
        let findings = asked_of(&events);
        assert_eq!(names(&findings), [thread(1)]);
        assert_eq!(findings.named[0].rule, Rule::Undeclared);
    }
}

#[test]
fn a_thread_that_comes_more_often_than_declared_is_an_interfering_task() {
    let mut calls = jobs(4);
    calls.extend((0..12).map(|n| call(Class::Above, 1, 20_000 + n * 800, 750)));
    let declared = [
        Declared::default(),
        Declared::thread(
            Priority::HIGHEST,
            Service::from_micros(750),
            Span::from_millis(2),
        ),
    ];
    let findings = findings(&calls, &declared);
    assert_eq!(names(&findings), [thread(1)]);
    assert_eq!(findings.named[0].rule, Rule::Rate);
}

#[test]
fn what_delayed_a_thread_above_before_the_victim_s_release_is_an_interfering_task_too() {
    // 13 is done before the victim is released; but it made 11, which had been ready as long, end 1 µs too late for the victim.
    let mut calls = vec![
        call(Class::Above, 13, 9_000, 215),
        call(Class::Above, 11, 9_000, 8_786),
    ];
    calls.extend(jobs(6));
    let both = findings(&calls, &[]);
    assert_eq!(both.late.len(), 1);
    assert_eq!(names(&both), [thread(11), thread(13)]);
    assert!(
        both.named
            .iter()
            .all(|named| named.rule == Rule::Undeclared)
    );
    let Fault::InterferingTasks(interfering) = &both.late[0].fault else {
        panic!("{:?}", both.late[0].fault);
    };
    assert_eq!(interfering[1].excess, Span::from_micros(215));
    assert!(interfering.iter().all(|task| task.suffices));

    // A thread that was done when 11 woke delayed nobody.
    calls[0].at = 8_785;
    calls[1].work = 9_001;
    assert_eq!(names(&findings(&calls, &[])), [thread(11)]);
}

#[test]
fn equal_rank_is_nobody_s_fault() {
    let mut calls = jobs(2);
    calls.push(call(Class::Above, 1, 10_000, 30_000));
    let rank = Declared::rank(Priority::NORMAL);
    let findings = findings(&calls, &[rank, rank]);
    assert_eq!(findings.named, []);
    assert_eq!(findings.late[0].fault, Fault::Rank);
}

#[test]
fn the_victim_is_to_blame_itself_if_it_ran_longer_than_declared() {
    let mut calls = jobs(3);
    calls[1].work = 12_000;
    calls.extend((0..40).map(|n| call(Class::Handler, 1, n * 1_000, 50)));
    let findings = findings(&calls, &[]);
    assert_eq!(names(&findings), [Holder::Victim]);
    assert_eq!(findings.named[0].rule, Rule::Budget);
}

#[test]
fn too_much_for_the_processor_is_nobody_s_fault() {
    let mut calls = jobs(3);
    calls.extend((0..300).map(|n| call(Class::Handler, 1, 10_000 + n * 110, 100)));
    let findings = findings(&calls, &[]);
    assert!(!findings.late.is_empty());
    assert_eq!(findings.named, []);
    assert!(findings.late.iter().all(|job| job.fault == Fault::Overload));
    let held = findings.late[0].held[0];
    assert_eq!((held.who, held.excess), (handler(1), Span::ZERO));
}

#[test]
fn where_the_machine_stood_still_or_crawled_nobody_else_is_to_blame() {
    let mut calls = jobs(3);
    // Seen from inside the victim took 15 ms, of which the machine stood still for 13, or crawled.
    calls[1].work = 15_000;
    for kind in [EventKind::Disturbed, EventKind::Crawled] {
        let mut events = Machine::run(&calls);
        events.push(Event {
            at: Instant::from_millis(34),
            kind,
            processor: ProcessorId(0),
            activity: ActivityId(u16::MAX),
            args: [21_000_000, 34_000_000],
        });
        events.sort_by_key(|event| event.at);
        let findings = asked_of(&events);
        assert_eq!(names(&findings), [Holder::Machine]);
        assert_eq!(findings.named[0].rule, Rule::Machine);
    }
}

#[test]
fn a_job_that_was_never_served_is_late_too() {
    let device = |at: u64, kind, first: u64| Event {
        at: Instant::from_micros(at),
        kind,
        processor: ProcessorId(0),
        activity: ActivityId(1),
        args: [first * 1_000, 0],
    };
    let mut calls = vec![call(Class::Victim, VICTIM, 10_000, WORK_US)];
    calls.push(call(Class::Above, 2, 19_000, 50_000));
    let mut events = Machine::run(&calls);
    events.push(device(20_000, EventKind::InterruptEnter, 20_000));
    events.push(device(20_005, EventKind::InterruptExit, 5));
    events.push(Event {
        activity: ActivityId(VICTIM),
        ..device(20_005, EventKind::Wake, 20_000)
    });
    events.sort_by_key(|event| event.at);
    let mut victim = victim();
    victim.device = Some(ActivityId(1));
    let question = Question {
        victim,
        declared: &[],
        rules: Rules::PC99,
    };
    let findings = attribute(&events, &question);
    assert_eq!(findings.late.len(), 1);
    assert!(!findings.late[0].completed);
    assert_eq!(names(&findings), [thread(2)]);
    assert_eq!(findings.longest_held_off, Some(Span::ZERO));
}

#[test]
fn jobs_that_end_before_their_release_are_no_panic() {
    let event = |at_us, kind, release_us: u64| Event {
        at: Instant::from_micros(at_us),
        kind,
        processor: ProcessorId(0),
        activity: ActivityId(VICTIM),
        args: [release_us * 1_000, 0],
    };
    let (begin, end) = (EventKind::Mark(BEGIN), EventKind::Mark(END));
    let events = [
        event(0, EventKind::Wake, 0),
        event(10, begin, 10),
        event(15_000, end, 0),
        event(14_900, begin, 14_900),
        event(12_000, end, 0),
        event(14_200, begin, 14_000),
        event(13_000, end, 0),
    ];
    let findings = asked_of(&events);
    assert_eq!((findings.jobs, findings.late.len()), (3, 1));
}
