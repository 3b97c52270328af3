//! The modem's driver: one call of the signal processing an interrupt, in whatever context the placement gives it.

use std::sync::Arc;

use laxity_model::{Body, Context, Instant, Mark, SemaphoreId, Service, Span, Step};

use super::card::{Card, Cursor, Programming};
use super::clock::CallClock;
use super::cost::Costs;
use super::interrupt::InterruptLine;
use super::phase::Phase;
use super::report::{Outcome, Report};

/// How the vendor's driver behaves where the study could not look: declared here, once, and calibrated to its tables 2 and 3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hypothesis {
    /// How far ahead of the card's read position the output is kept filled, in blocks. With 1 a block must be written before the
    /// interrupt after its own: the 12.5 ms line of the study's model (figure 17).
    pub output_lead_blocks: u64,
    /// How long the card pauses when it is programmed anew (§6.2.1: each change delays one interrupt, six in figure 1).
    pub programming_pause: Span,
}

impl Default for Hypothesis {
    fn default() -> Self {
        Self {
            output_lead_blocks: 1,
            programming_pause: Span::from_millis(3),
        }
    }
}

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
    /// The driver's account, after each call. Arguments: processor time received so far, in nanoseconds; octets of the file that
    /// have arrived.
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
        }
    }

    fn cursor(epoch: usize, programming: Programming, hypothesis: Hypothesis) -> Cursor {
        // At the k-th interrupt, k blocks have gone out; its own call writes the block `lead` further on.
        let lead = programming
            .setting
            .samples_in(1 + hypothesis.output_lead_blocks);
        Cursor::new(epoch, programming, lead)
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

    /// The first half of a call: takes the input and works on it. Returns what that costs on the study's machine.
    pub fn begin(&mut self, now: Instant) -> Service {
        let block = self.block();
        let taken = self
            .cursor
            .take(&self.card, now, &mut self.received[..block]);
        self.report.samples_lost.add(taken.lost);
        self.report.samples_undelivered.add(taken.missing);
        self.report.calls.add(1);
        self.processing.process(
            now,
            &self.received[..taken.samples],
            &mut self.transmit[..block],
        );
        self.costs.call(self.phase, self.processing.recognised())
    }

    /// The second half: delivers the output, and follows the call into its next phase. Returns whether there is a new one.
    pub fn finish(&mut self, now: Instant) -> bool {
        let block = self.block();
        let late = self.cursor.put(&self.card, now, &self.transmit[..block]);
        self.report.samples_underrun.add(late);
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

    /// Whether the call's work is over, well or badly.
    pub fn is_over(&self) -> bool {
        self.report.outcome().is_some()
    }

    /// Samples lost and underrun so far.
    pub fn damage(&self) -> u64 {
        self.report.samples_lost.get() + self.report.samples_underrun.get()
    }

    /// Octets of the file that have arrived.
    pub fn octets(&self) -> u64 {
        self.report.octets.get()
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

/// The driver as an activity.
pub(crate) struct Driver<P> {
    core: DriverCore<P>,
    clock: Arc<CallClock>,
    trigger: Trigger,
    marks: Marks,
    /// Reserve when the on-hook phase is over (§5.4).
    reserves: bool,
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
    /// The signal processing is at work.
    Working,
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

    /// Asks for the reservation once, as soon as the on-hook phase is over.
    fn wants_reservation(&mut self) -> bool {
        let wants = self.reserves && self.core.phase() != Phase::OnHook;
        self.reserves &= !wants;
        wants
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
            [context.service().as_nanos(), self.core.octets()],
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
            self.state = State::Working;
            return Step::Charge(self.core.begin(now));
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
            State::Working => self.finish(context),
            State::Idle => {}
        }
        if self.core.is_over() && self.clock.call_time(context.now()) >= self.linger {
            return Step::EndRun;
        }
        if self.wants_reservation() {
            return Step::BeginReservation;
        }
        self.next(context)
    }
}
