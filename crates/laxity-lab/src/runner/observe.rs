//! From the record of a run to what contracts are judged by and tables show.

use laxity_devices::modem::{Installed, Phase as ModemPhase};
use laxity_model::base::histogram::Histogram;
use laxity_model::verify::contract::{Observations, Phase, Quantity};
use laxity_model::{
    ActivityId, Disturbance, Event, EventKind, Instant, Mark, RunRecord, Service, Span,
};

use super::compose::{Probes, working_priority};

/// What was seen of one run.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// For contracts.
    pub observations: Observations,
    /// Elapsed time of each call of the signal processing, in nanoseconds.
    pub processing: Histogram,
    /// The same, but for calls that overlap a disturbance.
    pub undisturbed_processing: Histogram,
    /// Processor time of the modem's driver while connected, and how long that was.
    pub connected: Option<(Service, Span)>,
    /// When each phase began, by the host's clock.
    pub phases: Vec<(Instant, ModemPhase)>,
    /// Share of the witness's wake-ups that were late, in parts per million; `None` where no witness served.
    pub disturbed_ppm: Option<u32>,
}

/// Reads a run's events once, in their order.
#[must_use]
pub fn observe(record: &RunRecord, probes: &Probes) -> Seen {
    let mut reader = Reader::new(record, probes);
    for event in &record.events {
        reader.take(event);
    }
    reader.finish(record)
}

/// The stretches in which the machine stood still, for asking what overlaps them.
pub struct Disturbances<'a>(pub &'a [Disturbance]);

impl Disturbances<'_> {
    /// Whether any overlaps the time from `from` to `to`, ends included. O(log n).
    pub fn overlap(&self, from: Instant, to: Instant) -> bool {
        let first = self.0.partition_point(|disturbance| disturbance.to < from);
        self.0
            .get(first)
            .is_some_and(|disturbance| disturbance.from <= to)
    }
}

struct Reader<'a> {
    probes: &'a Probes,
    disturbances: Disturbances<'a>,
    seen: Seen,
    phase: Phase,
    /// When that phase began: an interval that began before belongs to neither.
    phase_since: Instant,
    callback: Option<Instant>,
    interrupt: Option<Instant>,
    interrupt_entered: Option<Instant>,
    deferred: DeferredQueue,
    call: Option<(Instant, Instant)>,
    busy: BusyPeriod,
    damage: u64,
    connected_from: Option<(Instant, Service)>,
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

/// The stretch over which the queue of deferred calls has not been empty.
#[derive(Default)]
struct DeferredQueue {
    entered: bool,
    last_exit: Option<Instant>,
    from: Instant,
    total: Span,
}

impl<'a> Reader<'a> {
    fn new(record: &'a RunRecord, probes: &'a Probes) -> Self {
        Self {
            probes,
            disturbances: Disturbances(&record.disturbances),
            seen: Seen::default(),
            phase: Phase::RUN,
            phase_since: record.start,
            callback: None,
            interrupt: None,
            interrupt_entered: None,
            deferred: DeferredQueue::default(),
            call: None,
            busy: BusyPeriod::default(),
            damage: 0,
            connected_from: None,
        }
    }

    fn take(&mut self, event: &Event) {
        match event.kind {
            EventKind::InterruptEnter => self.interrupt_enter(event),
            EventKind::InterruptExit => self.interrupt_exit(event),
            EventKind::DeferredEnter => self.deferred_enter(event),
            EventKind::DeferredExit => self.deferred_exit(event),
            EventKind::Mark(mark) => self.mark(mark, event),
            _ => {}
        }
    }

    fn record(&mut self, quantity: Quantity, value: u64, from: Instant, to: Instant) {
        let disturbed = self.disturbances.overlap(from, to);
        self.seen
            .observations
            .record(quantity, &self.phase, value, disturbed);
    }

    fn record_span(&mut self, quantity: Quantity, from: Instant, to: Instant) {
        self.record(quantity, to.saturating_since(from).as_nanos(), from, to);
    }

    fn is_modem_interrupt(&self, activity: ActivityId) -> bool {
        self.probes
            .modem
            .as_ref()
            .is_some_and(|modem| modem.interrupt == activity)
    }

    fn interrupt_enter(&mut self, event: &Event) {
        if !self.is_modem_interrupt(event.activity) {
            return;
        }
        self.interrupt_entered = Some(event.at);
        // A change of rate or block size delays one interrupt: that interval belongs to no phase.
        if let Some(before) = self.interrupt.replace(event.at)
            && before > self.phase_since
        {
            self.record_span(Quantity::InterruptPeriod, before, event.at);
        }
    }

