//! Who hears what a card sends: beyond it, outside the machine.

use std::sync::Arc;

use laxity_model::{Body, Context, Instant, Step};

use super::card::Card;
use super::report::Report;
use crate::modem::clock::CallClock;

/// Checks what a card has sent.
pub trait Listener: Send {
    /// Block `number`, counted from 0 as the driver's calls are, has gone out. Returns whether its frame's CRC was right.
    fn hear(&mut self, number: u64, samples: &[i16]) -> bool;
}

/// A listener as an activity: it hears each block a block after it has gone out, when nothing can change it any more.
pub(crate) struct ListenerActivity<L> {
    card: Arc<Card>,
    clock: Arc<CallClock>,
    report: Arc<Report>,
    listener: L,
    heard: u64,
    samples: Vec<i16>,
}

impl<L: Listener> ListenerActivity<L> {
    pub(crate) fn new(
        card: Arc<Card>,
        clock: Arc<CallClock>,
        report: Arc<Report>,
        listener: L,
    ) -> Self {
        let samples = vec![0; card.format().block as usize];
        Self {
            card,
            clock,
            report,
            listener,
            heard: 0,
            samples,
        }
    }

    /// Hears all blocks that are due at `now`, in the card's time. Returns when to listen again.
    pub(crate) fn advance(&mut self, now: Instant) -> Instant {
        let format = self.card.format();
        // The first blocks are the silence that the output is filled with before the first call.
        let silent = 1 + format.lead_blocks;
        loop {
            let place = self.heard + silent;
            let due = format.interrupt_at(place + 2);
            if now < due {
                return due;
            }
            for (index, sample) in (place * format.block..).zip(&mut self.samples) {
                *sample = self.card.departed(index);
            }
            let counter = match self.listener.hear(self.heard, &self.samples) {
                true => &self.report.frames_good,
                false => &self.report.crc_errors,
            };
            counter.add(1);
            self.heard += 1;
        }
    }
}

impl<L: Listener> Body for ListenerActivity<L> {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        let host_now = context.now();
        let due = self.advance(self.clock.call_time(host_now));
        Step::SleepUntil(self.clock.host_time(due, host_now))
    }
}
