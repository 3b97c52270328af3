//! What is shown of the systems, and what is claimed.

use laxity_model::Span;
use laxity_model::analysis::Overflow;
use laxity_model::analysis::Task;
use laxity_model::analysis::multiprocessor::{Fit, Order, Tardiness, global_edf, tardiness};

use super::place::{Placed, Placing, place};
use super::{FIGURES, Results, System, USUAL, count};
use crate::devices::cells::{self, reservation, seen_rows, seen_table, share, span, text};
use crate::devices::demand::Ground;
use crate::devices::kind::Kind;
use crate::devices::run::{Outcome, Seen};
use crate::devices::serving::{Variant, Way};
use crate::devices::sets::name_of;
use laxity_lab::bench::Request;
use laxity_lab::report::{Cell, Check, Figure, Origin, Report, Table};

/// The whole report.
pub(super) fn report(
    request: &Request,
    results: &Results,
    length: Span,
) -> Result<Report, Overflow> {
    let mut figures = Vec::new();
    let mut checks = Vec::new();
    for (key, title) in FIGURES.iter().filter(|(key, _)| request.wants(key)) {
        let (figure, claimed) = match *key {
            "partition" => partition(title, &results.partitions)?,
            "variants" => variants(title, &results.modems),
            "refused" => refused(title)?,
            _ => match &results.here {
                Some((_, loads, system)) => live(title, loads, system),
                None => continue,
            },
        };
        figures.push(figure);
        checks.extend(claimed);
    }
    let mut circumstances = vec![
        ("twin", "win2000-pii450, all its processors alike".to_owned()),
        ("seed", request.seed.to_string()),
        ("length of a run", length.to_string()),
        ("beside the devices", "on each processor two threads of priority 8 that never stop, and a callback of priority 31 every millisecond; where a rogue is named, one of priority 28 that runs for 60 ms four times a second".to_owned()),
    ];
    circumstances.extend(
        results
            .here
            .as_ref()
            .map(|(host, ..)| ("measured on", host.clone())),
    );
    Ok(Report {
        experiment: "processors",
        title: "Soft devices on several processors".into(),
        summary: SUMMARY.map(str::to_owned).to_vec(),
        circumstances,
        figures,
        checks,
    })
}

const SUMMARY: [&str; 2] = [
    "Each device is bound to one processor, which has a slot table of its own: what is admitted there holds whatever runs elsewhere. Which processor a device gets is decided by first fit, the largest share first, where fitting means that the analysis names reservations for all devices of a processor together, and a table keeps them.",
    "One processor may be too full though the sum would fit on all; and in another order of placing there may be no room at all. Spread over processors, do modems in handlers and deferred calls keep everybody else waiting less, because each processor has fewer of them? And do reservations leave the callback as it is on any number? The tables and the claims below them tell.",
];

fn figure(key: &str, title: &str, about: &str, tables: Vec<Table>, remarks: Vec<String>) -> Figure {
    Figure {
        key: key.into(),
        title: title.into(),
        about: about.into(),
        charts: Vec::new(),
        compared: Vec::new(),
        tables,
        remarks,
    }
}

fn table(caption: String, columns: &[&str], rows: Vec<Vec<Option<Cell>>>) -> Table {
    Table {
        caption,
        columns: columns.iter().map(|&column| column.to_owned()).collect(),
        rows,
    }
}

fn places(system: &System) -> Table {
    let row = |placed: &Placed| {
        vec![
            text(placed.kind.name(), Origin::Predicted),
            text(format!("processor {}", placed.processor), Origin::Predicted),
            reservation(Some(placed.reservation)),
            share(placed.reservation.share_ppm(), Origin::Predicted),
            text(placed.why.clone(), Origin::Predicted),
        ]
    };
    let mut placed: Vec<&Placed> = system.placed().iter().collect();
    placed.sort_by_key(|placed| placed.processor);
    table(
        format!("Where the devices are, on {} processors", system.processors),
        &["device", "where", "reservation", "its share", "why there"],
        placed.into_iter().map(row).collect(),
    )
}

