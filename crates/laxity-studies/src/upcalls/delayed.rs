//! Experiment 2 on this machine over shorter and shorter periods: whether delayed preemption meets what preemption at once misses.

use laxity_lab::bench::{Draft, Holes, Made, Request, Said};
use laxity_lab::report::{Origin, Row, Value};
use laxity_lab::workload::Draws;
use laxity_model::{Service, Span};

use super::shorter::{MISSED_HERE_PPM, divided};
use super::trial::{Look, Outcome, Serving, Setup, in_one};
use super::{Case, PERCENT_PPM, TEXT, Trial, Upcalls, Where, many, shown};

/// The periods of the paper's experiments are divided by these.
const DIVISORS: [u64; 4] = [2, 4, 8, 16];
/// What all upcalls take together, in percent.
const LOADS: [u64; 2] = [80, 90];
/// Preempted at once: as in the paper, and by the kernel.
const AT_ONCE: [(Serving, Look); 2] = [
    (Serving::ByRate, Look::AtOnce),
    (Serving::Threads, Look::AtOnce),
];
const DELAYED: (Serving, Look) = (Serving::ByRate, Look::AT_THE_END);
/// Beside them, and not judged.
const BY_DEADLINE: (Serving, Look) = (Serving::ByDeadline, Look::AT_THE_END);
const WAYS: [(Serving, Look); 4] = [AT_ONCE[0], AT_ONCE[1], DELAYED, BY_DEADLINE];

/// Each way in turn at each length of periods and each load: sixteen processes each time, and one by deadline.
pub(super) fn cases(request: &Request, length: Span) -> Vec<Case> {
    let drawn = many::drawn(&mut Draws::new(request.seed, 1));
    let mut cases = Vec::new();
    for by in DIVISORS {
        let members = divided(&drawn, by);
        for load in LOADS {
            cases.extend(WAYS.map(|way| {
                // Processes take turns by rate only.
                let setup = Setup {
                    members: match way {
                        BY_DEADLINE => in_one(&members),
                        _ => members.clone(),
                    },
                    utilization_ppm: load * PERCENT_PPM,
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
    at_once: [&'a Outcome; 2],
    delayed: &'a Outcome,
    by_deadline: &'a Outcome,
}

impl<'a> Point<'a> {
    fn of(ways: &[&'a Trial]) -> Option<Self> {
        let [(case, first), (_, second), (_, delayed), (_, by_deadline)] = ways else {
            return None;
        };
        Some(Self {
            case,
            at_once: [&first.outcome, &second.outcome],
            delayed: &delayed.outcome,
            by_deadline: &by_deadline.outcome,
        })
    }

    fn shortest(&self) -> Span {
        let periods = self.case.setup.members.iter().map(|member| member.period);
        periods.min().unwrap_or_default()
    }

    fn row(&self) -> Row {
        let [once, threads] = self.at_once;
        let all = [once, threads, self.delayed, self.by_deadline];
        let mut row = Origin::Charged.row([
            self.shortest().into(),
            Value::share(self.case.setup.utilization_ppm),
        ]);
        row.extend(Origin::Measured.row(all.map(|one| Value::Count(one.missed()))));
        row.extend(Origin::Measured.row(all.map(|one| Value::Count(one.switches))));
        row
    }

    /// Whether more is missed at once, of one of the two, than a single halt or stranger may do, and nothing with delayed preemption; `None`: one of them served nothing.
    fn is_found(&self, which: usize) -> Option<bool> {
        let once = self.at_once[which];
        once.is_met()?;
        let is_met = self.delayed.is_met()?;
        Some(is_met && once.missed() * 1_000_000 > MISSED_HERE_PPM * once.jobs)
    }

    fn is_at(&self, case: &Case) -> bool {
        let own = &self.case.setup;
        let is_as_long = own.members == case.setup.members;
        is_as_long && own.utilization_ppm == case.setup.utilization_ppm
    }

    fn name(&self) -> String {
        format!("{} at {} %", self.shortest(), self.case.percent())
    }
}

/// Shows all, and says where delayed preemption meets what is missed at once, of each of the two, or that it was not found.
pub(super) fn judge(draft: &mut Draft<'_>, made: &Made<'_, Upcalls>) {
    let live = shown::of(&made.live, "delayed");
    let points = live.chunks(WAYS.len()).filter_map(Point::of);
    let points: Vec<Point<'_>> = points.collect();
    draft.table("delayed", "delayed", &[], points.iter().map(Point::row));
    let request = made.request;
    if !request.live && request.figures.iter().any(|figure| figure == "delayed") {
        draft.say("delayed-not-here", &[]);
    }
    if points.is_empty() {
        return;
    }
    for which in 0..AT_ONCE.len() {
        claim(draft, made, (&points[..], which));
    }
}

fn claim(draft: &mut Draft<'_>, made: &Made<'_, Upcalls>, (points, which): (&[Point<'_>], usize)) {
    let way = AT_ONCE[which];
    let said = |of: &[&Point<'_>]| {
        made.said(|case| {
            let is_compared = [way, DELAYED].contains(&case.setup.way);
            case.figure == "delayed" && is_compared && of.iter().any(|point| point.is_at(case))
        })
    };
    let all: Vec<&Point<'_>> = points.iter().collect();
    let found = all.iter().copied();
    let found = found.filter(|point| point.is_found(which) == Some(true));
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
    let is_served = all.iter().all(|point| point.is_found(which).is_some());
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
