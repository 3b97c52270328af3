//! The cards' interrupt handler, and the deferred call behind it, for drivers that work elsewhere (Jones, Saroiu §5.2, §5.3).

use std::sync::Arc;

use laxity_model::{Body, Context, Instant, SemaphoreId, Service, Step};

use super::clock::DeviceClock;
use super::ring::Card;

/// The interrupt lines that one handler answers to, as devices share a line of the bus.
pub(super) struct Lines(pub(super) Vec<(Arc<Card>, Arc<DeviceClock>)>);

impl Lines {
    /// Counts all interrupts that are due at `now`, in the host's time; if there is none, tells when to look again.
    pub(super) fn poll(&self, now: Instant) -> Result<u64, Instant> {
        let mut counted = 0;
        let mut next = Instant::MAX;
        for (card, clock) in &self.0 {
            if clock.device_time(now) < card.due() {
                next = next.min(clock.host_time(card.due(), now));
            } else {
                card.raise();
                counted += 1;
            }
        }
        if counted > 0 { Ok(counted) } else { Err(next) }
    }
}

/// An interrupt handler that only counts and queues the deferred call.
pub(super) struct Handler {
    pub(super) lines: Lines,
    pub(super) deferred: SemaphoreId,
    /// For each line that had an interrupt.
    pub(super) cost: Service,
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

/// A deferred call that only wakes the driver's thread: a handler may not signal a thread itself (§5.3).
pub(super) struct DeferredSignal {
    pub(super) queued: SemaphoreId,
    pub(super) thread: SemaphoreId,
    pub(super) cost: Service,
    pub(super) woken: bool,
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
