//! What figures are drawn from: one run's events as series over time.

use laxity::observe::Disturbances;
use laxity_devices::modem::{Outcome, Phase};
use laxity_lab::bench::Said;
use laxity_lab::observe::Probes;
use laxity_model::{Event, EventKind, HostError, Instant, RunRecord, Span};
use serde::Deserialize;

use crate::served::{Served, calls};

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
    /// How long after it was to run each callback ran.
    Lags,
    /// Each call of the signal processing, from its first to its last instruction.
    Calls,
    /// Samples left in the input ring after each call, or when the run's end found a call too late.
    Pending,
    /// Samples lost or sent as garbage from one call to the next, and from the last to the run's end.
    Damage,
    /// Of them, those that came in and were written over before they were read.
    Overwritten,
    /// Of them, those that were sent as garbage.
    Underrun,
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
    /// What it says of itself, if it was live.
    pub(super) said: Said,
    /// Time that the hypervisor took away, as the kernel counts it; `None` if that is not known.
    pub(super) steal: Option<Span>,
}

impl Readings {
    /// Reads a run's events once, in their order.
    ///
    /// # Errors
    ///
    /// See [`calls`].
    pub(super) fn of(record: &RunRecord, probes: &Probes) -> Result<Self, HostError> {
        let mut reader = Reader {
            probes,
            disturbances: disturbances(record, probes),
            start: record.start,
            open: [None; Series::COUNT],
            readings: Self::default(),
        };
        for event in &record.events {
            reader.take(event);
        }
        if let Some(modem) = probes.modem() {
            let calls = calls(record, modem)?;
            calls.iter().for_each(|call| reader.call(call));
        }
        let mut readings = reader.readings;
        readings.length = record.end.saturating_since(record.start);
        readings.outcome = probes
            .modem()
            .and_then(|modem| modem.report.modem()?.outcome().cloned());
        readings.steal = record.steal;
        readings.derive();
        Ok(readings)
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

/// Those that bear on the periodic task, and on the modem.
fn disturbances(record: &RunRecord, probes: &Probes) -> [Disturbances; 2] {
    let task = probes.cothread().map(|task| [task.activity, task.thread]);
    let modem = probes.modem().map(|modem| [modem.interrupt, modem.driver]);
    [task, modem].map(|own| Disturbances::of(record, own.iter().flatten()))
}

struct Reader<'a> {
    probes: &'a Probes,
    /// Those that bear on the periodic task, and on the modem.
    disturbances: [Disturbances; 2],
    start: Instant,
    /// What has begun, and is not over.
    open: [Option<Instant>; Series::COUNT],
    readings: Readings,
}

impl Reader<'_> {
    /// What is open ends, if its beginning was seen.
    fn close(&mut self, series: Series, to: Instant) {
        if let Some(from) = self.open[series as usize].take() {
            let value = to.saturating_since(from).as_nanos();
            let [of_task, of_modem] = &self.disturbances;
            let own = if series == Series::Gaps {
                of_task
            } else {
                of_modem
            };
            let disturbed = own.overlap(from, to);
            self.push(series, [from, to], value, disturbed);
        }
    }

    /// One ends, and the next begins.
    fn next(&mut self, series: Series, at: Instant) {
        self.close(series, at);
        self.open[series as usize] = Some(at);
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
        if let Some(task) = probes.cothread()
            && event.activity == task.activity
            && event.kind == EventKind::Mark(task.runs)
        {
            let [due, ran] = event.args.map(Instant::from_nanos);
            self.next(Series::Gaps, ran);
            let (late, disturbed) = (
                ran.saturating_since(due),
                self.disturbances[0].overlap(due, ran),
            );
            self.push(Series::Lags, [due, ran], late.as_nanos(), disturbed);
        }
        let Some(modem) = probes.modem() else { return };
        let [is_interrupt, is_driver] =
            [modem.interrupt, modem.driver].map(|of| of == event.activity);
        match event.kind {
            // The first step of all only tells the host what the handler waits for.
            EventKind::InterruptEnter if is_interrupt && event.args[0] > self.start.as_nanos() => {
                self.open[Series::Handler as usize] = Some(event.at);
                self.next(Series::Intervals, event.at);
            }
            EventKind::InterruptExit if is_interrupt => self.close(Series::Handler, event.at),
            _ if !is_driver => {}
            EventKind::DeferredEnter => self.open[Series::Deferred as usize] = Some(event.at),
            EventKind::DeferredExit => self.close(Series::Deferred, event.at),
            EventKind::Dispatch => {
                self.open[Series::Thread as usize].get_or_insert(event.at);
            }
            EventKind::Block => self.close(Series::Thread, event.at),
            EventKind::Mark(mark) if mark == modem.marks.phase => {
                let place = usize::try_from(event.args[0]).unwrap_or(usize::MAX);
                let at = event.at.saturating_since(self.start);
                let phase = Phase::ALL.get(place).map(|phase| (at, *phase));
                self.readings.phases.extend(phase);
            }
            _ => {}
        }
    }

    fn call(&mut self, call: &Served) {
        let when = [call.begun, call.done];
        let took = call.done.saturating_since(call.begun).as_nanos();
        // What came too late may have been held up before it began.
        let disturbed = self.disturbances[1].overlap(call.raised.min(call.begun), call.done);
        // What took a call that is not done is not known.
        if !call.is_left {
            self.push(Series::Calls, when, took, disturbed);
        }
        let pending = call.judged.map_or(call.pending, |judged| judged.pending);
        self.push(Series::Pending, when, pending, call.judged.is_none());
        let [damage, underrun] = [
            [call.damage, call.undisturbed_damage()],
            [call.underrun, call.undisturbed_underrun()],
        ];
        let overwritten = [0, 1].map(|which| damage[which] - underrun[which]);
        for (series, [all, rest]) in [
            (Series::Damage, damage),
            (Series::Overwritten, overwritten),
            (Series::Underrun, underrun),
        ] {
            let excused = all - rest;
            // Nothing at all is one value too.
            if rest > 0 || call.excused.is_none() {
                self.push(series, when, rest, false);
            }
            if excused > 0 || (rest == 0 && call.excused.is_some()) {
                self.push(series, when, excused, true);
            }
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
