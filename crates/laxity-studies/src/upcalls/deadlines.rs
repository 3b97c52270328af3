//! Experiment 1: the least time to deadline of twelve upcalls against utilization.

use laxity_lab::bench::{Draft, Holes, Made, Request, Said};
use laxity_lab::report::{Axis, Chart, Mark, Origin, Point, Row, Series, Unit, Value};
use laxity_lab::workload::Draws;
use laxity_model::analysis::supply::Dedicated;
use laxity_model::analysis::utilization::{liu_layland_bound, rmdp};
use laxity_model::analysis::{Preemption, Task, fixed_priority};
use laxity_model::{Service, Span};

use super::beside::Load;
use super::shown::{self, Spread, place, way};
use super::trial::{Look, Member, Outcome, Phases, Rate, Serving, Setup, in_one, processes};
use super::{
    BATCH, Case, PERCENT_PPM, SETS, SWITCH_1995, Seen, TEXT, Trial, Upcalls, Where, periods,
};

/// Up to here the paper missed nothing (§7.1), in percent.
pub(super) const SAFE: u64 = 80;
/// Up to here what experiment 1 is swept over leaves room for switches: beyond, some deadlines are missed whoever serves. In percent.
pub(super) const FULL: u64 = 95;
/// Those of the longest period lose at least so many times as much time to their deadline as those of the shortest.
pub(super) const LESS: u64 = 2;
/// What experiment 1 is swept over, in percent.
pub(super) const SWEPT: [u64; 10] = [30, 50, 60, 70, 75, 80, 85, 90, 95, 100];
/// The same on this machine.
pub(super) const SWEPT_HERE: [u64; 6] = [30, 60, 80, 90, 95, 100];
/// The same with something beside.
pub(super) const SWEPT_LOADED: [u64; 3] = [60, 80, 100];
/// Where other ways to serve stand beside upcalls, and something runs beside both.
const COMPARED: u64 = 80;
/// All ways on this machine.
const WAYS: [Serving; 5] = [
    Serving::ByRate,
    Serving::ByDeadline,
    Serving::Threads,
    Serving::Kernel,
    Serving::Intervals,
];

/// Twelve upcalls of two processes, which yield at once.
pub(super) fn cases(request: &Request, (live, length): (bool, Span)) -> Vec<Case> {
    let case = |members: &[Member], (place, switch): (Where, Service), percent| {
        let setup = Setup {
            members: members.to_vec(),
            utilization_ppm: percent * PERCENT_PPM,
            way: (Serving::ByRate, Look::AtOnce),
            switch,
            length,
            is_watched: true,
        };
        Case::new("deadlines", place, setup)
    };
    let mut draws = Draws::new(request.seed, 0);
    let mut drawn = || processes(2, &periods(), BATCH, &mut draws);
    let first = drawn();
    if live {
        // The worst that can be is for the twin to show.
        return here(|percent| case(&first, (Where::Ideal, Service::ZERO), percent));
    }
    let mut cases = Vec::new();
    let mut sweep = |members: &[Member], place: &(Where, Service), (first, set)| {
        // The rival stands beside the sets that are shown.
        let shown: &[Serving] = match set {
            0 => &[Serving::ByRate, Serving::ByDeadline],
            _ => &[Serving::ByRate],
        };
        for serving in shown {
            cases.extend(SWEPT.map(|percent| {
                let mut case = case(members, place.clone(), percent);
                case.setup.way.0 = *serving;
                Case { first, set, ..case }
            }));
        }
    };
    let together = Phases::Together.of(first.clone(), &mut Draws::new(request.seed, 0));
    let machine = request.machine.iter();
    let machine = machine.map(|machine| (Where::Here(Box::new(machine.clone())), Service::ZERO));
    let in_1995 = (Where::In1995, SWITCH_1995);
    for place in [in_1995.clone()].into_iter().chain(machine) {
        sweep(&first, &place, (Phases::Drawn, 0));
        sweep(&together, &place, (Phases::Together, 0));
    }
    for set in 1..request.repeats.unwrap_or(SETS).clamp(1, 10_000) {
        sweep(&drawn(), &in_1995, (Phases::Drawn, set));
    }
    cases
}

