//! What a twin of this machine predicts, beside what this machine does: the modem study's callback and its modem in every place.
//!
//! The twin knows the machine from its machine file ([`laxity_model::machine`]), and what a call of the signal processing takes here from
//! one run with nothing beside it. Everything else it says before it is measured: the gaps of the callback, the modem's response time,
//! samples pending, switches, shares. Both sides are read by the same code, and intervals that the witness saw disturbed are left
//! out of both.

mod compare;
mod recharge;
mod seen;

use laxity_linux::LiveConfig;
use laxity_model::machine::{Machine, Quantiles};
use laxity_model::{Host, ProcessorId, Span};
use laxity_sim::Twin;
use laxity_sim::linux::Witness;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use super::sheet::{Check, Figure, Sheet};
use super::study::{Request, Study};
use crate::runner::compose::{RunSpec, compose};
use crate::runner::live;
use crate::runner::schedule::{PlannedRun, schedule};
use crate::runner::{Progress, RunError};
use crate::scenario::{Length, Resolved, Start, parse};
use compare::{Row, rows};
use seen::Account;

/// The experiment.
pub const STUDY: Study = Study {
    name: "prediction",
    summary: "what a twin of this machine predicts, beside what this machine does",
    figures: &[
        ("idle", "the 1 ms callback alone on an idle processor"),
        ("none", "the callback beside 12 spinners"),
        ("interrupt", "with the modem in the interrupt handler"),
        ("deferred", "with the modem in a deferred call"),
        ("thread-24", "with the modem in a real-time thread"),
        (
            "slots",
            "with the modem reserved 2 ms of every 8, by time slots",
        ),
        (
            "deadline",
            "with the modem reserved 2 ms of every 8, by SCHED_DEADLINE",
        ),
    ],
    run,
};

/// The programs, as a scenario.
const PROGRAMS: &str = include_str!("programs.toml");
/// Its name in messages.
const FILE: &str = "prediction/programs.toml";
/// The variant from which the cost of a call is taken.
const CALIBRATION: &str = "calibration";
/// What a call takes where nothing was measured: the share that the scenario asks for, of a block of 12.5 ms.
const ASSUMED_CALL: Span = Span::from_nanos(1_837_500);

fn run(request: &Request, progress: &mut dyn Progress) -> Result<Sheet, RunError> {
    let Some(machine) = &request.machine else {
        let text = "this machine is not known: measure it first, with `laxity calibrate`";
        return Err(RunError::CannotRun(text.into()));
    };
    let resolved = programs(request)?;
    let measured = request
        .live
        .then(|| measure(&resolved, progress))
        .transpose()?;
    let calls = measured
        .as_ref()
        .and_then(|accounts| recharge::distribution(&calibration(&resolved, accounts)?.calls));
    let charged = calls.is_some();
    let calls = calls.unwrap_or_else(|| Quantiles::constant(ASSUMED_CALL));
    let predicted = predict(&resolved, machine, &calls, request.threads)?;
    Ok(sheet(
        request,
        &resolved,
        &predicted,
        measured.as_deref(),
        (machine, &calls, charged),
    ))
}

fn programs(request: &Request) -> Result<Resolved, RunError> {
    let scenario = parse(PROGRAMS, FILE).map_err(|wrong| {
        let text: Vec<String> = wrong.iter().map(ToString::to_string).collect();
        RunError::CannotRun(text.join("; "))
    })?;
    let mut resolved = scenario.resolve(Length::Full);
    resolved.seed = request.seed;
    if let Some(repeats) = request.repeats {
        resolved.run.repeats = repeats.max(1);
    }
    // Data flows from the beginning: every call costs the same, and none is about the telephone.
    for variant in &mut resolved.variants {
        variant.start = Start::Connected;
    }
    resolved.keep(|variant| variant.name == CALIBRATION || request.wants(&variant.name));
    Ok(resolved)
}

fn calibration<'a>(resolved: &Resolved, accounts: &'a [Account]) -> Option<&'a Account> {
    let variants = resolved.variants.iter();
    let mut named = variants.zip(accounts);
    named
        .find(|(variant, _)| variant.name == CALIBRATION)
        .map(|(_, account)| account)
}

/// What this machine does, by variant.
fn measure(resolved: &Resolved, progress: &mut dyn Progress) -> Result<Vec<Account>, RunError> {
    let made = live::run(resolved, progress)?;
    let mut accounts = vec![Account::default(); resolved.variants.len()];
    for run in &made.runs {
        accounts[run.planned.variant].add(&run.record, &run.probes, &run.seen);
    }
    Ok(accounts)
}

/// What the twin says, by variant: as many runs as are made live, each as long, with draws of its own.
fn predict(
    resolved: &Resolved,
    machine: &Machine,
    calls: &Quantiles,
    threads: usize,
) -> Result<Vec<Account>, RunError> {
    let planned = schedule(resolved, |_| true, true);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| RunError::CannotRun(format!("no threads: {error}")))?;
    let one = |planned: &PlannedRun| predict_one(resolved, machine, calls, *planned);
    let made: Vec<Result<(usize, Account), RunError>> =
        pool.install(|| planned.par_iter().map(one).collect());
    let mut accounts = vec![Account::default(); resolved.variants.len()];
    for made in made {
        let (variant, account) = made?;
        accounts[variant].merge(&account);
    }
    Ok(accounts)
}

