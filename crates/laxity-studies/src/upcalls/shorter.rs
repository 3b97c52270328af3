//! Useful utilization over shorter and shorter periods: what switching takes from threads, and what delayed preemption saves of it.

use laxity_lab::bench::{Draft, Holes, Made, Request, Said};
use laxity_lab::report::{Axis, Chart, Mark, Origin, Point, Row, Series, Unit, Value};
use laxity_lab::workload::Draws;
use laxity_model::{Service, Span};

use super::trial::{Look, Member, Serving, Setup, in_one, processes};
use super::{
    BATCH, Case, PERCENT_PPM, SWITCH_1995, Search, TEXT, Trial, Upcalls, Where, periods, shown,
};

/// The periods of the paper's experiments are divided by these, in the twin of 1995 and on this machine.
pub(super) const IN_1995: [u64; 4] = [1, 2, 4, 8];
pub(super) const HERE: [u64; 4] = [10, 25, 50, 100];
/// So long runs of the twin are.
pub(super) const LENGTH: Span = Span::from_secs(5);
/// What is usable is found to this, in parts per million.
const GRAIN_PPM: u64 = 25_000;
/// The same on this machine.
const GRAIN_HERE_PPM: u64 = 50_000;
/// Of all jobs, so many may miss: on this machine a single one says more of it than of who is served how.
pub(super) const MISSED_HERE_PPM: u64 = 10_000;
/// From here on switching costs threads much: no more than this is useful.
pub(super) const LITTLE_PPM: u64 = 700_000;
/// Where it does, so much more is useful of upcalls, in percent.
pub(super) const GAINED: u64 = 12;
const THREADS: (Serving, Look) = (Serving::Threads, Look::AtOnce);
/// What one executor gains without delay stands beside: the rest of what is gained is the delay's.
const ONCE: (Serving, Look) = (Serving::ByRate, Look::AtOnce);
const DELAYED: (Serving, Look) = (Serving::ByRate, Look::AT_THE_END);
/// The last two on this machine only.
const WAYS: [(Serving, Look); 6] = [
    THREADS,
    ONCE,
    DELAYED,
    (Serving::ByDeadline, Look::AT_THE_END),
    (Serving::Kernel, Look::AtOnce),
    (Serving::Intervals, Look::AtOnce),
];
/// Two searches of the same differ by so much on this machine.
pub(super) const NOISE_HERE_PPM: u64 = 2 * GRAIN_HERE_PPM;

/// The same upcalls with periods that are so many times shorter, as are the instants of their first releases.
pub(super) fn divided(members: &[Member], by: u64) -> Vec<Member> {
    let shorter = |span: Span| Span::from_nanos(span.as_nanos() / by);
    let all = members.iter().map(|member| Member {
        period: shorter(member.period),
        phase: shorter(member.phase),
        ..*member
    });
    all.collect()
}

/// 24 upcalls of four processes, each way at each length of periods.
pub(super) fn cases(request: &Request, (live, length): (bool, Span)) -> Vec<Case> {
    let mut drawn = processes(4, &periods(), BATCH, &mut Draws::new(request.seed, 3));
    if live {
        // Of a search's many runs each would start them again.
        drawn = in_one(&drawn);
    }
    let mut places = vec![(Where::In1995, SWITCH_1995, IN_1995)];
    if live {
        places = vec![(Where::Ideal, Service::ZERO, HERE)];
    } else if let Some(machine) = &request.machine {
        places.push((Where::Here(Box::new(machine.clone())), Service::ZERO, HERE));
    }
    let mut cases = Vec::new();
    for (place, switch, divisors) in places {
        for by in divisors {
            let ways = if live { &WAYS[..] } else { &WAYS[..4] };
            cases.extend(ways.iter().map(|way| {
                let setup = Setup {
                    members: divided(&drawn, by),
                    utilization_ppm: 30 * PERCENT_PPM,
                    way: *way,
                    switch,
                    length: if live { length } else { LENGTH },
                    is_watched: true,
                };
                Case {
                    search: Some(Search {
                        missed_ppm: if live { MISSED_HERE_PPM } else { 0 },
                        grain_ppm: if live { GRAIN_HERE_PPM } else { GRAIN_PPM },
                    }),
                    ..Case::new("periods", place.clone(), setup)
                }
            }));
        }
    }
    cases
}

/// What is useful of each way at one length of periods, as far as it is known.
struct At<'a> {
    case: &'a Case,
    shortest: Span,
    useful_ppm: Vec<((Serving, Look), u64)>,
}

impl<'a> At<'a> {
    /// Those of one place, the longest periods first.
    fn all(trials: &[&'a Trial]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for (case, seen) in trials {
            let periods = case.setup.members.iter().map(|member| member.period);
            let shortest = periods.min().unwrap_or_default();
            let useful = seen.usable_ppm.map(|ppm| (case.setup.way, ppm));
            match all.last_mut().filter(|last| last.shortest == shortest) {
                Some(last) => last.useful_ppm.extend(useful),
                None => all.push(Self {
                    case,
                    shortest,
                    useful_ppm: useful.into_iter().collect(),
                }),
            }
        }
        all
    }

    fn useful(&self, way: (Serving, Look)) -> Option<u64> {
        let found = self.useful_ppm.iter().find(|(known, _)| *known == way);
        found.map(|(_, ppm)| *ppm)
    }

    fn row(&self, live: bool) -> Row {
        let (place, origin) = shown::place(self.case, live);
        let mut row = origin.row([place.into()]);
        row.push(Origin::Charged.cell(self.shortest));
        let useful = WAYS.map(|way| self.useful(way).map(Value::share));
        let gained = [ONCE, DELAYED].map(|way| self.gained(way).map(Value::Text));
        let known = useful.into_iter().chain(gained);
        row.extend(known.map(|value| value.and_then(|value| origin.cell(value))));
        row
    }

