//! The report.

use laxity_model::{Instant, Span};

use super::burst::{self, Burst};
use super::sweep::{self, Swept};
use super::{Shown, answers};
use crate::devices::cells::{count, share, span, text};
use crate::on_hook::call::{self, Served};
use laxity_lab::bench::Request;
use laxity_lab::report::{
    Axis, Cell, Chart, Check, Figure, Mark, Origin, Report, Series, Table, Unit,
};

/// The time constraint of the modem's call, from its interrupt; the next one comes 12.5 ms after it.
pub(super) const MODEM_WITHIN: Span = Span::from_millis(10);
/// The width of a histogram's bar.
const BAR_NS: u64 = 250_000;
/// What the clock's interrupts may take of service in the twin, in parts per million.
const TWIN_TOLERATED_PPM: u64 = 10_000;
/// And all that is not the program's on this machine: as its slots are kept, within 5 %.
const LIVE_TOLERATED_PPM: u64 = 50_000;

/// Everything, where it was asked for.
pub(super) fn report(request: &Request, twin: &Shown, live: Option<&Shown>) -> Report {
    let mut circumstances = vec![
        ("twin", twin.host.clone()),
        ("seed", request.seed.to_string()),
    ];
    circumstances.extend(live.map(|live| ("measured on", live.host.clone())));
    let hosts: Vec<(&Shown, Origin)> = std::iter::once((twin, Origin::Simulated))
        .chain(live.map(|live| (live, Origin::Measured)))
        .collect();
    let mut figures = Vec::new();
    figures.extend(bursts(&hosts));
    figures.extend(modem(twin));
    if request.wants("answers") {
        figures.push(answered());
    }
    figures.extend(swept(&hosts));
    let mut checks = Vec::new();
    for (shown, origin) in &hosts {
        checks.extend(burst_checks(shown, *origin));
        checks.extend(sweep_check(shown, *origin));
    }
    checks.extend(modem_check(twin));
    Report {
        experiment: "constraints",
        title: "Time constraints: so much service between a start and a deadline".into(),
        summary: summary(&hosts),
        circumstances,
        figures,
        checks,
    }
}

/// The question, and what came of it.
fn summary(hosts: &[(&Shown, Origin)]) -> Vec<String> {
    let mut all = vec![
            "A reservation is for what comes again and again. What comes once, such as the long call with which a modem recognises its partner's answer, it spreads over several periods.".into(),
            "A time constraint asks for just that: so much service by then. It is granted or refused at once, by counting the holder's own slots and the time that nobody has reserved; what is granted is planned there and then. Is it met, and does the holder of another reservation lose anything by it?".into(),
    ];
    for (shown, origin) in hosts {
        let place = place(*origin);
        if let Some([without, with]) = &shown.bursts {
            all.push(format!(
                "Bursts {place}: {} of {} are late with a time constraint, {} of {} without.",
                missed(&with.bursts),
                undisturbed(&with.bursts),
                missed(&without.bursts),
                undisturbed(&without.bursts),
            ));
        }
        if let Some(sweep) = &shown.sweep {
            all.push(format!(
                "Random time constraints {place}: {} granted, {} of them missed; {} refused.",
                sweep.granted.len(),
                sweep.missed(tolerated_ppm(*origin)),
                sweep.no_time + sweep.otherwise,
            ));
        }
    }
    all
}

fn place(origin: Origin) -> &'static str {
    match origin {
        Origin::Measured => "on this machine",
        _ => "in the twin",
    }
}

fn variant(constrained: bool) -> &'static str {
    if constrained {
        "with a time constraint"
    } else {
        "without"
    }
}

fn longest(bursts: &[Burst]) -> Span {
    let quiet = bursts.iter().filter(|burst| !burst.disturbed);
    quiet
        .map(|burst| burst.response)
        .max()
        .unwrap_or(Span::ZERO)
}

fn missed(bursts: &[Burst]) -> usize {
    let late = bursts.iter().filter(|burst| burst.response > burst::WITHIN);
    late.filter(|burst| !burst.disturbed).count()
}

fn undisturbed(bursts: &[Burst]) -> usize {
    bursts.iter().filter(|burst| !burst.disturbed).count()
}

fn bursts(hosts: &[(&Shown, Origin)]) -> Option<Figure> {
    let columns = [
        "bursts of 3.3 ms",
        "made",
        "constraints granted",
        "shortest response",
        "longest response",
        "later than 6 ms",
        "disturbed",
        "least that 1 ms in 5 beside it had in any 5 ms",
        "windows in which it had it, less 5 %",
    ];
    let mut rows = Vec::new();
    let mut charts = Vec::new();
    for (shown, origin) in hosts {
        let Some(both) = &shown.bursts else { continue };
        for (seen, constrained) in both.iter().zip([false, true]) {
            rows.push(burst_row(seen, constrained, *origin));
        }
        charts.push(responses(both, *origin));
    }
    (!rows.is_empty()).then(|| Figure {
        key: "burst".into(),
        title: "A burst inside a reservation".into(),
        about: "A confined holder of 2 ms in 8 has a burst of 3.3 ms to do every 50.37 ms, beside four spinners and a confined holder of 1 ms in 5 that never stops. With a time constraint it asks for 3.465 ms within 6 ms of each release.".into(),
        charts,
        compared: Vec::new(),
        tables: vec![Table {
            caption: "Responses; those during which the machine stood still count as disturbed and nowhere else".into(),
            columns: columns.map(str::to_owned).to_vec(),
            rows,
        }],
        remarks: vec![
            "A confined holder that sleeps runs in no slot but its own, so it asks for each burst before it comes. One that finds out on the way, as the modem does, asks then.".into(),
        ],
    })
}

