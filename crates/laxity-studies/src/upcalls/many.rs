//! Experiment 2: sixteen processes of six upcalls, preempted at once and later; and what the saving of switches depends on.

use laxity_lab::bench::{Draft, Holes, Made, Request, Said};
use laxity_lab::report::{Axis, Chart, Mark, Origin, Row, Series, Value, nanos};
use laxity_lab::workload::Draws;
use laxity_model::{Service, Span};

use super::deadlines;
use super::shown::{self, Spread};
use super::trial::{Look, Member, Outcome, Phases, Rate, Serving, Setup, in_one, processes};
use super::{
    BATCH, Case, GRAIN_PPM, PERCENT_PPM, SETS, SWITCH_1995, Search, Seen, TEXT, TWO, Trial,
    Unwatched, Upcalls, Where, periods,
};

/// What the paper saved of switches, and gained of useful utilization, in percent (§7.2): of what was useful before, or of the processor, which it leaves open.
pub(super) const FEWER: u64 = 35;
const GAINED: u64 = 12;
/// The utilization, without what switches cost: what it was is not told. Chosen so that those of 90 ms miss with preemption at once, as they did.
pub(super) const UTILIZATION_PPM: u64 = 690_000;
/// The same on this machine.
pub(super) const HERE_PPM: u64 = 800_000;
/// What the saving of switches is looked at over, in percent: with what switches cost, the processor is next to full at the last.
pub(super) const LOADS: [u64; 2] = [50, 69];
/// So long such a run lasts.
pub(super) const LENGTH: Span = Span::from_millis(5_040);
const ONCE: (Serving, Look) = (Serving::ByRate, Look::AtOnce);
const HALF: (Serving, Look) = (Serving::ByRate, Look::Parts(TWO));
const WHOLE: (Serving, Look) = (Serving::ByRate, Look::AT_THE_END);
const THREADS: (Serving, Look) = (Serving::Threads, Look::AtOnce);
const BY_DEADLINE: (Serving, Look) = (Serving::ByDeadline, Look::AT_THE_END);
/// Those of which it is shown what their saving depends on.
const SWEPT: [(Serving, Look); 4] = [ONCE, HALF, WHOLE, BY_DEADLINE];
/// All ways on the first set; the last two on this machine only.
const WAYS: [(Serving, Look); 7] = [
    THREADS,
    ONCE,
    HALF,
    WHOLE,
    BY_DEADLINE,
    (Serving::Kernel, Look::AtOnce),
    (Serving::Intervals, Look::AtOnce),
];

/// The set, whose first releases are drawn.
pub(super) fn drawn(draws: &mut Draws) -> Vec<Member> {
    processes(16, &periods(), BATCH, draws)
}

/// Both ways on each of the sets in the twin, all ways on the first; and on this machine.
pub(super) fn cases(request: &Request, (live, length): (bool, Span)) -> Vec<Case> {
    let mut draws = Draws::new(request.seed, 1);
    let sets = match live {
        true => 1,
        false => request.repeats.unwrap_or(SETS).clamp(1, 10_000),
    };
    let mut cases = Vec::new();
    for set in 0..sets {
        let members = drawn(&mut draws);
        let ways: &[(Serving, Look)] = match (live, set) {
            (true, _) => &WAYS,
            (false, 0) => &WAYS[..5],
            (false, _) => &[ONCE, WHOLE],
        };
        cases.extend(ways.iter().map(|way| {
            // Processes take turns by rate only.
            let is_one = live && way.0 == Serving::ByDeadline;
            let setup = Setup {
                members: if is_one {
                    in_one(&members)
                } else {
                    members.clone()
                },
                utilization_ppm: if live { HERE_PPM } else { UTILIZATION_PPM },
                way: *way,
                switch: if live { Service::ZERO } else { SWITCH_1995 },
                length,
                is_watched: true,
            };
            Case {
                set,
                search: (!live).then_some(Search::EXACT),
                unwatched: if live {
                    Unwatched::AllButMisses
                } else {
                    Unwatched::Nothing
                },
                ..Case::new("switches", Where::In1995, setup)
            }
        }));
    }
    cases
}

