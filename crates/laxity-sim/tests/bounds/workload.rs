//! Random tasks and their jobs.

use laxity_model::analysis::{Preemption, Task};
use laxity_model::{Instant, Service, Span};

/// Everything random comes from here (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn from(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }

    /// Another one, which goes its own way.
    pub(crate) fn split(&mut self) -> Self {
        Self(self.next())
    }
}

/// A job to come.
#[derive(Clone, Copy)]
pub(crate) struct Job {
    pub(crate) arrival: Instant,
    pub(crate) release: Instant,
    pub(crate) cost: u64,
}

/// The jobs of a task: equal clones give equal jobs.
#[derive(Clone)]
pub(crate) struct Jobs {
    pub(crate) random: Random,
    pub(crate) task: Task,
    pub(crate) next_arrival: u64,
    pub(crate) last_release: u64,
    /// Some jobs come later than they might, or need less.
    pub(crate) irregular: bool,
}

impl Jobs {
    pub(crate) fn new(random: &mut Random, task: Task, first: u64) -> Self {
        let irregular = random.one_in(3);
        Self {
            random: random.split(),
            task,
            next_arrival: first,
            last_release: 0,
            irregular,
        }
    }

    /// All that come are on time and need their whole cost.
    pub(crate) fn regular(task: Task, first: u64) -> Self {
        Self {
            irregular: false,
            ..Self::new(&mut Random(0), task, first)
        }
    }

    pub(crate) fn next(&mut self) -> Job {
        let (arrival, cost) = (self.next_arrival, self.task.cost().as_nanos());
        let jitter = match self.random.from(0, 2) {
            0 => 0,
            1 => self.task.jitter().as_nanos(),
            _ => self.random.from(0, self.task.jitter().as_nanos()),
        };
        self.last_release = self.last_release.max(arrival + jitter);
        let (mut less, mut later) = (0, 0);
        if self.irregular && self.random.one_in(3) {
            less = self.random.from(0, cost - 1);
            later = self.random.from(0, self.task.period().as_nanos());
        }
        self.next_arrival = arrival + self.task.period().as_nanos() + later;
        Job {
            arrival: Instant::from_nanos(arrival),
            release: Instant::from_nanos(self.last_release),
            cost: cost - less,
        }
    }
}

/// A task with a period of `least` to 12 times that and about this share of the processor.
pub(crate) fn random_task(random: &mut Random, least: u64, share_ppm: u64) -> Task {
    let period = least * random.from(1, 12);
    let cost = (u128::from(period) * u128::from(share_ppm) / 1_000_000) as u64;
    Task::new(Service::from_nanos(cost.max(1)), Span::from_nanos(period)).expect("a task")
}

/// So many tasks that use up to `most_ppm` together.
pub(crate) fn random_tasks(
    random: &mut Random,
    count: u64,
    least: u64,
    most_ppm: u64,
) -> Vec<Task> {
    let weights: Vec<u64> = (0..count).map(|_| random.from(1, 1_000)).collect();
    let total: u64 = weights.iter().sum();
    let used = random.from(most_ppm / 3, most_ppm);
    let shares = weights.iter().map(|weight| used * weight / total);
    shares
        .map(|share| random_task(random, least, share))
        .collect()
}

pub(crate) fn with_jitter(random: &mut Random, task: Task) -> Task {
    if random.one_in(4) {
        task.with_jitter(Span::from_nanos(random.from(1, task.period().as_nanos())))
    } else {
        task
    }
}

/// First arrivals: all at once, or anywhere.
pub(crate) fn phases(random: &mut Random, tasks: &[Task], from: u64) -> Vec<u64> {
    let together = random.one_in(3);
    let phase = |task: &Task| match together {
        true => from,
        false => from + random.from(0, task.period().as_nanos()),
    };
    tasks.iter().map(phase).collect()
}

/// Distinct priorities, the highest first.
pub(crate) fn levels(random: &mut Random, count: usize) -> Vec<u8> {
    let mut levels: Vec<u8> = (1..32).collect();
    while levels.len() > count {
        levels.remove(random.from(0, levels.len() as u64 - 1) as usize);
    }
    levels.reverse();
    levels
}

pub(crate) fn with_regions(random: &mut Random, task: Task) -> Task {
    let cost = task.cost().as_nanos();
    let preemption = if random.one_in(2) {
        Preemption::Never
    } else {
        let longest = random.from(1.max(cost / 8), cost);
        let last = random.from(1.max(longest / 8), longest);
        let (longest, last) = (Service::from_nanos(longest), Service::from_nanos(last));
        Preemption::Fixed { longest, last }
    };
    task.with_preemption(preemption).expect("it fits")
}
