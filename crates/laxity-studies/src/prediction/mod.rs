//! What a twin of this machine predicts, beside what this machine does: the modem study's callback and its modem in every place.
//!
//! The twin knows the machine from its machine file ([`laxity_model::enforce::machine`]), and what a call of the signal processing takes here from
//! runs beside spinners alone; in each other run as much more or less as a reference block took beside it ([`laxity_lab::runner::speed`]), because a
//! machine's speed changes from minute to minute. So the modem's share, and where nothing but interrupts keeps it waiting its response and the samples that come in
//! meanwhile, are checks of consistency, and so is the callback's period where it comes out again. The rest the twin says of runs of which it is told nothing but
//! that speed, though it says so after they were made: the tails of the callback's gaps, the response of a reserved modem and its samples pending, switches. Both sides are read by the same code, and intervals that the witness saw disturbed are left out of both.

mod compare;
mod drawing;
mod recharge;
mod seen;

use std::sync::LazyLock;

use laxity::Twin;
use laxity::study::Profile;
use laxity_devices::modem::CardClock;
use laxity_lab::bench::{
    Draft, Holes, Made, Request, Round, Runner, Said, Study, Text, Trial, scene,
};
use laxity_lab::runner::RunError;
use laxity_lab::runner::compose::RunSpec;
use laxity_lab::runner::schedule::{PlannedRun, schedule};
use laxity_lab::scenario::{Resolved, ResolvedDevice, ResolvedVariant, Start};
use laxity_model::enforce::Witness;
use laxity_model::enforce::machine::{Machine, Quantiles};
use laxity_model::{HostError, ProcessorId, Span};

use compare::{Kind, Outcome, rows};
pub use seen::Account;
use seen::Of;

static TEXT: LazyLock<Text> =
    LazyLock::new(|| Text::parse(include_str!("../../data/prediction.toml")));

/// The programs. Data flows from the beginning, so that every call costs the same, and none is about the telephone.
static PROGRAMS: LazyLock<Resolved> = LazyLock::new(|| {
    let mut programs = scene::scenario(include_str!("../../data/prediction-programs.toml"));
    let variants = programs.variants.iter_mut();
    variants.for_each(|variant| variant.start = Start::Connected);
    programs
});

/// The variant from which the cost of a call is taken.
const CALIBRATION: &str = "calibration";
/// What a call takes where nothing was measured: the share that the scenario asks for, of a block of 12.5 ms.
const ASSUMED_CALL: Span = Span::from_nanos(1_837_500);

/// The experiment.
pub struct Prediction;

/// A run of a program.
#[derive(Clone, Debug)]
pub struct Case {
    planned: PlannedRun,
    seed: u64,
    /// On this machine: so many receivers besides the first.
    further_receivers: usize,
    /// In a twin: what it is told of this machine.
    told: Option<Told>,
}

/// What the twin is told of a machine.
#[derive(Clone, Debug)]
struct Told {
    machine: Machine,
    /// What a call of the signal processing takes.
    calls: Quantiles,
    processors: u16,
}

impl Study for Prediction {
    type Case = Case;
    type Seen = Account;

