//! Scenarios in the twin: every run independent of all others, on as many threads as there are.

use laxity_model::Host;
use laxity_sim::{Profile, Twin};

use super::compose::{RunSpec, compose};
use super::schedule::{PlannedRun, schedule};
use super::{NotRun, Progress, RunDone, RunError, done, pool, trace_names};
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
    let name =
        |planned: &PlannedRun| match (&resolved.variants[planned.variant].name, planned.repeat) {
            (name, 0) => name.clone(),
            (name, repeat) => format!("{name}, repeat {}", repeat + 1),
        };
    let one = |planned: &PlannedRun| run_one(resolved, *planned);
    let runs = pool::map(&planned, threads, name, one, progress)?;
    progress.end();
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

fn run_one(resolved: &Resolved, planned: PlannedRun) -> Result<RunDone, RunError> {
    let variant = &resolved.variants[planned.variant];
    let spec = RunSpec {
        seed: resolved.seed + u64::from(planned.repeat),
        mss_bytes: resolved.mss_bytes,
        further_receivers: 0,
        start: planned.start,
        gaps_only: planned.gaps_only,
    };
    let wrong = |error| RunError::of(error, variant);
    let composed =
        compose(variant, resolved.host.processors, &resolved.run, spec).map_err(wrong)?;
    let names = trace_names(&composed);
    let mut twin = Twin::new(profile(resolved.host.profile));
    let record = twin.run(composed.program, planned.length).map_err(wrong)?;
    Ok(done(planned, resolved, names, composed.probes, record))
}
