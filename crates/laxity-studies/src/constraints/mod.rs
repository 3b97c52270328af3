//! One-shot time constraints (Jones, Roşu, Roşu, "CPU Reservations and Time Constraints", SOSP 1997): so much service between a start and a
//! deadline, granted or refused at once, also inside a reservation.

pub mod answers;
pub mod burst;
mod page;
pub mod sweep;

use std::sync::LazyLock;

use laxity_linux::{LiveConfig, LiveHost, WitnessConfig};
use laxity_model::{Host, HostError, ProcessorId, Span};
use laxity_sim::{Profile, Recording, Twin};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::on_hook::call::{self, Setup, Way};
use super::on_hook::failed;
use laxity_lab::bench::{Experiment, Request, Text};
use laxity_lab::report::Report;
use laxity_lab::runner::{Progress, RunError};

static TEXT: LazyLock<Text> =
    LazyLock::new(|| Text::parse(include_str!("../../data/constraints.toml")));

/// The experiment.
pub struct Constraints;

impl Experiment for Constraints {
    fn text(&self) -> &'static Text {
        &TEXT
    }

    fn perform(&self, request: &Request, progress: &mut dyn Progress) -> Result<Report, RunError> {
        run(request, progress)
    }
}

/// Bursts in the twin, and here.
const TWIN_BURSTS: u64 = 300;
const LIVE_BURSTS: u64 = 80;
/// Calls of the modem, each in another phase to the slots: as many as there are.
const MODEM_CALLS: u64 = 7;
/// Runs of the sweep in the twin, and how long each is.
const TWIN_SWEEPS: u64 = 24;
const TWIN_SWEEP: Span = Span::from_secs(6);
/// The same on this machine.
const LIVE_SWEEPS: u64 = 2;
const LIVE_SWEEP: Span = Span::from_secs(3);

/// What a host showed.
pub struct Shown {
    /// What it calls itself.
    pub host: String,
    /// Bursts without a time constraint and with one.
    pub bursts: Option<[burst::Seen; 2]>,
    /// The modem's calls without and with; empty where they were not made.
    pub modem: Vec<[call::Seen; 2]>,
    /// The sweep.
    pub sweep: Option<sweep::Swept>,
}

fn run(request: &Request, progress: &mut dyn Progress) -> Result<Report, RunError> {
    let twin = in_twin(request, progress)?;
    let live = if request.live {
        Some(on_this_machine(request, progress)?)
    } else {
        None
    };
    progress.end();
    Ok(page::report(request, &twin, live.as_ref()))
}

fn in_twin(request: &Request, progress: &mut dyn Progress) -> Result<Shown, RunError> {
    let failed = |error: HostError| failed("the twin", error);
    let mut twin = Twin::new(Profile::WIN2000_PII450);
    progress.begin(3);
    let bursts = request.wants("burst").then(|| {
        progress.run("bursts", 0);
        both(|constrained| burst::run(&mut twin, TWIN_BURSTS, constrained))
    });
    let bursts = bursts.transpose().map_err(failed)?;
    let mut modem = Vec::new();
    if request.wants("modem") {
        progress.run("modem", 0);
        for n in 0..MODEM_CALLS {
            let setup = |constrained| modem_setup(request.seed.wrapping_add(n), constrained);
            let calls = both(|constrained| call::run(&mut twin, &setup(constrained)));
            modem.push(calls.map_err(failed)?);
        }
    }
    let sweep = if request.wants("sweep") {
        progress.run("sweep", 0);
        Some(sweep_in_twin(request)?)
    } else {
        None
    };
    Ok(Shown {
        host: twin.describe(),
        bursts,
        modem,
        sweep,
    })
}

/// Without a time constraint, and with one.
fn both<T>(mut run: impl FnMut(bool) -> Result<T, HostError>) -> Result<[T; 2], HostError> {
    Ok([run(false)?, run(true)?])
}

fn modem_setup(seed: u64, constrained: bool) -> Setup {
    Setup {
        way: Way::Whole,
        confined: true,
        rogue: false,
        recognition_within: constrained.then_some(page::MODEM_WITHIN),
        on_hook: Span::from_millis(300),
        seed,
        length: Span::from_secs(30),
    }
}

fn sweep_in_twin(request: &Request) -> Result<sweep::Swept, RunError> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(request.threads)
        .build();
    let pool = pool.map_err(|error| RunError::CannotRun(format!("no threads: {error}")))?;
    let seeds = 0..u64::from(request.repeats.unwrap_or(TWIN_SWEEPS as u32)).clamp(1, 10_000);
    let swept: Vec<Result<sweep::Swept, HostError>> = pool.install(|| {
        let one = |n: u64| {
            let mut twin = Twin::new(Profile::WIN2000_PII450).recording(Recording::MARKS);
            sweep::run(&mut twin, request.seed.wrapping_add(n), TWIN_SWEEP)
        };
        seeds.into_par_iter().map(one).collect()
    });
    let swept: Result<Vec<sweep::Swept>, HostError> = swept.into_iter().collect();
    let swept = swept.map_err(|error| failed("the sweep", error))?;
    Ok(swept
        .into_iter()
        .fold(sweep::Swept::default(), sweep::Swept::and))
}

fn on_this_machine(request: &Request, progress: &mut dyn Progress) -> Result<Shown, RunError> {
    let failed = |error: HostError| failed("this machine", error);
    let config = LiveConfig::detect(1).map_err(failed)?;
    let mut host = LiveHost::new(LiveConfig {
        witness: Some(WitnessConfig::new(ProcessorId(0))),
        ..config
    });
    let bursts = request.wants("burst").then(|| {
        progress.run("bursts, live", 0);
        both(|constrained| burst::run(&mut host, LIVE_BURSTS, constrained))
    });
    let bursts = bursts.transpose().map_err(failed)?;
    let mut sweep: Option<sweep::Swept> = None;
    if request.wants("sweep") {
        for n in 0..LIVE_SWEEPS {
            progress.run("sweep, live", n as u32);
            let seed = request.seed.wrapping_add(n);
            let swept = sweep::run(&mut host, seed, LIVE_SWEEP).map_err(failed)?;
            sweep = Some(sweep.take().unwrap_or_default().and(swept));
        }
    }
    Ok(Shown {
        host: host.describe(),
        bursts,
        modem: Vec::new(),
        sweep,
    })
}
