//! What runs in a case: a device with its driver, others' devices, and threads. The same bodies run in the twin and live.

use std::sync::{Arc, OnceLock};

use laxity_model::{Body, Context, Instant, Mark, SemaphoreId, Service, Span, Step};

/// Instants in bursts: `in_burst` of them `apart`, and so again every `every`, from `first` after the start on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// The first, after the run's start.
    pub first: Span,
    /// From burst to burst; more than zero.
    pub every: Span,
    /// How many in a burst; at least 1.
    pub in_burst: u64,
    /// From one to the next in a burst.
    pub apart: Span,
}

impl Times {
    /// One every so often.
    #[must_use]
    pub const fn steady(first: Span, every: Span) -> Self {
        Self {
            first,
            every,
            in_burst: 1,
            apart: Span::ZERO,
        }
    }

    /// The one of this number, counted from 0, of a run that began at `origin`.
    #[must_use]
    pub fn at(&self, origin: Instant, number: u64) -> Instant {
        let (burst, place) = (number / self.in_burst, number % self.in_burst);
        origin + self.first + self.every * burst + self.apart * place
    }
}

/// When a device began, for its driver to know.
pub type Began = Arc<OnceLock<Instant>>;

/// A device whose interrupt handler works, and then queues its deferred call if it has one.
pub struct Device {
    times: Times,
    work: Service,
    queues: Option<SemaphoreId>,
    began: Began,
    raised: u64,
    worked: bool,
}

impl Device {
    /// A device that interrupts at these times.
    #[must_use]
    pub fn new(times: Times, work: Service, queues: Option<SemaphoreId>) -> Self {
        Self {
            times,
            work,
            queues,
            began: Began::default(),
            raised: 0,
            worked: false,
        }
    }

    /// Where it leaves when it began: its first step.
    #[must_use]
    pub fn began(&self) -> Began {
        Arc::clone(&self.began)
    }
}

impl Body for Device {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        let Some(&origin) = self.began.get() else {
            let origin = *self.began.get_or_init(|| context.now());
            return Step::SleepUntil(self.times.at(origin, 0));
        };
        self.worked = !self.worked;
        if self.worked {
            return Step::Burn(self.work);
        }
        if let Some(semaphore) = self.queues {
            context.signal(semaphore);
        }
        self.raised += 1;
        Step::SleepUntil(self.times.at(origin, self.raised))
    }
}

/// Works once for each signal, and hands it on if somebody is next: a deferred call.
pub struct OnSignal {
    signal: SemaphoreId,
    work: Service,
    next: Option<SemaphoreId>,
    state: OnSignalState,
}

#[derive(Clone, Copy)]
enum OnSignalState {
    New,
    Signalled,
    Worked,
}

impl OnSignal {
    /// Waits for `signal`.
    #[must_use]
    pub const fn new(signal: SemaphoreId, work: Service, next: Option<SemaphoreId>) -> Self {
        Self {
            signal,
            work,
            next,
            state: OnSignalState::New,
        }
    }
}

impl Body for OnSignal {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        match self.state {
            OnSignalState::Signalled => {
                self.state = OnSignalState::Worked;
                return Step::Burn(self.work);
            }
            OnSignalState::Worked => {
                if let Some(next) = self.next {
                    context.signal(next);
                }
            }
            OnSignalState::New => {}
        }
        self.state = OnSignalState::Signalled;
        Step::Wait(self.signal)
    }
}

/// A thread that works at certain times.
pub struct Worker {
    times: Times,
    work: Service,
    origin: Option<Instant>,
    number: u64,
    awake: bool,
}

impl Worker {
    /// A thread that works so long at these times.
    #[must_use]
    pub const fn new(times: Times, work: Service) -> Self {
        Self {
            times,
            work,
            origin: None,
            number: 0,
            awake: true,
        }
    }
}

impl Body for Worker {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        let origin = *self.origin.get_or_insert_with(|| context.now());
        self.awake = !self.awake;
        if self.awake {
            return Step::Burn(self.work);
        }
        let at = self.times.at(origin, self.number);
        self.number += 1;
        Step::SleepUntil(at)
    }
}

/// The marks of the driver's thread.
#[derive(Clone, Copy, Debug)]
pub struct DriverMarks {
    /// A job begins. Arguments: its number; when its interrupt was raised.
    pub begin: Mark,
    /// It is complete.
    pub end: Mark,
    /// After each job: processor time received so far, in nanoseconds.
    pub service: Mark,
}

/// The thread that does a device's long work: a job for each signal.
pub struct Driver {
    signal: SemaphoreId,
    marks: DriverMarks,
    times: Times,
    work: Service,
    /// Every so many jobs one takes this instead.
    overrun: Option<(u64, Service)>,
    began: Began,
    number: u64,
    state: OnSignalState,
}

impl Driver {
    /// For a device that interrupts at these times after it began.
    #[must_use]
    pub fn new(
        signal: SemaphoreId,
        marks: DriverMarks,
        (times, began): (Times, Began),
        work: Service,
        overrun: Option<(u64, Service)>,
    ) -> Self {
        Self {
            signal,
            marks,
            times,
            work,
            overrun,
            began,
            number: 0,
            state: OnSignalState::New,
        }
    }

    fn work(&self) -> Service {
        match self.overrun {
            Some((every, work)) if self.number % every == every / 2 => work,
            _ => self.work,
        }
    }
}

impl Body for Driver {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        let origin = *self.began.get_or_init(|| context.now());
        match self.state {
            OnSignalState::Signalled => {
                let raised = self.times.at(origin, self.number);
                context.mark(self.marks.begin, [self.number, raised.as_nanos()]);
                self.state = OnSignalState::Worked;
                return Step::Burn(self.work());
            }
            OnSignalState::Worked => {
                context.mark(self.marks.end, [self.number, 0]);
                let received = context.service().as_nanos();
                context.mark(self.marks.service, [received, 0]);
                self.number += 1;
            }
            OnSignalState::New => {}
        }
        self.state = OnSignalState::Signalled;
        Step::Wait(self.signal)
    }
}
