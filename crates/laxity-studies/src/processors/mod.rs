//! Soft devices on several processors, each bound to one: the further research of Jones and Saroiu, "Predictability Requirements of a
//! Soft Modem", §7.
//!
//! * [`mod@place`]: which processor each device gets, and why.

pub mod place;

use std::num::NonZeroU16;
use std::sync::LazyLock;

use laxity_lab::bench::{Draft, Holes, Made, Said, Text};
use laxity_lab::report::{Origin, Row, Value};
use laxity_lab::runner::RunError;
use laxity_model::Span;
use laxity_model::analysis::Task;
use laxity_model::analysis::multiprocessor::{Fit, Order, Tardiness, global_edf, tardiness};

use crate::or;
use crate::sets::demand::Ground;
use crate::sets::kind::Kind;
use crate::sets::load::Loads;
use crate::sets::run::{Member, Seen};
use crate::sets::serving::{Variant, Way};
use crate::sets::system::{OUTRANKED, Placing, RESERVED, System, Systems, show_loads};
use crate::sets::{Trial, doubt, name_of, so_for_all};
use place::{place, too_large};

static TEXT: LazyLock<Text> =
    LazyLock::new(|| Text::parse(include_str!("../../data/processors.toml")));

/// The usual way: the largest first, each where there is room first.
const USUAL: (Fit, Order) = (Fit::First, Order::Decreasing);
/// As evenly as possible.
const EVEN: (Fit, Order) = (Fit::Worst, Order::Decreasing);
const TWO: NonZeroU16 = NonZeroU16::MIN.saturating_add(1);

/// What is run of the modems: the study's placements, without a rogue.
const STUDIED: [Variant; 5] = [
    Variant::of(Way::Interrupt, false),
    Variant::of(Way::Deferred, false),
    Variant::of(Way::RealTime, false),
    Variant::of(Way::Normal, false),
    Variant::of(Way::Reserved, false),
];

/// The experiment.
pub static PROCESSORS: Systems = Systems {
    text: &TEXT,
    processors: TWO.get(),
    watched: true,
    is_for: |system, live| (system.figure == "live") == live,
    place: |system, ground| {
        let how = if is_of_modems(system) { EVEN } else { USUAL };
        place(ground, &system.devices, system.processors, how)
    },
    is_sized: true,
    variants: |system, _| match is_of_modems(system) {
        true => &STUDIED,
        false => &Variant::LIVE,
    },
    judge,
};

fn is_of_modems(system: &System) -> bool {
    system.figure == "variants"
}

fn judge(study: &Systems, made: &Made<'_, Systems>, draft: &mut Draft<'_>) -> Result<(), RunError> {
    let request = made.request;
    let systems = study.systems(request, None)?;
    let of = |figure| systems.iter().filter(move |system| system.figure == figure);
    for system in of("partition") {
        partition(draft, system, &made.twin)?;
    }
    let modems: Vec<&System> = of("variants").collect();
    variants(draft, &modems, &made.twin);
    if request.wants("refused") {
        refused(draft)?;
    }
    if !made.live.is_empty() {
        let loads = Loads::of(&made.live);
        show_loads(draft, "live", &loads);
        for system in study.systems(request, Some(&loads))? {
            live(draft, &system, made);
        }
    }
    Ok(())
}

/// Where devices are, in words.
fn told(placing: &Placing) -> String {
    let member = |member: &Member| format!("{} on {}", member.kind.name(), member.processor);
    match placing {
        Ok(members) => members.iter().map(member).collect::<Vec<_>>().join(", "),
        Err(no_room) => no_room.clone(),
    }
}

/// Adds where the devices of a system are.
fn places(draft: &mut Draft<'_>, figure: &str, system: &System) {
    let row = |member: &Member| -> Option<Row> {
        let reservation = member.reservation?;
        Some(Origin::Predicted.row([
            member.kind.name().into(),
            format!("processor {}", member.processor).into(),
            reservation.to_string().into(),
            Value::share(reservation.share_ppm()),
            member.why.as_str().into(),
        ]))
    };
    let mut placed = system.placed().to_vec();
    placed.sort_by_key(|member| member.processor);
    let holes: Holes<'_> = &[("processors", &system.processors)];
    draft.table(figure, "places", holes, placed.iter().filter_map(row));
}

