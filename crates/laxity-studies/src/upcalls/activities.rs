//! One process: its upcalls against a FIFO thread for each, at the same work; and other ways to serve them beside.

use laxity_lab::bench::{Draft, Holes, Made, Request, Said};
use laxity_lab::evidence::subjects::median;
use laxity_lab::report::{Origin, Row, Value};
use laxity_lab::workload::Draws;
use laxity_model::base::histogram::Histogram;
use laxity_model::{Service, Span};

use super::trial::{Look, Member, Outcome, Phases, Serving, Setup, in_one, late, processes};
use super::{BATCH, Case, TWO, Trial, Unwatched, Upcalls, Where, periods, shown};

/// What they take of the processor.
const UTILIZATION_PPM: u64 = 800_000;
/// How often those two are run in turn on this machine that are compared, if nothing else is asked.
const PAIRS: u32 = 5;
/// The same in the twin: with fewer sets of first releases what is in the median differs from seed to seed.
const TWIN_PAIRS: u32 = 51;
/// How many switches upcalls may make of those that threads make, in thousandths: where releases are spread, and where all begin together.
const SWITCHES: [u64; 2] = [250, 125];
/// So much later than its thread, and a quantum of another, may an upcall begin.
const AFTER: Span = Span::from_micros(20);
/// What two runs of the same are apart in what 99 % of them are no later than: one in so many.
const ALIKE: u64 = 50;
/// Where releases are spread, and where all begin together.
const FIRST: [Phases; 2] = [Phases::Drawn, Phases::Together];
/// Those that are compared.
const THREADS: (Serving, Look) = (Serving::Threads, Look::AtOnce);
const UPCALLS: (Serving, Look) = (Serving::ByRate, Look::Parts(TWO));
/// Those beside them: once.
const BESIDE: [(Serving, Look); 3] = [
    (Serving::ByDeadline, Look::Parts(TWO)),
    (Serving::Kernel, Look::AtOnce),
    (Serving::Intervals, Look::AtOnce),
];

/// 24 upcalls of one process, whose first releases are drawn, and then those that begin together: each in pairs of runs, with first releases of
/// its own.
pub(super) fn cases(request: &Request, (live, length): (bool, Span)) -> Vec<Case> {
    let pairs = request
        .repeats
        .unwrap_or(if live { PAIRS } else { TWIN_PAIRS });
    let mut cases = Vec::new();
    for first in FIRST {
        let mut draws = Draws::new(request.seed, 2);
        let case = |set, members: &[Member], way| Case {
            first,
            set,
            unwatched: if live {
                Unwatched::All
            } else {
                Unwatched::Nothing
            },
            ..Case::new(
                "activities",
                Where::Ideal,
                Setup {
                    members: members.to_vec(),
                    utilization_ppm: UTILIZATION_PPM,
                    way,
                    switch: Service::ZERO,
                    length,
                    is_watched: true,
                },
            )
        };
        // Those that the twin has; and of those of this machine one look at each.
        let (pairs, beside) = match (live, first) {
            (true, Phases::Drawn) => (pairs, BESIDE.len()),
            (true, _) => (pairs, 0),
            (false, Phases::Drawn) => (pairs, 1),
            // All of them are alike.
            (false, _) => (1, 1),
        };
        for set in 0..pairs.clamp(1, 10_000) {
            let drawn = processes(4, &periods(), BATCH, &mut draws);
            let members = first.of(in_one(&drawn), &mut draws);
            let beside = BESIDE.into_iter().take(if set == 0 { beside } else { 0 });
            let ways = [THREADS, UPCALLS].into_iter().chain(beside);
            cases.extend(ways.map(|way| case(set, &members, way)));
        }
    }
    cases
}

/// What came of all runs of one way.
struct Runs<'a>(Vec<&'a Trial>);

impl<'a> Runs<'a> {
    fn of(trials: &[&'a Trial], way: (Serving, Look), first: Phases) -> Self {
        let is_one = |(case, _): &&&Trial| case.setup.way == way && case.first == first;
        Self(trials.iter().filter(is_one).copied().collect())
    }

    fn outcomes(&self) -> impl Iterator<Item = &'a Outcome> {
        self.0.iter().map(|(_, seen)| &seen.outcome)
    }

    fn median(&self, of: impl Fn(&Outcome) -> u64) -> u64 {
        median(self.outcomes().map(of)).unwrap_or(0)
    }

