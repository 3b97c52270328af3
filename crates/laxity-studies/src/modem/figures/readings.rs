//! What figures are drawn from: one run's events as series over time.

use laxity_devices::modem::{Installed, Outcome, Phase};
use laxity_model::{Event, EventKind, Instant, Mark, RunRecord, Span};

use laxity::observe::Disturbances;
use laxity_lab::observe::Probes;

/// Something that took time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Timed {
    /// When it ended, after the start of the run.
    pub(super) at: Span,
    /// How long it took.
    pub(super) took: Span,
    /// Whether the machine itself stood still meanwhile.
    pub(super) disturbed: bool,
}

/// A call of the signal processing that has returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Call {
    /// When it returned, how long it took from its first to its last instruction.
    pub(super) timed: Timed,
    /// Samples left in the input ring.
    pub(super) pending: u64,
    /// Samples lost or sent as garbage since the call before.
    pub(super) damage: u64,
}

/// One run.
#[derive(Clone, Debug, Default)]
pub(super) struct Readings {
    /// How long it was.
    pub(super) length: Span,
    /// When each phase of the call began.
    pub(super) phases: Vec<(Span, Phase)>,
    /// From one interrupt of the card to the next.
    pub(super) intervals: Vec<Timed>,
    /// Each run of the card's interrupt handler.
    pub(super) handler: Vec<Timed>,
    /// Each run of the driver's deferred call, where it works there.
    pub(super) deferred: Vec<Timed>,
    /// Each call of the signal processing.
    pub(super) calls: Vec<Call>,
    /// Each run of the driver's thread, from its first instruction after a wait to its next wait.
    pub(super) thread: Vec<Timed>,
    /// From one callback to the next.
    pub(super) gaps: Vec<Timed>,
    /// How the call ended, if it did.
    pub(super) outcome: Option<Outcome>,
    /// Share of the witness's wake-ups that were late, parts per million; `None` where no witness served.
    pub(super) disturbed_ppm: Option<u64>,
    /// Time that the hypervisor took away, as the kernel counts it.
    pub(super) steal: Span,
}

impl Readings {
    /// Reads a run's events once, in their order.
    pub(super) fn of(record: &RunRecord, probes: &Probes) -> Self {
        let mut reader = Reader {
            probes,
            disturbances: Disturbances(&record.disturbances),
            start: record.start,
            last_interrupt: None,
            entered: None,
            deferred_entered: None,
            call: None,
            damage: 0,
            dispatched: None,
            last_callback: None,
            readings: Self::default(),
        };
        for event in &record.events {
            reader.take(event);
        }
        let mut readings = reader.readings;
        readings.length = record.end.saturating_since(record.start);
        readings.outcome = probes
            .modem()
            .and_then(|modem| modem.report.outcome().cloned());
        let late = record.disturbances.len() as u64 * 1_000_000;
        readings.disturbed_ppm = late.checked_div(record.witness_wakeups);
        readings.steal = record.steal.unwrap_or(Span::ZERO);
        readings
    }

    /// When this phase began; `None` if the call never got there.
    pub(super) fn began(&self, phase: Phase) -> Option<Span> {
        let first = self.phases.iter().find(|(_, entered)| *entered == phase);
        first.map(|(at, _)| *at)
    }

    /// The phase at this moment.
    pub(super) fn phase_at(&self, at: Span) -> Phase {
        let entered = self.phases.partition_point(|(began, _)| *began <= at);
        let before = entered.checked_sub(1).map(|index| self.phases[index].1);
        before.unwrap_or(Phase::OnHook)
    }

    /// Samples lost or sent as garbage while nothing disturbed, and all.
    pub(super) fn damage(&self) -> (u64, u64) {
        let all = self.calls.iter().map(|call| call.damage);
        let undisturbed = self.calls.iter().filter(|call| !call.timed.disturbed);
        (undisturbed.map(|call| call.damage).sum(), all.sum())
    }
}

struct Reader<'a> {
    probes: &'a Probes,
    disturbances: Disturbances<'a>,
    start: Instant,
    last_interrupt: Option<Instant>,
    entered: Option<Instant>,
    deferred_entered: Option<Instant>,
    /// When the interrupt of the call under way was raised, and when the call began.
    call: Option<(Instant, Instant)>,
    damage: u64,
    dispatched: Option<Instant>,
    last_callback: Option<Instant>,
    readings: Readings,
}

impl Reader<'_> {
    fn timed(&self, from: Instant, to: Instant) -> Timed {
        Timed {
            at: to.saturating_since(self.start),
            took: to.saturating_since(from),
            disturbed: self.disturbances.overlap(from, to),
        }
    }

    fn take(&mut self, event: &Event) {
        let is_callback = self.probes.cothread().is_some_and(|task| {
            event.activity == task.activity && event.kind == EventKind::Mark(task.runs)
        });
        if is_callback {
            self.callback(event);
        }
        let probes = self.probes;
        let Some(modem) = probes.modem() else { return };
        if event.activity == modem.interrupt {
            self.interrupt(event);
        }
        if event.activity == modem.driver {
            self.driver(modem, event);
        }
    }

    fn callback(&mut self, event: &Event) {
        let ran = Instant::from_nanos(event.args[1]);
        if let Some(before) = self.last_callback.replace(ran) {
            let gap = self.timed(before, ran);
            self.readings.gaps.push(gap);
        }
    }

    fn interrupt(&mut self, event: &Event) {
        match event.kind {
            // The first step of all only tells the host what the handler waits for.
            EventKind::InterruptEnter if event.args[0] > self.start.as_nanos() => {
                self.entered = Some(event.at);
                if let Some(before) = self.last_interrupt.replace(event.at) {
                    let interval = self.timed(before, event.at);
                    self.readings.intervals.push(interval);
                }
            }
            EventKind::InterruptExit => {
                if let Some(entered) = self.entered.take() {
                    let took = self.timed(entered, event.at);
                    self.readings.handler.push(took);
                }
            }
            _ => {}
        }
    }

    fn driver(&mut self, modem: &Installed, event: &Event) {
        match event.kind {
            EventKind::DeferredEnter => self.deferred_entered = Some(event.at),
            EventKind::DeferredExit => {
                if let Some(entered) = self.deferred_entered.take() {
                    let took = self.timed(entered, event.at);
                    self.readings.deferred.push(took);
                }
            }
            EventKind::Dispatch => {
                self.dispatched.get_or_insert(event.at);
            }
            EventKind::Block => {
                if let Some(since) = self.dispatched.take() {
                    let took = self.timed(since, event.at);
                    self.readings.thread.push(took);
                }
            }
            EventKind::Mark(mark) => self.mark(modem, mark, event),
            _ => {}
        }
    }

    fn mark(&mut self, modem: &Installed, mark: Mark, event: &Event) {
        if mark == modem.marks.phase {
            let place = usize::try_from(event.args[0]).unwrap_or(usize::MAX);
            if let Some(phase) = Phase::ALL.get(place) {
                let at = event.at.saturating_since(self.start);
                self.readings.phases.push((at, *phase));
            }
        } else if mark == modem.marks.call_begin {
            self.call = Some((Instant::from_nanos(event.args[1]), event.at));
        } else if mark == modem.marks.call_end
            && let Some((raised, began)) = self.call.take()
        {
            let [pending, damage] = event.args;
            let mut timed = self.timed(began, event.at);
            // What came too late may have been held up before it began.
            timed.disturbed |= self.disturbances.overlap(raised, event.at);
            self.readings.calls.push(Call {
                timed,
                pending,
                damage: damage - self.damage,
            });
            self.damage = damage;
        }
    }
}
