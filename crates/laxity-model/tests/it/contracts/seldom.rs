//! Of longest times a few that break a bound by less than a halt that nobody saw.

use super::halts::judge_met;
use super::*;

/// What these runs show of a bound of 100 ns, where nobody sees a halt of less than a microsecond, and such a share of the looks met one.
fn judged(runs: &[Vec<u64>], looks_ppm: u32) -> (Outcome, Vec<String>) {
    let facts = RunFacts {
        unseen: Span::from_nanos(1_000),
        ..QUIET
    };
    let runs: Vec<Observations> = runs
        .iter()
        .map(|values| {
            let mut seen = Observations::new();
            for value in values {
                seen.record(Quantity::WAKEUP_GAP, &Phase::RUN, *value, false);
            }
            seen
        })
        .collect();
    let verdict = judge_met(&gap_at_most(100), &runs, &[], (&facts, looks_ppm));
    (verdict.result, texts(&verdict))
}

/// So many that keep it, and these.
fn run(kept: usize, others: &[u64]) -> Vec<u64> {
    [&vec![90; kept][..], others].concat()
}

#[test]
fn a_hundredth_in_one_of_three_runs_is_one_occasion_of_the_machine() {
    let close = [run(50, &[101, 1_099]), run(100, &[]), run(98, &[])];
    let in_one = "wakeup gap: maximum 1.099us, 2 of 250 beyond the bound, in one run: a halt of the machine of less than 1us is seen by nobody, and they come close together";
    let told = vec![format!("not judged: {in_one}")];
    assert_eq!(judged(&close, 0), (Outcome::Met, told));
    assert_eq!(judged(&close[..2], 0).0, Outcome::Violated, "two runs");
    let [_, second, third] = close;
    let more = [run(50, &[101, 101, 1_099]), second, third];
    assert_eq!(judged(&more, 0).0, Outcome::Violated, "more");
}

#[test]
fn a_hundredth_in_several_runs_is_open_where_any_halt_was_seen() {
    let rare = |broken: usize, looks_ppm| {
        let runs = [run(300, &vec![101; broken]), run(50, &[101])];
        judged(&runs, looks_ppm).0
    };
    assert_eq!(rare(2, 1), Outcome::Inconclusive);
    assert_eq!(rare(3, 1), Outcome::Violated, "one more");
    assert_eq!(rare(2, 0), Outcome::Violated, "none was seen");
}
