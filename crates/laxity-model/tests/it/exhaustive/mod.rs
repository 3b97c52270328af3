//! Small random sets against an exhaustive oracle: a processor followed tick by tick over all phasings.
//!
//! The tests of `analysis` are held against it both ways: no response time is ever longer than its bound, no set that is said to be
//! schedulable misses a deadline; and where a test is exact, its bounds are reached and the job that it names as its witness is late.
//!
//! `LAXITY_CASES` is the number of sets (300 if it is not set; 100,000 take three minutes in release); tests that cost more take a part of
//! them. `LAXITY_SEED` is the seed of the first. A failure names the seed and a least set that fails.

mod choices;
mod courses;
mod dedicated;
mod explore;
mod machine;
mod set;
mod supplies;
mod tally;

use std::panic::{AssertUnwindSafe, catch_unwind};

use laxity_model::analysis::supply::Dedicated;
use set::{MOST_TASKS, Spec, set, shrink};
use tally::Tally;

/// A check of one set.
type Check = fn(&[Spec], u64, &mut Tally) -> Result<(), String>;

fn from_environment(name: &str, otherwise: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(otherwise, |value| value.parse().expect("a number"))
}

/// The check's result; a panic is a failure, too.
fn caught(check: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|_| Err("it panicked".into()))
}

fn outcome(check: Check, specs: &[Spec], seed: u64, tally: &mut Tally) -> Result<(), String> {
    caught(|| check(specs, seed, tally))
}

/// Checks so many sets of up to so many tasks.
fn check_all(one_in: u64, most: usize, check: Check) -> Tally {
    let first = from_environment("LAXITY_SEED", 1);
    let mut tally = Tally::default();
    for seed in first..first + from_environment("LAXITY_CASES", 300).div_ceil(one_in) {
        let specs = set(seed, most);
        if let Err(error) = outcome(check, &specs, seed, &mut tally) {
            let fails =
                |specs: &[Spec]| outcome(check, specs, seed, &mut Tally::default()).is_err();
            let least = shrink(specs.clone(), fails);
            let smallest = outcome(check, &least, seed, &mut Tally::default());
            panic!("seed {seed}: {error}\n  {specs:?}\nleast: {smallest:?}\n  {least:?}");
        }
    }
    println!("{tally:?}");
    tally
}

#[test]
fn a_dedicated_processor() {
    let tally = check_all(1, MOST_TASKS, dedicated::check);
    assert!(tally.schedulable > 0 && tally.witnesses > 0 && tally.unbounded > 0);
    assert!(tally.priority_bounds > 0 && tally.deadline_bounds > 0 && tally.accepted_by_bounds > 0);
}

#[test]
fn supplies_of_every_kind() {
    let tally = check_all(4, 2, supplies::check);
    assert!(tally.supplies_reached > 0 && tally.supplies_reached < tally.supplies);
}

#[test]
fn what_is_left_below() {
    let tally = check_all(4, MOST_TASKS, |specs, _, tally| {
        supplies::check_residual(specs, tally)
    });
    assert!(tally.supplies > 0);
}

#[test]
fn the_longest_regions_are_tolerated_and_no_longer_ones() {
    let check: Check = |specs, _, tally| choices::check_longest_regions(specs, &Dedicated, tally);
    assert!(check_all(1, MOST_TASKS, check).regions > 0);
}

#[test]
fn the_best_order_is_found_if_there_is_one() {
    let check: Check = |specs, _, tally| choices::check_orders(specs, &Dedicated, tally);
    assert!(check_all(2, MOST_TASKS, check).orders > 0);
}

#[test]
fn the_best_final_regions_are_found_if_there_are_any() {
    let check: Check = |specs, _, tally| choices::check_final_regions(specs, &Dedicated, tally);
    assert!(check_all(20, 3, check).final_regions > 0);
}
