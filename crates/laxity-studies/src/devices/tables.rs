//! What is shown of the sets, and what is claimed.

use laxity_model::Span;

use super::cells::{loads, reservation, seen_rows, seen_table, share, text};
use super::demand::Ground;
use super::kind::Kind;
use super::run::Seen;
use super::serving::{Variant, Way};
use super::sets::{FIGURES, name_of, too_much};
use super::{Here, Tried};
use laxity_lab::bench::Request;
use laxity_lab::report::{Check, Figure, Origin, Report, Table};

/// The whole report.
pub(super) fn report(
    request: &Request,
    twin: &[Tried],
    here: Option<&Here>,
    length: Span,
) -> Report {
    let figures = FIGURES.iter().filter(|(key, _)| request.wants(key));
    let figures = figures.map(|(key, title)| match *key {
        "refused" => refused(),
        key => figure(key, title, twin, here),
    });
    let figures: Vec<Figure> = figures.collect();
    let mut checks = twin_checks(twin);
    if request.wants("refused") {
        checks.extend(refused_checks());
    }
    checks.extend(here.into_iter().flat_map(live_checks));
    let mut circumstances = vec![
        ("twin", "win2000-pii450".to_owned()),
        ("seed", request.seed.to_string()),
        ("length of a run", length.to_string()),
        ("beside the devices", RIVALS.to_owned()),
        ("charged", CHARGED.to_owned()),
    ];
    circumstances.extend(here.map(|here| ("measured on", here.host.clone())));
    Report {
        experiment: "devices",
        title: "Several soft devices on one processor".into(),
        summary: summary(twin),
        circumstances,
        figures,
        checks,
    }
}

const RIVALS: &str = "two threads of priority 8 that never stop; where a rogue is named, one of priority 28 that runs for 60 ms four times a second";

const CHARGED: &str = "a modem's call 1.84 ms (14.7 % of 450 MHz); DSL 25 % and 50 % of 4 ms, the radio 2.5 % of 312.5 µs (quoted of a 600 MHz machine, and charged to this one as they are); the player 1 ms of 10 ms (assumed); handler and deferred call 5.4 µs each";

const QUESTION: &str = "Each device carries a payload with a CRC through an impaired channel, so that service that comes too late shows as errors. The analysis names a reservation for each device of a set, or refuses the set; a set that it admits is served with these reservations beside spinners and a rogue, and without them in the study's other placements: what does each of them lose?";
const RADIO: &str = "A radio's work is small, but its interrupts are not: 3,200 a second, charged 5.4 µs each for handler and deferred call, take more of this processor than the work itself.";

/// The question, and what came of it.
fn summary(twin: &[Tried]) -> Vec<String> {
    let mut all = vec![QUESTION.to_owned()];
    for variant in Variant::TWIN {
        let devices = twin.iter().filter_map(|tried| variant_of(tried, variant));
        let devices: Vec<&Seen> = devices.flatten().collect();
        let whole = devices.iter().filter(|seen| seen.damage() == 0).count();
        if !devices.is_empty() {
            all.push(format!(
                "In the twin, {}: {whole} of {} devices lose no sample.",
                variant.name(),
                devices.len()
            ));
        }
    }
    all.push(RADIO.to_owned());
    all
}

fn figure(key: &str, title: &str, twin: &[Tried], here: Option<&Here>) -> Figure {
    let of = |tried: &&Tried| tried.set.figure == key;
    let twin: Vec<&Tried> = twin.iter().filter(of).collect();
    let mut tables = vec![admission("Admission in the twin", &twin, Origin::Charged)];
    tables.extend(
        twin.iter()
            .filter(|t| t.admitted.is_ok())
            .map(|t| table(t, Origin::Simulated)),
    );
    let mut remarks: Vec<String> = twin.iter().filter_map(|tried| refusal(tried)).collect();
    if let Some(here) = here {
        let live: Vec<&Tried> = here.tried.iter().filter(of).collect();
        tables.push(loads(&here.loads));
        tables.push(admission(
            "Admission on this machine",
            &live,
            Origin::Measured,
        ));
        tables.extend(
            live.iter()
                .filter(|t| t.admitted.is_ok())
                .map(|t| table(t, Origin::Measured)),
        );
        remarks.extend(
            live.iter()
                .filter_map(|tried| refusal(tried))
                .map(|r| format!("Here: {r}")),
        );
    }
    Figure {
        key: key.into(),
        title: title.into(),
        about: "Each set is admitted as a set: reservations from the analysis of its devices, lengthened by what interrupts may take from their slots.".into(),
        charts: Vec::new(),
        compared: Vec::new(),
        tables,
        remarks,
    }
}

