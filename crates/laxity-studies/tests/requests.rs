//! The experiments on what is asked for while it runs: small runs in the twin, and the same sheet every time.

use laxity_lab::bench::{Request, Study};
use laxity_lab::runner::Silent;
use laxity_studies::{constraints, on_hook};

fn sheet_of(
    study: Study,
    threads: usize,
    figures: &[&str],
    repeats: u32,
) -> laxity_lab::sheet::Sheet {
    let request = Request {
        figures: figures.iter().map(|figure| (*figure).to_owned()).collect(),
        live: false,
        threads,
        seed: 1,
        repeats: Some(repeats),
        machine: None,
    };
    (study.run)(&request, &mut Silent).expect("the twin runs it")
}

fn expect_held(sheet: &laxity_lab::sheet::Sheet) {
    let failed: Vec<String> = sheet
        .checks
        .iter()
        .filter(|check| !check.held)
        .map(|check| format!("{}: {}", check.claim, check.seen))
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn what_is_claimed_of_time_constraints_is_so() {
    let sheet = sheet_of(constraints::STUDY, 0, &[], 3);
    expect_held(&sheet);
    let keys: Vec<&str> = sheet
        .figures
        .iter()
        .map(|figure| figure.key.as_str())
        .collect();
    let all: Vec<&str> = constraints::STUDY
        .figures
        .iter()
        .map(|figure| figure.0)
        .collect();
    assert_eq!(keys, all);
}

#[test]
fn what_is_claimed_of_a_change_is_so_whatever_the_number_of_threads() {
    let sheet = sheet_of(on_hook::STUDY, 2, &[], 1);
    expect_held(&sheet);
    assert_eq!(sheet, sheet_of(on_hook::STUDY, 1, &[], 1));
}
