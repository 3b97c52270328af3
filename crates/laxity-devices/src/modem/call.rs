//! A whole call: card, driver and far end, put together for a host, or run ahead without one.

use std::sync::Arc;

use laxity_model::{
    Activity, ActivityId, Instant, InterruptLevel, Placement, Priority, ProcessorId, Program,
    ReservationRequest, Span,
};

use super::card::Card;
use super::clock::{CallClock, CardClock};
use super::cost::Costs;
use super::driver::{Asking, Driver, DriverCore, Marks, Trigger};
use super::far::{FarEnd, FarEndActivity};
use super::far_profile::FarProfile;
use super::hypothesis::Hypothesis;
use super::interrupt::{DeferredSignal, InterruptHandler, InterruptLine};
use super::near::NearModem;
use super::phase::{Phase, Timing};
use super::report::Report;
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
    /// How card and driver behave.
    pub hypothesis: Hypothesis,
    /// Who answers.
    pub far: FarProfile,
    /// How its clock stands to the host's.
    pub clock: CardClock,
    /// The run goes on at least so long after it began, even if the call is over before.
    pub linger: Span,
}

/// Where the driver works (Jones, Saroiu §5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DriverPlacement {
    /// INT: in the interrupt handler.
    Interrupt,
    /// DPC: in a deferred procedure call.
    Deferred,
    /// THR p: in a thread.
    Thread(Priority),
    /// RES X/Y: in a thread that holds a reservation once the on-hook phase is over, and has this priority before and beside it.
    Reserved(ReservationRequest, Priority),
}

/// A call that is installed in a program: where to find its evidence.
#[derive(Clone, Debug)]
pub struct Installed {
    /// The activity that does the signal processing.
    pub driver: ActivityId,
    /// The activity that is the interrupt handler; the driver itself under INT.
    pub interrupt: ActivityId,
    /// The activity that queues the driver's thread, where it has one.
    pub deferred: Option<ActivityId>,
    /// The driver's events.
    pub marks: Marks,
    /// What became of it.
    pub report: Arc<Report>,
}

/// A call that has not been handed to a host yet.
pub struct Call {
    core: DriverCore<NearModem>,
    far: FarEnd,
    card: Arc<Card>,
    report: Arc<Report>,
    config: CallConfig,
    asking: Asking,
    now: Instant,
}

/// What a call is made of, and its time as far as it has been run ahead.
pub(crate) struct CallParts {
    pub(crate) core: DriverCore<NearModem>,
    pub(crate) far: FarEnd,
    pub(crate) card: Arc<Card>,
    pub(crate) report: Arc<Report>,
    pub(crate) clock: CallClock,
}

impl Call {
    /// A call at its first moment: on hook.
    #[must_use]
    pub fn new(config: CallConfig) -> Self {
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
        Self {
            core,
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
        while !self.core.processing().is_connected() {
            if self.now.since_epoch() > limit || self.core.is_over() {
                return false;
            }
            self.serve_next();
        }
        true
    }

    /// Serves the next interrupt the moment it is raised.
    pub fn serve_next(&mut self) {
        self.now = self.core.raised_at();
        self.far.advance(self.now);
        self.card.raise(self.card.epoch());
        self.core.begin(self.now);
        while self.core.deliver(self.now) {}
        self.core.finish(self.now);
    }

    /// The signal processing.
    pub fn near(&mut self) -> &mut NearModem {
        self.core.processing()
    }

    /// Where the call is.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.core.phase()
    }

    /// The call's time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The account kept of it.
    #[must_use]
    pub fn report(&self) -> &Arc<Report> {
        &self.report
    }

    /// The call taken apart, for a driver that serves several.
    pub(crate) fn into_parts(self) -> CallParts {
        CallParts {
            core: self.core,
            far: self.far,
            card: self.card,
            report: self.report,
            clock: CallClock::new(self.now.since_epoch(), self.config.clock),
        }
    }

    /// Puts the call into a program, its driver on `processor`.
    pub fn install(
        self,
        program: &mut Program,
        processor: ProcessorId,
        placement: DriverPlacement,
    ) -> Installed {
        let marks = Marks {
            phase: program.mark("phase"),
            call_begin: program.mark("processing begins"),
            call_end: program.mark("processing ends"),
            account: program.mark("account"),
        };
        let clock = Arc::new(CallClock::new(self.now.since_epoch(), self.config.clock));
        let line = InterruptLine::new(Arc::clone(&self.card), Arc::clone(&clock));
        let linger = self.now + self.config.linger;
        let far = FarEndActivity::new(self.far, Arc::clone(&clock));
        program.add("far end", processor, Placement::External, far);
        let parts = Parts {
            core: self.core,
            clock,
            line,
            marks,
            linger,
            costs: self.config.costs,
            asking: self.asking,
        };
        let (interrupt, deferred, driver) = parts.install(program, processor, placement);
        Installed {
            driver,
            interrupt,
            deferred,
            marks,
            report: self.report,
        }
    }
}

struct Parts {
    core: DriverCore<NearModem>,
    clock: Arc<CallClock>,
    line: InterruptLine,
    marks: Marks,
    linger: Instant,
    costs: Costs,
    asking: Asking,
}

impl Parts {
    fn install(
        self,
        program: &mut Program,
        processor: ProcessorId,
        placement: DriverPlacement,
    ) -> (ActivityId, Option<ActivityId>, ActivityId) {
        let Self {
            core,
            clock,
            line,
            marks,
            linger,
            costs,
            asking,
        } = self;
        let is_reserved = matches!(placement, DriverPlacement::Reserved(..));
        let driver = |trigger, reserves| {
            let driver = Driver::new(core, clock, trigger, marks, reserves, linger);
            driver.asking(if is_reserved {
                asking
            } else {
                Asking::default()
            })
        };
        let int = Placement::Interrupt(LEVEL);
        if placement == DriverPlacement::Interrupt {
            let driver = driver(Trigger::Interrupt(line), false);
            let id = program.add("modem interrupt", processor, int, driver);
            return (id, None, id);
        }
        let queued = program.semaphore(0);
        let handler = InterruptHandler::new(line, queued, costs.interrupt);
        let interrupt = program.add("modem interrupt", processor, int, handler);
        let (thread, reservation) = match placement {
            DriverPlacement::Interrupt | DriverPlacement::Deferred => {
                let driver = driver(Trigger::Semaphore(queued), false);
                let id = program.add(
                    "modem deferred call",
                    processor,
                    Placement::Deferred,
                    driver,
                );
                return (interrupt, None, id);
            }
            DriverPlacement::Thread(priority) => (Placement::Thread(priority), None),
            DriverPlacement::Reserved(request, priority) => {
                (Placement::Thread(priority), Some(request))
            }
        };
        let woken = program.semaphore(0);
        let signal = DeferredSignal::new(queued, woken, costs.deferred);
        let deferred = program.add(
            "modem deferred call",
            processor,
            Placement::Deferred,
            signal,
        );
        let reserves = reservation.is_some_and(|request| !request.begins_at_start);
        let driver = program.push(Activity {
            name: "modem thread".into(),
            processor,
            placement: thread,
            reservation,
            body: Box::new(driver(Trigger::Semaphore(woken), reserves)),
        });
        (interrupt, Some(deferred), driver)
    }
}
