//! What a twin of this machine predicts, beside what this machine does: the modem study's callback and its modem in every place.
//!
//! The twin knows the machine from its machine file ([`laxity_model::enforce::machine`]), and what a call of the signal processing takes here from
//! one run beside spinners alone. So the modem's share, and its response where nothing but interrupts keeps it waiting, are checks of
//! consistency. The rest it says before it is measured: the gaps of the callback, the response of a reserved modem, samples pending,
//! switches. Both sides are read by the same code, and intervals that the witness saw disturbed are left out of both.

mod compare;
mod recharge;
mod seen;

use std::sync::LazyLock;

use laxity_linux::LiveConfig;
use laxity_model::enforce::Witness;
use laxity_model::enforce::machine::{Machine, Quantiles};
use laxity_model::{Host, ProcessorId, Span};
use laxity_sim::Twin;

use compare::{Kind, Outcome, PutIn, Row, rows};
use laxity_lab::bench::{Experiment, Request, Text, pool};
use laxity_lab::report::{Check, Figure, Report};
use laxity_lab::runner::compose::{RunSpec, compose};
use laxity_lab::runner::live;
use laxity_lab::runner::schedule::{PlannedRun, schedule};
use laxity_lab::runner::{Progress, RunError, Silent};
use laxity_lab::scenario::{Length, Resolved, ResolvedDevice, ResolvedVariant, Start, parse};
use seen::Account;

static TEXT: LazyLock<Text> =
    LazyLock::new(|| Text::parse(include_str!("../../data/prediction.toml")));

/// The experiment.
pub struct Prediction;

impl Experiment for Prediction {
    fn text(&self) -> &'static Text {
        &TEXT
    }

    fn perform(&self, request: &Request, progress: &mut dyn Progress) -> Result<Report, RunError> {
        run(request, progress)
    }
}

/// The programs, as a scenario.
const PROGRAMS: &str = include_str!("programs.toml");
/// Its name in messages.
const FILE: &str = "prediction/programs.toml";
/// The variant from which the cost of a call is taken.
const CALIBRATION: &str = "calibration";
/// What a call takes where nothing was measured: the share that the scenario asks for, of a block of 12.5 ms.
const ASSUMED_CALL: Span = Span::from_nanos(1_837_500);

fn run(request: &Request, progress: &mut dyn Progress) -> Result<Report, RunError> {
    let Some(machine) = &request.machine else {
        return Err(RunError::CannotRun(unknown(request.live).into()));
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
    let calls = match calls {
        Some(measured) => alone(request, &resolved, machine, &measured)?,
        None => Quantiles::constant(ASSUMED_CALL),
    };
    let here = Here {
        machine,
        calls: &calls,
        processors: processors(&resolved, request.live)?,
    };
    let asked = |variant: &ResolvedVariant| variant.name != CALIBRATION;
    let predicted = predict(&resolved, asked, here, request.threads)?;
    Ok(report(
        request,
        &resolved,
        &predicted,
        measured.as_deref(),
        (here, charged),
    ))
}

/// What the twin is told of a machine.
#[derive(Clone, Copy)]
struct Here<'a> {
    machine: &'a Machine,
    /// What a call of the signal processing takes.
    calls: &'a Quantiles,
    processors: u16,
}

/// What is said where no machine is named.
const fn unknown(live: bool) -> &'static str {
    if live {
        "this machine is not known: measure it first, with `laxity calibrate`"
    } else {
        "no machine is named: the twin predicts for a machine file that `laxity calibrate` wrote, with --machine=FILE"
    }
}

