//! Soft devices on several processors, each bound to one: the further research of Jones and Saroiu, "Predictability Requirements of a
//! Soft Modem", §7.
//!
//! * [`mod@place`]: which processor each device gets, and why.

pub mod place;

use std::num::NonZeroU16;
use std::sync::LazyLock;

use laxity_lab::bench::{Draft, Holes, Made, Request, Round, Runner, Study, Text};
use laxity_lab::report::{Origin, Row, Value};
use laxity_lab::runner::RunError;
use laxity_model::analysis::multiprocessor::{Fit, Order, Tardiness, global_edf, tardiness};
use laxity_model::analysis::{Overflow, Task};
use laxity_model::{HostError, Span};
use serde::Deserialize;

use crate::sets::demand::Ground;
use crate::sets::kind::Kind;
use crate::sets::run::{Member, Outcome, Seen, Setup};
use crate::sets::serving::{Variant, Way};
use crate::sets::{Case, Trial, length, load, name_of, outcomes, served, so_for_all, tables};
use place::{Placed, Placing, place};

static TEXT: LazyLock<Text> =
    LazyLock::new(|| Text::parse(include_str!("../../data/processors.toml")));

/// The usual way: the largest first, each where there is room first.
const USUAL: (Fit, Order) = (Fit::First, Order::Decreasing);
/// As evenly as possible.
const EVEN: (Fit, Order) = (Fit::Worst, Order::Decreasing);
const TWO: NonZeroU16 = NonZeroU16::MIN.saturating_add(1);

const RESERVED: Variant = Variant::of(Way::Reserved, true);
const OUTRANKED: Variant = Variant::of(Way::RealTime, true);
/// What is run of the mixed sets.
const PARTITIONED: [Variant; 3] = [RESERVED, OUTRANKED, Variant::of(Way::Normal, false)];
/// What is run of the modems: the study's placements, without a rogue.
const STUDIED: [Variant; 5] = [
    Variant::of(Way::Interrupt, false),
    Variant::of(Way::Deferred, false),
    Variant::of(Way::RealTime, false),
    Variant::of(Way::Normal, false),
    Variant::of(Way::Reserved, false),
];

/// The experiment.
pub struct Processors;

/// A set on several processors.
#[derive(Clone, Debug, Deserialize)]
struct System {
    /// The figure it belongs to.
    figure: String,
    processors: NonZeroU16,
    devices: Vec<Kind>,
    /// Its number among all systems.
    #[serde(skip)]
    number: usize,
    /// Where its devices are, or which has no room.
    #[serde(skip)]
    placing: Placing,
}

impl Study for Processors {
    type Case = Case;
    type Seen = Outcome;

    fn text(&self) -> &'static Text {
        &TEXT
    }

    fn rounds(&self, live: bool) -> usize {
        if live { load::ROUNDS + 1 } else { 1 }
    }

    fn processors(&self) -> u16 {
        TWO.get()
    }

    fn cases(&self, round: Round, made: &Made<'_, Self>) -> Result<Vec<Case>, RunError> {
        let request = made.request;
        if round.live && round.number < load::ROUNDS {
            let systems = declared(request, true);
            let kinds: Vec<Kind> = systems.flat_map(|system| system.devices).collect();
            let processors = self.processors();
            return Ok(load::cases(
                round.number,
                &kinds,
                &made.live,
                processors,
                request.seed,
            ));
        }
        let loads = load::loads(&made.live);
        let systems = match round.live {
            false => in_twin(request)?,
            true => here(request, &loads)?,
        };
        let mut cases = Vec::new();
        for system in systems.iter().filter(|system| !system.placed().is_empty()) {
            let variants = match system.figure.as_str() {
                "variants" => &STUDIED[..],
                _ => &PARTITIONED[..],
            };
            let setup = system.setup(request, round.live.then_some(&loads));
            cases.extend(served(&setup, system.number, &system.name(), variants));
        }
        Ok(cases)
    }

    fn name(&self, case: &Case) -> String {
        case.name.clone()
    }

    fn run(&self, case: &Case, host: &mut Runner<'_>) -> Result<Outcome, HostError> {
        case.setup.run(host)
    }

    fn judge(&self, made: &Made<'_, Self>, draft: &mut Draft<'_>) -> Result<(), RunError> {
        let request = made.request;
        draft.circumstance("length of a run", length(request).to_string());
        let systems = in_twin(request)?;
        let of = |figure| systems.iter().filter(move |system| system.figure == figure);
        for system in of("partition") {
            partition(draft, system, &made.twin)?;
        }
        let modems: Vec<&System> = of("variants").collect();
        variants(draft, &modems, &made.twin);
        if request.wants("refused") {
            refused(draft).map_err(too_large)?;
        }
        if !made.live.is_empty() {
            let loads = load::loads(&made.live);
            if let Some(figure) = draft.figure("live") {
                figure.tables.push(tables::loads(&loads));
            }
            for system in here(request, &loads)? {
                live(draft, &system, &made.live);
            }
        }
        Ok(())
    }
}

