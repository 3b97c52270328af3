//! Sums in windows, held against all windows there are; and what contracts make of them.

use laxity_model::verify::contract::{Counted, Observed, in_windows};
use laxity_model::{Disturbances, Whereabouts};

use super::*;

const TICK: Span = Span::from_nanos(1);

/// All of them.
fn bearing(all: &[Disturbance]) -> Disturbances {
    Disturbances::bearing_on(all, [Whereabouts::Anywhere])
}

/// All windows, one by one: the least and the most of those that nothing disturbed, and of all.
fn oracle(
    window: Span,
    [start, end]: [Instant; 2],
    counted: &[Counted],
    disturbances: &[Disturbance],
) -> [Option<(u64, u64)>; 3] {
    let mut found: [Vec<u64>; 3] = Default::default();
    let mut begin = start;
    while begin + window <= end {
        let inside = |at: Instant| begin <= at && at < begin + window;
        let own = counted.iter().filter(|one| inside(one.at));
        let sum = |possible: bool| -> u64 {
            let of_them = own.clone().filter(|one| one.possible == possible);
            of_them.map(|one| one.amount).sum()
        };
        let stood = |still: &Disturbance| still.overlaps(begin, begin + window);
        let disturbed = disturbances.iter().any(stood) || own.clone().any(|one| one.disturbed);
        found[1].push(sum(false));
        if !disturbed {
            found[0].push(sum(false));
            let more = Some(sum(true)).filter(|more| *more > 0);
            found[2].extend(more.map(|more| sum(false) + more));
        }
        begin += TICK;
    }
    found.map(|sums| Some((*sums.iter().min()?, *sums.iter().max()?)))
}

fn extremes(seen: &Observed) -> [Option<(u64, u64)>; 3] {
    let all = [seen.undisturbed.clone(), seen.raw(), seen.possible.clone()];
    all.map(|all| Some((all.min()?, all.max()?)))
}