fn burst_row(seen: &burst::Seen, constrained: bool, origin: Origin) -> Vec<Option<Cell>> {
    let bursts = &seen.bursts;
    let shortest = bursts.iter().map(|burst| burst.response).min();
    let granted = bursts.iter().filter(|burst| burst.granted).count();
    let disturbed = bursts.iter().filter(|burst| burst.disturbed).count();
    vec![
        text(
            format!("{}, {}", variant(constrained), place(origin)),
            origin,
        ),
        count(bursts.len() as u64, origin),
        count(granted as u64, origin),
        span(shortest.unwrap_or(Span::ZERO), origin),
        span(longest(bursts), origin),
        count(missed(bursts) as u64, origin),
        count(disturbed as u64, origin),
        span(seen.least_of_other.as_dedicated_span(), origin),
        share(seen.kept_ppm_of_other, origin),
    ]
}

fn responses(both: &[burst::Seen; 2], origin: Origin) -> Chart {
    let series = both.iter().zip([false, true]).map(|(seen, constrained)| {
        let mut counts = std::collections::BTreeMap::new();
        for burst in &seen.bursts {
            let bar = burst.response.as_nanos() / BAR_NS * BAR_NS;
            *counts.entry(bar as i64).or_insert(0_i64) += 1;
        }
        Series {
            name: variant(constrained).into(),
            mark: Mark::Bars {
                width: BAR_NS as i64,
            },
            points: counts.into_iter().collect(),
        }
    });
    let deadline = burst::WITHIN.as_nanos() as i64;
    Chart {
        caption: format!("Responses of bursts of 3.3 ms, {}", place(origin)),
        x: axis("response", Unit::Nanoseconds),
        y: axis("bursts", Unit::Count),
        series: series.collect(),
        lines: vec![(
            "deadline".into(),
            (deadline, 0),
            (deadline, both[1].bursts.len() as i64),
        )],
    }
}

fn axis(label: &str, unit: Unit) -> Axis {
    Axis {
        label: label.into(),
        unit,
        logarithmic: false,
        range: None,
    }
}

fn burst_checks(shown: &Shown, origin: Origin) -> Vec<Check> {
    let Some([without, with]) = &shown.bursts else {
        return Vec::new();
    };
    let place = place(origin);
    let least_ppm = kept_at_least_ppm(origin);
    let granted = with.bursts.iter().all(|burst| burst.granted);
    vec![
        Check {
            claim: format!(
                "{place}, every burst is granted its time constraint, and done within 6 ms"
            ),
            held: granted && missed(&with.bursts) == 0 && undisturbed(&with.bursts) > 0,
            seen: format!(
                "{} bursts, {} late, the longest {}",
                with.bursts.len(),
                missed(&with.bursts),
                longest(&with.bursts)
            ),
        },
        Check {
            claim: format!(
                "{place}, without one no burst is, as 2 ms in 8 give 3.3 ms in two periods"
            ),
            held: missed(&without.bursts) == undisturbed(&without.bursts)
                && undisturbed(&without.bursts) > 0,
            seen: format!(
                "{} bursts, {} late, the longest {}",
                without.bursts.len(),
                missed(&without.bursts),
                longest(&without.bursts)
            ),
        },
        Check {
            claim: format!(
                "{place}, the reservation beside it has its 1 ms in {} % of all windows of 5 ms all the same, less 5 %",
                least_ppm / 10_000
            ),
            held: with.kept_ppm_of_other >= least_ppm,
            seen: format!(
                "{} ppm of the windows with, {} without; at least {} with, {} without",
                with.kept_ppm_of_other,
                without.kept_ppm_of_other,
                with.least_of_other,
                without.least_of_other
            ),
        },
    ]
}

/// The call that had a time constraint, and the same one of the run without.
fn recognition([without, with]: &[call::Seen; 2]) -> Option<[Served; 2]> {
    let place = with.off_hook.iter().position(|call| call.constrained)?;
    Some([*without.off_hook.get(place)?, with.off_hook[place]])
}

fn response(call: Served) -> Span {
    call.done.saturating_since(call.raised)
}