/// The processors of the machine: those of the programs, and another one for what is outside them. Beside live runs this machine's own say
/// whether there is another one; a prediction by itself is the same wherever it is made.
fn processors(resolved: &Resolved, live: bool) -> Result<u16, RunError> {
    let of_programs = resolved.host.processors;
    if !live {
        return Ok(of_programs + 1);
    }
    let config = LiveConfig::detect(of_programs);
    let config = config.map_err(|error| RunError::CannotRun(error.to_string()))?;
    let shared = config.processors.contains(&config.external);
    Ok(of_programs + u16::from(!shared))
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

/// What a call takes apart from what the machine takes from it meanwhile, by a run of the calibration in the twin.
fn alone(
    request: &Request,
    resolved: &Resolved,
    machine: &Machine,
    measured: &Quantiles,
) -> Result<Quantiles, RunError> {
    let here = Here {
        machine,
        calls: measured,
        processors: processors(resolved, request.live)?,
    };
    let only = |variant: &ResolvedVariant| variant.name == CALIBRATION;
    let accounts = predict(resolved, only, here, request.threads)?;
    let with_machine =
        calibration(resolved, &accounts).and_then(|a| recharge::distribution(&a.calls));
    Ok(with_machine.map_or_else(
        || measured.clone(),
        |with_machine| recharge::without_machine(measured, &with_machine),
    ))
}

/// What this machine does, by variant.
fn measure(resolved: &Resolved, progress: &mut dyn Progress) -> Result<Vec<Account>, RunError> {
    let made = live::run(resolved, progress)?;
    let mut accounts = vec![Account::default(); resolved.variants.len()];
    for run in &made.runs {
        accounts[run.planned.variant].add(&run.record, &run.probes, &run.observations);
    }
    Ok(accounts)
}

/// What the twin says of the variants that are asked for, by variant: as many runs as are made live, each as long, with draws of its own.
fn predict(
    resolved: &Resolved,
    asked: impl Fn(&ResolvedVariant) -> bool,
    here: Here<'_>,
    threads: usize,
) -> Result<Vec<Account>, RunError> {
    let planned = schedule(resolved, asked, true);
    let name = |planned: &PlannedRun| resolved.variants[planned.variant].name.clone();
    let one = |planned: &PlannedRun| predict_one(resolved, here, *planned);
    let made = pool::map(&planned, threads, name, one, &mut Silent)?;
    let mut accounts = vec![Account::default(); resolved.variants.len()];
    for (variant, account) in made {
        accounts[variant].merge(&account);
    }
    Ok(accounts)
}

fn predict_one(
    resolved: &Resolved,
    here: Here<'_>,
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
    if let Some(modem) = composed.probes.modem() {
        recharge::recharge(&mut composed.program, modem, here.calls, seed);
    }
    let mut twin = Twin::linux(here.machine, seed)
        .on_processors(here.processors)
        .watched_by(Witness::new(ProcessorId(0)));
    let record = twin
        .admit_and_run(composed.program, planned.length)
        .map_err(wrong)?;
    let mut account = Account::default();
    account.read(&record, &composed.probes);
    Ok((planned.variant, account))
}

fn report(
    request: &Request,
    resolved: &Resolved,
    predicted: &[Account],
    measured: Option<&[Account]>,
    (here, charged): (Here<'_>, bool),
) -> Report {
    let mut figures = Vec::new();
    let mut judged: Vec<(Kind, Outcome)> = Vec::new();
    for (index, variant) in resolved.variants.iter().enumerate() {
        if variant.name == CALIBRATION {
            continue;
        }
        let live = measured.map(|measured| &measured[index]);
        let reserved = |device: &ResolvedDevice| device.placing.request().is_some();
        let put_in = PutIn {
            calls: charged,
            unhindered: !variant.devices.iter().any(reserved),
        };
        let rows = rows(&predicted[index], live, put_in);
        judged.extend(rows.iter().filter_map(|row| Some((row.kind, row.outcome?))));
        figures.push(figure(&variant.name, &variant.about, rows, live));
    }
    let call = if charged {
        format!(
            "median {}, measured beside spinners alone, less what the machine takes meanwhile",
            here.calls.median()
        )
    } else {
        format!("{}, assumed", here.calls.median())
    };
    Report {
        experiment: &TEXT.name,
        title: "A twin of this machine, and this machine".into(),
        summary: summary(&judged, measured.is_some()),
        circumstances: vec![
            ("machine", here.machine.description.clone()),
            ("machine file", here.machine.provenance.clone()),
            ("its processors", here.processors.to_string()),
            ("seed", request.seed.to_string()),
            ("runs of each program", resolved.run.repeats.to_string()),
            ("a call of the signal processing", call),
        ],
        figures,
        checks: if measured.is_some() {
            checks(&judged)
        } else {
            Vec::new()
        },
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

/// The rows of one kind.
#[derive(Clone, Copy, Default)]
struct Tally {
    within: usize,
    few: usize,
    off: usize,
}

impl Tally {
    fn of(judged: &[(Kind, Outcome)], kind: Kind) -> Self {
        let mut tally = Self::default();
        for (_, outcome) in judged.iter().filter(|(of, _)| *of == kind) {
            match outcome {
                Outcome::Within => tally.within += 1,
                Outcome::Few => tally.few += 1,
                Outcome::Off => tally.off += 1,
            }
        }
        tally
    }

    const fn all(self) -> usize {
        self.within + self.few + self.off
    }

    /// How many of how many are within the limit, and how many more nearly so.
    fn words(self, limit: &str) -> String {
        let mut words = format!("{} of {} within {limit}", self.within, self.all());
        if self.few > 0 {
            let more = format!(", {} more within 2 samples or 1 a second", self.few);
            words.push_str(&more);
        }
        words
    }
}

const PUT_IN: &str = "what follows directly from the cost of a call, which was measured";
const KINDS: [(Kind, &str, &str); 3] = [
    (Kind::Usual, "medians, shares and rates", "10 %"),
    (Kind::Tail, "99th percentiles", "25 %"),
    (Kind::PutIn, PUT_IN, "10 or 25 %"),
];

fn summary(judged: &[(Kind, Outcome)], measured: bool) -> Vec<String> {
    if !measured {
        return vec!["Predicted only: nothing was measured on this machine.".into()];
    }
    let kinds = KINDS.map(|(kind, name, limit)| {
        let words = Tally::of(judged, kind).words(limit);
        match kind {
            Kind::PutIn => format!("Not counted as predicted: {name}: {words}."),
            Kind::Usual | Kind::Tail => format!("Predicted {name}: {words}."),
        }
    });
    kinds.to_vec()
}

/// What was measured is compared with something, and agrees.
fn checks(judged: &[(Kind, Outcome)]) -> Vec<Check> {
    let claims = [
        "every median, share and rate is predicted within 10 %, or within 2 samples or 1 a second",
        "every 99th percentile is predicted within 25 %, or within 2 samples",
        "what follows directly from the measured cost of a call is consistent with it: medians and shares within 10 %, 99th percentiles within 25 %",
    ];
    let check = |((kind, _, limit), claim): ((Kind, &str, &str), &str)| {
        let tally = Tally::of(judged, kind);
        // Nothing is put in where no modem takes part.
        (kind != Kind::PutIn || tally.all() > 0).then(|| Check {
            claim: claim.into(),
            held: tally.off == 0 && tally.all() > 0,
            seen: tally.words(limit),
        })
    };
    KINDS.into_iter().zip(claims).filter_map(check).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_about_nothing_does_not_hold_and_what_is_put_in_is_counted_apart() {
        assert!(checks(&[]).iter().all(|check| !check.held));
        let held = |judged: &[(Kind, Outcome)]| -> Vec<bool> {
            checks(judged).iter().map(|check| check.held).collect()
        };
        let (usual, tail) = ((Kind::Usual, Outcome::Few), (Kind::Tail, Outcome::Within));
        assert_eq!(held(&[usual, tail]), [true, true]);
        let put_in = [usual, tail, (Kind::PutIn, Outcome::Off)];
        assert_eq!(held(&put_in), [true, true, false]);
        assert_eq!(held(&[usual, (Kind::Tail, Outcome::Off)]), [true, false]);
        let words = checks(&put_in)[0].seen.clone();
        assert_eq!(
            words,
            "0 of 1 within 10 %, 1 more within 2 samples or 1 a second"
        );
    }
}
