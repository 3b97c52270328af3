//! The card's interrupt handler, and the deferred call behind it, for drivers that work elsewhere (Jones, Saroiu §5.2, §5.3).

use std::sync::Arc;

use laxity_model::{Body, Context, Instant, SemaphoreId, Service, Step};

use super::card::Card;
use super::clock::CallClock;

/// When the card raises its line next, and whether it has.
pub(crate) struct InterruptLine {
    card: Arc<Card>,
    clock: Arc<CallClock>,
}

impl InterruptLine {
    pub(crate) fn new(card: Arc<Card>, clock: Arc<CallClock>) -> Self {
        Self { card, clock }
    }

    /// Takes the interrupt if one is due at `now` (the host's time); else tells when to look again, in the host's time.
    pub(crate) fn poll(&mut self, now: Instant) -> Result<(), Instant> {
        let epoch = self.card.epoch();
        let due = match self.card.programming(epoch) {
            Some(programming) => programming.interrupt_at(self.card.raised(epoch) + 1),
            None => return Err(now),
        };
        if self.clock.call_time(now) < due {
            return Err(self.clock.host_time(due, now));
        }
        self.card.raise(epoch);
        Ok(())
    }
}

/// A handler that only counts the interrupt and queues the deferred call.
pub(crate) struct InterruptHandler {
    line: InterruptLine,
    deferred: SemaphoreId,
    cost: Service,
}

impl InterruptHandler {
    pub(crate) fn new(line: InterruptLine, deferred: SemaphoreId, cost: Service) -> Self {
        Self {
            line,
            deferred,
            cost,
        }
    }
}

impl Body for InterruptHandler {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        match self.line.poll(context.now()) {
            Err(due) => Step::SleepUntil(due),
            Ok(()) => {
                context.signal(self.deferred);
                Step::Charge(self.cost)
            }
        }
    }
}

/// A deferred call that only wakes the driver's thread: a handler may not signal a thread itself (§5.3).
pub(crate) struct DeferredSignal {
    queued: SemaphoreId,
    thread: SemaphoreId,
    cost: Service,
    woken: bool,
}

impl DeferredSignal {
    pub(crate) fn new(queued: SemaphoreId, thread: SemaphoreId, cost: Service) -> Self {
        Self {
            queued,
            thread,
            cost,
            woken: false,
        }
    }
}

impl Body for DeferredSignal {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        self.woken = !self.woken;
        if self.woken {
            // The first step of all waits; every second one after it follows a wake-up.
            return Step::Wait(self.queued);
        }
        context.signal(self.thread);
        Step::Charge(self.cost)
    }
}
