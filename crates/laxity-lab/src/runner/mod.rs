//! From a scenario to its results: which runs are made, how each becomes a program, what was seen of it, and how it is judged.
//!
//! * [`tasks`]: what runs beside the devices; [`compose`]: a variant as a program; [`admit`]: that program, admitted.
//! * [`schedule`]: which runs, in which order; [`again`]: which of them once more; [`live`], [`twin`]: how each host is set up and used.
//! * [`pool`]: independent runs of the twin at once; [`load`]: how often work is repeated to take a share of this machine, and [`alone`]: the runs by
//!   which that is measured.
//! * [`proposal`]: what is reserved where a scenario leaves that open, to all devices `together`; `served`: whether a reservation serves a device, less
//!   what the `machine` takes of it, in all `modes` of its call.
//! * `network`: what shares an interface, at both ends of its wire.
//! * [`speed`]: how fast this machine is meanwhile.
//! * `figures`: the figures of one component; [`aggregate`]: from runs to results and verdicts; `provenance`: where each figure comes from.

pub mod admit;
pub mod again;
pub mod aggregate;
pub mod alone;
mod cause;
pub mod commands;
pub mod compose;
pub mod conclude;
mod figures;
pub(crate) mod left;
pub mod live;
pub mod load;
mod longest;
pub(crate) mod machine;
pub(crate) mod modes;
pub mod network;
pub mod pool;
pub mod proposal;
mod provenance;
pub mod schedule;
pub(crate) mod served;
pub mod speed;
pub mod tasks;
pub(crate) mod together;
pub mod twin;
mod unmet;
mod unseen;
pub(crate) mod work;

use laxity_model::admission::Admitted;
use laxity_model::{EventKind, HostError, Mark, RunRecord, Span};

use crate::evidence::results::{RunResults, Skipped};
use crate::evidence::trace::Trace;
use crate::observe::Probes;
use crate::scenario::{Resolved, ResolvedVariant, TwinProfile};
use admit::Ready;
use commands::CommandEnd;
use conclude::Circumstances;
use laxity::observe::{Observation, observe};
use schedule::{PlannedRun, host_name};

/// So many events of a run are kept for its trace: the last ones. Everything is observed, whatever is kept.
const TRACED_EVENTS: usize = 200_000;

/// One run that was made.
pub struct RunDone {
    /// Which.
    pub planned: PlannedRun,
    /// What the host handed back, of its events those of halts; all are in the trace, if that was kept.
    pub record: RunRecord,
    /// What was seen of each component, in the order of the probes.
    pub observations: Vec<Observation>,
    /// Where things were.
    pub probes: Probes,
    /// Its events, for the first run of each variant.
    pub trace: Option<Trace>,
    /// What became of its commands.
    pub commands: Vec<CommandEnd>,
    /// What reference blocks took before and after it; nothing in the twin.
    pub speed: speed::Took,
}

/// Everything that came of a scenario.
pub struct Finished {
    /// The figures and verdicts.
    pub results: RunResults,
    /// The events of the first run of each variant.
    pub traces: Vec<Trace>,
}

/// Hears how a long piece of work goes on. Called from one thread at a time.
pub trait Progress: Send {
    /// So many runs will be made.
    fn begin(&mut self, _runs: usize) {}
    /// Something is being prepared.
    fn prepare(&mut self, _what: &str) {}
    /// A run begins (live) or is over (twin).
    fn run(&mut self, _variant: &str, _repeat: u32) {}
    /// All is over.
    fn end(&mut self) {}
}

/// Nobody listens.
pub struct Silent;

impl Progress for Silent {}

/// Why a scenario has no results.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Admission said no to a variant; nothing had been started.
    #[error("variant `{variant}` is not admitted: {reason}")]
    Refused {
        /// Which variant.
        variant: String,
        /// The resource, the amount missing, and what would fit.
        reason: String,
    },
    /// This machine cannot run it.
    #[error("cannot run here: {0}")]
    CannotRun(String),
    /// What the runs would rest on could not be measured; the text names who was in the way.
    #[error("inconclusive: {0}")]
    Inconclusive(String),
    /// It was stopped from outside; everything is restored.
    #[error("interrupted by {0}; everything is as it was before")]
    Interrupted(&'static str),
    /// A run failed; everything is restored.
    #[error("variant `{variant}`: {reason}")]
    Failed {
        /// Which variant.
        variant: String,
        /// What failed.
        reason: String,
    },
    /// The scenario has no variant that could be run here.
    #[error("no variant of this scenario runs on {0}")]
    Nothing(&'static str),
}

impl RunError {
    /// What a host's error about a variant of this name means.
    #[must_use]
    pub fn of(error: HostError, variant: &str) -> Self {
        let variant = variant.to_owned();
        match error {
            error @ HostError::NoProcessor { .. } => {
                Self::CannotRun(format!("variant `{variant}`: {error}"))
            }
            HostError::Refused(reason) => Self::Refused { variant, reason },
            HostError::CannotRun(reason) => {
                Self::CannotRun(format!("variant `{variant}`: {reason}"))
            }
            HostError::Disturbed(reason) => {
                Self::Inconclusive(format!("variant `{variant}`: {reason}"))
            }
            HostError::Interrupted(signal) => Self::Interrupted(signal),
            HostError::BadProgram(reason) | HostError::Failed(reason) => {
                Self::Failed { variant, reason }
            }
        }
    }
}

/// Which host runs a scenario.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum On {
    /// This machine.
    Linux,
    /// The virtual-time twin, on so many threads; 0: one a processor.
    Twin {
        /// How many.
        threads: usize,
    },
}

