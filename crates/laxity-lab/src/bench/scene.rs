//! Runs of a scenario that a study brings along.

use laxity_model::{HostError, Program, RunRecord, Span};

use super::Runner;
use crate::observe::Probes;
use crate::runner::commands;
use crate::runner::compose::{RunSpec, compose};
use crate::scenario::{Length, Resolved, ResolvedVariant, parse};

/// A study's scenario, at full length.
///
/// # Panics
///
/// If it is none: it is part of the program.
pub fn scenario(file: &str) -> Resolved {
    match parse(file, "the scenario of a study") {
        Ok(scenario) => scenario.resolve(Length::Full),
        Err(wrong) => panic!("{wrong:?}"),
    }
}

/// Runs a variant for so long, with the commands that take part in it if that is on this machine. `change` is what the study makes of the
/// program before.
///
/// # Errors
///
/// The host's, and [`HostError::Failed`] if its log was too short for the run.
pub fn run(
    host: &mut Runner<'_>,
    (scenario, variant): (&Resolved, &ResolvedVariant),
    spec: RunSpec,
    length: Span,
    change: impl FnOnce(&mut Program, &Probes),
) -> Result<(RunRecord, Probes), HostError> {
    let composed = compose(variant, scenario.host.processors, &scenario.run, |_| spec)?;
    let (mut program, probes) = composed;
    change(&mut program, &probes);
    // They end when the run does.
    let _commands = match host {
        Runner::Live(live) => commands::start(variant, live.config())?,
        Runner::Twin(_) => Vec::new(),
    };
    let record = host.run(program, length)?;
    match record.events_lost {
        0 => Ok((record, probes)),
        lost => Err(HostError::Failed(format!(
            "{lost} events did not fit the log"
        ))),
    }
}
