//! What is seen of a flow: when its frames were shown, how long its packets waited for a thread, and which never came.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use laxity::observe::{Observation, Reader, Recorder, Run};
use laxity_model::verify::contract::{Phase, Subject};
use laxity_model::{
    ActivityId, Event, EventKind, Instant, Mark, PortId, RunRecord, SemaphoreId, Span,
};

use super::missing::{Missing, OnTheWay};
use crate::scenario::Traffic;
use crate::scenario::kinds::{
    ARRIVAL_TO_THREAD, BYTES_RECEIVED, FRAME_INTERVAL, FRAME_JITTER, PACKETS_IN_EXCESS,
    PACKETS_LATE, PACKETS_LOST,
};

/// What a flow's activity records.
#[derive(Clone, Copy, Debug)]
pub struct FlowMarks {
    /// A packet was sent: its number, and when.
    pub sent: Mark,
    /// A thread took a packet: when, and how long after its arrival.
    pub taken: Mark,
    /// A packet was worked on: its number, or in bulk how many bytes that brought; and when.
    pub worked: Mark,
    /// A packet that was due was worked on: when, and [how it was](Kept::word).
    pub kept: Mark,
}

/// How a packet was that its client had stated something of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kept {
    /// From its arrival until a thread was done with it.
    pub took: Span,
    /// Whether that was after it was due.
    pub is_late: bool,
    /// Whether there were more than was stated.
    pub exceeds: bool,
}

impl Kept {
    /// As the one number that is recorded.
    pub fn word(self) -> u64 {
        self.took.as_nanos() << 2 | u64::from(self.exceeds) << 1 | u64::from(self.is_late)
    }

    /// Back from that.
    pub const fn of(word: u64) -> Self {
        Self {
            took: Span::from_nanos(word >> 2),
            is_late: word & 1 != 0,
            exceeds: word & 2 != 0,
        }
    }
}

/// Where the evidence of a flow is to be found.
#[derive(Clone, Debug)]
pub struct FlowProbe {
    /// What its activity records.
    pub marks: FlowMarks,
    /// Who works for it: the threads of its client, and the interface's interrupts.
    pub holders: Vec<ActivityId>,
    /// What is sent.
    pub traffic: Traffic,
    /// Where its packets wait.
    pub waiting: Waiting,
    /// Which of its packets may still come.
    pub way: OnTheWay,
    /// Where what happens to it waits for its activity.
    pub records: PortId,
    /// What counts frames of the near end, of all flows together, that no buffer was free for; `None` where the kernel has that.
    pub unsent: Option<SemaphoreId>,
}

/// When each of some packets arrived, and when it is due.
pub type Arrivals = Vec<(Instant, Instant)>;

/// Tells of each of a flow's packets that waits for a thread now.
#[derive(Clone)]
pub struct Waiting(pub Option<Arc<dyn Fn() -> Arrivals + Send + Sync>>);

impl fmt::Debug for Waiting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Waiting")
    }
}

impl FlowProbe {
    /// Which frames of video were shown, and when, in this order: the last of their packets that came had been worked on. None of another flow.
    pub fn shown(&self, record: &RunRecord) -> Vec<(u64, Instant)> {
        self.complete(record, self.marks.worked)
    }

    /// Which of them had left their sender, and when, in this order. None of another flow.
    pub fn left(&self, record: &RunRecord) -> Vec<(u64, Instant)> {
        self.complete(record, self.marks.sent)
    }

    /// Of which frames all packets had this mark.
    fn complete(&self, record: &RunRecord, mark: Mark) -> Vec<(u64, Instant)> {
        let Traffic::Video { packets, .. } = self.traffic else {
            return Vec::new();
        };
        let mut frames = Frames::default();
        let marked = record.marked(mark).map(|event| event.args);
        let complete = marked.filter_map(|[number, at]| {
            let frame = frames.completed_by(number, packets)?;
            Some((frame, Instant::from_nanos(at)))
        });
        complete.collect()
    }
}

/// How many packets have come of each frame that is not complete.
#[derive(Default)]
struct Frames(BTreeMap<u64, u16>);

impl Frames {
    /// The frame of so many packets that is complete with this one, which comes once.
    fn completed_by(&mut self, number: u64, packets: u16) -> Option<u64> {
        let frame = number / u64::from(packets);
        let come = self.0.entry(frame).or_default();
        *come += 1;
        (*come == packets).then(|| {
            self.0.remove(&frame);
            frame
        })
    }
}

pub(super) struct FlowReader<'a> {
    probe: &'a FlowProbe,
    end: Instant,
    recorder: Recorder<'a>,
    missing: Missing,
    frames: Frames,
    /// When the last frame was shown, after when the one before it was, or the first left.
    shown: Option<[Instant; 2]>,
    /// When the first packet left, and when the first frame was shown.
    began: [Option<Instant>; 2],
    /// The least that a frame took from when the last of it left.
    quickest: Span,
    /// The longest interval between frames, and the longest wait for a thread.
    longest: [Span; 2],
}