    fn interrupt_exit(&mut self, event: &Event) {
        if self.is_modem_interrupt(event.activity)
            && let Some(entered) = self.interrupt_entered.take()
        {
            self.record_span(Quantity::InterruptTime, entered, event.at);
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
            let total = std::mem::take(&mut self.deferred.total);
            self.record(
                Quantity::DeferredTime,
                total.as_nanos(),
                self.deferred.from,
                exit,
            );
        }
    }

    fn mark(&mut self, mark: Mark, event: &Event) {
        if self
            .probes
            .cothread
            .is_some_and(|(id, runs)| id == event.activity && runs == mark)
        {
            self.callback(event);
        }
        let probes = self.probes;
        if let Some(modem) = &probes.modem
            && modem.driver == event.activity
        {
            self.modem_mark(modem, mark, event);
        }
    }

    fn callback(&mut self, event: &Event) {
        let [due, ran] = event.args.map(Instant::from_nanos);
        self.record_span(Quantity::WakeupLatency, due, ran);
        if let Some(before) = self.callback.replace(ran) {
            self.record_span(Quantity::WakeupGap, before, ran);
        }
    }

    fn modem_mark(&mut self, modem: &Installed, mark: Mark, event: &Event) {
        if mark == modem.marks.phase {
            self.enter_phase(event);
        } else if mark == modem.marks.call_begin {
            self.call = Some((Instant::from_nanos(event.args[1]), event.at));
        } else if mark == modem.marks.call_end {
            self.call_end(event);
        } else if mark == modem.marks.account
            && self
                .seen
                .phases
                .last()
                .is_some_and(|p| p.1 == ModemPhase::Connected)
        {
            let service = Service::from_nanos(event.args[0]);
            let (from, before) = *self.connected_from.get_or_insert((event.at, service));
            self.seen.connected = Some((
                service.saturating_sub(before),
                event.at.saturating_since(from),
            ));
        }
    }

    fn enter_phase(&mut self, event: &Event) {
        self.close_deferred();
        let place = usize::try_from(event.args[0]).unwrap_or(usize::MAX);
        let Some(&phase) = ModemPhase::ALL.get(place) else {
            return;
        };
        self.phase = Phase::new(phase.name());
        self.phase_since = event.at;
        self.seen.phases.push((event.at, phase));
        if let Some(priority) = self.probes.placing.and_then(working_priority) {
            self.record(
                Quantity::ThreadPriority,
                u64::from(priority.level()),
                event.at,
                event.at,
            );
        }
    }

    fn call_end(&mut self, event: &Event) {
        let Some((raised, began)) = self.call.take() else {
            return;
        };
        let [pending, damage] = event.args;
        let elapsed = event.at.saturating_since(began).as_nanos();
        self.seen.processing.record(elapsed);
        if !self.disturbances.overlap(began, event.at) {
            self.seen.undisturbed_processing.record(elapsed);
        }
        let busy_from = self.busy.take(raised, event.at);
        let response = event.at.saturating_since(raised).as_nanos();
        let lost = damage - self.damage;
        for (quantity, value) in [
            (Quantity::ResponseTime, response),
            (Quantity::SamplesPending, pending),
            (Quantity::SamplesLost, lost),
        ] {
            self.record(quantity, value, busy_from, event.at);
        }
        self.damage = damage;
    }

    fn finish(mut self, record: &RunRecord) -> Seen {
        self.close_deferred();
        if let Some(modem) = &self.probes.modem {
            let retrainings = modem.report.retrainings.get();
            self.record(
                Quantity::Retrainings,
                retrainings,
                record.start,
                record.start,
            );
        }
        self.seen.disturbed_ppm = (record.witness_wakeups > 0).then(|| {
            let late = record.disturbances.len() as u64 * 1_000_000;
            u32::try_from(late / record.witness_wakeups).unwrap_or(u32::MAX)
        });
        self.seen
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

    #[test]
    fn overlap_counts_the_ends() {
        let at = Instant::from_millis;
        let list = [
            Disturbance {
                from: at(10),
                to: at(12),
            },
            Disturbance {
                from: at(30),
                to: at(31),
            },
        ];
        let disturbances = Disturbances(&list);
        for (from, to, expected) in [
            (0, 9, false),
            (0, 10, true),
            (12, 13, true),
            (13, 29, false),
            (11, 11, true),
            (9, 40, true),
            (32, 40, false),
        ] {
            assert_eq!(
                disturbances.overlap(at(from), at(to)),
                expected,
                "{from} to {to}"
            );
        }
    }
}