/// How the saving of switches depends on first releases, on what each takes, on the load, and on the quantum.
pub(super) fn swept(request: &Request) -> Vec<Case> {
    let mut cases = Vec::new();
    for first in [
        Phases::Together,
        Phases::Drawn,
        Phases::Finely,
        Phases::Even,
    ] {
        let mut draws = Draws::new(request.seed, 1);
        let members = drawn(&mut draws);
        let members = first.of(members, &mut draws);
        let by_period = members.iter().map(|member| Member {
            weight: (member.period.as_nanos() / 1_000_000).pow(2),
            ..*member
        });
        for members in [members.clone(), by_period.collect()] {
            let all = LOADS
                .into_iter()
                .flat_map(|load| SWEPT.map(|way| (load, way)));
            cases.extend(all.map(|(load, way)| {
                let setup = Setup {
                    members: members.clone(),
                    utilization_ppm: load * PERCENT_PPM,
                    way,
                    switch: SWITCH_1995,
                    length: LENGTH,
                    is_watched: true,
                };
                Case {
                    first,
                    ..Case::new("saved", Where::In1995, setup)
                }
            }));
        }
    }
    cases
}

/// Shows all, and claims.
pub(super) fn judge(draft: &mut Draft<'_>, made: &Made<'_, Upcalls>) {
    let both = [(&made.twin, false), (&made.live, true)];
    let all = both.map(|(trials, live)| (shown::of(trials, "switches"), live));
    let mut rows = Vec::new();
    for (trials, live) in &all {
        let first = trials.iter().filter(|(case, _)| case.set == 0);
        rows.extend(first.map(|trial| row(trial, *live)));
    }
    draft.table("switches", "switches", &[("switch", &SWITCH_1995)], rows);
    show_left(draft, &all);
    let [(twin, _), (live, _)] = all;
    claims_in_1995(draft, &twin);
    // What halts one way to serve says nothing of the others.
    let said = made.said(|case| case.figure == "switches" && case.setup.way == WHOLE);
    claims_here(draft, &live, &said);
    show_saved(draft, &shown::of(&made.twin, "saved"));
}

/// Figure 8: the least time to deadline by period, of the first set; drawn where preemption is at once and where it is delayed.
fn show_left(draft: &mut Draft<'_>, all: &[(Vec<&Trial>, bool)]) {
    let mut rows = Vec::new();
    for (trials, live) in all {
        let first = trials.iter().filter(|(case, _)| case.set == 0);
        rows.extend(first.clone().map(|trial| left_row(trial, *live)));
        let both = first.filter(|(case, _)| [ONCE, WHOLE].contains(&case.setup.way));
        let series = both.clone().map(|(case, seen)| {
            let (serving, look) = case.setup.way;
            let rates = seen.outcome.rates.iter();
            let points = rates.filter_map(|rate| Some((nanos(rate.period), rate.left_ns()?)));
            Series::new(shown::way(serving, look), Mark::Line, points.collect())
        });
        let axes = (Axis::time("period"), Axis::time("least time to deadline"));
        if let Some((case, _)) = both.clone().next() {
            let place = shown::place(case, *live).0;
            let caption = TEXT.say("chart-of-left", &[("place", &place)]);
            draft.chart("switches", Chart::new(caption, axes, series.collect()));
        }
    }
    draft.table("switches", "left", &[], rows);
}

fn left_row((case, seen): &Trial, live: bool) -> Row {
    let (place, origin) = shown::place(case, live);
    let (serving, look) = case.setup.way;
    let mut row = origin.row([place.into(), shown::way(serving, look).into()]);
    row.extend(periods().map(|period| {
        let mut rates = seen.outcome.rates.iter();
        let left = deadlines::left(rates.find(|rate| rate.period == period)?)?;
        origin.cell(left)
    }));
    row
}

