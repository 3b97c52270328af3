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

    /// `None` of none, and where it is not known of one.
    fn median(&self, of: impl Fn(&Outcome) -> Option<u64>) -> Option<u64> {
        let all: Option<Vec<u64>> = self.outcomes().map(of).collect();
        median(all?.into_iter())
    }

    fn row(&self, (way, live): ((Serving, Look), bool)) -> Option<Row> {
        let (case, _) = self.0.first()?;
        let (place, origin) = shown::place(case, live);
        let served = shown::way(way.0, way.1);
        let mut row = origin.row([place.into(), case.first.name().into(), served.into()]);
        let jobs = self.median(|one| Some(one.jobs))?;
        let switches = self.median(|one| Some(one.switches))?;
        row.push(Origin::Charged.cell(self.0.len()));
        row.extend(origin.row([jobs.into(), switches.into()]));
        let known = [
            shown::a_job(switches, jobs),
            self.median(|one| one.besides_ppm).map(Value::share),
            self.median(late_ns)
                .map(|late| Span::from_nanos(late).into()),
        ];
        row.extend(known.map(|value| value.and_then(|value| origin.cell(value))));
        row.push(origin.cell(self.outcomes().map(Outcome::missed).sum::<u64>()));
        Some(row)
    }
}

fn late_ns(outcome: &Outcome) -> Option<u64> {
    outcome.late().map(Span::as_nanos)
}

/// What is seen of pairs of runs: of each pair one number, and of those the median.
struct Pairs<'a> {
    threads: Runs<'a>,
    upcalls: Runs<'a>,
    members: &'a [Member],
}

impl Pairs<'_> {
    /// Of each of them; `None` where it is not known of one.
    fn each(&self, of: impl Fn(&Outcome, &Outcome) -> Option<i64>) -> Option<Vec<i64>> {
        let pairs = self.threads.outcomes().zip(self.upcalls.outcomes());
        pairs
            .map(|(threads, upcalls)| of(threads, upcalls))
            .collect()
    }

    fn median(&self, of: impl Fn(&Outcome, &Outcome) -> Option<i64>) -> Option<i64> {
        median(self.each(of)?.into_iter())
    }

    /// How late each is, in nanoseconds, by period, and in order where that is one: who of those goes first where they are released together is chance.
    fn ranked(&self, outcome: &Outcome, late: Late) -> Option<Vec<i64>> {
        let all = self.members.iter().zip(&outcome.lateness);
        let all = all.map(|(one, seen)| Some((one.period, nanos(late(seen)?))));
        let mut all = all.collect::<Option<Vec<_>>>()?;
        all.sort_unstable();
        Some(all.into_iter().map(|(_, late)| late).collect())
    }

    /// How much later one begins than its thread at the 99th percentile, at the most, in the worst of all pairs.
    fn worst(&self) -> Option<i64> {
        let worst = |threads: &Outcome, upcalls: &Outcome| {
            let [threads, upcalls] = [threads, upcalls].map(|one| self.ranked(one, late));
            let later = threads?.into_iter().zip(upcalls?);
            later.map(|(thread, upcall)| upcall - thread).max()
        };
        self.each(worst)?.into_iter().max()
    }

    /// How much later each upcall begins than its thread, in nanoseconds.
    fn later(&self, late: Late) -> Option<Vec<i64>> {
        let of_place = |place: usize| {
            self.median(|threads, upcalls| {
                let one = |outcome| self.ranked(outcome, late)?.get(place).copied();
                Some(one(upcalls)? - one(threads)?)
            })
        };
        (0..self.members.len()).map(of_place).collect()
    }
}

/// What is told of how late the jobs of one were.
type Late = fn(&Histogram) -> Option<Span>;

fn mean(lateness: &Histogram) -> Option<Span> {
    lateness.mean().map(Span::from_nanos)
}

