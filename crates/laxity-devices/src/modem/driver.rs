//! The modem's driver: one call of the signal processing an interrupt, in whatever context the placement gives it.

use std::sync::Arc;

use laxity_model::{
    Body, Context, Instant, Mark, Reservation, SemaphoreId, Service, Span, Step, TimeConstraint,
};

use super::card::{Card, Cursor, Programming};
use super::clock::CallClock;
use super::cost::Costs;
use super::hypothesis::Hypothesis;
use super::interrupt::InterruptLine;
use super::phase::Phase;
use super::report::{Outcome, Report};

/// What the driver calls once an interrupt.
pub trait Processing: Send {
    /// Takes what arrived since the last call and fills `transmit`. Fewer samples may arrive than go out.
    fn process(&mut self, now: Instant, received: &[i16], transmit: &mut [i16]);

    /// Where the call is after the last [`process`](Self::process).
    fn phase(&self) -> Phase;

    /// Whether the last call was the one that recognised the answer.
    fn recognised(&self) -> bool;

    /// Brings the report up to date; `Some` once the call's work is over.
    fn report(&mut self, report: &Report) -> Option<Outcome>;
}

/// Names of the events that a driver records.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    /// A phase began. Arguments: its place in [`Phase::ALL`]; 0.
    pub phase: Mark,
    /// A call of the signal processing began. Arguments: samples pending before it; when its interrupt was raised, in nanoseconds
    /// of the host's time.
    pub call_begin: Mark,
    /// It returned. Arguments: samples pending after it; samples lost and underrun so far.
    pub call_end: Mark,
    /// The driver's account, after each call. Arguments: processor time received so far, in nanoseconds; samples underrun so far.
    pub account: Mark,
}

/// The driver apart from its context: what it does when it is called, as a function of the call's time.
pub struct DriverCore<P> {
    card: Arc<Card>,
    report: Arc<Report>,
    processing: P,
    hypothesis: Hypothesis,
    costs: Costs,
    cursor: Cursor,
    served: u64,
    phase: Phase,
    received: Vec<i16>,
    transmit: Vec<i16>,
    /// Pieces of this call's output that are delivered.
    delivered: u32,
}

impl<P: Processing> DriverCore<P> {
    /// A driver for a card that has just been made.
    pub fn new(
        card: Arc<Card>,
        report: Arc<Report>,
        processing: P,
        hypothesis: Hypothesis,
        costs: Costs,
    ) -> Self {
        let programming = card.programming(0).unwrap_or(Programming {
            setting: Phase::OnHook.setting(),
            started: Instant::ZERO,
        });
        let phase = processing.phase();
        let cursor = Self::cursor(0, programming, hypothesis);
        let (received, transmit) = (vec![0; 512], vec![0; 512]);
        Self {
            card,
            report,
            processing,
            hypothesis,
            costs,
            cursor,
            served: 0,
            phase,
            received,
            transmit,
            delivered: 0,
        }
    }

    fn cursor(epoch: usize, programming: Programming, hypothesis: Hypothesis) -> Cursor {
        let setting = programming.setting;
        let lead = hypothesis.lead_samples(setting);
        Cursor::new(epoch, programming, setting.samples_in(1) + lead)
    }

    /// Whether an interrupt has been raised that is not served yet.
    pub fn is_due(&self) -> bool {
        self.card.raised(self.cursor.epoch()) > self.served
    }

    /// When the interrupt to be served next was raised, or will be.
    pub fn raised_at(&self) -> Instant {
        self.cursor.programming().interrupt_at(self.served + 1)
    }

    /// Samples pending.
    pub fn pending(&self, now: Instant) -> u64 {
        self.cursor.pending(now)
    }

    /// Where the call is.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The signal processing.
    pub fn processing(&mut self) -> &mut P {
        &mut self.processing
    }

