//! What a run on several processors was worth.

use laxity_model::enforce::{DISPATCHER_ACTIVITY, WITNESS_ACTIVITY, above};
use laxity_model::{
    Disturbance, Event, EventKind, Outside, Priority, Reservation, ReservationRequest, Service,
    Step,
};

use super::*;
use crate::doctor::rights;

fn program(asked: &[(Enforcer, u64)]) -> Program {
    let mut program = Program::new(2);
    for (enforcer, service_ms) in asked {
        let (service, period) = (Service::from_millis(*service_ms), Span::from_millis(20));
        program.push(Activity {
            name: "it".into(),
            processor: ProcessorId(0),
            placement: Placement::Thread(Priority::NORMAL),
            reservation: Some(ReservationRequest {
                reservation: Reservation::new(service, period).expect("it fits"),
                enforcer: *enforcer,
                outside: Outside::AsPlaced,
                begins_at_start: true,
            }),
            body: Box::new(|_: &mut dyn laxity_model::Context| Step::Finish),
        });
    }
    program
}

/// Of a run that nobody started.
const START: Instant = Instant::ZERO;

/// Somebody who watches a processor was late there from so many milliseconds after the start on, for so many.
fn late(who: ActivityId, processor: u16, from_ms: u64, for_ms: u64) -> Event {
    let from = START + Span::from_millis(from_ms);
    let to = from + Span::from_millis(for_ms);
    Event {
        at: to,
        kind: EventKind::Disturbed,
        processor: ProcessorId(processor),
        activity: who,
        args: [from.as_nanos(), to.as_nanos()],
    }
}

/// What a run on two processors was worth of which this is recorded: a witness watches each, and somebody has slots on each.
fn concluded(events: Vec<Event>) -> RunRecord {
    let mut program = program(&[(Enforcer::Slots, 2); 2]);
    program.activities[1].processor = ProcessorId(1);
    let config = LiveConfig {
        processors: vec![3, 5],
        others: Vec::new(),
        external: 5,
        witnesses: [0, 1].map(|one| Witness::new(ProcessorId(one))).to_vec(),
        lock_memory: false,
        ring_capacity: 1,
    };
    let run = Run::new(2, 2, Ports::new(&[], Vec::new()).expect("none"));
    let outcome = |activity: &Activity| Outcome {
        usage: Usage::default(),
        reservation: activity.reservation.map(|asked| asked.reservation),
        has_begun: true,
    };
    let mut collection = Collection::default();
    collection.events = events;
    let ended = Ended {
        outcomes: program.activities.iter().map(outcome).collect(),
        reports: Vec::new(),
        wakeups: 1_000,
        collection,
        seen: Seen::default(),
    };
    let what = What {
        admitted: Admitted::of_all(&program, vec![Some(Grade::Enforced); 2], &config),
        may_hold: vec![Span::ZERO; 2],
        witnesses: witnesses(&config, &program, &[]),
        ran: program.activities.iter().map(Whereabouts::of).collect(),
        above: above(&program),
        end: START + Span::from_secs(1),
        ended_by: RunEnd::Length,
        steal: None,
    };
    conclude_run(&config, &run, ended, what).0
}

/// Why the slots on each of the two processors were not what was granted.
fn reasons(record: &RunRecord) -> Vec<&str> {
    let grants = record.usage.iter().filter_map(|usage| usage.grant.as_ref());
    let reasons = grants.map(|grant| grant.grade.reason().unwrap_or_default());
    reasons.collect()
}

#[test]
fn each_processors_halts_are_in_the_record_and_excuse_its_own() {
    for processor in [0, 1] {
        let crawled = Event {
            kind: EventKind::Crawled,
            ..late(WITNESS_ACTIVITY, processor, 50, 9)
        };
        let record = concluded(vec![late(WITNESS_ACTIVITY, processor, 7, 30), crawled]);
        let long = |all: &[Disturbance]| -> Vec<_> {
            all.iter()
                .map(|one| (one.processor, one.length()))
                .collect()
        };
        let [halt, crawl] = [30, 9].map(|ms| (ProcessorId(processor), Span::from_millis(ms)));
        assert_eq!(long(&record.disturbances), [halt, crawl]);
        assert_eq!(long(&record.crawled), [crawl]);
        assert_eq!(reasons(&record), ["", ""]);
    }
}

/// The witness of the same processor would have seen a halt.
#[test]
fn who_stopped_a_dispatcher_is_held_against_the_slots_of_its_processor_alone() {
    for processor in [0, 1] {
        let record = concluded(vec![late(DISPATCHER_ACTIVITY, processor, 7, 35)]);
        assert!(record.disturbances.is_empty(), "{:?}", record.disturbances);
        let mut expected = ["".to_owned(), String::new()];
        let cpu = [3, 5][usize::from(processor)];
        expected[usize::from(processor)] =
            format!("the dispatcher of processor {cpu} was stopped for 35ms, 7ms after the start");
        assert_eq!(reasons(&record), expected);
    }
}

/// Nobody was there: it excuses, and is told of the slots of that processor.
#[test]
fn who_held_a_processor_and_was_not_found_leaves_its_slots_in_doubt() {
    if Account::of_current().is_none() {
        return rights::lacks(
            "the kernel does not tell how long threads wait: whatever was late is judged",
        );
    }
    for (processor, cpu) in [(0, 3), (1, 5)] {
        let held = Event {
            kind: EventKind::Held,
            ..late(WITNESS_ACTIVITY, processor, 7, 30)
        };
        let record = concluded(vec![held]);
        let bearing_on = |processor| record.held([Whereabouts::On(ProcessorId(processor))]);
        assert_eq!(bearing_on(processor), 1);
        assert_eq!(bearing_on(1 - processor), 0);
        let told = reasons(&record);
        let own = told[usize::from(processor)];
        let named = format!("processor {cpu} was held for 30ms, 7ms after the start, and nobody");
        assert!(own.starts_with(&named), "{told:?}");
        assert_eq!(told[usize::from(1 - processor)], "", "{told:?}");
    }
}