fn partition(draft: &mut Draft<'_>, system: &System, trials: &[Trial]) -> Result<(), RunError> {
    places(draft, "partition", system);
    system.show(draft, "partition", trials, Origin::Simulated);
    draft.remark("partition", global(system)?);
    let found = match &system.placing {
        Ok(_) => "each has a processor",
        Err(no_room) => no_room,
    };
    let holes: Holes<'_> = &[
        ("set", &name_of(&system.devices)),
        ("processors", &system.processors),
        ("seen", &found),
    ];
    draft.claim("room", system.placing.is_ok(), holes);
    claim_of_rogue(
        draft,
        ("twin", |_| Said::default()),
        (system, trials),
        |_| true,
        |seen| seen.counts.damage() + seen.counts.frames_lost + seen.counts.retrained == 0,
    );
    Ok(())
}

/// With reservations nothing is lost beside a rogue; without them every device that the rogue can get at loses samples.
fn claim_of_rogue(
    draft: &mut Draft<'_>,
    (host, said): (&str, impl Fn(Variant) -> Said),
    (system, trials): (&System, &[Trial]),
    reached: fn(&Seen) -> bool,
    is_whole: fn(&Seen) -> bool,
) {
    let devices = system.seen(trials, RESERVED);
    let whole = so_for_all(&devices, |seen| seen.calls > 0 && is_whole(seen));
    // Samples that nothing excuses are beyond doubt, that there are none is not.
    let whole_said = said(RESERVED).but(doubt(&devices));
    let mut devices = system.seen(trials, OUTRANKED);
    devices.retain(|(_, seen)| reached(seen));
    let outranked = so_for_all(&devices, |seen| seen.undisturbed_damage > 0);
    let outranked_said = said(OUTRANKED).but(doubt(&devices));
    for (claim, found, certain, said) in [
        ("whole", whole, false, whole_said),
        ("outranked", outranked, true, outranked_said),
    ] {
        let Some((held, seen)) = found else { continue };
        let holes: Holes<'_> = &[
            ("host", &host),
            ("processors", &system.processors),
            ("seen", &seen),
        ];
        draft.claim_here(claim, (held, held == certain), holes, &said);
    }
}

