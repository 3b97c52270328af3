//! Experiment 2 on this machine over shorter and shorter periods: whether delayed preemption meets what preemption at once misses.

use laxity_lab::bench::{Draft, Holes, Made, Request, Said};
use laxity_lab::report::{Origin, Row, Value};
use laxity_lab::workload::Draws;
use laxity_model::{Service, Span};

use super::shorter::{MISSED_HERE_PPM, divided};
use super::trial::{Look, Outcome, Serving, Setup, in_one};
use super::{Case, PERCENT_PPM, TEXT, Trial, Upcalls, Where, many, shown};

/// The periods of the paper's experiments are divided by these.
pub(super) const DIVISORS: [u64; 4] = [2, 4, 8, 16];
/// What all upcalls take together, in percent.
pub(super) const LOADS: [u64; 2] = [80, 90];
/// Preempted at once: as in the paper, and by the kernel.
const AT_ONCE: [(Serving, Look); 2] = [
    (Serving::ByRate, Look::AtOnce),
    (Serving::Threads, Look::AtOnce),
];
const DELAYED: (Serving, Look) = (Serving::ByRate, Look::AT_THE_END);
const BY_DEADLINE: (Serving, Look) = (Serving::ByDeadline, Look::AT_THE_END);
/// The last three stand beside the others, and are not judged.
const WAYS: [(Serving, Look); 6] = [
    AT_ONCE[0],
    AT_ONCE[1],
    DELAYED,
    BY_DEADLINE,
    (Serving::Kernel, Look::AtOnce),
    (Serving::Intervals, Look::AtOnce),
];

/// Each way in turn at each length of periods and each load that it can be asked to bear: sixteen processes each time, and one by deadline.
pub(super) fn cases(request: &Request, length: Span) -> Vec<Case> {
    let drawn = many::drawn(&mut Draws::new(request.seed, 1));
    let mut cases = Vec::new();
    for by in DIVISORS {
        let members = divided(&drawn, by);
        for load in LOADS {
            let utilization_ppm = load * PERCENT_PPM;
            let ways = WAYS.into_iter();
            let ways = ways.filter(|way| utilization_ppm <= way.0.most_ppm());
            cases.extend(ways.map(|way| {
                // Processes take turns by rate only.
                let setup = Setup {
                    members: match way {
                        BY_DEADLINE => in_one(&members),
                        _ => members.clone(),
                    },
                    utilization_ppm,
                    way,
                    switch: Service::ZERO,
                    length,
                    is_watched: true,
                };
                Case::new("delayed", Where::Ideal, setup)
            }));
        }
    }
    cases
}

/// All ways at one length of periods and one load.
struct Point<'a> {
    case: &'a Case,
    ways: &'a [&'a Trial],
}

/// Where a case stands in the sweep: its shortest period, and the load.
fn at(case: &Case) -> (Span, u64) {
    let periods = case.setup.members.iter().map(|member| member.period);
    let shortest = periods.min().unwrap_or_default();
    (shortest, case.setup.utilization_ppm)
}

impl<'a> Point<'a> {
    fn of(ways: &'a [&'a Trial]) -> Option<Self> {
        let (case, _) = ways.first()?;
        Some(Self { case, ways })
    }

    fn outcome(&self, way: (Serving, Look)) -> Option<&'a Outcome> {
        let found = self.ways.iter().find(|(case, _)| case.setup.way == way);
        found.map(|(_, seen)| &seen.outcome)
    }

    fn row(&self) -> Row {
        let (shortest, load) = at(self.case);
        let mut row = Origin::Charged.row([shortest.into(), Value::share(load)]);
        let all = WAYS.map(|way| self.outcome(way));
        let count = |count: Option<u64>| Origin::Measured.cell(Value::Count(count?));
        row.extend(all.map(|one| count(one.map(Outcome::missed))));
        row.extend(all.map(|one| count(one.map(|one| one.switches))));
        row
    }

    /// Whether more is missed in this way than a single halt or stranger may do, and nothing with delayed preemption; `None`: one of them served nothing.
    fn is_found(&self, way: (Serving, Look)) -> Option<bool> {
        let once = self.outcome(way)?;
        once.is_met()?;
        let is_met = self.outcome(DELAYED)?.is_met()?;
        Some(is_met && once.missed() * 1_000_000 > MISSED_HERE_PPM * once.jobs)
    }

    fn name(&self) -> String {
        format!("{} at {} %", at(self.case).0, self.case.percent())
    }
}

/// Shows all, and says where delayed preemption meets what is missed at once, of each of the two, or that it was not found.
pub(super) fn judge(draft: &mut Draft<'_>, made: &Made<'_, Upcalls>) {
    let live = shown::of(&made.live, "delayed");
    let points = live.chunk_by(|(one, _), (next, _)| at(one) == at(next));
    let points = points.filter_map(Point::of);
    let points: Vec<Point<'_>> = points.collect();
    draft.table("delayed", "delayed", &[], points.iter().map(Point::row));
    let request = made.request;
    if !request.live && request.figures.iter().any(|figure| figure == "delayed") {
        draft.say("delayed-not-here", &[]);
    }
    if points.is_empty() {
        return;
    }
    for way in AT_ONCE {
        claim(draft, made, (&points[..], way));
    }
}

fn claim(
    draft: &mut Draft<'_>,
    made: &Made<'_, Upcalls>,
    (points, way): (&[Point<'_>], (Serving, Look)),
) {
    let said = |of: &[&Point<'_>]| {
        made.said(|case| {
            let is_compared = [way, DELAYED].contains(&case.setup.way);
            case.figure == "delayed"
                && is_compared
                && of.iter().any(|point| at(point.case) == at(case))
        })
    };
    let all: Vec<&Point<'_>> = points.iter().collect();
    let found = all.iter().copied();
    let found = found.filter(|point| point.is_found(way) == Some(true));
    let found: Vec<&Point<'_>> = found.collect();
    let list = |of: &[&Point<'_>]| {
        let names: Vec<String> = of.iter().map(|point| point.name()).collect();
        names.join(", ")
    };
    let place = match found.is_empty() {
        true => TEXT.say("nowhere", &[]),
        false => list(&found),
    };
    let holes: Holes<'_> = &[
        ("way", &shown::way(way.0, way.1)),
        ("found", &place),
        ("swept", &list(&all)),
        ("much", &shown::percent(MISSED_HERE_PPM)),
    ];
    // One of them is enough, of which nothing is doubted.
    let mut each = found.iter().map(|point| said(&[*point]));
    let sure: Option<Said> = each.find(|said| said.doubt().is_none());
    let is_served = all.iter().all(|point| point.is_found(way).is_some());
    match (found.is_empty(), is_served) {
        (false, _) => {
            let read = sure.unwrap_or_else(|| said(&found));
            shown::claim(draft, "delayed-meets", Some(true), holes, &read);
        }
        (true, false) => shown::claim(draft, "delayed-meets", None, holes, &said(&all)),
        // That there is no such place in the sweep is told, and breaks nothing. Where halts may have hidden one, it is open.
        (true, true) => match said(&all) {
            doubted if doubted.doubt().is_some() => {
                shown::claim(draft, "delayed-meets", Some(true), holes, &doubted);
            }
            _ => draft.say("delayed-nowhere", holes),
        },
    }
}