impl<'a> FlowReader<'a> {
    pub(super) fn new(probe: &'a FlowProbe, run: Run<'a>) -> Self {
        Self {
            probe,
            end: run.record.end,
            recorder: Recorder::new(run),
            missing: Missing::default(),
            frames: Frames::default(),
            shown: None,
            began: [None; 2],
            quickest: Span::MAX,
            longest: [Span::ZERO; 2],
        }
    }

    /// A packet of video has been worked on.
    fn worked(&mut self, number: u64, at: Instant, (packets, period): (u16, Span)) {
        let Some(sent) = self.missing.worked(number, at) else {
            // A second time.
            return;
        };
        self.recorder.value(PACKETS_LOST, 0, [sent, at]);
        if self.frames.completed_by(number, packets).is_none() {
            return;
        }
        self.quickest = self.quickest.min(at.saturating_since(sent));
        self.began[1].get_or_insert(at);
        let before = self.shown.map_or(sent, |[_, shown]| shown);
        if let Some([since, before]) = self.shown.replace([before, at]) {
            self.interval([since, before, at], period);
        }
    }

    /// Nothing was shown between the last two of these. A halt makes the frame at either end late, and so the interval longer or shorter: one before it, since `since`, does too.
    fn interval(&mut self, [since, before, at]: [Instant; 3], period: Span) {
        let interval = at.saturating_since(before);
        self.longest[0] = self.longest[0].max(interval);
        let jitter = interval.as_nanos().abs_diff(period.as_nanos());
        let own = (FRAME_INTERVAL, interval.as_nanos());
        for (quantity, value) in [own, (FRAME_JITTER, jitter)] {
            self.recorder.value(quantity, value, [since, at]);
        }
    }

    /// What had no beginning or was not over at the end had taken that long at the least: it counts where it is more than all that had both.
    fn open(&mut self) {
        if let Traffic::Video { period, .. } = self.probe.traffic {
            let [left, shown] = self.began;
            // The first frame was due when it would have come as quickly as any.
            let quickest = shown.map_or(Span::ZERO, |_| self.quickest);
            let due = left.and_then(|left| Some([left, left.checked_add(quickest)?]));
            let ends = [(due, shown.unwrap_or(self.end)), (self.shown, self.end)];
            for (before, at) in ends {
                let longest = self.longest[0].max(period);
                let is_more = |[_, before]: &[Instant; 2]| at.saturating_since(*before) > longest;
                if let Some([since, before]) = before.filter(is_more) {
                    self.interval([since, before, at], period);
                }
            }
        }
        for (arrived, due) in self.waiting() {
            if due < self.end {
                self.recorder.value(PACKETS_LATE, 1, [arrived, self.end]);
            }
            if self.end.saturating_since(arrived) > self.longest[1] {
                self.recorder.span(ARRIVAL_TO_THREAD, arrived, self.end);
            }
        }
    }

    /// When each packet arrived that still waits for a thread, and is due.
    fn waiting(&self) -> impl Iterator<Item = (Instant, Instant)> + use<> {
        let waiting = self.probe.waiting.0.as_ref();
        waiting.map(|waiting| waiting()).into_iter().flatten()
    }
}

impl Reader for FlowReader<'_> {
    fn take(&mut self, event: &Event, phase: &Phase) {
        let EventKind::Mark(mark) = event.kind else {
            return;
        };
        self.recorder.phase = phase.clone();
        let [first, second] = event.args;
        let marks = self.probe.marks;
        let at = Instant::from_nanos(second);
        match self.probe.traffic {
            _ if mark == marks.sent => {
                self.began[0].get_or_insert(at);
                self.missing.sent(first, at);
            }
            _ if mark == marks.taken => {
                let taken = Instant::from_nanos(first);
                let arrived = Instant::from_nanos(first.saturating_sub(second));
                self.longest[1] = self.longest[1].max(Span::from_nanos(second));
                self.recorder.span(ARRIVAL_TO_THREAD, arrived, taken);
            }
            _ if mark == marks.kept => {
                let (done, kept) = (Instant::from_nanos(first), Kept::of(second));
                let span = [done.saturating_sub(kept.took), done];
                let [late, excess] = [kept.is_late, kept.exceeds].map(u64::from);
                self.recorder.value(PACKETS_LATE, late, span);
                self.recorder.value(PACKETS_IN_EXCESS, excess, span);
            }
            Traffic::Video {
                packets, period, ..
            } if mark == marks.worked => self.worked(first, at, (packets, period)),
            Traffic::Bulk { .. } if mark == marks.worked => {
                self.recorder.value(BYTES_RECEIVED, first, [at, at]);
            }
            _ => {}
        }
    }

    fn finish(mut self: Box<Self>, subject: Subject) -> Observation {
        self.open();
        let around = match self.probe.traffic {
            Traffic::Video { period, .. } => period,
            Traffic::Bulk { .. } => Span::ZERO,
        };
        let waiting = self.waiting().count();
        let [lost, open] = self.missing.at_end(self.end, self.probe.way, waiting);
        for sent in lost {
            // Who stood still a frame before may have kept the buffers that this one lacked.
            let span = [sent.saturating_sub(around), sent + around];
            self.recorder.value(PACKETS_LOST, 1, span);
        }
        for sent in open {
            self.recorder.possible(PACKETS_LOST, 1, sent);
        }
        Observation::of(subject, self.recorder.finish())
    }
}

