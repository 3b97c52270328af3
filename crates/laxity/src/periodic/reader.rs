//! What is seen of a periodic task: how late and how regularly it wakes, and when its jobs end.

use laxity_model::program::upcall::First;
use laxity_model::verify::contract::{Phase, Quantity, Subject};
use laxity_model::{Event, EventKind, Instant, Reservation, Span};

use super::PeriodicProbe;
use crate::observe::{Observation, Reader, Recorder, Run};

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
    /// When the job before ended.
    ended: Option<Instant>,
    /// By how much halts delayed the job before, if they did.
    delayed: Option<Span>,
    /// When that job was due that waited for its own one before, when that ended, and by how much of its delay it waited for longer.
    waited_for: Option<([Instant; 2], Span)>,
    /// So many jobs in a row began late, each released before the job before it ended.
    late: u32,
    /// When the job at work was due, or the one that was released and has not begun; of a successor, when the first of its chain was due, which its begin tells.
    job: Option<Instant>,
    /// When that was released itself.
    released: Option<Instant>,
    /// Since when it has waited for the processor.
    ready: Option<Instant>,
    /// Whether the host records who loses the processor. Linux does not: all that a job took beyond its service then counts as one gap.
    sees_preemptions: bool,
    has_done: bool,
    /// Whether no event of the run was lost: else nobody knows what its end finds.
    has_all: bool,
    /// The one that its thread was granted.
    reservation: Option<Reservation>,
}

impl<'a> PeriodicReader<'a> {
    pub(super) fn new(probe: &'a PeriodicProbe, run: Run<'a>) -> Self {
        let record = run.record;
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
            reservation: run.reservation,
            recorder: Recorder::new(run),
            start: record.start,
            end: record.end,
            longest: [Span::ZERO; 2],
            ran: None,
            last_due: None,
            ended: None,
            delayed: None,
            waited_for: None,
            late: 0,
            job: None,
            released: None,
            ready: Some(record.start).filter(|_| !probe.is_successor),
            sees_preemptions,
            has_done: false,
            has_all: record.events_lost == 0,
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
        self.waited(self.since(due), ran);
        self.ran = Some(ran);
        // The grid of releases began a period before the first.
        let period = self.probe.period;
        let is_first = self.last_due.is_none();
        let origin = due.saturating_sub(period);
        if is_first && due <= self.next_due() + period {
            self.recorder.windows_from(origin.max(self.start));
        }
        let skipped = if is_first { period } else { Span::ZERO };
        let before = self.last_due.zip(self.ended).map(<[Instant; 2]>::from);
        self.skipped_upto(origin.saturating_sub(skipped), (before, true));
        self.recorder
            .value(Quantity::RELEASES_MISSED, 0, [due, ran]);
        self.late = match self.waits_for(due) {
            true => self.late + 1,
            false => 0,
        };
        self.last_due = Some(due);
        self.job = Some(due);
    }

    /// A job that was due then has its own job before to wait for, if that was still at work.
    fn waits_for(&mut self, due: Instant) -> bool {
        let over = self.ended.filter(|ended| due < *ended);
        let delayed = over.zip(self.delayed);
        self.waited_for = delayed.map(|(ended, by)| ([due, ended], by.min(ended - due)));
        over.is_some()
    }

    /// A job that was due then has not begun at the run's end.
    fn still_waits(&mut self, due: Instant) {
        self.waits_for(due);
        if self.end <= due {
            return;
        }
        // A successor is not to begin before its release.
        self.ready = match self.probe.is_successor {
            true => self.ready,
            false => self.ready.or(Some(due)),
        };
        let [latency, gap] = self.longest;
        let since = self.ready.map(|since| since.max(due));
        let waits = [
            (Quantity::WAKEUP_LATENCY, since, latency),
            (Quantity::WAKEUP_GAP, self.ran, gap),
        ];
        for (quantity, from, longest) in waits {
            let from = from.filter(|from| self.end.saturating_since(*from) > longest);
            if let Some(from) = from {
                self.recorder.span(quantity, from, self.end);
            }
        }
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
        let period = self.probe.period;
        match (self.last_due, &self.probe.first) {
            (Some(last), _) => last + period,
            (None, First::AfterAPeriod) => self.start + period,
            (None, First::After(_, phase)) => self.start + *phase,
            (None, First::At(first)) => {
                let late = self.start.saturating_since(*first).as_nanos();
                *first + period * late.div_ceil(period.as_nanos())
            }
        }
    }

