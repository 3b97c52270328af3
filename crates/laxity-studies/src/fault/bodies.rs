//! What runs in a case besides devices: threads, and the driver of the victim.

use laxity_lab::bench::bodies::{Began, Times};
use laxity_model::{Body, Context, Instant, Mark, SemaphoreId, Service, Step};

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

#[derive(Clone, Copy)]
enum State {
    New,
    Signalled,
    Worked,
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
    state: State,
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
            state: State::New,
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
            State::Signalled => {
                let raised = self.times.at(origin, self.number);
                context.mark(self.marks.begin, [self.number, raised.as_nanos()]);
                self.state = State::Worked;
                return Step::Burn(self.work());
            }
            State::Worked => {
                context.mark(self.marks.end, [self.number, 0]);
                let received = context.service().as_nanos();
                context.mark(self.marks.service, [received, 0]);
                self.number += 1;
            }
            State::New => {}
        }
        self.state = State::Signalled;
        Step::Wait(self.signal)
    }
}
