//! The tasks that run beside a device: spinners, devices, and the rogue.

use std::sync::{Arc, OnceLock};

use laxity_model::{Body, Context, Instant, SemaphoreId, Service, Span, Step};

/// A thread that always wants the processor: the study's competitor.
pub struct Spinner;

impl Body for Spinner {
    fn step(&mut self, _: &mut dyn Context) -> Step {
        Step::Burn(Service::from_millis(10))
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
    pub fn at(&self, origin: Instant, number: u64) -> Instant {
        let (burst, place) = (number / self.in_burst, number % self.in_burst);
        origin + self.first + self.every * burst + self.apart * place
    }
}

/// When a device began, for its driver to know.
pub type Began = Arc<OnceLock<Instant>>;

/// Works so long at these times, counted from its first step, at which it leaves when that was: a thread that takes the processor for long
/// bursts, as a component does that breaks the rules (Jones, Saroiu §8.1), or a device's handler, which then queues its deferred call.
pub fn at_times(
    times: Times,
    work: Service,
    queues: Option<SemaphoreId>,
    began: Began,
) -> impl Body + 'static {
    let mut steps = 0;
    move |context: &mut dyn Context| {
        let origin = *began.get_or_init(|| context.now());
        steps += 1;
        if steps % 2 == 0 {
            return Step::Burn(work);
        }
        if let Some(queue) = queues.filter(|_| steps > 1) {
            context.signal(queue);
        }
        Step::SleepUntil(times.at(origin, steps / 2))
    }
}

/// A thread that takes the processor for so long every so often, the first time `after` so long.
pub fn rogue(burst: Service, every: Span, after: Span) -> impl Body + 'static {
    at_times(Times::steady(after, every), burst, None, Began::default())
}

#[cfg(test)]
mod tests {
    use laxity::Twin;
    use laxity::study::Profile;
    use laxity_model::{Host, Placement, Priority, ProcessorId, Program};

    use super::*;

    /// A driver's thread may be the first to ask when its device began.
    #[test]
    fn nobody_works_before_the_first_time_whoever_set_the_beginning() {
        let (began, cpu) = (Began::default(), ProcessorId(0));
        let known = Arc::clone(&began);
        let driver = move |context: &mut dyn Context| {
            known.get_or_init(|| context.now());
            Step::Finish
        };
        let mut program = Program::new(1);
        program.add("driver", cpu, Placement::Thread(Priority::HIGHEST), driver);
        let times = Times::steady(Span::from_millis(2), Span::from_millis(10));
        let device = at_times(times, Service::from_millis(1), None, began);
        let device = program.add("device", cpu, Placement::Thread(Priority::NORMAL), device);
        let mut twin = Twin::new(Profile::WIN2000_PII450);
        let record = twin.admit_and_run(program, Span::from_millis(1));
        let usage = &record.expect("it is admitted").usage[device.index()];
        assert_eq!(usage.service, Service::ZERO);
    }
}
