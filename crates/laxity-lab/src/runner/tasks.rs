//! The tasks that run beside a device: spinners, the periodic co-thread, and the rogue.

use laxity_model::{Body, Context, Instant, Service, Span, Step};

/// A thread that always wants the processor: the study's competitor.
pub struct Spinner;

impl Body for Spinner {
    fn step(&mut self, _: &mut dyn Context) -> Step {
        Step::Burn(Service::from_millis(10))
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
