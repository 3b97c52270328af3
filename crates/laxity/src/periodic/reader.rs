//! What is seen of a periodic task: how late and how regularly it wakes, and when its jobs end.

use laxity_model::verify::contract::{Phase, Quantity, Subject};
use laxity_model::{Event, EventKind, Instant, RunRecord, Span};

use super::PeriodicProbe;
use crate::observe::{Observation, Reader, Recorder};

pub(super) struct PeriodicReader<'a> {
    probe: &'a PeriodicProbe,
    recorder: Recorder<'a>,
    start: Instant,
    end: Instant,
    /// The longest that a job waited until it began, and from one to the next, so far.
    longest: [Span; 2],
    /// When the job before ran.
    ran: Option<Instant>,
    /// When the last job was due that began.
    last_due: Option<Instant>,
    /// When the job at work was due, or the one that was released and has not begun.
    job: Option<Instant>,
    /// Since when it has waited for the processor.
    ready: Option<Instant>,
    /// Whether the host records who loses the processor. Linux does not: all that a job took beyond its service then counts as one gap.
    sees_preemptions: bool,
}

impl<'a> PeriodicReader<'a> {
    pub(super) fn new(probe: &'a PeriodicProbe, record: &'a RunRecord) -> Self {
        let usage = record.usage.get(probe.thread.index());
        let was_preempted = usage.is_some_and(|usage| usage.involuntary_switches > 0);
        let own = |event: &&Event| event.activity == probe.activity;
        let mut events = record.events.iter().filter(own);
        // On an executor, an event of its own says that others there had a turn, and nothing of who takes the thread's processor.
        let is_own = probe.thread == probe.activity;
        let sees_preemptions =
            !was_preempted || is_own && events.any(|event| event.kind == EventKind::Preempt);
        Self {
            probe,
            recorder: Recorder::new(record),
            start: record.start,
            end: record.end,
            longest: [Span::ZERO; 2],
            ran: None,
            last_due: None,
            job: None,
            ready: Some(record.start),
            sees_preemptions,
        }
    }

    /// It has the processor.
    fn served(&mut self, at: Instant) {
        if let Some(since) = self.ready.take()
            && self.sees_preemptions
        {
            self.recorder.span(Quantity::SERVICE_GAP, since, at);
        }
    }

    fn begin(&mut self, event: &Event) {
        let [due, ran] = event.args.map(Instant::from_nanos);
        self.served(ran);
        self.waited(due, ran);
        self.ran = Some(ran);
        // The grid of releases began a period before the first.
        let first = self.last_due.is_none().then_some(self.probe.period);
        self.skipped_until(due.saturating_sub(first.unwrap_or(Span::ZERO)));
        self.last_due = Some(due);
        self.job = Some(due);
    }

    /// A job that was due began.
    fn waited(&mut self, due: Instant, began: Instant) {
        let waits = [
            (Quantity::WAKEUP_LATENCY, Some(due)),
            (Quantity::WAKEUP_GAP, self.ran),
        ];
        for (longest, (quantity, from)) in self.longest.iter_mut().zip(waits) {
            if let Some(from) = from {
                self.recorder.span(quantity, from, began);
                *longest = (*longest).max(began.saturating_since(from));
            }
        }
    }

    /// When the job after the last that began is due. Who has never begun was to begin with the run.
    fn next_due(&self) -> Instant {
        self.last_due.unwrap_or(self.start) + self.probe.period
    }

    /// Releases whose deadlines passed by then while the job before was still at work, or the task had not had the processor at all: they
    /// never ran, and so missed them.
    fn skipped_until(&mut self, until: Instant) {
        let mut skipped = self.next_due();
        while skipped + self.probe.period <= until {
            let span = [skipped, skipped + self.probe.period];
            self.recorder.value(Quantity::DEADLINE_MISSES, 1, span);
            skipped += self.probe.period;
        }
    }

    fn complete(&mut self, at: Instant) {
        let Some(due) = self.job.take() else { return };
        let response = at.saturating_since(due);
        self.recorder.span(Quantity::RESPONSE_TIME, due, at);
        let missed = u64::from(response > self.probe.period);
        self.recorder
            .value(Quantity::DEADLINE_MISSES, missed, [due, at]);
        if !self.sees_preemptions {
            let without = response.saturating_sub(self.probe.service.as_dedicated_span());
            let nanos = without.as_nanos();
            self.recorder.value(Quantity::SERVICE_GAP, nanos, [due, at]);
        }
    }
}