fn seen(system: &System, origin: Origin) -> Table {
    let rows = system
        .seen
        .iter()
        .flat_map(|(variant, outcome)| seen_rows(variant.name(), &outcome.devices, origin));
    let caption = format!(
        "{} on {} processors",
        name_of(&system.kinds),
        system.processors
    );
    seen_table(caption, "served", rows.collect())
}

fn partition(title: &str, systems: &[System]) -> Result<(Figure, Vec<Check>), Overflow> {
    let mut tables = Vec::new();
    let mut remarks = Vec::new();
    let mut checks = Vec::new();
    for system in systems {
        tables.push(places(system));
        tables.push(seen(system, Origin::Simulated));
        remarks.push(global(system)?);
        let room = matches!(system.placing, Placing::Found(_));
        checks.push(Check {
            claim: format!(
                "{} have room on {} processors",
                name_of(&system.kinds),
                system.processors
            ),
            held: room,
            seen: if room {
                "each has a processor".into()
            } else {
                format!("{:?}", system.placing)
            },
        });
        checks.push(whole(system, "twin", |seen| {
            seen.damage() + seen.frames_lost + seen.retrained == 0
        }));
        checks.push(broken(system, "twin", |_| true));
    }
    let about = "Placed by first fit, the largest share first. Beside spinners and a rogue on every processor.";
    Ok((figure("partition", title, about, tables, remarks), checks))
}

/// What the same reservations would be worth if they went to whichever processor is free.
fn global(system: &System) -> Result<String, Overflow> {
    let tasks = system.placed().iter().filter_map(|placed| {
        let asked = placed.reservation;
        Task::new(asked.service(), asked.period()).ok()
    });
    let tasks: Vec<Task> = tasks.collect();
    let sure = global_edf(&tasks, system.processors)?.is_schedulable();
    let late = match tardiness(&tasks, system.processors)? {
        Tardiness::Bounded(bounds) => {
            let most = bounds.into_iter().max().unwrap_or(Span::ZERO);
            format!("late by up to {most}")
        }
        Tardiness::Unbounded => "late without bound".into(),
        Tardiness::Unknown(_) => "late by an unknown time".into(),
    };
    let test = if sure {
        "the density test accepts them: none would be late"
    } else {
        "the density test does not accept them"
    };
    Ok(format!(
        "The same reservations on {} processors by global earliest deadline first, as SCHED_DEADLINE has it, wherever there is room: {test}, and a period's service may be {late}. Bound to processors by slot tables nothing is late; what that costs is that no device may use the rest of another processor, so that sets may be refused whose sum would fit.",
        system.processors
    ))
}

fn of(system: &System, variant: Variant) -> Option<&Outcome> {
    system
        .seen
        .iter()
        .find(|(of, _)| *of == variant)
        .map(|(_, outcome)| outcome)
}

fn claim(system: &System, variant: Variant, words: String, holds: impl Fn(&Seen) -> bool) -> Check {
    let devices: Vec<&Seen> = of(system, variant)
        .map(|outcome| outcome.devices.iter().collect())
        .unwrap_or_default();
    let wrong = devices.iter().filter(|seen| !holds(seen)).map(|seen| {
        let (samples, frames) = (seen.damage(), seen.frames_lost);
        format!(
            "{} on {}: {samples} samples, {frames} frames",
            seen.kind.name(),
            seen.processor
        )
    });
    let wrong: Vec<String> = wrong.collect();
    Check {
        claim: words,
        held: wrong.is_empty() && !devices.is_empty(),
        seen: match wrong.len() {
            0 => format!("so for all {} devices", devices.len()),
            _ => wrong.join("; "),
        },
    }
}

const RESERVED: Variant = Variant::of(Way::Reserved, true);
const OUTRANKED: Variant = Variant::of(Way::RealTime, true);

