//! What is analysed: a recurring task.

use core::fmt;
use core::num::NonZeroU64;

use crate::{Service, Span};

/// Where a job may be preempted.
///
/// A region of length q that has begun when a more urgent job is released keeps it waiting for at most q less one tick: it began at
/// least one tick before.
///
/// How long regions are is not known exactly of most programs. What is safe to say is two different things: `longest` is an **upper
/// bound** on every region of every job, because a region keeps others waiting; `last` is a **lower bound** on the last region of
/// every job, because nothing can preempt a job any more once that has begun, which is in its own favour. A job that needs its
/// whole C must have it; one that needs x less than C may have a last region that is shorter by up to x. (So
/// [`Self::Never`] is safe if C is only an upper bound, and so are jobs that end early between two points.) A last region said to be
/// longer than it is makes a bound too short. [`Self::Floating`] claims nothing of the last region, and is safe where nobody knows.
///
/// ```
/// use laxity_model::analysis::{Preemption, Task, fixed_priority, supply::Dedicated};
/// use laxity_model::{Service, Span};
///
/// let task = |cost, period| Task::new(Service::from_nanos(cost), Span::from_nanos(period));
/// let response = |last| {
///     let (longest, last) = (Service::from_nanos(3), Service::from_nanos(last));
///     let cut = task(6, 20)?.with_preemption(Preemption::Fixed { longest, last })?;
///     let response = fixed_priority::response_time(&[task(2, 6)?, cut], 1, &Dedicated)?;
///     Ok::<_, Box<dyn std::error::Error>>(response.bound().map(|bound| bound.from_arrival))
/// };
/// assert_eq!(response(3)?, Some(Span::from_nanos(8)));
/// assert_eq!(response(2)?, Some(Span::from_nanos(10)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Preemption {
    /// Anywhere, at once.
    #[default]
    Anywhere,
    /// It has non-preemptive regions, none longer than this, but nobody knows where (short critical sections, system calls).
    Floating {
        /// No region is longer, in any job.
        longest: Service,
    },
    /// It is cut at known points (a handler that looks after every so many packets whether it should yield: the *quantum* of
    /// Gopalakrishnan, Parulkar, "Real-time Upcalls", §5).
    Fixed {
        /// No region between two points is longer, in any job. Of a job cut into k equal parts, ⌈C/k⌉.
        longest: Service,
        /// The region after the last point is no shorter in any job that needs C, and no shorter than this less x in one that needs
        /// C − x. Of a job cut every `longest` that is what is left of C after whole regions, which may be less than `longest`; of
        /// one cut into k equal parts, ⌊C/k⌋.
        last: Service,
    },
    /// Not at all: one region from its beginning to its end, however much of C it needs.
    Never,
}

/// A task that releases jobs again and again, independent of all others.
///
/// Jobs arrive at least T apart; each is released (ready to run) at most J after it arrives, needs at most C of service, and is due D
/// after it *arrived*. D may be less than, equal to or more than T; a task's own jobs run in the order of arrival.
///
/// Of a task with a [burst](Self::with_burst) of b, up to b jobs may arrive at once: in a window of length Δ > 0 no more than
/// b − 1 + ⌈Δ/T⌉ arrive, however it lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Task {
    cost: Service,
    period: Span,
    burst: NonZeroU64,
    deadline: Span,
    jitter: Span,
    preemption: Preemption,
}

/// Why numbers are no task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TaskError {
    /// C is zero.
    #[error("the execution time must be more than zero")]
    NoCost,
    /// T is zero.
    #[error("the period must be more than zero")]
    NoPeriod,
    /// D is zero.
    #[error("the deadline must be more than zero")]
    NoDeadline,
    /// A region is zero, or longer than the job.
    #[error(
        "a non-preemptive region of {} does not fit an execution time of {}: it must be from 1 ns to that",
        region.beside(*cost), cost.beside(*region)
    )]
    Region {
        /// The region.
        region: Service,
        /// C.
        cost: Service,
    },
    /// The last region is longer than the longest.
    #[error(
        "the last non-preemptive region, {}, is longer than the longest, {}",
        last.beside(*longest), longest.beside(*last)
    )]
    LastRegion {
        /// The last region.
        last: Service,
        /// The longest.
        longest: Service,
    },
}