fn row((case, seen): &Trial, live: bool) -> Row {
    let (place, origin) = shown::place(case, live);
    let Outcome {
        rates,
        jobs,
        switches,
        besides_ppm,
        ..
    } = &seen.outcome;
    let (serving, look) = case.setup.way;
    let mut row = origin.row([place.into(), shown::way(serving, look).into()]);
    // In the twin it was chosen for what misses at it.
    let chosen = if live {
        Origin::Charged
    } else {
        Origin::Calibrated
    };
    row.push(chosen.cell(Value::share(case.setup.utilization_ppm)));
    row.extend(origin.row([(*jobs).into(), (*switches).into()]));
    let a_job = shown::a_job(*switches, *jobs);
    row.push(a_job.and_then(|ratio| origin.cell(ratio)));
    let missed = |rates: &[Rate]| rates.iter().map(|rate| rate.missed).sum::<u64>();
    let (longest, others) = rates
        .split_last()
        .map_or((0, 0), |(last, others)| (last.missed, missed(others)));
    row.extend(origin.row([longest.into(), others.into()]));
    row.push(besides_ppm.and_then(|ppm| origin.cell(Value::share(ppm))));
    let usable = seen.usable_ppm.map(Value::share);
    row.push(usable.and_then(|share| origin.cell(share)));
    row
}

/// What was seen of two ways to serve, of each set that was drawn.
fn pairs<'a>(trials: &[&'a Trial], ways: [(Serving, Look); 2]) -> Vec<[&'a Seen; 2]> {
    let of = |way: (Serving, Look)| {
        let all = trials.iter().filter(move |(case, _)| case.setup.way == way);
        all.map(|(_, seen)| seen)
    };
    let [first, second] = ways.map(of);
    first.zip(second).map(<[&Seen; 2]>::from).collect()
}

/// How many fewer switches the second has, in percent.
fn saved([once, late]: &[&Seen; 2]) -> Option<u64> {
    shown::less(once.outcome.switched()?, late.outcome.switched()?)
}

/// How much more is useful of the second, in percent.
fn gained([once, late]: &[&Seen; 2]) -> Option<u64> {
    let percent = (late.usable_ppm? * 100).checked_div(once.usable_ppm?)?;
    Some(percent.saturating_sub(100))
}

/// The same in parts per million of the processor.
fn points([once, late]: &[&Seen; 2]) -> Option<u64> {
    Some(late.usable_ppm?.saturating_sub(once.usable_ppm?))
}

/// What is seen over the sets of the twin of 1995; of what is not known of each of them nothing.
struct Sets {
    of: usize,
    saved: Option<Spread>,
    gained: Option<Spread>,
    points: Option<Spread>,
    /// What is useful, and how many miss, preempted at once and later.
    useful: [Option<Spread>; 2],
    missed: [Option<Spread>; 2],
}

impl Sets {
    /// `None` where none was drawn.
    fn of(trials: &[&Trial]) -> Option<Self> {
        let pairs = pairs(trials, [ONCE, WHOLE]);
        let over = |of: &dyn Fn(&[&Seen; 2]) -> Option<u64>| Spread::of(pairs.iter().map(of));
        let useful = |way: usize| over(&|pair| pair[way].usable_ppm);
        let missed = |way: usize| {
            over(&|pair| {
                let outcome = &pair[way].outcome;
                outcome.is_met().map(|_| outcome.missed())
            })
        };
        (!pairs.is_empty()).then(|| Self {
            of: pairs.len(),
            saved: over(&saved),
            gained: over(&gained),
            points: over(&points),
            useful: [0, 1].map(useful),
            missed: [0, 1].map(missed),
        })
    }