/// What one way to serve is swept over on this machine, in percent.
const fn swept_here(serving: Serving, load: Load) -> &'static [u64] {
    match (load, serving) {
        (Load::None, Serving::ByRate) => &SWEPT_HERE,
        (_, Serving::ByRate) => &SWEPT_LOADED,
        (Load::None, Serving::ByDeadline) => &[COMPARED, 90, 95, 100],
        // With a tenth more than they take the kernel refuses more than 81 % where there is one processor, and before Linux 6.12 more than 86 %.
        (Load::None, Serving::Kernel) => &[60, COMPARED],
        (Load::None, Serving::Threads | Serving::Intervals) => &[COMPARED, 90, 100],
        _ => &[COMPARED],
    }
}

/// The same on this machine: served in all ways, alone and with something beside that this machine has.
fn here(case: impl Fn(u64) -> Case) -> Vec<Case> {
    let mut cases = Vec::new();
    for load in Load::ALL.into_iter().filter(|load| load.is_there()) {
        for serving in WAYS {
            cases.extend(swept_here(serving, load).iter().map(|percent| {
                let mut case = Case {
                    load,
                    ..case(*percent)
                };
                case.setup.way.0 = serving;
                if serving == Serving::ByDeadline {
                    // Processes take turns by rate only.
                    case.setup.members = in_one(&case.setup.members);
                }
                case
            }));
        }
    }
    cases
}

/// Shows all, and claims.
pub(super) fn judge(draft: &mut Draft<'_>, made: &Made<'_, Upcalls>) {
    let both = [(&made.twin, false), (&made.live, true)];
    let all = both.map(|(trials, live)| (shown::of(trials, "deadlines"), live));
    let mut rows = Vec::new();
    for (trials, live) in &all {
        let first = trials.iter().filter(|(case, _)| case.set == 0);
        rows.extend(first.map(|trial| left_row(trial, *live)));
    }
    draft.table("deadlines", "deadlines", &[], rows);
    for (trials, live) in &all {
        let of = |first: Phases, load: Load| -> Vec<&Trial> {
            let is_one = |(case, _): &&&Trial| {
                let is_twin_of_this = matches!(case.place, Where::Here(_));
                let is_one = case.first == first && case.load == load && !is_twin_of_this;
                is_one && case.setup.way.0 == Serving::ByRate
            };
            trials.iter().filter(is_one).copied().collect()
        };
        for load in Load::ALL {
            let drawn = of(Phases::Drawn, load);
            let first = drawn.iter().filter(|(case, _)| case.set == 0);
            let first: Vec<&Trial> = first.copied().collect();
            draw(draft, &first, *live);
            // Where all of the processor is taken, the kernel takes some of it for ordinary work: that is no doubt about what is below.
            let said = made.said(|case| {
                let is_one = case.figure == "deadlines" && case.load == load;
                let is_there = case.percent() <= SAFE;
                *live && is_one && is_there && case.setup.way.0 == Serving::ByRate
            });
            claim(draft, &drawn, (*live, &said));
            if !live {
                claim_of_lost(draft, &drawn);
            }
        }
        let together = of(Phases::Together, Load::None);
        if !live {
            show_bounds(draft, (&of(Phases::Drawn, Load::None), &together));
        }
        draw(draft, &together, *live);
        claim_together(draft, &together);
    }
    for load in Load::ALL.into_iter().filter(|_| made.request.live) {
        if !load.is_there() {
            draft.remark("deadlines", TEXT.say("left-out", &[("load", &load.name())]));
        }
    }
}

