//! Response times.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

use super::horizon::repeats_after;
use super::set::{Set, least_service, window_for};
use crate::Span;
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Bound, Doubt, Overflow, Response, Result, Task};

/// How long jobs take at most, for each task.
///
/// Take a busy window that begins at 0, and in it a job due at d. All that goes before it has been served by F, the least one
/// above zero with
///
/// sbf(F) ≥ W(F) = B(d) + (⌊(d − E)/T⌋ + b)·C − l + Σ min{⌊(d − Eₒ)/Tₒ⌋ + bₒ, ⌈(F + Aₒ)/Tₒ⌉}·Cₒ
///
/// over the others with Eₒ ≤ d, where E = D − J, A = J + (b − 1)·T, b is the burst, B(d) is the longest [`Task::blocking`] of those with E > d, and l is its own
/// [`Task::tail`], which nothing can preempt once it has begun. It is complete when sbf has given W(F) + l. Only those d
/// count at which somebody has a deadline, and only jobs released before the end of the longest busy window. (Spuri,
/// "Analysis of deadline scheduled real-time systems", INRIA report 2772, 1996, with jitter; regions and tails: Bozhko,
/// Brandenburg, "Abstract response-time analysis", ECRTS 2020, and George, Rivierre, Spuri, "Preemptive and non-preemptive
/// real-time uniprocessor scheduling", INRIA report 2966, 1996; the supply in place of t as in PROSA's `results/rs/edf`.)
///
/// # Exactness
///
/// No job takes longer, if the tasks and the supply are what they say. On a supply that [is
/// attained](SupplyBound::is_attained) some job may take as long if all tasks are preemptible anywhere or have floating
/// regions. Of known points only the last region is used: those before it may help a job more than the bound knows. The bound
/// does not suppose that deadlines are met.
///
/// [`Response::Unbounded`] if ΣU exceeds the rate. Where ΣU equals it the busy window may never end, as with jitter or on a supply that pauses; it
/// repeats itself after a common multiple of all periods and the supply's cycle then, and so much of it is looked at. [`Doubt::TooLong`] if none is
/// known, or a search takes too long: 2²² tasks looked at for one task, or 2²⁸
/// in the whole call, some 0.5 s, which only sets of hundreds of tasks come to.
///
/// # Cost
///
/// O(n) a step; some ten or twenty steps a task, instead of a fixed point for each deadline in the busy window. F does not
/// fall as d grows: with a response time R already seen, and a job complete by e, jobs of that task which are due earlier,
/// but arrive no earlier than e − R, take no longer, and are skipped.
///
/// ```
/// use laxity_model::analysis::supply::Dedicated;
/// use laxity_model::analysis::{Task, edf};
/// use laxity_model::{Service, Span};
///
/// let task = |cost, period| Task::new(Service::from_nanos(cost), Span::from_nanos(period)).unwrap();
/// let responses = edf::response_times(&[task(2, 5), task(4, 10)], &Dedicated).unwrap();
/// let bounds = responses.iter().map(|one| one.bound().unwrap().from_arrival.as_nanos());
/// // A job that arrives at 5 and the one that takes 4 are both due at 10: either may go first.
/// assert_eq!(bounds.collect::<Vec<_>>(), [3, 8]);
/// ```
pub fn response_times<S: SupplyBound>(tasks: &[Task], supply: &S) -> Result<Vec<Response>> {
    let set = Set::new(tasks)?;
    match busy(tasks, &set, supply)? {
        Ok(busy) => {
            let mut search = Search::new(tasks, &set, supply, busy)?;
            (0..tasks.len()).map(|task| search.longest(task)).collect()
        }
        Err(none) => Ok(vec![none; tasks.len()]),
    }
}

