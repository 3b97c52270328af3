//! Whose fault: who made a device late, from the trace alone. The "systematic latency timing verification of all components" that Jones and
//! Saroiu ask for (§8.1), tried on cases in which it is known who is to blame.
//!
//! * [`case`]: who is in a case, drawn from a seed; [`bodies`]: what they do.
//! * [`mod@trial`]: a case as a program, its run, its verdict ([`laxity_model::verify::attribution`]), and the truth: runs without each of them.
//! * [`live`]: two cases on this machine; `tables`: the report.

pub mod bodies;
pub mod case;
pub mod live;
mod tables;
#[cfg(test)]
mod tests;
pub mod trial;

use std::sync::LazyLock;

use laxity_model::{HostError, Span};
use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};

use case::{Draw, Kind, TWENTY};
use laxity_lab::bench::{Experiment, Request, Text};
use laxity_lab::report::Report;
use laxity_lab::runner::{Progress, RunError};
use trial::{Trial, trial};

/// How long each run is.
const LENGTH: Span = Span::from_secs(3);
/// So often a case is drawn anew, if those that keep the rules make jobs late too, or a culprit none.
const ATTEMPTS: u64 = 200;

/// The figures.
const FIGURES: [(&str, &str); 3] = [
    ("cases", "twenty cases: who was to blame, and who was named"),
    (
        "evidence",
        "the first late job of each case: who held the processor",
    ),
    ("live", "two cases on this machine"),
];

static TEXT: LazyLock<Text> = LazyLock::new(|| Text::parse(include_str!("../../data/fault.toml")));

/// The experiment.
pub struct Fault;

impl Experiment for Fault {
    fn text(&self) -> &'static Text {
        &TEXT
    }

    fn perform(&self, request: &Request, progress: &mut dyn Progress) -> Result<Report, RunError> {
        run(request, progress)
    }
}

/// A case that was drawn until it was a case.
pub struct Drawn {
    /// The trial.
    pub trial: Trial,
    /// How often it had to be drawn.
    pub attempts: u64,
}

/// Draws the case of this number until those that keep the rules make nobody late, and, if `all_matter`, each of the others does.
///
/// # Errors
///
/// Those of the twin; [`HostError::Failed`] if no attempt made a case.
pub fn draw(
    seed: u64,
    number: u64,
    (kind, reserved): (Kind, bool),
    all_matter: bool,
) -> Result<Drawn, HostError> {
    for attempt in 0..ATTEMPTS {
        let case = Draw::new(seed, number, attempt).case(kind, reserved);
        let trial = trial(&case, LENGTH)?;
        let truth = &trial.truth;
        let is_right_kind = match kind {
            Kind::TooLittle => truth.reservation,
            Kind::Overrun => truth.late_without == 0 && truth.victim,
            _ => truth.late_without == 0,
        };
        if is_right_kind && (!all_matter || truth.culprits.len() == case.culprits.len()) {
            return Ok(Drawn {
                trial,
                attempts: attempt + 1,
            });
        }
    }
    let reason = format!("no case of {} in {ATTEMPTS} attempts", kind.about());
    Err(HostError::Failed(reason))
}

/// The twenty cases of a seed.
///
/// # Errors
///
/// Those of [`draw`].
pub fn twenty(seed: u64) -> Result<Vec<Drawn>, HostError> {
    let numbered: Vec<(u64, (Kind, bool))> = (0..).zip(TWENTY).collect();
    let drawn: Vec<Result<Drawn, HostError>> = numbered
        .par_iter()
        .map(|(number, kind)| draw(seed, *number, *kind, true))
        .collect();
    drawn.into_iter().collect()
}

/// Many cases of all kinds, as they come: nobody has to matter.
///
/// # Errors
///
/// Those of [`draw`].
pub fn sweep(seed: u64, cases: u64) -> Result<Vec<Trial>, HostError> {
    const KINDS: [(Kind, bool); 14] = [
        (Kind::InterruptsOff, false),
        (Kind::InterruptsOff, true),
        (Kind::LongDeferred, false),
        (Kind::LongDeferred, true),
        (Kind::TwoNeeded, false),
        (Kind::TwoNeeded, true),
        (Kind::TwoSufficient, false),
        (Kind::TwoSufficient, true),
        (Kind::Rogue, false),
        (Kind::Rogue, true),
        (Kind::Overrun, false),
        (Kind::TooLittle, true),
        (Kind::Nothing, false),
        (Kind::Nothing, true),
    ];
    let drawn: Vec<Result<Trial, HostError>> = (0..cases)
        .into_par_iter()
        .map(|number| {
            let kind = KINDS[(number % KINDS.len() as u64) as usize];
            draw(seed, number, kind, false).map(|drawn| drawn.trial)
        })
        .collect();
    drawn.into_iter().collect()
}

fn run(request: &Request, progress: &mut dyn Progress) -> Result<Report, RunError> {
    let failed = |error: HostError| RunError::Failed {
        variant: "cases".into(),
        reason: error.to_string(),
    };
    let mut cases = Vec::new();
    if request.wants("cases") || request.wants("evidence") {
        progress.prepare("twenty cases in the twin");
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(request.threads)
            .build();
        let pool = pool.map_err(|error| RunError::CannotRun(format!("no threads: {error}")))?;
        cases = pool.install(|| twenty(request.seed)).map_err(failed)?;
    }
    let here = if request.live && request.wants("live") {
        progress.prepare("cases on this machine");
        Some(live::run()?)
    } else {
        None
    };
    progress.end();
    Ok(tables::report(request, &cases, here.as_ref()))
}
