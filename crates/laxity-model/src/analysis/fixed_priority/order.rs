//! Orders of priorities.

use alloc::vec::Vec;
use core::cell::Cell;
use core::cmp::Ordering;

use super::deadlines::{Fate, fate};
use super::regions::{least, one_less};
use super::requests::{Requests, requests_of};
use super::response::load_of;
use super::window::Window;
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Budget, Doubt, Result, Search, Task};
use crate::{Service, Span};

/// Indices by period, the shortest first; of equal ones the first first. O(n log n).
///
/// Best among all fixed priorities where all deadlines are periods, and there are no regions and no jitter: Liu, Layland, "Scheduling
/// algorithms for multiprogramming in a hard-real-time environment", JACM 20, 1973, theorem 2.
pub fn rate_monotonic(tasks: &[Task]) -> Vec<usize> {
    sorted_by(tasks, Task::period)
}

/// Indices by deadline, the shortest first; of equal ones the first first. O(n log n).
///
/// Best among all fixed priorities where no deadline is longer than its period, and there are no regions and no jitter: Leung, Whitehead, "On
/// the complexity of fixed-priority scheduling of periodic, real-time tasks", Performance Evaluation 2, 1982.
pub fn deadline_monotonic(tasks: &[Task]) -> Vec<usize> {
    sorted_by(tasks, Task::deadline)
}

fn sorted_by(tasks: &[Task], key: impl Fn(&Task) -> Span) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|index| key(&tasks[*index]));
    order
}

/// An order of priorities under which all tasks, with the regions they have, meet their deadlines: indices, the highest priority
/// first.
///
/// For any deadlines, jitter, regions and supply. On a supply that is [attained](SupplyBound::is_attained) it finds an order whenever
/// there is one, and [`Search::None`] is sure; on others, whenever there is one that [`test()`](super::test) accepts. Where a window that
/// might have decided is too long to be searched (see [`response_times`](super::response_times)), the answer is
/// [`Doubt::TooLong`]. Of several orders it finds the one nearest to deadlines (less jitter), looking from the lowest priority on.
///
/// **Cost**: at most n² / 2 response times.
///
/// **Source**: Audsley, "On priority assignment in fixed priority scheduling", Information Processing Letters 79, 2001: the lowest priority
/// may go to any task that meets its deadlines there. That holds with regions (for whole jobs: George, Rivierre, Spuri, INRIA
/// RR-2966, 1996; for last regions: Davis, Bertogna, RTSS 2012) because a task that moves up past another trades at least one whole
/// job of it in interference for at most one region of it, less a tick, in blocking.
///
/// ```
/// use laxity_model::analysis::{Preemption, Search, Task, fixed_priority, supply::Dedicated};
/// use laxity_model::{Service, Span};
///
/// let task = |cost, period| Task::new(Service::from_nanos(cost), Span::from_nanos(period));
/// // Never preempted, the first must not come second: the other would block it for 4.
/// let long = task(5, 12)?.with_deadline(Span::from_nanos(10))?.with_preemption(Preemption::Never)?;
/// let short = task(2, 12)?.with_deadline(Span::from_nanos(6))?.with_preemption(Preemption::Never)?;
/// assert_eq!(fixed_priority::best_order(&[long, short], &Dedicated)?, Search::Found(vec![1, 0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn best_order<S: SupplyBound>(tasks: &[Task], supply: &S) -> Result<Search<Vec<usize>>> {
    let budget = Budget::default();
    let Some(mut levels) = Levels::new(tasks, supply, &budget)? else {
        return Ok(Search::nothing(supply.is_attained()));
    };
    let mut blocking = Service::ZERO;
    let mut order = Vec::with_capacity(tasks.len());
    while let Some(lowest) = levels.open.len().checked_sub(1) {
        let (mut found, mut too_long) = (None, false);
        for position in (0..=lowest).rev() {
            let tail = tasks[levels.open[position]].tail();
            match levels.with_lowest(position, |level| level.meets((blocking, tail)))? {
                Fate::Met { .. } => {
                    found = Some(position);
                    break;
                }
                Fate::Missed(_) => {}
                Fate::TooLong => too_long = true,
            }
        }
        let Some(position) = found else {
            return Ok(nothing(supply, too_long));
        };
        let index = levels.take(position);
        blocking = blocking.max(tasks[index].blocking());
        order.push(index);
    }
    order.reverse();
    Ok(Search::Found(order))
}

/// That no task can be the least urgent one of those that are left.
fn nothing<T>(supply: &impl SupplyBound, too_long: bool) -> Search<T> {
    if too_long {
        Search::Unknown(Doubt::TooLong)
    } else {
        Search::nothing(supply.is_attained())
    }
}