fn whole(system: &System, host: &str, holds: impl Fn(&Seen) -> bool) -> Check {
    let words = format!(
        "{host}, {} processors: with reservations nothing is lost beside a rogue",
        system.processors
    );
    claim(system, RESERVED, words, |seen| {
        seen.calls > 0 && holds(seen)
    })
}

/// Of the devices that a rogue can get at.
fn broken(system: &System, host: &str, reached: impl Fn(&Seen) -> bool) -> Check {
    let words = format!(
        "{host}, {} processors: in threads of priority 24 every device that shares a processor with the rogue loses samples",
        system.processors
    );
    let check = claim(system, OUTRANKED, words, |seen| {
        !reached(seen) || seen.damage() > 0
    });
    let devices = of(system, OUTRANKED).map(|outcome| outcome.devices.as_slice());
    let any = devices.unwrap_or_default().iter().any(reached);
    Check {
        held: check.held && any,
        ..check
    }
}

fn variants(title: &str, systems: &[System]) -> (Figure, Vec<Check>) {
    let mut rows = Vec::new();
    for system in systems {
        for (variant, outcome) in &system.seen {
            let sum = |count: fn(&Seen) -> u64| outcome.devices.iter().map(count).sum();
            let longest = outcome
                .devices
                .iter()
                .map(|seen| seen.longest_response)
                .max();
            rows.push(vec![
                text(variant.name(), Origin::Simulated),
                cells::count(u64::from(system.processors.get()), Origin::Charged),
                cells::count(sum(Seen::damage), Origin::Simulated),
                cells::count(sum(|seen| seen.octets.unwrap_or(0)), Origin::Simulated),
                longest.and_then(|longest| span(longest, Origin::Simulated)),
                outcome
                    .gaps
                    .iter()
                    .max()
                    .and_then(|gap| span(*gap, Origin::Simulated)),
            ]);
        }
    }
    let columns = [
        "served",
        "processors",
        "samples lost",
        "octets delivered",
        "longest response",
        "longest gap of a callback",
    ];
    let mut tables = vec![table("Four modems, spread evenly".into(), &columns, rows)];
    tables.extend(systems.iter().map(places));
    let about = "Four modems, the study's placements, on one, two and four processors; the 1 ms callback of priority 31 watches each.";
    (
        figure("variants", title, about, tables, Vec::new()),
        variant_checks(systems),
    )
}

fn variant_checks(systems: &[System]) -> Vec<Check> {
    let mut checks = Vec::new();
    for system in systems {
        let reserved = Variant::of(Way::Reserved, false);
        let words = format!(
            "four reserved modems on {} processors lose nothing",
            system.processors
        );
        checks.push(claim(system, reserved, words, |seen| {
            seen.calls > 0 && seen.damage() + seen.frames_lost == 0
        }));
    }
    let gap = |system: &System, way| -> Option<Span> {
        of(system, Variant::of(way, false))?
            .gaps
            .iter()
            .max()
            .copied()
    };
    let falls = |way| {
        let gaps: Vec<Span> = systems
            .iter()
            .filter_map(|system| gap(system, way))
            .collect();
        let held = gaps.len() == systems.len() && gaps.len() > 1 && gaps.first() >= gaps.last();
        (
            held,
            gaps.iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", "),
        )
    };
    let (held, seen) = falls(Way::Interrupt);
    checks.push(Check {
        claim: "in handlers, the callback waits no longer on four processors than on one".into(),
        held,
        seen: format!("longest gaps on one, two and four: {seen}"),
    });
    let against = systems
        .iter()
        .map(|system| (gap(system, Way::Interrupt), gap(system, Way::Reserved)));
    let against: Vec<(Option<Span>, Option<Span>)> = against.collect();
    // What was not seen is less than nothing.
    let is_less = |(handlers, reserved): &(Option<Span>, Option<Span>)| {
        handlers
            .zip(*reserved)
            .is_some_and(|(handlers, reserved)| reserved < handlers)
    };
    checks.push(Check {
        claim: "reserved modems keep the callback waiting less than modems in handlers, on any number of processors".into(),
        held: !against.is_empty() && against.iter().all(is_less),
        seen: against
            .iter()
            .map(|(handlers, reserved)| {
                let words = |gap: &Option<Span>| gap.map_or("none".into(), |gap| gap.to_string());
                format!("{} against {}", words(reserved), words(handlers))
            })
            .collect::<Vec<_>>()
            .join(", "),
    });
    checks
}

