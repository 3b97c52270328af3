//! What runs in studies: devices that interrupt at known times, their deferred calls, and holders of reservations. The same bodies run in
//! the twin and live.

use std::sync::{Arc, OnceLock};

use laxity_model::{
    Activity, Body, Context, Enforcer, Instant, Outside, Placement, Priority, ProcessorId,
    Reservation, ReservationRequest, SemaphoreId, Service, Span, Step,
};

/// A thread of normal priority on processor 0 that runs in the slots of its reservation and at no other time.
pub fn confined(name: &str, reservation: Reservation, body: impl Body + 'static) -> Activity {
    Activity {
        name: name.into(),
        processor: ProcessorId(0),
        placement: Placement::Thread(Priority::NORMAL),
        reservation: Some(slots(reservation, Outside::Confined)),
        body: Box::new(body),
    }
}

/// A request for slots that are kept from the start of the run on.
#[must_use]
pub const fn slots(reservation: Reservation, outside: Outside) -> ReservationRequest {
    ReservationRequest {
        reservation,
        enforcer: Enforcer::Slots,
        outside,
        begins_at_start: true,
    }
}

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
