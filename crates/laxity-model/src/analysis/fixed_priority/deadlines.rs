//! Whether deadlines are met: response times, looked at no further than to the deadline.

use super::requests::Rows;
use super::response::least_demand;
use super::window::{Arrival, Outcome, Window};
use crate::analysis::alone::or_late_alone;
use crate::analysis::supply::SupplyBound;
use crate::analysis::task::Blocking;
use crate::analysis::{Budget, Doubt, Result, Task, Verdict, Witness};
use crate::{Service, Span};

/// Whether all jobs of a set that is given by priority, the highest first, no two alike, meet their deadlines.
///
/// Assumptions and sources are those of [`response_times`](super::response_times); this stops at the first job that misses its
/// deadline, and looks no further than to each job's deadline, so it is no slower.
///
/// **Exact** on a supply that is [attained](SupplyBound::is_attained): [`Verdict::NotSchedulable`] then names the first job of the most
/// urgent task that misses one. (Where it is due before time 0, because its jitter is longer than its deadline, the witness says 0.)
/// Where numbers do not fit, a task that is too much even alone, with C > D − J or C > T, is named all the same, the first such job of
/// the most urgent such task.
/// On other supplies a miss is [`Doubt::Sufficient`]. [`Doubt::TooLong`] as for response times.
///
/// ```
/// use laxity_model::analysis::{Preemption, Task, Verdict, fixed_priority, supply::Dedicated};
/// use laxity_model::{Service, Span};
///
/// let task = |cost, period| Task::new(Service::from_millis(cost), Span::from_millis(period));
/// let tasks = [task(1, 4)?, task(5, 20)?];
/// assert_eq!(fixed_priority::test(&tasks, &Dedicated)?, Verdict::Schedulable);
/// let tasks = [tasks[0], tasks[1].with_preemption(Preemption::Never)?];
/// let verdict = fixed_priority::test(&tasks, &Dedicated)?;
/// assert!(matches!(verdict, Verdict::NotSchedulable(witness) if witness.task == 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn test<S: SupplyBound>(tasks: &[Task], supply: &S) -> Result<Verdict> {
    or_late_alone(tasks, judge(tasks, supply))
}

fn judge<S: SupplyBound>(tasks: &[Task], supply: &S) -> Result<Verdict> {
    // Prepared one by one: who misses its deadline is often among the first.
    let mut requests = Rows::with_capacity(tasks.len());
    let mut blocking = Blocking::new(tasks);
    let budget = Budget::default();
    let (mut reached, mut blocked) = (0_u64, Service::ZERO);
    for (index, task) in tasks.iter().enumerate() {
        // All before it meet their deadlines, so they ask for no more than the supply's rate, as a window needs.
        requests.push(task)?;
        let load = requests.compare_load(supply.rate());
        let blocking = blocking.of(index);
        let regions = (blocking, task.tail());
        let least = least_demand(reached, blocked, regions, task.cost());
        let window = Window::new(requests.all(), regions, (supply, load), least, &budget);
        match fate(window, task.deadline())? {
            Fate::Met { demand } => (reached, blocked) = (demand, blocking),
            Fate::TooLong => return Ok(Verdict::Unknown(Doubt::TooLong)),
            Fate::Missed(_) if !supply.is_attained() => {
                return Ok(Verdict::Unknown(Doubt::Sufficient));
            }
            Fate::Missed(job) => {
                return Ok(Verdict::NotSchedulable(Witness {
                    task: index,
                    release: job.release(),
                    due: job.due(task.deadline()),
                }));
            }
        }
    }
    Ok(Verdict::Schedulable)
}

/// What becomes of the jobs of a busy window.
#[derive(Clone, Copy)]
pub(super) enum Fate {
    /// All meet their deadlines; the demand when the first job's whole cost is done.
    Met {
        demand: u64,
    },
    /// This is the first that does not, if the supply gives no more than it must.
    Missed(Arrival),
    TooLong,
}

impl Fate {
    pub(super) fn is_met(self) -> bool {
        matches!(self, Self::Met { .. })
    }
}

/// Looks at the jobs of a busy window one after the other, until one misses its deadline.
#[inline]
pub(super) fn fate<S: SupplyBound>(mut window: Window<'_, S>, deadline: Span) -> Result<Fate> {
    let mut first = None;
    loop {
        let arrival = window.arrival();
        let due = arrival.due(deadline).as_nanos();
        match window.next_job(due)? {
            Outcome::Completed(job) if job.at <= due => {
                let demand = *first.get_or_insert(job.demand);
                if job.last {
                    return Ok(Fate::Met { demand });
                }
            }
            Outcome::Completed(_) | Outcome::Late => return Ok(Fate::Missed(arrival)),
            Outcome::TooLong => return Ok(Fate::TooLong),
        }
    }
}
