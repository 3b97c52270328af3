//! Scenarios in the twin: every run independent of all others, on as many threads as there are.

use std::collections::BTreeMap;

use laxity::Twin;
use laxity_model::Host;
use laxity_model::admission::Supply;

use super::admit::{Ready, ready_for_twin, supply};
use super::again::MadeAgain;
use super::alone::calls_in_twin;
use super::conclude::Circumstances;
use super::proposal::{self, Settled};
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
    let settled = settled(resolved, &supply)?.whole()?;
    let resolved = &settled;
    let ready = |planned: PlannedRun| ready_for_twin(resolved, planned, &supply);
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
    let mut notes = None;
    for ready in first.iter().filter_map(|(_, first)| first.as_ref()) {
        ready.require(&resolved.variants[ready.planned.variant])?;
        let program = &ready.admission().program;
        notes = notes.or_else(|| resolved.host.profile.note_on(program));
    }
    let one = |(planned, first): (PlannedRun, Option<Ready>)| {
        let ready = first.map_or_else(|| ready(planned), Ok)?;
        run_one(resolved, ready, |_, admitted, length| {
            Ok((host(resolved).run(admitted, length)?, Vec::new()))
        })
    };
    let runs = pool::map(first, threads, |(planned, _)| name(planned), one, progress)?;
    progress.end();
    Ok(Made {
        runs,
        skipped: not_run(resolved, false),
        circumstances: Circumstances {
            failed: BTreeMap::new(),
            made_again: MadeAgain::default(),
            host: format!("twin {}", resolved.host.profile.machine.name),
            live: false,
            supply,
            receivers: BTreeMap::new(),
            notices: notes.into_iter().collect(),
        },
        settled,
    })
}

/// Proposes everything that a scenario leaves open, by the calls of the devices in this twin.
///
/// # Errors
///
/// The twin's, and those of [`proposal::settled`].
pub fn settled(resolved: &Resolved, supply: &Supply) -> Result<Settled, RunError> {
    let mut calls = BTreeMap::new();
    for device in proposal::to_measure(resolved, false) {
        let measured = calls_in_twin(host(resolved), resolved, device)?;
        calls.insert(device.name.clone(), measured);
    }
    proposal::settled(resolved, supply, false, |device| {
        calls.get(&device.name).copied()
    })
}

pub(crate) fn host(resolved: &Resolved) -> Twin {
    Twin::new(resolved.host.profile.machine)
}