    /// What is useful of threads, and of upcalls.
    fn both(&self) -> Option<[u64; 2]> {
        Some([self.useful(THREADS)?, self.useful(DELAYED)?])
    }

    /// How much more is useful of upcalls that are served so than of threads, which may be less than nothing; in words.
    fn gained(&self, way: (Serving, Look)) -> Option<String> {
        let [threads, upcalls] = [self.useful(THREADS)?, self.useful(way)?];
        Some(match threads {
            0 => format!("{} instead of nothing", shown::percent(upcalls)),
            _ => format!("{} %", (upcalls * 100) as i64 / threads as i64 - 100),
        })
    }
}

/// Shows all, and claims what delayed preemption gains where switching costs much.
pub(super) fn judge(draft: &mut Draft<'_>, made: &Made<'_, Upcalls>) {
    let (twin, live) = (
        shown::of(&made.twin, "periods"),
        shown::of(&made.live, "periods"),
    );
    let is_here = |(case, _): &&&Trial| matches!(case.place, Where::Here(_));
    let predicted: Vec<&Trial> = twin.iter().filter(is_here).copied().collect();
    let in_1995: Vec<&Trial> = twin
        .iter()
        .filter(|trial| !is_here(trial))
        .copied()
        .collect();
    let all = [(in_1995, false), (predicted, false), (live, true)];
    let all = all.map(|(trials, live)| (At::all(&trials), live));
    let rows = all
        .iter()
        .flat_map(|(all, live)| all.iter().map(|at| at.row(*live)));
    let rows: Vec<Row> = rows.collect();
    draft.table("periods", "periods", &[], rows);
    for (all, live) in &all {
        let Some(first) = all.first() else {
            continue;
        };
        draw(draft, all, shown::place(first.case, *live).0);
        // What is claimed compares these two.
        let said = made.said(|case| {
            *live && case.figure == "periods" && [THREADS, DELAYED].contains(&case.setup.way)
        });
        claim(draft, all, (first.case, *live, &said));
    }
}

fn draw(draft: &mut Draft<'_>, all: &[At<'_>], place: &str) {
    let series = WAYS.map(|way| {
        let points = all.iter().filter_map(|at| {
            let useful = i64::try_from(at.useful(way)?).ok()?;
            Some((laxity_lab::report::nanos(at.shortest), useful))
        });
        let points: Vec<Point> = points.collect();
        (!points.is_empty()).then(|| Series::new(shown::way(way.0, way.1), Mark::Line, points))
    });
    let axes = (
        Axis::time("shortest period"),
        Axis::new("useful utilization", Unit::PartsPerMillion),
    );
    let caption = TEXT.say("chart-of-periods", &[("place", &place)]);
    draft.chart(
        "periods",
        Chart::new(caption, axes, series.into_iter().flatten().collect()),
    );
}

/// Where more is useful with delayed preemption than of threads, and what is called more: a search of the twin comes out the same every time.
fn met(all: &[At<'_>], live: bool) -> (String, Vec<String>) {
    let noise = if live { NOISE_HERE_PPM } else { 0 };
    let more = match live {
        true => TEXT.say("more-than-noise", &[("noise", &shown::percent(noise))]),
        false => "more".into(),
    };
    let is_more = |at: &&At<'_>| {
        let both = at.both();
        both.is_some_and(|[threads, upcalls]| upcalls > threads + noise)
    };
    let met = all.iter().filter(is_more);
    (more, met.map(|at| at.shortest.to_string()).collect())
}

/// Where it is, and what is calibrated there.
fn named(case: &Case, live: bool) -> String {
    let place = shown::place(case, live).0;
    match (live, &case.place) {
        (false, Where::In1995) => TEXT.say("calibrated", &[("place", &place)]),
        _ => place.into(),
    }
}

fn claim(draft: &mut Draft<'_>, all: &[At<'_>], (case, live, said): (&Case, bool, &Said)) {
    let little: Vec<&At<'_>> = all
        .iter()
        .filter(|at| at.useful(THREADS).is_some_and(|ppm| ppm <= LITTLE_PPM))
        .collect();
    let gained = |at: &&At<'_>| {
        let [once, delayed] = [ONCE, DELAYED].map(|way| shown::known(at.gained(way)));
        let holes: Holes<'_> = &[("delayed", &delayed), ("once", &once), ("at", &at.shortest)];
        TEXT.say("gained-at", holes)
    };
    let list: Vec<String> = little.iter().map(gained).collect();
    let (more, meets) = met(all, live);
    let holes: Holes<'_> = &[
        ("place", &named(case, live)),
        ("more", &more),
        ("gained", &list.join(", ")),
        ("asked", &GAINED),
        ("meets", &meets.join(", ")),
    ];
    let is_known = all.iter().all(|at| at.both().is_some());
    match meets.is_empty() {
        false => draft.say("meets-at", holes),
        true if is_known => draft.say("meets-nowhere", holes),
        true => {}
    }
    if little.is_empty() && is_known {
        draft.say("cheap-everywhere", holes);
        return;
    }
    let is_gained = |at: &&At<'_>| {
        at.both().is_none_or(|[threads, upcalls]| {
            upcalls > 0 && upcalls * 100 >= threads * (100 + GAINED)
        })
    };
    // One that is known may be enough to break it.
    let holds = little.iter().all(is_gained);
    shown::claim(
        draft,
        "gains",
        (is_known || !holds).then_some(holds),
        holes,
        said,
    );
}