/// The longest busy window, or as much of it as is to be looked at; or why there are no bounds.
fn busy<S: SupplyBound>(
    tasks: &[Task],
    set: &Set<'_>,
    supply: &S,
) -> Result<Result<u64, Response>> {
    let Some(ordering) = set.compare(set.load(), supply.rate()) else {
        return Ok(Err(Response::Unknown(Doubt::TooLong)));
    };
    if ordering == Ordering::Greater {
        return Ok(Err(Response::Unbounded));
    }
    let busy = match set.busy_window(supply, ordering)? {
        None if ordering == Ordering::Equal => repetition(tasks, set, supply)?,
        busy => busy,
    };
    Ok(busy.ok_or(Response::Unknown(Doubt::TooLong)))
}

/// How much of a busy window that never ends is to be looked at, where ΣU is exactly the rate; `None` where that is not known, or does not fit.
///
/// Once all have had a deadline, and two ticks of service are sure, both sides of the inequality grow by H · rate if d and F grow by H, a common multiple of
/// all periods and the supply's cycle. So F of the job due H later is no more than H more: it takes no longer. After two periods a task has needed two ticks.
fn repetition<S: SupplyBound>(tasks: &[Task], set: &Set<'_>, supply: &S) -> Result<Option<u64>> {
    let periods = set.items.iter().map(|item| item.period.get());
    let longest = periods.max().unwrap_or(0);
    let length = repeats_after(set, supply)?;
    let length = length.and_then(|length| length.checked_add(longest.checked_mul(2)?));
    Ok(length.filter(|length| check_fit((tasks, set), supply, *length).is_ok()))
}

/// Whether all that a search computes fits: all later sums are of parts of these.
fn check_fit<S: SupplyBound>(
    (tasks, set): (&[Task], &Set<'_>),
    supply: &S,
    busy: u64,
) -> Result<()> {
    let latest = |task: &Task| {
        let deadline = task.deadline().as_nanos().checked_add(set.shift)?;
        deadline.checked_add(busy)
    };
    let ahead = set.items.iter().map(|item| item.ahead).max();
    let latest = tasks.iter().map(latest).try_fold(0, |a, b| Some(b?.max(a)));
    let latest = latest.ok_or(Overflow("a deadline"))?;
    let end = window_for(supply, set.demand_fits(latest)?)?;
    end.checked_add(latest)
        .and_then(|end| end.checked_add(ahead.unwrap_or(0)))
        .ok_or(Overflow("a response time"))?;
    Ok(())
}

/// The search for the longest response times.
struct Search<'a, S> {
    tasks: &'a [Task],
    set: &'a Set<'a>,
    supply: &'a S,
    busy: u64,
    /// Of each task, how many jobs are due by the deadline that is looked at; none of the task that is.
    counts: Vec<u64>,
    /// What of W does not depend on F.
    base: u64,
    tail: u64,
    /// No F is less.
    least: u64,
    steps: usize,
    /// How many steps the task that is looked at, and all from it on, may take.
    budget: usize,
    left: usize,
}

/// A task's longest response times so far.
#[derive(Clone, Copy)]
struct Longest {
    task: usize,
    /// The deadline of a job that arrives as the busy window begins. Jobs due earlier have arrived before it.
    origin: u64,
    /// From arrival to completion.
    response: u64,
}

impl<'a, S: SupplyBound> Search<'a, S> {
    fn new(tasks: &'a [Task], set: &'a Set<'a>, supply: &'a S, busy: u64) -> Result<Self> {
        check_fit((tasks, set), supply, busy)?;
        Ok(Self {
            tasks,
            set,
            supply,
            busy,
            counts: vec![0; tasks.len()],
            base: 0,
            tail: 0,
            least: 1,
            steps: 0,
            budget: 0,
            left: set.whole_budget(),
        })
    }

    /// The longest response times of a task.
    fn longest(&mut self, task: usize) -> Result<Response> {
        self.budget = self.set.budget().min(self.left);
        let longest = self.longest_within_budget(task);
        self.left = self.left.saturating_sub(self.steps);
        longest
    }

