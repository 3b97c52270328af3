//! Random sets, as evaluations of schedulability tests have them.

use laxity_model::analysis::{Preemption, Task};
use laxity_model::{Service, Span};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Deadlines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Deadlines {
    /// A period after the arrival.
    Implicit,
    /// Anywhere between C and T.
    Constrained,
}

/// Sets of 20 tasks with periods spread log-uniformly from 10 to 1000 ms in ticks of 1 us, utilizations by UUniFast (Bini,
/// Buttazzo 2005), shortest deadline first.
pub(crate) fn r20(sets: usize, load: f64, deadlines: Deadlines, seed: u64) -> Vec<Vec<Task>> {
    sets_of(20, sets, load, deadlines, seed)
}

/// The same of another number of tasks.
pub(crate) fn sets_of(
    tasks: i32,
    sets: usize,
    load: f64,
    deadlines: Deadlines,
    seed: u64,
) -> Vec<Vec<Task>> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    (0..sets)
        .map(|_| set(tasks, &mut random, load, deadlines))
        .collect()
}

fn set(count: i32, random: &mut Pcg64Mcg, load: f64, deadlines: Deadlines) -> Vec<Task> {
    let mut left = load;
    let mut tasks = Vec::new();
    for others in (0..count).rev() {
        let rest = if others == 0 {
            0.0
        } else {
            left * random.random::<f64>().powf(1.0 / f64::from(others))
        };
        let share = left - rest;
        left = rest;
        let period_us = (10_000.0 * 100_f64.powf(random.random::<f64>())).round() as u64;
        let cost_us = ((share * period_us as f64).floor() as u64).max(1);
        let deadline_us = match deadlines {
            Deadlines::Implicit => period_us,
            Deadlines::Constrained => random.random_range(cost_us..=period_us),
        };
        let task = super::plain(cost_us, period_us).with_deadline(Span::from_nanos(deadline_us));
        tasks.push(task.expect("a task"));
    }
    tasks.sort_by_key(Task::deadline);
    tasks
}

/// The same set, with regions of a quarter of each job, floating.
pub(crate) fn with_quarters(tasks: &[Task]) -> Vec<Task> {
    let quarter = |task: &Task| {
        let longest = Service::from_nanos((task.cost().as_nanos() / 4).max(1));
        task.with_preemption(Preemption::Floating { longest })
            .expect("fits")
    };
    tasks.iter().map(quarter).collect()
}
