//! Reservations that follow the load (Jones, Saroiu §5.4): a device whose work doubles and halves again, with each policy of
//! [`laxity_model::adaptive`] and with the best reservation that stays.
//!
//! * [`driver`]: the device's thread; [`trial`]: a run of it; `tables`: the sheet.

pub mod driver;
mod tables;
#[cfg(test)]
mod tests;
pub mod trial;

use laxity_linux::{LiveConfig, LiveHost};
use laxity_model::adaptive::Policy;
use laxity_model::{Host, HostError, Service, Span};
use laxity_sim::{Profile, Twin};
use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};

use driver::Load;
use laxity_lab::bench::{Request, Study};
use laxity_lab::runner::{Progress, RunError};
use laxity_lab::sheet::Sheet;
use trial::{GRAIN, MOST, Outcome, Setup, Way, run as run_trial, settings};

/// The work of a job: the study's 1.84 ms (§6.6), and twice that.
pub const WORK: Service = Service::from_micros(1_840);
/// Each load lasts so long in the twin.
pub const STRETCH: Span = Span::from_secs(30);
/// And here.
pub const LIVE_STRETCH: Span = Span::from_secs(5);
/// So long is a load constant where nothing should change.
pub const CONSTANT_FOR: Span = Span::from_secs(240);
/// What another holder has of each 8 ms where admission is tried.
pub const OTHER: Service = Service::from_micros(4_500);

/// The figures.
const FIGURES: [(&str, &str); 4] = [
    (
        "steps",
        "a load that doubles and halves again: each policy, and the best fixed reservation",
    ),
    ("constant", "a constant load, for four minutes"),
    ("admission", "a load that cannot be admitted"),
    ("live", "on this machine"),
];

/// The experiment.
pub const STUDY: Study = Study {
    name: "adaptive",
    summary: "reservations that follow the load, against the best fixed one",
    figures: &FIGURES,
    run,
};

/// A way and what came of it.
pub type Tried = (Way, Outcome);

/// Everything that was run.
pub struct Runs {
    /// The least that suffices throughout, and for the lower load: no job was late. What may be had at most where nothing needs it.
    pub best_fixed: Service,
    /// A load that doubles and halves; this and the others are empty if not asked for.
    pub steps: Vec<Tried>,
    /// A constant load.
    pub constant: Vec<Tried>,
    /// With another holder beside.
    pub admission: Vec<Tried>,
    /// Here.
    pub live: Option<(String, Vec<Tried>)>,
}

/// Once, twice and once the work.
pub fn steps(stretch: Span) -> Load {
    Load {
        stretch,
        means: vec![WORK, WORK * 2, WORK],
        noise_percent: 10,
    }
}

fn constant() -> Load {
    Load {
        stretch: STRETCH,
        means: vec![WORK],
        noise_percent: 10,
    }
}

/// What the policies begin with: enough for the lower load and its noise, as a maker would choose.
pub fn at_start() -> Service {
    settings(MOST).needed(WORK + WORK / 10)
}

fn in_twin(setup: &Setup, length: Span) -> Result<Outcome, HostError> {
    run_trial(&mut Twin::new(Profile::WIN2000_PII450), setup, length)
}

/// The least service of all that make no job late, by trying all.
fn best_fixed(load: &Load, seed: u64, length: Span) -> Result<Service, HostError> {
    let grains = 1..=MOST.as_nanos() / GRAIN.as_nanos();
    let tried: Vec<Result<bool, HostError>> = grains
        .into_par_iter()
        .map(|grains| {
            let setup = Setup {
                way: Way::Fixed(GRAIN * grains),
                load: load.clone(),
                other: Service::ZERO,
                seed,
            };
            in_twin(&setup, length).map(|outcome| outcome.late + outcome.lost == 0)
        })
        .collect();
    let mut best = MOST;
    for (grains, clean) in (1..).zip(tried).collect::<Vec<_>>().into_iter().rev() {
        if !clean? {
            break;
        }
        best = GRAIN * grains;
    }
    Ok(best)
}

/// Each policy, from what is enough at first.
fn policies() -> Vec<Way> {
    let ways = Policy::ALL.map(|policy| Way::Adaptive(policy, at_start()));
    ways.to_vec()
}

fn try_all(
    ways: &[Way],
    load: &Load,
    (other, seed): (Service, u64),
    length: Span,
) -> Result<Vec<Tried>, HostError> {
    let tried: Vec<Result<Tried, HostError>> = ways
        .par_iter()
        .map(|way| {
            let setup = Setup {
                way: *way,
                load: load.clone(),
                other,
                seed,
            };
            Ok((*way, in_twin(&setup, length)?))
        })
        .collect();
    tried.into_iter().collect()
}

/// The runs in the twin that the figures of these keys need.
///
/// # Errors
///
/// Those of the twin.
pub fn twin_runs(seed: u64, wants: impl Fn(&str) -> bool) -> Result<Runs, HostError> {
    let load = steps(STRETCH);
    let length = STRETCH * 3;
    let mut runs = Runs {
        best_fixed: MOST,
        steps: Vec::new(),
        constant: Vec::new(),
        admission: Vec::new(),
        live: None,
    };
    if wants("steps") || wants("live") {
        runs.best_fixed = best_fixed(&load, seed, length)?;
    }
    if wants("steps") {
        let mut ways = vec![Way::Fixed(runs.best_fixed), Way::Fixed(at_start())];
        ways.extend(policies());
        runs.steps = try_all(&ways, &load, (Service::ZERO, seed), length)?;
    }
    if wants("constant") {
        let alone = (Service::ZERO, seed + 1);
        runs.constant = try_all(&policies(), &constant(), alone, CONSTANT_FOR)?;
    }
    if wants("admission") {
        runs.admission = try_all(&policies(), &load, (OTHER, seed), length)?;
    }
    Ok(runs)
}

fn live_runs(seed: u64, best: Service) -> Result<(String, Vec<Tried>), HostError> {
    let mut host = LiveHost::new(LiveConfig::detect(1)?);
    let mut ways = vec![Way::Fixed(best + GRAIN)];
    ways.extend(policies());
    let mut tried = Vec::new();
    for way in ways {
        let setup = Setup {
            way,
            load: steps(LIVE_STRETCH),
            other: Service::ZERO,
            seed,
        };
        tried.push((way, run_trial(&mut host, &setup, LIVE_STRETCH * 3)?));
    }
    Ok((host.describe(), tried))
}

fn run(request: &Request, progress: &mut dyn Progress) -> Result<Sheet, RunError> {
    let failed = |error: HostError| match error {
        HostError::CannotRun(reason) => RunError::CannotRun(reason),
        HostError::Interrupted(signal) => RunError::Interrupted(signal),
        error => RunError::Failed {
            variant: "adaptive".into(),
            reason: error.to_string(),
        },
    };
    progress.prepare("loads in the twin");
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(request.threads)
        .build();
    let pool = pool.map_err(|error| RunError::CannotRun(format!("no threads: {error}")))?;
    // The best fixed reservation of the twin is what is tried here.
    let wants = |key: &str| request.wants(key) && (key != "live" || request.live);
    let runs = pool.install(|| twin_runs(request.seed, wants));
    let mut runs = runs.map_err(failed)?;
    if wants("live") {
        progress.prepare("loads on this machine");
        runs.live = Some(live_runs(request.seed, runs.best_fixed).map_err(failed)?);
    }
    progress.end();
    Ok(tables::sheet(request, &runs))
}
