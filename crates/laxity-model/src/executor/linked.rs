//! Handlers that have something to do with each other: chains, in which the end of one call releases the next, and groups that have one budget.
//!
//! Rate monotonic with delayed preemption; deadline monotonic where a deadline is not the period.

use alloc::string::ToString;
use alloc::vec::Vec;

use super::Unschedulable;
use super::in_order::analysed;
use super::rmdp;
use crate::Span;
use crate::analysis::Task;
use crate::analysis::supply::SupplyBound;

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
/// That is a bound and not exact, as the members of a chain never wait for each other's same job. Without links it is what [`ExecutorPolicy::admit`](super::ExecutorPolicy::admit) of the policy finds.
///
/// **Source**: Tindell, Clark, "Holistic schedulability analysis for distributed hard real-time systems", Microprocessing and Microprogramming 40, 1994.
///
/// # Errors
///
/// Who may be late.
pub fn bounds(all: &[Linked], supply: &dyn SupplyBound) -> Result<Vec<Span>, Unschedulable> {
    let mut all: Vec<Linked> = all.to_vec();
    for linked in &mut all {
        linked.task = analysed(&linked.task);
        if linked.after.is_some() {
            linked.task = linked.task.with_jitter(Span::ZERO);
        }
    }
    for _ in 0..MOST_ROUNDS {
        let interfering: Vec<Task> = all.iter().map(Linked::interfering).collect();
        let bound = |place: usize| rmdp::bound(&all[place].task, place, &interfering, supply);
        let bounds: Vec<Span> = (0..all.len()).map(bound).collect::<Result<_, _>>()?;
        let mut is_final = true;
        for linked in &mut all {
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
