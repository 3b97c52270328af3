//! What a twin of this machine predicts, beside what this machine does.

use super::sheet::Sheet;
use super::study::{Request, Study};
use crate::runner::{Progress, RunError};

/// The experiment.
pub const STUDY: Study = Study {
    name: "prediction",
    summary: "what a twin of this machine predicts, beside what this machine does",
    figures: &[],
    run,
};

fn run(_request: &Request, _progress: &mut dyn Progress) -> Result<Sheet, RunError> {
    Err(RunError::CannotRun("not there yet".into()))
}