fn left_row((case, seen): &Trial, live: bool) -> Row {
    let (place, origin) = place(case, live);
    let (serving, look) = case.setup.way;
    let served = match serving {
        Serving::ByRate => String::new(),
        Serving::ByDeadline => ", by deadline".into(),
        _ => format!(", {}", way(serving, look)),
    };
    let place = format!("{place}{}{served}", beside(case.load));
    let mut row = origin.row([place.into(), case.first.name().into()]);
    row.push(Origin::Charged.cell(Value::share(case.setup.utilization_ppm)));
    let rates = seen.outcome.rates.iter();
    row.extend(rates.map(|rate| left(rate).and_then(|left| origin.cell(left))));
    row.push(origin.cell(seen.outcome.missed()));
    row
}

/// What runs beside, in words that follow a place.
fn beside(load: Load) -> String {
    match load {
        Load::None => String::new(),
        load => format!(" beside {}", load.name()),
    }
}

/// The least time that was left, or by how much it was too late.
pub(super) fn left(rate: &Rate) -> Option<Value> {
    let left = rate.left_ns()?;
    let shown = Span::from_nanos(left.unsigned_abs());
    Some(match left {
        ..0 => format!("late by {shown}").into(),
        _ if rate.missed > 0 => "none".into(),
        _ => shown.into(),
    })
}

/// Figure 7.
fn draw(draft: &mut Draft<'_>, trials: &[&Trial], live: bool) {
    let Some((case, seen)) = trials.first() else {
        return;
    };
    let rates = seen.outcome.rates.iter().enumerate();
    let series = rates.map(|(number, rate)| {
        let points = trials.iter().filter_map(|(case, seen)| {
            let x = i64::try_from(case.setup.utilization_ppm).ok()?;
            Some((x, seen.outcome.rates.get(number)?.left_ns()?))
        });
        let points: Vec<Point> = points.collect();
        Series::new(rate.period.to_string(), Mark::Line, points)
    });
    let axes = (
        Axis::new("utilization", Unit::PartsPerMillion),
        Axis::time("least time to deadline"),
    );
    let place = format!("{}{}", place(case, live).0, beside(case.load));
    let holes: Holes<'_> = &[("place", &place), ("first", &case.first.name())];
    let caption = TEXT.say("chart", holes);
    let mut chart = Chart::new(caption, axes, series.collect());
    let heights = chart.series.iter().flat_map(|series| &series.points);
    let heights = heights.map(|(_, left)| *left);
    if let Some((lowest, highest)) = heights.clone().min().zip(heights.max()) {
        chart.lines.extend(bounds(&case.setup).map(|(name, ppm)| {
            let at = i64::try_from(ppm).unwrap_or(i64::MAX);
            (name, (at, lowest), (at, highest))
        }));
    }
    draft.chart("deadlines", chart);
}

/// The least utilization at which anybody missed, in percent.
fn began(trials: &[&Trial]) -> Option<u64> {
    let missed = trials.iter().filter(|(_, seen)| seen.outcome.missed() > 0);
    missed.map(|(case, _)| case.percent()).min()
}

/// In words.
fn shown_began(trials: &[&Trial]) -> String {
    match began(trials) {
        Some(percent) => format!("{percent} %"),
        None => "no utilization that was tried".into(),
    }
}

/// The paper's 80 % beside the most that was tried below the first miss.
fn compare(draft: &mut Draft<'_>, what: &str, trials: &[&Trial]) {
    let began = began(trials).unwrap_or(u64::MAX);
    let tried = trials.iter().map(|(case, _)| case.percent());
    let most = tried.filter(|percent| *percent < began).max().unwrap_or(0);
    let most = Some(most * PERCENT_PPM);
    let why = TEXT.say(&format!("why-{what}"), &[]);
    // Of the paper's periods, with shares and phases that it does not tell. Its first miss is above, and it does not say where.
    let verdict = shown::no_less(SAFE, most, &why);
    shown::compare(draft, "deadlines", what, (SAFE, most), verdict);
}

