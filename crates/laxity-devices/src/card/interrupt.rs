//! The cards' interrupt handler, and the deferred call behind it, for drivers that work elsewhere (Jones, Saroiu §5.2, §5.3).

use std::sync::Arc;

use laxity_model::{Body, Context, Instant, Mark, SemaphoreId, Step};

use super::clock::DeviceClock;
use super::install::Overheads;
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

    /// An interrupt handler that only counts and queues the deferred call, for each line that had an interrupt. It says so where it was entered for none: a card that
    /// is programmed anew meanwhile raises its next one later.
    pub(super) fn handler(self, deferred: SemaphoreId, no_interrupt: Mark) -> impl Body + 'static {
        // It has not been entered before its first step.
        let mut has_cause = true;
        move |context: &mut dyn Context| match self.poll(context.now()) {
            Err(due) => {
                if !std::mem::take(&mut has_cause) {
                    context.mark(no_interrupt, [0; 2]);
                }
                Step::SleepUntil(due)
            }
            Ok(counted) => {
                has_cause = true;
                context.signal(deferred);
                Step::Charge(Overheads::STUDY.interrupt * counted)
            }
        }
    }
}

/// A deferred call that only wakes the driver's thread: a handler may not signal a thread itself (§5.3).
pub(super) fn deferred_signal(queued: SemaphoreId, thread: SemaphoreId) -> impl Body + 'static {
    let mut is_woken = true;
    move |context: &mut dyn Context| {
        is_woken = !is_woken;
        if !is_woken {
            // The first step of all waits; every second one after it follows a wake-up.
            return Step::Wait(queued);
        }
        context.signal(thread);
        Step::Charge(Overheads::STUDY.deferred)
    }
}
