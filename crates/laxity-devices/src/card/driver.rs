//! A driver as an activity: one or several cards, in whatever context the placement gives it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use laxity_model::{
    Body, Context, Instant, Mark, Program, Reservation, SemaphoreId, Service, Span, Step,
    TimeConstraint,
};

use super::clock::DeviceClock;
use super::interrupt::Lines;
use super::served::{Served, Unserved, Work};

/// Names of the events that a driver records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Marks {
    /// A phase began, of a driver's only card. Arguments: the phase's place among the device's phases; 0.
    pub phase: Mark,
    /// A call of the signal processing began. Arguments: samples pending before it; when its interrupt was raised, in nanoseconds
    /// of the host's time.
    pub call_begin: Mark,
    /// It returned. Arguments: samples pending after it; samples lost and underrun so far, of all cards of the driver.
    pub call_end: Mark,
    /// The driver's account, after each call. Arguments: processor time received so far, in nanoseconds; of all cards, what the device
    /// counts: samples underrun so far at a modem, frames damaged so far at others.
    pub account: Mark,
    /// The handler was entered, and no card had raised an interrupt: of a handler that is not the driver. Arguments: none.
    pub no_interrupt: Mark,
}

impl Marks {
    /// Names them in a program.
    pub fn declare(program: &mut Program) -> Self {
        Self {
            phase: program.mark("phase"),
            call_begin: program.mark("processing begins"),
            call_end: program.mark("processing ends"),
            account: program.mark("account"),
            no_interrupt: program.mark("no interrupt"),
        }
    }
}

/// What makes a driver run.
pub(super) enum Trigger {
    /// It is the interrupt handler.
    Interrupt(Lines),
    /// Somebody signals this semaphore when interrupts have been counted.
    Semaphore(SemaphoreId),
}

/// What a driver that holds a reservation asks for while it runs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Asking {
    /// Another reservation, when the device's first phase is over.
    pub after_on_hook: Option<Reservation>,
    /// A time constraint for the call that recognises the answer: so long after its interrupt it is to be done.
    pub recognition_within: Option<Span>,
}

/// A card with its clock.
pub(crate) struct Unit {
    pub(crate) served: Box<dyn Served>,
    pub(crate) clock: Arc<DeviceClock>,
}

/// What a driver leaves behind when its program is gone: the cards as it found them last.
#[derive(Clone, Default)]
pub struct Left(Arc<Mutex<Option<Vec<Unit>>>>);

impl fmt::Debug for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Left")
    }
}

impl Left {
    fn leave(&self, units: Vec<Unit>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(units);
    }

    /// What the cards of the driver that have not come to their end were owed at `end`, by the host's clock, beside what all of them have
    /// counted; `None` while the driver is still in its program.
    pub fn unserved(&self, end: Instant) -> Option<Unserved> {
        let units = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Unserved::default();
        for Unit { served, clock } in units.as_ref()? {
            all.counted += served.damage();
            if served.is_over() {
                continue;
            }
            let own = served.unserved(clock.device_time(end));
            let raised = own
                .raised
                .iter()
                .map(|raised| clock.host_time(*raised, end));
            all.raised.extend(raised);
            all.pending += own.pending;
            all.lost += own.lost;
            all.underrun += own.underrun;
        }
        all.raised.sort_unstable();
        Some(all)
    }
}

/// Whether the call at work has a time constraint.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Constraint {
    /// It has none.
    None,
    /// One was asked for, and no piece of the call has begun.
    Asked,
    /// It was granted.
    Held,
}

/// The call at work.
struct Call {
    /// The card that is being served.
    place: usize,
    piece: Service,
    constraint: Constraint,
}

enum State {
    /// Between calls.
    Idle,
    /// The signal processing is at work.
    Working(Call),
}

/// A driver. Of several cards with work to do, the one whose interrupt came first is served first, to the end.
pub(super) struct Driver {
    units: Vec<Unit>,
    marks: Marks,
    /// When nothing is left to be served, the run ends, but no earlier than this in the first device's time. Otherwise only the driver
    /// does.
    ends_run: Option<Instant>,
    trigger: Trigger,
    /// Ask for the reservation once the first phase is over (§5.4).
    reserves: bool,
    asking: Asking,
    state: State,
    /// The phase recorded last.
    phase: Option<u64>,
    left: Left,
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.left.leave(std::mem::take(&mut self.units));
    }
}

impl Driver {
    pub(super) fn new(
        units: Vec<Unit>,
        marks: Marks,
        ends_run: Option<Instant>,
        trigger: Trigger,
        left: Left,
    ) -> Self {
        Self {
            units,
            marks,
            ends_run,
            trigger,
            reserves: false,
            asking: Asking::default(),
            state: State::Idle,
            phase: None,
            left,
        }
    }

    /// The driver's thread has a reservation, for which it is to ask itself if it `reserves`; and asks for this while it runs.
    pub(super) fn hold(&mut self, reserves: bool, asking: Asking) {
        (self.reserves, self.asking) = (reserves, asking);
    }