impl Task {
    /// A task of at most `cost` of service every `period` or less often, due a period after it arrives, preemptible anywhere,
    /// released as it arrives.
    pub const fn new(cost: Service, period: Span) -> Result<Self, TaskError> {
        if cost.is_zero() {
            return Err(TaskError::NoCost);
        }
        if period.is_zero() {
            return Err(TaskError::NoPeriod);
        }
        Ok(Self {
            cost,
            period,
            burst: NonZeroU64::MIN,
            deadline: period,
            jitter: Span::ZERO,
            preemption: Preemption::Anywhere,
        })
    }

    /// The same task, due this long after it arrives.
    pub const fn with_deadline(mut self, deadline: Span) -> Result<Self, TaskError> {
        if deadline.is_zero() {
            return Err(TaskError::NoDeadline);
        }
        self.deadline = deadline;
        Ok(self)
    }

    /// The same task, released up to this long after it arrives.
    #[must_use]
    pub const fn with_jitter(mut self, jitter: Span) -> Self {
        self.jitter = jitter;
        self
    }

    /// The same task, of which up to so many jobs may arrive at once: the arrivals of a *linear bounded arrival process* of this burst and a
    /// rate of 1/T (Cruz, "A calculus for network delay", IEEE Trans. Information Theory 37(1), 1991; Anderson, "Metascheduling for
    /// continuous media", ACM TOCS 11(3), 1993), a leaky bucket. Each is due D after it arrived itself.
    ///
    /// ```
    /// use laxity_model::analysis::{Task, fixed_priority, supply::Dedicated};
    /// use laxity_model::{Service, Span};
    ///
    /// // Packets of 120 us of work, one every millisecond, but up to four back to back.
    /// let packets = Task::new(Service::from_micros(120), Span::from_millis(1))?.with_burst(4.try_into()?);
    /// let response = fixed_priority::response_time(&[packets], 0, &Dedicated)?;
    /// assert_eq!(response.bound().map(|bound| bound.from_arrival), Some(Span::from_micros(480)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn with_burst(mut self, burst: NonZeroU64) -> Self {
        self.burst = burst;
        self
    }

    /// The same task with the least burst that covers an arrival curve: of each point (n, δ), that n jobs in a row never arrive within less
    /// than δ from the first to the last, while after the last point a job comes every T at most. Points as they rise; none, and
    /// jobs come one by one. Where the curve bends more than once a task is more than it says, never less.
    ///
    /// ```
    /// use laxity_model::analysis::Task;
    /// use laxity_model::{Service, Span};
    ///
    /// let ms = Span::from_millis;
    /// let task = Task::new(Service::from_micros(10), ms(10))?;
    /// // Two may come at once, a third 3 ms later at the earliest, a fourth 20 ms after the first.
    /// assert_eq!(task.with_arrivals([(2, ms(0)), (3, ms(3)), (4, ms(20))]).burst().get(), 3);
    /// assert_eq!(task.with_arrivals([(2, ms(10)), (3, ms(20))]).burst().get(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_arrivals(self, points: impl IntoIterator<Item = (u64, Span)>) -> Self {
        // Just after a point's δ there may be one less than the next point has, and after the last one as many as it has itself.
        let mut burst = 1;
        let mut before = Span::ZERO;
        let mut most = 1;
        for (jobs, within) in points {
            let fewer = jobs.saturating_sub(1);
            burst = fewer.saturating_sub(before / self.period).max(burst);
            (most, before) = (jobs, within);
        }
        burst = most.saturating_sub(before / self.period).max(burst);
        self.with_burst(NonZeroU64::new(burst).unwrap_or(NonZeroU64::MIN))
    }

    /// The same task, with non-preemptive regions.
    pub fn with_preemption(mut self, preemption: Preemption) -> Result<Self, TaskError> {
        let fits = |region: Service| {
            let cost = self.cost;
            if region.is_zero() || region > cost {
                Err(TaskError::Region { region, cost })
            } else {
                Ok(())
            }
        };
        match preemption {
            Preemption::Anywhere | Preemption::Never => {}
            Preemption::Floating { longest } => fits(longest)?,
            Preemption::Fixed { longest, last } => {
                fits(longest)?;
                fits(last)?;
                if last > longest {
                    return Err(TaskError::LastRegion { last, longest });
                }
            }
        }
        self.preemption = preemption;
        Ok(self)
    }

    /// The same task, preemptible anywhere.
    #[must_use]
    pub const fn without_regions(&self) -> Self {
        Self {
            preemption: Preemption::Anywhere,
            ..*self
        }
    }

    /// The same task, of at most this much service; regions longer than that are cut to it.
    pub fn with_cost(mut self, cost: Service) -> Result<Self, TaskError> {
        if cost.is_zero() {
            return Err(TaskError::NoCost);
        }
        self.cost = cost;
        self.preemption = match self.preemption {
            Preemption::Floating { longest } => Preemption::Floating {
                longest: longest.min(cost),
            },
            Preemption::Fixed { longest, last } => Preemption::Fixed {
                longest: longest.min(cost),
                last: last.min(cost),
            },
            whole @ (Preemption::Anywhere | Preemption::Never) => whole,
        };
        Ok(self)
    }

    /// The same task, any known region of which may take so much longer, up to its whole C; the last one is as long as it was at the least.
    #[must_use]
    pub fn with_longer_regions(mut self, by: Service) -> Self {
        let cost = self.cost;
        let longer = |region: Service| region.checked_add(by).map_or(cost, |long| long.min(cost));
        self.preemption = match self.preemption {
            Preemption::Floating { longest } => Preemption::Floating {
                longest: longer(longest),
            },
            Preemption::Fixed { longest, last } => Preemption::Fixed {
                longest: longer(longest),
                last,
            },
            whole @ (Preemption::Anywhere | Preemption::Never) => whole,
        };
        self
    }

    /// C: the most service that a job needs.
    #[inline]
    pub const fn cost(&self) -> Service {
        self.cost
    }

    /// T: jobs arrive at least this far apart.
    #[inline]
    pub const fn period(&self) -> Span {
        self.period
    }

    /// b: so many jobs may arrive at once.
    #[inline]
    pub const fn burst(&self) -> NonZeroU64 {
        self.burst
    }

    /// J + (b − 1)·T: what is released in a window of length t > 0 is what a task without a burst, but with this jitter, would release. In
    /// nanoseconds.
    #[inline]
    pub(super) fn ahead(&self) -> u128 {
        let more = u128::from(self.burst.get() - 1) * u128::from(self.period.as_nanos());
        u128::from(self.jitter.as_nanos()).saturating_add(more)
    }

    /// Whether jobs are released one by one, as they arrive: no jitter and no burst.
    pub(super) const fn is_regular(&self) -> bool {
        self.jitter.is_zero() && self.burst.get() == 1
    }

    /// D: a job is due this long after it arrived.
    #[inline]
    pub const fn deadline(&self) -> Span {
        self.deadline
    }

    /// J: a job is released at most this long after it arrived.
    #[inline]
    pub const fn jitter(&self) -> Span {
        self.jitter
    }

    /// Where a job may be preempted.
    #[inline]
    pub const fn preemption(&self) -> Preemption {
        self.preemption
    }

    /// The most service for which a job, once it runs, can keep a more urgent one waiting: its longest region less one tick.
    #[inline]
    pub const fn blocking(&self) -> Service {
        match self.longest_region() {
            Service::ZERO => Service::ZERO,
            longest => Service::from_nanos(longest.as_nanos() - 1),
        }
    }

    /// The most service that a job takes without being preemptible; zero where it always is.
    #[inline]
    pub const fn longest_region(&self) -> Service {
        match self.preemption {
            Preemption::Anywhere => Service::ZERO,
            Preemption::Floating { longest } | Preemption::Fixed { longest, .. } => longest,
            Preemption::Never => self.cost,
        }
    }

    /// How many regions a job has that needs C: as few as can be, where nobody knows how it is cut, and one where it is not.
    #[inline]
    pub const fn regions(&self) -> u64 {
        let cost = self.cost.as_nanos();
        match self.preemption {
            Preemption::Anywhere | Preemption::Never => 1,
            Preemption::Floating { longest } => cost.div_ceil(longest.as_nanos()),
            Preemption::Fixed { longest, last } => {
                (cost - last.as_nanos()).div_ceil(longest.as_nanos()) + 1
            }
        }
    }

    /// What of a job can no longer be preempted once its last region has run for one tick: that region less one tick, where it is
    /// known; zero where regions float.
    #[inline]
    pub const fn tail(&self) -> Service {
        let last = match self.preemption {
            Preemption::Anywhere | Preemption::Floating { .. } => return Service::ZERO,
            Preemption::Fixed { last, .. } => last,
            Preemption::Never => self.cost,
        };
        Service::from_nanos(last.as_nanos() - 1)
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} every {}", self.cost, self.period)?;
        if self.burst.get() > 1 {
            write!(f, ", up to {} at once", self.burst)?;
        }
        if self.deadline != self.period {
            write!(f, ", due in {}", self.deadline)?;
        }
        if !self.jitter.is_zero() {
            write!(f, ", released up to {} late", self.jitter)?;
        }
        match self.preemption {
            Preemption::Anywhere => Ok(()),
            Preemption::Floating { longest } => {
                write!(f, ", not preemptible for up to {longest}")
            }
            Preemption::Fixed { longest, last } => {
                write!(f, ", preemptible every {longest}, the last {last} not")
            }
            Preemption::Never => f.write_str(", not preemptible"),
        }
    }
}

