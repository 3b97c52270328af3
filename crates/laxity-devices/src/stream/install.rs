//! A driver with its cards, put into a program.

use std::sync::Arc;

use laxity_model::{
    Activity, ActivityId, InterruptLevel, Placement, ProcessorId, Program, ReservationRequest,
    SemaphoreId, Service, Span,
};

use super::block::Repeated;
use super::card::Card;
use super::driver::{Driver, Handler, Lines, Marks, Trigger, Unit};
use super::listen::{Listener, ListenerActivity};
use super::report::Report;
use super::served::{Line, Served, StreamUnit};
use crate::modem::clock::CallClock;
use crate::modem::interrupt::DeferredSignal;
use crate::modem::{CardClock, DriverPlacement};

/// What a driver costs in the twin, apart from its signal processing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overheads {
    /// The interrupt handler that only queues a deferred call.
    pub interrupt: Service,
    /// The deferred call that only signals the driver's thread.
    pub deferred: Service,
}

impl Overheads {
    /// As the modem's: 5.4 µs (quoted for its handler, Jones, Saroiu §6.2.4; assumed for the deferred call and for other devices).
    pub const STUDY: Self = Self {
        interrupt: Service::from_nanos(5_400),
        deferred: Service::from_nanos(5_400),
    };
}

/// A driver in a program: where to find its evidence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Installed {
    /// The activity that does the signal processing.
    pub driver: ActivityId,
    /// The activity that is the interrupt handler; the driver itself under INT.
    pub interrupt: ActivityId,
    /// The activity that queues the driver's thread, where it has one.
    pub deferred: Option<ActivityId>,
    /// The driver's events.
    pub marks: Marks,
}

/// A driver for several cards that has not been put into a program yet.
pub struct DriverParts {
    name: String,
    level: InterruptLevel,
    overheads: Overheads,
    units: Vec<Unit>,
    lines: Lines,
}

impl DriverParts {
    /// A driver without cards. `level` is that of its interrupt.
    #[must_use]
    pub fn new(name: &str, level: InterruptLevel, overheads: Overheads) -> Self {
        Self {
            name: name.into(),
            level,
            overheads,
            units: Vec::new(),
            lines: Lines(Vec::new()),
        }
    }

    /// One card more.
    pub fn add(
        &mut self,
        line: Arc<dyn Line>,
        served: impl Served + 'static,
        clock: Arc<CallClock>,
    ) {
        self.lines.0.push((line, Arc::clone(&clock)));
        let served = Box::new(served);
        self.units.push(Unit { served, clock });
    }

    /// Puts the driver into a program.
    pub fn install(
        self,
        program: &mut Program,
        processor: ProcessorId,
        placement: DriverPlacement,
    ) -> Installed {
        let marks = Marks::declare(program);
        let interrupt_name = format!("{} interrupt", self.name);
        let int = Placement::Interrupt(self.level);
        if placement == DriverPlacement::Interrupt {
            let driver = driver(self.units, Trigger::Interrupt(self.lines), marks, false);
            let id = program.add(&interrupt_name, processor, int, driver);
            return Installed {
                driver: id,
                interrupt: id,
                deferred: None,
                marks,
            };
        }
        let queued = program.semaphore(0);
        let handler = Handler {
            lines: self.lines,
            deferred: queued,
            cost: self.overheads.interrupt,
        };
        let interrupt = program.add(&interrupt_name, processor, int, handler);
        let work = Work {
            name: self.name,
            units: self.units,
            queued,
            cost: self.overheads.deferred,
            marks,
        };
        let (deferred, driver) = work.install(program, processor, placement);
        Installed {
            driver,
            interrupt,
            deferred,
            marks,
        }
    }
}

/// What is behind the interrupt handler.
struct Work {
    name: String,
    units: Vec<Unit>,
    queued: SemaphoreId,
    cost: Service,
    marks: Marks,
}

impl Work {
    fn install(
        self,
        program: &mut Program,
        processor: ProcessorId,
        placement: DriverPlacement,
    ) -> (Option<ActivityId>, ActivityId) {
        let call = format!("{} deferred call", self.name);
        let (priority, reservation) = match placement {
            DriverPlacement::Interrupt | DriverPlacement::Deferred => {
                let trigger = Trigger::Semaphore(self.queued);
                let driver = driver(self.units, trigger, self.marks, false);
                let id = program.add(&call, processor, Placement::Deferred, driver);
                return (None, id);
            }
            DriverPlacement::Thread(priority) => (priority, None),
            DriverPlacement::Reserved(request, priority) => (priority, Some(request)),
        };
        let woken = program.semaphore(0);
        let signal = DeferredSignal::new(self.queued, woken, self.cost);
        let deferred = program.add(&call, processor, Placement::Deferred, signal);
        let asks = |request: ReservationRequest| !request.begins_at_start;
        let reserves = reservation.is_some_and(asks);
        let trigger = Trigger::Semaphore(woken);
        let driver = program.push(Activity {
            name: format!("{} thread", self.name),
            processor,
            placement: Placement::Thread(priority),
            reservation,
            body: Box::new(driver(self.units, trigger, self.marks, reserves)),
        });
        (Some(deferred), driver)
    }
}

fn driver(units: Vec<Unit>, trigger: Trigger, marks: Marks, reserves: bool) -> Driver {
    Driver {
        units,
        trigger,
        marks,
        reserves,
        serving: None,
    }
}

/// A stream that has not been put into a program yet: a card, its driver, and who listens to it.
pub struct Stream<L> {
    /// Its name in tables and traces.
    pub name: String,
    /// The level of its interrupt.
    pub level: InterruptLevel,
    /// The card.
    pub card: Arc<Card>,
    /// The signal processing.
    pub work: Repeated,
    /// What a call costs in the twin.
    pub cost: Service,
    /// What the driver costs besides.
    pub overheads: Overheads,
    /// How the card's clock stands to the host's.
    pub clock: CardClock,
    /// Who hears what the card sends.
    pub listener: Option<L>,
}

impl<L: Listener + 'static> Stream<L> {
    /// Puts the stream into a program. Returns where to find its evidence, and its account.
    pub fn install(
        self,
        program: &mut Program,
        processor: ProcessorId,
        placement: DriverPlacement,
    ) -> (Installed, Arc<Report>) {
        let report = Arc::new(Report::default());
        let clock = Arc::new(CallClock::new(Span::ZERO, self.clock));
        if let Some(listener) = self.listener {
            let (card, clock) = (Arc::clone(&self.card), Arc::clone(&clock));
            let body = ListenerActivity::new(card, clock, Arc::clone(&report), listener);
            let name = format!("{} listener", self.name);
            program.add(&name, processor, Placement::External, body);
        }
        let unit = StreamUnit::new(
            Arc::clone(&self.card),
            Arc::clone(&report),
            self.work,
            self.cost,
        );
        let mut parts = DriverParts::new(&self.name, self.level, self.overheads);
        parts.add(self.card, unit, clock);
        (parts.install(program, processor, placement), report)
    }
}
