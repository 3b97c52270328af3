//! A device that is only received or only played: one call of its signal processing a block.

use std::sync::Arc;

use laxity_model::{Instant, InterruptLevel, Placement, ProcessorId, Program, Service, Span};

use super::block::Repeated;
use super::clock::{CardClock, DeviceClock};
use super::cursor::Cursor;
use super::driver::{Asking, Unit};
use super::install::{DriverParts, DriverPlacement, Installed};
use super::listen::{Listener, listening};
use super::report::Report;
use super::ring::{Card, Setting};
use super::served::{Served, Unserved, Work};

/// How a stream's card and driver move samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    /// Samples a second.
    pub rate_hz: u64,
    /// Samples from interrupt to interrupt.
    pub block: u64,
    /// Blocks that a ring holds; two or more.
    pub ring_blocks: u64,
    /// Blocks by which the output is ahead when a block's interrupt is raised and all before it are served; at least one, and
    /// less than `ring_blocks`.
    pub lead_blocks: u64,
    /// Samples at a block's beginning without which its frame may still arrive: a guard interval, and what is too short to matter.
    pub spare: u64,
}

impl Format {
    /// How the card is set.
    pub const fn setting(&self) -> Setting {
        Setting {
            rate_hz: self.rate_hz,
            blocks: [self.block; 3],
            ring: self.ring(),
        }
    }

    /// From interrupt to interrupt.
    pub fn period(&self) -> Span {
        self.setting().duration(self.block)
    }

    /// Samples that a ring holds.
    pub const fn ring(&self) -> u64 {
        self.ring_blocks * self.block
    }

    /// Blocks of silence that the output is filled with before the first call.
    pub const fn silent_blocks(&self) -> u64 {
        1 + self.lead_blocks
    }
}

/// The driver's side of a stream: one call of the signal processing an interrupt.
pub struct StreamUnit {
    card: Arc<Card>,
    report: Arc<Report>,
    work: Repeated,
    cost: Service,
    format: Format,
    cursor: Cursor,
    served: u64,
    input: Vec<i16>,
    output: Vec<i16>,
}

impl StreamUnit {
    /// A driver for a card that has just been made in this format; each call costs this much service in the twin.
    #[must_use]
    pub fn new(
        card: Arc<Card>,
        format: Format,
        report: Arc<Report>,
        work: Repeated,
        cost: Service,
    ) -> Self {
        let block = format.block as usize;
        let (input, output) = if card.is_capture() {
            (block, 0)
        } else {
            (0, block)
        };
        Self {
            card,
            report,
            work,
            cost,
            format,
            cursor: Cursor::new(format.setting(), format.lead_blocks * format.block),
            served: 0,
            input: vec![0; input],
            output: vec![0; output],
        }
    }

    /// Passes over blocks of which nothing is left; the newest interrupt is served in any case.
    fn skip(&mut self, now: Instant) {
        let block = self.format.block;
        while self.card.is_capture() && self.is_behind() && self.cursor.is_gone(now, block) {
            self.served += 1;
            self.cursor.skip_block(block);
            self.report.blocks_skipped.add(1);
            self.report.samples_lost.add(block);
        }
    }

    /// Whether a newer interrupt than the one to be served has been raised.
    fn is_behind(&self) -> bool {
        self.card.raised(self.cursor.epoch()) > self.served + 1
    }
}

impl Served for StreamUnit {
    fn is_due(&self) -> bool {
        self.card.raised(self.cursor.epoch()) > self.served
    }

    fn raised_at(&self) -> Instant {
        self.cursor.programming().interrupt_at(self.served + 1)
    }

    fn pending(&self, now: Instant) -> u64 {
        let position = self.cursor.programming().position(now);
        position.saturating_sub(self.served * self.format.block)
    }

    fn begin(&mut self, now: Instant) -> Work {
        self.skip(now);
        let lost = self.cursor.take_block(&self.card, now, &mut self.input);
        self.report.samples_lost.add(lost);
        self.report.blocks_damaged.add(u64::from(lost > 0));
        self.report
            .blocks_broken
            .add(u64::from(lost > self.format.spare));
        let (checked, differs) = self
            .work
            .process(self.served, &self.input, &mut self.output);
        self.report.frames_good.add(u64::from(checked.good));
        self.report.crc_errors.add(u64::from(checked.damaged));
        self.report.load_differs.add(u64::from(differs));
        Work {
            piece: self.cost,
            pieces: 1,
            is_longest: false,
        }
    }

    fn finish(&mut self, now: Instant) {
        let late = self.cursor.put(&self.card, now, &self.output);
        self.report.samples_underrun.add(late);
        self.report.blocks_underrun.add(u64::from(late > 0));
        self.served += 1;
    }

    /// Each block has a place of its own in the ring: what is lost are the samples that newer ones were written over. A block that was taken
    /// is no longer in the ring, though its call may still be at work.
    fn unserved(&self, now: Instant) -> Unserved {
        let all = self.cursor.unserved(now, self.served);
        match self.card.is_capture() {
            true => Unserved {
                lost: self.cursor.overwritten(now),
                underrun: 0,
                ..all
            },
            false => Unserved {
                pending: self.pending(now).min(self.format.ring()),
                lost: 0,
                ..all
            },
        }
    }

    fn damage(&self) -> u64 {
        self.report.damage()
    }

    fn account(&self) -> u64 {
        self.report.frames_lost()
    }
}

/// A stream that has not been put into a program yet: a card, its driver, and who listens to it.
pub struct Stream {
    /// Its name in tables and traces.
    pub name: &'static str,
    /// The level of its interrupt.
    pub level: InterruptLevel,
    /// How its samples move.
    pub format: Format,
    /// What it receives again and again; `None` if it is played.
    pub recording: Option<Arc<[i16]>>,
    /// The signal processing.
    pub work: Repeated,
    /// What a call costs in the twin.
    pub cost: Service,
    /// How the card's clock stands to the host's.
    pub clock: CardClock,
    /// Who hears what the card sends.
    pub listener: Option<Box<dyn Listener>>,
}

impl Stream {
    /// Puts the stream into a program. Returns where to find its evidence, its account included.
    pub fn install(
        self,
        program: &mut Program,
        processor: ProcessorId,
        placement: DriverPlacement,
    ) -> Installed<Arc<Report>> {
        let setting = self.format.setting();
        let card = Arc::new(match self.recording {
            Some(recording) => Card::capture(setting, recording),
            None => Card::playback(setting),
        });
        let report = Arc::new(Report::default());
        let clock = Arc::new(DeviceClock::new(Span::ZERO, self.clock));
        if let Some(listener) = self.listener {
            let (on, account) = (Arc::clone(&card), Arc::clone(&report));
            let body = Arc::clone(&clock).activity(listening(on, self.format, account, listener));
            let name = format!("{} listener", self.name);
            program.add(&name, processor, Placement::External, body);
        }
        let (on, account) = (Arc::clone(&card), Arc::clone(&report));
        let served = StreamUnit::new(on, self.format, account, self.work, self.cost);
        let served = Box::new(served);
        let parts = DriverParts {
            name: self.name,
            level: self.level,
            asking: Asking::default(),
            ends_run: None,
            cards: vec![(card, Unit { served, clock })],
        };
        parts.install(program, processor, placement, report)
    }
}