    fn row(&self, (way, live): ((Serving, Look), bool)) -> Option<Row> {
        let (case, _) = self.0.first()?;
        let (place, origin) = shown::place(case, live);
        let served = shown::way(way.0, way.1);
        let mut row = origin.row([place.into(), case.first.name().into(), served.into()]);
        let jobs = self.median(|one| one.jobs);
        let switches = self.median(|one| one.switches);
        row.push(Origin::Charged.cell(self.0.len()));
        row.extend(origin.row([
            jobs.into(),
            switches.into(),
            Value::Ratio(switches * 1_000 / jobs.max(1)),
        ]));
        let has_besides = self.outcomes().all(|one| one.besides_ppm.is_some());
        let besides = Value::share(self.median(besides));
        row.push(
            has_besides
                .then_some(besides)
                .and_then(|share| origin.cell(share)),
        );
        let lateness = self.median(|one| one.late().as_nanos());
        row.push(origin.cell(Span::from_nanos(lateness)));
        row.push(origin.cell(self.outcomes().map(Outcome::missed).sum::<u64>()));
        Some(row)
    }
}

fn besides(outcome: &Outcome) -> u64 {
    outcome.besides_ppm.unwrap_or(0)
}

/// What is seen of pairs of runs: of each pair one number, and of those the median.
struct Pairs<'a> {
    threads: Runs<'a>,
    upcalls: Runs<'a>,
    members: &'a [Member],
}

impl Pairs<'_> {
    fn median(&self, of: impl Fn(&Outcome, &Outcome) -> i64) -> i64 {
        let pairs = self.threads.outcomes().zip(self.upcalls.outcomes());
        median(pairs.map(|(threads, upcalls)| of(threads, upcalls))).unwrap_or(0)
    }

    /// How late each is, in nanoseconds, by period, and in order where that is one: who of those goes first where they are released together is chance.
    fn ranked(&self, outcome: &Outcome, late: fn(&Histogram) -> Span) -> Vec<i64> {
        let all = self.members.iter().zip(&outcome.lateness);
        let mut all: Vec<_> = all
            .map(|(one, seen)| (one.period, nanos(late(seen))))
            .collect();
        all.sort_unstable();
        all.into_iter().map(|(_, late)| late).collect()
    }

    /// The most of all pairs.
    fn most(&self, of: impl Fn(&Outcome, &Outcome) -> i64) -> i64 {
        let pairs = self.threads.outcomes().zip(self.upcalls.outcomes());
        let all = pairs.map(|(threads, upcalls)| of(threads, upcalls));
        all.max().unwrap_or(0)
    }

    /// How much later one begins than its thread at the 99th percentile, at the most, in the worst of all pairs.
    fn worst(&self) -> i64 {
        self.most(|threads, upcalls| {
            let [threads, upcalls] = [threads, upcalls].map(|one| self.ranked(one, late));
            let later = threads.into_iter().zip(upcalls);
            later
                .map(|(thread, upcall)| upcall - thread)
                .max()
                .unwrap_or(0)
        })
    }

    /// How much later each upcall begins than its thread, in nanoseconds.
    fn later(&self, late: fn(&Histogram) -> Span) -> Vec<i64> {
        let of_place = |place: usize| {
            self.median(|threads, upcalls| {
                let [thread, upcall] = [threads, upcalls].map(|one| self.ranked(one, late)[place]);
                upcall - thread
            })
        };
        (0..self.members.len()).map(of_place).collect()
    }
}

fn mean(lateness: &Histogram) -> Span {
    Span::from_nanos(lateness.mean().unwrap_or(0))
}

/// A difference of times, in words.
fn shown_later(later: i64) -> String {
    match u64::try_from(later) {
        Ok(later) => Span::from_nanos(later).to_string(),
        Err(_) => format!("{} earlier", Span::from_nanos(later.unsigned_abs())),
    }
}

fn nanos(span: Span) -> i64 {
    laxity_lab::report::nanos(span)
}

