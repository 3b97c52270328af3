//! The modem's driver: one call of the signal processing an interrupt, as a function of the call's time.

use std::sync::Arc;

use laxity_model::{Instant, Service};

use super::cost::Costs;
use super::hypothesis::Hypothesis;
use super::near::NearModem;
use super::phase::Phase;
use super::report::Report;
use crate::card::{Card, Cursor, Served, Unserved, Work};

/// The driver's side of the modem's card.
pub struct ModemUnit {
    card: Arc<Card>,
    report: Arc<Report>,
    near: NearModem,
    costs: Costs,
    cursor: Cursor,
    served: u64,
    phase: Phase,
    received: Vec<i16>,
    transmit: Vec<i16>,
    /// Pieces of this call's output that are delivered.
    delivered: u32,
}

impl ModemUnit {
    /// A driver for a card that has just been made, set as the modem's phase wants it.
    #[must_use]
    pub fn new(card: Arc<Card>, report: Arc<Report>, near: NearModem, costs: Costs) -> Self {
        let phase = near.phase();
        let setting = phase.setting();
        let (received, transmit) = (vec![0; 512], vec![0; 512]);
        Self {
            card,
            report,
            near,
            costs,
            cursor: Cursor::new(setting, Hypothesis::STUDY.lead_samples(setting)),
            served: 0,
            phase,
            received,
            transmit,
            delivered: 0,
        }
    }

    /// Where the call is.
    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// The modem's software.
    pub(crate) fn near(&self) -> &NearModem {
        &self.near
    }

    /// Samples of the block that is being served.
    fn block(&self) -> usize {
        self.cursor.programming().setting.block(self.served) as usize
    }

    fn program(&mut self, phase: Phase, now: Instant) {
        let setting = phase.setting();
        let started = now + Hypothesis::STUDY.programming_pause;
        let lead = Hypothesis::STUDY.lead_samples(setting);
        if let Some(cursor) = self.card.program(setting, started, lead) {
            self.cursor = cursor;
            self.served = 0;
        }
    }
}

impl Served for ModemUnit {
    fn is_due(&self) -> bool {
        self.card.raised(self.cursor.epoch()) > self.served
    }

    fn raised_at(&self) -> Instant {
        self.cursor.programming().interrupt_at(self.served + 1)
    }

    fn pending(&self, now: Instant) -> u64 {
        self.cursor.pending(now)
    }

    /// Takes the input and works on it, unless the output has run dry.
    fn begin(&mut self, now: Instant) -> Work {
        let block = self.block();
        self.report.calls.add(1);
        if self.phase >= Phase::Training {
            let waited = now.saturating_since(self.raised_at());
            self.report.begin_latest_ns.raise_to(waited.as_nanos());
        }
        let pieces = Hypothesis::STUDY.pieces;
        if self.cursor.is_dry(now) {
            let lost = self.cursor.skip(now, block as u64);
            self.report.samples_lost.add(lost);
            self.report.samples_underrun.add(block as u64);
            self.report.blocks_abandoned.add(1);
            self.delivered = pieces;
            return Work {
                piece: self.costs.abandoned,
                pieces: 1,
                is_longest: false,
            };
        }
        let taken = self
            .cursor
            .take(&self.card, now, &mut self.received[..block]);
        self.report.samples_lost.add(taken.lost);
        self.report.samples_undelivered.add(taken.missing);
        let transmit = &mut self.transmit[..block];
        let recognised = self
            .near
            .process(now, &self.received[..taken.samples], transmit);
        self.delivered = 0;
        let cost = self.costs.call(self.phase, recognised);
        Work {
            piece: Service::from_nanos(cost.as_nanos() / u64::from(pieces)),
            pieces,
            is_longest: recognised,
        }
    }

    /// Delivers the next piece of the output.
    fn proceed(&mut self, now: Instant) -> bool {
        let (block, pieces) = (self.block(), Hypothesis::STUDY.pieces);
        if self.delivered < pieces {
            let end_of = |piece: u32| block * piece as usize / pieces as usize;
            let piece = end_of(self.delivered)..end_of(self.delivered + 1);
            let late = self.cursor.put(&self.card, now, &self.transmit[piece]);
            self.report.samples_underrun.add(late);
            self.delivered += 1;
        }
        self.delivered < pieces
    }

    /// Follows the call into its next phase.
    fn finish(&mut self, now: Instant) {
        self.served += 1;
        let next = self.near.phase();
        if next.setting() != self.phase.setting() {
            self.program(next, now);
        }
        self.phase = next;
        if let Some(outcome) = self.near.report(&self.report) {
            self.report.end(outcome);
        }
    }

    fn unserved(&self, now: Instant) -> Unserved {
        self.cursor.unserved(now, self.served)
    }

    fn phase(&self) -> Option<u64> {
        let place = Phase::ALL.iter().position(|phase| *phase == self.phase);
        place.map(|place| place as u64)
    }

    fn damage(&self) -> u64 {
        self.report.samples_lost.get() + self.report.samples_underrun.get()
    }

    fn account(&self) -> u64 {
        self.report.samples_underrun.get()
    }

    fn is_over(&self) -> bool {
        self.report.outcome().is_some()
    }
}
