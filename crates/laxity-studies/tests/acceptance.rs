//! The acceptance-ratio study: the quoted table comes out again, no test accepts what a stronger one rejects, and a seed fixes every byte.
//!
//! `LAXITY_CASES` sets how many sets are drawn for each point of the comparison (200 without it; 2,000 is what the quoted table has).

use laxity_lab::bench::{Experiment, Made, Request, make};
use laxity_lab::report::{Report, Verdict, json, page, text};
use laxity_lab::runner::Silent;
use laxity_model::verify::contract::Outcome;
use laxity_studies::acceptance::compared::{COUNT, Test};
use laxity_studies::acceptance::{Acceptance, Case, Tally, compared_with_quoted};

fn request(figures: &[&str], sets: u64, tasks: u64) -> Request {
    let options = [("sets", sets), ("tasks", tasks)];
    Request {
        figures: figures.iter().map(|&figure| figure.into()).collect(),
        seed: 1,
        options: options.map(|(name, value)| (name.into(), value)).into(),
        ..Request::default()
    }
}

fn study(request: &Request) -> Made<'_, Acceptance> {
    make(&Acceptance, request, &mut Silent).expect("a study")
}

fn report(request: &Request) -> Report {
    Acceptance.perform(request, &mut Silent).expect("a study")
}

/// How many sets the comparison has.
fn cases() -> u64 {
    let cases = std::env::var("LAXITY_CASES").ok();
    cases.map_or(200, |cases| {
        cases.parse().expect("LAXITY_CASES is a number")
    })
}

/// The claim that the study is there for: at q = C/4 and U = 0.9 the bounds of 1995 accept nothing, response times a third, a fixed last
/// region more than half, and earliest deadline first nearly all.
#[test]
fn exact_tests_accept_what_the_bounds_give_away() {
    let request = request(&["quoted"], cases(), 10);
    let made = study(&request);
    let is_row =
        |(case, _): &&(Case, Tally)| (case.point.region, case.point.utilization) == (0.25, 0.9);
    let (_, tally) = made.twin.iter().find(is_row).expect("a row of the table");
    let share = |test: Test| tally.accepted[test as usize] as f64 / cases() as f64;
    assert_eq!(share(Test::Rmdp), 0.0);
    for (test, least) in [
        (Test::FpFloating, 1.0 / 3.0),
        (Test::FpLastRegion, 0.5),
        (Test::FpFinalRegions, 0.98),
        (Test::EdfFloating, 0.99),
    ] {
        let share = share(test);
        let error = (share * (1.0 - share) / cases() as f64).sqrt();
        assert!(share >= least - 3.3 * error, "{test:?}: {share} ± {error}");
    }
    assert!(share(Test::FpFinalRegions) > share(Test::FpLastRegionBestOrder));
}

/// Every quoted figure is met within what chance allows: of 24 that are right, one is farther off than 3.6 standard errors in a hundred
/// studies.
#[test]
fn the_quoted_table_comes_out_again() {
    let request = request(&["quoted"], cases(), 10);
    let mut made = study(&request);
    let compared = compared_with_quoted(&made, cases(), 10);
    assert_eq!(compared.len(), 24);
    for (row, farthest) in compared {
        assert!(farthest < 3.6, "{row:?}");
        assert!(matches!(row.verdict, Verdict::Agrees(_)), "{row:?}");
    }
    // Half as many, which uniform periods would give, are found out.
    made.twin[2].1.accepted[Test::FpFloating as usize] /= 2;
    let compared = compared_with_quoted(&made, cases(), 10);
    let wrong = |(row, _): &&(_, f64)| -> bool {
        let row: &laxity_lab::report::Compared = row;
        matches!(row.verdict, Verdict::Disagrees(_))
    };
    assert_eq!(compared.iter().filter(wrong).count(), 1);
}

#[test]
fn nothing_is_quoted_for_sets_of_another_size() {
    let request = request(&["quoted"], 2, 3);
    assert!(compared_with_quoted(&study(&request), 2, 3).is_empty());
    assert!(report(&request).figures[0].compared.is_empty());
}

#[test]
fn no_test_accepts_what_a_stronger_one_rejects() {
    let request = request(&[], 50, 10);
    let made = study(&request);
    assert!(made.twin.len() * 50 > 3_000);
    for (case, tally) in &made.twin {
        assert!(
            tally.against.iter().all(|against| *against == 0),
            "{case:?}"
        );
        assert_eq!(tally.undecided, [0; COUNT]);
    }
    let report = report(&request);
    assert!(report.outcome() == Outcome::Met && report.checks.len() == 21);
}

/// Curves that theory says do not rise do not rise: the sets of two utilizations, or of two region lengths, differ in nothing else.
#[test]
fn a_fuller_set_is_not_easier() {
    // A longer last region may help.
    let exempt = [Test::FpLastRegion, Test::FpLastRegionBestOrder].map(|test| test as usize);
    for (figure, exempt) in [
        ("utilization", &[][..]),
        ("region-at-0.85", &exempt),
        ("region-at-0.70", &exempt),
    ] {
        let request = request(&[figure], 50, 10);
        let made = study(&request);
        assert!(made.twin.len() >= 14);
        for pair in made.twin.windows(2) {
            for test in (0..COUNT).filter(|test| !exempt.contains(test)) {
                let [before, after] = [0, 1].map(|point: usize| pair[point].1.accepted[test]);
                assert!(after <= before, "{test}, {:?}", pair[1].0);
            }
        }
    }
}

#[test]
fn a_seed_fixes_every_byte_with_any_number_of_threads() {
    let with = |threads| Request {
        threads,
        ..request(&[], 20, 10)
    };
    let (one, two) = (report(&with(1)), report(&with(2)));
    assert_eq!(json::render(&one), json::render(&two));
    assert_eq!(text::render(&one, 80), text::render(&two, 80));
    assert!(page::render(&one).expect("a page").len() < 300_000);
    let seed = 2;
    let other = report(&Request { seed, ..with(0) });
    assert_ne!(other.figures, one.figures);
}

#[test]
fn settings_out_of_range_are_refused() {
    for (sets, tasks) in [(0, 10), (1_000_001, 10), (10, 0), (10, 65)] {
        let request = request(&[], sets, tasks);
        let refused = Acceptance.perform(&request, &mut Silent);
        let why = refused.expect_err("out of range").to_string();
        assert!(why.contains("is not from 1 to"), "{why}");
    }
}
