//! What is seen of a soft modem: its interrupts, the calls of its signal processing, the samples that it loses, and its phases.

use laxity_devices::modem::{Installed, Phase as CallPhase};
use laxity_model::verify::contract::{Phase, Quantity, Subject};
use laxity_model::{Event, EventKind, Instant, Mark, RunRecord, Service, Span};

use crate::scenario::Placing;
use crate::scenario::kinds::{
    PROCESSING_TIME, RETRAININGS, SAMPLES_LOST, SAMPLES_OVERWRITTEN, SAMPLES_PENDING,
    SAMPLES_UNDERRUN,
};
use laxity::observe::{Observation, Reader, Recorder};

/// A modem in a program.
pub struct ModemProbe {
    /// Its activities and its events.
    pub installed: Installed,
    /// Where its driver runs.
    pub placing: Placing,
}

/// Calls of which each was asked for before the one before it was over: the lateness of the first is handed down to all.
#[derive(Default)]
struct BusyPeriod {
    from: Instant,
    to: Option<Instant>,
}

impl BusyPeriod {
    /// Takes the next call, from its interrupt to its end; returns when the busy period began that it belongs to.
    fn take(&mut self, raised: Instant, ended: Instant) -> Instant {
        if self.to.replace(ended).is_none_or(|before| before < raised) {
            self.from = raised;
        }
        self.from
    }
}

/// The stretch over which the queue of the modem's deferred calls has not been empty.
#[derive(Default)]
struct DeferredQueue {
    entered: bool,
    last_exit: Option<Instant>,
    from: Instant,
    total: Span,
}

/// A call of the signal processing that has ended, and whose losses are not told apart yet.
struct Ended {
    lost: u64,
    span: [Instant; 2],
}

pub(super) struct ModemReader<'a> {
    probe: &'a ModemProbe,
    recorder: Recorder<'a>,
    /// Of the run.
    start: Instant,
    end: Instant,
    /// When its phase began: an interval that began before belongs to neither.
    phase_since: Instant,
    phases: Vec<(Instant, Phase)>,
    interrupt: Option<Instant>,
    interrupt_entered: Option<Instant>,
    deferred: DeferredQueue,
    /// When the interrupt of the call at work was raised, and when the call began.
    call: Option<(Instant, Instant)>,
    ended: Option<Ended>,
    busy: BusyPeriod,
    /// Samples lost and samples underrun so far.
    lost: u64,
    underrun: u64,
    connected_from: Option<(Instant, Service)>,
    connected: Option<(Service, Span)>,
}

impl<'a> ModemReader<'a> {
    pub(super) fn new(probe: &'a ModemProbe, record: &'a RunRecord) -> Self {
        Self {
            probe,
            recorder: Recorder::new(record),
            start: record.start,
            end: record.end,
            phase_since: record.start,
            phases: Vec::new(),
            interrupt: None,
            interrupt_entered: None,
            deferred: DeferredQueue::default(),
            call: None,
            ended: None,
            busy: BusyPeriod::default(),
            lost: 0,
            underrun: 0,
            connected_from: None,
            connected: None,
        }
    }

    fn interrupt_enter(&mut self, event: &Event) {
        self.interrupt_entered = Some(event.at);
        // A change of rate or block size delays one interrupt: that interval belongs to no phase.
        if let Some(before) = self.interrupt.replace(event.at)
            && before > self.phase_since
        {
            self.recorder
                .span(Quantity::INTERRUPT_PERIOD, before, event.at);
        }
    }

    fn interrupt_exit(&mut self, event: &Event) {
        if let Some(entered) = self.interrupt_entered.take() {
            self.recorder
                .span(Quantity::INTERRUPT_TIME, entered, event.at);
        }
    }

    fn deferred_enter(&mut self, event: &Event) {
        let queued = Instant::from_nanos(event.args[0]);
        if self.deferred.last_exit.is_none_or(|exit| queued > exit) {
            self.close_deferred();
            self.deferred.from = event.at;
        }
        self.deferred.entered = true;
    }

    /// PC 99 limits the execution time that queued calls need, not the time they take: what preempts them does not count.
    fn deferred_exit(&mut self, event: &Event) {
        if std::mem::take(&mut self.deferred.entered) {
            self.deferred.total += Span::from_nanos(event.args[0]);
            self.deferred.last_exit = Some(event.at);
        }
    }

    /// The queue was empty: what was taken from it since it last was.
    fn close_deferred(&mut self) {
        if let Some(exit) = self.deferred.last_exit.take() {
            let total = std::mem::take(&mut self.deferred.total).as_nanos();
            let span = [self.deferred.from, exit];
            self.recorder.value(Quantity::DEFERRED_TIME, total, span);
        }
    }

    fn mark(&mut self, mark: Mark, event: &Event) {
        let marks = self.probe.installed.marks;
        if mark == marks.phase {
            self.enter_phase(event);
        } else if mark == marks.call_begin {
            self.call = Some((Instant::from_nanos(event.args[1]), event.at));
        } else if mark == marks.call_end {
            self.call_end(event);
        } else if mark == marks.account {
            self.account(event);
        }
    }