    fn text(&self) -> &'static Text {
        &TEXT
    }

    fn loaded(&self, request: &Request) -> Option<&'static Resolved> {
        machine(request).ok().map(|_| &*PROGRAMS)
    }

    fn rounds(&self, live: bool) -> usize {
        if live { 1 } else { 2 }
    }

    fn cases(&self, round: Round, made: &Made<'_, Self>) -> Result<Vec<Case>, RunError> {
        let machine = machine(made.request)?;
        let is_first = round.number == 0;
        let calls = match (round.live, is_first) {
            (true, _) => return planned(made, |_| true, |_| None),
            // The calibration, as if calls took what they were measured to take: what the machine takes from them comes on top.
            (false, true) => measured_calls(&made.live),
            (false, false) => calls(made).or(Some(Quantiles::constant(ASSUMED_CALL))),
        };
        let Some(calls) = calls else {
            return Ok(Vec::new());
        };
        let told = |run: &PlannedRun| {
            let pace = Pace::of(made, |live| {
                (live.variant, live.repeat) == (run.variant, run.repeat)
            });
            Some(Told {
                machine: machine.clone(),
                calls: pace.map_or_else(|| calls.clone(), |pace| pace.of_calls(&calls)),
                processors: processors(made),
            })
        };
        planned(made, |variant| is_calibration(variant) == is_first, told)
    }

    fn name(&self, case: &Case) -> String {
        PROGRAMS.variants[case.planned.variant].name.clone()
    }

    fn twin(&self, case: &Case) -> Twin {
        let Some(told) = &case.told else {
            return Twin::new(Profile::WIN2000_PII450);
        };
        Twin::linux(&told.machine, case.seed)
            .on_processors(told.processors)
            .watched_by(Witness::of_experiment(ProcessorId(0)))
    }

    fn run(&self, case: &Case, host: &mut Runner<'_>) -> Result<Account, HostError> {
        let (planned, seed) = (&case.planned, case.seed);
        let spec = RunSpec {
            seed,
            mss_bytes: PROGRAMS.mss_bytes,
            further_receivers: case.further_receivers,
            start: planned.start,
            gaps_only: planned.gaps_only,
            clock: CardClock::default(),
        };
        let variant = (&*PROGRAMS, &PROGRAMS.variants[planned.variant], None);
        let (record, probes) =
            scene::run(host, variant, spec, planned.length, |program, probes| {
                if let (Some(told), Some(modem)) = (&case.told, probes.modem()) {
                    recharge::recharge(program, modem, &told.calls, seed);
                }
            })?;
        Ok(Account::of(&record, &probes))
    }

    fn judge(&self, made: &Made<'_, Self>, draft: &mut Draft<'_>) -> Result<(), RunError> {
        circumstances(made, draft)?;
        let charged = calls(made).is_some();
        let mut judged: Vec<(Kind, Outcome)> = Vec::new();
        let mut doubts: Vec<(Kind, String)> = Vec::new();
        for (index, variant) in PROGRAMS.variants.iter().enumerate() {
            let Some(predicted) = account(&made.twin, index).filter(|_| !is_calibration(variant))
            else {
                continue;
            };
            let live = account(&made.live, index);
            let put_in = put_in(charged, variant);
            let said = made.said(|case| case.planned.variant == index);
            let doubt = said.doubt();
            let rows = rows(&predicted, (live.as_ref(), doubt.as_deref()), put_in);
            judged.extend(rows.iter().filter_map(|row| Some((row.kind, row.outcome?))));
            doubts.extend(
                rows.iter()
                    .filter_map(|row| Some((row.kind, row.doubt.clone()?))),
            );
            if let Some(figure) = draft.figure(&variant.name) {
                figure.compared = rows.into_iter().map(|row| row.compared).collect();
                figure.charts = drawing::charts(&predicted, live.as_ref());
                figure.side_by_side = true;
                let disturbed = said.disturbed_ppm();
                figure.remarks.extend(disturbed.map(|ppm| {
                    let percent = format!("{}.{:03}", ppm / 10_000, ppm % 10_000 / 10);
                    TEXT.say("disturbed", &[("percent", &percent)])
                }));
                let pace = Pace::of(made, |live| live.variant == index);
                let has_calls = !variant.devices.is_empty();
                figure
                    .remarks
                    .extend(pace.filter(|_| has_calls).map(Pace::words));
            }
        }
        tell(&judged, &doubts, made.request, draft);
        Ok(())
    }
}

/// What follows from what a call was measured to take: the modem's share, and where nothing but interrupts keeps a call from running through, its response and
/// the samples that come in meanwhile, 16 a millisecond.
fn put_in(charged: bool, variant: &ResolvedVariant) -> &'static [Of] {
    let reserved = |device: &ResolvedDevice| device.placing.request().is_some();
    let is_hindered = variant.devices.iter().any(reserved);
    match (charged, is_hindered) {
        (false, _) => &[],
        (true, true) => &[Of::Share],
        (true, false) => &[Of::Share, Of::Responses, Of::Pending],
    }
}

