//! Handlers that have something to do with each other: chains, in which the end of one call releases the next, and groups that have one budget.
//!
//! Rate monotonic with delayed preemption; deadline monotonic where a deadline is not the period.

use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use super::in_order::analysed;
use super::rmdp;
use super::{ExecutorPolicy, Unschedulable};
use crate::analysis::supply::{Residual, SupplyBound};
use crate::analysis::{Budget, Preemption, Task};
use crate::{Service, Span};

/// What all who take turns lose to a [wake](Linked::wakes): the switches to the thread that puts something and back, and those to whoever looks at that without having a turn.
pub const WAKE: Service = Service::from_micros(40);

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
    /// So many calls a period are released by what a thread puts that goes before all of them, and wakes for each.
    pub wakes: u32,
    /// So many quanta a period: in each of its calls the regions of its task, or those of the tasks that have a share.
    pub quanta: u64,
    /// What releases it is looked for where a call of any of them is over, or yields: so it may wait for the whole call of one that is less urgent.
    pub polled: bool,
}

impl Linked {
    /// One that has nothing to do with the others.
    pub const fn alone(task: Task) -> Self {
        Self {
            task,
            after: None,
            defers: false,
            calls: 1,
            wakes: 0,
            quanta: task.regions(),
            polled: false,
        }
    }

