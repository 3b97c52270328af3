use laxity_lab::bench::{Made, judge};
use laxity_lab::report::{Compared, Report};
use laxity_model::{Disturbance, Event, EventKind, Mark, PortId, ProcessorId, Usage, Whereabouts};

use super::super::{Nif, Seen as SeenOf};
use super::*;
use crate::{disturbed, told_and_open};
use laxity_lab::observe::{FlowMarks, OnTheWay, Waiting};
use laxity_lab::report::Verdict;

/// Intervals that far from the period in turn.
fn intervals(millis: u64) -> Intervals {
    let both = [100 - millis, 100 + millis].map(Span::from_millis);
    Intervals(both.repeat(10))
}

/// What this machine showed in a quick run, with such intervals beside three streams in each way, of which so much was disturbed.
fn report(apart: [u64; 3], busy_ppm: u64, disturbed_ppm: u32) -> Report {
    let request = Request::default();
    let mut made = Made::nothing(&request);
    for case in cases(&request, true) {
        let beside = match case.way {
            Way::Late | Way::Bsd => apart[0],
            Way::EarlyAlike => apart[1],
            _ => apart[2],
        };
        let seen = intervals(if case.streams == 0 { 1 } else { beside });
        let seen = Seen {
            undisturbed: seen.clone(),
            all: seen,
            left: intervals(1),
            busy_ppm,
            packets: 1,
        };
        made.live
            .push((super::super::Run::Here(case), SeenOf::Here(seen)));
        made.said.push(disturbed(disturbed_ppm));
    }
    judge(&Nif, &made).expect("it is judged")
}

/// The row of a report that is of this.
fn row<'a>(report: &'a Report, name: &str) -> &'a Compared {
    let figure = report.figures.iter().find(|figure| figure.key == "here");
    let mut rows = figure.expect("it is drawn").compared.iter();
    rows.find(|row| row.quantity == name).expect("it is there")
}

const LATE: &str = "variance, to one queue, threads alike";

#[test]
fn each_cell_that_was_measured_has_its_own_verdict() {
    let report = report([9, 9, 2], 700_000, 0);
    // 85 ms² and 4 ms², where the paper has 80 and 7.
    let of = |streams| row(&report, &format!("{LATE}, {streams} streams"));
    assert!(matches!(of(3).live_verdict, Verdict::Agrees(_)));
    assert!(of(3).live.is_some() && of(3).twin.is_none());
    // The sender's jitter was chosen by that, and beside no stream both ways are the same run.
    let none = "variance, to queues of their own, video first, 0 streams";
    for row in [of(0), row(&report, none)] {
        assert!(row.live.is_some() && matches!(row.live_verdict, Verdict::Consistent(_)));
    }
    // 85 / 4.2, where the paper has 14.8.
    let improvement = "variance, so many times less than with one queue, to queues of their own, video first, 3 streams";
    let improvement = row(&report, improvement);
    assert!(matches!(improvement.live_verdict, Verdict::Agrees(_)));
    for streams in [1, 2] {
        assert!(of(streams).live.is_none());
        assert_eq!(of(streams).live_verdict, Verdict::Alone);
    }
    let early = "variance, to queues of their own, video first, 3 streams";
    assert!(matches!(
        row(&report, early).live_verdict,
        Verdict::Agrees(_)
    ));
    let longest = "longest interval beyond 100 ms, to one queue, threads alike, 3 streams";
    assert!(matches!(
        row(&report, longest).live_verdict,
        Verdict::Disagrees(_)
    ));
    assert!(report.checks.iter().all(|check| check.held == Some(true)));
    assert_eq!(told_and_open(&report), (7, 0));
}

#[test]
fn what_is_claimed_of_this_machine_can_fail() {
    let held = |report: Report| -> Vec<Option<bool>> {
        report.checks.iter().map(|check| check.held).collect()
    };
    let so = Some(true);
    let not = Some(false);
    // Load, much less, first, sender, left out; BSD's way, further ways.
    assert_eq!(
        held(report([9, 9, 9], 590_000, 0)),
        [not, not, not, so, so, not, not]
    );
    assert_eq!(
        held(report([9, 9, 4], 810_000, 0)),
        [not, not, so, so, so, not, so]
    );
    assert_eq!(
        held(report([3, 1, 1], 600_000, 0)),
        [so, so, not, not, so, so, so]
    );
}

