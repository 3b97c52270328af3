//! Whose fault: who made a device late, from the trace alone.

use super::sheet::Sheet;
use super::study::{Request, Study};
use crate::runner::{Progress, RunError};

/// The experiment.
pub const STUDY: Study = Study {
    name: "fault",
    summary: "whose fault? who made a device late, told from the trace alone",
    figures: &[],
    run,
};

fn run(_request: &Request, _progress: &mut dyn Progress) -> Result<Sheet, RunError> {
    Err(RunError::CannotRun("not there yet".into()))
}
