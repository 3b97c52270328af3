//! Several soft devices on one processor: what Jones and Saroiu left open in §7 and §8.2 of "Predictability Requirements of a Soft
//! Modem", and on slides 29 and 30 of their talk.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use laxity_lab::bench::{Draft, Holes, Made, Said, Text};
use laxity_lab::report::{Origin, Row, Value};
use laxity_lab::runner::RunError;
use laxity_model::Reservation;

use crate::sets::demand::Ground;
use crate::sets::kind::Kind;
use crate::sets::load::Loads;
use crate::sets::run::{Member, Seen};
use crate::sets::serving::Variant;
use crate::sets::system::{OUTRANKED, Placing, RESERVED, System, Systems, show_loads};
use crate::sets::{Trial, doubt, name_of, so_for_all};

static TEXT: LazyLock<Text> = LazyLock::new(|| Text::parse(include_str!("../data/devices.toml")));

/// What is claimed of every device that is served so; and what came of it that no doubt touches: samples were lost that nothing excuses, or work differs.
type Claim = (&'static str, Variant, fn(&Seen) -> bool, bool);

const IN_TWIN: [Claim; 2] = [
    (
        "reserved",
        RESERVED,
        |seen| {
            let counts = &seen.counts;
            counts.damage() + counts.frames_lost + counts.retrained == 0 && seen.calls > 0
        },
        false,
    ),
    (
        "outranked",
        OUTRANKED,
        |seen| seen.counts.damage() > 0 && seen.counts.frames_lost + seen.counts.retrained > 0,
        true,
    ),
];
const HERE: [Claim; 3] = [
    (
        "live-reserved",
        RESERVED,
        |seen| seen.undisturbed_damage == 0 && seen.calls > 0,
        false,
    ),
    (
        "live-outranked",
        OUTRANKED,
        |seen| seen.undisturbed_damage > 0,
        true,
    ),
    (
        "live-right",
        RESERVED,
        |seen| seen.counts.load_differs == 0,
        false,
    ),
];

/// The experiment.
pub static DEVICES: Systems = Systems {
    text: &TEXT,
    processors: 1,
    watched: false,
    is_for: |_, _| true,
    place: on_one_processor,
    is_sized: false,
    variants: |_, live| if live { &Variant::LIVE } else { &Variant::TWIN },
    judge,
};

fn judge(study: &Systems, made: &Made<'_, Systems>, draft: &mut Draft<'_>) -> Result<(), RunError> {
    let request = made.request;
    let twin = study.systems(request, None)?;
    let loads = Loads::of(&made.live);
    let live = match made.live.is_empty() {
        true => Vec::new(),
        false => study.systems(request, Some(&loads))?,
    };
    for variant in Variant::TWIN {
        tell(draft, variant, &made.twin);
    }
    draft.say("radio", &[]);
    for figure in &TEXT.figures {
        let key = &figure.key;
        show(draft, key, &twin, &made.twin, Origin::Simulated);
        if live.iter().any(|system| system.figure == *key) {
            show_loads(draft, key, &loads);
        }
        show(draft, key, &live, &made.live, Origin::Measured);
    }
    if !twin.is_empty() {
        claim_of_admission(draft, &twin);
        claim(draft, &IN_TWIN, (&twin, &made.twin), |_| Said::default());
        claim_of_frames(draft, &made.twin);
    }
    if request.wants("refused") {
        refused(draft);
    }
    if !live.is_empty() {
        let said = |variant| Systems::said(made, variant);
        claim(draft, &HERE, (&live, &made.live), said);
    }
    Ok(())
}

/// All devices on one processor.
fn on_one_processor(system: &System, ground: &Ground) -> Result<Placing, RunError> {
    let fitted = ground.fit(&system.devices).map(|reservations| {
        let devices = system.devices.iter().zip(reservations);
        let members = devices.map(|(kind, reservation)| Member {
            reservation: Some(reservation),
            ..Member::new(*kind)
        });
        members.collect()
    });
    Ok(fitted.map_err(|unfit| unfit.to_string()))
}

/// How many devices lose nothing, in a sentence.
fn tell(draft: &mut Draft<'_>, variant: Variant, trials: &[Trial]) {
    let of = trials
        .iter()
        .filter(|(case, _)| case.setup.variant == variant);
    let devices: Vec<&Seen> = of.flat_map(|(_, outcome)| &outcome.devices).collect();
    if !devices.is_empty() {
        let whole = devices.iter().filter(|seen| seen.counts.damage() == 0);
        let told: Holes<'_> = &[
            ("variant", &variant.name()),
            ("whole", &whole.count()),
            ("devices", &devices.len()),
        ];
        draft.say("whole", told);
    }
}

