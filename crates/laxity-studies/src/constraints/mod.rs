//! One-shot time constraints (Jones, Roşu, Roşu, "CPU Reservations and Time Constraints", SOSP 1997): so much service between a start and a
//! deadline, granted or refused at once, also inside a reservation.

pub mod answers;
pub mod burst;
pub mod sweep;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use laxity::study::Profile;
use laxity::{Recording, Twin};
use laxity_lab::bench::{Draft, Holes, Made, Round, Runner, Said, Study, Text, Trial};
use laxity_lab::report::{Axis, Chart, Origin, Row, Series, Value, nanos};
use laxity_lab::runner::RunError;
use laxity_model::{HostError, Span};

use crate::call::{self, Setup, Way};
use crate::or;
use crate::served::Served;
use burst::{Bursts, Other};
use sweep::Swept;

static TEXT: LazyLock<Text> =
    LazyLock::new(|| Text::parse(include_str!("../../data/constraints.toml")));

/// Calls of the modem, each in another phase to the slots: as many as there are.
const MODEM_CALLS: u64 = 7;
/// The time constraint of the modem's call, from its interrupt; the next one comes 12.5 ms after it.
const MODEM_WITHIN: Span = Span::from_millis(10);
/// What the bursts that ask are called.
const WITH: &str = "with a time constraint";
/// The width of a histogram's bar.
const BAR: Span = Span::from_micros(250);

/// What differs between the two kinds of hosts.
struct Place {
    name: &'static str,
    origin: Origin,
    /// How many bursts are made.
    bursts: u64,
    /// How many sweeps, and how long each is.
    sweeps: (u32, Span),
    /// What may be missing of granted service, in parts per million: in the twin what the clock's interrupts take, here all that is not the
    /// program's, as slots are kept.
    tolerated_ppm: u64,
    /// In how many windows a reservation must be kept, in parts per million: here as the slot dispatcher keeps them.
    kept_ppm: u64,
}

const TWIN: Place = Place {
    name: "in the twin",
    origin: Origin::Simulated,
    bursts: 300,
    sweeps: (24, Span::from_secs(6)),
    tolerated_ppm: 10_000,
    kept_ppm: 1_000_000,
};
const HERE: Place = Place {
    name: "on this machine",
    origin: Origin::Measured,
    bursts: 80,
    sweeps: (2, Span::from_secs(3)),
    tolerated_ppm: 50_000,
    kept_ppm: 980_000,
};

/// The experiment.
pub struct Constraints;

/// One thing that is run.
#[derive(Clone, Debug)]
pub enum Case {
    /// So many bursts inside a reservation, each with a time constraint or none.
    Bursts(u64, bool),
    /// A call of the modem.
    Modem(Setup),
    /// Random time constraints: the seed, and for how long.
    Sweep(u64, Span),
}

/// What was seen of it.
#[derive(Clone, Debug)]
pub enum Seen {
    /// See [`Case::Bursts`].
    Bursts(Bursts),
    /// See [`Case::Modem`].
    Modem(call::Seen),
    /// See [`Case::Sweep`].
    Sweep(Swept),
}

impl Study for Constraints {
    type Case = Case;
    type Seen = Seen;

    fn cases(&self, round: Round, made: &Made<'_, Self>) -> Result<Vec<Case>, RunError> {
        let request = made.request;
        let place = if round.live { HERE } else { TWIN };
        let mut cases = Vec::new();
        if request.wants("burst") {
            cases.extend([false, true].map(|constrained| Case::Bursts(place.bursts, constrained)));
        }
        if request.wants("modem") && !round.live {
            let setup = |n: u64, constrained: bool| Setup {
                way: Way::Whole,
                confined: true,
                rogue: false,
                recognition_within: constrained.then_some(MODEM_WITHIN),
                on_hook: Span::from_millis(300),
                seed: request.seed.wrapping_add(n),
                length: Span::from_secs(30),
            };
            let calls = (0..MODEM_CALLS).flat_map(|n| [setup(n, false), setup(n, true)]);
            cases.extend(calls.map(Case::Modem));
        }
        if request.wants("sweep") {
            let (usual, length) = place.sweeps;
            let sweeps = match round.live {
                false => request.repeats.unwrap_or(usual).clamp(1, 10_000),
                true => usual,
            };
            let seeds = (0..u64::from(sweeps)).map(|n| request.seed.wrapping_add(n));
            cases.extend(seeds.map(|seed| Case::Sweep(seed, length)));
        }
        Ok(cases)
    }

    fn name(&self, case: &Case) -> String {
        match case {
            Case::Bursts(..) => "bursts".into(),
            Case::Modem(_) => "modem".into(),
            Case::Sweep(..) => "sweep".into(),
        }
    }

    fn twin(&self, case: &Case) -> Twin {
        let twin = Twin::new(Profile::WIN2000_PII450);
        match case {
            Case::Sweep(..) => twin.recording(Recording::MARKS),
            _ => twin,
        }
    }

