//! Policies that keep the released jobs in one order.

use alloc::vec::Vec;
use core::marker::PhantomData;

use super::linked::Linked;
use super::{ExecutorPolicy, Job, Ready, Unschedulable};
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Preemption, Task};
use crate::policy::{Decision, Policy, Rank};
use crate::{Instant, Span};

/// Where a job goes that yields before it is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Yielded {
    /// It stays where it is: before its equals.
    InTurn,
    /// Behind its equals.
    BehindEquals,
    /// Behind all who had this rank, or a smaller one, by then.
    Behind(u64),
}

/// In which order jobs go, and what can be promised of that.
pub trait Order: Send {
    /// The least goes first; among equals the one that entered first.
    fn rank(job: &Job) -> u64;

    /// Where a job goes that yields.
    fn yielded(now: Instant) -> Yielded;

    /// [`ExecutorPolicy::precedes`]: who goes before the running one, unless it is said otherwise.
    fn precedes(coming: &Job, running: &Job) -> bool {
        Self::rank(coming) < Self::rank(running)
    }

    /// The rank of a job that is due then; `None` in an order that is not by deadlines, in which nobody is raised.
    fn due(_deadline: Instant) -> Option<u64> {
        None
    }

    /// [`ExecutorPolicy::admit`].
    fn admit(tasks: &[Task], supply: &dyn SupplyBound) -> Result<(), Unschedulable>;

    /// [`ExecutorPolicy::bounds`].
    fn bounds(
        _all: &[Linked],
        _supply: &dyn SupplyBound,
    ) -> Option<Result<Vec<Span>, Unschedulable>> {
        None
    }
}

/// A task as analysis is to see it: who has said nothing of its regions never looks.
pub(super) fn analysed(task: &Task) -> Task {
    match task.preemption() {
        Preemption::Anywhere => task.with_preemption(Preemption::Never).unwrap_or(*task),
        _ => *task,
    }
}

/// The released jobs of an executor, in an order.
#[derive(Clone, PartialEq, Eq, Debug)]
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
        match O::yielded(now) {
            Yielded::InTurn => {}
            Yielded::BehindEquals => self.ready.yield_now(who, None),
            Yielded::Behind(rank) => self.ready.yield_now(who, Some(rank)),
        }
    }

    fn pause(&mut self, _: Instant) {}

    /// Behind who is due then already.
    fn raise(&mut self, who: u32, rank: Rank, _: Instant) {
        if let Rank::Deadline(deadline) = rank
            && let Some(rank) = O::due(deadline)
        {
            self.ready.yield_now(who, Some(rank));
        }
    }

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

    fn goes_by_deadlines(&self) -> bool {
        O::due(Instant::ZERO).is_some()
    }

    fn admit(&self, tasks: &[Task], supply: &dyn SupplyBound) -> Result<(), Unschedulable> {
        O::admit(tasks, supply)
    }

    fn bounds(
        &self,
        all: &[Linked],
        supply: &dyn SupplyBound,
    ) -> Option<Result<Vec<Span>, Unschedulable>> {
        O::bounds(all, supply)
    }
}