/// The systems of a figure: what was admitted, and what was seen.
fn show(draft: &mut Draft<'_>, key: &str, systems: &[System], trials: &[Trial], origin: Origin) {
    let (place, work, from_here) = match origin {
        Origin::Measured => ("on this machine", Origin::Measured, "Here: "),
        _ => ("in the twin", Origin::Charged, ""),
    };
    let of = || systems.iter().filter(|system| system.figure == key);
    let rows = of().flat_map(|system| admission(system, work));
    draft.table(key, "admission", &[("place", &place)], rows);
    for system in of() {
        if let Some(refusal) = refusal(system) {
            draft.remark(key, format!("{from_here}{refusal}"));
        }
        system.show(draft, key, trials, origin);
    }
}

fn refusal(system: &System) -> Option<String> {
    let unfit = system.placing.as_ref().err()?;
    Some(format!("{}: not admitted: {unfit}", system.name()))
}

/// Which reservations a system has: a row a device.
fn admission(system: &System, work: Origin) -> Vec<Row> {
    let answer = match system.placing {
        Ok(_) => "yes",
        Err(_) => "no",
    };
    let row = |(number, kind): (usize, &Kind)| {
        let member = system.placed().get(number);
        let granted = member.and_then(|member| member.reservation);
        let predicted = |value: fn(&Reservation) -> Value| Origin::Predicted.cell(value(&granted?));
        let mut row =
            Origin::Predicted.row([system.name().into(), answer.into(), kind.name().into()]);
        row.push(work.cell(Value::share(kind.share_ppm())));
        row.push(predicted(|granted| granted.to_string().into()));
        row.push(predicted(|granted| Value::share(granted.share_ppm())));
        row
    };
    system.devices.iter().enumerate().map(row).collect()
}

/// A set without one of its devices, for each kind.
fn without_one(kinds: &[Kind]) -> Vec<(Kind, Vec<Kind>)> {
    let distinct: BTreeSet<Kind> = kinds.iter().copied().collect();
    let without = |kind: Kind| {
        let mut rest = kinds.to_vec();
        let place = rest.iter().position(|other| *other == kind);
        place.map(|place| rest.remove(place));
        (kind, rest)
    };
    distinct.into_iter().map(without).collect()
}

/// Sets that are too much.
fn refused(draft: &mut Draft<'_>) {
    let ground = Ground::twin();
    let mut rows = Vec::new();
    for kinds in TEXT.quoted::<Vec<Vec<Kind>>>("refused") {
        let set = name_of(&kinds);
        let answer = |kinds: &[Kind]| {
            let answer = ground.fit(kinds).map(|_| "admitted".to_owned());
            answer.unwrap_or_else(|unfit| unfit.to_string())
        };
        let without = without_one(&kinds);
        rows.extend(without.iter().map(|(left_out, rest)| {
            let cells = [set.clone(), answer(&kinds), left_out.name(), answer(rest)];
            Origin::Predicted.row(cells.map(Value::from))
        }));
        if let Some(refusal) = ground.refusal(&kinds) {
            let holes: Holes<'_> = &[("set", &set), ("refusal", &refusal)];
            draft.remark("refused", TEXT.say("refusal", holes));
        }
        let mut less = without.iter().filter(|(_, rest)| ground.fit(rest).is_ok());
        let (held, seen) = match (ground.fit(&kinds), less.next()) {
            (Ok(_), _) => (false, "admitted".into()),
            (Err(_), None) => (false, "refused, whichever is left out".into()),
            (Err(_), Some((kind, _))) => {
                let seen = format!("refused; admitted without the {}", kind.name());
                (true, seen)
            }
        };
        draft.claim("refused", held, &[("set", &set), ("seen", &seen)]);
    }
    draft.table("refused", "refused", &[], rows);
}