fn modem(twin: &Shown) -> Option<Figure> {
    let origin = Origin::Simulated;
    let row = |(n, both): (usize, &[call::Seen; 2])| {
        let [without, with] = recognition(both)?;
        Some(vec![
            text(format!("call {}", n + 1), origin),
            span(with.begun.saturating_since(with.raised), origin),
            span(response(without), origin),
            span(response(with), origin),
        ])
    };
    let rows = twin.modem.iter().enumerate().filter_map(row);
    let columns = [
        "",
        "from interrupt to begin",
        "response without",
        "response with a time constraint",
    ];
    (!twin.modem.is_empty()).then(|| Figure {
        key: "modem".into(),
        title: "The modem's longest call while it connects".into(),
        about: "The call that recognises the answer takes 3.3 ms (charged). The driver, confined to 2 ms in 8, finds out when it has looked at the block, and then asks for 3.465 ms by 10 ms after its interrupt, 2.5 ms before the next.".into(),
        charts: Vec::new(),
        compared: Vec::new(),
        tables: vec![Table {
            caption: "One call each, in the twin, real samples; the card's clock in another phase to the slots each time".into(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: rows.collect(),
        }],
        remarks: Vec::new(),
    })
}

fn modem_check(twin: &Shown) -> Option<Check> {
    let calls: Vec<[Served; 2]> = twin.modem.iter().filter_map(recognition).collect();
    let late = |which: usize| {
        let late = calls
            .iter()
            .filter(|both| response(both[which]) > MODEM_WITHIN);
        late.count()
    };
    let (without, with) = (late(0), late(1));
    (!twin.modem.is_empty()).then(|| Check {
        claim: "in the twin, the modem is granted its time constraint whatever the phase, and its call is done within 10 ms of its interrupt; without, it is not in every phase".into(),
        held: calls.len() == twin.modem.len() && with == 0 && without > 0,
        seen: format!("{} of {} granted, {with} late; without, {without} late", calls.len(), twin.modem.len()),
    })
}

fn answered() -> Figure {
    let rows = answers::answers().into_iter().map(|answered| {
        let answer = match answered.answer {
            Ok(from) => format!("granted, from {} on", from.saturating_since(Instant::ZERO)),
            Err(why) => format!("refused: {why}"),
        };
        vec![
            text(answered.asked, Origin::Charged),
            text(answer, Origin::Predicted),
        ]
    });
    Figure {
        key: "answers".into(),
        title: "What is granted and refused, and why".into(),
        about: "A modem with 2 ms in 8, a player with 1 ms in 10, and a compressor without a reservation ask one after the other, at 100 ms, and the modem for other reservations at 200 ms.".into(),
        charts: Vec::new(),
        compared: Vec::new(),
        tables: vec![Table {
            caption: "A switch is charged 50 µs".into(),
            columns: ["asked", "answer"].map(str::to_owned).to_vec(),
            rows: rows.collect(),
        }],
        remarks: Vec::new(),
    }
}

/// In how many windows a reservation must be kept: live, as the slot dispatcher keeps them.
fn kept_at_least_ppm(origin: Origin) -> u64 {
    match origin {
        Origin::Measured => 980_000,
        _ => 1_000_000,
    }
}

fn tolerated_ppm(origin: Origin) -> u64 {
    match origin {
        Origin::Measured => LIVE_TOLERATED_PPM,
        _ => TWIN_TOLERATED_PPM,
    }
}

fn swept(hosts: &[(&Shown, Origin)]) -> Option<Figure> {
    let columns = [
        "where",
        "granted",
        "refused for want of time",
        "refused otherwise",
        "disturbed",
        "missed",
    ];
    let row = |(shown, origin): &(&Shown, Origin)| {
        let sweep: &Swept = shown.sweep.as_ref()?;
        Some(vec![
            text(place(*origin), *origin),
            count(sweep.granted.len() as u64, *origin),
            count(sweep.no_time, *origin),
            count(sweep.otherwise, *origin),
            count(sweep.disturbed() as u64, *origin),
            count(sweep.missed(tolerated_ppm(*origin)) as u64, *origin),
        ])
    };
    let rows: Vec<Vec<Option<Cell>>> = hosts.iter().filter_map(row).collect();
    (!rows.is_empty()).then(|| Figure {
        key: "sweep".into(),
        title: "Random time constraints".into(),
        about: format!("Two confined holders of random reservations and three threads without, all of which always want the processor, ask for one time constraint after the other: up to 4 ms ahead, 2 to 20 ms long, for 2 to 52 % of it. Missed is one that received less than was asked for, less {} (its service is counted in pieces) and 1 % in the twin, 5 % live.", sweep::PIECE * 2),
        charts: Vec::new(),
        compared: Vec::new(),
        tables: vec![Table {
            caption: "What was granted is met".into(),
            columns: columns.map(str::to_owned).to_vec(),
            rows,
        }],
        remarks: Vec::new(),
    })
}

fn sweep_check(shown: &Shown, origin: Origin) -> Option<Check> {
    let sweep = shown.sweep.as_ref()?;
    let missed = sweep.missed(tolerated_ppm(origin));
    Some(Check {
        claim: format!(
            "{}, no time constraint that was granted is missed",
            place(origin)
        ),
        held: missed == 0 && sweep.granted.len() > sweep.disturbed(),
        seen: format!(
            "{missed} of {}, {} of them disturbed; {} refused",
            sweep.granted.len(),
            sweep.disturbed(),
            sweep.no_time + sweep.otherwise
        ),
    })
}