    /// The first part of a call: takes the input and works on it, unless the output has run dry. Returns what each of the call's
    /// pieces costs on the study's machine.
    pub fn begin(&mut self, now: Instant) -> Service {
        let block = self.block();
        self.report.calls.add(1);
        if self.phase >= Phase::Training {
            let waited = now.saturating_since(self.raised_at());
            self.report.begin_latest_ns.raise_to(waited.as_nanos());
        }
        if self.cursor.is_dry(now) {
            let lost = self.cursor.skip(now, block as u64);
            self.report.samples_lost.add(lost);
            self.report.samples_underrun.add(block as u64);
            self.report.blocks_abandoned.add(1);
            self.delivered = self.pieces();
            return self.costs.abandoned;
        }
        let taken = self
            .cursor
            .take(&self.card, now, &mut self.received[..block]);
        self.report.samples_lost.add(taken.lost);
        self.report.samples_undelivered.add(taken.missing);
        self.processing.process(
            now,
            &self.received[..taken.samples],
            &mut self.transmit[..block],
        );
        self.delivered = 0;
        let cost = self.costs.call(self.phase, self.processing.recognised());
        Service::from_nanos(cost.as_nanos() / u64::from(self.hypothesis.pieces))
    }

    /// Delivers the next piece of the output. Returns whether there are more.
    pub fn deliver(&mut self, now: Instant) -> bool {
        let (block, pieces) = (self.block(), self.pieces());
        if self.delivered < pieces {
            let end_of = |piece: u32| block * piece as usize / pieces as usize;
            let piece = end_of(self.delivered)..end_of(self.delivered + 1);
            let late = self.cursor.put(&self.card, now, &self.transmit[piece]);
            self.report.samples_underrun.add(late);
            self.delivered += 1;
        }
        self.delivered < pieces
    }

    /// The end of a call, all of its output delivered: follows the call into its next phase. Returns whether there is a new one.
    pub fn finish(&mut self, now: Instant) -> bool {
        self.served += 1;
        let next = self.processing.phase();
        let changed = next != self.phase;
        if changed && next.setting() != self.phase.setting() {
            self.program(next, now);
        }
        self.phase = next;
        if let Some(outcome) = self.processing.report(&self.report) {
            self.report.end(outcome);
        }
        changed
    }

    /// Pieces in which a call delivers its output.
    fn pieces(&self) -> u32 {
        self.hypothesis.pieces
    }

    /// Whether the call's work is over, well or badly.
    pub fn is_over(&self) -> bool {
        self.report.outcome().is_some()
    }

    /// Samples lost and underrun so far.
    pub fn damage(&self) -> u64 {
        self.report.samples_lost.get() + self.report.samples_underrun.get()
    }

    /// Samples underrun so far.
    pub fn underrun(&self) -> u64 {
        self.report.samples_underrun.get()
    }

    fn block(&self) -> usize {
        self.cursor.programming().setting.block(self.served) as usize
    }

    fn program(&mut self, phase: Phase, now: Instant) {
        let started = now + self.hypothesis.programming_pause;
        let Some(epoch) = self.card.program(phase.setting(), started) else {
            return;
        };
        let programming = Programming {
            setting: phase.setting(),
            started,
        };
        self.cursor = Self::cursor(epoch, programming, self.hypothesis);
        self.served = 0;
    }
}

/// What makes the driver run.
pub(crate) enum Trigger {
    /// It is the interrupt handler.
    Interrupt(InterruptLine),
    /// Somebody signals this semaphore once an interrupt.
    Semaphore(SemaphoreId),
}

/// What a driver that holds a reservation asks for while it runs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Asking {
    /// Another reservation, when the on-hook phase is over.
    pub after_on_hook: Option<Reservation>,
    /// A time constraint for the call that recognises the answer: so long after its interrupt it is to be done.
    pub recognition_within: Option<Span>,
}

/// The driver as an activity.
pub(crate) struct Driver<P> {
    core: DriverCore<P>,
    clock: Arc<CallClock>,
    trigger: Trigger,
    marks: Marks,
    /// Reserve when the on-hook phase is over (§5.4).
    reserves: bool,
    asking: Asking,
    /// The call at work has a time constraint.
    is_constrained: bool,
    /// The run ends no earlier than this, in the call's time.
    linger: Instant,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not yet run.
    New,
    /// Between calls.
    Idle,
    /// A time constraint was asked for before a piece of this cost.
    Asked(Service),
    /// The signal processing is at work on a piece of this cost.
    Working(Service),
    /// The call that had the time constraint is done.
    Done,
}