/// Shows all, and claims of the pairs.
pub(super) fn judge(draft: &mut Draft<'_>, made: &Made<'_, Upcalls>) {
    let both = [(&made.twin, false), (&made.live, true)];
    let all = both.map(|(trials, live)| (shown::of(trials, "activities"), live));
    let mut rows = Vec::new();
    for (trials, live) in &all {
        for first in FIRST {
            let ways = [THREADS, UPCALLS].into_iter().chain(BESIDE);
            rows.extend(ways.filter_map(|way| Runs::of(trials, way, first).row((way, *live))));
        }
    }
    draft.table("activities", "activities", &[], rows);
    for (trials, live) in &all {
        for first in FIRST {
            let [threads, upcalls] = [THREADS, UPCALLS].map(|way| Runs::of(trials, way, first));
            let Some((case, _)) = threads.0.first() else {
                continue;
            };
            let members = &case.setup.members;
            let pairs = Pairs {
                threads,
                upcalls,
                members,
            };
            let said = made.said(|case| {
                let is_one = case.figure == "activities" && case.first == first;
                *live && is_one && [THREADS, UPCALLS].contains(&case.setup.way)
            });
            claim_cost(draft, case, &pairs, (*live, &said));
            claim_lateness(draft, case, &pairs, (*live, &said));
        }
    }
}

fn first(case: &Case) -> &'static str {
    match case.first {
        Phases::Together => "begin together",
        _ => "are drawn",
    }
}

fn claim_cost(draft: &mut Draft<'_>, case: &Case, pairs: &Pairs<'_>, (live, said): (bool, &Said)) {
    let most = SWITCHES[usize::from(case.first == Phases::Together)];
    let ratio = pairs.median(|threads, upcalls| {
        (upcalls.switches * 1_000).div_ceil(threads.switches.max(1)) as i64
    });
    let both = [&pairs.threads, &pairs.upcalls];
    let [threads, upcalls] = both.map(|runs| shown::finely(runs.median(besides)));
    let holes: Holes<'_> = &[
        ("place", &shown::place(case, live).0),
        ("first", &first(case)),
        ("pairs", &pairs.threads.0.len()),
        ("asked", &(1_000 / most)),
        ("ratio", &format!("{}.{} %", ratio / 10, ratio % 10)),
        ("threads-cost", &threads),
        ("upcalls-cost", &upcalls),
    ];
    // The kernel counts switches whether or not the machine stands still.
    draft.claim("fewer-in-one", ratio <= most as i64, holes);
    if live {
        let more = |of: &Outcome| besides(of) as i64;
        let saved = pairs.median(|threads, upcalls| more(upcalls) - more(threads));
        // A halt may be charged to whom it met.
        draft.claim_here("cheaper", (saved < 0, false), holes, said);
    }
}

fn claim_lateness(
    draft: &mut Draft<'_>,
    case: &Case,
    pairs: &Pairs<'_>,
    (live, said): (bool, &Said),
) {
    let both = [&pairs.threads, &pairs.upcalls];
    let [threads, upcalls] = both.map(|runs| runs.median(|one| one.late().as_nanos()));
    let later_all =
        |threads: &Outcome, upcalls: &Outcome| nanos(upcalls.late()) - nanos(threads.late());
    let (later_all, later_most) = (pairs.median(later_all), pairs.most(later_all));
    let alike = nanos(Span::from_nanos(threads)) / ALIKE as i64;
    let costs = pairs.members.iter().map(|one| case.setup.cost(one));
    let batch = costs.max().unwrap_or_default().as_dedicated_span();
    let quantum = Span::from_nanos(batch.as_nanos().div_ceil(TWO.get().into()));
    let most = nanos(quantum + AFTER);
    let at_99 = pairs.later(late);
    let within = at_99.iter().filter(|later| **later <= most).count();
    let worst = |later: &[i64]| later.iter().copied().max().unwrap_or(0);
    let (later, later_99) = (worst(&pairs.later(mean)), worst(&at_99));
    let holes: Holes<'_> = &[
        ("place", &shown::place(case, live).0),
        ("first", &first(case)),
        ("pairs", &pairs.threads.0.len()),
        ("later-most", &shown_later(later_most)),
        ("worst", &shown_later(pairs.worst())),
        ("threads-late", &Span::from_nanos(threads)),
        ("upcalls-late", &Span::from_nanos(upcalls)),
        ("later", &shown_later(later)),
        ("later-99", &shown_later(later_99)),
        ("within", &within),
        ("of", &at_99.len()),
        ("quantum", &quantum),
        ("batch", &batch),
        ("after", &AFTER),
        ("alike", &(100 / ALIKE)),
    ];
    let mut claim = |key, holds| draft.claim_here(key, (holds, false), holes, said);
    claim("no-later", later_all <= alike);
    claim("each-in-time", later <= most);
    // Who waits for a quantum may be overtaken by somebody more urgent who is released in it.
    claim("each-at-worst", later_99 <= most + nanos(batch));
}