    fn rows(&self) -> impl Iterator<Item = Row> {
        let percent = |value: u64| Value::share(value * PERCENT_PPM);
        let row = |what: &str, spread: Option<Spread>, value: fn(u64) -> Value| {
            let name = TEXT.say(&format!("compared-{what}"), &[]);
            spread.map(|spread| spread.row(&name, value))
        };
        let [useful, missed] = [self.useful, self.missed];
        let all = [
            row("fewer", self.saved, percent),
            row("useful", self.gained, percent),
            row("points", self.points, Value::share),
            row("useful-at-once", useful[0], Value::share),
            row("useful-delayed", useful[1], Value::share),
            row("missed-at-once", missed[0], Value::Count),
            row("missed-delayed", missed[1], Value::Count),
        ];
        all.into_iter().flatten()
    }

    /// A set of the paper's size and periods, with shares, first releases and a load that it does not tell: no more than consistent.
    fn compare(&self, draft: &mut Draft<'_>) {
        let percent = |spread: Option<Spread>| spread.map(|spread| spread.median * PERCENT_PPM);
        let all = [
            ("fewer", FEWER, percent(self.saved)),
            ("useful", GAINED, percent(self.gained)),
            ("points", GAINED, self.points.map(|spread| spread.median)),
        ];
        for (what, paper, median) in all {
            let why = TEXT.say(&format!("why-{what}"), &[]);
            let verdict = shown::as_much(paper, median, &why);
            shown::compare(draft, "switches", what, (paper, median), verdict);
        }
    }
}

fn claims_in_1995(draft: &mut Draft<'_>, trials: &[&Trial]) {
    let Some(sets) = Sets::of(trials) else {
        return;
    };
    draft.table("switches", "sets", &[("sets", &sets.of)], sets.rows());
    sets.compare(draft);
    let median = |spread: Option<Spread>| spread.map(|spread| shown::percent(spread.median));
    let [at_once, delayed] = sets.useful.map(|spread| shown::known(median(spread)));
    let [saved, gained] = [sets.saved, sets.gained];
    let points = sets.points.map(|points| points.share());
    let [fewer, more] = [saved, gained].map(|seen| shown::known(seen.map(|seen| seen.percent())));
    let [missed, missed_later] = sets.missed;
    let holes: Holes<'_> = &[
        ("sets", &sets.of),
        ("fewer", &fewer),
        ("missed", &shown::known(missed)),
        ("missed-later", &shown::known(missed_later)),
        ("at-once", &at_once),
        ("delayed", &delayed),
        ("gained", &more),
        ("points", &shown::known(points)),
        ("utilization", &shown::percent(UTILIZATION_PPM)),
        ("asked", &FEWER),
        ("asked-of-use", &GAINED),
        ("grain", &shown::percent(GRAIN_PPM)),
    ];
    draft.say("switches", holes);
    if saved.is_some_and(|saved| !shown::is_as_much(FEWER, saved.median * PERCENT_PPM)) {
        draft.say("not-reproduced", holes);
    }
    let is_other = |points: Spread| !shown::is_as_much(GAINED, points.median);
    if sets.points.is_some_and(is_other) {
        draft.say("points-not-reproduced", holes);
    }
    let meets = missed.zip(missed_later);
    let meets = meets.map(|(missed, later)| missed.least > 0 && later.most == 0);
    for (key, holds) in [
        ("fewer", saved.map(|saved| saved.least > 0)),
        ("meets", meets),
        // How much more is by the cost of a switch, which was chosen for it.
        ("useful", sets.points.map(|points| points.least > 0)),
    ] {
        shown::claim(draft, key, holds, holes, &Said::default());
    }
}

