//! What is seen of a soft device: its interrupts, the calls of its signal processing, what it loses, and its phases if it has any.

use laxity_devices::modem::Phase as CallPhase;
use laxity_model::enforce::{BusyPeriod, DeviceCall, Excuse, Losing};
use laxity_model::verify::contract::{Kind, Phase, Quantity, Subject};
use laxity_model::{Event, EventKind, Instant, Mark, Reservation, Service, Span, Whereabouts};

use super::frames::Frames;
use super::interrupts::Interrupts;
use super::losses::Losses;
use crate::scenario::Placing;
use crate::scenario::devices::{
    Account, Direction, FRAMES_LOST, Installed, PROCESSING_SERVICE, PROCESSING_TIME, RETRAININGS,
    SAMPLES_LOST, SAMPLES_OVERWRITTEN, SAMPLES_PENDING, SAMPLES_UNDERRUN,
};
use laxity::observe::{Observation, Reader, Recorder, Run};

/// A device in a program.
pub struct DeviceProbe {
    /// Its activities and its events.
    pub installed: Installed,
    /// Where its driver runs.
    pub placing: Placing,
    /// What it is.
    pub kind: Kind,
}

impl DeviceProbe {
    /// The phase in which it has all to do.
    pub(crate) fn at_work(&self) -> Phase {
        match &self.installed.report {
            Account::Modems(_) => Phase::CONNECTED,
            Account::Stream(..) => Phase::RUN,
        }
    }
}

/// The stretch over which the queue of the device's deferred calls has not been empty.
#[derive(Default)]
struct DeferredQueue {
    entered: bool,
    last_exit: Option<Instant>,
    from: Instant,
    total: Span,
}

/// A call of the signal processing that has ended, and whose losses are not told apart yet.
struct Ended {
    began: Instant,
    lost: u64,
    /// Of these, as many as the machine answers for; `None`: it did not stand still.
    excused: Option<u64>,
    /// By how much they delayed it then.
    delayed: Option<Span>,
    /// When its busy period began, and when it was over.
    span: [Instant; 2],
}

pub(super) struct DeviceReader<'a> {
    probe: &'a DeviceProbe,
    recorder: Recorder<'a>,
    /// Of the run.
    start: Instant,
    end: Instant,
    /// When its phase began: an interval that began before belongs to neither.
    phase_since: Instant,
    phases: Vec<(Instant, Phase)>,
    interrupts: Interrupts,
    interrupt_entered: Option<Instant>,
    deferred: DeferredQueue,
    /// When the interrupt of the call at work was raised, and when the call began.
    call: Option<(Instant, Instant)>,
    ended: Option<Ended>,
    busy: BusyPeriod,
    losing: Losing,
    losses: Losses,
    frames: Frames,
    reservation: Option<Reservation>,
    /// Samples lost so far.
    lost: u64,
    /// What the driver's account has told so far: samples underrun of a modem, frames lost of others.
    told: u64,
    /// The driver's processor time at its last account.
    accounted: Option<Service>,
    /// Since when it has all to do, and its processor time by then.
    at_work_since: Option<(Instant, Service)>,
    /// What it had in all such phases before, and how long those were.
    connected: Option<(Service, Span)>,
}

impl<'a> DeviceReader<'a> {
    pub(super) fn new(probe: &'a DeviceProbe, run: Run<'a>) -> Self {
        let mut reader = Self::before_phases(probe, run);
        if !reader.has_phases() {
            reader.priority(reader.start);
        }
        reader
    }

    fn before_phases(probe: &'a DeviceProbe, run: Run<'a>) -> Self {
        let [start, end] = [run.record.start, run.record.end];
        let usage = run.record.usage.get(probe.installed.driver.index());
        let ran = usage.map_or(Whereabouts::Anywhere, |usage| usage.ran);
        let losses = Losses::of(&run.record.events, probe.installed.driver, ran);
        Self {
            probe,
            reservation: run.reservation,
            recorder: Recorder::new(run),
            start,
            end,
            phase_since: start,
            phases: Vec::new(),
            interrupts: Interrupts::default(),
            interrupt_entered: None,
            deferred: DeferredQueue::default(),
            call: None,
            ended: None,
            busy: BusyPeriod::default(),
            losing: probe.installed.report.losing(CallPhase::OnHook),
            losses,
            frames: Frames::of(probe.installed.report.heard_wrong()),
            lost: 0,
            told: 0,
            accounted: None,
            at_work_since: None,
            connected: None,
        }
    }