    fn enter_phase(&mut self, event: &Event) {
        self.close_deferred();
        let place = usize::try_from(event.args[0]).unwrap_or(usize::MAX);
        let Some(phase) = CallPhase::ALL.get(place) else {
            return;
        };
        self.recorder.phase = Phase::new(phase.name());
        self.phase_since = event.at;
        self.phases.push((event.at, self.recorder.phase.clone()));
        if let Some(priority) = self.probe.placing.priority() {
            let level = u64::from(priority.level());
            self.recorder
                .value(Quantity::THREAD_PRIORITY, level, [event.at; 2]);
        }
    }

    fn call_end(&mut self, event: &Event) {
        let Some((raised, began)) = self.call.take() else {
            return;
        };
        let [pending, lost] = event.args;
        self.recorder.span(PROCESSING_TIME, began, event.at);
        let span = [self.busy.take(raised, event.at), event.at];
        let response = event.at.saturating_since(raised).as_nanos();
        let lost_now = lost - self.lost;
        for (quantity, value) in [
            (Quantity::RESPONSE_TIME, response),
            (SAMPLES_PENDING, pending),
            (SAMPLES_LOST, lost_now),
        ] {
            self.recorder.value(quantity, value, span);
        }
        self.lost = lost;
        self.ended = Some(Ended {
            lost: lost_now,
            span,
        });
    }

    fn account(&mut self, event: &Event) {
        let [service, underrun] = event.args;
        if let Some(Ended { lost, span }) = self.ended.take() {
            let underrun_now = underrun - self.underrun;
            self.recorder.value(SAMPLES_UNDERRUN, underrun_now, span);
            let overwritten = lost.saturating_sub(underrun_now);
            self.recorder.value(SAMPLES_OVERWRITTEN, overwritten, span);
            self.underrun = underrun;
        }
        if self.recorder.phase.name() == CallPhase::Connected.name() {
            let service = Service::from_nanos(service);
            let (from, before) = *self.connected_from.get_or_insert((event.at, service));
            self.connected = Some((
                service.saturating_sub(before),
                event.at.saturating_since(from),
            ));
        }
    }
}

impl ModemReader<'_> {
    /// What the run's end finds unserved counts as far as it got: a call has waited too long at any rate once the interrupt after its own
    /// has been raised, and what is lost by then is lost. Each of these calls had its own time, to the next interrupt: a stretch in which
    /// the machine stood still excuses none that was to come before or after it.
    fn unserved(&mut self) {
        let left = self.probe.installed.left.unserved(self.end);
        let left = left.expect("a host that hands back a record has dropped the program's bodies");
        let ends = left.raised.iter().skip(1).chain([&self.end]);
        let calls = left.raised.iter().zip(ends);
        let mut own: Vec<[Instant; 2]> = calls.map(|(from, to)| [*from, *to]).collect();
        if own.is_empty() {
            // What is lost without a call that is owed is lost at the end.
            own.push([self.end; 2]);
        }
        if let Some((_, late)) = own.split_last() {
            for span in late {
                let waited = self.end.saturating_since(span[0]).as_nanos();
                self.recorder.value(Quantity::RESPONSE_TIME, waited, *span);
                self.recorder.value(SAMPLES_PENDING, left.pending, *span);
            }
        }
        let report = &self.probe.installed.report;
        let underrun = report.samples_underrun.get() + left.underrun;
        let lost = report.samples_lost.get() + left.lost + underrun - self.lost;
        let underrun = underrun - self.underrun;
        let overwritten = lost.saturating_sub(underrun);
        let calls = own.len() as u64;
        for (call, span) in (0..).zip(own).filter(|_| lost > 0) {
            for (quantity, all) in [
                (SAMPLES_LOST, lost),
                (SAMPLES_UNDERRUN, underrun),
                (SAMPLES_OVERWRITTEN, overwritten),
            ] {
                // All that is lost, shared by the calls in whose time it was.
                let share = all * (call + 1) / calls - all * call / calls;
                self.recorder.value(quantity, share, span);
            }
        }
    }
}

impl Reader for ModemReader<'_> {
    fn take(&mut self, event: &Event, _: &Phase) {
        let installed = &self.probe.installed;
        match event.kind {
            EventKind::InterruptEnter if event.activity == installed.interrupt => {
                self.interrupt_enter(event);
            }
            EventKind::InterruptExit if event.activity == installed.interrupt => {
                self.interrupt_exit(event);
            }
            EventKind::DeferredEnter => self.deferred_enter(event),
            EventKind::DeferredExit => self.deferred_exit(event),
            EventKind::Mark(mark) if event.activity == installed.driver => self.mark(mark, event),
            _ => {}
        }
    }

    fn phase(&self) -> Option<&Phase> {
        Some(&self.recorder.phase)
    }

    fn finish(mut self: Box<Self>, subject: Subject) -> Observation {
        self.close_deferred();
        self.unserved();
        let retrainings = self.probe.installed.report.retrainings.get();
        let start = [self.start; 2];
        self.recorder.value(RETRAININGS, retrainings, start);
        Observation {
            subject,
            quantities: self.recorder.finish(),
            phases: self.phases,
            connected: self.connected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_handed_down_through_a_busy_period() {
        let at = Instant::from_millis;
        let mut busy = BusyPeriod::default();
        assert_eq!(busy.take(at(10), at(70)), at(10), "it was late");
        assert_eq!(busy.take(at(22), at(72)), at(10));
        assert_eq!(busy.take(at(72), at(74)), at(10), "asked for at its end");
        assert_eq!(busy.take(at(85), at(87)), at(85), "all was served between");
    }
}