/// The most service for which a job of a less urgent task can block, asked of one task after the other: nothing is written down, and next to
/// nothing looked at again.
#[derive(Clone, Copy)]
pub(super) struct Blocking<'a> {
    tasks: &'a [Task],
    most: Service,
    /// Of those who block for so long, the least urgent one.
    last: usize,
}

impl<'a> Blocking<'a> {
    /// Of tasks given by priority, the highest first.
    pub(super) const fn new(tasks: &'a [Task]) -> Self {
        Self {
            tasks,
            most: Service::ZERO,
            last: 0,
        }
    }

    /// The most for which this task, no more urgent than the one before, can be blocked.
    #[inline]
    pub(super) fn of(&mut self, index: usize) -> Service {
        if index >= self.last {
            (self.most, self.last) = (Service::ZERO, usize::MAX);
            for (place, task) in self.tasks.iter().enumerate().skip(index + 1) {
                let blocking = task.blocking();
                if blocking >= self.most && !blocking.is_zero() {
                    (self.most, self.last) = (blocking, place);
                }
            }
        }
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn task() -> Task {
        Task::new(Service::from_millis(2), Span::from_millis(8)).expect("a task")
    }

    #[test]
    fn what_is_no_task_is_refused() {
        let (cost, period) = (Service::from_millis(2), Span::from_millis(8));
        assert_eq!(Task::new(Service::ZERO, period), Err(TaskError::NoCost));
        assert_eq!(Task::new(cost, Span::ZERO), Err(TaskError::NoPeriod));
        assert_eq!(task().with_deadline(Span::ZERO), Err(TaskError::NoDeadline));
        let longest = Service::from_millis(3);
        assert_eq!(
            task().with_preemption(Preemption::Floating { longest }),
            Err(TaskError::Region {
                region: longest,
                cost
            })
        );
        let (longest, last) = (Service::from_millis(1), cost);
        assert_eq!(
            task().with_preemption(Preemption::Fixed { longest, last }),
            Err(TaskError::LastRegion { last, longest })
        );
    }

    #[test]
    fn a_region_that_has_begun_blocks_for_one_tick_less() {
        let never = task().with_preemption(Preemption::Never).expect("fits");
        assert_eq!(never.blocking(), Service::from_nanos(1_999_999));
        assert_eq!(never.tail(), never.blocking());
        assert_eq!(task().blocking(), Service::ZERO);
        assert_eq!(never.to_string(), "2ms every 8ms, not preemptible");
    }
}
