//! A driver as an activity: one or several cards, in whatever context the placement gives it.

use std::sync::Arc;

use laxity_model::{Body, Context, Instant, Mark, Program, SemaphoreId, Service, Step};

use super::served::{Line, Served};
use crate::modem::clock::CallClock;

/// Names of the events that a driver records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Marks {
    /// A call began. Arguments: samples pending before it; when its interrupt was raised, in nanoseconds of the host's time.
    pub begin: Mark,
    /// It ended. Arguments: samples pending after it; samples lost and underrun so far, of all cards of the driver.
    pub end: Mark,
    /// The driver's account, after each call. Arguments: processor time received so far, in nanoseconds; frames damaged so far, of
    /// all cards.
    pub account: Mark,
}

impl Marks {
    /// Names them in a program.
    pub fn declare(program: &mut Program) -> Self {
        Self {
            begin: program.mark("processing begins"),
            end: program.mark("processing ends"),
            account: program.mark("account"),
        }
    }
}

/// The interrupt lines that one handler answers to, as devices share a line of the bus.
pub(crate) struct Lines(pub(crate) Vec<(Arc<dyn Line>, Arc<CallClock>)>);

impl Lines {
    /// Counts all interrupts that are due at `now`, in the host's time; if there is none, tells when to look again.
    pub(crate) fn poll(&self, now: Instant) -> Result<u64, Instant> {
        let mut counted = 0;
        let mut next = Instant::MAX;
        for (line, clock) in &self.0 {
            if clock.call_time(now) < line.due() {
                next = next.min(clock.host_time(line.due(), now));
            } else {
                line.raise();
                counted += 1;
            }
        }
        if counted > 0 { Ok(counted) } else { Err(next) }
    }
}

/// An interrupt handler that only counts and queues the deferred call.
pub(crate) struct Handler {
    pub(crate) lines: Lines,
    pub(crate) deferred: SemaphoreId,
    /// For each line that had an interrupt.
    pub(crate) cost: Service,
}

impl Body for Handler {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        match self.lines.poll(context.now()) {
            Err(due) => Step::SleepUntil(due),
            Ok(counted) => {
                context.signal(self.deferred);
                Step::Charge(self.cost * counted)
            }
        }
    }
}

/// What makes a driver run.
pub(crate) enum Trigger {
    /// It is the interrupt handler.
    Interrupt(Lines),
    /// Somebody signals this semaphore when interrupts have been counted.
    Semaphore(SemaphoreId),
}

/// A card with its clock.
pub(crate) struct Unit {
    pub(crate) served: Box<dyn Served>,
    pub(crate) clock: Arc<CallClock>,
}

/// A driver. Of several cards with work to do, the one whose interrupt came first is served first, to the end.
pub(crate) struct Driver {
    pub(crate) units: Vec<Unit>,
    pub(crate) trigger: Trigger,
    pub(crate) marks: Marks,
    /// Ask for the reservation in the first step.
    pub(crate) reserves: bool,
    /// The card that is being served.
    pub(crate) serving: Option<usize>,
}

impl Driver {
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
        let Unit { served, clock } = &mut self.units[place];
        let now = clock.call_time(context.now());
        context.mark(self.marks.begin, [served.pending(now), raised.as_nanos()]);
        self.serving = Some(place);
        Step::Charge(served.begin(now))
    }

    fn finish(&mut self, place: usize, context: &mut dyn Context) {
        let Unit { served, clock } = &mut self.units[place];
        let now = clock.call_time(context.now());
        served.finish(now);
        let pending = served.pending(now);
        let units = self.units.iter().map(|unit| &unit.served);
        let damage = units.clone().map(|served| served.damage()).sum();
        let frame_errors = units.map(|served| served.frame_errors()).sum();
        context.mark(self.marks.end, [pending, damage]);
        context.mark(
            self.marks.account,
            [context.service().as_nanos(), frame_errors],
        );
        self.serving = None;
    }
}

impl Body for Driver {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        if let Some(place) = self.serving {
            let Unit { served, clock } = &mut self.units[place];
            if let Some(cost) = served.proceed(clock.call_time(context.now())) {
                return Step::Charge(cost);
            }
            self.finish(place, context);
        }
        if std::mem::take(&mut self.reserves) {
            return Step::BeginReservation;
        }
        if !self.units.is_empty() && self.units.iter().all(|unit| unit.served.is_over()) {
            return Step::Finish;
        }
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
