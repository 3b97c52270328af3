//! What a driver serves: cards that interrupt, and the work that each interrupt asks for.

use std::sync::Arc;

use laxity_model::{Instant, Service};

use super::block::Repeated;
use super::card::Card;
use super::report::Report;

/// The interrupt line of a card, in the card's own time.
pub trait Line: Send + Sync {
    /// When the next interrupt is raised that has not been counted yet.
    fn due(&self) -> Instant;

    /// Counts it.
    fn raise(&self);
}

impl Line for Card {
    fn due(&self) -> Instant {
        self.format().interrupt_at(self.raised() + 1)
    }

    fn raise(&self) {
        Self::raise(self);
    }
}

/// A card as its driver sees it, in the card's own time: work to be done once an interrupt.
pub trait Served: Send {
    /// Whether an interrupt has been raised that is not served yet.
    fn is_due(&self) -> bool;

    /// When the interrupt to be served next was raised, or will be.
    fn raised_at(&self) -> Instant;

    /// Samples that have arrived and are not read, or for a card that is only written, sent since the last block served.
    fn pending(&self, now: Instant) -> u64;

    /// Reads the input and works on it. Returns what that costs on the twin's machine, or a first piece of it.
    fn begin(&mut self, now: Instant) -> Service;

    /// That piece has been paid for. Returns what the next costs; `None` if there is none.
    fn proceed(&mut self, _now: Instant) -> Option<Service> {
        None
    }

    /// All has been paid for: delivers what is to be delivered at the end. The interrupt is served.
    fn finish(&mut self, now: Instant);

    /// Samples lost and underrun so far.
    fn damage(&self) -> u64;

    /// Frames damaged so far, as far as the driver can know.
    fn frame_errors(&self) -> u64;

    /// Whether there will be nothing more to serve.
    fn is_over(&self) -> bool;
}

/// The driver's side of a [stream card](Card): one call of the signal processing an interrupt.
pub struct StreamUnit {
    card: Arc<Card>,
    report: Arc<Report>,
    work: Repeated,
    cost: Service,
    served: u64,
    input: Vec<i16>,
    output: Vec<i16>,
}

impl StreamUnit {
    /// A driver for a card that has just been made; each call costs this much service in the twin.
    #[must_use]
    pub fn new(card: Arc<Card>, report: Arc<Report>, work: Repeated, cost: Service) -> Self {
        let block = card.format().block as usize;
        let (input, output) = if card.is_read() {
            (block, 0)
        } else {
            (0, block)
        };
        Self {
            card,
            report,
            work,
            cost,
            served: 0,
            input: vec![0; input],
            output: vec![0; output],
        }
    }

    /// Passes over blocks of which nothing is left; the newest interrupt is served in any case.
    fn skip(&mut self, now: Instant) {
        while self.served + 1 < self.card.raised() && self.card.is_gone(self.served, now) {
            self.served += 1;
            self.report.blocks_skipped.add(1);
            self.report.samples_lost.add(self.card.format().block);
        }
    }
}

impl Served for StreamUnit {
    fn is_due(&self) -> bool {
        self.card.raised() > self.served
    }

    fn raised_at(&self) -> Instant {
        self.card.format().interrupt_at(self.served + 1)
    }

    fn pending(&self, now: Instant) -> u64 {
        let format = self.card.format();
        format
            .position(now)
            .saturating_sub(self.served * format.block)
    }

    fn begin(&mut self, now: Instant) -> Service {
        self.skip(now);
        let taken = self.card.take(self.served, now, &mut self.input);
        self.report.samples_lost.add(taken.overwritten);
        let (lost, spare) = (taken.overwritten, self.card.format().spare);
        self.report.blocks_damaged.add(u64::from(lost > 0));
        self.report.blocks_broken.add(u64::from(lost > spare));
        self.report.blocks.add(1);
        let (checked, differs) = self
            .work
            .process(self.served, &self.input, &mut self.output);
        self.report.frames_good.add(u64::from(checked.good));
        self.report.crc_errors.add(u64::from(checked.damaged));
        self.report.load_differs.add(u64::from(differs));
        self.cost
    }

    fn finish(&mut self, now: Instant) {
        let format = self.card.format();
        // At the k-th interrupt, k blocks have gone out; its own call writes the one `lead_blocks` further on.
        let first = (self.served + 1 + format.lead_blocks) * format.block;
        let late = self.card.put(first, now, &self.output);
        self.report.samples_underrun.add(late);
        self.report.blocks_underrun.add(u64::from(late > 0));
        self.served += 1;
    }

    fn damage(&self) -> u64 {
        self.report.damage()
    }

    fn frame_errors(&self) -> u64 {
        self.report.frames_lost()
    }

    fn is_over(&self) -> bool {
        false
    }
}