    /// What is done before all of them for its calls, if anything is. What releases a call may come as soon as the one before is over: a period sooner than it is released.
    #[must_use]
    pub fn woken(&self) -> Option<Task> {
        let nanos = WAKE.as_nanos().saturating_mul(self.wakes.into());
        let cost = Some(Service::from_nanos(nanos)).filter(|cost| !cost.is_zero())?;
        let period = self.task.period();
        let task = Task::new(cost, period).ok()?;
        Some(task.with_jitter(period))
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
/// of the other, are as one task that is as urgent as the least urgent of them, where it is over before its next release; else each is in the busy window of the chain's own release, with those of its chain that come in that. That is a bound and not exact; there is none where one that others come after comes in bursts. Without links it is what [`ExecutorPolicy::admit`] of the policy finds.
///
/// **Source**: Tindell, Clark, "Holistic schedulability analysis for distributed hard real-time systems", Microprocessing and Microprogramming 40, 1994; Harbour, Klein, Lehoczky, "Fixed priority scheduling of periodic tasks with
/// varying execution priority", RTSS 1991 (a chain as one task).
///
/// After some 0.1 s ([`Budget`]) the answer is no, as it is not found in time.
///
/// # Errors
///
/// Who may be late.
pub fn bounds(all: &[Linked], supply: &dyn SupplyBound) -> Result<Vec<Span>, Unschedulable> {
    let left = left(all, supply)?;
    let supply = left
        .as_ref()
        .map_or(supply, |left| left as &dyn SupplyBound);
    let mut set = Set::new(all)?;
    let mut bounds = vec![Span::ZERO; all.len()];
    for _ in 0..MOST_ROUNDS {
        let mut is_final = true;
        for place in set.order.clone() {
            if let Some(before) = set.all[place].after {
                let jitter = bounds.get(before).copied().unwrap_or(Span::ZERO);
                let task = &mut set.all[place].task;
                is_final &= task.jitter() == jitter;
                *task = task.with_jitter(jitter);
            }
            bounds[place] = set.bound(place, supply)?;
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

/// What is left of a supply by what is [done before all](Linked::woken) of these, if anything is.
fn left<'a>(
    all: &[Linked],
    supply: &'a dyn SupplyBound,
) -> Result<Option<Residual<&'a dyn SupplyBound>>, Unschedulable> {
    let above: Vec<Task> = all.iter().filter_map(Linked::woken).collect();
    if above.is_empty() {
        return Ok(None);
    }
    let left = Residual::new(supply, above).map_err(|_| Unschedulable {
        bottleneck: None,
        reason: "the wakes for what arrives leave nothing of the processor".to_string(),
    });
    left.map(Some)
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

/// Whether all of these are in time by a policy; their [bounds](bounds_by), where it has any of single handlers, and else none. That one is [polled](Linked::polled) is charged
/// where there are bounds, and else not.
///
/// # Errors
///
/// Those of [`bounds_by`] where it has bounds, or they have to do with each other; and else those of [`ExecutorPolicy::admit`].
pub fn admit(
    policy: &impl ExecutorPolicy,
    all: &[Linked],
    supply: &dyn SupplyBound,
) -> Result<Vec<Span>, Unschedulable> {
    if let Some(found) = policy.bounds(all, supply) {
        return found;
    }
    if all.iter().any(Linked::has_to_do_with_others) {
        return bounds_by(policy, all, supply);
    }
    let left = left(all, supply)?;
    let supply = left
        .as_ref()
        .map_or(supply, |left| left as &dyn SupplyBound);
    let tasks: Vec<Task> = all.iter().map(|linked| linked.task).collect();
    policy.admit(&tasks, supply).map(|()| Vec::new())
}

/// All of them, each with the jitter that it has by what is known.
struct Set {
    all: Vec<Linked>,
    /// Their places, each behind the one that it comes after: so what is found of one holds for the next in the same round.
    order: Vec<usize>,
    /// For all rounds together: who asks may be anybody, and others wait meanwhile.
    budget: Budget,
}

impl Set {
    fn new(all: &[Linked]) -> Result<Self, Unschedulable> {
        let mut all = all.to_vec();
        for linked in &mut all {
            linked.task = analysed(&linked.task);
            if linked.after.is_some() {
                linked.task = linked.task.with_jitter(Span::ZERO);
            }
        }
        let mut set = Self {
            order: (0..all.len()).collect(),
            all,
            budget: Budget::default(),
        };
        let depth = |place: &usize| set.chain(*place, Span::MAX).count();
        let depths: Vec<usize> = set.order.iter().map(depth).collect();
        if let Some(place) = depths.iter().position(|depth| *depth > set.all.len()) {
            return Err(Unschedulable {
                bottleneck: Some(place),
                reason: "its chain has no beginning: each of it comes after another".to_string(),
            });
        }
        set.order.sort_by_key(|place| depths[*place]);
        set.one_by_one()?;
        set.seen_late();
        Ok(set)
    }

    /// Who is seen late, behind whatever call, is released as it is seen, and no sooner than a period after that again: so what came a period later may wait for as long, and for another call besides.
    /// What is promised counts from when it could have been seen.
    fn seen_late(&mut self) {
        for place in 0..self.all.len() {
            let unseen = self.unseen(place, |other, _| other != place);
            let task = &mut self.all[place].task;
            let jitter = task.jitter().checked_add(unseen.as_dedicated_span());
            *task = task.with_jitter(jitter.unwrap_or(Span::MAX));
        }
    }

    /// What comes in bursts would have its successors come in bursts, too, which no jitter tells.
    fn one_by_one(&self) -> Result<(), Unschedulable> {
        let bursts = |place: &usize| self.all[*place].task.burst().get() > 1;
        let mut before = self.all.iter().filter_map(|linked| linked.after);
        let Some(place) = before.find(|place| *place < self.all.len() && bursts(place)) else {
            return Ok(());
        };
        Err(Unschedulable {
            bottleneck: Some(place),
            reason: "it comes in bursts, and what its end releases has no bound then".to_string(),
        })
    }

    /// Whoever is before it in its chain, if that is as urgent as this.
    fn before(&self, place: usize, deadline: Span) -> Option<usize> {
        let before = self.all[place].after?;
        let is_urgent = self.all.get(before)?.task.deadline() <= deadline;
        is_urgent.then_some(before)
    }

    /// It and those before it in its chain, the last first, as far as all of them are as urgent as that. From the release of the first of them to the end of its own call somebody is at work who is, so all that
    /// is in one busy window of those who are.
    fn chain(&self, place: usize, deadline: Span) -> impl Iterator<Item = usize> {
        let before = move |place: &usize| self.before(*place, deadline);
        core::iter::successors(Some(place), before).take(self.all.len() + 1)
    }

    /// For each the same of the one before it in that, or what it has itself.
    fn inherit<T: Copy>(
        &self,
        deadline: Span,
        mut all: Vec<T>,
        own: impl Fn(usize) -> Option<T>,
    ) -> Vec<T> {
        for place in &self.order {
            let before = self.before(*place, deadline).map(|before| all[before]);
            if let Some(found) = own(*place).or(before) {
                all[*place] = found;
            }
        }
        all
    }

    /// What each is to somebody who waits for all that have so much time.
    fn interfering(&self, deadline: Span) -> Vec<Task> {
        let own = self.all.iter().map(|linked| linked.interfering().jitter());
        let jitters = self.inherit(deadline, own.collect(), |_| None);
        let tasks = self.all.iter().zip(jitters);
        tasks
            .map(|(linked, jitter)| linked.task.with_jitter(jitter))
            .collect()
    }

    fn bound(&self, place: usize, supply: &dyn SupplyBound) -> Result<Span, Unschedulable> {
        let own = &self.all[place].task;
        let tasks = self.interfering(own.deadline());
        let there = |other: usize| other != place;
        let (before, blocking) = rmdp::beside(own.deadline(), &tasks, there);
        let less_urgent =
            |other, linked: &Linked| there(other) && linked.task.deadline() > own.deadline();
        let blocking = blocking.max(self.unseen(place, less_urgent));
        let among = (supply, &self.budget);
        let mut bound = rmdp::response(own, place, (&before, blocking), among)?;
        let precedes = |linked: &Linked| linked.after == Some(place);
        let is_linked = self.before(place, Span::MAX).is_some() || self.all.iter().any(precedes);
        let mut next = is_linked.then_some(place);
        let mut deadline = own.deadline();
        while let Some(least) = next {
            deadline = deadline.max(self.all[least].task.deadline());
            let chain: Vec<usize> = self.chain(place, deadline).collect();
            if let Some(as_one) = self.as_one(&chain, deadline, supply) {
                bound = bound.min(as_one);
            }
            next = chain
                .last()
                .and_then(|first| self.before(*first, Span::MAX));
        }
        let bound = rmdp::in_time(own, place, (bound, blocking), supply)?;
        if self.all[place].polled && bound > own.period() {
            return Err(Unschedulable {
                bottleneck: Some(place),
                reason: format!(
                    "what releases the bottleneck is looked for between calls alone, and a call of it may take {bound}, longer than its period of {}: what comes meanwhile is seen later and later",
                    own.period()
                ),
            });
        }
        Ok(bound)
    }

    /// For how long what releases this may not be seen, as one of those is in a call. A share may have its budget twice in that: to the end of a period, and from there on.
    fn unseen(&self, place: usize, those: impl Fn(usize, &Linked) -> bool) -> Service {
        let all = self.all.iter().enumerate();
        let those = all.filter(|(other, linked)| self.all[place].polled && those(*other, linked));
        let calls = those.map(|(_, linked)| {
            let cost = linked.task.cost();
            let twice = cost.checked_add(cost).unwrap_or(Service::MAX);
            if linked.defers { twice } else { cost }
        });
        calls.max().unwrap_or(Service::ZERO)
    }

    /// The same of this chain, the last first, whose members are as urgent as that, as of one task; and where it may not be over before its next release, as [each for itself](Self::in_a_row).
    fn as_one(&self, chain: &[usize], deadline: Span, supply: &dyn SupplyBound) -> Option<Span> {
        let (place, begin) = (*chain.first()?, *chain.last()?);
        let costs = chain.iter().map(|member| self.all[*member].task.cost());
        let cost = costs.reduce(|sum, cost| sum.checked_add(cost).unwrap_or(Service::MAX))?;
        let first = &self.all[begin].task;
        let own = Task::new(cost, first.period()).ok()?;
        let own = own.with_jitter(first.jitter());
        let tasks = self.interfering(deadline);
        let mut others = vec![true; tasks.len()];
        for member in chain {
            others[*member] = false;
        }
        // With all who come after it in the same window.
        let (before, blocking) = rmdp::beside(deadline, &tasks, |other| others[other]);
        let less_urgent =
            |other: usize, linked: &Linked| others[other] && linked.task.deadline() > deadline;
        let blocking = blocking.max(self.unseen(begin, less_urgent));
        let among = (supply, &self.budget);
        let window = rmdp::response(&own, place, (&before, blocking), among).ok()?;
        // They come after it, and those of the call before came before that window.
        let comes_after = self.inherit(deadline, vec![false; tasks.len()], |other| {
            (other == place).then_some(true)
        });
        if window > first.period() {
            let own = own.with_cost(self.in_a_row(deadline, &comes_after)).ok()?;
            let (before, _) = rmdp::beside(deadline, &tasks, |other| !comes_after[other]);
            return rmdp::response(&own, place, (&before, blocking), among).ok();
        }
        let there = |other: usize| others[other] && !comes_after[other];
        let (before, _) = rmdp::beside(deadline, &tasks, there);
        let last = self.all[place].task;
        let preemption = match last.preemption() {
            Preemption::Never => Preemption::Fixed {
                longest: last.cost(),
                last: last.cost(),
            },
            known => known,
        };
        let own = own.with_preemption(preemption).ok()?;
        rmdp::response(&own, place, (&before, blocking), among).ok()
    }

    /// What a call of the first of these takes with those of all that come after it, as far as they are so urgent.
    ///
    /// Of a chain calls of several releases may be under way at once, and those before it may go before it for each of them. But all is in one busy window, so that from the begin of that on, however late it was released itself, it waits for no call of its own but those of
    /// releases before, nor for those after it of others.
    fn in_a_row(&self, deadline: Span, comes_after: &[bool]) -> Service {
        let all = self.all.iter().zip(comes_after);
        let costs = all.filter(|(linked, is_one)| **is_one && linked.task.deadline() <= deadline);
        costs
            .map(|(linked, _)| linked.task.cost())
            .fold(Service::ZERO, |sum, cost| {
                sum.checked_add(cost).unwrap_or(Service::MAX)
            })
    }
}
