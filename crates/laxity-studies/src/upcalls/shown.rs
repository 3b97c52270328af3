//! What is shown and claimed of upcalls.

use laxity_lab::bench::{Draft, Holes, Made, Said};
use laxity_lab::report::{
    Axis, Chart, Compared, Mark, Origin, Point, Row, Series, Unit, Value, Verdict,
};
use laxity_model::Span;

use super::beside::Load;
use super::trial::{Look, Outcome, Rate, Serving};
use super::{Case, GRAIN_PPM, PERCENT_PPM, SWITCH_1995, Seen, TEXT, TWO, Trial, Upcalls, Where};

/// Up to here the paper missed nothing (§7.1), in parts per million.
const SAFE_PPM: u64 = 800_000;
/// What the paper saved of preemptions (§5.3), and of switches (§7.2), in percent.
const FEWER_PREEMPTIONS: u64 = 30;
const FEWER_SWITCHES: u64 = 35;
/// What it gained of useful utilization, in percent (§7.2).
const GAINED: u64 = 12;
/// How much less than with preemption at once may be usable of the multimedia set, where the paper says "almost the same".
const ALMOST_PPM: u64 = 2 * PERCENT_PPM;

/// How upcalls are served, in words.
pub(super) fn way(serving: Serving, look: Look) -> String {
    let who = match serving {
        Serving::Threads => return TEXT.say("threads", &[]),
        Serving::Kernel => return TEXT.say("kernel", &[]),
        Serving::Intervals => return TEXT.say("intervals", &[]),
        Serving::ByRate => "by-rate",
        Serving::ByDeadline => "by-deadline",
    };
    let when = match look {
        Look::AtOnce => "at-once",
        Look::AT_THE_END => "at-the-end",
        Look::Parts(_) => "half",
    };
    TEXT.say(who, &[("when", &TEXT.say(when, &[]))])
}

pub(super) fn of<'a>(trials: &'a [Trial], figure: &str) -> Vec<&'a Trial> {
    let all = trials.iter().filter(|(case, _)| case.figure == figure);
    all.collect()
}

fn mean(values: impl Iterator<Item = u64> + Clone) -> u64 {
    let (sum, count) = (values.clone().sum::<u64>(), values.count() as u64);
    sum.checked_div(count).unwrap_or(0)
}

/// §5.3.
pub(super) fn simulated(draft: &mut Draft<'_>, trials: &[Trial]) {
    let all = of(trials, "simulation");
    let served = |way: (Serving, Look)| {
        let all = all.clone().into_iter();
        all.filter(move |(case, _)| case.setup.way == way)
    };
    let usable = |way| served(way).filter_map(|(_, seen)| seen.usable_ppm);
    let preempted = |way| served(way).map(|(_, seen)| seen.outcome.preempted);
    let once = (Serving::Threads, Look::AtOnce);
    let delayed = [Look::Parts(TWO), Look::AT_THE_END].map(|look| (Serving::ByRate, look));
    let rows = [once, delayed[0], delayed[1]]
        .into_iter()
        .filter_map(|way| {
            let jobs = served(way).map(|(_, seen)| seen.outcome.jobs).sum::<u64>();
            let all: u64 = preempted(way).sum();
            Some(Origin::Simulated.row([
                self::way(way.0, way.1).into(),
                served(way).count().into(),
                Value::share(usable(way).min()?),
                Value::share(mean(usable(way))),
                Value::share(usable(way).max()?),
                all.into(),
                Value::share(all * 1_000_000 / jobs.max(1)),
            ]))
        });
    draft.table("simulation", "simulation", &[], rows);
    if all.is_empty() {
        return;
    }
    let [before, after] = [once, delayed[0]].map(|way| preempted(way).sum::<u64>());
    let [as_rm, ours] = [once, delayed[0]].map(|way| mean(usable(way)));
    let holes: Holes<'_> = &[
        ("fewer", &less(before, after)),
        ("before", &before),
        ("after", &after),
        ("as-rm", &percent(as_rm)),
        ("ours", &percent(ours)),
        ("asked", &FEWER_PREEMPTIONS),
    ];
    let saved = less(before, after);
    compare(draft, "simulation", "preempted", (FEWER_PREEMPTIONS, saved));
    draft.say("simulation", holes);
    draft.claim("usable", ours + ALMOST_PPM >= as_rm, holes);
    draft.claim("preempted", saved >= FEWER_PREEMPTIONS, holes);
}