fn too_large(overflow: Overflow) -> RunError {
    RunError::Failed {
        variant: "placing".into(),
        reason: overflow.to_string(),
    }
}

/// The systems that are asked for of a kind of host, not placed yet.
fn declared(request: &Request, live: bool) -> impl Iterator<Item = System> {
    let systems: Vec<System> = TEXT.quoted("systems");
    let systems = systems.into_iter().enumerate();
    let systems = systems.map(|(number, system)| System { number, ..system });
    systems.filter(move |system| (system.figure == "live") == live && request.wants(&system.figure))
}

fn in_twin(request: &Request) -> Result<Vec<System>, RunError> {
    let ground = Ground::twin();
    let place = |system: System| {
        let how = if system.figure == "variants" {
            EVEN
        } else {
            USUAL
        };
        system.placed_by(&ground, how)
    };
    declared(request, false).map(place).collect()
}

fn here(request: &Request, loads: &[load::Loaded]) -> Result<Vec<System>, RunError> {
    let place = |system: System| {
        let ground = load::ground(loads, &system.devices);
        system.placed_by(&ground, USUAL)
    };
    declared(request, true).map(place).collect()
}

impl System {
    fn placed_by(self, ground: &Ground, how: (Fit, Order)) -> Result<Self, RunError> {
        let placing = place(ground, &self.devices, self.processors, how).map_err(too_large)?;
        Ok(Self { placing, ..self })
    }

    /// Its devices where they are; empty if there is no room.
    fn placed(&self) -> &[Placed] {
        match &self.placing {
            Placing::Found(placed) => placed,
            Placing::NoRoom(..) => &[],
        }
    }

    /// Its run, with reservations. Live the rogue is on the first processor only: on the second it would keep the far ends from
    /// delivering.
    fn setup(&self, request: &Request, loads: Option<&Vec<load::Loaded>>) -> Setup {
        let members = self.placed().iter().map(|placed| Member {
            kind: placed.kind,
            processor: placed.processor,
            reservation: Some(placed.reservation),
            further: loads.map_or(0, |loads| load::further(loads, placed.kind)),
        });
        Setup {
            members: members.collect(),
            variant: RESERVED,
            processors: self.processors.get(),
            seed: request.seed,
            length: length(request),
            drifts: loads.is_none(),
            rogues: loads.map_or(self.processors.get(), |_| 1),
            watched: true,
        }
    }

    fn name(&self) -> String {
        format!(
            "{} on {} processors",
            name_of(&self.devices),
            self.processors
        )
    }

    /// What was seen of it, served so.
    fn outcome<'a>(&self, trials: &'a [Trial], variant: Variant) -> Option<&'a Outcome> {
        let mut outcomes = outcomes(trials, self.number);
        outcomes
            .find(|(of, _)| *of == variant)
            .map(|(_, outcome)| outcome)
    }

    /// What was seen of its devices, served so, each with its name.
    fn seen<'a>(&self, trials: &'a [Trial], variant: Variant) -> Vec<(String, &'a Seen)> {
        let outcome = self.outcome(trials, variant);
        let devices = outcome.into_iter().flat_map(|outcome| &outcome.devices);
        let named = |seen: &'a Seen| (format!("{} on {}", seen.kind.name(), seen.processor), seen);
        devices.map(named).collect()
    }
}

/// Adds where the devices of a system are.
fn places(draft: &mut Draft<'_>, figure: &str, system: &System) {
    let row = |placed: &&Placed| -> Row {
        Origin::Predicted.row([
            placed.kind.name().into(),
            format!("processor {}", placed.processor).into(),
            placed.reservation.to_string().into(),
            Value::share(placed.reservation.share_ppm()),
            placed.why.as_str().into(),
        ])
    };
    let mut placed: Vec<&Placed> = system.placed().iter().collect();
    placed.sort_by_key(|placed| placed.processor);
    let rows = placed.iter().map(row).collect();
    draft.table(
        figure,
        "places",
        &[("processors", &system.processors)],
        rows,
    );
}

/// Adds what was seen of a system.
fn seen(draft: &mut Draft<'_>, figure: &str, system: &System, trials: &[Trial], origin: Origin) {
    let table = tables::seen(system.name(), outcomes(trials, system.number), origin);
    if let Some(figure) = draft.figure(figure) {
        figure.tables.push(table);
    }
}

