//! Of a flow, by what its marks say.

use laxity::contract::{
    Bound, Contract, Doubts, Evidence, Limit, Observations, Outcome, Quantity, RunFacts, Statistic,
    judge,
};
use laxity_model::base::histogram::Histogram;
use laxity_model::{Disturbance, ProcessorId, RunRecord};

use super::*;
use crate::scenario::kinds::VIDEO;

const MARKS: FlowMarks = FlowMarks {
    sent: Mark(0),
    taken: Mark(1),
    worked: Mark(2),
    kept: Mark(3),
};

const PROBE: FlowProbe = FlowProbe {
    marks: MARKS,
    holders: Vec::new(),
    traffic: Traffic::Video {
        period: Span::from_millis(100),
        packets: 2,
        bytes: 100,
        jitter: Span::ZERO,
    },
    waiting: Waiting(None),
    way: OnTheWay {
        overtaken: Some(0),
        patience: Span::from_secs(1),
    },
    records: PortId(0),
    unsent: None,
};

/// Of a run that is over then.
fn record(marks: &[(Mark, u64, u64)], end_ms: u64) -> RunRecord {
    let events = marks.iter().map(|(mark, first, second)| Event {
        at: Instant::ZERO,
        kind: EventKind::Mark(*mark),
        processor: ProcessorId(0),
        activity: ActivityId(0),
        args: [*first, *second],
    });
    RunRecord {
        events: events.collect(),
        ..RunRecord::empty(Instant::ZERO, Instant::from_millis(end_ms))
    }
}

/// Smallest, largest and sum of what was seen.
type Extremes = Vec<u64>;

fn seen(marks: &[(Mark, u64, u64)]) -> impl Fn(Quantity) -> Extremes + use<> {
    seen_by(&PROBE, marks, 1_500)
}

fn seen_by(
    probe: &FlowProbe,
    marks: &[(Mark, u64, u64)],
    end_ms: u64,
) -> impl Fn(Quantity) -> Extremes + use<> {
    seen_in(probe, &record(marks, end_ms))
}

fn seen_in(probe: &FlowProbe, record: &RunRecord) -> impl Fn(Quantity) -> Extremes + use<> {
    let seen = observed(probe, record);
    move |quantity| extremes(&seen.whole(quantity).undisturbed)
}

/// Of what was not over at 1,500 ms.
fn unfinished(
    probe: &FlowProbe,
    marks: &[(Mark, u64, u64)],
) -> impl Fn(Quantity) -> Extremes + use<> {
    let seen = observed(probe, &record(marks, 1_500));
    move |quantity| extremes(&seen.whole(quantity).unfinished)
}

fn extremes(all: &Histogram) -> Extremes {
    let extremes = [all.min(), all.max(), u64::try_from(all.sum()).ok()];
    extremes.into_iter().flatten().collect()
}

fn observed(probe: &FlowProbe, record: &RunRecord) -> Observations {
    let mut reader = Box::new(FlowReader::new(probe, Run::of(record)));
    for event in &record.events {
        reader.take(event, &Phase::RUN);
    }
    let subject = Subject {
        name: "video".into(),
        kind: VIDEO,
    };
    reader.finish(subject).quantities
}

const MS: u64 = 1_000_000;

#[test]
fn a_frame_is_shown_with_the_last_of_its_packets_in_whatever_order_they_come() {
    let sent = (0..6).map(|number| (MARKS.sent, number, number / 2 * 100 * MS));
    let worked = [(1, 3), (0, 5), (2, 101), (3, 120), (4, 201), (5, 202)];
    let worked = worked.map(|(number, at)| (MARKS.worked, number, at * MS));
    let all: Vec<_> = sent.chain(worked).collect();
    let (record, at) = (record(&all, 250), Instant::from_millis);
    let shown = [(0, at(5)), (1, at(120)), (2, at(202))];
    assert_eq!(PROBE.shown(&record), shown);
    let left = [(0, at(0)), (1, at(100)), (2, at(200))];
    assert_eq!(PROBE.left(&record), left);
    let seen = seen_by(&PROBE, &all, 250);
    assert_eq!(seen(FRAME_INTERVAL)[..2], [82 * MS, 115 * MS]);
    assert_eq!(seen(FRAME_JITTER)[..2], [15 * MS, 18 * MS]);
    assert_eq!(seen(PACKETS_LOST), [0, 0, 0]);
}

