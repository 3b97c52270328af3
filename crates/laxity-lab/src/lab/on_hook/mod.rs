//! A sub-millisecond reservation for the on-hook phase.

use super::sheet::Sheet;
use super::study::{Request, Study};
use crate::runner::{Progress, RunError};

/// The experiment.
pub const STUDY: Study = Study {
    name: "on-hook",
    summary: "a reservation of 0.1 ms every 2.5 while on hook, and its change without a lost sample",
    figures: &[],
    run,
};

fn run(_request: &Request, _progress: &mut dyn Progress) -> Result<Sheet, RunError> {
    Err(RunError::CannotRun("not there yet".into()))
}