    /// Records the phase of the driver's only card if it is a new one.
    fn mark_phase(&mut self, context: &mut dyn Context) {
        if let [unit] = &self.units[..]
            && let Some(phase) = unit.served.phase()
            && self.phase.replace(phase) != Some(phase)
        {
            context.mark(self.marks.phase, [phase, 0]);
        }
    }

    /// The card to be served next, and when its interrupt was raised.
    fn next_due(&self, now: Instant) -> Option<(usize, Instant)> {
        let due = self
            .units
            .iter()
            .enumerate()
            .filter(|(_, unit)| unit.served.is_due());
        due.map(|(place, unit)| (place, unit.clock.host_time(unit.served.raised_at(), now)))
            .min_by_key(|(_, raised)| *raised)
    }

    fn begin(&mut self, place: usize, raised: Instant, context: &mut dyn Context) -> Step {
        let host_now = context.now();
        let Unit { served, clock } = &mut self.units[place];
        let now = clock.device_time(host_now);
        let pending = served.pending(now);
        context.mark(self.marks.call_begin, [pending, raised.as_nanos()]);
        let work = served.begin(now);
        let asks = self.wants_time(work, raised, host_now);
        self.state = State::Working(Call {
            place,
            piece: work.piece,
            constraint: match asks {
                Some(_) => Constraint::Asked,
                None => Constraint::None,
            },
        });
        asks.unwrap_or(Step::Charge(work.piece))
    }

    /// The time constraint of a call that begins, if it is the one that is to have one.
    fn wants_time(&mut self, work: Work, raised: Instant, now: Instant) -> Option<Step> {
        let within = self.asking.recognition_within.filter(|_| work.is_longest)?;
        self.asking.recognition_within = None;
        let all = work.piece * u64::from(work.pieces);
        // A twentieth more, for what interrupts take.
        let service = all + all / 20;
        let constraint = TimeConstraint::new(now, raised + within, service).ok()?;
        Some(Step::BeginConstraint(constraint))
    }

    /// Goes on with a call, until it has nothing more to deliver.
    fn work(&mut self, mut call: Call, context: &mut dyn Context) -> Option<Step> {
        let Unit { served, clock } = &mut self.units[call.place];
        if call.constraint == Constraint::Asked {
            call.constraint = match context.granted() {
                true => Constraint::Held,
                false => Constraint::None,
            };
        } else if !served.proceed(clock.device_time(context.now())) {
            self.finish(call.place, context);
            return (call.constraint == Constraint::Held).then_some(Step::EndConstraint);
        }
        let piece = call.piece;
        self.state = State::Working(call);
        Some(Step::Charge(piece))
    }

    fn finish(&mut self, place: usize, context: &mut dyn Context) {
        let Unit { served, clock } = &mut self.units[place];
        let now = clock.device_time(context.now());
        served.finish(now);
        let pending = served.pending(now);
        let units = self.units.iter().map(|unit| &unit.served);
        let damage = units.clone().map(|served| served.damage()).sum();
        let account = units.map(|served| served.account()).sum();
        context.mark(self.marks.call_end, [pending, damage]);
        context.mark(self.marks.account, [context.service().as_nanos(), account]);
        self.mark_phase(context);
    }

    /// The last step, if there is nothing left to do.
    fn ends(&self, now: Instant) -> Option<Step> {
        let first = self.units.first()?;
        let is_over = self.units.iter().all(|unit| unit.served.is_over());
        match self.ends_run {
            _ if !is_over => None,
            None => Some(Step::Finish),
            Some(linger) => (first.clock.device_time(now) >= linger).then_some(Step::EndRun),
        }
    }

    /// Asks for the reservation once, as soon as the first phase is over, or for another one.
    fn wants_reservation(&mut self) -> Option<Step> {
        if self.units.iter().any(|unit| unit.served.phase() == Some(0)) {
            return None;
        }
        if std::mem::take(&mut self.reserves) {
            return Some(Step::BeginReservation);
        }
        let other = self.asking.after_on_hook.take();
        other.map(Step::ChangeReservation)
    }

    fn next(&mut self, context: &mut dyn Context) -> Step {
        let now = context.now();
        if let Some((place, raised)) = self.next_due(now) {
            return self.begin(place, raised, context);
        }
        match &self.trigger {
            Trigger::Semaphore(semaphore) => Step::Wait(*semaphore),
            Trigger::Interrupt(lines) => match lines.poll(now) {
                Err(due) => Step::SleepUntil(due),
                Ok(_) => match self.next_due(now) {
                    Some((place, raised)) => self.begin(place, raised, context),
                    // An interrupt of a programming that is no longer in force.
                    None => Step::SleepUntil(now),
                },
            },
        }
    }
}

impl Body for Driver {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Working(call) => {
                if let Some(step) = self.work(call, context) {
                    return step;
                }
            }
            State::Idle => self.mark_phase(context),
        }
        self.ends(context.now())
            .or_else(|| self.wants_reservation())
            .unwrap_or_else(|| self.next(context))
    }
}
