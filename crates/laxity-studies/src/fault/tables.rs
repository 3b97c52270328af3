//! What is shown of the cases, and what is claimed.

use laxity_model::Span;
use laxity_model::verify::attribution::{Culprit, Fault, LateJob};

use super::case::{Kind, Served};
use super::live::Tried;
use super::trial::{Trial, name, stage};
use super::{Drawn, FIGURES, LENGTH};
use laxity_lab::bench::Request;
use laxity_lab::report::{Cell, Check, Figure, Origin, Report, Table, Value};

fn text(words: impl Into<String>, origin: Origin) -> Option<Cell> {
    Some(Cell {
        value: Value::Text(words.into()),
        origin,
    })
}

fn count(count: usize, origin: Origin) -> Option<Cell> {
    Some(Cell {
        value: Value::Count(count as u64),
        origin,
    })
}

fn span(span: Span, origin: Origin) -> Option<Cell> {
    Some(Cell {
        value: Value::Span(span),
        origin,
    })
}

/// The whole report.
pub(super) fn report(request: &Request, cases: &[Drawn], here: Option<&Vec<Tried>>) -> Report {
    let figures = FIGURES.iter().filter(|(key, _)| request.wants(key));
    let figures = figures.filter_map(|(key, title)| match *key {
        "cases" => Some(figure(key, title, ABOUT_CASES, twenty(cases), &REMARKS)),
        "evidence" => Some(figure(key, title, ABOUT_EVIDENCE, evidence(cases), &[])),
        _ => here.map(|here| figure(key, title, ABOUT_LIVE, measured(here), &LIVE_REMARKS)),
    });
    let figures: Vec<Figure> = figures.collect();
    let mut checks = Vec::new();
    if !cases.is_empty() {
        checks.extend(twin_checks(cases));
    }
    checks.extend(here.into_iter().flatten().map(live_check));
    let redrawn: u64 = cases.iter().map(|drawn| drawn.attempts - 1).sum();
    let mut circumstances = vec![
        ("twin", "win2000-pii450".to_owned()),
        ("seed", request.seed.to_string()),
        ("length of a run", LENGTH.to_string()),
        ("repeats", "each case is run once, whatever is asked for; here it is always the same three".to_owned()),
        ("drawn again", format!("{redrawn} times, because those that keep the rules made jobs late, or a culprit made none late")),
        ("charged", "the victim: a job of 1.84 ms every 12.5 ms, handler and deferred call 5.4 µs each (Jones, Saroiu §6.2.4, §6.6)".to_owned()),
    ];
    circumstances.extend(here.and_then(|here| Some(("measured on", here.first()?.host.clone()))));
    Report {
        experiment: "fault",
        title: "Whose fault? The verdict names the culprit, not the victim".into(),
        summary: summary(cases),
        circumstances,
        figures,
        checks,
    }
}

fn summary(cases: &[Drawn]) -> Vec<String> {
    let mut all = WHAT.map(str::to_owned).to_vec();
    if !cases.is_empty() {
        let right = cases.iter().filter(|drawn| drawn.trial.is_right()).count();
        all.push(format!(
            "In {right} of {} cases exactly those were named who were to blame.",
            cases.len()
        ));
    }
    all
}

const WHAT: [&str; 3] = [
    "A soft modem's vendor hid its work in an interrupt handler, because others held off interrupts for 30 to 50 ms, or starved its thread, and it would have been blamed (Jones, Saroiu §8.1). They ask for systematic verification of the timing of all components.",
    "Here a device is made late in twenty ways that are known, among others that keep the rules. From the events of the run alone, and from what each component declares, it is told who broke a rule without which the job would have been in time.",
    "The truth is found by running each case again without each set of culprits: whose absence makes fewer jobs late is to blame.",
];

const ABOUT_CASES: &str = "Each case has a modem-like device in a thread of priority 24 or with a reservation, one to three devices with handlers of at most 90 µs, one with a deferred call of at most 300 µs, a callback every millisecond, threads with a declared budget, and spinners. PC 99 allows 100 µs in a handler and 500 µs in deferred calls.";
const ABOUT_EVIDENCE: &str = "Between its release and its end, of the first late job in each case: the processor's longest holders, and for each culprit how much earlier the job would have ended without its excess.";
const ABOUT_LIVE: &str = "Handlers and deferred calls are emulated by threads of SCHED_FIFO. A thread above the victim takes 25 ms every 450 ms; a handler takes 35 ms every 450 ms; and nothing is wrong.";

