//! Which processor for which task.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::{Ordering, Reverse};
use core::num::NonZeroU16;

use crate::Service;
use crate::analysis::exact::compare_sums;
use crate::analysis::utilization::utilizations;
use crate::analysis::{Fraction, Result, Task, Verdict};
use crate::base::number::last_of;

/// Of the processors on which a task fits, which one takes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fit {
    /// The first.
    First,
    /// The fullest, by utilization; of equally full ones the first.
    Best,
    /// The emptiest; of equally empty ones the first.
    Worst,
}

/// In which order tasks are placed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Order {
    /// In the order in which they are given.
    Given,
    /// By utilization, the largest first; of equal ones the first first.
    Decreasing,
}

/// The answer of [`partition`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Partitioning {
    /// All fit: the processor of each task.
    Fits(Vec<u16>),
    /// One does not; another heuristic might do better.
    DoesNotFit(Misfit),
}

/// The first task that fits on no processor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Misfit {
    /// The task, as an index into the set.
    pub task: usize,
    /// The processor of each task that was placed before.
    pub placed: Vec<Option<u16>>,
    /// With how much less it would fit; `None` if not even with one tick.
    pub nearest: Option<Nearest>,
}

/// With how much less execution time a task would fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nearest {
    /// On which processor.
    pub processor: u16,
    /// The largest C that fits there, T and D as they are; longer non-preemptive regions are cut to it.
    pub cost: Service,
    /// How much less than the task's own that is.
    pub missing: Service,
}

/// Distributes tasks over identical processors, one after the other, never moving one again.
///
/// `test` decides for one processor, and sees the tasks there in the order of `tasks` (by priority, where it needs that). Only
/// [`Verdict::Schedulable`] means that they fit: the result is as sound as the test, and no task is on a processor that the test did
/// not accept. Finding the best distribution is bin packing, NP-hard in the strong sense; these are the usual heuristics, sufficient only.
/// `nearest` takes for granted that less execution time never hurts the test (true of all tests here); what it names was accepted
/// by the test in any case.
///
/// Sources: Dhall, Liu, "On a real-time scheduling problem", Operations Research 26(1), 1978, for rate monotonic scheduling; how good they
/// are: [`edf_guarantee`](super::edf_guarantee), [`rate_monotonic_guarantee`](super::rate_monotonic_guarantee).
///
/// Cost: at most n·m tests, and 64·m more for a task that does not fit. Errors: those of the test.
///
/// ```
/// use core::num::NonZeroU16;
/// use laxity_model::analysis::multiprocessor::{Fit, Nearest, Order, Partitioning, partition};
/// use laxity_model::analysis::{Task, utilization};
/// use laxity_model::{Service, Span};
///
/// let task = |cost| Task::new(Service::from_millis(cost), Span::from_millis(10)).expect("a task");
/// let two = NonZeroU16::new(2).expect("two");
/// let set = [4, 4, 6, 6].map(task);
/// let fit = |order| partition(&set, two, Fit::First, order, utilization::earliest_deadline_first);
/// assert_eq!(fit(Order::Decreasing)?, Partitioning::Fits(vec![0, 1, 0, 1]));
/// let Partitioning::DoesNotFit(misfit) = fit(Order::Given)? else { unreachable!() };
/// // The two small ones went together; beside the third there are 4 ms left for the fourth.
/// assert_eq!(misfit.task, 3);
/// let (cost, missing) = (Service::from_millis(4), Service::from_millis(2));
/// assert_eq!(misfit.nearest, Some(Nearest { processor: 1, cost, missing }));
/// # Ok::<(), laxity_model::analysis::Overflow>(())
/// ```
pub fn partition<F>(
    tasks: &[Task],
    processors: NonZeroU16,
    fit: Fit,
    order: Order,
    test: F,
) -> Result<Partitioning>
where
    F: Fn(&[Task]) -> Result<Verdict>,
{
    let mut shelves = Shelves {
        members: vec![Vec::new(); usize::from(processors.get())],
        tasks,
        test,
    };
    for task in placing_order(tasks, order) {
        match shelves.processor_for(task, fit)? {
            Some(processor) => shelves.place(task, processor),
            None => {
                return Ok(Partitioning::DoesNotFit(Misfit {
                    task,
                    nearest: shelves.nearest(task)?,
                    placed: shelves.processors(),
                }));
            }
        }
    }
    Ok(Partitioning::Fits(
        shelves.processors().into_iter().flatten().collect(),
    ))
}

