//! A halt of the machine, and those who go first when it is over.

use laxity_model::Disturbance;
use laxity_model::request::Work;

use super::*;

/// 5 ms of every 10 go first; alone with them a job of 9 ms is done in 19 of its 20. A halt of 2 ms pushes it into the next of theirs, and so past its deadline and the release after it.
#[test]
fn a_halt_that_pushes_a_job_into_who_goes_first_excuses_all_that_this_costs() {
    let probe = PeriodicProbe {
        period: Span::from_millis(20),
        deadline: Span::from_millis(20),
        service: Service::from_millis(9),
        ..probe()
    };
    let turns = [(27, 30), (35, 40), (45, 46), (65, 70), (75, 79)];
    let mut events = vec![event(20, Wake, [20, 0])];
    for (from, to) in turns {
        events.push(event(from, Dispatch, [0, 0]));
        match from {
            27 => events.push(event(27, EventKind::Mark(RUNS), [20, 27])),
            65 => events.push(event(65, EventKind::Mark(RUNS), [60, 65])),
            _ => {}
        }
        let is_last = [46, 79].contains(&to);
        events.push(event(to, if is_last { Block } else { Preempt }, [0, 0]));
        if to == 46 {
            events.push(event(60, Wake, [60, 0]));
        }
    }
    let convicted = |above: Vec<Work>| {
        let halt = Disturbance {
            processor: ProcessorId(0),
            from: Instant::from_millis(20),
            to: Instant::from_millis(22),
        };
        let mut record = RunRecord {
            disturbances: vec![halt],
            ..record(events.clone(), 80)
        };
        record.usage[0].above = above;
        let run = Run {
            disturbances: laxity_model::Disturbances::of(&record, [&ActivityId(0)]),
            ..Run::of(&record)
        };
        let mut reader = Box::new(PeriodicReader::new(&probe, run));
        for event in &record.events {
            reader.take(event, &Phase::RUN);
        }
        let seen = reader.finish(probe.subject.clone()).quantities;
        [Quantity::DEADLINE_MISSES, Quantity::RELEASES_MISSED]
            .map(|quantity| seen.whole(quantity).undisturbed.sum())
    };
    let above = Work {
        service: Service::from_millis(5),
        period: Span::from_millis(10),
    };
    assert_eq!(convicted(vec![above]), [0, 0]);
    assert_eq!(convicted(Vec::new()), [2, 1], "by itself it is late");
}
