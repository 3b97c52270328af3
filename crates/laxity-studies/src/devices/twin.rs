//! Runs in the twin: independent, on as many threads as there are.

use std::sync::Mutex;

use laxity_model::{Host, HostError};
use laxity_sim::{Profile, Twin};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use super::run::{Outcome, Setup};
use laxity_lab::runner::{Progress, RunError};

/// A run with its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// For progress and errors.
    pub name: String,
    /// What is run.
    pub setup: Setup,
}

/// Makes all runs, in their order. The results do not depend on the number of threads.
///
/// # Errors
///
/// The first error by the order of the runs.
pub fn run_all(
    runs: &[Named],
    threads: usize,
    progress: &mut dyn Progress,
) -> Result<Vec<Outcome>, RunError> {
    let progress = Mutex::new(progress);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| RunError::CannotRun(format!("no threads: {error}")))?;
    let made: Vec<Result<Outcome, RunError>> = pool.install(|| {
        let one = |named: &Named| {
            let outcome = run_one(&named.setup).map_err(|error| failed(&named.name, error));
            if let Ok(mut progress) = progress.lock() {
                progress.run(&named.name, 0);
            }
            outcome
        };
        runs.par_iter().map(one).collect()
    });
    made.into_iter().collect()
}

/// A host's error, with the name of its run.
pub(crate) fn failed(name: &str, error: HostError) -> RunError {
    let variant = name.to_owned();
    match error {
        HostError::Refused(reason) => RunError::Refused { variant, reason },
        HostError::CannotRun(reason) => RunError::CannotRun(format!("`{variant}`: {reason}")),
        HostError::Interrupted(signal) => RunError::Interrupted(signal),
        HostError::BadProgram(reason) | HostError::Failed(reason) => {
            RunError::Failed { variant, reason }
        }
    }
}

/// One run.
///
/// # Errors
///
/// Those of the program's making, and the twin's.
pub fn run_one(setup: &Setup) -> Result<Outcome, HostError> {
    let (program, probes) = setup.compose()?;
    let record = Twin::new(Profile::WIN2000_PII450).admit_and_run(program, setup.length)?;
    Ok(probes.observe(&record))
}