fn claims_here(draft: &mut Draft<'_>, trials: &[&Trial], said: &Said) {
    let pairs = pairs(trials, [THREADS, WHOLE]);
    let Some([threads, upcalls]) = pairs.first() else {
        return;
    };
    let [before, after] = [threads, upcalls].map(|seen| seen.outcome.switches);
    let [missed, missed_later] = [threads, upcalls].map(|seen| seen.outcome.missed());
    let fewer = saved(&[threads, upcalls]);
    let holes: Holes<'_> = &[
        ("change", &shown::change(before, after)),
        ("before", &before),
        ("after", &after),
        ("missed", &missed),
        ("missed-later", &missed_later),
        ("asked", &FEWER),
    ];
    compare_here(draft, trials);
    // The kernel counts switches whether or not the machine stands still.
    let is_fewer = fewer.map(|fewer| fewer >= FEWER);
    shown::claim(draft, "fewer-here", is_fewer, holes, &Said::default());
    shown::claim(draft, "meets-here", upcalls.outcome.is_met(), holes, said);
}

/// What the paper compares: upcalls that look after each unit with those that look when all is done.
fn compare_here(draft: &mut Draft<'_>, trials: &[&Trial]) {
    let pairs = pairs(trials, [ONCE, WHOLE]);
    let Some(pair) = pairs.first() else {
        return;
    };
    let fewer = saved(pair).map(|fewer| fewer * PERCENT_PPM);
    let why = TEXT.say("why-fewer-upcalls-here", &[]);
    let verdict = shown::as_much(FEWER, fewer, &why);
    shown::compare_here(
        draft,
        "switches",
        "fewer-upcalls-here",
        (FEWER, fewer),
        verdict,
    );
}

/// What is saved of switches under some circumstances.
struct Saved<'a> {
    case: &'a Case,
    at_once: &'a Outcome,
    /// Looking after half a batch, when all is done, and the latter by deadline, in percent.
    saved: [Option<u64>; 3],
}

impl<'a> Saved<'a> {
    /// Of all ways under one circumstance.
    fn of(ways: &[&'a Trial]) -> Option<Self> {
        let [(case, once), (_, half), (_, whole), (_, by_deadline)] = ways else {
            return None;
        };
        Some(Self {
            case,
            at_once: &once.outcome,
            saved: [half, whole, by_deadline].map(|late| saved(&[once, late])),
        })
    }

    fn row(&self) -> Row {
        let setup = &self.case.setup;
        let is_alike = setup
            .members
            .iter()
            .all(|one| one.weight == setup.members[0].weight);
        let shares = if is_alike { "alike" } else { "by-square" };
        let first = self.case.first.name();
        let mut row = Origin::Charged.row([first.into(), TEXT.say(shares, &[]).into()]);
        row.push(Origin::Charged.cell(Value::share(setup.utilization_ppm)));
        let share = |saved: Option<u64>| saved.map(|saved| Value::share(saved * PERCENT_PPM));
        let [half, whole, by_deadline] = self.saved.map(share);
        let Outcome { switches, jobs, .. } = self.at_once;
        let seen = [shown::a_job(*switches, *jobs), half, whole, by_deadline];
        row.extend(seen.map(|value| value.and_then(|value| Origin::Simulated.cell(value))));
        row
    }
}

fn show_saved(draft: &mut Draft<'_>, trials: &[&Trial]) {
    let all: Vec<Saved<'_>> = trials.chunks(SWEPT.len()).filter_map(Saved::of).collect();
    draft.table("saved", "saved", &[], all.iter().map(Saved::row));
    let most = |first: Phases| {
        let those = all.iter().filter(move |one| one.case.first == first);
        those.filter_map(|one| one.saved[1]).max()
    };
    let as_clock = most(Phases::Together).max(most(Phases::Drawn));
    let holes: Holes<'_> = &[
        ("asked", &FEWER),
        ("of-the-clock", &shown::known(as_clock)),
        ("finely", &shown::known(most(Phases::Finely))),
        ("even", &shown::known(most(Phases::Even))),
    ];
    if !all.is_empty() {
        draft.say("saved", holes);
    }
}
