//! Scenarios in the twin: every run independent of all others, on as many threads as there are.

use std::sync::Mutex;

use laxity_model::Host;
use laxity_model::admission::Supply;
use laxity_sim::{Profile, Twin};
use rayon::iter::{
    IndexedParallelIterator, IntoParallelIterator, IntoParallelRefIterator, ParallelIterator,
};

use super::admit::{FurtherReceivers, Ready, ready};
use super::schedule::{PlannedRun, schedule};
use super::{NotRun, Progress, RunDone, RunError, done, names};
use crate::scenario::{Profile as ProfileName, Resolved};

/// The twin that a scenario names.
#[must_use]
pub fn profile(name: ProfileName) -> Profile {
    match name {
        ProfileName::Win2000PiiFourFifty => Profile::WIN2000_PII450,
    }
}

/// Makes all runs that the twin can make. The results do not depend on the number of threads.
///
/// # Errors
///
/// The first error by the order of the schedule.
pub fn run(
    resolved: &Resolved,
    threads: usize,
    progress: &mut dyn Progress,
) -> Result<(Vec<RunDone>, Vec<NotRun>), RunError> {
    let planned = schedule(resolved, |variant| variant.twin, false);
    if planned.is_empty() {
        return Err(RunError::Nothing("the twin"));
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| RunError::CannotRun(format!("no threads: {error}")))?;
    let supply = supply(resolved)?;
    // All variants are admitted before anything runs, with the programs that then run first; those of repeats are composed in their turn.
    let first = |run: &PlannedRun| {
        let first =
            (run.repeat == 0).then(|| ready(resolved, *run, &FurtherReceivers::new(), &supply));
        first.transpose()
    };
    let first: Vec<Option<Ready>> =
        pool.install(|| planned.par_iter().map(first).collect::<Result<_, _>>())?;
    for ready in first.iter().flatten() {
        ready.require(&resolved.variants[ready.planned.variant])?;
    }
    progress.begin(planned.len());
    let progress = Mutex::new(progress);
    let made: Vec<Result<RunDone, RunError>> = pool.install(|| {
        let one = |(planned, first): (PlannedRun, Option<Ready>)| {
            let ready = first.map_or_else(
                || ready(resolved, planned, &FurtherReceivers::new(), &supply),
                Ok,
            )?;
            let made = run_one(resolved, ready);
            if let Ok(mut progress) = progress.lock() {
                progress.run(&resolved.variants[planned.variant].name, planned.repeat);
            }
            made
        };
        planned.into_par_iter().zip(first).map(one).collect()
    });
    if let Ok(progress) = progress.into_inner() {
        progress.end();
    }
    let runs = made.into_iter().collect::<Result<_, _>>()?;
    let skipped = resolved
        .variants
        .iter()
        .enumerate()
        .filter(|(_, variant)| !variant.twin);
    let skipped = skipped.map(|(variant, _)| NotRun {
        variant,
        reason: "the scenario has it for Linux only".into(),
    });
    Ok((runs, skipped.collect()))
}

/// What the scenario's twin can enforce.
pub(super) fn supply(resolved: &Resolved) -> Result<Supply, RunError> {
    let supply = host(resolved).supply(resolved.host.processors);
    supply.map_err(|error| RunError::CannotRun(error.to_string()))
}

pub(super) fn host(resolved: &Resolved) -> Twin {
    Twin::new(profile(resolved.host.profile))
}

/// Runs what is ready.
fn run_one(resolved: &Resolved, ready: Ready) -> Result<RunDone, RunError> {
    let planned = ready.planned;
    let variant = &resolved.variants[planned.variant];
    let (admitted, probes) = ready.granted(variant)?;
    let names = names(&admitted.program, &probes, variant);
    let record = host(resolved).run(admitted, planned.length);
    let record = record.map_err(|error| RunError::of(error, variant))?;
    Ok(done(planned, names, probes, record))
}