fn claim(draft: &mut Draft<'_>, trials: &[&Trial], (live, said): (bool, &Said)) {
    let Some((case, _)) = trials.first() else {
        return;
    };
    let of = |from: u64, to: u64| {
        let all = trials.iter();
        let all = all.filter(move |(case, _)| (from..=to).contains(&case.percent()));
        all.map(|(_, seen)| &seen.outcome)
    };
    let missed = |from, to| of(from, to).map(Outcome::missed).sum::<u64>();
    let sets = trials.iter().map(|(case, _)| case.set + 1).max();
    let swept = trials.iter().filter(|(case, _)| case.set == 0);
    let swept: Vec<String> = swept.map(|(case, _)| case.percent().to_string()).collect();
    let holes: Holes<'_> = &[
        (
            "place",
            &format!("{}{}", place(case, live).0, beside(case.load)),
        ),
        ("sets", &sets.unwrap_or(0)),
        ("safe", &missed(0, SAFE)),
        ("beyond", &missed(SAFE + 1, u64::MAX)),
        ("with-room", &missed(SAFE + 1, FULL)),
        ("full", &FULL),
        ("swept", &swept.join(", ")),
        ("began", &shown_began(trials)),
    ];
    // One that the machine made late makes others late when it goes on again: where it stood still often, a miss convicts nobody.
    shown::claim(draft, "safe", are_met(of(0, SAFE)), holes, said);
    if live {
        // What is missed short of the whole processor is by what this machine takes for itself.
        draft.say("began-here", holes);
        return;
    }
    let is_missed = are_met(of(SAFE + 1, FULL)).map(|met| !met);
    shown::claim(draft, "beyond", is_missed, holes, &Said::default());
    compare(draft, "drawn", trials);
}

/// Whether none of them missed a deadline; `None` if nothing was served of some and those of the others are met.
fn are_met<'a>(all: impl Iterator<Item = &'a Outcome>) -> Option<bool> {
    let all: Vec<Option<bool>> = all.map(Outcome::is_met).collect();
    match all.contains(&Some(false)) {
        true => Some(false),
        false => all.into_iter().reduce(Option::and).flatten(),
    }
}

/// Of the critical instant, at which the paper's 80 % are too many: what exact analysis admits.
fn claim_together(draft: &mut Draft<'_>, trials: &[&Trial]) {
    let admitted = trials.iter().filter(|(case, _)| is_admitted(&case.setup));
    let is_met = are_met(admitted.clone().map(|(_, seen)| &seen.outcome));
    let Some(most) = admitted.map(|(case, _)| case.percent()).max() else {
        return;
    };
    let holes: Holes<'_> = &[("admitted", &most), ("began", &shown_began(trials))];
    shown::claim(draft, "together", is_met, holes, &Said::default());
    compare(draft, "together", trials);
}

/// Whether exact response times admit it, whatever the first releases: each job may cost a switch to it and one back, and may find one that
/// is in the midst of a unit that it has just switched to.
fn is_admitted(setup: &Setup) -> bool {
    let tasks = tasks(setup, setup.switch + setup.switch);
    let verdict = tasks.and_then(|tasks| fixed_priority::test(&tasks, &Dedicated).ok());
    verdict.is_some_and(|verdict| verdict.is_schedulable())
}

/// As analyses take it, where each job takes so much for its switches.
fn tasks(setup: &Setup, switches: Service) -> Option<Vec<Task>> {
    let mut members: Vec<&Member> = setup.members.iter().collect();
    members.sort_by_key(|member| member.period);
    let task = |member: &Member| {
        let cost = setup.cost(member);
        let unit = Service::from_nanos(cost.as_nanos().div_ceil(member.batch.get().into()));
        let longest = unit + switches;
        let task = Task::new(cost + switches, member.period).ok()?;
        task.with_preemption(Preemption::Floating { longest }).ok()
    };
    members.into_iter().map(task).collect()
}