/// The machine that is predicted for.
fn machine(request: &Request) -> Result<&Machine, RunError> {
    let key = ["unknown", "unknown-here"][usize::from(request.live)];
    let machine = request.machine.as_ref();
    machine.ok_or_else(|| RunError::CannotRun(TEXT.say(key, &[])))
}

fn is_calibration(variant: &ResolvedVariant) -> bool {
    variant.name == CALIBRATION
}

/// How fast this machine was during some runs, beside how fast it was while calls were measured: what reference blocks took, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Pace {
    here: u64,
    there: u64,
}

impl Pace {
    /// That of these live runs; `None` if none was made.
    fn of(made: &Made<'_, Prediction>, is_asked: impl Fn(&PlannedRun) -> bool) -> Option<Self> {
        let took = |is_one: &dyn Fn(&PlannedRun) -> bool| {
            let runs = made.live.iter().enumerate();
            let runs = runs.filter(|(_, (case, _))| is_one(&case.planned));
            let speed = made.speed(runs.map(|(place, _)| place))?;
            Some(speed.reference_block_ns)
        };
        let calibrates = |run: &PlannedRun| is_calibration(&PROGRAMS.variants[run.variant]);
        Some(Self {
            here: took(&is_asked)?,
            there: took(&calibrates)?,
        })
    }

    fn of_calls(self, measured: &Quantiles) -> Quantiles {
        recharge::at_pace(measured, (self.here, self.there))
    }

    fn words(self) -> String {
        let [here, there] = [self.here, self.there].map(Span::from_nanos);
        let percent = self.here * 100 / self.there.max(1);
        let holes: Holes<'_> = &[("here", &here), ("there", &there), ("percent", &percent)];
        TEXT.say("paced", holes)
    }
}

/// The runs of the programs asked for, and of the calibration: in the twin as many as are made live, each as long, with draws of its own.
fn planned(
    made: &Made<'_, Prediction>,
    asked: impl Fn(&ResolvedVariant) -> bool,
    told: impl Fn(&PlannedRun) -> Option<Told>,
) -> Result<Vec<Case>, RunError> {
    let request = made.request;
    let mut programs = PROGRAMS.clone();
    programs.run.repeats = repeats(request);
    let wanted = |planned: &PlannedRun| {
        let variant = &programs.variants[planned.variant];
        asked(variant) && (is_calibration(variant) || request.wants(&variant.name))
    };
    let further = made.here.as_ref().map_or(0, |here| here.further_receivers);
    let case = |planned: PlannedRun| {
        let told = told(&planned);
        Case {
            seed: request.seed + u64::from(planned.repeat),
            planned,
            further_receivers: if told.is_some() { 0 } else { further },
            told,
        }
    };
    let all = schedule(&programs, true)?.into_iter();
    Ok(all.filter(wanted).map(case).collect())
}

/// How often each program is run.
fn repeats(request: &Request) -> u32 {
    request.repeats.unwrap_or(PROGRAMS.run.repeats).max(1)
}

/// The processors of the machine that is predicted for.
fn processors(made: &Made<'_, Prediction>) -> u16 {
    let here = made.here.as_ref().map(|here| here.processors);
    here.unwrap_or(PROGRAMS.host.processors + 1)
}

/// All runs of a program together; `None` if there was none.
fn account(trials: &[Trial<Prediction>], variant: usize) -> Option<Account> {
    let runs = trials
        .iter()
        .filter(|(case, _)| case.planned.variant == variant);
    let mut runs = runs.map(|(_, account)| account);
    let mut all = runs.next()?.clone();
    runs.for_each(|account| all.merge(account));
    Some(all)
}

/// What calls took in the calibration on this machine, or in its twin.
fn measured_calls(trials: &[Trial<Prediction>]) -> Option<Quantiles> {
    let calibration = PROGRAMS.variants.iter().position(is_calibration)?;
    let calls = account(trials, calibration)?;
    recharge::distribution(|ppm| calls.number(Of::Calls, ppm))
}