/// Sets that show what binding to processors means.
fn refused(title: &str) -> Result<(Figure, Vec<Check>), Overflow> {
    use Kind::{Audio, FullRate, GLite, Modem};
    let ground = Ground::twin();
    let overfull = [FullRate, GLite, Modem, Audio, Modem];
    let ordered = [Audio, Modem, Modem, FullRate, FullRate];
    let mut rows = Vec::new();
    let mut row = |kinds: &[Kind], how: &str, answer: String| {
        rows.push(vec![
            text(name_of(kinds), Origin::Predicted),
            text(how, Origin::Predicted),
            text(answer, Origin::Predicted),
        ]);
    };
    let all_on_one = ground.fit(&overfull);
    row(
        &overfull,
        "all on processor 0 of two",
        match &all_on_one {
            Ok(_) => "admitted".into(),
            Err(unfit) => format!("refused: {unfit}"),
        },
    );
    let spread = place(&ground, &overfull, count(2), USUAL)?;
    row(
        &overfull,
        "first fit on two, the largest first",
        words(&spread),
    );
    let given = place(&ground, &ordered, count(2), (Fit::First, Order::Given))?;
    row(
        &ordered,
        "first fit on two, in the order given",
        words(&given),
    );
    let decreasing = place(&ground, &ordered, count(2), USUAL)?;
    row(
        &ordered,
        "first fit on two, the largest first",
        words(&decreasing),
    );
    let found = |placing: &Placing| matches!(placing, Placing::Found(_));
    let checks = vec![
        Check {
            claim: "a set that overfills one processor is refused there, though the sum fits on two, and the partition is found".into(),
            held: all_on_one.is_err() && found(&spread),
            seen: format!("one: {}; two: {}", if all_on_one.is_err() { "refused" } else { "admitted" }, words(&spread)),
        },
        Check {
            claim: "a set for which first fit finds no room in the order given has room the largest first".into(),
            held: !found(&given) && found(&decreasing),
            seen: format!("given: {}; largest first: {}", words(&given), words(&decreasing)),
        },
    ];
    let table = table(
        "What is refused, and what is found".into(),
        &["set", "placed", "answer"],
        rows,
    );
    let about = "A processor is full when the analysis finds no reservations, or no table, for its devices together.";
    Ok((
        figure("refused", title, about, vec![table], Vec::new()),
        checks,
    ))
}

fn words(placing: &Placing) -> String {
    match placing {
        Placing::Found(placed) => {
            let each = placed
                .iter()
                .map(|placed| format!("{} on {}", placed.kind.name(), placed.processor));
            each.collect::<Vec<_>>().join(", ")
        }
        Placing::NoRoom(kind, _) => format!("no room for the {}", kind.name()),
    }
}

fn live(
    title: &str,
    loads: &[crate::devices::live::Loaded],
    system: &System,
) -> (Figure, Vec<Check>) {
    let tables = vec![
        cells::loads(loads),
        places(system),
        seen(system, Origin::Measured),
    ];
    let about = "On two processors of this machine; the far ends of modems have the rest of the second, so the rogue is on the first only.";
    let room = matches!(system.placing, Placing::Found(_));
    let checks = vec![
        Check {
            claim: "here: the set has room on two processors".into(),
            held: room,
            seen: words(&system.placing),
        },
        whole(system, "here", |seen| {
            seen.undisturbed_damage == 0 && seen.undelivered == 0 && seen.load_differs == 0
        }),
        broken(system, "here", |seen| seen.processor.0 == 0),
    ];
    (figure("live", title, about, tables, Vec::new()), checks)
}