/// What the two bounds of the paper's §5.3 allow of a set, in parts per million, with their names: that of rate monotonic scheduling, and that with delayed
/// preemption, of looks after each unit. Neither knows of switches.
pub(super) fn bounds(setup: &Setup) -> [(String, u64); 2] {
    let is_accepted = |ppm: u64| {
        let tried = Setup {
            utilization_ppm: ppm,
            ..setup.clone()
        };
        let verdict = tasks(&tried, Service::ZERO).and_then(|tasks| rmdp(&tasks).ok());
        verdict.is_some_and(|verdict| verdict.is_schedulable())
    };
    let (mut fits, mut exceeds) = (0_u64, 1_000_001_u64);
    while fits + 1 < exceeds {
        let middle = fits.midpoint(exceeds);
        match is_accepted(middle) {
            true => fits = middle,
            false => exceeds = middle,
        }
    }
    let rate_monotonic = liu_layland_bound(setup.members.len()).ppm();
    let all = [("liu-layland", rate_monotonic), ("rmdp", fits)];
    all.map(|(name, ppm)| (TEXT.say(name, &[]), ppm))
}

/// What bounds allow beside what was tried, in the twin.
fn show_bounds(draft: &mut Draft<'_>, (drawn, together): (&[&Trial], &[&Trial])) {
    let Some((case, _)) = drawn.first() else {
        return;
    };
    let allowed = bounds(&case.setup).map(|(name, ppm)| {
        let mut row = Origin::Predicted.row([name.into()]);
        row.push(Origin::Predicted.cell(Value::share(ppm)));
        row
    });
    let seen = [drawn, together].map(|trials| {
        let first = trials.first().map_or("", |(case, _)| case.first.name());
        let words = TEXT.say("first-missed", &[("first", &first)]);
        let mut row = Origin::Simulated.row([words.into()]);
        let began = began(trials).map(|percent| Value::share(percent * PERCENT_PPM));
        row.push(began.and_then(|began| Origin::Simulated.cell(began)));
        row
    });
    let rows = allowed.into_iter().chain(seen);
    draft.table("deadlines", "bounds", &[], rows);
}

/// How much of the time to a deadline is lost from the least load that was tried to the paper's 80 %, in nanoseconds: by those of the shortest period, and by those
/// of the longest. Of one set.
fn lost(trials: &[&Trial]) -> Option<[u64; 2]> {
    let (_, least) = trials.first()?;
    let (_, most) = trials.iter().rfind(|(case, _)| case.percent() <= SAFE)?;
    let lost = |rate: fn(&[Rate]) -> Option<&Rate>| {
        let left = |seen: &Seen| rate(&seen.outcome.rates)?.left_ns();
        let lost = left(least)? - left(most)?;
        Some(u64::try_from(lost).unwrap_or(0))
    };
    Some([lost(<[Rate]>::first)?, lost(<[Rate]>::last)?])
}

/// Of each set.
fn claim_of_lost(draft: &mut Draft<'_>, trials: &[&Trial]) {
    if trials.is_empty() {
        return;
    }
    let sets = trials.chunk_by(|(one, _), (next, _)| one.set == next.set);
    let each: Option<Vec<[u64; 2]>> = sets.map(lost).collect();
    let spread = |which: usize| {
        let all = each.iter().flatten();
        Spread::of(all.map(|lost| Some(lost[which])))
    };
    let words = |spread: Spread| spread.words(|ns| Span::from_nanos(ns).to_string());
    let [shortest, longest] = [0, 1].map(|which| shown::known(spread(which).map(words)));
    let sets = each.as_ref().map(Vec::len);
    let holes: Holes<'_> = &[
        ("sets", &shown::known(sets)),
        ("shortest", &shortest),
        ("longest", &longest),
    ];
    let is_less = |each: &Vec<[u64; 2]>| {
        let mut each = each.iter();
        each.all(|[shortest, longest]| shortest * LESS <= *longest)
    };
    let is_less = each.as_ref().map(is_less);
    shown::claim(draft, "shortest", is_less, holes, &Said::default());
}