/// A difference of times, in words.
fn shown_later(later: Option<i64>) -> String {
    shown::known(later.map(|later| {
        let span = Span::from_nanos(later.unsigned_abs());
        let earlier = if later < 0 { " earlier" } else { "" };
        format!("{span}{earlier}")
    }))
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
        let ratio = (upcalls.switched()? * 1_000).div_ceil(threads.switched()?);
        i64::try_from(ratio).ok()
    });
    let both = [&pairs.threads, &pairs.upcalls];
    let besides = both.map(|runs| runs.median(|one| one.besides_ppm));
    let [threads, upcalls] = besides.map(|ppm| shown::known(ppm.map(shown::finely)));
    let shown_ratio = ratio.map(|ratio| format!("{}.{} %", ratio / 10, ratio % 10));
    let holes: Holes<'_> = &[
        ("place", &shown::place(case, live).0),
        ("first", &first(case)),
        ("pairs", &pairs.threads.0.len()),
        ("asked", &(1_000 / most)),
        ("ratio", &shown::known(shown_ratio)),
        ("threads-cost", &threads),
        ("upcalls-cost", &upcalls),
    ];
    // The kernel counts switches whether or not the machine stands still.
    let is_fewer = ratio.map(|ratio| ratio <= most as i64);
    shown::claim(draft, "fewer-in-one", is_fewer, holes, &Said::default());
    if live {
        let more = |of: &Outcome| i64::try_from(of.besides_ppm?).ok();
        let saved = pairs.median(|threads, upcalls| Some(more(upcalls)? - more(threads)?));
        // A halt may be charged to whom it met.
        shown::claim(draft, "cheaper", saved.map(|saved| saved < 0), holes, said);
    }
}

fn claim_lateness(
    draft: &mut Draft<'_>,
    case: &Case,
    pairs: &Pairs<'_>,
    (live, said): (bool, &Said),
) {
    let both = [&pairs.threads, &pairs.upcalls];
    let both = both.map(|runs| runs.median(late_ns).map(Span::from_nanos));
    let [threads, upcalls] = both.map(shown::known);
    let later_all = |threads: &Outcome, upcalls: &Outcome| {
        Some(nanos(upcalls.late()?) - nanos(threads.late()?))
    };
    let later_most = pairs.each(later_all).and_then(|all| all.into_iter().max());
    let later_all = pairs.median(later_all).zip(both[0]);
    let costs = pairs.members.iter().map(|one| case.setup.cost(one));
    let batch = costs.max().unwrap_or_default().as_dedicated_span();
    let quantum = Span::from_nanos(batch.as_nanos().div_ceil(TWO.get().into()));
    let most = nanos(quantum + AFTER);
    let at_99 = pairs.later(late);
    let within = at_99
        .iter()
        .flatten()
        .filter(|later| **later <= most)
        .count();
    let worst = |later: Option<Vec<i64>>| later?.into_iter().max();
    let (later, later_99) = (worst(pairs.later(mean)), worst(at_99));
    let holes: Holes<'_> = &[
        ("place", &shown::place(case, live).0),
        ("first", &first(case)),
        ("pairs", &pairs.threads.0.len()),
        ("later-most", &shown_later(later_most)),
        ("worst", &shown_later(pairs.worst())),
        ("threads-late", &threads),
        ("upcalls-late", &upcalls),
        ("later", &shown_later(later)),
        ("later-99", &shown_later(later_99)),
        ("within", &within),
        ("of", &pairs.members.len()),
        ("quantum", &quantum),
        ("batch", &batch),
        ("after", &AFTER),
        ("alike", &(100 / ALIKE)),
    ];
    let mut claim = |key, holds| shown::claim(draft, key, holds, holes, said);
    let is_alike = |(later, threads)| later <= nanos(threads) / ALIKE as i64;
    claim("no-later", later_all.map(is_alike));
    claim("each-in-time", later.map(|later| later <= most));
    // Who waits for a quantum may be overtaken by somebody more urgent who is released in it.
    claim(
        "each-at-worst",
        later_99.map(|later| later <= most + nanos(batch)),
    );
}