fn partition(draft: &mut Draft<'_>, system: &System, trials: &[Trial]) -> Result<(), RunError> {
    places(draft, "partition", system);
    seen(draft, "partition", system, trials, Origin::Simulated);
    let remark = global(system).map_err(too_large)?;
    if let Some(figure) = draft.figure("partition") {
        figure.remarks.push(remark);
    }
    let room = matches!(system.placing, Placing::Found(_));
    let found = match room {
        true => "each has a processor".into(),
        false => system.placing.to_string(),
    };
    let set = name_of(&system.devices);
    let holes: Holes<'_> = &[
        ("set", &set),
        ("processors", &system.processors),
        ("seen", &found),
    ];
    draft.claim("room", room, holes);
    claim_of_rogue(
        draft,
        "twin",
        system,
        trials,
        |_| true,
        |seen| seen.damage() + seen.frames_lost + seen.retrained == 0,
    );
    Ok(())
}

/// With reservations nothing is lost beside a rogue; without them every device that the rogue can get at loses samples.
fn claim_of_rogue(
    draft: &mut Draft<'_>,
    host: &str,
    system: &System,
    trials: &[Trial],
    reached: impl Fn(&Seen) -> bool,
    is_whole: impl Fn(&Seen) -> bool,
) {
    let devices = system.seen(trials, RESERVED);
    let whole = so_for_all(devices, |seen| seen.calls > 0 && is_whole(seen));
    let devices = system.seen(trials, OUTRANKED);
    let any = devices.iter().any(|(_, seen)| reached(seen));
    let (held, told) = so_for_all(devices, |seen| !reached(seen) || seen.damage() > 0);
    for (claim, (held, seen)) in [("whole", whole), ("outranked", (held && any, told))] {
        let holes: Holes<'_> = &[
            ("host", &host),
            ("processors", &system.processors),
            ("seen", &seen),
        ];
        draft.claim(claim, held, holes);
    }
}

/// What the same reservations would be worth if they went to whichever processor is free.
fn global(system: &System) -> Result<String, Overflow> {
    let tasks = system.placed().iter().filter_map(|placed| {
        let asked = placed.reservation;
        Task::new(asked.service(), asked.period()).ok()
    });
    let tasks: Vec<Task> = tasks.collect();
    let late = match tardiness(&tasks, system.processors)? {
        Tardiness::Bounded(bounds) => {
            let most = bounds.into_iter().max().unwrap_or(Span::ZERO);
            format!("late by up to {most}")
        }
        Tardiness::Unbounded => "late without bound".into(),
        Tardiness::Unknown(_) => "late by an unknown time".into(),
    };
    let test = match global_edf(&tasks, system.processors)?.is_schedulable() {
        true => "the density test accepts them: none would be late",
        false => "the density test does not accept them",
    };
    let holes: Holes<'_> = &[
        ("processors", &system.processors),
        ("test", &test),
        ("late", &late),
    ];
    Ok(TEXT.say("global", holes))
}

/// Four modems in the study's placements.
fn variants(draft: &mut Draft<'_>, systems: &[&System], trials: &[Trial]) {
    let row = |system: &System, variant: Variant, outcome: &Outcome| {
        let sum = |count: fn(&Seen) -> u64| outcome.devices.iter().map(count).sum::<u64>();
        let responses = outcome.devices.iter().map(|seen| seen.longest_response);
        let mut row = Origin::Simulated.row([variant.name().into()]);
        row.push(Origin::Charged.cell(u64::from(system.processors.get())));
        row.extend(Origin::Simulated.row([
            sum(Seen::damage).into(),
            sum(|seen| seen.octets.unwrap_or(0)).into(),
        ]));
        let longest = [responses.max(), outcome.gaps.iter().max().copied()];
        row.extend(longest.map(|longest| Origin::Simulated.cell(longest?)));
        row
    };
    let rows = systems.iter().flat_map(|system| {
        let seen = outcomes(trials, system.number);
        seen.map(|(variant, outcome)| row(system, variant, outcome))
    });
    draft.table("variants", "variants", &[], rows.collect());
    for system in systems {
        places(draft, "variants", system);
    }
    for system in systems {
        let reserved = system.seen(trials, Variant::of(Way::Reserved, false));
        let whole = |seen: &Seen| seen.calls > 0 && seen.damage() + seen.frames_lost == 0;
        let (held, seen) = so_for_all(reserved, whole);
        let holes: Holes<'_> = &[("processors", &system.processors), ("seen", &seen)];
        draft.claim("modems", held, holes);
    }
    if !systems.is_empty() {
        claims_of_gaps(draft, systems, trials);
    }
}

