//! Random task sets have the distributions that they are said to have. Seeds are fixed, so nothing here passes or fails by chance; the
//! limits are those that a right generator keeps with 999 of 1000 seeds, and wrong ones are shown to miss them.

use std::collections::BTreeSet;

use laxity_lab::workload::{Draws, Periods, Recipe, uunifast};
use laxity_model::Span;
use laxity_model::analysis::Task;
use proptest::prelude::*;

/// The Kolmogorov-Smirnov distance times √N is below this in 999 of 1000 cases.
const KOLMOGOROV: f64 = 1.95;

/// √N times the greatest distance between the distribution of the values and `expected`.
fn distance(mut values: Vec<f64>, expected: impl Fn(f64) -> f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let gaps = values.iter().enumerate().map(|(index, value)| {
        let expected = expected(*value);
        let (before, after) = (index as f64 / count, (index + 1) as f64 / count);
        (expected - before).max(after - expected)
    });
    gaps.fold(0.0, f64::max) * count.sqrt()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64
}

/// Component `index` of many vectors.
fn component(vectors: &[Vec<f64>], index: usize) -> Vec<f64> {
    vectors.iter().map(|vector| vector[index]).collect()
}

const VECTORS: usize = 20_000;

fn vectors(seed: u64, draw: impl Fn(&mut Draws) -> Vec<f64>) -> Vec<Vec<f64>> {
    let mut draws = Draws::new(seed, 0);
    (0..VECTORS).map(|_| draw(&mut draws)).collect()
}

/// Each component of a vector that is uniform over the simplex has the distribution Beta(1, n − 1): mean 1/n, variance
/// (n − 1)/(n²(n + 1)), P(u ≤ x) = 1 − (1 − x)ⁿ⁻¹; two of them have the correlation −1/(n − 1).
#[test]
fn uunifast_is_uniform_over_the_simplex() {
    let (n, total) = (5, 0.9);
    let drawn = vectors(1, |draws| uunifast(n, total, draws));
    let size = n as f64;
    let spread = (size - 1.0) / (size * size * (size + 1.0));
    for index in 0..n {
        let parts: Vec<f64> = component(&drawn, index).iter().map(|u| u / total).collect();
        let error = (spread / VECTORS as f64).sqrt();
        assert!((mean(&parts) - 1.0 / size).abs() < 3.3 * error, "{index}");
        assert!((variance(&parts) / spread - 1.0).abs() < 0.05, "{index}");
        let far = distance(parts, |x| 1.0 - (1.0 - x).powi(n as i32 - 1));
        assert!(far < KOLMOGOROV, "component {index}: {far}");
    }
    let (a, b) = (component(&drawn, 0), component(&drawn, 4));
    let products: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a * b).collect();
    let correlation =
        (mean(&products) - mean(&a) * mean(&b)) / (variance(&a) * variance(&b)).sqrt();
    assert!((correlation + 0.25).abs() < 0.025, "{correlation}");
}

/// What UUniFast was made against: uniform numbers divided by their sum crowd in the middle.
#[test]
fn scaled_uniform_numbers_would_be_found_out() {
    let naive = vectors(1, |draws| {
        let raw: Vec<f64> = (0..5).map(|_| draws.unit()).collect();
        let sum: f64 = raw.iter().sum();
        raw.iter().map(|u| u / sum).collect()
    });
    let far = distance(component(&naive, 0), |x| 1.0 - (1.0 - x).powi(4));
    assert!(far > 5.0 * KOLMOGOROV, "{far}");
}

fn millis(ms: u64) -> Span {
    Span::from_millis(ms)
}

#[test]
fn logarithms_of_periods_are_uniform() {
    let (least, most, grain) = (millis(10), millis(1000), Span::from_micros(1));
    let periods = Periods { least, most, grain };
    let mut draws = Draws::new(7, 0);
    let drawn: Vec<u64> = (0..VECTORS)
        .map(|_| periods.draw(&mut draws).as_nanos())
        .collect();
    assert!(drawn.iter().all(|t| t % 1_000 == 0));
    assert!(
        drawn
            .iter()
            .all(|t| (10_000_000..=1_000_000_000).contains(t))
    );
    let logarithms = drawn.iter().map(|t| (*t as f64).ln()).collect();
    let (low, high) = (1e7_f64.ln(), 1e9_f64.ln());
    let far = distance(logarithms, |x| (x - low) / (high - low));
    assert!(far < KOLMOGOROV, "{far}");
}

