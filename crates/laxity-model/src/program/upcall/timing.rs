//! When an upcall is called, and how much it does then.

use core::num::NonZeroU32;

use crate::analysis::{Preemption, Task, TaskError};
use crate::executor::pacing::{Epoch, OnOverrun};
use crate::{Instant, Service, Span};

/// When an upcall is released for the first time. Where that is past when it begins, its first release is the next one on its grid. `E` is the epoch, or `()` where there is none [yet](Timing::since).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum First<E = Epoch> {
    /// A period after it begins.
    #[default]
    AfterAPeriod,
    /// At this instant.
    At(Instant),
    /// So long after an epoch: those of one epoch and one time begin together, and in one phase to each other whatever became of them between. Nothing that is released
    /// then is lost to one that has its first turn later, unless that was to begin later.
    After(E, Span),
}

/// When an upcall is called, and how much it does then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing<E = Epoch> {
    /// Its first release.
    pub first: First<E>,
    /// From release to release; more than zero.
    pub period: Span,
    /// B_p: so many units at each release, unless the handler has [no more](super::Call::finish).
    pub batch: NonZeroU32,
    /// b_p: so many of them at once, without a look for a yield; of more than the batch, the batch.
    pub quantum: NonZeroU32,
    /// What becomes of releases that come while it is still at work.
    pub on_overrun: OnOverrun,
    /// Whether its handler may [pause](super::Call::pause_after) in the last quantum of a call, too, and let others go first there. Then nothing is promised of it that rests on nobody coming between.
    pub pauses: bool,
}

impl Timing {
    /// One unit at each release, the first of which is a period after it begins; a release that it is not ready for is skipped.
    pub const fn each(period: Span) -> Self {
        Self {
            first: First::AfterAPeriod,
            period,
            batch: NonZeroU32::MIN,
            quantum: NonZeroU32::MIN,
            on_overrun: OnOverrun::SKIP,
            pauses: false,
        }
    }
}

impl Timing<()> {
    /// This, with that as its epoch.
    pub fn since(self, epoch: &Epoch) -> Timing {
        Timing {
            first: match self.first {
                First::AfterAPeriod => First::AfterAPeriod,
                First::At(at) => First::At(at),
                First::After((), phase) => First::After(epoch.clone(), phase),
            },
            period: self.period,
            batch: self.batch,
            quantum: self.quantum,
            on_overrun: self.on_overrun,
            pauses: self.pauses,
        }
    }
}

impl<E> Timing<E> {
    /// What so many units take of a whole batch that takes `service`, after those that are done: so that all together take no more than it.
    pub fn share(&self, service: Service, done: u32, units: u32) -> Service {
        let upto = |units: u32| {
            let all = u128::from(service.as_nanos()) * u128::from(units.min(self.batch.get()));
            Service::from_nanos((all / u128::from(self.batch.get())) as u64)
        };
        upto(done.saturating_add(units)).saturating_sub(upto(done))
    }

    /// What a quantum takes at most of a whole batch that takes `service`.
    pub fn longest(&self, service: Service) -> Service {
        let units = self.quantum.min(self.batch).get();
        let longest = u128::from(service.as_nanos()) * u128::from(units);
        Service::from_nanos(longest.div_ceil(self.batch.get().into()) as u64)
    }

    /// The task that it is to a schedulability test, if a whole batch takes `service`: it can be made to yield after each quantum.
    ///
    /// # Errors
    ///
    /// What no task can be.
    pub fn task(&self, service: Service, deadline: Span) -> Result<Task, TaskError> {
        let task = Task::new(service, self.period)?.with_deadline(deadline)?;
        let [batch, quantum] = [self.batch, self.quantum].map(NonZeroU32::get);
        let last = batch - (batch - 1) / quantum * quantum;
        let longest = self.longest(service);
        let last = self.share(service, batch - last, last);
        task.with_preemption(match (self.pauses, quantum >= batch) {
            (true, _) => Preemption::Floating { longest },
            (false, true) => Preemption::Never,
            (false, false) => Preemption::Fixed { longest, last },
        })
    }
}
