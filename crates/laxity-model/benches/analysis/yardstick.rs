//! Response times by priority and the demand tests as one would write them down: one division a task a step, nothing prepared but the numbers.

use laxity_model::analysis::Task;

/// A set in plain numbers.
pub(crate) struct Plain(Vec<[u64; 4]>);

impl Plain {
    /// Of a set without jitter.
    pub(crate) fn new(tasks: &[Task]) -> Self {
        let numbers = |task: &Task| {
            let (cost, period) = (task.cost().as_nanos(), task.period().as_nanos());
            [
                cost,
                period,
                task.deadline().as_nanos(),
                task.blocking().as_nanos(),
            ]
        };
        Self(tasks.iter().map(numbers).collect())
    }

    /// Σ of all response times by priority, the highest first, without regions: job by job to the end of each busy window (Lehoczky 1990).
    pub(crate) fn response_times(&self) -> u64 {
        // No first job of a task is done before that of the task above it and its own work.
        let (mut sum, mut least) = (0, 0);
        for index in 0..self.0.len() {
            let (longest, first) = self.response_time(index, least);
            (sum, least) = (sum + longest, first);
        }
        sum
    }

    /// Whether all meet their deadlines: the same, no further than to the first that does not.
    pub(crate) fn meets_deadlines(&self) -> bool {
        let mut all = self.0.iter().enumerate();
        all.all(|(index, [_, _, deadline, _])| self.response_time(index, 0).0 <= *deadline)
    }

    /// The longest, and that of the first job, which is longer than `least`.
    fn response_time(&self, index: usize, least: u64) -> (u64, u64) {
        let (more_urgent, [cost, period, ..]) = (&self.0[..index], self.0[index]);
        let less_urgent = self.0[index + 1..].iter();
        let mut demand = less_urgent
            .map(|[.., blocking]| *blocking)
            .max()
            .unwrap_or(0);
        let (mut longest, mut window, mut first) = (0, least + cost, 0);
        for arrival in (0..).step_by(usize::try_from(period).expect("64 bits")) {
            demand += cost;
            window = window.max(demand);
            loop {
                let asked = more_urgent
                    .iter()
                    .map(|[cost, period, ..]| u64::div_ceil(window, *period) * cost);
                let next = demand + asked.sum::<u64>();
                if next == window {
                    break;
                }
                window = next;
            }
            longest = longest.max(window - arrival);
            first = if arrival == 0 { window } else { first };
            if window <= arrival + period {
                break;
            }
        }
        (longest, first)
    }

    fn demand(&self, time: u64) -> u64 {
        let due = self
            .0
            .iter()
            .filter(|[_, _, deadline, _]| *deadline <= time);
        due.map(|[cost, period, deadline, _]| ((time - deadline) / period + 1) * cost)
            .sum()
    }

    fn blocking(&self, time: u64) -> u64 {
        let later = self.0.iter().filter(|[_, _, deadline, _]| *deadline > time);
        later
            .map(|[_, _, _, blocking]| *blocking)
            .max()
            .unwrap_or(0)
    }

    /// The last deadline before a time.
    fn before(&self, time: u64) -> u64 {
        let due = self.0.iter().filter(|[_, _, deadline, _]| *deadline < time);
        due.map(|[_, period, deadline, _]| time - 1 - (time - 1 - deadline) % period)
            .max()
            .unwrap_or(0)
    }

    /// The shorter of the busy window and the bound from utilizations (Zhang, Burns 2009).
    fn horizon(&self) -> u64 {
        let load: f64 = self
            .0
            .iter()
            .map(|[cost, period, ..]| *cost as f64 / *period as f64)
            .sum();
        let early = |[cost, period, deadline, _]: &[u64; 4]| {
            (*period as f64 - *deadline as f64) * *cost as f64 / *period as f64
        };
        let linear = self.0.iter().map(early).sum::<f64>() / (1.0 - load);
        let latest = self
            .0
            .iter()
            .map(|[_, _, deadline, _]| *deadline)
            .max()
            .unwrap_or(0);
        let linear = (linear as u64 + 1).max(latest);
        let mut busy = self.0.iter().map(|[cost, ..]| cost).sum();
        loop {
            let request: u64 = self
                .0
                .iter()
                .map(|[cost, period, ..]| u64::div_ceil(busy, *period) * cost)
                .sum();
            if request == busy || busy > linear {
                return busy.min(linear);
            }
            busy = request;
        }
    }

    /// Quick processor-demand analysis, without regions.
    pub(crate) fn quick_test(&self) -> bool {
        let first = self
            .0
            .iter()
            .map(|[_, _, deadline, _]| *deadline)
            .min()
            .unwrap_or(0);
        let mut time = self.before(self.horizon() + 1);
        loop {
            let demand = self.demand(time);
            if demand <= first && demand <= time {
                return true;
            }
            if demand > time {
                return false;
            }
            time = if demand < time {
                demand
            } else {
                self.before(time)
            };
        }
    }

    /// Every deadline up to the horizon, with regions.
    pub(crate) fn scan(&self) -> bool {
        let horizon = self.horizon();
        let mut next: Vec<u64> = self.0.iter().map(|[_, _, deadline, _]| *deadline).collect();
        let mut demand = 0;
        loop {
            let Some(time) = next.iter().copied().min().filter(|time| *time <= horizon) else {
                return true;
            };
            for (next, [cost, period, ..]) in next.iter_mut().zip(&self.0) {
                if *next == time {
                    demand += cost;
                    *next += period;
                }
            }
            if demand + self.blocking(time) > time {
                return false;
            }
        }
    }
}