/// An order of priorities and the length of each task's final region under which all meet their deadlines: indices, the highest
/// priority first, each with its region.
///
/// A task is meant to be preemptible anywhere before its final region, which is not preempted: that is
/// [`Preemption::Fixed`](crate::analysis::Preemption::Fixed) with `longest` and `last` both this long; one tick long, it is no region at all. What regions the
/// tasks have now does not matter. For any deadlines, jitter and supply; optimal, in the sense of [`best_order`], over all orders and
/// all final regions. So it accepts whatever any other test here for fixed priorities accepts: preemptive and non-preemptive
/// scheduling are final regions of one tick and of the whole job, and what cuts jobs into more regions than the final one
/// only adds blocking. [`Search::None`] and [`Search::Unknown`] as there; where a window was too long to be searched, the regions that
/// are found need not be the shortest.
///
/// **Cost**: at most n² / 2 bisections of some 30 response times each.
///
/// **Source**: Davis, Bertogna, "Optimal fixed priority scheduling with deferred pre-emption", RTSS 2012, algorithm FNR-PA: at each level
/// from the lowest on, of the tasks that can be there, the one that can with the shortest final region.
///
/// ```
/// use laxity_model::analysis::{Search, Task, fixed_priority, supply::Dedicated};
/// use laxity_model::{Service, Span};
///
/// let task = |cost, period, deadline| {
///     Task::new(Service::from_nanos(cost), Span::from_nanos(period))?.with_deadline(Span::from_nanos(deadline))
/// };
/// // Fully preemptible, the second would be complete after 12. Three ticks of it must not be preempted, and block the first for two.
/// let tasks = [task(3, 9, 6)?, task(6, 20, 9)?];
/// assert_eq!(fixed_priority::best_order(&tasks, &Dedicated)?, Search::Found(vec![0, 1]));
/// let tasks = [task(3, 7, 6)?, task(6, 20, 9)?];
/// assert_eq!(fixed_priority::best_order(&tasks, &Dedicated)?, Search::None);
/// let found = fixed_priority::best_order_with_final_regions(&tasks, &Dedicated)?;
/// assert_eq!(found, Search::Found(vec![(0, Service::from_nanos(1)), (1, Service::from_nanos(3))]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn best_order_with_final_regions<S: SupplyBound>(
    tasks: &[Task],
    supply: &S,
) -> Result<Search<Vec<(usize, Service)>>> {
    let budget = Budget::default();
    let Some(mut levels) = Levels::new(tasks, supply, &budget)? else {
        return Ok(Search::nothing(supply.is_attained()));
    };
    // From then on a region may be longer than it need be, and block where a shorter one would not.
    let too_long = Cell::new(false);
    let one = Service::from_nanos(1);
    let mut blocking = Service::ZERO;
    let mut order = Vec::with_capacity(tasks.len());
    while let Some(lowest) = levels.open.len().checked_sub(1) {
        let mut best: Option<(usize, Service)> = None;
        for position in (0..=lowest).rev() {
            // Only a shorter region than the shortest so far is of use.
            let cost = tasks[levels.open[position]].cost();
            let most = best.map_or(cost, |(_, region)| one_less(region).min(cost));
            let region = levels.with_lowest(position, |level| {
                let meets = |region| {
                    let found = level.meets((blocking, one_less(region)))?;
                    too_long.set(too_long.get() || matches!(found, Fate::TooLong));
                    Ok(found.is_met())
                };
                if !meets(most)? {
                    return Ok(None);
                }
                least(one, most, meets).map(Some)
            })?;
            best = region.map(|region| (position, region)).or(best);
            if best.is_some_and(|(_, region)| region == one) {
                break;
            }
        }
        let Some((position, region)) = best else {
            return Ok(nothing(supply, too_long.get()));
        };
        blocking = blocking.max(one_less(region));
        order.push((levels.take(position), region));
    }
    order.reverse();
    Ok(Search::Found(order))
}

/// The tasks that have no priority yet.
struct Levels<'a, S> {
    tasks: &'a [Task],
    supply: &'a S,
    /// How the load of all tasks compares with the supply's rate.
    all: Ordering,
    /// Their indices, the nearest deadline first.
    open: Vec<usize>,
    /// What they ask for, in the same order.
    requests: Vec<Requests>,
    budget: &'a Budget,
}

/// One of them at the lowest priority of all.
struct Level<'a, S> {
    /// It is the last of these.
    requests: &'a [Requests],
    deadline: Span,
    load: Ordering,
    supply: &'a S,
    budget: &'a Budget,
}

impl<S: SupplyBound> Level<'_, S> {
    /// Whether it meets its deadlines there, blocked by, and with a tail of, so much.
    fn meets(&self, regions: (Service, Service)) -> Result<Fate> {
        let supply = (self.supply, self.load);
        let window = Window::new(self.requests, regions, supply, 0, self.budget);
        fate(window, self.deadline)
    }
}

impl<'a, S: SupplyBound> Levels<'a, S> {
    /// `None` if the tasks ask for more than the supply's rate.
    fn new(tasks: &'a [Task], supply: &'a S, budget: &'a Budget) -> Result<Option<Self>> {
        let open = sorted_by(tasks, |task| task.deadline().saturating_sub(task.jitter()));
        let by_deadline = open.iter().map(|index| &tasks[*index]);
        let (requests, all) = requests_of(by_deadline, supply.rate())?;
        Ok((!all.is_gt()).then_some(Self {
            tasks,
            supply,
            all,
            open,
            requests,
            budget,
        }))
    }

    /// Looks at the task at this position as the least urgent one of those that have no priority yet.
    fn with_lowest<R>(
        &mut self,
        position: usize,
        look: impl FnOnce(&Level<'_, S>) -> Result<R>,
    ) -> Result<R> {
        let lowest = self.requests.len() - 1;
        self.requests.swap(position, lowest);
        let found = look(&Level {
            requests: &self.requests,
            deadline: self.tasks[self.open[position]].deadline(),
            load: load_of(&self.requests, self.all, self.supply),
            supply: self.supply,
            budget: self.budget,
        });
        self.requests.swap(position, lowest);
        found
    }

    /// The task at this position has its priority: its index.
    fn take(&mut self, position: usize) -> usize {
        self.requests.remove(position);
        self.open.remove(position)
    }
}