    /// What is in phases is the driver's: where it is the handler, the interval to this interrupt is in that before.
    fn interrupt_enter(&mut self, event: &Event) {
        self.interrupt_entered = Some(event.at);
        if self.is_handler() {
            self.interrupted(event.at);
        }
    }

    fn is_handler(&self) -> bool {
        self.probe.installed.driver == self.probe.installed.interrupt
    }

    fn interrupted(&mut self, at: Instant) {
        let interval = self.interrupts.take(at);
        // A card may begin later than the run, of which a driver is told, and a call is connected before it has.
        let is_at_work = self.recorder.phase == self.probe.at_work();
        if interval.is_some() && is_at_work && self.at_work_since.is_none() {
            self.at_work_since = Some((at, self.accounted.unwrap_or_default()));
        }
        // A change of rate or block size delays one interrupt: that interval belongs to no phase.
        if let Some([before, since]) = interval
            && before > self.phase_since
        {
            self.recorder
                .shifted(Quantity::INTERRUPT_PERIOD, at - before, [since, at]);
        }
    }

    /// PC 99 limits what a handler takes: where its machine was lent to another guest, or the processor to the witness, it took nothing.
    fn interrupt_exit(&mut self, event: &Event) {
        if let Some(entered) = self.interrupt_entered.take() {
            if !self.is_handler() {
                self.interrupted(entered);
            }
            let (took, span) = (Span::from_nanos(event.args[0]), [entered, event.at]);
            self.recorder.lasted(Quantity::INTERRUPT_TIME, took, span);
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
            let span = [self.deferred.from, exit];
            self.recorder.lasted(Quantity::DEFERRED_TIME, total, span);
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
        self.measure(event.at);
        self.losing = self.probe.installed.report.losing(*phase);
        self.phase_since = event.at;
        self.phases.push((event.at, self.recorder.phase.clone()));
        self.priority(event.at);
    }

    /// A phase begins, or the run is over. All of a phase counts from its first interrupt on: who waits for the processor has calls in a small part of it only.
    fn measure(&mut self, at: Instant) {
        let had = self.accounted.unwrap_or_default();
        if let Some((from, before)) = self.at_work_since.take() {
            let (service, span) = self.connected.unwrap_or_default();
            let (own, lasted) = (had.saturating_sub(before), at.saturating_since(from));
            self.connected = Some((service + own, span + lasted));
        }
    }

    /// Whether it is a modem, whose call has phases.
    const fn has_phases(&self) -> bool {
        matches!(self.probe.installed.report, Account::Modems(_))
    }

    fn priority(&mut self, at: Instant) {
        if let Some(priority) = self.probe.placing.priority() {
            let level = u64::from(priority.level());
            self.recorder
                .value(Quantity::THREAD_PRIORITY, level, [at; 2]);
        }
    }

    fn call_end(&mut self, event: &Event) {
        let Some((raised, began)) = self.call.take() else {
            return;
        };
        let [pending, lost] = event.args;
        self.recorder.span(PROCESSING_TIME, began, event.at);
        let call = DeviceCall {
            raised,
            ended: event.at,
            lost: lost - std::mem::replace(&mut self.lost, lost),
        };
        let excuse = self.excuse(call);
        self.waited(call, pending, excuse);
        let span = [excuse.since, event.at];
        self.recorder
            .told_apart(SAMPLES_LOST, call.lost, excuse.lost, excuse.since);
        let halts = self.recorder.disturbances();
        self.ended = Some(Ended {
            began,
            lost: call.lost,
            excused: excuse.lost,
            delayed: halts.delayed(span, self.reservation),
            span,
        });
    }

    /// Takes the next call of the busy period.
    fn excuse(&mut self, call: DeviceCall) -> Excuse {
        let halts = self.recorder.disturbances();
        self.busy.take(call, self.losing, halts, self.reservation)
    }

    /// How long a call took or waits still, and what is pending after it.
    fn waited(&mut self, call: DeviceCall, pending: u64, excuse: Excuse) {
        let response = call.ended.saturating_since(call.raised).as_nanos();
        let added = excuse.added.unwrap_or(Span::ZERO);
        for (quantity, value, added) in [
            (Quantity::RESPONSE_TIME, response, added.as_nanos()),
            (SAMPLES_PENDING, pending, self.losing.in_time(added)),
        ] {
            // What the machine's halts added is not judged, nor anything of what they may be all the cause of.
            let judged = value.saturating_sub(added);
            let excused = excuse.added.is_none().then_some(judged);
            self.recorder
                .told_apart(quantity, judged, excused, excuse.since);
        }
    }

    fn account(&mut self, event: &Event) {
        let [service, told] = event.args;
        let service = Service::from_nanos(service);
        let before = self.accounted.replace(service);
        if let Some(Ended {
            began,
            lost,
            excused,
            delayed,
            span,
        }) = self.ended.take()
        {
            // All that a driver had before its first account was for its first call.
            let own = service.saturating_sub(before.unwrap_or_default());
            let delayed = delayed.unwrap_or_default();
            let phase = &self.recorder.phase;
            let amount = lost - excused.unwrap_or(0).min(lost);
            self.losses.call(span, (own, delayed), (amount, phase));
            // A block that was abandoned is no measure of the others.
            if let (Some(before), 0) = (before, lost) {
                let own = service.saturating_sub(before).as_nanos();
                self.recorder
                    .value(PROCESSING_SERVICE, own, [began, event.at]);
            }
            let before = std::mem::replace(&mut self.told, told);
            let told = match self.is_played() {
                true => {
                    let wrong = u64::from(self.frames.next_is_wrong());
                    self.not_arrived(wrong, lost, event.at)
                }
                false => told - before,
            };
            for (quantity, value, excused) in self.parts((lost, told), excused) {
                self.recorder.told_apart(quantity, value, excused, span[0]);
            }
        }
    }
}

impl DeviceReader<'_> {
    /// Of so many frames of a player that did not arrive, those that their calls lost: with which nobody was late, who listens was, and did not hear them.
    fn not_arrived(&mut self, frames: u64, lost: u64, at: Instant) -> u64 {
        if lost > 0 || frames == 0 {
            return frames;
        }
        self.recorder.possible(FRAMES_LOST, frames, at);
        0
    }

