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
    /// How long that was after it was due.
    pub late_by: Span,
    /// Whether there were more than was stated.
    pub exceeds: bool,
}

impl Kept {
    /// Times are recorded as so many of these, rounded up: `took` in 33 bits, up to nine minutes, `late_by` in 30, up to a minute.
    pub const GRAIN: Span = Span::from_nanos(64);
    const TOOK: u64 = (1 << 33) - 1;
    const LATE: u64 = (1 << 30) - 1;

    /// As the one number that is recorded.
    pub fn word(self) -> u64 {
        let grains = |span: Span, most: u64| {
            let grains = span.as_nanos().div_ceil(Self::GRAIN.as_nanos());
            grains.min(most)
        };
        let (took, late) = (
            grains(self.took, Self::TOOK),
            grains(self.late_by, Self::LATE),
        );
        took << 31 | late << 1 | u64::from(self.exceeds)
    }

    /// Back from that.
    pub const fn of(word: u64) -> Self {
        Self {
            took: Span::from_nanos((word >> 31) * Self::GRAIN.as_nanos()),
            late_by: Span::from_nanos((word >> 1 & Self::LATE) * Self::GRAIN.as_nanos()),
            exceeds: word & 1 != 0,
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
        let jitter = Span::from_nanos(interval.as_nanos().abs_diff(period.as_nanos()));
        for (quantity, value) in [(FRAME_INTERVAL, interval), (FRAME_JITTER, jitter)] {
            self.recorder.shifted(quantity, value, [since, at]);
        }
    }

    /// What had no beginning or was not over at the end had taken that long at the least.
    fn open(&mut self) {
        if let Traffic::Video { period, .. } = self.probe.traffic {
            let [left, shown] = self.began;
            // The first frame was due when it would have come as quickly as any.
            let quickest = shown.map_or(Span::ZERO, |_| self.quickest);
            let due = left.and_then(|left| Some([left, left.checked_add(quickest)?]));
            let ends = [(due, shown.unwrap_or(self.end)), (self.shown, self.end)];
            for (before, at) in ends {
                let Some([since, before]) = before else {
                    continue;
                };
                let interval = at.saturating_since(before);
                let jitter = interval.saturating_sub(period);
                for (quantity, least) in [(FRAME_INTERVAL, interval), (FRAME_JITTER, jitter)] {
                    self.recorder.unfinished(quantity, least, [since, at]);
                }
            }
        }
        let end = self.end;
        for (arrived, due) in self.waiting().filter(|(arrived, _)| *arrived < end) {
            if due < self.end {
                self.late(self.end.saturating_since(due), [arrived, self.end]);
            }
            let waited = self.end.saturating_since(arrived);
            self.recorder
                .unfinished(ARRIVAL_TO_THREAD, waited, [arrived, self.end]);
        }
    }

    /// A packet was there for this time, and so late: by no more than halts in it delayed, it was their doing.
    fn late(&mut self, by: Span, span: [Instant; 2]) {
        let late = u64::from(!by.is_zero());
        let delayed = self.recorder.delayed(span);
        let excused = delayed.map(|delayed| u64::from(by <= delayed + Kept::GRAIN));
        self.recorder
            .told_apart(PACKETS_LATE, late, excused, span[0]);
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
                self.recorder.span(ARRIVAL_TO_THREAD, arrived, taken);
            }
            _ if mark == marks.kept => {
                let (done, kept) = (Instant::from_nanos(first), Kept::of(second));
                let span = [done.saturating_sub(kept.took), done];
                self.late(kept.late_by, span);
                let excess = u64::from(kept.exceeds);
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
mod tests;
