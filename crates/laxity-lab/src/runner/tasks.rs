//! The tasks that run beside a device: spinners, the periodic co-thread, and the rogue.

use laxity_model::{Body, Context, Instant, Mark, Service, Span, Step};

/// A thread that always wants the processor: the study's competitor.
pub struct Spinner;

impl Body for Spinner {
    fn step(&mut self, _: &mut dyn Context) -> Step {
        Step::Burn(Service::from_millis(10))
    }
}

/// A callback every so much time: the study's measure of what a device does to everybody else (Jones, Saroiu §6.3).
///
/// Releases lie on a grid from the first step on. A release that is missed altogether is skipped, not made up for, so that one
/// long delay shows as one long gap.
pub struct Periodic {
    period: Span,
    work: Service,
    mark: Mark,
    origin: Option<Instant>,
    due: Instant,
    state: PeriodicState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PeriodicState {
    Waiting,
    Released,
    Worked,
}

impl Periodic {
    /// A callback every `period` (more than zero) that takes `work` of service and leaves `mark` with two arguments: when it was
    /// due and when it ran, in nanoseconds.
    #[must_use]
    pub fn new(period: Span, work: Service, mark: Mark) -> Self {
        let state = PeriodicState::Waiting;
        Self {
            period,
            work,
            mark,
            origin: None,
            due: Instant::ZERO,
            state,
        }
    }

    fn wait(&mut self, now: Instant) -> Step {
        let origin = *self.origin.get_or_insert(now);
        let periods_past = (now - origin) / self.period;
        self.due = origin + self.period * (periods_past + 1);
        self.state = PeriodicState::Released;
        Step::SleepUntil(self.due)
    }
}

impl Body for Periodic {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        let now = context.now();
        match self.state {
            PeriodicState::Released => {
                context.mark(self.mark, [self.due.as_nanos(), now.as_nanos()]);
                if self.work.is_zero() {
                    return self.wait(now);
                }
                self.state = PeriodicState::Worked;
                Step::Burn(self.work)
            }
            PeriodicState::Waiting | PeriodicState::Worked => self.wait(now),
        }
    }
}

/// A thread that takes the processor for long bursts, as a component does that breaks the rules (Jones, Saroiu §8.1).
pub struct Rogue {
    burst: Service,
    every: Span,
    after: Span,
    origin: Option<Instant>,
    bursts: u64,
    bursting: bool,
}

impl Rogue {
    /// A burst of `burst` every `every`, the first one `after` so long.
    #[must_use]
    pub fn new(burst: Service, every: Span, after: Span) -> Self {
        Self {
            burst,
            every,
            after,
            origin: None,
            bursts: 0,
            bursting: true,
        }
    }
}

impl Body for Rogue {
    fn step(&mut self, context: &mut dyn Context) -> Step {
        let origin = *self.origin.get_or_insert_with(|| context.now());
        self.bursting = !self.bursting;
        if self.bursting {
            return Step::Burn(self.burst);
        }
        let due = origin + self.after + self.every * self.bursts;
        self.bursts += 1;
        Step::SleepUntil(due)
    }
}
