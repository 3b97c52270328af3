//! Who hears what a card sends: beyond it, outside the machine.

use std::sync::Arc;

use laxity_model::{Body, Context, Instant, Step};

use super::clock::DeviceClock;
use super::report::Report;
use super::ring::Card;
use super::stream::Format;

/// Checks what a card has sent.
pub trait Listener: Send {
    /// Block `number`, counted from 0 as the driver's calls are, has gone out. Returns whether its frame's CRC was right.
    fn hear(&mut self, number: u64, samples: &[i16]) -> bool;
}

/// A listener as an activity: it hears each block a block after it has gone out, when nothing can change it any more.
pub(super) struct ListenerActivity {
    card: Arc<Card>,
    format: Format,
    clock: Arc<DeviceClock>,
    report: Arc<Report>,
    listener: Box<dyn Listener>,
    heard: u64,
    samples: Vec<i16>,
}

impl ListenerActivity {
    pub(super) fn new(
        card: Arc<Card>,
        format: Format,
        clock: Arc<DeviceClock>,
        report: Arc<Report>,
        listener: Box<dyn Listener>,
    ) -> Self {
        let samples = vec![0; format.block as usize];
        Self {
            card,
            format,
            clock,
            report,
            listener,
            heard: 0,
            samples,
        }
    }

    /// Hears all blocks that are due at `now`, in the card's time. Returns when to listen again.
    pub(super) fn advance(&mut self, now: Instant) -> Instant {
        let setting = self.format.setting();
        loop {
            // Before the first call's block goes out what the output was filled with.
            let place = self.heard + self.format.silent_blocks();
            let due = Instant::ZERO + setting.duration(setting.samples_in(place + 2));
            if now < due {
                return due;
            }
            let first = setting.samples_in(place);
            for (index, sample) in (first..).zip(&mut self.samples) {
                *sample = self.card.departed(0, index);
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

impl Body for ListenerActivity {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        let host_now = context.now();
        let due = self.advance(self.clock.device_time(host_now));
        Step::SleepUntil(self.clock.host_time(due, host_now))
    }
}