/// A coarse grain: the last multiple is as reachable as the first.
#[test]
fn all_multiples_of_the_grain_come() {
    let (least, most, grain) = (millis(1), millis(5), millis(1));
    let periods = Periods { least, most, grain };
    let mut draws = Draws::new(8, 0);
    let drawn: BTreeSet<_> = (0..1_000).map(|_| periods.draw(&mut draws)).collect();
    assert_eq!(drawn, (1..=5).map(millis).collect(), "{periods:?}");
}

fn utilization(tasks: &[Task]) -> f64 {
    let part = |task: &Task| task.cost().as_nanos() as f64 / task.period().as_nanos() as f64;
    tasks.iter().map(part).sum()
}

fn recipe() -> Recipe {
    Recipe {
        tasks: 10,
        utilization: 0.8,
        periods: Periods {
            least: millis(10),
            most: millis(100),
            grain: Span::from_micros(1),
        },
    }
}

#[test]
fn a_recipe_that_makes_no_sense_is_refused() {
    let wrong: [fn(&mut Recipe); 4] = [
        |r| r.tasks = 0,
        |r| r.utilization = 0.0,
        |r| r.utilization = f64::INFINITY,
        |r| {
            let (least, most, grain) = (millis(100), millis(10), millis(1));
            r.periods = Periods { least, most, grain };
        },
    ];
    let draw = |recipe: Recipe| recipe.draw(&mut Draws::new(1, 0));
    assert!(draw(recipe()).is_ok());
    for (index, change) in wrong.iter().enumerate() {
        let mut recipe = recipe();
        change(&mut recipe);
        assert!(draw(recipe).is_err(), "number {index}");
    }
}

/// Curves over the utilization compare sets that differ in nothing else.
#[test]
fn sets_of_one_seed_belong_together() {
    let draw = |utilization| {
        let recipe = Recipe {
            utilization,
            ..recipe()
        };
        recipe.draw(&mut Draws::new(1, 2)).expect("a set")
    };
    for (base, fuller) in draw(0.8).iter().zip(&draw(0.9)) {
        assert_eq!(base.period(), fuller.period());
        let ratio = fuller.cost().as_nanos() as f64 / base.cost().as_nanos() as f64;
        assert!((ratio - 1.125).abs() < 1e-3, "{ratio}");
    }
}

/// Ticks that are coarse for the set: execution times of less than a tick are raised to one.
#[test]
fn no_execution_time_is_rounded_to_nothing() {
    let mut recipe = recipe();
    let (least, most, grain) = [10, 20, 1].map(Span::from_nanos).into();
    recipe.periods = Periods { least, most, grain };
    recipe.utilization = 0.2;
    let tasks = recipe.draw(&mut Draws::new(1, 0)).expect("a set");
    assert!(tasks.iter().all(|task| task.cost().as_nanos() >= 1));
    let raised: f64 = tasks
        .iter()
        .map(|t| 1.0 / t.period().as_nanos() as f64)
        .sum();
    assert!(utilization(&tasks) > 0.2 && utilization(&tasks) <= 0.2 + raised);
}

proptest! {
    #[test]
    fn a_set_keeps_what_its_recipe_says(
        tasks in 1_usize..15,
        utilization_asked in 0.05_f64..1.0,
        seed in any::<u64>(),
    ) {
        let mut recipe = recipe();
        (recipe.tasks, recipe.utilization) = (tasks, utilization_asked);
        let set = recipe.draw(&mut Draws::new(seed, 0)).expect("a set");
        prop_assert_eq!(set.len(), tasks);
        let grains: f64 = set.iter().map(|t| 1.0 / t.period().as_nanos() as f64).sum();
        let off = utilization(&set) - utilization_asked;
        prop_assert!(off > -grains - 1e-12 && off < grains + 1e-12);
        for task in &set {
            let (cost, period) = (task.cost().as_nanos(), task.period().as_nanos());
            prop_assert!((10_000_000..=100_000_000).contains(&period));
            prop_assert!(cost >= 1 && cost <= period);
            prop_assert_eq!(task.deadline(), task.period());
        }
    }
}
