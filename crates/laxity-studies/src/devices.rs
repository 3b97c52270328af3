//! Several soft devices on one processor: what Jones and Saroiu left open in §7 and §8.2 of "Predictability Requirements of a Soft
//! Modem", and on slides 29 and 30 of their talk.

use std::sync::LazyLock;

use laxity_lab::bench::{Draft, Holes, Made, Request, Round, Runner, Study, Text};
use laxity_lab::report::{Origin, Row, Value};
use laxity_lab::runner::RunError;
use laxity_model::analysis::devices::Unfit;
use laxity_model::{HostError, ProcessorId, Reservation};
use serde::Deserialize;

use crate::sets::demand::Ground;
use crate::sets::kind::Kind;
use crate::sets::run::{Member, Outcome, Seen, Setup};
use crate::sets::serving::{Variant, Way};
use crate::sets::{Case, Trial, length, load, name_of, outcomes, served, so_for_all, tables};

static TEXT: LazyLock<Text> = LazyLock::new(|| Text::parse(include_str!("../data/devices.toml")));

const RESERVED: Variant = Variant::of(Way::Reserved, true);
const OUTRANKED: Variant = Variant::of(Way::RealTime, true);

/// The experiment.
pub struct Devices;

/// Devices on one processor.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
struct Set {
    /// The figure it belongs to.
    figure: String,
    devices: Vec<Kind>,
}

/// A set with what was decided of it, and its number among the sets.
struct Tried {
    set: Set,
    number: usize,
    /// Its reservations, by device, or why there are none.
    admitted: Result<Vec<Reservation>, Unfit>,
}

impl Study for Devices {
    type Case = Case;
    type Seen = Outcome;

    fn text(&self) -> &'static Text {
        &TEXT
    }

    fn rounds(&self, live: bool) -> usize {
        if live { load::ROUNDS + 1 } else { 1 }
    }

    fn cases(&self, round: Round, made: &Made<'_, Self>) -> Result<Vec<Case>, RunError> {
        let request = made.request;
        if round.live && round.number < load::ROUNDS {
            let kinds = sets(request).into_iter().flat_map(|set| set.devices);
            let kinds: Vec<Kind> = kinds.collect();
            return Ok(load::cases(
                round.number,
                &kinds,
                &made.live,
                1,
                request.seed,
            ));
        }
        let loads = load::loads(&made.live);
        let (tried, variants) = match round.live {
            false => (in_twin(request), &Variant::TWIN[..]),
            true => (here(request, &loads), &Variant::LIVE[..]),
        };
        let mut cases = Vec::new();
        for Tried {
            set,
            number,
            admitted,
        } in &tried
        {
            if let Ok(reservations) = admitted {
                let setup = setup(
                    &set.devices,
                    reservations,
                    round.live.then_some(&loads),
                    request,
                );
                cases.extend(served(&setup, *number, &name_of(&set.devices), variants));
            }
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
        let twin = in_twin(request);
        let loads = load::loads(&made.live);
        let live = match made.live.is_empty() {
            true => Vec::new(),
            false => here(request, &loads),
        };
        for variant in Variant::TWIN {
            tell(draft, variant, &made.twin);
        }
        draft.say("radio", &[]);
        for figure in &TEXT.figures {
            let of = |tried: &Tried| tried.set.figure == figure.key;
            show(
                draft,
                &figure.key,
                twin.iter().filter(|t| of(t)),
                &made.twin,
                Origin::Simulated,
            );
            if let Some(figure) = draft.figure(&figure.key).filter(|_| live.iter().any(of)) {
                figure.tables.push(tables::loads(&loads));
            }
            show(
                draft,
                &figure.key,
                live.iter().filter(|t| of(t)),
                &made.live,
                Origin::Measured,
            );
        }
        claims_of_twin(draft, &twin, &made.twin);
        if request.wants("refused") {
            refused(draft);
        }
        if !live.is_empty() {
            claims_of_live(draft, &live, &made.live);
        }
        Ok(())
    }
}

/// The sets that are asked for.
fn sets(request: &Request) -> Vec<Set> {
    let sets: Vec<Set> = TEXT.quoted("sets");
    sets.into_iter()
        .filter(|set| request.wants(&set.figure))
        .collect()
}

fn tried(request: &Request, ground: impl Fn(&Set) -> Ground) -> Vec<Tried> {
    let tried = |(number, set): (usize, Set)| Tried {
        admitted: ground(&set).fit(&set.devices),
        set,
        number,
    };
    sets(request).into_iter().enumerate().map(tried).collect()
}

