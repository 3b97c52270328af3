//! Several modems on one driver: one handler, deferred call or thread serves all their cards, the one that asked first first.

use std::sync::Arc;

use laxity_model::{Instant, InterruptLevel, Placement, ProcessorId, Program, Service, Span};

use super::install::{DriverParts, Installed, Overheads};
use super::served::{Line, Served};
use crate::modem::card::Card;
use crate::modem::clock::CallClock;
use crate::modem::driver::DriverCore;
use crate::modem::far::{FarEnd, FarEndActivity};
use crate::modem::near::NearModem;
use crate::modem::{CallConfig, DriverPlacement, Report};

/// The level of the cards' interrupt, as one modem's: above the network card and the CD-ROM's controller, below all others
/// (Jones, Saroiu §5.1).
const LEVEL: InterruptLevel = InterruptLevel(5);

/// The service that V.42 gives is measured by its frames: one whose FCS is wrong is sent again.
fn frames_sent_again(report: &Report) -> u64 {
    report.retransmissions_near.get() + report.retransmissions_far.get()
}

impl Line for Card {
    fn due(&self) -> Instant {
        let epoch = self.epoch();
        let next = self.raised(epoch) + 1;
        self.programming(epoch)
            .map_or(Instant::MAX, |programming| programming.interrupt_at(next))
    }

    fn raise(&self) {
        Self::raise(self, self.epoch());
    }
}

/// One modem of the driver's.
struct ModemUnit {
    core: DriverCore<NearModem>,
    report: Arc<Report>,
    piece: Service,
}

impl Served for ModemUnit {
    fn is_due(&self) -> bool {
        self.core.is_due()
    }

    fn raised_at(&self) -> Instant {
        self.core.raised_at()
    }

    fn pending(&self, now: Instant) -> u64 {
        self.core.pending(now)
    }

    fn begin(&mut self, now: Instant) -> Service {
        self.piece = self.core.begin(now);
        self.piece
    }

    fn proceed(&mut self, now: Instant) -> Option<Service> {
        self.core.deliver(now).then_some(self.piece)
    }

    fn finish(&mut self, now: Instant) {
        self.core.finish(now);
    }

    fn damage(&self) -> u64 {
        self.core.damage()
    }

    fn frame_errors(&self) -> u64 {
        frames_sent_again(&self.report)
    }

    fn is_over(&self) -> bool {
        self.core.is_over()
    }
}

/// A call before it is handed to a host, for a driver that has several.
struct Prepared {
    card: Arc<Card>,
    unit: ModemUnit,
    far: FarEnd,
    config: CallConfig,
    now: Instant,
}

impl Prepared {
    fn new(config: CallConfig) -> Self {
        let card = Arc::new(Card::new(Instant::ZERO));
        let report = Arc::new(Report::default());
        let near = NearModem::new(config.timing.clone(), config.link, config.further_receivers);
        let core = DriverCore::new(
            Arc::clone(&card),
            Arc::clone(&report),
            near,
            config.hypothesis,
            config.costs,
        );
        let far = FarEnd::new(
            Arc::clone(&card),
            Arc::clone(&report),
            config.timing.clone(),
            &config.line,
            config.link,
            config.far,
        );
        let unit = ModemUnit {
            core,
            report,
            piece: Service::ZERO,
        };
        Self {
            card,
            unit,
            far,
            config,
            now: Instant::ZERO,
        }
    }

    /// Serves every interrupt the moment it is raised, until the transfer can begin. Returns whether it can.
    fn run_ahead(&mut self, limit: Span) -> bool {
        while !self.unit.core.processing().is_connected() {
            if self.now.since_epoch() > limit || self.unit.is_over() {
                return false;
            }
            self.now = self.unit.raised_at();
            self.far.advance(self.now);
            Line::raise(&*self.card);
            self.unit.begin(self.now);
            while self.unit.proceed(self.now).is_some() {}
            self.unit.finish(self.now);
        }
        true
    }
}

/// Several calls whose modems share a driver, not handed to a host yet.
pub struct SharedModems(Vec<Prepared>);

impl SharedModems {
    /// These calls, each at its first moment: on hook.
    #[must_use]
    pub fn new(calls: Vec<CallConfig>) -> Self {
        Self(calls.into_iter().map(Prepared::new).collect())
    }

    /// Runs all calls without a host, every interrupt served the moment it is raised, until their transfers can begin or `limit` of a
    /// call's time is over. Returns whether all can.
    pub fn run_ahead(&mut self, limit: Span) -> bool {
        self.0.iter_mut().all(|call| call.run_ahead(limit))
    }

    /// Puts the modems and their driver into a program. Returns where to find the driver's evidence, and what becomes of each call.
    pub fn install(
        self,
        program: &mut Program,
        processor: ProcessorId,
        placement: DriverPlacement,
    ) -> (Installed, Vec<Arc<Report>>) {
        let mut parts = DriverParts::new("modems", LEVEL, Overheads::STUDY);
        let mut reports = Vec::new();
        for call in self.0 {
            let ahead = call.now.since_epoch();
            let clock = Arc::new(CallClock::new(ahead, call.config.clock));
            let far = FarEndActivity::new(call.far, Arc::clone(&clock));
            program.add("far end", processor, Placement::External, far);
            reports.push(Arc::clone(&call.unit.report));
            parts.add(call.card, call.unit, clock);
        }
        (parts.install(program, processor, placement), reports)
    }
}