/// What the same reservations would be worth if they went to whichever processor is free.
fn global(system: &System) -> Result<String, RunError> {
    let tasks = system.placed().iter().filter_map(|member| {
        let asked = member.reservation?;
        Task::new(asked.service(), asked.period()).ok()
    });
    let tasks: Vec<Task> = tasks.collect();
    let late = match tardiness(&tasks, system.processors).map_err(too_large)? {
        Tardiness::Bounded(bounds) => {
            let most = bounds.into_iter().max().unwrap_or(Span::ZERO);
            format!("late by up to {most}")
        }
        Tardiness::Unbounded => "late without bound".into(),
        Tardiness::Unknown(_) => "late by an unknown time".into(),
    };
    let verdict = global_edf(&tasks, system.processors).map_err(too_large)?;
    let test = match verdict.is_schedulable() {
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
    let row = |system: &System, (case, outcome): &Trial| {
        let sum = |of: fn(&Seen) -> u64| outcome.devices.iter().map(of).sum::<u64>();
        let devices = outcome.devices.iter();
        let responses = devices.filter_map(|seen| seen.longest_response);
        let mut row = Origin::Simulated.row([case.setup.variant.name().into()]);
        row.push(Origin::Charged.cell(u64::from(system.processors.get())));
        row.extend(Origin::Simulated.row([
            sum(|seen| seen.counts.damage()).into(),
            sum(|seen| seen.counts.delivered).into(),
        ]));
        let longest = [responses.max(), outcome.largest_gap()];
        row.extend(longest.map(|longest| Origin::Simulated.cell(longest?)));
        row
    };
    let rows = systems.iter().flat_map(|system| {
        let outcomes = system.outcomes(trials);
        outcomes.map(|trial| row(system, trial))
    });
    draft.table("variants", "variants", &[], rows);
    for system in systems {
        places(draft, "variants", system);
    }
    for system in systems {
        let reserved = system.seen(trials, Variant::of(Way::Reserved, false));
        let found = so_for_all(&reserved, |seen| {
            seen.calls > 0 && seen.counts.damage() + seen.counts.frames_lost == 0
        });
        let Some((held, seen)) = found else { continue };
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
        let gap = |system: &&System| {
            let outcome = system.outcome(trials, Variant::of(way, false))?;
            outcome.largest_gap()
        };
        systems.iter().map(gap).collect()
    };
    let listed = |words: Vec<String>| words.join(", ");
    let (handlers, reserved) = (gaps(Way::Interrupt), gaps(Way::Reserved));
    let seen: Vec<Span> = handlers.iter().copied().flatten().collect();
    let fewer = seen.len() == systems.len() && seen.len() > 1 && seen.first() >= seen.last();
    let told = listed(seen.iter().map(ToString::to_string).collect());
    draft.claim("fewer", fewer, &[("gaps", &told)]);
    let both = || reserved.iter().zip(&handlers);
    let less = both().all(|(reserved, handlers)| {
        handlers.is_some() && reserved.is_some() && reserved < handlers
    });
    let words = |gap: Option<Span>, other: Option<Span>| {
        or(gap.map(|gap| gap.beside(other.unwrap_or(gap))), "none")
    };
    let against = both().map(|(r, h)| format!("{} against {}", words(*r, *h), words(*h, *r)));
    draft.claim("less", less, &[("gaps", &listed(against.collect()))]);
}

/// Sets that show what binding to processors means.
fn refused(draft: &mut Draft<'_>) -> Result<(), RunError> {
    let ground = Ground::twin();
    let overfull: Vec<Kind> = TEXT.quoted("overfull");
    let ordered: Vec<Kind> = TEXT.quoted("ordered");
    let on_one = ground.fit(&overfull);
    let spread = place(&ground, &overfull, TWO, USUAL)?;
    let given = place(&ground, &ordered, TWO, (Fit::First, Order::Given))?;
    let decreasing = place(&ground, &ordered, TWO, USUAL)?;
    let answer = match &on_one {
        Ok(_) => "admitted".into(),
        Err(unfit) => format!("refused: {unfit}"),
    };
    let as_given = "first fit on two, in the order given";
    let largest_first = "first fit on two, the largest first";
    let rows = [
        (&overfull, "all on processor 0 of two", answer),
        (&overfull, largest_first, told(&spread)),
        (&ordered, as_given, told(&given)),
        (&ordered, largest_first, told(&decreasing)),
    ];
    let rows = rows.map(|(kinds, how, answer)| {
        Origin::Predicted.row([name_of(kinds).into(), how.into(), answer.into()])
    });
    draft.table("refused", "refused", &[], rows);
    let one = on_one.as_ref().map_or("refused", |_| "admitted");
    let holes: Holes<'_> = &[("one", &one), ("two", &told(&spread))];
    draft.claim("overfull", on_one.is_err() && spread.is_ok(), holes);
    let holes: Holes<'_> = &[("given", &told(&given)), ("decreasing", &told(&decreasing))];
    draft.claim("order", given.is_err() && decreasing.is_ok(), holes);
    Ok(())
}

fn live(draft: &mut Draft<'_>, system: &System, made: &Made<'_, Systems>) {
    let trials = &made.live;
    places(draft, "live", system);
    system.show(draft, "live", trials, Origin::Measured);
    let there = match system.devices.is_empty() {
        true => "nothing".to_owned(),
        false => name_of(&system.devices),
    };
    let left_out = match system.left_out.is_empty() {
        true => "nothing".to_owned(),
        false => name_of(&system.left_out),
    };
    let sized: Holes<'_> = &[("there", &there), ("left-out", &left_out)];
    draft.remark("live", TEXT.say("sized", sized));
    let on_first = |seen: &Seen| seen.processor.0 == 0;
    let here = ("here", |variant| Systems::said(made, variant));
    claim_of_rogue(draft, here, (system, trials), on_first, |seen| {
        seen.undisturbed_damage + seen.counts.load_differs == 0
    });
}

#[cfg(test)]
mod tests {
    use laxity_lab::bench::{Experiment, Request};
    use laxity_lab::runner::Silent;
    use laxity_model::verify::contract::Outcome;

    use super::*;

    #[test]
    fn what_is_claimed_holds() {
        let request = Request {
            figures: vec!["variants".into(), "refused".into()],
            seed: 5,
            ..Request::default()
        };
        let report = PROCESSORS.perform(&request, &mut Silent).unwrap();
        assert!(report.outcome() == Outcome::Met, "{:#?}", report.checks);
        assert!(report.checks.len() >= 4);
    }
}