    /// The parts of so many samples lost, what their driver's account tells besides, and how much of each is excused where so many of the samples are.
    fn parts(
        &self,
        (lost, told): (u64, u64),
        excused: Option<u64>,
    ) -> [(Quantity, u64, Option<u64>); 2] {
        if self.has_phases() {
            let underrun = excused.map(|excused| told.min(excused));
            let rest = excused.map(|excused| excused.saturating_sub(told));
            let overwritten = lost.saturating_sub(told);
            [
                (SAMPLES_UNDERRUN, told, underrun),
                (SAMPLES_OVERWRITTEN, overwritten, rest),
            ]
        } else {
            // A frame is, if any of what was lost of the frames of its call is.
            let of_lost = |excused: u64| (told * excused).div_ceil(lost);
            let frames = excused.map(|excused| if lost > 0 { of_lost(excused) } else { told });
            let samples = match self.is_played() {
                true => SAMPLES_UNDERRUN,
                false => SAMPLES_OVERWRITTEN,
            };
            [(FRAMES_LOST, told, frames), (samples, lost, excused)]
        }
    }

    /// Whether it is a device that is only played: what its account tells was heard elsewhere, at another time.
    const fn is_played(&self) -> bool {
        matches!(
            self.probe.installed.report,
            Account::Stream(_, _, Direction::Played)
        )
    }

    /// The last that lies in a window, as those have their begin and not their end.
    const fn last_moment(&self) -> Instant {
        self.end.saturating_sub(Span::from_nanos(1))
    }