#[cfg(test)]
mod tests {
    use laxity::contract::Quantity;
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

    fn seen(marks: &[(Mark, u64, u64)]) -> impl Fn(Quantity) -> Vec<u64> + use<> {
        seen_by(&PROBE, marks, 1_500)
    }

    fn seen_by(
        probe: &FlowProbe,
        marks: &[(Mark, u64, u64)],
        end_ms: u64,
    ) -> impl Fn(Quantity) -> Vec<u64> + use<> {
        seen_in(probe, &record(marks, end_ms))
    }

    fn seen_in(probe: &FlowProbe, record: &RunRecord) -> impl Fn(Quantity) -> Vec<u64> + use<> {
        let mut reader = Box::new(FlowReader::new(probe, Run::of(record)));
        for event in &record.events {
            reader.take(event, &Phase::RUN);
        }
        let subject = Subject {
            name: "video".into(),
            kind: VIDEO,
        };
        let seen = reader.finish(subject).quantities;
        move |quantity| {
            let all = seen.whole(quantity).undisturbed;
            let extremes = [all.min(), all.max(), u64::try_from(all.sum()).ok()];
            extremes.into_iter().flatten().collect()
        }
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

    #[test]
    fn what_is_not_over_at_the_end_has_taken_that_long() {
        let shown = |at: &[u64]| seen(&frames(at));
        // The run is over at 1,500 ms.
        assert_eq!(shown(&[4])(FRAME_INTERVAL), [1_496 * MS; 3]);
        assert_eq!(
            shown(&[4, 104])(FRAME_INTERVAL)[..2],
            [100 * MS, 1_396 * MS]
        );
        assert_eq!(shown(&[4, 104])(FRAME_JITTER)[..2], [0, 1_296 * MS]);
        assert_eq!(shown(&[1_300, 1_450])(FRAME_INTERVAL), [150 * MS; 3]);
        assert_eq!(shown(&[1_450])(FRAME_INTERVAL), [0], "none is due");
    }

    #[test]
    fn a_picture_that_stands_still_from_the_beginning_has_done_so_for_that_long() {
        let sent = (0..30).map(|number| (MARKS.sent, number, number / 2 * 100 * MS));
        let worked = |from: u64, at: u64| {
            let both = (from..30).map(move |number| (number, (number / 2 * 100 + 10).max(at)));
            both.map(|(number, at)| (MARKS.worked, number, at * MS))
        };
        let late = seen(&sent.clone().chain(worked(0, 1_005)).collect::<Vec<_>>());
        assert_eq!(late(FRAME_INTERVAL)[..2], [0, 995 * MS]);
        let at_once = seen(&sent.clone().chain(worked(0, 0)).collect::<Vec<_>>());
        assert_eq!(at_once(FRAME_INTERVAL)[..2], [100 * MS; 2]);
        assert_eq!(
            seen(&sent.collect::<Vec<_>>())(FRAME_INTERVAL),
            [1_500 * MS; 3]
        );
    }

    #[test]
    fn what_was_due_is_late_when_it_is_done_or_still_waits_behind_that() {
        let at = Instant::from_millis;
        let waits = [(1_300, 1_400), (1_490, 1_600)].map(|(one, due)| (at(one), at(due)));
        let waiting = Waiting(Some(Arc::new(move || waits.to_vec())));
        let probe = FlowProbe { waiting, ..PROBE };
        let kept = [(9, false, false), (30, true, false), (40, true, true)];
        let kept = kept.map(|(ms, is_late, exceeds)| Kept {
            took: Span::from_millis(ms),
            is_late,
            exceeds,
        });
        assert_eq!(kept.map(|kept| Kept::of(kept.word())), kept);
        let marks = kept.map(|kept| (MARKS.kept, 100 * MS, kept.word()));
        let seen = seen_by(&probe, &marks, 1_500);
        assert_eq!(seen(PACKETS_LATE), [0, 1, 3]);
        assert_eq!(seen(PACKETS_IN_EXCESS), [0, 1, 1]);
    }

    #[test]
    fn who_waits_for_a_thread_at_the_end_has_waited_that_long() {
        let at = Instant::from_millis;
        // The last is no longer than what was over, or arrived after the end.
        let arrived = [1_100, 1_400, 1_496, 1_501].map(at);
        let waiting = arrived.map(|arrived| (arrived, Instant::MAX));
        let waiting = Waiting(Some(Arc::new(move || waiting.to_vec())));
        let probe = FlowProbe { waiting, ..PROBE };
        let taken = [(MARKS.taken, 20 * MS, 5 * MS)];
        let seen = seen_by(&probe, &taken, 1_500);
        assert_eq!(seen(ARRIVAL_TO_THREAD), [5 * MS, 400 * MS, 505 * MS]);
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
}