/// What the paper says and what the twin shows, in percent; what was calibrated to it is no more than consistent.
fn compare(draft: &mut Draft<'_>, figure: &str, what: &str, (paper, twin): (u64, u64)) {
    let why = || TEXT.say(&format!("why-{what}"), &[]);
    let share = |percent: u64| Value::share(percent * PERCENT_PPM);
    let compared = Compared {
        paper: Origin::Quoted.cell(share(paper)),
        twin: Origin::Simulated.cell(share(twin)),
        verdict: match twin >= paper {
            true if what == "useful" => Verdict::Consistent(why()),
            true => Verdict::Agrees(TEXT.say("no-less", &[])),
            false => Verdict::Disagrees(why()),
        },
        ..Compared::new(TEXT.say(&format!("compared-{what}"), &[]))
    };
    if let Some(figure) = draft.figure(figure) {
        figure.compared.push(compared);
    }
}

/// How much less that is, in whole percent.
fn less(before: u64, after: u64) -> u64 {
    let saved = before.saturating_sub(after) * 100;
    saved.checked_div(before).unwrap_or(0)
}

/// A share with three decimals.
pub(super) fn finely(ppm: u64) -> String {
    format!("{}.{:03} %", ppm / PERCENT_PPM, ppm / 10 % 1_000)
}

/// A share with one decimal.
pub(super) fn percent(ppm: u64) -> String {
    format!("{}.{} %", ppm / PERCENT_PPM, ppm / 1_000 % 10)
}

pub(super) fn place(case: &Case, live: bool) -> (&'static str, Origin) {
    match &case.place {
        _ if live => ("this machine", Origin::Measured),
        Where::Here(_) => ("twin of this machine", Origin::Predicted),
        Where::In1995 => ("twin of 1995", Origin::Simulated),
        Where::Ideal => ("twin without costs", Origin::Simulated),
    }
}

/// Experiment 1.
pub(super) fn deadlines(draft: &mut Draft<'_>, made: &Made<'_, Upcalls>) {
    let both = [(&made.twin, false), (&made.live, true)];
    let all = both.map(|(trials, live)| (of(trials, "deadlines"), live));
    let mut rows = Vec::new();
    for (trials, live) in &all {
        rows.extend(trials.iter().map(|trial| left_row(trial, *live)));
    }
    draft.table("deadlines", "deadlines", &[], rows);
    for (trials, live) in &all {
        for (load, together) in Load::ALL.map(|load| [(load, false), (load, true)]).concat() {
            let here = |(case, _): &&&Trial| {
                let is_one = case.together == together && case.load == load;
                let is_twin_of_this = matches!(case.place, Where::Here(_));
                is_one && !is_twin_of_this && case.setup.way.0 == Serving::ByRate
            };
            let drawn: Vec<&Trial> = trials.iter().filter(here).copied().collect();
            if load == Load::None {
                draw(draft, &drawn, *live, together);
            }
            if !together {
                let said = made.said(|case| {
                    let is_one = case.figure == "deadlines" && case.load == load;
                    *live && is_one && case.setup.way.0 == Serving::ByRate
                });
                claim_of_deadlines(draft, &drawn, (*live, &said));
            }
        }
    }
    for load in Load::ALL.into_iter().filter(|_| made.request.live) {
        if !load.is_there() {
            draft.remark("deadlines", TEXT.say("left-out", &[("load", &load.name())]));
        }
    }
}

fn left_row((case, seen): &Trial, live: bool) -> Row {
    let (place, origin) = place(case, live);
    let first = if case.together { "together" } else { "drawn" };
    let (serving, look) = case.setup.way;
    let place = match (serving, case.load) {
        (Serving::ByRate, Load::None) => place.to_owned(),
        (Serving::ByRate, load) => format!("{place} beside {}", load.name()),
        _ => format!("{place}, {}", way(serving, look)),
    };
    let mut row = origin.row([place.into(), first.into()]);
    row.push(Origin::Charged.cell(Value::share(case.setup.utilization_ppm)));
    let left = seen
        .outcome
        .rates
        .iter()
        .map(|rate| origin.cell(left(rate)));
    row.extend(left);
    row.push(origin.cell(seen.outcome.missed()));
    row
}

