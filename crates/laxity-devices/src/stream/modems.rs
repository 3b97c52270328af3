//! Several modems on one driver: one handler, deferred call or thread serves all their cards, the one that asked first first.

use std::sync::Arc;

use laxity_model::{Instant, InterruptLevel, Placement, ProcessorId, Program, Service, Span};

use super::install::{DriverParts, Installed, Overheads};
use super::served::{Line, Served};
use crate::modem::card::Card;
use crate::modem::driver::DriverCore;
use crate::modem::far::FarEndActivity;
use crate::modem::near::NearModem;
use crate::modem::{Call, CallConfig, DriverPlacement, Report};

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

/// Several calls whose modems share a driver, not handed to a host yet.
pub struct SharedModems(Vec<Call>);

impl SharedModems {
    /// These calls, each at its first moment: on hook.
    #[must_use]
    pub fn new(calls: Vec<CallConfig>) -> Self {
        Self(calls.into_iter().map(Call::new).collect())
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
            let call = call.into_parts();
            let clock = Arc::new(call.clock);
            let far = FarEndActivity::new(call.far, Arc::clone(&clock));
            program.add("far end", processor, Placement::External, far);
            reports.push(Arc::clone(&call.report));
            let unit = ModemUnit {
                core: call.core,
                report: call.report,
                piece: Service::ZERO,
            };
            parts.add(call.card, unit, clock);
        }
        (parts.install(program, processor, placement), reports)
    }
}
