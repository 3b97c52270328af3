//! How long the analyses take, beside the response-time-analysis crate and beside plain loops: one table.
//!
//! Sets of 20 tasks, periods log-uniform from 10 to 1000 ms in microseconds, UUniFast. Ours and the other take turns, each going
//! through all sets once; the figures are the median of all turns, and the least and the most. Both must answer the same.

#[path = "analysis/fixed.rs"]
mod fixed;
#[allow(dead_code)]
#[path = "../tests/it/edf_support/mod.rs"]
mod support;
#[path = "analysis/yardstick.rs"]
mod yardstick;

use std::hint::black_box;
use std::time::Instant;

use laxity_model::analysis::supply::Dedicated;
use laxity_model::analysis::{Response, Task, edf};
use support::rival::Rival;
use support::sets::{Deadlines, r20, with_quarters};

const SETS: usize = 100;
const TURNS: usize = 11;

/// Analyses all sets once; answers how long one took, in microseconds, and the sum of what was found.
fn turn<T>(sets: &[T], analyse: &impl Fn(&T) -> u64) -> (f64, u64) {
    let begin = Instant::now();
    let found = sets.iter().map(|set| analyse(black_box(set))).sum();
    (
        begin.elapsed().as_secs_f64() * 1e6 / sets.len() as f64,
        found,
    )
}

/// The median, the least and the most.
fn spread(mut took: Vec<f64>) -> [f64; 3] {
    took.sort_by(f64::total_cmp);
    [took[took.len() / 2], took[0], took[took.len() - 1]]
}

/// Times both sides in turns, and prints a row of the table.
fn row<A, B>(
    name: &str,
    (sets, ours): (&[A], impl Fn(&A) -> u64),
    (other_sets, other): (&[B], impl Fn(&B) -> u64),
) {
    let (mut our_took, mut other_took) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let (took, found) = turn(sets, &ours);
        our_took.push(took);
        let (took, others) = turn(other_sets, &other);
        other_took.push(took);
        assert_eq!(found, others, "{name}: both must answer the same");
    }
    let (ours, other) = (spread(our_took), spread(other_took));
    let print = |[median, least, most]: [f64; 3]| format!("{median:.2} ({least:.2}–{most:.2})");
    let ratio = other[0] / ours[0];
    println!(
        "| {name} | {} | {} | {ratio:.1} |",
        print(ours),
        print(other)
    );
}

/// The sum of all bounds.
fn sum(responses: &[Response]) -> u64 {
    let bounds = responses
        .iter()
        .map(|response| response.bound().expect("bounded"));
    bounds.map(|bound| bound.from_arrival.as_nanos()).sum()
}

fn edf_responses(tasks: &[Task]) -> u64 {
    sum(&edf::response_times(tasks, &Dedicated).expect("small numbers"))
}

fn edf_test(tasks: &[Task]) -> u64 {
    u64::from(
        edf::test(tasks, &Dedicated)
            .expect("small numbers")
            .is_schedulable(),
    )
}

fn demand_tests(load: f64) {
    for (name, deadlines) in [
        ("constrained", Deadlines::Constrained),
        ("implicit", Deadlines::Implicit),
    ] {
        let sets = r20(SETS * 10, load, deadlines, 3);
        let plain: Vec<_> = sets.iter().map(|set| yardstick::Plain::new(set)).collect();
        row(
            &format!("EDF demand (QPA), {name}, U = {load} / plain QPA"),
            (&sets, |set: &Vec<Task>| edf_test(set)),
            (&plain, |set| u64::from(set.quick_test())),
        );
        let quarters: Vec<_> = sets.iter().map(|set| with_quarters(set)).collect();
        let plain: Vec<_> = quarters
            .iter()
            .map(|set| yardstick::Plain::new(set))
            .collect();
        row(
            &format!("EDF demand, regions C/4, {name}, U = {load} / plain scan"),
            (&quarters, |set: &Vec<Task>| edf_test(set)),
            (&plain, |set| u64::from(set.scan())),
        );
    }
}

fn edf_response_times(load: f64) {
    let sets = r20(SETS, load, Deadlines::Implicit, 5);
    let rivals: Vec<_> = sets.iter().map(|set| Rival::new(set)).collect();
    let prepared: Vec<_> = rivals
        .iter()
        .map(|rival| (rival, rival.preemptive()))
        .collect();
    row(
        &format!("EDF response times, U = {load} / crate"),
        (&sets, |set: &Vec<Task>| edf_responses(set)),
        (&prepared, |(rival, others)| {
            let bounds = others.iter().enumerate();
            bounds
                .map(|(index, others)| rival.preemptive_bound(index, others))
                .sum()
        }),
    );
    let sets: Vec<_> = r20(SETS, load, Deadlines::Constrained, 7)
        .iter()
        .map(|set| with_quarters(set))
        .collect();
    let rivals: Vec<_> = sets.iter().map(|set| Rival::new(set)).collect();
    let prepared: Vec<_> = rivals
        .iter()
        .map(|rival| (rival, rival.floating()))
        .collect();
    row(
        &format!("EDF response times, regions C/4, constrained, U = {load} / crate"),
        (&sets, |set: &Vec<Task>| edf_responses(set)),
        (&prepared, |(rival, others)| {
            let bounds = others.iter().enumerate();
            bounds
                .map(|(index, others)| rival.floating_bound(index, others))
                .sum()
        }),
    );
}

/// All rows, or, with an argument that is no flag of cargo's, those beside the textbook loop.
fn main() {
    println!("| 20 tasks, us a set: median (least–most) | ours | other | other/ours |");
    println!("|---|---|---|---|");
    let textbook = std::env::args().any(|argument| argument == "textbook");
    for load in [0.8, 0.9] {
        fixed::beside_the_textbook(load);
    }
    if textbook {
        return;
    }
    for load in [0.8, 0.9] {
        fixed::response_times(load);
        demand_tests(load);
        edf_response_times(load);
    }
}