fn refusal(tried: &Tried) -> Option<String> {
    let unfit = tried.admitted.as_ref().err()?;
    Some(format!(
        "{}: not admitted: {unfit}",
        name_of(&tried.set.kinds)
    ))
}

/// Which reservations the sets have.
fn admission(caption: &str, tried: &[&Tried], work: Origin) -> Table {
    let columns = [
        "set",
        "admitted",
        "device",
        "share of its work",
        "reservation",
        "its share",
    ];
    let mut rows = Vec::new();
    for tried in tried {
        let set = name_of(&tried.set.kinds);
        let answer = if tried.admitted.is_ok() { "yes" } else { "no" };
        for (number, kind) in tried.set.kinds.iter().enumerate() {
            let granted = tried
                .admitted
                .as_ref()
                .ok()
                .and_then(|all| all.get(number).copied());
            rows.push(vec![
                text(set.clone(), Origin::Predicted),
                text(answer, Origin::Predicted),
                text(kind.name(), Origin::Predicted),
                share(kind.share_ppm(), work),
                reservation(granted),
                granted.and_then(|granted| share(granted.share_ppm(), Origin::Predicted)),
            ]);
        }
    }
    Table {
        caption: caption.into(),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
    }
}

fn table(tried: &Tried, origin: Origin) -> Table {
    let rows = tried
        .seen
        .iter()
        .flat_map(|(variant, seen)| seen_rows(variant.name(), seen, origin));
    seen_table(name_of(&tried.set.kinds), "served", rows.collect())
}

/// Sets that are too much.
fn refused() -> Figure {
    let ground = Ground::twin();
    let columns = ["set", "answer", "left out", "then"];
    let mut rows = Vec::new();
    let mut remarks = Vec::new();
    for kinds in too_much() {
        let set = name_of(&kinds);
        let answer = match ground.fit(&kinds) {
            Ok(_) => "admitted".to_owned(),
            Err(unfit) => unfit.to_string(),
        };
        for (left_out, rest) in without_one(&kinds) {
            let then = match ground.fit(&rest) {
                Ok(_) => "admitted".to_owned(),
                Err(unfit) => unfit.to_string(),
            };
            rows.push(vec![
                text(set.clone(), Origin::Predicted),
                text(answer.clone(), Origin::Predicted),
                text(left_out.name(), Origin::Predicted),
                text(then, Origin::Predicted),
            ]);
        }
        remarks.extend(ground.refusal(&kinds).map(|refusal| {
            format!("{set}, each asking for its own cheapest reservation: {refusal}. What is named is what slots could give, not what the device could do with.")
        }));
    }
    Figure {
        key: "refused".into(),
        title: "Too much for one processor, and what would fit".into(),
        about: "Sets that are refused, and the same with one device left out.".into(),
        charts: Vec::new(),
        compared: Vec::new(),
        tables: vec![Table {
            caption: "Refused sets".into(),
            columns: columns.map(str::to_owned).to_vec(),
            rows,
        }],
        remarks,
    }
}

/// A set without one of its devices, for each kind.
fn without_one(kinds: &[Kind]) -> Vec<(Kind, Vec<Kind>)> {
    let mut distinct = kinds.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let without = |kind: Kind| {
        let place = kinds.iter().position(|other| *other == kind).unwrap_or(0);
        let rest = kinds
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != place);
        (kind, rest.map(|(_, kind)| *kind).collect())
    };
    distinct.into_iter().map(without).collect()
}

fn refused_checks() -> Vec<Check> {
    let ground = Ground::twin();
    let check = |kinds: Vec<Kind>| {
        let refused = ground.fit(&kinds).is_err();
        let less = without_one(&kinds)
            .into_iter()
            .find(|(_, rest)| ground.fit(rest).is_ok());
        Check {
            claim: format!(
                "{} is refused, and admitted without one of them",
                name_of(&kinds)
            ),
            held: refused && less.is_some(),
            seen: match (refused, less) {
                (false, _) => "admitted".into(),
                (true, None) => "refused, whichever is left out".into(),
                (true, Some((kind, _))) => format!("refused; admitted without the {}", kind.name()),
            },
        }
    };
    too_much().into_iter().map(check).collect()
}

fn variant_of(tried: &Tried, variant: Variant) -> Option<&Vec<Seen>> {
    tried
        .seen
        .iter()
        .find(|(of, _)| *of == variant)
        .map(|(_, seen)| seen)
}

