//! Scenarios in the twin: every run independent of all others, on as many threads as there are.

use std::collections::BTreeMap;

use laxity::Twin;
use laxity_model::Host;

use super::admit::{FurtherReceivers, Ready, ready, supply};
use super::conclude::Circumstances;
use super::schedule::{PlannedRun, schedule};
use super::{Made, Progress, RunError, Silent, not_run, pool, run_one};
use crate::scenario::Resolved;

/// Makes all runs that the twin can make. The results do not depend on the number of threads.
///
/// # Errors
///
/// The first error by the order of the schedule.
pub fn run(
    resolved: &Resolved,
    threads: usize,
    progress: &mut dyn Progress,
) -> Result<Made, RunError> {
    let planned = schedule(resolved, false)?;
    let supply = supply(&mut host(resolved), resolved)?;
    let ready = |planned: PlannedRun| ready(resolved, planned, &FurtherReceivers::new(), &supply);
    let name =
        |planned: &PlannedRun| match (&resolved.variants[planned.variant].name, planned.repeat) {
            (name, 0) => name.clone(),
            (name, repeat) => format!("{name}, repeat {}", repeat + 1),
        };
    // All variants are admitted before anything runs, with the programs that then run first; those of repeats are composed in their turn.
    let first = |planned: PlannedRun| {
        let first = (planned.repeat == 0).then(|| ready(planned)).transpose()?;
        Ok((planned, first))
    };
    let first = pool::map(planned, threads, name, first, &mut Silent)?;
    for ready in first.iter().filter_map(|(_, first)| first.as_ref()) {
        ready.require(&resolved.variants[ready.planned.variant])?;
    }
    let one = |(planned, first): (PlannedRun, Option<Ready>)| {
        let ready = first.map_or_else(|| ready(planned), Ok)?;
        run_one(resolved, ready, |_, admitted, length| {
            host(resolved).run(admitted, length)
        })
    };
    let runs = pool::map(first, threads, |(planned, _)| name(planned), one, progress)?;
    progress.end();
    Ok(Made {
        runs,
        skipped: not_run(resolved, false),
        circumstances: Circumstances {
            host: format!("twin {}", resolved.host.profile.name),
            live: false,
            receivers: BTreeMap::new(),
            notices: Vec::new(),
        },
    })
}

pub(crate) fn host(resolved: &Resolved) -> Twin {
    Twin::new(resolved.host.profile)
}
