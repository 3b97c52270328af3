//! What kind of sets is drawn.

use laxity_model::Service;
use laxity_model::analysis::{Task, TaskError};

use super::{Draws, Periods, uunifast};

/// What kind of sets is drawn: preemptible tasks, due when their period ends. Deadlines, jitter and regions are the tasks' own affair
/// ([`Task::with_deadline`] and its like).
#[derive(Clone, PartialEq, Debug)]
pub struct Recipe {
    /// How many tasks a set has.
    pub tasks: usize,
    /// The sum of their utilizations, divided by [`uunifast()`]. What is drawn is never above it by more than rounding of floats, unless an
    /// execution time had to be raised to one tick (which adds at most 1/T for each such task), and less than Σ 1/T below it, T in
    /// nanoseconds: C is rounded down.
    pub utilization: f64,
    /// Their periods.
    pub periods: Periods,
}

/// Why no set can be drawn.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum RecipeError {
    /// There are no tasks, or this is no utilization.
    #[error("the utilization of a set with tasks in it cannot be {0}")]
    Utilization(f64),
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
    /// The numbers are no task.
    #[error(transparent)]
    Task(#[from] TaskError),
}

impl Recipe {
    /// One set, its tasks in the order in which they were drawn. First all utilizations are drawn, then all periods, so recipes that differ
    /// in the utilization or the range of the periods only draw sets that belong together.
    ///
    /// # Errors
    ///
    /// What cannot be drawn.
    pub fn draw(&self, draws: &mut Draws) -> Result<Vec<Task>, RecipeError> {
        let positive = self.utilization.is_finite() && self.utilization > 0.0;
        if !positive || self.tasks == 0 {
            return Err(RecipeError::Utilization(self.utilization));
        }
        self.periods.check()?;
        let utilizations = uunifast(self.tasks, self.utilization, draws);
        let tasks = utilizations.into_iter().map(|utilization| {
            let period = self.periods.draw(draws);
            let cost = libm::floor(utilization * period.as_nanos() as f64) as u64;
            Ok(Task::new(Service::from_nanos(cost.max(1)), period)?)
        });
        tasks.collect()
    }
}
