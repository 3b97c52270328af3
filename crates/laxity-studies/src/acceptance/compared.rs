//! The tests that are compared.

use laxity_model::Service;
use laxity_model::analysis::supply::Dedicated;
use laxity_model::analysis::{
    Doubt, Overflow, Preemption, Search, Task, TaskError, Verdict, edf, fixed_priority, utilization,
};
use serde::Deserialize;

/// One task set by rate, the shortest period first, in each of the ways that a test may take its regions.
#[derive(Clone, Debug)]
pub struct Variants {
    /// Preemptible anywhere.
    preemptive: Vec<Task>,
    /// With regions of up to q, wherever they are.
    floating: Vec<Task>,
    /// Cut into regions of q; the last is one of them.
    cut: Vec<Task>,
}

impl Variants {
    /// A set with regions of this part (0 to 1) of each execution time, rounded down to ticks, and at least one tick; none for a part of
    /// zero.
    ///
    /// # Errors
    ///
    /// [`TaskError`], never for such a part.
    pub fn new(mut tasks: Vec<Task>, part: f64) -> Result<Self, TaskError> {
        tasks.sort_by_key(Task::period);
        let with = |preemption: fn(Service) -> Preemption| -> Result<Vec<Task>, TaskError> {
            let regions = tasks.iter().map(|task| {
                let cost = task.cost().as_nanos();
                let region = (part * cost as f64) as u64;
                let region = Service::from_nanos(region.clamp(1, cost));
                task.with_preemption(match part > 0.0 {
                    true => preemption(region),
                    false => Preemption::Anywhere,
                })
            });
            regions.collect()
        };
        Ok(Self {
            floating: with(|longest| Preemption::Floating { longest })?,
            cut: with(|longest| Preemption::Fixed {
                longest,
                last: longest,
            })?,
            preemptive: tasks,
        })
    }
}

/// What a test says of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Schedulable.
    Accepts,
    /// Not schedulable, or not so as far as a sufficient test can tell.
    Rejects,
    /// The set is not what the test is made for, or the search was given up, or a number did not fit.
    Undecided,
}

/// The tests, in the order of columns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// Liu, Layland.
    LiuLayland,
    /// The hyperbolic bound.
    Hyperbolic,
    /// Sha, Rajkumar, Lehoczky, with one sum for all.
    BlockingSummed,
    /// Gopalakrishnan, Parulkar.
    Rmdp,
    /// Sha, Rajkumar, Lehoczky, task by task.
    BlockingPerTask,
    /// The hyperbolic bound, with blocking.
    HyperbolicWithBlocking,
    /// Response times, with regions wherever they are.
    FpFloating,
    /// Response times, with the last region fixed.
    FpLastRegion,
    /// The same with the best priorities.
    FpLastRegionBestOrder,
    /// Response times, preemptive.
    FpPreemptive,
    /// Response times, with the best final regions and priorities.
    FpFinalRegions,
    /// Demand, with regions wherever they are.
    EdfFloating,
    /// Demand, preemptive.
    EdfPreemptive,
}

/// So many tests are compared.
pub const COUNT: usize = Test::EdfPreemptive as usize + 1;

impl Test {
    /// Asks it of a set.
    pub fn ask(self, set: &Variants) -> Answer {
        let Variants {
            preemptive,
            floating,
            cut,
        } = set;
        let best = fixed_priority::best_order_with_final_regions;
        match self {
            Self::LiuLayland => verdict(utilization::liu_layland(preemptive)),
            Self::Hyperbolic => verdict(utilization::hyperbolic(preemptive)),
            Self::BlockingSummed => verdict(utilization::blocking_summed(floating)),
            Self::Rmdp => verdict(utilization::rmdp(floating)),
            Self::BlockingPerTask => verdict(utilization::blocking_per_task(floating)),
            Self::HyperbolicWithBlocking => {
                verdict(utilization::hyperbolic_with_blocking(floating))
            }
            Self::FpFloating => verdict(fixed_priority::test(floating, &Dedicated)),
            Self::FpLastRegion => verdict(fixed_priority::test(cut, &Dedicated)),
            Self::FpLastRegionBestOrder => exists(&fixed_priority::best_order(cut, &Dedicated)),
            Self::FpPreemptive => verdict(fixed_priority::test(preemptive, &Dedicated)),
            Self::FpFinalRegions => exists(&best(preemptive, &Dedicated)),
            Self::EdfFloating => verdict(edf::test(floating, &Dedicated)),
            Self::EdfPreemptive => verdict(edf::test(preemptive, &Dedicated)),
        }
    }
}

fn verdict(answer: Result<Verdict, Overflow>) -> Answer {
    match answer {
        Ok(Verdict::Schedulable) => Answer::Accepts,
        Ok(Verdict::NotSchedulable(_) | Verdict::Unknown(Doubt::Sufficient)) => Answer::Rejects,
        Ok(Verdict::Unknown(Doubt::OutOfScope | Doubt::TooLong)) | Err(_) => Answer::Undecided,
    }
}

fn exists<T>(answer: &Result<Search<T>, Overflow>) -> Answer {
    match answer {
        Ok(Search::Found(_)) => Answer::Accepts,
        Ok(Search::None) => Answer::Rejects,
        Ok(Search::Unknown(_)) | Err(_) => Answer::Undecided,
    }
}