fn in_twin(request: &Request) -> Vec<Tried> {
    tried(request, |_| Ground::twin())
}

fn here(request: &Request, loads: &[load::Loaded]) -> Vec<Tried> {
    tried(request, |set| load::ground(loads, &set.devices))
}

/// The run of a set that was admitted; `loads` on this machine, where cards go by the host's clock.
fn setup(
    kinds: &[Kind],
    reservations: &[Reservation],
    loads: Option<&Vec<load::Loaded>>,
    request: &Request,
) -> Setup {
    let members = kinds.iter().zip(reservations);
    let members = members.map(|(kind, reservation)| Member {
        kind: *kind,
        processor: ProcessorId(0),
        reservation: Some(*reservation),
        further: loads.map_or(0, |loads| load::further(loads, *kind)),
    });
    Setup {
        members: members.collect(),
        variant: RESERVED,
        processors: 1,
        seed: request.seed,
        length: length(request),
        drifts: loads.is_none(),
        rogues: 1,
        watched: false,
    }
}

/// How many devices lose nothing, in a sentence.
fn tell(draft: &mut Draft<'_>, variant: Variant, trials: &[Trial]) {
    let of = trials
        .iter()
        .filter(|(case, _)| case.setup.variant == variant);
    let devices: Vec<&Seen> = of.flat_map(|(_, outcome)| &outcome.devices).collect();
    if !devices.is_empty() {
        let whole = devices.iter().filter(|seen| seen.damage() == 0).count();
        let told: Holes<'_> = &[
            ("variant", &variant.name()),
            ("whole", &whole),
            ("devices", &devices.len()),
        ];
        draft.say("whole", told);
    }
}

/// The sets of a figure: what was admitted, and what was seen.
fn show<'a>(
    draft: &mut Draft<'_>,
    key: &str,
    tried: impl Iterator<Item = &'a Tried> + Clone,
    trials: &[Trial],
    origin: Origin,
) {
    let (place, work, from_here) = match origin {
        Origin::Measured => ("on this machine", Origin::Measured, "Here: "),
        _ => ("in the twin", Origin::Charged, ""),
    };
    let rows = tried.clone().flat_map(|tried| admission(tried, work));
    draft.table(key, "admission", &[("place", &place)], rows.collect());
    let Some(figure) = draft.figure(key) else {
        return;
    };
    for tried in tried {
        match refusal(tried) {
            Some(refusal) => figure.remarks.push(format!("{from_here}{refusal}")),
            None => {
                let seen = outcomes(trials, tried.number);
                figure
                    .tables
                    .push(tables::seen(name_of(&tried.set.devices), seen, origin));
            }
        }
    }
}

fn refusal(tried: &Tried) -> Option<String> {
    let unfit = tried.admitted.as_ref().err()?;
    Some(format!(
        "{}: not admitted: {unfit}",
        name_of(&tried.set.devices)
    ))
}

/// Which reservations a set has: a row a device.
fn admission(tried: &Tried, work: Origin) -> Vec<Row> {
    let answer = if tried.admitted.is_ok() { "yes" } else { "no" };
    let row = |(number, kind): (usize, &Kind)| {
        let granted = tried.admitted.as_ref().ok().and_then(|all| all.get(number));
        let predicted = |value: fn(&Reservation) -> Value| Origin::Predicted.cell(value(granted?));
        let set = name_of(&tried.set.devices);
        let mut row = Origin::Predicted.row([set.into(), answer.into(), kind.name().into()]);
        row.push(work.cell(Value::share(kind.share_ppm())));
        row.push(predicted(|granted| granted.to_string().into()));
        row.push(predicted(|granted| Value::share(granted.share_ppm())));
        row
    };
    tried.set.devices.iter().enumerate().map(row).collect()
}