impl<P: Processing> Driver<P> {
    pub(crate) fn new(
        core: DriverCore<P>,
        clock: Arc<CallClock>,
        trigger: Trigger,
        marks: Marks,
        reserves: bool,
        linger: Instant,
    ) -> Self {
        Self {
            core,
            clock,
            trigger,
            marks,
            reserves,
            asking: Asking::default(),
            is_constrained: false,
            linger,
            state: State::New,
        }
    }

    fn mark_phase(&self, context: &mut dyn Context) {
        let place = Phase::ALL
            .iter()
            .position(|phase| *phase == self.core.phase())
            .unwrap_or(0);
        context.mark(self.marks.phase, [place as u64, 0]);
    }

    /// The same driver, asking for this besides.
    pub(crate) fn asking(self, asking: Asking) -> Self {
        Self { asking, ..self }
    }

    /// Asks for the reservation once, as soon as the on-hook phase is over, or for another one.
    fn wants_reservation(&mut self) -> Option<Step> {
        if self.core.phase() == Phase::OnHook {
            return None;
        }
        if std::mem::take(&mut self.reserves) {
            return Some(Step::BeginReservation);
        }
        let other = self.asking.after_on_hook.take();
        other.map(Step::ChangeReservation)
    }

    /// The time constraint of a call that begins and costs so much a piece, if it is the one that is to have one.
    fn wants_time(&mut self, piece: Service, raised: Instant, now: Instant) -> Option<Step> {
        let within = self.asking.recognition_within?;
        if !self.core.processing().recognised() {
            return None;
        }
        self.asking.recognition_within = None;
        let all = Service::from_nanos(piece.as_nanos() * u64::from(self.core.pieces()));
        // A twentieth more, for what interrupts take.
        let service = all + all / 20;
        let constraint = TimeConstraint::new(now, raised + within, service).ok()?;
        self.state = State::Asked(piece);
        Some(Step::BeginConstraint(constraint))
    }

    fn finish(&mut self, context: &mut dyn Context) {
        let now = self.clock.call_time(context.now());
        let changed = self.core.finish(now);
        context.mark(
            self.marks.call_end,
            [self.core.pending(now), self.core.damage()],
        );
        context.mark(
            self.marks.account,
            [context.service().as_nanos(), self.core.underrun()],
        );
        if changed {
            self.mark_phase(context);
        }
        self.state = State::Idle;
    }

    fn next(&mut self, context: &mut dyn Context) -> Step {
        let host_now = context.now();
        let now = self.clock.call_time(host_now);
        if let Trigger::Interrupt(line) = &mut self.trigger
            && let Err(due) = line.poll(host_now)
            && !self.core.is_due()
        {
            return Step::SleepUntil(due);
        }
        if self.core.is_due() {
            let raised = self.clock.host_time(self.core.raised_at(), host_now);
            context.mark(
                self.marks.call_begin,
                [self.core.pending(now), raised.as_nanos()],
            );
            let cost = self.core.begin(now);
            if let Some(asks) = self.wants_time(cost, raised, host_now) {
                return asks;
            }
            self.state = State::Working(cost);
            return Step::Charge(cost);
        }
        match self.trigger {
            Trigger::Semaphore(semaphore) => Step::Wait(semaphore),
            // An interrupt of the programming before this one.
            Trigger::Interrupt(_) => {
                Step::SleepUntil(self.clock.host_time(self.core.raised_at(), host_now))
            }
        }
    }
}

impl<P: Processing> Body for Driver<P> {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        match self.state {
            State::New => {
                self.mark_phase(context);
                self.state = State::Idle;
            }
            State::Working(cost) => {
                let now = self.clock.call_time(context.now());
                if self.core.deliver(now) {
                    return Step::Charge(cost);
                }
                let was_constrained = std::mem::take(&mut self.is_constrained);
                self.finish(context);
                if was_constrained {
                    self.state = State::Done;
                    return Step::EndConstraint;
                }
            }
            State::Asked(cost) => {
                self.is_constrained = context.granted();
                self.state = State::Working(cost);
                return Step::Charge(cost);
            }
            State::Done => self.state = State::Idle,
            State::Idle => {}
        }
        if self.core.is_over() && self.clock.call_time(context.now()) >= self.linger {
            return Step::EndRun;
        }
        if let Some(asks) = self.wants_reservation() {
            return asks;
        }
        self.next(context)
    }
}