fn predict_one(
    resolved: &Resolved,
    machine: &Machine,
    calls: &Quantiles,
    planned: PlannedRun,
) -> Result<(usize, Account), RunError> {
    let variant = &resolved.variants[planned.variant];
    let seed = resolved.seed + u64::from(planned.repeat);
    let spec = RunSpec {
        seed,
        mss_bytes: resolved.mss_bytes,
        further_receivers: 0,
        start: planned.start,
        gaps_only: planned.gaps_only,
    };
    let wrong = |error| RunError::of(error, variant);
    let processors = resolved.host.processors;
    let mut composed = compose(variant, processors, &resolved.run, spec).map_err(wrong)?;
    if let Some(modem) = &composed.probes.modem {
        recharge::recharge(&mut composed.program, modem, calls, seed);
    }
    let here = LiveConfig::detect(processors);
    let all = here.map_or(processors, |config| {
        let shared = config.processors.contains(&config.external);
        processors + u16::from(!shared)
    });
    let mut twin = Twin::linux(machine, seed)
        .on_processors(all)
        .watched_by(Witness::new(ProcessorId(0)));
    let record = twin.run(composed.program, planned.length).map_err(wrong)?;
    let mut account = Account::default();
    account.read(&record, &composed.probes);
    Ok((planned.variant, account))
}

fn sheet(
    request: &Request,
    resolved: &Resolved,
    predicted: &[Account],
    measured: Option<&[Account]>,
    (machine, calls, charged): (&Machine, &Quantiles, bool),
) -> Sheet {
    let mut figures = Vec::new();
    let mut all: Vec<(bool, bool)> = Vec::new();
    for (index, variant) in resolved.variants.iter().enumerate() {
        if variant.name == CALIBRATION {
            continue;
        }
        let live = measured.map(|measured| &measured[index]);
        let rows = rows(&predicted[index], live);
        let judged = rows.iter();
        all.extend(judged.filter_map(|row| Some((row.tail, row.agrees?))));
        figures.push(figure(&variant.name, &variant.about, rows, live));
    }
    let call = if charged {
        format!("median {}, measured with nothing beside it", calls.median())
    } else {
        format!("{}, assumed", calls.median())
    };
    Sheet {
        experiment: STUDY.name,
        title: "A twin of this machine, and this machine".into(),
        summary: summary(&all),
        circumstances: vec![
            ("machine", machine.description.clone()),
            ("machine file", machine.provenance.clone()),
            ("seed", request.seed.to_string()),
            ("runs of each program", resolved.run.repeats.to_string()),
            ("a call of the signal processing", call),
        ],
        figures,
        checks: checks(&all),
    }
}

fn figure(name: &str, about: &str, rows: Vec<Row>, live: Option<&Account>) -> Figure {
    let disturbed = live.and_then(Account::disturbed_ppm);
    let remarks = disturbed.map(|ppm| {
        let (percent, thousandths) = (ppm / 10_000, ppm % 10_000 / 10);
        format!("Live, {percent}.{thousandths:03} % of the witness's wake-ups were late: what overlaps one is left out.")
    });
    Figure {
        key: name.into(),
        title: about.into(),
        about: "Predicted by the twin, measured on this machine.".into(),
        charts: Vec::new(),
        compared: rows.into_iter().map(|row| row.compared).collect(),
        tables: Vec::new(),
        remarks: remarks.into_iter().collect(),
    }
}

/// How many of the rows of one kind agree, of how many.
fn agreeing(all: &[(bool, bool)], tail: bool) -> (usize, usize) {
    let kind = all.iter().filter(|(is_tail, _)| *is_tail == tail);
    (
        kind.clone().filter(|(_, agrees)| *agrees).count(),
        kind.count(),
    )
}

fn summary(all: &[(bool, bool)]) -> Vec<String> {
    if all.is_empty() {
        return vec!["Predicted only: nothing was measured on this machine.".into()];
    }
    let ((medians, of), (tails, of_tails)) = (agreeing(all, false), agreeing(all, true));
    vec![format!(
        "{medians} of {of} medians, shares and rates are predicted within 10 %, {tails} of {of_tails} 99th percentiles within 25 %."
    )]
}

fn checks(all: &[(bool, bool)]) -> Vec<Check> {
    let kinds = [
        (
            false,
            "every median, share and rate is predicted within 10 %",
        ),
        (true, "every 99th percentile is predicted within 25 %"),
    ];
    let check = |(tail, claim): (bool, &str)| {
        let (agree, of) = agreeing(all, tail);
        (of > 0).then(|| Check {
            claim: claim.into(),
            held: agree == of,
            seen: format!("{agree} of {of}"),
        })
    };
    kinds.into_iter().filter_map(check).collect()
}