#[test]
fn what_never_comes_is_lost_unless_it_may_be_under_way() {
    let sent = [(0, 0), (1, 0), (2, 100), (3, 100), (4, 900), (5, 900)];
    let sent = sent.map(|(number, at)| (MARKS.sent, number, at * MS));
    let worked = [(0, 3), (1, 4), (3, 101)];
    let worked = worked.map(|(number, at)| (MARKS.worked, number, at * MS));
    let seen = seen(&[&sent[..], &worked].concat());
    assert_eq!(seen(PACKETS_LOST), [0, 1, 1]);
}

/// Frames that are shown then, in milliseconds, as soon as they leave.
fn frames(at: &[u64]) -> Vec<(Mark, u64, u64)> {
    let marks = at.iter().zip(0..).flat_map(|(at, frame)| {
        let both = [2 * frame, 2 * frame + 1];
        let of = |mark| both.map(|number| (mark, number, at * MS));
        of(MARKS.sent).into_iter().chain(of(MARKS.worked))
    });
    marks.collect()
}

/// It makes that interval longer, and the next shorter. Of the others it takes nothing.
#[test]
fn a_halt_may_have_moved_both_ends_of_an_interval() {
    let halt = |from, to| Disturbance {
        processor: ProcessorId(0),
        from: Instant::from_millis(from),
        to: Instant::from_millis(to),
    };
    let of = |halts: &[Disturbance], at: &[u64]| {
        let record = RunRecord {
            disturbances: halts.to_vec(),
            ..record(&frames(at), 650)
        };
        let seen = seen_in(&PROBE, &record);
        [FRAME_INTERVAL, FRAME_JITTER].map(|quantity| seen(quantity)[..2].to_vec())
    };
    let late = [4, 104, 214, 304, 404, 504, 604];
    let judged = [[100 * MS; 2], [0; 2]];
    assert_eq!(of(&[halt(205, 213)], &late), judged);
    let first_is_late = [14, 104, 204, 304, 404, 504, 604];
    let judged = [[90 * MS, 100 * MS], [0, 10 * MS]];
    assert_eq!(of(&[], &first_is_late), judged);
    assert_eq!(of(&[halt(304, 305)], &first_is_late), judged);
}

/// 0.2 ms of the machine's do not account for 270 ms without a frame, nor for two frames at once.
#[test]
fn a_halt_excuses_no_more_of_an_interval_than_it_can_account_for() {
    let ns = Instant::from_nanos;
    let halts = [
        (200 * MS, 200 * MS + 200_000),
        (500 * MS, 500 * MS + 200_000),
    ];
    let disturbances = halts.map(|(from, to)| Disturbance {
        processor: ProcessorId(0),
        from: ns(from),
        to: ns(to),
    });
    let record = RunRecord {
        disturbances: disturbances.to_vec(),
        ..record(&frames(&[4, 104, 374, 375, 600]), 650)
    };
    let intervals = observed(&PROBE, &record).whole(FRAME_INTERVAL);
    assert_eq!(extremes(&intervals.undisturbed)[..2], [100 * MS; 2]);
    let [least, most] = &intervals.between;
    // What the second halt is in is no longer than 225 ms and that, and the first is in the two before.
    assert_eq!(
        extremes(least)[..2],
        [MS - 200_000, 270 * MS - 200_000],
        "at the least"
    );
    assert_eq!(
        extremes(most)[..2],
        [MS + 200_000, 270 * MS + 200_000],
        "at the most"
    );
    let breaks = |bound| {
        let limit = Limit::new(FRAME_INTERVAL, Statistic::Maximum, Bound::AtMost(bound));
        judged(&limit, &record)
    };
    assert_eq!(breaks(40 * MS), Outcome::Violated);
    assert_eq!(breaks(269 * MS), Outcome::Violated);
    assert_ne!(breaks(269 * MS + 800_000), Outcome::Violated);
    let at_least = |bound| {
        let limit = Limit::new(FRAME_INTERVAL, Statistic::Minimum, Bound::AtLeast(bound));
        judged(&limit, &record)
    };
    assert_eq!(at_least(90 * MS), Outcome::Violated);
    assert_ne!(at_least(MS + 200_000), Outcome::Violated);
}

