//! What kind of sets is drawn.

use laxity_model::analysis::{Preemption, Task, TaskError};
use laxity_model::{Service, Span};

use super::{BoundedSimplex, Draws, Periods, uunifast, uunifast_discard};

/// Into so many steps the sum of utilizations is divided where each has a bound of its own.
const STEPS: usize = 10_000;

/// What kind of sets is drawn.
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
    /// Their deadlines.
    pub deadlines: Deadlines,
    /// How late they are released.
    pub jitter: Jitter,
    /// Where they cannot be preempted.
    pub regions: Regions,
}

/// How a sum of utilizations is divided among tasks: uniform over all ways there are.
#[derive(Clone, PartialEq, Debug)]
pub enum Shares {
    /// Without bounds: [`uunifast()`].
    Any,
    /// None above this: [`uunifast_discard()`].
    UpTo(f64),
    /// A bound for each task: [`BoundedSimplex`], in 10,000 steps.
    Within(Vec<f64>),
}

/// When jobs are due.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Deadlines {
    /// When their period ends.
    Implicit,
    /// Uniform over the whole ticks from C + part · (T − C) to T.
    Constrained {
        /// From 0 to 1.
        part: f64,
    },
}

/// How long after its arrival a job may be released.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Jitter {
    /// Not at all.
    None,
    /// The bound of each task is uniform over the whole ticks from 0 to this part of its period.
    UpTo(f64),
}

/// Where tasks cannot be preempted. Regions are rounded down to ticks, and at least one tick.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Regions {
    /// Nowhere: preemptible anywhere.
    None,
    /// In regions of up to this part of C, wherever.
    Floating(f64),
    /// Cut into regions of this part of C, also the last.
    Cut(f64),
    /// Everywhere.
    All,
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
    /// Nearly everything is discarded.
    #[error("100,000 vectors of utilizations in a row had one above its bound")]
    TooRare,
    /// The numbers are no task.
    #[error(transparent)]
    Task(#[from] TaskError),
}

impl Recipe {
    /// Checks the recipe and prepares to draw.
    ///
    /// # Errors
    ///
    /// What cannot be drawn: all but [`RecipeError::TooRare`].
    pub fn generator(self) -> Result<Generator, RecipeError> {
        let positive = self.utilization.is_finite() && self.utilization > 0.0;
        if !positive || self.tasks == 0 {
            return Err(RecipeError::Number(
                "the utilization of a set with tasks in it",
                self.utilization,
            ));
        }
        self.periods.check()?;
        if let Deadlines::Constrained { part } = self.deadlines {
            within("the least deadline's part of T - C", part)?;
        }
        if let Jitter::UpTo(part) = self.jitter {
            within("the jitter's part of the period", part)?;
        }
        self.regions.check()?;
        let simplex = match &self.shares {
            Shares::Any => None,
            Shares::UpTo(limit) => {
                if limit * self.tasks as f64 >= self.utilization {
                    None
                } else {
                    return Err(RecipeError::Impossible);
                }
            }
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

fn within(what: &'static str, part: f64) -> Result<(), RecipeError> {
    if (0.0..=1.0).contains(&part) {
        Ok(())
    } else {
        Err(RecipeError::Number(what, part))
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
    /// One set, its tasks in the order in which they were drawn. First all utilizations are drawn, then all periods, deadlines and
    /// jitters, so recipes that differ in the utilization, the range of the periods or the regions only draw sets that belong together.
    ///
    /// # Errors
    ///
    /// [`RecipeError::TooRare`], with [`Shares::UpTo`] a limit that hardly any vector keeps.
    pub fn draw(&self, draws: &mut Draws) -> Result<Vec<Task>, RecipeError> {
        let recipe = &self.recipe;
        let (count, total) = (recipe.tasks, recipe.utilization);
        let utilizations = match (&self.simplex, &recipe.shares) {
            (Some(simplex), _) => simplex.draw(draws),
            (None, Shares::UpTo(limit)) => uunifast_discard(count, total, *limit, draws)?,
            (None, _) => uunifast(count, total, draws),
        };
        let periods: Vec<Span> = (0..count).map(|_| recipe.periods.draw(draws)).collect();
        let mut tasks = Vec::with_capacity(count);
        for (utilization, period) in utilizations.into_iter().zip(periods) {
            let cost = libm::floor(utilization * period.as_nanos() as f64) as u64;
            let task = Task::new(Service::from_nanos(cost.max(1)), period)?;
            tasks.push(task);
        }
        for task in &mut tasks {
            *task = recipe.deadlines.apply(*task, draws)?;
        }
        for task in &mut tasks {
            *task = recipe.jitter.apply(*task, draws);
        }
        recipe.regions.apply(&tasks)
    }
}

impl Deadlines {
    fn apply(self, task: Task, draws: &mut Draws) -> Result<Task, RecipeError> {
        let Self::Constrained { part } = self else {
            return Ok(task);
        };
        let (cost, period) = (task.cost().as_nanos(), task.period().as_nanos());
        let slack = period.saturating_sub(cost);
        // Rounded up, so never below the bound.
        let least = (cost + libm::ceil(part * slack as f64) as u64).min(period);
        let deadline = Span::from_nanos(draws.between(least, period));
        Ok(task.with_deadline(deadline)?)
    }
}

impl Jitter {
    fn apply(self, task: Task, draws: &mut Draws) -> Task {
        match self {
            Self::None => task,
            Self::UpTo(part) => {
                let most = libm::floor(part * task.period().as_nanos() as f64) as u64;
                task.with_jitter(Span::from_nanos(draws.between(0, most)))
            }
        }
    }
}

impl Regions {
    fn check(self) -> Result<(), RecipeError> {
        match self {
            Self::Floating(part) | Self::Cut(part) => {
                within("a non-preemptive region's part of C", part)
            }
            Self::None | Self::All => Ok(()),
        }
    }

    /// The same tasks with these regions.
    ///
    /// # Errors
    ///
    /// [`RecipeError::Number`] for a part that is not in [0, 1].
    pub fn apply(self, tasks: &[Task]) -> Result<Vec<Task>, RecipeError> {
        self.check()?;
        let region = |task: &Task, part: f64| {
            let cost = task.cost().as_nanos();
            let region = libm::floor(part * cost as f64) as u64;
            Service::from_nanos(region.clamp(1, cost))
        };
        let apply = |task: &Task| {
            let preemption = match self {
                Self::None => Preemption::Anywhere,
                Self::Floating(part) => Preemption::Floating {
                    longest: region(task, part),
                },
                Self::Cut(part) => Preemption::Fixed {
                    longest: region(task, part),
                    last: region(task, part),
                },
                Self::All => Preemption::Never,
            };
            Ok(task.with_preemption(preemption)?)
        };
        tasks.iter().map(apply).collect()
    }
}