/// `claim` about one variant of each admitted set, as one check.
fn each_set(
    tried: &[Tried],
    variant: Variant,
    claim: &str,
    holds: impl Fn(&Seen) -> bool,
) -> Check {
    let mut wrong = Vec::new();
    let mut devices = 0;
    for tried in tried {
        for seen in variant_of(tried, variant).into_iter().flatten() {
            devices += 1;
            if !holds(seen) {
                wrong.push(format!(
                    "{} of ({}): {} samples, {} frames",
                    seen.kind.name(),
                    name_of(&tried.set.kinds),
                    seen.damage(),
                    seen.frames_lost
                ));
            }
        }
    }
    let seen = match wrong.len() {
        0 => format!("so for all {devices} devices"),
        _ => wrong.join("; "),
    };
    Check {
        claim: claim.into(),
        held: wrong.is_empty() && devices > 0,
        seen,
    }
}

const RESERVED: Variant = Variant::of(Way::Reserved, true);
const OUTRANKED: Variant = Variant::of(Way::RealTime, true);

fn twin_checks(tried: &[Tried]) -> Vec<Check> {
    if tried.is_empty() {
        return Vec::new();
    }
    let unadmitted = tried.iter().filter_map(refusal);
    let unadmitted: Vec<String> = unadmitted.collect();
    let whole = |seen: &Seen| {
        seen.damage() == 0 && seen.frames_lost == 0 && seen.retrained == 0 && seen.calls > 0
    };
    let broken = |seen: &Seen| seen.damage() > 0 && seen.frames_lost + seen.retrained > 0;
    let mut checks = vec![
        Check {
            claim: "every set that is tried is admitted".into(),
            held: unadmitted.is_empty(),
            seen: match unadmitted.len() {
                0 => format!("all {}", tried.len()),
                _ => unadmitted.join("; "),
            },
        },
        each_set(
            tried,
            RESERVED,
            "twin: with reservations no device loses a sample or a frame, beside spinners and a rogue",
            whole,
        ),
        each_set(
            tried,
            OUTRANKED,
            "twin: in threads of priority 24 beside the same rogue every device loses samples and frames",
            broken,
        ),
    ];
    checks.extend(exact(tried));
    checks
}

/// Driver and CRC know nothing of each other, and agree. `None` if no device is read whose frames are counted.
fn exact(tried: &[Tried]) -> Option<Check> {
    let all = tried
        .iter()
        .flat_map(|tried| &tried.seen)
        .flat_map(|(_, seen)| seen);
    let read = all.filter(|seen| !matches!(seen.kind, Kind::Modem | Kind::Modems(_) | Kind::Audio));
    let (mut lost, mut broken, mut frames, mut differ) = (0, 0, 0, 0);
    for seen in read {
        lost += seen.blocks_lost;
        broken += seen.blocks_broken;
        frames += seen.frames_lost;
        let agrees = (seen.blocks_broken..=seen.blocks_lost).contains(&seen.frames_lost);
        differ += u64::from(!agrees);
    }
    (lost > 0).then(|| Check {
        claim: "DSL and radio, all variants: a frame is lost only if its block lost samples, and whenever it lost more than a frame can spare".into(),
        held: differ == 0,
        seen: format!("{lost} blocks lost samples, {broken} more than they can spare; {frames} frames were lost; {differ} runs in which that disagrees"),
    })
}

fn live_checks(here: &Here) -> Vec<Check> {
    let whole = |seen: &Seen| seen.undisturbed_damage == 0 && seen.calls > 0;
    let broken = |seen: &Seen| seen.damage() > 0;
    let right = |seen: &Seen| seen.load_differs == 0 && seen.undelivered == 0;
    let tried = &here.tried;
    if tried.is_empty() {
        return Vec::new();
    }
    vec![
        each_set(
            tried,
            RESERVED,
            "here: with reservations no device loses a sample while the machine does not stand still itself",
            whole,
        ),
        each_set(
            tried,
            OUTRANKED,
            "here: in real-time threads beside the same rogue every device loses samples",
            broken,
        ),
        each_set(
            tried,
            RESERVED,
            "here: repeated work comes to the same result, and no far end is late",
            right,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_about_no_device_does_not_hold() {
        assert!(!each_set(&[], RESERVED, "nothing is lost", |_| true).held);
    }

    #[test]
    fn what_is_too_much_is_refused() {
        for check in refused_checks() {
            assert!(check.held, "{check:?}");
        }
    }
}
