//! Random task sets, the same on every machine.

use std::collections::BTreeSet;

use laxity_lab::import::{Format, Policy, SetTask, TaskSet};
use laxity_model::analysis::{Preemption, Task};
use laxity_model::{Service, Span};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// So many sets are looked at: 100 times `LAXITY_CASES`.
pub(crate) fn cases() -> u64 {
    let factor = std::env::var("LAXITY_CASES").ok();
    100 * factor
        .and_then(|text| text.parse::<u64>().ok())
        .unwrap_or(1)
}

/// Of these tasks, none of them bound to a processor.
pub(crate) fn set_of(tasks: Vec<(Policy, Task)>) -> TaskSet {
    let numbered = (1..).zip(tasks);
    TaskSet {
        file: "random".into(),
        format: Format::Csv,
        tasks: numbered
            .map(|(number, (policy, task))| SetTask {
                name: format!("task {number}"),
                policy,
                processors: BTreeSet::new(),
                work: Ok(task),
                asks_less: false,
                sleeps: false,
                takes_turns: false,
                own_deadline: false,
            })
            .collect(),
        notes: Vec::new(),
    }
}

/// Up to six tasks with small periods: regions of all kinds, jitter, deadlines below and beyond the period, and priorities of which some may be equal.
pub(crate) fn random(seed: u64) -> TaskSet {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let count = random.random_range(1..=6);
    let ranked = random.random_bool(0.5);
    let regions = random.random_bool(0.5);
    let jitters = random.random_bool(0.3);
    let tasks = (0..count).map(|_| {
        let period = random.random_range(2..=40_u64) * 1_000;
        let cost = random.random_range(1..=(2 * period / count).min(period));
        let mut task =
            Task::new(Service::from_nanos(cost), Span::from_nanos(period)).expect("a task");
        if random.random_bool(0.3) {
            let deadline = random.random_range(cost..=2 * period);
            task = task
                .with_deadline(Span::from_nanos(deadline))
                .expect("a deadline");
        }
        if jitters {
            task = task.with_jitter(Span::from_nanos(random.random_range(0..period)));
        }
        if regions {
            let longest = Service::from_nanos(random.random_range(1..=cost));
            let last = Service::from_nanos(random.random_range(1..=longest.as_nanos()));
            let preemption = match random.random_range(0..4) {
                0 => Preemption::Anywhere,
                1 => Preemption::Floating { longest },
                2 => Preemption::Fixed { longest, last },
                _ => Preemption::Never,
            };
            task = task.with_preemption(preemption).expect("it fits");
        }
        let level = random.random_range(1..=count as u8);
        let policy = if ranked {
            Policy::Priority(level)
        } else {
            Policy::Unsaid
        };
        (policy, task)
    });
    set_of(tasks.collect())
}
