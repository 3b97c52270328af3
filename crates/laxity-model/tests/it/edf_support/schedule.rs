//! Schedules under earliest deadline first on a dedicated processor, tick by tick.

use laxity_model::analysis::{Preemption, Task, Witness};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A job that is complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed {
    pub(crate) task: usize,
    pub(crate) arrival: u64,
    pub(crate) release: u64,
    pub(crate) complete: u64,
}

/// A job on its way. Times count from well before the busy window.
#[derive(Clone, Debug)]
struct Job {
    task: usize,
    arrival: u64,
    release: u64,
    due: u64,
    /// How long its regions are, the next one last; all of them together are what it needs.
    regions: Vec<u64>,
    /// Of the region it is in.
    left: u64,
    complete: Option<u64>,
}

impl Job {
    fn new(task: usize, of: &Task, arrival: u64, release: u64, mut regions: Vec<u64>) -> Self {
        let left = regions.pop().unwrap_or(0);
        let due = arrival + of.deadline().as_nanos();
        Self {
            task,
            arrival,
            release,
            due,
            regions,
            left,
            complete: None,
        }
    }
}

/// Runs the jobs until all are complete; of those due at the same time, the one for whom `last` is false goes first.
fn run(mut jobs: Vec<Job>, last: impl Fn(&Job) -> bool) -> Vec<Job> {
    // Each task's jobs, the first to arrive last.
    let tasks = jobs.iter().map(|job| job.task + 1).max().unwrap_or(0);
    let mut queues = vec![Vec::new(); tasks];
    for index in (0..jobs.len()).rev() {
        queues[jobs[index].task].push(index);
    }
    // One that is in the middle of a region.
    let mut holds: Option<usize> = None;
    let mut now = 0;
    while queues.iter().any(|queue| !queue.is_empty()) {
        let heads = queues.iter().filter_map(|queue| queue.last().copied());
        let ready = heads.filter(|index| jobs[*index].release <= now);
        let chosen =
            holds.or_else(|| ready.min_by_key(|index| (jobs[*index].due, last(&jobs[*index]))));
        now += 1;
        let Some(index) = chosen else { continue };
        let job = &mut jobs[index];
        job.left -= 1;
        holds = Some(index);
        if job.left == 0 {
            holds = None;
            match job.regions.pop() {
                Some(next) => job.left = next,
                None => {
                    job.complete = Some(now);
                    queues[job.task].pop();
                }
            }
        }
    }
    jobs
}

/// Regions of one tick each.
fn ticks(cost: u64) -> Vec<u64> {
    vec![1; usize::try_from(cost).expect("small")]
}

/// When the witness is complete in the worst case: all others released as late as they may at the beginning of the window,
/// and as early as they may after it; every job cut into ticks but for the blocker's longest region, the worst of all
/// blockers, which may be all that the blocker needs.
///
/// A task that cannot be preempted runs so in the window, too.
pub(crate) fn worst_case_completion(tasks: &[Task], witness: Witness) -> u64 {
    // The window begins here; blockers come before.
    let begin = 1_000;
    let due = begin + witness.due.as_nanos();
    let regions = |task: &Task| match task.preemption() {
        Preemption::Never => vec![task.cost().as_nanos()],
        Preemption::Fixed { longest, last } => {
            let rest = (task.cost() - last).as_nanos();
            let mut regions = vec![last.as_nanos()];
            regions.extend((0..rest / longest.as_nanos()).map(|_| longest.as_nanos()));
            regions.extend(Some(rest % longest.as_nanos()).filter(|region| *region > 0));
            regions
        }
        Preemption::Anywhere | Preemption::Floating { .. } => ticks(task.cost().as_nanos()),
    };
    let play = |blocker: Option<usize>| {
        let mut jobs = Vec::new();
        for (index, task) in tasks.iter().enumerate() {
            if blocker == Some(index) {
                // A job that needs no more than its longest region, which begins one tick before the window.
                let all = vec![task.blocking().as_nanos() + 1];
                jobs.push(Job::new(index, task, begin - 1, begin - 1, all));
            } else {
                let mut arrival = begin - task.jitter().as_nanos();
                let mut burst = task.burst().get();
                while arrival + task.deadline().as_nanos() <= due {
                    let release = arrival.max(begin);
                    let all =
                        (0..burst).map(|_| Job::new(index, task, arrival, release, regions(task)));
                    jobs.extend(all);
                    (arrival, burst) = (arrival + task.period().as_nanos(), 1);
                }
            }
        }
        let is_witness = |job: &Job| {
            (job.task, job.release, job.due)
                == (witness.task, begin + witness.release.as_nanos(), due)
        };
        let jobs = run(jobs, is_witness);
        let witnesses = jobs.iter().filter(|job| is_witness(job));
        let complete = witnesses.filter_map(|job| job.complete).max();
        complete.unwrap_or(0).saturating_sub(begin)
    };
    let blockers = (0..tasks.len()).filter(|index| !tasks[*index].blocking().is_zero());
    let plays = blockers.map(Some).chain([None]).map(play);
    plays.max().unwrap_or(0)
}

/// A schedule of jobs that arrive, are released and cut into regions at random, often in the worst way.
pub(crate) fn random(tasks: &[Task], seed: u64, length: u64) -> Vec<Observed> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut jobs = Vec::new();
    let lazy = random.random_bool(0.5);
    for (index, task) in tasks.iter().enumerate() {
        let period = task.period().as_nanos();
        let jitter = task.jitter().as_nanos();
        let mut arrival = random.random_range(0..period + jitter + 1);
        let mut earliest = 0;
        let burst = (task.burst().get() - 1) * period;
        let mut without_burst = 0;
        while arrival < length {
            let late = if random.random_bool(0.5) {
                jitter
            } else {
                random.random_range(0..=jitter)
            };
            // A job is not ready before the one before it is.
            earliest = earliest.max(arrival + late);
            let regions = cut(task, &mut random);
            jobs.push(Job::new(
                index,
                task,
                arrival,
                earliest.min(arrival + jitter),
                regions,
            ));
            let pause = if lazy && random.random_bool(0.3) {
                random.random_range(0..period)
            } else {
                0
            };
            without_burst = arrival.max(without_burst) + period;
            arrival = arrival.max(without_burst.saturating_sub(burst)) + pause;
        }
    }
    let jobs = run(jobs, |job| job.due % 2 == seed % 2);
    let observed = jobs.iter().map(|job| Observed {
        task: job.task,
        arrival: job.arrival,
        release: job.release,
        complete: job.complete.unwrap_or(0),
    });
    observed.collect()
}

/// A job's regions, the first one last.
fn cut(task: &Task, random: &mut Pcg64Mcg) -> Vec<u64> {
    let cost = task.cost().as_nanos();
    let (longest, last) = match task.preemption() {
        Preemption::Anywhere => (1, 1),
        Preemption::Floating { longest } => (longest.as_nanos(), 0),
        Preemption::Fixed { longest, last } => (longest.as_nanos(), last.as_nanos()),
        Preemption::Never => (cost, cost),
    };
    let mut regions: Vec<u64> = Some(last).filter(|last| *last > 0).into_iter().collect();
    let mut left = cost - last;
    while left > 0 {
        let most = longest.min(left);
        let region = if random.random_bool(0.5) {
            most
        } else {
            random.random_range(1..=most)
        };
        regions.push(region);
        left -= region;
    }
    regions
}