impl On {
    /// The twin that it is, of a scenario.
    pub(crate) fn twin(self, resolved: &Resolved) -> Option<TwinProfile> {
        (self != Self::Linux).then_some(resolved.host.profile)
    }
}

/// Runs a scenario: all its variants, admitted before anything starts, as often as its length says. `notices` go into the results, and what the
/// scenario declares for nothing.
///
/// # Errors
///
/// See [`RunError`]; whatever was changed on the way is restored.
pub fn run(
    resolved: &Resolved,
    on: On,
    notices: Vec<String>,
    progress: &mut dyn Progress,
) -> Result<Finished, RunError> {
    let Made {
        mut runs,
        skipped,
        mut circumstances,
        settled,
    } = match on {
        On::Linux => live::run(resolved, progress)?,
        On::Twin { threads } => twin::run(resolved, threads, progress)?,
    };
    let unused = settled.unused.iter().cloned();
    let notices = notices.into_iter().chain(unused);
    circumstances.notices.splice(0..0, notices);
    let results = conclude::conclude(&settled, &runs, skipped, circumstances);
    let traces = runs.iter_mut().filter_map(|run| run.trace.take()).collect();
    Ok(Finished { results, traces })
}

/// What a host has made of a scenario.
pub struct Made {
    /// By the schedule.
    pub runs: Vec<RunDone>,
    /// Variants that are for other hosts.
    pub skipped: Vec<Skipped>,
    /// What is to be known of how they were made.
    pub circumstances: Circumstances,
    /// The scenario as it was run: with everything proposed that it left open.
    pub settled: Resolved,
}

/// The variants that do not run on a host, for they are for the other.
fn not_run(resolved: &Resolved, live: bool) -> Vec<Skipped> {
    let others = resolved.variants.iter().filter(|one| !one.runs(live));
    let not_run = others.map(|variant| Skipped {
        name: variant.name.clone(),
        reason: format!("the scenario has it for {} only", host_name(!live)),
        has_failed: false,
    });
    not_run.collect()
}

/// Makes one run, and takes its record apart: what was seen, and the trace if it is kept.
pub(crate) fn run_one(
    resolved: &Resolved,
    ready: Ready,
    run: impl FnOnce(
        &ResolvedVariant,
        Admitted,
        Span,
    ) -> Result<(RunRecord, Vec<CommandEnd>), HostError>,
) -> Result<RunDone, RunError> {
    let planned = ready.planned;
    let variant = &resolved.variants[planned.variant];
    let (admitted, probes) = ready.granted(variant)?;
    let levels = probes
        .devices()
        .map(|device| device.installed.marks.call_end);
    let levels: Vec<Mark> = levels.collect();
    // The names are the program's, which the host takes.
    let names = Trace::of(&admitted.program, &variant.name, &levels);
    let made = run(variant, admitted, planned.length);
    let (mut record, commands) = made.map_err(|error| RunError::of(error, &variant.name))?;
    probes.settle(&mut record);
    let mut observations = observe(
        &record,
        &probes.0,
        &resolved.variants[planned.variant].judged_by(),
    );
    let run = [record.start, record.end];
    for end in &commands {
        let mut seen = observations.iter_mut();
        if let Some(seen) = seen.find(|seen| seen.subject.name == end.name) {
            end.observe(&mut seen.quantities, run, &record.disturbances);
        }
    }
    let mut events = std::mem::take(&mut record.events);
    // They alone tell of a halt in the middle of a crawl, and of one that a dispatcher saw alone.
    let halts = events
        .iter()
        .filter(|event| event.kind == EventKind::Disturbed);
    record.events = halts.copied().collect();
    let all = events.len();
    let left_out = events.drain(..all.saturating_sub(TRACED_EVENTS)).count();
    let first = events.first().map_or(record.start, |event| event.at);
    let trace = (planned.repeat == 0).then_some(Trace {
        start: if left_out > 0 { first } else { record.start },
        end: record.end,
        events,
        events_lost: record.events_lost,
        ..names
    });
    Ok(RunDone {
        planned,
        record,
        observations,
        probes,
        trace,
        commands,
        speed: Vec::new(),
    })
}