/// What a call takes apart from what the machine takes from it meanwhile, by a run of the calibration in the twin; `None` if nothing was measured.
fn calls(made: &Made<'_, Prediction>) -> Option<Quantiles> {
    let measured = measured_calls(&made.live)?;
    Some(match measured_calls(&made.twin) {
        Some(with_machine) => recharge::without_machine(&measured, &with_machine),
        None => measured,
    })
}

fn circumstances(made: &Made<'_, Prediction>, draft: &mut Draft<'_>) -> Result<(), RunError> {
    let machine = machine(made.request)?;
    let call = match calls(made) {
        Some(calls) => TEXT.say("measured", &[("median", &calls.median())]),
        None => TEXT.say("assumed", &[("median", &ASSUMED_CALL)]),
    };
    let mut file = machine.provenance.clone();
    let elsewhere = made.request.elsewhere.as_ref();
    if let Some(elsewhere) = elsewhere {
        file = format!("{file}; {}", elsewhere.sentence());
    }
    // Whose twin it is, where it need not be this machine's.
    let is_of_another = elsewhere.is_some_and(|elsewhere| elsewhere.is_other_hardware);
    let title = match made.request.live {
        true => is_of_another.then_some("of-another"),
        false => Some("of-it-alone"),
    };
    if let Some(title) = title {
        draft.entitle(title, &[("machine", &machine.description)]);
    }
    for (name, value) in [
        ("machine", machine.description.clone()),
        ("machine file", file),
        ("its processors", processors(made).to_string()),
        ("runs of each program", repeats(made.request).to_string()),
        ("a call of the signal processing", call),
    ] {
        draft.circumstance(name, value);
    }
    Ok(())
}

/// What came of the rows of each kind: its name among the sentences, in words, and whether what is claimed of it is so; `None` if there was nothing
/// to compare.
fn tallied(judged: &[(Kind, Outcome)]) -> [(Kind, &'static str, String, Option<bool>); 3] {
    let kinds = [
        (Kind::Usual, "usual", "10 %"),
        (Kind::Tail, "tail", "25 %"),
        (Kind::PutIn, "put-in", "10 or 25 %"),
    ];
    kinds.map(|(kind, key, limit)| {
        let outcomes = [Outcome::Within, Outcome::Few, Outcome::Off];
        let rows = |outcome| judged.iter().filter(|row| **row == (kind, outcome)).count();
        let [within, few, off] = outcomes.map(rows);
        let all = within + few + off;
        let mut words = match all {
            0 => TEXT.say("nothing", &[]),
            _ => format!("{within} of {all} within {limit}"),
        };
        if few > 0 {
            words += &format!(", {few} more within 2 samples or 1 a second");
        }
        // Of nothing nothing is claimed.
        (kind, key, words, (all > 0).then_some(off == 0))
    })
}

/// Of rows that are in doubt nobody knows whether they hold; one that does not is beyond it.
fn tell(
    judged: &[(Kind, Outcome)],
    doubts: &[(Kind, String)],
    request: &Request,
    draft: &mut Draft<'_>,
) {
    if !request.live {
        return draft.say("alone", &[]);
    }
    let elsewhere = request.elsewhere.as_ref();
    if let Some(elsewhere) = elsewhere {
        let key = ["other-kernel", "elsewhere"][usize::from(elsewhere.is_other_hardware)];
        draft.say(key, &[("measured", &elsewhere.sentence())]);
    }
    let elsewhere = elsewhere.filter(|elsewhere| elsewhere.is_other_hardware);
    let is_here = elsewhere.is_none();
    let elsewhere =
        elsewhere.map(|elsewhere| format!("the machine file was {}", elsewhere.sentence()));
    for (kind, key, words, held) in tallied(judged) {
        draft.say(key, &[("seen", &words)]);
        let doubt = doubts.iter().find(|(of, _)| *of == kind);
        if held.is_some() || doubt.is_some() {
            // Whether a twin of another machine is right of this one is nobody's claim.
            let held_so = (held == Some(true), held == Some(false) && is_here);
            let doubt = elsewhere.clone().or(doubt.map(|(_, why)| why.clone()));
            let said = Said::default().but(doubt);
            draft.claim_here(key, held_so, &[("seen", &words)], &said);
        }
    }
}

#[cfg(test)]
mod tests;