fn placing_order(tasks: &[Task], order: Order) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..tasks.len()).collect();
    if order == Order::Decreasing {
        let share = |index: &usize| Fraction::of(tasks[*index].cost(), tasks[*index].period());
        indices.sort_by_key(|index| Reverse(share(index)));
    }
    indices
}

/// The processors as they fill.
struct Shelves<'a, F> {
    /// The tasks on each, by index, ascending.
    members: Vec<Vec<usize>>,
    tasks: &'a [Task],
    test: F,
}

impl<F: Fn(&[Task]) -> Result<Verdict>> Shelves<'_, F> {
    /// The processor that takes a task.
    fn processor_for(&self, task: usize, fit: Fit) -> Result<Option<usize>> {
        for processor in self.candidates(fit) {
            if self.accepts(processor, task, self.tasks[task])? {
                return Ok(Some(processor));
            }
        }
        Ok(None)
    }

    /// The processors that differ, the one to be asked first first: of the empty ones only one.
    fn candidates(&self, fit: Fit) -> Vec<usize> {
        let empty = self.members.iter().position(Vec::is_empty);
        let used = (0..self.members.len()).filter(|i| !self.members[*i].is_empty());
        let mut candidates: Vec<usize> = used.chain(empty).collect();
        candidates.sort_unstable();
        match fit {
            Fit::First => {}
            Fit::Best => candidates.sort_by(|a, b| self.compare_load(*b, *a)),
            Fit::Worst => candidates.sort_by(|a, b| self.compare_load(*a, *b)),
        }
        candidates
    }

    fn compare_load(&self, a: usize, b: usize) -> Ordering {
        compare_sums(self.load(a), self.load(b))
    }

    fn load(&self, processor: usize) -> impl Iterator<Item = Fraction> + Clone {
        let members = self.members[processor].iter();
        members.flat_map(|task| utilizations(core::slice::from_ref(&self.tasks[*task])))
    }

    /// Whether the tasks on a processor and this one, with `index` in the order of all, pass the test.
    fn accepts(&self, processor: usize, index: usize, task: Task) -> Result<bool> {
        let members = &self.members[processor];
        let above = members.partition_point(|member| *member < index);
        let (above, below) = members.split_at(above);
        let get = |member: &usize| self.tasks[*member];
        let together: Vec<Task> = above
            .iter()
            .map(get)
            .chain([task])
            .chain(below.iter().map(get))
            .collect();
        Ok((self.test)(&together)?.is_schedulable())
    }

    fn place(&mut self, task: usize, processor: usize) {
        let members = &mut self.members[processor];
        members.insert(members.partition_point(|member| *member < task), task);
    }

    /// The processor where most of a task fits.
    fn nearest(&self, index: usize) -> Result<Option<Nearest>> {
        let own = self.tasks[index].cost();
        let mut nearest: Option<Nearest> = None;
        for processor in self.candidates(Fit::First) {
            let cost = self.largest_cost(processor, index)?;
            if cost > nearest.map_or(Service::ZERO, |nearest| nearest.cost) {
                nearest = Some(Nearest {
                    processor: number(processor),
                    cost,
                    missing: own - cost,
                });
            }
        }
        Ok(nearest)
    }

    /// The largest C below a task's own with which it fits; zero if none.
    fn largest_cost(&self, processor: usize, index: usize) -> Result<Service> {
        let task = self.tasks[index];
        let accepts = |cost| match task.with_cost(Service::from_nanos(cost)) {
            Ok(less) => self.accepts(processor, index, less),
            Err(_) => Ok(false),
        };
        let largest = last_of(0, task.cost().as_nanos(), accepts)?;
        Ok(Service::from_nanos(largest))
    }

    /// The processor of each task that has one.
    fn processors(&self) -> Vec<Option<u16>> {
        let mut processors = vec![None; self.tasks.len()];
        for (processor, members) in self.members.iter().enumerate() {
            for task in members {
                processors[*task] = Some(number(processor));
            }
        }
        processors
    }
}

/// There are at most 65,535 processors.
fn number(processor: usize) -> u16 {
    u16::try_from(processor).unwrap_or(u16::MAX)
}