/// A set without one of its devices, for each kind.
fn without_one(kinds: &[Kind]) -> Vec<(Kind, Vec<Kind>)> {
    let mut distinct = kinds.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
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
    let answer = |kinds: &[Kind]| match ground.fit(kinds) {
        Ok(_) => "admitted".to_owned(),
        Err(unfit) => unfit.to_string(),
    };
    let mut rows = Vec::new();
    for kinds in TEXT.quoted::<Vec<Vec<Kind>>>("refused") {
        let set = name_of(&kinds);
        let without = without_one(&kinds);
        rows.extend(without.iter().map(|(left_out, rest)| {
            let cells = [set.clone(), answer(&kinds), left_out.name(), answer(rest)];
            Origin::Predicted.row(cells.map(Value::from))
        }));
        let refusal = ground.refusal(&kinds);
        let said =
            refusal.map(|refusal| TEXT.say("refusal", &[("set", &set), ("refusal", &refusal)]));
        if let Some(figure) = draft.figure("refused") {
            figure.remarks.extend(said);
        }
        let less = without
            .into_iter()
            .find(|(_, rest)| ground.fit(rest).is_ok());
        let (held, seen) = match (ground.fit(&kinds), less) {
            (Ok(_), _) => (false, "admitted".into()),
            (Err(_), None) => (false, "refused, whichever is left out".into()),
            (Err(_), Some((kind, _))) => (
                true,
                format!("refused; admitted without the {}", kind.name()),
            ),
        };
        draft.claim("refused", held, &[("set", &set), ("seen", &seen)]);
    }
    draft.table("refused", "refused", &[], rows);
}

/// Claims something of one variant of each set that was admitted.
fn claim(
    draft: &mut Draft<'_>,
    key: &str,
    (tried, trials): (&[Tried], &[Trial]),
    variant: Variant,
    holds: impl Fn(&Seen) -> bool,
) {
    let devices = tried.iter().flat_map(|tried| {
        let of = outcomes(trials, tried.number).filter(move |(of, _)| *of == variant);
        let devices = of.flat_map(|(_, outcome)| &outcome.devices);
        devices.map(|seen| {
            let set = name_of(&tried.set.devices);
            (format!("{} of ({set})", seen.kind.name()), seen)
        })
    });
    let (held, seen) = so_for_all(devices, holds);
    draft.claim(key, held, &[("seen", &seen)]);
}

fn claims_of_twin(draft: &mut Draft<'_>, tried: &[Tried], trials: &[Trial]) {
    if tried.is_empty() {
        return;
    }
    let refusals: Vec<String> = tried.iter().filter_map(refusal).collect();
    let seen = match refusals.is_empty() {
        true => format!("all {}", tried.len()),
        false => refusals.join("; "),
    };
    draft.claim("admitted", refusals.is_empty(), &[("seen", &seen)]);
    claim(draft, "reserved", (tried, trials), RESERVED, |seen| {
        seen.damage() == 0 && seen.frames_lost == 0 && seen.retrained == 0 && seen.calls > 0
    });
    claim(draft, "outranked", (tried, trials), OUTRANKED, |seen| {
        seen.damage() > 0 && seen.frames_lost + seen.retrained > 0
    });
    claim_of_frames(draft, trials);
}

/// Driver and CRC know nothing of each other, and agree. Nothing is claimed if no device lost a block whose frames are counted.
fn claim_of_frames(draft: &mut Draft<'_>, trials: &[Trial]) {
    let all = trials.iter().flat_map(|(_, outcome)| &outcome.devices);
    let read = all.filter(|seen| matches!(seen.kind, Kind::GLite | Kind::FullRate | Kind::Radio));
    let (mut lost, mut broken, mut frames, mut differ) = (0, 0, 0, 0);
    for seen in read {
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

fn claims_of_live(draft: &mut Draft<'_>, tried: &[Tried], trials: &[Trial]) {
    claim(draft, "live-reserved", (tried, trials), RESERVED, |seen| {
        seen.undisturbed_damage == 0 && seen.calls > 0
    });
    claim(
        draft,
        "live-outranked",
        (tried, trials),
        OUTRANKED,
        |seen| seen.damage() > 0,
    );
    claim(draft, "live-right", (tried, trials), RESERVED, |seen| {
        seen.load_differs == 0 && seen.undelivered == 0
    });
}

#[cfg(test)]
mod tests {
    use laxity_lab::bench::Experiment;
    use laxity_lab::report::json;
    use laxity_lab::runner::Silent;

    use super::*;

    #[test]
    fn what_is_claimed_holds_and_threads_make_no_difference() {
        let report = |threads| {
            let request = Request {
                figures: ["modem-audio", "refused"].map(Into::into).into(),
                threads,
                seed: 3,
                ..Request::default()
            };
            Devices.perform(&request, &mut Silent).unwrap()
        };
        let one = report(1);
        assert!(one.holds(), "{:#?}", one.checks);
        assert_eq!(json::render(&one), json::render(&report(2)));
    }
}
