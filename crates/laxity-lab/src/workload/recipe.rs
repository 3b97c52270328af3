//! What kind of sets is drawn.

use laxity_model::Service;
use laxity_model::analysis::{Task, TaskError};

use super::{BoundedSimplex, Draws, Periods, uunifast};

/// Into so many steps the sum of utilizations is divided where each has a bound of its own.
const STEPS: usize = 10_000;

/// What kind of sets is drawn: preemptible tasks, due when their period ends. Deadlines, jitter and regions are the tasks' own affair
/// ([`Task::with_deadline`] and its like).
#[derive(Clone, PartialEq, Debug)]
pub struct Recipe {
    /// How many tasks a set has.
    pub tasks: usize,
    /// The sum of their utilizations. What is drawn is never above it by more than rounding of floats, unless an execution time had to be
    /// raised to one tick (which adds at most 1/T for each such task), and less than Σ 1/T below it, T in nanoseconds: C is rounded down.
    pub utilization: f64,
    /// How the sum is divided among them.
    pub shares: Shares,
    /// Their periods.
    pub periods: Periods,
}

/// How a sum of utilizations is divided among tasks: uniform over all ways there are.
#[derive(Clone, PartialEq, Debug)]
pub enum Shares {
    /// Without bounds: [`uunifast()`].
    Any,
    /// A bound for each task: [`BoundedSimplex`], in 10,000 steps.
    Within(Vec<f64>),
}

/// Why no set can be drawn.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum RecipeError {
    /// A number is out of its range.
    #[error("{0} cannot be {1}")]
    Number(&'static str, f64),
    /// The periods are no range, or are no multiples of the grain.
    #[error(
        "periods from {least} ns to {most} ns in multiples of {grain} ns: the first must be positive and not more than the second, that less than \
         2^53, and both multiples of the third"
    )]
    Periods {
        /// The shortest, in nanoseconds.
        least: u64,
        /// The longest, in nanoseconds.
        most: u64,
        /// Of what they should be multiples, in nanoseconds.
        grain: u64,
    },
    /// There are not as many bounds as tasks.
    #[error("{bounds} bounds of utilization for {tasks} tasks")]
    Bounds {
        /// So many bounds.
        bounds: usize,
        /// So many tasks.
        tasks: usize,
    },
    /// Too many steps for memory, or none.
    #[error("a sum is divided into 1 to 2^20 steps, and fewer for very many tasks")]
    Steps,
    /// The bounds are too low for the sum.
    #[error("the bounds of the utilizations do not add up to their sum")]
    Impossible,
    /// The numbers are no task.
    #[error(transparent)]
    Task(#[from] TaskError),
}

impl Recipe {
    /// Checks the recipe and prepares to draw.
    ///
    /// # Errors
    ///
    /// What cannot be drawn.
    pub fn generator(self) -> Result<Generator, RecipeError> {
        let positive = self.utilization.is_finite() && self.utilization > 0.0;
        if !positive || self.tasks == 0 {
            return Err(RecipeError::Number(
                "the utilization of a set with tasks in it",
                self.utilization,
            ));
        }
        self.periods.check()?;
        let simplex = match &self.shares {
            Shares::Any => None,
            Shares::Within(bounds) if bounds.len() == self.tasks => {
                Some(BoundedSimplex::new(self.utilization, bounds, STEPS)?)
            }
            Shares::Within(bounds) => {
                let (bounds, tasks) = (bounds.len(), self.tasks);
                return Err(RecipeError::Bounds { bounds, tasks });
            }
        };
        Ok(Generator {
            recipe: self,
            simplex,
        })
    }
}

/// Draws sets by a recipe.
#[derive(Clone, Debug)]
pub struct Generator {
    recipe: Recipe,
    /// Where each task has a bound of its own.
    simplex: Option<BoundedSimplex>,
}

impl Generator {
    /// One set, its tasks in the order in which they were drawn. First all utilizations are drawn, then all periods, so recipes that differ
    /// in the utilization or the range of the periods only draw sets that belong together.
    ///
    /// # Errors
    ///
    /// [`RecipeError::Task`], never for periods that were checked.
    pub fn draw(&self, draws: &mut Draws) -> Result<Vec<Task>, RecipeError> {
        let recipe = &self.recipe;
        let utilizations = match &self.simplex {
            Some(simplex) => simplex.draw(draws),
            None => uunifast(recipe.tasks, recipe.utilization, draws),
        };
        let tasks = utilizations.into_iter().map(|utilization| {
            let period = recipe.periods.draw(draws);
            let cost = libm::floor(utilization * period.as_nanos() as f64) as u64;
            Ok(Task::new(Service::from_nanos(cost.max(1)), period)?)
        });
        tasks.collect()
    }
}