    /// Releases up to this one while the job before was still at work, or the task had not had the processor at all: they never ran, and so missed
    /// their deadlines. That job, `before`, hands down how much later it ended because the machine stood still: releases at which it would have been
    /// done are not judged. If it `began`, those at which it would have been at work all the same are, whatever stood still since, and so are those before anything did.
    fn skipped_upto(&mut self, last: Instant, (before, began): (Option<[Instant; 2]>, bool)) {
        let handed_down = before.map(|span| {
            let delayed = self.delayed(span, span[1]);
            let done = span[1].saturating_sub(delayed.unwrap_or_default());
            [self.first_bearing(span).unwrap_or(span[1]), done, span[1]]
        });
        let mut skipped = self.next_due();
        while skipped <= last {
            let span = [skipped, skipped + self.probe.deadline];
            let excused = match handed_down {
                Some([bears, done, _]) if began && (skipped < done || skipped <= bears) => None,
                Some([_, done, ended]) if done <= skipped && skipped <= ended => Some(1),
                _ => {
                    let halts = self.recorder.disturbances();
                    halts.overlap(span[0], span[1]).then_some(1)
                }
            };
            for missed in [Quantity::DEADLINE_MISSES, Quantity::RELEASES_MISSED] {
                self.recorder.told_apart(missed, 1, excused, skipped);
            }
            if excused.is_some() {
                // It would have been done by then.
                self.recorder.excuse(Quantity::JOBS_DONE, span);
            }
            skipped += self.probe.period;
        }
    }

    /// When the job is due that the run's end finds at work, or else the first that has not begun and is still to be called; `None` where there is none ever. What was
    /// released before that, while the job before was at work, or after it was suspended, came to nothing: nobody waits for it.
    fn open_at_end(&mut self) -> Option<Instant> {
        let next = self.next_due();
        let before = self.last_due.zip(self.ended).map(<[Instant; 2]>::from);
        // When a successor's releases come its own events do not tell, but for the one that it was seen to wake at.
        let Some([last, ended]) = before.filter(|_| !self.probe.is_successor) else {
            let is_over = self.probe.is_successor && self.probe.may_stop && self.ready.is_none();
            if is_over && self.job.is_none() {
                self.skipped_upto(self.past_deadline(), (before, true));
            }
            return self.job.or(Some(next).filter(|_| !is_over));
        };
        let period = self.probe.period;
        let due = self.job.or_else(|| {
            let came = ended.saturating_since(next).as_nanos();
            let late = match came.div_ceil(period.as_nanos()) {
                0 => Ok([0, 0]),
                came => (self.probe.on_overrun.late(came, self.late)).map(|late| [came, late]),
            };
            let [came, late] = late.ok()?;
            Some(next + period * (came - late))
        });
        let gone = match due {
            Some(due) => due.saturating_sub(period),
            None => self.past_deadline(),
        };
        if due.is_none_or(|due| last < due) {
            self.skipped_upto(gone, (Some([last, ended]), true));
        }
        due
    }

    /// What was released until then was due before the run's end.
    fn past_deadline(&self) -> Instant {
        let passed = self.probe.deadline + Span::from_nanos(1);
        self.end.saturating_sub(passed)
    }

    /// By how much halts delayed a job that was due then and at work until `at`, if any bore on it before `until`: also one before it was due, through others or through its
    /// own job before, for which it waited.
    fn delayed(&self, [due, at]: [Instant; 2], until: Instant) -> Option<Span> {
        let halts = self.recorder.disturbances();
        let before = due.saturating_sub(self.probe.period);
        let since = halts.bear_since(before, [due, until], self.reservation);
        let delayed = since.and_then(|since| halts.delayed([since, at], self.reservation));
        let waited_for = self.waited_for.filter(|([of, _], _)| *of == due);
        let through_own = waited_for.map(|([_, ended], by)| {
            let since = halts.delayed([ended, at], self.reservation);
            by + since.unwrap_or_default()
        });
        delayed.max(through_own)
    }

    /// A job that was due then was at work until `at`; tells by how much halts delayed it.
    fn responds(&mut self, [due, at]: [Instant; 2]) -> Option<Span> {
        let delayed = self.delayed([due, at], at);
        let response = at.saturating_since(due);
        self.recorder
            .lasted_behind(Quantity::RESPONSE_TIME, response, delayed);
        delayed
    }

    /// When the first halt began that bore on a job that was due then and at work until `at`: that of one before its release counts from that.
    fn first_bearing(&self, [due, at]: [Instant; 2]) -> Option<Instant> {
        match self.delayed([due, due], due) {
            Some(_) => Some(due),
            None => self.recorder.disturbances().first(due, at),
        }
    }

    /// Whether a job that was due then, and at work until `at`, kept its deadline, and was over when the next was released.
    fn was_in_time(&mut self, job: [Instant; 2]) {
        self.exceeded(Quantity::DEADLINE_MISSES, self.probe.deadline, job);
        self.exceeded(Quantity::JOB_OVERRUNS, self.probe.period, job);
    }