#[test]
fn of_a_machine_that_stood_still_nothing_is_judged() {
    let report = report([9, 9, 2], 700_000, 20_000);
    assert_eq!(told_and_open(&report), (0, 7));
    let row = row(&report, &format!("{LATE}, 3 streams"));
    assert!(row.live.is_some() && matches!(row.live_verdict, Verdict::Inconclusive(_)));
}

/// The paper's ways, and the further ones.
fn halves(cases: Vec<Case>) -> (Vec<Case>, Vec<Case>) {
    let is_papers = |case: &Case| WAYS.contains(&case.way);
    cases.into_iter().partition(is_papers)
}

#[test]
fn at_full_length_cells_are_repeated_that_something_is_claimed_of() {
    let made = |full, live| -> Vec<Case> {
        let request = Request {
            full,
            ..Request::default()
        };
        cases(&request, live).collect()
    };
    let (quick, further) = halves(made(false, true));
    assert_eq!((quick.len(), further.len()), (6, 7));
    assert!(quick.iter().all(|case| case.intervals == QUICK));
    let (full, further) = halves(made(true, true));
    let beside = |streams| full.iter().filter(|case| case.streams == streams).count();
    assert_eq!([0, 1, 2, 3].map(beside), [15, 3, 3, 15]);
    assert!(full.iter().all(|case| case.intervals == FULL));
    assert_eq!(further.len(), 35);
    let (twin, further) = halves(made(false, false));
    assert_eq!(twin.len(), 9 * 12, "the twin is always whole");
    assert_eq!(further.len(), 9 * 4, "the twin has no kernel");
}

#[test]
fn a_scene_has_the_connections_that_it_is_to_have() {
    for way in WAYS.into_iter().chain(FURTHER) {
        for streams in 0..=STREAMS {
            let case = Case {
                way,
                streams,
                intervals: 1,
                round: 0,
                seed: 1,
            };
            let variant = case.variant().expect("it is there");
            let mut connections = Vec::new();
            for task in &variant.tasks {
                if let TaskKind::Flow(flow) = &task.kind
                    && let Traffic::Bulk { count, .. } = flow.traffic
                {
                    connections.push(u64::from(count));
                }
            }
            let wanted: &[u64] = if streams == 0 { &[] } else { &[streams] };
            assert_eq!(connections, wanted, "{way:?}");
        }
    }
}

/// A frame of two packets every 100 ms, worked on 10 ms after it left. The processor stands still while the second frame is under way, and once while none is.
#[test]
fn a_frame_is_disturbed_while_it_is_under_way() {
    let marks = [Mark(0), Mark(1), Mark(2), Mark(3)];
    let video = FlowProbe {
        marks: FlowMarks {
            sent: marks[0],
            taken: marks[1],
            worked: marks[2],
            kept: marks[3],
        },
        holders: vec![ActivityId(0)],
        waiting: Waiting(None),
        way: OnTheWay {
            keeps_order: true,
            hands: 1,
            patience: Span::from_secs(1),
        },
        records: PortId(0),
        unsent: None,
        traffic: Traffic::Video {
            period: FRAME_PERIOD,
            packets: 2,
            bytes: 100,
            jitter: Span::ZERO,
        },
    };
    let at = Instant::from_millis;
    let events = (0..10).flat_map(|packet: u64| {
        let left = packet / 2 * 100;
        [(marks[0], left), (marks[2], left + 10)].map(|(mark, millis)| Event {
            at: at(millis),
            kind: EventKind::Mark(mark),
            processor: ProcessorId(0),
            activity: ActivityId(0),
            args: [packet, at(millis).as_nanos()],
        })
    });
    let halt = |from| Disturbance {
        processor: ProcessorId(0),
        from: at(from),
        to: at(from + 2),
    };
    let record = RunRecord {
        events: events.collect(),
        usage: vec![Usage {
            ran: Whereabouts::On(ProcessorId(0)),
            ..Usage::default()
        }],
        disturbances: vec![halt(104), halt(350)],
        witness_wakeups: 1_000,
        ..RunRecord::empty(at(0), at(500))
    };
    let seen = evenness(&record, &video, 10);
    let hundreds = |count| Intervals(vec![FRAME_PERIOD; count]);
    assert_eq!([&seen.all, &seen.left], [&hundreds(4); 2]);
    assert_eq!(
        seen.undisturbed,
        hundreds(2),
        "those of the second frame are not judged"
    );
    assert_eq!(seen.excused_ppm(), Some(500_000));
    assert_eq!(evenness(&record, &video, 2).all, hundreds(2));
}