/// By this limit alone.
fn judged(limit: &Limit, record: &RunRecord) -> Outcome {
    let contract = Contract {
        limits: vec![limit.clone()],
        ..Contract::default()
    };
    let evidence = Evidence {
        subject: Subject {
            name: "video".into(),
            kind: VIDEO,
        },
        runs: vec![observed(&PROBE, record)],
        control: Vec::new(),
        grades: Vec::new(),
        phases_over: Vec::new(),
        doubts: Doubts::default(),
    };
    judge(&contract, &[evidence], &RunFacts::default()).result
}

/// It may break an upper bound, and keeps none: nobody has seen the least of them, nor how many there are.
#[test]
fn what_is_not_over_at_the_end_has_taken_that_long_at_the_least() {
    let nothing_shown = record(&[(MARKS.sent, 0, 4 * MS)], 1_500);
    for (statistic, bound, found) in [
        (
            Statistic::Minimum,
            Bound::AtLeast(90 * MS),
            Outcome::Inconclusive,
        ),
        (
            Statistic::Percentile(500_000),
            Bound::AtLeast(90 * MS),
            Outcome::Inconclusive,
        ),
        (
            Statistic::Maximum,
            Bound::AtMost(1_600 * MS),
            Outcome::Inconclusive,
        ),
        (
            Statistic::Maximum,
            Bound::AtMost(110 * MS),
            Outcome::Violated,
        ),
        (
            Statistic::Percentile(990_000),
            Bound::AtMost(110 * MS),
            Outcome::Violated,
        ),
    ] {
        let limit = Limit::new(FRAME_INTERVAL, statistic, bound);
        assert_eq!(judged(&limit, &nothing_shown), found, "{limit:?}");
    }
    let shown = |at: &[u64]| {
        let open = unfinished(&PROBE, &frames(at));
        (open(FRAME_INTERVAL)[1], open(FRAME_JITTER)[1])
    };
    // The run is over at 1,500 ms.
    assert_eq!(shown(&[4]), (1_496 * MS, 1_396 * MS));
    assert_eq!(shown(&[4, 104]), (1_396 * MS, 1_296 * MS));
    assert_eq!(shown(&[1_300, 1_450]), (50 * MS, 0));
    let complete = seen(&frames(&[1_300, 1_450]));
    assert_eq!(complete(FRAME_INTERVAL), [150 * MS; 3]);
}

#[test]
fn a_picture_that_stands_still_from_the_beginning_has_done_so_for_that_long() {
    let sent = (0..30).map(|number| (MARKS.sent, number, number / 2 * 100 * MS));
    let worked = |from: u64, at: u64| {
        let both = (from..30).map(move |number| (number, (number / 2 * 100 + 10).max(at)));
        both.map(|(number, at)| (MARKS.worked, number, at * MS))
    };
    let longest = |marks: Vec<_>| unfinished(&PROBE, &marks)(FRAME_INTERVAL)[1];
    assert_eq!(
        longest(sent.clone().chain(worked(0, 1_005)).collect()),
        995 * MS
    );
    let at_once: Vec<_> = sent.clone().chain(worked(0, 0)).collect();
    assert_eq!(seen(&at_once)(FRAME_INTERVAL)[..2], [100 * MS; 2]);
    assert_eq!(longest(sent.collect()), 1_500 * MS);
}