/// How long the callback waits, on the more processors the less. What was not seen is less than nothing.
fn claims_of_gaps(draft: &mut Draft<'_>, systems: &[&System], trials: &[Trial]) {
    let gaps = |way| -> Vec<Option<Span>> {
        let variant = Variant::of(way, false);
        let gap = |system: &&System| {
            let outcome = system.outcome(trials, variant)?;
            outcome.gaps.iter().max().copied()
        };
        systems.iter().map(gap).collect()
    };
    let words = |gap: &Option<Span>| gap.map_or("none".into(), |gap| gap.to_string());
    let (handlers, reserved) = (gaps(Way::Interrupt), gaps(Way::Reserved));
    let seen: Vec<Span> = handlers.iter().copied().flatten().collect();
    let fewer = seen.len() == systems.len() && seen.len() > 1 && seen.first() >= seen.last();
    let listed: Vec<String> = seen.iter().map(ToString::to_string).collect();
    draft.claim("fewer", fewer, &[("gaps", &listed.join(", "))]);
    let both = || handlers.iter().zip(&reserved);
    let less = both().all(|(handlers, reserved)| {
        let both = handlers.zip(*reserved);
        both.is_some_and(|(handlers, reserved)| reserved < handlers)
    });
    let listed = both().map(|(h, r)| format!("{} against {}", words(r), words(h)));
    let listed: Vec<String> = listed.collect();
    draft.claim("less", less, &[("gaps", &listed.join(", "))]);
}

/// Sets that show what binding to processors means.
fn refused(draft: &mut Draft<'_>) -> Result<(), Overflow> {
    let ground = Ground::twin();
    let overfull: Vec<Kind> = TEXT.quoted("overfull");
    let ordered: Vec<Kind> = TEXT.quoted("ordered");
    let all_on_one = ground.fit(&overfull);
    let spread = place(&ground, &overfull, TWO, USUAL)?;
    let given = place(&ground, &ordered, TWO, (Fit::First, Order::Given))?;
    let decreasing = place(&ground, &ordered, TWO, USUAL)?;
    let on_one = match &all_on_one {
        Ok(_) => "admitted".into(),
        Err(unfit) => format!("refused: {unfit}"),
    };
    let rows = [
        (&overfull, "all on processor 0 of two", on_one),
        (
            &overfull,
            "first fit on two, the largest first",
            spread.to_string(),
        ),
        (
            &ordered,
            "first fit on two, in the order given",
            given.to_string(),
        ),
        (
            &ordered,
            "first fit on two, the largest first",
            decreasing.to_string(),
        ),
    ];
    let row = |(kinds, how, answer): (&Vec<Kind>, &str, String)| {
        Origin::Predicted.row([name_of(kinds).into(), how.into(), answer.into()])
    };
    draft.table(
        "refused",
        "refused",
        &[],
        rows.into_iter().map(row).collect(),
    );
    let found = |placing: &Placing| matches!(placing, Placing::Found(_));
    let one = if all_on_one.is_err() {
        "refused"
    } else {
        "admitted"
    };
    let held = all_on_one.is_err() && found(&spread);
    draft.claim("overfull", held, &[("one", &one), ("two", &spread)]);
    let held = !found(&given) && found(&decreasing);
    draft.claim(
        "order",
        held,
        &[("given", &given), ("decreasing", &decreasing)],
    );
    Ok(())
}

fn live(draft: &mut Draft<'_>, system: &System, trials: &[Trial]) {
    places(draft, "live", system);
    seen(draft, "live", system, trials, Origin::Measured);
    let room = matches!(system.placing, Placing::Found(_));
    draft.claim("live-room", room, &[("seen", &system.placing)]);
    let on_first = |seen: &Seen| seen.processor.0 == 0;
    claim_of_rogue(draft, "here", system, trials, on_first, |seen| {
        seen.undisturbed_damage == 0 && seen.undelivered == 0 && seen.load_differs == 0
    });
}

#[cfg(test)]
mod tests {
    use laxity_lab::bench::Experiment;
    use laxity_lab::runner::Silent;

    use super::*;

    #[test]
    fn what_is_claimed_holds() {
        let request = Request {
            figures: vec!["variants".into(), "refused".into()],
            seed: 5,
            ..Request::default()
        };
        let report = Processors.perform(&request, &mut Silent).unwrap();
        assert!(report.holds(), "{:#?}", report.checks);
        assert!(report.checks.len() >= 4);
    }
}
