//! Every figure and table of the soft-modem study (Jones, Saroiu 2001), in the twin and live.

use super::sheet::Sheet;
use super::study::{Request, Study};
use crate::runner::{Progress, RunError};

/// The experiment.
pub const STUDY: Study = Study {
    name: "modem",
    summary: "the soft-modem study: every figure and table of it, in the twin and on this machine",
    figures: &[],
    run,
};

fn run(_request: &Request, _progress: &mut dyn Progress) -> Result<Sheet, RunError> {
    Err(RunError::CannotRun("not there yet".into()))
}