    fn run(&self, case: &Case, host: &mut Runner<'_>) -> Result<Seen, HostError> {
        Ok(match case {
            Case::Bursts(bursts, constrained) => {
                Seen::Bursts(burst::run(host, *bursts, *constrained)?)
            }
            Case::Modem(setup) => Seen::Modem(call::run(host, setup)?),
            Case::Sweep(seed, length) => Seen::Sweep(sweep::run(host, *seed, *length)?),
        })
    }

    fn judge(&self, made: &Made<'_, Self>, draft: &mut Draft<'_>) -> Result<(), RunError> {
        let twin = Runs::of(&made.twin);
        let live = Runs {
            said: [
                made.said(|case| matches!(case, Case::Bursts(..))),
                made.said(|case| matches!(case, Case::Sweep(..))),
            ],
            ..Runs::of(&made.live)
        };
        let (mut bursts, mut sweeps) = (Vec::new(), Vec::new());
        for (place, runs) in [(TWIN, &twin), (HERE, &live)] {
            if let [without, with] = runs.bursts[..] {
                bursts.extend([burst_row(without, "without", &place)]);
                bursts.extend([burst_row(with, WITH, &place)]);
                draw(draft, [without, with], &place);
                claim_of_bursts(draft, [without, with], &place, &runs.said[0]);
            }
            sweeps.extend(runs.swept.as_ref().map(|swept| {
                claim_of_sweep(draft, swept, &place, &runs.said[1]);
                sweep_row(swept, &place)
            }));
        }
        draft.table("burst", "burst", &[], bursts);
        draft.table("sweep", "sweep", &[], sweeps);
        draft.table("answers", "answers", &[], answers::answers());
        let calls = (1_usize..).zip(&twin.calls).filter_map(call_row);
        draft.table("modem", "modem", &[], calls);
        claim_of_modem(draft, &twin.calls);
        Ok(())
    }

    fn text(&self) -> &'static Text {
        &TEXT
    }
}

/// The runs of one host, by what they are.
#[derive(Default)]
struct Runs<'a> {
    /// Without a time constraint, and with one; empty if not asked for.
    bursts: Vec<&'a Bursts>,
    /// Calls of the modem without and with.
    calls: Vec<[&'a call::Seen; 2]>,
    /// All sweeps together.
    swept: Option<Swept>,
    /// What the runs of bursts say of themselves, and those of sweeps.
    said: [Said; 2],
}

impl<'a> Runs<'a> {
    fn of(trials: &'a [Trial<Constraints>]) -> Self {
        let mut runs = Self::default();
        let mut calls = Vec::new();
        for (_, seen) in trials {
            match seen {
                Seen::Bursts(bursts) => runs.bursts.push(bursts),
                Seen::Modem(call) => calls.push(call),
                Seen::Sweep(swept) => runs.swept = Some(runs.swept.unwrap_or_default().and(swept)),
            }
        }
        let both = calls.chunks_exact(2).map(|both| [both[0], both[1]]);
        runs.calls = both.collect();
        runs
    }
}

fn burst_row(seen: &Bursts, variant: &str, place: &Place) -> Row {
    let bursts = &seen.bursts;
    let count = |of: fn(&burst::Burst) -> bool| bursts.iter().filter(|burst| of(burst)).count();
    let shortest = bursts.iter().map(|burst| burst.response).min();
    let mut row = place.origin.row([
        format!("{variant}, {}", place.name).into(),
        bursts.len().into(),
        count(|burst| burst.granted).into(),
    ]);
    row.extend([shortest, seen.longest()].map(|known| place.origin.cell(known?)));
    row.extend(place.origin.row([
        seen.late().count().into(),
        seen.disturbed().into(),
        seen.undeclared().into(),
    ]));
    let other = [
        seen.other.map(|other| other.least.into()),
        seen.other.map(|other| Value::share(other.kept_ppm)),
    ];
    row.extend(other.map(|known: Option<Value>| place.origin.cell(known?)));
    row
}

/// Histograms of the responses.
fn draw(draft: &mut Draft<'_>, [without, with]: [&Bursts; 2], place: &Place) {
    let series = [("without", without), (WITH, with)].map(|(name, seen)| {
        let responses = seen.bursts.iter().map(|burst| burst.response);
        Series::histogram(name, (Span::ZERO, BAR), responses)
    });
    let caption = TEXT.say("chart", &[("place", &place.name)]);
    let axes = (Axis::time("response"), Axis::count("bursts"));
    let mut chart = Chart::new(caption, axes, series.into());
    let deadline = nanos(burst::WITHIN);
    let top = (deadline, with.bursts.len() as i64);
    chart.lines.push(("deadline".into(), (deadline, 0), top));
    draft.chart("burst", chart);
}

