//! What figures are drawn from: one run's events as series over time.

use laxity::observe::Disturbances;
use laxity_devices::modem::{Installed, Outcome, Phase};
use laxity_lab::observe::Probes;
use laxity_model::{Event, EventKind, Instant, Mark, RunRecord, Span};
use serde::Deserialize;

/// Each point of figure 3 covers so much (§6.2.3).
const WINDOW: Span = Span::from_micros(12_500);

/// What is read from a run over its time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Series {
    /// From one interrupt of the card to the next.
    Intervals,
    /// Each run of the card's interrupt handler.
    Handler,
    /// Each run of the driver's deferred call, where it works there.
    Deferred,
    /// Each run of the driver's thread, from its first instruction after a wait to its next wait.
    Thread,
    /// From one callback to the next.
    Gaps,
    /// Each call of the signal processing, from its first to its last instruction.
    Calls,
    /// Samples left in the input ring after each call.
    Pending,
    /// Samples lost or sent as garbage from one call to the next.
    Damage,
    /// Each phase but the last: how long it lasted.
    Phases,
    /// When each phase began, after the start of the run.
    Begins,
    /// The share of each window that the handler took, in parts per million.
    Windows,
}

impl Series {
    const COUNT: usize = Self::Windows as usize + 1;
}

/// A value of a series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Point {
    /// When it began, after the start of the run.
    pub(super) from: Span,
    /// When it ended.
    pub(super) at: Span,
    /// How much: nanoseconds where it took time.
    pub(super) value: u64,
    /// Whether the machine itself stood still meanwhile.
    pub(super) disturbed: bool,
}

/// One run.
#[derive(Clone, Debug, Default)]
pub struct Readings {
    /// How long it was.
    pub(super) length: Span,
    series: [Vec<Point>; Series::COUNT],
    /// When each phase of the call began.
    phases: Vec<(Span, Phase)>,
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
        readings.derive();
        readings
    }

    /// The series that follow from others.
    fn derive(&mut self) {
        let lasting = |from: Span, value: Span| Point {
            from,
            at: from,
            value: value.as_nanos(),
            disturbed: false,
        };
        for (number, (began, _)) in self.phases.iter().enumerate() {
            self.series[Series::Begins as usize].push(lasting(*began, *began));
            if let Some((next, _)) = self.phases.get(number + 1) {
                let lasted = lasting(*began, next.saturating_sub(*began));
                self.series[Series::Phases as usize].push(lasted);
            }
        }
        self.series[Series::Windows as usize] = windows(self.length, self.points(Series::Handler));
    }

    /// A series, in the order of time.
    pub(super) fn points(&self, series: Series) -> &[Point] {
        &self.series[series as usize]
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
}

/// The handler's share of each window; a run of the handler may lie in two.
fn windows(length: Span, handler: &[Point]) -> Vec<Point> {
    let mut used = vec![0_u64; (length / WINDOW) as usize];
    for run in handler {
        let mut from = run.from;
        while from < run.at {
            let window = from / WINDOW;
            let to = (WINDOW * (window + 1)).min(run.at);
            if let Some(used) = used.get_mut(window as usize) {
                *used += to.saturating_sub(from).as_nanos();
            }
            from = to;
        }
    }
    let window = |(number, used): (u64, u64)| Point {
        from: WINDOW * number,
        at: WINDOW * number,
        value: used * 1_000_000 / WINDOW.as_nanos(),
        disturbed: false,
    };
    (0..).zip(used).map(window).collect()
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
    /// Something took from one moment to another, if its beginning was seen.
    fn took(&mut self, series: Series, from: Option<Instant>, to: Instant) {
        if let Some(from) = from {
            let value = to.saturating_since(from).as_nanos();
            let disturbed = self.disturbances.overlap(from, to);
            self.push(series, [from, to], value, disturbed);
        }
    }

    fn push(&mut self, series: Series, [from, to]: [Instant; 2], value: u64, disturbed: bool) {
        self.readings.series[series as usize].push(Point {
            from: from.saturating_since(self.start),
            at: to.saturating_since(self.start),
            value,
            disturbed,
        });
    }

    fn take(&mut self, event: &Event) {
        let probes = self.probes;
        let is_callback = probes.cothread().is_some_and(|task| {
            event.activity == task.activity && event.kind == EventKind::Mark(task.runs)
        });
        if is_callback {
            let ran = Instant::from_nanos(event.args[1]);
            let before = self.last_callback.replace(ran);
            self.took(Series::Gaps, before, ran);
        }
        let Some(modem) = probes.modem() else { return };
        if event.activity == modem.interrupt {
            self.interrupt(event);
        }
        if event.activity == modem.driver {
            self.driver(modem, event);
        }
    }

    fn interrupt(&mut self, event: &Event) {
        match event.kind {
            // The first step of all only tells the host what the handler waits for.
            EventKind::InterruptEnter if event.args[0] > self.start.as_nanos() => {
                self.entered = Some(event.at);
                let before = self.last_interrupt.replace(event.at);
                self.took(Series::Intervals, before, event.at);
            }
            EventKind::InterruptExit => {
                let entered = self.entered.take();
                self.took(Series::Handler, entered, event.at);
            }
            _ => {}
        }
    }

    fn driver(&mut self, modem: &Installed, event: &Event) {
        match event.kind {
            EventKind::DeferredEnter => self.deferred_entered = Some(event.at),
            EventKind::DeferredExit => {
                let entered = self.deferred_entered.take();
                self.took(Series::Deferred, entered, event.at);
            }
            EventKind::Dispatch => {
                self.dispatched.get_or_insert(event.at);
            }
            EventKind::Block => {
                let since = self.dispatched.take();
                self.took(Series::Thread, since, event.at);
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
            let when = [began, event.at];
            let took = event.at.saturating_since(began).as_nanos();
            // What came too late may have been held up before it began.
            let disturbed = self.disturbances.overlap(raised.min(began), event.at);
            self.push(Series::Calls, when, took, disturbed);
            self.push(Series::Pending, when, pending, disturbed);
            self.push(Series::Damage, when, damage - self.damage, disturbed);
            self.damage = damage;
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A run in which only this was seen: when each ended, and its value, in microseconds where it took time.
    pub(in super::super) fn seen(series: Series, points: &[(u64, u64)]) -> Readings {
        let mut readings = Readings::default();
        let points = points.iter().map(|(at_us, took_us)| Point {
            from: Span::from_micros(at_us.saturating_sub(*took_us)),
            at: Span::from_micros(*at_us),
            value: took_us * 1_000,
            disturbed: false,
        });
        readings.series[series as usize] = points.collect();
        readings
    }

    #[test]
    fn windows_share_a_run_that_lies_in_two_and_lose_nothing() {
        // The second lies 1 ms before and 2 ms after 25 ms.
        let run = seen(Series::Handler, &[(4_000, 1_000), (27_000, 3_000)]);
        let windows = windows(Span::from_millis(50), run.points(Series::Handler));
        let shares: Vec<u64> = windows.iter().map(|window| window.value).collect();
        assert_eq!(shares, [80_000, 80_000, 160_000, 0]);
    }
}