/// A run of some nanoseconds, what was counted in it, and when the machine stood still.
fn run() -> impl Strategy<Value = ([Instant; 2], Vec<Counted>, Vec<Disturbance>)> {
    let bits = [0.2, 0.2].map(prop::bool::weighted);
    let one = (0_u64..60, 1_u64..4, bits);
    let counted = prop::collection::vec(one, 0..12);
    let edges = prop::collection::btree_set(0_u64..60, 0..6);
    (0_u64..20, 0_u64..40, counted, edges).prop_map(|(start, length, counted, edges)| {
        let at = Instant::from_nanos;
        let counted = counted
            .into_iter()
            .map(|(nanos, amount, [disturbed, possible])| Counted {
                at: at(nanos),
                amount,
                disturbed,
                possible,
            });
        let edges: Vec<u64> = edges.into_iter().collect();
        let pairs = edges.chunks_exact(2);
        let disturbances = pairs.map(|pair| Disturbance {
            processor: ProcessorId(0),
            from: at(pair[0]),
            to: at(pair[1]),
        });
        let run = [at(start), at(start + length)];
        (run, counted.collect(), disturbances.collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_windows_that_decide_have_the_extremes_of_all((run, counted, still) in run(), nanos in 1_u64..30) {
        let window = Span::from_nanos(nanos);
        let seen = in_windows(window, run, counted.clone(), &bearing(&still));
        let [own, all, possible] = oracle(window, run, &counted, &still);
        let found = extremes(&seen);
        prop_assert_eq!([found[0], found[1]], [own, all]);
        // Of what may have been the most decides.
        prop_assert_eq!(found[2].map(|(_, most)| most), possible.map(|(_, most)| most));
    }
}

fn jobs_at(all: &[u64]) -> Vec<Counted> {
    let jobs = all.iter().map(|ms| Counted {
        at: Instant::from_millis(*ms),
        amount: 1,
        disturbed: false,
        possible: false,
    });
    jobs.collect()
}

/// What windows of 30 ms have in a run of 100 ms with jobs at these milliseconds, limited so.
fn judged(bound: Bound, jobs: &[u64]) -> Verdict {
    judged_until(100, bound, jobs)
}

/// The same, of a run that is so long, in milliseconds.
fn judged_until(end: u64, bound: Bound, jobs: &[u64]) -> Verdict {
    let window = Span::from_millis(30);
    let quantity = Quantity::JOBS_DONE.in_every(window).expect("counted");
    let statistic = match bound {
        Bound::AtLeast(_) => Statistic::Minimum,
        _ => Statistic::Maximum,
    };
    let run = [0, end].map(Instant::from_millis);
    let mut seen = Observations::new();
    let sums = in_windows(window, run, jobs_at(jobs), &Disturbances::default());
    seen.set(quantity, &Phase::RUN, sums);
    let kind = Kind {
        name: "task",
        quantities: &[Quantity::JOBS_DONE],
    };
    let evidence = evidence("it", kind, &[seen], &[]);
    let contract = contract(Limit::new(quantity, statistic, bound));
    judge_all(&contract, &[evidence], &QUIET)
}

#[test]
fn a_throughput_is_judged_in_every_window_and_not_on_average() {
    let steady: Vec<u64> = (0..10).map(|job| job * 10).collect();
    assert_eq!(judged(Bound::AtLeast(2), &steady).result, Outcome::Met);
    assert_eq!(judged(Bound::AtMost(3), &steady).result, Outcome::Met);
    // As many, and a pause of 40 ms.
    let bursty = [0, 10, 20, 30, 70, 72, 74, 76, 80, 90];
    let verdict = judged(Bound::AtLeast(2), &bursty);
    assert_eq!(verdict.result, Outcome::Violated);
    let said = "jobs done in every 30ms: minimum 0 is below 2";
    assert_eq!(texts(&verdict), [said]);
    assert_eq!(judged(Bound::AtMost(3), &bursty).result, Outcome::Violated);
}

#[test]
fn who_does_nothing_breaks_a_throughput() {
    assert_eq!(judged(Bound::AtLeast(1), &[]).result, Outcome::Violated);
    assert_eq!(judged(Bound::AtMost(1), &[]).result, Outcome::Met);
}

#[test]
fn a_run_shorter_than_a_window_tells_nothing() {
    let run = [0, 29].map(Instant::from_millis);
    let seen = in_windows(
        Span::from_millis(30),
        run,
        jobs_at(&[1]),
        &Disturbances::default(),
    );
    assert_eq!(seen, Observed::default());
    let verdict = judged_until(29, Bound::AtMost(1), &[1]);
    assert_eq!(verdict.result, Outcome::Inconclusive);
    let said = "jobs done in every 30ms: less time than that was observed";
    assert_eq!(texts(&verdict), [said]);
}

#[test]
fn only_what_happens_in_its_time_is_counted_in_windows() {
    let second = Span::from_secs(1);
    assert!(LOST.in_every(second).is_some());
    for other in [Quantity::RESPONSE_TIME, Quantity::tally("retrainings")] {
        assert_eq!(other.in_every(second), None);
    }
    let windowed = LOST.in_every(second).expect("counted");
    assert!(!windowed.is_summed() && windowed.of_each() == LOST);
}

/// One halt and the list of them know one rule.
#[test]
fn what_merely_touches_a_halt_overlaps_none() {
    let at = Instant::from_millis;
    let still = |from, to| Disturbance {
        processor: ProcessorId(0),
        from: at(from),
        to: at(to),
    };
    let list = [still(10, 12), still(30, 31)];
    for (from, to, expected) in [
        (0, 9, false),
        (0, 10, false),
        (0, 11, true),
        (12, 13, false),
        (11, 13, true),
        (10, 12, true),
        (12, 30, false),
        (10, 10, false),
        (11, 11, true),
        (12, 12, false),
        (9, 40, true),
        (32, 40, false),
    ] {
        let found = bearing(&list).overlap(at(from), at(to));
        let one_by_one = list.iter().any(|one| one.overlaps(at(from), at(to)));
        assert_eq!([found, one_by_one], [expected; 2], "{from} to {to}");
    }
}

/// What may have been comes on top of what is known, in a sum.
#[test]
fn a_sum_that_may_have_been_more_is_left_open() {
    let outcome = |known: u64| {
        let mut seen = Observations::new();
        seen.record(LOST, &Phase::RUN, known, false);
        seen.record_possible(LOST, &Phase::RUN, 60);
        let sum = Limit::new(LOST, Statistic::Total, Bound::AtMost(100));
        let evidence = evidence("it", ANYTHING, &[seen], &[]);
        judge_all(&contract(sum), &[evidence], &QUIET).result
    };
    assert_eq!(outcome(60), Outcome::Inconclusive);
    assert_eq!(outcome(40), Outcome::Met);
    assert_eq!(outcome(101), Outcome::Violated);
}
