//! The tests that are compared.

use laxity_model::analysis::supply::Dedicated;
use laxity_model::analysis::{
    Doubt, Overflow, Search, Task, Verdict, edf, fixed_priority, utilization,
};

use laxity_lab::workload::{RecipeError, Regions};

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
    /// A set with regions of this part of each execution time; none for a part of zero.
    ///
    /// # Errors
    ///
    /// [`RecipeError::Number`] for a part outside [0, 1].
    pub fn new(mut tasks: Vec<Task>, part: f64) -> Result<Self, RecipeError> {
        tasks.sort_by_key(Task::period);
        let [floating, cut] = if part > 0.0 {
            [Regions::Floating(part), Regions::Cut(part)]
        } else {
            [Regions::None; 2]
        };
        Ok(Self {
            floating: floating.apply(&tasks)?,
            cut: cut.apply(&tasks)?,
            preemptive: Regions::None.apply(&tasks)?,
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

/// How a test is asked of a set.
pub type Ask = fn(&Variants) -> Answer;

/// So many tests are compared.
pub const COUNT: usize = 13;

/// The keys of the tests, in the order of columns, and how each is asked.
pub const TESTS: [(&str, Ask); COUNT] = [
    ("liu_layland", |set| {
        verdict(utilization::liu_layland(&set.preemptive))
    }),
    ("hyperbolic", |set| {
        verdict(utilization::hyperbolic(&set.preemptive))
    }),
    ("blocking_summed", |set| {
        verdict(utilization::blocking_summed(&set.floating))
    }),
    ("rmdp", |set| verdict(utilization::rmdp(&set.floating))),
    ("blocking_per_task", |set| {
        verdict(utilization::blocking_per_task(&set.floating))
    }),
    ("hyperbolic_with_blocking", |set| {
        verdict(utilization::hyperbolic_with_blocking(&set.floating))
    }),
    ("fp_floating", |set| {
        verdict(fixed_priority::test(&set.floating, &Dedicated))
    }),
    ("fp_last_region", |set| {
        verdict(fixed_priority::test(&set.cut, &Dedicated))
    }),
    ("fp_last_region_best_order", |set| {
        exists(&fixed_priority::best_order(&set.cut, &Dedicated))
    }),
    ("fp_preemptive", |set| {
        verdict(fixed_priority::test(&set.preemptive, &Dedicated))
    }),
    ("fp_final_regions", |set| {
        let tasks = &set.preemptive;
        exists(&fixed_priority::best_order_with_final_regions(
            tasks, &Dedicated,
        ))
    }),
    ("edf_floating", |set| {
        verdict(edf::test(&set.floating, &Dedicated))
    }),
    ("edf_preemptive", |set| {
        verdict(edf::test(&set.preemptive, &Dedicated))
    }),
];

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

/// The place of a test in [`TESTS`].
///
/// # Panics
///
/// If no test has this key, which is a mistake in a table here.
#[must_use]
pub fn index(key: &str) -> usize {
    let found = TESTS.iter().position(|(of, _)| *of == key);
    found.unwrap_or_else(|| panic!("no test is called {key}"))
}