const REMARKS: [&str; 4] = [
    "The reservation is named if most late jobs are put to it. Beside culprits a single late job may be put to it wrongly: a replay leaves other threads in a slot where they were.",
    "`needed`: with its excess alone, and nobody else's, the job is late still. `enough`: without its excess alone the job is in time.",
    "Reservations are 2.6 ms every 8 ms, confined: 2 ms (Jones, Saroiu's) leave 0.16 ms for what interrupts take, and five times that is within the rules.",
    "A driver that spends 5 ms in one deferred call makes no job late that has 12.5 ms for 1.84: it takes several in a row, or two drivers.",
];
const LIVE_REMARKS: [&str; 2] = [
    "No event tells of preemption here: the timeline nests threads by the order in which they were dispatched. That holds for real-time threads. What is not of the program shows as `something unseen`, by the processor time that the victim records; a standstill of the machine, as the witness sees it, as `the machine`.",
    "A thread of the program that is preempted by something unseen keeps the blame for that time.",
];

fn figure(key: &str, title: &str, about: &str, table: Table, remarks: &[&str]) -> Figure {
    Figure {
        key: key.into(),
        title: title.into(),
        about: about.into(),
        charts: Vec::new(),
        compared: Vec::new(),
        tables: vec![table],
        remarks: remarks.iter().map(|&remark| remark.into()).collect(),
    }
}

fn table(caption: &str, columns: &[&str], rows: Vec<Vec<Option<Cell>>>) -> Table {
    Table {
        caption: caption.into(),
        columns: columns.iter().map(|&column| column.into()).collect(),
        rows,
    }
}

fn served(served: Served) -> String {
    match served {
        Served::Thread => "thread 24".into(),
        Served::Reserved(service) => format!("reserved {service}/8ms"),
    }
}

fn letters(culprits: &[usize]) -> String {
    let letters: Vec<String> = culprits
        .iter()
        .map(|number| char::from(b'A' + *number as u8).to_string())
        .collect();
    letters.join(" and ")
}

/// Who is to blame, in words.
fn blame(culprits: &[usize], victim: bool, reservation: bool, others: &[String]) -> String {
    let mut all = Vec::new();
    if !culprits.is_empty() {
        all.push(letters(culprits));
    }
    if victim {
        all.push("the victim".into());
    }
    if reservation {
        all.push("the reservation".into());
    }
    all.extend(others.iter().cloned());
    if all.is_empty() {
        all.push("nobody".into());
    }
    all.join(", ")
}

fn to_blame(trial: &Trial) -> String {
    let truth = &trial.truth;
    blame(&truth.culprits, truth.victim, truth.reservation, &[])
}

fn is_named(trial: &Trial) -> String {
    let verdict = &trial.verdict;
    blame(
        &verdict.culprits,
        verdict.victim,
        verdict.blames_reservation(),
        &verdict.others,
    )
}