/// The least time that was left, or by how much it was too late.
fn left(rate: &Rate) -> Value {
    match u64::try_from(rate.left_ns()) {
        Ok(_) if rate.missed > 0 => "none".into(),
        Ok(left) => Span::from_nanos(left).into(),
        Err(_) => format!("late by {}", rate.longest - rate.period).into(),
    }
}

/// Figure 7.
fn draw(draft: &mut Draft<'_>, trials: &[&Trial], live: bool, together: bool) {
    let Some((case, seen)) = trials.first() else {
        return;
    };
    let rates = seen.outcome.rates.iter().enumerate();
    let series = rates.map(|(number, rate)| {
        let points = trials.iter().filter_map(|(case, seen)| {
            let x = i64::try_from(case.setup.utilization_ppm).ok()?;
            Some((x, seen.outcome.rates.get(number)?.left_ns()))
        });
        let points: Vec<Point> = points.collect();
        Series::new(rate.period.to_string(), Mark::Line, points)
    });
    let axes = (
        Axis::new("utilization", Unit::PartsPerMillion),
        Axis::time("least time to deadline"),
    );
    let first = if together { "together" } else { "drawn" };
    let holes: Holes<'_> = &[("place", &place(case, live).0), ("first", &first)];
    let caption = TEXT.say("chart", holes);
    draft.chart("deadlines", Chart::new(caption, axes, series.collect()));
}

fn claim_of_deadlines(draft: &mut Draft<'_>, trials: &[&Trial], (live, said): (bool, &Said)) {
    let Some((case, least)) = trials.first() else {
        return;
    };
    let missed = |is_safe: bool| {
        let all = trials.iter();
        let all = all.filter(move |(case, _)| (case.setup.utilization_ppm <= SAFE_PPM) == is_safe);
        all.map(|(_, seen)| seen.outcome.missed()).sum::<u64>()
    };
    let mut began = trials.iter().filter(|(_, seen)| seen.outcome.missed() > 0);
    let began = began
        .next()
        .map(|(case, _)| percent(case.setup.utilization_ppm));
    let began = began.unwrap_or_else(|| "no utilization that was tried".into());
    let beside = match case.load {
        Load::None => String::new(),
        load => format!(" beside {}", load.name()),
    };
    let holes: Holes<'_> = &[
        ("place", &format!("{}{beside}", place(case, live).0)),
        ("safe", &missed(true)),
        ("beyond", &missed(false)),
        ("began", &began),
    ];
    // One that the machine made late makes others late when it goes on again: nothing of this is beyond doubt.
    draft.claim_here("safe", (missed(true) == 0, false), holes, said);
    draft.claim("beyond", missed(false) > 0, holes);
    if live {
        return;
    }
    let is_safe = |(case, _): &&&Trial| case.setup.utilization_ppm <= SAFE_PPM;
    let Some((_, most)) = trials.iter().rfind(is_safe) else {
        return;
    };
    let lost = |rate: fn(&[Rate]) -> Option<&Rate>| {
        let of = |seen: &Seen| rate(&seen.outcome.rates).map_or(0, Rate::left_ns);
        Span::from_nanos(u64::try_from(of(least) - of(most)).unwrap_or(0))
    };
    let [shortest, longest] = [lost(<[Rate]>::first), lost(<[Rate]>::last)];
    let holes: Holes<'_> = &[("shortest", &shortest), ("longest", &longest)];
    draft.claim("shortest", shortest * 2 <= longest, holes);
}

/// Experiment 2.
pub(super) fn switches(draft: &mut Draft<'_>, made: &Made<'_, Upcalls>) {
    let both = [(&made.twin, false), (&made.live, true)];
    let all = both.map(|(trials, live)| (of(trials, "switches"), live));
    let mut rows = Vec::new();
    for (trials, live) in &all {
        rows.extend(trials.iter().map(|trial| many_row(trial, *live)));
    }
    draft.table("switches", "switches", &[("switch", &SWITCH_1995)], rows);
    let [(twin, _), (live, _)] = all;
    claims_in_1995(draft, &twin);
    let said = made.said(|case| case.figure == "switches");
    claims_here(draft, &live, &said);
}