    /// Whether a job took longer than it is to. That is the machine's where a halt within that time bore on the job, which would have been in time, had it ended sooner by as much as
    /// that delayed it.
    fn exceeded(&mut self, quantity: Quantity, within: Span, [due, at]: [Instant; 2]) {
        let response = at.saturating_since(due);
        let delayed = self.delayed([due, at], at.min(due + within));
        let is_excused = delayed.is_some_and(|by| response.saturating_sub(by) <= within);
        let exceeded = u64::from(response > within);
        let excused = is_excused.then_some(exceeded);
        self.recorder.told_apart(quantity, exceeded, excused, due);
    }

    /// When the job was released that was due then: a successor's when the one before it was over.
    fn since(&self, due: Instant) -> Instant {
        let released = self.released.filter(|_| self.probe.is_successor);
        released.unwrap_or(due)
    }

    /// It is released, or has its budget again.
    fn wakes(&mut self, event: &Event) {
        let due = Instant::from_nanos(event.args[0]);
        self.ready = Some(due);
        if self.probe.ends.is_some() && self.job.is_some() {
            return;
        }
        // A wait that was over before it began leaves no other trace of the job before.
        self.complete(event.at);
        self.released = Some(due);
        if !self.probe.is_successor {
            self.job = Some(due);
        }
    }

    fn complete(&mut self, at: Instant) {
        let Some(due) = self.job.take() else { return };
        self.ended = Some(at);
        self.recorder.value(Quantity::JOBS_DONE, 1, [at; 2]);
        self.has_done = true;
        self.delayed = self.responds([due, at]);
        self.was_in_time([due, at]);
        if !self.sees_preemptions {
            let since = self.since(due);
            let service = self.probe.service.as_dedicated_span();
            let without = at.saturating_since(since).saturating_sub(service);
            self.recorder
                .lasted(Quantity::SERVICE_GAP, without, [since, at]);
        }
    }
}

impl Reader for PeriodicReader<'_> {
    fn take(&mut self, event: &Event, phase: &Phase) {
        if self.recorder.phase != *phase {
            self.recorder.phase = phase.clone();
        }
        match event.kind {
            EventKind::Wake => self.wakes(event),
            EventKind::Dispatch => self.served(event.at),
            EventKind::Preempt => self.ready = Some(event.at),
            EventKind::Block if self.probe.ends.is_none() => self.complete(event.at),
            // The last job is over with the task.
            EventKind::Finish => self.complete(event.at),
            EventKind::Mark(mark) if Some(mark) == self.probe.ends => self.complete(event.at),
            EventKind::Mark(mark) if mark == self.probe.runs => self.begin(event),
            _ => {}
        }
    }

    /// A job that the run's end finds unfinished has missed its deadline if that is past, and so have all that were due after it. One that
    /// was due and has not begun has waited as long as it has, whether or not anybody has seen it wake. Stretches in which the machine
    /// stood still excuse no more of that than of what was over.
    fn finish(mut self: Box<Self>, subject: Subject) -> Observation {
        let end = self.end;
        if !self.has_done {
            let all = [self.start, end];
            self.recorder.value(Quantity::JOBS_DONE, 0, all);
        }
        let open = self.has_all.then(|| self.open_at_end());
        let Some(due) = open.flatten() else {
            return Observation::of(subject, self.recorder.finish());
        };
        let deadline = due + self.probe.deadline;
        let has_begun = self.last_due == Some(due);
        if !has_begun {
            self.still_waits(due);
        }
        if let Some(since) = self.ready.take() {
            self.recorder.span(Quantity::SERVICE_GAP, since, end);
        }
        if has_begun && due + self.probe.period < end {
            self.exceeded(Quantity::JOB_OVERRUNS, self.probe.period, [due, end]);
        }
        if deadline < end {
            self.responds([due, end]);
            self.exceeded(Quantity::DEADLINE_MISSES, self.probe.deadline, [due, end]);
            if !has_begun {
                self.exceeded(Quantity::RELEASES_MISSED, self.probe.deadline, [due, end]);
            }
            if !self.sees_preemptions && (has_begun || !self.probe.is_successor) {
                let service = self.probe.service.as_dedicated_span();
                let since = self.since(due);
                let gap = end.saturating_since(since).saturating_sub(service);
                self.recorder
                    .lasted(Quantity::SERVICE_GAP, gap, [since, end]);
            }
            self.last_due = Some(due);
            self.skipped_upto(self.past_deadline(), (Some([due, end]), has_begun));
        }
        Observation::of(subject, self.recorder.finish())
    }
}

#[cfg(test)]
mod tests;
