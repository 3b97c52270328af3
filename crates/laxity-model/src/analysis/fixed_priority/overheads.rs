//! What running tasks costs besides the tasks themselves.

use alloc::vec::Vec;

use super::{response_times, test};
use crate::analysis::supply::SupplyBound;
use crate::analysis::{Doubt, Overflow, Preemption, Response, Task, Verdict};
use crate::{Service, Span};

/// What a machine and its kernel cost. All zero is the ideal machine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Overheads {
    /// The longest switch from one job, or from none, to another, with the decision for it. It is not preempted by jobs.
    pub context_switch: Service,
    /// The longest interrupt with which a job is released. It is served before any job, whatever its priority and region.
    pub release_interrupt: Service,
    /// The most that a preempted job needs longer because its caches are cold when it goes on. What a job needs to warm them when it
    /// begins is in its C.
    pub cache_reload: Service,
    /// The timer's resolution: who waits for an instant is woken at the next multiple of this, or at once if it is zero.
    pub tick: Span,
}

/// A set whose analysis covers the overheads of another set: interrupts first, then that set's tasks in the same order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WithOverheads {
    tasks: Vec<Task>,
    interrupts: usize,
}

impl Overheads {
    /// Nothing costs anything.
    pub const NONE: Self = Self {
        context_switch: Service::ZERO,
        release_interrupt: Service::ZERO,
        cache_reload: Service::ZERO,
        tick: Span::ZERO,
    };

