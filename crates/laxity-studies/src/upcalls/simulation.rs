//! §5.3's simulation: what is usable of a multimedia set, and how often upcalls are preempted, by how often they look.

use std::num::NonZeroU32;

use laxity_lab::bench::{Draft, Holes, Request, Said};
use laxity_lab::report::{Origin, Row, Value, Verdict};
use laxity_lab::workload::Draws;
use laxity_model::{Service, Span};

use super::trial::{Look, Member, Serving, Setup};
use super::{Case, PERCENT_PPM, SETS, Search, TEXT, TWO, Trial, Where, shown};

/// What the paper saved of preemptions, in percent.
pub(super) const FEWER: u64 = 30;
/// How much less than with preemption at once may be usable, where the paper says "almost the same".
pub(super) const ALMOST_PPM: u64 = 2 * PERCENT_PPM;
/// The set's utilization while its preemptions are counted.
pub(super) const COUNTED_PPM: u64 = 750_000;
/// So long a run lasts.
pub(super) const LENGTH: Span = Span::from_secs(6);
const ONCE: (Serving, Look) = (Serving::Threads, Look::AtOnce);
const EIGHTH: (Serving, Look) = (Serving::ByRate, Look::Parts(parts(8)));
const QUARTER: (Serving, Look) = (Serving::ByRate, Look::Parts(parts(4)));
const HALF: (Serving, Look) = (Serving::ByRate, Look::Parts(TWO));
const WHOLE: (Serving, Look) = (Serving::ByRate, Look::AT_THE_END);
/// What is compared; the paper does not tell the quantum.
const WAYS: [(Serving, Look); 6] = [
    ONCE,
    EIGHTH,
    QUARTER,
    HALF,
    WHOLE,
    (Serving::ByDeadline, Look::Parts(TWO)),
];
/// Streams of audio, video and files: periods in microseconds, batches, and how many of each. Chosen: the paper's are those of a thesis.
pub(super) const STREAMS: [(u64, u32, u64); 6] = [
    (20_000, 2, 2),
    (25_000, 4, 2),
    (33_333, 8, 2),
    (40_000, 12, 2),
    (66_667, 12, 1),
    (100_000, 32, 1),
];

const fn parts(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).expect("it is not zero")
}

/// Each way on each of the sets.
pub(super) fn cases(request: &Request) -> Vec<Case> {
    let sets = request.repeats.unwrap_or(SETS).clamp(1, 10_000);
    let sets = (0..sets).map(|set| multimedia(&mut Draws::new(request.seed, set.into())));
    let all = sets.flat_map(|members| WAYS.map(|way| (members.clone(), way)));
    let all = all.map(|(members, way)| {
        let setup = Setup {
            members,
            utilization_ppm: COUNTED_PPM,
            way,
            switch: Service::ZERO,
            length: LENGTH,
            is_watched: true,
        };
        Case {
            search: Some(Search::EXACT),
            ..Case::new("simulation", Where::Ideal, setup)
        }
    });
    all.collect()
}

/// All streams, whose units take the same, each released first at an instant that is drawn.
fn multimedia(draws: &mut Draws) -> Vec<Member> {
    let each = STREAMS.iter();
    let each = each.flat_map(|(period, batch, count)| (0..*count).map(move |_| (*period, *batch)));
    let all = (0..).zip(each).map(|(process, (period, batch))| Member {
        period: Span::from_micros(period),
        phase: Span::from_micros(draws.between(0, period - 1)),
        process,
        batch: NonZeroU32::new(batch).unwrap_or(NonZeroU32::MIN),
        weight: u64::from(batch) * 1_000_000_000 / period,
    });
    all.collect()
}

fn mean(values: impl Iterator<Item = u64> + Clone) -> Option<u64> {
    let (sum, count) = (values.clone().sum::<u64>(), values.count() as u64);
    sum.checked_div(count)
}

fn served<'a>(
    all: &'a [&'a Trial],
    way: (Serving, Look),
) -> impl Iterator<Item = &'a Trial> + Clone {
    let all = all.iter().copied();
    all.filter(move |(case, _)| case.setup.way == way)
}

fn usable<'a>(
    all: &'a [&'a Trial],
    way: (Serving, Look),
) -> impl Iterator<Item = u64> + Clone + 'a {
    served(all, way).filter_map(|(_, seen)| seen.usable_ppm)
}

fn preempted(all: &[&Trial], way: (Serving, Look)) -> u64 {
    let all = served(all, way);
    all.map(|(_, seen)| seen.outcome.preempted).sum()
}

/// How many fewer preemptions than at once, in percent.
fn saved(all: &[&Trial], way: (Serving, Look)) -> Option<u64> {
    shown::less(preempted(all, ONCE), preempted(all, way))
}

fn row(all: &[&Trial], way: (Serving, Look)) -> Option<Row> {
    let jobs = served(all, way).map(|(_, seen)| seen.outcome.jobs);
    let of_all = (preempted(all, way) * 1_000_000).checked_div(jobs.sum())?;
    Some(Origin::Simulated.row([
        shown::way(way.0, way.1).into(),
        served(all, way).count().into(),
        Value::share(usable(all, way).min()?),
        Value::share(mean(usable(all, way))?),
        Value::share(usable(all, way).max()?),
        preempted(all, way).into(),
        Value::share(of_all),
        Value::share(saved(all, way)? * PERCENT_PPM),
    ]))
}

/// Shows all, and claims.
pub(super) fn judge(draft: &mut Draft<'_>, trials: &[Trial]) {
    let all = shown::of(trials, "simulation");
    let rows = WAYS.into_iter().filter_map(|way| row(&all, way));
    draft.table("simulation", "simulation", &[], rows);
    if all.is_empty() {
        return;
    }
    let unknown = all.iter().filter(|(_, seen)| seen.usable_ppm.is_none());
    let unknown = unknown.count();
    if unknown > 0 {
        let holes: Holes<'_> = &[("unknown", &unknown), ("of", &all.len())];
        draft.remark("simulation", TEXT.say("searches-left-out", holes));
    }
    let [as_rm, ours] = [ONCE, HALF].map(|way| mean(usable(&all, way)));
    let (fewer, said) = (saved(&all, HALF), Said::default());
    let share = |ppm: Option<u64>| shown::known(ppm.map(shown::percent));
    let [eighth, quarter, half, whole] =
        [EIGHTH, QUARTER, HALF, WHOLE].map(|way| shown::known(saved(&all, way)));
    let holes: Holes<'_> = &[
        ("eighth", &eighth),
        ("quarter", &quarter),
        ("half", &half),
        ("whole", &whole),
        ("as-rm", &share(as_rm)),
        ("ours", &share(ours)),
        ("asked", &FEWER),
    ];
    // Whatever it is, it is of another set than the paper's.
    let verdict = Verdict::Inconclusive(TEXT.say("why-preempted", &[]));
    let fewer_ppm = fewer.map(|fewer| fewer * PERCENT_PPM);
    shown::compare(
        draft,
        "simulation",
        "preempted",
        (FEWER, fewer_ppm),
        verdict,
    );
    draft.say("simulation", holes);
    let is_almost = ours
        .zip(as_rm)
        .map(|(ours, as_rm)| ours + ALMOST_PPM >= as_rm);
    shown::claim(draft, "usable", is_almost, holes, &said);
    // Which quantum the paper's are of is not told: one of those that were tried alone would hold as it was chosen.
    let is_between = saved(&all, EIGHTH).zip(fewer);
    let is_between = is_between.map(|(least, most)| least <= FEWER && FEWER <= most);
    shown::claim(draft, "preempted", is_between, holes, &said);
}