fn many_row((case, seen): &Trial, live: bool) -> Row {
    let (place, origin) = place(case, live);
    let Outcome {
        rates,
        jobs,
        switches,
        besides_ppm,
        ..
    } = &seen.outcome;
    let (serving, look) = case.setup.way;
    let mut row = origin.row([place.into(), way(serving, look).into()]);
    row.push(Origin::Charged.cell(Value::share(case.setup.utilization_ppm)));
    row.extend(origin.row([
        (*jobs).into(),
        (*switches).into(),
        Value::Ratio(switches * 1_000 / jobs.max(&1)),
    ]));
    let missed = |rates: &[Rate]| rates.iter().map(|rate| rate.missed).sum::<u64>();
    let (longest, others) = rates
        .split_last()
        .map_or((0, 0), |(last, others)| (last.missed, missed(others)));
    row.extend(origin.row([longest.into(), others.into()]));
    row.push(besides_ppm.and_then(|ppm| origin.cell(Value::share(ppm))));
    row.push(
        seen.usable_ppm
            .and_then(|ppm| origin.cell(Value::share(ppm))),
    );
    row
}

/// What was seen of two ways to serve; `None` unless both were tried.
fn both<'a>(trials: &[&'a Trial], ways: [(Serving, Look); 2]) -> Option<[&'a Seen; 2]> {
    let find = |way| {
        let found = trials.iter().find(|(case, _)| case.setup.way == way);
        found.map(|(_, seen)| seen)
    };
    Some([find(ways[0])?, find(ways[1])?])
}

fn claims_in_1995(draft: &mut Draft<'_>, trials: &[&Trial]) {
    let Some([once, late]) = both(
        trials,
        [Look::AtOnce, Look::AT_THE_END].map(|look| (Serving::ByRate, look)),
    ) else {
        return;
    };
    let [before, after] = [once, late].map(|seen| seen.outcome.switches);
    let [at_once, delayed] = [once, late].map(|seen| seen.usable_ppm.unwrap_or(0));
    let [missed, missed_later] = [once, late].map(|seen| seen.outcome.missed());
    let gained = (delayed * 100).checked_div(at_once).unwrap_or(0);
    let gained = gained.saturating_sub(100);
    let holes: Holes<'_> = &[
        ("fewer", &less(before, after)),
        ("before", &before),
        ("after", &after),
        ("missed", &missed),
        ("missed-later", &missed_later),
        ("at-once", &percent(at_once)),
        ("delayed", &percent(delayed)),
        ("gained", &gained),
        ("asked", &FEWER_SWITCHES),
        ("asked-of-use", &GAINED),
        ("grain", &percent(GRAIN_PPM)),
    ];
    let saved = less(before, after);
    compare(draft, "switches", "fewer", (FEWER_SWITCHES, saved));
    compare(draft, "switches", "useful", (GAINED, gained));
    draft.say("switches", holes);
    // How many fewer stands beside the paper's number: that tells neither its phases nor its utilization.
    draft.claim("fewer", saved > 0, holes);
    draft.claim("meets", missed > 0 && missed_later == 0, holes);
    draft.claim("useful", gained >= GAINED, holes);
}

fn claims_here(draft: &mut Draft<'_>, trials: &[&Trial], said: &Said) {
    let ways = [
        (Serving::Threads, Look::AtOnce),
        (Serving::ByRate, Look::AT_THE_END),
    ];
    let Some([threads, upcalls]) = both(trials, ways) else {
        return;
    };
    let [before, after] = [threads, upcalls].map(|seen| seen.outcome.switches);
    let [missed, missed_later] = [threads, upcalls].map(|seen| seen.outcome.missed());
    let holes: Holes<'_> = &[
        ("fewer", &less(before, after)),
        ("before", &before),
        ("after", &after),
        ("missed", &missed),
        ("missed-later", &missed_later),
        ("asked", &FEWER_SWITCHES),
    ];
    // The kernel counts switches whether or not the machine stands still.
    draft.claim("fewer-here", less(before, after) >= FEWER_SWITCHES, holes);
    draft.claim_here("meets-here", (missed_later == 0, false), holes, said);
}
