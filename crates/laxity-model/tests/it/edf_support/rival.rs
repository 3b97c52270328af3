//! The response-time-analysis crate: the same sets, its answers.

use laxity_model::analysis::{Preemption, Task};
use response_time_analysis::arrival::Sporadic;
use response_time_analysis::demand::RBF;
use response_time_analysis::time::{Duration, Service};
use response_time_analysis::{edf, fixed_point::SearchResult, wcet};

/// No busy window of a test is longer.
pub(crate) const LIMIT: u64 = 1 << 40;

/// A task's demand as the crate has it.
pub(crate) type Demand = RBF<Sporadic, wcet::Scalar>;

/// A set, prepared for the crate.
pub(crate) struct Rival {
    /// In the order of the set.
    pub(crate) demands: Vec<Demand>,
    deadlines: Vec<Duration>,
    longest: Vec<Service>,
    last: Vec<Service>,
}

/// The bound, in ticks.
pub(crate) fn bound(result: SearchResult) -> u64 {
    result.expect("below the limit").into()
}

impl Rival {
    /// Of a set without jitter.
    pub(crate) fn new(tasks: &[Task]) -> Self {
        let demand = |task: &Task| {
            let arrivals = Sporadic::new_zero_jitter(Duration::from(task.period().as_nanos()));
            RBF::new(
                arrivals,
                wcet::Scalar::new(Service::from(task.cost().as_nanos())),
            )
        };
        let last = |task: &Task| match task.preemption() {
            Preemption::Anywhere | Preemption::Floating { .. } => 1,
            Preemption::Fixed { last, .. } => last.as_nanos(),
            Preemption::Never => task.cost().as_nanos(),
        };
        Self {
            demands: tasks.iter().map(demand).collect(),
            deadlines: tasks
                .iter()
                .map(|task| Duration::from(task.deadline().as_nanos()))
                .collect(),
            longest: tasks
                .iter()
                .map(|task| Service::from(task.blocking().as_nanos() + 1))
                .collect(),
            last: tasks.iter().map(|task| Service::from(last(task))).collect(),
        }
    }

    fn others(&self, index: usize) -> impl Iterator<Item = usize> {
        (0..self.demands.len()).filter(move |other| *other != index)
    }

    /// For each task, those it shares the processor with: preemptible anywhere.
    pub(crate) fn preemptive(&self) -> Vec<Vec<edf::fully_preemptive::Task<'_, Demand>>> {
        let task = |index: usize| edf::fully_preemptive::Task {
            rbf: &self.demands[index],
            deadline: self.deadlines[index],
        };
        let all = 0..self.demands.len();
        all.map(|index| self.others(index).map(task).collect())
            .collect()
    }

    /// Its answer for a task, preemptible as all others.
    pub(crate) fn preemptive_bound(
        &self,
        index: usize,
        others: &[edf::fully_preemptive::Task<'_, Demand>],
    ) -> u64 {
        let task = edf::fully_preemptive::TaskUnderAnalysis {
            rbf: &self.demands[index],
            deadline: self.deadlines[index],
        };
        bound(edf::fully_preemptive::dedicated_uniproc_rta(
            &task,
            others,
            Duration::from(LIMIT),
        ))
    }

    /// For each task, those it shares the processor with: with floating regions.
    pub(crate) fn floating(
        &self,
    ) -> Vec<Vec<edf::floating_nonpreemptive::InterferingTask<'_, Demand>>> {
        let task = |index: usize| edf::floating_nonpreemptive::InterferingTask {
            rbf: &self.demands[index],
            deadline: self.deadlines[index],
            max_np_segment: self.longest[index],
        };
        let all = 0..self.demands.len();
        all.map(|index| self.others(index).map(task).collect())
            .collect()
    }

    /// Its answer for a task with floating regions.
    pub(crate) fn floating_bound(
        &self,
        index: usize,
        others: &[edf::floating_nonpreemptive::InterferingTask<'_, Demand>],
    ) -> u64 {
        let task = edf::floating_nonpreemptive::TaskUnderAnalysis {
            rbf: &self.demands[index],
            deadline: self.deadlines[index],
        };
        bound(edf::floating_nonpreemptive::dedicated_uniproc_rta(
            &task,
            others,
            Duration::from(LIMIT),
        ))
    }

    /// Its answer for a task that is cut at known points.
    pub(crate) fn limited_bound(&self, index: usize) -> u64 {
        use edf::limited_preemptive::{InterferingTask, TaskUnderAnalysis, dedicated_uniproc_rta};
        let task = TaskUnderAnalysis {
            wcet: self.demands[index].wcet,
            arrivals: &self.demands[index].arrival_bound,
            deadline: self.deadlines[index],
            last_np_segment: self.last[index],
        };
        let other = |other: usize| InterferingTask {
            rbf: &self.demands[other],
            deadline: self.deadlines[other],
            max_np_segment: self.longest[other],
        };
        let others: Vec<_> = self.others(index).map(other).collect();
        bound(dedicated_uniproc_rta(&task, &others, Duration::from(LIMIT)))
    }

    /// Its answer for a task that is not preemptible, as all others.
    pub(crate) fn never_bound(&self, index: usize) -> u64 {
        use edf::fully_nonpreemptive::{Task, dedicated_uniproc_rta};
        let task = |index: usize| Task {
            wcet: self.demands[index].wcet,
            arrivals: &self.demands[index].arrival_bound,
            deadline: self.deadlines[index],
        };
        let others: Vec<_> = self.others(index).map(task).collect();
        bound(dedicated_uniproc_rta(
            &task(index),
            &others,
            Duration::from(LIMIT),
        ))
    }
}
