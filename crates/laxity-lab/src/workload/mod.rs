//! Random task sets: from a recipe and a seed to [`Task`]s in whole nanoseconds, the same on every machine.
//!
//! * [`uunifast`]: utilizations with a given sum, uniform over all such vectors; [`Periods`]: log-uniform ones.
//! * [`Recipe`]: both together.
//! * [`Draws`]: the random numbers.
//!
//! Here, unlike in the analysis, are floats: a set is drawn with them and then rounded to ticks, and what is analysed is the rounded set.
//! Functions that libraries differ in (powers, logarithms) come from the `libm` crate, so a seed gives the same set on x86-64 and aarch64.
//!
//! ```
//! use laxity_lab::workload::{Draws, Periods, Recipe};
//! use laxity_model::Span;
//!
//! let recipe = Recipe {
//!     tasks: 10,
//!     utilization: 0.8,
//!     periods: Periods {
//!         least: Span::from_millis(10),
//!         most: Span::from_millis(1000),
//!         grain: Span::from_micros(1),
//!     },
//! };
//! // Set 7 of seed 1; any other can be drawn without those before it.
//! let tasks = recipe.draw(&mut Draws::new(1, 7))?;
//! assert_eq!(tasks.len(), 10);
//! # Ok::<(), laxity_lab::workload::RecipeError>(())
//! ```
//!
//! [`Task`]: laxity_model::analysis::Task

mod draws;
mod periods;
mod recipe;
mod uunifast;

pub use draws::Draws;
pub use periods::Periods;
pub use recipe::{Recipe, RecipeError};
pub use uunifast::uunifast;
