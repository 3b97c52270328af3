//! Reservations that follow the load.

use super::sheet::Sheet;
use super::study::{Request, Study};
use crate::runner::{Progress, RunError};

/// The experiment.
pub const STUDY: Study = Study {
    name: "adaptive",
    summary: "reservations that follow the load, against the best fixed one",
    figures: &[],
    run,
};

fn run(_request: &Request, _progress: &mut dyn Progress) -> Result<Sheet, RunError> {
    Err(RunError::CannotRun("not there yet".into()))
}