impl Reader for PeriodicReader<'_> {
    fn take(&mut self, event: &Event, phase: &Phase) {
        if self.recorder.phase != *phase {
            self.recorder.phase = phase.clone();
        }
        match event.kind {
            EventKind::Wake => {
                // A wait that was over before it began leaves no other trace of the job before.
                self.complete(event.at);
                let due = Instant::from_nanos(event.args[0]);
                self.ready = Some(due);
                self.job = Some(due);
            }
            EventKind::Dispatch => self.served(event.at),
            EventKind::Preempt => self.ready = Some(event.at),
            EventKind::Block => self.complete(event.at),
            EventKind::Mark(mark) if mark == self.probe.runs => self.begin(event),
            _ => {}
        }
    }

    /// A job that the run's end finds unfinished has missed its deadline if that is past, and so have all that were due after it. One that
    /// was due and has not begun has waited as long as it has, whether or not anybody has seen it wake. A stretch in which the machine
    /// stood still excuses that only where it lies in the job's own period.
    fn finish(mut self: Box<Self>, subject: Subject) -> Observation {
        let end = self.end;
        let due = self.job.unwrap_or(self.next_due());
        let deadline = due + self.probe.period;
        let own = [due, deadline.min(end)];
        let has_begun = self.last_due == Some(due);
        if due < end && !has_begun {
            self.ready.get_or_insert(due);
            let [latency, gap] = self.longest;
            let waits = [
                (Quantity::WAKEUP_LATENCY, Some(due), latency),
                (Quantity::WAKEUP_GAP, self.ran, gap),
            ];
            for (quantity, from, longest) in waits {
                let open = from.map(|from| end.saturating_since(from));
                if let Some(open) = open.filter(|open| *open > longest) {
                    self.recorder.value(quantity, open.as_nanos(), own);
                }
            }
        }
        if let Some(since) = self.ready.take() {
            let gap = end.saturating_since(since).as_nanos();
            let from = since.max(own[0].min(end));
            self.recorder
                .value(Quantity::SERVICE_GAP, gap, [from, from.max(own[1])]);
        }
        if deadline < end {
            let response = (end - due).as_nanos();
            self.recorder.value(Quantity::RESPONSE_TIME, response, own);
            self.recorder.value(Quantity::DEADLINE_MISSES, 1, own);
            if !self.sees_preemptions {
                let service = self.probe.service.as_dedicated_span().as_nanos();
                let gap = response.saturating_sub(service);
                self.recorder.value(Quantity::SERVICE_GAP, gap, own);
            }
            self.last_due = Some(due);
            self.skipped_until(end.saturating_sub(Span::from_nanos(1)));
        }
        Observation::of(subject, self.recorder.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_model::{ActivityId, Mark, ProcessorId, Service, Usage};

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
            period: Span::from_millis(10),
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
            start: Instant::ZERO,
            end: Instant::from_millis(end_ms),
            ended_by: laxity_model::RunEnd::Length,
            events,
            events_lost: 0,
            usage: vec![Usage::default()],
            ports: Vec::new(),
            disturbances: Vec::new(),
            witness_wakeups: 0,
            steal: None,
        }
    }

    /// The values of a quantity in milliseconds, sorted; times are exact to 1/128.
    fn values(record: &RunRecord, quantity: Quantity) -> Vec<u64> {
        values_of(&probe(), record, quantity)
    }

    fn values_of(probe: &PeriodicProbe, record: &RunRecord, quantity: Quantity) -> Vec<u64> {
        let mut reader = Box::new(PeriodicReader::new(probe, record));
        for event in &record.events {
            reader.take(event, &Phase::RUN);
        }
        let seen = reader
            .finish(probe.subject.clone())
            .quantities
            .whole(quantity);
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
    fn a_task_that_never_runs_misses_all_its_deadlines() {
        let record = record(Vec::new(), 45);
        assert_eq!(values(&record, Quantity::DEADLINE_MISSES), [1, 1, 1]);
        assert_eq!(values(&record, Quantity::RESPONSE_TIME), [35]);
        assert_eq!(values(&record, Quantity::WAKEUP_LATENCY), [35]);
        assert_eq!(values(&record, Quantity::SERVICE_GAP), [45]);
    }

    #[test]
    fn a_short_standstill_excuses_only_the_job_in_whose_time_it_was() {
        let mut record = record(Vec::new(), 45);
        record.disturbances = vec![laxity_model::Disturbance {
            from: Instant::from_millis(24),
            to: Instant::from_millis(25),
        }];
        let probe = probe();
        let seen = Box::new(PeriodicReader::new(&probe, &record)).finish(probe.subject.clone());
        let misses = seen.quantities.whole(Quantity::DEADLINE_MISSES);
        assert_eq!(
            (misses.undisturbed.count(), misses.disturbed.count()),
            (2, 1)
        );
        let response = seen.quantities.whole(Quantity::RESPONSE_TIME);
        assert_eq!(response.undisturbed.count(), 1);
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
}
