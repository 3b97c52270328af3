//! Experiment 2 on this machine over shorter and shorter periods: where delayed preemption meets what preemption at once misses, and where it misses more.

use laxity_lab::bench::{Draft, Holes, Made, Request};
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

    /// How many of a million jobs missed their deadline; `None` where nothing was served.
    fn missed_ppm(&self, way: (Serving, Look)) -> Option<u64> {
        let outcome = self.outcome(way)?;
        outcome.is_met()?;
        (outcome.missed() * 1_000_000).checked_div(outcome.jobs)
    }

    /// Whether more is missed in this way than a single halt or stranger may do, and nothing with delayed preemption.
    fn is_better(&self, way: (Serving, Look)) -> bool {
        let both = self.missed_ppm(way).zip(self.missed_ppm(DELAYED));
        both.is_some_and(|(once, delayed)| delayed == 0 && once > MISSED_HERE_PPM)
    }

    /// Whether delayed preemption misses more by as much.
    fn is_worse(&self, way: (Serving, Look)) -> bool {
        let both = self.missed_ppm(way).zip(self.missed_ppm(DELAYED));
        both.is_some_and(|(once, delayed)| delayed > once + MISSED_HERE_PPM)
    }

    fn name(&self) -> String {
        format!("{} at {} %", at(self.case).0, self.case.percent())
    }
}

/// Shows all, and tells where delayed preemption meets what is missed at once, of each of the two, and where it misses more. Nothing is claimed: the paper tells neither
/// machine nor load.
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
        tell(draft, made, &points, way);
    }
}

fn tell(
    draft: &mut Draft<'_>,
    made: &Made<'_, Upcalls>,
    points: &[Point<'_>],
    way: (Serving, Look),
) {
    let list = |is_one: &dyn Fn(&Point<'_>) -> bool| {
        let found = points.iter().filter(|point| is_one(point));
        let names: Vec<String> = found.map(Point::name).collect();
        match names.is_empty() {
            true => TEXT.say("nowhere", &[]),
            false => names.join(", "),
        }
    };
    let said =
        made.said(|case| case.figure == "delayed" && [way, DELAYED].contains(&case.setup.way));
    let doubt = said.doubt();
    let doubt = doubt.map(|doubt| TEXT.say("delayed-doubt", &[("doubt", &doubt)]));
    let holes: Holes<'_> = &[
        ("way", &shown::way(way.0, way.1)),
        ("found", &list(&|point| point.is_better(way))),
        ("worse", &list(&|point| point.is_worse(way))),
        ("swept", &list(&|_| true)),
        ("much", &shown::percent(MISSED_HERE_PPM)),
        ("doubt", &doubt.unwrap_or_default()),
    ];
    draft.say("delayed", holes);
}