/// Claims something of one variant of each system, of all its devices, whose runs `said` this of themselves.
fn claim(
    draft: &mut Draft<'_>,
    claims: &[Claim],
    (systems, trials): (&[System], &[Trial]),
    said: impl Fn(Variant) -> Said,
) {
    for (key, variant, holds, certain) in claims {
        let devices = systems
            .iter()
            .flat_map(|system| system.seen(trials, *variant));
        let devices: Vec<(String, &Seen)> = devices.collect();
        if let Some((held, seen)) = so_for_all(&devices, holds) {
            let said = said(*variant).but(doubt(&devices));
            draft.claim_here(key, (held, held == *certain), &[("seen", &seen)], &said);
        }
    }
}

fn claim_of_admission(draft: &mut Draft<'_>, systems: &[System]) {
    let refusals: Vec<String> = systems.iter().filter_map(refusal).collect();
    let seen = match refusals.is_empty() {
        true => format!("all {}", systems.len()),
        false => refusals.join("; "),
    };
    draft.claim("admitted", refusals.is_empty(), &[("seen", &seen)]);
}

/// Driver and CRC know nothing of each other, and agree. Nothing is claimed if no device lost a block whose frames are counted.
fn claim_of_frames(draft: &mut Draft<'_>, trials: &[Trial]) {
    let all = trials.iter().flat_map(|(_, outcome)| &outcome.devices);
    let read = all.filter(|seen| matches!(seen.kind, Kind::GLite | Kind::FullRate | Kind::Radio));
    let (mut lost, mut broken, mut frames, mut differ) = (0, 0, 0, 0);
    for seen in read.map(|seen| &seen.counts) {
        lost += seen.blocks_lost;
        broken += seen.blocks_broken;
        frames += seen.frames_lost;
        let agrees = (seen.blocks_broken..=seen.blocks_lost).contains(&seen.frames_lost);
        differ += u64::from(!agrees);
    }
    if lost > 0 {
        let seen: Holes<'_> = &[
            ("lost", &lost),
            ("broken", &broken),
            ("frames", &frames),
            ("differ", &differ),
        ];
        draft.claim("frames", differ == 0, seen);
    }
}

#[cfg(test)]
mod tests {
    use laxity_lab::bench::{Experiment, Request};
    use laxity_lab::report::json;
    use laxity_lab::runner::Silent;
    use laxity_model::verify::contract::Outcome;

    use super::*;

    #[test]
    fn what_is_said_to_be_charged_is_charged() {
        let charged = Kind::Modem.charged().as_nanos() / 1_000;
        let said = format!(
            "a modem's call {}.{:03} ms",
            charged / 1_000,
            charged % 1_000
        );
        let mut circumstances = TEXT.circumstances.iter();
        assert!(
            circumstances.any(|(_, words)| words.starts_with(&said)),
            "{said}"
        );
    }

    #[test]
    fn what_is_claimed_holds_and_threads_make_no_difference() {
        let report = |threads| {
            let request = Request {
                figures: ["modem-audio", "refused"].map(Into::into).into(),
                threads,
                seed: 3,
                ..Request::default()
            };
            DEVICES.perform(&request, &mut Silent).unwrap()
        };
        let one = report(1);
        assert!(one.outcome() == Outcome::Met, "{:#?}", one.checks);
        assert_eq!(json::render(&one), json::render(&report(2)));
    }
}
