//! A whole call: card, driver and far end, put together for a host, or run ahead without one.

use std::sync::Arc;

use laxity_model::{Instant, InterruptLevel, Placement, ProcessorId, Program, Span};

use super::card::Setting;
use super::cost::Costs;
use super::far::FarEnd;
use super::far_profile::FarProfile;
use super::near::NearModem;
use super::phase::{Phase, Timing};
use super::report::Report;
use super::unit::ModemUnit;
use crate::card::{
    self, Asking, Card, CardClock, DeviceClock, DriverParts, DriverPlacement, Served, Unit,
};
use crate::link::endpoint;
use crate::pump::LineConfig;

/// The level of the card's interrupt: above the network card and the CD-ROM's controller, below all others (§5.1).
const LEVEL: InterruptLevel = InterruptLevel(5);

/// What kind of call it is.
#[derive(Clone, Debug)]
pub struct CallConfig {
    /// How long its phases last.
    pub timing: Timing,
    /// The telephone line.
    pub line: LineConfig,
    /// The transfer.
    pub link: endpoint::Config,
    /// Receivers besides the first, as load.
    pub further_receivers: usize,
    /// What is charged in the twin.
    pub costs: Costs,
    /// Who answers.
    pub far: FarProfile,
    /// How its clock stands to the host's.
    pub clock: CardClock,
    /// The run goes on at least so long after it began, even if the call is over before.
    pub linger: Span,
}

impl CallConfig {
    /// A call to the plain far end over the usual line, which carries a file of `octets` octets; `seed` makes line and file.
    #[must_use]
    pub fn new(timing: Timing, seed: u64, octets: u64) -> Self {
        let line = LineConfig::default();
        let link = endpoint::Config::default();
        Self {
            timing,
            line: LineConfig { seed, ..line },
            link: endpoint::Config {
                file_octets: octets,
                seed,
                ..link
            },
            further_receivers: 0,
            costs: Costs::STUDY,
            far: FarProfile::PLAIN,
            clock: CardClock::default(),
            linger: Span::ZERO,
        }
    }
}

/// A call that is installed in a program: where to find its evidence.
pub type Installed = card::Installed<Arc<Report>>;

/// A call that has not been handed to a host yet.
pub struct Call {
    unit: ModemUnit,
    far: FarEnd,
    card: Arc<Card>,
    report: Arc<Report>,
    config: CallConfig,
    asking: Asking,
    now: Instant,
}

impl Call {
    /// A call at its first moment: on hook.
    #[must_use]
    pub fn new(config: CallConfig) -> Self {
        let card = Arc::new(Card::duplex(Setting::ON_HOOK));
        let report = Arc::new(Report::default());
        let near = NearModem::new(
            config.timing,
            config.far.standard,
            config.link,
            config.further_receivers,
        );
        let unit = ModemUnit::new(Arc::clone(&card), Arc::clone(&report), near, config.costs);
        let far = FarEnd::new(
            Arc::clone(&card),
            Arc::clone(&report),
            config.timing,
            &config.line,
            config.link,
            config.far,
        );
        Self {
            unit,
            far,
            card,
            report,
            config,
            asking: Asking::default(),
            now: Instant::ZERO,
        }
    }

    /// The same call, whose driver asks for this while it runs: only one that holds a reservation is given any of it.
    #[must_use]
    pub fn asking(self, asking: Asking) -> Self {
        Self { asking, ..self }
    }

    /// Runs the call without a host, every interrupt served the moment it is raised, until the transfer can begin or `limit` of the
    /// call's time is over. Returns whether it can.
    pub fn run_ahead(&mut self, limit: Span) -> bool {
        while !self.unit.near().is_connected() {
            if self.now.since_epoch() > limit || self.unit.is_over() {
                return false;
            }
            self.serve_next();
        }
        true
    }

    /// Serves the next interrupt the moment it is raised.
    pub fn serve_next(&mut self) {
        self.now = self.unit.raised_at();
        self.far.advance(self.now);
        self.card.raise();
        self.unit.begin(self.now);
        while self.unit.proceed(self.now) {}
        self.unit.finish(self.now);
    }

    /// Where the call is.
    pub fn phase(&self) -> Phase {
        self.unit.phase()
    }

    /// The call's time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The account kept of it.
    pub fn report(&self) -> &Arc<Report> {
        &self.report
    }

    /// Puts the call into a program, its driver on `processor`.
    pub fn install(
        self,
        program: &mut Program,
        processor: ProcessorId,
        placement: DriverPlacement,
    ) -> Installed {
        let report = Arc::clone(&self.report);
        let mut parts = DriverParts {
            name: "modem",
            level: LEVEL,
            asking: self.asking,
            ends_run: Some(self.now + self.config.linger),
            cards: Vec::new(),
        };
        self.connect(program, processor, &mut parts);
        parts.install(program, processor, placement, report)
    }

    /// Adds the far end to a program, and the card to what a driver serves.
    fn connect(mut self, program: &mut Program, processor: ProcessorId, parts: &mut DriverParts) {
        let clock = DeviceClock::new(self.now.since_epoch(), self.config.clock);
        let clock = Arc::new(clock);
        let far = Arc::clone(&clock).activity(move |now| self.far.advance(now));
        program.add("far end", processor, Placement::External, far);
        let served = Box::new(self.unit);
        parts.cards.push((self.card, Unit { served, clock }));
    }
}

/// Several calls whose modems share a driver, not handed to a host yet: one handler, deferred call or thread serves all their cards, the
/// one that asked first first.
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

    /// Puts the modems and their driver into a program. The end of the calls does not end the run.
    pub fn install(
        self,
        program: &mut Program,
        processor: ProcessorId,
        placement: DriverPlacement,
    ) -> card::Installed<Vec<Arc<Report>>> {
        let reports = self.0.iter().map(|call| Arc::clone(&call.report));
        let reports = reports.collect();
        let mut parts = DriverParts {
            name: "modems",
            level: LEVEL,
            asking: Asking::default(),
            ends_run: None,
            cards: Vec::new(),
        };
        for call in self.0 {
            call.connect(program, processor, &mut parts);
        }
        parts.install(program, processor, placement, reports)
    }
}