    /// A set, given by priority, the highest first, with everything it costs.
    ///
    /// * Each job costs two **switches**: one when it begins, or preempts, and one when it is complete; a job that a preemption throws out
    ///   comes back with the switch that ends the preempting job. And it costs one **cache reload**, that of the job it preempts.
    ///   So N jobs in a busy window cost 2N switches and N reloads, as in PROSA's bound of 1 + 2 Σ α on the schedule changes in a window; the one
    ///   that is missing here is the switch to a less urgent job that is under way when the window begins: it blocks, so
    /// * every **region** is a switch and a reload longer, and a job that is preemptible anywhere has a region of one switch.
    /// * Each **release interrupt** is a job of its own, more urgent than all tasks, with the period and jitter of the task it releases: less
    ///   urgent tasks' interrupts delay more urgent ones too, and interrupts do not care for regions. So if they cost anything, no
    ///   benefit is taken from a **last region**: it becomes a floating one, which can be delayed until its end. (To keep the benefit,
    ///   let the interrupts cost nothing here, and take them from the supply: [`Residual`](crate::analysis::supply::Residual).) If they cost
    ///   nothing, the benefit is that of the bare last region; a job that is never preempted gets a last region of its bare C, because a
    ///   more urgent one can still take its place while it is being switched to.
    /// * The **tick** adds one tick less a nanosecond to the jitter.
    ///
    /// The result is safe, not exact: not every job preempts another. O(n).
    ///
    /// **Source**: Katcher, Arakawa, Strosnider, "Engineering and analysis of fixed priority schedulers", IEEE TSE 19, 1993; Tindell, Burns,
    /// Wellings, 1994, §4 (timers and jitter); the count of switches: PROSA, `results/rta/ovh`.
    ///
    /// ```
    /// use laxity_model::analysis::fixed_priority::Overheads;
    /// use laxity_model::analysis::{Task, supply::Dedicated};
    /// use laxity_model::{Service, Span};
    ///
    /// let task = |cost, period| Task::new(Service::from_micros(cost), Span::from_micros(period));
    /// let tasks = [task(100, 1_000)?, task(300, 2_000)?];
    /// let overheads = Overheads {
    ///     context_switch: Service::from_micros(5),
    ///     release_interrupt: Service::from_micros(2),
    ///     cache_reload: Service::from_micros(10),
    ///     ..Overheads::NONE
    /// };
    /// let responses = overheads.applied_to(&tasks)?.response_times(&Dedicated)?;
    /// let bounds = responses.iter().map(|response| response.bound().map(|bound| bound.from_arrival));
    /// // 100 + 10 + 10, two interrupts, and a switch to the other task that began a nanosecond before.
    /// assert_eq!(bounds.clone().next(), Some(Some(Span::from_nanos(120_000 + 4_000 + 4_999))));
    /// // 300 + 10 + 10, the first one's 120, two interrupts.
    /// assert_eq!(bounds.clone().last(), Some(Some(Span::from_micros(320 + 120 + 4))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn applied_to(&self, tasks: &[Task]) -> Result<WithOverheads, Overflow> {
        let mut all = Vec::with_capacity(2 * tasks.len());
        if !self.release_interrupt.is_zero() {
            for task in tasks {
                all.push(self.interrupt_of(task)?);
            }
        }
        let interrupts = all.len();
        for task in tasks {
            all.push(self.inflated(task)?);
        }
        Ok(WithOverheads {
            tasks: all,
            interrupts,
        })
    }

    /// The interrupt that releases a task's jobs, due when they are.
    fn interrupt_of(&self, task: &Task) -> Result<Task, Overflow> {
        let interrupt = Task::new(self.release_interrupt, task.period())
            .and_then(|interrupt| interrupt.with_deadline(task.deadline()));
        let interrupt = interrupt.map_err(|_| Overflow("the period of an interrupt"))?;
        Ok(interrupt.with_jitter(self.jitter_of(task)?))
    }

    /// The task with its own costs.
    fn inflated(&self, task: &Task) -> Result<Task, Overflow> {
        let sum = |a: Service, b: Service| {
            a.checked_add(b)
                .ok_or(Overflow("an execution time with its overheads"))
        };
        let around = sum(self.context_switch, self.cache_reload)?;
        let cost = sum(task.cost(), sum(around, self.context_switch)?)?;
        let keeps_last = self.release_interrupt.is_zero();
        let preemption = match task.preemption() {
            Preemption::Anywhere if self.context_switch.is_zero() => Preemption::Anywhere,
            Preemption::Anywhere => Preemption::Floating {
                longest: self.context_switch,
            },
            Preemption::Floating { longest } => Preemption::Floating {
                longest: sum(longest, around)?,
            },
            Preemption::Fixed { longest, last } if keeps_last => Preemption::Fixed {
                longest: sum(longest, around)?,
                last,
            },
            Preemption::Fixed { longest, .. } => Preemption::Floating {
                longest: sum(longest, around)?,
            },
            Preemption::Never if keeps_last => Preemption::Fixed {
                longest: cost,
                last: task.cost(),
            },
            Preemption::Never => Preemption::Floating { longest: cost },
        };
        let inflated = Task::new(cost, task.period())
            .and_then(|inflated| inflated.with_deadline(task.deadline()))
            .and_then(|inflated| inflated.with_preemption(preemption));
        let inflated = inflated.map_err(|_| Overflow("a region with its overheads"))?;
        Ok(inflated.with_jitter(self.jitter_of(task)?))
    }

    /// How long after it arrives a job is released.
    fn jitter_of(&self, task: &Task) -> Result<Span, Overflow> {
        let late = self.tick.saturating_sub(Span::from_nanos(1));
        let jitter = task.jitter().checked_add(late);
        jitter.ok_or(Overflow("a jitter with the timer's resolution"))
    }
}

impl WithOverheads {
    /// The whole set, by priority, the highest first: interrupts, then tasks.
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// How many of them are interrupts; the task with index i of the set before is at this plus i.
    #[must_use]
    pub const fn interrupts(&self) -> usize {
        self.interrupts
    }

    /// The response times of the tasks (not of the interrupts), all overheads included: `from_release` counts from the beginning of the
    /// release interrupt. See [`response_times`](super::response_times).
    pub fn response_times<S: SupplyBound>(&self, supply: &S) -> Result<Vec<Response>, Overflow> {
        let mut responses = response_times(&self.tasks, supply)?;
        responses.drain(..self.interrupts);
        Ok(responses)
    }

    /// Whether all deadlines are met with all overheads. As the overheads are bounds, this is only sufficient: never
    /// [`Verdict::NotSchedulable`].
    pub fn test<S: SupplyBound>(&self, supply: &S) -> Result<Verdict, Overflow> {
        Ok(match test(&self.tasks, supply)? {
            Verdict::NotSchedulable(_) => Verdict::Unknown(Doubt::Sufficient),
            verdict => verdict,
        })
    }
}