    fn longest_within_budget(&mut self, task: usize) -> Result<Response> {
        let origin = self.tasks[task].deadline().as_nanos() + self.set.shift;
        self.tail = self.tasks[task].tail().as_nanos();
        self.steps = 0;
        self.least = 1;
        // A job that arrives as the busy window begins.
        self.look_at(task, origin);
        let (least, end) = self.completion()?;
        self.least = least;
        let mut longest = Longest {
            task,
            origin,
            response: end,
        };
        let latest = origin + (self.busy - 1);
        let mut found = self.descend(&mut longest, latest, origin)?;
        let from_release = longest.response;
        let first = self.set.items[task].due;
        if first < origin {
            self.least = 1;
            found &= self.descend(&mut longest, origin - 1, first)?;
        }
        Ok(if found {
            Response::Bounded(Bound {
                from_arrival: Span::from_nanos(longest.response),
                from_release: Span::from_nanos(from_release),
            })
        } else {
            Response::Unknown(Doubt::TooLong)
        })
    }

    /// Lengthens the response time to that of all jobs due from `first` to `due`; false if the budget runs out.
    fn descend(&mut self, longest: &mut Longest, mut due: u64, first: u64) -> Result<bool> {
        while due >= first {
            self.steps += 1;
            if self.steps > self.budget {
                return Ok(false);
            }
            // Between deadlines a job due later is complete no later.
            due = self.look_at(longest.task, due).max(first);
            let limit = (longest.response + due).checked_sub(longest.origin);
            let end = match limit
                .map(|limit| self.completion_within(limit))
                .transpose()?
            {
                Some(Some(end)) => end,
                None | Some(None) => {
                    let (_, end) = self.completion()?;
                    let response = (end + longest.origin).saturating_sub(due);
                    longest.response = longest.response.max(response);
                    end
                }
            };
            // All due from here on have arrived too late to take longer.
            let Some(next) = (end + longest.origin).checked_sub(longest.response + 1) else {
                break;
            };
            due = next;
        }
        Ok(self.steps <= self.budget)
    }

    /// Looks at a job of `task` due at `due`: who is in its way. Answers the last deadline up to this, which all the same are
    /// in the way of.
    fn look_at(&mut self, task: usize, due: u64) -> u64 {
        let (mut blocking, mut since) = (0, u64::MAX);
        for (item, count) in self.set.items.iter().zip(&mut self.counts) {
            if let Some(time) = due.checked_sub(item.due) {
                let (jobs, rest) = item.period.divide(time);
                *count = jobs.wrapping_add(item.burst);
                since = since.min(rest);
            } else {
                *count = 0;
                blocking = item.blocking.max(blocking);
            }
        }
        let own = core::mem::take(&mut self.counts[task]);
        self.base = blocking + own * self.set.items[task].cost - self.tail;
        due - since
    }

    /// W(F), less one's own tail. What [`check_fit`] has checked cannot wrap.
    #[inline]
    fn workload(&self, window: u64) -> u64 {
        let mut workload = self.base;
        for (item, count) in self.set.items.iter().zip(&self.counts) {
            let released = item.period.divide((window - 1).wrapping_add(item.ahead)).0;
            let jobs = released.wrapping_add(1).min(*count);
            workload = workload.wrapping_add(jobs.wrapping_mul(item.cost));
        }
        workload
    }

    /// F, and the completion, of the job that is looked at.
    fn completion(&mut self) -> Result<(u64, u64)> {
        let mut window = self.least;
        loop {
            self.steps += 1;
            let workload = self.workload(window);
            let next = window_for(self.supply, workload)?;
            // Beyond the budget what it is does not matter: nothing will be said of it.
            if next <= window || self.steps > self.budget {
                return Ok((next, window_for(self.supply, workload + self.tail)?));
            }
            window = next;
        }
    }

    /// Whether the job that is looked at is complete by this, and, if so, a time by which it is.
    fn completion_within(&mut self, limit: u64) -> Result<Option<u64>> {
        let service = least_service(self.supply, limit).checked_sub(self.tail);
        let Some(service) = service.filter(|service| *service > 0) else {
            return Ok(None);
        };
        let workload = self.workload(window_for(self.supply, service)?);
        if workload > service {
            return Ok(None);
        }
        Ok(Some(window_for(self.supply, workload + self.tail)?))
    }
}