    /// What the run's end finds unserved counts as far as it got: a call has waited too long at any rate once the interrupt after its own
    /// has been raised, and what is lost by then is lost.
    fn unserved(&mut self) {
        let left = self.probe.installed.left.unserved(self.end);
        let left = left.expect("a host that hands back a record has dropped the program's bodies");
        let lost = left.damage() - self.lost;
        let told = match self.is_played() {
            true => self.not_arrived(self.frames.left(), lost, self.last_moment()),
            false => self.probe.installed.report.told_at_end(&left) - self.told,
        };
        let late = left.raised.len().saturating_sub(1);
        let mut excused = None;
        for (number, call) in DeviceCall::left(&left.raised, self.end, lost).enumerate() {
            let excuse = self.excuse(call);
            if number < late {
                self.waited(call, left.pending, excuse);
            }
            excused = excuse.lost;
        }
        if (lost, told) != (0, 0) {
            self.lost_at_end(&left.raised, (lost, told), excused);
        }
    }

    /// All that is lost at the end, shared by the calls in whose own time it was, each to the next interrupt; what of it is excused belongs to the first that met
    /// a halt and those after it.
    fn lost_at_end(&mut self, raised: &[Instant], (lost, told): (u64, u64), excused: Option<u64>) {
        let ends = raised.iter().skip(1).chain([&self.end]);
        let mut own: Vec<[Instant; 2]> = raised.iter().zip(ends).map(|(a, b)| [*a, *b]).collect();
        if own.is_empty() {
            // What is lost without a call that is owed is lost at the end.
            own.push([self.last_moment(); 2]);
        }
        let whole = [own[0][0], self.end];
        let halts = self.recorder.disturbances();
        let halted = halts.delayed(whole, self.reservation).unwrap_or_default();
        let met = own
            .iter()
            .position(|[from, to]| halts.overlap(*from, *to))
            .unwrap_or(0);
        let parts = self.parts((lost, told), excused).into_iter();
        let calls = own.len();
        for (quantity, all, excused) in parts.chain([(SAMPLES_LOST, lost, excused)]) {
            let mut left = excused.unwrap_or(0);
            for number in (met..calls).chain(0..met) {
                let upto = |number: usize| all * number as u64 / calls as u64;
                let share = upto(number + 1) - upto(number);
                let of_it = share.min(left);
                left -= of_it;
                let of_it = Some(of_it).filter(|of_it| *of_it > 0);
                self.recorder
                    .told_apart(quantity, share, of_it, own[number][0]);
            }
        }
        let judged = lost - excused.unwrap_or(0).min(lost);
        if judged > 0 {
            let phase = &self.recorder.phase;
            self.losses.unserved(whole, halted, (judged, phase));
        }
    }
}

impl Reader for DeviceReader<'_> {
    fn take(&mut self, event: &Event, _: &Phase) {
        let installed = &self.probe.installed;
        match event.kind {
            EventKind::InterruptEnter if event.activity == installed.interrupt => {
                self.interrupt_enter(event);
            }
            EventKind::InterruptExit if event.activity == installed.interrupt => {
                self.interrupt_exit(event);
            }
            EventKind::Mark(mark) if mark == installed.marks.no_interrupt => {
                self.interrupt_entered = None;
            }
            EventKind::DeferredEnter => self.deferred_enter(event),
            EventKind::DeferredExit => self.deferred_exit(event),
            EventKind::Mark(mark) if event.activity == installed.driver => self.mark(mark, event),
            _ => {}
        }
    }

    fn phase(&self) -> Option<&Phase> {
        self.has_phases().then_some(&self.recorder.phase)
    }

    fn finish(mut self: Box<Self>, subject: Subject) -> Observation {
        self.close_deferred();
        self.measure(self.end);
        self.unserved();
        if let Some(call) = self.probe.installed.report.modem() {
            let start = [self.start; 2];
            self.recorder
                .value(RETRAININGS, call.retrainings.get(), start);
        }
        Observation {
            subject,
            quantities: self.recorder.finish(),
            phases: self.phases,
            connected: self.connected,
            losses: self.losses.finish(),
        }
    }
}

#[cfg(test)]
mod tests;
