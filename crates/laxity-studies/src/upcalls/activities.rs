//! One process: its upcalls against a FIFO thread for each, at the same work; and other ways to serve them beside.

use laxity_lab::bench::{Draft, Holes, Made, Request, Said};
use laxity_lab::report::{Origin, Row, Value};
use laxity_lab::workload::Draws;
use laxity_model::base::histogram::Histogram;
use laxity_model::base::number::{median, upper_median};
use laxity_model::{Service, Span};

use super::trial::{Look, Member, Outcome, Phases, Serving, Setup, in_one, late, processes};
use super::{BATCH, Case, Seen, TWO, Trial, Unwatched, Upcalls, Where, periods, shown};

/// What they take of the processor.
pub(super) const UTILIZATION_PPM: u64 = 800_000;
/// How often those two are run in turn on this machine that are compared, if nothing else is asked.
pub(super) const PAIRS: u32 = 5;
/// The same in the twin: with fewer sets of first releases what is in the median differs from seed to seed.
pub(super) const TWIN_PAIRS: u32 = 51;
/// How many switches upcalls may make a job of those that threads make a job, in thousandths: where releases are spread, and where all begin together.
pub(super) const SWITCHES: [u64; 2] = [250, 125];
/// So much later than its thread, and a quantum of another, may an upcall begin.
pub(super) const AFTER: Span = Span::from_micros(20);
/// What two runs of the same are apart in what 99 % of them are no later than: one in so many.
pub(super) const ALIKE: u64 = 50;
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
            (true, _) => (pairs, BESIDE.len()),
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
    fn each(&self, of: impl Fn(&Trial, &Trial) -> Option<i64>) -> Option<Vec<i64>> {
        let pairs = self.threads.0.iter().zip(&self.upcalls.0);
        pairs
            .map(|(threads, upcalls)| of(threads, upcalls))
            .collect()
    }

    /// Less is better in all that is told of pairs.
    fn median(&self, of: impl Fn(&Trial, &Trial) -> Option<i64>) -> Option<i64> {
        upper_median(self.each(of)?.into_iter())
    }

    /// How much later than its thread that upcall begins which begins the latest after it, in each pair, in nanoseconds.
    fn latest(&self, late: Late) -> Option<Vec<i64>> {
        self.each(|threads, upcalls| {
            let [threads, upcalls] = [threads, upcalls].map(|one| ranked(one, late));
            let later = threads?.into_iter().zip(upcalls?);
            later.map(|(thread, upcall)| upcall - thread).max()
        })
    }
}

/// How late each is, in nanoseconds, in the order of the set. Only those of one period that are first released at one instant are in order of how late they are: who of
/// them goes first is chance.
fn ranked((case, seen): &Trial, late: Late) -> Option<Vec<i64>> {
    let all = seen.outcome.lateness.iter();
    let all = all.map(|seen| late(seen).map(nanos));
    let all = all.collect::<Option<Vec<i64>>>()?;
    let released = |place: &usize| {
        let member = case.setup.members.get(*place);
        member.map(|one| (one.period, one.phase))
    };
    let mut places: Vec<usize> = (0..all.len()).collect();
    places.sort_by_key(released);
    let mut by_lateness = places.clone();
    by_lateness.sort_by_key(|place| (released(place), all[*place]));
    let mut ranked = all.clone();
    for (place, taken) in places.into_iter().zip(by_lateness) {
        ranked[place] = all[taken];
    }
    Some(ranked)
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

/// How many jobs of all runs missed their deadline, or were skipped: of threads, and of upcalls.
fn both_missed(pairs: &Pairs<'_>) -> [u64; 2] {
    let missed = |runs: &Runs<'_>| runs.outcomes().map(Outcome::missed).sum::<u64>();
    [missed(&pairs.threads), missed(&pairs.upcalls)]
}

fn claim_cost(draft: &mut Draft<'_>, case: &Case, pairs: &Pairs<'_>, (live, said): (bool, &Said)) {
    let most = SWITCHES[usize::from(case.first == Phases::Together)];
    // Of jobs that were skipped nobody switches.
    let ratio = pairs.median(|(_, threads), (_, upcalls)| {
        let (threads, upcalls) = (&threads.outcome, &upcalls.outcome);
        let by_upcalls = upcalls.switched()? * threads.jobs * 1_000;
        i64::try_from(by_upcalls.div_ceil(threads.switched()? * upcalls.jobs)).ok()
    });
    let missed = both_missed(pairs);
    let more = |of: &Seen| {
        of.outcome.is_met()?;
        i64::try_from(of.outcome.missed()).ok()
    };
    let more = pairs.median(|(_, threads), (_, upcalls)| Some(more(upcalls)? - more(threads)?));
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
        ("more-missed", &shown::known(more)),
        ("threads-missed", &missed[0]),
        ("upcalls-missed", &missed[1]),
        ("threads-cost", &threads),
        ("upcalls-cost", &upcalls),
    ];
    // The kernel counts switches whether or not the machine stands still.
    let is_fewer = ratio.map(|ratio| ratio <= most as i64);
    shown::claim(draft, "fewer-in-one", is_fewer, holes, &Said::default());
    shown::claim(
        draft,
        "misses-no-more",
        more.map(|more| more <= 0),
        holes,
        said,
    );
    if live {
        let more = |of: &Outcome| i64::try_from(of.besides_ppm?).ok();
        let saved = pairs.median(|(_, threads), (_, upcalls)| {
            Some(more(&upcalls.outcome)? - more(&threads.outcome)?)
        });
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
    let later_all = |(_, threads): &Trial, (_, upcalls): &Trial| {
        Some(nanos(upcalls.outcome.late()?) - nanos(threads.outcome.late()?))
    };
    let later_most = pairs.each(later_all).and_then(|all| all.into_iter().max());
    let later_all = pairs.median(later_all).zip(both[0]);
    let costs = pairs.members.iter().map(|one| case.setup.cost(one));
    let batch = costs.max().unwrap_or_default().as_dedicated_span();
    let quantum = Span::from_nanos(batch.as_nanos().div_ceil(TWO.get().into()));
    let most = nanos(quantum + AFTER);
    let [means, at_99] = [mean, late].map(|late| pairs.latest(late));
    let worst = at_99.iter().flatten().copied().max();
    let [later, later_99] = [means, at_99].map(|each| upper_median(each?.into_iter()));
    let holes: Holes<'_> = &[
        ("place", &shown::place(case, live).0),
        ("first", &first(case)),
        ("pairs", &pairs.threads.0.len()),
        ("later-all", &shown_later(later_all.map(|(later, _)| later))),
        ("later-most", &shown_later(later_most)),
        ("worst", &shown_later(worst)),
        ("threads-late", &threads),
        ("upcalls-late", &upcalls),
        ("later", &shown_later(later)),
        ("later-99", &shown_later(later_99)),
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
