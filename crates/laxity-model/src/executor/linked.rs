//! Handlers that have something to do with each other: chains, in which the end of one call releases the next, and groups that have one budget.
//!
//! Rate monotonic with delayed preemption; deadline monotonic where a deadline is not the period.

use alloc::string::ToString;
use alloc::vec::Vec;

use super::in_order::analysed;
use super::rmdp;
use super::{ExecutorPolicy, Unschedulable};
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Preemption, Task};
use crate::{Service, Span};

/// One of those who take turns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Linked {
    /// What it asks for. Of one that is released by another, deadline and bound count from the release of the first of its chain, and its jitter is not what is said here.
    pub task: Task,
    /// The index of the one whose calls release it when they are over.
    pub after: Option<usize>,
    /// It is a [share](super::share::Share): its cost is a budget that it may keep until its period's end. Then others may have the whole of it, and the next at once.
    pub defers: bool,
    /// So many calls a period, which is more than one where several have a share.
    pub calls: u32,
}

impl Linked {
    /// One that has nothing to do with the others.
    pub const fn alone(task: Task) -> Self {
        Self {
            task,
            after: None,
            defers: false,
            calls: 1,
        }
    }

    /// Whether it is more than a task.
    const fn has_to_do_with_others(&self) -> bool {
        self.after.is_some() || self.defers
    }

    /// What it is to others.
    fn interfering(&self) -> Task {
        let kept = match self.defers {
            true => self
                .task
                .period()
                .saturating_sub(self.task.cost().as_dedicated_span()),
            false => Span::ZERO,
        };
        let jitter = self.task.jitter().checked_add(kept);
        self.task.with_jitter(jitter.unwrap_or(Span::MAX))
    }
}

/// So often at most all bounds are reckoned anew from those before.
const MOST_ROUNDS: u32 = 200;

/// From the release of the first of its chain to the end of its own call, of each at the longest; of a share, to when its budget was to be had, asked for at its period's begin.
///
/// *Holistic*: who is released by the end of another's call has as release jitter the bound of that one, by which it interferes with all, whose bounds grow, and so on until nothing does any more.
/// Two things make that shorter. Who comes after somebody that is urgent enough to be waited for, too, comes in the same busy window as that one, and has its jitter and no more. And members of a chain, one released by the end
/// of the other, are as one task that is as urgent as the least urgent of them, where it is over before its next release. That is a bound and not exact. Without links it is what [`ExecutorPolicy::admit`](super::ExecutorPolicy::admit) of the policy finds.
///
/// **Source**: Tindell, Clark, "Holistic schedulability analysis for distributed hard real-time systems", Microprocessing and Microprogramming 40, 1994; Harbour, Klein, Lehoczky, "Fixed priority scheduling of periodic tasks with
/// varying execution priority", RTSS 1991 (a chain as one task).
///
/// # Errors
///
/// Who may be late.
pub fn bounds(all: &[Linked], supply: &dyn SupplyBound) -> Result<Vec<Span>, Unschedulable> {
    let mut all = Set(all.to_vec());
    for linked in &mut all.0 {
        linked.task = analysed(&linked.task);
        if linked.after.is_some() {
            linked.task = linked.task.with_jitter(Span::ZERO);
        }
    }
    for _ in 0..MOST_ROUNDS {
        let bound = |place: usize| all.bound(place, supply);
        let bounds: Vec<Span> = (0..all.0.len()).map(bound).collect::<Result<_, _>>()?;
        let mut is_final = true;
        for linked in &mut all.0 {
            let Some(before) = linked.after else { continue };
            let jitter = bounds.get(before).copied().unwrap_or(Span::ZERO);
            is_final &= linked.task.jitter() == jitter;
            linked.task = linked.task.with_jitter(jitter);
        }
        if is_final {
            return Ok(bounds);
        }
    }
    Err(Unschedulable {
        bottleneck: None,
        reason: "the bounds of chains grow without an end in sight".to_string(),
    })
}

/// [`bounds`] by a policy.
///
/// # Errors
///
/// Who may be late; or the policy has no bounds of single handlers.
pub fn bounds_by(
    policy: &impl ExecutorPolicy,
    all: &[Linked],
    supply: &dyn SupplyBound,
) -> Result<Vec<Span>, Unschedulable> {
    policy.bounds(all, supply).unwrap_or_else(|| {
        Err(Unschedulable {
            bottleneck: None,
            reason: "chains and groups have bounds only where the order is by rate".to_string(),
        })
    })
}