fn rules(trial: &Trial) -> String {
    let mut rules: Vec<String> = Vec::new();
    for named in &trial.verdict.findings.named {
        let rule = named.rule.to_string();
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    rules.join("; ")
}

const CASE_COLUMNS: [&str; 8] = [
    "case",
    "what is wrong",
    "the victim",
    "jobs",
    "late",
    "to blame",
    "named",
    "for",
];

fn twenty(cases: &[Drawn]) -> Table {
    let row = |(number, drawn): (usize, &Drawn)| {
        let trial = &drawn.trial;
        let findings = &trial.verdict.findings;
        vec![
            count(number + 1, Origin::Charged),
            text(trial.case.kind.about(), Origin::Charged),
            text(served(trial.case.served), Origin::Charged),
            count(findings.jobs as usize, Origin::Simulated),
            count(findings.late.len(), Origin::Simulated),
            text(to_blame(trial), Origin::Simulated),
            text(is_named(trial), Origin::Simulated),
            text(rules(trial), Origin::Simulated),
        ]
    };
    let rows = cases.iter().enumerate().map(row).collect();
    table("Twenty cases", &CASE_COLUMNS, rows)
}

/// The three who held the processor longest.
fn holders(job: &LateJob, names: &[String]) -> String {
    let longest = job.held.iter().take(3);
    let longest = longest.map(|held| format!("{} {}", name(held.who, names), rounded(held.time)));
    longest.collect::<Vec<_>>().join(", ")
}

/// To the microsecond.
fn rounded(span: Span) -> Span {
    Span::from_micros(span.as_micros())
}

fn explained(culprits: &[Culprit], names: &[String]) -> String {
    let each = culprits.iter().map(|culprit| {
        let how = match (culprit.needed, culprit.suffices) {
            (true, true) => "needed and enough",
            (true, false) => "needed",
            (false, true) => "enough",
            (false, false) => "one of several",
        };
        let earlier = rounded(culprit.explains);
        format!("{} {earlier} ({how})", name(culprit.who, names))
    });
    each.collect::<Vec<_>>().join(", ")
}

fn why(fault: &Fault, names: &[String]) -> String {
    match fault {
        Fault::Culprits(culprits) => explained(culprits, names),
        Fault::Reservation {
            reserved,
            needed,
            in_slots,
        } => format!(
            "{reserved} is too small: {} needed, {} in slots",
            rounded(needed.as_dedicated_span()),
            rounded(in_slots.as_dedicated_span())
        ),
        Fault::Rank => "the victim's rank is too low".into(),
        Fault::Overload => "too much in all".into(),
    }
}

const EVIDENCE_COLUMNS: [&str; 5] = [
    "case",
    "released at",
    "late by",
    "held by",
    "earlier without",
];

fn evidence(cases: &[Drawn]) -> Table {
    let rows = cases.iter().enumerate().filter_map(|(number, drawn)| {
        let trial = &drawn.trial;
        let everybody: Vec<usize> = (0..trial.case.culprits.len()).collect();
        let names = stage(&trial.case, &everybody).names;
        let job = trial.verdict.findings.late.first()?;
        Some(vec![
            count(number + 1, Origin::Charged),
            span(job.release.since_epoch(), Origin::Simulated),
            span(job.lateness, Origin::Simulated),
            text(holders(job, &names), Origin::Simulated),
            text(why(&job.fault, &names), Origin::Simulated),
        ])
    });
    table(
        "The first late job of each case",
        &EVIDENCE_COLUMNS,
        rows.collect(),
    )
}

const LIVE_COLUMNS: [&str; 6] = [
    "case",
    "jobs",
    "late",
    "named",
    "first late job held by",
    "earlier without",
];

fn measured(here: &[Tried]) -> Table {
    let row = |tried: &Tried| {
        let verdict = &tried.verdict;
        let first = verdict.findings.late.first();
        let named = blame(
            &verdict.culprits,
            verdict.victim,
            verdict.blames_reservation(),
            &verdict.others,
        );
        vec![
            text(tried.case.kind.about(), Origin::Charged),
            count(verdict.findings.jobs as usize, Origin::Measured),
            count(verdict.findings.late.len(), Origin::Measured),
            text(named, Origin::Measured),
            first.and_then(|job| text(holders(job, &tried.names), Origin::Measured)),
            first.and_then(|job| text(why(&job.fault, &tried.names), Origin::Measured)),
        ]
    };
    table(
        "On this machine",
        &LIVE_COLUMNS,
        here.iter().map(row).collect(),
    )
}

fn twin_checks(cases: &[Drawn]) -> Vec<Check> {
    let trials = || cases.iter().map(|drawn| &drawn.trial);
    let right = trials().filter(|trial| trial.is_right()).count();
    let innocents: Vec<String> = trials()
        .flat_map(|trial| trial.verdict.others.clone())
        .collect();
    vec![
        Check {
            claim: "in each of the twenty cases exactly those are named that are to blame".into(),
            held: right == cases.len(),
            seen: format!("{right} of {}", cases.len()),
        },
        Check {
            claim: "nobody is named who kept the rules".into(),
            held: innocents.is_empty(),
            seen: if innocents.is_empty() {
                "nobody".into()
            } else {
                innocents.join(", ")
            },
        },
    ]
}

/// Live: whoever is to blame is named, and of the program's others nobody; the machine and what is not of the program may be named besides.
fn live_check(tried: &Tried) -> Check {
    let verdict = &tried.verdict;
    let wanted: Vec<usize> = (0..tried.case.culprits.len()).collect();
    let foreign = ["the machine", "something unseen"];
    let innocents = verdict
        .others
        .iter()
        .any(|other| !foreign.contains(&other.as_str()));
    let about = match tried.case.kind {
        Kind::Nothing => "live, with nothing wrong, nobody of the program is named".into(),
        kind => format!(
            "live, {}: it is named, and nobody else of the program",
            kind.about()
        ),
    };
    Check {
        claim: about,
        held: verdict.culprits == wanted
            && !innocents
            && !verdict.victim
            && verdict.findings.jobs > 0,
        seen: format!(
            "{} of {} jobs late; named: {}",
            verdict.findings.late.len(),
            verdict.findings.jobs,
            blame(&verdict.culprits, verdict.victim, false, &verdict.others)
        ),
    }
}