fn claim_of_bursts(
    draft: &mut Draft<'_>,
    [without, with]: [&Bursts; 2],
    place: &Place,
    said: &Said,
) {
    let quiet = |seen: &Bursts| seen.quiet().count();
    let [late_without, late] = [without, with].map(|seen| seen.late().count());
    let [longest_without, longest] = [without, with].map(|seen| or(seen.longest(), "none"));
    let [kept_without, kept] =
        [without, with].map(|seen| or(seen.other.map(|other| other.kept_ppm), "none"));
    let [least_without, least] =
        [without, with].map(|seen| or(seen.other.map(|other| other.least), "none"));
    let seen: Holes<'_> = &[
        ("place", &place.name),
        ("bursts", &with.bursts.len()),
        ("bursts-without", &without.bursts.len()),
        ("late", &late),
        ("late-without", &late_without),
        ("undeclared", &with.undeclared()),
        ("all", &quiet(with)),
        ("all-without", &quiet(without)),
        ("longest", &longest),
        ("longest-without", &longest_without),
        ("percent", &(place.kept_ppm / 10_000)),
        ("kept", &kept),
        ("kept-without", &kept_without),
        ("least", &least),
        ("least-without", &least_without),
    ];
    draft.say("bursts", seen);
    let granted = with.bursts.iter().all(|burst| burst.granted);
    let all = with.bursts.len() as u64 == place.bursts;
    let is_done = granted && all && late == 0 && quiet(with) > 0;
    let is_late = late_without == quiet(without) && quiet(without) > 0;
    let is_enough = |other: Other| other.kept_ppm >= place.kept_ppm;
    let is_kept = with.other.is_some_and(is_enough);
    // No halt excuses a refusal, nor what was seen while the machine went on.
    let unseen = unseen(
        with.late().map(|burst| burst.lacked),
        with.disturbed(),
        said,
    );
    let is_broken = !granted || (late > 0 && unseen.is_none());
    let is_early = late_without < quiet(without);
    let is_short = !is_kept && with.other.is_some();
    for (key, held, is_certain, unseen) in [
        ("done", is_done, is_broken, unseen),
        ("late", is_late, is_early, None),
        ("kept", is_kept, is_short, None),
    ] {
        draft.claim_here(key, (held, is_certain), seen, &said.clone().but(unseen));
    }
}

/// Why those that lacked so much while nobody saw the machine stand still convict nobody, if they do not: each lacked no more than a halt may take that nobody
/// sees, and they are no more than met one that was seen; or there is one of them. So a judgement of times has it, too.
fn unseen(
    lacked: impl Iterator<Item = Span> + Clone,
    disturbed: usize,
    said: &Said,
) -> Option<String> {
    let (times, unseen) = (lacked.clone().count(), said.facts().unseen);
    let longest = lacked.max()?;
    let may_be = longest < unseen && times <= disturbed.max(1);
    let told: Holes<'_> = &[
        ("times", &times),
        ("longest", &longest),
        ("unseen", &unseen),
        ("disturbed", &disturbed),
    ];
    may_be.then(|| TEXT.say("unseen", told))
}

fn sweep_row(swept: &Swept, place: &Place) -> Row {
    place.origin.row([
        place.name.into(),
        swept.granted.len().into(),
        swept.no_time.into(),
        swept.otherwise.into(),
        swept.disturbed().into(),
        swept.missed(place.tolerated_ppm).count().into(),
    ])
}

fn claim_of_sweep(draft: &mut Draft<'_>, swept: &Swept, place: &Place, said: &Said) {
    let lacked = swept.missed(place.tolerated_ppm);
    let missed = lacked.clone().count();
    let told: Holes<'_> = &[
        ("place", &place.name),
        ("granted", &swept.granted.len()),
        ("missed", &missed),
        ("disturbed", &swept.disturbed()),
        ("refused", &swept.refused()),
    ];
    draft.say("sweep", told);
    let held = missed == 0 && swept.granted.len() > swept.disturbed();
    let unseen = unseen(lacked, swept.disturbed(), said);
    let is_certain = missed > 0 && unseen.is_none();
    draft.claim_here("sweep", (held, is_certain), told, &said.clone().but(unseen));
}

/// The call that had a time constraint, and the same one of the run without.
fn recognition([without, with]: &[&call::Seen; 2]) -> Option<[Served; 2]> {
    let place = with.off_hook.iter().position(|call| call.constrained)?;
    Some([*without.off_hook.get(place)?, with.off_hook[place]])
}

fn call_row((number, both): (usize, &[&call::Seen; 2])) -> Option<Row> {
    let [without, with] = recognition(both)?;
    Some(Origin::Simulated.row([
        format!("call {number}").into(),
        with.begun.saturating_since(with.raised).into(),
        without.response().into(),
        with.response().into(),
    ]))
}

fn claim_of_modem(draft: &mut Draft<'_>, calls: &[[&call::Seen; 2]]) {
    if calls.is_empty() {
        return;
    }
    let granted: Vec<[Served; 2]> = calls.iter().filter_map(recognition).collect();
    let [without, with] = [0, 1].map(|which| {
        let late = granted
            .iter()
            .filter(|both| both[which].response() > MODEM_WITHIN);
        late.count()
    });
    let seen: Holes<'_> = &[
        ("granted", &granted.len()),
        ("calls", &calls.len()),
        ("late", &with),
        ("late-without", &without),
    ];
    let held = granted.len() == calls.len() && with == 0 && without > 0;
    draft.claim("modem", held, seen);
}
