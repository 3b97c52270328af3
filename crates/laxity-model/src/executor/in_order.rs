//! Policies that keep the released jobs in one order.

use core::marker::PhantomData;

use super::{ExecutorPolicy, Job, Ready, Unschedulable};
use crate::Instant;
use crate::analysis::Task;
use crate::analysis::supply::SupplyBound;
use crate::policy::{Decision, Policy};

/// In which order jobs go, and what can be promised of that.
pub trait Order: Send {
    /// The least goes first; among equals the one that entered first.
    fn rank(job: &Job) -> u64;

    /// The rank of a job that yields; `None` if it keeps its own, behind its equals.
    fn rank_after_yield(now: Instant) -> Option<u64>;

    /// [`ExecutorPolicy::precedes`].
    fn precedes(coming: &Job, running: &Job) -> bool;

    /// [`ExecutorPolicy::admit`].
    fn admit(tasks: &[Task], supply: &dyn SupplyBound) -> Result<(), Unschedulable>;
}

/// The released jobs of an executor, in an order.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct InOrder<O, const N: usize = { super::HANDLERS }> {
    ready: Ready<N>,
    order: PhantomData<O>,
}

impl<O> InOrder<O> {
    /// With nobody released, and room for as many handlers as an executor of a program has.
    #[must_use]
    pub fn new() -> Self {
        Self::with_room()
    }
}

/// For the usual room alone, so that it need not be said.
impl<O> Default for InOrder<O> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O, const N: usize> InOrder<O, N> {
    /// With nobody released, and room for `N` handlers.
    #[must_use]
    pub fn with_room() -> Self {
        Self {
            ready: Ready::default(),
            order: PhantomData,
        }
    }
}

impl<O: Order, const N: usize> Policy for InOrder<O, N> {
    type Entry = Job;

    fn enter(&mut self, who: u32, job: Job, _: Instant) {
        self.ready.enter(who, O::rank(&job));
    }

    fn leave(&mut self, who: u32, _: Instant) {
        self.ready.leave(who);
    }

    fn yield_now(&mut self, who: u32, now: Instant) {
        self.ready.yield_now(who, O::rank_after_yield(now));
    }

    fn pause(&mut self, _: Instant) {}

    fn decide(&mut self, _: Instant) -> Decision {
        Decision {
            who: self.ready.first(),
            until: Instant::MAX,
        }
    }
}

impl<O: Order, const N: usize> ExecutorPolicy for InOrder<O, N> {
    fn precedes(&self, coming: &Job, running: &Job) -> bool {
        O::precedes(coming, running)
    }

    fn is_intact(&self) -> bool {
        self.ready.is_intact()
    }

    fn admit(&self, tasks: &[Task], supply: &dyn SupplyBound) -> Result<(), Unschedulable> {
        O::admit(tasks, supply)
    }
}