#[test]
fn what_was_due_is_late_when_it_is_done_or_still_waits_behind_that() {
    let at = Instant::from_millis;
    let waits = [(1_300, 1_400), (1_490, 1_600)].map(|(one, due)| (at(one), at(due)));
    let waiting = Waiting(Some(Arc::new(move || waits.to_vec())));
    let probe = FlowProbe { waiting, ..PROBE };
    let kept = [(9, 0, false), (30, 1, false), (40, 11, true)];
    let kept = kept.map(|(took, late_by, exceeds)| Kept {
        took: Span::from_millis(took),
        late_by: Span::from_millis(late_by),
        exceeds,
    });
    assert_eq!(kept.map(|kept| Kept::of(kept.word())), kept);
    let marks = kept.map(|kept| (MARKS.kept, 100 * MS, kept.word()));
    let seen = seen_by(&probe, &marks, 1_500);
    assert_eq!(seen(PACKETS_LATE), [0, 1, 3]);
    assert_eq!(seen(PACKETS_IN_EXCESS), [0, 1, 1]);
}

#[test]
fn a_halt_excuses_a_packet_that_is_late_by_no_more_than_it_delayed() {
    let late = |halt_ms: u64| {
        let kept = Kept {
            took: Span::from_millis(30),
            late_by: Span::from_millis(5),
            exceeds: false,
        };
        let halt = Disturbance {
            processor: ProcessorId(0),
            from: Instant::from_millis(80),
            to: Instant::from_millis(80 + halt_ms),
        };
        let record = RunRecord {
            disturbances: vec![halt],
            ..record(&[(MARKS.kept, 100 * MS, kept.word())], 200)
        };
        let late = observed(&PROBE, &record).whole(PACKETS_LATE);
        [late.undisturbed, late.disturbed].map(|late| late.sum())
    };
    assert_eq!([late(4), late(5)], [[1, 0], [0, 1]]);
    let longest = Kept {
        took: Span::MAX,
        late_by: Span::MAX,
        exceeds: true,
    };
    let said = Kept::of(longest.word());
    assert!(said.took > Span::from_secs(540) && said.late_by > Span::from_secs(60));
    assert!(said.exceeds);
}

#[test]
fn who_waits_for_a_thread_at_the_end_has_waited_that_long() {
    let at = Instant::from_millis;
    // The last arrived after the end.
    let arrived = [1_100, 1_400, 1_496, 1_501].map(at);
    let waiting = arrived.map(|arrived| (arrived, Instant::MAX));
    let waiting = Waiting(Some(Arc::new(move || waiting.to_vec())));
    let probe = FlowProbe { waiting, ..PROBE };
    let taken = [(MARKS.taken, 20 * MS, 5 * MS)];
    let seen = seen_by(&probe, &taken, 1_500);
    assert_eq!(seen(ARRIVAL_TO_THREAD), [5 * MS; 3]);
    let waited = unfinished(&probe, &taken)(ARRIVAL_TO_THREAD);
    assert_eq!(waited, [4 * MS, 400 * MS, 504 * MS]);
}

#[test]
fn who_waits_for_a_thread_at_the_end_is_not_lost() {
    let waiting = [5, 105].map(|ms| (Instant::from_millis(ms), Instant::MAX));
    let sent: Vec<_> = (0..3).map(|n| (MARKS.sent, n * 100 * MS, n)).collect();
    let lost = |waiting| {
        let probe = FlowProbe { waiting, ..PROBE };
        seen_by(&probe, &sent, 5_000)(PACKETS_LOST)[2]
    };
    assert_eq!(lost(Waiting(None)), 3);
    assert_eq!(lost(Waiting(Some(Arc::new(move || waiting.to_vec())))), 1);
}