/// Whether all of these are in time by a policy; their [bounds](bounds_by) where they have to do with each other, and else none.
///
/// # Errors
///
/// Those of [`bounds_by`] where they have to do with each other, and else those of [`ExecutorPolicy::admit`].
pub fn admit(
    policy: &impl ExecutorPolicy,
    all: &[Linked],
    supply: &dyn SupplyBound,
) -> Result<Vec<Span>, Unschedulable> {
    if all.iter().any(Linked::has_to_do_with_others) {
        return bounds_by(policy, all, supply);
    }
    let tasks: Vec<Task> = all.iter().map(|linked| linked.task).collect();
    policy.admit(&tasks, supply).map(|()| Vec::new())
}

/// All of them, each with the jitter that it has by what is known.
struct Set(Vec<Linked>);

impl Set {
    /// Whoever is before it in its chain.
    fn before(&self, place: usize) -> Option<usize> {
        self.0[place].after.filter(|before| *before < self.0.len())
    }

    /// It and those before it in its chain, the last first, as far as all of them are as urgent as that. From the release of the first of them to the end of its own call somebody is at work who is, so all that
    /// is in one busy window of those who are.
    fn urgent(&self, place: usize, deadline: Span) -> impl Iterator<Item = usize> {
        let before = move |place: &usize| {
            let before = self.before(*place)?;
            (self.0[before].task.deadline() <= deadline).then_some(before)
        };
        core::iter::successors(Some(place), before).take(self.0.len())
    }

    /// What each is to somebody who waits for all that have so much time.
    fn interfering(&self, deadline: Span) -> Vec<Task> {
        let task = |place: usize| {
            let first = self.urgent(place, deadline).last().unwrap_or(place);
            let jitter = self.0[first].interfering().jitter();
            self.0[place].task.with_jitter(jitter)
        };
        (0..self.0.len()).map(task).collect()
    }

    fn bound(&self, place: usize, supply: &dyn SupplyBound) -> Result<Span, Unschedulable> {
        let own = &self.0[place].task;
        let tasks = self.interfering(own.deadline());
        let (before, blocking) = rmdp::beside(own.deadline(), &tasks, |other| other != place);
        let mut bound = rmdp::response(own, place, (&before, blocking), supply)?;
        let precedes = |linked: &Linked| linked.after == Some(place);
        let mut next =
            (self.before(place).is_some() || self.0.iter().any(precedes)).then_some(place);
        let mut deadline = own.deadline();
        for _ in 0..self.0.len() {
            let Some(least) = next else { break };
            deadline = deadline.max(self.0[least].task.deadline());
            let first = self.urgent(place, deadline).last().unwrap_or(place);
            if let Some(as_one) = self.as_one(place, first, deadline, supply) {
                bound = bound.min(as_one);
            }
            next = self.before(first);
        }
        rmdp::in_time(own, place, bound, blocking)
    }

    /// The same of all from `first` to `place`, which are as urgent as that, as of one task. `None` where it may not be over before its next release: then that one's members may go before its own.
    fn as_one(
        &self,
        place: usize,
        first: usize,
        deadline: Span,
        supply: &dyn SupplyBound,
    ) -> Option<Span> {
        let chain: Vec<usize> = self.urgent(place, deadline).collect();
        let costs = chain.iter().map(|member| self.0[*member].task.cost());
        let cost = costs.reduce(|sum, cost| sum.checked_add(cost).unwrap_or(Service::MAX))?;
        let first = &self.0[first].task;
        let own = Task::new(cost, first.period()).ok()?;
        let own = own.with_jitter(first.jitter());
        let tasks = self.interfering(deadline);
        // With all who come after it in the same window.
        let window = rmdp::beside(deadline, &tasks, |other| !chain.contains(&other));
        let (before, blocking) = window;
        let window = rmdp::response(&own, place, (&before, blocking), supply).ok()?;
        if window > first.period() {
            return None;
        }
        // They come after it, and those of the call before came before that window.
        let comes_after = |other: usize| self.urgent(other, deadline).any(|one| one == place);
        let there = |other: usize| !chain.contains(&other) && !comes_after(other);
        let (before, _) = rmdp::beside(deadline, &tasks, there);
        let last = self.0[place].task;
        let preemption = match last.preemption() {
            Preemption::Never => Preemption::Fixed {
                longest: last.cost(),
                last: last.cost(),
            },
            known => known,
        };
        let own = own.with_preemption(preemption).ok()?;
        rmdp::response(&own, place, (&before, blocking), supply).ok()
    }
}
