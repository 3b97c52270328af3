//! Runs of a scenario that a study brings along.

use laxity_model::{HostError, Program, RunRecord, Span};

use super::Runner;
use crate::observe::Probes;
use crate::runner::commands::{self, CommandEnd};
use crate::runner::compose::{Around, RunSpec, compose};
use crate::runner::network::Wires;
use crate::scenario::{Length, Resolved, ResolvedVariant, TwinProfile, parse};

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

/// Runs a variant for so long, in the twin of this profile or on Linux (see [`compose`]), if that is on this machine with the commands that take part in it, and with its network on interfaces
/// that are made for the run. `change` is what the study makes of the program before.
///
/// # Errors
///
/// The host's, and [`HostError::Failed`] if its log was too short for the run, or a command did not run as declared.
pub fn run(
    host: &mut Runner<'_>,
    (scenario, variant, twin): (&Resolved, &ResolvedVariant, Option<TwinProfile>),
    spec: RunSpec,
    length: Span,
    change: impl FnOnce(&mut Program, &Probes),
) -> Result<(RunRecord, Probes), HostError> {
    let processors = scenario.host.processors;
    let made = match host {
        Runner::Live(..) => Wires::of(variant)?,
        Runner::Twin(_) => None,
    };
    let (wires, fed) = made.unzip();
    let composed = compose(
        variant,
        processors,
        &scenario.run,
        Around {
            twin,
            seed: spec.seed,
            wires,
        },
        |_| spec,
    )?;
    let (mut program, probes) = composed;
    change(&mut program, &probes);
    let commands = match host {
        Runner::Live(live, _) => {
            if let Some(fed) = fed {
                fed.feed(live);
            }
            Some(commands::start(variant, live.config())?)
        }
        Runner::Twin(_) => None,
    };
    let mut record = host.run(program, length)?;
    probes.settle(&mut record);
    let ends = commands.map(|commands| commands.end(&record));
    if let Some(failure) = ends.iter().flatten().find_map(CommandEnd::failure) {
        return Err(HostError::Failed(failure));
    }
    match record.events_lost {
        0 => Ok((record, probes)),
        lost => Err(HostError::Failed(format!(
            "{lost} events did not fit the log"
        ))),
    }
}
