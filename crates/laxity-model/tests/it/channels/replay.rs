//! The window of counters against a set of all that were seen.

use std::collections::BTreeSet;

use laxity_model::channels::replay::{WIDTH, Window};
use proptest::prelude::*;

/// The slow and obvious one: it forgets nothing.
#[derive(Default)]
struct Oracle(BTreeSet<u64>);

impl Oracle {
    fn is_new(&self, counter: u64) -> bool {
        let is_too_old = |greatest: &u64| *greatest >= counter && greatest - counter >= WIDTH;
        counter != u64::MAX && !self.0.contains(&counter) && !self.0.last().is_some_and(is_too_old)
    }
}

fn agree(counters: impl IntoIterator<Item = u64>) {
    let (mut window, mut oracle) = (Window::default(), Oracle::default());
    for counter in counters {
        let is_new = oracle.is_new(counter);
        assert_eq!(window.is_new(counter), is_new, "{counter}");
        assert_eq!(window.take(counter), is_new, "{counter}");
        assert!(!window.is_new(counter), "{counter} again");
        if is_new {
            oracle.0.insert(counter);
        }
    }
}

#[test]
fn the_edges_of_the_window_and_of_the_counters() {
    agree([0, 0, 1, 0]);
    agree([WIDTH, 0, 1, 1, WIDTH + 1, 1, 2, 3]);
    agree([63, 64, 0, 127, 128, 65, 129]);
    agree([
        u64::MAX - 1,
        u64::MAX,
        u64::MAX - WIDTH - 1,
        u64::MAX - WIDTH,
    ]);
    agree([5, 5 + 10 * WIDTH, 5 + 9 * WIDTH, 6 + 9 * WIDTH, 5]);
    // Each counter in its turn and again one window later, where its bit lies in a word that was used before.
    agree((0..3 * WIDTH).flat_map(|counter| [counter, counter.saturating_sub(WIDTH - 1)]));
}

#[test]
fn the_window_is_wide_enough_for_what_the_wire_promises() {
    const { assert!(WIDTH >= 1024) };
}

/// Counters as a network delivers them: mostly near the greatest, now and then far away.
fn counters() -> impl Strategy<Value = Vec<u64>> {
    let step = prop_oneof![
        8 => -3_i64..6,
        2 => -(WIDTH as i64) - 2..-(WIDTH as i64) + 3,
        2 => WIDTH as i64 - 70..WIDTH as i64 + 140,
        1 => -9_000_i64..9_000,
    ];
    (any::<u16>(), prop::collection::vec(step, 1..300)).prop_map(|(start, steps)| {
        let mut counter = u64::from(start);
        let steps = steps.into_iter().map(move |step| {
            counter = counter.saturating_add_signed(step);
            counter
        });
        steps.collect()
    })
}

proptest! {
    #[test]
    fn each_counter_is_taken_once_and_exactly_where_it_is_not_too_old(counters in counters()) {
        agree(counters);
    }
}
