//! One upcall, as whoever made it has it.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use laxity_model::program::upcall::Timing;
use laxity_model::program::upcalls::qos::{Mapping, Release};
use laxity_model::program::upcalls::{Command, Counts};
use laxity_model::{Instant, PortId, Service, Span};

use super::Error;
use super::core::{Core, arrivals};

/// What an upcall is to be.
#[derive(Clone, Debug)]
pub struct Spec {
    /// For messages and lists.
    pub name: String,
    /// When it is called, how much it does then, and what becomes of overruns.
    pub timing: Timing,
    /// The most that a unit of its work (a PDU) takes.
    pub service: Service,
    /// From a release to when its call is due; `None` is the period.
    pub deadline: Option<Span>,
    /// What releases it.
    pub pace: Pace,
}

impl Spec {
    /// One unit of work every `period`, which takes no more than `service`.
    #[must_use]
    pub fn each(period: Span, service: Service) -> Self {
        Self {
            name: "upcall".to_owned(),
            timing: Timing::each(period),
            service,
            deadline: None,
            pace: Pace::Timer,
        }
    }

    /// What a stream was [mapped](super::qos::map) to: the same at both of its ends, where the work on a PDU costs the same.
    #[must_use]
    pub fn mapped(name: &str, mapping: &Mapping) -> Self {
        Self {
            name: name.to_owned(),
            timing: mapping.timing(),
            service: mapping.service,
            deadline: Some(mapping.deadline),
            pace: match mapping.release {
                Release::Timer => Pace::Timer,
                Release::Arrivals => Pace::Arrivals,
            },
        }
    }

    pub(super) fn deadline(&self) -> Span {
        self.deadline.unwrap_or(self.timing.period)
    }
}

/// What releases an upcall.
#[derive(Clone, Debug, Default)]
pub enum Pace {
    /// Time: every period.
    #[default]
    Timer,
    /// [`Upcall::release`], by any thread: no sooner than a period after the release before, until when arrivals wait.
    Arrivals,
    /// The same, and this descriptor: while it can be read, or has come to its end, it releases once a period. What there is to read the handler reads.
    Descriptor(Arc<OwnedFd>),
}

impl Pace {
    pub(super) fn port(&self, place: u16) -> Option<PortId> {
        (!matches!(self, Self::Timer)).then(|| arrivals(place))
    }
}

/// What has become of an upcall.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// It is not called: not yet, or until it is to run again.
    Suspended,
    /// It is called at its releases.
    Active,
    /// Suspended because it overran, as was chosen for it.
    Overran,
    /// It ended itself, or overran and was to end.
    Ended,
    /// Its handler panicked, and said this; it is not called any more.
    Panicked(String),
    /// It is closed, or its executor has ended.
    Closed,
}

/// A handler that was admitted. Dropped, it is closed. Whatever it is asked, it is done when the call returns; where a handler of the same executor asks, after that handler's quantum.
#[must_use = "the upcall is closed when this is dropped"]
pub struct Upcall {
    core: Arc<Core>,
    place: u16,
    /// What arrives for it.
    port: Option<PortId>,
    closed: AtomicBool,
}

impl fmt::Debug for Upcall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upcall")
            .field("state", &self.state())
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

impl Upcall {
    pub(super) fn new(core: Arc<Core>, place: u16, pace: Pace) -> Self {
        let port = pace.port(place);
        if let (Some(port), Pace::Descriptor(with)) = (port, pace) {
            core.inbox.feed(port, Some(with));
        }
        Self {
            core,
            place,
            port,
            closed: AtomicBool::new(false),
        }
    }

    fn ask(&self, command: Command) -> Result<(), Error> {
        self.core.ask(self.place, command, &self.closed)
    }

    /// Has it made.
    pub(super) fn make(&self) -> Result<(), Error> {
        let made = self.ask(Command::Create);
        if matches!(made, Err(Error::Busy | Error::Ended | Error::Over)) {
            // The executor was never told, or has refused: so nobody has its place. Where it has not answered it may do so yet.
            self.core.forget(self.place);
        }
        made?;
        match self.state() {
            State::Panicked(said) => Err(Error::Panicked(said)),
            _ => Ok(()),
        }
    }

    /// Calls it at its releases from now on: those that are not past. One that runs already goes on.
    ///
    /// # Errors
    ///
    /// It has ended or panicked; or its executor has, or does not answer.
    pub fn run(&self) -> Result<(), Error> {
        self.ask(Command::Run)
    }

    /// Does not call it any more until it is to run again, on the same grid. A quantum that has begun is over when this returns; the rest of its call is not done.
    ///
    /// # Errors
    ///
    /// Its executor has ended, or does not answer.
    pub fn suspend(&self) -> Result<(), Error> {
        self.ask(Command::Suspend)
    }

    /// Ends it, and drops its handler. A quantum that has begun is over when this returns. Tells what it has done.
    ///
    /// # Errors
    ///
    /// Its executor has ended, or does not answer.
    pub fn close(self) -> Result<Counts, Error> {
        self.end()
    }

    /// The same for one that several share: for all of them it is closed then.
    ///
    /// # Errors
    ///
    /// Those of [`Self::close`]; or it is closed already.
    pub fn end(&self) -> Result<Counts, Error> {
        // Before the place can be another's.
        if let Some(port) = self.port.filter(|_| !self.is_closed()) {
            self.core.inbox.feed(port, None);
        }
        self.core.close(self.place, &self.closed)
    }

    /// Something has arrived for it, which releases it once: of those that [arrivals](Pace::Arrivals) release. Takes no lock and waits for nobody.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`]: as many wait already as there is room for, and this one is dropped. [`Error::NoArrivals`]: time releases it. [`Error::Over`]: its executor has ended.
    pub fn release(&self, with: [u64; 2]) -> Result<(), Error> {
        if self.core.is_over() {
            return Err(Error::Over);
        }
        if self.is_closed() {
            return Err(Error::Ended);
        }
        let port = self.port.ok_or(Error::NoArrivals)?;
        match self.core.inbox.put(port, with) {
            true => Ok(()),
            false => Err(Error::Busy),
        }
    }

    /// What has become of it. No system call.
    pub fn state(&self) -> State {
        match self.is_closed() {
            true => State::Closed,
            false => self.core.state(self.place),
        }
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// What it has done. No system call, and no lock.
    pub fn counts(&self) -> Counts {
        self.core.boards[usize::from(self.place)].counts()
    }
}

impl Drop for Upcall {
    fn drop(&mut self) {
        // Closed before, or where the executor does not answer and its place stays taken.
        let _ = self.end();
    }
}

/// Waits until one of these is not active.
pub(super) fn sleep(
    core: &Core,
    upcalls: &[&Upcall],
    until: Option<Instant>,
) -> Result<Vec<usize>, Error> {
    if core.is_inside() {
        return Err(Error::Inside);
    }
    let idle = || {
        let all = upcalls.iter().enumerate();
        let idle = all.filter(|(_, upcall)| upcall.state() != State::Active);
        idle.map(|(index, _)| index).collect::<Vec<usize>>()
    };
    let look = || {
        let idle = idle();
        (!idle.is_empty() || upcalls.is_empty()).then_some(idle)
    };
    Ok(core.bell.wait_for(until, look).unwrap_or_default())
}
