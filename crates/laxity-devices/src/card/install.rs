//! A driver with its cards, put into a program.

use std::sync::Arc;

use laxity_model::{
    Activity, ActivityId, Instant, InterruptLevel, Placement, Priority, ProcessorId, Program,
    ReservationRequest, Service,
};

use super::driver::{Asking, Driver, Left, Marks, Trigger, Unit};
use super::interrupt::{Lines, deferred_signal};
use super::ring::Card;

/// Where the driver works (Jones, Saroiu §5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DriverPlacement {
    /// INT: in the interrupt handler.
    Interrupt,
    /// DPC: in a deferred procedure call.
    Deferred,
    /// THR p: in a thread.
    Thread(Priority),
    /// RES X/Y: in a thread that holds a reservation once its device's first phase is over, and has this priority before and beside it.
    Reserved(ReservationRequest, Priority),
}

impl DriverPlacement {
    /// What it reserves.
    pub const fn request(&self) -> Option<ReservationRequest> {
        match self {
            Self::Reserved(request, _) => Some(*request),
            Self::Interrupt | Self::Deferred | Self::Thread(_) => None,
        }
    }

    /// The priority of its thread while it holds no reservation; `None` where it is no thread.
    pub const fn priority(&self) -> Option<Priority> {
        match self {
            Self::Thread(priority) | Self::Reserved(_, priority) => Some(*priority),
            Self::Interrupt | Self::Deferred => None,
        }
    }
}

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

/// A device in a program: where to find its evidence.
#[derive(Clone, Debug)]
pub struct Installed<R> {
    /// The activity that does the signal processing.
    pub driver: ActivityId,
    /// The activity that is the interrupt handler; the driver itself under INT.
    pub interrupt: ActivityId,
    /// The activity that queues the driver's thread, where it has one.
    pub deferred: Option<ActivityId>,
    /// The driver's events.
    pub marks: Marks,
    /// What was not served when the run was over.
    pub left: Left,
    /// What became of it.
    pub report: R,
}

impl<R> Installed<R> {
    /// The same with another report of it.
    pub fn reporting<T>(self, report: impl FnOnce(R) -> T) -> Installed<T> {
        Installed {
            driver: self.driver,
            interrupt: self.interrupt,
            deferred: self.deferred,
            marks: self.marks,
            left: self.left,
            report: report(self.report),
        }
    }
}

/// A driver that has not been put into a program yet.
pub(crate) struct DriverParts {
    pub(crate) name: &'static str,
    /// The level of its cards' interrupt.
    pub(crate) level: InterruptLevel,
    /// Done only by a driver that holds a reservation.
    pub(crate) asking: Asking,
    /// The end of all its work ends the run, but no earlier than this in its first device's time.
    pub(crate) ends_run: Option<Instant>,
    pub(crate) cards: Vec<(Arc<Card>, Unit)>,
}

impl DriverParts {
    /// Puts the driver into a program: with the deferred call and the thread behind the handler, where it does not work before them.
    pub(crate) fn install<R>(
        self,
        program: &mut Program,
        processor: ProcessorId,
        placement: DriverPlacement,
        report: R,
    ) -> Installed<R> {
        let marks = Marks::declare(program);
        let (mut lines, mut units) = (Lines(Vec::new()), Vec::new());
        for (card, unit) in self.cards {
            lines.0.push((card, Arc::clone(&unit.clock)));
            units.push(unit);
        }
        let left = Left::default();
        let leaves = left.clone();
        let driver = |trigger| Driver::new(units, marks, self.ends_run, trigger, leaves);
        let installed = |interrupt, deferred, driver| Installed {
            driver,
            interrupt,
            deferred,
            marks,
            left,
            report,
        };
        let name = |of: &str| format!("{} {of}", self.name);
        let (handler, call) = (name("interrupt"), name("deferred call"));
        let int = Placement::Interrupt(self.level);
        if placement == DriverPlacement::Interrupt {
            let body = driver(Trigger::Interrupt(lines));
            let id = program.add(&handler, processor, int, body);
            return installed(id, None, id);
        }
        let queued = program.semaphore(0);
        let body = lines.handler(queued, marks.no_interrupt);
        let interrupt = program.add(&handler, processor, int, body);
        let Some(priority) = placement.priority() else {
            let body = driver(Trigger::Semaphore(queued));
            let id = program.add(&call, processor, Placement::Deferred, body);
            return installed(interrupt, None, id);
        };
        let woken = program.semaphore(0);
        let signal = deferred_signal(queued, woken);
        let deferred = program.add(&call, processor, Placement::Deferred, signal);
        let mut body = driver(Trigger::Semaphore(woken));
        let reservation = placement.request();
        if let Some(request) = reservation {
            body.hold(!request.begins_at_start, self.asking);
        }
        let driver = program.push(Activity {
            name: name("thread"),
            processor,
            placement: Placement::Thread(priority),
            reservation,
            body: Box::new(body),
        });
        installed(interrupt, Some(deferred), driver)
    }
}
